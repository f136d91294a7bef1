import copy
import itertools
import math
import os
import pickle
import random
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from interpreter import run
from pairwise import pairwise

import stream_pegasos
from stream_pegasos import engine
from stream_pegasos.engine import pure as pure_engine
from stream_pegasos.engine.pure import Row
from stream_pegasos.engine.pure.kernel import best_mixture, look_up_loss, value_of_mixture
from stream_pegasos.engine.pure.scanner import TOKEN_PATTERNS
from stream_pegasos.engine.pure.weights import FIRST_NAME, INTERCEPT

try:
    from stream_pegasos.engine import compiled as compiled_engine
except ImportError:
    compiled_engine = None

MISSING = "the compiled engine was not built"
ENGINES = [
    pytest.param(pure_engine, id="pure"),
    pytest.param(compiled_engine, id="compiled", marks=pytest.mark.skipif(compiled_engine is None, reason=MISSING)),
]
both_engines = pytest.mark.parametrize("engine_in_test", ENGINES)
needs_compiled = pytest.mark.skipif(compiled_engine is None, reason=MISSING)

# The compiled table orders keys by their product with this number: its inverse makes keys that crowd or collide there.
INVERSE = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
EMPTY = (1 << 64) - 1


def key_of_hash(h):
    key = h * INVERSE % (1 << 64)
    return key - (1 << 64) if key >> 63 else key


# --- WeightDict -------------------------------------------------------------------------------------------------------

TOP, MIDDLE = (1 << 64) - 2, 1 << 63
keys = st.one_of(
    st.integers(-5, 20),  # in sequence
    st.integers(-(1 << 53) + 1, (1 << 53) - 1),
    st.integers((1 << 60), (1 << 60) + 10),  # as names are numbered
    st.just(-(1 << 60)),
    st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 31, 1 << 32]),
    st.integers(0, 30).map(lambda i: key_of_hash(TOP - i)),
    st.integers(0, 30).map(key_of_hash),
    st.integers(-15, 15).map(lambda i: key_of_hash(MIDDLE + i)),
).filter(lambda key: key != key_of_hash(EMPTY))
# With whole numbers and powers of two every operation is exact, however the weights are scaled inside.
whole = st.integers(-1000, 1000).map(float)
powers_of_two = st.sampled_from([1.0, -1.0, 0.5, 2.0, 0.25, -(2.0**-10), 2.0**-29, 2.0**-31])


class WeightMachine(RuleBasedStateMachine):
    """A `WeightDict` beside a plain dict of weights."""

    engine_in_test = pure_engine

    @initialize()
    def start(self):
        self.made = self.engine_in_test.WeightDict()
        self.expected = {}
        self.peak = 0.0  # the largest ‖w‖² so far, scaled as w has been since: what the tracked one may err by

    @rule(row=st.dictionaries(keys, whole, max_size=30), factor=powers_of_two)
    def add(self, row, factor):
        self.made.add(Row(list(row), list(row.values()), 2.0), factor)
        for key, x in row.items():
            if x:
                self.expected[key] = self.expected.get(key, 0.0) + factor * 2.0 * x
        self.peak = max(self.peak, self.squares())

    @rule(key=keys, values=st.lists(whole, min_size=2, max_size=4))
    def add_the_same_key_several_times(self, key, values):
        self.made.add(Row([key] * len(values), values), 1.0)
        for x in values:
            if x:
                self.expected[key] = self.expected.get(key, 0.0) + x
                self.peak = max(self.peak, self.squares())

    @rule(factor=powers_of_two)
    def scale(self, factor):
        self.made.scale(factor)
        self.expected = {key: w * factor for key, w in self.expected.items()}
        self.peak *= factor * factor

    @rule()
    def forget_all(self):
        self.made.scale(0.0)
        self.expected, self.peak = {}, 0.0

    @rule(row=st.dictionaries(keys, st.sampled_from([1.0, -2.0, 0.5]), max_size=5))
    def dot(self, row):
        total = sum(self.expected.get(key, 0.0) * x * 0.5 for key, x in row.items())
        size = sum(abs(self.expected.get(key, 0.0) * x) for key, x in row.items())
        assert self.made.dot(Row(list(row), list(row.values()), 0.5)) == pytest.approx(total, rel=0, abs=1e-12 * size)

    @precondition(lambda self: len(self.expected) > 0)
    @rule(shuffle=st.randoms(use_true_random=False))
    def pass_on_the_state_in_any_order(self, shuffle):
        state = self.made.get_state()
        order = list(range(len(state["keys"])))
        shuffle.shuffle(order)
        other = self.engine_in_test.WeightDict()
        other.add(Row([1, 2, 3], [1.0, 2.0, 3.0]), 1.0)  # to be forgotten
        other.set_state({**state, "keys": state["keys"][order], "values": state["values"][order]})
        assert pairs(other) == pairs(self.made)
        assert other.squared_norm == self.made.squared_norm
        self.made = other

    @invariant()
    def is_the_dict(self):
        assert len(self.made) == len(self.expected)
        assert pairs(self.made) == self.expected
        for key in [*self.expected, 0, 7, key_of_hash(TOP - 3), key_of_hash(5)]:
            assert self.made.get(key) == self.expected.get(key, 0.0)
        assert self.made.squared_norm == pytest.approx(self.squares(), rel=1e-12, abs=1e-12 * self.peak)

    def squares(self):
        return sum(w * w for w in self.expected.values())


def pairs(weights):
    keys, values = weights.items()
    assert keys.dtype == np.int64 and values.dtype == np.float64
    assert len(set(keys.tolist())) == len(keys)
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


@both_engines
def test_weights_are_a_dict_of_weights(engine_in_test):
    machine = type("Machine", (WeightMachine,), {"engine_in_test": engine_in_test})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=60, stateful_step_count=30, deadline=None, derandomize=True)
    )


