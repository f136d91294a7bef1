"""What models can do."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Capability"]


class Capability(StrEnum):
    """Something that a model can do; it equals its name, as in `"weights" in model.capabilities`."""

    TEXTS = "texts"  # examples are texts, or have fields
    VECTORS = "vectors"  # messages may have vectors beside their features
    WEIGHTS = "weights"  # features have weights
    EXPLAIN = "explain"  # `contributions`; of a text `explain_one`
    MULTICLASS = "several classes"  # more than two
    ORDINAL = "ordered"  # classes are integers, between which errors have a size
    MULTILABEL = "several labels"  # an example may have several
