"""How the compiled engine keeps the features of `AdaptiveLearner`: in single precision, in little memory."""

import math
import sys

import numpy as np
import pytest
from engines import both_engines, compiled_engine, needs_compiled, same_state
from scipy import sparse


@needs_compiled
def test_features_are_kept_in_single_precision():
    generator = np.random.default_rng(10)
    matrix = sparse.csr_array(generator.normal(size=(100, 12)))
    y, c = np.where(generator.random(100) < 0.5, 1.0, 0.0), generator.choice([0.3, 1.0, 20.0], 100)
    learner = compiled_engine.AdaptiveLearner(0.5, False, 5.0, 0.5, 30.0, 0.1)
    arrays = matrix.indptr.astype(np.int64), matrix.indices, matrix.data
    learner.predict_learn_many(compiled_engine.Rows(1 << 20), arrays, y, c)
    state = learner.get_state()
    for name in ("values", "log_ratios", "gradient_squares", "positives", "negatives"):
        assert np.array_equal(state[name], state[name].astype(np.float32))
    assert not np.array_equal(state["intercept_squares"], np.float32(state["intercept_squares"]))


@needs_compiled
def test_counts_that_no_longer_grow_are_halved():
    """After sixteen million examples one more does not show in single precision; the ratio goes on being learned."""
    learner, vocabulary = (
        compiled_engine.AdaptiveLearner(0.5, False, math.inf, 0.5, 0.0, 0.1),
        compiled_engine.Vocabulary(),
    )
    for y in (0.0, 1.0):
        learner.learn(vocabulary, dict.fromkeys(range(6), 1.0), y, 1.0)
    many = 2.0**24
    state = learner.get_state()
    state |= {
        "n_positives": many,
        "n_negatives": many,
        "positives": np.full(6, many),
        "negatives": np.full(6, many / 4),
    }
    for n_iterations, expected in [(2**24 - 1, (many, many / 4)), (2**24, (many / 2 + 1, many / 8))]:
        learner.set_state({**state, "n_iterations": n_iterations})
        learner.learn(vocabulary, dict.fromkeys(range(6), 1.0), 1.0, 1.0)
        after = learner.get_state()
        assert (set(after["positives"]), set(after["negatives"])) == ({expected[0]}, {expected[1]})
        assert after["log_ratios"] == pytest.approx(np.full(6, math.log(4.0)), abs=1e-6)


@needs_compiled
def test_memory_of_a_feature_at_any_size():
    learner, rows = compiled_engine.AdaptiveLearner(0.5, False, 5.0, 0.5, 0.0, 0.1), compiled_engine.Rows(1 << 31)
    columns = np.random.default_rng(11).permutation(1 << 20)[:60_000].astype(np.int64)
    for begin in range(0, len(columns), 500):
        row = np.array([0, 500]), columns[begin : begin + 500], np.ones(500)
        learner.predict_learn_many(rows, row, np.array([1.0]))
        assert len(learner) == begin + 500
        assert len(learner) < 4_000 or sys.getsizeof(learner) / len(learner) <= 48
    assert set(learner.items()[0].tolist()) == set(columns.tolist())


@both_engines
def test_a_state_put_aside_is_that_of_then(engine_in_test):
    """Whoever copies it, and whatever is learned meanwhile."""
    n = 300_000 if engine_in_test is compiled_engine else 300
    learner, rows = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 0.0, 0.1), engine_in_test.Rows(1 << 31)
    row = np.array([0, n]), np.arange(n), np.linspace(1.0, 2.0, n)
    learner.predict_learn_many(rows, row, np.array([1.0]))
    expected = learner.get_state()
    with learner.forked_copy() as copied:
        state = learner.get_state()
    learner.predict_learn_many(rows, row, np.array([0.0]))
    copied.wait()
    assert same_state(expected, state)
    assert not same_state(expected, learner)


@both_engines
@pytest.mark.parametrize("half_life", [0.0, 10_000.0])
def test_counts_that_rounding_has_added_up_are_those_of_a_possible_state(engine_in_test, half_life):
    """A feature that all messages have may be counted a little more often than there were messages."""
    n = 30_000 if engine_in_test is compiled_engine else 3_000
    generator = np.random.default_rng(12)
    learner = engine_in_test.AdaptiveLearner(0.5, False, math.inf, 0.5, half_life, 0.1)
    arrays = np.arange(0, 2 * n + 1, 2), np.tile([1, 2], n), np.ones(2 * n)
    y, c = np.where(generator.random(n) < 0.3, 1.0, 0.0), generator.random(n) + 0.1
    learner.predict_learn_many(engine_in_test.Rows(10), arrays, y, c)
    state = learner.get_state()
    learner.declaration.check(state)
    assert state["positives"] == pytest.approx(np.full(2, state["n_positives"]), rel=1e-4)