PATTERNS_OF_KEYS = {
    "in sequence": lambda n: range(n),
    "downwards": lambda n: range(0, -n, -1),
    "columns": lambda n: random.Random(1).sample(range(1 << 20), n),
    "wide columns": lambda n: random.Random(2).sample(range(1 << 31), n),
    "any": lambda n: random.Random(3).sample(range(-(1 << 53) + 1, 1 << 53), n),
    "multiples of a power of two": lambda n: range(0, n << 32, 1 << 32),
    "names": lambda n: range(FIRST_NAME, FIRST_NAME + n),
}


@both_engines
@pytest.mark.parametrize("pattern", PATTERNS_OF_KEYS)
def test_weights_grow(engine_in_test, pattern):
    n, step = 50_000, 500
    all_keys = list(PATTERNS_OF_KEYS[pattern](n))
    weights = engine_in_test.WeightDict()
    for begin in range(0, n, step):
        some = all_keys[begin : begin + step]
        weights.add(Row(some, [float(i + 1) for i in range(begin, begin + step)]), 1.0)
        assert len(weights) == begin + step
        if engine_in_test is compiled_engine and len(weights) >= 1000:
            assert sys.getsizeof(weights) / len(weights) <= 32
    assert pairs(weights) == {key: i + 1.0 for i, key in enumerate(all_keys)}
    assert all(weights.get(key) == i + 1.0 for i, key in enumerate(all_keys))
    assert weights.squared_norm == pytest.approx(sum((i + 1.0) ** 2 for i in range(n)), rel=1e-12)


@both_engines
@pytest.mark.parametrize("where", ["bottom", "middle", "top"])
def test_keys_that_crowd_cost_no_more_memory(engine_in_test, where):
    """In a process of its own with little memory, in case they do."""
    pytest.importorskip("resource", reason="memory is limited the POSIX way")
    printed = run(
        f"""
        import json, random, resource, sys
        import stream_pegasos.{engine_in_test.__name__.split(".")[1]} as engine
        from stream_pegasos.engine.pure import Row

        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        n = 5_000
        first = {{"bottom": 0, "middle": 1 << 63, "top": (1 << 64) - 1 - n}}["{where}"]
        keys = [h * {INVERSE} % (1 << 64) for h in range(first, first + n)]
        keys = [key - (1 << 64) if key >> 63 else key for key in keys]
        random.Random(0).shuffle(keys)
        weights = engine.WeightDict()
        for i, key in enumerate(keys):
            weights.add(Row([key], [i + 1.0]), 1.0)
        right = all(weights.get(key) == i + 1.0 for i, key in enumerate(keys))
        print(json.dumps([len(weights), right, sys.getsizeof(weights) / n]))
        """
    )
    assert printed[:2] == [5_000, True]
    assert printed[2] <= 200


@both_engines
def test_the_order_of_arrival_leaves_no_trace(engine_in_test):
    arrived = [(key, float(key % 97) + 0.1) for key in random.Random(5).sample(range(-(1 << 40), 1 << 40), 3000)]
    states = []
    for seed in range(3):
        random.Random(seed).shuffle(arrived)
        weights = engine_in_test.WeightDict()
        for key, value in arrived:
            weights.add(Row([key], [value]), 1.0)
        states.append(weights.get_state())
    for state in states[1:]:
        first, here = np.argsort(states[0]["keys"]), np.argsort(state["keys"])
        assert (state["keys"][here] == states[0]["keys"][first]).all()
        assert (state["values"][here] == states[0]["values"][first]).all()
        assert state["squares"] == pytest.approx(states[0]["squares"], rel=1e-12)


@both_engines
def test_scaling_to_almost_nothing_and_back_keeps_the_weights(engine_in_test):
    weights = engine_in_test.WeightDict()
    weights.add(Row([1, 2, 3], [1.0, -3.0, 0.1]), 1.0)
    for _ in range(20):
        weights.scale(1e-7)  # folded every other time
    for _ in range(20):
        weights.scale(1e7)
    assert pairs(weights) == {key: pytest.approx(w, rel=1e-12) for key, w in {1: 1.0, 2: -3.0, 3: 0.1}.items()}
    assert weights.squared_norm == pytest.approx(10.01, rel=1e-12)


# --- encoders ---------------------------------------------------------------------------------------------------------

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
)
numbers = st.one_of(st.floats(-1e45, 1e45), st.integers(-9, 9), st.booleans(), st.integers(-9, 9).map(np.float32))
feature_dicts = st.dictionaries(names, numbers, max_size=8)


@needs_compiled
@settings(max_examples=200, deadline=None, derandomize=True)
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


def as_dict(row):
    """What a row says, whatever its order: the sum for each key, without zeros."""
    total = {}
    for key, value in zip(row.keys, row.values, strict=True):
        total[key] = total.get(key, 0.0) + value * row.factor
    return {key: value for key, value in total.items() if value}


@both_engines
@settings(max_examples=100, deadline=None, derandomize=True)
@given(x=st.dictionaries(names, st.integers(1, 9), max_size=12))
def test_distinct_names_get_distinct_keys(engine_in_test, x):
    vocabulary = engine_in_test.Vocabulary()
    row = vocabulary.row(x, True)
    assert len(set(row.keys)) == len(x)
    assert INTERCEPT not in row.keys
    found = dict(zip(vocabulary.names, range(FIRST_NAME, 1 << 62), strict=False))
    assert dict(zip(row.keys, row.values, strict=True)) == {found.get(name, name): v for name, v in x.items()}


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
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300, 1.01e45, None, "1", b"1", [1.0], {}, 1 << 2000])
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


# --- the scanner ------------------------------------------------------------------------------------------------------

