"""The base class of all features, and their sum."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.checks import check_sequence
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.packing import described, get_parameters
from stream_pegasos.engine import Scanner
from stream_pegasos.engine.pure import Scanner as PureScanner
from stream_pegasos.engine.pure.tokens import BEGIN, END
from stream_pegasos.features.encoders import TextEncoder
from stream_pegasos.features.frames import column_names, frame_rows, is_frame, listed
from stream_pegasos.features.message import ABSENT, Fields, Message, get_field, outer_name, select_fields, shown_message
from stream_pegasos.features.vectors import VectorSource, packed

__all__ = ["SENTENCE", "FeatureUnion", "Features", "MessageFeatures"]

# Names of columns are searched in windows of this many words, which overlap by this many, since n-grams cross them.
WORDS, SHARED_WORDS = 12, 4
SENTENCE = "(sentence)"  # the name of a whole message's vector in an explanation


class MessageFeatures(dict[int, float]):
    """The features of a message. They have one scale already, and are no numbers of a table."""


class Features(base.MiniBatchTransformer):
    """A transformer from messages to columns with values. It reads some fields, and prepares their values for its
    scanner.
    """

    kinds: ClassVar[dict[str, type[Features]]] = {}  # by name
    scanner: Scanner
    on: str | None = None
    namespace: str | None = None
    is_one: bool = True  # whether a prepared message is a single value, not a tuple
    vector_source: VectorSource | None = None  # the source of a message's vector, if there is one
    encoder: TextEncoder | None = None  # the same, if it encodes whole texts

    def __repr__(self) -> str:
        return described(self)

    def __init_subclass__(cls, is_kind: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if is_kind:  # model files may name this class
            Features.kinds[cls.__name__] = cls

    @property
    def each(self) -> Sequence[Features]:
        """The features of each value of a prepared message."""
        return (self,)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields to read; empty if a message is a text."""
        return tuple(part.on for part in self.each if part.on is not None)

    @property
    def space(self) -> str:
        """The namespace of the tokens: `namespace`, or else the field."""
        return str(self.on if self.namespace is None else self.namespace)

    @property
    def takes_text(self) -> bool:
        """Whether a message may be a text."""
        return False

    @property
    def mail_field(self) -> str | None:
        """The field that holds a whole mail, `"text"` if the message is a mail; `None` if there is none."""
        return None

    def _share_vectors(self, source: VectorSource | None) -> None:
        self.vector_source = source
        self.encoder = source if isinstance(source, TextEncoder) else None

    def described(self) -> dict[str, Any]:
        """The constructor parameters by name; a packed description in place of word vectors."""
        parameters = get_parameters(self)
        if "vectors" in parameters and self.vector_source is not None:
            parameters["vectors"] = packed(self.vector_source)
        return parameters

    @property
    def n_columns(self) -> int:
        """The number of columns: one for each hashed feature and for each number of the vector."""
        return self.specification.n_features + (self.vector_source.n_dimensions if self.vector_source else 0)

    @property
    def specification(self) -> PureScanner:
        """The scanner of the pure engine with the same arguments."""
        return PureScanner(*self.scanner.arguments)

    def prepare(self, x: object) -> Any:
        """The value, or tuple of values, of a message for the scanner."""
        read = self.read(x)
        return read if self.encoder is None else self.encoded([read])[0]

    def read(self, x: object) -> Any:
        """The prepared message, but with the text in place of an encoder's vector."""
        value = get_field(select_fields(x, self.fields), self.on)
        return self.read_value(None if value is ABSENT else value)

    def read_value(self, value: object) -> Any:
        """The prepared value of the field, a tuple if `each` has several; `None` stands for a missing value."""
        raise NotImplementedError

    def encoded(self, messages: list[Any], threads: int = 1) -> list[Any]:
        if self.encoder is None:
            return messages
        vectors = self.encoder.vectors([message[-1] for message in messages], threads)
        return [(*message[:-1], vector) for message, vector in zip(messages, vectors, strict=True)]

    def token_name(self, token: str) -> str:
        """The name of a token beside tokens of other fields."""
        return f"{self.on}: {token}"

    def shown(self, x: Message) -> str:
        """A message as a person reads it."""
        return shown_message(x)

    def texts(self, x: object) -> dict[str, str]:
        """The texts of a message that are read as words, by the names of their fields; by `""` if the message is a
        text.
        """
        read = (self.read(x),) if self.is_one else self.read(x)
        of_texts = [
            pair for pair in zip(self.each, read, strict=False) if pair[0].takes_text and isinstance(pair[1], str)
        ]
        of_words = [pair for pair in of_texts if pair[0].specification.analyzer == "word"]
        return {self._name(part, "").removesuffix(": "): text for part, text in reversed(of_words)}

    def make_message(self, text: str) -> Any:
        """A message with only this text, in the first field that takes text.

        Raises
        ------
        TypeError
            If no field takes text.
        """
        if self.on is None:
            return text
        if not self.takes_text:
            raise TypeError(f"messages have no text: {type(self).__name__} reads {self.on!r}")
        return {self.on: text}

    def prepare_many(self, X: object, threads: int = 1) -> list[Any]:
        """Several prepared messages. An encoder may use up to `threads` threads."""
        return self.encoded([self.read(x) for x in self.messages(X)], threads)

    def messages(self, X: object) -> Any:
        """A sequence of messages; a data frame gives a dict of the fields for each row."""
        check_sequence("X", X, "texts")
        if is_frame(X):
            if not self.fields:
                raise TypeError("X is a data frame: on='NAME' says which of its columns holds the text")
            columns = column_names(X)
            names = [*dict.fromkeys(outer_name(name, columns) for name in self.fields)]
            names = [name for name in names if name is not None]
            if not names:
                raise ValueError(
                    f"the frame has none of the columns {self.fields}; it has {', '.join(map(str, columns))}"
                )
            return frame_rows(X, names)
        return listed(X)

    def refusals(self, X: Sequence[Any], threads: int = 1) -> list[str | None]:
        """The reason why each message cannot be read; `None` for a valid one. An encoder gets all messages at once if
        all are valid.
        """
        reasons: list[str | None] = []
        if self.encoder is not None:
            with contextlib.suppress(TypeError, ValueError):
                self.prepare_many(X, threads)
                return [None] * len(X)
        for x in X:
            try:
                self.prepare(x)
                reasons.append(None)
            except (TypeError, ValueError) as error:
                reasons.append(str(error))
        return reasons

    def transform_one(self, x: object) -> dict[int, float]:  # type: ignore[override]
        """The columns of the features of a message, with their values.

        Parameters
        ----------
        x : str, dict or, with `MailFeatures`, a mail
            A text; with `on`, a dict that has the field.
        """
        return MessageFeatures(self.scanner.transform_one(self.prepare(x)))

    def transform_many(self, X: object) -> Any:
        """The messages as the rows of a SciPy CSR matrix.

        Parameters
        ----------
        X : iterable of str or dict, or data frame
            Texts, also as a series; with `on`, dicts or a data frame, too.
        """
        from scipy import sparse

        indptr, indices, data = self.scanner.transform_many(self.prepare_many(X))
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        matrix = sparse.csr_matrix((data, indices, indptr), (len(indptr) - 1, self.n_columns))
        matrix.sort_indices()
        return matrix

    def learn_many(self, X: object) -> None:
        """Do nothing: the transformer has no state."""

    def contents(self, prepared: Any) -> list[tuple[str, int, float]]:
        """The tokens of a prepared message: for each, its name, its column, and its value there before the norm."""
        are_several, binary = not self.is_one, self.specification.binary
        contents = []
        for field, (part, text) in enumerate(zip(self.each, prepared if are_several else [prepared], strict=True)):
            specification = part.specification
            for weight, ngrams in specification.weighted_ngrams(text):
                for token, count in Counter(ngrams).items():
                    column, sign = self.scanner.index(token, field)
                    name = self._name(part, token)
                    contents.append((name, column, weight if binary else weight * sign * count))
        return contents

    def names(self, prepared: Any, columns: Collection[int]) -> dict[int, str]:
        """The first token in each of these columns of a prepared message. It is faster than `contents` for few
        columns.
        """
        are_several = not self.is_one
        column_set, names = {*columns}, dict[int, str]()
        values = prepared if are_several else (prepared,)
        parts = [(field, *window) for field, value in enumerate(values) for window in self._windows(field, value)]
        nothing = [value[:0] for value in values]
        rows = [(*nothing[:field], value, *nothing[field + 1 :]) for field, value, _, _ in parts]
        for field, (part, value) in enumerate(
            zip(self.each, values, strict=True)
        ):  # lengths are features of the whole text
            for token in part.specification.lengths(value) if part.takes_text else ():
                column, _ = self.scanner.index(token, field)
                if column in column_set:
                    names.setdefault(column, self._name(part, token))
        indptr, indices, _ = self.scanner.transform_many(rows if are_several else [value for _, value, _, _ in parts])
        ends = np.concatenate([[0], np.cumsum(np.isin(indices, [*columns]))])[indptr]
        for row in np.flatnonzero(np.diff(ends)).tolist():
            field, value, is_first, is_last = parts[row]
            part = self.each[field]
            for token in dict.fromkeys(part.specification.ngrams(value)):
                column, _ = self.scanner.index(token, field)
                cut = (not is_first and token.startswith(f"{BEGIN} ")) or (not is_last and token.endswith(f" {END}"))
                if column in column_set and not cut:
                    names.setdefault(column, self._name(part, token))
        if len(names) < len(column_set):  # for example, a long n-gram
            for name, column, _ in self.contents(prepared):
                if column in column_set:
                    names.setdefault(column, name)
        return names

    def _name(self, part: Features, token: str) -> str:
        is_alone = len(self.each) - (self.encoder is not None) == 1
        return token if is_alone and part.takes_text else part.token_name(token)

    def _windows(self, field: int, value: object) -> Iterator[tuple[Any, bool, bool]]:
        """Overlapping windows of words of a field; for each, whether it is the first, and whether it is the last."""
        if not isinstance(value, str) or self.each[field].specification.analyzer != "word":
            yield value, True, True
            return
        words = value.split()
        starts = range(0, max(1, len(words) - SHARED_WORDS), WORDS)
        for start in starts:
            is_last = start == starts[-1]
            yield " ".join(words[start : None if is_last else start + WORDS + SHARED_WORDS]), start == 0, is_last

    def vector_contents(self, prepared: Any, factors: NDArray[np.float64]) -> list[tuple[str, float]]:
        """The part of each word, or of the whole text, in a message's vector, multiplied by these factors and
        summed.
        """
        if self.vector_source is None or not np.any(factors):
            return []
        if isinstance(self.vector_source, TextEncoder):
            vector = prepared[-1].astype(np.float64)
            return [(SENTENCE, float(vector @ factors) / float(np.linalg.norm(vector)))]
        are_several = not self.is_one
        names: dict[str, str] = {}
        for part, text in zip(self.each, prepared if are_several else [prepared], strict=True):
            for word in part.specification.words(text):
                names.setdefault(word, part.token_name(word) if are_several else word)
        codes, shifts = self.vector_source.codes([*names])
        vectors = codes * np.ldexp(1.0, shifts)[:, np.newaxis]
        values = vectors @ factors / float(np.linalg.norm(vectors.sum(axis=0)))
        return [*zip(names.values(), values.tolist(), strict=True)]

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Features) and self.fields and other.fields:
            groups = (operand.parts if isinstance(operand, FeatureUnion) else [operand] for operand in (self, other))
            return FeatureUnion([*itertools.chain.from_iterable(groups)])
        return super().__add__(other)

    def _more_tags(self) -> set[str]:
        return set() if self.fields else {base.tags.TEXT_INPUT}


