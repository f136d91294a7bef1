"""The state of an adaptive learner, and the constants of its rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import (
    COLUMNS,
    DIMENSIONS,
    FEATURES,
    SIGN,
    TAUGHT,
    THRESHOLDS,
    Declaration,
    Field,
    State,
    count,
    keys,
)
from stream_pegasos.engine.feature_schema import (
    AGE_BITS,
    LARGEST_ADAPTIVE_WEIGHT,
    LARGEST_LOG_RATIO,
    OF_PAIR,
    OF_SEVERAL,
    most_examples,
)
from stream_pegasos.engine.pure.driver import CALIBRATION, CONFIDENCE, halved_slope
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
RESCALED_AT = 2.0**AGE_BITS
# No example counts more than this, so that the counts of features stay in the range of single precision.
LARGEST_EXAMPLE = 1e15
# Smaller sums of squared gradients count as 0, and the weight does not move.
LEAST_SQUARES = 2.0**-126
# Values with a smaller sum of squares are first enlarged, by a power of two, so that nothing is rounded.
LEAST_SQUARED_NORM, ENLARGED = 2.0**-500, 2.0**600

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
    """A feature: its numbers by the names of their fields, and its taught classes. `known` has a column for each class,
    with weight, sum of squared gradients, and number of examples.
    """

    numbers: dict[str, float]
    classes: NDArray[np.int64]
    known: Floats


SIGNS = np.array([-1.0, 1.0])  # of two classes in the column that they share


def by_class(of_first: str, of_second: str) -> Callable[[State], Floats]:
    """The numbers of two classes, from a field of each."""
    return lambda state: np.array([state[of_first], state[of_second]])


def twice(name: str) -> Callable[[State], Floats]:
    """The same number for both classes."""
    return lambda state: np.repeat(state[name], 2)


def opposite(name: str) -> Callable[[State], Floats]:
    """A number for the second class, and its opposite for the first."""
    return lambda state: np.outer(state[name], SIGNS).ravel() + 0.0  # no −0


def slope_of_joined(state: State) -> float:
    """The slope after two classes got a column each: with vectors, that of the joint weights."""
    if "joint_weights" not in state:
        return halved_slope(state)
    return halved_slope({"slope": max(float(state["joint_weights"][0]), LEAST_SLOPE)})


# Fields of the model.
EVIDENCE = Field("evidence", 1.0, RESCALED_AT, merges="joint")  # the count of an example that is learned now
N_ITERATIONS = count("n_iterations", merges="sum")
OF_INTERCEPT = (
    Field("intercept", 0.0, LARGEST_ADAPTIVE_WEIGHT, signed=True, merges="evidence", mirror=SIGN),
    Field(
        "intercept_log_ratio",
        0.0,
        LARGEST_LOG_RATIO,
        signed=True,
        merges="evidence",
        evidence=("n_positives", "n_negatives"),
        mirror=SIGN,
    ),
    Field("intercept_squares", ages=True, merges="sum"),
    Field("n_positives", 0.0, most_examples, ages=True, merges="sum", mirror="n_negatives"),
    Field("n_negatives", 0.0, most_examples, ages=True, merges="sum", mirror="n_positives"),
)


def problem_fields(owner: str) -> tuple[Field, ...]:
    """The fields of problems, one for each of these."""
    shape = (owner,)
    return (
        Field(
            "intercepts",
            0.0,
            LARGEST_ADAPTIVE_WEIGHT,
            shape,
            signed=True,
            merges="evidence",
            split=opposite("intercept"),
        ),
        Field("intercept_squares", shape=shape, ages=True, merges="sum", split=twice("intercept_squares")),
        Field("offsets", 0.0, LARGEST_OFFSET, shape, signed=True, merges="evidence", split=lambda state: np.zeros(2)),
        Field("offset_squares", shape=shape, merges="evidence", split=lambda state: np.zeros(2)),
    )


def last_column(state: State) -> float:
    return len(state["class_counts"]) - 1


# What was taught of several classes, for each feature.
OF_TAUGHT = (
    count(
        "n_taught",
        FEATURES,
        high=lambda state: len(state["class_counts"]),
        sizes=TAUGHT,
        merges="joint",
        split=lambda state: np.full(len(state["keys"]), 2),
    ),
    count(
        "taught_columns",
        TAUGHT,
        high=last_column,
        holds_columns=True,
        merges="joint",
        split=lambda state: np.tile(np.arange(2), len(state["keys"])),
    ),
)
OF_TAUGHT_COLUMNS = (
    Field("values", 0.0, LARGEST_ADAPTIVE_WEIGHT, (TAUGHT,), signed=True, merges="weight", split=opposite("values")),
    Field("gradient_squares", shape=(TAUGHT,), ages=True, merges="sum", split=twice("gradient_squares")),
    Field(
        "taught_counts",
        0.0,
        most_examples,
        (TAUGHT,),
        ages=True,
        merges="sum",
        split=lambda state: np.array([state["negatives"], state["positives"]]).T.ravel(),
    ),
)
PROBLEMS = tuple(field.name for field in problem_fields(COLUMNS))
KNOWN = tuple(field.name for field in OF_TAUGHT_COLUMNS)
# The conditions for the keys of features.
OF_KEYS: tuple[tuple[str, Callable[[State], bool]], ...] = (
    ("a feature has two weights", lambda state: are_unique(state["keys"])),
    ("the intercept stands among the features", lambda state: not (state["keys"] == INTERCEPT).any()),
)


# Fields of the dense block as a whole.
OF_BLOCK = (Field("n_vectors", ages=True, merges="joint"), Field("vector_evidence", 1.0, 2.0, merges="joint"))


def dense_fields(reduction: str) -> tuple[Field, ...]:
    """The fields of the dense block. The covariance is the lower half of a matrix, row by row."""
    shares = reduction in OF_ONE_WEIGHT
    counts = (Field("vector_counts", shape=(COLUMNS,), ages=True, merges="joint"),) if has_counts(reduction) else ()
    return (
        *OF_BLOCK,
        Field("vector_mean", 0.0, 1.0 + 1e-6, (DIMENSIONS,), signed=True, merges="joint"),
        Field("vector_covariance", 0.0, 1.0 + 1e-6, ("pairs",), signed=True, merges="joint"),
        Field(
            "vector_weights",
            0.0,
            LARGEST_VECTOR_WEIGHT,
            (DIMENSIONS,) if shares else (COLUMNS, DIMENSIONS),
            signed=True,
            merges="joint",
            mirror=SIGN if reduction == "two" else "",
            split=lambda state: np.outer(SIGNS, state["vector_weights"]),
        ),
        *counts,
        Field("joint_weights", 0.0, LARGEST_JOINT_WEIGHT, ("joint",), size=2, merges="joint"),
        Field("joint_information", shape=("information",), signed=True, size=3, merges="joint"),
    )


def has_counts(reduction: str) -> bool:
    """Whether the dense block counts the vectors of each class."""
    return reduction in ("multilabel", "ordinal")


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
    (EVIDENCE, *OF_INTERCEPT, keys("keys", FEATURES, merges="joint"), *OF_PAIR, N_ITERATIONS, *CALIBRATION, *MISTAKES),
    (*OF_KEYS, OF_VECTORS),
    dense_fields("two"),
    EVIDENCE.name,
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
    slope, *calibration = CALIBRATION
    fields = [
        EVIDENCE,
        Field(
            "n_examples",
            0.0,
            most_examples,
            ages=True,
            merges="sum",
            split=lambda state: state["n_negatives"] + state["n_positives"],
        ),
        Field(
            "class_counts",
            0.0,
            most_examples,
            (COLUMNS,),
            ages=True,
            merges="sum",
            split=by_class("n_negatives", "n_positives"),
        ),
        *problem_fields(THRESHOLDS if reduction == "ordinal" else COLUMNS),
        keys("keys", FEATURES, merges="joint"),
        *OF_SEVERAL,
        *OF_TAUGHT,
        *OF_TAUGHT_COLUMNS,
        N_ITERATIONS,
        replace(slope, split=slope_of_joined),
        *calibration,
        *CONFIDENCE,
    ]
    conditions = [
        *OF_KEYS,
        OF_VECTORS,
        ("columns are of no feature", lambda state: int(state["n_taught"].sum()) == len(state["taught_columns"])),
        ("a feature has a column twice", lambda state: are_ascending(state["n_taught"], state["taught_columns"])),
    ]
    if reduction == "ordinal":
        fields.append(count("order", COLUMNS, high=last_column, holds_columns=True, merges="joint"))
        conditions += ORDERED
    return Declaration(tuple(fields), tuple(conditions), dense_fields(reduction), EVIDENCE.name)


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
