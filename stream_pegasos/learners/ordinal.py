"""The learner of ordered classes over feature dicts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

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
from stream_pegasos.engine import Encoder, in_use
from stream_pegasos.engine.pure import PegasosLearner
from stream_pegasos.features.frames import n_rows, some_rows
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.labels import Classes, Floats, check_label, label_array, label_list, probabilities_of_only
from stream_pegasos.learners.persistence import pack, unpack
from stream_pegasos.learners.predictions import Found, Predictions

__all__ = ["OrdinalPegasosClassifier"]

Pattern = tuple[bool, ...]
Counts = list[float]  # by label, in order
LARGEST_COUNT_OF_LABEL = 1e307


class Piece(NamedTuple):
    """What was found of examples between which no label was new."""

    classes: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    margins: Floats  # with a column a pair
    probabilities: list[list[float]]  # of each class
    predicted: list[int | None]


class OrdinalPegasosClassifier(Classifier):
    """Linear support vector machines for ordered classes: one for each pair of neighbouring labels, trained by Pegasos.

    The machine for the labels (0, 1) learns from the examples of these two alone, that for (1, 2) from those, and so
    on. The signs of their margins make a pattern, and the label predicted is the one that went most often with the
    pattern: patterns are counted before each example is learned. For one that was never met the most frequent label is
    predicted.

    Labels are integers and come as the stream brings them; neighbours are those next to each other among the labels
    met. When a new one comes, the machines beside it start anew, and so does the counting of patterns.

    Parameters
    ----------
    l2
        The regularisation λ, from 1e-30 to 1e30.
    batch_size
        k, the number of examples of its two labels that a machine takes a step on, at least 1.
    t0
        Steps that the step size pretends to have been taken before the first, at least 0.
    project
        Whether each step ends with the projection onto the ball of radius 1/√λ.
    fit_intercept
        Whether to add one constant feature, and so an intercept a machine that is regularised as any other weight.
    intercept_scaling
        The value of that feature, above 0.

    Attributes
    ----------
    weights : dict
        For each pair of neighbouring labels a dict with the weights of the features learned; positive ones speak for
        the higher label.
    intercept : dict
        For each pair what the intercept adds to the margin.
    n_iterations : int
        The largest number of steps that a machine has taken.
    classes : tuple
        The labels met, in order.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    [^1]: Duros, V. and Katzman, J. Sentiment analysis on movie reviews. (Neighbouring labels, patterns of signs.)
    [^2]: Shalev-Shwartz, S., Singer, Y. and Srebro, N., 2007. Pegasos: Primal Estimated sub-GrAdient SOlver for
        SVM. ICML.

    Examples
    --------

    >>> from stream_pegasos import OrdinalPegasosClassifier

    >>> model = OrdinalPegasosClassifier(l2=0.1)
    >>> stream = [({"awful": 1}, 0), ({"dull": 1}, 1), ({"fine": 1}, 2), ({"superb": 1}, 3)]
    >>> for x, y in stream * 20:
    ...     model.learn_one(x, y)
    >>> [model.predict_one(x) for x, _ in stream]
    [0, 1, 2, 3]
    >>> list(model.weights)
    [(0, 1), (1, 2), (2, 3)]

    """

    capabilities = frozenset(["weights", "several classes"])
    _learner: PegasosLearner
    _labels: Classes

    @property
    def classes(self) -> tuple[int, ...]:
        return self._labels.known  # type: ignore[return-value]

    def __init__(
        self,
        l2: float = 1e-4,
        batch_size: int = 1,
        t0: float = 0.0,
        project: bool = True,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
    ) -> None:
        step = step_arguments(l2, batch_size, t0, project, fit_intercept, intercept_scaling)
        self.l2 = l2
        self.batch_size = batch_size
        self.t0 = t0
        self.project = project
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        learner = in_use(PegasosLearner)(*step, reduction="pairs")
        self._set_up(learner, Classes(), watched=True, by_margin=False)  # by the counts of patterns, which decide
        self._frequencies: Counts = []
        self._patterns: dict[Pattern, Counts] = {}
        self._arrange({}, [])

    def _arrange(self, pairs: dict[tuple[int, int], int], labels: list[int]) -> None:
        """Take over the labels met, in order, and the column of each pair of neighbours."""
        self._pairs = pairs
        self._labels = Classes(tuple(labels), {label: float(i) for i, label in enumerate(labels)})
        signs = np.zeros((len(labels), len(pairs)))
        for (lower, higher), column in pairs.items():
            signs[labels.index(lower), column], signs[labels.index(higher), column] = -1.0, 1.0
        self._learner.signs = signs

    def _columns(self) -> dict[Any, int]:
        return self._pairs

    def check_labels(self, y: Iterable[Any]) -> None:
        for label in label_list(y):
            check_integer_label(label)

    def learn_row(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        check_number("w", w, 0.0, LARGEST_WEIGHT)
        self.learn_rows(encoder, [x], [y], w)

    def learn_rows(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> Found:
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
        margins, _ = self._learn_blocks(encoder, rows, np.array(targets), weights)
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

    def _found(self, blocks: list[Piece]) -> Found:
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
        return Found(margins, probabilities, label_array([label for block in blocks for label in block.predicted]))

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

    def meet_rows(self, encoder: Encoder, rows: Any) -> Found:
        return self._found([self._block(self._learner.predict_learn_many(encoder, rows)[0])])

    def label_of(self, margin: Any) -> Any:
        return self._likeliest(self._counts(pattern_of(margin)))

    def probabilities_of(self, margin: Any) -> dict[Any, float]:
        if len(self.classes) == 1:
            return probabilities_of_only(self.classes[0], self.n_learned)
        return dict(zip(self.classes, shares(self._counts(pattern_of(margin))), strict=True))

    def predictions_of(self, found: Found) -> Predictions:
        classes: tuple[Any, ...] = self.classes
        probabilities = found.calibrated
        if len(classes) == 1:
            only = probabilities_of_only(classes[0], self.n_learned)
            classes, probabilities = tuple(only), np.full((len(found.margins), 2), list(only.values()))
        return Predictions(found.margins, lambda: found.decided, lambda: (classes, probabilities))  # type: ignore[arg-type,return-value]

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
