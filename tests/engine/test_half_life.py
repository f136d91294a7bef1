"""A half-life that grows while the stream stands still, and falls back where it changes."""

import math

import numpy as np
import pytest
from engines import both_engines, compiled_engine, needs_compiled, pure_engine

from stream_pegasos.engine.merging import merged_adaptive
from stream_pegasos.engine.pure.half_life import OF_STEADY, HalfLife, aged

SETS = np.array([0, 1, 2]), np.array([0, 1])
REDUCTIONS = ["two", "ovr", "multilabel", "ordinal"]
STILL = {"short_loss": 0.01, "long_loss": 0.01, "least_loss": 0.01, "variance": 1e-6}


def learner_of(engine, reduction="two", margin=math.inf):
    learner = engine.AdaptiveLearner(
        0.5, False, margin, 0.5, 10_000.0, 0.1, reduction=reduction, growing_half_life=True
    )
    learner.order, learner.sets = np.arange(2), SETS
    return learner


def learn(learner, vocabulary, numbers, is_swapped=False):
    for i in numbers:
        learner.learn(vocabulary, {i % 2: 1.0, 2: 1.0}, float(i % 2 != is_swapped), 1.0)


@both_engines
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_evidence_halves_over_10000_examples_and_later_over_a_fifth_of_the_stream(engine_in_test, reduction):
    """From n to m examples that is a factor of (m/n)^(5 log 2)."""
    learner, vocabulary = learner_of(engine_in_test, reduction), engine_in_test.Vocabulary()
    learn(learner, vocabulary, range(100))
    assert learner.get_state()["evidence"] == pytest.approx(2.0 ** (100 / 10_000))
    learner.set_state(learner.get_state() | STILL | {"n_steady": 80_000.0, "least_loss": 1.0, "evidence": 1.0})
    learn(learner, vocabulary, range(1_000))
    assert learner.get_state()["n_steady"] == 81_000
    assert learner.get_state()["evidence"] == pytest.approx((81 / 80) ** (5.0 * math.log(2.0)), rel=1e-5)


@both_engines
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_where_the_stream_changes_evidence_is_cut_down(engine_in_test, reduction):
    """To that of 50,000 examples, as `forget` does it; one that is told of no change goes on."""
    learner, other = (learner_of(engine_in_test, reduction, 5.0) for _ in range(2))
    vocabulary = engine_in_test.Vocabulary()
    learn(learner, vocabulary, range(200))
    learner.set_state(learner.get_state() | STILL | {"n_steady": 100_000.0})
    learn(learner, vocabulary, range(20))
    before = learner.get_state()
    assert before["n_steady"] == 100_020
    for i in range(1_000):
        before = learner.get_state()
        learn(learner, vocabulary, [i], is_swapped=True)
        if learner.get_state()["n_steady"] == 0.0:
            break
    after = learner.get_state()
    assert after["n_steady"] == 0.0
    other.set_state(before | {"least_loss": 1e9})
    learn(other, vocabulary, [i], is_swapped=True)
    other.forget(50_000 / (before["n_steady"] + 1.0))
    expected = other.get_state()
    assert expected["n_steady"] == pytest.approx(50_000)
    for name in expected.keys() - {"n_steady", "least_loss"}:
        assert np.array_equal(after[name], expected[name]), name


@both_engines
def test_a_detector_of_drifts_makes_the_stream_young(engine_in_test):
    learner, vocabulary = learner_of(engine_in_test), engine_in_test.Vocabulary()
    learn(learner, vocabulary, range(10))
    learner.forget(0.1)
    assert learner.get_state()["n_steady"] == pytest.approx(1.0)


def alarms(losses):
    """After how many of the losses the half-life fell back."""
    half_life = HalfLife(10_000.0, is_growing=True)
    return [i for i, loss in enumerate(losses) if half_life.note(loss) < 1.0]


