"""Pegasos from a random first w, and with a counter of violations, beside the algorithm as published.

Jan Rupnik, Stochastic subgradient approach for solving linear support vector machines: an overview, SiKDD 2008. To be
read beside it: w is a dense vector, and nothing is lazy.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def random_first_w(n_columns: int, l2: float, seed: int) -> NDArray[np.float64]:
    """A random vector on the surface of the ball of radius 1/√λ."""
    w = np.random.default_rng(seed).normal(size=n_columns)
    return w / (math.sqrt(l2) * np.linalg.norm(w))


class DensePegasos:
    """Pegasos on rows with labels of ±1.

    Parameters
    ----------
    w
        The first w, in the ball of radius 1/√λ.
    l2, batch_size
        λ and k.
    counter
        "every": t counts each batch, as published. "violations": t counts batches with a violation only, and the others
        leave w as it is, the remedy that the paper names. "w waits": t counts each batch, but those without a violation
        leave w as it is, which is no form of Pegasos.
    """

    def __init__(
        self,
        w: NDArray[np.float64],
        l2: float,
        batch_size: int = 1,
        counter: Literal["every", "violations", "w waits"] = "every",
    ) -> None:
        self.w, self.l2, self.batch_size, self.counter = w.copy(), l2, batch_size, counter
        self.n_iterations = 0

    def learn_many(self, X: csr_array, y: NDArray[np.int64]) -> None:
        """Take a step with each k rows, one after the other."""
        for begin in range(0, len(y), self.batch_size):
            end = begin + self.batch_size
            self.step(X.indptr[begin : end + 1], X.indices, X.data, y[begin:end])

    def step(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int64],
        data: NDArray[np.float64],
        y: NDArray[np.int64],
    ) -> None:
        """w ← (1 − 1/t) w + 1/(λtk) Σ y x over the violators; then w ← min(1, 1/(√λ ‖w‖)) w"""
        place = slice(indptr[0], indptr[-1])
        columns, values = indices[place], data[place]
        rows = np.repeat(np.arange(len(y)), np.diff(indptr))
        violating = y * np.bincount(rows, values * self.w[columns], len(y)) < 1.0
        if self.counter != "violations" or violating.any():
            self.n_iterations += 1
        if self.counter != "every" and not violating.any():
            return
        t = self.n_iterations
        self.w *= 1.0 - 1.0 / t
        np.add.at(self.w, columns, (y * violating)[rows] * values / (self.l2 * t * len(y)))
        norm = float(np.linalg.norm(self.w))
        if math.sqrt(self.l2) * norm > 1.0:
            self.w *= 1.0 / (math.sqrt(self.l2) * norm)
