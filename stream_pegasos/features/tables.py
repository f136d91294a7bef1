"""Tables of word vectors, and their readers."""

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

from stream_pegasos.common.errors import must_be
from stream_pegasos.common.extras import missing
from stream_pegasos.common.locks import Lock
from stream_pegasos.engine.pure.scanner import word_64

__all__ = ["WORDLLAMA", "Codes", "Kept", "Shifts", "Table", "read_once", "table_from_mapping"]

WORDLLAMA, EXTRA = "wordllama", "vectors"
# A code is from −127 to 127 and a shift from 0 to 7, so the largest number of a table is 127 · 2⁷.
CODE, SHIFT = 127, 7
LARGEST = CODE << SHIFT
# A number below (127 + 1/2) · 2^shift is rounded to a code.
LIMITS = np.ldexp(np.float32(CODE + 0.5), np.arange(SHIFT))
UNITS = np.ldexp(np.float32(1.0), -np.arange(SHIFT + 1))
# Tables of tokens are made to be cut: their first numbers say most.
OF_TOKENS, MOST = 192, 1024
LONGEST = 256  # characters of a word that are split into tokens
CHUNK = 4096  # rows of a table that become integers at a time
AS_TEXT = "write its vectors as text, .vec, as gensim's save_word2vec_format does"

Codes = NDArray[np.int8]
Shifts = NDArray[np.uint8]
Whole = NDArray[np.int16]


class Table:
    """Vectors of words, or of the parts of words."""

    def __init__(self, size: int, n_dimensions: int, digest: str) -> None:
        if not 1 <= n_dimensions <= MOST:
            raise ValueError(must_be("the length of vectors", f"from 1 to {MOST}", n_dimensions))
        self.size, self.n_dimensions, self.digest = size, n_dimensions, digest

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        """The codes and the shift of each word; zeros for a word without a vector."""
        raise NotImplementedError


class _Words(Table):
    """Vectors of whole words. A word in lower case may be capitalized in the table."""

    def __init__(self, words: Sequence[Any], codes: Codes, shifts: Shifts, digest: str) -> None:
        super().__init__(len(codes), codes.shape[1], digest)
        self._rows: dict[Any, int] = {word: row for row, word in enumerate(words)}
        # With zeros at the end, for the row −1.
        self._codes, self._shifts = np.pad(codes, ((0, 1), (0, 0))), np.pad(shifts, (0, 1))

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        rows = [self.row(word) for word in words]
        return self._codes[rows], self._shifts[rows]

    def row(self, word: str) -> int:
        """The row of a word, −1 for an unknown word."""
        written = (word, word.capitalize(), word.upper()) if word.islower() else (word,)
        return next((self._rows[form] for form in written if form in self._rows), -1)


class Kept(_Words):
    """Some words of a table, by their hashes."""

    def __init__(self, size: int, n_dimensions: int, digest: str, *arrays: NDArray[Any]) -> None:
        hashes, codes, shifts, n = *arrays, len(arrays[0])
        if (
            [hashes.dtype.str, codes.dtype.itemsize, shifts.dtype.str] != ["<i8", 1, "|u1"]
            or [hashes.shape, codes.shape, shifts.shape] != [(n,), (n, n_dimensions), (n,)]
            or (shifts > SHIFT).any()
        ):
            raise ValueError("the vectors of words must be as they were saved")
        super().__init__(hashes.view(np.uint64).tolist(), codes.view(np.int8), shifts, digest)
        self.size, self.n_dimensions, self.arrays = size, n_dimensions, (hashes, codes.view(np.uint8), shifts)

    def row(self, word: str) -> int:
        return self._rows.get(word_64(word.encode("utf-8", "surrogatepass")), -1)


