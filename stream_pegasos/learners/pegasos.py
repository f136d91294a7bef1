"""The classifier of the Pegasos papers, over feature dicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from river import base

from stream_pegasos.common.checks import (
    LARGEST_COUNT,
    LARGEST_L2,
    SMALLEST_L2,
    check_bool,
    check_integer,
    check_max_features,
    check_member,
    check_number,
)
from stream_pegasos.common.errors import must_be
from stream_pegasos.engine import in_use
from stream_pegasos.engine.pure import PegasosLearner
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import ClassWeight, check_class_weight
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.forgetting import WeightForgetting
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.trainer import Trainer

__all__ = ["PegasosClassifier"]


@dataclass(eq=False, repr=False)
class PegasosClassifier(Classifier, base.MiniBatchClassifier):  # type: ignore[misc]
    """Linear support vector machine trained by Pegasos, one example at a time.

    Step t takes the examples of a batch whose margin y⟨w, x⟩ is below 1, moves w along them with the step size
    η = 1/(λ(t + t0)) after shrinking it by 1 − ηλ, and projects it onto the ball of radius 1/√λ. The weights are a
    lazily scaled dictionary, so the cost of a step depends only on the features of its examples, not on the number of
    steps or of known features. The defaults are the algorithm as published.

    Labels may be bool, int or str. With two labels, a positive margin stands for `True`, for 1 beside 0 or −1, or for
    "true" beside "false". With other labels, the first label met is the negative one, unless `pos_label` says
    otherwise. From a third label on, each class is learned against the rest; with `multi_class`, several classes may be
    learned together. The first two classes continue with the weights −w and w and their steps. Each later class begins
    with w = 0 and t = 0 at its first example.

    Parameters
    ----------
    l2 : float, default 1e-4
        The regularisation λ of the objective λ/2 ‖w‖² + mean hinge loss, from 1e-30 to 1e30.
    batch_size : int, default 1
        The number k of examples in each step, at least 1. `learn_one` keeps the examples that violate the margin in a
        buffer until k examples have come.
    t0 : float, default 0.0
        The number of steps that the step size counts as already taken, at least 0. 0 is Pegasos as published; 1/λ makes
        the first step as large as that of a perceptron with a learning rate of 1.
    project : bool, default True
        Whether each step ends with the projection onto the ball of radius 1/√λ, as in the paper of 2007; the paper of
        2011 leaves it out.
    fit_intercept : bool, default False
        Whether to add one constant feature, whose weight is the intercept. It is regularised like any other weight.
    intercept_scaling : float, default 1.0
        The value of that feature, from 1e-30 to 1e30. The larger it is, the less its weight is regularised.
    class_weight : dict, {"balanced", "sqrt"} or None, default None
        The weight of the loss on each label: a dict from label to a number of at least 0; 1 for labels not in it. Or
        `"balanced"`: N / (K · n), where N examples of K labels were learned so far and n of them have the label, with
        the example itself included. Or `"sqrt"`: the root of that, which favours rare labels at less cost in accuracy.
    pos_label : bool, int, str or None, default None
        The label that positive margins stand for. A bool, 0 or 1 also stands for its text, and vice versa. With
        `multi_class` it must be `None`.
    average : bool, int or "weighted", default False
        The average of weights that predicts, instead of the w of the last step. `True`: the average of w over all
        steps. An int n: the average from step n on, and the last w before it. `"weighted"`: the average over all steps,
        with weight t for step t, which forgets the rough beginning. `False` or 0: the last w. It does not change
        learning.
    max_features : int or None, default None
        The largest number of features with a weight, at least 1; `None` for no limit. When an example exceeds it, the
        features with the weights closest to 0 are dropped, until three quarters of the limit are left; with several
        classes, the largest weight counts. Of equal ones, those with the larger number or hash are dropped. Names of
        features are dropped, too, if there are more than twice as many.
    multi_class : {"crammer_singer", "ovr"} or None, default None
        The method for several classes. `None`: one weight vector for two classes, and each class against the rest from
        a third class on. With the other two, every class has its own weight vector from the start, and the class with
        the largest margin is predicted. `"crammer_singer"`: all weights are learned together, so that the margin of the
        right class exceeds the margin of the best wrong class by 1; the objective is λ/2 Σ ‖w_c‖² + mean of max(0, 1 +
        max over r ≠ y of ⟨w_r, x⟩ − ⟨w_y, x⟩). `"ovr"`: each class is learned against the rest, and begins with its
        first example, as in River's `OneVsRestClassifier`. A feature is looked up once for all classes.

    Attributes
    ----------
    weights : dict
        The weight of each known feature, by name; with `average`, the averaged weight.
    intercept : float or dict
        The constant part of the margin. With `multi_class` or more than two classes, both are dicts by class.
    n_iterations : int
        The number of steps t; with "ovr", the largest of all classes.
    classes : tuple
        The labels met, in order of arrival.
    pair : tuple
        With up to two labels, the negative and the positive label, `None` for a label that has not come; else empty.

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
    [^3]: Lacoste-Julien, S., Schmidt, M. and Bach, F., 2012. A simpler approach to obtaining an O(1/t) convergence rate
        for the projected stochastic subgradient method. arXiv:1212.2002. (The average weighted by t.)
    [^4]: Crammer, K. and Singer, Y., 2001. On the algorithmic implementation of multiclass kernel-based vector
        machines. JMLR 2.
    [^5]: Leskovec, J., Rajaraman, A. and Ullman, J., 2014. Mining of Massive Datasets, chapter 12. ("Learn one
        classifier" for all classes.)
    [^6]: Platt, J., 1999. Probabilistic outputs for support vector machines. (`predict_proba_one` learns its slope
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

    In a pipeline, which predicts each example before it learns it:

    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> pipeline = preprocessing.StandardScaler() | PegasosClassifier(l2=0.01, fit_intercept=True)
    >>> evaluate.progressive_val_score(datasets.Phishing(), pipeline, metrics.Accuracy())
    Accuracy: 87.75%

    Several classes:

    >>> model = PegasosClassifier(multi_class="crammer_singer", l2=0.1)
    >>> stream = [({"goal": 1, "match": 1}, "sport"), ({"shares": 1, "bank": 1}, "money"), ({"rain": 1}, "weather")]
    >>> for x, y in stream * 10:
    ...     model.learn_one(x, y)
    >>> model.predict_one({"match": 1, "today": 1})
    'sport'
    >>> list(model.decision_function_one({"match": 1}))
    ['sport', 'money', 'weather']
    """

    capabilities = frozenset([Capability.WEIGHTS, Capability.EXPLAIN, Capability.MULTICLASS])

    l2: float = 1e-4
    batch_size: int = 1
    t0: float = 0.0
    project: bool = True
    fit_intercept: bool = False
    intercept_scaling: float = 1.0
    class_weight: ClassWeight = None
    pos_label: Label | None = None
    average: bool | int | Literal["weighted"] = False
    max_features: int | None = None
    multi_class: Literal["crammer_singer", "ovr"] | None = None

    def __post_init__(self) -> None:
        check_number("l2", self.l2, SMALLEST_L2, LARGEST_L2)
        check_integer("batch_size", self.batch_size, 1, 1 << 31)
        check_number("t0", self.t0, 0.0, 1e100)
        check_bool("project", self.project)
        check_bool("fit_intercept", self.fit_intercept)
        check_number("intercept_scaling", self.intercept_scaling, 1e-30, 1e30)
        if isinstance(self.average, str):
            if self.average != "weighted":
                raise ValueError(must_be("average", "True, False, an int or 'weighted'", self.average))
        else:
            first = int(self.average) if isinstance(self.average, bool) else self.average
            check_integer("average", first, 0, LARGEST_COUNT)
        check_member("multi_class", self.multi_class, ("crammer_singer", "ovr", None))
        if self.multi_class is not None and self.pos_label is not None:
            raise ValueError(must_be("pos_label", "None with multi_class, as it is for two classes", self.pos_label))
        check_max_features(self.max_features)
        Labels(pos_label=self.pos_label)
        check_class_weight(self.class_weight)

    def make_trainer(self) -> Trainer:
        learner = in_use(PegasosLearner)(
            float(self.l2),
            int(self.batch_size),
            float(self.t0),
            bool(self.project),
            float(self.intercept_scaling) if self.fit_intercept else 0.0,
            1 if self.average == "weighted" else int(self.average),
            self.average == "weighted",
            self.max_features or 0,
            self.multi_class or "two",
        )
        labels = Labels(pos_label=self.pos_label, by_label=self.multi_class is not None, counts_alone=True)
        return Trainer(self.lock, learner, labels, self.class_weight, forgetting=WeightForgetting(self.max_features))
