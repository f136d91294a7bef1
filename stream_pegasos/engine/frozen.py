"""The layout of a frozen model: what an adaptive rule needs to predict, in a few bytes a feature.

A feature has a scale and weights in half precision; the weights are multiples of `unit`. An entry of the table is two
words of 32 bits: the hash of a key, and its record. Entries are sorted by hash; each stands at the home place of its
hash or fewer than `longest` places after it. With two classes, the second word has the weight and, in its higher half,
the scale. Otherwise it is a place in `records`. There, the first word has the scale and, in its higher half, the number
of columns; a word for each column follows, with its number and, in the higher half, the weight.

The table and the records may come from a file that nobody has checked, so that none of their numbers may do harm: a
feature whose index is outside of the memory is unknown.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import COLUMNS, LARGEST_SUM, WORD, Declaration, Field, State, count
from stream_pegasos.engine.pure.adaptive_state import (
    LARGEST_LOG_RATIO,
    LEAST_SCALE,
    OF_ONE_WEIGHT,
    OF_VECTORS,
    ORDERED,
    dense_fields,
)
from stream_pegasos.engine.pure.driver import CALIBRATION, CONFIDENCE, Learner
from stream_pegasos.engine.pure.weights import MULTIPLIER

# Keys are below 2³², and so are their hashes; the largest is that of a gap.
BITS = 32
HIGHER = np.uint32(16)  # the place of the higher half of a word
GAP = 2**BITS - 1
LOAD = 0.82  # of the home places of hashes
# The entries that share a home place, and the bytes of the cache line that they fill.
TOGETHER, LINE = 8, 64
# The most places from home on that are probed; a table that would need more hashes its keys by another multiplier.
LONGEST = 1024
# The number of a column takes 16 bits.
MOST_COLUMNS = 2**16 - 1
# In `unit`, weights are below two to this power, well inside half precision.
LARGEST_EXPONENT = 14
# With several columns smaller weights are left out, as no margin visibly changes.
LEAST_WEIGHT = 1e-3

FROZEN = (
    Field("table", of_type=WORD, shape=("words",)),
    Field("records", of_type=WORD, shape=("record words",)),
    count("n_features"),
    count("multiplier", high=GAP),
    Field("longest", TOGETHER, LONGEST, of_type=int),
    Field("unit", 2.0**-1000, 2.0**1000),
)


def declared(reduction: str) -> Declaration:
    """What the state of a `FrozenLearner` consists of."""
    problems = "thresholds" if reduction == "ordinal" else COLUMNS

    def last_column(state: State) -> float:
        return len(state["order"]) - 1

    return Declaration(
        (
            *FROZEN,
            Field("unknown_scale", 0.0, LEAST_SCALE + 2.0 * LARGEST_LOG_RATIO),
            Field("intercepts", 0.0, LARGEST_SUM, (problems,), signed=True),
            *((count("order", COLUMNS, high=last_column),) if reduction == "ordinal" else ()),
            count("n_iterations"),
            *CALIBRATION[:1],
            *CONFIDENCE[:2],
        ),
        (
            ("the table ends in the middle of an entry", lambda state: len(state["table"]) % 2 == 0),
            ("the table has no room", lambda state: len(state["table"]) // 2 >= state["longest"] + TOGETHER),
            ("there is no record", lambda state: len(state["records"]) > 0),
            ("the hashes cannot be undone", lambda state: int(state["multiplier"]) % 2 == 1),
            *ORDERED * (reduction == "ordinal"),
            OF_VECTORS,
        ),
        dense_fields(reduction),
    )


def refuse() -> NoReturn:
    raise TypeError(
        "a frozen model only predicts; go on learning with the model that it was frozen from, and freeze that anew"
    )


def half(bits: Any) -> Any:
    """The numbers of half precision in the lower 16 bits; every pattern is a finite number."""
    exponents, mantissas = bits >> 10 & 31, bits & 1023
    sizes = np.ldexp(mantissas + 1024.0 * (exponents > 0), np.maximum(exponents, 1).astype(np.int64) - 25)
    return np.where(bits & 0x8000, -sizes, sizes)


def halves(numbers: NDArray[np.float64]) -> NDArray[np.uint32]:
    """The bits of numbers in half precision."""
    return numbers.astype(np.float16).view(np.uint16).astype(np.uint32)


def nothing_of(reduction: str) -> State:
    """The state of a frozen learner that knows nothing."""
    several = reduction != "two"
    nothing = np.zeros(0, np.uint32)
    return {
        **table_of(np.zeros(0, np.int64), nothing),
        "records": np.zeros(LINE // 4, np.uint32),
        "unit": 1.0,
        "unknown_scale": 1.0,
        "intercepts": np.zeros(0 if several else 1),
        **({"order": np.zeros(0, np.int64)} if reduction == "ordinal" else {}),
        "n_iterations": 0,
        "slope": 1.0,
        "confidence_intercept": 0.0,
        "confidence_slope": 1.0,
    }


def frozen_rest(learner: Learner, state: State) -> State:
    """The part of a frozen state that is not about features, made from the learner's state."""
    smoothing = learner.arguments[3]
    prior = 0.0 if learner.several else state["intercept_log_ratio"]
    unknown_scale = halves(np.array(LEAST_SCALE + abs(prior) if smoothing else 1.0))
    return {
        "unknown_scale": float(half(unknown_scale)),
        "intercepts": learner.intercept,
        **({"order": state["order"]} if learner.arguments[-1] == "ordinal" else {}),
        "n_iterations": learner.n_iterations,
        **dict(zip(("slope", "confidence_intercept", "confidence_slope"), learner.calibrated, strict=True)),
        **{field.name: state[field.name] for field in learner.declaration.optional if field.name in state},
    }


