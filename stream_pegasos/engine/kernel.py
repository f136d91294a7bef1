"""Pegasos with a kernel: no weights, but coefficients of the examples that violated the margin.

It is NumPy, over the encoders of either engine. The support vectors are rows of a sparse matrix, so that one product
compares an example with all of them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT
from stream_pegasos.common.state import Declaration, Field, State, count, keys
from stream_pegasos.engine.pure.adaptive_state import LARGEST_COEFFICIENT
from stream_pegasos.engine.pure.driver import CALIBRATION, Learner, ScoredExample
from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.weights import VALUE_LIMIT, Row

__all__ = ["KernelLearner", "best_mixture", "look_up_loss", "loss_table", "value_of_mixture"]

Floats = NDArray[np.float64]

# A merged vector loses the features that have become smaller than this share of its largest one, or it would grow
# without end on sparse examples.
NEGLIGIBLE = 1e-4
# Sizes that differ by less than this share are the same.
SAME = 1e-9
# A dense copy of the matrix is kept if at least one in this many of its values is stored.
SPARSE = 8
# With this limit, and that of coefficients, no margin overflows.
LARGEST_SIMILARITY = 1e200


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


class Example(NamedTuple):
    """An example that was compared with the support vectors."""

    keys: Sequence[int]
    values: Floats
    columns: NDArray[np.int64]  # of the matrix, or −1
    square: float  # ⟨x, x⟩
    products: Floats  # ⟨x, z⟩ for every support vector z
    itself: float  # K(x, x)
    named: dict[Any, float]  # x for a kernel that is a function, or else nothing


# Of each support vector z: which row it is, how many features it has, β, ⟨z, z⟩ and K(z, z).
ROW, SIZE, BETA, SQUARE, ITSELF = range(5)


class SupportVectors:
    """The first `n` places of `numbers` are the support vectors; a vector that is written behind them may become one.

    The features of a vector are a row of a sparse matrix, which also has free rows, and rows of vectors dropped since
    it was last stored. A dense copy, if few of its values are 0, makes products faster. One assignment, to `numbers` or
    to `n`, changes the support vectors: an interrupted step is whole, or not taken.
    """

    def __init__(self, keys: NDArray[np.int64], values: Floats, numbers: Floats, named: list[dict[Any, float]]) -> None:
        self.n: int = numbers.shape[1]
        self._store(keys, values, numbers, named, 0)

    def _store(
        self, keys: NDArray[np.int64], values: Floats, numbers: Floats, named: list[dict[Any, float]], n_more: int
    ) -> None:
        """Store all vectors, with room for half as many again and for one of `n_more` features."""
        from scipy.sparse import csr_array  # which takes long

        known, columns = np.unique(keys, return_inverse=True)
        n, known_columns = numbers.shape[1], {key: column for column, key in enumerate(known.tolist())}
        numbers, of_columns = with_room(numbers), with_room(known, n_more)
        numbers[ROW, :n] = range(n)
        # The last column is for features that no vector has.
        matrix = csr_array((numbers.shape[1], len(of_columns) + 1))
        matrix.indptr = np.concatenate(([0], np.cumsum(numbers[SIZE]))).astype(np.int64)
        matrix.indices, matrix.data = with_room(columns, n_more), with_room(values, n_more)
        self.dense: Floats | None = None
        if numbers.shape[1] * len(of_columns) <= SPARSE * len(matrix.data):
            self.dense = np.zeros((len(of_columns), numbers.shape[1]))
            self.dense[columns, np.repeat(np.arange(n), numbers[SIZE, :n].astype(np.int64))] = values
        self.numbers, self.named, self.n_written = numbers, named, n
        self.matrix, self.columns, self.keys = matrix, known_columns, of_columns

    def write(self, place: int, x: Example, beta: float) -> None:
        """Write an example at this place, behind the vectors that stay."""
        row, columns = self.n_written, x.columns
        begin = int(self.matrix.indptr[row])
        end = begin + len(x.keys)
        if (
            row == self.numbers.shape[1]
            or end > len(self.matrix.data)
            or len(self.columns) + len(x.keys) > len(self.keys)
        ):
            self._store(*self.features(place), self.numbers[:, :place], self.named_of(place), len(x.keys))
            return self.write(place, x._replace(columns=self.columns_of(x.keys)), beta)
        if -1 in columns.tolist():
            for key in x.keys:
                if key not in self.columns:
                    self.keys[len(self.columns)] = key
                    self.columns[key] = len(self.columns)
            columns = self.columns_of(x.keys)
        self.named[row:], self.matrix.indptr[row + 1] = [x.named], end
        self.n_written = row + 1  # before anything is in it: no row is written twice
        self.matrix.indices[begin:end], self.matrix.data[begin:end] = columns, x.values
        if self.dense is not None:
            self.dense[columns, row] = x.values
        self.numbers[:, place] = row, len(x.keys), beta, x.square, x.itself

    def named_of(self, n: int) -> list[dict[Any, float]]:
        """The first n vectors, as a kernel that is a function takes them."""
        return [self.named[int(row)] for row in self.numbers[ROW, :n]]

    def features(self, n: int) -> tuple[NDArray[np.int64], Floats]:
        """The keys and values of the first n vectors, one after the other."""
        rows, sizes = self.numbers[: SIZE + 1, :n].astype(np.int64)
        shifts = self.matrix.indptr[rows] - (np.cumsum(sizes) - sizes)
        places = np.repeat(shifts, sizes) + np.arange(sizes.sum())
        return self.keys[self.matrix.indices[places]], self.matrix.data[places]

    def features_of(self, place: int) -> tuple[list[int], Floats]:
        """The keys and values of one vector."""
        row = int(self.numbers[ROW, place])
        begin, end = self.matrix.indptr[row : row + 2].tolist()
        return self.keys[self.matrix.indices[begin:end]].tolist(), self.matrix.data[begin:end]

    def columns_of(self, keys: Sequence[int]) -> NDArray[np.int64]:
        """The columns of features, −1 for those that no vector has."""
        return np.fromiter(map(self.columns.get, keys, itertools.repeat(-1)), np.int64, len(keys))

    def products(self, columns: NDArray[np.int64], values: Floats, n: int) -> Floats:
        """⟨x, z⟩ for the first n vectors z."""
        x = np.zeros(len(self.keys) + 1)
        x[columns] = values
        m = len(self.columns)
        products: Any = self.matrix @ x if self.dense is None else x[:m] @ self.dense[:m, : self.n_written]
        return products.take(self.numbers[ROW, :n].astype(np.int64))  # type: ignore[no-any-return]


def with_room(array: NDArray[Any], n_more: int = 0) -> NDArray[Any]:
    n = array.shape[-1] // 2 + 64 + n_more
    return np.concatenate((array, np.zeros((*array.shape[:-1], n), array.dtype)), axis=-1)


@dataclass(eq=False, repr=False)
class KernelLearner(Learner):
    """Kernelised Pegasos (Shalev-Shwartz et al. 2011, section 4), with a budget for the support vectors.

    w = Σ β φ(x)/(λ(t + t0)) is never formed; β is the sum of the c·y of the steps at which x violated the margin.
    Beyond the budget, unless that is 0, the support vector with the smallest ‖β φ(x)‖ is removed. With `merge` (RBF
    kernel only), the one with the smallest |β| is merged with the one that makes the loss smallest (Wang, Crammer and
    Vucetic 2012).
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
        self._vectors = SupportVectors(np.zeros(0, np.int64), np.zeros(0), np.zeros((5, 0)), [])

    def __reduce__(self) -> Any:
        return restored, (self.arguments, self.get_state())

    def __len__(self) -> int:
        """The number of support vectors."""
        return self._vectors.n

    @property
    def n_iterations(self) -> int:
        return self._n_iterations

    @property
    def n_held(self) -> int:
        return len(self._vectors.columns)

    def negate(self) -> None:
        self._vectors.numbers[BETA] *= -1.0

    def _meet(self, encoder: Encoder, row: Row) -> ScoredExample:
        keys, values = row.keys, np.array(row.values, np.float64)
        if 0.0 in row.values:
            keys, values = [key for key, x in zip(keys, row.values, strict=True) if x], values[values != 0.0]
        if row.factor != 1.0:
            values *= row.factor
        vectors, square, n, named = self._vectors, square_of(values), len(self), {}
        columns = vectors.columns_of(keys)
        products = vectors.products(columns, values, n)
        if callable(self.kernel):
            named = dict(zip(map(encoder.name, keys), values.tolist(), strict=True))
            itself = check_similarity(self.kernel(named, named))
            similarities = np.array([check_similarity(self.kernel(named, z)) for z in vectors.named_of(n)])
        else:
            itself = self._similarities(square, square, square) if self.kernel != "rbf" else 1.0
            similarities = self._similarities(products, square, vectors.numbers[SQUARE, :n])
        margin = 0.0
        if n:
            margin = float(vectors.numbers[BETA, :n].dot(similarities)) / (self.l2 * (self._n_iterations + self.t0))
        return ScoredExample(row, [margin], Example(keys, values, columns, square, products, itself, named))

    def _similarities(self, products: Any, x_square: Any, z_squares: Any) -> Any:
        """K(x, z) from ⟨x, z⟩, ⟨x, x⟩ and ⟨z, z⟩, for one z or for many."""
        if self.kernel == "rbf":
            distances = z_squares + x_square
            distances -= products
            distances -= products
            np.maximum(distances, 0.0, out=distances)
            distances *= -self.gamma
            return np.exp(distances, out=distances)
        if self.kernel == "cosine":
            lengths = np.sqrt(x_square) * np.sqrt(z_squares)
            return np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths != 0.0)
        if self.kernel == "polynomial":
            with np.errstate(over="ignore"):
                products = (self.gamma * products + self.coef0) ** self.degree
            check_similarity(np.abs(products).max(initial=0.0))
        return products

    def _learn(self, encoder: Encoder, met: ScoredExample, y: float, weight: float) -> bool:
        """Learn an example, and return whether it became a support vector."""
        (margin,) = met.margins
        self.calibration.learn(margin, y)
        self._n_iterations += 1  # first, since there are never more support vectors than steps
        supports = y * margin < 1.0 and weight > 0.0
        if supports:
            self._add(met.values, weight * y)
        return supports

    def _add(self, x: Example, beta: float) -> None:
        vectors, n = self._vectors, len(self)
        least, most = (1.0 - SAME) * x.square, (1.0 + SAME) * x.square
        for i in (x.products >= least).nonzero()[0].tolist():
            if vectors.numbers[SQUARE, i] <= most and dict_of(*vectors.features_of(i)) == dict_of(x.keys, x.values):
                total = vectors.numbers[BETA, i] + beta
                if total:
                    vectors.numbers[BETA, i] = total
                else:  # the last one takes the place
                    vectors.numbers[:, [i, n - 1]] = vectors.numbers[:, [n - 1, i]]
                    vectors.n = n - 1
                return
        vectors.write(n, x, beta)
        if not 0 < self.budget <= n:
            vectors.n = n + 1
        elif not (self.merge and self._merge_two(n + 1)):
            sizes = vectors.numbers[BETA, : n + 1] ** 2 * vectors.numbers[ITSELF, : n + 1]
            # The first of the smallest ones, which are equal up to rounding.
            smallest = (sizes <= sizes[sizes.argmin()] * (1.0 + SAME)).argmax()
            vectors.numbers[:, smallest] = vectors.numbers[:, n]

    def _merge_two(self, n: int) -> bool:
        """Merge the vector with the smallest |β| of the first n with the best one of the same sign, if there is one."""
        vectors = self._vectors
        betas, squares = vectors.numbers[BETA, :n], vectors.numbers[SQUARE, :n]
        sizes = np.abs(betas)
        one = int(sizes.argmin())
        keys, values = vectors.features_of(one)
        products = vectors.products(vectors.columns_of(keys), values, n)
        similarities = self._similarities(products, squares[one], squares)
        totals = sizes + sizes[one]
        losses = totals * totals * look_up_loss(sizes[one] / totals, similarities)
        losses[betas * betas[one] <= 0.0] = losses[one] = math.inf
        best = int(losses.argmin())
        if losses[best] == math.inf:
            return False
        share, similarity = float(sizes[one] / totals[best]), float(similarities[best])
        h = best_mixture(share, similarity)
        mixed = mix(h, dict_of(keys, values), 1.0 - h, dict_of(*vectors.features_of(best)))
        values = np.array(list(mixed.values()))
        beta = math.copysign(totals[best] * value_of_mixture(h, share, similarity), betas[best])
        # The mixture replaces `best`, and the last vector `one`; if `best` is the last, the mixture replaces both.
        columns, square = vectors.columns_of(list(mixed)), square_of(values)
        vectors.write(n, Example(list(mixed), values, columns, square, products, 1.0, {}), beta)
        vectors.numbers[:, [best, one]] = vectors.numbers[:, [n, n if best == n - 1 else n - 1]]
        return True

    def get_state(self) -> State:
        vectors, n = self._vectors, len(self)
        of_features, values = vectors.features(n)
        state = {
            **self.calibration.get_state(),
            "n_iterations": self._n_iterations,
            "coefficients": vectors.numbers[BETA, :n].copy(),
            "indptr": np.concatenate(([0], np.cumsum(vectors.numbers[SIZE, :n]))).astype(np.int64),
            "keys": of_features,
            "values": values,
        }
        if callable(self.kernel):  # loading does not call it again, as it may fail
            state |= {"named": vectors.named_of(n), "itself": vectors.numbers[ITSELF, :n].tolist()}
        return state

    def set_state(self, state: State) -> None:
        pieces = [slice(begin, end) for begin, end in itertools.pairwise(state["indptr"].tolist())]
        squares = np.array([square_of(state["values"][piece]) for piece in pieces])
        itself = state.get("itself", self._similarities(squares, squares, squares))
        sizes, named = np.diff(state["indptr"]), list(state.get("named", [{}] * len(pieces)))
        numbers = np.vstack((sizes, sizes, state["coefficients"], squares, itself))
        self._vectors = SupportVectors(state["keys"], state["values"], numbers, named)
        self.calibration.set_state(state)
        self._n_iterations = state["n_iterations"]


