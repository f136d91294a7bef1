"""Bounded memory of the newest keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeVar

from stream_pegasos.common.checks import check_integer

__all__ = ["Recent"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(OrderedDict[_Key, _Value]):
    """The newest keys, each with a value. Beyond a window of up to 100,000,000 the oldest are forgotten.

    A new value for an existing key keeps the key in its place; `move_to_end` makes it the newest. `name` is the name of
    the window in error messages.
    """

    def __init__(self, window: int, items: Iterable[tuple[_Key, _Value]] = (), name: str = "window") -> None:
        check_integer(name, window, 0, 100_000_000)
        self.window = window
        super().__init__(items)

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self.window:
            self.popitem(last=False)
