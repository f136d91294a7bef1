"""Merging weights that several parts moved at the same time, from the same values, by steps of AdaGrad."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Messages", "Places", "Steps"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

ALL = slice(None)
MOST = 1e6  # the largest F of `Steps`, with which weights arrive at once


def divided(x: Any, y: Any, otherwise: float = 0.0) -> Any:
    """x / y where y is above 0."""
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    return np.divide(x, y, out=np.full(x.shape, otherwise), where=y > 0.0)


class Messages:
    """How many messages of each part had each feature. The last feature is the intercept, which all have."""

    def __init__(self, n_features: int) -> None:
        self.counts = np.zeros(n_features)
        self._of_parts: list[tuple[Places, Floats]] = []

    def add(self, at: Places, counts: Floats) -> None:
        """Take in a part: counts of features, that of the intercept last."""
        self._of_parts.append((at, counts))
        self.counts[at] += counts

    @property
    def shares(self) -> list[float]:
        """The share of each part in all messages."""
        return [float(divided(counts[-1], self.counts[-1])) for _, counts in self._of_parts]

    def others(self, number: int, features: Places) -> Floats:
        """How large a share of the other parts' messages has each of these features."""
        at, counts = self._of_parts[number]
        others = self.counts.copy()
        others[at] -= counts
        having: Floats = divided(np.maximum(others[features], 0.0), others[-1])
        return having

    def values(self, scales: Floats, of_intercept: float) -> Floats:
        """The value of each feature in a message: its scale, divided by the root mean square of the messages' norms."""
        shares = divided(self.counts[:-1], self.counts[-1])
        norm = math.sqrt(float(shares @ (scales * scales)))
        return np.append(divided(scales, norm), of_intercept)


class Step(NamedTuple):
    """What a part did to weights: s, d and q of `Steps`."""

    at: Places
    change: Floats  # d
    added: Floats  # s
    way: Floats  # q


