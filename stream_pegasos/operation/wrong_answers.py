"""The newest messages whose answer was wrong, to be searched and taken elsewhere."""

from __future__ import annotations

import csv
import io
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stream_pegasos.common.display import printable

__all__ = ["LONGEST_WRONG", "MOST_WRONG", "WrongAnswers", "as_csv"]

MOST_WRONG = 1_000
LONGEST_WRONG = 1_000  # characters kept of a message
COLUMNS = ("time", "number", "text", "label", "predicted", "probability", "second", "second_probability")
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 with which spreadsheets begin one


class WrongAnswers:
    """The newest 1,000 messages whose answer was wrong, in memory alone."""

    def __init__(self) -> None:
        self._newest: deque[Mapping[str, Any]] = deque(maxlen=MOST_WRONG)

    def add(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Add messages with their labels and answers, as the monitor shows them."""
        self._newest.extend(messages)

    def search(self, part: str = "") -> list[Mapping[str, Any]]:
        """The messages that have this in their text or in one of their labels, in upper or lower case, the newest
        first.
        """
        part = part.casefold()
        return [message for message in reversed(self._newest) if not part or part in _searched(message)]


def _searched(message: Mapping[str, Any]) -> str:
    labels = (
        each
        for name in ("label", "predicted")
        for each in (message[name] if isinstance(message[name], list) else [message[name]])
    )
    return "\n".join([message["text"], *map(printable, labels)]).casefold()


def as_csv(messages: Sequence[Mapping[str, Any]]) -> str:
    """Messages as CSV (RFC 4180), with several labels as JSON. A text that a spreadsheet would take for a formula has
    an apostrophe in front: it comes from strangers, and would run on the machine of whoever opens the file.

    Examples
    --------
    >>> print(as_csv([{"text": '=1+1, or "two"', "label": -1}]).splitlines()[1])
    ,,"'=1+1, or ""two\"\"",-1,,,,
    """
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(COLUMNS)
    writer.writerows([_cell(message.get(name)) for name in COLUMNS] for message in messages)
    return written.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULAS) else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (bool, list)) else value
