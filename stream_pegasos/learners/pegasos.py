"""The binary learner over feature dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from river import optim

from stream_pegasos.common.checks import (
    LARGEST_COUNT,
    check_integer,
    check_max_features,
    check_one_of,
    check_state,
    check_step_parameters,
)
from stream_pegasos.engine import Encoder, Learner
from stream_pegasos.engine.pure.weights import INTERCEPT
from stream_pegasos.learners.binary import BinaryClassifier
from stream_pegasos.learners.classifier import ClassWeight, Floats
from stream_pegasos.learners.first_weights import FirstWeights, check_seed
from stream_pegasos.learners.labels import Label
from stream_pegasos.learners.persistence import Arrays, pack, unpack

__all__ = ["PegasosClassifier"]


class PegasosClassifier(BinaryClassifier):
    """Linear support vector machine trained by Pegasos, one example at a time.

    Step t takes the examples of a batch whose margin y⟨w, x⟩ is below 1, moves w along them with the step size
    η = 1/(λ(t + t0)) after shrinking it by 1 − ηλ, and projects it onto the ball of radius 1/√λ. The weights are a
    dictionary scaled lazily, so that a step costs what the features of its examples cost, however many steps were taken
    and however many features are known. The defaults are the algorithm as published.

    Labels may be bool, int or str. The margin is for `True`, for 1 beside 0 or −1, or for "true" beside "false"; with
    other labels the first one met is the negative one, unless `pos_label` says otherwise.

    Parameters
    ----------
    l2
        The regularisation λ of the objective λ/2 ‖w‖² + mean hinge loss, from 1e-30 to 1e30.
    batch_size
        k, the number of examples a step is taken on, at least 1. `learn_one` keeps examples (of those that matter)
        until k are there.
    t0
        Steps that the step size pretends to have been taken before the first, at least 0. 0 is Pegasos as published;
        1/λ makes the first step as large as that of a perceptron with a learning rate of 1.
    project
        Whether each step ends with the projection onto the ball of radius 1/√λ, as in the paper of 2007; the one of
        2011 leaves it out.
    fit_intercept
        Whether to add one constant feature, and so an intercept that is regularised as any other weight.
    intercept_scaling
        The value of that feature, above 0: the larger, the less its weight is regularised.
    class_weight
        What the loss on each label counts, as a dict from label to a weight of at least 0; 1 for labels not in it. Or
        `"balanced"`: N / (K · n), where N examples of K labels were learned so far and n of the label, the example
        itself included.
    pos_label
        The label that positive margins stand for. A bool, 0 or 1 also stands for its text, and the other way round.
    average
        What predicts, instead of the w of the last step: `True`, the average of the w of all steps; an int n, that from
        step n on, and up to there the last w; `"weighted"`, that of all with the w of step t weighted by t, which
        forgets the rough beginning; `False` or 0, none. Learning is not touched by it.
    counter
        `"every"`: t counts every batch, as in the paper. `"violations"`: only those in which an example violated the
        margin; the others are no steps, and leave w as it is. It then shrinks less often, so that the optimum is that
        of a smaller λ: λ times the share of batches that are steps.
    initializer
        One of River's `optim.initializers`, for the first weights instead of 0. It is drawn from once a feature, with a
        seed made of the initializer's and the feature's name, when the feature is first learned; if they leave the ball
        of radius 1/√λ all weights are scaled back into it. A feature that comes late finds its first weight shrunk as
        the steps before have shrunk the others: with t0 = 0 the first step leaves nothing of any of them.
    max_features
        How many features may have a weight, at least 1; `None` for no limit. When an example brings in more, those
        whose weight is nearest to 0 are forgotten, of equal ones those with the larger hash or number, until three
        quarters of the limit are left. Names of features are forgotten, too, once there are twice as many.

    Attributes
    ----------
    weights : dict
        The weight of each feature learned, by the name it came in with; the average if that is what predicts.
    intercept : float
        What the intercept adds to the margin.
    n_iterations : int
        t, the number of steps taken.
    classes : tuple
        The negative and the positive label, each `None` as long as it is unknown.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    [^1]: Shalev-Shwartz, S., Singer, Y. and Srebro, N., 2007. Pegasos: Primal Estimated sub-GrAdient SOlver for
        SVM. ICML.
    [^2]: Shalev-Shwartz, S., Singer, Y., Srebro, N. and Cotter, A., 2011. Pegasos: primal estimated sub-gradient solver
        for SVM. Mathematical Programming 127.
    [^3]: Rupnik, J., 2008. Stochastic subgradient approach for solving linear support vector machines. SiKDD. (The
        counter of violations, random first weights.)
    [^4]: Lacoste-Julien, S., Schmidt, M. and Bach, F., 2012. A simpler approach to obtaining an O(1/t) convergence rate
        for the projected stochastic subgradient method. arXiv:1212.2002. (The average weighted by t.)
    [^5]: Platt, J., 1999. Probabilistic outputs for support vector machines. (`predict_proba_one` learns its slope
        online, from margins taken before learning.)

    Examples
    --------

    >>> from stream_pegasos import PegasosClassifier

    >>> model = PegasosClassifier(l2=0.1)
    >>> for x, y in [({"cheap": 1, "pills": 1}, "spam"), ({"see": 1, "you": 1}, "ham")] * 10:
    ...     model.learn_one(x, y)
    >>> model.predict_one({"cheap": 1, "watches": 1})
    'spam'
    >>> model.classes
    ('spam', 'ham')
    >>> {name: round(weight, 2) for name, weight in model.weights.items()}
    {'cheap': -0.8, 'pills': -0.8, 'see': 0.6, 'you': 0.6}

    In a pipeline, evaluated by predicting each example before learning it:

    >>> from river import datasets, evaluate, metrics, preprocessing

    >>> pipeline = preprocessing.StandardScaler() | PegasosClassifier(l2=0.01, fit_intercept=True)
    >>> evaluate.progressive_val_score(datasets.Phishing(), pipeline, metrics.Accuracy())
    Accuracy: 87.68%

    """

    _learner: Learner

    def __init__(
        self,
        l2: float = 1e-4,
        batch_size: int = 1,
        t0: float = 0.0,
        project: bool = True,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
        pos_label: Label | None = None,
        average: bool | int | Literal["weighted"] = False,
        counter: Literal["every", "violations"] = "every",
        initializer: optim.initializers.Initializer | None = None,
        max_features: int | None = None,
    ) -> None:
        check_step_parameters(l2, batch_size, t0, project, fit_intercept, intercept_scaling)
        if isinstance(average, str):
            check_one_of("average", average, ("weighted",))
        else:
            check_integer("average", int(average) if isinstance(average, bool) else average, 0, LARGEST_COUNT)
        check_one_of("counter", counter, ("every", "violations"))
        self.l2 = l2
        self.batch_size = batch_size
        self.t0 = t0
        self.project = project
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.average = average
        self.counter = counter
        self.initializer = initializer
        self.max_features = check_max_features(max_features)
        self._set_up(
            Learner(
                float(l2),
                int(batch_size),
                float(t0),
                bool(project),
                float(intercept_scaling) if fit_intercept else 0.0,
                1 if average == "weighted" else int(average),
                average == "weighted",
                counter == "violations",
                None if initializer is None else FirstWeights(initializer),
                max_features or 0,
            )
        )

    @property
    def _first_weights(self) -> FirstWeights | None:
        return cast(FirstWeights | None, self._learner.arguments[8])

    @property
    def weights(self) -> dict[Any, float]:
        with self._lock:
            keys, values = self._learner.weights.items()
            return {
                self._vocabulary.name(key): value
                for key, value in sorted(zip(keys.tolist(), values.tolist(), strict=True))
                if key != INTERCEPT
            }

    @property
    def intercept(self) -> float:
        return self.intercept_scaling * self._learner.weights.get(INTERCEPT)

    # The shortest ways to the engine, for the two methods that are called for every example of a stream.

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from one example.

        Parameters
        ----------
        x
            The features: int, str, bool or tuples of those, each with a finite number of at most 1e45 in size.
        y
            The label: bool, int or str.
        w
            What the loss on this example counts, from 0 to 1e30.

        Raises
        ------
        TypeError
            If a feature's name, a value or the label is of no such type.
        ValueError
            If a value is NaN or infinite, the weight is out of its range, or the label is a third one. The model is
            then as it was before.
        """
        try:
            sign = self._labels.signs.get(y)
        except TypeError:  # not even hashable
            sign = None
        with self._lock:
            if sign is None or w != 1.0 or self.class_weight is not None or self.max_features is not None:
                self._learn_one(self._vocabulary, x, y, w)
            elif self._learner.learn(self._vocabulary, x, sign, 1.0):
                self._forget_idle_names()

    def predict_one(self, x: dict[Any, Any]) -> Any:  # type: ignore[override]
        """The label of `x`. Before anything is learned it is `False`, or `None` where `pos_label` is given and no bool.

        Parameters
        ----------
        x
            The features, as for `learn_one`; those never learned count nothing.
        """
        with self._lock:
            return self._decide(self._learner.margin(self._vocabulary, x))

    @property
    def _n_learned(self) -> int:
        return self._learner.n_iterations * self.batch_size + self._learner.n_buffered

    def _contributions(self, encoder: Encoder, x: Any) -> dict[int, float]:
        """What each feature of an example adds to the margin, by its key."""
        row, weights = encoder.row(x, False), self._learner.weights
        return {key: row.factor * value * weights.get(key) for key, value in zip(row.keys, row.values, strict=True)}

    def _importance(self, state: Mapping[str, Any]) -> Floats:
        return np.abs(np.where(state["keys"] == INTERCEPT, np.inf, state["values"]))

    def _to_state(self) -> tuple[dict[str, NDArray[Any]], list[Any], dict[str, Any]]:
        arrays, names, values = super()._to_state()
        if self._first_weights is not None:
            values["first_weights_seed"] = pack(self._first_weights.seed)
        return arrays, names, values

    @classmethod
    def _from_state(cls, arrays: Arrays, names: list[Any], values: Any) -> Self:
        model = super()._from_state(arrays, names, values)
        if model._first_weights is not None:
            model._first_weights.seed = check_seed(unpack(values["first_weights_seed"]))
        return model

    def _check_state(self, state: Mapping[str, Any], names: list[Any]) -> None:
        self._check_n_features(state)
        check_state(state, names, self.batch_size, bool(self.average), self.counter == "violations")
