"""What a stream yields: an example, the label that a text spells, and the error where reading ends."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from stream_pegasos.learners.labels import Label

_is_integer = re.compile(r"0|[+-]?[1-9][0-9]{0,17}").fullmatch


class Example(NamedTuple):
    """One example of a stream, as `read` yields it.

    Parameters
    ----------
    x
        The text; a dict of features for the formats vw and svmlight.
    y
        The label, `None` where the example carries none.
    w
        The weight of the example; only the format vw has one.
    line
        The physical line, counted from 1, on which the example begins.
    id
        The field `id` of the record where there is one; the tag in the format vw.

    """

    x: str | dict[str, float] | dict[int, float]
    y: Label | None
    w: float = 1.0
    line: int = 0
    id: Any = None


# What a parser of one line gives: x, y, w, id.
Parsed = tuple[Any, Label | None, float, Any]


class StreamError(ValueError):
    """A stream that cannot be read at all, or no further."""


def label_of(text: str) -> Label | None:
    """The label that a text spells: an `int` where it reads as one, `None` where it is blank.

    >>> from stream_pegasos.streams import label_of
    >>> label_of("+1"), label_of("spam"), label_of("007"), label_of(" ")
    (1, 'spam', '007', None)

    """
    text = text.strip()
    return int(text) if _is_integer(text) else text or None
