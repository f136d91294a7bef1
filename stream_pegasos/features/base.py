"""What all kinds of features share, and their sum."""

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

from stream_pegasos.common.checks import check_sequence, must_be
from stream_pegasos.common.packing import described, get_parameters
from stream_pegasos.engine import Scanner
from stream_pegasos.engine.pure import Scanner as PureScanner
from stream_pegasos.engine.pure.tokens import BEGIN, END
from stream_pegasos.features.encoders import TextEncoder
from stream_pegasos.features.frames import column_names, frame_rows, is_frame, listed
from stream_pegasos.features.message import ABSENT, Fields, Message, get_field, outer_name, select_fields, shown_message
from stream_pegasos.features.vectors import VectorSource, packed

__all__ = ["SENTENCE", "FeatureUnion", "Features", "MessageFeatures"]

# Names of columns are looked for in so many words at a time, and in so many of the next ones, as n-grams go over them.
WORDS, SHARED_WORDS = 12, 4
SENTENCE = "(sentence)"  # what an explanation calls the vector of a whole message


class MessageFeatures(dict[int, float]):
    """The features of a message, which are of one size as they are, and no numbers of a table."""


class Features(base.MiniBatchTransformer):
    """What turns messages into columns with values: which fields it reads, and what its scanner takes of them."""

    kinds: ClassVar[dict[str, type[Features]]] = {}  # by name
    scanner: Scanner
    on: str | None = None
    namespace: str | None = None
    is_one: bool = True  # whether the scanner takes one value of a message, and no tuple of several
    vector_source: VectorSource | None = None  # what gives a message its vector, if anything
    encoder: TextEncoder | None = None  # the same, if it reads the whole text

    def __repr__(self) -> str:
        return described(self)

    def __init_subclass__(cls, is_kind: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if is_kind:  # that a file may name
            Features.kinds[cls.__name__] = cls

    @property
    def each(self) -> Sequence[Features]:
        """The features of each value that the scanner takes."""
        return (self,)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are read; none where a message is a text."""
        return tuple(part.on for part in self.each if part.on is not None)

    @property
    def space(self) -> str:
        """The namespace of what is found: that of the field unless it is named."""
        return str(self.on if self.namespace is None else self.namespace)

    @property
    def takes_text(self) -> bool:
        """Whether a message may be a text."""
        return False

    @property
    def mail_field(self) -> str | None:
        """The field that holds a whole mail, `"text"` where the message is one; `None` if there is none."""
        return None

    def _share_vectors(self, source: VectorSource | None) -> None:
        self.vector_source = source
        self.encoder = source if isinstance(source, TextEncoder) else None

    def described(self) -> dict[str, Any]:
        """What the features were made with, by parameter; of word vectors what names them."""
        parameters = get_parameters(self)
        if "vectors" in parameters and self.vector_source is not None:
            parameters["vectors"] = packed(self.vector_source)
        return parameters

    @property
    def n_columns(self) -> int:
        """The number of columns: those of the hashed features and, with vectors, one for each of their numbers."""
        return self.specification.n_features + (self.vector_source.n_dimensions if self.vector_source else 0)

    @property
    def specification(self) -> PureScanner:
        """The scanner, as the specification has it."""
        return PureScanner(*self.scanner.arguments)

    def prepare(self, x: object) -> Any:
        """What the scanner takes of a message."""
        read = self.read(x)
        return read if self.encoder is None else self.encoded([read])[0]

    def read(self, x: object) -> Any:
        """What the scanner takes of a message, but for the vector of its text: of this the text."""
        value = get_field(select_fields(x, self.fields), self.on)
        return self.read_value(None if value is ABSENT else value)

    def read_value(self, value: object) -> Any:
        """What the scanner takes of the field, a tuple if there are several in `each`; `None` stands for nothing."""
        raise NotImplementedError

    def encoded(self, messages: list[Any], threads: int = 1) -> list[Any]:
        if self.encoder is None:
            return messages
        vectors = self.encoder.vectors([message[-1] for message in messages], threads)
        return [(*message[:-1], vector) for message, vector in zip(messages, vectors, strict=True)]

    def token_name(self, token: str) -> str:
        """What one of the tokens is called beside those of other fields."""
        return f"{self.on}: {token}"

    def shown(self, x: Message) -> str:
        """A message as a person reads it."""
        return shown_message(x)

    def texts(self, x: object) -> dict[str, str]:
        """The texts of a message that are read as words, by the names of their fields; `""` where it is a text."""
        read = (self.read(x),) if self.is_one else self.read(x)
        of_texts = [
            pair for pair in zip(self.each, read, strict=False) if pair[0].takes_text and isinstance(pair[1], str)
        ]
        of_words = [pair for pair in of_texts if pair[0].specification.analyzer == "word"]
        return {self._name(part, "").removesuffix(": "): text for part, text in reversed(of_words)}

    def make_message(self, text: str) -> Any:
        """A message that has this text, in the first field of text, and nothing else.

        Raises
        ------
        TypeError
            If there is no such field.
        """
        if self.on is None:
            return text
        if not self.takes_text:
            raise TypeError(f"messages have no text: {type(self).__name__} reads {self.on!r}")
        return {self.on: text}

    def prepare_many(self, X: object, threads: int = 1) -> list[Any]:
        """What the scanner takes of several messages, which so many threads may encode."""
        return self.encoded([self.read(x) for x in self.messages(X)], threads)

    def messages(self, X: object) -> Any:
        """Several messages, of a data frame those with the columns that are read."""
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
        """Why each message cannot be read; `None` for one that can. Those that can are encoded together."""
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
        """The columns of what is found in a message, with their values.

        Parameters
        ----------
        x
            A text; with `on`, a dict that has the field.
        """
        return MessageFeatures(self.scanner.transform_one(self.prepare(x)))

    def transform_many(self, X: object) -> Any:
        """The messages as the rows of a SciPy CSR matrix.

        Parameters
        ----------
        X
            Texts, in any iterable or as a series; with `on`, dicts or a data frame, too.
        """
        from scipy import sparse

        indptr, indices, data = self.scanner.transform_many(self.prepare_many(X))
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        matrix = sparse.csr_matrix((data, indices, indptr), (len(indptr) - 1, self.n_columns))
        matrix.sort_indices()
        return matrix

    def learn_many(self, X: object) -> None:
        """Nothing: there is nothing to learn."""

    def contents(self, prepared: Any) -> list[tuple[str, int, float]]:
        """What is found in a prepared message: the name of each token, its column, and what it adds there before the
        norm.
        """
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
        """The first n-gram in each of these columns of a prepared message; faster than `contents` where columns are
        few.
        """
        are_several = not self.is_one
        column_set, names = {*columns}, dict[int, str]()
        values = prepared if are_several else (prepared,)
        parts = [(field, *window) for field, value in enumerate(values) for window in self._windows(field, value)]
        nothing = [value[:0] for value in values]
        rows = [(*nothing[:field], value, *nothing[field + 1 :]) for field, value, _, _ in parts]
        for field, (part, value) in enumerate(zip(self.each, values, strict=True)):  # of the whole text
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
        if len(names) < len(column_set):  # as of a long n-gram
            for name, column, _ in self.contents(prepared):
                if column in column_set:
                    names.setdefault(column, name)
        return names

    def _name(self, part: Features, token: str) -> str:
        is_alone = len(self.each) - (self.encoder is not None) == 1
        return token if is_alone and part.takes_text else part.token_name(token)

    def _windows(self, field: int, value: object) -> Iterator[tuple[Any, bool, bool]]:
        """Some words of a field at a time, which share words, and whether they are the first and the last ones."""
        if not isinstance(value, str) or self.each[field].specification.analyzer != "word":
            yield value, True, True
            return
        words = value.split()
        starts = range(0, max(1, len(words) - SHARED_WORDS), WORDS)
        for start in starts:
            is_last = start == starts[-1]
            yield " ".join(words[start : None if is_last else start + WORDS + SHARED_WORDS]), start == 0, is_last

    def vector_contents(self, prepared: Any, factors: NDArray[np.float64]) -> list[tuple[str, float]]:
        """What each word, or the whole text, adds to a message's vector, number by number times these factors."""
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
    """Features of several fields of a message, as the sum of features makes it.

    What is found in one field is told from the same in another, unless their features have the same `namespace`. A
    field that a message lacks, or that is `None`, has no features. Parts of texts may not differ in `n_features`,
    `alternate_sign`, `binary` or `norm`.

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

    Words of fields that share a namespace are the same. To have both, a word by itself and in its field, is the most
    accurate for a short field beside a long one:

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
                raise TypeError(must_be("a part of a FeatureUnion", "features of this package", type(part)))
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
    """The vector that an encoder gives the text of a message: it stands behind all other values."""

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
    """What parts of texts must have alike, as they share columns."""
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
    # That of the first field has no name.
    names = ["" if part.space == parts[0].space else part.space or "\0" for part in parts[1:]]
    fields = tuple((name, scanner.arguments) for name, scanner in zip(names, other_specifications, strict=True))
    return Scanner(*dataclasses.replace(first, fields=fields).arguments)
