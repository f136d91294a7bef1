"""Checks of parameters, with messages that name the value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.state_fields import LARGEST_COUNT as LARGEST_COUNT
from stream_pegasos.common.state_fields import LARGEST_WEIGHT as LARGEST_WEIGHT

# With l2 and the weights of examples inside these limits, every sum stays finite.
SMALLEST_L2, LARGEST_L2 = 1e-30, 1e30
SMALLEST_WEIGHT = 1e-30  # smaller weights above 0 count as this


@contextmanager
def user_code(subject: str) -> Iterator[None]:
    """Turn any exception of a user's function into a ValueError, so that it costs one message only. A MemoryError and
    the end of the process still end everything.
    """
    try:
        yield
    except (MemoryError, TypeError, ValueError):
        raise
    except Exception as error:
        raise as_value_error(error, f"{subject} failed: {type(error).__name__}: {error}") from error


def as_value_error(error: Exception, text: str) -> ValueError:
    """A ValueError that also has the type of another exception, so that handlers of both types catch it. It is a plain
    ValueError if the other type has a meaning of its own for readers of messages: the end of an iterator, or a disk or
    server that fails.
    """
    if isinstance(error, (OSError, StopIteration, StopAsyncIteration)):
        return ValueError(text)
    own = {"__init__": Exception.__init__, "__str__": lambda self: text}
    try:
        value_error: ValueError = type(type(error).__name__, (ValueError, type(error)), own)(text)
    except TypeError:  # Python cannot combine the two types
        return ValueError(text)
    value_error.__dict__.update(error.__dict__)
    return value_error


def check_number(name: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") or np.ndim(value):
        raise TypeError(must_be(name, "a number", value))
    if not low <= value <= high or math.isnan(value):
        raise ValueError(must_be(name, f"from {low:g} to {high:g}", value))


def check_share(name: str, value: object) -> None:
    check_number(name, value, 0.0, 1.0)
    if value in (0.0, 1.0):
        raise ValueError(must_be(name, "between 0 and 1, both excluded", value))


def check_max_features(value: object) -> None:
    if value is not None:
        check_integer("max_features", value, 1, 1 << 53)


def check_integer(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(must_be(name, "an int", value))
    if not low <= value <= high:
        raise ValueError(must_be(name, f"from {low} to {high}", value))


def check_bool(name: str, value: object) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(must_be(name, "True or False", value))


def check_member(name: str, value: object, allowed: tuple[Any, ...]) -> None:
    if not isinstance(value, (str, type(None))) or value not in allowed:
        raise ValueError(must_be(name, f"one of {', '.join(map(repr, allowed))}", value))


def check_sequence(name: str, value: object, of: str) -> None:
    """Raise a TypeError for a single value, and for a set: it has no order, so X, y and w would not match."""
    if isinstance(value, (str, bytes, Mapping, set, frozenset)):
        raise TypeError(must_be(name, f"a sequence of {of}", type_name(value), "pass a list"))


def check_lengths(name: str, n: int, n_examples: int) -> None:
    if n != n_examples:
        raise ValueError(f"there are {n} {name} for {n_examples} examples")
