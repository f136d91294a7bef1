"""A join by id of messages with labels that come later or earlier."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from stream_pegasos.common.checks import LARGEST_COUNT, LARGEST_WEIGHT, check_integer, check_number
from stream_pegasos.features.message import make_message, message_size
from stream_pegasos.learners.label_policy import check_label
from stream_pegasos.streams.example import Example, Id, Truth

_LARGEST_TEXT = 1 << 26  # characters: a limit for all messages together, and for all labels together

_Value = TypeVar("_Value")


class LabelJoin:
    """Joins unlabelled messages and labels with the same id, in either order, in bounded memory.

    At most `window` messages wait for their labels, and at most `window` labels for their messages; each group has at
    most about 64 million characters. The oldest are dropped first. Ids are compared as text: 7 and `"7"` are the same.
    """

    def __init__(self, window: int = 10_000) -> None:
        check_integer("window", window, 1, 100_000_000)
        self._messages: _Window[Example] = _Window(window)
        self._labels: _Window[Truth] = _Window(window)

    @property
    def n_expired(self) -> int:
        return self._messages.n_expired + self._labels.n_expired

    def add_message(self, example: Example) -> Example | None:
        """Add a message. Return it with its label if the label has come before; otherwise it waits.

        A message with its own label, without an id or with a fault is not kept. A message replaces an older one with
        the same id.
        """
        if example.y is not None or example.id is None or example.fault is not None:
            return None
        key = str(example.id)
        y = self._labels.pop(key)
        if y is not None:
            return example._replace(y=y)
        self._messages.put(key, example, message_size(example.x))
        return None

    def add_label(self, id: object, y: Truth) -> Example | None:
        """Add a label. Return the message with this id, labelled, if it has come before; otherwise the label waits."""
        key = str(id)
        example = self._messages.pop(key)
        if example is not None:
            return example._replace(y=y)
        self._labels.put(key, y, _size(y))
        return None

    def message(self, id: object) -> Example | None:
        """The waiting message with this id, if any; it stays in the window."""
        return self._messages.get(str(id))

    def get_state(self) -> dict[str, Any]:
        """All waiting messages and labels, for `set_state`."""
        return {
            "messages": [example[:5] for _, example in self._messages.items()],  # they have no fault
            "labels": list(self._labels.items()),
            "n_expired": [self._messages.n_expired, self._labels.n_expired],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Replace the waiting messages and labels by a state of `get_state`; a smaller window keeps the newest. A
        ValueError changes nothing.
        """
        other = LabelJoin(self._messages.length)
        try:
            for row in state["messages"]:
                other.add_message(_message(*row))
            for key, y in state["labels"]:
                other.add_label(key, _label(y))
            n_messages, n_labels = state["n_expired"]
            check_integer("n_expired", n_messages, 0, 1 << 53)
            check_integer("n_expired", n_labels, 0, 1 << 53)
            other._messages.n_expired += n_messages
            other._labels.n_expired += n_labels
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"the state must be one of a LabelJoin ({error})") from None
        self._messages, self._labels = other._messages, other._labels


class _Window(Generic[_Value]):
    """Values by key. If there are too many, or they are too long, the oldest are dropped."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.n_expired = 0
        self._values: OrderedDict[str, tuple[_Value, int]] = OrderedDict()
        self._size = 0

    def put(self, key: str, value: _Value, size: int) -> None:
        self.pop(key)
        size += len(key)
        self._values[key] = value, size
        self._size += size
        while len(self._values) > self.length or self._size > _LARGEST_TEXT:
            self._size -= self._values.popitem(last=False)[1][1]
            self.n_expired += 1

    def pop(self, key: str) -> _Value | None:
        value, size = self._values.pop(key, (None, 0))
        self._size -= size
        return value

    def get(self, key: str) -> _Value | None:
        return self._values.get(key, (None, 0))[0]

    def items(self) -> Iterator[tuple[str, _Value]]:
        return ((key, value) for key, (value, _) in self._values.items())


def _message(x: object, y: object, w: float, line: int, id: Id | None) -> Example:
    if not isinstance(x, (str, dict)) or y is not None or id is None:
        raise TypeError("a message must be an unlabelled text with an id")
    check_number("w", w, 0.0, LARGEST_WEIGHT)
    check_integer("line", line, 0, LARGEST_COUNT)
    return Example(make_message(x), None, w, line, id)


def _size(y: Truth) -> int:
    return 1 + sum(map(_size, y)) if isinstance(y, tuple) else len(y) if isinstance(y, str) else 1


def _label(y: object) -> Truth:
    return tuple(map(check_label, y)) if isinstance(y, (tuple, list)) else check_label(y)
