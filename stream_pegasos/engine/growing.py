"""From a learner of two classes, which share a column, to one with a column for each class."""

from __future__ import annotations

from stream_pegasos.common.state import State
from stream_pegasos.engine import Learner
from stream_pegasos.engine.pure.adaptive_state import from_two_classes as adaptive_from_two_classes
from stream_pegasos.engine.pure.pegasos import from_two_classes as pegasos_from_two_classes

__all__ = ["from_two_classes", "grown"]


def from_two_classes(state: State) -> State:
    """The state of a learner of any number of classes, made from that of a learner of two classes."""
    return (pegasos_from_two_classes if "scale" in state else adaptive_from_two_classes)(state)


def grown(learner: Learner) -> Learner:
    """A learner of any number of classes, made from a learner of two."""
    several: Learner = type(learner)(*learner.arguments[:-1], reduction="ovr")  # type: ignore[call-arg]
    several.set_state(from_two_classes(learner.get_state()))
    return several
