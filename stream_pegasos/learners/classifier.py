"""The base class of classifiers over feature dicts."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from river import base

from stream_pegasos.common.cached import cached_property
from stream_pegasos.common.packing import get_parameters, pack_parameters, unpack_parameters
from stream_pegasos.engine import Encoder, Rows
from stream_pegasos.engine.pure.encoders import Inputs
from stream_pegasos.features.frames import csr_arrays, list_of_examples, merge_duplicates
from stream_pegasos.learners.earlier import as_now, take_attributes
from stream_pegasos.learners.files import Arrays
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.trainer import Trainer

__all__ = ["Classifier"]


class Classifier(Model):
    """The base class of classifiers over feature dicts. A subclass has parameters, and composes a trainer of them."""

    _linear = True  # whether two values in one column count as their sum
    inner_kind: ClassVar[type[Classifier] | None] = None  # of the classifier inside, whose parameters are used

    def make_trainer(self) -> Trainer:
        """A new trainer, by the parameters."""
        raise NotImplementedError

    @cached_property
    def trainer(self) -> Trainer:
        with self.lock:  # two threads may ask for the first time at once
            if "trainer" not in vars(self):
                vars(self)["trainer"] = self.make_trainer()
            trainer: Trainer = vars(self)["trainer"]
            return trainer

    @property
    def inner(self) -> Classifier:
        """The classifier inside this one, which has its rule and options; else this one itself."""
        inner: Classifier = vars(self).get("classifier", self)
        return inner

    def __getstate__(self) -> dict[str, Any]:
        """The state for a pickle or a copy. A trainer that has learned nothing is composed again."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "trainer" or not value.is_new}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in (take_attributes(self, state) if "learner" in state else state).items():
            setattr(self, name, value)

    def take_parameters(self, parameters: dict[str, Any]) -> None:
        if self.inner_kind is None:
            vars(self).update(parameters)
        else:  # a new one, as the caller has the one before
            vars(self)["classifier"] = self.inner_kind(**{**get_parameters(self.inner), **parameters})

    # Encoding.

    def encode_one(self, x: object) -> tuple[Encoder, Any]:
        return self.trainer.vocabulary, x

    def encode_many(self, X: object, threads: int = 1) -> tuple[Encoder, Inputs]:
        if type(X) is list:
            return self.trainer.vocabulary, X
        if hasattr(X, "tocsr"):
            matrix = X.tocsr()
            rows, n_columns = csr_arrays(matrix), matrix.shape[-1]
            return Rows(n_columns), rows if self._linear else merge_duplicates(rows, n_columns)
        return self.trainer.vocabulary, list_of_examples(X)

    # The state as data.

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        arrays, names, values = self.trainer.to_state(lazy)
        return arrays, names, {"parameters": pack_parameters(self.inner), **values}

    @classmethod
    def from_state(cls, arrays: Arrays, names: list[Any], values: dict[str, Any]) -> Self:
        values, state = as_now(values, {**arrays, **values["learner"]}, issubclass(cls, base.MultiLabelClassifier))
        parameters = unpack_parameters(values["parameters"])  # those of the inner classifier
        model = cls(**parameters) if cls.inner_kind is None else cls(cls.inner_kind(**parameters))
        model.trainer.take_state(state, names, values)
        return model
