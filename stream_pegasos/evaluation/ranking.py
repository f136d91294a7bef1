"""Scores of a positive class on a growing stream: ROC AUC, exact or in constant memory, and calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.evaluation.tallies import Bools, Floats, Reliability, newest, ratio
from stream_pegasos.learners.label_policy import Label

__all__ = ["PositiveScore", "Ranking", "RankingInBins"]

Pair = tuple[Label | None, ...]

_BINS = 4_000  # for margins of each sign; margins above 3.8 million count in the last bin


class PositiveScore:
    """The margins of a positive class against a negative one, and the reliability of the positive class's probability.
    The two classes are `None` until they are known.
    """

    def __init__(self, window: int, exact: bool) -> None:
        self.classes: Pair = (None, None)
        self.reliability = Reliability()
        self._window = window
        self._ranking: Ranking | RankingInBins = Ranking() if exact else RankingInBins()
        self._newest: Floats = np.zeros((0, 2))  # columns: whether positive, margin

    def takes(self, classes: Pair) -> bool:
        """Whether these are still the same two classes, in either order."""
        if not classes or len({*self.classes, *classes} - {None}) > 2:
            return False
        # A model that only met 1 took it as positive; when 2 comes, 1 becomes negative.
        if self.classes[1] not in (None, classes[1]):
            self._ranking.swap()
            self._newest = self._newest * -1 + [1, 0]
            self.reliability.mirror()
        self.classes = classes
        return True

    def update(self, y: Bools, margins: Floats, of_truth: Floats) -> None:
        """Count examples: whether each is positive, its margin, and the probability of its true label."""
        self._ranking.update(y, margins)
        self.reliability.update(np.where(y, of_truth, 1.0 - of_truth), y)
        self._newest = newest(self._newest, np.column_stack([y, margins]), self._window)

    def add(self, other: PositiveScore) -> None:
        """Add the counts of another score of the same two classes, in the same order."""
        self._ranking.add(other._ranking)
        self.reliability.sums += other.reliability.sums
        self._newest = newest(self._newest, other._newest, self._window)

    @property
    def roc_auc(self) -> float:
        return self._ranking.roc_auc

    @property
    def window_roc_auc(self) -> float:
        ranking = Ranking()
        ranking.update(self._newest[:, 0] == 1.0, self._newest[:, 1])
        return ranking.roc_auc

    def get_state(self) -> dict[str, Any]:
        return {
            "classes": [pack(label) for label in self.classes],
            "margins": self._ranking.get_state(),
            "tenths": self.reliability.sums.tolist(),
            "newest": self._newest.tolist(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        latest = np.array(state["newest"], float).reshape(-1, 2)[-self._window :]
        negative, positive = map(unpack, state["classes"])
        self.reliability.set_state(state["tenths"])
        self._ranking = RankingInBins()
        self._ranking.set_state(state["margins"])
        self.classes, self._newest = (negative, positive), latest


class Ranking:
    """All margins of both classes. ROC AUC counts the pairs in the right order. Old and new margins are sorted, and
    only pairs with a new margin are counted, so that a curve of exact values is cheap.
    """

    def __init__(self) -> None:
        self._new: list[tuple[Bools, Floats]] = []
        self._positive: Floats = np.zeros(0)
        self._negative: Floats = np.zeros(0)
        self._half_pairs = 0

    def update(self, y: Bools, margins: Floats) -> None:
        self._new.append((y, margins))

    def add(self, other: Any) -> None:
        other._merge()
        for is_positive, margins in ((False, other._negative), (True, other._positive)):
            self.update(np.full(len(margins), is_positive), margins)

    @property
    def roc_auc(self) -> float:
        self._merge()
        return ratio(self._half_pairs, 2 * len(self._positive) * len(self._negative))

    def swap(self) -> None:
        self._merge()
        self._positive, self._negative = -self._negative[::-1], -self._positive[::-1]

    def get_state(self) -> Any:
        raise ValueError("exact scores are not written down: use exact=False")

    def _merge(self) -> None:
        """Sort the new margins into the old ones, and count the new pairs."""
        if not self._new:
            return
        y, margins = (np.concatenate(arrays) for arrays in zip(*self._new, strict=True))
        positive, negative = np.sort(margins[y]), np.sort(margins[~y])
        self._half_pairs += (
            _half_pairs(self._positive, negative)
            + _half_pairs(positive, self._negative)
            + _half_pairs(positive, negative)
        )
        self._positive = np.sort(np.concatenate([self._positive, positive]), kind="stable")  # merges two sorted runs
        self._negative = np.sort(np.concatenate([self._negative, negative]), kind="stable")
        self._new.clear()


class RankingInBins:
    """The number of margins of each class in each bin."""

    def __init__(self) -> None:
        self._counts: NDArray[np.int64] = np.zeros((2, 2 * _BINS + 1), np.int64)  # negatives, positives

    def update(self, y: Bools, margins: Floats) -> None:
        # About margin · 12,800 for small margins, and 200 · log(margin) for large ones.
        bins = np.rint(200 * np.arcsinh(64 * margins)).clip(-_BINS, _BINS).astype(np.intp) + _BINS
        np.add.at(self._counts, (y.astype(np.intp), bins), 1)

    def add(self, other: Any) -> None:
        self._counts += other._counts

    @property
    def roc_auc(self) -> float:
        negatives, positives = self._counts.astype(float)  # because the number of pairs may exceed an int64
        half_pairs = (positives * (2 * np.cumsum(negatives) - negatives)).sum()
        return ratio(half_pairs, 2 * negatives.sum() * positives.sum())

    def swap(self) -> None:
        self._counts = self._counts[::-1, ::-1].copy()

    def get_state(self) -> Any:
        """The number of each bin that is not empty, with the counts of negatives and of positives."""
        bins = np.flatnonzero(self._counts.any(axis=0))
        return np.column_stack([bins, self._counts[:, bins].T]).tolist()

    def set_state(self, state: ArrayLike) -> None:
        bins, negatives, positives = np.array(state, np.int64).reshape(-1, 3).T
        self._counts[:] = 0
        self._counts[:, bins] = negatives, positives


def _half_pairs(positive: Floats, negative: Floats) -> int:
    """Twice the number of pairs in which the positive margin is higher, plus the ties."""
    if len(positive) < len(negative):
        return _half_ranks(negative, positive)
    return 2 * len(positive) * len(negative) - _half_ranks(positive, negative)


def _half_ranks(ordered: Floats, values: Floats) -> int:
    left, right = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return int(left.sum() + right.sum())
