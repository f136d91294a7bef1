"""The rule of `adaptive` for any number of classes; a feature keeps the columns that it was taught, and no others."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import COLUMNS, FEATURES, LARGEST_SUM, TAUGHT, Declaration, Field, State, count, keys
from stream_pegasos.engine.pure.adaptive import (
    LARGEST_ADAPTIVE_WEIGHT,
    LARGEST_COEFFICIENT,
    LARGEST_EXAMPLE,
    LARGEST_LOG_RATIO,
    LEAST_SCALE,
    RESCALED_AT,
    EvidenceLearner,
    Floats,
)
from stream_pegasos.engine.pure.driver import (
    CALIBRATION,
    CONFIDENCE,
    SMALLEST_SLOPE,
    Calibration,
    ScoredExample,
    sigmoid,
)
from stream_pegasos.engine.pure.encoders import Encoder, are_unique
from stream_pegasos.engine.pure.weights import INTERCEPT, Row

# How classes become problems, each of which tells two things apart.
REDUCTIONS = ("ovr", "multilabel", "ordinal")
# Most classes are not that of an example: they are taught so only up to this share of the largest margin.
SHARE_OF_REST = 0.6
# What the squared gradients of a weight begin with, so that the first steps of rare features are not the largest of
# all.
FIRST_SQUARES = 0.001
# The slope of the probabilities makes steps larger or smaller within these limits.
LEAST_SLOPE, MOST_SLOPE = 0.25, 4.0
# The size of the steps of an offset, and what its squared gradients begin with; the same where classes are ordered.
OFFSET_RATE, OFFSET_SQUARES = 0.1, 20.0
ORDINAL_OFFSET_RATE, ORDINAL_OFFSET_SQUARES = 1.0, 1.0
# How much larger the steps of an intercept are where classes are ordered.
ORDINAL_INTERCEPT_RATE = 2.0
LARGEST_OFFSET = 1e100

OF_PROBLEM = ("intercepts", "intercept_squares", "offsets", "offset_squares")
OF_COLUMN = ("values", "gradient_squares", "taught_counts")
EVIDENCE = ("counts", "gradient_squares", "taught_counts")


# What is true where classes are ordered.
ORDERED: tuple[tuple[str, Callable[[State], bool]], ...] = (
    ("the classes have no order", lambda state: are_unique(state["order"])),
    (
        "there are not as many thresholds as classes",
        lambda state: len(state["intercepts"]) == max(len(state["order"]) - 1, 0),
    ),
)


def declared(reduction: str) -> Declaration:
    """What the state of an `AdaptiveColumnsLearner` consists of."""
    problems = "thresholds" if reduction == "ordinal" else COLUMNS

    def most(state: State) -> float:
        return LARGEST_COEFFICIENT * float(state["evidence"])

    def last_column(state: State) -> float:
        return len(state["class_counts"]) - 1

    fields = [
        Field("evidence", 1.0, RESCALED_AT),
        Field("n_examples", 0.0, most),
        Field("class_counts", 0.0, most, (COLUMNS,)),
        Field("intercepts", 0.0, LARGEST_ADAPTIVE_WEIGHT, (problems,), signed=True),
        Field("intercept_squares", 0.0, LARGEST_SUM, (problems,)),
        Field("offsets", 0.0, LARGEST_OFFSET, (problems,), signed=True),
        Field("offset_squares", 0.0, LARGEST_SUM, (problems,)),
        keys("keys", FEATURES),
        Field("log_ratios", 0.0, LARGEST_LOG_RATIO, (FEATURES,)),
        Field("counts", 0.0, most, (FEATURES,)),
        count("n_taught", FEATURES, high=lambda state: len(state["class_counts"])),
        count("taught_columns", TAUGHT, high=last_column),
        Field("values", 0.0, LARGEST_ADAPTIVE_WEIGHT, (TAUGHT,), signed=True),
        Field("gradient_squares", 0.0, LARGEST_SUM, (TAUGHT,)),
        Field("taught_counts", 0.0, most, (TAUGHT,)),
        count("n_iterations"),
        *CALIBRATION,
        *CONFIDENCE,
    ]
    conditions = [
        ("a feature has two weights", lambda state: are_unique(state["keys"])),
        ("the intercept stands among the features", lambda state: not (state["keys"] == INTERCEPT).any()),
        ("columns are of no feature", lambda state: int(state["n_taught"].sum()) == len(state["taught_columns"])),
        ("a feature has a column twice", lambda state: are_ascending(state["n_taught"], state["taught_columns"])),
    ]
    if reduction == "ordinal":
        fields.append(count("order", COLUMNS, high=last_column))
        conditions += ORDERED
    return Declaration(tuple(fields), tuple(conditions))


def are_ascending(n_taught: NDArray[np.int64], columns: NDArray[np.int64]) -> bool:
    """Whether the columns of each feature are in order."""
    of_feature = np.repeat(np.arange(len(n_taught)), n_taught)
    return bool(((np.diff(columns) > 0) | (np.diff(of_feature) > 0)).all())


@dataclass(slots=True)
class Feature:
    """The log-count ratio that a feature is scaled by, the number of examples that had it, and the classes of which it
    was taught anything, with what is known of each: in three rows the weights, the sums of their squared gradients and
    the numbers of examples of the class that had the feature.
    """

    log_ratio: float
    count: float
    classes: NDArray[np.int64]
    known: Floats


UNKNOWN = Feature(0.0, 0.0, np.zeros(0, np.int64), np.zeros((3, 0)))


@dataclass(eq=False, repr=False)
class AdaptiveColumnsLearner(EvidenceLearner):
    """Steps of AdaGrad as `AdaptiveLearner` takes them, on one scale a feature for all classes.

    The `reduction` says what y is, and which problems there are. "ovr": y is the number of a class; each class is
    learned against all others. "multilabel": y is the number of a set among `sets`, and each class in it holds; each
    class is learned by itself. "ordinal": y is the number of a class, and `order` has all classes, known or to come.
    Between two neighbours there is a problem that separates those above from those below (proportional odds, McCullagh
    1980). All problems share the weights, which are in column 0, and the margins are the logarithms of the classes'
    probabilities.

    The scale of a feature is `LEAST_SCALE` plus the largest log-count ratio that it has for a class or, with ordered
    classes, the mean size of its ratios over the problems. With "ovr" and "multilabel" the margin of each of K classes
    begins at −log(K − 1), so that each class begins with a probability of 1/K. `learning_rate` is for a slope of the
    probabilities of 1/2, as for two classes with the margins m and −m. The larger the slope, the larger the steps: it
    is large where margins are too small for how often they are right. Each problem also has an offset, learned like the
    slope; it moves the margins that predict.
    """

    several = True

    reduction: str = "ovr"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.declaration = declared(self.reduction)
        self._problems = np.zeros((len(OF_PROBLEM), 0))  # intercepts and offsets, with the sums of squared gradients
        self._class_counts = np.zeros(0)
        self._n_examples = 0.0  # as evidence
        self._is_ordinal = self.reduction == "ordinal"
        self._problem_scaling = 1.0 if self._is_ordinal else self.intercept_scaling
        self._met_order: list[int] = []  # the classes met
        self.order: NDArray[np.int64] = np.zeros(0, np.int64)
        self.sets: tuple[NDArray[np.int64], NDArray[np.int64]] = (np.zeros(1, np.int64), np.zeros(0, np.int64))

    @property
    def n_columns(self) -> int:
        return len(self._class_counts)

    @property
    def intercept(self) -> Floats:
        """What is added to the margin of each problem."""
        return np.array(self._predicting(self._base + self._problem_scaling * self._problems[0]))

    @property
    def _base(self) -> float:
        return 0.0 if self._is_ordinal else -math.log(max(self.n_columns - 1, 1))

    def _found(self, keys: Iterable[int]) -> tuple[list[Feature], Floats]:
        """The features, and what is known of all of their columns: weights, squares, counts."""
        features = [self._features.get(key, UNKNOWN) for key in keys]
        known = np.zeros((3, len(features), max(self.n_columns, int(self._is_ordinal))))
        for i, feature in enumerate(features):
            known[:, i, feature.classes] = feature.known
        return features, known

    def _scales_and_weights(self, keys: Sequence[int]) -> tuple[Floats, Floats]:
        features, (weights, _, _) = self._found(keys)
        scales = [LEAST_SCALE + feature.log_ratio if self.smoothing else 1.0 for feature in features]
        return np.array(scales, np.float64), weights[:, :1] if self._is_ordinal else weights

    def _log_ratios(self, totals: Floats, counts: Floats) -> Floats:
        """Of each feature, given how many examples had it, and how many of each class."""
        smoothing = self.smoothing * self._evidence
        if not smoothing or not self._problems.size:
            return np.zeros(len(totals))
        n_above = self._class_counts
        if self._is_ordinal:  # of those above each problem
            counts = counts[:, self._met_order[:0:-1]].cumsum(axis=1)
            n_above = n_above[self._met_order[:0:-1]].cumsum()
        odds = (counts + smoothing) / (np.maximum(totals[:, np.newaxis] - counts, 0.0) + smoothing)
        n_odds = (n_above + smoothing) / (np.maximum(self._n_examples - n_above, 0.0) + smoothing)
        ratios = np.log(odds / n_odds)
        # Of one class, how much more often at most; of ordered ones, how much more or less often on average.
        found = np.abs(ratios).mean(axis=1) if self._is_ordinal else np.where(counts > 0.0, ratios, 0.0).max(axis=1)
        return np.array(found.clip(0.0, LARGEST_LOG_RATIO))

    def _n_columns_for(self, y: Floats | None) -> int:
        if y is None or not len(y):
            return self.n_columns
        largest = self.sets[1].max(initial=-1) if self.reduction == "multilabel" else y.max()
        return max(self.n_columns, int(largest) + 1)

    def _meet(self, encoder: Encoder, row: Row) -> ScoredExample:
        """The values that the weights meet, and the margins of the problems before they predict."""
        values, weights = self._values_and_weights(row)
        margins = (values[:, np.newaxis] * weights).sum(axis=0) + self._base + self._problem_scaling * self._problems[0]
        predicting = self._logarithms(margins) if self._is_ordinal else self._predicting(margins).tolist()
        return ScoredExample(row, predicting, (values, margins))

    def _predicting(self, margins: Floats) -> Floats:
        offsets: Floats = self._problems[2] / self.calibration.slope
        return margins + offsets

    def _logarithms(self, margins: Floats) -> list[float]:
        """Of the probability of each class, of those that are ordered."""
        slope, offsets = self.calibration.slope, self._problems[2]
        return logarithms([slope * m + o for m, o in zip(margins, offsets, strict=True)], self._met_order)

    def _learn(self, encoder: Encoder, met: ScoredExample, y: float, weight: float) -> bool:
        """Whether there was a step."""
        values, margins = met.values
        classes = self._classes_of(y)
        for number in range(self.n_columns, max(classes, default=-1) + 1):
            margins = self._add_class(number, margins)
        holds = self._holds(classes)
        signs = np.where(holds, 1.0, -1.0)
        shares = np.where(holds | self._is_ordinal, 1.0, SHARE_OF_REST)
        is_near = signs * margins < shares * self.largest_margin
        weight = min(weight, LARGEST_EXAMPLE)
        gradients = np.where(is_near, -signs * self._slopes(signs * margins) * weight, 0.0)
        rate = self.learning_rate * math.sqrt(2.0 * min(max(self.calibration.slope, LEAST_SLOPE), MOST_SLOPE))
        self._calibrate(margins, holds, classes)
        if is_near.any():
            self._take_step(met.row, values, gradients, classes, weight * self._evidence, rate)
        self._end_example()
        return bool(is_near.any())

    def _classes_of(self, y: float) -> list[int]:
        if self.reduction != "multilabel":
            return [int(y)]
        starts, numbers = self.sets
        return numbers[starts[int(y)] : starts[int(y) + 1]].tolist()  # type: ignore[no-any-return]

    def _add_class(self, number: int, margins: Floats) -> Floats:
        """Make room for a class; a problem between ordered ones begins as the one that it stands beside."""
        before = self._base
        self._class_counts = np.append(self._class_counts, 0.0)
        if not self._is_ordinal:
            self._problems = np.hstack([self._problems, np.zeros((len(OF_PROBLEM), 1))])
            return np.append(margins + (self._base - before), self._base)
        ranks = {of: rank for rank, of in enumerate(self.order.tolist())}
        rank = bisect.bisect([ranks[of] for of in self._met_order], ranks[number])
        self._met_order.insert(rank, number)
        if self.n_columns == 1:
            return margins
        at = max(rank - 1, 0)
        beside = min(at, len(margins) - 1)
        new = self._problems[:, beside] if len(margins) else 0.0
        self._problems = np.insert(self._problems, at, new, axis=1)
        return np.insert(margins, at, margins[beside] if len(margins) else 0.0)

    def _holds(self, classes: list[int]) -> NDArray[np.bool_]:
        """Of each problem whether the example is a positive one."""
        if self._is_ordinal:
            return np.arange(self._problems.shape[1]) < self._met_order.index(classes[0])
        return np.isin(np.arange(self.n_columns), classes)

    def _calibrate(self, margins: Floats, holds: NDArray[np.bool_], classes: list[int]) -> None:
        """One step on the log loss of what the example is: of its class, or of each problem."""
        _, _, offsets, squares = self._problems
        if self.reduction == "ovr":
            predicting = self._predicting(margins).tolist()
            probabilities = self.calibration.learn_class(predicting, classes[0], margins.tolist())
        else:
            slope = self.calibration.slope
            probabilities = [sigmoid(slope * m + o) for m, o in zip(margins.tolist(), offsets.tolist(), strict=True)]
        errors = np.array(probabilities) - holds
        if self.reduction != "ovr":
            self.calibration.descend(float((errors * margins).sum()))
        rate, first_squares = (
            (ORDINAL_OFFSET_RATE, ORDINAL_OFFSET_SQUARES) if self._is_ordinal else (OFFSET_RATE, OFFSET_SQUARES)
        )
        squares += errors * errors
        offsets -= rate * errors / np.sqrt(squares + first_squares)

    def _take_step(
        self, row: Row, values: Floats, gradients: Floats, classes: list[int], counted: float, rate: float
    ) -> None:
        """G ← G + g², w ← w − η g / √G"""
        self._n_examples += counted
        self._class_counts[classes] += counted
        of_intercepts = gradients * self._problem_scaling
        moved = of_intercepts * of_intercepts > 0.0
        intercepts, squares = self._problems[:2]
        squares += self._evidence * (of_intercepts * of_intercepts)
        sizes = np.sqrt(squares[moved] / self._evidence)
        intercepts[moved] -= (ORDINAL_INTERCEPT_RATE if self._is_ordinal else 1.0) * rate * of_intercepts[moved] / sizes
        if self._is_ordinal:
            gradients = np.where(np.arange(self.n_columns) == 0, gradients.sum(), 0.0)  # which all problems share
        has = np.array(row.values, np.float64) != 0.0
        keys = [key for key, is_there in zip(row.keys, has.tolist(), strict=True) if is_there]
        features, (weights, squares, counts) = self._found(keys)
        gradients = np.outer(values[has], gradients)
        squares += self._evidence * (gradients * gradients)
        weights -= rate * gradients / np.sqrt(squares / self._evidence + FIRST_SQUARES)
        counts[:, classes] += counted
        totals = np.array([feature.count for feature in features]) + counted
        self._keep(keys, self._log_ratios(totals, counts), totals, np.stack([weights, squares, counts], axis=1))

    def _keep(self, keys: Iterable[int], log_ratios: Floats, totals: Floats, known: Floats) -> None:
        """What is known of some features from now on, without the columns of which nothing is."""
        for key, log_ratio, total, of_feature in zip(keys, log_ratios.tolist(), totals.tolist(), known, strict=True):
            classes = np.flatnonzero(of_feature.any(axis=0))
            self._features[key] = Feature(log_ratio, total, classes, of_feature[:, classes])

    def _weaken(self, factor: float) -> None:
        self._n_examples /= factor
        self._class_counts /= factor
        self._problems[1] /= factor
        for feature in self._features.values():
            feature.count /= factor
            feature.known[1:] /= factor

    def _shrink(self, factor: float) -> None:
        self._problems[0] *= factor
        for key, feature in self._features.items():
            feature.known[0] *= factor
            _, (_, _, counts) = self._found([key])
            (feature.log_ratio,) = self._log_ratios(np.array([feature.count]), counts).tolist()

    def get_state(self) -> State:
        features = [*self._features.values()]
        known = np.hstack([feature.known for feature in (UNKNOWN, *features)])
        state = {
            "keys": np.fromiter(self._features, np.int64, len(self)),
            "log_ratios": np.array([feature.log_ratio for feature in features], np.float64),
            "counts": np.array([feature.count for feature in features], np.float64),
            "n_taught": np.array([len(feature.classes) for feature in features], np.int64),
            "taught_columns": np.concatenate([feature.classes for feature in (UNKNOWN, *features)]),
            **dict(zip(OF_COLUMN, known, strict=True)),
            **dict(zip(OF_PROBLEM, self._problems.copy(), strict=True)),
            "class_counts": self._class_counts.copy(),
            "n_examples": self._n_examples,
            "evidence": self._evidence,
            "n_iterations": self._n_iterations,
            **self.calibration.get_state(several=True),
        }
        if self._is_ordinal:
            state["order"] = np.array(self._met_order, np.int64)
        return state

    def set_state(self, state: State) -> None:
        ends = np.cumsum(state["n_taught"])[:-1]
        taught = zip(
            np.split(state["taught_columns"].copy(), ends),
            np.split(np.array([state[name] for name in OF_COLUMN]), ends, axis=1),
            strict=True,
        )
        of_features = zip(state["log_ratios"].tolist(), state["counts"].tolist(), taught, strict=False)
        self._features = {
            key: Feature(ratio, total, classes, known)
            for key, (ratio, total, (classes, known)) in zip(state["keys"].tolist(), of_features, strict=False)
        }
        self._problems = np.array([state[name] for name in OF_PROBLEM])
        self._class_counts, self._n_examples = state["class_counts"].copy(), state["n_examples"]
        self._evidence, self._n_iterations = state["evidence"], state["n_iterations"]
        self._met_order = state["order"].tolist() if self._is_ordinal else []
        if len(self.order) < len(self._met_order):  # or it knows of classes to come
            self.order = np.array(self._met_order, np.int64)
        self.calibration.set_state(state)


def logarithms(log_odds: list[float], order: Sequence[int]) -> list[float]:
    """Of the probability of each of some ordered classes, given the log-odds of a higher one than each of them but the
    last. None can have more above it than the one before.
    """
    result = [0.0] * len(order)
    above = 1.0
    for number, odds in zip(order, [*log_odds, -math.inf], strict=False):
        next_above = min(above, sigmoid(odds)) if odds > -math.inf else 0.0
        result[number] = math.log(max(above - next_above, 1e-300))
        above = next_above
    return result


def from_two_classes(state: State) -> State:
    """The state of an "ovr" learner that knows what an `AdaptiveLearner` in this state knows: the negative class in
    column 0, the positive one in column 1. Their margins are −m and m, so that the slope is half of what it was.
    """
    n = len(state["keys"])
    ratios = np.abs(state["log_ratios"] - state["intercept_log_ratio"])
    intercept, counts = state["intercept"], np.array([state["n_negatives"], state["n_positives"]])
    return {
        **Calibration().get_state(several=True),
        "keys": state["keys"],
        "log_ratios": np.minimum(ratios, LARGEST_LOG_RATIO),
        "counts": state["positives"] + state["negatives"],
        "n_taught": np.full(n, 2),
        "taught_columns": np.tile(np.arange(2), n),
        "values": np.array([-state["values"], state["values"]]).T.ravel(),
        "gradient_squares": np.repeat(state["gradient_squares"], 2),
        "taught_counts": np.array([state["negatives"], state["positives"]]).T.ravel(),
        "intercepts": np.array([-intercept, intercept]),
        "intercept_squares": np.full(2, state["intercept_squares"]),
        "offsets": np.zeros(2),
        "offset_squares": np.zeros(2),
        "class_counts": counts,
        "n_examples": float(counts.sum()),
        "evidence": state["evidence"],
        "n_iterations": state["n_iterations"],
        "slope": max(state["slope"] / 2.0, SMALLEST_SLOPE),
        "calibration_squares": state["calibration_squares"],
    }
