"""The adaptive rule: each feature has its own step size and is scaled by naive Bayes; for two or more classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import Declaration, State
from stream_pegasos.common.sums import sum_in_order
from stream_pegasos.engine.feature_schema import LARGEST_LOG_RATIO, OF_PAIR, OF_SEVERAL
from stream_pegasos.engine.pure.adaptive_state import (
    EMPHASIS,
    EMPHASIZED,
    ENLARGED,
    FIRST_SQUARES,
    KNOWN,
    LARGEST_EXAMPLE,
    LEAST_SCALE,
    LEAST_SLOPE,
    LEAST_SQUARED_NORM,
    LEAST_SQUARES,
    MOST_SLOPE,
    OF_INTERCEPT,
    OF_ONE_WEIGHT,
    OFFSET_RATE,
    OFFSET_SQUARES,
    ORDINAL_INTERCEPT_RATE,
    ORDINAL_OFFSET_RATE,
    ORDINAL_OFFSET_SQUARES,
    PROBLEMS,
    RESCALED_AT,
    SHARE_OF_REST,
    Feature,
    Floats,
    add_class_problem,
    begin_rare,
    declared,
    give_back,
    rarity,
    slopes,
)
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.engine.pure.driver import (
    LARGEST_CALIBRATION_WEIGHT,
    Learner,
    ScoredExample,
    sigmoid,
)
from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.half_life import HalfLife
from stream_pegasos.engine.pure.mistakes import Mistakes
from stream_pegasos.engine.pure.weights import Row

# The numbers of a feature. Those of its columns are stored apart, also for two classes.
NUMBERS = (*(field.name for field in OF_SEVERAL), *(field.name for field in OF_PAIR if field.place is None))
AGEING = tuple(field.name for field in OF_SEVERAL if field.ages)


@dataclass(eq=False, repr=False)
class AdaptiveLearner(Learner):
    """AdaGrad steps on rows whose values are scaled and then divided by their norm, for examples whose y · margin is at
    most `largest_margin`. Evidence halves over `half_life` examples (0 for never), or over more (see `HalfLife`): old
    evidence does not shrink, but each example counts more than the one before.

    The `reduction` defines the meaning of y, and the problems. "two": y is −1 or 1, in the only problem, until a
    third class comes; then it is "ovr". "ovr": y is the number of a class; each class is learned against all others.
    "multilabel": y is the number of a set among `sets`, and each class in it holds; each class is learned separately.
    "ordinal": y is the number of a class, and `order` has all classes, known or to come. Between any two neighbours
    there is a problem that separates the higher classes from the lower ones (proportional odds, McCullagh 1980). All
    problems share the weights, in column 0, and the margins are the logarithms of the classes' probabilities.

    The scale of a feature is `LEAST_SCALE` plus the absolute value of its log-count ratio, or 1 if `smoothing` is 0.
    The ratio compares the positive examples with the feature with the negative ones, with `smoothing` added to each
    count. With several classes it is the largest ratio for a class; with ordered classes, the mean absolute ratio over
    the problems. It is computed when the feature is learned. The intercept is the weight of a feature with the value
    `intercept_scaling` in every example. With two classes, the ratio of all examples is subtracted from the features'
    ratios when an example is scored.

    With "ovr" and "multilabel" the margin of each of K classes begins at −log(K − 1), so that each class begins with a
    probability of 1/K. With several problems, steps are larger if the slope is larger, because then margins are too
    small for their accuracy; at a slope of 1/2, as for two classes with the margins m and −m, the step size is
    `learning_rate`. Each problem then also has an offset, learned like the slope, which moves the predicting margins.

    If values differ, as those of tf-idf do, they weigh features before the ratios can: with two classes, the first
    steps are larger by an `emphasis`, and ratios are taken with `smoothing` times the square of that factor.
    """

    counts_unknown: ClassVar[bool] = True

    learning_rate: float
    hinge: bool
    largest_margin: float
    smoothing: float
    half_life: float
    intercept_scaling: float
    max_features: int = 0
    reduction: str = "two"
    growing_half_life: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self._set_reduction(self.reduction)
        self._n_iterations = 0
        self._half_life = HalfLife(self.half_life, self.growing_half_life)
        self._evidence = 1.0  # the count of an example that is learned now
        self._features: dict[int, Feature] = {}
        self._problem_scaling = 1.0 if self._is_ordinal else self.intercept_scaling
        # A column for each problem: intercept and offset, each with its sum of squared gradients.
        self._problems = np.zeros((len(PROBLEMS), 0 if self.has_class_columns else 1))
        self._class_counts = np.zeros(0 if self.has_class_columns else 2)
        self._n_examples = 0.0  # as evidence
        self._prior = 0.0  # the log-count ratio of all examples, with two classes
        self._mistakes = Mistakes()
        self._dense: DenseBlock | None = None  # made when the first vector is learned
        self.order: NDArray[np.int64] = np.zeros(0, np.int64)
        self.sets: tuple[NDArray[np.int64], NDArray[np.int64]] = (np.zeros(1, np.int64), np.zeros(0, np.int64))

    def has_columns_in(self, state: Mapping[str, Any]) -> bool:
        return self.reduction != "two" or self.split_declaration().is_complete(state)

    def split_declaration(self) -> Declaration:
        return declared("ovr", self.growing_half_life)

    def _set_reduction(self, reduction: str) -> None:
        self._reduction, self.declaration = reduction, declared(reduction, self.growing_half_life)
        self.has_class_columns, self._is_ordinal = reduction != "two", reduction == "ordinal"
        self._shares_weights = reduction in OF_ONE_WEIGHT
        n = 0 if self.has_class_columns else 2  # two classes have both columns from the start
        self._unknown = Feature(dict.fromkeys(NUMBERS, 0.0), np.arange(n), np.zeros((len(KNOWN), n)))
        self._known_order: list[int] = [*range(n)]  # the classes met, in order

    @property
    def n_iterations(self) -> int:
        return self._n_iterations

    @property
    def n_columns(self) -> int:
        return len(self._class_counts) if self.has_class_columns else 1

    @property
    def intercept(self) -> Floats:
        """The constant part of each class's margin or, with ordered classes, of each problem's margin."""
        return self._expand_pair(self._predicting(self._base + self._problem_scaling * self._problems[0]))

    @property
    def _base(self) -> float:
        return 0.0 if self._shares_weights else -math.log(max(self.n_columns - 1, 1))

    def __len__(self) -> int:
        return len(self._features)

    def items(self) -> tuple[NDArray[np.int64], Floats]:
        keys = np.fromiter(self._features, np.int64, len(self._features))
        return keys, self.get_weights(keys)

    def get_weights(self, keys: NDArray[np.int64]) -> Floats:
        scales, weights = self._scales_and_weights(keys.tolist())
        return self._expand_pair(scales[:, np.newaxis] * weights)

    def contributions(self, encoder: Encoder, x: object, number: int = 0) -> dict[int, float]:
        row, (column, sign) = encoder.row(x, True), self._signed_column(number)
        encoder.forget_newest()
        values, weights = self._values_and_weights(row)
        products = (sign * values * weights[:, column]).tolist() if column < weights.shape[1] else []
        return {key: product for key, product in zip(row.keys, products, strict=False) if key in self._features}

    def vector_score(self, encoder: Encoder, x: object, number: int = 0) -> tuple[float, Floats, float]:
        if self._dense is None:
            return super().vector_score(encoder, x, number)
        vector, (column, sign) = encoder.row(x, False).vector, self._signed_column(number)
        share, factors, constant = self._dense.attribution(vector, column, self.calibration.slope)
        return share, sign * factors, sign * constant

    def _values_and_weights(self, row: Row) -> tuple[Floats, Floats]:
        """The scaled values, divided by their norm, and their weights."""
        scales, weights = self._scales_and_weights(row.keys)
        values = scales * np.array(row.values, np.float64)
        squares = float((values * values).sum())
        if squares < LEAST_SQUARED_NORM:  # so that no square becomes 0
            values = values * ENLARGED
            squares = float((values * values).sum())
        norm = math.sqrt(squares)
        return (values / norm if norm else np.zeros(len(values))), weights

    def mistakes(self) -> State:
        """The histogram of the newest margins on the wrong side, and the number of examples; only for a pair of
        classes.
        """
        return {} if self.has_class_columns else self._mistakes.get_state()

    def _found(self, keys: Iterable[int]) -> tuple[list[Feature], Floats]:
        """The features, and the arrays of all their columns: weights, squares, counts."""
        features = [self._features.get(key, self._unknown) for key in keys]
        if not self.has_class_columns:
            of_columns = np.array([feature.known for feature in features])
            return features, of_columns.reshape(-1, len(KNOWN), 2).swapaxes(0, 1)
        known_counts = np.zeros((len(KNOWN), len(features), max(len(self._class_counts), int(self._shares_weights))))
        for i, feature in enumerate(features):
            known_counts[:, i, feature.classes] = feature.known
        return features, known_counts

    def _scales_and_weights(self, keys: Sequence[int]) -> tuple[Floats, Floats]:
        features, (weights, _, _) = self._found(keys)
        ratios = np.array([feature.numbers["log_ratios"] for feature in features], np.float64)
        scales = LEAST_SCALE + np.abs(ratios - self._prior) if self.smoothing else np.ones(len(ratios))
        return scales, weights[:, :1] if self._shares_weights else weights

    def _log_ratios(self, totals: Floats, counts: Floats, emphasis: float = 1.0) -> Floats:
        """The log-count ratio of each feature, given the number of examples with it: `totals` for all, `counts` by
        class.
        """
        smoothing = self.smoothing * self._evidence * emphasis * emphasis
        if not smoothing or not self._problems.size:
            return np.zeros(len(totals))
        if not self.has_class_columns:  # a difference: if the classes are exchanged, only its sign changes
            return np.array(np.log(counts[:, 1] + smoothing) - np.log(counts[:, 0] + smoothing))
        n_above = self._class_counts
        if self._is_ordinal:  # counts of the classes above each problem
            counts = counts[:, self._known_order[:0:-1]].cumsum(axis=1)
            n_above = n_above[self._known_order[:0:-1]].cumsum()
        odds = (counts + smoothing) / (np.maximum(totals[:, np.newaxis] - counts, 0.0) + smoothing)
        n_odds = (n_above + smoothing) / (np.maximum(self._n_examples - n_above, 0.0) + smoothing)
        ratios = np.log(odds / n_odds)
        largest_ratios = (
            np.abs(ratios).mean(axis=1) if self._is_ordinal else np.where(counts > 0.0, ratios, 0.0).max(axis=1)
        )
        return np.array(largest_ratios.clip(0.0, LARGEST_LOG_RATIO))

    def _find_prior(self) -> None:
        if not self.has_class_columns:
            (self._prior,) = self._log_ratios(np.zeros(1), self._class_counts[np.newaxis]).tolist()

    def _n_classes_for(self, y: Floats | None) -> int:
        if self._reduction == "multilabel" and y is not None and len(y):
            return max(self.n_columns, int(self.sets[1].max(initial=-1)) + 1)
        return super()._n_classes_for(y)

    def _find_margins(self, encoder: Encoder, row: Row) -> ScoredExample:
        """Score an example. Its `values` are the scaled values and the margins without offsets and vectors."""
        values, weights = self._values_and_weights(row)
        margins = (values[:, np.newaxis] * weights).sum(axis=0) + self._base + self._problem_scaling * self._problems[0]
        return ScoredExample(row, self._joined(row, margins), (values, margins))

    def _predicting(self, margins: Floats) -> Floats:
        offsets: Floats = self._problems[2] / self.calibration.slope
        return margins + offsets

    def _joined(self, row: Row, margins: Floats) -> list[float]:
        """The margins that predict: with offsets and vectors. For ordered classes they are the logarithms of
        probabilities.
        """
        slope, offsets = self.calibration.slope, self._problems[2]
        if self._dense is not None:
            log_odds = self._dense.joined(
                self._predicting(margins), self._dense.margins(self._dense.direction(row.vector))
            )
            predicting = log_odds / slope
        else:
            log_odds, predicting = slope * margins + offsets, self._predicting(margins)
        return logarithms(log_odds.tolist(), self._known_order) if self._is_ordinal else predicting.tolist()

    def _learn(self, encoder: Encoder, scored: ScoredExample, y: float, weight: float) -> bool:
        """Learn an example. Return whether there was a step."""
        values, margins = scored.values
        n_known, classes = self._problems.shape[1], self._class_numbers(y)
        weight = min(weight, LARGEST_EXAMPLE)
        counted = weight * self._evidence
        for number in range(len(self._class_counts), max(classes, default=-1) + 1):
            margins = self._add_class(number, margins)
            rare = rarity(number + 1, counted, self._n_examples + counted)
            begin_rare(self._problems, rare, number, self._known_order, self.calibration.slope)
        holds = self._holds(classes)
        signs = np.where(holds, 1.0, -1.0)
        shares = np.where(holds | self._shares_weights, 1.0, SHARE_OF_REST)
        is_near = signs * margins <= shares * self.largest_margin
        gradients = np.where(is_near, -signs * slopes(signs * margins, self.hinge) * weight, 0.0)
        rate = self.learning_rate
        if self.has_class_columns:
            rate *= math.sqrt(2.0 * min(max(self.calibration.slope, LEAST_SLOPE), MOST_SLOPE))
        confidence_in = self._learn_vector(scored.row.vector, margins, holds, n_known, weight)
        slope, confidence = self.calibration.slope, self.calibration.confidence
        loss = self._calibrate(margins, holds, classes, min(weight, LARGEST_CALIBRATION_WEIGHT), confidence_in)
        if self.has_class_columns and len(holds) > n_known:  # no probability can foresee a new class
            self.calibration.slope = slope
            self.calibration.confidence = confidence if n_known == 2 else self.calibration.confidence
        if is_near.any():
            self._take_step(scored.row, values, gradients, classes, counted, rate)
        self._n_iterations += 1
        growth = self._half_life.growth
        self._evidence *= growth
        if self._dense is not None and growth != 1.0:
            self._dense.fade(growth)
        if self._evidence >= RESCALED_AT:
            self._evidence /= RESCALED_AT
            self._weaken(RESCALED_AT)
        if (share := self._half_life.note(loss)) < 1.0:
            self.forget(share)
        return bool(is_near.any())

    def _class_numbers(self, y: float) -> list[int]:
        if self._reduction != "multilabel":
            return [int(y if self.has_class_columns else y > 0.0)]
        starts, numbers = self.sets
        set_numbers: list[int] = numbers[starts[int(y)] : starts[int(y) + 1]].tolist()
        return set_numbers

    def _add_class(self, number: int, margins: Floats) -> Floats:
        """Add a class. Return the margins with one for its problem."""
        before = self._base
        self._class_counts = np.append(self._class_counts, 0.0)
        if not self._is_ordinal:
            self._problems = np.hstack([self._problems, np.zeros((len(PROBLEMS), 1))])
            return np.append(margins + (self._base - before), self._base)
        rows = add_class_problem(np.vstack([self._problems, margins]), self._known_order, self.order.tolist(), number)
        self._problems = rows[:-1]
        new_margins: Floats = rows[-1]
        return new_margins

    def _holds(self, classes: list[int]) -> NDArray[np.bool_]:
        if self._shares_weights:
            return np.arange(self._problems.shape[1]) < self._known_order.index(classes[0])
        return np.isin(np.arange(self.n_columns), classes)

    def _learn_vector(
        self, vector: Floats, margins: Floats, holds: NDArray[np.bool_], n_known: int, weight: float
    ) -> Floats | None:
        """Learn from the vector of a message. Return the joined log-odds from before, `None` without vectors."""
        if self._dense is None and len(vector):
            self._dense = DenseBlock.of(self._reduction, len(vector), len(self._class_counts))
            if not self.has_class_columns:
                self.calibration.slope = 1.0  # from now on the joint weights turn margins into log-odds
        if self._dense is None:
            return None
        dense, of_features = self._dense, self._predicting(margins)
        while len(dense.counts) < len(self._class_counts):
            dense.add_class()
        x = dense.direction(vector)
        vector_score = np.broadcast_to(dense.margins(x), of_features.shape)
        joined = dense.joined(of_features, vector_score)
        weight = min(weight, LARGEST_CALIBRATION_WEIGHT)
        if len(of_features) == n_known or self._reduction == "multilabel":
            dense.learn_joint(of_features[:n_known], vector_score[:n_known], holds[:n_known], weight)
        dense.learn(vector, x, of_features, holds, self._known_order, weight)
        return joined

    def _calibrate(
        self, margins: Floats, holds: NDArray[np.bool_], classes: list[int], weight: float, joined: Floats | None
    ) -> float:
        """Take one step on the log loss of the class, or of each problem. With vectors, the `joined` log-odds predict.
        Return the error before the step: one minus the probability of the class, or the sum of the problems' errors.
        """
        if not self.has_class_columns:
            (margin,), y = (margins if joined is None else joined).tolist(), 1.0 if holds[0] else -1.0
            probability = self.calibration.probability(margin)
            if joined is None:
                self.calibration.learn(margin, y, weight)
            self._mistakes.learn(margin, y, weight)
            return 1.0 - probability if y > 0.0 else probability
        _, _, offsets, squares = self._problems
        if self._reduction == "ovr":
            predicting = self._predicting(margins).tolist()
            probabilities = self.calibration.learn_class(predicting, classes[0], weight, margins.tolist(), joined)
        else:
            slope = self.calibration.slope
            probabilities = [sigmoid(slope * m + o) for m, o in zip(margins.tolist(), offsets.tolist(), strict=True)]
        lacking = np.array(probabilities) - holds
        loss = 1.0 - probabilities[classes[0]] if self._reduction == "ovr" else sum_in_order(np.abs(lacking).tolist())
        errors = weight * lacking
        if self._reduction != "ovr":
            self.calibration.descend(float((errors * margins).sum()))
        rate, first_squares = (
            (ORDINAL_OFFSET_RATE, ORDINAL_OFFSET_SQUARES) if self._is_ordinal else (OFFSET_RATE, OFFSET_SQUARES)
        )
        squares += errors * errors
        offsets -= rate * errors / np.sqrt(squares + first_squares)
        return loss

    def _take_step(
        self, row: Row, values: Floats, gradients: Floats, classes: list[int], counted: float, rate: float
    ) -> None:
        """G ← G + g², w ← w − η g / √G"""
        fading = 0.0 if self.has_class_columns else EMPHASIS * EMPHASIZED / (EMPHASIZED + self._n_iterations)
        emphasis = 1.0 + fading * (0.0 if row.is_even else unevenness(row.values))
        rate *= emphasis
        self._n_examples += counted
        for number in classes if self.has_class_columns else ():
            if (
                0.0 < self._class_counts[number] <= 2.5 * counted
            ):  # its second or third example: the label is no mistake
                rare = rarity(self.n_columns, counted, self._n_examples)
                give_back(self._problems, rare, number, self._known_order, self.calibration.slope)
        self._class_counts[classes] += counted
        self._find_prior()
        of_intercepts, (intercepts, squares) = gradients * self._problem_scaling, self._problems[:2]
        moved = of_intercepts * of_intercepts > 0.0
        squares += self._evidence * (of_intercepts * of_intercepts)
        sizes = np.sqrt(squares[moved] / self._evidence)
        intercepts[moved] -= (ORDINAL_INTERCEPT_RATE if self._is_ordinal else 1.0) * rate * of_intercepts[moved] / sizes
        if self._shares_weights:
            gradients = np.where(np.arange(len(self._class_counts)) == 0, gradients.sum(), 0.0)
        has = np.array(row.values, np.float64) != 0.0
        keys = [key for key, is_there in zip(row.keys, has.tolist(), strict=True) if is_there]
        features, (weights, squares, counts) = self._found(keys)
        gradients = np.outer(values[has], gradients)
        first, least = (FIRST_SQUARES, 0.0) if self.has_class_columns else (0.0, LEAST_SQUARES)
        new_squares = squares + self._evidence * (gradients * gradients)
        moved = (gradients != 0.0) & (new_squares > least)
        squares[moved] = new_squares[moved]
        weights[moved] -= rate * gradients[moved] / np.sqrt(squares[moved] / self._evidence + first)
        counts[:, classes] += counted
        totals = np.array([feature.numbers["counts"] for feature in features]) + counted
        numbers = {"log_ratios": self._log_ratios(totals, counts, emphasis), "counts": totals}
        self._keep(keys, features, numbers, np.stack([weights, squares, counts], axis=1))

    def _keep(self, keys: list[int], features: list[Feature], numbers: dict[str, Floats], known: Floats) -> None:
        """Store the features with these numbers instead of those before, without columns that are all 0."""
        rows = zip(*(array.tolist() for array in numbers.values()), strict=True) if keys else ()
        for key, feature, row, columns in zip(keys, features, rows, known, strict=True):
            new_numbers = feature.numbers | dict(zip(numbers, row, strict=True))
            if self.has_class_columns:
                classes = np.flatnonzero(columns.any(axis=0))
                self._features[key] = Feature(new_numbers, classes, columns[:, classes])
            else:
                self._features[key] = Feature(new_numbers, self._unknown.classes, columns.copy())

    def forget(self, share: float) -> None:
        """Keep this share of the evidence, and its square root of the weights, which grow with the root of evidence."""
        evidence, self._evidence = self._evidence / share, 1.0
        self._half_life.n_steady *= share
        self._weaken(evidence)
        self._find_prior()
        self._problems[0] *= math.sqrt(share)
        if self._dense is not None:
            self._dense.forget(share)
        for key, feature in self._features.items():
            feature.known[0] *= math.sqrt(share)
            _, (_, _, counts) = self._found([key])
            (feature.numbers["log_ratios"],) = self._log_ratios(np.array([feature.numbers["counts"]]), counts).tolist()

    def _weaken(self, factor: float) -> None:
        self._n_examples /= factor
        self._class_counts /= factor
        self._problems[1] /= factor
        for feature in self._features.values():
            for name in AGEING:
                feature.numbers[name] /= factor
            feature.known[1:] /= factor

    def get_state(self, lazy: bool = False) -> State:
        others_of_state = {
            "evidence": self._evidence,
            "n_iterations": self._n_iterations,
            **self._half_life.get_state(),
            **self.calibration.get_state(self.has_class_columns),
            **({} if self._dense is None else self._dense.get_state()),
        }
        keys, features = np.fromiter(self._features, np.int64, len(self._features)), [*self._features.values()]
        state = {"keys": keys, **others_of_state}
        if not self.has_class_columns:
            _, known = self._found(self._features)
            for field in OF_PAIR:
                row, column = field.place or (0, 0)
                state[field.name] = known[row, :, column].copy() if field.place else numbers_of(features, field.name)
            (weight, square), (negatives, positives) = self._problems[:2, 0].tolist(), self._class_counts.tolist()
            intercept = (weight, self._prior, square, positives, negatives)
            state |= {field.name: number for field, number in zip(OF_INTERCEPT, intercept, strict=True)}
            return state | self._mistakes.get_state()
        known = np.hstack([feature.known for feature in (self._unknown, *features)])
        return state | {
            **{field.name: numbers_of(features, field.name) for field in OF_SEVERAL},
            "n_taught": np.array([len(feature.classes) for feature in features], np.int64),
            "taught_columns": np.concatenate([feature.classes for feature in (self._unknown, *features)]),
            **dict(zip(KNOWN, known, strict=True)),
            **dict(zip(PROBLEMS, self._problems.copy(), strict=True)),
            "class_counts": self._class_counts.copy(),
            "n_examples": self._n_examples,
            **({"order": np.array(self._known_order, np.int64)} if self._is_ordinal else {}),
        }

    def set_state(self, state: State) -> None:
        self._set_reduction("ovr" if self.reduction == "two" and self.has_columns_in(state) else self.reduction)
        self._evidence, self._n_iterations = state["evidence"], state["n_iterations"]
        self._half_life.set_state(state)
        self.calibration.set_state(state)
        n_classes = len(state["class_counts"]) if self.has_class_columns else 2
        self._dense = DenseBlock.from_state(self._reduction, state, n_classes) if "vector_mean" in state else None
        keys = state["keys"].tolist()
        if self.has_class_columns:
            self._prior, fields = 0.0, OF_SEVERAL
            ends = np.cumsum(state["n_taught"])[:-1]
            classes = np.split(state["taught_columns"].copy(), ends)
            known = np.split(np.array([state[name] for name in KNOWN]), ends, axis=1)
            self._problems = np.array([state[name] for name in PROBLEMS])
            self._class_counts, self._n_examples = state["class_counts"].copy(), state["n_examples"]
        else:
            fields, classes = OF_PAIR, [self._unknown.classes] * len(keys)
            of_all = np.zeros((len(keys), len(KNOWN), 2))
            for field in fields:
                if field.place is not None:
                    of_all[:, field.place[0], field.place[1]] = state[field.name]
            known = [*(of_all + 0.0)]  # no −0
            weight, self._prior, square, positives, negatives = (state[field.name] for field in OF_INTERCEPT)
            self._problems = np.array([[weight + 0.0], [square], [0.0], [0.0]])
            self._class_counts, self._n_examples = np.array([negatives, positives]), negatives + positives
            self._mistakes.set_state(state)
        names = [field.name for field in fields if field.place is None]
        rows = zip(*(state[name].tolist() for name in names), strict=True)
        self._features = {
            key: Feature(self._unknown.numbers | dict(zip(names, row, strict=True)), *of_columns)
            for key, row, *of_columns in zip(keys, rows, classes, known, strict=False)
        }
        if not self.has_class_columns:
            for feature in self._features.values():
                feature.numbers["counts"] = float(feature.known[2].sum())
        if self._is_ordinal:
            self._known_order = state["order"].tolist()
            if len(self.order) < len(self._known_order):  # a longer order has classes that come later
                self.order = np.array(self._known_order, np.int64)


def numbers_of(features: list[Feature], name: str) -> Floats:
    return np.array([feature.numbers[name] for feature in features], np.float64)


def logarithms(log_odds: list[float], order: Sequence[int]) -> list[float]:
    """The logarithms of the probabilities of ordered classes. `log_odds` has, for each class but the last, the log-odds
    of a higher class; the probability of a higher class never rises along the order.
    """
    result = [0.0] * len(order)
    above = 1.0
    for number, odds in zip(order, [*log_odds, -math.inf], strict=False):
        next_above = min(above, sigmoid(odds)) if odds > -math.inf else 0.0
        result[number] = math.log(max(above - next_above, 1e-300))
        above = next_above
    return result


def unevenness(values: Sequence[float]) -> float:
    """The mean absolute value minus the smallest, divided by the root mean square. Zeros are left out."""
    sizes = np.abs(np.array([value for value in values if value != 0.0], np.float64))
    if not len(sizes) or sizes.min() == sizes.max():
        return 0.0
    sizes /= sizes.max()
    return float((sizes - sizes.min()).sum() / math.sqrt(len(sizes) * (sizes * sizes).sum()))
