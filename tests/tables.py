"""Examples of two classes, and tables of every kind that they may come in."""

import random

import numpy as np
import pandas as pd
from scipy import sparse


def rows_and_labels(n=120, d=15):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, d)).round(3) * (generator.random((n, d)) < 0.4)
    return X, (X[:, 0] + 0.5 * generator.normal(size=n) > 0).tolist()


def as_dicts(X, columns=None):
    names = range(X.shape[1]) if columns is None else columns
    return [{name: v for name, v in zip(names, row, strict=True) if v} for row in X.tolist()]


def in_parts(X):
    """A CSR matrix with its rows in disorder and each value in two parts."""
    data, indices, indptr = [], [], [0]
    generator = random.Random(1)
    for row in X:
        parts = [(j, v / 2) for j, v in enumerate(row) if v for _ in range(2)]
        generator.shuffle(parts)
        indices += [j for j, _ in parts]
        data += [v for _, v in parts]
        indptr.append(len(data))
    return sparse.csr_matrix((data, indices, indptr), X.shape)


def wide(X):
    matrix = sparse.csr_matrix(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def frozen(X):
    matrix = sparse.csr_matrix(X)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def with_zeros(X):
    n, d = X.shape
    return sparse.csr_matrix((X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), X.shape)


TABLES = {
    "tuple": lambda X: tuple(as_dicts(X)),
    "generator": lambda X: (x for x in as_dicts(X)),
    "frame": pd.DataFrame,
    "frame, strange index": lambda X: pd.DataFrame(X, index=[f"row {i % 7}" for i in range(len(X))]),
    "sparse frame": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
    "csr": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csr, int64": wide,
    "csr, in parts": in_parts,
    "csr, explicit zeros": with_zeros,
    "csr, read-only": frozen,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "coo array": sparse.coo_array,
    "lil": sparse.lil_matrix,
    "sliced csr": lambda X: sparse.csr_matrix(np.vstack([X, X]))[: len(X)],
}
