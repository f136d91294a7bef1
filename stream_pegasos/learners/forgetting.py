"""What a model forgets, so that memory stays bounded: its least important features, and names of no feature."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State
from stream_pegasos.engine import Learner, Vocabulary
from stream_pegasos.engine.pure.weights import FIRST_NAME
from stream_pegasos.learners.class_weights import ClassWeights
from stream_pegasos.learners.inspection import Inspectable
from stream_pegasos.learners.label_meaning import Label
from stream_pegasos.learners.labels import unknown_label
from stream_pegasos.learners.probabilities import Floats

__all__ = ["Forgetful", "most_important"]


class Forgetful(Inspectable):
    """Adds what a classifier forgets."""

    max_features: int | None
    _class_weights: ClassWeights

    def forget_class(self, label: Label) -> None:
        """Remove a class, such as one that a typo brought, with its weights. It is not predicted any more; if it comes
        again, it is new. What its examples taught the other classes stays. For models of "several classes".

        Parameters
        ----------
        label
            The label, one of `classes`.

        Raises
        ------
        TypeError
            If the model is for two classes alone, or for ordered ones.
        ValueError
            If the label is not in `classes`. The model is then as it was before.

        """
        core: Any = self._core
        if "several classes" not in core.capabilities or "ordered" in core.capabilities:
            raise TypeError(f"{type(core).__name__} cannot forget a class")
        with self.lock:
            core._forget_class(label)

    def _forget_class(self, label: Label) -> None:
        if label not in self._labels.targets:
            raise ValueError(unknown_label(label, self.classes))
        if not self._learner.several:
            self.grow(len(self._labels.known))
        learner = without_column(self._learner, self._labels.known.index(label))
        self._class_weights.forget(label)
        self._learner, self._labels = learner, self._labels.without(label)

    def grow(self, n_known: int) -> None:
        """Give each of the classes that are known a column of its own, where two share one."""
        self._learner.grow()
        for number in range(1, n_known - 1, -1):
            self._learner = without_column(self._learner, number)

    def forget_names(self) -> None:
        """Forget the names of no feature, and number the others anew."""
        with self.lock:
            state = self._learner.get_state()
            self._replace(state, state)

    def forget_least(self) -> None:
        """Forget features if there are more than `max_features`, or names if there are twice as many.

        The least important features are dropped first, until three quarters of the limit are left.
        """
        most, learner = self.max_features, self._learner
        if most is None or (len(learner) <= most and self._vocabulary.size() <= 2 * most):
            return
        before = state = learner.get_state()
        if len(learner) > most:
            n_kept = len(state["keys"]) - len(learner) + max(1, most * 3 // 4)
            kept = most_important(self._importance(state), state["keys"], self._vocabulary.names, n_kept)
            state = learner.declaration.selected(state, kept)
            if "squares" in state:
                state["squares"] = np.array([math.fsum(column) for column in (state["values"] ** 2).T.tolist()])
        self._replace(before, state)

    def _replace(self, before: State, state: State) -> None:
        """Put a state, and the names that it needs, in the place of the one before: both or, interrupted, neither."""
        names = self._vocabulary.names
        try:
            self._learner.set_state(with_names_forgotten(state, self._vocabulary))
        except BaseException:
            self._vocabulary.set_names(names)
            self._learner.set_state(before)
            raise

    def _importance(self, state: Mapping[str, Any]) -> Floats:
        """The importance of each feature in a state; the least important are forgotten first."""
        raise NotImplementedError


def most_important(
    importance: NDArray[np.float64], keys: NDArray[np.int64], names: Sequence[Any], n: int
) -> NDArray[np.bool_]:
    """Which features are the `n` most important ones. Among equals, up to rounding, smaller keys come first; a named
    feature, whose key depends on the order of the stream, has the hash of its name instead.
    """
    of_features = without_rounding(importance)
    most = np.partition(of_features, -n - 1)[-n - 1]  # of those that are forgotten
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
    """Numbers rounded to 40 bits, so that those that should be equal mostly are."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(mantissa, 40)), exponent - 40)  # type: ignore[no-any-return]


def with_names_forgotten(state: State, vocabulary: Vocabulary) -> State:
    """Forget the names that no key of the state stands for, and return the state with the new keys of the others."""
    of_keys = [name for name in ("keys", "buffer_keys") if name in state]
    used = np.unique(np.concatenate([state[name][state[name] >= FIRST_NAME] for name in of_keys]))
    names = vocabulary.names
    vocabulary.set_names([names[key - FIRST_NAME] for key in used.tolist()])
    numbered = dict(state)
    for name in of_keys:
        keys = state[name]
        numbered[name] = np.where(keys >= FIRST_NAME, FIRST_NAME + np.searchsorted(used, keys), keys)
    return numbered


def without_column(learner: Any, column: int) -> Any:
    """A learner like this one of several classes, without one of them; those after it move up by a number."""
    made = type(learner)(*learner.arguments)
    made.set_state(learner.get_state())
    made.flush()
    made.set_state(made.declaration.without_column(made.get_state(), column))
    return made
