"""The features of a text for the recipe. Each part is justified by tests/benchmarks/accuracy.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from stream_pegasos.common.checks import check_integer, check_number
from stream_pegasos.common.errors import must_be
from stream_pegasos.common.packing import features_to_json
from stream_pegasos.engine.pure.scanner import ANY_LANGUAGE
from stream_pegasos.features.base import Features, SentenceVector, make_scanner
from stream_pegasos.features.hashing import HashedBagOfWords
from stream_pegasos.features.vectors import vector_source

__all__ = ["TextFeatures"]

LETTERS, LENGTH = 0.2, 0.7  # weights of letters and lengths beside 1 for a word


@dataclass(eq=False, repr=False)
class TextFeatures(HashedBagOfWords):
    """The features of a text in any language: words, marks, their pairs, the beginnings of words, letters within words,
    the length.

    In scripts with spaces, words are those of Unicode's text segmentation[^1]: accents and vowel signs stay in them.
    Its rules for apostrophes, points and commas inside words are left out: they do not improve accuracy. Any other
    character is a mark by itself; a sequence of emoji is one mark. A letter with an accent is the same in one character
    or in two. Invisible characters, such as soft hyphens, are skipped.

    In scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar and others), the characters between two marks or
    spaces are a run. Its features are its characters and their n-grams of up to three, with a space at each end; its
    first and its last `prefix_length` characters, if it is longer; and, up to 16 characters, the whole run as a word,
    with its neighbours. Words of Hangul also have the n-grams of their syllables. No dictionary is used, and the
    language is not guessed.

    The options are those of `HashedBagOfWords`, some with other defaults, and `letters`, `length` and `vectors`.

    Parameters
    ----------
    n_features : int, default 2**30
        The number of columns, from 1 to 2³¹ − 1; with `vectors`, their numbers have further columns within that limit.
    ngram_range : tuple of (int, int), default (1, 2)
        The smallest and the largest n of the n-grams of words.
    analyzer : {"word", "char", "char_wb"}, default "word"
        The units of n-grams: words, characters (`"char"`), or characters inside words (`"char_wb"`).
    lowercase : bool, default True
        Whether to lower-case the text first.
    strip_accents : {"unicode", "ascii"}, callable or None, default None
        The method that removes accents: one of scikit-learn's, or a function from str to str.
    stop_words : collection of str, "english" or None, default None
        Words to leave out before n-grams are made. `"english"` is scikit-learn's list; scikit-learn must be installed.
    token_pattern : str or None, default None
        The regular expression of a token instead of the words, marks and runs of any language; `None` for these.
    binary : bool, default True
        Whether every count above 0 becomes 1.
    norm : {"l2", "l1"} or None, default "l2"
        The norm by which the values of a text are divided; `None` for no division.
    alternate_sign : bool, default False
        Whether the hash also gives a sign.
    preprocessor : callable or None, default None
        A function from str to str that replaces lower-casing and accent stripping.
    tokenizer : callable or None, default None
        A function from str to tokens; each token counts as a word.
    on : str or None, default None
        The name of the field with the text, if examples are dicts; a plain text is accepted, too.
    mask_digits : bool or "both", default "both"
        Whether every decimal digit becomes a 0, so that 42 and 37 are the same word. With `"both"`, words of up to four
        digits also count unmasked, but not in n-grams of two or more words; n-grams of characters are only masked.
    prefix_length : int or None, default None
        The number of first characters of each longer word that are one more feature, from 0 to 1000; 0 for none. `None`
        is 4 for words, and 0 for n-grams of characters, which have no prefixes.
    boundaries : bool or None, default None
        Whether n-grams include the ends of the text, written `<s>` and `</s>`. `None` is `True` for words, and `False`
        for n-grams of characters, which have no such ends.
    letters : float or None, default None
        The weight of each sequence of three letters within a word, beside 1 for a word, from 0 for none to 1; a word
        has a space at each end. `None` is 0.2 for words, and 0 for n-grams of characters, for tokens of a `tokenizer`
        and for patterns that only Python knows. Letters count fully in texts of up to 150 characters, less in longer
        ones, and not at all from 300 on: there words say enough, and letters would take most of the time. In a text of
        very few words, letters are more important: with one word, sequences of two to four letters count as much as the
        word; with n words, (9/n² − 1)/8 of that, which is 0 from three words on. Runs have their own n-grams instead.
    length : float or None, default None
        The weight of the length of a text, beside 1 for a word, from 0 for none to 1. One feature stands for the power
        of 2 that the number of characters reaches, and one for that of the number of words, marks and runs. `None` is
        0.7 for words, and 0 where `letters=None` is 0.
    namespace : str or None, default None
        The namespace of the words, for features of several fields: those with the same namespace share the weight of a
        word. `None` is the name of the field.
    vectors : str, path, mapping, encoder, callable or None, default None
        The source of a vector for each message, beside its features. Texts with the same meaning then have similar
        vectors, even before one of them has a label. `None` for no vectors. Either vectors of words: `"wordllama"`,
        which the extra `vectors` installs; a folder that model2vec wrote; a text file, `.vec`, as of fastText; or a
        mapping of words to arrays. The vector of the message is then the sum of the vectors of its distinct words,
        divided by its norm.
        Or an encoder of sentences: `"use"`, which the extra `encoders` installs; a folder of sentence-transformers, or
        `"sentence-transformers/NAME"`; the address of a server, `"http://HOST/v1/embeddings#MODEL"`; an object with a
        method `encode`, or a function, from a list of texts to an array.

    Raises
    ------
    ValueError
        If a parameter is out of its range, if there are no such vectors, or if the encoder fails.
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

    hash_function: ClassVar[str] = (
        "words"  # the hash of an n-gram comes from the hashes of its words; several times faster
    )
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
            self.vectors = source  # copies of it cost nothing
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
        """The parameters that differ from the defaults, as JSON for the command's `--features`. `on` and `vectors` have
        their own options.

        Raises
        ------
        ValueError
            If a parameter is a function.

        Examples
        --------

        >>> from stream_pegasos import TextFeatures

        >>> TextFeatures(ngram_range=(1, 3), prefix_length=0).to_json()
        '{"ngram_range": [1, 3], "prefix_length": 0}'

        """
        return features_to_json(self)

    @staticmethod
    def native_pattern(token_pattern: object) -> str | None:
        """The engine scanner's own form of the pattern; `None` stands for the words of any language."""
        return ANY_LANGUAGE if token_pattern is None else HashedBagOfWords.native_pattern(token_pattern)
