"""Data frames in and out, of whichever library they are."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


def is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "shape") and not hasattr(X, "tocsr")


def frame_to_dicts(X: Any) -> list[dict[Any, Any]]:
    """The rows of a data frame as feature dicts, of a sparse one without its zeros."""
    names = list(X.columns)
    if not names:
        return [{} for _ in range(len(X))]
    try:
        matrix = X.sparse.to_coo().tocsr()
    except AttributeError:
        from river.utils import dataframe

        frame = dataframe.into_frame(X)
        # Elsewhere a str might pass for a number.
        plain = all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in frame.schema.values())
        rows = dataframe.to_numpy(frame).tolist() if plain else frame.rows()
        return [dict(zip(names, row, strict=True)) for row in rows]
    columns, values = [names[j] for j in matrix.indices.tolist()], matrix.data.tolist()
    ends = itertools.pairwise(matrix.indptr.tolist())
    return [dict(zip(columns[begin:end], values[begin:end], strict=True)) for begin, end in ends]


def series_like(X: Any, values: NDArray[Any]) -> Any:
    """A series of the library, and with the index, of the frame `X`."""
    from river.utils import dataframe

    return dataframe.to_native_series(values, name=None, like=dataframe.into_frame(X))


def frame_like(X: Any, columns: Mapping[Any, NDArray[Any]]) -> Any:
    """A frame of the library, and with the index, of the frame `X`."""
    from river.utils import dataframe

    return dataframe.to_native_frame(columns, like=dataframe.into_frame(X))
