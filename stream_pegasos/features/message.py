"""Messages: texts or named fields. Only features read their content."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from stream_pegasos.common.errors import must_be, type_name

__all__ = [
    "ABSENT",
    "Fields",
    "FieldsMet",
    "Message",
    "check_depth",
    "check_field",
    "get_field",
    "grouped",
    "is_blank",
    "is_nothing",
    "make_message",
    "message_identity",
    "message_size",
    "outer_name",
    "select_fields",
    "shown_message",
    "without",
]

ABSENT = object()  # the value of a missing field
OF_A_NUMBER = 100  # the size, in characters, of a value that is no text
DEEPEST = 50  # levels of nested values
NESTED, PLAIN = (dict, list, tuple), {str, int, float, bool, type(None)}
MESSAGES_WITHOUT, FEWEST_WITHOUT = 500, 10  # messages before a warning of missing fields; the least, at the end
MOST_NAMED = 20  # of the missing fields


class Fields(dict[str, Any]):
    """A message of several fields, from a stream. Unlike other dicts it is hashable."""

    def __hash__(self) -> int:  # type: ignore[override]
        plain = ((name, value) for name, value in self.items() if isinstance(value, (str, int, float)))
        return hash(frozenset(plain))


Message = str | Fields


def make_message(value: object) -> Any:
    """The message for a value from JSON."""
    return Fields(value) if isinstance(value, dict) else value


def message_identity(message: Message) -> int:
    """A number that identifies a message. Unlike the hash, it depends on lists, too, and is not the same for -1
    and -2.
    """
    text = message if isinstance(message, str) else json.dumps(message, sort_keys=True, default=repr)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def check_depth(value: object, left: int = DEEPEST) -> None:
    """Raise a ValueError if values are nested deeper than `DEEPEST`, long before Python's recursion limit."""
    if not isinstance(value, NESTED):
        return
    if not left:
        raise ValueError(f"values must be nested at most {DEEPEST} deep")
    for child in value.values() if isinstance(value, dict) else value:
        if type(child) not in PLAIN:
            check_depth(child, left - 1)


def message_size(message: object) -> int:
    """The size of a message in characters; each value that is no text counts as 100."""
    if isinstance(message, str):
        return len(message)
    if isinstance(message, dict):
        return sum(map(message_size, message.values()))
    return sum(map(message_size, message)) if isinstance(message, list) else OF_A_NUMBER


def grouped(items: Iterable[Any], size: Callable[[Any], int], largest: int, most: int | None = None) -> Iterator[Any]:
    """Yield items in lists. A list ends when its sizes sum to `largest`, or at `most` items. After Ctrl-C, the items
    before it are the last list.
    """
    group: list[Any] = []
    n = total = 0
    try:
        for item in items:
            group.append(item)
            n += item is not None
            total += size(item)
            if total >= largest or n == most:
                full, group, n, total = group, [], 0, 0
                yield full
    except KeyboardInterrupt:
        if group:
            yield group
        raise
    if group:
        yield group


def is_blank(message: Message) -> bool:
    """Whether all values of a message are missing or white space."""
    values = [message] if isinstance(message, str) else [*message.values()]
    return all(is_nothing(value) or (isinstance(value, str) and not value.strip()) for value in values)


def shown_message(message: Message) -> str:
    """A message as a person reads it: a line with name and value for each of its fields."""
    if isinstance(message, str):
        return message
    return "\n".join(f"{name}: {value}" for name, value in message.items() if not is_nothing(value))


def check_field(on: object) -> None:
    try:
        hash(on)
    except TypeError:
        raise TypeError(must_be("on", "the name of a field, as a str", on)) from None


def is_nothing(value: object) -> bool:
    """Whether a value is missing: `None` or, as in data frames, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    if isinstance(value, (str, Collection)):
        return False
    try:
        return bool(value != value)
    except (ArithmeticError, TypeError, ValueError):
        return False


def get_field(message: Mapping[Any, Any], field: object) -> Any:
    """The value of a field, or `ABSENT`. If no field has the name a.b, it is the field b of the object a."""
    if field in message:
        return message[field]
    name, dot, subfield = field.partition(".") if isinstance(field, str) else (field, "", "")
    inner = message.get(name) if dot else None
    return get_field(inner, subfield) if isinstance(inner, Mapping) else ABSENT


def outer_name(field: object, names: Collection[Any]) -> Any:
    """The name under which a message with these names has a field, or the object with the field; else `None`."""
    if field in names:
        return field
    name, dot, _ = field.partition(".") if isinstance(field, str) else (field, "", "")
    return name if dot and name in names else None


def select_fields(x: object, names: Sequence[str]) -> Mapping[Any, Any]:
    """The message, if it is a dict with at least one of these fields."""
    if not isinstance(x, (dict, Mapping)):
        field_names = ", ".join(map(str, names))
        raise TypeError(must_be("a message", f"a dict with the fields {field_names}", type_name(x)))
    for name in names:
        if name in x or get_field(x, name) is not ABSENT:
            return x
    if x:
        field_names, message_names = (", ".join(map(str, group)) for group in (names, [*x][:20]))
        raise ValueError(f"the message has none of the fields {field_names}; it has {message_names}")
    return x


class FieldsMet:
    """A check for fields that the model reads but none of many messages has. It warns once. `lacking` are the fields
    not met so far, none after the warning.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        self.lacking = [*dict.fromkeys(fields)]
        self._n = 0

    def meet(self, messages: Iterable[Any]) -> None:
        for message in messages:
            if not self.lacking:
                return
            self.lacking = [name for name in self.lacking if get_field(message, name) is ABSENT]
            self._n += 1
            if self._n == MESSAGES_WITHOUT:
                self.tell()

    def tell(self, fewest: int = FEWEST_WITHOUT) -> None:
        """Warn of the fields that no message had, if there were at least `fewest` messages."""
        if self.lacking and self._n >= fewest:
            text, self.lacking = without(self.lacking), []
            warnings.warn(f"none of {self._n:,} messages {text}", stacklevel=3)


def without(fields: Sequence[Any]) -> str:
    """The end of a warning that no message has these fields."""
    phrase = f"field{'s' * (len(fields) > 1)} {', '.join(map(str, fields[:MOST_NAMED]))}"
    return f"has the {phrase}, which the model reads"
