"""The rule of Pegasos on one column and on several, in both engines."""

import itertools
import math
import random

import numpy as np
import pytest
from engines import (
    NAMES,
    both_engines,
    pairs,
    random_stream,
    same_state,
)
from pairwise import pairwise

from stream_pegasos.engine.pure.weights import FIRST_NAME, INTERCEPT


def weights_of(learner, vocabulary):
    keys = {name: FIRST_NAME + i for i, name in enumerate(vocabulary.names)} | {3: 3, -1: -1}
    named = [learner.weights.get(keys[name]) if name in keys else 0.0 for name in NAMES]
    return np.array([*named, learner.weights.get(INTERCEPT)])


SIZES = ((1e6, 1.0), (1e9, 1e-4), (1e20, 1.0), (1e44, 1e-30), (1.0, 1e20))  # of the values, and λ


@both_engines
@pytest.mark.parametrize("chosen", pairwise(batch_size=(1, 3), t0=(0.0, 0.5), scaling=(0.0, 1.0), size=SIZES), ids=str)
def test_the_scale_is_folded_in_time(engine_in_test, dense_pegasos, chosen):
    """Projections from far outside the ball shrink the scale by orders of magnitude at every step."""
    generator = np.random.default_rng(3)
    options, (size, l2) = (chosen["batch_size"], chosen["t0"], True, chosen["scaling"]), chosen["size"]
    learner = engine_in_test.PegasosLearner(l2, *options)
    vocabulary = engine_in_test.Vocabulary()
    dense = dense_pegasos(len(NAMES) + 1, l2, *options[:3])
    for i in range(300):
        x = {name: float(generator.normal()) * size for name in NAMES if generator.random() < 0.5}
        y = 1.0 if i % 2 else -1.0
        vector = np.array([*(x.get(name, 0.0) for name in NAMES), options[3]])
        if dense.is_close_call(vector) and abs(dense.margin(vector)) < 2.0 and dense.largest < 1e3:
            continue
        y = -math.copysign(y, dense.margin(vector)) if abs(dense.margin(vector)) > 2.0 and i % 3 else y
        learner.learn(vocabulary, x, float(y > 0.0), 1.0)
        dense.learn(vector, y, 1.0)
        assert learner.weights.get_state()["scale"] >= [1e-9]
        assert weights_of(learner, vocabulary) == pytest.approx(dense.w, rel=1e-6, abs=1e-6 * np.abs(dense.w).max())
        squares = sum(w * w for w in pairs(learner.weights).values())
        assert learner.weights.squared_norm() == pytest.approx(squares, rel=1e-9)
        assert squares * l2 <= 1.0 + 1e-9


@both_engines
def test_the_closed_form(engine_in_test):
    """With t0 = 0, k = 1 and no projection, w = (1/(λt)) · the sum of all c·y·x that violated the margin."""
    l2 = 0.02
    learner = engine_in_test.PegasosLearner(l2, 1, 0.0, False, 0.0)
    encoder = engine_in_test.Rows(1 << 53)
    generator = np.random.default_rng(7)
    n, d = 20_000, 50
    X = generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.2)
    y = np.where(X[:, :5].sum(axis=1) + generator.normal(size=n) * 0.3 > 0, 1.0, -1.0)
    c = generator.choice([0.0, 0.5, 1.0, 2.0], n)
    rows, columns = np.nonzero(X)
    indptr = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
    margins, _ = learner.predict_learn_many(
        encoder, (indptr, columns.astype(np.int32), X[rows, columns]), 1.0 * (y > 0.0), c
    )
    total = np.zeros(d)
    for t in range(n):
        w = total / (l2 * t) if t else total
        assert margins[t, 1] == pytest.approx(w @ X[t], rel=1e-9, abs=1e-9)
        if y[t] * margins[t, 1] < 1.0:
            total += c[t] * y[t] * X[t]
    assert learner.n_iterations == n
    assert pairs(learner.weights) == pytest.approx(dict(enumerate(total / (l2 * n))), rel=1e-9)


