"""Rows at evenly spaced points of a stream, of which there are never too many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stream_pegasos.evaluation.tallies import PredictedExamples, Score

__all__ = ["MOST_ROWS", "Curve"]

MOST_ROWS = 200


class Curve:
    """What is seen of a score as it grows. When there are 200 rows, every second one is left out from then on.

    Attributes
    ----------
    rows
        The rows.
    step
        How many examples there are between two of them.
    """

    def __init__(self, step: int) -> None:
        self.rows: list[Any] = []
        self.step = step

    def update(self, score: Score, outcomes: PredictedExamples, row: Callable[[], Any]) -> None:
        """Let the score take in outcomes, and keep a row wherever one is due."""
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
