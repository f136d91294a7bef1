"""Pegasos with a kernel: no weights, but coefficients of the examples that violated the margin."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT
from stream_pegasos.common.state import Declaration, Field, State, count, keys
from stream_pegasos.engine.pure.adaptive import LARGEST_COEFFICIENT
from stream_pegasos.engine.pure.driver import CALIBRATION, Learner, Met
from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.weights import VALUE_LIMIT, Row

# A merged vector loses the features that have become smaller than this share of its largest one, or it would grow
# without end on sparse examples.
NEGLIGIBLE = 1e-4


class SupportVector(NamedTuple):
    features: dict[int, float]
    squared_length: float  # ⟨x, x⟩
    itself: float  # K(x, x)
    named: dict[Any, float]  # for kernels that are functions


def declared(budget: int) -> Declaration:
    """What the state of a `KernelLearner` consists of."""
    return Declaration(
        (
            Field("coefficients", 0.0, LARGEST_COEFFICIENT, ("vectors",), signed=True),
            count("indptr", "ends", high=lambda state: len(state["keys"])),
            keys("keys", "values"),
            Field("values", 0.0, VALUE_LIMIT, ("values",), signed=True),
            Field("n_iterations", lambda state: len(state["coefficients"]), LARGEST_COUNT, of_type=int),
            *CALIBRATION,
        ),
        (
            (
                "there are more support vectors than the budget",
                lambda state: not 0 < budget < len(state["coefficients"]),
            ),
            ("a support vector has a coefficient of 0", lambda state: bool(state["coefficients"].all())),
            ("the support vectors are not as they were written", has_ends),
            ("a support vector has a feature twice", has_unique_keys),
        ),
    )


def has_ends(state: State) -> bool:
    ends = state["indptr"]
    shape_fits = len(ends) == len(state["coefficients"]) + 1
    return bool(shape_fits and ends[0] == 0 and ends[-1] == len(state["keys"]) and (np.diff(ends) >= 0).all())


def has_unique_keys(state: State) -> bool:
    pieces = itertools.pairwise(state["indptr"].tolist())
    return all(len(np.unique(state["keys"][begin:end])) == end - begin for begin, end in pieces)


@dataclass(eq=False, repr=False)
class KernelLearner(Learner):
    """Kernelised Pegasos (Shalev-Shwartz et al. 2011, section 4), with a budget for the support vectors.

    w = Σ β φ(x)/(λ(t + t0)) is never formed; β is the sum of the c·y of the steps at which x violated the margin.
    Over the budget, if that is not 0, the support vector with the smallest ‖β φ(x)‖ is removed or, with `merge`, the
    one with the smallest |β| merged with the one with which least is lost (Wang, Crammer and Vucetic 2012; RBF kernel
    only).
    """

    meets_unknown = True
    max_features = 0

    l2: float
    t0: float
    kernel: str | Callable[[dict[Any, float], dict[Any, float]], float]
    gamma: float
    coef0: float
    degree: int
    budget: int
    merge: bool

    def __post_init__(self) -> None:
        super().__init__()
        self.declaration = declared(self.budget)
        self._n_iterations = 0
        self._vectors: list[SupportVector] = []
        self._coefficients: list[float] = []  # the β

    def __len__(self) -> int:
        """The number of support vectors."""
        return len(self._vectors)

    @property
    def n_iterations(self) -> int:
        return self._n_iterations

    @property
    def n_held(self) -> int:
        return len(set().union(*(vector.features for vector in self._vectors)))

    def negate(self) -> None:
        self._coefficients = [-beta for beta in self._coefficients]

    def _meet(self, encoder: Encoder, row: Row) -> Met:
        vector = self._vector(encoder, row)
        similarities = self._similarities(vector)
        return Met(row, [self._margin(similarities)], vector)

    def _vector(self, encoder: Encoder, row: Row) -> SupportVector:
        features = {key: row.factor * x for key, x in zip(row.keys, row.values, strict=True) if x != 0.0}
        named = {encoder.name(key): x for key, x in features.items()} if callable(self.kernel) else {}
        return self._support_vector(features, named)

    def _support_vector(self, features: dict[int, float], named: dict[Any, float]) -> SupportVector:
        square = square_of(features)
        if callable(self.kernel):
            return SupportVector(features, square, check_similarity(self.kernel(named, named)), named)
        return SupportVector(features, square, check_similarity(self._similarity(square, square, square)), named)

    def _similarities(self, x: SupportVector) -> list[float]:
        """K(x, z) for every support vector z."""
        if callable(self.kernel):
            return [check_similarity(self.kernel(x.named, z.named)) for z in self._vectors]
        return [
            check_similarity(self._similarity(inner(x.features, z.features), x.squared_length, z.squared_length))
            for z in self._vectors
        ]

    def _similarity(self, product: float, x_square: float, z_square: float) -> float:
        """K(x, z) from ⟨x, z⟩, ⟨x, x⟩ and ⟨z, z⟩."""
        if self.kernel == "rbf":
            return math.exp(-self.gamma * max(x_square + z_square - 2.0 * product, 0.0))
        if self.kernel == "cosine":
            lengths = math.sqrt(x_square) * math.sqrt(z_square)
            return product / lengths if lengths else 0.0
        if self.kernel == "polynomial":
            base = self.gamma * product + self.coef0
            return math.prod([base] * self.degree)
        return product

    def _margin(self, similarities: list[float]) -> float:
        if not similarities:
            return 0.0
        total = sum(beta * k for beta, k in zip(self._coefficients, similarities, strict=True))
        return total / (self.l2 * (self._n_iterations + self.t0))

    def _learn(self, encoder: Encoder, met: Met, y: float, weight: float) -> bool:
        """Whether the example is among the support vectors from now on."""
        (margin,) = met.margins
        self.calibration.learn(margin, y)
        self._n_iterations += 1
        supports = y * margin < 1.0 and weight > 0.0
        if supports:
            self._add(met.values, weight * y)
            if 0 < self.budget < len(self):
                self._make_room()
        return supports

    def _add(self, x: SupportVector, beta: float) -> None:
        for i, z in enumerate(self._vectors):
            if z.features == x.features:
                self._coefficients[i] += beta
                if self._coefficients[i] == 0.0:
                    self._remove(i)
                return
        self._vectors.append(x)
        self._coefficients.append(beta)

    def _make_room(self) -> None:
        if self.merge and self._merge_two():
            return
        sizes = [beta * beta * z.itself for beta, z in zip(self._coefficients, self._vectors, strict=True)]
        # Rounding decides nothing: of those that are as small the first.
        enough = min(sizes) * (1.0 + SAME)
        self._remove(next(i for i, size in enumerate(sizes) if size <= enough))

    def _merge_two(self) -> bool:
        """Merge the support vector with the smallest |β| with the best other one of its sign; False if it has none."""
        sizes = [abs(beta) for beta in self._coefficients]
        one = sizes.index(min(sizes))
        similarities = self._similarities(self._vectors[one])
        best, least = -1, math.inf
        for i, beta in enumerate(self._coefficients):
            if i != one and beta * self._coefficients[one] > 0.0:
                total = sizes[one] + sizes[i]
                loss = total * total * look_up_loss(sizes[one] / total, similarities[i])
                if loss < least:
                    best, least = i, loss
        if best < 0:
            return False
        share, similarity = sizes[one] / (sizes[one] + sizes[best]), similarities[best]
        h = best_mixture(share, similarity)
        features = mix(h, self._vectors[one].features, 1.0 - h, self._vectors[best].features)
        beta = (sizes[one] + sizes[best]) * value_of_mixture(h, share, similarity)
        self._vectors[best] = self._support_vector(features, {})
        self._coefficients[best] = math.copysign(beta, self._coefficients[best])
        self._remove(one)
        return True

    def _remove(self, i: int) -> None:
        """The last one takes the place."""
        self._vectors[i], self._coefficients[i] = self._vectors[-1], self._coefficients[-1]
        del self._vectors[-1], self._coefficients[-1]

    def get_state(self) -> State:
        vectors = [vector.features for vector in self._vectors]
        state = {
            **self.calibration.get_state(),
            "n_iterations": self._n_iterations,
            "coefficients": np.array(self._coefficients, np.float64),
            "indptr": np.cumsum([0, *map(len, vectors)], dtype=np.int64),
            "keys": np.array([key for features in vectors for key in features], np.int64),
            "values": np.array([x for features in vectors for x in features.values()], np.float64),
        }
        if callable(self.kernel):  # which is not to be called again, since it may fail
            state["named"] = [vector.named for vector in self._vectors]
            state["itself"] = [vector.itself for vector in self._vectors]
        return state

    def set_state(self, state: State) -> None:
        keys, values = state["keys"].tolist(), state["values"].tolist()
        pieces = [slice(begin, end) for begin, end in itertools.pairwise(state["indptr"].tolist())]
        vectors = [dict(zip(keys[piece], values[piece], strict=True)) for piece in pieces]
        if callable(self.kernel):
            known = zip(vectors, state["itself"], state["named"], strict=True)
            self._vectors = [SupportVector(features, square_of(features), *rest) for features, *rest in known]
        else:
            self._vectors = [self._support_vector(features, {}) for features in vectors]
        self._coefficients = state["coefficients"].tolist()
        self.calibration.set_state(state)
        self._n_iterations = state["n_iterations"]


def square_of(features: dict[int, float]) -> float:
    return sum(x * x for x in features.values())


def check_similarity(similarity: Any) -> float:
    """The value of a kernel.

    Raises
    ------
    ValueError
        If it is no finite number.
    """
    try:
        number = float(similarity)
    except (OverflowError, TypeError, ValueError):
        number = math.nan
    if not abs(number) <= LARGEST_SIMILARITY:
        raise ValueError(
            f"the kernel gives {similarity!r} for an example and a support vector; it must give a finite number "
            f"of at most {LARGEST_SIMILARITY:g} in size: scale the features, or change the kernel's parameters"
        )
    return number


# Sizes that differ by less than this share are the same.
SAME = 1e-9
# With support vectors' coefficients inside their limits no margin overflows.
LARGEST_SIMILARITY = 1e200


def inner(x: dict[int, float], z: dict[int, float]) -> float:
    return sum(value * z[key] for key, value in x.items() if key in z)


def mix(h: float, x: dict[int, float], rest: float, z: dict[int, float]) -> dict[int, float]:
    """h x + rest z, first the features of z, without those that have become negligible."""
    mixed = {key: rest * value for key, value in z.items()}
    for key, value in x.items():
        mixed[key] = mixed.get(key, 0.0) + h * value
    least = NEGLIGIBLE * max(map(abs, mixed.values()), default=0.0)
    return {key: value for key, value in mixed.items() if abs(value) > least}


# What is lost by merging two vectors depends on two numbers, the share m = |β|/(|β| + |β'|) of the smaller coefficient
# and the similarity κ of the two; so it is tabulated (Glasmachers and Qaadan 2018).


def value_of_mixture(h: float, share: float, similarity: float) -> float:
    """What the mixture h x + (1 − h) x' keeps, m κ^((1−h)²) + (1 − m) κ^(h²), of a sum of coefficients of 1."""
    log = math.log(max(similarity, SMALLEST_SIMILARITY))
    return share * math.exp(log * (1.0 - h) ** 2) + (1.0 - share) * math.exp(log * h * h)