NASTY = (
    "aZ09_ \t\n.,!'-éßÀÿªµ×÷İıΣσςΑ\u0301\u0307\u0300漢字かなカ한😀🏴\U0001d400\U00010400\U0001e900\U0001d7d8ⅧⒶ²½٣\u0966"
    "\x00\x1c\x1d\x1e\x1f\x7f\x85\xa0\u1680\u2003\u2028\u3000\u200b\ufeff\u00ad\ud800\udfff\uffff\U0010ffff"
)
pieces = st.one_of(
    st.text(st.sampled_from(NASTY), min_size=1, max_size=8),
    st.sampled_from(
        ["the", "quick", "a", "x" * 13, "antidisestablishmentarianism", "ΟΔΟΣ", "İstanbul", " ", "  ", "\n"]
    ),
)
repeats = st.sampled_from([1, 1, 1, 1, 2, 3, 11, 12, 13, 31, 63, 64, 65, 127, 1023, 1024, 1025, 4095, 4096, 4097])
texts = st.lists(st.tuples(pieces, repeats), max_size=5).map(
    lambda parts: "".join(piece * min(n, 5000 // len(piece)) for piece, n in parts)
)
scanner_options = st.fixed_dictionaries(
    {
        "analyzer": st.sampled_from(["word", "word", "word", "char", "char_wb"]),
        "token_pattern": st.sampled_from(TOKEN_PATTERNS),
        "lowercase": st.booleans(),
        "stop_words": st.sampled_from([frozenset(), frozenset(["the", "a", "σ", "漢字", "x" * 13, ""])]),
        "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3), (1, 5), (3, 7)]),
        "n_features": st.sampled_from([1, 2, 3, 1000, 1 << 10, 1 << 20, (1 << 20) + 1, 1 << 30, (1 << 31) - 1]),
        "alternate_sign": st.booleans(),
        "binary": st.booleans(),
        "norm": st.sampled_from([None, "l1", "l2"]),
        "mask_digits": st.booleans(),
        "prefix_length": st.sampled_from([0, 0, 1, 2, 4, 20]),
        "boundaries": st.booleans(),
    }
)


@needs_compiled
@settings(max_examples=100, deadline=None, derandomize=True)
@given(scanner_options, st.lists(texts, min_size=1, max_size=2))
def test_scanners_agree(options, some):
    pure, compiled = pure_engine.Scanner(**options), compiled_engine.Scanner(**options)
    for text in some:
        one = pure.transform_one(text)
        assert compiled.transform_one(text) == one
        assert as_dict(compiled.row(text, True)) == pytest.approx({i: v for i, v in one.items() if v}, rel=1e-12)
    for indptr, indices, data, expected in by_row(pure.transform_many(some), compiled.transform_many(some)):
        assert dict(zip(indices, data, strict=True)) == expected
        assert len(indices) == indptr


def by_row(expected, given):
    for array in given:
        assert array.dtype in (np.int64, np.int32, np.float64)
    indptr = given[0].tolist()
    for i, (begin, end) in enumerate(itertools.pairwise(indptr)):
        first, last = expected[0][i], expected[0][i + 1]
        row = dict(zip(expected[1][first:last].tolist(), expected[2][first:last].tolist(), strict=True))
        yield end - begin, given[1][begin:end].tolist(), given[2][begin:end].tolist(), row


def word_scanner(engine_in_test, token_pattern=r"\b\w\w+\b", **changes):
    options = {
        "analyzer": "word",
        "token_pattern": token_pattern,
        "lowercase": True,
        "stop_words": frozenset(),
        "ngram_range": (1, 1),
        "n_features": (1 << 31) - 1,
        "alternate_sign": True,
        "binary": False,
        "norm": None,
    }
    return engine_in_test.Scanner(**options | changes)


@needs_compiled
@pytest.mark.parametrize("pattern", TOKEN_PATTERNS)
@pytest.mark.parametrize("changes", [{}, {"ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (2, 4)}])
def test_scanners_agree_wherever_blocks_and_segments_end(pattern, changes):
    pure, compiled = word_scanner(pure_engine, pattern, **changes), word_scanner(compiled_engine, pattern, **changes)
    ends = [*range(61, 68), *range(126, 130), *range(4093, 4099), *range(8190, 8194)]
    for end in ends:
        for filler in ("ab ", "é. ", "漢!", "\U0001d400 "):
            short = (filler * end)[: end % 4096]
            far = (filler * (end // len(filler.encode()) + 1))[: end // len(filler.encode())]
            for tail in ("", "x", "Word", " y", "!", "é", "漢字", "😀", "longer_than_twelve_bytes tail"):
                for text in (short + tail, far + tail) if end > 200 and not changes else (short[:140] + tail,):
                    assert compiled.transform_one(text) == pure.transform_one(text), (end, filler, tail)


@needs_compiled
@pytest.mark.parametrize("letter", ["a", "é", "漢", "\U0001d400"])
def test_one_token_of_any_length(letter):
    for n in (1, 2, 3, 4, 5, 11, 12, 13, 16, 17, 63, 64, 65, 4095, 4096, 4097, 8192, 12288, 100_000):
        for text in (letter * n, f" {letter * n} ", "x" * 37 + " " + letter * n + "."):
            for changes in ({}, {"ngram_range": (1, 2)}, {"stop_words": frozenset([letter * n])}):
                scanners = word_scanner(pure_engine, **changes), word_scanner(compiled_engine, **changes)
                assert scanners[0].transform_one(text) == scanners[1].transform_one(text), n


@both_engines
def test_ready_made_ngrams_are_hashed_as_they_are(engine_in_test):
    """Whatever they contain, and whatever `lowercase` says of texts."""
    ngrams = ["Upper", "İ" * 50, "ΟΔΟΣ", "", " ", "12 ab", "\ud800", "\x00", "😀", "x" * 300, "Upper", "a\nb"]
    for lowercase in (False, True):
        scanner = word_scanner(engine_in_test, analyzer="ngrams", lowercase=lowercase)
        expected = {}
        for ngram in ngrams:
            index, sign = pure_engine.Scanner(*scanner.arguments).index(ngram)
            expected[index] = expected.get(index, 0.0) + sign
        assert scanner.transform_one(ngrams) == expected
        assert scanner.transform_one([]) == {}


@both_engines
def test_hashes_are_those_of_the_reference(engine_in_test):
    sklearn_utils = pytest.importorskip("sklearn.utils", reason="scikit-learn has the reference")
    scanner = word_scanner(engine_in_test, n_features=(1 << 31) - 1)
    for n in range(70):
        ngram = "".join(random.Random(n).choices("abcdefg é漢😀", k=n))
        h = int(sklearn_utils.murmurhash3_32(ngram.encode(), seed=0))
        assert scanner.index(ngram) == (abs(h) % ((1 << 31) - 1), -1.0 if h < 0 else 1.0)


def word_with_hash(h):
    """A word of eight ASCII letters or digits whose MurmurHash3 is `h`, found by running the hash backwards."""
    mask = 0xFFFFFFFF

    def rotate(x, r):
        return (x << r | x >> (32 - r)) & mask

    h ^= h >> 16
    h = h * pow(0xC2B2AE35, -1, 1 << 32) & mask
    h ^= h >> 13 ^ h >> 26
    h = h * pow(0x85EBCA6B, -1, 1 << 32) & mask
    h ^= h >> 16
    h ^= 8
    before_add = rotate((h - 0xE6546B64) * pow(5, -1, 1 << 32) & mask, 19)
    for letters in itertools.product("abcdefghijklmnopqrstuvwxyz0123456789", repeat=4):
        k = int.from_bytes("".join(letters).encode(), "little") * 0xCC9E2D51 & mask
        first = (rotate(rotate(k, 15) * 0x1B873593 & mask, 13) * 5 + 0xE6546B64) & mask
        k = rotate((before_add ^ first) * pow(0x1B873593, -1, 1 << 32) & mask, 17)
        end = (k * pow(0xCC9E2D51, -1, 1 << 32) & mask).to_bytes(4, "little")
        if end.isalnum() and end == end.lower():
            return "".join(letters) + end.decode()
    raise LookupError


@both_engines
@pytest.mark.parametrize("h", [0x80000000, 0x7FFFFFFF, 0x80000001, 0, 0xFFFFFFFF, 1])
def test_the_ends_of_the_range_of_hashes(engine_in_test, h):
    word = word_with_hash(h)
    signed = h - (1 << 32) if h >> 31 else h
    for n_features in (1, 2, 3, 1000, 1 << 20, 1 << 30, (1 << 31) - 1):
        scanner = word_scanner(engine_in_test, n_features=n_features)
        expected = abs(signed) % n_features, -1.0 if signed < 0 else 1.0
        assert scanner.index(word) == expected
        assert scanner.transform_one(f"{word} {word}") == {expected[0]: 2.0 * expected[1]}


@both_engines
def test_the_same_text_and_others_in_turn(engine_in_test):
    """A scanner remembers the text it saw last; it must not mistake another one for it."""
    scanner = word_scanner(engine_in_test)
    a, b = "one two", "three"
    rows = {text: word_scanner(engine_in_test).transform_one(text) for text in (a, b, "")}
    for text in (a, a, b, a, "", "", a, b, b, ""):
        assert scanner.transform_one(text) == rows[text]
        assert as_dict(scanner.row(text, True)) == rows[text]
    for bad in (None, 1, b"one two", ["one"]):
        with pytest.raises(TypeError, match="text must be a str"):
            scanner.transform_one(bad)
        with pytest.raises(TypeError, match="text must be a str"):
            scanner.transform_many([a, bad, b])
        assert scanner.transform_one(a) == rows[a]


# --- learning ---------------------------------------------------------------------------------------------------------

CHOICES = {"batch_size": (1, 2, 5), "t0": (0.0, 1.0, 0.5, 7.25), "project": (True, False), "scaling": (0.0, 1.0, 3.5)}
NAMES = ["a", "b", 3, -1, ("c", 1), 1 << 60]


def against_dense(engine_in_test, dense_pegasos, l2, options, stream):
    """Learn a stream of (x, y, c, flush) one by one here and there, comparing all that can be seen at each step."""
    batch_size, t0, project, scaling = options
    learner = engine_in_test.Learner(l2, batch_size, t0, project, scaling)
    vocabulary = engine_in_test.Vocabulary()
    dense = dense_pegasos(len(NAMES) + 1, l2, batch_size, t0, project)
    for x, y, c, flush in stream:
        vector = np.array([*(x.get(name, 0.0) for name in NAMES), scaling])
        if dense.is_close_call(vector):
            continue
        error = 1e-10 * (dense.largest + np.abs(dense.w).max()) + 1e-300
        margin = learner.margin(vocabulary, x)
        assert margin == pytest.approx(dense.margin(vector), rel=1e-9, abs=error * np.abs(vector).sum())
        learner.learn(vocabulary, x, y, c)
        dense.learn(vector, y, c)
        if flush:
            learner.flush()
            dense.flush()
        assert learner.n_iterations == dense.t
        assert learner.n_buffered == len(dense.batch)
        error = 1e-10 * dense.largest + 1e-300
        assert weights_of(learner, vocabulary) == pytest.approx(dense.w, rel=1e-9, abs=error)
        squares = sum(w * w for w in pairs(learner.weights).values())
        assert learner.weights.squared_norm == pytest.approx(squares, rel=1e-9, abs=1e-12 * dense.largest**2)


def weights_of(learner, vocabulary):
    keys = {name: FIRST_NAME + i for i, name in enumerate(vocabulary.names)} | {3: 3, -1: -1}
    named = [learner.weights.get(keys[name]) if name in keys else 0.0 for name in NAMES]
    return np.array([*named, learner.weights.get(INTERCEPT)])


@both_engines
@pytest.mark.parametrize("chosen", pairwise(**CHOICES), ids=str)
def test_learning_is_the_published_algorithm(engine_in_test, dense_pegasos, chosen):
    generator = np.random.default_rng(0)
    for l2 in (1e-4, 0.1, 3.0):
        stream = []
        for _ in range(60):
            present = [name for name in NAMES if generator.random() < 0.5]
            x = {name: float(generator.normal() * 10.0 ** generator.integers(-2, 3)) for name in present}
            c = float(generator.choice([1.0, 1.0, 0.0, 0.3, 20.0]))
            stream.append((x, float(generator.choice([-1.0, 1.0])), c, generator.random() < 0.1))
        against_dense(engine_in_test, dense_pegasos, l2, chosen.values(), stream)


values = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3, allow_subnormal=False))
examples = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), values, max_size=5),
    st.sampled_from([-1.0, 1.0]),
    st.sampled_from([1.0, 1.0, 0.0, 0.5, 100.0]),
    st.sampled_from([False, False, False, True]),
)


@both_engines
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    l2=st.sampled_from([1e-6, 1e-4, 0.01, 1.0, 100.0]),
    options=st.tuples(
        st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0, 3.75, 1e4]), st.booleans(), st.sampled_from([0.0, 0.1, 2.0])
    ),
    stream=st.lists(examples, max_size=25),
)
def test_learning_is_the_published_algorithm_on_any_stream(engine_in_test, dense_pegasos, l2, options, stream):
    against_dense(engine_in_test, dense_pegasos, l2, options, stream)


