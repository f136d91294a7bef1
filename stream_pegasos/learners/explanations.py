"""What the features of an example add to margins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stream_pegasos.engine import Encoder, Learner
from stream_pegasos.learners.probabilities import Floats

__all__ = ["Columns", "Contributions", "explain", "first_against_second"]

# Columns of margins, each with what it counts.
Columns = list[tuple[int, float]]


class Contributions(NamedTuple):
    """What features add to a margin, by their keys; what each number of the vector of the message is multiplied by, to
    be added; and what the intercept adds.
    """

    features: dict[int, float]
    vector: Floats
    intercept: float


def explain(learner: Learner, encoder: Encoder, x: Any, columns: Columns, with_intercept: bool = True) -> Contributions:
    """What all that an example has adds to the sum of some margins."""
    features: dict[int, float] = {}
    vector: Any = 0.0
    intercept = 0.0
    for column, sign in columns:
        share, of_vector, rest = learner.of_vector(encoder, x, column)
        intercept += sign * (share * float(learner.intercept[column]) * with_intercept + rest)
        vector = vector + sign * of_vector
        for key, value in learner.contributions(encoder, x, column).items():
            features[key] = features.get(key, 0.0) + sign * share * value
    return Contributions(features, vector, intercept)


def first_against_second(margins: Floats, first: int) -> Columns:
    """How far the margin of the column that is predicted is above the largest other one."""
    if len(margins) < 2:
        return [(first, 1.0)]
    return [(first, 1.0), (int(np.where(np.arange(len(margins)) == first, -np.inf, margins).argmax()), -1.0)]
