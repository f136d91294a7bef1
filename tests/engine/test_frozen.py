"""What a frozen model predicts with, in both engines."""

import numpy as np
import pytest
from engines import compiled_engine, needs_compiled, pure_engine, same_state
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_pegasos import engine
from stream_pegasos.engine.frozen import (
    OF_ONE_WEIGHT,
    frozen_features,
    frozen_rest,
    half,
    halves,
    nothing_of,
    table_of,
)

ARGUMENTS = (0.5, False, 5.0, 0.5, 30.0, 0.1, 0)


def learned(kind, reduction, n_classes, seed):
    """A learner, and rows as a matrix has them."""
    generator = np.random.default_rng(seed)
    learner = kind.AdaptiveLearner(*ARGUMENTS, reduction=reduction)
    if reduction == "ordinal":
        learner.order = np.arange(n_classes)
    n = 60
    indptr = np.arange(n + 1) * 6
    rows = indptr, generator.integers(0, 40, 6 * n).astype(np.int32), generator.normal(size=6 * n)
    y = generator.integers(0, n_classes, n).astype(float)
    y[:n_classes] = np.arange(n_classes)
    if reduction == "multilabel":
        learner.sets = np.arange(n_classes + 1), np.arange(n_classes)
    learner.predict_learn_many(kind.Rows(60), rows, y, None)
    wider = rows[0], (rows[1] + generator.integers(0, 20, 6 * n)).astype(np.int32), rows[2]  # some are not known
    return learner, wider


def frozen(kind, learner, reduction):
    state = learner.get_state()
    made = kind.FrozenLearner(reduction)
    made.set_state({**frozen_features(learner, state), **frozen_rest(learner, state)})
    made.declaration.check(made.get_state())
    return made


@needs_compiled
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["two", "ovr", "multilabel", "ordinal"]), st.integers(2, 5), st.integers(0, 10_000))
def test_both_engines_agree(reduction, n_classes, seed):
    n_classes = 2 if reduction == "two" else n_classes
    learner, rows = learned(compiled_engine, reduction, n_classes, seed)
    pure, compiled = (frozen(kind, learner, reduction) for kind in (pure_engine, compiled_engine))
    assert same_state(pure, compiled)
    found, of_learner = [], learner.predict_learn_many(compiled_engine.Rows(60), rows)
    for kind, it in ((pure_engine, pure), (compiled_engine, compiled)):
        found.append(it.predict_learn_many(kind.Rows(60), rows))
    for one, other, first in zip(*found, of_learner, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(one, first, rtol=1e-3, atol=1e-2)
    keys = np.arange(70)
    np.testing.assert_allclose(pure.weights_of(keys), compiled.weights_of(keys), rtol=1e-12)
    for one, other in zip(pure.items(), compiled.items(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    x = {3: 1.0, 17: -0.5, 39: 2.0, 900: 1.0}
    for column in range(1 if reduction in OF_ONE_WEIGHT else n_classes):
        one, other = (
            it.contributions(kind.Vocabulary(), x, column)
            for kind, it in ((pure_engine, pure), (compiled_engine, compiled))
        )
        known = {key: value for key, value in other.items() if value}
        assert known == pytest.approx({key: value for key, value in one.items() if value})


@pytest.mark.parametrize("kind", [pure_engine, pytest.param(compiled_engine, marks=needs_compiled)])
def test_it_learns_nothing(kind):
    learner = kind.FrozenLearner("two")
    with pytest.raises(TypeError, match="only predicts"):
        learner.learn(kind.Vocabulary(), {1: 1.0}, 1.0, 1.0)
    with pytest.raises(TypeError, match="only predicts"):
        learner.predict_learn_many(kind.Vocabulary(), [{1: 1.0}], np.ones(1))
    with pytest.raises(TypeError, match="only predicts"):
        learner.negate()
    assert same_state(learner.get_state(), nothing_of("two"))
    assert learner.margins(kind.Vocabulary(), {1: 1.0}) == [0.0, 0.0]


def test_halves_are_those_of_numpy():
    bits = np.arange(1 << 16, dtype=np.uint16)
    numbers = bits.view(np.float16).astype(float)
    finite = np.isfinite(numbers)
    assert [half(bit) for bit in bits[finite].tolist()] == numbers[finite].tolist()
    assert np.isfinite([half(bit) for bit in bits.tolist()]).all()
    assert (halves(numbers[finite]) == bits[finite]).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, (1 << 31) - 1), unique=True, max_size=300), st.booleans())
def test_every_key_is_found_whatever_they_are(keys, crowded):
    if crowded:  # as those do whose hashes begin alike
        inverse = pow(0x7F4A7C15, -1, 1 << 32)
        keys = [(5_000_000 + i) * inverse % (1 << 32) for i in range(3_000)]
    keys = np.array(keys, np.int64)
    known = np.arange(len(keys), dtype=np.uint32)
    state = {**nothing_of("two"), **table_of(keys, known)}
    learner = engine.in_use(pure_engine.FrozenLearner)("two")
    learner.declaration.check(state)
    learner.set_state(state)
    assert sorted(learner.items()[0].tolist()) == sorted(keys.tolist())
    weights = [half(i & 0xFFFF) * half(i >> 16) for i in range(len(keys))]
    assert learner.weights_of(keys)[:, 0].tolist() == weights