SIZES = ((1e6, 1.0), (1e9, 1e-4), (1e20, 1.0), (1e44, 1e-30), (1.0, 1e20))  # of the values, and λ


@both_engines
@pytest.mark.parametrize("chosen", pairwise(batch_size=(1, 3), t0=(0.0, 0.5), scaling=(0.0, 1.0), size=SIZES), ids=str)
def test_the_scale_is_folded_in_time(engine_in_test, dense_pegasos, chosen):
    """Projections from far outside the ball shrink the scale by orders of magnitude at every step."""
    generator = np.random.default_rng(3)
    options, (size, l2) = (chosen["batch_size"], chosen["t0"], True, chosen["scaling"]), chosen["size"]
    learner = engine_in_test.Learner(l2, *options)
    vocabulary = engine_in_test.Vocabulary()
    dense = dense_pegasos(len(NAMES) + 1, l2, *options[:3])
    for i in range(300):
        x = {name: float(generator.normal()) * size for name in NAMES if generator.random() < 0.5}
        y = 1.0 if i % 2 else -1.0
        vector = np.array([*(x.get(name, 0.0) for name in NAMES), options[3]])
        if dense.is_close_call(vector) and abs(dense.margin(vector)) < 2.0 and dense.largest < 1e3:
            continue
        y = -math.copysign(y, dense.margin(vector)) if abs(dense.margin(vector)) > 2.0 and i % 3 else y
        learner.learn(vocabulary, x, y, 1.0)
        dense.learn(vector, y, 1.0)
        assert learner.weights.get_state()["scale"] >= 1e-9
        assert weights_of(learner, vocabulary) == pytest.approx(dense.w, rel=1e-6, abs=1e-6 * np.abs(dense.w).max())
        squares = sum(w * w for w in pairs(learner.weights).values())
        assert learner.weights.squared_norm == pytest.approx(squares, rel=1e-9)
        assert squares * l2 <= 1.0 + 1e-9


