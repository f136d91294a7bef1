"""A text model that predicts and learns no more."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Self

from numpy.typing import NDArray

from stream_pegasos.engine.frozen import refuse
from stream_pegasos.features.base import Features
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.files import Arrays
from stream_pegasos.learners.freezing import FEATURE_ARRAYS
from stream_pegasos.learners.labels import Label
from stream_pegasos.learners.text import TextClassifier

__all__ = ["FrozenTextClassifier"]


class FrozenTextClassifier(TextClassifier):
    """A text model that only predicts, for many machines and processes: `TextClassifier.freeze` makes it.

    Its file is not read when it is loaded, but mapped: each page comes into memory when it is first needed, and all
    processes that load the file share it. So load the file in each process rather than send the model there. Do not
    write into a file that is in use: `save` replaces it, and processes that have loaded the old file keep the old one.

    It predicts as the model did, with its decisions, probabilities and explanations. The only difference is that
    weights are rounded to half precision.

    Parameters
    ----------
    features, classifier
        The parts, as `freeze` gives them.

    Examples
    --------

    >>> import pathlib, tempfile
    >>> import stream_pegasos
    >>> from stream_pegasos import TextClassifier

    >>> model = TextClassifier()
    >>> model.learn_many(["see you at lunch", "cheap pills for you", "lunch at noon?"], ["ham", "spam", "ham"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "frozen.safetensors"
    ...     model.freeze().save(path)
    ...     frozen = stream_pegasos.load(path)
    >>> frozen.predict_one("pills, cheap pills")
    'spam'
    >>> difference = frozen.decision_function_one("cheap lunch") - model.decision_function_one("cheap lunch")
    >>> abs(difference) < 0.01
    True
    >>> frozen.learn_one("cheap watches", "spam")
    Traceback (most recent call last):
        ...
    TypeError: a frozen model only predicts; go on learning with the model that it was frozen from, and freeze that anew

    """

    mapped = FEATURE_ARRAYS

    def __init__(self, features: Features | None = None, classifier: Classifier | None = None) -> None:
        super().__init__(features, classifier)
        if not self.classifier.is_frozen:
            raise TypeError("make a frozen model by TextClassifier.freeze")

    @property
    def capabilities(self) -> frozenset[str]:  # type: ignore[override]
        return super().capabilities | {"frozen"}

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> NoReturn:
        """Raise a TypeError."""
        refuse()

    def learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1) -> NoReturn:
        """Raise a TypeError."""
        refuse()

    def predict_learn_many(
        self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1
    ) -> NoReturn:
        """Raise a TypeError."""
        refuse()

    def set_decision(
        self,
        threshold: float | Mapping[Label, float] | None = None,
        max_false_positive_rate: float | Mapping[Label, float] | None = None,
        pos_label: Label | None = None,
    ) -> NoReturn:
        """Raise a TypeError: decide before freezing."""
        raise TypeError("a frozen model keeps its decision; set that of the original model, and freeze it again")

    def check_labels(self, y: Iterable[Any]) -> NoReturn:
        """Raise a TypeError."""
        refuse()

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """A copy, as nothing can be learned anew.

        Parameters
        ----------
        new_params, include_attributes
            Nothing, and whatever it is.

        Raises
        ------
        TypeError
            If there are new parameters.
        """
        if new_params:
            refuse()
        return copy.deepcopy(self)

    def flush(self) -> None:
        """Do nothing."""

    def freeze(self) -> Self:
        """This model."""
        return self

    def to_state(self) -> tuple[dict[str, NDArray[Any]], list[Any], dict[str, Any]]:
        arrays, classifier = self.classifier.frozen_state()
        return arrays, [], self._packed_with(classifier)

    @classmethod
    def from_state(cls, arrays: Arrays, names: list[Any], values: Any) -> Self:
        known = {**values["classifier"]["frozen"], **{name: arrays[name] for name in FEATURE_ARRAYS}}
        rest = {name: array for name, array in arrays.items() if name not in FEATURE_ARRAYS}
        kind = cls.kind_of(values["kind"])
        if not issubclass(kind, Classifier):
            raise ValueError(f"{values['kind']} is no classifier")
        return cls._unpacked_with(kind.from_frozen_state(rest, names, values["classifier"], known), arrays, values)
