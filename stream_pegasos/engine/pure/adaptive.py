"""Steps with a size for each feature, on features scaled by naive Bayes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT, LARGEST_WEIGHT
from stream_pegasos.common.state import FEATURES, LARGEST_SUM, Declaration, Field, State, count, keys
from stream_pegasos.engine.pure.driver import CALIBRATION, Learner, ScoredExample
from stream_pegasos.engine.pure.encoders import Encoder, are_unique
from stream_pegasos.engine.pure.mistakes import MISTAKES, Mistakes
from stream_pegasos.engine.pure.weights import INTERCEPT, Row

Floats = NDArray[np.float64]

# What every feature is scaled by, however little its presence tells of the label: it may tell more beside others.
LEAST_SCALE = 0.3
# The newest evidence may weigh this much more than the oldest before all is written down anew, at its weight of now. A
# power of two, so that this rounds nothing.
RESCALED_AT = 2.0**16
# No example counts more than this, so that all that is known of features remains in the range of single precision.
LARGEST_EXAMPLE = 1e15
# Squared gradients of a feature that are smaller are none: its weight then stays.
LEAST_SQUARES = 2.0**-126
ROUNDED_UP = 2.0  # a count may be, addition by addition, yet by less than this factor

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


class ScaledLearner(Learner, is_rule=False):
    """The values of a row are scaled by what is known of each feature, and then divided by their norm; these are what
    the weights meet. So margin = Σ weight · scale · x / ‖scale · x‖ + intercept.
    """

    meets_unknown = True
    _features: dict[int, Any]

    def __len__(self) -> int:
        return len(self._features)

    def items(self) -> tuple[NDArray[np.int64], Floats]:
        """Keys, and what each feature weighs, weight · scale."""
        found = np.fromiter(self._features, np.int64, len(self._features))
        return found, self.weights_of(found)

    def weights_of(self, keys: NDArray[np.int64]) -> Floats:
        scales, weights = self._scales_and_weights(keys.tolist())
        return scales[:, np.newaxis] * weights

    def contributions(self, encoder: Encoder, x: Any, column: int = 0) -> dict[int, float]:
        row = encoder.row(x, True)
        encoder.forget_newest()
        values, weights = self._values_and_weights(row)
        products = (values * weights[:, column]).tolist() if column < weights.shape[1] else []
        return {key: product for key, product in zip(row.keys, products, strict=False) if key in self._features}

    def _scales_and_weights(self, keys: Sequence[int]) -> tuple[Floats, Floats]:
        """Of each feature the scale and, in a row, the weights."""
        raise NotImplementedError

    def _values_and_weights(self, row: Row) -> tuple[Floats, Floats]:
        """The scaled values, divided by their norm, and the weights that they meet."""
        scales, weights = self._scales_and_weights(row.keys)
        values = scales * np.array(row.values, np.float64)
        norm = math.sqrt(float((values * values).sum()))
        return (values / norm if norm else np.zeros(len(values))), weights


@dataclass(eq=False, repr=False)
class EvidenceLearner(ScaledLearner, is_rule=False):
    """Evidence halves over `half_life` examples, if that is not 0: instead of shrinking the old, each example counts
    more than the one before.
    """

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
        self._growth = 2.0 ** (1.0 / self.half_life) if self.half_life else 1.0
        self._evidence = 1.0  # what an example counts that is learned now
        self._features = {}

    @property
    def n_iterations(self) -> int:
        return self._n_iterations

    def forget(self, share: float) -> None:
        """Keep that share of all evidence so far and, as weights grow with its root, that of the weights; from then on
        both move faster.
        """
        evidence, self._evidence = self._evidence / share, 1.0
        self._weaken(evidence)
        self._shrink(math.sqrt(share))

    def _end_example(self) -> None:
        self._n_iterations += 1
        self._evidence *= self._growth
        if self._evidence >= RESCALED_AT:
            self._evidence /= RESCALED_AT
            self._weaken(RESCALED_AT)

    def _slopes(self, agreements: Floats) -> Floats:
        """How steeply the loss falls with y · margin."""
        if self.hinge:
            return (agreements < 1.0).astype(np.float64)
        return 1.0 / (1.0 + np.exp(np.minimum(agreements, 700.0)))

    def _weaken(self, factor: float) -> None:
        """Write all evidence down as what it counts now."""
        raise NotImplementedError

    def _shrink(self, factor: float) -> None:
        """Make all weights smaller, and find the ratios anew."""
        raise NotImplementedError


# What is known of a feature: its weight, the logarithm of its count ratio, and as evidence the sum of its squared
# gradients and the number of positive and of negative examples that had it.
WEIGHT, LOG_RATIO, SQUARES, POSITIVES, NEGATIVES = range(5)
UNKNOWN = np.zeros(5)


class AdaptiveLearner(EvidenceLearner):
    """Steps of AdaGrad on rows whose values are scaled and then divided by their norm, for examples whose y · margin is
    below `largest_margin`.

    The scale of a feature is `LEAST_SCALE` plus the size of its log-count ratio: how much more often positive than
    negative examples have it, each count with `smoothing` added, beside how many there are of both; 1 for all if
    `smoothing` is 0. The ratio of a feature is that of the last time it was learned. The intercept is the weight of a
    feature with the value `intercept_scaling` that every example has, and its ratio is that of all examples.
    """

    declaration = DECLARATION

    def __post_init__(self) -> None:
        super().__post_init__()
        self._mistakes = Mistakes()
        self._intercept = UNKNOWN.copy()

    @property
    def intercept(self) -> Floats:
        return np.array([self.intercept_scaling * self._intercept[WEIGHT]])

    def mistakes(self) -> State:
        """How the margins of the newest examples on the wrong side are spread, and among how many examples."""
        return self._mistakes.get_state()

    def negate(self) -> None:
        self._mistakes.negate()
        for known in self._all():
            known[:] = 0.0 - known[WEIGHT], 0.0 - known[LOG_RATIO], known[SQUARES], known[NEGATIVES], known[POSITIVES]

    def _all(self) -> Iterable[Floats]:
        return (*self._features.values(), self._intercept)

    def _known(self, keys: Sequence[int]) -> Floats:
        """What is known of each feature, in a row."""
        return np.array([self._features.get(key, UNKNOWN) for key in keys]).reshape(-1, len(UNKNOWN))

    def _scales_and_weights(self, keys: Sequence[int]) -> tuple[Floats, Floats]:
        known = self._known(keys)
        scales = LEAST_SCALE + np.abs(known[:, LOG_RATIO] - self._intercept[LOG_RATIO])
        return scales if self.smoothing else np.ones(len(known)), known[:, WEIGHT, np.newaxis]

    def _meet(self, encoder: Encoder, row: Row) -> ScoredExample:
        values, weights = self._values_and_weights(row)
        margin = float((values * weights[:, 0]).sum()) + self.intercept_scaling * float(self._intercept[WEIGHT])
        return ScoredExample(row, [margin], values)

    def _learn(self, encoder: Encoder, met: ScoredExample, y: float, weight: float) -> bool:
        """Whether there was a step."""
        (margin,) = met.margins
        self.calibration.learn(margin, y)
        self._mistakes.learn(margin, y)
        is_near = y * margin < self.largest_margin
        if is_near:
            self._take_step(met.row, met.values, y, min(weight, LARGEST_EXAMPLE), y * margin)
        self._end_example()
        return is_near

    def _take_step(self, row: Row, values: Floats, y: float, weight: float, agreement: float) -> None:
        """G ← G + g², w ← w − η g / √G"""
        has = np.array(row.values, np.float64) != 0.0
        keys = [key for key, is_there in zip(row.keys, has.tolist(), strict=True) if is_there]
        known = np.vstack([self._known(keys), self._intercept])
        gradients = -y * weight * self._slopes(np.array(agreement)) * np.append(values[has], self.intercept_scaling)
        squares = known[:, SQUARES] + self._evidence * (gradients * gradients)
        moved = (gradients != 0.0) & (squares > np.append(np.full(len(keys), LEAST_SQUARES), 0.0))
        known[moved, SQUARES] = squares[moved]
        rate = self.learning_rate * math.sqrt(self._evidence)
        known[moved, WEIGHT] -= rate * gradients[moved] / np.sqrt(squares[moved])
        known[:, POSITIVES if y > 0.0 else NEGATIVES] += weight * self._evidence
        known[:, LOG_RATIO] = self._log_ratios(known)
        *of_features, self._intercept = map(np.copy, known)
        self._features.update(zip(keys, of_features, strict=True))

    def _log_ratios(self, known: Floats) -> Any:
        if not self.smoothing:
            return 0.0
        smoothing = self.smoothing * self._evidence
        # A difference, as it changes its sign exactly where the classes are exchanged.
        return np.log(known[..., POSITIVES] + smoothing) - np.log(known[..., NEGATIVES] + smoothing)

    def _weaken(self, factor: float) -> None:
        for known in self._all():
            known[SQUARES:] /= factor

    def _shrink(self, factor: float) -> None:
        for known in self._all():
            known[WEIGHT] *= factor
            known[LOG_RATIO] = self._log_ratios(known)

    def get_state(self) -> State:
        return {
            "keys": np.fromiter(self._features, np.int64, len(self)),
            **dict(zip(OF_FEATURE, self._known([*self._features]).T.copy(), strict=True)),
            **dict(zip(OF_INTERCEPT, self._intercept.tolist(), strict=True)),
            "evidence": self._evidence,
            "n_iterations": self._n_iterations,
            **self.calibration.get_state(),
            **self._mistakes.get_state(),
        }

    def set_state(self, state: State) -> None:
        known = np.array([state[name] for name in OF_FEATURE], np.float64).T
        self._features = dict(zip(state["keys"].tolist(), known.copy(), strict=True))
        self._intercept = np.array([state[name] for name in OF_INTERCEPT])
        self._evidence, self._n_iterations = state["evidence"], state["n_iterations"]
        self.calibration.set_state(state)
        self._mistakes.set_state(state)
