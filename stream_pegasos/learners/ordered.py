"""The base of all learners of ordered classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from stream_pegasos.common.packing import pack_parameters, parameters_of
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.labels import (
    check_label,
    label_list,
)

__all__ = ["OrderedClassifier", "check_integer_label", "check_unused"]


class OrderedClassifier(Classifier):
    """A classifier of ordered classes: labels are integers, and parameters are those of the inner `classifier`."""

    classifier: Any
    kind: ClassVar[type[Classifier]]  # of that classifier

    def check_labels(self, y: Iterable[Any]) -> None:
        for label in label_list(y):
            check_integer_label(label)

    def _packed_parameters(self) -> dict[str, Any]:
        return pack_parameters(self.classifier)

    @classmethod
    def _made_with(cls, parameters: dict[str, Any]) -> Self:
        return cls(cls.kind(**parameters))


def check_integer_label(y: Any) -> int:
    """The label as a plain int or bool.

    Raises
    ------
    TypeError
        If it is none.
    ValueError
        If it is a float with a fraction, NaN or infinite.
    """
    label = check_label(y)
    if isinstance(label, str):
        raise TypeError(f"label {y!r} is a str; ordered labels must be integers, such as 0 to 4 for one to five stars")
    return label


def check_unused(classifier: Any, names: Iterable[str]) -> None:
    """Raise a ValueError for a parameter that an ordered model does not use."""
    defaults = parameters_of(type(classifier)())
    for name in names:
        if getattr(classifier, name) != defaults[name]:
            raise ValueError(f"{name} is {getattr(classifier, name)!r}, which an OrdinalClassifier does not use")
