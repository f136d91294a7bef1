"""Pegasos with a kernel, in NumPy: instead of weights it has coefficients of the examples that violated the margin."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.checks import (
    LARGEST_L2,
    SMALLEST_L2,
    check_integer,
    check_member,
    check_number,
    user_code,
)
from stream_pegasos.common.state import Declaration, Field, State, count, keys
from stream_pegasos.engine import Encoder, Vocabulary
from stream_pegasos.engine.feature_schema import LARGEST_COEFFICIENT
from stream_pegasos.engine.pure.driver import (
    CALIBRATION,
    LARGEST_CALIBRATION_WEIGHT,
    Found,
    Learner,
    ScoredExample,
)
from stream_pegasos.engine.pure.encoders import Inputs
from stream_pegasos.engine.pure.weights import VALUE_LIMIT, Row
from stream_pegasos.learners.class_weights import ClassWeight, check_class_weight
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.trainer import Trainer

__all__ = ["KernelPegasosClassifier"]

Kernel = Callable[[dict[Any, float], dict[Any, float]], float]


class KernelPegasosClassifier(Classifier, base.MiniBatchClassifier):  # type: ignore[misc]
    """Support vector machine with a kernel, trained by Pegasos, one example at a time.

    At step t the weights, which are never computed, are w = 1/(λ(t + t0)) Σ α y φ(x). The sum is over the support
    vectors, the examples that violated the margin; α counts how often. If a `budget` is exceeded, the support vector
    with the smallest ‖α φ(x)‖ is removed. `support_vectors` are dicts by the names of features; `dual_coef` is α·y.

    Parameters
    ----------
    l2 : float, default 1e-4
        The regularisation λ, from 1e-30 to 1e30.
    t0 : float, default 0.0
        The number of steps that count as already taken, at least 0.
    kernel : {"linear", "polynomial", "rbf"} or callable, default "rbf"
        `"linear"` ⟨x, z⟩, `"polynomial"` (γ⟨x, z⟩ + coef0)^degree, `"rbf"` exp(−γ‖x − z‖²), or a function of two dicts
        (without features that are 0), which must be symmetric and positive semidefinite (Mercer).
    gamma : float, default 1.0
        γ, from 1e-30 to 1e30.
    coef0 : float, default 1.0
        The constant in the polynomial, from 0 to 1e30.
    degree : int, default 3
        The degree of the polynomial, from 1 to 100.
    budget : int or None, default None
        The largest number of support vectors, at least 1; `None` for no limit.
    class_weight : dict, {"balanced", "sqrt"} or None, default None
        As for `PegasosClassifier`.
    pos_label : bool, int, str or None, default None
        As for `PegasosClassifier`.

    Raises
    ------
    TypeError, ValueError
        If a parameter has a wrong type or is out of its range, or if the kernel returns no number, or one above 1e200
        in size.

    References
    ----------
    [^1]: Shalev-Shwartz, S. et al., 2011. Pegasos. Mathematical Programming 127, section 4.

    Examples
    --------
    >>> from stream_pegasos import KernelPegasosClassifier
    >>> X, y = [{"x": i // 2, "y": i % 2} for i in range(4)], ["same", "other", "other", "same"]
    >>> model = KernelPegasosClassifier(l2=0.01, kernel="rbf", gamma=2.0)
    >>> model.learn_many(X * 20, y * 20)
    >>> model.predict_many(X).tolist()
    ['same', 'other', 'other', 'same']
    """

    _linear = False

    def __init__(
        self,
        l2: float = 1e-4,
        t0: float = 0.0,
        kernel: Literal["linear", "polynomial", "rbf"] | Kernel = "rbf",
        gamma: float = 1.0,
        coef0: float = 1.0,
        degree: int = 3,
        budget: int | None = None,
        class_weight: ClassWeight = None,
        pos_label: Label | None = None,
    ) -> None:
        check_number("l2", l2, SMALLEST_L2, LARGEST_L2)
        check_number("t0", t0, 0.0, 1e100)
        if not callable(kernel):
            check_member("kernel", kernel, ("linear", "polynomial", "rbf"))
        check_number("gamma", gamma, 1e-30, 1e30)
        check_number("coef0", coef0, 0.0, 1e30)
        check_integer("degree", degree, 1, 100)
        check_integer("budget", 1 if budget is None else budget, 1, 1 << 31)
        self.l2, self.t0, self.kernel, self.gamma, self.coef0, self.degree = l2, t0, kernel, gamma, coef0, degree
        self.budget, self.class_weight, self.pos_label = budget, class_weight, pos_label
        check_class_weight(class_weight)
        Labels(pos_label=pos_label)

    def make_trainer(self) -> Trainer:
        options = map(float, (self.l2, self.t0, self.gamma, self.coef0))
        learner = KernelLearner(self.kernel, *options, int(self.degree), int(self.budget or 0))
        return Trainer(
            self.lock, learner, Labels(pos_label=self.pos_label, most=2, counts_alone=True), self.class_weight
        )

    @property
    def support_vectors(self) -> list[dict[Any, float]]:
        with self.lock:
            state = self.trainer.learner.get_state()
            names = map(self.trainer.vocabulary.name, state["keys"].tolist())
            features = list(zip(names, state["values"].tolist(), strict=True))
        return [dict(features[begin:end]) for begin, end in pairwise(state["indptr"].tolist())]

    @property
    def dual_coef(self) -> NDArray[np.float64]:
        with self.lock:
            coefficients = self.trainer.learner.get_state()["coefficients"]
            return self.trainer.labels.show_weights(np.outer(coefficients, [-1.0, 1.0]))


SAME = 1e-9  # sizes with a smaller relative difference are the same
LARGEST_SIMILARITY = 1e200  # so that no margin overflows, even with the largest coefficients


# The begin of each support vector, and the end of the last; columns and values of features, with one of value 0 at the
# end; β = α y, ⟨z, z⟩ and K(z, z), a row each; and dicts for a kernel that is a function.
SupportVectors = tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], list[dict[Any, float]]
]


class KernelLearner(Learner, is_rule=False):
    """The rule. One assignment replaces all support vectors: a step is taken as a whole or not at all."""

    declaration = Declaration(
        (
            Field("coefficients", 0.0, LARGEST_COEFFICIENT, ("vectors",), signed=True),
            count("indptr", "ends", high=lambda state: len(state["keys"])),
            keys("keys", "values"),
            Field("values", 0.0, VALUE_LIMIT, ("values",), signed=True),
            count("n_iterations"),
            *CALIBRATION,
        ),
        (
            ("a coefficient is 0", lambda of: bool(of["coefficients"].all())),
            ("the sizes do not fit", lambda of: len(of["coefficients"]) == len(of["indptr"]) - 1 <= of["n_iterations"]),
            ("a feature is of no vector", lambda of: of["indptr"][[0, -1]].tolist() == [0, len(of["keys"])]),
            ("a vector ends before it begins", lambda of: bool((np.diff(of["indptr"]) >= 0).all())),
            ("a feature twice", lambda of: all(len({*z}) == len(z) for z in np.split(of["keys"], of["indptr"][1:-1]))),
        ),
    )
    counts_unknown = True
    max_features = n_iterations = 0

    def __init__(self, kernel: str | Kernel, l2: float, t0: float, *options: Any) -> None:
        super().__init__()
        self.n_iterations = 0
        self._kernel, self._l2, self._t0, (*self._options, self._budget) = kernel, l2, t0, options
        self._columns: dict[int, int] = {}  # by key, in their order; some may belong to no support vector
        self._vectors: SupportVectors = np.zeros(1, np.int64), np.full(1, -1), np.zeros(1), np.zeros((3, 0)), []

    def copied(self) -> Self:
        """A copy of this learner that later learning does not change."""
        with self._alone():
            copied = copy.copy(self)
        copied._is_busy = False
        copied.calibration, copied._columns = copy.copy(self.calibration), {**self._columns}
        return copied

    # A call that fails is undone as a whole: a kernel that is a function may fail in the middle.

    def learn(self, encoder: Encoder, x: object, y: float, weight: float) -> bool:
        with self._undone_if_it_fails(encoder):
            return super().learn(encoder, x, y, weight)

    def predict_learn_many(self, encoder: Encoder, X: Inputs, y: Any = None, *others: Any) -> Found:
        if y is None:
            return super().predict_learn_many(encoder, X)
        with self._undone_if_it_fails(encoder):
            return super().predict_learn_many(encoder, X, y, *others)

    @contextlib.contextmanager
    def _undone_if_it_fails(self, encoder: Encoder) -> Iterator[None]:
        before, names = self.copied(), encoder.names if isinstance(encoder, Vocabulary) else []
        try:
            yield
        except BaseException:
            self.__dict__.update(before.__dict__)
            if isinstance(encoder, Vocabulary):
                encoder.set_names(names)
            raise

    def __len__(self) -> int:
        return len(self._vectors[-1])

    @property
    def n_held(self) -> int:
        return len(self._columns)

    def _find_margins(self, encoder: Encoder, row: Row) -> ScoredExample:
        keys = [key for key, value in zip(row.keys, row.values, strict=True) if value]
        values = row.factor * np.array([value for value in row.values if value], np.float64)
        ends, columns, coefficients, (betas, squares, _), vectors = self._vectors
        x = np.zeros(len(self._columns) + 1)  # the last entry is for features of no support vector
        x[[self._columns.get(key, -1) for key in keys]] = values
        products = np.add.reduceat(x[columns] * coefficients, ends[:-1])
        products[ends[1:] == ends[:-1]] = 0.0
        square, named = values.dot(values), {}
        if callable(self._kernel):
            named = dict(zip(map(encoder.name, keys), values.tolist(), strict=True))
            with user_code("the kernel"):
                kernels = [self._kernel(named, z) for z in (named, *vectors)]
            for similarity in kernels:
                check_number("the value of the kernel", similarity, -LARGEST_SIMILARITY, LARGEST_SIMILARITY)
            itself, *similarities = map(float, kernels)
        else:
            itself = self._similarities(square, square, square)
            similarities = self._similarities(products, square, squares)
        steps = self._l2 * (self.n_iterations + self._t0)
        margin = float(betas.dot(similarities)) / steps if vectors else 0.0
        return ScoredExample(row, [margin], (keys, values, products, square, itself, named))

    def _similarities(self, products: Any, x_square: Any, z_squares: Any) -> Any:
        """K(x, z) from ⟨x, z⟩, ⟨x, x⟩ and ⟨z, z⟩, for one z or for many."""
        gamma, coef0, degree = self._options
        if self._kernel == "rbf":
            return np.exp(-gamma * np.maximum(z_squares + x_square - products - products, 0.0))
        if self._kernel == "polynomial":
            with np.errstate(over="ignore"):
                products = (gamma * products + coef0) ** degree
            check_number("the value of the kernel", np.abs(products).max(initial=0.0), 0.0, LARGEST_SIMILARITY)
        return products

    def _learn(self, encoder: Encoder, scored: ScoredExample, y: float, weight: float) -> bool:
        self.calibration.learn(scored.margins[0], y, min(weight, LARGEST_CALIBRATION_WEIGHT))
        self.n_iterations += 1  # first, because there may not be more support vectors than steps
        if y * scored.margins[0] >= 1.0:
            return False
        if len(self._columns) > 2 * len(self._vectors[1]) + 64:  # forget the columns of no support vector
            self.set_state(self.get_state())
        keys, values, products, square, itself, named = scored.values
        (ends, columns, coefficients, numbers, vectors), n = self._vectors, len(self)
        added = [self._columns.setdefault(key, len(self._columns)) for key in keys]
        i, x = n, dict(zip(added, values.tolist(), strict=True))
        alike = (products >= (1.0 - SAME) * square) & (numbers[1] <= (1.0 + SAME) * square)
        for j in np.flatnonzero(alike).tolist():
            rows = slice(ends[j], ends[j + 1])
            i = j if dict(zip(columns[rows].tolist(), coefficients[rows].tolist(), strict=True)) == x else i
        new, names = np.array([[weight * y + numbers[0, i : i + 1].sum()], [square], [itself]]), [named]
        if i == n and 0 < self._budget <= n:  # remove the first of the smallest; these are equal up to rounding
            sizes = np.append(numbers[0] ** 2 * numbers[2], new[0] ** 2 * new[2])
            i = int((sizes <= sizes.min() * (1.0 + SAME)).argmax())
            if i == n:
                return False
        if not new[0, 0]:
            added, values, new, names = [], values[:0], new[:, :0], []
        begin, end, stop = ends[i], ends[min(i + 1, n)], ends[i] + len(added)
        self._vectors = (
            np.concatenate((ends[: i + 1], np.full(len(names), stop), ends[i + 2 :] + (stop - end))),
            replaced(columns, begin, end, np.array(added, np.int64)),
            replaced(coefficients, begin, end, values),
            replaced(numbers, i, i + 1, new),
            [*vectors[:i], *names, *vectors[i + 1 :]],
        )
        return True

    def get_state(self, lazy: bool = False) -> State:
        ends, columns, values, numbers, named = self._vectors
        state = {**self.calibration.get_state(), "n_iterations": self.n_iterations, "coefficients": numbers[0].copy()}
        of_columns = np.fromiter(self._columns, np.int64, len(self._columns))
        state |= {"indptr": ends.copy(), "keys": of_columns[columns[:-1]], "values": values[:-1].copy()}
        return state | ({"itself": numbers[2], "named": named} if callable(self._kernel) else {})

    def set_state(self, state: State) -> None:
        n, (keys, columns) = len(state["coefficients"]), np.unique(state["keys"], return_inverse=True)
        if 0 < self._budget < n:
            raise ValueError("there are more support vectors than the budget")
        squares = np.array([z.dot(z) for z in np.split(state["values"], state["indptr"][1:-1])[:n]], np.float64)
        itself = state["itself"] if "itself" in state else self._similarities(squares, squares, squares)
        numbers, named = np.array([state["coefficients"], squares, itself]), state.get("named", [{}] * n)
        vectors = state["indptr"], np.append(columns, -1), np.append(state["values"], 0.0), numbers, named
        self._columns, self._vectors = {key: column for column, key in enumerate(keys.tolist())}, vectors
        self.n_iterations = state["n_iterations"]
        self.calibration.set_state(state)


def replaced(array: NDArray[Any], begin: int, end: int, new_part: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((array[..., :begin], new_part, array[..., end:]), axis=-1)
