"""Forgetting, which bounds the memory: of the least important features, and of names without a feature."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.packing import pack
from stream_pegasos.common.state import State
from stream_pegasos.engine import Learner, Vocabulary
from stream_pegasos.engine.pure.half_life import aged, gained, steady_before
from stream_pegasos.engine.pure.weights import FIRST_NAME, INTERCEPT

__all__ = [
    "Forgetting",
    "Recency",
    "UseForgetting",
    "WeightForgetting",
    "drop_column",
    "drop_forgotten_names",
    "most_important",
]

L = TypeVar("L", bound=Learner)

RECENT = 0.98  # the share of a feature's score that is left at each forgetting


@dataclass(frozen=True)
class Recency:
    """Recent occurrences of features at the last forgetting, for the features that were kept, in their order.

    The score of a feature is the number of its occurrences since then, plus `RECENT` times its previous score. So a
    feature that was common in the past makes room for one that is common now. (As in LFU with aging: Robinson and
    Devarakonda, Data cache management using frequency-based replacement, SIGMETRICS 1990.)
    """

    counts: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))  # in units of an example now
    scores: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    n_iterations: int = 0

    def scores_now(self, counts: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """The scores of all features, new ones last, given their counts now and the share that is left of earlier
        counts.
        """
        scores, known_scores = counts.copy(), counts[: len(self.counts)]
        since = gained(known_scores, self.counts.astype(float) * share)
        scores[: len(known_scores)] = RECENT * self.scores.astype(float) + since
        return scores

    def get_state(self) -> dict[str, NDArray[np.float32]]:
        return {"recent_counts": self.counts, "recent_scores": self.scores}

    @classmethod
    def from_state(cls, state: State, n_iterations: int, n_features: int) -> Recency:
        """Restore from a state; raise a ValueError or a TypeError if no model can have written it."""
        counts, scores = (state[name] for name in ("recent_counts", "recent_scores"))
        if any(column.dtype != np.float32 for column in (counts, scores)):
            raise TypeError("recent counts and scores must be in single precision")
        if counts.shape != scores.shape or counts.ndim != 1 or len(counts) > n_features:
            raise ValueError("recent counts and scores must be of the same features, which the model has")
        if not all(np.isfinite(column).all() and (column >= 0.0).all() for column in (counts, scores)):
            raise ValueError("recent counts and scores must be finite, and at least 0")
        return cls(counts, scores, n_iterations)


class Forgetting:
    """The bound of the memory: of the least important features, and of names without a feature. By itself it has no
    limit of features; a subclass says how important each feature is.
    """

    recency: Recency = Recency()  # of the last forgetting

    def __init__(self, max_features: int | None = None) -> None:
        self.max_features = max_features

    def forget_least(self, learner: Learner, vocabulary: Vocabulary) -> None:
        """Drop the least important features, to three quarters of `max_features`, if there are more; and names, if
        there are more than twice as many.
        """
        most = self.max_features
        if most is None or (len(learner) <= most and vocabulary.size() <= 2 * most):
            return
        before = state = learner.get_state()
        recency = self.recency
        if len(learner) > most:
            n_kept = len(state["keys"]) - len(learner) + max(1, most * 3 // 4)
            importance = self.importance(learner, state)
            mask = most_important(importance, state["keys"], vocabulary.names, n_kept)
            recency = self.next_recency(learner, state, importance, mask)
            state = learner.declaration.selected(state, mask)
        self._replace(learner, vocabulary, before, state, recency)

    def forget_names(self, learner: Learner, vocabulary: Vocabulary) -> None:
        """Forget the names without a feature, and number the others again."""
        state = learner.get_state()
        self._replace(learner, vocabulary, state, state, self.recency)

    def _replace(self, learner: Learner, vocabulary: Vocabulary, before: State, state: State, recency: Recency) -> None:
        """Replace the state and the names that it needs, completely or, if interrupted, not at all."""
        names, recency_before = vocabulary.names, self.recency
        try:
            learner.set_state(drop_forgotten_names(state, vocabulary))
            self.recency = recency
        except BaseException:
            vocabulary.set_names(names)
            learner.set_state(before)
            self.recency = recency_before
            raise

    def importance(self, learner: Learner, state: State) -> NDArray[np.float64]:
        """The importance of each feature in a state. The least important are forgotten first."""
        raise NotImplementedError

    def next_recency(
        self, learner: Learner, state: State, importance: NDArray[np.float64], mask: NDArray[np.bool_]
    ) -> Recency:
        """The `Recency` of the kept features, for the next forgetting."""
        return self.recency


class WeightForgetting(Forgetting):
    """A feature is as important as its largest weight."""

    def importance(self, learner: Learner, state: State) -> NDArray[np.float64]:
        scales = np.abs(state["scale"])  # each column has its own scale; a single one changes no order
        largest = np.abs(state["values"] * (scales / scales.max())).max(axis=1)
        return np.where(state["keys"] == INTERCEPT, np.inf, largest)


class UseForgetting(Forgetting):
    """A feature is as important as the number of its recent occurrences."""

    def importance(self, learner: Learner, state: State) -> NDArray[np.float64]:
        n = state["n_iterations"] - self.recency.n_iterations
        share, _ = aged(learner.parameters["half_life"], n, steady_before({**state}, n))
        return self.recency.scores_now(learner.declaration.occurrences(state), share)

    def next_recency(
        self, learner: Learner, state: State, importance: NDArray[np.float64], mask: NDArray[np.bool_]
    ) -> Recency:
        counts, scores = (
            column[mask].astype(np.float32) for column in (learner.declaration.occurrences(state), importance)
        )
        return Recency(counts, scores, state["n_iterations"])


def most_important(
    importance: NDArray[np.float64], keys: NDArray[np.int64], names: Sequence[Any], n: int
) -> NDArray[np.bool_]:
    """A mask of the `n` most important features. Among equal features, up to rounding, smaller keys come first. The key
    of a named feature depends on the order of the stream, so the hash of its name is used.
    """
    of_features = exact_halves(importance)
    most = np.partition(of_features, -n - 1)[-n - 1]  # the largest that is forgotten
    mask: NDArray[np.bool_] = of_features > most
    equal = np.flatnonzero(of_features == most)
    ranks = keys[equal]
    named = ranks >= FIRST_NAME
    ranks[named] = [name_hash(names[key - FIRST_NAME]) for key in ranks[named].tolist()]
    equal = equal[np.argsort(ranks)]
    mask[equal[: n - mask.sum()]] = True
    return mask


def name_hash(name: object) -> int:
    """A hash of a name, the same in every process."""
    try:
        text = repr(name)
    except ValueError:  # an int with more digits than Python writes
        text = repr(pack(name))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=7).digest())


def exact_halves(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers rounded to 40 bits, so that numbers that should be equal nearly always are."""
    mantissa, exponent = np.frexp(x)
    rounded: NDArray[np.float64] = np.ldexp(np.round(np.ldexp(mantissa, 40)), exponent - 40)
    return rounded


def drop_forgotten_names(state: State, vocabulary: Vocabulary) -> State:
    """Forget the names that no key of the state stands for. Return the state with the new keys of the other names."""
    of_keys = [name for name in ("keys", "buffer_keys") if name in state]
    used = np.unique(np.concatenate([state[name][state[name] >= FIRST_NAME] for name in of_keys]))
    names = vocabulary.names
    vocabulary.set_names([names[key - FIRST_NAME] for key in used.tolist()])
    numbered = dict(state)
    for name in of_keys:
        keys = state[name]
        numbered[name] = np.where(keys >= FIRST_NAME, FIRST_NAME + np.searchsorted(used, keys), keys)
    return numbered


def drop_column(learner: L, column: int) -> L:
    """A learner like this one of several classes, but without one of them. The later classes get the next lower
    number.
    """
    new_learner = type(learner)(**learner.parameters)
    new_learner.set_state(learner.get_state())
    new_learner.flush()
    is_last, state = new_learner.n_columns == 1, new_learner.declaration.drop_column(new_learner.get_state(), column)
    if is_last:  # without classes, features are of no use
        state = new_learner.declaration.selected(state, np.zeros(len(state["keys"]), bool))
    new_learner.set_state(state)
    return new_learner
