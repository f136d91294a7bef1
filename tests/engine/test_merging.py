"""How weights of several parts become one, against the rule written densely and against what must be so."""

import math

import numpy as np
import pytest
from engines import both_engines, pure_engine, random_stream

from stream_pegasos.engine.merged_steps import Messages, Steps
from stream_pegasos.engine.merging import Rule, merged_adaptive

RATE, OF_INTERCEPT = 0.5, 0.1
RULE = Rule(RATE, 0.5, 0.0, OF_INTERCEPT)
ARGUMENTS = (RATE, False, math.inf, 0.5, 0.0, OF_INTERCEPT)


def one_column(n):
    return np.zeros(n, np.int64)


def dense(w, S, W, A, C, scales):
    """The rule as it is written, on dense arrays: a row a part, the intercept last."""
    d, root = W - w, np.sqrt
    q, Q = 2 * RATE * (root(S + A) - root(S)), 2 * RATE * (root(S + A.sum(axis=0)) - root(S))
    g = d * (root(S + A) + root(S)) / (2 * RATE)
    s, D = A.sum(axis=0), d.sum(axis=0)
    F = max((g * D).sum() / (4 * s[:-1].sum()) / (s @ Q / s.sum()), 1.0)
    a = (1 - np.exp(-F * Q)) / (1 - np.exp(-F * q)).sum(axis=0)
    n, n_all = C[:, -1], C[:, -1].sum()
    v = scales / root(C.sum(axis=0)[:-1] / n_all @ scales**2)
    v = np.append(v, OF_INTERCEPT)
    t = ways = way = moved = 0.0
    for k in range(len(W)):
        p = (C.sum(axis=0) - C[k]) / (n_all - n[k])
        t += n[k] / n_all * (p * v) @ d[k]
        way += n[k] / n_all * (1 - np.exp(-p @ q[k]))
        ways += p @ (q[k] * Q / q.sum(axis=0))
        moved += (p * v * a) @ d[k]
    t *= (1 - np.exp(-ways)) / way
    m = C.sum(axis=0) / n_all * v
    u = m / root(S + s) * ((A > 0).sum(axis=0) > 1)
    return w + a * D + u * (t - moved) / (m @ u)


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_those_of_the_rule(seed):
    generator = np.random.default_rng(seed)
    n, n_parts = 40, 4
    w, S = generator.normal(size=n), generator.random(n) + 0.01
    moved = generator.random((n_parts, n)) < 0.4
    moved[0, :-1] |= ~moved[:, :-1].any(axis=0)
    moved[:, -1] = True
    A = moved * generator.random((n_parts, n))
    W = w + moved * generator.normal(size=(n_parts, n)) + 0.5 * moved
    C = moved * generator.integers(1, 9, size=(n_parts, n))
    C[:, -1] = generator.integers(9, 20, size=n_parts)
    scales = 0.3 + generator.random(n - 1)
    messages, steps = Messages(n), Steps(w, S, RATE, one_column(n), n_intercepts=1)
    for k in range(n_parts):
        at = np.flatnonzero(moved[k])
        messages.add(at, C[k, at].astype(float))
        steps.add(at, W[k, at], A[k, at])
    merged = steps.weights(messages, np.arange(n), messages.values(scales, OF_INTERCEPT))
    np.testing.assert_allclose(merged, dense(w, S, W, A, C, scales), rtol=1e-12)
    single = moved.sum(axis=0) == 1
    np.testing.assert_allclose(merged[single], (w + (W - w).sum(axis=0))[single], rtol=1e-12)


def alone(weight, squares, parts):
    """A weight of a feature that all messages have, beside an intercept that does not count."""
    messages = Messages(2)
    steps = Steps(np.array([weight, 0.0]), np.array([squares, 0.0]), RATE, np.arange(2), n_intercepts=1)
    for after, added in parts:
        steps.add(np.arange(2), np.array([after, 0.0]), np.array([added, 0.0]))
        messages.add(np.arange(2), np.array([0.0, 1.0]))
    return steps.weights(messages, np.arange(2), np.array([1.0, 0.0]))[0]


def test_parts_that_went_all_the_way_are_averaged_and_small_steps_are_added():
    assert alone(1.0, 0.0, [(3.0, 1e6), (4.0, 1e6)]) == pytest.approx(1.0 + (2.0 + 3.0) / 2.0)
    assert alone(0.0, 1e9, [(1e-8, 1e-3), (2e-8, 1e-3)]) == pytest.approx(3e-8)


def test_a_step_whose_square_is_too_small_to_add_is_taken_whole():
    assert alone(1.0, 1e30, [(1.5, 0.0), (2.0, 0.0)]) == pytest.approx(2.5)
    assert alone(0.0, 0.0, [(0.0, 0.0)] * 2) == 0.0


@both_engines
def test_states_of_both_engines_are_merged_alike(engine_in_test):
    """What the compiled engine learned is merged to what the pure one does; the roundings of 160 examples to single
    precision, of which each part has some, come to 1e-4 in what counts small margins.
    """

    def learned(engine, state, seed):
        learner, vocabulary = engine.AdaptiveLearner(*ARGUMENTS), engine.Vocabulary()
        if state is not None:
            learner.set_state(state)
        for i, x in enumerate(random_stream(40, seed)):
            learner.learn(vocabulary, x, float((i + seed) % 3 > 0), 1.0)
        return learner.get_state()

    merged = []
    for engine in (pure_engine, engine_in_test):
        base = learned(engine, None, 0)
        parts = [learned(engine, base, seed) for seed in (1, 2, 3)]
        merged.append(merged_adaptive(base, parts, RULE, "two", [np.arange(2)] * 4, 2, np.zeros(0, np.int64)))
    orders = [np.argsort(state["keys"]) for state in merged]
    for name, value in merged[0].items():
        one, other = (
            state[name][order] if np.shape(value) == orders[0].shape else state[name]
            for state, order in zip(merged, orders, strict=True)
        )
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=name)
