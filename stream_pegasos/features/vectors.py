"""Vectors of words: small whole numbers from a table, for features that stand beside those of the words themselves."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import ArrayLike, NDArray

from stream_pegasos.common.extras import missing
from stream_pegasos.common.locks import Lock
from stream_pegasos.engine.pure.scanner import word_64

__all__ = ["VectorsError", "WordVectors", "packed", "unpacked", "word_vectors"]

WORDLLAMA, MAPPING, EXTRA = "wordllama", "mapping", "vectors"
# A code is from −127 to 127 and a shift from 0 to 7, so that the largest number of a table is 127 · 2⁷.
CODE, SHIFT = 127, 7
LARGEST = CODE << SHIFT
# A number below (127 + 1/2) · 2^shift is rounded to a code.
LIMITS = np.ldexp(np.float32(CODE + 0.5), np.arange(SHIFT))
UNITS = np.ldexp(np.float32(1.0), -np.arange(SHIFT + 1))
# Tables of tokens are made so that they may be cut: their first numbers say most.
OF_TOKENS, MOST = 192, 512
LONGEST = 256  # characters of a word that it is made of
FEW = 4  # words, of which each may as well be made by itself
CHUNK = 4096  # rows of a table that are turned into whole numbers at a time
FASTTEXT = (793712314).to_bytes(4, "little")  # what a binary file of fastText begins with

# What tells a table from any other.
NAMED = {"name": str, "size": int, "n_dimensions": int, "digest": str}

Codes = NDArray[np.int8]
Shifts = NDArray[np.uint8]
Whole = NDArray[np.int16]


class VectorsError(ValueError):
    """The word vectors that a model needs lack, or are others."""


class WordVectors:
    """A table of vectors of words, shared by all that use it. It never changes.

    `word_vectors` makes one. Its numbers are whole ones, in units of the largest of the table by 127 · 2⁷. Those of a
    word are codes of eight bits, shifted by 0 to 7 bits, so that sums of words are exact, in any order. A word that the
    table lacks is made of its tokens, or of its n-grams, where the table has these; else it has no vector. A word in
    lower case may be found as a name, or an abbreviation, in a table with capitals.

    Copies are the same table. When it is pickled, one from a package, file or folder is named by that, and found again;
    any other is contained.

    Parameters
    ----------
    name
        Where the table is from: `"wordllama"`, the path as given, or `"mapping"`.
    table
        What it holds.

    Attributes
    ----------
    size
        How many words or tokens the table has.
    n_dimensions
        How many numbers a vector has.
    digest
        What tells this table from any other: a hash of its words, or its tokenizer, and its numbers.

    Examples
    --------

    >>> from stream_pegasos.features.vectors import word_vectors

    >>> vectors = word_vectors({"good": [1.0, 0.5], "bad": [-1.0, 0.25]})
    >>> vectors
    WordVectors('mapping', 2 × 2)
    >>> vectors.vector("bad")
    array([-16256.,   4096.])
    >>> vectors.codes(["good", "ugly"])
    (array([[127,  64],
           [  0,   0]], dtype=int8), array([7, 0], dtype=uint8))

    """

    def __init__(self, name: str, table: _Table) -> None:
        self.name = name
        self._table = table
        self.size, self.n_dimensions, self.digest = table.size, table.n_dimensions, table.digest

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        """The codes of each word and its shift; the numbers of its vector are codes · 2^shift."""
        return self._table.codes(words)

    def only(self, hashes: NDArray[np.int64], codes: Codes, shifts: Shifts) -> WordVectors:
        """The table with some of its words alone, by their hashes; itself if it has no more already.

        Raises
        ------
        ValueError
            If these are not as `Scanner.kept_vectors` gives them.
        """
        if self.kept:
            return self
        return WordVectors(self.name, _Kept(self.size, self.n_dimensions, self.digest, hashes, codes, shifts))

    @property
    def kept(self) -> tuple[NDArray[Any], ...]:
        """Hashes, codes and shifts, if it has `only` some words; nothing of any other table."""
        return self._table.arrays if isinstance(self._table, _Kept) else ()

    def vector(self, word: str) -> NDArray[np.float64]:
        """The vector of one word; zeros for a word that has none."""
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

    def __deepcopy__(self, memo: Any) -> WordVectors:
        return self

    def __reduce__(self) -> Any:
        if self._table.of_files:
            return unpacked, (packed(self),)
        return WordVectors, (self.name, self._table)


def word_vectors(source: Any) -> WordVectors:
    """The vectors of words that a name, a path or a mapping of words to arrays stands for.

    `"wordllama"` is the table of that package. A folder holds a table as model2vec writes it. A file has the text or
    the binary format of word2vec or fastText. A table is read once by a process, unless its files change.

    Raises
    ------
    TypeError
        If it is none of these, or a word of a mapping is no str.
    ValueError
        If the table is not what it should be.
    FileNotFoundError
        If there is no such file or folder.
    ImportError
        If a package is missing.
    """
    if isinstance(source, WordVectors):
        return source
    if isinstance(source, Mapping):
        return WordVectors(MAPPING, _of_mapping(source))
    name = os.fspath(source) if isinstance(source, os.PathLike) else source
    if not isinstance(name, str):
        raise TypeError(
            f"vectors is of type {type(source).__name__}, which is no name, path or mapping of words to arrays"
        )
    if "\0" in name:
        raise ValueError(f"vectors is {name!r}, which is no name of a file")
    return WordVectors(name, _read_once(name))


def packed(vectors: WordVectors) -> dict[str, Any]:
    """What names a table, as a model file holds it."""
    return {key: getattr(vectors, key) for key in NAMED}


def unpacked(found: Mapping[str, Any], given: Any = None, kept: tuple[NDArray[Any], ...] = ()) -> WordVectors:
    """The table that `packed` named: the one given, if it is the same, or the words that were kept of it, or what is
    found by its name or its path.

    Raises
    ------
    VectorsError
        If it lacks, or is another one.
    ValueError
        If no table can have been named so, or words not have been kept so.
    """
    if not isinstance(found, Mapping) or any(type(found.get(key)) is not kind for key, kind in NAMED.items()):
        raise ValueError("it does not say which word vectors it needs")
    name, size, n_dimensions, digest = (found[key] for key in NAMED)
    if given is None and kept:
        return WordVectors(name, _Kept(size, n_dimensions, digest, *kept))
    wanted = f"word vectors {name!r} ({size} × {n_dimensions}, digest {digest})"
    if given is None and name == MAPPING:
        raise VectorsError(f"it needs the {wanted}: give the mapping of words to arrays that it was made with")
    what = "the package wordllama" if name == WORDLLAMA else f"the file or folder {name!r}"
    elsewhere = "" if name == WORDLLAMA else "; if it is elsewhere, give its path"
    try:
        vectors = word_vectors(name if given is None else given)
    except (ImportError, OSError, ValueError) as error:
        if given is not None:
            raise
        raise VectorsError(f"it needs the {wanted} of {what}{elsewhere}: {error}") from error
    if (vectors.size, vectors.n_dimensions, vectors.digest) != (size, n_dimensions, digest):
        other = f"{vectors.name!r} is another table ({vectors.size} × {vectors.n_dimensions}, digest {vectors.digest})"
        raise VectorsError(f"it needs the {wanted} of {what} as it was{elsewhere}: {other}")
    return vectors


class _Table:
    """Words, or parts that words are made of."""

    def __init__(self, size: int, n_dimensions: int, digest: str, of_files: bool = True) -> None:
        if not 1 <= n_dimensions <= MOST:
            raise ValueError(f"the vectors have {n_dimensions} numbers; they may have 1 to {MOST}")
        self.size, self.n_dimensions, self.digest, self.of_files = size, n_dimensions, digest, of_files

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        raise NotImplementedError


class _Words(_Table):
    """Whole words. Those in lower case may stand in it with capitals."""

    def __init__(self, words: Sequence[Any], codes: Codes, shifts: Shifts, digest: str, of_files: bool) -> None:
        super().__init__(len(codes), codes.shape[1], digest, of_files)
        self._rows: dict[Any, int] = {word: row for row, word in enumerate(words)}
        # With zeros at the end, which a row of −1 takes.
        self._codes, self._shifts = np.pad(codes, ((0, 1), (0, 0))), np.pad(shifts, (0, 1))

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        rows = [self.row(word) for word in words]
        return self._codes[rows], self._shifts[rows]

    def row(self, word: str) -> int:
        """That of a word, −1 for one that it lacks."""
        row = self._rows.get(word, -1)
        if row < 0 and word.islower():
            row = self._rows.get(word.capitalize(), -1)
            return self._rows.get(word.upper(), -1) if row < 0 else row
        return row


class _Kept(_Words):
    """Some words of a table, by their hashes."""

    def __init__(
        self,
        size: int,
        n_dimensions: int,
        digest: str,
        hashes: NDArray[np.int64],
        codes: NDArray[Any],
        shifts: Shifts,
    ) -> None:
        n = len(hashes)
        if (
            [hashes.dtype.str, codes.dtype.itemsize, shifts.dtype.str] != ["<i8", 1, "|u1"]
            or [hashes.shape, codes.shape, shifts.shape] != [(n,), (n, n_dimensions), (n,)]
            or (shifts > SHIFT).any()
        ):
            raise ValueError("the vectors of words are not as they were written")
        super().__init__(hashes.view(np.uint64).tolist(), codes.view(np.int8), shifts, digest, of_files=False)
        self.size, self.n_dimensions, self.arrays = size, n_dimensions, (hashes, codes.view(np.uint8), shifts)

    def row(self, word: str) -> int:
        return self._rows.get(word_64(word.encode("utf-8", "surrogatepass")), -1)


class _Grams(_Table):
    """Whole words, and n-grams of characters; another word is the mean of its own."""

    def __init__(self, words: _Words, grams: Whole, hashes: Callable[[str], Sequence[int]], digest: str) -> None:
        super().__init__(words.size, words.n_dimensions, digest)
        self._words, self._grams, self._hashes = words, grams, hashes

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        words = [_encodable(word[:LONGEST]) for word in words]
        codes, shifts = self._words.codes(words)
        for place, word in enumerate(words):
            if word and self._words.row(word) < 0 and (found := self._hashes(word)):
                mean = np.rint(self._grams[found].sum(axis=0, dtype=np.int64) / len(found))
                codes[place : place + 1], shifts[place : place + 1] = _in_blocks(mean[np.newaxis])
        return codes, shifts


class _Tokens(_Table):
    """Tokens, and the tokenizer that cuts words into them; a word is the sum of its own."""

    def __init__(self, text: bytes, numbers: NDArray[Any]) -> None:
        from tokenizers import Tokenizer

        self._tokens = _whole_numbers(numbers)
        digest = _digest(b"tokens", hashlib.sha256(text).digest(), self._tokens)
        super().__init__(len(self._tokens), self._tokens.shape[1], digest)
        self._tokenizer = Tokenizer.from_str(text.decode("utf-8"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        if max(self._tokenizer.get_vocab().values(), default=0) >= self.size:
            raise ValueError(f"its tokenizer has more tokens than the {self.size} vectors")
        described = orjson.loads(text)
        # Such a tokenizer knows other tokens after a space, where most words are.
        self._before = " " if "ByteLevel" in _kinds(described["pre_tokenizer"]) else ""
        model = described["model"]
        self._unknown = model.get("unk_id")
        if model.get("unk_token") is not None:
            self._unknown = self._tokenizer.token_to_id(model["unk_token"])

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        # One call for all words takes no threads, unlike that for many texts; each is cut by itself all the same.
        texts = [word and self._before + _encodable(word[:LONGEST]) for word in words]
        encoding = self._tokenizer.encode(texts, is_pretokenized=True, add_special_tokens=False)
        tokens, places = np.array(encoding.ids, np.intp), np.array(encoding.word_ids, np.intp)
        if self._unknown is not None:
            known = tokens != self._unknown
            tokens, places = tokens[known], places[known]
        sums = np.zeros((len(words), self.n_dimensions), np.int32)
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        lengths = np.diff(starts, append=len(places))
        while len(starts) > FEW:  # the next token of each word that has one more
            sums[places[starts]] += self._tokens[tokens[starts]]
            goes_on = lengths > 1
            starts, lengths = starts[goes_on] + 1, lengths[goes_on] - 1
        for start, n in zip(starts.tolist(), lengths.tolist(), strict=True):
            sums[places[start]] += self._tokens[tokens[start : start + n]].sum(axis=0, dtype=np.int32)
        return _in_blocks(sums)


def _kinds(step: Any) -> set[str]:
    """The kinds of the steps of a tokenizer."""
    if not isinstance(step, dict):
        return set()
    return {step.get("type", "")}.union(*map(_kinds, step.get("pretokenizers", ())))


def _encodable(word: str) -> str:
    """The word with a replacement character for each surrogate that stands alone."""
    return word if word.isascii() else word.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _chunks(numbers: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
    for start in range(0, len(numbers), CHUNK):
        part = slice(start, start + CHUNK)
        yield part, numbers[part]


def _largest(*tables: NDArray[Any]) -> float:
    largest = 0.0
    for table in tables:
        for _, chunk in _chunks(table):
            here = float(np.abs(chunk.astype(np.float64)).max(initial=0.0))
            if not np.isfinite(here):  # as of any that is not a number
                raise ValueError("the vectors hold numbers that are infinite, or none")
            largest = max(largest, here)
    return largest


def _whole_numbers(numbers: NDArray[Any], largest: float | None = None) -> Whole:
    """The table in its units. Every step is one that IEEE 754 defines to the last bit."""
    if numbers.ndim != 2 or not len(numbers) or numbers.dtype.kind not in "iuf":
        raise ValueError("there is no table of vectors in it")
    largest = (_largest(numbers) if largest is None else largest) or 1.0
    whole = np.empty(numbers.shape, np.int16)
    for part, chunk in _chunks(numbers):
        whole[part] = np.rint(chunk.astype(np.float64) / largest * LARGEST)
    return whole


def _in_blocks(whole: NDArray[Any]) -> tuple[Codes, Shifts]:
    """Codes and the smallest shifts that hold these rows; what is larger than any shift holds is clipped."""
    scaled = whole.astype(np.float32)  # which only rounds what is clipped
    shifts = np.searchsorted(LIMITS, np.abs(scaled).max(axis=1, initial=0), side="right")
    scaled *= UNITS[shifts, np.newaxis]
    np.rint(scaled, out=scaled)
    return np.clip(scaled, -CODE, CODE, out=scaled).astype(np.int8), shifts.astype(np.uint8)


def _in_blocks_by_chunks(whole: Whole) -> tuple[Codes, Shifts]:
    codes, shifts = np.empty(whole.shape, np.int8), np.empty(len(whole), np.uint8)
    for part, chunk in _chunks(whole):
        codes[part], shifts[part] = _in_blocks(chunk)
    return codes, shifts


def _digest(*parts: bytes | NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, bytes):
            digest.update(f"{len(part)} bytes".encode())
            digest.update(part)
        else:
            digest.update(f"{part.shape} numbers".encode())
            for _, chunk in _chunks(part):
                digest.update(chunk.astype(part.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()[:32]


def _of_words(
    words: Sequence[str], numbers: NDArray[Any], of_files: bool = True, largest: float | None = None
) -> _Words:
    """The words in one order, whichever they came in, so that the same have the same digest."""
    order = sorted(range(len(words)), key=words.__getitem__)
    words = [words[row] for row in order]
    codes, shifts = _in_blocks_by_chunks(_whole_numbers(numbers[order], largest))
    digest = _digest("\n".join(words).encode("utf-8", "surrogatepass"), codes, shifts)
    return _Words(words, codes, shifts, digest, of_files)


def _of_mapping(mapping: Mapping[Any, ArrayLike]) -> _Words:
    words = list(mapping)
    if not words:
        raise ValueError("vectors is an empty mapping")
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"vectors has {word!r} for a word, which is no str")
    rows: list[NDArray[np.float64]] = []
    for word in words:
        try:
            row = np.asarray(mapping[word], np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"the vector of {word!r} is no array of numbers") from error
        if row.ndim != 1 or len(row) != (len(rows[0]) if rows else len(row)):
            raise ValueError(f"the vector of {word!r} has the shape {row.shape}, unlike that of {words[0]!r}")
        rows.append(row)
    return _of_words(words, np.stack(rows), of_files=False)


_reading = Lock()
_tables: dict[str, tuple[Any, _Table]] = {}  # what was read, and how its files were then


def _read_once(name: str) -> _Table:
    files, read = _files(name)
    stamp = [(file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    key = os.path.realpath(files[0])
    with _reading:
        known = _tables.get(key)
        if known is None or known[0] != stamp:
            known = _tables[key] = stamp, read(name, *files)
    return known[1]


def _files(name: str) -> tuple[Sequence[Path], Callable[..., _Table]]:
    """The files of a table and what reads them."""
    if name == WORDLLAMA:
        # The package itself is not imported: its loader would look for its tokenizer on a network.
        found = importlib.util.find_spec("wordllama")
        if found is None or not found.submodule_search_locations:
            error = ModuleNotFoundError("No module named 'wordllama'", name="wordllama")
            raise missing("vectors='wordllama'", EXTRA, error)
        folder = Path(found.submodule_search_locations[0])
        files = folder / "weights/l2_supercat_256.safetensors", folder / "tokenizers/l2_supercat_tokenizer_config.json"
        if not all(file.is_file() for file in files):
            raise FileNotFoundError(f"the package wordllama in {folder} has no vectors; wordllama 0.4 has")
        return files, _read_tokens
    path = Path(name)
    if path.is_dir():
        for folder in path, path / "0_StaticEmbedding":
            files = folder / "model.safetensors", folder / "tokenizer.json"
            if all(file.is_file() for file in files):
                return files, _read_tokens
        raise FileNotFoundError(f"the folder {name!r} has no model.safetensors and tokenizer.json of model2vec")
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file or folder {name!r}; vectors is {WORDLLAMA!r}, or a file or folder with vectors of words"
        )
    return [path], _read_binary if path.suffix == ".bin" else _read_text


def _read_tokens(name: str, numbers_file: Path, tokenizer_file: Path) -> _Table:
    try:
        import tokenizers  # noqa: F401
        from safetensors.numpy import load_file
    except ModuleNotFoundError as error:
        raise missing(f"vectors={name!r}", EXTRA, error) from error
    try:
        tensors = load_file(numbers_file)
        numbers = tensors["embeddings"] if "embeddings" in tensors else tensors["embedding.weight"]
        numbers, mapping, weights = numbers[:, :OF_TOKENS], tensors.get("mapping"), tensors.get("weights")
        if mapping is not None:
            numbers = numbers[mapping]
        if weights is not None:
            numbers = numbers.astype(np.float64) * weights.astype(np.float64)[:, np.newaxis]
        del tensors
        return _Tokens(tokenizer_file.read_bytes(), numbers)
    except OSError:
        raise
    except Exception as error:  # those packages have no common error
        raise ValueError(f"{name!r} has no vectors of tokens: {error}") from error


def _read_text(name: str, file: Path) -> _Table:
    """A line a word: the word, and its numbers behind it. The first line may say how many there are of both."""
    words: dict[str, None] = {}
    numbers, n = array("f"), 0
    with file.open("rb") as lines:
        for count, line in enumerate(lines, 1):
            parts = line.rstrip().split(b" ")
            if count == 1 and len(parts) == 2 and all(part.isdigit() for part in parts):
                n = int(parts[1])
                continue
            n = n or len(parts) - 1
            word = b" ".join(parts[:-n] if n else parts).decode("utf-8", "replace")  # some have spaces
            try:
                row = [float(part) for part in parts[-n:]] if len(parts) > n > 0 else []
            except ValueError:
                row = []
            if len(row) != n or not n:
                raise ValueError(f"line {count} of {name!r} is no word with {n or 'its'} numbers")
            if word not in words:  # they stand in the order of how frequent they are
                words[word] = None
                numbers.extend(row)
    if not words:
        raise ValueError(f"{name!r} has no vectors of words")
    return _of_words(list(words), np.frombuffer(numbers, np.float32).reshape(-1, n))


def _read_binary(name: str, file: Path) -> _Table:
    try:
        from gensim.models import KeyedVectors, fasttext
    except ModuleNotFoundError as error:
        raise missing(f"vectors={name!r}", EXTRA, error) from error
    with file.open("rb") as opened:
        of_fasttext = opened.read(4) == FASTTEXT
    try:
        if not of_fasttext:
            found = KeyedVectors.load_word2vec_format(file, binary=True, unicode_errors="replace")
        else:
            found = fasttext.load_facebook_vectors(file)
    except Exception as error:  # of any kind, in a file that holds something else
        raise ValueError(f"{name!r} has no vectors of words in the format of word2vec or fastText: {error}") from error
    if not of_fasttext or not found.bucket:
        return _of_words(found.index_to_key, found.vectors)
    largest = _largest(found.vectors, found.vectors_ngrams)
    words = _of_words(found.index_to_key, found.vectors, largest=largest)
    grams, options = _whole_numbers(found.vectors_ngrams, largest), (found.min_n, found.max_n, found.bucket)

    def hashes(word: str) -> Sequence[int]:
        return fasttext.ft_ngram_hashes(word, *options)  # type: ignore[no-any-return]

    return _Grams(words, grams, hashes, _digest(words.digest.encode(), grams, repr(options).encode()))
