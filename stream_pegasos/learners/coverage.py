"""Sets of labels that hold the right one as often as asked, whatever the stream does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT, check_number, check_share
from stream_pegasos.learners.probabilities import Floats

__all__ = ["Coverage", "changed_coverage", "check_coverage", "include_best", "outward"]

STEP = 0.3
# Of the level. At the highest every known label is in the set; far below 0 the likeliest is in it alone, so the level
# goes no lower, from where it would take long to come back after a drift.
LOWEST, HIGHEST = -1.0, 12.0
NEVER = -1.0  # as a probability: of a label that is not known yet


@dataclass(frozen=True)
class Coverage:
    """Adaptive conformal inference: the level, a log-odds, rises by STEP · coverage after a set without the right label
    and falls by STEP · (1 − coverage) after one with it. A set has the labels with a probability of at least
    1 / (1 + exp(level)). So of any n examples in a row the share that is missed is above 1 − coverage by at most
    (HIGHEST + STEP − LOWEST) / (STEP · n). That is beside labels that are new: no set could have held these, so they
    are missed, but move nothing.

    Its steps are on log-odds, where the published ones are on 1 − p: with many classes those leap from few labels to
    all. A weight above 1 counts as 1.
    """

    coverage: float
    level: float
    n: float = 0.0  # the weights that moved the level

    @classmethod
    def new(cls, coverage: float) -> Self:
        """One that has learned nothing: labels with a probability of at least 1 − coverage are in the set."""
        return cls(coverage, bounded(log_odds(coverage)))

    @property
    def least(self) -> float:
        """The least probability with which a label is in the set."""
        return least_at(self.level)

    def changed(self, coverage: float) -> Self:
        moved = self.level + log_odds(coverage) - log_odds(self.coverage)
        return replace(self, coverage=coverage, level=bounded(moved))

    def learned(self, of_truth: Floats, weights: Floats) -> tuple[Self, Floats]:
        """The level after examples, given the probability with which the right label is in the set and their weights,
        and `least` before each.
        """
        level, n, least = self.level, self.n, np.empty(len(of_truth))
        for row, (p, weight) in enumerate(zip(of_truth.tolist(), weights.tolist(), strict=True)):
            least[row] = before = least_at(level)
            if p != NEVER and (weight := min(weight, 1.0)):
                level += STEP * weight * ((p < before) - (1.0 - self.coverage))
                level, n = max(level, LOWEST), n + weight
        return replace(self, level=level, n=n), least

    def merged(self, parts: Sequence[Coverage]) -> Self:
        """The level of models that continued from this one: the mean, weighted by how much each has learned."""
        learned = [part.n - self.n for part in parts]
        n = math.fsum(learned)
        if n <= 0.0:
            return self
        level = math.fsum(more / n * part.level for more, part in zip(learned, parts, strict=True))
        return replace(self, level=level, n=self.n + n)

    def get_state(self) -> Any:
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], coverage: float) -> Self:
        check_number("level", state["level"], LOWEST, HIGHEST + STEP)
        check_number("n", state["n"], 0.0, LARGEST_COUNT)
        if state["coverage"] != coverage:
            raise ValueError(f"the level is for a coverage of {state['coverage']}, not of {coverage}")
        return cls(coverage, float(state["level"]), float(state["n"]))


def bounded(level: float) -> float:
    return min(max(level, LOWEST), HIGHEST)


def least_at(level: float) -> float:
    return 0.0 if level >= HIGHEST else 1.0 / (1.0 + math.exp(level))


def log_odds(p: float) -> float:
    return math.log(p / (1.0 - p))


def check_coverage(coverage: object) -> None:
    if coverage is not None:
        check_share("coverage", coverage)


def coverage_asked(change: float | None, present: float | None) -> float | None:
    """The coverage after a change: `None` is none, and 0 asks for no sets."""
    if change is None:
        return present
    check_number("coverage", change, 0.0, 1.0)
    check_coverage(change or None)
    return change or None


def changed_coverage(present: Coverage | None, coverage: float | None) -> Coverage | None:
    if coverage is None:
        return None
    return Coverage.new(coverage) if present is None else present.changed(coverage)


# With what probability each label, a column, is in the set: in that of `least` 0 are all that are known.


def include_best(probabilities: Floats, is_known: NDArray[np.bool_], best: NDArray[np.intp]) -> Floats:
    """Each with its own; the best one, −1 for none, is always in the set."""
    result = np.where(is_known, probabilities, NEVER)
    rows = np.flatnonzero(best >= 0)
    result[rows, best[rows]] = 1.0
    return result


def outward(values: Floats) -> Floats:
    """Of ordered labels each with the largest of those beyond it, seen from the best: an interval without gaps."""
    up = np.maximum.accumulate(values, axis=1)
    down = np.maximum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    inner: Floats = np.minimum(up, down)
    return inner
