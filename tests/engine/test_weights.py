"""Weights that are scaled lazily, in both engines."""

import random
import sys

import numpy as np
import pytest
from engines import INVERSE, both_engines, compiled_engine, key_of_hash, pairs, pure_engine
from hypothesis import settings
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

from stream_pegasos.engine.pure import Row
from stream_pegasos.engine.pure.weights import FIRST_NAME

EMPTY = (1 << 64) - 1

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
columns = st.integers(0, 7)


class WeightMachine(RuleBasedStateMachine):
    """A `WeightDict` beside a plain dict of weights for each column."""

    engine_in_test = pure_engine

    @initialize(n_columns=st.sampled_from([1, 1, 2, 5]))
    def start(self, n_columns):
        self.made = self.engine_in_test.WeightDict(n_columns=n_columns)
        self.expected = [{} for _ in range(n_columns)]
        self.known = set()  # keys that have a record
        # For each column the largest ‖w‖² so far, scaled as w has been since: what the tracked one may err by.
        self.peaks = [0.0] * n_columns

    def column(self, number):
        return number % len(self.expected)

    def learned(self, column, key, step):
        self.known.add(key)
        self.expected[column][key] = self.expected[column].get(key, 0.0) + step
        self.peaks[column] = max(self.peaks[column], self.squares(column))

    @rule(row=st.dictionaries(keys, whole, max_size=30), factor=powers_of_two, column=columns)
    def add(self, row, factor, column):
        column = self.column(column)
        self.made.add(Row(list(row), list(row.values()), 2.0), factor, column)
        for key, x in row.items():
            if x:
                self.learned(column, key, factor * 2.0 * x)

    @rule(key=keys, values=st.lists(whole, min_size=2, max_size=4), column=columns)
    def add_the_same_key_several_times(self, key, values, column):
        column = self.column(column)
        self.made.add(Row([key] * len(values), values), 1.0, column)
        for x in values:
            if x:
                self.learned(column, key, x)

    @rule(factor=powers_of_two, column=columns)
    def scale(self, factor, column):
        column = self.column(column)
        self.made.scale(factor, column)
        self.expected[column] = {key: w * factor for key, w in self.expected[column].items()}
        self.peaks[column] *= factor * factor

    @rule(column=columns)
    def forget_all(self, column):
        column = self.column(column)
        self.made.scale(0.0, column)
        self.expected[column], self.peaks[column] = {}, 0.0
        if len(self.expected) == 1:
            self.known = set()

    @rule()
    def add_column(self):
        if len(self.expected) < 9:
            self.made.add_column()
            self.expected.append({})
            self.peaks.append(0.0)

    @rule(column=columns)
    def clear_column(self, column):
        column = self.column(column)
        self.made.clear_column(column)
        self.expected[column], self.peaks[column] = {}, 0.0

    @rule()
    def negate(self):
        self.made.negate()
        self.expected = [{key: -w for key, w in of_column.items()} for of_column in self.expected]

    @rule(row=st.dictionaries(keys, st.sampled_from([1.0, -2.0, 0.5]), max_size=5), column=columns)
    def dot(self, row, column):
        column = self.column(column)
        expected = self.expected[column]
        total = sum(expected.get(key, 0.0) * x * 0.5 for key, x in row.items())
        size = sum(abs(expected.get(key, 0.0) * x) for key, x in row.items())
        for product in (self.made.dot, self.made.predict):
            found = product(Row(list(row), list(row.values()), 0.5), column)
            assert found == pytest.approx(total, rel=0, abs=1e-12 * size)

    @precondition(lambda self: len(self.known) > 0)
    @rule(shuffle=st.randoms(use_true_random=False))
    def pass_on_the_state_in_any_order(self, shuffle):
        state = self.made.get_state()
        order = list(range(len(state["keys"])))
        shuffle.shuffle(order)
        other = self.engine_in_test.WeightDict()
        other.add(Row([1, 2, 3], [1.0, 2.0, 3.0]), 1.0)  # to be forgotten
        other.set_state({**state, "keys": state["keys"][order], "values": state["values"][order]})
        for column in range(len(self.expected)):
            assert pairs(other, column) == pairs(self.made, column)
            assert other.squared_norm(column) == self.made.squared_norm(column)
        self.made = other

    @invariant()
    def is_the_dicts(self):
        assert self.made.n_columns == len(self.expected)
        assert len(self.made) == len(self.known)
        for column, expected in enumerate(self.expected):
            assert pairs(self.made, column) == {key: expected.get(key, 0.0) for key in self.known}
            for key in [*self.known, 0, 7, key_of_hash(TOP - 3), key_of_hash(5)]:
                assert self.made.get(key, column) == expected.get(key, 0.0)
            near = {"rel": 1e-12, "abs": 1e-12 * self.peaks[column]}
            assert self.made.squared_norm(column) == pytest.approx(self.squares(column), **near)

    def squares(self, column):
        return sum(w * w for w in self.expected[column].values())


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
    assert weights.squared_norm() == pytest.approx(sum((i + 1.0) ** 2 for i in range(n)), rel=1e-12)


@both_engines
@pytest.mark.parametrize("where", ["bottom", "middle", "top"])
def test_keys_that_crowd_cost_no_more_memory(engine_in_test, where):
    """In a process of its own with little memory, in case they do."""
    pytest.importorskip("resource", reason="memory is limited the POSIX way")
    printed = run(
        f"""
        import json, random, resource, sys
        import {engine_in_test.__name__} as engine
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
    assert weights.squared_norm() == pytest.approx(10.01, rel=1e-12)
