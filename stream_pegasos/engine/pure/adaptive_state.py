"""The state of an adaptive learner, and the constants of its rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT, LARGEST_WEIGHT
from stream_pegasos.common.state import (
    COLUMNS,
    DIMENSIONS,
    FEATURES,
    LARGEST_SUM,
    TAUGHT,
    Declaration,
    Field,
    State,
    count,
    keys,
)
from stream_pegasos.engine.pure.driver import (
    CALIBRATION,
    CONFIDENCE,
    SMALLEST_SLOPE,
    Calibration,
    squares_of_confidence,
)
from stream_pegasos.engine.pure.encoders import are_unique
from stream_pegasos.engine.pure.half_life import STEADY
from stream_pegasos.engine.pure.mistakes import MISTAKES
from stream_pegasos.engine.pure.weights import INTERCEPT

Floats = NDArray[np.float64]

# Reductions of several classes to problems of two classes.
REDUCTIONS = ("two", "ovr", "multilabel", "ordinal")
# Reductions whose problems share the weights.
OF_ONE_WEIGHT = ("two", "ordinal")

# The scale of a feature that says nothing about the label by itself; it may say something beside others.
LEAST_SCALE = 0.3
# All evidence is divided by this number when an example counts this much. It is a power of two, so nothing is rounded.
RESCALED_AT = 2.0**16
# No example counts more than this, so that the counts of features stay in the range of single precision.
LARGEST_EXAMPLE = 1e15
# Smaller sums of squared gradients count as 0, and the weight does not move.
LEAST_SQUARES = 2.0**-126
# Values with a smaller sum of squares are first enlarged, by a power of two, so that nothing is rounded.
LEAST_SQUARED_NORM, ENLARGED = 2.0**-500, 2.0**600
ROUNDED_UP = 2.0  # the rounding of many additions raises a count by less than this factor

# The largest possible count of examples, each with the largest weight of its own and of its class.
LARGEST_COEFFICIENT = 2.0 * LARGEST_COUNT * LARGEST_WEIGHT * LARGEST_WEIGHT
# No step is much larger than the learning rate, which is at most 1e30, and there are at most 2⁶³ steps; smoothing is at
# least 1e-30, so that no count ratio exceeds 2⁶³ · 1e90.
LARGEST_ADAPTIVE_WEIGHT, LARGEST_LOG_RATIO = 1e60, 300.0

# The first steps are this much larger if values differ; half of that is left after `EMPHASIZED` examples.
EMPHASIS, EMPHASIZED = 2.0, 1000.0

# A class other than the example's learns if its y · margin is at most this share of the largest margin that learns.
SHARE_OF_REST = 0.6
# The first value of a weight's squared gradients, so that rare features do not take the largest steps of all.
FIRST_SQUARES = 0.001
# The slope of the probabilities scales the steps within these limits.
LEAST_SLOPE, MOST_SLOPE = 0.25, 4.0
# The step size of an offset, and the first value of its squared gradients; the same two for ordered classes.
OFFSET_RATE, OFFSET_SQUARES = 0.1, 20.0
ORDINAL_OFFSET_RATE, ORDINAL_OFFSET_SQUARES = 1.0, 1.0
# A class that comes late begins as rare as if it had been met this often, but not rarer than the limit.
FIRST_COUNT, LEAST_RARITY = 5.0, 1e-9
BEYOND = 1.5  # extra margin between a new outermost class and clear examples of its neighbour
# The factor for the steps of an intercept, with ordered classes.
ORDINAL_INTERCEPT_RATE = 2.0
LARGEST_OFFSET = 1e100

# Constants of the dense block: the variance of a weight, divided by the number of classes; the error below which no
# step is taken; the share of the features' margins that several classes are learned beside.
PRIOR_VARIANCE, SURE_BELOW, SHARE_BESIDE = 1 / 8, 0.3, 0.5
# The joint weights of the margins of features and of vectors: their first values, the precision of these, and the share
# of earlier evidence that is left after each example.
FIRST_JOINT_WEIGHTS, JOINT_PRECISION, JOINT_MEMORY = (1.0, 1.5), (10.0, 1.0), 1.0 - 1.0 / 1000.0
LARGEST_JOINT_WEIGHT, LARGEST_MARGIN_JOINED, LARGEST_JOINED = 1e3, 1e4, 1e100
# No step is taken if less variance is left: single precision ends there.
LEAST_SPREAD, LARGEST_VECTOR_WEIGHT = 1e-6, 1e30


@dataclass(slots=True)
class Feature:
    """A feature: the log-count ratio that scales it, the number of examples with it, and its taught classes. `known`
    has a column for each class, with weight, sum of squared gradients, and number of examples.
    """

    log_ratio: float
    count: float
    classes: NDArray[np.int64]
    known: Floats


OF_PROBLEM = ("intercepts", "intercept_squares", "offsets", "offset_squares")
OF_DENSE = ("vector_mean", "vector_covariance", "vector_weights", "joint_weights", "joint_information")
OF_COLUMN = ("values", "gradient_squares", "taught_counts")
OF_TAUGHT = ("taught_columns", *OF_COLUMN)


def number_fields(names: tuple[str, ...], *shape: str) -> tuple[Field, ...]:
    """The fields of a feature, or of the intercept, under these names."""
    weight, log_ratio, squares, positives, negatives = names

    def most(of: str) -> Callable[[State], float]:
        return lambda state: state[of] * ROUNDED_UP if shape else LARGEST_COEFFICIENT * state["evidence"]

    return (
        Field(weight, 0.0, LARGEST_ADAPTIVE_WEIGHT, shape, signed=True),
        Field(log_ratio, 0.0, LARGEST_LOG_RATIO, shape, signed=True),
        Field(squares, 0.0, LARGEST_SUM, shape),
        Field(positives, 0.0, most("n_positives"), shape),
        Field(negatives, 0.0, most("n_negatives"), shape),
    )


OF_FEATURE = ("values", "log_ratios", "gradient_squares", "positives", "negatives")
OF_INTERCEPT = ("intercept", "intercept_log_ratio", "intercept_squares", "n_positives", "n_negatives")
EVIDENCE = Field("evidence", 1.0, RESCALED_AT)  # the count of an example that is learned now
# The conditions for the keys of features.
OF_KEYS: tuple[tuple[str, Callable[[State], bool]], ...] = (
    ("a feature has two weights", lambda state: are_unique(state["keys"])),
    ("the intercept stands among the features", lambda state: not (state["keys"] == INTERCEPT).any()),
)


def dense_fields(reduction: str) -> tuple[Field, ...]:
    """The fields of the dense block. The covariance is the lower half of a matrix, row by row."""
    shape = (DIMENSIONS,) if reduction in OF_ONE_WEIGHT else (COLUMNS, DIMENSIONS)
    counts = (Field("vector_counts", 0.0, LARGEST_SUM, (COLUMNS,)),) if reduction in ("multilabel", "ordinal") else ()
    return (
        Field("n_vectors", 0.0, LARGEST_SUM),
        Field("vector_evidence", 1.0, 2.0),
        Field("vector_mean", 0.0, 1.0 + 1e-6, (DIMENSIONS,), signed=True),
        Field("vector_covariance", 0.0, 1.0 + 1e-6, ("pairs",), signed=True),
        Field("vector_weights", 0.0, LARGEST_VECTOR_WEIGHT, shape, signed=True),
        *counts,
        Field("joint_weights", 0.0, LARGEST_JOINT_WEIGHT, ("joint",), size=2),
        Field("joint_information", 0.0, LARGEST_SUM, ("information",), signed=True, size=3),
    )


def is_covariance(state: State) -> bool:
    """Whether the covariance is the lower half of a matrix of the right size, with no entry larger than variances
    allow.
    """
    if "vector_mean" not in state:
        return True
    n = len(state["vector_mean"])
    if n == 0 or len(state["vector_covariance"]) != n * (n + 1) // 2:
        return False
    rows, columns = np.tril_indices(n)
    variances = state["vector_covariance"][rows == columns]
    most = np.sqrt(np.maximum(variances[rows] * variances[columns], 0.0))
    return bool((variances >= 0.0).all() and (np.abs(state["vector_covariance"]) <= 1.001 * most + LEAST_SPREAD).all())


OF_VECTORS: tuple[str, Callable[[State], bool]] = ("the covariance is none of the vectors", is_covariance)
OF_TWO_CLASSES = Declaration(
    (
        EVIDENCE,
        *number_fields(OF_INTERCEPT),
        keys("keys", FEATURES),
        *number_fields(OF_FEATURE, FEATURES),
        count("n_iterations"),
        *CALIBRATION,
        *MISTAKES,
    ),
    (*OF_KEYS, OF_VECTORS),
    dense_fields("two"),
)


# The conditions for ordered classes.
ORDERED: tuple[tuple[str, Callable[[State], bool]], ...] = (
    ("the classes have no order", lambda state: are_unique(state["order"])),
    (
        "there are not as many thresholds as classes",
        lambda state: len(state["intercepts"]) == max(len(state["order"]) - 1, 0),
    ),
)


@cache
def declared(reduction: str, growing_half_life: bool = False) -> Declaration:
    if growing_half_life:
        fixed = declared(reduction)
        return replace(fixed, fields=fixed.fields + STEADY)
    if reduction == "two":
        return OF_TWO_CLASSES
    problems = "thresholds" if reduction == "ordinal" else COLUMNS

    def most(state: State) -> float:
        return LARGEST_COEFFICIENT * float(state["evidence"])

    def last_column(state: State) -> float:
        return len(state["class_counts"]) - 1

    fields = [
        EVIDENCE,
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
        *OF_KEYS,
        OF_VECTORS,
        ("columns are of no feature", lambda state: int(state["n_taught"].sum()) == len(state["taught_columns"])),
        ("a feature has a column twice", lambda state: are_ascending(state["n_taught"], state["taught_columns"])),
    ]
    if reduction == "ordinal":
        fields.append(count("order", COLUMNS, high=last_column))
        conditions += ORDERED
    return Declaration(tuple(fields), tuple(conditions), dense_fields(reduction))


def are_ascending(n_taught: NDArray[np.int64], columns: NDArray[np.int64]) -> bool:
    of_feature = np.repeat(np.arange(len(n_taught)), n_taught)
    return bool(((np.diff(columns) > 0) | (np.diff(of_feature) > 0)).all())


def add_class_problem(problems: Floats, labels_met: list[int], order: list[int], number: int) -> Floats:
    """The problems between ordered classes after a new class. The new problem is a copy of its neighbour."""
    rank = sum(order.index(label) < order.index(number) for label in labels_met)
    labels_met.insert(rank, number)
    if len(labels_met) == 1:
        return problems
    at, last = max(rank - 1, 0), problems.shape[1] - 1
    return np.insert(problems, at, problems[:, min(at, last)] if last >= 0 else 0.0, axis=1)


def rarity(n_classes: int, counted: float, n_examples: float) -> float:
    """The log-odds of a class met once in `n_examples`, minus the log-odds of one among equal classes; 0 if it is not
    rarer.
    """
    return min(0.0, math.log(max(FIRST_COUNT * n_classes * counted / n_examples, LEAST_RARITY)))


def begin_rare(problems: Floats, rare: float, number: int, order: list[int], slope: float) -> None:
    """Make the newest class about as rare as it is in the stream. An ordered class between others starts with nothing
    of its neighbours; a new outermost class starts beyond the clear examples of its neighbour.
    """
    if has_problem_each(problems, order):
        problems[2, number] += rare
    elif sign := side(order, number):
        at = 0 if sign < 0 else -1
        problems[2:, at] = problems[2, at] + sign * rare * (1.0 + BEYOND * slope), 0.0


def give_back(problems: Floats, rare: float, number: int, order: list[int], slope: float) -> None:
    """Give a class half of its starting rarity back; for a new outermost ordered class, half of its extra distance."""
    if has_problem_each(problems, order):
        offset = problems[2, number]
        problems[2, number] = min(max(offset, rare) - rare / 2.0, max(offset, 0.0))
    elif sign := side(order, number):
        problems[2, 0 if sign < 0 else -1] -= sign * rare * BEYOND * slope / 2.0


def has_problem_each(problems: Floats, order: list[int]) -> bool:
    """Whether each class has a problem of its own. Ordered classes have one problem less."""
    return bool(problems.shape[1] != len(order) - 1)


def side(order: list[int], number: int) -> int:
    """1 for the last of three ordered classes or more, −1 for the first, 0 for one between."""
    return (order[-1] == number) - (order[0] == number) if len(order) > 2 else 0


def slopes(agreements: Floats, hinge: bool) -> Floats:
    """The slope of the loss over y · margin, with a positive sign."""
    if hinge:
        return (agreements < 1.0).astype(np.float64)
    return 1.0 / (1.0 + np.exp(np.minimum(agreements, 700.0)))


def in_columns(state: State, signs: Floats) -> State:
    """A state of two classes with a column for each, the negative class first. `signs` multiply the weight in each
    column.
    """
    n, squares = len(state["keys"]), signs * signs
    class_counts = np.array([state["n_negatives"], state["n_positives"]])
    return state | {
        "counts": state["positives"] + state["negatives"],
        "n_taught": np.full(n, 2),
        "taught_columns": np.tile(np.arange(2), n),
        "values": np.outer(state["values"], signs).ravel() + 0.0,  # no −0
        "gradient_squares": np.outer(state["gradient_squares"], squares).ravel(),
        "taught_counts": np.array([state["negatives"], state["positives"]]).T.ravel(),
        "intercepts": (state["intercept"] * signs)[signs != 0.0] + 0.0,
        "intercept_squares": (state["intercept_squares"] * squares)[signs != 0.0],
        "offsets": np.zeros(np.count_nonzero(signs)),
        "offset_squares": np.zeros(np.count_nonzero(signs)),
        "class_counts": class_counts,
        "n_examples": float(class_counts.sum()),
    }


def from_two_classes(state: State) -> State:
    """The state as of an "ovr" learner: the negative class in column 0, the positive class in 1. The margins become −m
    and m, so the slope is halved.
    """
    ratios = np.abs(state["log_ratios"] - state["intercept_log_ratio"])
    slope = max(float(state["joint_weights"][0]), LEAST_SLOPE) if "joint_weights" in state else state["slope"]
    new_state = Calibration().get_state(has_columns=True) | in_columns(state, np.array([-1.0, 1.0]))
    new_state |= squares_of_confidence(state)
    new_state |= {"log_ratios": np.minimum(ratios, LARGEST_LOG_RATIO), "slope": max(slope / 2.0, SMALLEST_SLOPE)}
    if "vector_weights" in state:
        new_state["vector_weights"] = np.outer([-1.0, 1.0], state["vector_weights"])
    return {field.name: new_state[field.name] for field in declared("ovr", "n_steady" in state).select_fields(state)}
