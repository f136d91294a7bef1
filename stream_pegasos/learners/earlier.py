"""Files of version 0.2, in which two labels exchanged their numbers so that the second was the positive one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.common.state import State
from stream_pegasos.engine.merging import mirrored
from stream_pegasos.engine.pure.driver import CONFIDENCE

__all__ = ["as_now"]


def as_now(values: Mapping[str, Any], state: State) -> tuple[dict[str, Any], State]:
    """What a file says, in the way of today."""
    labels, made, nothing = values["labels"], dict(values), pack(None)
    if isinstance(labels, list) and CONFIDENCE[0].name in state:  # each class has a column
        made["labels"] = {"known": labels, "positive": nothing}
    elif "negative" in labels:
        met = [labels["negative"], *([] if labels["only_named"] else [labels["positive"]])] if labels["met"] else []
        known = [label for label in met if unpack(label) is not None]
        if known == [labels["positive"]]:
            state = mirrored(state)
        made["labels"] = {"known": known, "positive": labels["positive"] if len(known) == 2 else nothing}
    return made, state
