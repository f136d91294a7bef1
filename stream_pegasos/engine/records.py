"""The memory layout of the compiled engine's records: NumPy types, each the same as in C, with readers by name. The
engine refuses to be imported if the sizes differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.adaptive_state import OF_FEATURE, OF_PROBLEM

SINGLE, DOUBLE, COUNT, POSITION = np.float32, np.float64, np.int64, np.uint32

# Adaptive: a feature of two classes; a feature of several, whose columns are stored apart, one array after another; the
# record of a problem. The age is the unit of the evidence.
PAIR = np.dtype([("hash", np.uint64), *((name, SINGLE) for name in OF_FEATURE), ("age", np.uint32)])
OF_SEVERAL = ("log_ratios", "counts")
OF_FEATURES = (*OF_FEATURE, *OF_SEVERAL)
SEVERAL = np.dtype(
    [
        ("hash", np.uint64),
        ("begin", POSITION),
        *((name, SINGLE) for name in OF_SEVERAL),
        *((name, np.uint32) for name in ("age", "n", "layout")),
    ]
)
PROBLEM = np.dtype([(name, DOUBLE) for name in OF_PROBLEM])

# Pegasos: the record of a column, its steps, and the buffer for the next one.
OF_WEIGHTS = ("scale", "squares", "sums_scale", "sums_weight")
WEIGHTS_COLUMN = np.dtype([(name, DOUBLE) for name in OF_WEIGHTS])
STEPS = np.dtype(
    [*((name, COUNT) for name in ("n_iterations", "n_buffered", "batch_size")), ("due", np.intc)], align=True
)
BUFFERED = np.dtype([("hash", np.uint64), ("buffer_values", DOUBLE), ("buffer_columns", COUNT)])

SMALLEST_SINGLE, LARGEST_SINGLE = 2.0**-126, 2.0**127  # numbers outside become 0, or the largest


def weights_dtype(width: int, average: bool) -> np.dtype[Any]:
    """A feature of Pegasos with `width` columns: v and, for the average, u."""
    return np.dtype([("hash", np.uint64), *((name, DOUBLE, (width,)) for name in ("values", "sums")[: 1 + average])])


def as_singles(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """The numbers in single precision, limited as in the compiled engine."""
    within = np.where(np.abs(numbers) < SMALLEST_SINGLE, 0.0, np.clip(numbers, -LARGEST_SINGLE, LARGEST_SINGLE))
    return within.astype(SINGLE)


def read_numbers(records: NDArray[np.void], age: int, year: int) -> dict[str, NDArray[np.float32]]:
    """The numbers of adaptive features, with the evidence in the unit of this age; a year has this many bits."""
    numbers = {name: records[name].copy() for name in OF_FEATURES if name in (records.dtype.names or ())}
    if (records["age"] != age).any():
        years = np.minimum(age - records["age"], 16)
        factors = np.where(years < 16, np.ldexp(1.0, -year * years.astype(np.int32)), 0.0)
        for name in numbers.keys() - {"values", "log_ratios"}:
            numbers[name] = as_singles(numbers[name] * factors)
    return numbers
