"""Models that go on from a common one, each kept as what it learned since."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from stream_pegasos.common.state import FEATURES, TAUGHT, Declaration, State
from stream_pegasos.engine.merging import Clock, negated
from stream_pegasos.engine.pure.adaptive_state import EVIDENCE_OF_FEATURE, RESCALED_AT, declared, from_two_classes
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.compact import Packer
from stream_pegasos.learners.files import checksum
from stream_pegasos.learners.text import TextClassifier, packed_features

__all__ = ["Branch", "CommonModel"]

TWO_CLASSES, SEVERAL_CLASSES = declared("two"), declared("ovr")


class CommonModel:
    """A text model that many others begin from. Each of them is known by the bytes of what differs from this one.

    Parameters
    ----------
    model
        A `TextClassifier` with an `AdaptiveClassifier`, which stays as it is.

    Raises
    ------
    TypeError
        If it is another model.
    ValueError
        If it has a drift detector, or `max_features` and features: what they do to one feature rests on all of them.
    """

    def __init__(self, model: TextClassifier) -> None:
        if type(model) is not TextClassifier or type(model.classifier) is not AdaptiveClassifier:
            kind = " with ".join(type(part).__name__ for part in (model, getattr(model, "classifier", None)) if part)
            raise TypeError(f"a common model must be a TextClassifier with an AdaptiveClassifier, not a {kind}")
        classifier = model.classifier
        if classifier.drift_detector is not None:
            raise ValueError("a common model cannot have a drift_detector, which makes all features forget at once")
        if classifier.max_features is not None and model.n_features:
            raise ValueError("a common model that has learned cannot have max_features; set it to None")
        self.features, self.half_life = model.features, classifier.half_life
        arrays, _, self._values = classifier.to_state()
        declaration = declaration_of(arrays)
        self._arrays = declaration.taken(arrays, np.argsort(arrays["keys"]))
        self._starts = declaration.starts_of(self._arrays) if "n_taught" in arrays else None
        self.checksum = bytes.fromhex(checksum(self._arrays, [self._values, packed_features(self.features)]))
        of_features = {*declaration.names_of(FEATURES, TAUGHT)}
        self.packer = Packer(
            {name: array for name, array in self._arrays.items() if name not in of_features},
            orjson.dumps([[name, array.dtype.str] for name, array in arrays.items()] + [self._values]),
        )

    def branch(self, texts: list[str], kept: bytes | None = None) -> Branch:
        """A model that goes on from this one, as a copy of it would, for as long as it meets these texts alone.

        Parameters
        ----------
        texts
            All texts that it is to predict or learn.
        kept
            What `Branch.kept` gave before, `None` to begin.

        Raises
        ------
        ValueError
            If that was kept of a branch of another model.
        """
        if kept is None:
            nothing = np.zeros(0, np.intp)
            own = declaration_of(self._arrays).taken(self._arrays, nothing, self._starts)
            values, grown = self._values, None
        else:
            if not kept.startswith(self.checksum):
                raise ValueError("what was kept is of a branch of another common model")
            own, (values, grown) = self.packer.unpacked(kept[len(self.checksum) :])
            values = {**values, "parameters": self._values["parameters"]}
        keys = np.unique(self.features.scanner.transform_many(self.features.prepare_many(texts))[1].astype(np.int64))
        places = np.searchsorted(self._arrays["keys"], keys)
        is_known = places < len(self._arrays["keys"])
        is_known[is_known] = self._arrays["keys"][places[is_known]] == keys[is_known]
        places = places[is_known & ~np.isin(keys, own["keys"])]
        taken = self._taken(places, values, grown)
        joined = {name: np.concatenate([own[name], taken[name]]) if name in taken else own[name] for name in own}
        model = TextClassifier(self.features, AdaptiveClassifier.from_state(joined, [], values))
        return Branch(self, model, taken, grown)

    def _taken(self, places: NDArray[np.intp], values: Any, grown: Any) -> State:
        """What a branch knows of features that it has not learned."""
        declaration = declaration_of(self._arrays)
        state = declaration.taken(self._arrays, places, self._starts)
        clock = Clock(self._values["learner"], [values["learner"]], self.half_life or 0.0)
        for _ in range(clock.n_rescalings(0)):
            for name in {*EVIDENCE_OF_FEATURE} & state.keys():
                state[name] = state[name] / RESCALED_AT
        if declaration is TWO_CLASSES:
            if self.is_exchanged(values["labels"]) if grown is None else grown["exchanged"]:
                state = negated(state)
            if grown is not None:
                declaration = SEVERAL_CLASSES
                state = from_two_classes(
                    {**self._values["learner"], **state, "intercept_log_ratio": grown["intercept_log_ratio"]}
                )
        return {name: state[name] for name in declaration.names_of(FEATURES, TAUGHT)}

    def is_exchanged(self, labels: Any) -> bool:
        """Whether the positive class of this model is the negative one where two labels are these."""
        ours = self._values["labels"]
        return any(ours[side] is not None and ours[side] != labels[side] for side in ("negative", "positive"))


class Branch:
    """A model that went on from a common one.

    Attributes
    ----------
    model
        The `TextClassifier`, to predict with; it learns by `learn_one` of the branch.
    n_learned
        How many texts were learned since the branch was put together.
    """

    def __init__(self, common: CommonModel, model: TextClassifier, taken: State, grown: Any) -> None:
        self.model = model
        self._common, self._taken, self._grown = common, taken, grown
        self._n_before = model.n_iterations

    @property
    def n_learned(self) -> int:
        return self.model.n_iterations - self._n_before

    def learn_one(self, text: str, label: Any) -> None:
        """Learn from a text, as the model does and raising as it does."""
        before = self.model.classes
        if len(before) > 2 or None in before or label in before:
            self.model.learn_one(text, label)
            return
        _, _, values = self.model.classifier.to_state()  # from which it grows, if the label is a third one
        self.model.learn_one(text, label)
        if len(self.model.classes) > 2:
            self._grown = {
                "exchanged": self._common.is_exchanged(values["labels"]),
                "intercept_log_ratio": values["learner"]["intercept_log_ratio"],
            }

    def kept(self) -> bytes:
        """All that differs from the common model."""
        arrays, _, values = self.model.classifier.to_state()
        declaration = declaration_of(arrays)
        if self._taken.keys() <= arrays.keys():  # unless a third class came
            order = np.argsort(arrays["keys"])
            places = order[np.searchsorted(arrays["keys"], self._taken["keys"], sorter=order)]
            is_changed = np.ones(len(order), bool)
            is_changed[places] = ~same(declaration, self._taken, declaration.taken(arrays, places))
            arrays = declaration.selected(arrays, is_changed)
        values = {name: value for name, value in values.items() if name != "parameters"}
        return self._common.checksum + self._common.packer.packed(arrays, [values, self._grown])


def declaration_of(arrays: Any) -> Declaration:
    return SEVERAL_CLASSES if "class_counts" in arrays else TWO_CLASSES


def same(declaration: Declaration, state: State, other: State) -> NDArray[np.bool_]:
    """Which features are known alike in two states that have the same ones."""
    alike: NDArray[np.bool_] = np.ones(len(state["keys"]), bool)
    for name in declaration.names_of(FEATURES):
        alike &= state[name] == other[name]
    if "n_taught" in state:
        places = np.flatnonzero(alike)
        ours, theirs = declaration.taken(state, places), declaration.taken(other, places)
        of_columns = np.repeat(places, ours["n_taught"])
        for name in declaration.names_of(TAUGHT):
            alike[of_columns[ours[name] != theirs[name]]] = False
    return alike
