"""The adaptive classifier."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from river import base

from stream_pegasos.common.checks import check_bool, check_max_features, check_member, check_number
from stream_pegasos.common.display import quoted
from stream_pegasos.common.packing import unpack
from stream_pegasos.engine import in_use, probabilities_many, probabilities_one
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.engine.pure.driver import Margins
from stream_pegasos.engine.pure.half_life import LEAST_HALF_LIFE
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import ClassWeight
from stream_pegasos.learners.coverage import changed_coverage, check_coverage, coverage_asked, include_best
from stream_pegasos.learners.decisions import (
    Decision,
    Decisions,
    PerLabel,
    changed_by_label,
    copied,
    decisions_by_label,
    limited,
    parameters_of_decisions,
)
from stream_pegasos.learners.drift import DriftWatch
from stream_pegasos.learners.f1_decisions import DecideFor, DecisionChange, F1Decision, changed_f1, check_decide_for
from stream_pegasos.learners.false_positives import Tail
from stream_pegasos.learners.label_meaning import Label
from stream_pegasos.learners.labels import Labels, largest, unknown_label
from stream_pegasos.learners.predictions import Decided, RawScores, WeightedTargets
from stream_pegasos.learners.probabilities import Floats, blocks
from stream_pegasos.learners.watched import WatchedClassifier

__all__ = ["AdaptiveClassifier"]

WHICH_CLASS = "which class is meant? Name it by pos_label, on the command line --pos-label"


@dataclass(eq=False, repr=False)
class AdaptiveClassifier(WatchedClassifier, base.MiniBatchClassifier):  # type: ignore[misc]
    """Linear classifier with AdaGrad steps, on features scaled by naive Bayes.

    Feature j of an example is multiplied by s_j = 0.3 + |r_j − r|, where r_j is its log-count ratio

        r_j = log((p_j + α) / (n_j + α)),

    with p_j and n_j the numbers of positive and of negative examples that had it, α the pseudo-count, and r the same
    ratio over all examples. The example is then divided by its norm. On these values a linear model takes the steps of
    AdaGrad: w_j ← w_j − η g_j / √G_j, with g_j the gradient of the loss and G_j the sum of its squares so far. Examples
    that are clearly right teach nothing and are skipped. That makes learning fast, and p_j and n_j then count only
    examples that are hard to tell apart. Where the values of an example differ, as those of tf-idf do, they weigh its
    features by themselves: with two labels its steps are up to three times as large at first, and α up to nine times,
    which fades over some thousand examples. Numeric features, as those of a table, are first scaled to mean 0 and
    deviation 1, as they come: from the eleventh example on those that at least half of the examples have, if they are
    at least half of all values, and those of them with a root mean square above 4. Their weights are of scaled values.

    Labels may be bool, int or str, as many as the stream brings. With two labels, a positive margin stands for `True`,
    for 1 beside 0 or −1, or for "true" beside "false". With other labels the first one met is the negative one, unless
    `pos_label` says otherwise.

    From a third label on, each class is learned against the rest, and the one with the largest margin is predicted.
    Nothing starts afresh: the first two classes go on with the margins −m and m. These things differ:

    - A feature has one scale for all classes, 0.3 plus the largest log-count ratio that it has for any of them.
    - The margin of each of K classes begins at −log(K − 1), since most examples are of other classes. An example is
      learned as a negative one of a class only while its margin for that class is above −3/5 of `margin`. So a feature
      keeps a weight only for the classes that taught it.
    - The steps are η √(2s), with s the slope of the probabilities. They are larger while margins are too small for how
      often they are right, as with many classes, and smaller where margins are too large. G_j begins with 0.001.
    - Probabilities are proportional to exp(s · margin + o_c). The slope s and the offset o_c of each class are learned
      online. The largest probability is then calibrated by itself. The margins that are shown include o_c / s.

    For a class that comes late, the earlier examples and their features are already counted as negative; its weights
    begin with its first example. Lest that be a slip, such as a misspelt label, o_c begins with log(5K / n) after n
    examples, if that is below 0; the second and the third example each give half of that back.

    With word vectors (`TextFeatures(vectors=...)`) a logistic regression of second order on the vectors of messages
    stands beside all that. Its margins and those of the features are joined by two weights, learned online, so that the
    vectors count where they tell something: mostly at first.

    Parameters
    ----------
    learning_rate
        η, from 1e-30 to 1e30: about how far the first step moves the weight of a feature.
    loss
        `"log"`: log(1 + exp(−y·margin)). `"hinge"`: max(0, 1 − y·margin).
    margin
        An example is learned only if its y·margin is at most this: at least 0, which is a perceptron's rule; `None` to
        learn every example. Skipped examples still count in `n_iterations`, and calibrate the probabilities.
    naive_bayes
        Whether features are scaled by their log-count ratio; if not, s_j = 1.
    smoothing
        The pseudo-count α, from 1e-30 to 1e30. The smaller it is, the more rare features count.
    half_life
        The number of examples over which evidence (the counts p_j and n_j, and the sums G_j) halves, at least 1; `None`
        for never. `"auto"` is 10,000, and from 50,000 on a fifth of the examples since the stream last changed, which
        their losses tell. There evidence is cut down to that of 50,000, and weights to the root of that share.
    fit_intercept
        Whether there is an intercept.
    intercept_scaling
        The value of the constant feature whose weight is the intercept, from 1e-30 to 1e30; features have a norm of 1.
    class_weight
        The weight of the loss on each label, as a dict from label to a number of at least 0; 1 for labels not in it. Or
        `"balanced"`: N / (K · n), where N examples of K labels were learned so far and n of them have the label, with
        the example itself included. Or `"sqrt"`: the root of that, which raises rare labels at less cost in accuracy.
        An example counts as much as its weight wherever one counts, so that probabilities are those of the weighted
        stream; those of the stream itself are p / weight, divided by their sum. One of weight 0 changes nothing, and is
        not counted.
    pos_label
        The label that positive margins stand for. A bool, 0 or 1 also stands for its text, and the other way round.
        With a `threshold` or a `max_false_positive_rate` it is needed, unless labels are bool, 0 and 1, or −1 and 1.
    threshold
        The positive label is predicted where its probability is above this number; between 0 and 1, both excluded. With
        0.5 that is where the margin is above 0. Otherwise, with more than two classes, the most probable other label is
        predicted; with 0.5, simply the most probable of all. Or a dict with thresholds for some labels, with any number
        of classes: each of these labels is predicted only above its own threshold.
    max_false_positive_rate
        The largest share of negative examples that may be predicted positive; between 0 and 1, both excluded; `None`
        for no limit. Or a dict with the limits of some labels, for each of which all other labels are negative. The
        positive label is predicted only where `threshold` allows it and the margin is above a cut-off: the lowest place
        above which at most 0.9 · rate of the margins lie that the newest 16,384 to 32,768 negative examples had right
        before they were learned. So of negative examples like those before no larger share is expected to be flagged,
        though chance may flag more. Nothing is flagged before 0.05/rate negative examples are learned. While the
        negative label is unknown, `None` is predicted.
    decide_for
        The metric that predictions are to raise: `"accuracy"`, or `"macro_f1"`, the mean over all classes. It predicts
        the class c with the largest (2p − F1) / n, where p is its probability, F1 that of its predictions so far, and n
        the number of its predictions and examples: a prediction more raises macro F1 most there. Both are counted
        online, before each example is learned, as if two right predictions had been made before; all counts are halved
        when they reach 32,768 examples. Weights and probabilities do not change; with a `class_weight`, F1 is that of
        the weighted stream. Thresholds and limits of false positives decide by themselves, and must be left out.
        `"micro_f1"` is for several labels, in a `MultiLabelClassifier`; here it is the accuracy.
    coverage
        The share of examples whose set of labels, as `predict_set_one` gives it, holds the right one; between 0 and 1,
        both excluded; `None` for no sets. A set has the likeliest label, and all with a probability above a level that
        falls when a set misses the right label and rises when it does not, as examples are learned, so the share is
        kept whatever the stream does. Where more of the likeliest labels are right than asked for, sets are of one.
        A label that is new is missed beside these. Of ordered classes a set is an interval with the label predicted;
        where an example may have several labels, it has those that may hold, perhaps none, and misses if it lacks one.
        Two classes in a set mean that the model is unsure. Probabilities are those from before learning.
    drift_detector
        One of River's drift detectors, such as `drift.binary.HDDMW()` or `drift.ADWIN()`. Before an example is learned,
        a copy of the detector is told whether its prediction was wrong. When it detects a drift, all evidence so far
        counts a tenth, so that weights move faster, and weights shrink by the root of that. Detectors such as HDDMW,
        which react only to more errors, do best; others also raise alarms when errors become fewer. Examples are
        learned one at a time, which is slower. What a detector was told is not saved: it begins anew in a loaded model.
    max_features
        The largest number of features, at least 1; `None` for no limit. When an example brings in more, the least-used
        features are dropped first, until three quarters of the limit are left. The use of a feature is the number of
        examples within the margin that had it, each times its weight, and half after the half-life; those before the
        last time that features were dropped count .98 of what they counted then. Of equally used features, those with
        the larger number or hash are dropped. Names of features are dropped, too, once there are twice as many.

    Attributes
    ----------
    weights : dict
        The weight of each feature learned, by its name: w_j s_j. The margin is the sum of weight times value, divided
        by the norm of the example's s_j x_j, plus the intercept. With more than two classes there is such a dict for
        each.
    intercept : float
        What the intercept adds to the margin; with more than two classes, a dict with one number for each.
    n_iterations : int
        The number of examples learned or skipped.
    classes : tuple
        The labels met, in the order in which they came.
    pair : tuple
        With up to two labels the negative and the positive one, `None` for one that is to come; otherwise nothing.
    n_drifts : int
        The number of drifts that the detector has detected.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type or out of its range. When learning, also a ValueError if `pos_label` is
        needed.

    Notes
    -----
    With two classes the probability is calibrated online, and is above 0.5 exactly where the margin is above 0. So
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

    A typo brought a class, which is forgotten:

    >>> model.learn_one({"cheap": 1}, "Spam")
    >>> model.forget_class("Spam")
    >>> model.classes
    ('spam', 'ham', 'work')

    A filter that may flag one of a hundred good messages flags nothing before it has met five:

    >>> model = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.01)
    >>> for x, y in [({"cheap": 1, "pills": 1}, "spam"), ({"see": 1, "you": 1}, "ham")] * 20:
    ...     if model.n_iterations in (4, 30):
    ...         print(model.predict_one({"cheap": 1, "pills": 1}))
    ...     model.learn_one(x, y)
    ham
    spam

    Labels are swapped half-way:

    >>> from river import drift

    >>> model = AdaptiveClassifier(drift_detector=drift.binary.HDDMW())
    >>> for i in range(2_000):
    ...     model.learn_one({"odd" if i % 2 else "even": 1}, (i % 2 == 1) != (i >= 1_000))
    >>> model.n_drifts, model.predict_one({"odd": 1})
    (1, False)
    """

    capabilities = frozenset([Capability.WEIGHTS, Capability.EXPLAIN, Capability.MULTICLASS])

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
        label_decisions = decisions_by_label(self.threshold, self.max_false_positive_rate)
        decision = None if label_decisions else Decision(self.threshold, self.max_false_positive_rate)  # type: ignore[arg-type]
        check_decide_for(self.decide_for, self.threshold, self.max_false_positive_rate)
        check_coverage(self.coverage)
        self._drift = DriftWatch(self.drift_detector)
        check_max_features(self.max_features)
        labels = Labels(pos_label=self.pos_label)
        self.conformal = changed_coverage(None, self.coverage)
        self._set_up(self.make_learner("two"), labels, self.class_weight)
        decisions = label_decisions if decision is None else {} if decision.is_by_margin else {None: decision}
        self._set_decisions(labels, decisions, changed_f1(None, self.decide_for, exclusive=True))

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

    def _set_decisions(self, labels: Labels, decisions: Mapping[Any, Decision], f1: F1Decision | None) -> None:
        self.labels = replace(labels, needs_positive=None in decisions)
        self.decisions: Decisions = Decisions(decisions)
        self.f1 = f1
        watched = self._has_limits() or (f1, self.drift_detector, self.conformal) != (None, None, None)
        self._set_ways(watched, not decisions and f1 is None)

    def _has_limits(self) -> bool:
        return any(decision.limit is not None for decision in self.decisions.of_label.values())

    def decide(self, change: DecisionChange) -> None:
        threshold, rate, pos_label, decide_for, coverage = change
        decisions, labels, positive = self.decisions.of_label, self.labels, self.pos_label
        if (decide_for, coverage) == (None, None) or (threshold, rate, pos_label) != (None, None, None):
            decisions, labels, positive = self._changed_decisions(threshold, rate, pos_label)
        parameters = parameters_of_decisions(decisions)
        decide_for = decide_for or self.decide_for
        check_decide_for(decide_for, **parameters)
        coverage = coverage_asked(coverage, self.coverage)
        self.conformal = changed_coverage(self.conformal, coverage)
        self._set_decisions(labels, decisions, changed_f1(self.f1, decide_for, exclusive=True))
        self.pos_label, self.decide_for, self.coverage = positive, decide_for, coverage
        self.threshold, self.max_false_positive_rate = parameters["threshold"], parameters["max_false_positive_rate"]

    def _changed_decisions(
        self, threshold: PerLabel, rate: PerLabel, pos_label: Label | None
    ) -> tuple[Mapping[Any, Decision], Labels, Label | None]:
        """The decisions after a change, on which labels they are, and which of these is named as the positive one."""
        labels, now = self.labels, dict(self.decisions.of_label)
        named = [label for values in (threshold, rate) if isinstance(values, Mapping) for label in values]
        is_for_one = now.keys() <= {None}
        if pos_label is not None:
            labels = replace(labels, pos_label=pos_label)
            if len(labels.known) > 1 and labels.positive == len(labels.known):
                raise ValueError(unknown_label(pos_label, labels.known))
        positive = self.pos_label if pos_label is None else pos_label
        if is_for_one and not named:
            decisions: Mapping[Any, Decision] = self._merge_decisions(labels, threshold, rate, positive)
        else:
            now = {self._positive_label if label is None else label: decision for label, decision in now.items()}
            label_read = next(iter(now)) if pos_label is None and len(now) == 1 else positive
            if label_read is None and not all(
                value is None or isinstance(value, Mapping) for value in (threshold, rate)
            ):
                raise ValueError(WHICH_CLASS)
            decisions = changed_by_label(
                now,
                threshold,
                rate,
                [] if label_read is None else [label_read],
                self._negatives,
                lambda _: not self.n_iterations,
            )
            for label in decisions.keys() - now.keys():
                if labels.known and label not in labels.known:
                    raise ValueError(unknown_label(label, labels.known))
        return decisions, labels, positive

    def drop_class(self, label: Label) -> None:
        key = None if None in self.decisions.of_label and label == self._positive_label else label
        super().drop_class(label)
        if self.f1 is not None:
            self.f1.forget(label)
        if key in self.decisions.of_label:  # what its limit knows is of the class that went
            self.decisions.of_label = {**self.decisions.of_label, key: self.decisions.of_label[key].renewed()}

    def forget_negative(self, label: Label, probability: float, weight: float) -> None:
        """Have the limit of the other one of two labels forget an example that was learned with this label, when this
        had about that probability.
        """
        log_odds = math.log(max(1.0 - probability, 1e-12) / max(probability, 1e-12))
        for of, decision in self.decisions.of_label.items() if self.pair else ():
            if decision.limit is not None and label not in (of, self._positive_label if of is None else of):
                decision.limit.forget(log_odds / (2.0 * self.learner.calibrated[0]), weight)

    def _merge_decisions(self, labels: Labels, threshold: Any, rate: Any, named: Label | None) -> dict[Any, Decision]:
        """The decision for the positive one of these labels, which is the one that is `named`."""
        before = self.decisions.of_label.get(None)
        if before is None and named is None and len(labels.known) > 2:
            raise ValueError(WHICH_CLASS)
        if before is not None and before.limit is not None and labels.positive != self.labels.positive:
            if rate is None:
                raise ValueError(f"the limit of false positives is for {self._positive_label!r}; set one for {named!r}")
            before = Decision(before.threshold)
        decision = (before or Decision()).changed(threshold, rate, self._negatives(named), not self.n_iterations)
        if decision.is_by_margin:
            return {}
        if named is None and before is None:
            Labels(needs_positive=True).add_labels(labels.known)  # which raises where nothing says which it is
        return {None: decision}

    @property
    def _positive_label(self) -> Label | None:
        return next(iter(self.labels.known[self.labels.positive :]), self.labels.pos_label)

    def _negatives(self, label: Label | None) -> Tail | None:
        """The histogram of the newest negatives' margins of a class, where one is kept; `None` is the positive one."""
        number = self.labels.positive if label is None else int(self.labels.targets.get(label, 1))
        mistakes = self.learner.mistakes()
        if not mistakes:
            return None
        n_negatives, n_positives, false_positives, false_negatives = mistakes.values()
        return Tail.tail_of_mistakes(*((n_negatives, false_positives) if number else (n_positives, false_negatives)))

    def _tell_of_labels(self, before: Labels) -> None:
        super()._tell_of_labels(before)
        known_labels, positive = self.labels.known, self._positive_label
        if None in self.decisions.of_label and len(before.known) < 2 <= self.labels.positive == len(known_labels):
            warnings.warn(
                f"the threshold or limit of false positives is for {quoted(positive)}, a label that has not come: "
                f"it holds neither for {', '.join(map(quoted, known_labels[:-1]))} nor for the new label",
                UserWarning,
                stacklevel=2,
            )

    def label_of(self, margins: Margins) -> Any:
        if self.by_margin:
            return self.labels.label(margins)
        probabilities = probabilities_one(margins, self.learner.calibrated)
        if self.f1 is not None:
            return self.labels.choices[self.f1.numbers(self.labels, np.array([margins]), np.array([probabilities]))[0]]
        return self.labels.choices[self.decisions.number(self.labels, margins, probabilities)]

    def _copied_decisions(self) -> Decisions:
        return Decisions(copied(self.decisions.of_label)) if self._has_limits() else self.decisions

    def _decided(self, labels: Labels, raw: RawScores, learned: WeightedTargets | None = None) -> Decided:
        margins = raw.margins
        if self.by_margin:
            return None
        if len(margins) == 1 and self.f1 is None:
            of_one = margins[0].tolist(), probabilities_one(margins[0], raw.calibrated[0].tolist())
            of_learned = () if learned is None else (float(learned.targets[0]), float(learned.weights[0]))
            return np.array([self.decisions.number(labels, *of_one, *of_learned)])
        decided = []
        for rows in blocks(margins):
            probabilities = probabilities_many(margins[rows], raw.calibrated[rows])
            part = None if learned is None else WeightedTargets(*(array[rows] for array in learned))
            decisions = self.decisions if self.f1 is None else self.f1
            decided.append(decisions.numbers(labels, margins[rows], probabilities, part))
        return np.concatenate(decided)

    def _in_sets(self, labels: Labels, raw: RawScores) -> Floats:
        margins = raw.margins
        parts = [probabilities_many(margins[rows], raw.calibrated[rows]) for rows in blocks(margins)]
        return include_best(np.concatenate(parts), np.isfinite(margins), largest(margins))

    def _limited(self) -> Mapping[Label, float]:
        decisions = self.decisions.of_label.items()
        named = {self._positive_label if label is None else label: decision for label, decision in decisions}
        return limited(named)

    def _is_wrong(self, labels: Labels, raw: RawScores, target: float) -> bool:
        decided = largest(raw.margins) if raw.decided is None else raw.decided
        return bool(decided[0] != target)

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        arrays, names, values = super().to_state(lazy)
        if self.decisions.of_label:
            values["decisions"] = self.decisions.get_state()
        return arrays, names, values

    def _take_state(self, state: dict[str, Any], names: list[Any], values: dict[str, Any]) -> None:
        super()._take_state(state, names, values)
        decisions = values.get("decisions", [])
        if None in self.decisions.of_label and len(decisions) == 1:  # a file of version 0.2 names the positive label
            ((label, limit),) = decisions
            if label is not None:
                self.labels = replace(self.labels, pos_label=unpack(label))
            decisions = [[None, limit]]
        self.decisions.set_state(decisions)
