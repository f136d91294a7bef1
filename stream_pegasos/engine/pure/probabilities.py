"""Probabilities of classes that exclude each other, from their margins and the calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.sums import sum_in_order
from stream_pegasos.engine.pure.driver import AS_LIKELY, LARGEST_LOG_ODDS, Margins, sigmoid


def probabilities_one(margins: Margins, calibrated: Sequence[float]) -> list[float]:
    """Probabilities proportional to exp(slope · margin). The largest, if unique, is replaced by its confidence (see
    `Calibration`).
    """
    slope, intercept, of_log_odds = calibrated
    margins = margins if isinstance(margins, list) else margins.tolist()
    largest = max(margins, default=-math.inf)
    if largest == -math.inf:
        return [0.0] * len(margins)
    terms = [math.exp(slope * (margin - largest)) for margin in margins]
    if sum(term >= AS_LIKELY for term in terms) > 1 or sum(margin > -math.inf for margin in margins) == 1:
        total = sum_in_order(terms)
        return [term / total for term in terms]
    top = margins.index(largest)
    terms[top] = 0.0
    total, log_odds = sum_in_order(terms), LARGEST_LOG_ODDS
    if total:
        log_odds = min(-math.log(total), LARGEST_LOG_ODDS)
    else:  # all other classes have the least possible probability
        terms = [float(-math.inf < margin < largest) for margin in margins]
        total = sum_in_order(terms)
    second = max(terms)
    # The calibrated probability stays the largest.
    confidence = max(sigmoid(intercept + of_log_odds * log_odds), second / (total + second) + 2.0**-52)
    result = [term / total * (1.0 - confidence) for term in terms]
    result[top] = confidence
    return result


def probabilities_many(margins: NDArray[np.float64], calibrated: NDArray[np.float64]) -> NDArray[np.float64]:
    result = [probabilities_one(*of) for of in zip(margins.tolist(), calibrated.tolist(), strict=True)]
    return np.array(result, np.float64).reshape(margins.shape)
