"""What drives every rule: probabilities, locks, what a failing step leaves behind."""

import math

import numpy as np
import pytest
from engines import both_engines, same_state
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_pegasos.engine.kernel import KernelLearner


@both_engines
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    margin=st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 5e-324, 1e300])),
    slope=st.sampled_from([1e-200, 1e-9, 0.3, 1.0, 25.0, 1e200]),
)
def test_probabilities_agree_with_decisions(engine_in_test, margin, slope):
    learner = engine_in_test.PegasosLearner(1e-4, 1, 0.0, True, 0.0)
    learner.set_state({**learner.get_state(), "slope": slope})
    for m in (margin, -margin, margin * 1e-300):
        p = learner.calibrated_for([-m, m])[0]
        assert 0.0 < p < 1.0
        assert (p > 0.5) == (m > 0.0)
        assert p + (1.0 - p) == 1.0
        assert 0.0 < 1.0 - p < 1.0


RULES = {
    "two": lambda e, limit: e.PegasosLearner(0.1, 2, 0.0, True, 0.5, max_features=limit),
    "ovr": lambda e, limit: e.PegasosLearner(0.1, 2, 0.0, True, 0.5, max_features=limit, reduction="ovr"),
    "adaptive": lambda e, limit: e.AdaptiveLearner(0.5, False, 5.0, 0.5, 30.0, 0.1, limit),
}


@both_engines
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("limit", [1, 7, 10, 29, 30, 31])
def test_it_ends_with_an_example_that_brings_too_many_features(engine_in_test, rule, limit):
    whole, part, before = (RULES[rule](engine_in_test, most) for most in (0, limit, limit))
    vocabulary, X = engine_in_test.Vocabulary(), [{i: 1.0, 40 - i % 2: -1.0} for i in range(30)]
    y = np.array([0.0, 1.0] * 15)
    margins, calibrated = part.predict_learn_many(vocabulary, X, y)
    n = len(margins)
    assert len(calibrated) == n and (len(part) > limit or n == len(X))
    expected, _ = whole.predict_learn_many(vocabulary, X[:n], y[:n])
    assert np.array_equal(margins, expected) and same_state(whole, part)
    assert len(before.predict_learn_many(vocabulary, X[: n - 1], y[: n - 1])[0]) == n - 1
    assert len(before) <= limit
    assert len(part.predict_learn_many(vocabulary, X)[0]) == len(X)  # predicting, it goes on to the end


@both_engines
@pytest.mark.parametrize("rule", RULES)
def test_an_example_that_cannot_be_read_leaves_everything_as_it_was(engine_in_test, rule):
    learner, vocabulary = RULES[rule](engine_in_test, 0), engine_in_test.Vocabulary()
    for _ in range(3):
        learner.learn(vocabulary, {"a": 1.0, 5: 2.0}, 0.0, 1.0)
    before, names = learner.get_state(), vocabulary.names
    bad = {"new": 1.0, "bad": math.nan}
    for call in (
        lambda: learner.margins(vocabulary, bad),
        lambda: learner.learn(vocabulary, bad, 1.0, 1.0),
        lambda: learner.predict_learn_many(vocabulary, [{"newer": 1.0}, bad], np.array([1.0, 0.0])),
        lambda: learner.predict_learn_many(vocabulary, [{"newer": 1.0}, bad]),
    ):
        with pytest.raises(ValueError, match="bad"):
            call()
        assert same_state(learner, before) and vocabulary.names == names


@both_engines
def test_a_kernel_that_fails_leaves_everything_as_it_was(engine_in_test):
    def dot(x, other):
        if fails:
            raise OSError("no kernel today")
        return sum(value * other.get(name, 0.0) for name, value in x.items())

    fails, vocabulary = False, engine_in_test.Vocabulary()
    learner = KernelLearner(0.1, 0.0, dot, 1.0, 0.0, 1, 0, False)
    learner.learn(vocabulary, {"a": 1.0}, 1.0, 1.0)
    before = learner.get_state()
    fails = True
    for _ in range(2):  # also after it failed
        for call in (
            lambda: learner.margins(vocabulary, {"new": 1.0}),
            lambda: learner.learn(vocabulary, {"new": 1.0}, 1.0, 1.0),
            lambda: learner.predict_learn_many(vocabulary, [{"new": 1.0}], np.ones(1)),
        ):
            with pytest.raises(OSError, match="no kernel today"):
                call()
            assert vocabulary.names == ["a"]
            assert learner.get_state()["coefficients"].tolist() == before["coefficients"].tolist()
            assert learner.n_iterations == before["n_iterations"]


@both_engines
def test_labels_as_targets(engine_in_test):
    targets = {"ham": -1.0, "spam": 1.0, 1: 2.0}
    assert engine_in_test.targets_of(["ham", "spam", "spam", 1, True], targets).tolist() == [-1.0, 1.0, 1.0, 2.0, 2.0]
    assert engine_in_test.targets_of([], targets).dtype == np.float64
    assert engine_in_test.targets_of(["ham", "eggs"], targets) is None
    with pytest.raises(TypeError):
        engine_in_test.targets_of([["ham"]], targets)
