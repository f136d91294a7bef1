"""Examples, the format of labels, and the errors of a stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from stream_pegasos.features.message import Message
from stream_pegasos.learners.label_policy import MOST_EXACT, Fault, Label, LabelPolicy

# A label, or several of them.
Truth = Label | tuple[Label, ...]
Id = int | str


class Example(NamedTuple):
    """One example of a stream, as `read` yields it.

    Parameters
    ----------
    x : str, Fields or dict
        The text, or `Fields`; a dict of features for the formats vw and svmlight.
    y : bool, int, str, tuple of labels or None
        The label, or a tuple of several labels; `None` if the example has none.
    w : float, default 1.0
        The weight of the example; only the format vw has one.
    line : int, default 0
        The physical line, counted from 1, on which the example begins; in Parquet the row.
    id : int or str or None, default None
        The id of the record, if there is one; the tag in the format vw.
    fault : str or None, default None
        Why the record cannot be read; `None` if it can. With a fault `x` is empty and `y` is `None`.
    label_fault : str or None, default None
        Why the label cannot be read, where a message needs none; `None` if it can. With such a fault `y` is `None`.

    """

    x: Message | dict[str, float] | dict[int, float]
    y: Truth | None
    w: float = 1.0
    line: int = 0
    id: Id | None = None
    fault: str | None = None
    label_fault: str | None = None


# The result of the parser of a record: x, y or the error of the label, w, id.
Parsed = tuple[Any, Truth | ValueError | None, float, Id | None]


class RecordError(ValueError):
    """A record that cannot be read, though its id can."""

    def __init__(self, reason: str, id: Id | None) -> None:
        super().__init__(reason)
        self.id = id


def unreadable(error: ValueError, line: int = 0, id: Id | None = None) -> Example:
    """An example for a record that cannot be read, with its own id if the id could be read."""
    own = error.id if isinstance(error, RecordError) else None
    return Example("", None, 1.0, line, id if own is None else own, str(error))


class StreamError(ValueError):
    """A stream that cannot be read at all, or not further."""


class Truncated(StreamError):
    """Compressed data that ends within a block."""


class LabelFormat(NamedTuple):
    """The format of labels. A text may hold several labels with a separator between them; `policy` decides which label
    a value means, by itself or among the labels of a model.
    """

    separator: str | None = None  # `None` if a text is one label
    several: bool = False  # whether a single label is a tuple, too; a separator implies it
    policy: LabelPolicy = LabelPolicy()

    def of_text(self, text: str) -> Truth | None:
        """The label or labels that a text spells; `None` if it is blank. A ValueError if it is no label."""
        if self.separator is None:
            return self.of_label(text)
        return self.of_list(part for part in text.split(self.separator) if part.strip()) or None

    def of_label(self, value: object) -> Truth | None:
        """The label or labels of an example whose label is a single value."""
        label = self.policy.read(value)
        if isinstance(label, Fault):
            raise ValueError(str(label))
        if self.separator is None and not self.several:  # the usual case, without a call
            return label
        return None if label is None else (label,)

    def of_list(self, values: Iterable[object]) -> tuple[Label, ...]:
        """The labels of an example whose labels are a list of values."""
        return good_label(self.policy.read_several(values))

    @property
    def has_several(self) -> bool:
        return self.several or self.separator is not None


_Label = TypeVar("_Label")


def good_label(label: _Label | Fault) -> _Label:
    """A label as the policy has read it; a ValueError with its fault if it is none."""
    if isinstance(label, Fault):
        raise ValueError(str(label))
    return label


def id_meant(value: object) -> Id | None:
    """The id in a value: a string or an integer, also an integer written as 17.0, as in pandas if some are missing;
    else `None`. A checkpoint may change other values. An integer beyond 64 bits may have become a float, which may
    equal the float of another integer.
    """
    if type(value) is float and value.is_integer() and abs(value) <= MOST_EXACT:
        return int(value)
    return value if type(value) is str or type(value) is int else None


def is_no_id(id: object) -> bool:
    """Whether the id identifies no message, e.g. an empty field."""
    return id is None or (isinstance(id, str) and not id.strip())
