"""Weights of the loss by label and by example."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_WEIGHT, SMALLEST_WEIGHT, check_integer, check_lengths, check_number
from stream_pegasos.common.display import quoted
from stream_pegasos.common.errors import must_be
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.common.sums import sum_in_order
from stream_pegasos.features.frames import check_column, listed
from stream_pegasos.learners.label_policy import Label, check_label
from stream_pegasos.learners.labels import LabelColumn

__all__ = ["ClassWeight", "ClassWeights", "Counts", "Weights", "balanced_weights", "plain_weight", "read_weights"]

ClassWeight = Mapping[Label, float] | Literal["balanced", "sqrt"] | None
POWERS = {"balanced": 1.0, "sqrt": 0.5}  # of N / (K · n)
Counts = Mapping[Label, int]
Weights = NDArray[np.float64] | None  # of examples; `None` if all are 1


class ClassWeights:
    """Weights of examples: each is the product of the example's own weight and that of its label. The weight of a label
    comes from a mapping, with 1 for labels not in it; or it is "balanced", N / (K · n) after N examples of K labels, n
    of them with the label, the example included; or "sqrt", the root of that.
    """

    def __init__(self, class_weight: ClassWeight) -> None:
        check_class_weight(class_weight)
        self._of_label = class_weight
        label_weights = class_weight.items() if isinstance(class_weight, Mapping) else ()
        self._without = {label for label, weight in label_weights if not weight}
        self.counts: Counts = {}

    @property
    def is_given(self) -> bool:
        return self._of_label is not None

    @property
    def is_fixed(self) -> bool:
        """Whether the weight of a label does not depend on the learned examples."""
        return self._power is None

    @property
    def _power(self) -> float | None:
        return POWERS[self._of_label] if isinstance(self._of_label, str) else None

    def weight(self, label: Label, w: SupportsFloat) -> float:
        """The weight of an example, if the weights of labels are fixed."""
        of_label = self._of_label.get(label, 1.0) if isinstance(self._of_label, Mapping) else 1.0
        return product(of_label, plain_weight(w))

    def weights_many(
        self,
        targets: NDArray[Any],
        label_from_target: Callable[[float], Label],
        weights: Weights,
        teaches: Sequence[bool] | None = None,
    ) -> tuple[Weights, Counts]:
        """The weight of each example with that of its label; and the counts after these examples. Those that do not
        teach have the weight 0.
        """
        if weights is None and self._of_label is None:
            return None, self.counts
        weights = np.ones(len(targets)) if weights is None else weights
        weights = weights if teaches is None else weights * np.array(teaches)
        if self._of_label is None:
            return np.where(weights > 0.0, np.maximum(weights, SMALLEST_WEIGHT), 0.0), self.counts
        labels, counts = [label_from_target(target) for target in targets.tolist()], self.counts
        if isinstance(self._of_label, Mapping):
            label_weights = [self._of_label.get(label, 1.0) for label in labels]
        else:
            label_weights, counts = balanced_weights(labels, counts, (weights != 0.0).tolist(), POWERS[self._of_label])
        return np.array([product(*pair) for pair in zip(label_weights, weights.tolist(), strict=True)]), counts

    def teaching(self, y: LabelColumn, weights: Weights) -> list[bool] | None:
        """A mask of the examples with a weight above 0; `None` if all have one."""
        if not self._without:
            return None if weights is None or weights.all() else (weights != 0.0).tolist()
        teaches = itertools.repeat(True) if weights is None else (weights != 0.0).tolist()
        return [bool(of) and check_label(label) not in self._without for label, of in zip(y, teaches, strict=False)]

    def counts_with(self, labels: Iterable[Label]) -> Counts:
        return self.counts if self.is_fixed else balanced_weights(labels, self.counts)[1]

    def forget(self, label: Label) -> None:
        self.counts = {other: count for other, count in self.counts.items() if other != label}

    def get_state(self) -> Any:
        return [[pack(label), count] for label, count in self.counts.items()]

    def set_state(self, state: Sequence[Any], labels: Iterable[Label | None]) -> None:
        counts = {unpack(label): count for label, count in state}
        if len(counts) < len(state) or not counts.keys() <= set(labels):
            raise ValueError(f"there are counts of {[*counts]}, which are not the labels")
        for label, count in counts.items():
            check_integer(f"the count of {quoted(label)}", count, 1, (1 << 53) - 1)
        self.counts = counts


def read_weights(w: object, n: int) -> Weights:
    """The weight of each of `n` examples, from one number for all, or from a column of numbers."""
    values = w.tolist() if isinstance(w, np.ndarray) else w.item() if isinstance(w, np.generic) else listed(w)
    if not isinstance(values, Iterable):
        weight = plain_weight(values)
        return None if weight == 1.0 else np.full(n, weight)
    check_column("w", values, "weights")
    values = values if isinstance(values, list) else list(values)
    check_lengths("weights", len(values), n)
    return plain_weights(values)


def plain_weights(w: list[Any]) -> NDArray[np.float64]:
    if {*map(type, w)} == {float}:  # the usual case, checked at once
        weights = np.array(w)
        if weights.min() >= 0.0 and weights.max() <= LARGEST_WEIGHT:
            return weights
    return np.array([plain_weight(weight) for weight in w], np.float64)


def plain_weight(w: SupportsFloat) -> float:
    check_number("w", w, 0.0, LARGEST_WEIGHT)
    return float(w)


def product(of_label: float, w: float) -> float:
    """The product of both weights: 0 if one of them is 0, and otherwise not below the smallest weight in single
    precision.
    """
    return max(of_label * w, SMALLEST_WEIGHT) if of_label and w else 0.0


def balanced_weights(
    labels: Iterable[Label], before: Counts, teach: Iterable[bool] = itertools.repeat(True), power: float = 1.0
) -> tuple[list[float], Counts]:
    """The weight of each label, N / (K · n) to a power, 0 for an example that does not teach; and the new counts."""
    counts = dict(before)
    n = sum_in_order(counts.values())
    weights = []
    for label, teaches in zip(labels, teach, strict=False):
        if not teaches:
            weights.append(0.0)
            continue
        n += 1
        counts[label] = counts.get(label, 0) + 1
        weights.append((n / (len(counts) * counts[label])) ** power)
    return weights, counts


def check_class_weight(class_weight: object) -> None:
    if class_weight is None or (isinstance(class_weight, str) and class_weight in POWERS):
        return
    if not isinstance(class_weight, Mapping):
        expected = "a dict from label to weight, 'balanced', 'sqrt', or None"
        raise TypeError(must_be("class_weight", expected, class_weight))
    for label, weight in class_weight.items():
        check_label(label)
        check_number(f"class_weight[{quoted(label)}]", weight, 0.0, LARGEST_WEIGHT)