@pytest.mark.parametrize("length", [1, 50])
def test_losses_by_chance_and_in_runs_are_no_change_but_a_step_is(length):
    generator = np.random.default_rng(length)
    losses = generator.random(250_000 // length).repeat(length) * generator.choice([0.2, 1.0], 250_000)
    assert alarms(losses.tolist()) == []
    (place,) = alarms([*losses[:150_000].tolist(), *np.minimum(losses[150_000:] + 0.4, 1.0).tolist()])
    assert 150_000 < place < 151_000


def test_a_slow_change_is_found_too():
    """Of which no thousand examples tell, but ten thousand."""
    generator = np.random.default_rng(3)
    losses = generator.random(300_000) * np.linspace(0.4, 0.6, 300_000)
    assert alarms(losses.tolist())


@needs_compiled
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_both_engines_measure_the_same(reduction):
    """From before the half-life grows until it does."""
    generator = np.random.default_rng(5)
    X = [{int(j): 1.0 for j in generator.integers(0, 30, 5)} for _ in range(300)]
    y = [float((min(x) < 5) != (generator.random() < 0.1)) for x in X]
    states = []
    for engine in (pure_engine, compiled_engine):
        learner, vocabulary = learner_of(engine, reduction), engine.Vocabulary()
        learn(learner, vocabulary, range(10))
        learner.set_state(learner.get_state() | STILL | {"n_steady": 49_900.0})
        for x, target in zip(X, y, strict=True):
            learner.learn(vocabulary, x, target, 1.0)
        states.append(learner.get_state())
    for name in (*OF_STEADY, "evidence"):
        assert states[0][name] == pytest.approx(states[1][name], rel=1e-5), name


@pytest.mark.parametrize("n_steady, n", [(0, 1_000), (0, 200_000), (49_000, 3_000), (120_000, 80_000), (0, 0)])
def test_what_is_left_of_evidence_is_the_product_of_its_growth(n_steady, n):
    half_life = HalfLife(10_000.0, is_growing=True)
    growths = np.ones(n)
    for i in range(n):
        half_life.n_steady = float(n_steady + i)
        growths[i] = half_life.growth
    left = 1.0 / growths[::-1].cumprod()
    kept, mean = aged(10_000.0, n, float(n_steady))
    assert kept == pytest.approx(left[-1] if n else 1.0, rel=1e-3)
    assert mean == pytest.approx(left.mean() if n else 1.0, rel=1e-3)


def test_what_is_left_of_evidence_with_a_half_life_that_is_fixed():
    assert aged(100.0, 100) == pytest.approx((0.5, 0.5 / math.log(2.0)))
    assert aged(0.0, 100) == (1.0, 1.0)
    assert aged(1e300, 100) == pytest.approx((1.0, 1.0))


@needs_compiled
def test_parts_have_the_evidence_of_one_that_learned_all():
    """Beside a base that has learned more than a half-life of 10,000 keeps."""
    generator = np.random.default_rng(4)

    def continued(state, n):
        learner = learner_of(compiled_engine)
        if state is not None:
            learner.set_state(state)
        rows = np.arange(n + 1), np.ones(n, np.int64), np.ones(n)
        y = (generator.random(n) < 0.4).astype(float)
        learner.predict_learn_many(compiled_engine.Rows(10), rows, y, np.ones(n))
        return learner.get_state()

    base = continued(None, 90_000)
    parts = [continued(base, 40_000) for _ in range(3)]
    expected = continued(base, 120_000)
    numbers = [np.arange(2)] * 4
    declaration = learner_of(compiled_engine).declaration
    merged = merged_adaptive(declaration, [base, *parts], 10_000.0, 0.5, "two", numbers, np.zeros(0, np.int64))
    assert merged["n_steady"] == expected["n_steady"] == 210_000
    for name in ("n_positives", "n_negatives", "positives", "negatives", "gradient_squares"):
        of_all = np.asarray(expected[name]) / expected["evidence"]
        assert np.asarray(merged[name]) / merged["evidence"] == pytest.approx(of_all, rel=0.03), name
