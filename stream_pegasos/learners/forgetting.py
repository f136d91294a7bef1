"""What a model forgets, so that memory stays bounded: the least of its features, and names that stand for nothing."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State
from stream_pegasos.engine import Learner, Vocabulary
from stream_pegasos.engine.pure.weights import FIRST_NAME

__all__ = ["forget_column", "forget_idle_names", "forget_least", "most_important"]


def forget_idle_names(learner: Learner, vocabulary: Vocabulary) -> None:
    """Forget the names that stand for no feature of the learner, and number the others anew."""
    learner.set_state(with_names_forgotten(learner.get_state(), vocabulary))


def forget_least(
    learner: Learner, vocabulary: Vocabulary, max_features: int, importance: Callable[[State], NDArray[np.float64]]
) -> None:
    """Forget features if there are more than that many, or names if there are twice as many.

    The least important ones go until three quarters of the limit are left.
    """
    if len(learner) <= max_features and vocabulary.size() <= 2 * max_features:
        return
    state = learner.get_state()
    if len(learner) > max_features:
        n_kept = len(state["keys"]) - len(learner) + max(1, max_features * 3 // 4)
        kept = most_important(importance(state), state["keys"], vocabulary.names, n_kept)
        state = learner.declaration.selected(state, kept)
        if "squares" in state:
            state["squares"] = np.array([math.fsum(column) for column in (state["values"] ** 2).T.tolist()])
    learner.set_state(with_names_forgotten(state, vocabulary))


def most_important(
    importance: NDArray[np.float64], keys: NDArray[np.int64], names: Sequence[Any], n: int
) -> NDArray[np.bool_]:
    """Which features are the `n` most important ones; of equal ones, to rounding, those are whose key is smaller or, as
    names get their keys in the order in which they come, the hash of their name.
    """
    of_features = without_rounding(importance)
    most = np.partition(of_features, -n - 1)[-n - 1]  # of those that are not
    kept: NDArray[np.bool_] = of_features > most
    equal = np.flatnonzero(of_features == most)
    ranks = keys[equal]
    named = ranks >= FIRST_NAME
    ranks[named] = [hash_of(names[key - FIRST_NAME]) for key in ranks[named].tolist()]
    equal = equal[np.argsort(ranks)]
    kept[equal[: n - kept.sum()]] = True
    return kept


def hash_of(name: Any) -> int:
    """A hash of a name, the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(name).encode(), digest_size=7).digest())


def without_rounding(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """With 40 bits each: numbers that should be equal mostly are then."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(mantissa, 40)), exponent - 40)  # type: ignore[no-any-return]


def with_names_forgotten(state: State, vocabulary: Vocabulary) -> State:
    """The state with the keys that names have once all are forgotten that it has no key of."""
    of_keys = [name for name in ("keys", "buffer_keys") if name in state]
    used = np.unique(np.concatenate([state[name][state[name] >= FIRST_NAME] for name in of_keys]))
    names = vocabulary.names
    vocabulary.set_names([names[key - FIRST_NAME] for key in used.tolist()])
    numbered = dict(state)
    for name in of_keys:
        keys = state[name]
        numbered[name] = np.where(keys >= FIRST_NAME, FIRST_NAME + np.searchsorted(used, keys), keys)
    return numbered


def forget_column(learner: Any, column: int) -> None:
    """Remove a class from a learner of several; those after it get a number less."""
    learner.flush()
    learner.set_state(learner.declaration.without_column(learner.get_state(), column))
