"""The capabilities of models."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Capability"]


class Capability(StrEnum):
    """A capability of a model. It equals its name, as in `"weights" in model.capabilities`."""

    TEXTS = "texts"  # examples are texts, or have fields
    VECTORS = "vectors"  # messages may have vectors beside their features
    WEIGHTS = "weights"  # features have weights
    EXPLAIN = "explain"  # `contributions`, and `explain_one` for texts
    MULTICLASS = "several classes"  # more than two
    ORDINAL = "ordered"  # classes are integers, and errors have a size
    MULTILABEL = "several labels"  # an example may have several
