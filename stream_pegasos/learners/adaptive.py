"""The adaptive classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.checks import check_bool, check_max_features, check_number, check_one_of
from stream_pegasos.engine import Encoder, in_use
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.features.frames import some_rows
from stream_pegasos.learners.class_weights import ClassWeight
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.decisions import Decision
from stream_pegasos.learners.drift import DriftWatch
from stream_pegasos.learners.labels import Classes, Floats, Label, TwoClasses
from stream_pegasos.learners.predictions import Found, PartlyLearnedError

__all__ = ["AdaptiveClassifier"]

# What the evidence counts once a drift is detected, beside what is learned from then on.
KEPT_AFTER_DRIFT = 0.1


class AdaptiveClassifier(Classifier):
    """Linear classifier with AdaGrad steps, on features scaled by what naive Bayes knows of them.

    Feature j of an example is multiplied by s_j = 0.3 + |r_j − r|, where r_j is its log-count ratio

        r_j = log((p_j + α) / (n_j + α)),

    with p_j and n_j the numbers of positive and of negative examples that had it, α the pseudo-count, and r the same
    ratio of all examples; the example is then divided by its norm. On these values a linear model takes the steps of
    AdaGrad: w_j ← w_j − η g_j / √G_j, with g_j the gradient of the loss and G_j the sum of its squares so far. Examples
    that are right by far teach nothing and are skipped, which makes learning fast and keeps p_j and n_j about examples
    that are hard to tell apart.

    Labels may be bool, int or str. The margin is for `True`, for 1 beside 0 or −1, or for "true" beside "false"; with
    other labels the first one met is the negative one, unless `pos_label` says otherwise.

    Parameters
    ----------
    learning_rate
        η, from 1e-30 to 1e30: about how far the first step moves the weight of a feature.
    loss
        `"log"`: log(1 + exp(−y·margin)). `"hinge"`: max(0, 1 − y·margin).
    margin
        An example is learned from only while its y·margin is below it; at least 0, `None` for every example. Those
        skipped are still counted by `n_iterations`, and calibrate the probabilities.
    naive_bayes
        Whether features are scaled by their log-count ratio; if not, s_j = 1.
    smoothing
        The pseudo-count α, from 1e-30 to 1e30. The smaller, the more a feature counts that few examples had.
    half_life
        The number of examples over which evidence (the counts p_j and n_j, and the sums G_j) halves, at least 1; `None`
        for never.
    fit_intercept
        Whether there is an intercept.
    intercept_scaling
        The value of the constant feature whose weight it is, from 1e-30 to 1e30; features have a norm of 1.
    class_weight
        What the loss on each label counts, as a dict from label to a weight of at least 0; 1 for labels not in it. Or
        `"balanced"`: N / (K · n), where N examples of K labels were learned so far and n of the label, the example
        itself included.
    pos_label
        The label that positive margins stand for. A bool, 0 or 1 also stands for its text, and the other way round.
        With a `threshold` or a `max_false_positive_rate` it is needed, unless labels are bool, 0 and 1, or −1 and 1.
    threshold
        The positive label is predicted where its probability is above it; between 0 and 1, both excluded. At 0.5 that
        is where the margin is above 0.
    max_false_positive_rate
        Between 0 and 1, both excluded; `None` for no limit. Of the negative examples learned, the share that were
        predicted to be positive right before stays at or below that rate, at any time. For this the positive label is
        predicted, where `threshold` allows it, only above a cut on the margin that follows the margins of negative
        examples, and only while one more wrong prediction would keep to the rate: so never before about 1/rate
        negative examples are learned. Where labels come late, predictions made meanwhile are not counted. While the
        negative label is unknown `None` is predicted.
    drift_detector
        One of River's drift detectors, such as `drift.binary.HDDMW()` or `drift.ADWIN()`. Before an example is learned
        a copy of it is told whether its prediction was wrong; when it detects a drift, all evidence so far counts a
        tenth from then on, so that weights move faster, and weights shrink by the root of it. Those that heed errors
        alone do best, such as HDDMW: others raise alarms also where errors become fewer. Examples are learned one at a
        time, which is slower. A saved model is loaded with a fresh detector.
    max_features
        How many features may be known, at least 1; `None` for no limit. When an example brings in more, those are
        forgotten that the fewest examples taught: those within the margin, each times its weight, and half once it
        is `half_life` examples old; of equal ones those with the larger hash or number; until three quarters of the
        limit are left. Names of features are forgotten, too, once there are twice as many.

    Attributes
    ----------
    weights : dict
        What each feature learned weighs, by the name it came in with: w_j s_j, so that the margin is the sum of weight
        times value, divided by the norm of the example's s_j x_j, plus the intercept.
    intercept : float
        What the intercept adds to the margin.
    n_iterations : int
        The number of examples met.
    classes : tuple
        The negative and the positive label, each `None` as long as it is unknown.
    n_drifts : int
        The number of drifts that the detector has detected.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type or out of its range. When learning also a ValueError if `pos_label` is needed.

    Notes
    -----
    The probability is calibrated online, and is above 0.5 exactly where the margin is above 0. So the label that
    `predict_one` gives has the larger one as long as `threshold` is 0.5 and there is no `max_false_positive_rate`.

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
    [^6]: Gibbs, I. and Candès, E., 2021. Adaptive conformal inference under distribution shift. NeurIPS. (The cut of
        `max_false_positive_rate`.)

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

    A filter that may lose one of a hundred good messages flags nothing before it has met as many:

    >>> model = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.01)
    >>> for x, y in [({"cheap": 1, "pills": 1}, "spam"), ({"see": 1, "you": 1}, "ham")] * 200:
    ...     if model.n_iterations in (100, 300):
    ...         print(model.predict_one({"cheap": 1, "pills": 1}))
    ...     model.learn_one(x, y)
    ham
    spam

    Labels that swap half-way:

    >>> from river import drift

    >>> model = AdaptiveClassifier(drift_detector=drift.binary.HDDMW())
    >>> for i in range(2_000):
    ...     model.learn_one({"odd" if i % 2 else "even": 1}, (i % 2 == 1) != (i >= 1_000))
    >>> model.n_drifts, model.predict_one({"odd": 1})
    (1, False)

    """

    capabilities = frozenset(["weights", "explain"])
    _learner: AdaptiveLearner
    _linear = False

    def __init__(
        self,
        learning_rate: float = 0.5,
        loss: Literal["hinge", "log"] = "log",
        margin: float | None = 5.0,
        naive_bayes: bool = True,
        smoothing: float = 0.5,
        half_life: float | None = 10_000,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.1,
        class_weight: ClassWeight = None,
        pos_label: Label | None = None,
        threshold: float = 0.5,
        max_false_positive_rate: float | None = None,
        drift_detector: base.DriftDetector | base.BinaryDriftDetector | None = None,
        max_features: int | None = None,
    ) -> None:
        check_number("learning_rate", learning_rate, 1e-30, 1e30)
        check_one_of("loss", loss, ("hinge", "log"))
        if margin is not None:
            check_number("margin", margin, 0.0, 1e300)
        check_bool("naive_bayes", naive_bayes)
        check_number("smoothing", smoothing, 1e-30, 1e30)
        if half_life is not None:
            check_number("half_life", half_life, 1.0, 1e300)
        check_bool("fit_intercept", fit_intercept)
        check_number("intercept_scaling", intercept_scaling, 1e-30, 1e30)
        self._decision = Decision(threshold, max_false_positive_rate)
        self._drift = DriftWatch(drift_detector)
        self.learning_rate = learning_rate
        self.loss = loss
        self.margin = margin
        self.naive_bayes = naive_bayes
        self.smoothing = smoothing
        self.half_life = half_life
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.pos_label = pos_label
        self.threshold = threshold
        self.max_false_positive_rate = max_false_positive_rate
        self.drift_detector = drift_detector
        self.max_features = check_max_features(max_features)
        learner = in_use(AdaptiveLearner)(
            float(learning_rate),
            loss == "hinge",
            math.inf if margin is None else float(margin),
            float(smoothing) if naive_bayes else 0.0,
            0.0 if half_life is None else float(half_life),
            float(intercept_scaling) if fit_intercept else 0.0,
            max_features or 0,
        )
        limited = self._decision.control is not None
        labels = TwoClasses(pos_label, limited or threshold != 0.5, limited=limited)
        watched = limited or drift_detector is not None
        self._set_up(learner, labels, class_weight, watched, self._decision.is_by_margin)

    @property
    def n_drifts(self) -> int:  # type: ignore[override]
        return self._drift.n_drifts

    def label_of(self, margin: Any) -> Any:
        if self._by_margin:
            return self._labels.label(margin)
        return self._labels.label(self._decision.allows(margin, self._learner.probability(margin)))

    def meet_rows(self, encoder: Encoder, rows: Any) -> Found:
        margins, probabilities = self._learner.predict_learn_many(encoder, rows)
        return Found(margins, probabilities, self._decision.allows(margins, probabilities))

    def _learn_targets(
        self, encoder: Encoder, rows: Any, labels: TwoClasses | Classes, targets: Floats, weights: Floats | None
    ) -> Found:
        if self._drift.detector is not None:
            return self._learn_in_turn(encoder, rows, labels, targets, weights)
        margins, probabilities = self._learn_blocks(encoder, rows, targets, weights)
        n_undecided = self._n_undecided(labels, targets)
        return Found(margins, probabilities, self._decision.in_turn(margins, probabilities, targets, n_undecided))

    def _learn_in_turn(
        self, encoder: Encoder, rows: Any, labels: TwoClasses | Classes, targets: Floats, weights: Floats | None
    ) -> Found:
        """Learn the rows, each with what its prediction tells the detector taken in before."""
        margins, probabilities = self._learner.predict_learn_many(encoder, rows)  # whatever is wrong has to show first
        positive = np.zeros(len(targets), bool)
        n_undecided = self._n_undecided(labels, targets)
        for i, target in enumerate(targets.tolist()):
            row, this = some_rows(rows, i, i + 1), slice(i, i + 1)
            margins[this], probabilities[this] = self._learner.predict_learn_many(encoder, row)
            if i >= n_undecided:
                positive[i] = self._decision.allows(float(margins[i]), float(probabilities[i]))
                try:
                    drifted = self._drift.tell(positive[i] != (target > 0.0))
                except Exception as error:
                    if not i:
                        raise
                    raise PartlyLearnedError(i, Found(margins[:i], probabilities[:i], positive[:i]), error) from error
                if drifted:
                    self._learner.forget(KEPT_AFTER_DRIFT)
                self._decision.learn(float(margins[i]), bool(positive[i]), target)
            self._learn_blocks(encoder, row, targets[this], None if weights is None else weights[this])
        return Found(margins, probabilities, positive)

    def _n_undecided(self, labels: TwoClasses | Classes, targets: Floats) -> int:
        """How many come before both labels are known: up to there nothing is decided, and they may be exchanged."""
        met = self._labels
        for i, target in enumerate(targets.tolist()):
            if None not in met.classes:
                return i
            met, _ = met.with_labels([labels.of_target(target)])
        return len(targets)

    def to_state(self) -> tuple[dict[str, NDArray[Any]], list[Any], dict[str, Any]]:
        arrays, names, values = super().to_state()
        values["n_drifts"] = self.n_drifts
        if self._decision.control is not None:
            values["false_positive_control"] = self._decision.control.get_state()
        return arrays, names, values

    def _take_state(self, state: dict[str, Any], names: list[Any], values: Any) -> None:
        super()._take_state(state, names, values)
        self._drift.set_n_drifts(values["n_drifts"], self.n_iterations)
        if self._decision.control is not None:
            self._decision.control.set_state(values["false_positive_control"])

    def _importance(self, state: Mapping[str, Any]) -> Floats:
        return state["positives"] + state["negatives"]  # type: ignore[no-any-return]
