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
from stream_pegasos.engine.pure.half_life import gained
from stream_pegasos.engine.pure.weights import FIRST_NAME

__all__ = ["Recency", "drop_column", "drop_forgotten_names", "most_important"]

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
