"""The rule of Pegasos, in both engines: what is true of it alone."""

import math

import numpy as np
import pytest
from engines import both_engines, pairs, random_stream

pytestmark = both_engines


def test_the_closed_form(engine_in_test):
    """With t0 = 0, k = 1 and no projection, w = (1/(λt)) · the sum of all c·y·x that violated the margin."""
    l2 = 0.02
    learner = engine_in_test.PegasosLearner(l2, 1, 0.0, False, 0.0)
    encoder = engine_in_test.Rows(1 << 53)
    generator = np.random.default_rng(7)
    n, d = 4_000, 50
    X = generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.2)
    y = np.where(X[:, :5].sum(axis=1) + generator.normal(size=n) * 0.3 > 0, 1.0, -1.0)
    c = generator.choice([0.25, 0.5, 1.0, 2.0], n)
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
    assert pairs(learner) == pytest.approx(dict(enumerate(total / (l2 * n))), rel=1e-9)


def test_a_margin_of_exactly_one_is_no_violation(engine_in_test):
    # λ = ½ and t0 = 1: the first step is w = 1/(½·2)·x = (1, 0), on which every operation is exact.
    for batch_size in (1, 2):
        learner = engine_in_test.PegasosLearner(0.5, batch_size, 1.0, False, 0.0)
        vocabulary = engine_in_test.Vocabulary()
        for _ in range(batch_size):
            learner.learn(vocabulary, {0: 1.0}, 1.0, 1.0)
        assert pairs(learner) == {0: 1.0}
        for _ in range(batch_size):
            learner.learn(vocabulary, {0: 1.0, 1: 1.0}, 1.0, 1.0)
        assert pairs(learner) == {0: pytest.approx(2 / 3)}
        for _ in range(batch_size):  # margin 2/3
            learner.learn(vocabulary, {0: 1.0, 1: 1.0}, 1.0, 1.0)
        assert pairs(learner) == {0: pytest.approx(0.5 + 0.5), 1: pytest.approx(0.5)}


def test_beating_the_best_wrong_class_by_exactly_one_is_enough(engine_in_test):
    learner = engine_in_test.PegasosLearner(1.0, 1, 0.0, False, 0.0, reduction="crammer_singer")
    vocabulary = engine_in_test.Vocabulary()
    for x, number in [({0: 1.0}, 0.0), ({0: 1.0}, 1.0), ({0: 1.0, 1: 1.0}, 1.0)]:
        learner.learn(vocabulary, x, number, 1.0)
    assert learner.get_weights(np.arange(2)) == pytest.approx(np.array([[-1 / 3, 1 / 3], [0.0, 0.0]]))


def test_examples_that_weigh_nothing_are_no_steps(engine_in_test):
    learner = engine_in_test.PegasosLearner(0.1, 1, 0.0, True, 1.0)
    vocabulary = engine_in_test.Vocabulary()
    learner.learn(vocabulary, {"a": 1.0}, 1.0, 0.0)
    assert (learner.n_iterations, len(learner)) == (0, 0)
    learner.learn(vocabulary, {}, 0.0, 1.0)
    assert pairs(learner) == {} and learner.intercept == pytest.approx([1 / math.sqrt(0.1), -1 / math.sqrt(0.1)])


@pytest.mark.parametrize("options", [(1, 0, False), (4, 30, True), (1, 30, False)], ids=str)
def test_a_column_against_the_rest_is_a_learner_of_two_classes(engine_in_test, options):
    """One that begins with the first example of its class, with the same average and the same count of steps."""
    batch_size, *average = options
    arguments = (0.01, batch_size, 2.0, True, 0.5, *average)
    together, alone = engine_in_test.PegasosLearner(*arguments, reduction="ovr"), []
    vocabulary, generator = engine_in_test.Vocabulary(), np.random.default_rng(12)
    for i, x in enumerate(random_stream(250, 12)):
        number, weight = int(generator.integers(min(5, 1 + i // 10))), float(generator.choice([1.0, 0.5, 3.0]))
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
    keys = together.items()[0]
    for column, learner in enumerate(alone):
        assert together.get_weights(keys)[:, column] == pytest.approx(
            learner.get_weights(keys)[:, 1], rel=1e-9, abs=1e-12
        )
        for name in ("n_iterations", "n_buffered", "squares"):
            expected = pytest.approx(learner.get_state()[name][0], rel=1e-9)
            assert together.get_state()[name][column] == expected
