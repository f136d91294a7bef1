"""What is found in a text for the recipe; each part is justified by tests/benchmarks/accuracy.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from stream_pegasos.common.checks import check_integer, check_number, must_be
from stream_pegasos.common.packing import features_to_json
from stream_pegasos.engine.pure.scanner import ANY_LANGUAGE
from stream_pegasos.features.base import Features, SentenceVector, make_scanner
from stream_pegasos.features.hashing import HashedBagOfWords
from stream_pegasos.features.vectors import vector_source

__all__ = ["TextFeatures"]

LETTERS, LENGTH = 0.2, 0.7  # how much letters and lengths count beside 1 for a word


@dataclass(eq=False, repr=False)
class TextFeatures(HashedBagOfWords):
    """The features of a text in any language: words, marks, their pairs, the beginnings of words, letters within words,
    the length.

    In scripts with spaces, words are those of Unicode's text segmentation[^1]: accents and vowel signs stay in them.
    Its rules for apostrophes, points and commas inside words are left out, as they do not pay. Any other character is a
    mark by itself; a sequence of emoji is one mark. A letter is the same whether its accent is written apart or not.
    Invisible characters, such as soft hyphens, are skipped.

    In scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar and others), the characters between two marks or
    spaces are a run. Its features are its characters and their n-grams up to three, with a space for each of its ends;
    its first and its last `prefix_length` characters, if it is longer; and, up to 16 characters, the whole run as a
    word, with its neighbours. Words of Hangul also have the n-grams of their syllables. There is no dictionary, and no
    guess at the language.

    The options are those of `HashedBagOfWords`, with the defaults of the recipe: setting one keeps the others.

    Parameters
    ----------
    n_features
        The number of columns, from 1 to 2³¹ − 1.
    ngram_range
        The smallest and the largest n of the n-grams of words.
    analyzer
        `"word"`, `"char"` or `"char_wb"`.
    lowercase
        Whether to lower-case the text first.
    strip_accents
        `"unicode"` or `"ascii"` to remove accents, a function from str to str, or `None`.
    stop_words
        Words to leave out before n-grams are made: a collection, `"english"`, or `None`.
    token_pattern
        The regular expression of a token instead of the words, marks and runs of any language; `None` for these.
    binary
        Whether every count above 0 becomes 1.
    norm
        `"l2"`, `"l1"` or `None`: what the values of a text are divided by.
    alternate_sign
        Whether the hash also decides a sign.
    preprocessor
        A function from str to str that replaces lower-casing and accent stripping.
    tokenizer
        A function from str to tokens; each token counts as a word.
    on
        The name of the field with the text, if examples are dicts; a plain text is accepted, too.
    mask_digits
        Whether every decimal digit becomes a 0, so that 42 and 37 are the same word. With `"both"` words of up to four
        digits count also as they stand, but not in n-grams of two or more words; n-grams of characters are only masked.
    prefix_length
        How many first characters of each longer word are one more feature; 0 for none. `None` is 4 for words, and 0
        for n-grams of characters, which have no prefixes.
    boundaries
        Whether n-grams include the ends of the text, written `<s>` and `</s>`. `None` is `True` for words, and `False`
        for n-grams of characters, which do not.
    letters
        How much each sequence of three letters within a word counts beside 1 for a word, from 0 for none to 1; each
        word stands between two spaces. `None` is 0.2 for words, and 0 for n-grams of characters, tokens of a
        `tokenizer` and patterns that only Python knows. They count fully in texts of up to 150 characters, less in
        longer ones, and from 300 on not at all: there words tell enough, and letters would take most of the time. One
        word alone leans on its letters: sequences of two to four count as much as a word there, and (9/n² − 1)/8 of
        that with n words, which is nothing from three on. Runs have n-grams of their own.
    length
        How much the length of a text counts, beside 1 for a word, from 0 for nothing to 1: one feature for the power of
        2 that its number of characters reaches, and one for that of its words, marks and runs. `None` is 0.7 for words,
        and 0 where `letters` are 0 by themselves.
    namespace
        Beside features of other fields: those with the same namespace share what is learned of a word. `None` is that
        of the name of the field.
    vectors
        What gives a message a vector beside its features, so that texts which mean the same are near before they were
        met with a label; `None` for nothing. Either vectors of words: `"wordllama"`, which the extra `vectors`
        installs; a folder that model2vec wrote; a text file, `.vec`, as of fastText; or a mapping of words to arrays.
        The vector of the message is then the sum of those of its distinct words, divided by its norm.
        Or an encoder of sentences: `"use"`, which the extra `encoders` installs; a folder of sentence-transformers, or
        `"sentence-transformers/NAME"`; the address of a server, `"http://HOST/v1/embeddings#MODEL"`; an object with a
        method `encode`, or a function, from a list of texts to an array.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or there are no such vectors, or the encoder fails.
    TypeError
        If a parameter, or a text, is of another type.
    ImportError
        If a package for the vectors is missing.

    References
    ----------
    [^1]: [Unicode Standard Annex #29: Unicode Text Segmentation](https://www.unicode.org/reports/tr29/)

    Examples
    --------

    >>> from stream_pegasos import TextFeatures

    >>> words = TextFeatures(letters=0, length=0)
    >>> words.tokens("Answer 24 now!")
    ['answer', '00', 'now', '!', '<s> answer', 'answer 00', '00 now', 'now !', '! </s>', ' answ', '24']
    >>> words.tokens("好吃!")
    ['!', '<s> 好吃', '好吃 !', '! </s>', '<s> 好', '好', '吃', ' 好', '好吃', '吃 ', ' 好吃', '好吃 ', ' 好吃 ']
    >>> TextFeatures(prefix_length=0, ngram_range=(1, 1)).tokens("I see you at ten")
    ['i', 'see', 'you', 'at', 'ten', '   i ', '   se', '  see', '  ee ', '   yo', '  you', '  ou ', '   at', '  at ', \
'   te', '  ten', '  en ', '    4 characters', '    2 words']
    >>> words.clone({"on": "body", "prefix_length": 0}).tokens({"body": "मुझे पसंद"})
    ['मुझे', 'पसंद', '<s> मुझे', 'मुझे पसंद', 'पसंद </s>']

    """

    hash_function: ClassVar[str] = "words"  # made of those of the words, and several times as fast
    of_words: ClassVar[tuple[int, bool]] = 4, True

    n_features: int = 2**30
    ngram_range: tuple[int, int] = (1, 2)
    token_pattern: str | None = None
    binary: bool = True
    alternate_sign: bool = False
    mask_digits: bool | Literal["both"] = "both"
    prefix_length: int | None = None
    boundaries: bool | None = None
    vectors: object = None
    letters: float | None = None
    length: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.encoder is not None:
            self.is_one = self._as_it_is = False
            self._each = self.clone({"vectors": None}), SentenceVector(self.encoder)
            self.scanner = make_scanner(self._each)

    def _check(self) -> None:
        super()._check()
        for name, value in (("letters", self.letters), ("length", self.length)):
            if value is not None:
                check_number(name, value, 0.0, 1.0)
            if value and (self.analyzer != "word" or self.tokenizer is not None):
                raise ValueError(
                    f"{name} must be 0 or None for n-grams of characters and for a tokenizer, got {value!r}"
                )
        if self.vectors is None:
            return
        source = vector_source(self.vectors)
        self._share_vectors(source)
        if not isinstance(self.vectors, (str, os.PathLike)):
            self.vectors = source  # copies of which cost nothing
        if self.encoder is None and self.analyzer != "word":
            raise ValueError(must_be("analyzer", "'word' for word vectors", self.analyzer))
        check_integer("n_features", self.n_features, 1, 2**31 - 1 - source.n_dimensions)

    @property
    def _letters_and_length(self) -> tuple[float, float]:
        letters, length = (LETTERS, LENGTH) if self.analyzer == "word" else (0.0, 0.0)
        return (
            letters if self.letters is None else float(self.letters),
            length if self.length is None else float(self.length),
        )

    @property
    def each(self) -> Sequence[Features]:
        return (self,) if self.encoder is None else self._each

    def to_json(self) -> str:
        """The parameters that are not the defaults, as JSON for `--features` of the command; `on` and `vectors` have
        options of their own.

        Raises
        ------
        ValueError
            If one is a function.

        Examples
        --------

        >>> from stream_pegasos import TextFeatures

        >>> TextFeatures(ngram_range=(1, 3), prefix_length=0).to_json()
        '{"ngram_range": [1, 3], "prefix_length": 0}'

        """
        return features_to_json(self)

    @staticmethod
    def native_pattern(token_pattern: object) -> str | None:
        """The pattern as the engine's scanner knows it, words of any language for `None`."""
        return ANY_LANGUAGE if token_pattern is None else HashedBagOfWords.native_pattern(token_pattern)