@both_engines
def test_a_margin_of_exactly_one_is_no_violation(engine_in_test):
    # λ = ½ and t0 = 1: the first step is w = 1/(½·2)·x = (1, 0), on which every operation is exact.
    for batch_size in (1, 2):
        learner = engine_in_test.PegasosLearner(0.5, batch_size, 1.0, False, 0.0)
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
    learner = engine_in_test.PegasosLearner(0.1, 1, 0.0, True, 1.0)
    vocabulary = engine_in_test.Vocabulary()
    learner.learn(vocabulary, {"a": 1.0}, 1.0, 0.0)
    assert (learner.n_iterations, len(learner.weights)) == (1, 0)
    learner.learn(vocabulary, {}, 0.0, 1.0)
    assert pairs(learner.weights) == {INTERCEPT: pytest.approx(-1 / math.sqrt(0.1))}


@both_engines
@pytest.mark.parametrize("batch_size", [1, 3])
def test_many_at_once_is_one_by_one(engine_in_test, batch_size):
    generator = random.Random(11)
    X = [{generator.randrange(100): generator.gauss(0, 1) for _ in range(10)} for _ in range(500)]
    y = np.array([generator.choice([-1.0, 1.0]) for _ in X])
    c = np.array([generator.choice([0.0, 1.0, 2.5]) for _ in X])
    one, many = (engine_in_test.PegasosLearner(1e-3, batch_size, 2.0, True, 0.5) for _ in range(2))
    vocabulary = engine_in_test.Vocabulary()
    expected = []
    for x, sign, weight in zip(X, y, c, strict=True):
        margin = one.margins(vocabulary, x)[1]
        expected.append((margin, one.calibrated_for([-margin, margin])[0]))
        one.learn(vocabulary, x, float(sign > 0.0), weight)
    margins, probabilities = many.predict_learn_many(vocabulary, X, 1.0 * (y > 0.0), c)
    assert list(zip(margins[:, 1].tolist(), probabilities[:, 0].tolist(), strict=True)) == expected
    assert same_state(one, many)
    before = many.get_state()
    again, _ = many.predict_learn_many(vocabulary, X)
    assert again[:, 1].tolist() == [one.margins(vocabulary, x)[1] for x in X]
    assert same_state(before, many)
    for empty in (None, np.empty(0)):
        assert [len(out) for out in many.predict_learn_many(vocabulary, [], empty)] == [0, 0]


@both_engines
@pytest.mark.parametrize("batch_size", [1, 4])
def test_exchanging_the_classes_is_learning_the_other_way_round(engine_in_test, batch_size):
    one, other = (engine_in_test.PegasosLearner(0.01, batch_size, 0.5, True, 1.0) for _ in range(2))
    vocabulary = engine_in_test.Vocabulary()
    generator = random.Random(2)
    for i in range(50):
        x = {generator.randrange(9): generator.gauss(0, 1) for _ in range(4)}
        y = generator.choice([-1.0, 1.0])
        one.learn(vocabulary, x, float((y > 0.0) != (i < 23)), 1.0)
        other.learn(vocabulary, x, float(y > 0.0), 1.0)
        if i == 22:
            one.negate()
    assert pairs(one.weights) == pytest.approx(pairs(other.weights), rel=1e-12)
    assert one.n_buffered == other.n_buffered
    assert one.get_state()["slope"] == pytest.approx(other.get_state()["slope"])


