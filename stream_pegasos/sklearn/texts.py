"""Texts in the containers of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from stream_pegasos.common.checks import check_sequence
from stream_pegasos.features.frames import is_frame, listed

__all__ = ["list_texts"]


def list_texts(X: Any) -> list[Any]:
    """The texts of a list, an array, a series, or a frame or an array with one column. Raise a ValueError for more
    columns, and a TypeError for a single text or a sparse matrix.
    """
    check_sequence("X", X, "texts")
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix, not texts; OnlineClassifier learns from matrices")
    if is_frame(X):
        check_one_column(X.shape)
        return list(X[X.columns[0]])
    if isinstance(X, np.ndarray):
        if X.ndim != 1:
            check_one_column(X.shape)
        return X.ravel().tolist()
    return list(listed(X))


def check_one_column(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[1] != 1:
        raise ValueError(
            f"X has the shape {shape}; texts stand in one column: choose it, or use a ColumnTransformer with a "
            "TextVectorizer for each"
        )
