"""The learner of ordered classes over feature dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import (
    LARGEST_SUM,
    LARGEST_WEIGHT,
    check_bool,
    check_integer,
    check_lengths,
    check_multi_state,
    check_number,
)
from stream_pegasos.engine import Encoder
from stream_pegasos.features.frames import n_rows, some_rows
from stream_pegasos.learners.classifier import Floats, Outcomes
from stream_pegasos.learners.labels import Label, check_label, label_array, label_list
from stream_pegasos.learners.persistence import pack, unpack
from stream_pegasos.learners.several import SeveralClassifier

__all__ = ["OrdinalPegasosClassifier"]

Pattern = tuple[bool, ...]
Counts = list[float]  # by label, in order


class OrdinalPegasosClassifier(SeveralClassifier):
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

    def __init__(
        self,
        l2: float = 1e-4,
        batch_size: int = 1,
        t0: float = 0.0,
        project: bool = True,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
    ) -> None:
        self._set_up(l2, batch_size, t0, project, fit_intercept, intercept_scaling, joint=False)
        self._frequencies: Counts = []
        self._patterns: dict[Pattern, Counts] = {}
        self._arrange({}, [])

    def _arrange(self, columns: dict[tuple[int, int], int], labels: list[int]) -> None:
        """Take over the labels met, in order, and the column of each pair of neighbours."""
        self._columns, self._labels = columns, labels
        self._numbers = {label: i for i, label in enumerate(labels)}
        self._signs = np.zeros((len(labels), len(columns)))
        for (lower, higher), column in columns.items():
            self._signs[self._numbers[lower], column] = -1.0
            self._signs[self._numbers[higher], column] = 1.0

    @property
    def classes(self) -> tuple[int, ...]:
        return tuple(self._labels)

    def _column_names(self) -> dict[tuple[int, int], int]:
        return self._columns

    def _learn_one(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        check_number("w", w, 0.0, LARGEST_WEIGHT)
        self._learn_many(encoder, [x], [y], w)

    def _learn_many(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> Outcomes:
        """The label predicted for each row before it is learned."""
        labels = [check_integer_label(label) for label in label_list(y)]
        check_lengths("labels", len(labels), n_rows(rows))
        weights, _ = self._weights_many(np.array(labels), int, w)
        # The machines change where a label is new; a piece of the rows goes up to there.
        starts = [labels.index(label) for label in dict.fromkeys(labels) if label not in self._numbers]
        if starts:
            self._decision_function_many(encoder, rows)  # whatever is wrong has to show before the first piece
        predicted: list[Any] = []
        for begin, end in pairwise([*dict.fromkeys([0, *starts]), len(labels)]):
            piece = (labels[begin:end], None if weights is None else weights[begin:end])
            predicted += self._learn_piece(encoder, some_rows(rows, begin, end), *piece)
        return Outcomes(label_array(predicted))

    def _learn_piece(self, encoder: Encoder, rows: Any, labels: list[int], weights: Floats | None) -> list[Any]:
        """Rows of which the first alone may have a new label."""
        predicted = []
        if labels and labels[0] not in self._numbers:
            before = self._learner.predict_learn_many(encoder, some_rows(rows, 0, 1))[0][0]
            predicted.append(self._decide(before))
            self._meet(labels[0])
        numbers = [self._numbers[label] for label in labels]
        margins = self._learn_rows(encoder, rows, np.array(numbers, np.int64), weights, self._signs)
        each = [1.0] * len(labels) if weights is None else weights.tolist()
        for i, (pattern, number) in enumerate(zip(map(tuple, (margins > 0.0).tolist()), numbers, strict=True)):
            if i == len(predicted):
                predicted.append(self._likeliest(self._counts(pattern)))
            if pattern not in self._patterns:
                self._patterns[pattern] = [0.0] * len(self._labels)
            self._patterns[pattern][number] += each[i]
            self._frequencies[number] += each[i]
        return predicted

    def _meet(self, label: int) -> None:
        """Make room for a label among its neighbours."""
        columns, labels = dict(self._columns), sorted([*self._labels, label])
        self._frequencies.insert(labels.index(label), 0.0)
        below, above = labels[: labels.index(label)][-1:], labels[labels.index(label) + 1 :][:1]
        if below and above:
            columns[below[0], label] = columns.pop((below[0], above[0]))
            self._learner.clear_column(columns[below[0], label])
        elif below:
            columns[below[0], label] = self._add_column()
        if above:
            columns[label, above[0]] = self._add_column()
        self._patterns = {}
        self._arrange(dict(sorted(columns.items())), labels)

    def _add_column(self) -> int:
        self._learner.add_column()
        return self._learner.n_columns - 1

    def _predict_one(self, encoder: Encoder, x: Any) -> Any:
        return self._decide(self._learner.margins(encoder, x))

    def _predict_proba_one(self, encoder: Encoder, x: Any) -> dict[Any, float]:
        return self._probabilities(pattern_of(self._learner.margins(encoder, x)))

    def _decision_function_one(self, encoder: Encoder, x: Any) -> dict[tuple[int, int], float]:
        margins = self._learner.margins(encoder, x)
        return {pair: float(margins[column]) for pair, column in self._columns.items()}

    def _predict_many(self, encoder: Encoder, rows: Any) -> NDArray[Any]:
        margins = self._learner.predict_learn_many(encoder, rows)[0]
        return label_array([self._decide(row) for row in margins])

    def _predict_proba_many(self, encoder: Encoder, rows: Any) -> tuple[tuple[Label, ...], Floats]:
        margins = self._learner.predict_learn_many(encoder, rows)[0]
        each = [self._probabilities(pattern_of(row)) for row in margins]
        labels = tuple(each[0]) if each else self.classes
        return labels, np.array([list(one.values()) for one in each]).reshape(len(margins), len(labels))

    def _decision_function_many(self, encoder: Encoder, rows: Any) -> Floats:
        return self._learner.predict_learn_many(encoder, rows)[0][:, list(self._columns.values())]

    def _counts(self, pattern: Pattern) -> Counts:
        counts = self._patterns.get(pattern)
        return counts if counts and any(counts) else self._frequencies

    def _likeliest(self, counts: Counts) -> Any:
        """The label that was met most often; of several the most frequent one, and of these the lowest."""
        if not counts:
            return None
        most = max(counts)
        if counts.count(most) == 1:
            return self._labels[counts.index(most)]
        ties = [i for i, count in enumerate(counts) if count == most]
        return self._labels[max(ties, key=self._frequencies.__getitem__)]

    @property
    def _n_learned(self) -> int:
        return int(sum(self._frequencies))

    def _decide(self, margins: Floats) -> Any:
        return self._likeliest(self._counts(pattern_of(margins)))

    def _probabilities(self, pattern: Pattern) -> dict[Any, float]:
        if len(self._labels) == 1:
            return self._probabilities_of_only(self._labels[0])
        counts = self._counts(pattern)
        return {label: share(counts, i) for i, label in enumerate(self._labels)}

    def _labels_to_state(self) -> dict[str, Any]:
        return {
            "labels": [[pack(label), n] for label, n in zip(self._labels, self._frequencies, strict=True)],
            "columns": list(self._columns.values()),
            "patterns": [[list(pattern), list(counts)] for pattern, counts in self._patterns.items()],
        }

    def _labels_from_state(self, values: Any) -> None:
        labels = [check_integer_label(unpack(label)) for label, _ in values["labels"]]
        columns, patterns = values["columns"], values["patterns"]
        if sorted(set(labels)) != labels or sorted(columns) != list(range(len(labels[1:]))):
            raise ValueError("the labels are not as they were written")
        for column in columns:
            check_integer("a column", column, 0, len(columns) - 1)
        for counts in ([count for _, count in values["labels"]], *(counts for _, counts in patterns)):
            check_lengths("counts", len(counts), len(labels))
            for count in counts:
                check_number("a count", count, 0.0, LARGEST_SUM)
        self._arrange(dict(zip(pairwise(labels), columns, strict=True)), labels)
        self._frequencies = [float(count) for _, count in values["labels"]]
        for pattern, counts in patterns:
            check_lengths("signs", len(pattern), len(columns))
            for sign in pattern:
                check_bool("a sign", sign)
            self._patterns[tuple(pattern)] = [float(count) for count in counts]

    def _check_state(self, state: Mapping[str, Any], names: list[Any]) -> None:
        check_multi_state(state, names, self.batch_size, len(self._columns))


def share(counts: Counts, i: int) -> float:
    """The share of a label; that of any other where none was met with any weight."""
    total = sum(counts)
    return counts[i] / total if total else 1.0 / len(counts)


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
