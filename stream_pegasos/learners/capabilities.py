"""The capabilities of models."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

__all__ = ["CLASSES", "LABELS", "ORDERED", "Capability", "model_kind"]


class Capability(StrEnum):
    """A capability of a model. It equals its name, as in `"weights" in model.capabilities`."""

    TEXTS = "texts"  # examples are texts, or have fields
    VECTORS = "vectors"  # messages may have vectors beside their features
    WEIGHTS = "weights"  # features have weights
    EXPLAIN = "explain"  # `contributions`, and `explain_one` for texts
    MULTICLASS = "several classes"  # more than two
    ORDINAL = "ordered"  # classes are integers, and errors have a size
    MULTILABEL = "several labels"  # an example may have several


# The kinds of models, by their predictions: one of several classes, one of ordered classes, or several labels.
CLASSES, ORDERED, LABELS = "classes", Capability.ORDINAL.value, Capability.MULTILABEL.value


def model_kind(capabilities: Collection[str]) -> str:
    """The kind of a model with these capabilities: "classes", "ordered" or "several labels"."""
    if Capability.MULTILABEL in capabilities:
        return LABELS
    return ORDERED if Capability.ORDINAL in capabilities else CLASSES