@both_engines
def test_the_closed_form(engine_in_test):
    """With t0 = 0, k = 1 and no projection, w = (1/(λt)) · the sum of all c·y·x that violated the margin."""
    l2 = 0.02
    learner = engine_in_test.Learner(l2, 1, 0.0, False, 0.0)
    encoder = engine_in_test.Rows(1 << 53)
    generator = np.random.default_rng(7)
    n, d = 20_000, 50
    X = generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.2)
    y = np.where(X[:, :5].sum(axis=1) + generator.normal(size=n) * 0.3 > 0, 1.0, -1.0)
    c = generator.choice([0.0, 0.5, 1.0, 2.0], n)
    rows, columns = np.nonzero(X)
    indptr = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
    margins, _ = learner.predict_learn_many(encoder, (indptr, columns.astype(np.int32), X[rows, columns]), y, c)
    total = np.zeros(d)
    for t in range(n):
        w = total / (l2 * t) if t else total
        assert margins[t] == pytest.approx(w @ X[t], rel=1e-9, abs=1e-9)
        if y[t] * margins[t] < 1.0:
            total += c[t] * y[t] * X[t]
    assert learner.n_iterations == n
    assert pairs(learner.weights) == pytest.approx(dict(enumerate(total / (l2 * n))), rel=1e-9)


@both_engines
def test_a_margin_of_exactly_one_is_no_violation(engine_in_test):
    # λ = ½ and t0 = 1: the first step is w = 1/(½·2)·x = (1, 0), on which every operation is exact.
    for batch_size in (1, 2):
        learner = engine_in_test.Learner(0.5, batch_size, 1.0, False, 0.0)
        vocabulary = engine_in_test.Vocabulary()
        for _ in range(batch_size):
            learner.learn(vocabulary, {0: 1.0}, 1.0, 1.0)
        assert pairs(learner.weights) == {0: 1.0}
        for _ in range(batch_size):
            learner.learn(vocabulary, {0: 1.0, 1: 1.0}, 1.0, 1.0)
        assert pairs(learner.weights) == {0: pytest.approx(2 / 3)}
        for _ in range(batch_size):  # margin 2/3
            learner.learn(vocabulary, {0: 1.0, 1: 1.0}, 1.0, 1.0)
        assert pairs(learner.weights) == {0: pytest.approx(0.5 + 0.5), 1: pytest.approx(0.5)}


@both_engines
def test_examples_that_weigh_nothing_still_count_as_steps(engine_in_test):
    learner = engine_in_test.Learner(0.1, 1, 0.0, True, 1.0)
    vocabulary = engine_in_test.Vocabulary()
    learner.learn(vocabulary, {"a": 1.0}, 1.0, 0.0)
    assert (learner.n_iterations, len(learner.weights)) == (1, 0)
    learner.learn(vocabulary, {}, -1.0, 1.0)
    assert pairs(learner.weights) == {INTERCEPT: pytest.approx(-1 / math.sqrt(0.1))}


