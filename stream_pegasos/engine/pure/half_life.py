"""How fast the evidence of an adaptive learner ages."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT
from stream_pegasos.common.state import Field, State

Floats = NDArray[np.float64]

# A half-life that grows is this share of the examples learned since the stream last changed, and at least this number.
SHARE_OF_STEADY, LEAST_HALF_LIFE = 0.2, 10_000.0
FIRST_STEADY = LEAST_HALF_LIFE / SHARE_OF_STEADY  # the examples after which it grows
GROWTH = math.log(2.0) / SHARE_OF_STEADY  # of what an example counts, to first order, times the number of examples
# The stream has changed where the loss over about so many of the newest examples is so many errors above the least.
SHORT, LONG, ERRORS = 1_000.0, 10_000.0, 7.0
LARGEST_LOSS = 1e30
ROUNDING = 2.0**-22  # evidence that grew by a smaller share did not grow

STEADY = (
    Field("n_steady", 0.0, LARGEST_COUNT),
    *(Field(name, 0.0, LARGEST_LOSS) for name in ("short_loss", "long_loss", "least_loss", "variance")),
)
OF_STEADY = tuple(field.name for field in STEADY)


class HalfLife:
    """The number of examples over which evidence halves. One that is growing is a fifth of the examples for which the
    stream stood still, at least `LEAST_HALF_LIFE`.

    Whether it stands still is told by the loss: its mean over about `SHORT` and about `LONG` of the newest examples,
    each beside the least mean over `LONG` examples (as in DDM: Gama, Medas, Castillo and Rodrigues 2004). The error of
    the one is how far it was from the other so far, so that losses which come in runs raise no alarm; that of the other
    follows. Where the stream changes, evidence is cut down to that of `LEAST_HALF_LIFE`.
    """

    def __init__(self, half_life: float, is_growing: bool) -> None:
        self.is_growing = is_growing
        self._growth = 2.0 ** (1.0 / half_life) if half_life else 1.0
        self.n_steady = 0.0  # examples since the stream last changed
        self.short_loss = self.long_loss = self.least_loss = 0.0
        self.variance = 0.0  # of the short loss around the long one

    @property
    def growth(self) -> float:
        """How much more the next example counts than the one before."""
        if self.is_growing and self.n_steady > FIRST_STEADY:
            return min(self._growth, 1.0 + GROWTH / self.n_steady)
        return self._growth

    def note(self, loss: float) -> float:
        """Take note of the loss of an example before it is learned; the share of the evidence that is to be kept."""
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
    """What is left of evidence after `n` more examples, and what each of these counts then on average, beside 1 for the
    last. For a half-life that is growing, `n_steady` examples came before them since the stream last changed.
    """
    if not half_life or not n:
        return 1.0, 1.0
    first = n_steady or 0.0
    last, bend = first + n, first + n if n_steady is None else FIRST_STEADY
    # Up to the bend evidence halves over the half-life, from there on it grows with a power of the number of examples.
    power = (max(first, bend) / max(last, bend)) ** GROWTH
    ages = math.log(2.0) * (min(last, bend) - min(first, bend)) / half_life
    total = (max(last, bend) - max(first, bend) * power) / (1.0 + GROWTH)
    total -= power * math.expm1(-ages) * half_life / math.log(2.0)  # 0 where the first example is behind the bend
    return power * math.exp(-ages), total / n


def gained(now: Floats, before: Floats) -> Floats:
    """By how much evidence grew beyond what is left of that before; 0 where it is rounding in single precision."""
    return np.where(now > before * (1.0 + ROUNDING), now - before, 0.0)


def steady_before(state: State, n: int) -> float | None:
    """Of a half-life that is growing, for how many examples the stream had stood still before the last n."""
    return max(state["n_steady"] - n, 0.0) if "n_steady" in state else None
