"""The rule of `adaptive` for any number of classes; a feature keeps the columns that it was taught, and no others."""

from __future__ import annotations

import bisect
import math
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import COLUMNS, FEATURES, LARGEST_SUM, TAUGHT, Declaration, Field, State, count, keys
from stream_pegasos.engine.pure.adaptive import (
    LARGEST_ADAPTIVE_WEIGHT,
    LARGEST_COEFFICIENT,
    LARGEST_EXAMPLE,
    LARGEST_LOG_RATIO,
    LEAST_SCALE,
    MOST_COUNTED,
    RESCALED_AT,
    single,
)
from stream_pegasos.engine.pure.driver import (
    CALIBRATION,
    CONFIDENCE,
    SMALLEST_SLOPE,
    Calibration,
    Learner,
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


@dataclass(slots=True)
class Column:
    """What is known of a feature and a class: the weight, and as evidence the sum of its squared gradients and the
    number of examples of the class that had the feature; all in single precision.
    """

    weight: float = 0.0
    squares: float = 0.0
    count: float = 0.0


@dataclass(slots=True)
class Feature:
    """The log-count ratio that a feature is scaled by and the number of examples that had it, in single precision, and
    its columns.
    """

    log_ratio: float = 0.0
    count: float = 0.0
    columns: dict[int, Column] = field(default_factory=dict)


UNKNOWN = Feature()
NOTHING = Column()  # is known of a column, which is then not taught


@dataclass(slots=True)
class BinaryProblem:
    """An intercept and what is added to slope · margin, each with the sum of its squared gradients."""

    intercept: float = 0.0
    squares: float = 0.0
    offset: float = 0.0
    offset_squares: float = 0.0


OF_PROBLEM = ("intercepts", "intercept_squares", "offsets", "offset_squares")
OF_COLUMN = ("values", "gradient_squares", "taught_counts")
EVIDENCE = ("counts", "gradient_squares", "taught_counts")


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
        conditions += [
            ("the classes have no order", lambda state: are_unique(state["order"])),
            (
                "there are not as many thresholds as classes",
                lambda state: len(state["intercepts"]) == max(len(state["order"]) - 1, 0),
            ),
        ]
    return Declaration(tuple(fields), tuple(conditions))


def are_ascending(n_taught: NDArray[np.int64], columns: NDArray[np.int64]) -> bool:
    """Whether the columns of each feature are in order."""
    of_feature = np.repeat(np.arange(len(n_taught)), n_taught)
    return bool(((np.diff(columns) > 0) | (np.diff(of_feature) > 0)).all())


@dataclass(eq=False, repr=False)
class AdaptiveColumnsLearner(Learner):
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

    meets_unknown = True
    several = True

    learning_rate: float
    hinge: bool
    largest_margin: float
    smoothing: float
    half_life: float
    intercept_scaling: float
    max_features: int = 0
    reduction: str = "ovr"

    def __post_init__(self) -> None:
        super().__init__()
        self.declaration = declared(self.reduction)
        self._n_iterations = 0
        self._growth = 2.0 ** (1.0 / self.half_life) if self.half_life else 1.0
        self._features: dict[int, Feature] = {}
        self._problems: list[BinaryProblem] = []
        self._class_counts: list[float] = []
        self._n_examples = 0.0  # as evidence
        self._evidence = 1.0
        self._is_ordinal = self.reduction == "ordinal"
        self._problem_scaling = 1.0 if self._is_ordinal else self.intercept_scaling
        self._met_order: list[int] = []  # the classes met
        self.order: NDArray[np.int64] = np.zeros(0, np.int64)
        self.sets: tuple[NDArray[np.int64], NDArray[np.int64]] = (np.zeros(1, np.int64), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self._features)

    @property
    def n_iterations(self) -> int:
        return self._n_iterations

    @property
    def n_columns(self) -> int:
        return len(self._class_counts)

    @property
    def intercept(self) -> NDArray[np.float64]:
        """What is added to the margin of each problem."""
        slope = self.calibration.slope
        base = 0.0 if self._is_ordinal else -math.log(max(self.n_columns - 1, 1))
        values = [
            base + self._problem_scaling * problem.intercept + problem.offset / slope for problem in self._problems
        ]
        return np.array(values, np.float64)

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys, and what each feature weighs: margin = Σ weight · x / ‖scale · x‖ + intercept."""
        found = np.fromiter(self._features, np.int64, len(self._features))
        return found, self.weights_of(found)

    def weights_of(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = np.zeros((len(keys), 1 if self._is_ordinal else self.n_columns))
        for i, key in enumerate(keys.tolist()):
            feature = self._features.get(key, UNKNOWN)
            for column, known in feature.columns.items():
                if column < weights.shape[1]:
                    weights[i, column] = known.weight * self._scale(feature)
        return weights

    def contributions(self, encoder: Encoder, x: Any, column: int = 0) -> dict[int, float]:
        met = self._meet(encoder, encoder.row(x, True))
        encoder.forget_newest()
        found = {}
        for key, value in zip(met.row.keys, met.values[0], strict=True):
            known = self._features.get(key, UNKNOWN).columns.get(column)
            if known is not None:
                found[key] = known.weight * value
        return found

    def forget(self, share: float) -> None:
        """Keep that share of all evidence so far and, as weights grow with its root, that of the weights; from then on
        both move faster.
        """
        evidence, self._evidence = self._evidence / share, 1.0
        self._weaken(evidence)
        for problem in self._problems:
            problem.intercept *= math.sqrt(share)
        for feature in self._features.values():
            for known in feature.columns.values():
                known.weight = single(known.weight * math.sqrt(share))
            feature.log_ratio = single(self._log_ratio(feature))

    def _scale(self, feature: Feature) -> float:
        return LEAST_SCALE + feature.log_ratio if self.smoothing else 1.0

    def _log_ratio(self, feature: Feature) -> float:
        smoothing = self.smoothing * self._evidence
        if not smoothing or not self.n_columns:
            return 0.0
        return self._ordinal_ratio(feature, smoothing) if self._is_ordinal else self._largest_ratio(feature, smoothing)

    def _largest_ratio(self, feature: Feature, smoothing: float) -> float:
        """How much more often than all examples, at most, those of a class have it."""
        largest = 1.0
        for column, known in feature.columns.items():
            if known.count > 0.0:
                odds = (known.count + smoothing) / (max(feature.count - known.count, 0.0) + smoothing)
                n = self._class_counts[column]
                largest = max(largest, odds * ((max(self._n_examples - n, 0.0) + smoothing) / (n + smoothing)))
        return min(math.log(largest), LARGEST_LOG_RATIO)

    def _ordinal_ratio(self, feature: Feature, smoothing: float) -> float:
        """How much more or less often than all examples, on average over the problems, those above it have it."""
        if not self._problems:
            return 0.0
        total = above = n_above = 0.0
        for number in self._met_order[:0:-1]:
            known = feature.columns.get(number)
            above += known.count if known is not None else 0.0
            n_above += self._class_counts[number]
            odds = (above + smoothing) / (max(feature.count - above, 0.0) + smoothing)
            n_odds = (n_above + smoothing) / (max(self._n_examples - n_above, 0.0) + smoothing)
            total += abs(math.log(odds / n_odds))
        return min(total / len(self._problems), LARGEST_LOG_RATIO)

    def _n_columns_for(self, y: NDArray[np.float64] | None) -> int:
        if y is None or not len(y):
            return self.n_columns
        if self.reduction == "multilabel":
            return max(self.n_columns, int(self.sets[1].max(initial=-1)) + 1)
        return max(self.n_columns, int(y.max()) + 1)

    def _meet(self, encoder: Encoder, row: Row) -> ScoredExample:
        """The values that the weights meet, and the margins of the problems before they predict."""
        features = [self._features.get(key, UNKNOWN) for key in row.keys]
        values = [x * self._scale(feature) for feature, x in zip(features, row.values, strict=True)]
        norm = math.sqrt(sum(value * value for value in values))
        values = [value / norm for value in values] if norm else [0.0] * len(values)
        sums = [0.0] * (1 if self._is_ordinal else self.n_columns)
        for feature, value in zip(features, values, strict=True):
            for column, known in feature.columns.items():
                if column < len(sums):
                    sums[column] += known.weight * value
        if self._is_ordinal:
            margins = [sums[0] + problem.intercept for problem in self._problems]
            return ScoredExample(row, self._logarithms(margins), (values, margins))
        base = -math.log(max(self.n_columns - 1, 1))
        problems = zip(sums, self._problems, strict=True)
        margins = [base + total + self._problem_scaling * problem.intercept for total, problem in problems]
        return ScoredExample(row, self._predicting(margins), (values, margins))

    def _predicting(self, margins: list[float]) -> list[float]:
        slope = self.calibration.slope
        return [margin + problem.offset / slope for margin, problem in zip(margins, self._problems, strict=True)]

    def _logarithms(self, margins: list[float]) -> list[float]:
        """Of the probability of each class, of those that are ordered."""
        slope = self.calibration.slope
        result = [0.0] * self.n_columns
        above = 1.0
        for i, number in enumerate(self._met_order):
            next_above = 0.0
            if i < len(self._problems):
                # No problem can have more above it than that below.
                next_above = min(above, sigmoid(slope * margins[i] + self._problems[i].offset))
            result[number] = math.log(max(above - next_above, 1e-300))
            above = next_above
        return result

    def _learn(self, encoder: Encoder, met: ScoredExample, y: float, weight: float) -> bool:
        """Whether there was a step."""
        values, margins = met.values
        weight = min(weight, LARGEST_EXAMPLE)
        classes = self._classes_of(y)
        for number in range(self.n_columns, max(classes, default=-1) + 1):
            self._add_class(number, margins)
        if not self._is_ordinal:
            met.margins[:] = self._predicting(margins)
        signs = self._signs(classes)
        slopes = self._slopes(margins, signs)
        rate = self.learning_rate * math.sqrt(2.0 * min(max(self.calibration.slope, LEAST_SLOPE), MOST_SLOPE))
        self._calibrate(met.margins, margins, signs, classes)
        if slopes:
            self._take_step(
                met.row, values, {problem: slope * weight for problem, slope in slopes.items()}, classes, weight, rate
            )
        self._n_iterations += 1
        self._evidence *= self._growth
        if self._evidence >= RESCALED_AT:
            self._evidence /= RESCALED_AT
            self._weaken(RESCALED_AT)
        return bool(slopes)

    def _classes_of(self, y: float) -> list[int]:
        if self.reduction != "multilabel":
            return [int(y)]
        starts, numbers = self.sets
        return numbers[starts[int(y)] : starts[int(y) + 1]].tolist()  # type: ignore[no-any-return]

    def _add_class(self, number: int, margins: list[float]) -> None:
        """Make room for a class; a problem between ordered ones begins as the one that it stands beside."""
        self._class_counts.append(0.0)
        if not self._is_ordinal:
            shift = math.log(max(self.n_columns - 2, 1)) - math.log(max(self.n_columns - 1, 1))
            margins[:] = [margin + shift for margin in margins]
            margins.append(-math.log(max(self.n_columns - 1, 1)))
            self._problems.append(BinaryProblem())
            return
        ranks = {of: rank for rank, of in enumerate(self.order.tolist())}
        rank = bisect.bisect([ranks[of] for of in self._met_order], ranks[number])
        self._met_order.insert(rank, number)
        if self.n_columns > 1:
            at = max(rank - 1, 0)
            beside = min(at, len(self._problems) - 1)
            self._problems.insert(
                at, BinaryProblem(*astuple(self._problems[beside])) if self._problems else BinaryProblem()
            )
            margins.insert(at, margins[beside] if margins else 0.0)

    def _signs(self, classes: list[int]) -> list[float]:
        """What the example is to each problem: 1.0 or -1.0."""
        if self._is_ordinal:
            rank = self._met_order.index(classes[0])
            return [1.0 if problem < rank else -1.0 for problem in range(len(self._problems))]
        signs = [-1.0] * self.n_columns
        for number in classes:
            signs[number] = 1.0
        return signs

    def _slopes(self, margins: list[float], signs: list[float]) -> dict[int, float]:
        """Of the loss over the margin, for each problem that the example is near enough to teach."""
        slopes = {}
        for problem, (margin, sign) in enumerate(zip(margins, signs, strict=True)):
            share = SHARE_OF_REST if sign < 0.0 and not self._is_ordinal else 1.0
            if sign * margin < share * self.largest_margin:
                size = float(sign * margin < 1.0) if self.hinge else 1.0 / (1.0 + math.exp(min(sign * margin, 700.0)))
                slopes[problem] = -sign * size
        return slopes

    def _calibrate(self, predicting: list[float], margins: list[float], signs: list[float], classes: list[int]) -> None:
        """One step on the log loss of what the example is: of its class, or of each problem."""
        slope = self.calibration.slope
        if self.reduction == "ovr":
            probabilities = self.calibration.learn_class(predicting, classes[0], margins)
            rate, first_squares = OFFSET_RATE, OFFSET_SQUARES
        else:
            problems = zip(margins, self._problems, strict=True)
            probabilities = [sigmoid(slope * margin + problem.offset) for margin, problem in problems]
            errors = [p - (sign > 0.0) for p, sign in zip(probabilities, signs, strict=True)]
            self.calibration.descend(sum(error * margin for error, margin in zip(errors, margins, strict=True)))
            rate, first_squares = (
                (ORDINAL_OFFSET_RATE, ORDINAL_OFFSET_SQUARES) if self._is_ordinal else (OFFSET_RATE, OFFSET_SQUARES)
            )
        for probability, sign, problem in zip(probabilities, signs, self._problems, strict=True):
            error = probability - (sign > 0.0)
            problem.offset_squares += error * error
            problem.offset -= rate * error / math.sqrt(problem.offset_squares + first_squares)

    def _take_step(
        self,
        row: Row,
        values: list[float],
        gradients: dict[int, float],
        classes: list[int],
        weight: float,
        rate: float,
    ) -> None:
        counted = weight * self._evidence
        halving = self._n_iterations >= MOST_COUNTED and weight >= 1.0
        self._n_examples += counted
        for number in classes:
            self._class_counts[number] += counted
        intercept_rate = ORDINAL_INTERCEPT_RATE * rate if self._is_ordinal else rate
        for number, gradient in gradients.items():
            problem, gradient = self._problems[number], gradient * self._problem_scaling
            square = gradient * gradient
            if square > 0.0:
                problem.squares += self._evidence * square
                problem.intercept -= intercept_rate * gradient / math.sqrt(problem.squares / self._evidence)
        if self._is_ordinal:
            gradients = {0: sum(gradients.values())}
        for key, x, value in zip(row.keys, row.values, values, strict=True):
            if x != 0.0:
                feature = self._features.setdefault(key, Feature())
                for number, gradient in gradients.items():
                    self._move(feature.columns.setdefault(number, Column()), gradient * value, rate)
                self._count(feature, classes, counted, halving)
                feature.log_ratio = single(self._log_ratio(feature))

    def _move(self, known: Column, gradient: float, rate: float) -> None:
        known.squares = single(known.squares + self._evidence * (gradient * gradient))
        size = math.sqrt(known.squares / self._evidence + FIRST_SQUARES)
        known.weight = single(known.weight - rate * gradient / size)

    def _count(self, feature: Feature, classes: list[int], counted: float, halving: bool) -> None:
        columns = [feature.columns.setdefault(number, Column()) for number in classes]
        if halving and single(feature.count + counted) == feature.count:
            # So many that one more does not show any longer: half of them say the same of the ratios.
            feature.count = single(feature.count / 2.0)
            for known in feature.columns.values():
                known.count = single(known.count / 2.0)
        feature.count = single(feature.count + counted)
        for known in columns:
            known.count = single(known.count + counted)

    def _weaken(self, factor: float) -> None:
        """Write all evidence down as what it counts now."""
        self._n_examples /= factor
        self._class_counts = [n / factor for n in self._class_counts]
        for problem in self._problems:
            problem.squares /= factor
        for feature in self._features.values():
            feature.count = single(feature.count / factor)
            for known in feature.columns.values():
                known.squares = single(known.squares / factor)
                known.count = single(known.count / factor)

    def get_state(self) -> State:
        features = self._features.values()
        columns = [
            sorted(number for number, known in feature.columns.items() if known != NOTHING) for feature in features
        ]
        taught = [
            astuple(feature.columns[column])
            for feature, numbers in zip(features, columns, strict=True)
            for column in numbers
        ]
        problems = np.array([astuple(problem) for problem in self._problems], np.float64).reshape(-1, len(OF_PROBLEM))
        state = {
            "keys": np.fromiter(self._features, np.int64, len(self)),
            "log_ratios": np.array([feature.log_ratio for feature in features], np.float64),
            "counts": np.array([feature.count for feature in features], np.float64),
            "n_taught": np.array([len(numbers) for numbers in columns], np.int64),
            "taught_columns": np.array([column for numbers in columns for column in numbers], np.int64),
            **dict(zip(OF_COLUMN, np.array(taught, np.float64).reshape(-1, len(OF_COLUMN)).T.copy(), strict=True)),
            **dict(zip(OF_PROBLEM, problems.T.copy(), strict=True)),
            "class_counts": np.array(self._class_counts, np.float64),
            "n_examples": self._n_examples,
            "evidence": self._evidence,
            "n_iterations": self._n_iterations,
            **self.calibration.get_state(several=True),
        }
        if self._is_ordinal:
            state["order"] = np.array(self._met_order, np.int64)
        return state

    def set_state(self, state: State) -> None:
        self._features = {}
        numbers_of_taught = (map(single, state[name].tolist()) for name in OF_COLUMN)
        taught = zip(state["taught_columns"].tolist(), *numbers_of_taught, strict=True)
        of_features = ("keys", "log_ratios", "counts", "n_taught")
        for key, log_ratio, n, n_taught in zip(*(state[name].tolist() for name in of_features), strict=True):
            columns = {column: Column(*numbers) for column, *numbers in (next(taught) for _ in range(n_taught))}
            self._features[key] = Feature(single(log_ratio), single(n), columns)
        self._problems = [
            BinaryProblem(*numbers) for numbers in zip(*(state[name].tolist() for name in OF_PROBLEM), strict=True)
        ]
        self._class_counts, self._n_examples = state["class_counts"].tolist(), state["n_examples"]
        self._evidence, self._n_iterations = state["evidence"], state["n_iterations"]
        self._met_order = state["order"].tolist() if self._is_ordinal else []
        if len(self.order) < len(self._met_order):  # or it knows of classes to come
            self.order = np.array(self._met_order, np.int64)
        self.calibration.set_state(state)


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
