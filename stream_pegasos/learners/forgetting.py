"""What a model forgets, so that memory stays bounded: the least of its features, and names that stand for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State
from stream_pegasos.engine import Learner, Vocabulary
from stream_pegasos.engine.pure.weights import FIRST_NAME

__all__ = ["forget_idle_names", "forget_least", "most_important"]


def forget_idle_names(learner: Learner, vocabulary: Vocabulary) -> None:
    """Forget the names that stand for no feature of the learner, and number the others anew."""
    learner.set_state(with_names_forgotten(learner.get_state(), vocabulary))


def forget_least(
    learner: Learner, vocabulary: Vocabulary, max_features: int, importance: Callable[[State], NDArray[np.float64]]
) -> None:
    """Forget features if there are more than that many, or names if there are twice as many.

    The least important ones go, of equal ones, to rounding, those with the larger keys, until three quarters of the
    limit are left.
    """
    if len(learner) <= max_features and vocabulary.size() <= 2 * max_features:
        return
    state = learner.get_state()
    if len(learner) > max_features:
        n_kept = len(state["keys"]) - len(learner) + max(1, max_features * 3 // 4)
        state = learner.declaration.selected(state, most_important(importance(state), state["keys"], n_kept))
        if "squares" in state:
            state["squares"] = np.array([math.fsum(column) for column in (state["values"] ** 2).T.tolist()])
    learner.set_state(with_names_forgotten(state, vocabulary))


def most_important(importance: NDArray[np.float64], keys: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """Which features are the `n` most important ones; of equal ones, to rounding, those with the smaller keys are."""
    of_features = without_rounding(importance)
    most = np.partition(of_features, -n - 1)[-n - 1]  # of those that are not
    kept: NDArray[np.bool_] = of_features > most
    equal = np.flatnonzero(of_features == most)
    equal = equal[np.argsort(keys[equal])]
    kept[equal[: n - kept.sum()]] = True
    return kept


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
