"""What the adaptive rule knows of a feature: the schema of its record, in both engines.

A new number of a feature is a line in `OF_EITHER`, and its use in the step. States, files, checks, merging, half-lives
and the growing from two classes to more follow, and so does the record of the compiled engine: its build reads this
module, which needs no NumPy, and writes the C structs. All numbers of a new feature are 0.
"""

from __future__ import annotations

from stream_pegasos.common.state_fields import (
    FEATURES,
    LARGEST_COUNT,
    LARGEST_SUM,
    LARGEST_WEIGHT,
    SIGN,
    Field,
    Limit,
    State,
)

# The largest possible count of examples, each with the largest weight of its own and of its class.
LARGEST_COEFFICIENT = 2.0 * LARGEST_COUNT * LARGEST_WEIGHT * LARGEST_WEIGHT
# No step is much larger than the learning rate, which is at most 1e30, and there are at most 2⁶³ steps; smoothing is at
# least 1e-30, so that no count ratio exceeds 2⁶³ · 1e90.
LARGEST_ADAPTIVE_WEIGHT, LARGEST_LOG_RATIO = 1e60, 300.0
ROUNDED_UP = 2.0  # the rounding of many additions raises a count by less than this factor
AGE_BITS = 16  # evidence is divided by 2 to this power when an example counts as much


def most_examples(state: State) -> float:
    return LARGEST_COEFFICIENT * float(state["evidence"])


def most_of_class(name: str) -> Limit:
    """The largest count of a feature in the examples of a class, whose count has this name."""
    return lambda state: state[name] * ROUNDED_UP


def distance_from_prior(state: State) -> object:
    """The log-ratios after two classes got a column each, which are not signed, and without that of all examples."""
    return abs(state["log_ratios"] - state["intercept_log_ratio"]).clip(None, LARGEST_LOG_RATIO)


BY_FEATURE = (FEATURES,)
# Numbers of a feature of two classes that share a column, and of one of several classes.
OF_EITHER: tuple[Field, ...] = ()
# A feature of two classes. C reads the first two at a time, and the next three with the age.
OF_PAIR = (
    Field(
        "values",
        high=LARGEST_ADAPTIVE_WEIGHT,
        shape=BY_FEATURE,
        signed=True,
        merges="weight",
        mirror=SIGN,
        record="weight",
        place=(0, 0),
    ),
    Field(
        "log_ratios",
        high=LARGEST_LOG_RATIO,
        shape=BY_FEATURE,
        signed=True,
        merges="evidence",
        evidence=("positives", "negatives"),
        mirror=SIGN,
        record="log_ratio",
    ),
    Field(
        "gradient_squares",
        high=LARGEST_SUM,
        shape=BY_FEATURE,
        ages=True,
        merges="sum",
        record="squares",
        place=(1, 0),
    ),
    Field(
        "positives",
        high=most_of_class("n_positives"),
        shape=BY_FEATURE,
        ages=True,
        merges="sum",
        counts_features=True,
        mirror="negatives",
        record="positives",
        place=(2, 1),
    ),
    Field(
        "negatives",
        high=most_of_class("n_negatives"),
        shape=BY_FEATURE,
        ages=True,
        merges="sum",
        counts_features=True,
        mirror="positives",
        record="negatives",
        place=(2, 0),
    ),
    *OF_EITHER,
)
# A feature of several classes, whose columns are stored apart.
OF_SEVERAL = (
    Field(
        "log_ratios",
        high=LARGEST_LOG_RATIO,
        shape=BY_FEATURE,
        merges="evidence",
        evidence=("counts",),
        split=distance_from_prior,
        record="log_ratio",
    ),
    Field(
        "counts",
        high=most_examples,
        shape=BY_FEATURE,
        ages=True,
        merges="sum",
        counts_features=True,
        split=lambda state: state["positives"] + state["negatives"],
        record="count",
    ),
    *OF_EITHER,
)
