"""A hashed bag of words: from texts to hashed n-grams."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from stream_pegasos.common.checks import check_bool, check_integer, check_member, user_code
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.engine import Scanner
from stream_pegasos.engine.pure.characters import normalized
from stream_pegasos.engine.pure.scanner import BOTH, checked_text, masked_digits, ngrams_and_numbers
from stream_pegasos.engine.pure.tokens import ngrams_of_tokens
from stream_pegasos.features.base import Features, MessageFeatures
from stream_pegasos.features.message import ABSENT, check_field, get_field, is_nothing

__all__ = ["HashedBagOfWords"]

# The patterns that the engine's scanner knows, also after (?u). Any other pattern uses `re`.
NATIVE_PATTERNS = {
    r"\b\w\w+\b": r"\b\w\w+\b",
    r"\b\w+\b": r"\w+",
    r"\w+": r"\w+",
    r"\w+|[^\w\s]": r"\w+|[^\w\s]",
    r"\S+": r"\S+",
}


@dataclass(eq=False, repr=False)
class HashedBagOfWords(Features):
    r"""Counts of words or n-grams, hashed into a fixed number of columns.

    The options, the columns and the values are those of scikit-learn's `HashingVectorizer`; `mask_digits`,
    `prefix_length` and `boundaries` are additions. The transformer has no state. The engine's own scanner, with
    Python's Unicode classes, finds the default pattern, `\w+`, `\w+|[^\w\s]` (words and punctuation marks) and `\S+`;
    `re` finds other patterns.

    Parameters
    ----------
    n_features : int, default 2**20
        The number of columns, from 1 to 2³¹ − 1.
    ngram_range : tuple of (int, int), default (1, 1)
        The smallest and the largest n of the n-grams.
    analyzer : {"word", "char", "char_wb"}, default "word"
        The units of n-grams: words, characters (`"char"`), or characters inside words, padded with a space
        (`"char_wb"`).
    lowercase : bool, default True
        Whether to lower-case the text first.
    strip_accents : {"unicode", "ascii"}, callable or None, default None
        The method that removes accents after lower-casing: one of scikit-learn's, or a function from str to str.
    stop_words : collection of str, "english" or None, default None
        Words to leave out before n-grams are made. `"english"` is scikit-learn's list; scikit-learn must be installed.
    token_pattern : str or None, default r"(?u)\b\w\w+\b"
        The regular expression of a token, with at most one group. It is used for words without a `tokenizer`; otherwise
        it may be `None`.
    binary : bool, default False
        Whether every count above 0 becomes 1.
    norm : {"l2", "l1"} or None, default "l2"
        The norm by which the values of a text are divided; `None` for no division.
    alternate_sign : bool, default True
        Whether the hash also gives a sign, so that collisions cancel out on average.
    preprocessor : callable or None, default None
        A function from str to str that replaces lower-casing and accent stripping.
    tokenizer : callable or None, default None
        A function from str to tokens that replaces `token_pattern`.
    on : str or None, default None
        The name of the field with the text, if examples are dicts; a plain text is accepted, too.
    mask_digits : bool or "both", default False
        Whether every decimal digit becomes a 0 after lower-casing, so that 42 and 37 are the same word. With `"both"`,
        words of up to four digits also count unmasked, but not in n-grams of two or more words; n-grams of characters
        are only masked.
    prefix_length : int or None, default 0
        A length in characters, from 0 to 1000, only for words; 0 or `None` for none. The first characters of each
        longer word become one more n-gram, with a space before them, so that the forms of a word share a feature.
    boundaries : bool or None, default False
        Whether n-grams of two or more words include the ends of the text, written `<s>` and `</s>`; only for words.
    namespace : str or None, default None
        The namespace of the n-grams, for features of several fields: those with the same namespace share the weight of
        an n-gram. `None` is the name of the field.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    TypeError
        If a parameter, or a text, is of another type.

    References
    ----------
    [^1]: Weinberger, K., Dasgupta, A., Langford, J., Smola, A. and Attenberg, J., 2009. Feature hashing for large scale
        multitask learning. ICML.

    Examples
    --------
    >>> from stream_pegasos import HashedBagOfWords
    >>> bag = HashedBagOfWords(norm=None)
    >>> bag.transform_one("To be, or not to be")
    {174171: 2.0, 174974: -2.0, 408423: 1.0, 926068: 1.0}
    >>> bag.tokens("To be, or not to be")
    ['to', 'be', 'or', 'not', 'to', 'be']
    >>> bag.index("or")
    (408423, 1.0)
    >>> bag.transform_many(["To be", "or not to be"]).shape
    (2, 1048576)
    """

    hash_function: ClassVar[str] = "murmur3"  # the engine's name for scikit-learn's hash
    of_words: ClassVar[tuple[int, bool]] = 0, False  # prefix_length and boundaries for `None`

    n_features: int = 2**20
    ngram_range: tuple[int, int] = (1, 1)
    analyzer: Literal["word", "char", "char_wb"] = "word"
    lowercase: bool = True
    strip_accents: Literal["ascii", "unicode"] | Callable[[str], str] | None = None
    stop_words: Literal["english"] | Iterable[str] | None = None
    token_pattern: str | None = r"(?u)\b\w\w+\b"
    binary: bool = False
    norm: Literal["l1", "l2"] | None = "l2"
    alternate_sign: bool = True
    preprocessor: Callable[[str], str] | None = None
    tokenizer: Callable[[str], Iterable[str]] | None = None
    on: str | None = None
    mask_digits: bool | Literal["both"] = False
    prefix_length: int | None = 0
    boundaries: bool | None = False
    namespace: str | None = None

    def __post_init__(self) -> None:
        self._check()
        needs_pattern = self.analyzer == "word" and self.tokenizer is None
        native_pattern = self.native_pattern(self.token_pattern) if needs_pattern or self.token_pattern else None
        self._stop_words = check_stop_words(self.stop_words)
        # Whether Python changes the text, or finds its tokens, before the scanner reads it.
        self._in_python = self.preprocessor is not None or self.strip_accents is not None
        self._ready_made = self.analyzer == "word" and (self.tokenizer is not None or native_pattern is None)
        self._as_it_is = self.on is None and not self._in_python and not self._ready_made
        min_n, max_n = self.ngram_range
        self.scanner = Scanner(
            "ngrams" if self._ready_made else self.analyzer,
            native_pattern or r"\w+",
            bool(self.lowercase) and not self._in_python and not self._ready_made,
            frozenset() if self._ready_made or self.analyzer != "word" else self._stop_words,
            (int(min_n), int(max_n)),
            int(self.n_features),
            bool(self.alternate_sign),
            bool(self.binary),
            self.norm,
            self.mask_digits if isinstance(self.mask_digits, str) else bool(self.mask_digits),
            *((0, False) if self._ready_made else self._prefixes_and_boundaries),
            self.hash_function,
            *((0.0, 0.0) if self._ready_made else self._letters_and_length),
            (),
            None if self.encoder is not None else self.vector_source,
        )

    def _check(self) -> None:
        check_integer("n_features", self.n_features, 1, 2**31 - 1)
        check_bool("lowercase", self.lowercase)
        check_bool("binary", self.binary)
        check_bool("alternate_sign", self.alternate_sign)
        if not isinstance(self.mask_digits, bool | np.bool_) and self.mask_digits != BOTH:
            raise TypeError(must_be("mask_digits", f"True, False or {BOTH!r}", self.mask_digits))
        if self.prefix_length is not None:
            check_integer("prefix_length", self.prefix_length, 0, 1000)
        if self.boundaries is not None:
            check_bool("boundaries", self.boundaries)
        check_member("analyzer", self.analyzer, ("word", "char", "char_wb"))
        if self.analyzer != "word" and (self.prefix_length or self.boundaries):
            raise ValueError(
                f"prefix_length and boundaries are for analyzer='word'; for {self.analyzer!r} set them to 0 and False"
            )
        check_member("norm", self.norm, ("l1", "l2", None))
        if not callable(self.strip_accents):
            check_member("strip_accents", self.strip_accents, ("ascii", "unicode", None))
        try:
            min_n, max_n = self.ngram_range
        except (TypeError, ValueError):
            raise ValueError(must_be("ngram_range", "two ints", self.ngram_range)) from None
        check_integer("ngram_range[0]", min_n, 1, 1000)
        check_integer("ngram_range[1]", max_n, min_n, 1000)
        for name, function in (("preprocessor", self.preprocessor), ("tokenizer", self.tokenizer)):
            if function is not None and not callable(function):
                raise TypeError(must_be(name, "a function", function))
        check_field(self.on)
        if not isinstance(self.namespace, str | None):
            raise TypeError(must_be("namespace", "a str", self.namespace))

    @staticmethod
    def native_pattern(token_pattern: object) -> str | None:
        """The engine scanner's own form of the pattern; `None` if it has none."""
        if not isinstance(token_pattern, str):
            raise TypeError(must_be("token_pattern", "a str", token_pattern))
        try:
            pattern = re.compile(token_pattern)
        except re.error as error:
            raise ValueError(f"token_pattern must be a regular expression, got {token_pattern!r}: {error}") from None
        if pattern.groups > 1:
            raise ValueError(must_be("token_pattern", "a pattern with at most one group", token_pattern))
        return NATIVE_PATTERNS.get(token_pattern.removeprefix("(?u)"))

    def transform_one(self, x: object) -> dict[int, float]:  # type: ignore[override]
        """The columns of a text's n-grams, with their values.

        Parameters
        ----------
        x : str or dict
            A text; with `on`, a dict that has one, too.
        """
        return MessageFeatures(self.scanner.transform_one(x if self._as_it_is else self.prepare(x)))

    def tokens(self, x: object) -> list[str]:
        """The n-grams of a text, each as often as it occurs.

        Parameters
        ----------
        x : str or dict
            A text; with `on`, a dict that has one, too.
        """
        read = self.read(x)
        return list(self.specification.ngrams(read if self.is_one else read[0]))

    def index(self, token: str) -> tuple[int, float]:
        """The column of an n-gram, and its sign there.

        Parameters
        ----------
        token : str
            An n-gram from `tokens`.
        """
        return self.scanner.index(token)

    @property
    def _prefixes_and_boundaries(self) -> tuple[int, bool]:
        prefix_length, boundaries = self.of_words if self.analyzer == "word" else (0, False)
        return (
            prefix_length if self.prefix_length is None else int(self.prefix_length),
            boundaries if self.boundaries is None else bool(self.boundaries),
        )

    @property
    def _letters_and_length(self) -> tuple[float, float]:
        """The weights of letters within words, and of the length of a text."""
        return 0.0, 0.0

    def _preprocess(self, text: str) -> str:
        if self.preprocessor is not None:
            with user_code("the preprocessor"):
                return self.preprocessor(text)
        return strip_accents(text.lower() if self.lowercase else text, self.strip_accents)

    def _tokens(self, text: str) -> list[str]:
        if self.tokenizer is not None:
            with user_code("the tokenizer"):
                return [checked_text(token) for token in self.tokenizer(text)]
        return re.findall(str(self.token_pattern), text)

    def _ngrams(self, text: str) -> list[str]:
        text = self._preprocess(text)
        of_words = self._stop_words, self.ngram_range, *self._prefixes_and_boundaries
        if self.mask_digits == BOTH:
            return list(ngrams_and_numbers(text, self._tokens, *of_words))
        return list(ngrams_of_tokens(self._tokens(masked_digits(text) if self.mask_digits else text), *of_words))

    @property
    def takes_text(self) -> bool:
        return True

    def prepare(self, x: object) -> Any:
        return x if self._as_it_is else super().prepare(x)

    def read(self, x: object) -> Any:
        """The value for the scanner: the text, or the list of its n-grams if Python finds them."""
        if self._as_it_is:
            return x
        if self.on is not None:
            if not isinstance(x, (Mapping, str)):
                raise TypeError(must_be(f"an example for on={self.on!r}", "a dict or a text", type_name(x)))
            if isinstance(x, Mapping):
                value = get_field(x, self.on)
                if value is ABSENT:
                    raise ValueError(f"the example has no field {self.on!r}")
                x = value
        return self._prepared(checked_text(x))

    def read_value(self, value: object) -> Any:
        if is_nothing(value):
            value = ""
        if not isinstance(value, str):
            raise TypeError(must_be(f"field {self.on!r}", "a str", type_name(value)))
        return self._prepared(str.__str__(value))

    def _prepared(self, text: str) -> Any:
        prepared: object = self._preprocess(text) if self._in_python and not self._ready_made else text
        if self._ready_made:
            prepared = self._ngrams(text)
        return prepared if self.encoder is None else (prepared, text)

    def prepare_many(self, X: Any, threads: int = 1) -> list[Any]:
        if not self._as_it_is:
            return super().prepare_many(X, threads)
        X = self.messages(X)
        return X if isinstance(X, list) else list(X)


def strip_accents(text: str, how: str | Callable[[str], str] | None) -> str:
    if how is None:
        return text
    if callable(how):
        with user_code("strip_accents"):
            return how(text)
    if text.isascii():
        return text
    decomposed = normalized("NFKD", text)
    if how == "ascii":
        return decomposed.encode("ascii", "ignore").decode()
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def check_stop_words(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    if stop_words is None:
        return frozenset()
    if stop_words == "english":
        try:
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
        except ImportError:
            raise ValueError(
                "stop_words='english' is scikit-learn's list: install scikit-learn, or pass the words"
            ) from None
        return frozenset(ENGLISH_STOP_WORDS)
    if isinstance(stop_words, Iterator):  # a second reader would find it empty
        raise TypeError("stop_words must be a set or a list of words, got an iterator, which can be read only once")
    if isinstance(stop_words, str):
        raise ValueError(must_be("stop_words", "'english', a collection or None", stop_words))
    if not isinstance(stop_words, Iterable):
        raise TypeError(must_be("stop_words", "'english', a collection or None", stop_words))
    words = frozenset(stop_words)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(must_be("a stop word", "a str", word))
    return words