@both_engines
@pytest.mark.parametrize("batch_size", [1, 3])
def test_many_at_once_is_one_by_one(engine_in_test, batch_size):
    generator = random.Random(11)
    X = [{generator.randrange(100): generator.gauss(0, 1) for _ in range(10)} for _ in range(500)]
    y = np.array([generator.choice([-1.0, 1.0]) for _ in X])
    c = np.array([generator.choice([0.0, 1.0, 2.5]) for _ in X])
    one, many = (engine_in_test.Learner(1e-3, batch_size, 2.0, True, 0.5) for _ in range(2))
    vocabulary = engine_in_test.Vocabulary()
    expected = []
    for x, sign, weight in zip(X, y, c, strict=True):
        margin = one.margin(vocabulary, x)
        expected.append((margin, one.probability(margin)))
        one.learn(vocabulary, x, sign, weight)
    margins, probabilities = many.predict_learn_many(vocabulary, X, y, c)
    assert list(zip(margins.tolist(), probabilities.tolist(), strict=True)) == expected
    assert same_state(one, many)
    before = many.get_state()
    again, _ = many.predict_learn_many(vocabulary, X)
    assert again.tolist() == [one.margin(vocabulary, x) for x in X]
    assert same_state(before, many)
    for empty in (None, np.empty(0)):
        assert [len(out) for out in many.predict_learn_many(vocabulary, [], empty)] == [0, 0]


def same_state(*those):
    states = [it if isinstance(it, dict) else it.get_state() for it in those]
    return all(
        state.keys() == states[0].keys() and all(np.array_equal(state[name], states[0][name]) for name in state)
        for state in states
    )


@both_engines
@pytest.mark.parametrize("batch_size", [1, 4])
def test_exchanging_the_classes_is_learning_the_other_way_round(engine_in_test, batch_size):
    one, other = (engine_in_test.Learner(0.01, batch_size, 0.5, True, 1.0) for _ in range(2))
    vocabulary = engine_in_test.Vocabulary()
    generator = random.Random(2)
    for i in range(50):
        x = {generator.randrange(9): generator.gauss(0, 1) for _ in range(4)}
        y = generator.choice([-1.0, 1.0])
        one.learn(vocabulary, x, -y if i < 23 else y, 1.0)
        other.learn(vocabulary, x, y, 1.0)
        if i == 22:
            one.negate()
    assert pairs(one.weights) == pytest.approx(pairs(other.weights), rel=1e-12)
    assert one.n_buffered == other.n_buffered
    assert one.get_state()["slope"] == pytest.approx(other.get_state()["slope"])


@both_engines
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    margin=st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 5e-324, 1e300])),
    slope=st.sampled_from([1e-200, 1e-9, 0.3, 1.0, 25.0, 1e200]),
)
def test_probabilities_agree_with_decisions(engine_in_test, margin, slope):
    learner = engine_in_test.Learner(1e-4, 1, 0.0, True, 0.0)
    learner.set_state({**learner.get_state(), "slope": slope})
    for m in (margin, -margin, margin * 1e-300):
        p = learner.probability(m)
        assert 0.0 < p < 1.0
        assert (p > 0.5) == (m > 0.0)
        assert p + (1.0 - p) == 1.0
        assert 0.0 < 1.0 - p < 1.0


@both_engines
@pytest.mark.parametrize(
    "l2, project, weight", [(1.0, True, 1.0), (1e-30, False, 1e60), (1e-30, True, 1.0), (1e30, False, 1)]
)
def test_margins_of_any_size_leave_the_state_finite(engine_in_test, l2, project, weight):
    for agreeing, size in itertools.product((True, False), (1e45, 1e10, 1e-50, 1e-90, 1e-160, 1e-200, 5e-324)):
        learner = engine_in_test.Learner(l2, 1, 0.0, project, 0.0)
        vocabulary = engine_in_test.Vocabulary()
        for i in range(1, 300):
            y = 1.0 if agreeing or i % 2 else -1.0
            learner.learn(vocabulary, {0: size, 1: -size}, y, weight)
        state = learner.get_state()
        assert {name: np.isfinite(value).all() for name, value in state.items()} == dict.fromkeys(state, True)
        assert 0.0 < learner.probability(learner.margin(vocabulary, {0: size})) < 1.0
        assert len(learner.weights) <= 2


@needs_compiled
@pytest.mark.parametrize("options", [(1, 0.0, True, 0.0), (3, 2.5, False, 1.0), (2, 0.0, True, 0.5)], ids=str)
def test_engines_agree_and_pass_their_state_on(options):
    """A stream that changes engine at every step gives what either gives alone."""
    generator = random.Random(4)
    stream = [
        ({generator.choice(NAMES): generator.gauss(0, 1) for _ in range(4)}, generator.choice([-1.0, 1.0]))
        for _ in range(200)
    ]
    alone = [(e.Learner(1e-2, *options), e.Vocabulary()) for e in (pure_engine, compiled_engine)]
    handed = (pure_engine.Learner(1e-2, *options), pure_engine.Vocabulary())
    for i, (x, y) in enumerate(stream):
        e = (pure_engine, compiled_engine)[i % 2]
        learner = e.Learner(*handed[0].arguments)
        learner.set_state(handed[0].get_state())
        handed = learner, e.Vocabulary(handed[1].names)
        for learner, vocabulary in (*alone, handed):
            learner.learn(vocabulary, x, y, 1.0)
    states = [learner.get_state() for learner, _ in (*alone, handed)]
    for state in states[1:]:
        for name in ("n_iterations", "n_buffered"):
            assert state[name] == states[0][name]
        for name in ("slope", "calibration_squares"):
            assert state[name] == pytest.approx(states[0][name], rel=1e-9)
        assert sorted(state["buffer_keys"]) == sorted(states[0]["buffer_keys"])
    for learner, vocabulary in (*alone, handed):
        assert vocabulary.names == alone[0][1].names
        assert pairs(learner.weights) == pytest.approx(pairs(alone[0][0].weights), rel=1e-9)


