"""The features of `TextFeatures` as a transformer of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator, TransformerMixin

from stream_pegasos.features.text import TextFeatures
from stream_pegasos.sklearn.texts import list_texts

__all__ = ["TextVectorizer"]


@dataclass(eq=False, repr=False)
class TextVectorizer(TransformerMixin, BaseEstimator):
    """Transformer of texts in any language to a sparse matrix of hashed words, marks, their pairs and word beginnings.

    It has no state, like scikit-learn's `HashingVectorizer`; `fit` only checks the parameters. The features are those
    of `TextFeatures`, whose docstring describes the words. By default there are 2²⁰ columns, because most classifiers
    of scikit-learn store a dense weight for each; with `OnlineClassifier`, 2³⁰ columns are fine.

    Parameters
    ----------
    n_features : int, default 2**20
        The number of columns, from 1 to 2³¹ − 1.
    ngram_range : tuple of (int, int), default (1, 2)
    analyzer : {"word", "char", "char_wb"}, default "word"
    lowercase : bool, default True
    strip_accents : {"unicode", "ascii"}, callable or None, default None
    stop_words : collection of str, "english" or None, default None
    token_pattern : str or None, default None
    binary : bool, default True
    norm : {"l2", "l1"} or None, default "l2"
    alternate_sign : bool, default False
    preprocessor : callable or None, default None
    tokenizer : callable or None, default None
    mask_digits : bool or "both", default "both"
    prefix_length : int or None, default None
    boundaries : bool or None, default None
        All as for `TextFeatures`.
    vectors : str, path, mapping, encoder, callable or None, default None
        Word vectors or an encoder, as for `TextFeatures`. The numbers of a text's vector are in columns after the
        others. A mapping is converted to a table in each call; `stream_pegasos.features.vectors.word_vectors` does it
        once.
    letters : float or None, default None
    length : float or None, default None
        Both as for `TextFeatures`.

    Examples
    --------

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from stream_pegasos.sklearn import TextVectorizer

    >>> TextVectorizer().transform(["see you at lunch", "cheap pills for you"]).shape
    (2, 1048576)
    >>> model = make_pipeline(TextVectorizer(n_features=2**10), LogisticRegression())
    >>> model.fit(["see you at lunch", "cheap pills for you"], ["ham", "spam"]).predict(["pills, cheap pills"])
    array(['spam'], dtype='<U4')

    """

    n_features: int = 2**20
    _: KW_ONLY
    ngram_range: tuple[int, int] = (1, 2)
    analyzer: Literal["word", "char", "char_wb"] = "word"
    lowercase: bool = True
    strip_accents: Literal["ascii", "unicode"] | Callable[[str], str] | None = None
    stop_words: Literal["english"] | Iterable[str] | None = None
    token_pattern: str | None = None
    binary: bool = True
    norm: Literal["l1", "l2"] | None = "l2"
    alternate_sign: bool = False
    preprocessor: Callable[[str], str] | None = None
    tokenizer: Callable[[str], Iterable[str]] | None = None
    mask_digits: bool | Literal["both"] = "both"
    prefix_length: int | None = None
    boundaries: bool | None = None
    vectors: object = None
    letters: float | None = None
    length: float | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def fit(self, X: object = None, y: object = None) -> Self:
        """Check the parameters.

        Parameters
        ----------
        X, y : object, default None
            Ignored.

        Raises
        ------
        TypeError, ValueError
            If `TextFeatures` refuses a parameter.
        """
        TextFeatures(**self.get_params())
        return self

    def partial_fit(self, X: object = None, y: object = None) -> Self:
        """Check the parameters, as `fit` does.

        Parameters
        ----------
        X, y : object, default None
            Ignored.
        """
        return self.fit()

    def transform(self, X: object) -> Any:
        """The texts as the rows of a CSR matrix.

        Parameters
        ----------
        X : sequence of str, or data frame
            Texts: a list, an array, a series, or a frame with one column.

        Raises
        ------
        TypeError, ValueError
            If X has no texts, or if `TextFeatures` refuses a parameter.
        """
        return TextFeatures(**self.get_params()).transform_many(list_texts(X))