def frozen_features(learner: Learner, state: State) -> State:
    """The part of a frozen state that is about features, made from the learner's state.

    Raises
    ------
    TypeError
        If features are not hashed.
    ValueError
        If there are too many classes.
    """
    keys, ratios, weights = state["keys"], state["log_ratios"], state["values"]
    if (keys < 0).any() or (keys > GAP).any():
        raise TypeError("only hashed features can be frozen, which are ints below 2³²")
    if not learner.several:
        ratios = np.abs(ratios - state["intercept_log_ratio"])
    scales = LEAST_SCALE + ratios if learner.arguments[3] else np.ones(len(keys))
    largest = float(np.abs(weights).max(initial=0.0))
    unit = math.ldexp(1.0, math.frexp(largest)[1] - LARGEST_EXPONENT) if largest else 1.0
    if learner.arguments[-1] not in OF_ONE_WEIGHT:
        if len(state["class_counts"]) > MOST_COLUMNS:
            n = len(state["class_counts"])
            raise ValueError(f"there are {n:,} classes; a frozen model has at most {MOST_COLUMNS:,}")
        known, records = records_of(scales, state["n_taught"], state["taught_columns"], weights, unit)
        return {**table_of(keys, known), "records": records, "unit": unit}
    if learner.several:
        of_first = state["taught_columns"] == 0
        of_each, weights = weights[of_first], np.zeros(len(keys))
        weights[np.repeat(np.arange(len(keys)), state["n_taught"])[of_first]] = of_each
    known = halves(weights / unit) | halves(scales) << HIGHER
    return {**table_of(keys, known), "records": np.zeros(LINE // 4, np.uint32), "unit": unit}


def records_of(
    scales: NDArray[np.float64],
    n_taught: NDArray[np.int64],
    columns: NDArray[np.int64],
    weights: NDArray[np.float64],
    unit: float,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The place of each feature's record, and all records, without weights that change nothing."""
    matters = np.abs(weights) >= LEAST_WEIGHT
    ends = np.concatenate([[0], np.cumsum(matters)])[np.cumsum(n_taught)]
    taught = columns[matters].astype(np.uint32) | halves(weights[matters] / unit) << HIGHER
    return shared_records(halves(scales) | np.diff(ends, prepend=0).astype(np.uint32) << HIGHER, taught, ends.tolist())


def shared_records(
    firsts: NDArray[np.uint32], taught: NDArray[np.uint32], ends: list[int]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The place of each feature's record, and all records: the first word of each, and the words of its columns, which
    end at `ends`. Features with equal records share one, as many do that only one message had.
    """
    places: dict[bytes, int] = {}
    known = []
    begin = n_words = 0
    for first, end in zip(firsts, ends, strict=True):
        known.append(places.setdefault(first.tobytes() + taught[begin:end].tobytes(), n_words))
        if known[-1] == n_words:
            n_words += 1 + end - begin
        begin = end
    if n_words > GAP:
        raise ValueError("what is known of the features takes more than 16 GB")
    rest = bytes(-4 * n_words % LINE or LINE * (n_words == 0))
    return np.array(known, np.uint32), np.frombuffer(b"".join([*places, rest]), np.uint32)


def table_of(keys: NDArray[np.int64], known: NDArray[np.uint32]) -> State:
    """A table with these keys, and what it says of them."""
    n_homes = max(math.ceil(len(keys) / LOAD / TOGETHER), 1)
    multiplier = MULTIPLIER % 2**BITS
    while True:
        hashes = keys.astype(np.uint64) * np.uint64(multiplier) % np.uint64(2**BITS)
        order = np.argsort(hashes)
        hashes = hashes[order]
        homes = (hashes * np.uint64(n_homes) >> np.uint64(BITS)).astype(np.int64) * TOGETHER
        number = np.arange(len(keys))
        places = number + np.maximum.accumulate(homes - number)
        longest = (int((places - homes).max(initial=0)) // TOGETHER + 1) * TOGETHER
        if longest <= LONGEST and GAP not in hashes[-1:]:
            break
        multiplier = multiplier * MULTIPLIER % 2**BITS
    table = np.full((n_homes * TOGETHER + longest, 2), [GAP, 0], np.uint32)
    table[places, 0], table[places, 1] = hashes, known[order]
    return {"table": table.ravel(), "n_features": len(keys), "multiplier": multiplier, "longest": longest}


def entries_of(state: State) -> dict[int, int]:
    """The second words of the entries, by key."""
    hashes, known = state["table"][::2].astype(np.uint64), state["table"][1::2]
    keys = hashes * np.uint64(pow(state["multiplier"], -1, 2**BITS)) % np.uint64(2**BITS)
    return dict(zip(keys[hashes != GAP].tolist(), known[hashes != GAP].tolist(), strict=True))