@both_engines
def test_averages_survive_folding(engine_in_test, dense_pegasos):
    """Projections from far outside the ball make the scale fold at every few steps."""
    generator = np.random.default_rng(5)
    for from_step, by_t, average in ((1, False, True), (40, False, 40), (1, True, "weighted")):
        learner, vocabulary = (
            engine_in_test.Learner(1.0, 1, 0.5, True, 0.0, from_step, by_t),
            engine_in_test.Vocabulary(),
        )
        dense = dense_pegasos(len(NAMES) + 1, 1.0, 1, 0.5, True, average=average)
        for _ in range(120):
            x = {name: float(generator.normal()) * 1e6 for name in NAMES if generator.random() < 0.5}
            y, vector = float(generator.choice([-1.0, 1.0])), np.array([*(x.get(name, 0.0) for name in NAMES), 0.0])
            learner.learn(vocabulary, x, y, 1.0)
            dense.learn(vector, y, 1.0)
            assert weights_of(learner, vocabulary) == pytest.approx(dense.predicting, rel=1e-9, abs=1e-9)
            margin = pytest.approx(float(dense.predicting @ vector), rel=1e-6, abs=1e-5)
            assert learner.margin(vocabulary, x) == margin


# --- several columns, and kernels -------------------------------------------------------------------------------------


def random_stream(n, seed):
    generator = np.random.default_rng(seed)
    return [
        {
            int(k): float(v)
            for k, v in zip(generator.choice(12, 5, replace=False), generator.normal(size=5), strict=True)
        }
        for _ in range(n)
    ]


