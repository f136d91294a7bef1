"""Numeric features, as in tables: their moments, and their standardized values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.encoders import check_value

# A feature is dense if half of all examples have it with a value other than 0.
DENSE = 0.5
# A dense feature is numeric if half of all values belong to dense features, as in a table, or if its root mean square
# is larger than that of word counts; but not before this many examples.
TABLE, LARGE, FIRST_EXAMPLES = 0.5, 4.0, 10
LARGEST_SCALED = 8.0  # standard deviations
CONSTANT = 1e-6  # a deviation below this share of the mean is rounding

# Rows: for each feature, the weight of the examples that had it; then the mean and the sum of squared deviations of its
# values in all examples, 0 where it is absent.
Moments = NDArray[np.float64]


def learn_moments(x: dict[Any, Any], names: Sequence[Any], moments: Moments, n: float, weight: float) -> None:
    """Add one example to the moments of the named features, after n examples (West 1979)."""
    for place, name in enumerate(names):
        value = check_value(name, x[name]) if name in x else 0.0
        count, mean, squares = moments[:, place].tolist()
        difference = value - mean
        mean += difference * (weight / (n + weight))
        squares = max(squares + weight * difference * (value - mean), 0.0)  # rounding may go below
        moments[:, place] = count + weight * (value != 0.0), mean, squares


def find_numeric(moments: Moments, n: float, n_values: float) -> list[int]:
    """The places of the numeric features after n examples, which had `n_values` values other than 0."""
    counts, means, squares = moments.tolist()
    dense = [place for place, count in enumerate(counts) if count >= DENSE * n]
    if n < FIRST_EXAMPLES or sum(counts[place] for place in dense) >= TABLE * n_values:
        return dense if n >= FIRST_EXAMPLES else []
    return [place for place in dense if means[place] * means[place] + squares[place] / n > LARGE * LARGE]


def standardize(
    x: dict[Any, Any], names: Sequence[Any], places: Sequence[int], moments: Moments, n: float
) -> dict[Any, Any]:
    """The example with standardized features at these places: deviations above the mean, also for absent features. A
    feature that never changed is 1, or 0 if its value is 0. A value that is no number stays as it is.
    """
    scaled = x.copy()
    for place in places:
        name = names[place]
        try:
            value = check_value(name, x[name]) if name in x else 0.0
        except (TypeError, ValueError):
            continue
        scaled.pop(name, None)  # so that the features of a table are at the end, in their order
        _, mean, squares = moments[:, place].tolist()
        difference, deviation, least = value - mean, math.sqrt(squares / n), CONSTANT * abs(mean)
        if deviation > least:
            scaled[name] = min(max(difference / deviation, -LARGEST_SCALED), LARGEST_SCALED)
        elif abs(difference) > least:
            scaled[name] = math.copysign(LARGEST_SCALED, difference)
        else:
            scaled[name] = float(value != 0.0)
    return scaled
