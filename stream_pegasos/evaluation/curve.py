"""A bounded number of rows at evenly spaced points of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stream_pegasos.evaluation.tallies import PredictedExamples, Score

__all__ = ["MOST_ROWS", "Curve"]

MOST_ROWS = 200


class Curve:
    """Rows of a score as it grows, one after each `step` examples. At 200 rows, every second one is dropped, and the
    step is doubled.
    """

    def __init__(self, step: int) -> None:
        self.rows: list[Any] = []
        self.step = step

    def update(self, score: Score, outcomes: PredictedExamples, row: Callable[[], Any]) -> None:
        """Count outcomes in the score, and keep a row wherever one is due."""
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
