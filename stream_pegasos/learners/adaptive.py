"""The adaptive classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from river import base

from stream_pegasos.common.checks import check_bool, check_max_features, check_member, check_number
from stream_pegasos.engine import in_use
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.engine.pure.half_life import LEAST_HALF_LIFE
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import ClassWeight, check_class_weight
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.decision_policy import ClassPolicy
from stream_pegasos.learners.drift import DriftWatch, check_drift_detector
from stream_pegasos.learners.f1_decisions import DecideFor
from stream_pegasos.learners.forgetting import UseForgetting
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.labels import LabelParameters, Labels
from stream_pegasos.learners.trainer import Trainer

__all__ = ["AdaptiveClassifier", "AdaptiveOptions"]


@dataclass(frozen=True)
class AdaptiveOptions:
    """The options of the adaptive rule, checked; see `AdaptiveClassifier`."""

    learning_rate: float
    loss: Literal["hinge", "log"]
    margin: float | None
    naive_bayes: bool
    smoothing: float
    half_life: float | Literal["auto"] | None
    fit_intercept: bool
    intercept_scaling: float
    max_features: int | None

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, 1e-30, 1e30)
        check_member("loss", self.loss, ("hinge", "log"))
        if self.margin is not None:
            check_number("margin", self.margin, 0.0, 1e300)
        check_bool("naive_bayes", self.naive_bayes)
        check_number("smoothing", self.smoothing, 1e-30, 1e30)
        if self.half_life is not None and not self._is_half_life_growing:
            check_number("half_life", self.half_life, 1.0, 1e300)
        check_bool("fit_intercept", self.fit_intercept)
        check_number("intercept_scaling", self.intercept_scaling, 1e-30, 1e30)
        check_max_features(self.max_features)

    def make_learner(self, reduction: str) -> AdaptiveLearner:
        return in_use(AdaptiveLearner)(
            float(self.learning_rate),
            self.loss == "hinge",
            math.inf if self.margin is None else float(self.margin),
            float(self.smoothing) if self.naive_bayes else 0.0,
            LEAST_HALF_LIFE if self._is_half_life_growing else float(self.half_life or 0.0),
            float(self.intercept_scaling) if self.fit_intercept else 0.0,
            self.max_features or 0,
            reduction,
            self._is_half_life_growing,
        )

    @property
    def _is_half_life_growing(self) -> bool:
        return isinstance(self.half_life, str) and self.half_life == "auto"


@dataclass(eq=False, repr=False)
class AdaptiveClassifier(Classifier, base.MiniBatchClassifier):  # type: ignore[misc]
    """Linear classifier with AdaGrad steps, on features scaled by naive Bayes.

    Feature j of an example is multiplied by s_j = 0.3 + |r_j − r|, where r_j is its log-count ratio

        r_j = log((p_j + α) / (n_j + α)),

    with p_j and n_j the numbers of positive and of negative examples that had it, α the pseudo-count, and r the same
    ratio over all examples. The example is then divided by its norm. On these values a linear model takes the steps of
    AdaGrad: w_j ← w_j − η g_j / √G_j, with g_j the gradient of the loss and G_j the sum of its squares so far. Examples
    that are clearly right are skipped. That makes learning fast, and p_j and n_j then count only examples that are hard
    to tell apart. If the values of an example differ, as those of tf-idf do, they already weigh its features: with two
    labels, its steps are then up to three times as large at first, and α up to nine times; this fades over some
    thousand examples.

    Numeric features, such as those of a table, are scaled online to mean 0 and deviation 1, from the eleventh example
    on. A feature is numeric if at least half of the examples have it, and if either such features are at least half of
    all values, or its root mean square is above 4. The weights are those of the scaled values.

    Labels may be bool, int or str, and new ones may come at any time. With two labels, a positive margin stands for
    `True`, for 1 beside 0 or −1, or for "true" beside "false". With other labels, the first label met is the negative
    one, unless `pos_label` says otherwise.

    From a third label on, each class is learned against the rest, and the class with the largest margin is predicted.
    The first two classes keep their weights; their margins are −m and m. The differences are:

    - A feature has one scale for all classes: 0.3 plus its largest log-count ratio for a class.
    - The margin of each of K classes begins at −log(K − 1), because most examples have other classes. A class learns an
      example of another class only while its margin is above −3/5 of `margin`. So a feature has a weight only for the
      classes that learned from it.
    - The step size is η √(2s), with s the slope of the probabilities. It is larger while margins are too small for
      their accuracy, as with many classes, and smaller if margins are too large. G_j begins with 0.001.
    - Probabilities are proportional to exp(s · margin + o_c). The slope s and the offset o_c of each class are learned
      online. Then the largest probability is calibrated separately. The margins in the output include o_c / s.

    For a class that comes late, the earlier examples and their features are already counted as negative; its weights
    begin with its first example. That example may be a mistake, such as a misspelt label, so o_c begins with
    log(5K / n) after n examples, if that is below 0; the second and the third example each give half of that back.

    With word vectors (`TextFeatures(vectors=...)`), there is also a second-order logistic regression on the vectors of
    messages. Two weights, learned online, combine its margins with those of the features, so the vectors count as far
    as they are informative: most at first.

    Parameters
    ----------
    learning_rate : float, default 0.5
        The step size η, from 1e-30 to 1e30: roughly the size of the first step of a weight.
    loss : {"log", "hinge"}, default "log"
        `"log"`: log(1 + exp(−y·margin)). `"hinge"`: max(0, 1 − y·margin).
    margin : float or None, default 5.0
        The largest y·margin of an example that is learned, at least 0; 0 is the rule of a perceptron, and `None` learns
        every example. Skipped examples still count in `n_iterations`, and calibrate the probabilities.
    naive_bayes : bool, default True
        Whether to scale features by their log-count ratio; if not, s_j = 1.
    smoothing : float, default 0.5
        The pseudo-count α, from 1e-30 to 1e30. With a smaller α, rare features count more.
    half_life : float, "auto" or None, default "auto"
        The number of examples over which evidence (the counts p_j and n_j, and the sums G_j) halves, at least 1; with
        `None` it never does. `"auto"` is 10,000; if the stream last changed more than 50,000 examples ago, it is a
        fifth of these. Rising losses show a change; then evidence is reduced to that of 50,000 examples, and weights by
        the root of that share.
    fit_intercept : bool, default True
        Whether there is an intercept.
    intercept_scaling : float, default 0.1
        The value of the constant feature whose weight is the intercept, from 1e-30 to 1e30; features have a norm of 1.
    class_weight : dict, {"balanced", "sqrt"} or None, default None
        The weight of the loss on each label: a dict from label to a number of at least 0; 1 for labels not in it. Or
        `"balanced"`: N / (K · n), where N examples of K labels were learned so far and n of them have the label, with
        the example itself included. Or `"sqrt"`: the root of that, which favours rare labels at less cost in accuracy.
        The weight of an example applies to every count and every step, so probabilities are those of the weighted
        stream; those of the unweighted stream are p / weight, divided by their sum. An example of weight 0 changes
        nothing, and is not counted.
    pos_label : bool, int, str or None, default None
        The label that positive margins stand for. A bool, 0 or 1 also stands for its text, and vice versa. A
        `threshold` or a `max_false_positive_rate` needs it, unless labels are bool, 0 and 1, or −1 and 1.
    threshold : float or dict, default 0.5
        The positive label is predicted if its probability is above this number, which is between 0 and 1, both
        excluded. With 0.5, that is if the margin is above 0. If it is not above, the most probable other label is
        predicted; with 0.5 and more than two classes, the most probable of all. Or a dict with thresholds for some
        labels, with any number of classes: each of these labels is predicted only above its own threshold.
    max_false_positive_rate : float, dict or None, default None
        The largest share of negative examples that may be predicted positive; between 0 and 1, both excluded; `None`
        for no limit. Or a dict with the limits of some labels; all other labels are negative for each of them. The
        positive label is predicted only if `threshold` allows it and the margin is above a cut-off. The cut-off is
        the lowest number that at most 0.9 · rate of the margins of the newest 16,384 to 32,768 negative examples
        exceed; these margins are taken just before the example is learned. So no larger share of similar negative
        examples is expected to be flagged, but chance may flag more. The positive label is never predicted before
        0.05/rate negative examples are learned. While the negative label is unknown, `None` is predicted.
    decide_for : {"accuracy", "macro_f1", "micro_f1"}, default "accuracy"
        The metric that predictions optimize: `"accuracy"`, or `"macro_f1"`, the mean F1 over all classes. The latter
        predicts the class with the largest (2p − F1) / n, where p is its probability, F1 that of its predictions so
        far, and n the number of its predictions and examples: one more prediction of this class raises macro F1 most.
        F1 and n are counted online, before each example is learned, and begin as after two right predictions; all
        counts are halved when they reach 32,768 examples. Weights and probabilities do not change; with a
        `class_weight`, F1 is that of the weighted stream. It excludes thresholds and limits of false positives.
        `"micro_f1"` is for several labels, in a `MultiLabelClassifier`; here it is the accuracy.
    coverage : float or None, default None
        The share of examples whose set of labels, from `predict_set_one`, contains the right label; between 0 and 1,
        both excluded; `None` for no sets. A set has the most probable label, and all labels with a probability above a
        level. The level falls after a set without the right label and rises after one with it, as examples are
        learned, so the share holds for any stream. If the most probable labels alone are right more often than asked
        for, sets have one label. A new label is always missed, in addition. With ordered classes, a set is an interval
        that contains the predicted label. If an example may have several labels, its set has those that may hold,
        perhaps none, and must contain all that hold. Two classes in a set mean that the model is unsure. Probabilities
        are taken before learning.
    drift_detector : river.base.DriftDetector, BinaryDriftDetector or None, default None
        A drift detector of River, such as `drift.binary.HDDMW()` or `drift.ADWIN()`. Before an example is learned, a
        copy of the detector gets the error of its prediction, 0 or 1. When it detects a drift, all evidence is divided
        by ten, so that weights move faster, and weights are divided by the root of ten. Detectors such as HDDMW, which
        react only to more errors, are best; others also raise alarms when errors become fewer. Examples are learned one
        at a time, which is slower. The state of the detector is not saved: a loaded model has a fresh one.
    max_features : int or None, default None
        The largest number of features, at least 1; `None` for no limit. When an example exceeds it, the least-used
        features are dropped, until three quarters of the limit are left. The use of a feature is the number of learned
        examples that had it, each times its weight, and halved after the half-life; at each time that features are
        dropped, earlier use is multiplied by .98. Of equally used features, those with the larger number or hash are
        dropped. Names of features are dropped, too, if there are more than twice as many.

    Attributes
    ----------
    weights : dict
        The weight of each known feature, by name: w_j s_j. The margin is the sum of weight times value, divided by the
        norm of the example's s_j x_j, plus the intercept. With more than two classes, a dict of such dicts by class.
    intercept : float or dict
        The constant part of the margin; with more than two classes, a dict by class.
    n_iterations : int
        The number of examples learned or skipped.
    classes : tuple
        The labels met, in order of arrival.
    pair : tuple
        With up to two labels, the negative and the positive label, `None` for a label that has not come; else empty.
    n_drifts : int
        The number of detected drifts.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or is out of its range. When learning, also a ValueError if `pos_label` is
        missing but needed.

    Notes
    -----
    With two classes, the probability is calibrated online; it is above 0.5 if and only if the margin is above 0. So
    `predict_one` gives the most probable label, as long as `threshold` is 0.5 and there is no
    `max_false_positive_rate`.

    References
    ----------
    [^1]: Duchi, J., Hazan, E. and Singer, Y., 2011. Adaptive subgradient methods for online learning and stochastic
        optimization. JMLR 12. (AdaGrad.)
    [^2]: Wang, S. and Manning, C., 2012. Baselines and bigrams: simple, good sentiment and topic classification. ACL.
        (Features scaled by their log-count ratio.)
    [^3]: Siefkes, C., Assis, F., Chhabra, S. and Yerazunis, W., 2004. Combining Winnow and orthogonal sparse bigrams
        for incremental spam filtering. PKDD. (Thick threshold training: learning from examples within a margin.)
    [^4]: Goodman, J. and Yih, W., 2006. Online discriminative spam filter training. CEAS.
    [^5]: Platt, J., 1999. Probabilistic outputs for support vector machines. (The slope of the probabilities.)
    [^6]: Vovk, V., Gammerman, A. and Shafer, G., 2005. Algorithmic learning in a random world. (The cut-off of
        `max_false_positive_rate`, as in inductive conformal prediction.)
    [^7]: Gupta, C. and Ramdas, A., 2022. Top-label calibration and multiclass-to-binary
        reductions. ICLR. (The largest probability is calibrated by itself.)
    [^8]: Narasimhan, H., Ramaswamy, H., Saha, A. and Agarwal, S., 2015. Consistent multiclass algorithms for complex
        performance measures. ICML. (`decide_for`: predictions that follow the gradient of a measure.)
    [^9]: Gibbs, I. and Candès, E., 2021. Adaptive conformal inference under distribution shift. NeurIPS. (`coverage`;
        its level takes steps of 0.3 on log-odds of probabilities.)
    [^10]: Gama, J., Medas, P., Castillo, G. and Rodrigues, P., 2004. Learning with drift detection. SBIA. (`"auto"`.)

    Examples
    --------
    >>> from stream_pegasos import AdaptiveClassifier
    >>> model = AdaptiveClassifier(pos_label="spam")
    >>> for x, y in [({"cheap": 1, "pills": 1}, "spam"), ({"see": 1, "you": 1}, "ham")] * 10:
    ...     model.learn_one(x, y)
    >>> model.predict_one({"cheap": 1, "watches": 1})
    'spam'
    >>> model.predict_proba_one({"cheap": 1, "watches": 1})["spam"] > 0.5
    True

    A third label comes in the middle of a stream:

    >>> for x, y in [({"meeting": 1, "noon": 1}, "work"), ({"see": 1, "you": 1}, "ham")] * 10:
    ...     model.learn_one(x, y)
    >>> model.classes, model.predict_one({"meeting": 1}), model.predict_one({"cheap": 1})
    (('spam', 'ham', 'work'), 'work', 'spam')

    Forget a class that came from a typo:

    >>> model.learn_one({"cheap": 1}, "Spam")
    >>> model.forget_class("Spam")
    >>> model.classes
    ('spam', 'ham', 'work')

    A filter that may flag one in a hundred good messages flags nothing before it has learned five:

    >>> model = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.01)
    >>> for x, y in [({"cheap": 1, "pills": 1}, "spam"), ({"see": 1, "you": 1}, "ham")] * 20:
    ...     if model.n_iterations in (4, 30):
    ...         print(model.predict_one({"cheap": 1, "pills": 1}))
    ...     model.learn_one(x, y)
    ham
    spam

    The labels are swapped after half of the stream:

    >>> from river import drift

    >>> model = AdaptiveClassifier(drift_detector=drift.binary.HDDMW())
    >>> for i in range(2_000):
    ...     model.learn_one({"odd" if i % 2 else "even": 1}, (i % 2 == 1) != (i >= 1_000))
    >>> model.n_drifts, model.predict_one({"odd": 1})
    (1, False)
    """

    capabilities = frozenset([Capability.WEIGHTS, Capability.EXPLAIN, Capability.MULTICLASS])
    _linear = False

    learning_rate: float = 0.5
    loss: Literal["hinge", "log"] = "log"
    margin: float | None = 5.0
    naive_bayes: bool = True
    smoothing: float = 0.5
    half_life: float | Literal["auto"] | None = "auto"
    fit_intercept: bool = True
    intercept_scaling: float = 0.1
    class_weight: ClassWeight = None
    pos_label: Label | None = None
    threshold: float | Mapping[Label, float] = 0.5
    max_false_positive_rate: float | Mapping[Label, float] | None = None
    decide_for: DecideFor = "accuracy"
    coverage: float | None = None
    drift_detector: base.DriftDetector | base.BinaryDriftDetector | None = None
    max_features: int | None = None

    def __post_init__(self) -> None:
        self._policy()
        Labels(pos_label=self.pos_label)
        check_class_weight(self.class_weight)
        check_drift_detector(self.drift_detector)
        self.options  # noqa: B018 - checks them

    @property
    def options(self) -> AdaptiveOptions:
        """The options of the rule."""
        return AdaptiveOptions(**{field.name: getattr(self, field.name) for field in fields(AdaptiveOptions)})

    def _policy(self) -> ClassPolicy:
        return ClassPolicy(self.threshold, self.max_false_positive_rate, self.pos_label, self.decide_for, self.coverage)

    def make_trainer(self) -> Trainer:
        policy = self._policy()
        return Trainer(
            self.lock,
            self.options.make_learner("two"),
            Labels(pos_label=self.pos_label, needs_positive=policy.needs_positive),
            self.class_weight,
            policy,
            UseForgetting(self.max_features),
            DriftWatch(self.drift_detector),
            scales=True,
            label_options=LabelParameters(
                self.class_weight, self.pos_label, self.threshold, self.max_false_positive_rate
            ),
        )
