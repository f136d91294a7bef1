"""Ordered classes by an SVM for each pair of neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_bool, check_integer, check_lengths, check_number, step_arguments
from stream_pegasos.common.packing import pack, parameters_of, unpack
from stream_pegasos.engine import Encoder, in_use
from stream_pegasos.engine.pure import PegasosLearner
from stream_pegasos.features.frames import n_rows, some_rows
from stream_pegasos.learners.labels import Label, Labels, Margins, label_array, label_list
from stream_pegasos.learners.ordered import OrderedClassifier, check_integer_label, check_unused
from stream_pegasos.learners.pegasos import PegasosClassifier
from stream_pegasos.learners.predictions import Predictions, RawScores
from stream_pegasos.learners.probabilities import Floats, of_only, same_for_all

__all__ = ["OrdinalPairsClassifier"]

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

    def learn_rows(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> RawScores:
        labels = [check_integer_label(label) for label in label_list(y)]
        check_lengths("labels", len(labels), n_rows(rows))
        weights, _ = self._class_weights.weights_many(np.array(labels), int, w)
        # A new label changes the pairs, so that each new label begins a piece of the rows.
        starts = [labels.index(label) for label in dict.fromkeys(labels) if label not in self._labels.targets]
        if starts:
            self.meet_rows(encoder, rows)  # whatever is wrong has to show before the first piece
        blocks: list[Piece] = []
        for begin, end in pairwise([*dict.fromkeys([0, *starts]), len(labels)]):
            piece = (labels[begin:end], None if weights is None else weights[begin:end])
            blocks += self._learn_piece(encoder, some_rows(rows, begin, end), *piece)
        return self._found(blocks)

    def _learn_piece(self, encoder: Encoder, rows: Any, labels: list[int], weights: Floats | None) -> list[Piece]:
        """Learn rows, of which only the first may have a new label."""
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
        """The predictions for rows of margins."""
        block = Piece(self.classes, tuple(self._pairs), margins[:, list(self._pairs.values())], [], [])
        for row in margins:
            self._predict_into(block, pattern_of(row))
        return block

    def _predict_into(self, block: Piece, pattern: Pattern) -> None:
        block.predicted.append(self._likeliest(self._counts(pattern)))
        block.probabilities.append(shares(self._counts(pattern)))

    def _found(self, blocks: list[Piece]) -> RawScores:
        """The joined blocks, with a column for each of the present classes and pairs."""
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
            return of_only(self.classes[0], self.n_learned)
        return dict(zip(self.classes, shares(self._counts(pattern_of(margins))), strict=True))

    def predictions_of(self, found: RawScores) -> Predictions:
        said: tuple[tuple[Label | None, ...], Floats] = self.classes, found.calibrated
        if len(self.classes) == 1:
            said = same_for_all(of_only(self.classes[0], self.n_learned), len(found.margins))
        return Predictions(found.margins, lambda: found.decided, lambda: said)  # type: ignore[arg-type,return-value]

    def _counts(self, pattern: Pattern) -> Counts:
        counts = self._patterns.get(pattern)
        return counts if counts and any(counts) else self._frequencies

    def _likeliest(self, counts: Counts) -> Any:
        """The label with the largest count; of several the one that is most frequent overall, then the lowest."""
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
    """The share of each label in the counts; equal shares if all counts are 0."""
    total = sum(counts)
    return [count / total if total else 1.0 / len(counts) for count in counts]


def pattern_of(margins: Floats) -> Pattern:
    """For which pairs the margin speaks for the higher label."""
    return tuple((margins > 0.0).tolist())
