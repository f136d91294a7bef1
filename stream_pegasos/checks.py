"""Checks of parameters and of states, with messages that name the value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_pegasos import _pure


def check_number(name: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is {value!r}, which is no number")
    if not low <= value <= high or math.isnan(value):
        raise ValueError(f"{name} is {value!r}; it must be from {low:g} to {high:g}")


def check_integer(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} is {value!r}, which is no int")
    if not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; it must be from {low} to {high}")


def check_bool(name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; it must be True or False")


def check_one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}")


def check_lengths(what: str, n: int, n_examples: int) -> None:
    if n != n_examples:
        raise ValueError(f"there are {n} {what} for {n_examples} examples")


def check_state(state: Mapping[str, Any], names: list[Any], batch_size: int) -> None:
    """Raise a ValueError or a TypeError if no learner can have been in this state."""
    own_keys = [name for name in names if isinstance(name, int) and -_pure.DIRECT_LIMIT < name < _pure.DIRECT_LIMIT]
    if own_keys or len(set(names)) < len(names) or list(map(_pure.plain_name, names)) != names:
        raise ValueError("the feature names are not as they were written")
    for keys, numbers in (
        (state["keys"], state["values"]),
        (state["buffer_keys"], state["buffer_values"]),
    ):
        if keys.dtype != np.int64 or numbers.dtype != np.float64 or keys.ndim != 1 or keys.shape != numbers.shape:
            raise ValueError("the weights are not as they were written")
        direct = (keys > -_pure.DIRECT_LIMIT) & (keys < _pure.DIRECT_LIMIT)
        named = (keys >= _pure.FIRST_NAME) & (keys < _pure.FIRST_NAME + len(names))
        if not (direct | named | (keys == _pure.INTERCEPT)).all() or not np.isfinite(numbers).all():
            raise ValueError("the weights are not those of features")
    if len(np.unique(state["keys"])) < len(state["keys"]):
        raise ValueError("a feature has two weights")
    check_integer("n_iterations", state["n_iterations"], 0, (1 << 63) - 1)
    check_integer("n_buffered", state["n_buffered"], 0, batch_size - 1)
    if not state["n_buffered"] and len(state["buffer_keys"]):
        raise ValueError("the buffer holds features of no example")
    check_number("|scale|", abs(state["scale"]), _pure.FOLD_BELOW, 1.0)
    check_number("|squares|", abs(state["squares"]), 0.0, 1e307)
    check_number("slope", state["slope"], _pure.SMALLEST_SLOPE, _pure.LARGEST_SLOPE)
    check_number("calibration_squares", state["calibration_squares"], 0.0, 1e307)
