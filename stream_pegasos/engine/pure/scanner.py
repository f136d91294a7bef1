"""The scanner: it turns texts into rows of hashed n-grams."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.engine.pure.characters import composed
from stream_pegasos.engine.pure.encoders import Encoder, get_parameters
from stream_pegasos.engine.pure.tokens import (
    KINDS,
    LENGTH_PREFIX,
    Run,
    is_run,
    letters_of_words,
    ngrams_of_tokens,
    tokenize,
    words_of_tokens,
)
from stream_pegasos.engine.pure.weights import NO_VECTOR, Row


class Vectors(Protocol):
    """A source of vectors for whole messages or, by `codes`, for words: codes · 2^shift, of eight bits each."""

    @property
    def n_dimensions(self) -> int: ...


@dataclass(eq=False, repr=False)
class Scanner(Encoder):
    """An encoder from texts to rows of hashed n-grams.

    `analyzer` is "word", "char" or "char_wb"; "ngrams" if each text comes as the list of its n-grams; or "vector" for a
    field that has no text, but an array with the numbers of a vector, or an empty one. `token_pattern` is one of
    `TOKEN_PATTERNS`. With "word" and a `prefix_length` above 0, the first characters of each longer word are one more
    feature; with `boundaries`, n-grams of two or more words include the ends of the text. With `mask_digits`, every
    decimal digit is read as 0; if it is `BOTH`, words with few digits also count unmasked. The module `tokens` defines
    the words of `ANY_LANGUAGE`. `hash_function` is one of `HASH_FUNCTIONS`: "words" for words of any language.

    A message with several fields is the tuple of their texts. This scanner reads the first field; `fields` has the
    name of each other field and the arguments of its scanner. The name keeps its n-grams apart from those of others.

    With `letters`, sequences of letters within words count, too, if a text is short: sequences of three count as much
    as `letters` says, beside 1 for a word; the fewer words there are, the more do all sequences of two to four count,
    up to 1. With `length`, the powers of 2 of the numbers of characters and of tokens are features with this value.
    Both options are for words, and for their hash.

    With `vectors`, a row also has the vector of the message: the sum of the vectors of its distinct words and of its
    "vector" fields, divided by its norm. A dict has the numbers of the vector in the columns from `n_features` on.
    """

    analyzer: str
    token_pattern: str
    lowercase: bool
    stop_words: frozenset[str]
    ngram_range: tuple[int, int]
    n_features: int
    alternate_sign: bool
    binary: bool
    norm: str | None
    mask_digits: bool | str = False
    prefix_length: int = 0
    boundaries: bool = False
    hash_function: str = "murmur3"
    letters: float = 0.0
    length: float = 0.0
    fields: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    vectors: Vectors | None = None

    @property
    def arguments(self) -> tuple[Any, ...]:
        return tuple(get_parameters(self).values())

    def __post_init__(self) -> None:
        self._find_tokens = None if self.token_pattern == ANY_LANGUAGE else re.compile(self.token_pattern).findall
        names = [murmur3_32(name.encode("utf-8", "surrogatepass")) for name, _ in self.fields]
        self._scanners = [self, *(Scanner(*arguments) for _, arguments in self.fields)]
        self._hashes_of_fields = [0, *names]
        self._table: Any = next((scanner.vectors for scanner in self._scanners if scanner.vectors is not None), None)
        self._met: dict[str, None] = {}  # words whose vectors were looked up

    def transform_one(self, text: object) -> dict[int, float]:
        values = self._values(text)
        length = self._length(values.values())
        features = {index: value / length for index, value in values.items()}
        if self._table is not None:
            features |= {self.n_features + i: number for i, number in enumerate(self.vector(text).tolist())}
        return features

    def transform_many(self, texts: Sequence[Any]) -> tuple[Any, Any, Any]:
        dicts = [self.transform_one(text) for text in texts]
        indptr = np.cumsum([0, *map(len, dicts)], dtype=np.int64)
        indices = np.fromiter((i for x in dicts for i in x), np.int32, indptr[-1])
        data = np.fromiter((v for x in dicts for v in x.values()), np.float64, indptr[-1])
        return indptr, indices, data

    def index(self, ngram: str, field: int = 0) -> tuple[int, float]:
        """The column of an n-gram of a field, given by number, and its sign there."""
        hash_function = HASH_FUNCTIONS[self._scanners[field].hash_function]
        h = hash_function(ngram.encode("utf-8", "surrogatepass")) ^ self._hashes_of_fields[field]
        signed = h - (1 << 32) if h >> 31 else h
        sign = -1.0 if self.alternate_sign and signed < 0 else 1.0
        return abs(signed) % self.n_features, sign

    def row(self, x: object, learning: bool) -> Row:
        values = self._values(x)
        vector = NO_VECTOR if self._table is None else self.vector(x)
        return Row(list(values), list(values.values()), 1.0 / self._length(values.values()), vector, self.binary)

    def vector(self, message: Any) -> NDArray[np.float64]:
        """The vector of the message; all 0 if no word has a vector."""
        words, total = self.words(message), np.zeros(self._table.n_dimensions)
        if len(self._met) + len(words) > MOST_WORDS:
            self._met.clear()
        self._met |= dict.fromkeys(words)
        if words:
            codes, shifts = self._table.codes(words)
            total += (codes.astype(np.int64) << shifts[:, np.newaxis]).sum(axis=0)
        for scanner, value in zip(self._scanners, message if self.fields else [message], strict=True):
            if scanner.analyzer == "vector" and len(value):
                total += checked_vector(value, len(total))
        norm = math.sqrt(float((total * total).sum()))
        return np.array(total / norm if norm else total)

    def kept_vectors(self) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.uint8]]:
        """The hashes of the words whose vectors were looked up, with their codes and shifts."""
        words = [*self._met]
        hashes = np.array([word_64(word.encode("utf-8", "surrogatepass")) for word in words], np.uint64)
        return hashes.view(np.int64), *self._table.codes(words)

    def words(self, message: Any) -> list[str]:
        """The distinct words of a message whose vectors are looked up."""
        words: dict[str, None] = {}
        for scanner, text in zip(self._scanners, message if self.fields else [message], strict=True):
            if scanner.vectors is not None and scanner.analyzer != "vector":
                words |= dict.fromkeys(scanner._words(text))
        return [*words]

    def _words(self, text: Sequence[str]) -> Iterable[str]:
        if self.analyzer == "ngrams":
            return (ngram for ngram in text if ngram and " " not in ngram)
        return words_of_tokens(self._tokens(text), self.stop_words)

    def _tokens(self, text: object) -> list[str]:
        return self._tokenize_segment(self._folded(text))

    def _tokenize_segment(self, text: str) -> list[str]:
        return tokenize(text) if self._find_tokens is None else self._find_tokens(text)

    def _folded(self, text: object) -> str:
        text = self._mask_digits(text)
        return masked_digits(text) if self.mask_digits else text

    def _mask_digits(self, text: object) -> str:
        whole = checked_text(text)
        if self._find_tokens is None:
            whole = composed(whole)
        return whole.lower() if self.lowercase else whole

    def _values(self, message: Any) -> dict[int, float]:
        """The value in each column, before the norm. N-grams that share a column count as much as the first of them."""
        counts: dict[int, float] = {}
        weights: dict[int, float] = {}
        for field, text in enumerate(message if self.fields else [message]):
            for weight, ngrams in self._scanners[field].weighted_ngrams(text):
                for ngram in ngrams:
                    index, sign = self.index(ngram, field)
                    counts[index] = counts.get(index, 0.0) + sign
                    weights.setdefault(index, weight)
        return weights if self.binary else {index: weights[index] * count for index, count in counts.items()}

    def _length(self, values: Iterable[float]) -> float:
        if self.norm is None:
            return 1.0
        total = 0.0  # a loop, as in the compiled engine: `sum` rounds differently since Python 3.12
        for v in values:
            total += v * v if self.norm == "l2" else abs(v)
        return (math.sqrt(total) if self.norm == "l2" else total) or 1.0

    def ngrams(self, text: Sequence[str]) -> Iterable[str]:
        """The n-grams of a text, each as often as it occurs."""
        return (ngram for _, ngrams in self.weighted_ngrams(text) for ngram in ngrams)

    def weighted_ngrams(self, text: Sequence[str]) -> Iterator[tuple[float, Iterable[str]]]:
        """The n-grams of a text in groups of the same weight, with that weight."""
        if self.analyzer == "ngrams":
            yield 1.0, text
        elif self.analyzer == "word":
            yield 1.0, self._ngrams_of_words(text)
            if self.letters or self.length:
                yield from self._letters_and_length(text)
        elif self.analyzer != "vector":
            yield 1.0, CHAR_NGRAMS[self.analyzer](self._folded(text), self.ngram_range)

    def _ngrams_of_words(self, text: object) -> Iterable[str]:
        of_words = self.stop_words, self.ngram_range, self.prefix_length, self.boundaries
        if self.mask_digits != BOTH:
            return ngrams_of_tokens(self._tokens(text), *of_words)
        return ngrams_and_numbers(self._mask_digits(text), self._tokenize_segment, *of_words)

    def _letters_and_length(self, text: object) -> Iterator[tuple[float, Iterable[str]]]:
        folded = self._folded(text)
        tokens = [token for token in self._tokenize_segment(folded) if token not in self.stop_words]
        words = [token for token in tokens if self._is_word(token)]
        fading = letters_fading(len(folded))
        if self.letters and words and fading:
            share = 0.0 if any(map(is_run, tokens)) else share_of_letters(len(words))
            yield max(self.letters, share) * fading, letters_of_words(words, 3)
            if share:
                yield share * fading, [letter for size in (2, 4) for letter in letters_of_words(words, size)]
        if self.length and tokens:
            yield self.length, [length_name(len(folded), CHARACTERS), length_name(len(tokens), TOKENS)]

    def lengths(self, text: Sequence[str]) -> list[str]:
        """The n-grams that stand for the length of a text."""
        return [ngram for ngram in self.ngrams(text) if ngram.startswith(LENGTH_PREFIX)]

    def _is_word(self, token: str) -> bool:
        if self._find_tokens is None:
            return not isinstance(token, Run) and KINDS[ord(token[0])] == LETTER_OF_WORDS
        return token[0] == "_" or token[0].isalnum()


MOST_WORDS = 96 << 10  # the most words whose vectors are kept; when more come, all are forgotten
ANY_LANGUAGE = "any language"
BOTH, MOST_DIGITS = "both", 4  # masks digits; words of at most this many digits also count unmasked
DIGIT = re.compile(r"\d")
# The patterns that the scanner reads without `re`: runs of two or more word characters; of one or more; words and
# punctuation marks; runs without white space. The last entry is no pattern: words and marks of any language.
TOKEN_PATTERNS = (r"\b\w\w+\b", r"\w+", r"\w+|[^\w\s]", r"\S+", ANY_LANGUAGE)


def checked_text(text: object) -> str:
    if not isinstance(text, str):
        way_out = "with on='NAME' it is taken from a field" if isinstance(text, dict) else ""
        raise TypeError(must_be("a text", "a str", type_name(text), way_out))
    return str.__str__(text)


def checked_vector(numbers: object, n_dimensions: int) -> NDArray[np.float32]:
    """The numbers of a vector; an empty array if the message has none."""
    if not isinstance(numbers, np.ndarray) or numbers.shape not in ((n_dimensions,), (0,)):
        raise TypeError(must_be("a vector", f"an array of {n_dimensions} numbers", type_name(numbers)))
    return np.ascontiguousarray(numbers, np.float32)


# Letters within words count fully in texts of up to `SHORT` characters, and not at all from `LONG` characters on.
SHORT, LONG = 150, 300
FEW_WORDS = 3  # with this many words or more, letters count only as much as `letters`
LETTER_OF_WORDS = "w"  # the kind of the first character of words of any language
CHARACTERS, TOKENS = "characters", "words"


def letters_fading(n_characters: int) -> float:
    """The share of their weight that letters have in a text of `n_characters`: all, none, or a part in between."""
    return min(max((LONG - n_characters) / (LONG - SHORT), 0.0), 1.0)


def share_of_letters(n_words: int) -> float:
    """The weight of letters beside `n_words` words: 1 with one word, 0 with three or more; it is linear in 1/n²."""
    return max((FEW_WORDS * FEW_WORDS / (n_words * n_words) - 1.0) / (FEW_WORDS * FEW_WORDS - 1.0), 0.0)


def length_name(n: int, of: str) -> str:
    """The name of a length: the exponent of the largest power of 2 that is at most n + 1."""
    return f"{LENGTH_PREFIX}{(n + 1).bit_length() - 1} {of}"


@functools.cache
def hashes_of_length(power: int) -> tuple[int, int]:
    """The hashes of a number of characters and of a number of tokens with this exponent."""
    characters, tokens = (words_32(length_name((1 << power) - 1, of).encode()) for of in (CHARACTERS, TOKENS))
    return characters, tokens


def masked_digits(text: str) -> str:
    return DIGIT.sub("0", text)


def ngrams_and_numbers(
    text: str, find_tokens: Callable[[str], Iterable[str]], stop_words: frozenset[str], *how: Any
) -> Iterator[str]:
    """The n-grams of the tokens after digits are masked, and the unmasked tokens with few digits."""
    masked = masked_digits(text)
    yield from ngrams_of_tokens(find_tokens(masked), stop_words, *how)
    if masked != text:
        for token in find_tokens(text):
            if token not in stop_words and masked_digits(token) != token and len(DIGIT.findall(token)) <= MOST_DIGITS:
                yield str(token)


def char_ngrams(text: str, ngram_range: tuple[int, int]) -> Iterator[str]:
    text = re.sub(r"\s\s+", " ", text)
    for n in range(ngram_range[0], ngram_range[1] + 1):
        for i in range(len(text) - n + 1):
            yield text[i : i + n]


def char_wb_ngrams(text: str, ngram_range: tuple[int, int]) -> Iterator[str]:
    for word in text.split():
        padded = f" {word} "
        for n in range(ngram_range[0], ngram_range[1] + 1):
            if n >= len(padded):  # a word with at most n characters counts only once
                yield padded
                break
            for i in range(len(padded) - n + 1):
                yield padded[i : i + n]


CHAR_NGRAMS: dict[str, Callable[[str, tuple[int, int]], Iterator[str]]] = {
    "char": char_ngrams,
    "char_wb": char_wb_ngrams,
}


def murmur3_32(data: bytes) -> int:
    """MurmurHash3_x86_32 with seed 0 (Appleby, 2011, public domain)."""
    mask = 0xFFFFFFFF
    h = 0
    for i in range(0, len(data), 4):
        k = int.from_bytes(data[i : i + 4], "little") * 0xCC9E2D51 & mask
        k = (k << 15 | k >> 17) * 0x1B873593 & mask
        h ^= k
        if i + 4 <= len(data):
            h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & mask
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return h ^ h >> 16


# Constants of the hash of words: the first digits of π in hexadecimal; multipliers are made odd.
SEED, OF_LENGTH, OF_WORD, OF_NEXT = 0x243F6A8885A308D3, 0x13198A2E03707345, 0xA4093822299F31D1, 0x082EFA98EC4E6C89
ALL_BITS = (1 << 64) - 1


def words_32(data: bytes) -> int:
    """The highest bits of Σ hash(word) · OF_NEXTⁱ, with i = 0 for the last word. The hash of a pair comes from the
    hashes of its words.
    """
    h = 0
    for word in data.split(b" "):
        h = (h * OF_NEXT + word_64(word)) & ALL_BITS
    return h >> 32


def word_64(word: bytes) -> int:
    """The hash of a word: eight bytes are multiplied by the next eight, and the halves of the product are combined
    (Wang Yi's wyhash, 2019).
    """
    h = SEED + len(word) * OF_LENGTH & ALL_BITS
    for i in range(0, max(len(word), 1), 16):
        first, second = (int.from_bytes(word[j : j + 8], "little") for j in (i, i + 8))
        product = (first ^ OF_WORD) * (second ^ h)
        h = (product ^ product >> 64) & ALL_BITS
    return h


# Functions that hash an n-gram to 32 bits: scikit-learn's, and a faster one.
HASH_FUNCTIONS: dict[str, Callable[[bytes], int]] = {"murmur3": murmur3_32, "words": words_32}
