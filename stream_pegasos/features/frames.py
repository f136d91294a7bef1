"""Conversion from and to data frames of several libraries, and from sparse matrices."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_sequence
from stream_pegasos.common.errors import must_be
from stream_pegasos.engine.pure.encoders import CsrArrays, Inputs
from stream_pegasos.engine.pure.weights import DIRECT_LIMIT

NOT_TAKEN = {"polars.LazyFrame": "collect()", "pyarrow.Table": "to_pandas()", "pyarrow.RecordBatch": "to_pandas()"}


def is_frame(X: object) -> bool:
    """Whether a value is a data frame. Raise a TypeError for a frame of an unsupported kind; the error names a
    conversion.
    """
    kind = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
    if kind in NOT_TAKEN:
        raise TypeError(f"X must be a data frame of pandas or polars, got a {kind}; pass X.{NOT_TAKEN[kind]}")
    return hasattr(X, "columns") and hasattr(X, "shape") and not hasattr(X, "tocsr")


def is_series(X: object) -> bool:
    return hasattr(X, "to_frame") and not hasattr(X, "columns")


def listed(values: object) -> Any:
    """An array of PyArrow as a list; any other value as it is."""
    return values.to_pylist() if hasattr(values, "to_pylist") and not hasattr(values, "columns") else values


def check_column(name: str, value: object, of: str) -> None:
    """Raise a TypeError if a value is no sequence. A data frame is none: its iterator gives column names."""
    if is_frame(value):
        raise TypeError(f"{name} must be a column, got a data frame; pass the column that holds the {of}")
    check_sequence(name, value, of)


def list_of_examples(X: Any) -> list[Any]:
    """The examples of a data frame or of any other sequence, as a list."""
    if is_frame(X):
        return frame_to_dicts(X)
    check_sequence("X", X, "examples")
    X = listed(X)
    if isinstance(X, np.ndarray) and X.dtype != object:
        raise TypeError("X must be a sparse matrix, got a dense array; pass scipy.sparse.csr_array(X)")
    return X if isinstance(X, list) else list(X)


def column_names(X: Any) -> list[Any]:
    names = list(X.columns)
    if len({*names}) < len(names):
        raise ValueError(f"the data frame has two columns with the name {Counter(names).most_common(1)[0][0]!r}")
    return names


def frame_to_dicts(X: Any) -> list[dict[Any, Any]]:
    """The rows of a data frame as feature dicts; a sparse frame gives no zeros."""
    names = column_names(X)
    if not names:
        return [{} for _ in range(len(X))]
    try:
        matrix = X.sparse.to_coo().tocsr()
    except AttributeError:
        from river.utils import dataframe

        frame = dataframe.into_frame(X)
        # NumPy could turn a str among other columns into a number.
        plain = all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in frame.schema.values())
        rows = dataframe.to_numpy(frame).tolist() if plain else frame.rows()
        return [dict(zip(names, row, strict=True)) for row in rows]
    columns, values = [names[j] for j in matrix.indices.tolist()], matrix.data.tolist()
    ends = itertools.pairwise(matrix.indptr.tolist())
    return [dict(zip(columns[begin:end], values[begin:end], strict=True)) for begin, end in ends]


def frame_rows(X: Any, names: list[Any]) -> list[dict[Any, Any]]:
    """A dict of these columns for each row of a data frame, with `None` for missing values."""
    rows = zip(*(column_values(X[name]) for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def column_values(column: Any) -> Any:
    """The values of a column of a data frame, with `None` for missing values."""
    if hasattr(column, "notna"):  # of pandas, which marks missing values by NaN, NaT or NA
        column = column.astype(object).where(column.notna(), None)
    return column.to_list() if hasattr(column, "to_list") else column


def series_like(X: object, values: NDArray[Any]) -> Any:
    """A series of the same library, with the same index, as the frame or series `X`."""
    from river.utils import dataframe

    return dataframe.to_native_series(values, name=None, like=dataframe.into_frame(as_frame(X)))


def frame_like(X: object, columns: Mapping[Any, NDArray[Any]]) -> Any:
    """A frame of the same library, with the same index, as the frame or series `X`."""
    from river.utils import dataframe

    return dataframe.to_native_frame(columns, like=dataframe.into_frame(as_frame(X)))


def as_frame(X: Any) -> Any:
    return X.to_frame() if is_series(X) else X


def csr_arrays(matrix: Any) -> CsrArrays:
    """indptr, indices and data of a CSR matrix, checked, so that the engine can rely on them."""
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"X must be a matrix of real numbers, got one of {matrix.dtype}")
    if matrix.shape[-1] > DIRECT_LIMIT:
        raise ValueError(must_be("X", f"a matrix of at most {DIRECT_LIMIT:,} columns", matrix.shape[-1]))
    indptr = matrix.indptr.astype(np.int64, copy=False)
    indices, data = np.ascontiguousarray(matrix.indices), np.ascontiguousarray(matrix.data, np.float64)
    if indptr[0] != 0 or (np.diff(indptr) < 0).any() or not indptr[-1] <= len(indices) == len(data):
        raise ValueError("X must be a CSR matrix whose indptr fits its indices and data")
    return indptr, indices, data


def merge_duplicates(rows: CsrArrays, n_columns: int) -> CsrArrays:
    """The arrays of a CSR matrix; values with the same row and column are summed."""
    from scipy import sparse

    indptr, indices, data = rows
    matrix = sparse.csr_array((data, indices, indptr), (len(indptr) - 1, n_columns))
    if matrix.has_canonical_format:
        return rows
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix.indptr.astype(np.int64, copy=False), matrix.indices, matrix.data


def n_rows(rows: Inputs) -> int:
    return len(rows[0]) - 1 if isinstance(rows, tuple) else len(rows)


def some_rows(rows: Inputs, begin: int, end: int) -> Inputs:
    if not isinstance(rows, tuple):
        return rows[begin:end]
    indptr, indices, data = rows
    first, last = indptr[begin], indptr[end]
    return indptr[begin : end + 1] - first, indices[first:last], data[first:last]
