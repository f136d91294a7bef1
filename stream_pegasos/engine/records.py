"""The memory layout of the compiled engine's records: NumPy types, each the same as in C, with readers by name. The
engine refuses to be imported if the sizes differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.feature_schema import AGE_BITS, OF_EITHER, OF_PAIR, OF_SEVERAL
from stream_pegasos.engine.pure.adaptive_state import PROBLEMS
from stream_pegasos.engine.pure.pegasos import OF_AVERAGE, OF_WEIGHTS, STEPS

SINGLE, DOUBLE, COUNT, POSITION = np.float32, np.float64, np.int64, np.uint32
# Adaptive: a feature of two classes; a feature of several, whose columns are stored apart, one array after another; the
# record of a problem. The age is the unit of the evidence.
EITHER = [(field.name, SINGLE) for field in OF_EITHER]
PAIR = np.dtype(
    [
        ("hash", np.uint64),
        *((field.name, SINGLE) for field in OF_PAIR if field not in OF_EITHER),
        ("age", np.uint32),
        *EITHER,
    ],
    align=True,
)
SEVERAL = np.dtype(
    [
        ("hash", np.uint64),
        ("begin", POSITION),
        *((field.name, SINGLE) for field in OF_SEVERAL if field not in OF_EITHER),
        *((name, np.uint32) for name in ("age", "n", "layout")),
        *EITHER,
    ],
    align=True,
)
NUMBERS = {field.name: field for field in OF_PAIR + OF_SEVERAL}  # of a feature
PROBLEM = np.dtype([(name, DOUBLE) for name in PROBLEMS])
# What `records.h` must have been written from.
LAYOUTS = tuple(field.record for field in OF_PAIR), tuple(field.record for field in OF_SEVERAL)

# Pegasos: the record of a column, its steps, and the buffer for the next one.
WEIGHTS_COLUMN = np.dtype([(field.name, DOUBLE) for field in OF_WEIGHTS + OF_AVERAGE])
STEPS_OF_COLUMN = np.dtype([*((name, COUNT) for name in (*STEPS, "batch_size")), ("due", np.intc)], align=True)
BUFFERED = np.dtype([("hash", np.uint64), ("buffer_values", DOUBLE), ("buffer_columns", COUNT)])

SMALLEST_SINGLE, LARGEST_SINGLE = 2.0**-126, 2.0**127  # numbers outside become 0, or the largest


def weights_dtype(width: int, average: bool) -> np.dtype[Any]:
    """A feature of Pegasos with `width` columns: v and, for the average, u."""
    return np.dtype([("hash", np.uint64), *((name, DOUBLE, (width,)) for name in ("values", "sums")[: 1 + average])])


def as_singles(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """The numbers in single precision, limited as in the compiled engine."""
    within = np.where(np.abs(numbers) < SMALLEST_SINGLE, 0.0, np.clip(numbers, -LARGEST_SINGLE, LARGEST_SINGLE))
    return within.astype(SINGLE)


def names_in(dtype: np.dtype[Any]) -> list[str]:
    """The names of the numbers in the record of an adaptive feature."""
    return [name for name in dtype.names or () if name in NUMBERS]


def read_numbers(records: NDArray[np.void], age: int) -> dict[str, NDArray[np.float32]]:
    """The numbers of adaptive features, with the evidence in the unit of this age."""
    numbers = {name: records[name].copy() for name in names_in(records.dtype)}
    if (records["age"] != age).any():
        years = np.minimum(age - records["age"], 16)
        factors = np.where(years < 16, np.ldexp(1.0, -AGE_BITS * years.astype(np.int32)), 0.0)
        for name in numbers:
            if NUMBERS[name].ages:
                numbers[name] = as_singles(numbers[name] * factors)
    return numbers