def best_mixture(share: float, similarity: float) -> float:
    """The h in [0, 1/2] that keeps most: where the derivative, above 0 at first, changes its sign."""
    low, high, log = 0.0, 0.5, math.log(max(similarity, SMALLEST_SIMILARITY))
    for _ in range(HALVINGS):
        h = 0.5 * (low + high)
        rising = share * (1.0 - h) * math.exp(log * (1.0 - h) ** 2) > (1.0 - share) * h * math.exp(log * h * h)
        low, high = (h, high) if rising else (low, h)
    return low


SMALLEST_SIMILARITY = 1e-300
HALVINGS = 52
TABLE_SHARES, TABLE_SIMILARITIES = 32, 256


@functools.cache
def loss_table() -> NDArray[np.float64]:
    """The loss ‖m φ(x) + (1 − m) φ(x') − value φ(z)‖² by share, from 0 to 1/2, and by similarity, from 0 to 1."""
    m = np.linspace(0.0, 0.5, TABLE_SHARES + 1)[:, None, None]
    k = np.linspace(0.0, 1.0, TABLE_SIMILARITIES + 1)[None, :, None]
    h = np.linspace(0.0, 0.5, 65)
    # 0 ** 0 is 1: at κ = 0 the mixture h = 0 keeps all of x'.
    values = m * k ** (1.0 - h) ** 2 + (1.0 - m) * k ** (h * h)
    m, k = m[:, :, 0], k[:, :, 0]
    return np.ascontiguousarray(m * m + (1.0 - m) ** 2 + 2.0 * m * (1.0 - m) * k - values.max(axis=2) ** 2)


def look_up_loss(share: float, similarity: float) -> float:
    """The loss between the points of the table, linear along each axis."""
    table = loss_table()
    row, column = share * 2.0 * TABLE_SHARES, similarity * TABLE_SIMILARITIES
    i, j = min(int(row), TABLE_SHARES - 1), min(int(column), TABLE_SIMILARITIES - 1)
    di, dj = row - i, column - j
    above = (1.0 - dj) * table[i, j] + dj * table[i, j + 1]
    below = (1.0 - dj) * table[i + 1, j] + dj * table[i + 1, j + 1]
    return float((1.0 - di) * above + di * below)
