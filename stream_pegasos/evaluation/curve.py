"""A curve: a bounded number of rows at evenly spaced points of a stream."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from stream_pegasos.evaluation.scores import Outcomes
from stream_pegasos.evaluation.tallies import PredictedExamples, Score

__all__ = ["MOST_ROWS", "Curve"]

MOST_ROWS = 200


def outcome_classes(outcomes: PredictedExamples) -> tuple[Any, ...]:
    """The classes that share one margin, if there are any."""
    return outcomes.classes if isinstance(outcomes, Outcomes) else ()


class Curve:
    """The rows of a growing score, one after each `step` examples. At 200 rows, every second one is dropped and the
    step is doubled.
    """

    def __init__(self, step: int) -> None:
        self.rows: list[Any] = []
        self.step = step
        self.n_waiting = 0
        self._waiting: list[Any] = []

    def wait(self, outcomes: PredictedExamples) -> None:
        """Queue outcomes, to be counted together; that is far faster than one by one."""
        self._waiting.append(outcomes)
        self.n_waiting += outcomes.n

    def count_waiting(self, score: Score, row: Callable[[], Any]) -> None:
        """Count the queued outcomes, as `update` does."""
        # Outcomes with two classes, then outcomes with more.
        for _, group in groupby(self._waiting, outcome_classes):
            same: list[Any] = [*group]
            self.update(score, same[0].joined(same), row)
        self._waiting, self.n_waiting = [], 0

    def update(self, score: Score, outcomes: PredictedExamples, row: Callable[[], Any]) -> None:
        """Count outcomes in the score, and keep a row at each point of the curve."""
        begin = 0
        while begin < outcomes.n:
            end = begin + self.step - score.n % self.step
            score.update(outcomes.part(begin, end))
            begin = end
            if score.n % self.step == 0:
                self.rows.append(row())
                if len(self.rows) == MOST_ROWS:
                    del self.rows[::2]
                    self.step *= 2
