"""A histogram of the margins of the newest examples that were on the wrong side before these were learned."""

from __future__ import annotations

import math

import numpy as np

from stream_pegasos.common.state import Field, State

# Bins for sizes of margins, an eighth of a power of 2 apart, from 2^-9 on.
N_MISTAKES, SMALLEST, SIZES_IN_OCTAVE = 128, -8, 8
# The counts of a class are halved when it has this many examples.
MOST_NEWEST = 1 << 15

MISTAKES = (
    Field("n_newest_negatives", 0.0, MOST_NEWEST, merges="newest", mirror="n_newest_positives"),
    Field("n_newest_positives", 0.0, MOST_NEWEST, merges="newest", mirror="n_newest_negatives"),
    Field(
        "false_positives",
        0.0,
        2.0 * MOST_NEWEST,
        ("sizes",),
        size=N_MISTAKES,
        merges="newest",
        evidence=("n_newest_negatives",),
        mirror="false_negatives",
    ),
    Field(
        "false_negatives",
        0.0,
        2.0 * MOST_NEWEST,
        ("sizes",),
        size=N_MISTAKES,
        merges="newest",
        evidence=("n_newest_positives",),
        mirror="false_positives",
    ),
)
COUNTS = tuple(field.name for field in MISTAKES)


class Mistakes:
    """Counts of the newest examples of each class, and a histogram of their margins on the wrong side. A size between
    two bins is shared between both, so that rounding decides nothing.
    """

    def __init__(self) -> None:
        self._n = [0.0, 0.0]  # of negative and of positive examples
        self._sizes = np.zeros((2, N_MISTAKES))

    def learn(self, margin: float, y: float, weight: float) -> None:
        sign = int(y > 0.0)
        if y * margin < 0.0:
            mantissa, exponent = math.frexp(abs(margin))
            place = 8.0 * (exponent - SMALLEST) + (16.0 * mantissa - 8.0)
            if place < 0.0:
                self._sizes[sign, 0] += weight * math.ldexp(abs(margin), 1 - SMALLEST)
            else:
                first = min(int(place), N_MISTAKES - 2)
                part = min(place - first, 1.0)
                self._sizes[sign, first] += weight * (1.0 - part)
                self._sizes[sign, first + 1] += weight * part
        self._n[sign] += weight
        if self._n[sign] >= MOST_NEWEST:
            self._n[sign] /= 2.0
            self._sizes[sign] /= 2.0

    def get_state(self) -> State:
        return dict(zip(COUNTS, (*self._n, *self._sizes.copy()), strict=True))

    def set_state(self, state: State) -> None:
        self._n = [state[COUNTS[0]], state[COUNTS[1]]]
        self._sizes = np.array([state[COUNTS[2]], state[COUNTS[3]]])
