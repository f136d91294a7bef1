"""Files of version 0.2, removed options, and pickles of models whose parts were attributes of the model itself. In such
files the negative one of two labels has number 0 and the positive one number 1, as in their column. If only the
positive label was met, it has number 0 now, so the column is mirrored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from stream_pegasos.common.packing import pack, parameter_names, unpack
from stream_pegasos.common.state import State
from stream_pegasos.engine.merging import mirrored
from stream_pegasos.engine.pure.driver import has_column_each
from stream_pegasos.learners.feature_scaler import IDLE, Scaling
from stream_pegasos.learners.files import RemovedError
from stream_pegasos.learners.forgetting import Recency
from stream_pegasos.learners.trainer import Trainer

__all__ = ["as_now", "take_attributes"]

# Attributes of policies, by their names when they were attributes of the model.
OF_POLICY = {"decisions": "decisions", "f1": "f1", "conformal": "conformal", "of_others": "default"}


class Composed(Protocol):
    """A classifier that composes its trainer."""

    def make_trainer(self) -> Trainer: ...


def as_now(values: Mapping[str, Any], state: State) -> tuple[dict[str, Any], State]:
    labels, new_values, nothing = values["labels"], dict(values), pack(None)
    new_values["parameters"] = drop_removed_parameters(values["parameters"])
    if isinstance(labels, list) and has_column_each(state):
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
    if "n_drifts" in values:  # from before numeric features existed
        new_values["watched"] = {"n_drifts": new_values.pop("n_drifts"), "scaler": IDLE}
    return new_values, state


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
    trainer.choose_paths()
    return own | {"trainer": trainer}