class _Tokens(Table):
    """Vectors of tokens, and the tokenizer that splits words into them. The vector of a word is the sum of its tokens'
    vectors.
    """

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
        # Such a tokenizer has different tokens after a space, where most words stand.
        self._before = " " if b'"ByteLevel"' in orjson.dumps(described["pre_tokenizer"]) else ""
        model = described["model"]
        if model.get("byte_fallback"):  # the bytes of an unknown character say nothing about a word
            self._tokens[[self._tokenizer.token_to_id(f"<0x{byte:02X}>") or 0 for byte in range(256)]] = 0
        self._unknown = model.get("unk_id")
        if model.get("unk_token") is not None:
            self._unknown = self._tokenizer.token_to_id(model["unk_token"])

    def codes(self, words: Sequence[str]) -> tuple[Codes, Shifts]:
        if len(words) > CHUNK:  # in parts, to save memory
            parts = [self.codes(words[begin : begin + CHUNK]) for begin in range(0, len(words), CHUNK)]
            return np.concatenate([codes for codes, _ in parts]), np.concatenate([shifts for _, shifts in parts])
        # One call for all words uses no threads, unlike a call for many texts; each word is still split by itself. A
        # lone surrogate is no text: it becomes a replacement character.
        plain = [word[:LONGEST].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") for word in words]
        texts = [text and self._before + text for text in plain]
        encoding = self._tokenizer.encode(texts, is_pretokenized=True, add_special_tokens=False)
        tokens, places = np.array(encoding.ids, np.intp), np.array(encoding.word_ids, np.intp)
        if self._unknown is not None:
            is_known = tokens != self._unknown
            tokens, places = tokens[is_known], places[is_known]
        sums = np.zeros((len(words), self.n_dimensions), np.int32)
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        sums[places[starts]] = np.add.reduceat(self._tokens[tokens], starts, axis=0, dtype=np.int32)
        return _in_blocks(sums)


def _chunks(numbers: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
    for start in range(0, len(numbers), CHUNK):
        part = slice(start, start + CHUNK)
        yield part, numbers[part]


def _whole_numbers(numbers: NDArray[Any]) -> Whole:
    """The table as integers in its units. IEEE 754 defines every step to the last bit."""
    if numbers.ndim != 2 or not len(numbers) or numbers.dtype.kind not in "iuf":
        raise ValueError("it must have a table of vectors, got none")
    largest = np.max([np.abs(chunk.astype(np.float64)).max(initial=0.0) for _, chunk in _chunks(numbers)])
    if not np.isfinite(largest):  # also if one of them is NaN
        raise ValueError("the vectors must have finite numbers, got infinite ones or NaN")
    whole = np.empty(numbers.shape, np.int16)
    for part, chunk in _chunks(numbers):
        whole[part] = np.rint(chunk.astype(np.float64) / (largest or 1.0) * LARGEST)
    return whole


def _in_blocks(whole: NDArray[Any]) -> tuple[Codes, Shifts]:
    """The codes of these rows, with the smallest possible shifts. Larger numbers than any shift allows are clipped."""
    codes, shifts = np.empty(whole.shape, np.int8), np.empty(len(whole), np.uint8)
    for part, chunk in _chunks(whole):
        scaled = chunk.astype(np.float32)  # this rounds only numbers that are clipped
        shifts[part] = np.searchsorted(LIMITS, np.abs(scaled).max(axis=1, initial=0), side="right")
        scaled *= UNITS[shifts[part], np.newaxis]
        codes[part] = np.rint(scaled, out=scaled).clip(-CODE, CODE, out=scaled)
    return codes, shifts


def _digest(*parts: bytes | NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, bytes):
            digest.update(f"{len(part)} bytes".encode())
            digest.update(part)
        else:
            digest.update(f"{part.shape} numbers".encode())
            digest.update(np.ascontiguousarray(part, part.dtype.newbyteorder("<")).ravel().data)
    return digest.hexdigest()[:32]


def words_from_arrays(words: Sequence[str], numbers: NDArray[Any]) -> _Words:
    """The words in sorted order, so that the same words always have the same digest."""
    order = sorted(range(len(words)), key=words.__getitem__)
    words = [words[row] for row in order]
    codes, shifts = _in_blocks(_whole_numbers(numbers[order]))
    digest = _digest("\n".join(words).encode("utf-8", "surrogatepass"), codes, shifts)
    return _Words(words, codes, shifts, digest)


def table_from_mapping(mapping: Mapping[Any, ArrayLike]) -> Table:
    words, rows = list(mapping), list[NDArray[np.float64]]()
    for word in words:
        if not isinstance(word, str):
            raise TypeError(must_be("a word of vectors", "a str", word))
        try:
            row = np.asarray(mapping[word], np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise TypeError(f"the vector of {word!r} must be an array of numbers") from error
        if row.ndim != 1 or len(row) != (len(rows[0]) if rows else len(row)):
            raise ValueError(f"the vector of {word!r} has the shape {row.shape}, unlike that of {words[0]!r}")
        rows.append(row)
    if not words:
        raise ValueError("vectors is an empty mapping")
    return words_from_arrays(words, np.stack(rows))


_reading = Lock()
_tables: dict[str, tuple[Any, Table]] = {}  # by path: the stamp of the files, and their table


def read_once(name: str) -> Table:
    """The table of a package, file or folder. It is read again only if its files have changed."""
    files, read = _files(name)
    stamp = [(file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    key = os.path.realpath(files[0])
    with _reading:
        entry = _tables.get(key)
        if entry is None or entry[0] != stamp:
            entry = _tables[key] = stamp, read(name, *files)
    return entry[1]


def _files(name: str) -> tuple[Sequence[Path], Callable[..., Table]]:
    if name == WORDLLAMA:
        # The package itself is not imported: its loader would fetch its tokenizer from the network.
        specification = importlib.util.find_spec("wordllama")
        if specification is None or not specification.submodule_search_locations:
            raise missing(f"vectors={name!r}", EXTRA, ModuleNotFoundError(name=WORDLLAMA))
        folder = Path(specification.submodule_search_locations[0])
        files = folder / "weights/l2_supercat_256.safetensors", folder / "tokenizers/l2_supercat_tokenizer_config.json"
        return files, _read_tokens
    path = Path(name)
    if path.is_dir():
        for folder in path, path / "0_StaticEmbedding":
            files = folder / "model.safetensors", folder / "tokenizer.json"
            if all(file.is_file() for file in files):
                return files, _read_tokens
        raise FileNotFoundError(f"the folder {name!r} has no model.safetensors and tokenizer.json of model2vec")
    if path.suffix == ".bin":
        raise ValueError(f"{name!r} is a binary file of word2vec or fastText, which is not read: {AS_TEXT}")
    if not path.is_file():
        raise FileNotFoundError(must_be("vectors", f"{WORDLLAMA!r}, 'use', or a file or folder that exists", name))
    return [path], _read_text


def _read_tokens(name: str, numbers_file: Path, tokenizer_file: Path) -> Table:
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


def _read_text(name: str, file: Path) -> Table:
    """Read a text file with a word and its numbers on each line. The first line may have the numbers of words and
    dimensions.
    """
    words: dict[str, None] = {}
    numbers, n = array("f"), 0
    with file.open("rb") as lines:
        for count, line in enumerate(lines, 1):
            parts = line.rstrip().split(b" ")
            if count == 1 and len(parts) == 2 and all(part.isdigit() for part in parts):
                n = int(parts[1])
                continue
            n = n or len(parts) - 1
            word = b" ".join(parts[:-n] if n else parts).decode("utf-8", "replace")  # some words contain spaces
            try:
                row = [float(part) for part in parts[-n:]] if len(parts) > n > 0 else []
            except ValueError:
                row = []
            if len(row) != n or not n:
                expected = f"a word with {n or 'its'} numbers"
                raise ValueError(f"line {count} of {name!r} must be {expected}; if the file is binary, {AS_TEXT}")
            if word not in words:  # the first, as the words are sorted by frequency
                words[word] = None
                numbers.extend(row)
    if not words:
        raise ValueError(f"{name!r} has no vectors of words")
    return words_from_arrays(list(words), np.frombuffer(numbers, np.float32).reshape(-1, n))
