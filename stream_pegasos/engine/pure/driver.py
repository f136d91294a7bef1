"""The driver: it runs examples through a rule, one or many at a time, and calibrates the rule's margins."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import Declaration, Field, State
from stream_pegasos.common.sums import sum_in_order
from stream_pegasos.engine.pure.encoders import Encoder, Inputs, get_parameters
from stream_pegasos.engine.pure.weights import INTERCEPT, NO_VECTOR, Row

Found = tuple[NDArray[np.float64], NDArray[np.float64]]


# Types of labels whose equal values are the same label. A Decimal or a complex number may equal a label, but is none.
PLAIN = frozenset({bool, int, float, str, *(np.dtype(code).type for code in "?bhilqBHILQefdU")})


def are_plain(y: Iterable[Any]) -> bool:
    return PLAIN.issuperset(map(type, y))


def target_array(y: list[Any], targets: Mapping[Any, float]) -> NDArray[np.float64] | None:
    numbers = [targets.get(label) for label in y]
    return None if None in numbers or not are_plain(y) else np.array(numbers, np.float64)


CALIBRATION_RATE = 0.5  # the first step size of the logarithm of the slope
CALIBRATION_MEMORY = 1.0 - 1.0 / 1000.0  # the share of squared gradients that is left after a new one
# Inside these limits, squares of gradients and slopes stay in the range of a float64.
SMALLEST_GRADIENT, LARGEST_GRADIENT = 1e-100, 1e100
SMALLEST_SLOPE, LARGEST_SLOPE = 1e-200, 1e200

# For the calibration and the dense block, no example counts more than this many of weight 1.
LARGEST_CALIBRATION_WEIGHT = 1e3
# The step size of the confidence, and its smallest slope.
CONFIDENCE_RATE = 0.3
LEAST_CONFIDENCE_SLOPE = 0.05
# If two probabilities differ by less, rounding may decide which one is larger.
AS_LIKELY = 1.0 - 1e-9
# No probability is nearer to 0 or 1 than the probability of this margin.
LARGEST_LOG_ODDS = 34.0


def halved_slope(state: State) -> float:
    """The slope after two classes got a column each: their margins are twice as far apart as their column said."""
    return max(float(state["slope"]) / 2.0, SMALLEST_SLOPE)


def gradients_so_far(state: State) -> float:
    """The squared gradients of the confidence for a learner that had two classes so far. The slope and the confidence
    have steps of the same kind, over (error · log-odds)²; so one example does not move the confidence far.
    """
    return float(state["calibration_squares"])


CALIBRATION = (
    Field("slope", SMALLEST_SLOPE, LARGEST_SLOPE, merges="mean", split=halved_slope),
    Field("calibration_squares", merges="mean"),
)
CONFIDENCE = (
    Field("confidence_intercept", signed=True, merges="mean", split=lambda state: 0.0),
    Field("confidence_slope", LEAST_CONFIDENCE_SLOPE, merges="mean", split=lambda state: 1.0),
    Field("confidence_intercept_squares", merges="mean", split=gradients_so_far),
    Field("confidence_slope_squares", merges="mean", split=gradients_so_far),
)


def sigmoid(log_odds: float) -> float:
    if not -LARGEST_LOG_ODDS < log_odds < LARGEST_LOG_ODDS:
        log_odds = math.copysign(LARGEST_LOG_ODDS, log_odds)
    return 1.0 / (1.0 + math.exp(-log_odds))


def softmax(margins: list[float]) -> list[float]:
    largest = max(margins)
    terms = [math.exp(margin - largest) for margin in margins]
    total = sum_in_order(terms)
    return [term / total for term in terms]


class Calibration:
    """Probabilities of margins, learned from the margins of examples before these are learned.

    The positive class has the probability 1/(1 + exp(−s·margin)): Platt's slope (1999) without his intercept, so that
    probability and decision agree. s is learned by gradient descent on the log loss over log s, with AdaGrad's step
    size (Duchi, Hazan and Singer 2011) over the newest thousand gradients, because the first margins of Pegasos are far
    larger than later ones.

    Several classes have the softmax of s · margins; its largest value, p, becomes the confidence
    1/(1 + exp(−a − b·log(p/(1 − p)))), and the others are scaled so that all sum to 1 (Gupta and Ramdas 2022). a and b
    are learned in the same way.
    """

    def __init__(self) -> None:
        self.slope = 1.0
        self._squares = 0.0
        self.confidence = (0.0, 1.0)  # a and b
        self._confidence_squares = (0.0, 0.0)

    def probability(self, margin: float) -> float:
        """The probability of the positive class. It is above one half if and only if the margin is above 0."""
        probability = sigmoid(self.slope * margin)
        return max(probability, 0.5 + 2.0**-53) if margin > 0.0 else probability

    def learn(self, margin: float, y: float, weight: float) -> None:
        """Take one step on the log loss of the label y = ±1."""
        probability = self.probability(margin)
        self.descend(-y * margin * (1.0 - probability if y > 0.0 else probability) * weight)

    def learn_class(
        self,
        margins: list[float],
        y: int,
        weight: float,
        moved: list[float] | None = None,
        predicting: NDArray[np.float64] | None = None,
    ) -> list[float]:
        """Take one step on the log loss of class y, and return the softmax of s · margins. `moved` is the part of the
        margins that grows with the slope; the softmax of `predicting` decides the confidence.
        """
        largest = max(margins)
        probabilities = softmax([self.slope * (margin - largest) for margin in margins])
        self._learn_confidence(probabilities if predicting is None else softmax(predicting.tolist()), y, weight)
        moved = margins if moved is None else moved
        # Not the difference of two sums: with equal margins, only rounding would be left.
        gradient = sum_in_order(p * (margin - moved[y]) for p, margin in zip(probabilities, moved, strict=True))
        self.descend(gradient * weight)
        return probabilities

    def _learn_confidence(self, probabilities: list[float], y: int, weight: float) -> None:
        """Take one step on the log loss of the event that the most probable class is right; no step if two classes are
        equally probable.
        """
        top = max(probabilities)
        if len(probabilities) < 2 or sum(p >= AS_LIKELY * top for p in probabilities) > 1:
            return
        log_odds = min(math.log(top / max(1.0 - top, 1e-300)), LARGEST_LOG_ODDS)
        intercept, slope = self.confidence
        error = weight * (sigmoid(intercept + slope * log_odds) - (probabilities.index(top) == y))
        steps = []
        squares = []
        for gradient, before in zip((error, error * log_odds), self._confidence_squares, strict=True):
            squares.append(CALIBRATION_MEMORY * before + gradient * gradient)
            is_step = abs(gradient) >= SMALLEST_GRADIENT
            steps.append(CONFIDENCE_RATE * gradient / math.sqrt(squares[-1]) if is_step else 0.0)
        self._confidence_squares = (squares[0], squares[1])
        self.confidence = (intercept - steps[0], max(slope - steps[1], LEAST_CONFIDENCE_SLOPE))

    def descend(self, gradient: float) -> None:
        """Take one step of the slope, given the gradient over it."""
        gradient = min(max(self.slope * gradient, -LARGEST_GRADIENT), LARGEST_GRADIENT)
        if abs(gradient) >= SMALLEST_GRADIENT:
            self._squares = CALIBRATION_MEMORY * self._squares + gradient * gradient
            # A step of log s is at most the rate, so 1 − step is close to exp(−step), and above 0.
            slope = self.slope * (1.0 - CALIBRATION_RATE * gradient / math.sqrt(self._squares))
            self.slope = min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)

    def get_state(self, has_columns: bool = False) -> State:
        state = dict(zip((field.name for field in CALIBRATION), (self.slope, self._squares), strict=True))
        if has_columns:
            numbers = self.confidence + self._confidence_squares
            state |= {field.name: number for field, number in zip(CONFIDENCE, numbers, strict=True)}
        return state

    def set_state(self, state: State) -> None:
        self.slope, self._squares = (state[field.name] for field in CALIBRATION)
        if all(field.name in state for field in CONFIDENCE):
            intercept, slope, *squares = (state[field.name] for field in CONFIDENCE)
            self.confidence, self._confidence_squares = (intercept, slope), (squares[0], squares[1])


Margins = list[float] | NDArray[np.float64]  # of an example, by class; an array if each class has a column


@dataclass(slots=True)
class ScoredExample:
    """An example with its margins."""

    row: Row
    margins: list[float]  # the margins that predict, by column
    values: Any = None  # further values of the rule


class Learner:
    """A rule and its driver. The rule is a subclass; it defines the record of a feature, and how an example is scored
    and learned.

    y is the number of a class, unless `reduction` defines it otherwise. Two classes may share a column: its margin is
    the margin of class 1, and its negative that of class 0. When a third class comes, each class gets its own column.
    """

    kinds: ClassVar[dict[str, type[Learner]]] = {}  # all learners, by name
    counts_unknown: ClassVar[bool] = (
        False  # whether unknown features change a margin, so that a prediction numbers their names
    )
    declaration: Declaration
    max_features: int  # 0 for no limit
    has_class_columns = False  # whether each class has a column; a rule of one column takes y as −1 or 1
    n_known = 2  # how many of two classes that share a column have come
    names_opposite = False  # whether the first of these makes the other one known

    def __init_subclass__(cls, is_rule: bool = True) -> None:
        if is_rule:
            Learner.kinds[cls.__name__] = cls

    def __init__(self) -> None:
        self.calibration = Calibration()
        self._is_busy = False

    @property
    def parameters(self) -> dict[str, Any]:
        return get_parameters(self)

    # The rule; subclasses implement it.

    def __len__(self) -> int:
        """The number of known features."""
        raise NotImplementedError

    @property
    def n_iterations(self) -> int:
        """The number of steps, the largest over the columns."""
        raise NotImplementedError

    @property
    def n_learned(self) -> int:
        """The number of examples learned; approximate after a step with fewer examples than a whole batch."""
        return self.n_iterations

    @property
    def n_columns(self) -> int:
        return 1

    @property
    def n_held(self) -> int:
        """The number of features that take memory, or slightly more."""
        return len(self)

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The keys of features, and their weights: a row for each key and a column for each class."""
        raise NotImplementedError

    @property
    def intercept(self) -> NDArray[np.float64]:
        """The constant part of each class's margin."""
        raise NotImplementedError

    def contributions(self, encoder: Encoder, x: object, number: int = 0) -> dict[int, float]:
        """The part of a class's margin that each known feature of an example adds."""
        raise NotImplementedError

    def vector_score(self, encoder: Encoder, x: object, number: int = 0) -> tuple[float, NDArray[np.float64], float]:
        """The composition of a predicting margin: a factor for the features' margin, a weight for each number of the
        vector, a constant.
        """
        return 1.0, NO_VECTOR, 0.0

    def get_weights(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weights of features, a row for each key; 0 for unknown ones."""
        raise NotImplementedError

    def _find_margins(self, encoder: Encoder, row: Row) -> ScoredExample:
        raise NotImplementedError

    def _learn(self, encoder: Encoder, scored: ScoredExample, y: float, weight: float) -> bool:
        """Learn the example. Return whether its features are kept. In Cython the driver keeps them, unless
        `counts_unknown` is set: then the rule does, by `encoder._keep`.
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Take the steps that wait for more examples, if the rule has mini-batches."""

    def get_state(self, lazy: bool = False) -> State:
        """The whole state. If `lazy`, an array may be a `Column`, which must be read before the learner changes."""
        raise NotImplementedError

    def set_state(self, state: State) -> None:
        raise NotImplementedError

    def has_columns_in(self, state: Mapping[str, Any]) -> bool:
        """Whether each class has its own column in a state of this rule, even if only two classes are known."""
        return self.has_class_columns

    def split_declaration(self) -> Declaration:
        """The declaration of a state in which two classes that shared a column have one each."""
        raise NotImplementedError

    # The driver.

    def grow(self) -> None:
        """Give each of two classes that share a column its own. All scores stay the same, up to rounding."""
        if not self.has_class_columns:
            self.set_state(self.split_declaration().split_pair(self.get_state()))

    @property
    def calibrated(self) -> tuple[float, float, float]:
        """The slope, and a and b of the confidence. The margins of a pair are twice as far apart as its column says, so
        the slope is halved.
        """
        slope, confidence = self.calibration.slope, self.calibration.confidence
        return (slope, *confidence) if self.has_class_columns else (max(slope / 2.0, SMALLEST_SLOPE), 0.0, 1.0)

    def margins(self, encoder: Encoder, x: object) -> Margins:
        """The margins of an example, by class that has come; an array if each has a column."""
        with self._alone():
            scored = self._scored(encoder, encoder.row(x, self.counts_unknown))
            if self.counts_unknown:
                encoder.forget_newest()
        return np.array(scored.margins, np.float64) if self.has_class_columns else self._class_margins(scored)

    def predict(self, encoder: Encoder, x: object) -> int:
        margins = self.margins(encoder, x)
        return int(np.argmax(margins)) if len(margins) and max(margins) > -math.inf else -1

    def _class_margins(self, scored: ScoredExample) -> list[float]:
        if self.has_class_columns:
            return scored.margins
        (margin,) = scored.margins
        return [0.0 - margin, margin][: self.n_known]

    def _expand_pair(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers of classes, given the numbers of columns in the last dimension."""
        return numbers if self.has_class_columns else np.concatenate((0.0 - numbers, numbers), axis=-1)

    def _signed_column(self, number: int) -> tuple[int, float]:
        """The column of a class, and its sign there."""
        return (number, 1.0) if self.has_class_columns else (0, 1.0 if number else -1.0)

    def learn(self, encoder: Encoder, x: object, y: float, weight: float) -> bool:
        """Learn one example. Return whether the encoder should forget names."""
        row = encoder.row(x, True)
        with self._alone():
            self._learn_scored(encoder, row, self._scored(encoder, row), y, weight)
        return encoder.is_crowded(self.n_held)

    def predict_learn_many(
        self,
        encoder: Encoder,
        X: Inputs,
        y: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
        found: list[Found] | None = None,
    ) -> Found:
        """The margins of each example before it is learned, −inf for classes to come, and `calibrated` then. The call
        ends early after an example that exceeds `max_features` or crowds the encoder. `found` gets the results
        first, so that an interruption does not lose them.
        """
        n_classes, n_done = self._n_classes_for(y), 0
        margins: list[list[float]] = []
        calibrated: list[tuple[float, ...]] = []
        rows = encoder.rows(X, y is not None or self.counts_unknown)
        with self._alone():
            try:
                for i, row in enumerate(rows):
                    scored, n_learned = self._scored(encoder, row), self.n_learned
                    class_margins = self._class_margins(scored)
                    calibrated.append(self.calibrated)
                    margins.append([*class_margins, *[-math.inf] * (n_classes - len(class_margins))])
                    if y is None:
                        if self.counts_unknown:
                            encoder.forget_newest()
                    else:
                        weight = 1.0 if weights is None else float(weights[i])
                        self._learn_scored(encoder, row, scored, float(y[i]), weight)
                    n_done += 1
                    if y is not None and (0 < self.max_features < len(self) or encoder.is_crowded(self.n_held)):
                        break
            finally:
                if n_done < len(margins) and self.n_learned > n_learned:
                    n_done += 1  # it was learned before the interruption
                scores = (
                    np.array(margins[:n_done], np.float64).reshape(n_done, n_classes),
                    np.array(calibrated[:n_done], np.float64).reshape(n_done, 3),
                )
                if found is not None:
                    found.append(scores)
        return scores

    def _scored(self, encoder: Encoder, row: Row) -> ScoredExample:
        """The scored example. If the rule fails, the encoder forgets the example's new names."""
        try:
            return self._find_margins(encoder, row)
        except BaseException:
            if self.counts_unknown:
                encoder.forget_newest()
            raise

    def _learn_scored(self, encoder: Encoder, row: Row, scored: ScoredExample, y: float, weight: float) -> None:
        """Learn an example. One of weight 0 changes nothing, counts nowhere and leaves no name."""
        if weight and not self.has_class_columns:
            if y not in (0.0, 1.0, 2.0):
                raise IndexError("y is the number of no class")
            if y == 2.0:
                self.grow()
                scored = self._scored(encoder, row)
        target = y if self.has_class_columns else 2.0 * y - 1.0
        if not (weight and self._learn(encoder, scored, target, weight)):
            encoder.forget_newest()
        if weight and self.n_known < 2 and not self.has_class_columns:
            self.n_known = 2 if self.names_opposite else max(self.n_known, int(y) + 1)

    def _n_classes_for(self, y: NDArray[np.float64] | None) -> int:
        n_classes = self.n_columns if self.has_class_columns else 2
        return n_classes if y is None or not len(y) else max(n_classes, int(y.max()) + 1)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a call from within a call; a kernel is Python code and might make one."""
        if self._is_busy:
            raise RuntimeError("the model is in the middle of a call of this very thread")
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False


def add_intercept(row: Row, scaling: float) -> Row:
    """The row with one more feature of the value `scaling`, unless that is 0."""
    if not scaling:
        return row
    return Row([*row.keys, INTERCEPT], [*row.values, scaling / row.factor], row.factor)
