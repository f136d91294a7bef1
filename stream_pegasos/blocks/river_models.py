"""Classifiers and pipelines of River, with the interface of this package's models, for evaluation."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from river import base
from river.active.base import ActiveLearningClassifier
from river.compose.pipeline import Pipeline

from stream_pegasos.common.checks import LARGEST_WEIGHT, check_number, user_code
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.locks import Lock
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.label_policy import Label, check_label, label_list
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions

__all__ = ["RiverModel"]


class RiverAnswer(NamedTuple):
    """The answer of a model to a message; and whether the model wants its label, which active learners do not always
    do.
    """

    label: Label | None
    probabilities: dict[Label, float]
    is_asked: bool = True


NO_ANSWER = RiverAnswer(None, {})


class RiverModel:
    """A classifier of River, with the interface that evaluation needs; a TypeError if it is no classifier. If it has no
    probabilities, these are NaN, and metrics that need them are undefined. An active learner only learns the labels
    that it wants.
    """

    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, model: object) -> None:
        if not isinstance(model, base.Classifier):  # true for a pipeline whose last step is a classifier
            raise TypeError(must_be("a model", "a classifier of this package or of River's", type_name(model)))
        self._model: Any = model
        self.lock, self.labels = Lock(), Labels()
        last = last_step(model)
        self._is_active = isinstance(last, ActiveLearningClassifier)
        self._decides_itself = type(last).predict_one is not base.Classifier.predict_one and not self._is_active
        self._unasked: set[int] = set()  # numbers of waiting messages whose label the active learner does not want

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.labels.classes

    def check_labels(self, y: Iterable[Any]) -> None:
        self.labels.add_labels(label_list(y))

    def learn_one(self, x: object, y: object, w: float = 1.0) -> None:
        labels = self.labels.add_labels([y])
        check_number("w", w, 0.0, LARGEST_WEIGHT)
        if w == 0.0:
            return
        if w != 1.0 and not self._takes_weights():
            name = type(last_step(self._model)).__name__
            raise TypeError(f"w must be 1 or 0, got {w!r}: {name} takes no weights; leave them out of the stream")
        with user_code("the model"):
            self._model.learn_one(x, check_label(y), **({} if w == 1.0 else {"w": w}))
        self.labels = labels

    def _takes_weights(self) -> bool:
        parameters = inspect.signature(last_step(self._model).learn_one).parameters
        has_others = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        return ("w" in parameters or has_others) and not self._is_active  # an active learner drops the weight

    def predictions(self, X: Sequence[Any], threads: int = 1) -> Predictions:
        return self._settled([self._said(x) for x in X], self.labels)

    def predict_learn_many(
        self, X: Sequence[Any], y: Sequence[Any], w: float | Sequence[float] = 1.0, threads: int = 1
    ) -> Predictions:
        self.check_labels(y)
        weights = w if isinstance(w, Sequence) else [w] * len(X)
        answers = list[RiverAnswer]()
        for x, label, weight in zip(X, y, weights, strict=True):
            with self._partly(answers):
                answer, known_labels = self._said(x), self.labels
                if answer.is_asked:
                    self.learn_one(x, label, weight)
            answers.append(answer)
        return self._settled(answers, known_labels if answers else self.labels)

    def predict_or_learn_many(
        self, examples: Sequence[Any], numbers: Sequence[int], are_answers: Sequence[bool]
    ) -> Predictions:
        """Predict some examples and learn others, in order. The result has a row for each, an empty one for a learned
        example.
        """
        answers = list[RiverAnswer]()
        for example, number, is_answer in zip(examples, numbers, are_answers, strict=True):
            with self._partly(answers):
                answer = NO_ANSWER
                if not is_answer:
                    answer = self._said(example[0])
                    if not answer.is_asked:
                        self._unasked.add(number)
                elif number in self._unasked:
                    self._unasked.discard(number)
                else:
                    self.learn_one(*example[:3])
            answers.append(answer)
        return self._settled(answers, self.labels)

    @contextlib.contextmanager
    def _partly(self, answers: Sequence[RiverAnswer]) -> Iterator[None]:
        """If the model refuses an example, raise an error that tells how many examples before it are done, if there are
        any.
        """
        try:
            yield
        except (ValueError, TypeError) as error:
            if not answers:
                raise
            raise PartlyLearnedError(len(answers), None, error, self._settled(answers, self.labels)) from error

    def _said(self, x: object) -> RiverAnswer:
        """The answer of the model. Its labels count as known from then on: it may have learned them before."""
        with user_code("the model"):
            label, probabilities, is_asked = self._asked(x)
        label = None if label is None else check_label(label)
        probabilities = {check_label(of): p for of, p in probabilities.items() if of is not None}
        if new := [of for of in (*probabilities, label) if of is not None and of not in self.labels.targets]:
            self.labels = self.labels.add_labels(new)
        return RiverAnswer(label, probabilities, is_asked)

    def _asked(self, x: object) -> tuple[Any, dict[Any, float], bool]:
        """The answer of the model itself. If one call gives everything, there is only one: an active learner draws a
        random number in each.
        """
        if self._decides_itself:
            probabilities = {}
            with contextlib.suppress(NotImplementedError):
                probabilities = self._model.predict_proba_one(x)
            return self._model.predict_one(x), probabilities, True
        output = self._model.predict_proba_one(x)
        probabilities, is_asked = output if self._is_active else (output, True)
        return max(probabilities, key=probabilities.__getitem__, default=None), probabilities, bool(is_asked)

    def _settled(self, answers: Sequence[RiverAnswer], labels_known: Labels) -> Predictions:
        """The answers as predictions of a model that knew these labels."""
        probabilities = np.full((len(answers), len(labels_known.classes)), np.nan)
        for row, answer in enumerate(answers):
            if answer.probabilities:
                probabilities[row] = [answer.probabilities.get(label, 0.0) for label in labels_known.classes]
        labels = np.empty(len(answers), object)
        labels[:] = [answer.label for answer in answers]
        return labels_known.foreign_predictions(labels, probabilities)


def last_step(model: object) -> Any:
    """The last step of a pipeline, which may be a pipeline, too; any other model itself."""
    return last_step([*model.steps.values()][-1]) if isinstance(model, Pipeline) else model


AnyModel = Model | RiverModel
