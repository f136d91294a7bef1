"""What the features of an example add to margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from stream_pegasos.engine import Encoder, Learner
from stream_pegasos.learners.probabilities import Floats

__all__ = ["Columns", "explain", "first_against_second"]

# Columns of margins, each with what it counts.
Columns = list[tuple[int, float]]


def explain(learner: Learner, encoder: Encoder, x: Any, columns: Columns) -> tuple[dict[int, float], float]:
    """What each feature of an example adds to the sum of some margins, by its key, and what the intercept adds."""
    total: dict[int, float] = {}
    intercept = 0.0
    for column, sign in columns:
        intercept += sign * float(learner.intercept[column])
        for key, value in learner.contributions(encoder, x, column).items():
            total[key] = total.get(key, 0.0) + sign * value
    return total, intercept


def first_against_second(margins: Floats, first: int) -> Columns:
    """How far the margin of the column that is predicted is above the largest other one."""
    if len(margins) < 2:
        return [(first, 1.0)]
    return [(first, 1.0), (int(np.where(np.arange(len(margins)) == first, -np.inf, margins).argmax()), -1.0)]