def restored(arguments: tuple[Any, ...], state: State) -> KernelLearner:
    """A learner as it was pickled."""
    learner = KernelLearner(*arguments)
    learner.set_state(state)
    return learner


def square_of(values: Floats) -> Any:
    return values.dot(values)


def dict_of(keys: Sequence[int], values: Floats) -> dict[int, float]:
    return dict(zip(keys, values.tolist(), strict=True))


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


def mix(h: float, x: dict[int, float], rest: float, z: dict[int, float]) -> dict[int, float]:
    """h x + rest z, without negligible features; those of z come first."""
    mixed = {key: rest * value for key, value in z.items()}
    for key, value in x.items():
        mixed[key] = mixed.get(key, 0.0) + h * value
    least = NEGLIGIBLE * max(map(abs, mixed.values()), default=0.0)
    return {key: value for key, value in mixed.items() if abs(value) > least}


# The loss of merging two vectors depends on two numbers, the share m = |β|/(|β| + |β'|) of the smaller coefficient and
# the similarity κ of the vectors; so it is tabulated (Glasmachers and Qaadan 2018).


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
def loss_table() -> Floats:
    """The loss ‖m φ(x) + (1 − m) φ(x') − value φ(z)‖² by share, from 0 to 1/2, and by similarity, from 0 to 1."""
    m = np.linspace(0.0, 0.5, TABLE_SHARES + 1)[:, None, None]
    k = np.linspace(0.0, 1.0, TABLE_SIMILARITIES + 1)[None, :, None]
    h = np.linspace(0.0, 0.5, 65)
    # 0 ** 0 is 1: at κ = 0 the mixture h = 0 keeps all of x'.
    values = m * k ** (1.0 - h) ** 2 + (1.0 - m) * k ** (h * h)
    m, k = m[:, :, 0], k[:, :, 0]
    return np.ascontiguousarray(m * m + (1.0 - m) ** 2 + 2.0 * m * (1.0 - m) * k - values.max(axis=2) ** 2)


def look_up_loss(share: Floats, similarity: Floats) -> Floats:
    """The loss between the points of the table, linear along each axis."""
    table = loss_table()
    row, column = share * 2.0 * TABLE_SHARES, similarity * TABLE_SIMILARITIES
    i = np.minimum(row.astype(np.int64), TABLE_SHARES - 1)
    j = np.minimum(column.astype(np.int64), TABLE_SIMILARITIES - 1)
    di, dj = row - i, column - j
    above = (1.0 - dj) * table[i, j] + dj * table[i, j + 1]
    below = (1.0 - dj) * table[i + 1, j] + dj * table[i + 1, j + 1]
    loss: Floats = (1.0 - di) * above + di * below
    return loss
