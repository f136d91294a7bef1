"""Half-life: how fast the evidence of an adaptive learner ages."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT
from stream_pegasos.common.state import Field, State

Floats = NDArray[np.float64]

# A growing half-life is this share of the examples since the stream last changed, but at least this number.
SHARE_OF_STEADY, LEAST_HALF_LIFE = 0.2, 10_000.0
FIRST_STEADY = LEAST_HALF_LIFE / SHARE_OF_STEADY  # number of examples after which it grows
GROWTH = math.log(2.0) / SHARE_OF_STEADY  # of an example's count, to first order, times the number of examples
# The stream has changed if the mean loss of about this many newest examples is this many errors above the least.
SHORT, LONG, ERRORS = 1_000.0, 10_000.0, 7.0
LARGEST_LOSS = 1e30
ROUNDING = 2.0**-22  # smaller relative growth of evidence is rounding

STEADY = (
    Field("n_steady", 0.0, LARGEST_COUNT, merges="sum"),
    *(Field(name, 0.0, LARGEST_LOSS, merges="mean") for name in ("short_loss", "long_loss", "least_loss", "variance")),
)
OF_STEADY = tuple(field.name for field in STEADY)


class HalfLife:
    """The number of examples over which evidence halves. A growing half-life is a fifth of the examples since the
    stream last changed, but at least `LEAST_HALF_LIFE`.

    The loss shows a change of the stream. Its means over about `SHORT` and about `LONG` of the newest examples are
    compared with the least mean over `LONG` examples (as in DDM: Gama, Medas, Castillo and Rodrigues 2004). The error
    of the short mean is its past distance from the long mean, so that runs of large losses raise no alarm; the error of
    the long mean follows from it. After a change, evidence is reduced to that of `LEAST_HALF_LIFE`.
    """

    def __init__(self, half_life: float, is_growing: bool) -> None:
        self.is_growing = is_growing
        self._growth = 2.0 ** (1.0 / half_life) if half_life else 1.0
        self.n_steady = 0.0  # examples since the stream last changed
        self.short_loss = self.long_loss = self.least_loss = 0.0
        self.variance = 0.0  # of the short loss around the long one

    @property
    def growth(self) -> float:
        """The factor by which the next example counts more than the one before."""
        if self.is_growing and self.n_steady > FIRST_STEADY:
            return min(self._growth, 1.0 + GROWTH / self.n_steady)
        return self._growth

    def note(self, loss: float) -> float:
        """Take note of the loss of an example before it is learned. Return the share of the evidence to keep."""
        if not self.is_growing:
            return 1.0
        self.n_steady += 1.0
        self.short_loss += (loss - self.short_loss) / min(self.n_steady, SHORT)
        self.long_loss += (loss - self.long_loss) / min(self.n_steady, LONG)
        self.variance += ((self.short_loss - self.long_loss) ** 2 - self.variance) / min(self.n_steady, FIRST_STEADY)
        if self.n_steady <= FIRST_STEADY:
            self.least_loss = self.long_loss
            return 1.0
        self.least_loss = min(self.least_loss, self.long_loss)
        error, above = ERRORS * math.sqrt(self.variance), self.least_loss
        if self.short_loss <= above + error and self.long_loss <= above + error * math.sqrt(SHORT / LONG):
            return 1.0
        share, self.n_steady = FIRST_STEADY / self.n_steady, 0.0
        return share

    def get_state(self) -> State:
        return {name: getattr(self, name) for name in OF_STEADY} if self.is_growing else {}

    def set_state(self, state: State) -> None:
        for name in OF_STEADY if self.is_growing else ():
            setattr(self, name, state[name])


def aged(half_life: float, n: float, n_steady: float | None = None) -> tuple[float, float]:
    """The share of evidence that is left after `n` more examples, and the mean count of these examples, if the last one
    counts 1. For a growing half-life, `n_steady` examples came before them since the stream last changed.
    """
    if not half_life or not n:
        return 1.0, 1.0
    first = n_steady or 0.0
    last, bend = first + n, first + n if n_steady is None else FIRST_STEADY
    # Up to the bend, evidence halves over the half-life; after it, evidence grows with a power of the number of
    # examples.
    power = (max(first, bend) / max(last, bend)) ** GROWTH
    ages = math.log(2.0) * (min(last, bend) - min(first, bend)) / half_life
    total = (max(last, bend) - max(first, bend) * power) / (1.0 + GROWTH)
    total -= power * math.expm1(-ages) * half_life / math.log(2.0)  # 0 if the first example is after the bend
    return power * math.exp(-ages), total / n


def gained(now: Floats, before: Floats) -> Floats:
    """The growth of evidence beyond the part that is left from before; 0 if it is only rounding in single precision."""
    return np.where(now > before * (1.0 + ROUNDING), now - before, 0.0)


def steady_before(state: State, n: int) -> float | None:
    """The number of examples since the last change of the stream in a state of the adaptive rule, not counting the last
    n; `None` if the half-life is fixed.
    """
    n_steady = state.get(OF_STEADY[0])
    return None if n_steady is None else max(n_steady - n, 0.0)
