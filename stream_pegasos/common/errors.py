"""The form of an error about a value: "X must be Y, got Z; way out". It needs no NumPy, so commands start fast."""

from __future__ import annotations

from stream_pegasos.common.display import quoted, shortened

LONGEST_SHOWN = 200  # characters of a value in an error


def must_be(name: str, expected: str, value: object, way_out: str = "") -> str:
    """The text of an error about a value. If its type is wrong, pass its `type_name`.

    >>> must_be("l2", "above 0", -1.0)
    'l2 must be above 0, got -1.0'
    >>> must_be("y", "a sequence of labels", type_name("spam"), "pass a list")
    'y must be a sequence of labels, got a str; pass a list'
    """
    return f"{name} must be {expected}, got {shown_value(value)}" + (f"; {way_out}" if way_out else "")


def shown_value(value: object) -> str:
    """A value as it stands in an error."""
    return value if isinstance(value, TypeName) else shortened(quoted(value), LONGEST_SHOWN)


class TypeName(str):
    """The type of a value with its article, which an error shows as it is."""


def type_name(value: object) -> TypeName:
    return TypeName(indefinite(type(value).__name__))


def indefinite(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
