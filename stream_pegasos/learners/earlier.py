"""Files of version 0.2, and removed options. In such files the negative one of two labels has number 0 and the positive
one number 1, as in their column. If only the positive label was met, it has number 0 now, so the column is mirrored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.common.state import State
from stream_pegasos.engine.pure.adaptive_state import OF_TWO_CLASSES
from stream_pegasos.engine.pure.driver import CONFIDENCE
from stream_pegasos.engine.pure.pegasos import declared
from stream_pegasos.learners.feature_scaler import IDLE
from stream_pegasos.learners.files import RemovedError

__all__ = ["as_now", "mirrored"]

# The rules of two classes in one column.
RULES = declared(1, False, "two"), declared(1, True, "two"), OF_TWO_CLASSES


def as_now(values: Mapping[str, Any], state: State) -> tuple[dict[str, Any], State]:
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
    if "n_drifts" in values:  # from before numeric features existed
        new_values["watched"] = {"n_drifts": new_values.pop("n_drifts"), "scaler": IDLE}
    return new_values, state


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
