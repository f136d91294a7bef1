"""Checks of parameters and of states, with messages that name the value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_pegasos.engine.pure.adaptive import LARGEST_EVIDENCE
from stream_pegasos.engine.pure.encoders import plain_name
from stream_pegasos.engine.pure.learner import LARGEST_SLOPE, SMALLEST_SLOPE
from stream_pegasos.engine.pure.weights import DIRECT_LIMIT, FIRST_NAME, FOLD_BELOW, INTERCEPT, MULTIPLIER, VALUE_LIMIT

# With l2 and the weights of examples inside these limits every sum stays finite, whatever the stream brings.
SMALLEST_L2, LARGEST_L2, LARGEST_WEIGHT = 1e-30, 1e30, 1e30
LARGEST_COUNT = 1 << 62  # so far from the end of 64 bits that no counter comes there


def check_number(name: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or np.ndim(value):
        raise TypeError(f"{name} is {value!r}, which is no number")
    if not low <= value <= high or math.isnan(value):
        raise ValueError(f"{name} is {value!r}; it must be from {low:g} to {high:g}")


def check_share(name: str, value: Any) -> None:
    check_number(name, value, 0.0, 1.0)
    if value in (0.0, 1.0):
        raise ValueError(f"{name} is {value!r}; it must be between 0 and 1, both excluded")


def check_max_features(value: Any) -> Any:
    if value is not None:
        check_integer("max_features", value, 1, 1 << 53)
    return value


def check_integer(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} is {value!r}, which is no int")
    if not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; it must be from {low} to {high}")


def check_bool(name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; it must be True or False")


def check_one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if not isinstance(value, (str, type(None))) or value not in allowed:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}")


def check_step_parameters(
    l2: Any, batch_size: Any, t0: Any, project: Any, fit_intercept: Any, intercept_scaling: Any
) -> None:
    check_number("l2", l2, SMALLEST_L2, LARGEST_L2)
    check_integer("batch_size", batch_size, 1, 1 << 31)
    check_number("t0", t0, 0.0, 1e100)
    check_bool("project", project)
    check_bool("fit_intercept", fit_intercept)
    check_number("intercept_scaling", intercept_scaling, 1e-30, 1e30)


def check_lengths(what: str, n: int, n_examples: int) -> None:
    if n != n_examples:
        raise ValueError(f"there are {n} {what} for {n_examples} examples")


def check_state(
    state: Mapping[str, Any], names: list[Any], batch_size: int, average: bool = False, only_violations: bool = False
) -> None:
    """Raise a ValueError or a TypeError if no learner can have been in this state."""
    check_weights(state, names, (len(state["keys"]),))
    check_integer("n_iterations", state["n_iterations"], 0, LARGEST_COUNT)
    check_integer("n_buffered", state["n_buffered"], 0, batch_size - 1)
    if not state["n_buffered"] and len(state["buffer_keys"]):
        raise ValueError("the buffer holds features of no example")
    check_number("|scale|", abs(state["scale"]), FOLD_BELOW, 1.0)
    check_number("|squares|", abs(state["squares"]), 0.0, LARGEST_SUM)
    check_calibration(state)
    if average:
        check_floats(state["sums"], (len(state["keys"]),))
        check_number("|sums_scale|", abs(state["sums_scale"]), 0.0, LARGEST_SUM)
        check_number("sums_weight", state["sums_weight"], 0.0, LARGEST_SUM)
    if only_violations:
        check_integer("n_violations", state["n_violations"], 0, state["n_buffered"])
    if "initial_scale" in state:
        check_number("|initial_scale|", abs(state["initial_scale"]), 0.0, 1.0)


def check_multi_state(state: Mapping[str, Any], names: list[Any], batch_size: int, n_columns: int) -> None:
    """Raise a ValueError or a TypeError if no learner of that many columns can have been in this state."""
    check_weights(state, names, (len(state["keys"]), n_columns))
    check_integers(state["buffer_columns"], (len(state["buffer_keys"]),), 0, n_columns - 1)
    check_integers(state["n_iterations"], (n_columns,), 0, LARGEST_COUNT)
    check_integers(state["n_buffered"], (n_columns,), 0, batch_size - 1)
    if not state["n_buffered"][state["buffer_columns"]].all():
        raise ValueError("the buffer holds features of no example")
    for scales, low, high in ((state["scale"], FOLD_BELOW, 1.0), (state["squares"], 0.0, LARGEST_SUM)):
        check_floats(scales, (n_columns,))
        for scale in np.abs(scales).tolist():
            check_number("a scale", scale, low, high)
    check_calibration(state)


def check_kernel_state(state: Mapping[str, Any], names: list[Any], budget: int | None = None) -> None:
    """Raise a ValueError or a TypeError if no learner with a kernel can have been in this state."""
    check_names(names)
    check_keys(state["keys"], names)
    check_floats(state["values"], (len(state["keys"]),))
    if np.abs(state["values"]).max(initial=0.0) > VALUE_LIMIT:
        raise ValueError("a support vector has a value out of its range")
    n = len(state["coefficients"])
    check_floats(state["coefficients"], (n,))
    if budget is not None and n > budget:
        raise ValueError(f"there are {n} support vectors in a budget of {budget}")
    if not state["coefficients"].all() or np.abs(state["coefficients"]).max(initial=0.0) > LARGEST_COEFFICIENT:
        raise ValueError("a support vector has a coefficient out of its range")
    check_integers(state["indptr"], (n + 1,), 0, len(state["keys"]))
    if state["indptr"][0] != 0 or state["indptr"][-1] != len(state["keys"]) or (np.diff(state["indptr"]) < 0).any():
        raise ValueError("the support vectors are not as they were written")
    for begin, end in itertools.pairwise(state["indptr"].tolist()):
        check_unique(state["keys"][begin:end])
    check_integer("n_iterations", state["n_iterations"], n, LARGEST_COUNT)
    check_calibration(state)


def check_adaptive_state(state: Mapping[str, Any], names: list[Any]) -> None:
    """Raise a ValueError or a TypeError if no adaptive learner can have been in this state."""
    check_names(names)
    check_keys(state["keys"], names)
    check_unique(state["keys"])
    if (state["keys"] == INTERCEPT).any():
        raise ValueError("the intercept stands among the features")
    check_number("evidence", state["evidence"], 1.0, LARGEST_EVIDENCE)
    most = LARGEST_COEFFICIENT * state["evidence"]
    check_number("n_positives", state["n_positives"], 0.0, most)
    check_number("n_negatives", state["n_negatives"], 0.0, most)
    check_number("intercept_squares", state["intercept_squares"], 0.0, LARGEST_SUM)
    check_number("|intercept|", abs(state["intercept"]), 0.0, LARGEST_ADAPTIVE_WEIGHT)
    check_number("|intercept_log_ratio|", abs(state["intercept_log_ratio"]), 0.0, LARGEST_LOG_RATIO)
    for name, low, high in (
        ("values", -LARGEST_ADAPTIVE_WEIGHT, LARGEST_ADAPTIVE_WEIGHT),
        ("log_ratios", -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO),
        ("gradient_squares", 0.0, LARGEST_SUM),
        ("positives", 0.0, state["n_positives"]),
        ("negatives", 0.0, state["n_negatives"]),
    ):
        check_floats(state[name], (len(state["keys"]),))
        if ((state[name] < low) | (state[name] > high)).any():
            raise ValueError(f"{name} are not from {low:g} to {high:g}")
    check_integer("n_iterations", state["n_iterations"], 0, LARGEST_COUNT)
    check_calibration(state)


# A sum of squares in a state, and whatever else grows with them, may be this large.
LARGEST_SUM = 1e307
# As many examples as can be counted, each with the largest weight of its own and the largest of its class.
LARGEST_COEFFICIENT = 2.0**63 * LARGEST_WEIGHT * LARGEST_WEIGHT
# No step of an adaptive learner is much larger than its learning rate, of up to 1e30, and none are more than 2⁶³; with
# smoothing from 1e-30 no count ratio is beyond 2⁶³ · 1e90.
LARGEST_ADAPTIVE_WEIGHT, LARGEST_LOG_RATIO = 1e60, 300.0


def check_weights(state: Mapping[str, Any], names: list[Any], shape: tuple[int, ...]) -> None:
    """The weights, of that shape, and what the buffer holds."""
    check_names(names)
    check_keys(state["keys"], names)
    check_floats(state["values"], shape)
    check_unique(state["keys"])
    check_keys(state["buffer_keys"], names)
    check_floats(state["buffer_values"], (len(state["buffer_keys"]),))


def check_names(names: list[Any]) -> None:
    own_keys = [name for name in names if isinstance(name, int) and -DIRECT_LIMIT < name < DIRECT_LIMIT]
    if own_keys or len(set(names)) < len(names) or list(map(plain_name, names)) != names:
        raise ValueError("the feature names are not as they were written")


def check_keys(keys: Any, names: list[Any]) -> None:
    check_array(keys, np.int64, (len(keys),))
    direct = (keys > -DIRECT_LIMIT) & (keys < DIRECT_LIMIT)
    named = (keys >= FIRST_NAME) & (keys < FIRST_NAME + len(names))
    if not (direct | named | (keys == INTERCEPT)).all():
        raise ValueError("the weights are not those of features")


def check_unique(keys: Any) -> None:
    hashes = keys.view(np.uint64) * np.uint64(MULTIPLIER)
    if not (hashes[1:] > hashes[:-1]).all():  # the order in which the compiled engine writes them
        hashes.sort()
        if (hashes[1:] == hashes[:-1]).any():
            raise ValueError("a feature has two weights")


def check_floats(numbers: Any, shape: tuple[int, ...]) -> None:
    check_array(numbers, np.float64, shape)
    if not np.isfinite(numbers).all():
        raise ValueError("the weights are not finite")


def check_integers(numbers: Any, shape: tuple[int, ...], low: int, high: int) -> None:
    check_array(numbers, np.int64, shape)
    if ((numbers < low) | (numbers > high)).any():
        raise ValueError(f"the counts are not from {low} to {high}")


def check_array(array: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    if array.dtype != dtype or array.shape != shape:
        raise ValueError("the weights are not as they were written")


def check_calibration(state: Mapping[str, Any]) -> None:
    check_number("slope", state["slope"], SMALLEST_SLOPE, LARGEST_SLOPE)
    check_number("calibration_squares", state["calibration_squares"], 0.0, LARGEST_SUM)
