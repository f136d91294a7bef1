"""Steps with a size for each feature, on features scaled by naive Bayes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT, LARGEST_WEIGHT
from stream_pegasos.common.state import FEATURES, LARGEST_SUM, Declaration, Field, State, count, keys
from stream_pegasos.engine.pure.driver import CALIBRATION, Learner, ScoredExample
from stream_pegasos.engine.pure.encoders import Encoder, are_unique
from stream_pegasos.engine.pure.mistakes import MISTAKES, Mistakes
from stream_pegasos.engine.pure.weights import INTERCEPT, Row

# What every feature is scaled by, however little its presence tells of the label: it may tell more beside others.
LEAST_SCALE = 0.3
# The newest evidence may weigh this much more than the oldest before all is written down anew, at its weight of now. A
# power of two, so that this rounds nothing.
RESCALED_AT = 2.0**16
# No example counts more than this, so that all that is known of features remains in the range of single precision.
LARGEST_EXAMPLE = 1e15
MOST_COUNTED = 2**24  # examples, one by one
ROUNDED_UP = 2.0  # a count may be, addition by addition, yet by less than this factor
SMALLEST_SINGLE, LARGEST_SINGLE = 2.0**-126, 2.0**127


def single(x: float) -> float:
    """A number as single precision keeps it: with 24 bits, 0 for those that are tiny, and with a largest one."""
    if abs(x) < SMALLEST_SINGLE:
        return 0.0
    high = 536870913.0 * x  # (2²⁹ + 1) x: the split of Veltkamp
    return min(max(high - (high - x), -LARGEST_SINGLE), LARGEST_SINGLE)


@dataclass(slots=True)
class Feature:
    """What is known of a feature: its weight, the logarithm of its count ratio, and as evidence the sum of its squared
    gradients and the number of positive and of negative examples that had it. Of all but the intercept these are kept
    in single precision, so that a feature and all that is known of it take half a line of the processor's cache.
    """

    weight: float = 0.0
    log_ratio: float = 0.0
    squares: float = 0.0
    positives: float = 0.0
    negatives: float = 0.0


UNKNOWN = Feature()

# As many examples as can be counted, each with the largest weight of its own and the largest of its class.
LARGEST_COEFFICIENT = 2.0 * LARGEST_COUNT * LARGEST_WEIGHT * LARGEST_WEIGHT
# No step is much larger than the learning rate, of up to 1e30, and none are more than 2⁶³; with smoothing from 1e-30 no
# count ratio is beyond 2⁶³ · 1e90.
LARGEST_ADAPTIVE_WEIGHT, LARGEST_LOG_RATIO = 1e60, 300.0


def numbers_of(names: tuple[str, ...], *shape: str) -> tuple[Field, ...]:
    """What is known of a feature, under these names."""
    weight, log_ratio, squares, positives, negatives = names

    def most(of: str) -> Callable[[State], float]:
        return lambda state: state[of] * ROUNDED_UP if shape else LARGEST_COEFFICIENT * state["evidence"]

    return (
        Field(weight, 0.0, LARGEST_ADAPTIVE_WEIGHT, shape, signed=True),
        Field(log_ratio, 0.0, LARGEST_LOG_RATIO, shape, signed=True),
        Field(squares, 0.0, LARGEST_SUM, shape),
        Field(positives, 0.0, most("n_positives"), shape),
        Field(negatives, 0.0, most("n_negatives"), shape),
    )


OF_FEATURE = ("values", "log_ratios", "gradient_squares", "positives", "negatives")
OF_INTERCEPT = ("intercept", "intercept_log_ratio", "intercept_squares", "n_positives", "n_negatives")
DECLARATION = Declaration(
    (
        Field("evidence", 1.0, RESCALED_AT),
        *numbers_of(OF_INTERCEPT),
        keys("keys", FEATURES),
        *numbers_of(OF_FEATURE, FEATURES),
        count("n_iterations"),
        *CALIBRATION,
        *MISTAKES,
    ),
    (
        ("a feature has two weights", lambda state: are_unique(state["keys"])),
        ("the intercept stands among the features", lambda state: not (state["keys"] == INTERCEPT).any()),
    ),
)


EVIDENCE = OF_FEATURE[2:]


@dataclass(eq=False, repr=False)
class AdaptiveLearner(Learner):
    """Steps of AdaGrad on rows whose values are scaled and then divided by their norm, for examples whose y · margin is
    below `largest_margin`.

    The scale of a feature is `LEAST_SCALE` plus the size of its log-count ratio: how much more often positive than
    negative examples have it, each count with `smoothing` added, beside how many there are of both; 1 for all if
    `smoothing` is 0. The ratio of a feature is that of the last time it was learned. Evidence halves over `half_life`
    examples, if that is not 0: instead of shrinking the old, each example counts more than the one before.
    `intercept_scaling` is 0 for no intercept.
    """

    meets_unknown = True
    declaration = DECLARATION

    learning_rate: float
    hinge: bool
    largest_margin: float
    smoothing: float
    half_life: float
    intercept_scaling: float
    max_features: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self._n_iterations = 0
        self._mistakes = Mistakes()
        self._growth = 2.0 ** (1.0 / self.half_life) if self.half_life else 1.0
        self._features: dict[int, Feature] = {}
        self._intercept = Feature()  # which every example has
        self._evidence = 1.0  # what an example counts that is learned now

    def __len__(self) -> int:
        return len(self._features)

    @property
    def n_iterations(self) -> int:
        return self._n_iterations

    @property
    def intercept(self) -> NDArray[np.float64]:
        return np.array([self.intercept_scaling * self._intercept.weight])

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys, and what each feature weighs: margin = Σ weight · x / ‖scale · x‖ + intercept."""
        found = np.fromiter(self._features, np.int64, len(self._features))
        return found, self.weights_of(found)

    def weights_of(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        features = (self._features.get(key, UNKNOWN) for key in keys.tolist())
        return np.array([[feature.weight * self._scale(feature)] for feature in features], np.float64).reshape(-1, 1)

    def contributions(self, encoder: Encoder, x: Any, column: int = 0) -> dict[int, float]:
        met = self._meet(encoder, encoder.row(x, True))
        encoder.forget_newest()
        pairs = zip(met.row.keys, met.values, strict=True)
        return {key: self._features[key].weight * value for key, value in pairs if key in self._features}

    def mistakes(self) -> State:
        """How the margins of the newest examples on the wrong side are spread, and among how many examples."""
        return self._mistakes.get_state()

    def negate(self) -> None:
        self._mistakes.negate()
        for feature in (*self._features.values(), self._intercept):
            feature.weight, feature.log_ratio = 0.0 - feature.weight, 0.0 - feature.log_ratio  # no −0
            feature.positives, feature.negatives = feature.negatives, feature.positives

    def forget(self, share: float) -> None:
        """Keep that share of all evidence so far and, as weights grow with its root, that of the weights; from then on
        both move faster.
        """
        evidence, self._evidence = self._evidence / share, 1.0
        self._weaken(evidence)
        for feature in (*self._features.values(), self._intercept):
            kept = self._kept(feature)
            feature.weight = kept(feature.weight * math.sqrt(share))
            feature.log_ratio = kept(self._log_ratio(feature))

    def _scale(self, feature: Feature) -> float:
        if not self.smoothing:
            return 1.0
        return LEAST_SCALE + abs(feature.log_ratio - self._intercept.log_ratio)

    def _log_ratio(self, feature: Feature) -> float:
        if not self.smoothing:
            return 0.0
        smoothing = self.smoothing * self._evidence
        # A difference, as it changes its sign exactly where the classes are exchanged.
        return math.log(feature.positives + smoothing) - math.log(feature.negatives + smoothing)

    def _meet(self, encoder: Encoder, row: Row) -> ScoredExample:
        """The values that the weights meet are scaled, then divided by their norm."""
        features = [self._features.get(key, UNKNOWN) for key in row.keys]
        values = [x * self._scale(feature) for feature, x in zip(features, row.values, strict=True)]
        norm = math.sqrt(sum(value * value for value in values))
        values = [value / norm for value in values] if norm else [0.0] * len(values)
        total = sum(feature.weight * value for feature, value in zip(features, values, strict=True))
        return ScoredExample(row, [self.intercept_scaling * self._intercept.weight + total], values)

    def _learn(self, encoder: Encoder, met: ScoredExample, y: float, weight: float) -> bool:
        """Whether there was a step."""
        (margin,) = met.margins
        weight = min(weight, LARGEST_EXAMPLE)
        self.calibration.learn(margin, y)
        self._mistakes.learn(margin, y)
        is_near = y * margin < self.largest_margin
        if is_near:
            slope = (y * margin < 1.0) if self.hinge else 1.0 / (1.0 + math.exp(min(y * margin, 700.0)))
            gradient = -y * weight * slope
            self._learn_feature(self._intercept, gradient * self.intercept_scaling, y, weight)
            for key, x, value in zip(met.row.keys, met.row.values, met.values, strict=True):
                if x != 0.0:
                    feature = self._features.setdefault(key, Feature())
                    self._learn_feature(feature, gradient * value, y, weight)
        self._n_iterations += 1
        self._evidence *= self._growth
        if self._evidence >= RESCALED_AT:
            self._evidence /= RESCALED_AT
            self._weaken(RESCALED_AT)
        return is_near

    def _kept(self, feature: Feature) -> Callable[[float], float]:
        """How numbers of a feature are kept."""
        return float if feature is self._intercept else single

    def _learn_feature(self, feature: Feature, gradient: float, y: float, weight: float) -> None:
        kept = self._kept(feature)
        squares = kept(feature.squares + self._evidence * (gradient * gradient))
        if gradient != 0.0 and squares > 0.0:
            feature.squares = squares
            rate = self.learning_rate * math.sqrt(self._evidence)
            feature.weight = kept(feature.weight - rate * gradient / math.sqrt(squares))
        self._count(feature, y, weight)
        feature.log_ratio = kept(self._log_ratio(feature))

    def _count(self, feature: Feature, y: float, weight: float) -> None:
        kept, counted = self._kept(feature), weight * self._evidence
        before = feature.positives if y > 0.0 else feature.negatives
        count = kept(before + counted)
        if self._n_iterations >= MOST_COUNTED and weight >= 1.0 and count == before:
            # So many that one more does not show any longer: half of them say the same of the ratio.
            feature.positives, feature.negatives = kept(feature.positives / 2.0), kept(feature.negatives / 2.0)
            count = kept(before / 2.0 + counted)
        if y > 0.0:
            feature.positives = count
        else:
            feature.negatives = count

    def _weaken(self, factor: float) -> None:
        """Write all evidence down as what it counts now."""
        for feature in (*self._features.values(), self._intercept):
            kept = self._kept(feature)
            feature.squares = kept(feature.squares / factor)
            feature.positives = kept(feature.positives / factor)
            feature.negatives = kept(feature.negatives / factor)

    def get_state(self) -> State:
        n = len(self._features)
        numbers = np.array([astuple(feature) for feature in self._features.values()], np.float64).reshape(n, 5)
        return {
            "keys": np.fromiter(self._features, np.int64, n),
            **dict(zip(OF_FEATURE, numbers.T.copy(), strict=True)),
            **dict(zip(OF_INTERCEPT, astuple(self._intercept), strict=True)),
            "evidence": self._evidence,
            "n_iterations": self._n_iterations,
            **self.calibration.get_state(),
            **self._mistakes.get_state(),
        }

    def set_state(self, state: State) -> None:
        entries = zip(*(map(single, state[name].tolist()) for name in OF_FEATURE), strict=True)
        self._features = {key: Feature(*entry) for key, entry in zip(state["keys"].tolist(), entries, strict=True)}
        self._intercept = Feature(*(state[name] for name in OF_INTERCEPT))
        self._evidence, self._n_iterations = state["evidence"], state["n_iterations"]
        self.calibration.set_state(state)
        self._mistakes.set_state(state)