@both_engines
@pytest.mark.parametrize(
    "l2, project, weight", [(1.0, True, 1.0), (1e-30, False, 1e60), (1e-30, True, 1.0), (1e30, False, 1)]
)
def test_margins_of_any_size_leave_the_state_finite(engine_in_test, l2, project, weight):
    for agreeing, size in itertools.product((True, False), (1e45, 1e10, 1e-50, 1e-90, 1e-160, 1e-200, 5e-324)):
        learner = engine_in_test.PegasosLearner(l2, 1, 0.0, project, 0.0)
        vocabulary = engine_in_test.Vocabulary()
        for i in range(1, 300):
            y = 1.0 if agreeing or i % 2 else -1.0
            learner.learn(vocabulary, {0: size, 1: -size}, float(y > 0.0), weight)
        state = learner.get_state()
        assert {name: np.isfinite(value).all() for name, value in state.items()} == dict.fromkeys(state, True)
        assert 0.0 < learner.calibrated_for(learner.margins(vocabulary, {0: size}))[0] < 1.0
        assert len(learner.weights) <= 2


@both_engines
def test_averages_survive_folding(engine_in_test, dense_pegasos):
    """Projections from far outside the ball make the scale fold at every few steps."""
    generator = np.random.default_rng(5)
    for from_step, by_t, average in ((1, False, True), (40, False, 40), (1, True, "weighted")):
        learner, vocabulary = (
            engine_in_test.PegasosLearner(1.0, 1, 0.5, True, 0.0, from_step, by_t),
            engine_in_test.Vocabulary(),
        )
        dense = dense_pegasos(len(NAMES) + 1, 1.0, 1, 0.5, True, average=average)
        for _ in range(120):
            x = {name: float(generator.normal()) * 1e6 for name in NAMES if generator.random() < 0.5}
            y, vector = float(generator.choice([-1.0, 1.0])), np.array([*(x.get(name, 0.0) for name in NAMES), 0.0])
            learner.learn(vocabulary, x, float(y > 0.0), 1.0)
            dense.learn(vector, y, 1.0)
            assert weights_of(learner, vocabulary) == pytest.approx(dense.predicting, rel=1e-9, abs=1e-9)
            margin = pytest.approx(float(dense.predicting @ vector), rel=1e-6, abs=1e-5)
            assert learner.margins(vocabulary, x)[1] == margin


# --- several columns --------------------------------------------------------------------------------------------------


