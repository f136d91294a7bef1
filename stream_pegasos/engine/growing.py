"""From one column, which two classes share, to a column a class."""

from __future__ import annotations

from typing import Any

from stream_pegasos.engine import Learner, in_use
from stream_pegasos.engine.pure import AdaptiveColumnsLearner, PegasosLearner
from stream_pegasos.engine.pure.adaptive_columns import from_two_classes as adaptive_from_two_classes
from stream_pegasos.engine.pure.pegasos import from_two_classes as pegasos_from_two_classes

__all__ = ["grown"]


def grown(learner: Learner) -> Learner:
    """A learner of any number of classes that knows what this one knows of two."""
    if isinstance(learner, in_use(PegasosLearner)):
        several: Any = type(learner)(*learner.arguments[:-1], reduction="ovr")  # type: ignore[misc]
        several.set_state(pegasos_from_two_classes(learner.get_state()))
    else:
        several = in_use(AdaptiveColumnsLearner)(*learner.arguments, reduction="ovr")  # type: ignore[misc]
        several.set_state(adaptive_from_two_classes(learner.get_state()))
    return several  # type: ignore[no-any-return]
