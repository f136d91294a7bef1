"""Explanations: what the features of an example add to margins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_pegasos.engine import Encoder, Learner
from stream_pegasos.engine.pure.tokens import tokens_of
from stream_pegasos.learners.probabilities import Floats

__all__ = ["INTERCEPT", "Columns", "Contributions", "explain", "first_against_second", "phrases"]

INTERCEPT = "(intercept)"  # beside the names of features
Columns = list[tuple[int, float]]  # columns of margins, each with its factor in a sum


class Contributions(NamedTuple):
    """What features add to a margin, by their keys; the weight of each number of the message's vector; and what the
    intercept adds.
    """

    features: dict[int, float]
    vector: Floats
    intercept: float


def explain(learner: Learner, encoder: Encoder, x: Any, columns: Columns, with_intercept: bool = True) -> Contributions:
    """What the features, the vector and the intercept of an example add to a sum of margins."""
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
    """The columns of the distance of the first margin above the largest other one."""
    if len(margins) < 2:
        return [(first, 1.0)]
    return [(first, 1.0), (int(np.where(np.arange(len(margins)) == first, -np.inf, margins).argmax()), -1.0)]


def phrases(contributions: Iterable[tuple[str, float]], limit: int) -> tuple[list[tuple[str, float]], list[float]]:
    """The heaviest phrases, the largest size first, and what all other n-grams add.

    The heaviest n-gram, those that overlap it, and those that overlap the longest of these are one phrase. It adds what
    all of them add, and is named by the longest.

    Parameters
    ----------
    contributions
        What each n-gram adds, as `explain_one` names them, the largest size first.
    limit
        How many phrases there are at most.

    Examples
    --------

    >>> from stream_pegasos.learners.explanations import phrases
    >>> phrases([("free", 0.5), ("prize", 0.25), ("a free", 0.25), ("free prize", 0.125), ("lunch", -0.1)], 2)
    ([('a free', 0.875), ('prize', 0.25)], [-0.1])

    """
    left = {name: (value, _units(name)) for name, value in contributions}
    found: list[tuple[str, float]] = []
    while left and len(found) < limit:
        _, heaviest = next(iter(left.values()))
        overlapping = {name: units for name, (_, units) in left.items() if units.overlaps(heaviest)}
        longest = max(overlapping, key=lambda name: len(overlapping[name].words))
        parts = overlapping.keys() | {name for name, (_, it) in left.items() if it.overlaps(overlapping[longest])}
        found.append((longest, math.fsum(left.pop(name)[0] for name in parts)))
    return sorted(found, key=lambda row: -abs(row[1])), [value for value, _ in left.values()]


class _Units(NamedTuple):
    """An n-gram taken apart."""

    field: str
    words: Sequence[str]  # or marks, or characters of a run
    is_prefix: bool  # of a word

    def overlaps(self, other: _Units) -> bool:
        """Whether one contains the other, or begins with the last words of the other, and not with marks alone."""
        if self.field != other.field:
            return False
        if self.is_prefix or other.is_prefix:
            prefix, of = (self, other) if self.is_prefix else (other, self)
            return any(word.startswith(prefix.words[0]) for word in of.words)
        a, b = self.words, other.words
        for at in range(1 - len(a), len(b)):  # where the one would begin in the other
            shared = b[max(at, 0) : at + len(a)]
            whole = len(shared) == min(len(a), len(b))
            if a[max(-at, 0) :][: len(shared)] == shared and (whole or any(map(str.isalnum, shared))):
                return True
        return False


def _units(name: str) -> _Units:
    if name == INTERCEPT:
        return _Units(name, [name], False)
    field, _, ngram = name.rpartition(": ")
    tokens = tokens_of(ngram)
    words = [part for token in tokens for part in getattr(token, "characters", [token])]
    return _Units(field, words, words == tokens and len(words) == 1 and ngram.startswith(" "))