@both_engines
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("average", [(0, False), (1, False), (30, False), (1, True)], ids=str)
@pytest.mark.parametrize("only_violations", [False, True])
def test_a_column_against_the_rest_is_a_learner_of_two_classes(engine_in_test, batch_size, average, only_violations):
    """One that begins with the first example of its class, with the same average and the same count of steps."""
    arguments = (0.01, batch_size, 2.0, True, 0.5, *average, only_violations)
    together, alone = engine_in_test.PegasosLearner(*arguments, reduction="ovr"), []
    vocabulary, generator = engine_in_test.Vocabulary(), np.random.default_rng(12)
    for i, x in enumerate(random_stream(250, 12)):
        number, weight = int(generator.integers(min(5, 1 + i // 10))), float(generator.choice([1.0, 0.0, 3.0]))
        number = min(number, len(alone))
        margins = [learner.margins(vocabulary, x)[1] for learner in alone]
        assert together.margins(vocabulary, x) == pytest.approx(margins, rel=1e-9, abs=1e-12)
        if number == len(alone):
            alone.append(engine_in_test.PegasosLearner(*arguments))
        together.learn(vocabulary, x, float(number), weight)
        for column, learner in enumerate(alone):
            learner.learn(vocabulary, x, float(column == number), weight)
        if i % 60 == 31:
            for learner in (together, *alone):
                learner.flush()
    assert together.n_columns == len(alone) == 5
    state = together.get_state()
    for column, learner in enumerate(alone):
        assert state["n_iterations"][column] == learner.n_iterations
        assert state["n_buffered"][column] == learner.n_buffered
        expected = {key: weight for key, weight in pairs(learner.weights).items() if weight}
        found = {key: weight for key, weight in pairs(together.weights, column).items() if weight}
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
        norm = learner.weights.squared_norm()
        assert together.weights.squared_norm(column) == pytest.approx(norm, rel=1e-9)


@both_engines
@pytest.mark.parametrize("reduction", ["ovr", "crammer_singer", "pairs"])
@pytest.mark.parametrize("average", [0, 1])
def test_weights_of_several_columns_make_their_margins(engine_in_test, reduction, average):
    learner = engine_in_test.PegasosLearner(0.1, 2, 1.0, True, 0.5, average, reduction=reduction)
    vocabulary = engine_in_test.Vocabulary()
    if reduction == "pairs":
        learner.signs = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
        learner.add_column()
        learner.add_column()
    X = random_stream(60, 3)
    for i, x in enumerate(X):
        learner.learn(vocabulary, x, float(min(i // 7, i % 3)), 1.0)
    keys, values = learner.items()
    assert learner.intercept.shape == (learner.n_columns,) and learner.intercept.any()
    assert values.shape == (len(learner), learner.n_columns) and INTERCEPT not in keys
    assert np.array_equal(learner.weights_of(keys), values)
    assert not learner.weights_of(np.array([10**6, FIRST_NAME])).any()
    weights = dict(zip(keys.tolist(), values, strict=True))
    margins, _ = learner.predict_learn_many(vocabulary, X)
    for x, margin in zip(X, margins, strict=True):
        expected = learner.intercept + sum(weights[key] * value for key, value in x.items() if key in weights)
        assert margin == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert learner.margins(vocabulary, x).tolist() == margin.tolist()


@both_engines
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("reduction", ["ovr", "crammer_singer", "pairs"])
def test_many_at_once_are_one_by_one_with_several_columns(engine_in_test, reduction, batch_size):
    """The margins before each, −inf for columns that are yet to come; and what calibrates those of classes."""
    one, many = (engine_in_test.PegasosLearner(0.1, batch_size, 0.0, True, 1.0, reduction=reduction) for _ in range(2))
    for learner in (one, many) if reduction == "pairs" else ():
        learner.signs = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
        learner.add_column()
        learner.add_column()
    vocabulary, X = engine_in_test.Vocabulary(), random_stream(60, 4)
    y, n_columns = np.array([float(min(i // 7, i % 3)) for i in range(60)]), 2 if reduction == "pairs" else 3
    expected = []
    for x, number in zip(X, y, strict=True):
        margin = one.margins(vocabulary, x).tolist()
        expected.append(([*margin, *[-math.inf] * (n_columns - len(margin))], [*one.calibrated]))
        one.learn(vocabulary, x, number, 1.0)
    margins, calibrated = many.predict_learn_many(vocabulary, X, y)
    assert list(zip(margins.tolist(), calibrated.tolist(), strict=True)) == expected
    assert same_state(one, many)
    assert (one.calibrated == (1.0, 0.0, 1.0)) == (reduction == "pairs")


@both_engines
@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_cleared_column_is_a_new_one(engine_in_test, batch_size):
    """Learners whose second column was cleared go on as those in which it has just been added."""
    signs = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
    learners = [engine_in_test.PegasosLearner(0.1, batch_size, 0.0, True, 1.0, reduction="pairs") for _ in range(2)]
    vocabulary = engine_in_test.Vocabulary()
    for learner in learners:
        learner.add_column()
    cleared, fresh = learners
    cleared.add_column()
    cleared.signs, fresh.signs = signs, np.ascontiguousarray(signs[:, :1])
    for i, x in enumerate(random_stream(50, 7)):
        cleared.learn(vocabulary, x, float(i % 3), 1.0)
        fresh.learn(vocabulary, x, float(i % 3), 1.0)
    cleared.clear_column(1)
    fresh.add_column()
    fresh.signs = signs
    for i, x in enumerate(random_stream(50, 8)):
        assert cleared.margins(vocabulary, x) == pytest.approx(fresh.margins(vocabulary, x), rel=1e-9, abs=1e-9)
        for learner in learners:
            learner.learn(vocabulary, x, float(i % 3), 1.0)
