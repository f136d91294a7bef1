"""States of version 0.2 as those of today, removed options, and pickles of models from before they had a trainer.

In a file of version 0.2 the negative one of two labels has number 0 and the positive one number 1, as in their column.
If only the positive label was met, it has number 0 now, so the column is mirrored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from stream_pegasos.common.packing import pack, parameter_names, unpack, unpack_parameters
from stream_pegasos.common.state import State
from stream_pegasos.engine.pure.adaptive_state import OF_TWO_CLASSES
from stream_pegasos.engine.pure.driver import CONFIDENCE
from stream_pegasos.engine.pure.pegasos import declared
from stream_pegasos.features.base import Features
from stream_pegasos.learners.capabilities import CLASSES, LABELS, ORDERED
from stream_pegasos.learners.feature_scaler import IDLE, Scaling
from stream_pegasos.learners.forgetting import Recency
from stream_pegasos.learners.trainer import Trainer

__all__ = [
    "FROZEN",
    "RemovedError",
    "as_now",
    "check_kind",
    "default_parameters",
    "mirrored",
    "monitor_now",
    "name_spaces",
    "score_now",
    "take_attributes",
]

# The rules of two classes in one column.
RULES = declared(1, False, "two"), declared(1, True, "two"), OF_TWO_CLASSES
# Attributes of policies, by their names when they were attributes of the model.
OF_POLICY = {"decisions": "decisions", "f1": "f1", "conformal": "conformal", "of_others": "default"}

FROZEN = '"FrozenTextClassifier"'  # in the header of a file of a removed kind
# The columns of a curve of a monitor, which its state did not name.
CURVES = {
    CLASSES: ("n", "accuracy", "macro_f1", "roc_auc", "window_accuracy", "window_roc_auc"),
    ORDERED: ("n", "accuracy", "mean_absolute_error", "window_accuracy"),
    LABELS: ("n", "micro_f1", "macro_f1", "window_micro_f1"),
}
# Parts of a score that its state did not have: examples without an answer counted as wrong, and numbers of ordered
# labels were the labels themselves.
SCORES = {"sets": [0.0] * 4, "newest_sets": [], "n_unanswered": 0, "first": 0}


class RemovedError(ValueError):
    """The file needs a removed option of an earlier version."""


class Composed(Protocol):
    """A classifier that composes its trainer."""

    def make_trainer(self) -> Trainer: ...


def as_now(values: Mapping[str, Any], state: State, has_sets: bool) -> tuple[dict[str, Any], State]:
    """The values and the state of a learner. `has_sets`: an example may have several labels."""
    labels, new_values, nothing = values["labels"], dict(values), pack(None)
    new_values["parameters"] = drop_removed_parameters(values["parameters"])
    if isinstance(labels, list) and CONFIDENCE[0].name in state:
        new_values["labels"] = {"known": labels, "positive": nothing}
    elif "negative" in labels:
        labels_met = (
            [labels["negative"], *([] if labels["only_named"] else [labels["positive"]])] if labels["met"] else []
        )
        known_labels = [label for label in labels_met if unpack(label) is not None]
        if known_labels == [labels["positive"]]:
            state = mirrored(state)
        new_values["labels"] = {
            "known": known_labels,
            "positive": labels["positive"] if len(known_labels) == 2 else nothing,
        }
    decisions = values.get("decisions", [])
    is_named = len(decisions) == 1 and not has_sets and decisions[0][0] != nothing
    if is_named and is_for_positive(unpack_parameters(values["parameters"])):
        ((label, limit),) = decisions  # the positive label was named there
        new_values["labels"] = {**new_values["labels"], "positive": label}
        new_values["decisions"] = [[nothing, limit]]
    if "n_drifts" in values:  # from before numeric features existed
        new_values["watched"] = {"n_drifts": new_values.pop("n_drifts"), "scaler": IDLE}
    return new_values, state


def is_for_positive(parameters: Mapping[str, Any]) -> bool:
    """Whether a threshold or a limit is for the positive label, whichever it is."""
    options = [parameters.get(name) for name in ("threshold", "max_false_positive_rate")]
    return options != [0.5, None] and not any(isinstance(option, Mapping) for option in options)


def check_kind(name: str) -> None:
    if name == "OrdinalPairsClassifier":
        raise RemovedError(
            "it has the ordered pairs of version 0.2; learn an OrdinalClassifier() again, "
            "or see examples/papers/duros_katzman.py"
        )


def default_parameters(kind: str) -> dict[str, Any]:
    """The parameters of features that had another default, or did not exist."""
    if kind not in ("TextFeatures", "MailFeatures"):
        return {}
    return {"mask_digits": True} | ({"letters": 0.0, "length": 0.0} if kind == "TextFeatures" else {})


def name_spaces(parts: Sequence[Features]) -> list[Features]:
    """The parts of a sum of features, where the namespace "" was that of the first field."""
    first, *others = parts
    space = first.each[0].space
    return [first, *(part if part.space else part.clone({"namespace": space}) for part in others)]


def score_now(state: Mapping[str, Any]) -> dict[str, Any]:
    return {**SCORES, **state}


def monitor_now(state: Mapping[str, Any]) -> dict[str, Any]:
    curve, kind = state["curve"], state["score"]["kind"]
    if not isinstance(curve, Mapping):
        points = np.array(curve, float).reshape(-1, len(CURVES[kind]))
        curve = dict(zip(CURVES[kind], points.T.tolist(), strict=True))
    return {**state, "curve": curve}


def mirrored(state: State) -> State:
    """The state of a learner of two classes in one column, as if it had met the classes in the other order."""
    if "coefficients" in state:  # of support vectors
        return state | {"coefficients": 0.0 - state["coefficients"]}
    rule = next((rule for rule in reversed(RULES) if rule.is_complete(state)), None)
    return state if rule is None else rule.mirrored(state)  # a state of no rule is refused later


def drop_removed_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    remaining = dict(parameters)
    for name, default in (("counter", "every"), ("initializer", None)):
        if remaining.pop(name, default) != default:
            raise RemovedError(
                f"it has the {name} of version 0.2; learn a model without it, or see examples/papers/variants.py"
            )
    if remaining.get("kernel") == "cosine":
        raise RemovedError(
            "it has the kernel 'cosine', which was removed; use 'linear' with examples of norm 1, which is the same"
        )
    rule = remaining.pop("budget_maintenance", "removal")
    if rule != "removal" and remaining.get("kernel") == "rbf" and remaining.get("budget") is not None:
        raise RemovedError(
            "its support vectors were merged, which was removed; learn it again, with a budget that removes"
        )
    return remaining


def take_attributes(model: Composed, state: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a model, from those in a pickle of before models had a trainer."""
    names = (*parameter_names(type(model)), "lock", "field_names")
    own = {name: state[name] for name in names if name in state}
    vars(model).update(own)
    trainer = model.make_trainer()
    for name in ("learner", "labels", "class_weights", "vocabulary"):
        setattr(trainer, name, state[name])
    scaling = state.get("_scaling")
    trainer.scaling = None if scaling is None else Scaling(scaling[0])
    trainer.forgetting.recency, trainer.drift = state.get("recency", Recency()), state.get("_drift", trainer.drift)
    trainer.has_warned_of_labels = state.get("_told_of_labels", False)
    trainer.has_warned_of_options = state.get("_told_of_options", True)
    for before, name in OF_POLICY.items():
        if before in state:
            setattr(trainer.policy, name, state[before])
    trainer.join_parts()
    return own | {"trainer": trainer}
