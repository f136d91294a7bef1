"""Files of version 0.2. Of two labels the negative one was number 0 and the positive one 1, as their column has it.
Only where the positive one alone was met, which is number 0 now, is the column mirrored. And options that went.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.common.state import State
from stream_pegasos.engine.merging import mirrored
from stream_pegasos.engine.pure.driver import has_column_each
from stream_pegasos.learners.feature_scaler import IDLE
from stream_pegasos.learners.files import RemovedError

__all__ = ["as_now"]


def as_now(values: Mapping[str, Any], state: State) -> tuple[dict[str, Any], State]:
    labels, made, nothing = values["labels"], dict(values), pack(None)
    made["parameters"] = without_removed(values["parameters"])
    if isinstance(labels, list) and has_column_each(state):
        made["labels"] = {"known": labels, "positive": nothing}
    elif "negative" in labels:
        met = [labels["negative"], *([] if labels["only_named"] else [labels["positive"]])] if labels["met"] else []
        known = [label for label in met if unpack(label) is not None]
        if known == [labels["positive"]]:
            state = mirrored(state)
        made["labels"] = {"known": known, "positive": labels["positive"] if len(known) == 2 else nothing}
    if "n_drifts" in values:  # before there were numeric features
        made["watched"] = {"n_drifts": made.pop("n_drifts"), "scaler": IDLE}
    return made, state


def without_removed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(parameters)
    for name, default in (("counter", "every"), ("initializer", None)):
        if kept.pop(name, default) != default:
            raise RemovedError(
                f"it has the {name} of version 0.2; learn a model without it, or see examples/papers/variants.py"
            )
    if kept.get("kernel") == "cosine":
        raise RemovedError("it has the kernel 'cosine', which was removed; 'linear' over lengths of 1 is the same")
    rule = kept.pop("budget_maintenance", "removal")
    if rule != "removal" and kept.get("kernel") == "rbf" and kept.get("budget") is not None:
        raise RemovedError(
            "its support vectors were merged, which was removed; learn it again, with a budget that removes"
        )
    return kept
