"""The newest messages with wrong answers, for search, correction and export."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from stream_pegasos.blocks.predicted import Labelled
from stream_pegasos.common.display import printable
from stream_pegasos.features.message import message_size
from stream_pegasos.streams.example import Id

__all__ = ["LONGEST_WRONG", "MOST_WRONG", "WrongAnswer", "WrongAnswers", "as_csv"]

MOST_WRONG = 1_000
LONGEST_WRONG = 1_000  # characters shown of a message
LARGEST_CORRECTED = 16_000  # characters of a message that is kept whole, so that its label can be corrected
COLUMNS = (
    *("time", "number", "text", "label", "label_probability"),
    *("predicted", "probability", "second", "second_probability"),
)
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 with which spreadsheets begin one


class WrongAnswer(NamedTuple):
    """A message with a wrong answer: in the monitor's form and, unless it is large, as it was learned."""

    shown: Mapping[str, Any]
    example: Labelled | None = None
    id: Id | None = None


class WrongAnswers:
    """The newest 1,000 messages with wrong answers, only in memory."""

    def __init__(self) -> None:
        self._newest: deque[WrongAnswer] = deque(maxlen=MOST_WRONG)

    def add(self, messages: Iterable[Mapping[str, Any]], learned: Iterable[tuple[Labelled, Any]]) -> None:
        """Add messages with their labels and answers, in the monitor's form and in the learned form, with their ids."""
        for message, (example, id) in zip(messages, learned, strict=True):
            is_kept = message_size(example[0]) <= LARGEST_CORRECTED
            shown = {**message, "can_be_corrected": is_kept}
            self._newest.append(WrongAnswer(shown, example if is_kept else None, id))

    def search(self, part: str = "", first: str = "newest") -> list[Mapping[str, Any]]:
        """The messages with this part in their text or in one of their labels, in upper or lower case: the newest
        first, or else the "suspicious" ones first, whose label was the least probable.
        """
        part = part.casefold()
        messages = [wrong.shown for wrong in reversed(self._newest) if not part or part in _searched(wrong.shown)]
        if first == "suspicious":
            messages.sort(key=lambda message: math.inf if (p := message["label_probability"]) is None else p)
        return messages

    def take(self, number: int) -> WrongAnswer:
        """Remove a message, to correct it; a LookupError if it is not kept."""
        for place in reversed(range(len(self._newest))):
            wrong = self._newest[place]
            if wrong.shown["number"] == number and wrong.example is not None:
                del self._newest[place]
                return wrong
        raise LookupError(f"number: no message {number} is kept among the wrong answers")

    def give_back(self, wrong: WrongAnswer) -> None:
        """Keep a message that was not corrected."""
        self._newest.append(wrong)


def _searched(message: Mapping[str, Any]) -> str:
    labels = (
        label_list
        for name in ("label", "predicted")
        for label_list in (message[name] if isinstance(message[name], list) else [message[name]])
    )
    return "\n".join([message["text"], *map(printable, labels)]).casefold()


def as_csv(messages: Sequence[Mapping[str, Any]], columns: Sequence[str] = COLUMNS) -> str:
    """Messages as CSV (RFC 4180), with several labels as JSON. A text that a spreadsheet would take for a formula gets
    an apostrophe in front: it comes from unknown senders, and would run on the machine of the person who opens the
    file.

    Examples
    --------
    >>> print(as_csv([{"text": '=1+1, or "two"', "label": -1}]).splitlines()[1])
    ,,"'=1+1, or ""two\"\"",-1,,,,,
    """
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(columns)
    writer.writerows([_cell(message.get(name)) for name in columns] for message in messages)
    return written.getvalue()


def _cell(value: object) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULAS) else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (bool, list, tuple)) else value
