"""The table of features in the compiled engine: whatever the keys, it holds what a dict does, in little memory."""

import pickle
import random
import sys

import numpy as np
import pytest
from engines import INVERSE, compiled_engine, key_of_hash, needs_compiled, pairs
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

from stream_pegasos import AdaptiveClassifier, PegasosClassifier, engine
from stream_pegasos.engine.pure import Row
from stream_pegasos.engine.pure.weights import FIRST_NAME, MULTIPLIER

pytestmark = [needs_compiled, pytest.mark.skipif(engine.NAME == "pure", reason="the pure engine keeps dicts of Python")]

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

    @initialize(n_columns=st.sampled_from([1, 1, 2, 5]))
    def start(self, n_columns):
        self.made = compiled_engine.WeightDict(n_columns=n_columns)
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
        other = compiled_engine.WeightDict()
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


def test_weights_are_a_dict_of_weights():
    run_state_machine_as_test(
        WeightMachine, settings=settings(max_examples=20, stateful_step_count=30, deadline=None, derandomize=True)
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


@pytest.mark.parametrize("pattern", PATTERNS_OF_KEYS)
def test_it_grows(pattern):
    n, step = 20_000, 500
    all_keys = list(PATTERNS_OF_KEYS[pattern](n))
    weights = compiled_engine.WeightDict()
    sizes = []
    for begin in range(0, n, step):
        weights.add(Row(all_keys[begin : begin + step], [float(i + 1) for i in range(begin, begin + step)]), 1.0)
        assert len(weights) == begin + step
        sizes.append(sys.getsizeof(weights) / len(weights))
    assert np.mean(sizes[2:]) <= 36 and max(sizes[2:]) <= 48
    assert pairs(weights) == {key: i + 1.0 for i, key in enumerate(all_keys)}
    assert all(weights.get(key) == i + 1.0 for i, key in enumerate(all_keys))
    assert weights.squared_norm() == pytest.approx(sum((i + 1.0) ** 2 for i in range(n)), rel=1e-12)


OF_A_SECRET = """
import json
import os
import random

os.urandom = lambda n: bytes([1, *[0] * (n - 1)])  # by which the index takes bits of the hash as they are

from engines import compiled_engine, key_of_hash
from stream_pegasos.engine.pure import Row

found = []
for group, n_homes in ((3, 1), (3, 17), (3, 1024), (2, 1024), (0, 1024)):  # of 1,024 slots: most are for one group
    draw = random.Random(n_homes)
    hashes = [(group if i % 3 else i % 8) << 42 | draw.randrange(n_homes) << 32 | i << 46 for i in range(1, 3_000)]
    keys, weights = [*map(key_of_hash, hashes)], compiled_engine.WeightDict()
    for begin in range(0, len(keys), 50):
        weights.add(Row(keys[begin : begin + 50], [begin + 1.0] * len(keys[begin : begin + 50])), 1.0)
    wrong = [i for i, key in enumerate(keys) if weights.get(key) != i // 50 * 50 + 1.0]
    found.append([wrong, len(weights), weights.get(key_of_hash(group << 42))])
print(json.dumps(found))
"""


def test_no_secret_makes_it_lose_a_key():
    """By some secrets many hashes belong to the same slots."""
    assert run(OF_A_SECRET) == [[[], 2_999, 0.0]] * 5


def test_a_feature_of_the_adaptive_rule_takes_little_memory():
    learner, rows = compiled_engine.AdaptiveLearner(0.5, False, 5.0, 0.5, 0.0, 0.1), compiled_engine.Rows(1 << 31)
    columns, sizes = np.random.default_rng(11).permutation(1 << 20)[:60_000].astype(np.int64), []
    for begin in range(0, len(columns), 500):
        row = np.array([0, 500]), columns[begin : begin + 500], np.ones(500)
        learner.predict_learn_many(rows, row, np.array([1.0]))
        assert len(learner) == begin + 500
        sizes.append(sys.getsizeof(learner) / len(learner))
    assert np.mean(sizes[8:]) <= 48 and max(sizes[8:]) <= 60
    assert set(learner.items()[0].tolist()) == set(columns.tolist())


# --- keys that a stranger chose so that they stand side by side -------------------------------------------------------

# Hashes are products with MULTIPLIER, modulo 2⁶⁴, and with a Fibonacci number that is hardly anything: those of its
# multiples are all near one another.
CROWDING = 102_334_155


def test_keys_that_crowd_cost_no_more_memory():
    """In a process of its own with little memory, in case they do."""
    pytest.importorskip("resource", reason="memory is limited the POSIX way")
    printed = run(
        f"""
        import json, random, resource, sys
        import stream_pegasos.engine.compiled as engine
        from stream_pegasos.engine.pure import Row

        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        n, found = 5_000, []
        for first in (0, 1 << 63, (1 << 64) - 1 - n):
            keys = [h * {INVERSE} % (1 << 64) for h in range(first, first + n)]
            keys = [key - (1 << 64) if key >> 63 else key for key in keys]
            random.Random(0).shuffle(keys)
            weights = engine.WeightDict()
            for i, key in enumerate(keys):
                weights.add(Row([key], [i + 1.0]), 1.0)
            right = all(weights.get(key) == i + 1.0 for i, key in enumerate(keys))
            found.append(right and len(weights) == n and sys.getsizeof(weights) / n <= 200)
        print(json.dumps(found))
        """
    )
    assert printed == [True] * 3


@pytest.mark.parametrize(
    "make",
    [
        AdaptiveClassifier,
        lambda: PegasosClassifier(l2=0.01, batch_size=3, average=True),
        lambda: PegasosClassifier(multi_class="crammer_singer", l2=0.01),
    ],
)
def test_what_features_are_called_makes_no_difference(make):
    """Nor does the secret that decides where they stand show in what is saved."""
    crowded, spread, draw = make(), make(), random.Random(7)
    for _ in range(200):
        x = {i: draw.choice([-1.0, 0.5, 2.0]) for i in draw.sample(range(-2000, 2000), 60)}
        named, y = {i * CROWDING: value for i, value in x.items()}, draw.random() < 0.5
        assert crowded.predict_proba_one(named) == pytest.approx(spread.predict_proba_one(x), rel=1e-9, abs=1e-12)
        crowded.learn_one(named, y)
        spread.learn_one(x, y)
    keys, of_spread = (model.trainer.learner.get_state()["keys"].tolist() for model in (crowded, spread))
    assert len(keys) > 2000 and keys == [key * CROWDING if key >= -2000 else key for key in of_spread]
    saved = pickle.dumps(crowded)
    assert pickle.dumps(pickle.loads(saved)) == saved


@pytest.mark.parametrize("average", [False, True])
def test_sums_do_not_depend_on_the_secret(average):
    draw = random.Random(3)
    w = {key * CROWDING: draw.gauss(0.0, 1.0) for key in draw.sample(range(-4000, 4000), 5000)}
    weights = compiled_engine.WeightDict(average)
    for key, value in w.items():
        weights.add(Row([key], [value]), 1.0)
    weights.scale(2.0**-100)  # so small that the scale goes into the values, whose squares are added up anew
    expected = 0.0
    for value in w.values():
        expected += (value * 2.0**-100) ** 2
    assert weights.squared_norm() == expected


HANGS = """
    import json
    import numpy as np
    from sklearn.utils import murmurhash3_32
    from stream_pegasos import {classifier}, HashedBagOfWords, TextClassifier

    # All words of four letters or digits, and of those one in 32: whose columns agree in the bits that decide.
    letters = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", np.uint8)
    words = np.stack(np.meshgrid(*[letters] * 4), axis=-1).reshape(-1, 4).copy().view("<i4").ravel()
    columns = np.abs(murmurhash3_32(words).astype(np.int64)) % (1 << 30)
    places = columns.astype(np.uint64) * np.uint64({multiplier}) >> np.uint64({shift}) & np.uint64(31)
    words, columns = words[places == 0], columns[places == 0]
    text = " ".join(words.view("S4").astype(str))

    features = HashedBagOfWords(
        1 << 30, lowercase=False, token_pattern=r"\\w+", binary={binary}, norm=None, alternate_sign=False
    )
    found = features.transform_one(text)
    expected = dict(zip(*(array.tolist() for array in np.unique(columns, return_counts=True))))
    model = TextClassifier(features, {classifier}())
    for label in (False, True, False):
        model.learn_one(text, label)
    right = found == (dict.fromkeys(expected, 1.0) if {binary} else expected)
    print(json.dumps([len(words), right, model.predict_one(text)]))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("classifier, binary", [("AdaptiveClassifier", True), ("PegasosClassifier", False)])
@pytest.mark.parametrize("multiplier, shift", [(1, 16), (MULTIPLIER, 59)], ids=["in the text", "in the model"])
def test_a_text_of_words_that_crowd_hangs_nobody(classifier, multiplier, shift, binary):
    """In a process of its own, since it took minutes before."""
    pytest.importorskip("sklearn", reason="its MurmurHash3 finds the words")
    code = HANGS.format(classifier=classifier, multiplier=multiplier, shift=shift, binary=binary)
    n, right, predicted = run(code, timeout=300)
    assert n > 400_000 and right and predicted is False


# Models, of so many rows a call, and the labels of these.
WHERE_MEMORY_ENDS = """
    AdaptiveClassifier() | 1 | i % 2
    AdaptiveClassifier() | 1 | i % 7 * 5 % 23
    AdaptiveClassifier() | 1 | i
    AdaptiveClassifier() | 1 | i % 2 if i < 20 else i % 3
    OrdinalClassifier() | 1 | i % 7 * 5 % 23
    MultiLabelClassifier() | 1 | {i % 3, 3 + i % 2}
    PegasosClassifier(average=True) | 1 | i % 2
    PegasosClassifier(average=True) | 30 | i % 2
    PegasosClassifier(batch_size=3) | 1 | i % 2
    PegasosClassifier() | 1 | i % 5
    PegasosClassifier(average=True) | 1 | i % 2 if i < 20 else i % 3
    PegasosClassifier(multi_class='crammer_singer', batch_size=3) | 1 | i % 5
"""


@pytest.mark.parametrize(
    "begin", [0, pytest.param(1, marks=pytest.mark.heavy), pytest.param(2, marks=pytest.mark.heavy)]
)
def test_where_memory_ends_no_step_is_left_half_taken(begin):
    """In a process each with ever more memory: after each failure the model is one that learned the first examples."""
    pytest.importorskip("resource", reason="memory is limited the POSIX way")
    printed = run(
        f"""
        import json, os, resource
        import numpy as np
        from scipy import sparse
        from stream_pegasos import *

        n, width = 22, 8_000  # features that are new in each row
        X = sparse.csr_matrix((np.ones(n * width), np.arange(n * width), np.arange(0, n * width + 1, width)))

        def is_right(make, at_a_time, label):
            y = [eval(label, dict(i=i)) for i in range(n)]
            (model, other), (_, hard) = (eval(make), eval(make)), resource.getrlimit(resource.RLIMIT_AS)
            failures, alike = set(), []
            for more in range(0, 50, 5):
                calls = [(X[i : i + at_a_time], y[i : i + at_a_time]) for i in range(model.n_learned, n, at_a_time)]
                with open("/proc/self/statm") as file:
                    used = int(file.read().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + (more << 20), hard))
                try:
                    for rows, labels in calls:
                        model.learn_many(rows, labels)
                except MemoryError:
                    failures.add(model.n_learned)
                finally:
                    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
                while other.n_learned < model.n_learned:
                    other.learn_many(X[other.n_learned], y[other.n_learned : other.n_learned + 1])
                (arrays, *rest), (expected, *its) = model.to_state(), other.to_state()
                alike.append(rest == its and all(np.array_equal(arrays[name], expected[name]) for name in expected))
            return model.n_learned == n and failures and all(alike)

        wrong = []
        for case in {WHERE_MEMORY_ENDS.strip().splitlines()[begin::3]!r}:
            make, at_a_time, label = case.strip().split(" | ")
            child = os.fork()
            if not child:
                os._exit(0 if is_right(make, int(at_a_time), label) else 1)
            if os.waitpid(child, 0)[1]:
                wrong.append(case)
        print(json.dumps(wrong))
        """
    )
    assert printed == []
