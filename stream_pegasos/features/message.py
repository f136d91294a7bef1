"""A message is a text or named fields. Only features look into it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

__all__ = [
    "Fields",
    "Message",
    "check_field",
    "fields_of",
    "identity_of",
    "is_blank",
    "is_nothing",
    "message_of",
    "shown_message",
    "size_of",
]

OF_A_NUMBER = 100  # characters as which a value counts that is no text


class Fields(dict[str, Any]):
    """A message of several fields, as a stream brings it. Unlike other dicts it is hashable."""

    def __hash__(self) -> int:  # type: ignore[override]
        plain = ((name, value) for name, value in self.items() if isinstance(value, (str, int, float)))
        return hash(frozenset(plain))


Message = str | Fields


def message_of(value: Any) -> Any:
    """A message that comes back from JSON."""
    return Fields(value) if isinstance(value, dict) else value


def identity_of(message: Message) -> int:
    """A number that identifies a message. Unlike the hash it depends on lists, too, and differs for -1 and -2."""
    text = message if isinstance(message, str) else json.dumps(message, sort_keys=True, default=repr)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def size_of(message: Any) -> int:
    """How large a message is, in characters; each value that is no text counts as 100."""
    if isinstance(message, str):
        return len(message)
    if isinstance(message, dict):
        return sum(map(size_of, message.values()))
    return sum(map(size_of, message)) if isinstance(message, list) else OF_A_NUMBER


def is_blank(message: Message) -> bool:
    """Whether all of its values are missing or white space."""
    values = [message] if isinstance(message, str) else [*message.values()]
    return all(value is None or (isinstance(value, str) and not value.strip()) for value in values)


def shown_message(message: Message) -> str:
    """A message as a person reads it: each of several fields on a line, behind its name."""
    if isinstance(message, str):
        return message
    return "\n".join(f"{name}: {value}" for name, value in message.items() if value is not None)


def check_field(on: Any) -> None:
    """Raise a TypeError if no field can be called so."""
    try:
        hash(on)
    except TypeError:
        raise TypeError(f"on is {on!r}, which cannot be the name of a field") from None


def is_nothing(value: Any) -> bool:
    """Whether a field has no value: `None` or, as in data frames, NaN."""
    return value is None or (isinstance(value, float) and value != value)


def fields_of(x: Any, names: Sequence[str]) -> Mapping[Any, Any]:
    """The message, if it has fields, of which one at least is read.

    Raises
    ------
    TypeError
        If it is no dict.
    ValueError
        If it has other fields alone.
    """
    if not isinstance(x, (dict, Mapping)):
        wanted = ", ".join(map(str, names))
        raise TypeError(f"a message must be a dict with the fields {wanted}, not {type(x).__name__}")
    for name in names:
        if name in x:
            return x
    if x:
        wanted, has = (", ".join(map(str, some)) for some in (names, [*x][:20]))
        raise ValueError(f"the message has none of the fields {wanted}; it has {has}")
    return x
