"""Pegasos with an RBF kernel and a budget, as one would write it in NumPy: what ours is timed against."""

import math

import numpy as np

from stream_pegasos.engine.kernel import best_mixture, look_up_loss, value_of_mixture


class NumpyKernelPegasos:
    """The support vectors are the columns of a matrix with a row a feature, so that an example meets whole rows."""

    def __init__(self, budget: int, merging: bool, l2: float = 1e-4, gamma: float = 1.0) -> None:
        self.merging, self.l2, self.gamma = merging, l2, gamma
        self.t = 0
        self.n = 0  # the support vectors
        self.beta, self.squares = np.zeros(budget + 1), np.zeros(budget + 1)
        self.features = np.zeros((64, budget + 1))
        self.rows: dict[int, int] = {}  # of each feature

    def step(self, x: dict[int, float], y: bool) -> float:
        """The margin of an example before it is learned."""
        values = np.fromiter(x.values(), float, len(x))
        square = float(values @ values)
        known = [(self.rows[name], value) for name, value in x.items() if name in self.rows]
        similarities = self.similarities([row for row, _ in known], np.array([v for _, v in known]), square)
        margin = float(self.beta[: self.n] @ similarities) / (self.l2 * self.t) if self.n else 0.0
        self.t += 1
        if (margin if y else -margin) < 1.0:
            column = np.zeros(len(self.features))
            for name, value in x.items():
                row = self.rows.setdefault(name, len(self.rows))
                if row >= len(column):
                    self.features = np.vstack([self.features, np.zeros_like(self.features)])
                    column = np.concatenate([column, np.zeros_like(column)])
                column[row] = value
            self.put(self.n, column, square, 1.0 if y else -1.0)
            self.n += 1
            if self.n == len(self.beta):
                self.make_room()
        return margin

    def similarities(self, rows: list[int], values: np.ndarray, square: float) -> np.ndarray:
        products = values @ self.features[rows, : self.n]
        return np.exp(-self.gamma * (square + self.squares[: self.n] - 2.0 * products))

    def put(self, place: int, column: np.ndarray, square: float, beta: float) -> None:
        self.features[:, place], self.squares[place], self.beta[place] = column, square, beta

    def make_room(self) -> None:
        one = int(np.abs(self.beta[: self.n]).argmin())
        if self.merging:
            self.merge(one)
        self.n -= 1
        self.put(one, self.features[:, self.n], self.squares[self.n], self.beta[self.n])

    def merge(self, one: int) -> None:
        rows = np.flatnonzero(self.features[:, one])
        similarities = self.similarities(rows, self.features[rows, one], self.squares[one])
        beta = self.beta[: self.n]
        total = np.abs(beta) + abs(beta[one])
        losses = total**2 * look_up_loss(np.abs(beta[one]) / total, similarities)
        losses[(beta * beta[one] <= 0.0) | (np.arange(self.n) == one)] = math.inf
        other = int(losses.argmin())
        share, similarity = abs(beta[one]) / total[other], float(similarities[other])
        h = best_mixture(share, similarity)
        column = h * self.features[:, one] + (1.0 - h) * self.features[:, other]
        kept = total[other] * value_of_mixture(h, share, similarity)
        self.put(other, column, float(column @ column), math.copysign(kept, beta[other]))
