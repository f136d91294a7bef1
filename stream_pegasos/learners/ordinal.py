"""The learner of ordered classes over feature dicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import (
    LARGEST_WEIGHT,
    check_bool,
    check_integer,
    check_lengths,
    check_number,
    step_arguments,
)
from stream_pegasos.common.packing import pack, pack_parameters, parameters_of, unpack
from stream_pegasos.engine import Encoder, in_use
from stream_pegasos.engine.pure import AdaptiveLearner, PegasosLearner
from stream_pegasos.features.frames import n_rows, some_rows
from stream_pegasos.learners.adaptive import AdaptiveClassifier, WatchedClassifier
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.drift import DriftWatch
from stream_pegasos.learners.explanations import Contributions, explain
from stream_pegasos.learners.labels import (
    Label,
    Labels,
    Margins,
    check_label,
    label_array,
    label_list,
    probabilities_of_only,
    same_for_all,
)
from stream_pegasos.learners.pegasos import PegasosClassifier
from stream_pegasos.learners.predictions import Decided, Predictions, RawScores
from stream_pegasos.learners.probabilities import Floats

__all__ = ["OrdinalClassifier"]


@dataclass
class OrderedLabels(Labels):
    """Integer labels, numbered as they came; margins are the logarithms of their probabilities, by number."""

    @property
    def classes(self) -> tuple[Label, ...]:
        return tuple(sorted(self.targets))

    @property
    def order(self) -> NDArray[np.int64]:
        """The numbers of the labels, from the lowest on."""
        return np.array([self.targets[label] for label in self.classes], np.int64)

    def with_labels(self, y: Any) -> Labels:
        return super().with_labels([check_integer_label(label) for label in y])

    def label(self, margins: Margins) -> Any:
        return self.choices[self.medians(margins[np.newaxis])[0]]

    def labels_many(self, margins: Floats, decided: NDArray[Any] | None = None) -> NDArray[Any]:
        return super().labels_many(margins, self.medians(margins))

    def medians(self, margins: Floats) -> NDArray[np.intp]:
        """The number of the highest label that is reached with a probability above one half; −1 where there is none."""
        order = self.order_of(margins)
        if not len(order):
            return np.full(len(margins), -1)
        reached = np.cumsum(np.exp(margins[:, order])[:, ::-1], axis=1)[:, ::-1] > 0.5
        found: NDArray[np.intp] = order[np.maximum(reached.sum(axis=1) - 1, 0)]
        medians: NDArray[np.intp] = np.where(np.isfinite(margins).any(axis=1), found, -1)
        return medians

    def probabilities_many(
        self, margins: Floats, calibrated: Floats, n_learned: int
    ) -> tuple[tuple[Label | None, ...], Floats]:
        order = self.order_of(margins)
        if len(order) == 1:
            return super().probabilities_many(margins, calibrated, n_learned)
        return tuple(self.known[number] for number in order.tolist()), np.exp(margins[:, order])

    def probabilities(self, margins: Margins, calibrated: tuple[float, ...], n_learned: int) -> dict[Any, Any]:
        classes, found = self.probabilities_many(margins[np.newaxis], np.array([calibrated]), n_learned)
        return dict(zip(classes, found[0].tolist(), strict=True))

    def order_of(self, margins: Floats) -> NDArray[np.int64]:
        """The order of those that have a column."""
        found: NDArray[np.int64] = self.order[self.order < margins.shape[1]]
        return found

    def set_state(self, state: Any) -> None:
        super().set_state(state)
        for label in self.known:
            check_integer_label(label)


class OrderedClassifier(Classifier):
    """What has ordered classes: labels are integers, and the parameters are those of another classifier."""

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


class OrdinalClassifier(OrderedClassifier, WatchedClassifier):  # type: ignore[misc]  # as Classifier
    """Classifier for classes that have an order, such as stars.

    Each feature has one weight, and there is a threshold between each two neighbouring classes. The probability that an
    example is above threshold k is 1/(1 + exp(−s · (⟨w, x⟩ + b_k) − o_k)), with an intercept b_k. The slope s and the
    offset o_k are learned online from margins taken before learning. All thresholds teach the weights, with the steps
    and the scaled features of the `AdaptiveClassifier`: a feature is scaled by the mean size of its log-count ratios,
    each of the classes above a threshold to those below. The label predicted is the median, which has the least
    expected absolute error: the highest label that is reached with a probability above 1/2.

    Labels are integers, and come as the stream brings them. Integers between them that were never met are no classes. A
    new class begins with the thresholds of its neighbours.

    Parameters
    ----------
    classifier
        The `AdaptiveClassifier` whose parameters are used, one with its defaults if `None`; it may have no `pos_label`,
        no `threshold` and no `max_false_positive_rate`. Or a `PegasosClassifier`, for the published method[^2]: one SVM
        for each pair of neighbouring labels learns only from the examples of these two. The signs of all their margins
        form a pattern, and the label that occurred most often with this pattern is predicted. Its parameters `l2`,
        `batch_size`, `t0`, `project`, `fit_intercept` and `intercept_scaling` are used; the others must have their
        defaults. When a new label comes, the SVMs beside it start afresh, and so do the counts of patterns.

    Attributes
    ----------
    weights : dict
        The weight of each feature; positive weights speak for the higher classes. With pairs, such a dict for each
        pair.
    intercept : dict
        What the intercept adds to the margin, by pair of neighbouring labels.
    n_iterations : int
        The number of examples learned or skipped; with pairs, the largest number of steps that one SVM has taken.
    classes : tuple
        The labels met, in order.
    n_drifts : int
        The number of drifts that the detector has detected.

    Raises
    ------
    TypeError
        If the classifier is of another class; when learning, if a label is no integer.
    ValueError
        If the classifier has a parameter that is not used.

    References
    ----------
    [^1]: McCullagh, P., 1980. Regression models for ordinal data. JRSS B 42. (Proportional odds: one weight a feature,
        and thresholds.)
    [^2]: Duros, V. and Katzman, J. Comparison of SVM optimization techniques in the primal. (Neighbouring labels,
        patterns of signs.)

    Examples
    --------

    >>> from stream_pegasos import OrdinalClassifier, PegasosClassifier

    >>> stream = [({"awful": 1}, 1), ({"dull": 1}, 2), ({"fine": 1}, 4), ({"superb": 1}, 5)]
    >>> model = OrdinalClassifier()
    >>> for x, y in stream * 20:
    ...     model.learn_one(x, y)
    >>> [model.predict_one(x) for x, _ in stream]
    [1, 2, 4, 5]
    >>> model.predict_one({"awful": 1, "fine": 1})
    2
    >>> sorted(model.weights, key=model.weights.get)
    ['awful', 'dull', 'fine', 'superb']

    The published method:

    >>> model = OrdinalClassifier(PegasosClassifier(l2=0.1))
    >>> for x, y in stream * 20:
    ...     model.learn_one(x, y)
    >>> [model.predict_one(x) for x, _ in stream]
    [1, 2, 4, 5]
    >>> list(model.weights)
    [(1, 2), (2, 4), (4, 5)]

    """

    capabilities = frozenset(["weights", "explain", "several classes", "ordered"])
    kind = AdaptiveClassifier
    _learner: AdaptiveLearner
    _labels: OrderedLabels

    def __new__(cls, classifier: AdaptiveClassifier | PegasosClassifier | None = None) -> Any:
        return OrdinalPairsClassifier(classifier) if isinstance(classifier, PegasosClassifier) else super().__new__(cls)

    def __init__(self, classifier: AdaptiveClassifier | PegasosClassifier | None = None) -> None:
        self.classifier: Any = AdaptiveClassifier() if classifier is None else classifier
        if not isinstance(self.classifier, AdaptiveClassifier):
            raise TypeError(
                f"{classifier!r} is a {type(classifier).__name__}, no AdaptiveClassifier and no PegasosClassifier"
            )
        check_unused(self.classifier, ("pos_label", "threshold", "max_false_positive_rate"))
        self._drift = DriftWatch(self.classifier.drift_detector)
        watched = self.classifier.drift_detector is not None
        learner = self.classifier.learner_of("ordinal")
        self._set_up(learner, OrderedLabels(), self.classifier.class_weight, watched, by_margin=False)

    @property
    def max_features(self) -> int | None:  # type: ignore[override]
        return self.classifier.max_features  # type: ignore[no-any-return]

    @property
    def classes(self) -> tuple[int, ...]:
        return self._core._labels.classes  # type: ignore[return-value]

    def _intercepts(self) -> Any:
        """By pair of neighbouring labels."""
        return dict(zip(pairwise(self.classes), self._learner.intercept.tolist(), strict=True))

    def _columns(self) -> dict[Any, int] | None:
        return None

    def _n_columns(self) -> int:
        return len(self.classes)

    def contributions(self, encoder: Encoder, x: Any, label: Any = None) -> Contributions:
        if label is not None:
            raise ValueError(
                f"label is {label!r}; ordered classes are not explained one by one, only the place among them"
            )
        return explain(self._learner, encoder, x, [(0, 1.0)], with_intercept=False)

    def predictions_of(self, found: RawScores) -> Predictions:
        said = super().predictions_of(found)
        said.scores = found.margins[:, self._labels.order_of(found.margins)]
        return said

    def score_of(self, margins: Margins) -> Any:
        return {label: float(margins[int(self._labels.targets[label])]) for label in self.classes}

    def _learn_targets(
        self, encoder: Encoder, rows: Any, labels: Labels, targets: Floats, weights: Floats | None
    ) -> RawScores:
        assert isinstance(labels, OrderedLabels)
        self._learner.order = labels.order
        return super()._learn_targets(encoder, rows, labels, targets, weights)

    def _decided(
        self, labels: Labels, found: RawScores, targets: Floats | None = None, n_undecided: int = 0
    ) -> Decided:
        return None

    def _is_wrong(self, labels: Labels, found: RawScores, target: float) -> bool:
        assert isinstance(labels, OrderedLabels)
        return bool(labels.medians(found.margins)[0] != target)


Pattern = tuple[bool, ...]
Counts = list[float]  # by label, in order
LARGEST_COUNT_OF_LABEL = 1e307
# The parameters that a machine for two neighbours has.
USED = ("l2", "batch_size", "t0", "project", "fit_intercept", "intercept_scaling")


class Piece(NamedTuple):
    """What was found of examples between which no label was new."""

    classes: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    margins: Floats  # with a column a pair
    probabilities: list[list[float]]  # of each class
    predicted: list[int | None]


class OrdinalPairsClassifier(OrderedClassifier):
    """What an `OrdinalClassifier` made with a `PegasosClassifier` is."""

    capabilities = frozenset(["weights", "several classes", "ordered"])
    kind = PegasosClassifier
    _learner: PegasosLearner
    _labels: Labels

    def __init__(self, classifier: PegasosClassifier | None = None) -> None:
        self.classifier = PegasosClassifier() if classifier is None else classifier
        check_unused(self.classifier, [name for name in parameters_of(self.classifier) if name not in USED])
        step = step_arguments(*(getattr(self.classifier, name) for name in USED))
        learner = in_use(PegasosLearner)(*step, reduction="pairs")
        self._set_up(learner, Labels(), watched=True, by_margin=False)  # by the counts of patterns, which decide
        self._frequencies: Counts = []
        self._patterns: dict[Pattern, Counts] = {}
        self._arrange({}, [])

    @property
    def classes(self) -> tuple[int, ...]:
        return self._labels.known  # type: ignore[return-value]

    def _arrange(self, pairs: dict[tuple[int, int], int], labels: list[int]) -> None:
        """Take over the labels met, in order, and the column of each pair of neighbours."""
        self._pairs = pairs
        self._labels = Labels(tuple(labels), {label: float(i) for i, label in enumerate(labels)})
        signs = np.zeros((len(labels), len(pairs)))
        for (lower, higher), column in pairs.items():
            signs[labels.index(lower), column], signs[labels.index(higher), column] = -1.0, 1.0
        self._learner.signs = signs

    def _columns(self) -> dict[Any, int]:
        return self._pairs

    def _n_columns(self) -> int:
        return len(self._pairs)

    def learn_row(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        check_number("w", w, 0.0, LARGEST_WEIGHT)
        self.learn_rows(encoder, [x], [y], w)

    def learn_rows(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> RawScores:
        labels = [check_integer_label(label) for label in label_list(y)]
        check_lengths("labels", len(labels), n_rows(rows))
        weights, _ = self._class_weights.weights_many(np.array(labels), int, w)
        # The machines change where a label is new; a piece of the rows goes up to there.
        starts = [labels.index(label) for label in dict.fromkeys(labels) if label not in self._labels.targets]
        if starts:
            self.meet_rows(encoder, rows)  # whatever is wrong has to show before the first piece
        blocks: list[Piece] = []
        for begin, end in pairwise([*dict.fromkeys([0, *starts]), len(labels)]):
            piece = (labels[begin:end], None if weights is None else weights[begin:end])
            blocks += self._learn_piece(encoder, some_rows(rows, begin, end), *piece)
        return self._found(blocks)

    def _learn_piece(self, encoder: Encoder, rows: Any, labels: list[int], weights: Floats | None) -> list[Piece]:
        """Rows of which the first alone may have a new label."""
        blocks = []
        if labels and labels[0] not in self._labels.targets:
            margins, _ = self._learner.predict_learn_many(encoder, some_rows(rows, 0, 1))
            blocks.append(self._block(margins))
            self._add_label(labels[0])
        targets = [self._labels.targets[label] for label in labels]
        margins = self._learn_blocks(encoder, rows, np.array(targets), weights).margins
        each = [1.0] * len(labels) if weights is None else weights.tolist()
        block = self._block(margins[:0])
        for i, (pattern, target) in enumerate(zip(map(tuple, (margins > 0.0).tolist()), targets, strict=True)):
            if i >= len(blocks):
                self._predict_into(block, pattern)
            if pattern not in self._patterns:
                self._patterns[pattern] = [0.0] * len(self.classes)
            self._patterns[pattern][int(target)] += each[i]
            self._frequencies[int(target)] += each[i]
        return [*blocks, block._replace(margins=margins[len(blocks) :, list(self._pairs.values())])]

    def _block(self, margins: Floats) -> Piece:
        """What is found of rows of margins, by column."""
        block = Piece(self.classes, tuple(self._pairs), margins[:, list(self._pairs.values())], [], [])
        for row in margins:
            self._predict_into(block, pattern_of(row))
        return block

    def _predict_into(self, block: Piece, pattern: Pattern) -> None:
        block.predicted.append(self._likeliest(self._counts(pattern)))
        block.probabilities.append(shares(self._counts(pattern)))

    def _found(self, blocks: list[Piece]) -> RawScores:
        """The blocks as one, with a column for each of the classes and pairs that there are now."""
        n = sum(len(block.predicted) for block in blocks)
        margins, probabilities = np.full((n, len(self._pairs)), -np.inf), np.zeros((n, len(self.classes)))
        places = {of: i for i, of in enumerate([*self._pairs])}
        done = 0
        for block in blocks:
            these = slice(done, done + len(block.predicted))
            for column, pair in enumerate(block.pairs):
                if pair in places:
                    margins[these, places[pair]] = block.margins[:, column]
            columns = [self.classes.index(label) for label in block.classes]
            probabilities[these, columns] = np.array(block.probabilities).reshape(len(block.predicted), len(columns))
            done = these.stop
        return RawScores(margins, probabilities, label_array([label for block in blocks for label in block.predicted]))

    def _add_label(self, label: int) -> None:
        """Make room for a label among its neighbours."""
        pairs, labels = dict(self._pairs), sorted([*self.classes, label])
        self._frequencies.insert(labels.index(label), 0.0)
        below, above = labels[: labels.index(label)][-1:], labels[labels.index(label) + 1 :][:1]
        if below and above:
            pairs[below[0], label] = pairs.pop((below[0], above[0]))
            self._learner.clear_column(pairs[below[0], label])
        elif below:
            pairs[below[0], label] = self._add_column()
        if above:
            pairs[label, above[0]] = self._add_column()
        self._patterns = {}
        self._arrange(dict(sorted(pairs.items())), labels)

    def _add_column(self) -> int:
        self._learner.add_column()
        return self._learner.n_columns - 1

    def meet_rows(self, encoder: Encoder, rows: Any) -> RawScores:
        return self._found([self._block(self._learner.predict_learn_many(encoder, rows)[0])])

    def label_of(self, margins: Margins) -> Any:
        return self._likeliest(self._counts(pattern_of(margins)))

    def probabilities_of(self, margins: Margins) -> dict[Any, float]:
        if len(self.classes) == 1:
            return probabilities_of_only(self.classes[0], self.n_learned)
        return dict(zip(self.classes, shares(self._counts(pattern_of(margins))), strict=True))

    def predictions_of(self, found: RawScores) -> Predictions:
        said: tuple[tuple[Label | None, ...], Floats] = self.classes, found.calibrated
        if len(self.classes) == 1:
            said = same_for_all(probabilities_of_only(self.classes[0], self.n_learned), len(found.margins))
        return Predictions(found.margins, lambda: found.decided, lambda: said)  # type: ignore[arg-type,return-value]

    def _counts(self, pattern: Pattern) -> Counts:
        counts = self._patterns.get(pattern)
        return counts if counts and any(counts) else self._frequencies

    def _likeliest(self, counts: Counts) -> Any:
        """The label that was met most often; of several the most frequent one, and of these the lowest."""
        if not counts:
            return None
        most = max(counts)
        if counts.count(most) == 1:
            return self.classes[counts.index(most)]
        ties = [i for i, count in enumerate(counts) if count == most]
        return self.classes[max(ties, key=self._frequencies.__getitem__)]

    @property
    def n_learned(self) -> int:
        return int(sum(self._frequencies))

    def to_state(self) -> tuple[dict[str, NDArray[Any]], list[Any], dict[str, Any]]:
        arrays, names, values = super().to_state()
        values["labels"] = [[pack(label), n] for label, n in zip(self.classes, self._frequencies, strict=True)]
        values["columns"] = list(self._pairs.values())
        values["patterns"] = [[list(pattern), list(counts)] for pattern, counts in self._patterns.items()]
        return arrays, names, values

    def _take_state(self, state: dict[str, Any], names: list[Any], values: Any) -> None:
        labels = [check_integer_label(unpack(label)) for label, _ in values["labels"]]
        columns, patterns = values["columns"], values["patterns"]
        if sorted(set(labels)) != labels or sorted(columns) != list(range(len(labels[1:]))):
            raise ValueError("the labels are not as they were written")
        for column in columns:
            check_integer("a column", column, 0, len(columns) - 1)
        for counts in ([count for _, count in values["labels"]], *(counts for _, counts in patterns)):
            check_lengths("counts", len(counts), len(labels))
            for count in counts:
                check_number("a count", count, 0.0, LARGEST_COUNT_OF_LABEL)
        self._arrange(dict(zip(pairwise(labels), columns, strict=True)), labels)
        self._frequencies = [float(count) for _, count in values["labels"]]
        for pattern, counts in patterns:
            check_lengths("signs", len(pattern), len(columns))
            for sign in pattern:
                check_bool("a sign", sign)
            self._patterns[tuple(pattern)] = [float(count) for count in counts]
        super()._take_state(state, names, {**values, "labels": [pack(label) for label in labels]})


def shares(counts: Counts) -> list[float]:
    """The share of each label; as much of all where none was met with any weight."""
    total = sum(counts)
    return [count / total if total else 1.0 / len(counts) for count in counts]


def pattern_of(margins: Floats) -> Pattern:
    """Which machines speak for the higher of their labels."""
    return tuple((margins > 0.0).tolist())


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
