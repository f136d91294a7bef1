"""The learner of several classes over feature dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import (
    LARGEST_WEIGHT,
    check_lengths,
    check_multi_state,
    check_number,
    check_one_of,
)
from stream_pegasos.engine import Encoder, signs_of
from stream_pegasos.features.frames import n_rows
from stream_pegasos.learners.classifier import ClassWeight, Floats, Outcomes, check_class_weight
from stream_pegasos.learners.labels import Classes, Label, label_array, label_list
from stream_pegasos.learners.persistence import pack, unpack
from stream_pegasos.learners.several import SeveralClassifier

__all__ = ["MulticlassPegasosClassifier"]


class MulticlassPegasosClassifier(SeveralClassifier):
    """Linear support vector machines for several classes, trained by Pegasos on one reading of each example.

    Every class has a weight vector of its own, and the class with the largest margin is predicted. Classes come as the
    stream brings them. A feature is looked up once for all of them, in a dictionary whose entry holds a row of weights.

    Parameters
    ----------
    multi_class
        `"crammer_singer"`: all weights are learned together, so that the margin of the right class exceeds that of the
        best wrong one by 1; the objective is λ/2 Σ ‖w_c‖² + mean of max(0, 1 + max over r ≠ y of ⟨w_r, x⟩ − ⟨w_y, x⟩).
        `"ovr"`: each class is learned against the rest, by a `PegasosClassifier` that begins with the first example of
        its class, as in River's `OneVsRestClassifier`.
    l2
        The regularisation λ, from 1e-30 to 1e30.
    batch_size
        k, the number of examples a step is taken on, at least 1.
    t0
        Steps that the step size pretends to have been taken before the first, at least 0.
    project
        Whether each step ends with the projection onto the ball of radius 1/√λ.
    fit_intercept
        Whether to add one constant feature, and so an intercept a class that is regularised as any other weight.
    intercept_scaling
        The value of that feature, above 0.
    class_weight
        What the loss on an example of each class counts, as a dict from label to a weight of at least 0; 1 for labels
        not in it. Or `"balanced"`: N / (K · n), where N examples of K classes were learned so far and n of the class,
        the example itself included.

    Attributes
    ----------
    weights : dict
        For each label a dict with the weights of the features learned.
    intercept : dict
        For each label what the intercept adds to its margin.
    n_iterations : int
        The number of steps taken; with "ovr", by the class that came first.
    classes : tuple
        The labels in the order in which they came.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    [^1]: Crammer, K. and Singer, Y., 2001. On the algorithmic implementation of multiclass kernel-based vector
        machines. JMLR 2.
    [^2]: Leskovec, J., Rajaraman, A. and Ullman, J., 2014. Mining of Massive Datasets, chapter 12. ("Learn one
        classifier" for all classes.)
    [^3]: Shalev-Shwartz, S., Singer, Y., Srebro, N. and Cotter, A., 2011. Pegasos: primal estimated sub-gradient solver
        for SVM. Mathematical Programming 127.

    Examples
    --------

    >>> from stream_pegasos import MulticlassPegasosClassifier

    >>> model = MulticlassPegasosClassifier(l2=0.1)
    >>> stream = [({"goal": 1, "match": 1}, "sport"), ({"shares": 1, "bank": 1}, "money"), ({"rain": 1}, "weather")]
    >>> for x, y in stream * 10:
    ...     model.learn_one(x, y)
    >>> model.predict_one({"match": 1, "today": 1})
    'sport'
    >>> list(model.decision_function_one({"match": 1}))
    ['sport', 'money', 'weather']

    In a pipeline, evaluated by predicting each example before learning it:

    >>> from river import datasets, evaluate, metrics, preprocessing

    >>> pipeline = preprocessing.StandardScaler() | MulticlassPegasosClassifier(l2=0.01, fit_intercept=True)
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), pipeline, metrics.Accuracy())
    Accuracy: 81.85%

    """

    def __init__(
        self,
        multi_class: Literal["crammer_singer", "ovr"] = "crammer_singer",
        l2: float = 1e-4,
        batch_size: int = 1,
        t0: float = 0.0,
        project: bool = True,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
    ) -> None:
        check_one_of("multi_class", multi_class, ("crammer_singer", "ovr"))
        check_class_weight(class_weight)
        self._set_up(
            l2, batch_size, t0, project, fit_intercept, intercept_scaling, joint=multi_class == "crammer_singer"
        )
        self.multi_class = multi_class
        self.class_weight = class_weight
        self._classes = Classes()

    @property
    def classes(self) -> tuple[Label, ...]:
        return self._classes.known

    def _column_names(self) -> dict[Label, int]:
        return {label: column for column, label in enumerate(self.classes)}

    def _learn_one(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        number = self._classes.number(y)
        if not isinstance(w, float) or w != 1.0:
            check_number("w", w, 0.0, LARGEST_WEIGHT)
        if number is None or self.class_weight == "balanced":
            self._learn_many(encoder, [x], [y], w)
            return
        if w != 1.0 or self.class_weight is not None:
            w = self._weight(self.classes[number], w)
        if self._learner.learn(encoder, x, number, float(w)):
            self._forget_idle_names()

    def _learn_many(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> Outcomes:
        labels = label_list(y)
        check_lengths("labels", len(labels), n_rows(rows))
        classes = self._classes.with_labels(labels)
        found = signs_of(labels, classes.numbers)
        assert found is not None
        numbers = found.astype(np.int64)
        before, self._classes = self._classes, classes
        try:
            weights, counts = self._weights_many(numbers, classes.known.__getitem__, w)
            margins = self._learn_rows(encoder, rows, numbers, weights)
        except BaseException:
            self._classes = before
            raise
        self._label_counts = counts
        return Outcomes(margins)

    def _predict_one(self, encoder: Encoder, x: Any) -> Any:
        margins = self._learner.margins(encoder, x)
        return self.classes[margins.argmax()] if len(margins) else None

    def _predict_proba_one(self, encoder: Encoder, x: Any) -> dict[Any, float]:
        margins = self._learner.margins(encoder, x)
        if len(margins) == 1:
            return self._probabilities_of_only(self.classes[0])
        probabilities = softmax(margins, np.array(self._learner.slope))
        return dict(zip(self.classes, probabilities.tolist(), strict=False))

    def _decision_function_one(self, encoder: Encoder, x: Any) -> dict[Any, float]:
        """The margin of each label."""
        margins = self._learner.margins(encoder, x)
        # Another thread may just have met a class that has no column yet: here and elsewhere the labels come second.
        return dict(zip(self.classes, margins.tolist(), strict=False))

    def _predict_many(self, encoder: Encoder, rows: Any) -> NDArray[Any]:
        margins = self._decision_function_many(encoder, rows)
        if not margins.shape[1]:
            return np.full(len(margins), None)
        labels: NDArray[Any] = label_array(self.classes)[margins.argmax(axis=1)]
        return labels

    def _predict_proba_many(self, encoder: Encoder, rows: Any) -> tuple[tuple[Label, ...], Floats]:
        margins, slopes = self._learner.predict_learn_many(encoder, rows)
        if margins.shape[1] == 1:
            only = self._probabilities_of_only(self.classes[0])
            return tuple(only), np.full((len(margins), 2), list(only.values()))
        return self.classes[: margins.shape[1]], softmax(margins, slopes)

    def _decision_function_many(self, encoder: Encoder, rows: Any) -> Floats:
        return self._learner.predict_learn_many(encoder, rows)[0]

    def _labels_to_state(self) -> dict[str, Any]:
        return {"labels": [pack(label) for label in self.classes]}

    def _labels_from_state(self, values: Any) -> None:
        labels = [unpack(label) for label in values["labels"]]
        self._classes = self._classes.with_labels(labels)
        if list(self.classes) != labels:
            raise ValueError("the labels are not as they were written")

    def _check_state(self, state: Mapping[str, Any], names: list[Any]) -> None:
        check_multi_state(state, names, self.batch_size, len(self.classes))
        counts = (state["n_iterations"], state["n_buffered"])
        if self.multi_class == "crammer_singer" and any(np.ptp(count) for count in counts if len(count)):
            raise ValueError("classes that are learned together have taken different steps")


def softmax(margins: Floats, slopes: Floats) -> Floats:
    """Probabilities proportional to exp(slope · margin), of an example or, row by row, of several."""
    if not margins.shape[-1]:
        return margins
    # Before any class was there every margin is −inf, and no label has a probability.
    largest = margins.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", over="ignore"):
        terms = np.exp(slopes[..., np.newaxis] * (margins - largest))
    total = terms.sum(axis=-1, keepdims=True)
    probabilities: Floats = np.divide(terms, total, out=np.zeros_like(terms), where=total > 0.0)
    return probabilities