@needs_compiled
@pytest.mark.parametrize(
    "chosen",
    pairwise(batch_size=(1, 3), t0=(0.0, 2.0), project=(True, False), scaling=(0.0, 0.5), joint=(True, False)),
    ids=str,
)
def test_engines_agree_on_several_columns_and_pass_their_state_on(chosen):
    options = chosen.values()
    generator = np.random.default_rng(6)
    X, n = random_stream(240, 6), 240
    # Classes in the order in which they come, up to seven of them.
    numbers: dict[int, int] = {}
    y = np.array(
        [numbers.setdefault(int(c), len(numbers)) for c in np.minimum(generator.integers(0, 7, n), np.arange(n) // 9)]
    )
    w = generator.random(n)
    made = [(e.MultiLearner(0.05, *options), e.Vocabulary()) for e in (pure_engine, compiled_engine)]
    for i in range(100):
        for learner, vocabulary in made:
            learner.learn(vocabulary, X[i], int(y[i]), float(w[i]))
    (margins, slopes), (others, other_slopes) = (
        learner.predict_learn_many(vocabulary, X[100:], y[100:], w[100:]) for learner, vocabulary in made
    )
    assert margins == pytest.approx(others, rel=1e-9, abs=1e-9)
    assert slopes == pytest.approx(other_slopes, rel=1e-9)
    exchanged = []
    for (learner, _), e in zip(made, (compiled_engine, pure_engine), strict=True):
        exchanged.append((e.MultiLearner(0.05, *options), e.Vocabulary()))
        exchanged[-1][0].set_state(learner.get_state())
    for learner, vocabulary in made + exchanged:
        learner.flush()
        for x in X[:20]:
            expected = pytest.approx(made[0][0].margins(made[0][1], x), rel=1e-9, abs=1e-9)
            assert learner.margins(vocabulary, x) == expected


@both_engines
@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_cleared_column_is_a_new_one(engine_in_test, batch_size):
    """Learners whose second column was cleared go on as those in which it has just been added."""
    signs = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
    learners = [engine_in_test.MultiLearner(0.1, batch_size, 0.0, True, 1.0, False) for _ in range(2)]
    vocabulary = engine_in_test.Vocabulary()
    for learner in learners:
        learner.add_column()
    cleared, fresh = learners
    cleared.add_column()
    for i, x in enumerate(random_stream(50, 7)):
        cleared.learn(vocabulary, x, i % 3, 1.0, signs)
        fresh.learn(vocabulary, x, i % 3, 1.0, np.ascontiguousarray(signs[:, :1]))
    cleared.clear_column(1)
    fresh.add_column()
    for i, x in enumerate(random_stream(50, 8)):
        assert cleared.margins(vocabulary, x) == pytest.approx(fresh.margins(vocabulary, x), rel=1e-9, abs=1e-9)
        for learner in learners:
            learner.learn(vocabulary, x, i % 3, 1.0, signs)


KERNELS = [
    (kernel, budget, merge)
    for kernel in ("linear", "polynomial", "rbf", "cosine")
    for budget, merge in ((0, False), (10, False), (10, True))
    if not merge or kernel == "rbf"
]


@needs_compiled
@pytest.mark.parametrize("kernel, budget, merge", KERNELS, ids=str)
def test_engines_agree_on_kernels_and_pass_their_state_on(kernel, budget, merge):
    X = random_stream(300, 9)
    y = np.array([1.0 if x.get(0, 0.0) + x.get(1, 0.0) * x.get(2, 0.0) > 0.0 else -1.0 for x in X])
    X, y = X + X[:50], np.concatenate([y, -y[:50]])  # some come again, with the other label
    arguments = (0.01, 1.0, kernel, 0.7, 1.0, 2, budget, merge)
    made = [(e.KernelLearner(*arguments), e.Vocabulary()) for e in (pure_engine, compiled_engine)]
    for i in range(100):
        for learner, vocabulary in made:
            learner.learn(vocabulary, X[i], float(y[i]), 1.0)
    margins, others = (learner.predict_learn_many(vocabulary, X[100:], y[100:])[0] for learner, vocabulary in made)
    assert margins == pytest.approx(others, rel=1e-8, abs=1e-8)
    states = [learner.get_state() for learner, _ in made]
    for name in ("coefficients", "indptr", "keys", "values"):
        assert states[0][name] == pytest.approx(states[1][name], rel=1e-8)
    for e, state in ((compiled_engine, states[1]), (pure_engine, states[0])):
        again = e.KernelLearner(*arguments)
        again.set_state(state)
        back = again.get_state()
        assert all(np.array_equal(back[name], state[name]) for name in state)


def test_the_loss_of_a_merger():
    """The table and the mixture against a fine grid over h."""
    for share, similarity in itertools.product((0.01, 0.2, 0.45, 0.5), (1e-9, 0.05, 0.3, 0.9, 0.999)):
        h = np.linspace(0.0, 1.0, 200_001)
        values = share * similarity ** (1.0 - h) ** 2 + (1.0 - share) * similarity ** (h * h)
        best = best_mixture(share, similarity)
        assert value_of_mixture(best, share, similarity) == pytest.approx(values.max(), rel=1e-8)
        length = share**2 + (1.0 - share) ** 2 + 2.0 * share * (1.0 - share) * similarity
        assert look_up_loss(share, similarity) == pytest.approx(length - values.max() ** 2, abs=2e-3)


# --- pickling and the choice of an engine -----------------------------------------------------------------------------


def trained():
    """One object of each kind of the engine in use, none of them empty."""
    vocabulary = engine.Vocabulary()
    learner = engine.Learner(1e-3, 3, 0.5, True, 1.0)
    for i in range(20):
        learner.learn(vocabulary, {"a": 1.0 + i, i: -2.0, ("b", i): 0.5}, 1.0 if i % 3 else -1.0, 1.0)
    return learner, vocabulary


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_are_equal_and_independent(duplicate):
    learner, vocabulary = trained()
    weights, names, before = duplicate(learner.weights), duplicate(vocabulary), learner.get_state()
    other = duplicate(learner)
    assert same_state(other, learner)
    assert other.arguments == learner.arguments
    assert pairs(weights) == pairs(learner.weights)
    assert names.names == vocabulary.names
    for made in (learner, other):
        made.learn(duplicate(vocabulary), {"new": 1.0, "a": 3.0}, 1.0, 1.0)
    assert same_state(other, learner)
    other.learn(names, {"newer": 1.0}, -1.0, 1.0)
    weights.add(Row([1], [1.0]), 1.0)
    assert "newer" in names.names and "newer" not in vocabulary.names
    assert learner.n_iterations == before["n_iterations"] + 1
    scanner = word_scanner(engine, stop_words=frozenset(["the"]), ngram_range=(1, 2))
    assert duplicate(scanner).transform_one("the cat the dog") == scanner.transform_one("cat dog")


def test_the_engine_is_chosen_by_the_environment():
    code = "import json, stream_pegasos.engine as e; print(json.dumps([e.NAME, e.Learner.__module__]))"
    assert run(code, STREAM_PEGASOS_ENGINE="pure") == ["pure", "stream_pegasos.engine.pure.learner"]
    if compiled_engine is not None:
        assert run(code, STREAM_PEGASOS_ENGINE="") == ["compiled", "stream_pegasos.engine.compiled"]
        assert run(code, STREAM_PEGASOS_ENGINE="compiled") == ["compiled", "stream_pegasos.engine.compiled"]


def test_an_unknown_engine_is_an_error_that_names_it():
    done = run(
        """
        import json
        try:
            import stream_pegasos
        except ImportError as error:
            print(json.dumps(str(error)))
        """,
        STREAM_PEGASOS_ENGINE="fast",
    )
    assert "'fast'" in done and "'pure'" in done


WITHOUT_COMPILED = """
import json, sys, warnings

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "stream_pegasos.engine.compiled":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        import stream_pegasos, stream_pegasos.engine, stream_pegasos.learners.text
        name = stream_pegasos.engine.NAME
    except ImportError as error:
        name = str(error)
print(json.dumps([name, [str(w.message) for w in caught if "stream_pegasos" in str(w.message)]]))
"""


def test_without_a_compiled_engine_the_pure_one_says_so_once():
    name, said = run(WITHOUT_COMPILED, STREAM_PEGASOS_ENGINE="")
    assert name == "pure"
    assert len(said) == 1 and "STREAM_PEGASOS_ENGINE=pure" in said[0]
    assert run(WITHOUT_COMPILED, STREAM_PEGASOS_ENGINE="pure") == ["pure", []]
    name, said = run(WITHOUT_COMPILED, STREAM_PEGASOS_ENGINE="compiled")
    assert "compiler" in name and said == []


@pytest.mark.parametrize("where", ["source folder", "installed", "for another Python"])
def test_the_warning_tells_the_true_cause_and_cure(where, tmp_path):
    source = Path(stream_pegasos.__file__).parent
    shutil.copytree(source, tmp_path / "stream_pegasos", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    if where == "source folder":
        (tmp_path / "pyproject.toml").touch()
    if where == "for another Python":
        (tmp_path / "stream_pegasos" / f"compiled_engine{sysconfig.get_config_var('EXT_SUFFIX')}").write_bytes(b"other")
    code = """
        import sys

        # An editable install finds modules that a copy lacks.
        sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
        import stream_pegasos; print(stream_pegasos.__file__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "STREAM_PEGASOS_ENGINE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(tmp_path))
    assert {
        "source folder": f"source folder {tmp_path}, where no engine was built",
        "installed": "installed without a C compiler",
        "for another Python": "the compiled one cannot be loaded (",
    }[where] in done.stderr
    cure = f"{sys.executable} -m pip install -e {tmp_path}"
    assert (cure in done.stderr) == (where == "source folder")


def test_importing_pulls_in_nothing_optional():
    loaded = run("import sys, json, stream_pegasos; print(json.dumps(sorted(sys.modules)))")
    for heavy in ("sklearn", "matplotlib", "typer", "rich", "vowpalwabbit", "polars"):
        assert heavy not in loaded
