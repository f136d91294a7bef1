"""Both engines, and what their tests compare."""

import copyreg
import math
import sys
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pytest

from stream_pegasos import engine
from stream_pegasos.engine import pure as pure_engine

try:
    from stream_pegasos.engine import compiled as compiled_engine
except ImportError:
    compiled_engine = None

needs_compiled = pytest.mark.skipif(compiled_engine is None, reason="the compiled engine was not built")
both_engines = pytest.mark.parametrize(
    "engine_in_test",
    [pytest.param(pure_engine, id="pure"), pytest.param(compiled_engine, id="compiled", marks=needs_compiled)],
)


@contextmanager
def on_pure():
    """Whatever is made meanwhile is on the pure engine, as where no C compiler was found."""
    kinds = {kind: copyreg.dispatch_table[engine.in_use(kind)] for kind in pure_engine.Learner.kinds.values()}
    kinds |= {getattr(pure_engine, name): copyreg.dispatch_table[getattr(engine, name)] for name in OBJECTS}
    with ExitStack() as patches:
        patches.enter_context(mock.patch.dict(copyreg.dispatch_table, kinds))
        patches.enter_context(mock.patch.object(engine, "chosen", pure_engine))
        for module in [module for name, module in sys.modules.items() if name.startswith("stream_pegasos.")]:
            if not module.__name__.startswith("stream_pegasos.engine."):
                for name in {*pure_engine.__all__} - TYPES & vars(module).keys():
                    patches.enter_context(mock.patch.object(module, name, getattr(pure_engine, name)))
        yield


OBJECTS = ("Lock", "Scanner", "Vocabulary")
TYPES = {"Encoder", "Learner", "Lock", "OneByOne"}  # which say what is taken, or are inherited
# The compiled table orders keys by their product with this number: its inverse makes keys that crowd or collide there.
INVERSE = pow(0x9E3779B97F4A7C15, -1, 1 << 64)

# Names of features of each kind.
NAMES = ["a", "b", 3, -1, ("c", 1), 1 << 60]


def key_of_hash(h):
    key = h * INVERSE % (1 << 64)
    return key - (1 << 64) if key >> 63 else key


def as_dict(row):
    """What a row says, whatever its order: the sum for each key, without zeros."""
    total = {}
    for key, value in zip(row.keys, row.values, strict=True):
        total[key] = total.get(key, 0.0) + value * row.factor
    return {key: value for key, value in total.items() if value}


def assert_near(found, expected, rel, abs, what=""):
    """What `pytest.approx` says of arrays, which takes most of the time of tests that compare many."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, what
    with np.errstate(invalid="ignore"):  # inf - inf
        near = np.isfinite(expected) & (np.abs(found - expected) <= np.maximum(rel * np.abs(expected), abs))
    assert (near | (found == expected)).all(), (what, found, expected)


def pairs(weights, number=-1):
    """The weights of a class, by key; of the last one if none is named."""
    keys, values = weights.items()
    assert keys.dtype == np.int64 and values.dtype == np.float64
    assert values.shape == (len(keys), max(weights.n_columns, 1 if getattr(weights, "has_class_columns", True) else 2))
    assert len(set(keys.tolist())) == len(keys)
    return dict(zip(keys.tolist(), values[:, number].tolist(), strict=True))


def full(triangle):
    """The symmetric matrix of a lower triangle, row by row."""
    d = round((math.sqrt(8 * len(triangle) + 1) - 1) / 2)
    made = np.zeros((d, d))
    made[np.tril_indices(d)] = triangle
    return made + np.tril(made, -1).T


def same_state(*those):
    """Whether learners, or states, are the same bit for bit; single precision holds the same numbers as double."""
    states = [it if isinstance(it, dict) else it.get_state() for it in those]
    return all(
        state.keys() == states[0].keys() and all(bits_of(state[name]) == bits_of(states[0][name]) for name in state)
        for state in states
    )


def bits_of(numbers):
    numbers = np.asarray(numbers)
    return numbers.astype(np.result_type(numbers, np.int64)).tobytes()


def random_stream(n, seed):
    generator = np.random.default_rng(seed)
    return [
        {
            int(k): float(v)
            for k, v in zip(generator.choice(12, 5, replace=False), generator.normal(size=5), strict=True)
        }
        for _ in range(n)
    ]
