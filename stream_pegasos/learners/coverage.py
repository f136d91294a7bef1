"""Label sets that contain the right label as often as asked, for any stream."""

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
# Limits of the level. At the highest, every known label is in the set. Far below 0, only the most probable label is in
# it; a lower limit would take long to come back from after a drift.
LOWEST, HIGHEST = -1.0, 12.0
NEVER = -1.0  # the "probability" of a label that is not known yet


@dataclass(frozen=True)
class Coverage:
    """Adaptive conformal inference: the level, a log-odds, rises by STEP · coverage after a set without the right
    label, and falls by STEP · (1 − coverage) after a set with it. A set has the labels with a probability of at least 1
    / (1 + exp(level)). So of any n examples in a row, the share of missed labels is above 1 − coverage by at most
    (HIGHEST + STEP − LOWEST) / (STEP · n). New labels are not included: no set could have contained them; they are
    missed, but do not move the level.

    The steps are on log-odds. The published steps are on 1 − p; with many classes, these jump from few labels to all. A
    weight above 1 counts as 1.
    """

    coverage: float
    level: float
    n: float = 0.0  # sum of the weights that moved the level

    @classmethod
    def new(cls, coverage: float) -> Self:
        """A coverage before the first example: labels with a probability of at least 1 − coverage are in the set."""
        return cls(coverage, bounded(log_odds(coverage)))

    @property
    def least(self) -> float:
        """The smallest probability for which a label is in the set."""
        return least_at(self.level)

    def changed(self, coverage: float) -> Self:
        moved = self.level + log_odds(coverage) - log_odds(self.coverage)
        return replace(self, coverage=coverage, level=bounded(moved))

    def learned(self, of_truth: Floats, weights: Floats) -> tuple[Self, Floats]:
        """The coverage after some examples, and `least` before each of them. `of_truth` has the probability for which
        the right label is in the set.
        """
        level, n, least = self.level, self.n, np.empty(len(of_truth))
        for row, (p, weight) in enumerate(zip(of_truth.tolist(), weights.tolist(), strict=True)):
            least[row] = before = least_at(level)
            if p != NEVER and (weight := min(weight, 1.0)):
                level += STEP * weight * ((p < before) - (1.0 - self.coverage))
                level, n = max(level, LOWEST), n + weight
        return replace(self, level=level, n=n), least

    def merged(self, parts: Sequence[Coverage]) -> Self:
        """The coverage of models that continued from this one: its level is the mean, weighted by their learned
        examples.
        """
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
    """The coverage after a change: `None` changes nothing, and 0 asks for no sets."""
    if change is None:
        return present
    check_number("coverage", change, 0.0, 1.0)
    check_coverage(change or None)
    return change or None


def changed_coverage(present: Coverage | None, coverage: float | None) -> Coverage | None:
    if coverage is None:
        return None
    return Coverage.new(coverage) if present is None else present.changed(coverage)


# Matrices with the probability for which each label, a column, is in the set. A `least` of 0 includes all known labels.


def include_best(probabilities: Floats, is_known: NDArray[np.bool_], best: NDArray[np.intp]) -> Floats:
    """The probability of each known label; the best label, if not −1, is always in the set."""
    result = np.where(is_known, probabilities, NEVER)
    rows = np.flatnonzero(best >= 0)
    result[rows, best[rows]] = 1.0
    return result


def outward(values: Floats) -> Floats:
    """Ordered labels, each with the largest probability of itself and the labels beyond it, as seen from the best one:
    this gives an interval without gaps.
    """
    up = np.maximum.accumulate(values, axis=1)
    down = np.maximum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    inner: Floats = np.minimum(up, down)
    return inner
