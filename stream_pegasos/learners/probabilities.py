"""Probabilities of classes, from their margins and the calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.driver import LARGEST_LOG_ODDS

__all__ = [
    "blocks",
    "bounded_by_laplace",
    "fill_single_class",
    "for_each",
    "know_two",
    "laplace_single_class",
    "probabilities_by_class",
    "probabilities_with_labels",
]

Floats = NDArray[np.float64]
NumberLearned = int | NDArray[np.int64]  # number of examples learned before an example, or before each of several
MOST_NUMBERS = (
    1 << 18
)  # numbers in a block; without blocks, intermediate arrays would need a multiple of the result's memory


def blocks(margins: Floats) -> list[slice]:
    """All rows, in blocks of limited size."""
    size = max(1, MOST_NUMBERS // max(1, margins.shape[1]))
    return [slice(begin, begin + size) for begin in range(0, max(1, len(margins)), size)]


def probabilities_by_class(margins: Floats, calibrated: Floats) -> Floats:
    """The probability that each label holds, if several may; above one half if and only if its margin is above 0."""
    scaled: Floats = calibrated[..., :1] * margins
    np.clip(
        scaled, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, out=scaled
    )  # in place, because there may be many rows and labels
    np.exp(-scaled, out=scaled)
    np.divide(1.0, np.add(scaled, 1.0, out=scaled), out=scaled)
    return np.maximum(scaled, 0.5 + 2.0**-53, out=scaled, where=margins > 0.0)


def laplace_single_class(label: object, n_learned: NumberLearned, other: object = None) -> dict[Any, Any]:
    """The probabilities after n examples of one label, by Laplace's rule of succession; `None` is any other label. An
    array of n gives arrays.
    """
    probability = (n_learned + 1) / (n_learned + 2)
    return {label: probability, other: 1.0 - probability}


def probabilities_with_labels(probabilities: Mapping[Any, Any]) -> dict[Any, Any]:
    """The probabilities of known labels only, as River expects them; a single known label has 1. `None` stands for
    labels to come, and is no label.
    """
    return {label: 1.0 if None in probabilities else p for label, p in probabilities.items() if label is not None}


def bounded_by_laplace(probabilities: Floats, n_learned: NumberLearned) -> Floats:
    """The probabilities, limited to those of `laplace_single_class` after as many examples of one label."""
    surest = laplace_single_class(True, n_learned)[True]
    bounded: Floats = np.clip(probabilities, 1.0 - surest, surest)
    return bounded


def know_two(margins: Floats) -> bool:
    """Whether all rows know two classes. The first row is enough, because classes only come."""
    return len(margins) > 0 and int(np.isfinite(margins[0]).sum()) > 1


def fill_single_class(probabilities: Floats, margins: Floats, n_learned: NumberLearned) -> Floats:
    """The probabilities, with `laplace_single_class` in rows with a single known class; labels to come share
    the rest.
    """
    if margins.shape[1] < 2 or know_two(margins):
        return probabilities
    is_known = np.isfinite(margins)
    rows = np.flatnonzero(is_known.sum(axis=1) == 1)
    if len(rows):
        probability = laplace_single_class(True, np.broadcast_to(n_learned, len(probabilities))[rows, np.newaxis])[True]
        probabilities[rows] = np.where(is_known[rows], probability, (1.0 - probability) / (margins.shape[1] - 1))
    return probabilities


def for_each(probabilities: Mapping[Any, Any], n: int) -> tuple[tuple[Any, ...], Floats]:
    """The labels, and their probabilities with a row for each of n examples; a number is the same for all rows."""
    result = np.empty((n, len(probabilities)))
    for column, values in enumerate(probabilities.values()):
        result[:, column] = values
    return tuple(probabilities), result
