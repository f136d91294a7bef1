"""Bounded memory: what came last stays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeVar

from stream_pegasos.common.checks import check_integer

__all__ = ["Recent"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(OrderedDict[_Key, _Value]):
    """The newest keys, each with a value. Beyond a number of them the oldest are forgotten.

    A new value for a key that is there leaves it in its place; `move_to_end` makes it the newest.

    Parameters
    ----------
    window
        How many keys are remembered, from 0 to 100,000,000.
    items
        Pairs of a key and its value, the oldest first.
    name
        What the window is called where it is refused.

    Raises
    ------
    TypeError, ValueError
        If `window` is out of its range.

    Examples
    --------

    >>> from stream_pegasos.operation.recent import Recent
    >>> recent = Recent(window=2)
    >>> recent["a"], recent["b"], recent["c"] = 1, 2, 3
    >>> list(recent)
    ['b', 'c']

    """

    def __init__(self, window: int, items: Iterable[tuple[_Key, _Value]] = (), name: str = "window") -> None:
        check_integer(name, window, 0, 100_000_000)
        self.window = window
        super().__init__(items)

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self.window:
            self.popitem(last=False)