class FeatureUnion(Features, is_kind=False):
    """Features of several fields of a message; the sum of features creates it.

    The same word in two fields is two features, unless their parts have the same `namespace`. A field that a message
    lacks, or that is `None`, has no features. All parts for texts must have the same `n_features`, `alternate_sign`,
    `binary` and `norm`.

    Examples
    --------
    >>> from stream_pegasos import Category, Number, TextClassifier, TextFeatures
    >>> features = TextFeatures(on="subject") + TextFeatures(on="body") + Category(on="sender") + Number(on="size")
    >>> model = TextClassifier(features=features)
    >>> model.learn_one({"subject": "free", "body": "see the prize", "sender": "shop", "size": 9_000}, "spam")
    >>> model.learn_one({"subject": "lunch?", "body": "are you free at noon", "sender": "ann"}, "ham")
    >>> model.predict_one({"subject": "free lunch", "size": 9_100})
    'spam'
    >>> sorted(model.explain_one({"subject": "free"}))[-1]
    'subject: free'

    Fields with the same namespace share the features of words. For a short field beside a long one, the most accurate
    is to have both: the word alone, and the word in its field:

    >>> features = TextFeatures(on="body") + TextFeatures(on="subject") + TextFeatures(on="subject", namespace="body")
    >>> features.transform_one({"body": "free"}).keys() < features.transform_one({"subject": "free"}).keys()
    True
    """

    is_one = False

    def __init__(self, parts: Sequence[Features]) -> None:
        self.parts = parts
        if len(parts) < 2:
            raise ValueError("a FeatureUnion has two parts or more")
        for part in parts:
            if not isinstance(part, Features):
                raise TypeError(must_be("a part of a FeatureUnion", "features of this package", type_name(part)))
            if part.on is None:
                raise ValueError(f"{type(part).__name__} reads no field: say on='NAME'")
        if len({(type(part), part.on, part.namespace) for part in parts}) < len(parts):
            names = ", ".join(str(part.on) for part in parts)
            raise ValueError(f"two parts read the same field in the same way; the fields are {names}")
        self._each = keep_single_vector([leaf for part in parts for leaf in part.each])
        self._share_vectors(next((leaf.vector_source for leaf in self._each if leaf.vector_source is not None), None))
        self.scanner = make_scanner(self._each)
        self._fields = tuple(dict.fromkeys(part.on for part in parts if part.on is not None))

    @property
    def each(self) -> Sequence[Features]:
        return self._each

    @property
    def fields(self) -> tuple[str, ...]:
        return self._fields

    @property
    def mail_field(self) -> str | None:
        return next((part.mail_field for part in self.parts if part.mail_field is not None), None)

    def shown(self, x: Message) -> str:
        if self.mail_field is None or not isinstance(x, dict):
            return super().shown(x)
        read = Fields(x)
        for part in self.parts:
            if part.mail_field is not None and part.mail_field in x:
                read[part.mail_field] = part.shown(x)
        return super().shown(read)

    def make_message(self, text: str) -> Any:
        for part in self.parts:
            if part.takes_text or part.mail_field is not None:
                return part.make_message(text)
        return self.parts[0].make_message(text)

    def read(self, x: object) -> tuple[Any, ...]:
        message = select_fields(x, self._fields)
        read: list[Any] = []
        texts: list[str] = []
        for part in self.parts:
            value = get_field(message, part.on)
            value = part.read_value(None if value is ABSENT else value)
            if part.is_one:
                read.append(value)
            else:
                read += value
                if part.encoder is not None:
                    texts.append(read.pop())
        if self.encoder is not None:
            read.append("\n".join(filter(None, texts)))
        return tuple(read)


