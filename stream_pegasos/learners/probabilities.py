"""Probabilities of classes, from margins and what the engine learned of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.driver import AS_LIKELY, LARGEST_LOG_ODDS

__all__ = ["blocks", "for_each", "of_classes", "of_each", "of_example", "of_only"]

Floats = NDArray[np.float64]
MOST_NUMBERS = 1 << 18  # that are worked on at a time, or what is found on the way takes many times what is returned


def in_blocks(find: Callable[[Floats, Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    """Find probabilities of many examples by some rows at a time."""

    @functools.wraps(find)
    def found(margins: Floats, calibrated: Floats) -> Floats:
        if margins.ndim < 2 or calibrated.shape[1] == 1 or margins.size <= MOST_NUMBERS:
            return find(margins, calibrated)
        made = np.empty(margins.shape)
        for rows in blocks(margins):
            made[rows] = find(margins[rows], calibrated[rows])
        return made

    return found


def blocks(margins: Floats) -> list[slice]:
    """All rows, in parts of which none is large."""
    size = max(1, MOST_NUMBERS // max(1, margins.shape[1]))
    return [slice(begin, begin + size) for begin in range(0, max(1, len(margins)), size)]


@in_blocks
def of_classes(margins: Floats, calibrated: Floats) -> Floats:
    """The probabilities of classes that exclude each other, for one example or, row by row, for several. They are
    proportional to exp(slope · margin), except that the largest, if no other is as large, is replaced by the confidence
    in it (see the engine's `Calibration`).

    Parameters
    ----------
    margins
        The margins of each example, with its classes in the last dimension; −inf for a class yet to come.
    calibrated
        The slope, and the intercept and the slope of the confidence, in the last dimension. If two classes share one
        margin, the probability of the second class, alone or followed by NaN.
    """
    if not margins.shape[-1]:
        return margins
    if margins.ndim > 1:
        if calibrated.shape[1] == 1:
            return np.concatenate((1.0 - calibrated, calibrated), axis=1)
        if np.isnan(calibrated[:, 1]).any():
            return with_shared(margins, calibrated)
    # Before any class is known every margin is −inf, and no label has a probability.
    largest = margins.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", over="ignore"):
        terms = np.exp(calibrated[..., :1] * (margins - largest))
    total = terms.sum(axis=-1, keepdims=True)
    probabilities: Floats = np.divide(terms, total, out=np.zeros_like(terms), where=total > 0.0)
    return with_confidence(probabilities, margins, calibrated)


def of_example(margins: Sequence[float] | Floats, calibrated: Sequence[float]) -> list[float]:
    """What `of_classes` gives for one example."""
    if len(calibrated) == 1:
        return [1.0 - calibrated[0], calibrated[0]]
    return of_classes(np.array(margins), np.array(calibrated)).tolist()  # type: ignore[no-any-return]


def with_shared(margins: Floats, calibrated: Floats) -> Floats:
    """What `of_classes` gives if two classes share one margin in some rows."""
    probabilities = np.where(np.arange(margins.shape[1]) > 0, calibrated[:, :1], 1.0 - calibrated[:, :1])
    others = ~np.isnan(calibrated[:, 1])
    probabilities[others] = of_classes(margins[others], calibrated[others])
    return np.where(np.isfinite(margins), probabilities, 0.0)


def with_confidence(probabilities: Floats, margins: Floats, calibrated: Floats) -> Floats:
    known = np.isfinite(margins)
    n_others = known.sum(axis=-1, keepdims=True) - 1
    is_top = np.arange(margins.shape[-1]) == margins.argmax(axis=-1)[..., np.newaxis]
    top = probabilities.max(axis=-1, keepdims=True)
    others = np.where(is_top, 0.0, probabilities)
    total = others.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.minimum(np.log(top / np.maximum(1.0 - top, 1e-300)), LARGEST_LOG_ODDS)
        confidence = sigmoid(calibrated[..., 1:2] + calibrated[..., 2:3] * log_odds)
        shares = np.where(total > 0.0, others / total, np.where(known & ~is_top, 1.0 / n_others, 0.0))
        # The calibrated probability stays the largest.
        second = shares.max(axis=-1, keepdims=True)
        confidence = np.maximum(confidence, second / (1.0 + second) + 2.0**-52)
        made: Floats = np.where(is_top, confidence, shares * (1.0 - confidence))
    is_alone = (probabilities >= AS_LIKELY * top).sum(axis=-1, keepdims=True) == 1
    return np.where((n_others > 0) & is_alone, made, probabilities)


@in_blocks
def of_each(margins: Floats, calibrated: Floats) -> Floats:
    """The probability that each label holds, where several may; above one half exactly where its margin is above 0."""
    with np.errstate(invalid="ignore"):
        probabilities = sigmoid(calibrated[..., :1] * margins)
    return np.where(margins > 0.0, np.maximum(probabilities, 0.5 + 2.0**-53), probabilities)


def of_only(label: Any, n_learned: Any) -> dict[Any, Any]:
    """The probabilities after n examples of one label, by Laplace's rule of succession; `None` is any other label. For
    an array of n, arrays.
    """
    probability = (n_learned + 1) / (n_learned + 2)
    return {label: probability, None: 1.0 - probability}


def for_each(probabilities: Mapping[Any, Any], n: int) -> tuple[tuple[Any, ...], Floats]:
    """The labels, and their probabilities, a row for each of n examples; a number is the same for all."""
    found = np.empty((n, len(probabilities)))
    for column, values in enumerate(probabilities.values()):
        found[:, column] = values
    return tuple(probabilities), found


def sigmoid(log_odds: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)))
