"""Feature dicts and sparse rows as keys and values, in both engines."""

import enum
import itertools
import math

import numpy as np
import pytest
from engines import as_dict, both_engines, compiled_engine, needs_compiled, pure_engine
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_pegasos.engine.pure.weights import FIRST_NAME, INTERCEPT


class Color(str):  # as a member of an Enum that is a str, too
    def __str__(self):
        return f"Color.{super().__str__()}"


class Digit(enum.IntEnum):
    TWO = 2


names = st.one_of(
    st.integers(-3, 3),
    st.integers(-(1 << 54), 1 << 54),
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([1 << 53, (1 << 53) - 1, -(1 << 53), 1 - (1 << 53), 1 << 60, (1 << 60) + 1, -(1 << 60), -1, -2]),
    st.text(max_size=3),
    st.booleans(),
    st.tuples(st.integers(-2, 2), st.text(max_size=1)),
    st.integers(-3, 3).map(np.int64),
    st.integers(0, 255).map(np.uint8),
    st.integers(0, (1 << 64) - 1).map(np.uint64),
    st.booleans().map(np.bool_),
    st.text(max_size=2).map(np.str_),
    st.sampled_from([Color("red"), Digit.TWO]),
)
numbers = st.one_of(st.floats(-1e45, 1e45), st.integers(-9, 9), st.booleans(), st.integers(-9, 9).map(np.float32))
feature_dicts = st.dictionaries(names, numbers, max_size=8)


@needs_compiled
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.tuples(feature_dicts, st.booleans()), max_size=6), st.lists(feature_dicts, max_size=4))
def test_feature_dicts_become_the_same_rows_on_both_engines(dicts, more):
    pure, compiled = pure_engine.Vocabulary(["a", (1, "b")]), compiled_engine.Vocabulary(["a", (1, "b")])
    for x, learning in dicts:
        before = dict(x)
        assert as_dict(compiled.row(x, learning)) == as_dict(pure.row(x, learning))
        assert x == before
        assert compiled.names == pure.names
    for learning in (False, True):
        rows = [as_dict(row) for row in pure.rows(more, learning)]
        assert [as_dict(row) for row in compiled.rows(more, learning)] == rows
        assert compiled.names == pure.names


@both_engines
@given(x=st.dictionaries(names, st.integers(1, 9), max_size=12))
def test_distinct_names_get_distinct_keys(engine_in_test, x):
    vocabulary = engine_in_test.Vocabulary()
    row = vocabulary.row(x, True)
    assert len(set(row.keys)) == len(x)
    assert INTERCEPT not in row.keys
    found = dict(zip(vocabulary.names, range(FIRST_NAME, 1 << 62), strict=False))
    assert dict(zip(row.keys, row.values, strict=True)) == {found.get(name, name): v for name, v in x.items()}


@both_engines
def test_names_that_compare_equal_are_one_feature(engine_in_test):
    vocabulary = engine_in_test.Vocabulary()
    rows = [as_dict(vocabulary.row(x, True)) for x in ({Color("red"): 1.0, Digit.TWO: 2.0}, {"red": 1.0, 2: 2.0})]
    assert rows[0] == rows[1] and vocabulary.names == ["red"]


@both_engines
def test_predicting_and_zeros_bring_no_names(engine_in_test):
    vocabulary = engine_in_test.Vocabulary(["known"])
    assert as_dict(vocabulary.row({"known": 2.0, "unknown": 1.0, 7: 3.0}, False)) == {FIRST_NAME: 2.0, 7: 3.0}
    vocabulary.row({"zero": 0.0, "negative zero": -0.0}, True)
    assert vocabulary.names == ["known"]
    # A name that has no key must not be taken for a key that means something.
    assert as_dict(vocabulary.row({1 << 60: 1.0, "unknown": 1.0, (1, 2): 1.0, -(1 << 60): 1.0}, False)) == {}
    assert as_dict(vocabulary.row({-1: 1.0}, False)) == {-1: 1.0}


@both_engines
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, 1e300, 1.01e45, None, "1", bytearray(b"1"), [1.0], {}, 1 << 2000]
)
def test_names_of_a_failing_call_are_forgotten(engine_in_test, bad, position):
    vocabulary = engine_in_test.Vocabulary(["before"])
    xs = [{"a": 1.0, "b": 1.0}, {"c": 1.0, "d": 1.0}, {"e": 1.0}]
    xs[position] = {"new": 1.0, "bad": bad, "newer": 1.0}
    with pytest.raises((TypeError, ValueError), match="bad"):
        vocabulary.rows(xs, True)
    with pytest.raises((TypeError, ValueError), match="bad"):
        vocabulary.row(xs[position], True)
    assert vocabulary.names == ["before"]
    assert as_dict(vocabulary.row({"then": 1.0}, True)) == {FIRST_NAME + 1: 1.0}


@both_engines
@pytest.mark.parametrize("bad", [1.5, None, b"a", (1, 2.5), ("a", (None,)), math.nan, frozenset()])
def test_only_some_names_are_names(engine_in_test, bad):
    vocabulary = engine_in_test.Vocabulary()
    for learning in (True, False):
        with pytest.raises(TypeError, match="name"):
            vocabulary.row({"new": 1.0, bad: 1.0}, learning)
    assert vocabulary.names == []


@both_engines
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sparse_rows_are_taken_as_they_are(engine_in_test, dtype):
    indptr = np.array([0, 2, 2, 5], np.int64)
    indices, data = np.array([5, 3, 7, 7, 0], dtype), np.array([1.0, 2.0, 0.5, 0.25, -1.0])
    rows = engine_in_test.Rows(1 << 53).rows((indptr, indices, data), False)
    assert [as_dict(row) for row in rows] == [{5: 1.0, 3: 2.0}, {}, {7: 0.75, 0: -1.0}]
    for position, bad in itertools.product(range(5), (math.nan, math.inf, 1e300)):
        damaged = data.copy()
        damaged[position] = bad
        with pytest.raises(ValueError, match=f"column {indices[position]} "):
            engine_in_test.Rows(1 << 53).rows((indptr, indices, damaged), False)
    for bad in (-1, -5, np.iinfo(dtype).min, *([1 << 60, (1 << 63) - 1] if dtype is np.int64 else [])):
        damaged = indices.copy()
        damaged[2] = bad
        with pytest.raises(ValueError, match="column"):
            engine_in_test.Rows(1 << 53).rows((indptr, damaged, data), False)
