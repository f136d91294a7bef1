"""Numeric features, as those of a table: their moments, and their values at one size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.encoders import check_value

# A feature is dense if half of all examples have it, with a value other than 0.
DENSE = 0.5
# A dense one is numeric where half of all values are of such, as in a table, or where its root mean square is larger
# than counts of words are; but not before so many examples.
TABLE, LARGE, FIRST_EXAMPLES = 0.5, 4.0, 10
LARGEST_SCALED = 8.0  # deviations
CONSTANT = 1e-6  # a deviation below this share of the mean is one of rounding

# Rows: how many examples had each feature, as the sum of their weights; of its values in all of them, 0 where it is
# absent, the mean and the sum of squared deviations from that.
Moments = NDArray[np.float64]


def learn_moments(x: dict[Any, Any], names: Sequence[Any], moments: Moments, n: float, weight: float) -> None:
    """Have the moments of the features of these names, after n examples, know one more (West 1979)."""
    for place, name in enumerate(names):
        value = check_value(name, x[name]) if name in x else 0.0
        count, mean, squares = moments[:, place].tolist()
        difference = value - mean
        mean += difference * (weight / (n + weight))
        squares = max(squares + weight * difference * (value - mean), 0.0)  # rounding may go below
        moments[:, place] = count + weight * (value != 0.0), mean, squares


def find_numeric(moments: Moments, n: float, n_values: float) -> list[int]:
    """The places of numeric features after n examples, which had so many values other than 0."""
    counts, means, squares = moments.tolist()
    dense = [place for place, count in enumerate(counts) if count >= DENSE * n]
    if n < FIRST_EXAMPLES or sum(counts[place] for place in dense) >= TABLE * n_values:
        return dense if n >= FIRST_EXAMPLES else []
    return [place for place in dense if means[place] * means[place] + squares[place] / n > LARGE * LARGE]


def standardize(
    x: dict[Any, Any], names: Sequence[Any], places: Sequence[int], moments: Moments, n: float
) -> dict[Any, Any]:
    """The example in which the features at these places are how many deviations they are above the mean, be they absent
    or not; one that never changed is 1, or 0 if it is 0. A value that is no number stays as it is.
    """
    scaled = x.copy()
    for place in places:
        name = names[place]
        try:
            value = check_value(name, x[name]) if name in x else 0.0
        except (TypeError, ValueError):
            continue
        scaled.pop(name, None)  # so that those of a table stand in their order, at the end
        _, mean, squares = moments[:, place].tolist()
        difference, deviation, least = value - mean, math.sqrt(squares / n), CONSTANT * abs(mean)
        if deviation > least:
            scaled[name] = min(max(difference / deviation, -LARGEST_SCALED), LARGEST_SCALED)
        elif abs(difference) > least:
            scaled[name] = math.copysign(LARGEST_SCALED, difference)
        else:
            scaled[name] = float(value != 0.0)
    return scaled