class Steps:
    """Weights that several parts moved by steps of AdaGrad at the same time.

    AdaGrad moves a weight by η·g/√S with each gradient g, where S is the sum of all g². Seen as a continuous flow, a
    part that adds s to S moves the weight along a way of length q = 2η(√(S + s) − √S); if the weight changes by d, the
    part's gradients add up to g = d(√(S + s) + √S)/2η. Below, Q is the way for the sum of s, and D the sum of d.

    *Contraction.* On a way q a weight covers the share 1 − exp(−Fq) of the distance to the optimum of its examples. All
    parts together cover 1 − exp(−FQ) of it. So the merged change is aD, with

        a = (1 − exp(−FQ)) / Σ over parts of (1 − exp(−Fq)),

    which is 1 if one part alone moved the weight. F says how much faster weights get there because all features of a
    message move together. The mean of FQ, weighted by s, is Σ g·D / 4 Σ s over all weights and parts. In it, Σ g·D is
    the movement of the messages' margins, each times the slope of its loss; 1/4 is the largest curvature of the loss;
    Σ s is the sum of the squared slopes. The quotient is the share of the slopes that is lost. F is at least 1, that of
    a weight alone: if probabilities are right, the mean squared slope is the mean curvature (Fisher's information).

    *Mean message.* A part does not see how the others move weights beside its own. So each part is measured by how far
    it moves the margin of the mean message of the others. In that message, p is the share of messages that have a
    feature, and v is the feature's value. With Σ the sum over features, a part moves the margin by Σ pvd on a way Σ pq.
    All parts have the way W, the sum of their Σ pq·(Q / sum of q), and should together move the margin by

        t = mean of Σ pvd · (1 − exp(−W)) / mean of (1 − exp(−Σ pq)),

    where means are over parts, weighted by their messages. After the contraction they move it by the sum of their
    Σ pvad. The weights that several parts moved make up the difference, in proportion to m/√S: an AdaGrad step on the
    mean message m of all parts.

    Each column of weights has a margin of its own; the last weights are the intercepts.
    """

    def __init__(
        self, weights: Floats, squares: Floats, rate: float | Floats, columns: Places, n_intercepts: int = 0
    ) -> None:
        self._weights, self._squares, self._columns = weights, squares, columns
        self._rate = np.broadcast_to(np.asarray(2.0 * rate), weights.shape)
        self._n_of_features = len(weights) - n_intercepts
        self._n_columns = int(columns.max(initial=-1)) + 1
        self._steps: list[Step] = []
        self._changes, self._ways, self._n_moved = (np.zeros(len(weights)) for _ in range(3))
        self.added = np.zeros(len(weights))

    def add(self, at: Places, weights: Floats, added: Floats) -> None:
        """Add a part: its weights at these places, and the squared gradients that it added there."""
        change = weights - self._weights[at]
        moved = (change != 0.0) | (added > 0.0)
        at, change, added = at[moved], change[moved], added[moved]
        self._steps.append(Step(at, change, added, self._way(at, added)))
        self.added[at] += added
        self._changes[at] += change
        self._ways[at] += self._steps[-1].way
        self._n_moved[at] += added > 0.0

    def weights(self, messages: Messages, features: Places, values: Floats) -> Floats:
        """The merged weights. `features` has the feature of each weight, and `values` is that of `Messages.values`."""
        way = self._way(ALL, self.added)
        share = self._contraction(self._faster(way), way)
        merged: Floats = self._weights + share * self._changes
        return merged + self._of_mean_message(messages, features, values, way, share)

    def _way(self, at: Places | slice, added: Floats) -> Floats:
        before = self._squares[at]
        way: Floats = divided(self._rate[at] * added, np.sqrt(before + added) + np.sqrt(before))
        return way

    def _by_column(self, at: Places | slice, x: Floats) -> Floats:
        return np.asarray(np.bincount(self._columns[at], x, self._n_columns), np.float64)

    def _faster(self, way: Floats) -> Floats:
        """F of each column."""
        lost = np.zeros(self._n_columns)
        for at, change, added, _ in self._steps:
            roots = np.sqrt(self._squares[at] + added) + np.sqrt(self._squares[at])
            lost += self._by_column(at, change * (roots / self._rate[at]) * self._changes[at])
        of_features = slice(self._n_of_features)
        slopes = self._by_column(of_features, self.added[of_features])
        mean_way = divided(self._by_column(ALL, self.added * way), self._by_column(ALL, self.added))
        faster: Floats = np.clip(divided(divided(lost, slopes) / 4.0, mean_way), 1.0, MOST)
        return faster

    def _contraction(self, faster: Floats, way: Floats) -> Floats:
        """The factor a of each weight."""
        gone = np.zeros(len(self._weights))
        for step in self._steps:
            gone[step.at] -= np.expm1(-faster[self._columns[step.at]] * step.way)
        share: Floats = divided(-np.expm1(-faster[self._columns] * way), gone, 1.0)
        return share

    def _of_mean_message(
        self, messages: Messages, features: Places, values: Floats, way: Floats, share: Floats
    ) -> Floats:
        """The changes that make up the difference between t and the sum of Σ pvad."""
        alone, gone, moved, all_ways = (np.zeros(self._n_columns) for _ in range(4))
        shortened = divided(way, self._ways)
        for number, (of_part, (at, change, _, own_way)) in enumerate(zip(messages.shares, self._steps, strict=True)):
            having = messages.others(number, features[at])
            on_change = having * values[features[at]] * change
            alone += of_part * self._by_column(at, on_change)
            gone -= of_part * np.expm1(-self._by_column(at, having * own_way))
            moved += self._by_column(at, on_change * share[at])
            all_ways += self._by_column(at, having * own_way * shortened[at])
        lacking = alone * divided(-np.expm1(-all_ways), gone, 1.0) - moved
        message = divided(messages.counts[features], messages.counts[-1]) * values[features]
        direction = np.where(self._n_moved > 1, divided(message, np.sqrt(self._squares + self.added)), 0.0)
        size = divided(lacking, self._by_column(ALL, message * direction))
        of_message: Floats = direction * size[self._columns]
        return of_message