class SentenceVector(Features, is_kind=False):
    """The vector that an encoder gives the text of a message. It is the last value of a prepared message."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._share_vectors(encoder)
        of_texts = "vector", r"\S+", False, frozenset[str](), (1, 1), 2**30, False, True, "l2"
        self.scanner = Scanner(*of_texts, vectors=encoder)


def keep_single_vector(parts: Sequence[Features]) -> list[Features]:
    if len({part.vector_source.digest for part in parts if part.vector_source is not None}) > 1:
        raise ValueError("two parts have different word vectors or encoders; a message has one vector")
    sentences = [part for part in parts if isinstance(part, SentenceVector)]
    return [*(part for part in parts if not isinstance(part, SentenceVector)), *sentences[:1]]


def column_options(scanner: PureScanner) -> dict[str, Any]:
    """The options that all parts for texts must have in common, because they share columns."""
    return {
        "n_features": scanner.n_features,
        "alternate_sign": scanner.alternate_sign,
        "binary": scanner.binary,
        "norm": scanner.norm,
    }


def make_scanner(parts: Sequence[Features]) -> Scanner:
    of_texts = [part for part in parts if part.takes_text] or parts
    columns = column_options(of_texts[0].specification)
    for part in of_texts:
        for name, value in column_options(part.specification).items():
            if value != columns[name]:
                raise ValueError(f"{name} is {columns[name]!r} of {of_texts[0].on!r}, but {value!r} of {part.on!r}")
    first, *other_specifications = [dataclasses.replace(part.specification, **columns) for part in parts]
    # The first field has no name.
    names = ["" if part.space == parts[0].space else part.space or "\0" for part in parts[1:]]
    fields = tuple((name, scanner.arguments) for name, scanner in zip(names, other_specifications, strict=True))
    return Scanner(*dataclasses.replace(first, fields=fields).arguments)
