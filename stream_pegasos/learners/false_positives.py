"""Limits of false positives: cut-offs by the margins of known negatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_integer, check_number
from stream_pegasos.common.sums import sum_in_order
from stream_pegasos.engine.pure.driver import LARGEST_CALIBRATION_WEIGHT
from stream_pegasos.engine.pure.mistakes import SIZES_IN_OCTAVE, SMALLEST

__all__ = ["FIRST", "FalsePositiveLimit", "Tail"]

# The largest margin, and the largest sum of margins.
LARGEST_MARGIN = 1e307
# The cut aims at this share of the rate, because future examples may differ from known ones.
AIM = 0.9
# Nothing is flagged before this share of 1/rate negatives is known.
FIRST = 0.05


class Tail:
    """A histogram of the margins of negatives, 128 bins for each power of 2. All counts are halved when they reach
    32,768, so that the newest count most. Counts are multiples of 2^−36: their sums are exact in any order.
    """

    MOST = 1 << 15
    IN_OCTAVE = 128  # bins between a power of 2 and the next
    SMALLEST = 16  # sizes below 2^−16 share a bin, as do those above 2^15
    OF_SIGN = 2 * SMALLEST * IN_OCTAVE  # bins of margins of one sign
    UNIT = 2.0**-36

    def __init__(self) -> None:
        self.n = 0.0
        self.counts: dict[int, float] = {}  # by number of the bin; the first bins have the lowest margins

    @classmethod
    def tail_of_mistakes(cls, n: float, sizes: NDArray[np.float64]) -> Tail:
        """The histogram of `n` margins. Margins above 0 are counted in the bins of `Mistakes`; the others count as just
        below 0.
        """
        tail = cls()
        step = tail.IN_OCTAVE // SIZES_IN_OCTAVE
        first = tail.OF_SIGN + tail.IN_OCTAVE * (tail.SMALLEST + SMALLEST)
        tail.counts = {first + step * (place + 1) - 1: size for place, size in enumerate(sizes.tolist()) if size}
        tail.counts[tail.OF_SIGN - 1] = max(n - float(sizes.sum()), 0.0)
        tail._set_counts(tail.counts)
        return tail

    def _set_counts(self, counts: Mapping[int, float]) -> None:
        self.counts = {place: whole_units(count) for place, count in counts.items()}
        self.n = sum_in_order(self.counts.values())

    def learn(self, margin: float, weight: float = 1.0) -> int:
        """Count a margin with this weight. Return the number of its bin."""
        number, weight = self.bin(margin), whole_units(weight)
        self.counts[number] = self.counts.get(number, 0.0) + weight
        self.n += weight
        if self.n >= self.MOST:
            self._set_counts({place: count / 2.0 for place, count in self.counts.items()})
        return number

    def bin(self, margin: float) -> int:
        mantissa, exponent = math.frexp(margin)
        place = self.IN_OCTAVE * (exponent + self.SMALLEST) + int(self.IN_OCTAVE * (2.0 * abs(mantissa) - 1.0))
        place = min(max(place, 0), self.OF_SIGN - 1) if mantissa else 0
        return self.OF_SIGN + place if mantissa > 0.0 else self.OF_SIGN - 1 - place

    def forget(self, margin: float, weight: float = 1.0) -> None:
        """Remove a margin of about this size, from the nearest bin that is not empty."""
        number = self.bin(margin)
        nearest = min(self.counts, key=lambda place: abs(place - number), default=None)
        if nearest is not None:
            left = max(self.counts.pop(nearest) - whole_units(weight), 0.0)
            self._set_counts(self.counts | ({nearest: left} if left else {}))

    def lowest(self, n: float) -> tuple[int, float]:
        """The lowest bin so that at most `n` margins are in it and above, and their number."""
        number, above = 0, 0.0
        for place in sorted(self.counts, reverse=True):
            if above + self.counts[place] > n:
                number = place + 1
                break
            above += self.counts[place]
        return number, above

    def edge(self, number: int) -> float:
        if number in (0, 2 * self.OF_SIGN):
            return LARGEST_MARGIN if number else -LARGEST_MARGIN
        if number == self.OF_SIGN:
            return 0.0
        place = number - self.OF_SIGN if number > self.OF_SIGN else self.OF_SIGN - number
        exponent, part = divmod(place, self.IN_OCTAVE)
        return math.copysign(
            math.ldexp(1.0 + part / self.IN_OCTAVE, exponent - self.SMALLEST - 1), number - self.OF_SIGN
        )

    def get_state(self) -> dict[str, Any]:
        places = sorted(self.counts)
        return {"n": self.n, "places": places, "counts": [self.counts[place] for place in places]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        check_number("n", state["n"], 0.0, self.MOST)
        counts: dict[int, float] = {}
        for place, count in zip(state["places"], state["counts"], strict=True):
            check_integer("place", place, 0, 2 * self.OF_SIGN - 1)
            check_number("count", count, 0.0, self.MOST)
            counts[place] = float(count)
        if not math.isclose(math.fsum(counts.values()), state["n"], abs_tol=1e-6):
            raise ValueError(f"{state['n']} margins are not those counted")
        self._set_counts(counts)


def whole_units(count: float) -> float:
    return round(count / Tail.UNIT) * Tail.UNIT


class FalsePositiveLimit:
    """A limit that keeps the share of flagged negatives near a rate. Margins above the cut are flagged. The cut is the
    lowest that at most a share of 0.9 · rate of the negatives exceeded before they were learned. Nothing is flagged
    before 0.05/rate negatives are known.
    """

    def __init__(self, rate: float, negatives: Tail | None = None) -> None:
        self.rate = rate
        self.negatives = Tail() if negatives is None else negatives
        self._choose()

    @property
    def knows_enough(self) -> bool:
        return self.rate * self.negatives.n >= FIRST

    @property
    def _most(self) -> float:
        return AIM * self.rate * self.negatives.n

    def _choose(self) -> None:
        self._lowest, self._above = self.negatives.lowest(self._most)
        self._set_cut()

    def _set_cut(self) -> None:
        self.cut = self.negatives.edge(self._lowest) if self.knows_enough else LARGEST_MARGIN

    def learn(self, margin: float, weight: float = 1.0) -> None:
        """Count the margin of a negative example of this weight, and move the cut by a few bins."""
        before, weight = self.negatives.n, whole_units(min(weight, LARGEST_CALIBRATION_WEIGHT))
        number = self.negatives.learn(margin, weight)
        if self.negatives.n < before:  # all counts were halved
            self._choose()
            return
        counts, most = self.negatives.counts, self._most
        self._above += weight * (number >= self._lowest)
        while self._above > most:
            self._above -= counts.get(self._lowest, 0.0)
            self._lowest += 1
        while self._lowest and self._above + counts.get(self._lowest - 1, 0.0) <= most:
            self._lowest -= 1
            self._above += counts.get(self._lowest, 0.0)
        self._set_cut()

    def forget(self, margin: float, weight: float = 1.0) -> None:
        """Remove a negative example with about this margin, and choose the cut again."""
        self.negatives.forget(margin, min(weight, LARGEST_CALIBRATION_WEIGHT))
        self._choose()

    def get_state(self) -> dict[str, Any]:
        return self.negatives.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.negatives.set_state(state)
        self._choose()
