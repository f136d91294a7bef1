"""Which messages were learned, by their ids."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable

from stream_pegasos.common.checks import check_integer

Id = int | str


class LearnedIds:
    """The ids of the newest messages learned, in constant memory; 1 and `"1"` are two ids.

    Parameters
    ----------
    window
        How many are remembered.

    Raises
    ------
    TypeError, ValueError
        If `window` is no number from 0 to 100,000,000.

    Examples
    --------

    >>> from stream_pegasos.service.learned import LearnedIds
    >>> learned = LearnedIds(window=3)
    >>> learned.are_new(["a", 1, None, "1", "a"])
    [True, True, True, True, False]
    >>> learned.add(["a", 1, None, "1", "b"])
    >>> learned.ids()
    [1, '1', 'b']

    """

    def __init__(self, window: int = 100_000) -> None:
        check_integer("the window of ids", window, 0, 100_000_000)
        self._window = window
        self._ids: OrderedDict[Id, None] = OrderedDict()  # unlike a dict it finds the oldest at once

    def are_new(self, ids: Iterable[Id | None]) -> list[bool]:
        """Which of the messages are to be learned: those without an id, and those whose id comes for the first time."""
        new: set[Id] = set()
        answers = []
        for id in ids:
            if id is None:
                answers.append(True)
            else:
                answers.append(id not in self._ids and id not in new)
                new.add(id)
        return answers

    def add(self, ids: Iterable[Id | None]) -> None:
        for id in ids:
            if id is not None and id not in self._ids:
                self._ids[id] = None
        while len(self._ids) > self._window:
            self._ids.popitem(last=False)

    def ids(self) -> list[Id]:
        """All that are remembered, the oldest first."""
        return list(self._ids)

    def set_state(self, state: str) -> None:
        """Remember the ids that stand in a list of JSON, and no others.

        Raises
        ------
        ValueError
            If it is no such list.
        """
        try:
            ids = json.loads(state)
        except (TypeError, ValueError, RecursionError):
            ids = None
        if type(ids) is not list or not all(type(id) in (int, str) for id in ids):
            raise ValueError("this is no list of ids")
        self._ids = OrderedDict()
        self.add(ids)
