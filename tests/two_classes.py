"""Examples of two classes, as rows, dicts and a stream."""

import random

import numpy as np


def rows_and_labels(n=120, d=15, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)).round(3) * (generator.random((n, d)) < 0.4)
    return X, (X[:, 0] + 0.5 * generator.normal(size=n) > 0).tolist()


def as_dicts(X, columns=None, zeros=False):
    names = range(X.shape[1]) if columns is None else columns
    return [{name: v for name, v in zip(names, row, strict=True) if v or zeros} for row in X.tolist()]


def examples(n, seed=0):
    generator = random.Random(seed)
    names = ["a", "b", 1, 2, ("t", 1), 2**60, "\ud800"]
    for _ in range(n):
        yield {name: generator.gauss(0, 1) for name in generator.sample(names, 4)}, generator.choice(["ham", "spam"])
