"""What is true of every rule, in both engines."""

import itertools
import math

import numpy as np
import pytest
from engines import both_engines, random_stream, same_state
from rules import LEARNERS, OF_TWO_CLASSES, for_each_learner, history, targets_of

from stream_pegasos.engine.pure.weights import FIRST_NAME, INTERCEPT

pytestmark = both_engines


@for_each_learner
def test_many_at_once_are_one_by_one(which, engine_in_test):
    """The margins before each, −inf for classes that are yet to come, and what calibrates them."""
    one, many = (LEARNERS[which](engine_in_test) for _ in range(2))
    vocabulary, X, weights = engine_in_test.Vocabulary(), random_stream(60, 4), np.resize([1.0, 0.0, 2.5], 60)
    y = np.array([min(i // 7, i % 3) if one.has_class_columns else i % 3 != 1 for i in range(60)], float)
    expected = []
    for x, target, weight in zip(X, y, weights, strict=True):
        margins = one.margins(vocabulary, x)
        expected.append((margins, one.calibrated))
        one.learn(vocabulary, x, target, weight)
    margins, calibrated = many.predict_learn_many(vocabulary, X, y, weights)
    assert same_state(one, many)
    for (its, its_calibrated), row, of_row in zip(expected, margins, calibrated, strict=True):
        to_come = [-math.inf] * (len(row) - len(its))
        assert np.array_equal([*its, *to_come], row) and np.array_equal(its_calibrated, of_row)
    for x, row in zip(X, many.predict_learn_many(vocabulary, X)[0], strict=True):
        assert np.array_equal(one.margins(vocabulary, x), row)
    for empty in (None, np.empty(0)):
        assert [len(out) for out in many.predict_learn_many(vocabulary, [], empty)] == [0, 0]
    assert same_state(one, many)


@pytest.mark.parametrize("which", OF_TWO_CLASSES)
@pytest.mark.parametrize("names_opposite", [False, True])
def test_a_class_has_no_margin_before_it_comes(which, names_opposite, engine_in_test):
    """Of two that share a column; the first one may bring the other with it, as a truth value does."""
    random, vocabulary, X = np.random.default_rng(6), engine_in_test.Vocabulary(), random_stream(8, 2)
    for begin, _ in itertools.product(range(3), range(10)):
        learner, weights = LEARNERS[which](engine_in_test), random.integers(0, 2, 8) * 1.0
        learner.n_known, learner.names_opposite = begin, names_opposite and not begin
        y = random.integers(0, 2, 8) * 1.0
        y[: 0 if begin else np.argmax(weights) + 1] = 0.0  # numbers are given in order of arrival
        come = np.where(weights > 0.0, 2.0 if learner.names_opposite else y + 1.0, 0.0)
        n_known = np.maximum.accumulate([float(begin), *come])
        margins, _ = learner.predict_learn_many(vocabulary, X, y, weights)
        assert np.array_equal(np.isfinite(margins), np.arange(2) < n_known[:-1, np.newaxis])
        row = learner.margins(vocabulary, X[0])
        assert learner.n_known == n_known[-1] == len(row)
        assert learner.predict(vocabulary, X[0]) == (int(np.argmax(row)) if row else -1)
        assert np.isfinite(learner.predict_learn_many(vocabulary, X)[0]).sum() == 8 * n_known[-1]


@for_each_learner
def test_looking_changes_nothing(which, engine_in_test):
    """At what is not known, or cannot be read; nor does learning change a state that was taken out."""
    *_, [(learner, vocabulary)] = history(which, engine_in_test, n=30)
    before, names, y = learner.get_state(), vocabulary.names, targets_of(learner)[0]
    kept = {name: np.copy(value) for name, value in before.items()}
    x, bad = {"new": 1.0, "a": 2.0}, {"new": 1.0, "bad": math.nan}
    learner.margins(vocabulary, x)
    learner.predict_learn_many(vocabulary, [x, {"newer": 1.0}])
    learner.contributions(vocabulary, x)
    for call in (
        lambda: learner.margins(vocabulary, bad),
        lambda: learner.learn(vocabulary, bad, y, 1.0),
        lambda: learner.predict_learn_many(vocabulary, [x, bad], np.array([y, y])),
        lambda: learner.predict_learn_many(vocabulary, [x, bad]),
    ):
        with pytest.raises(ValueError, match="bad"):
            call()
    assert same_state(learner, before) and vocabulary.names == names
    learner.learn(vocabulary, x, y, 1.0)
    learner.flush()
    assert same_state(before, kept) and not same_state(learner, kept)


# Beside margins of 1e30 nothing is left of those of 1.
@pytest.mark.parametrize("which", [which for which in OF_TWO_CLASSES if which != "two, small l2"])
def test_exchanging_the_classes_is_learning_the_other_way_round(which, engine_in_test):
    one, other = (LEARNERS[which](engine_in_test) for _ in range(2))
    vocabulary, X = engine_in_test.Vocabulary(), random_stream(50, 2)
    for i, x in enumerate(X):
        y = float(i % 3 != 1)
        one.learn(vocabulary, x, 1.0 - y if i < 23 else y, 1.0)
        other.learn(vocabulary, x, y, 1.0)
        if i == 22:
            one.set_state(one.declaration.mirrored(one.get_state()))
    for x in X:
        assert one.margins(vocabulary, x) == pytest.approx(other.margins(vocabulary, x), rel=1e-6, abs=1e-9)
    assert one.calibrated == pytest.approx(other.calibrated, rel=1e-6)
    assert one.get_state().get("n_buffered") == other.get_state().get("n_buffered")


@pytest.mark.parametrize("which", [which for which in LEARNERS if "extreme" not in which])
def test_weights_make_the_margin(which, engine_in_test):
    *_, [(learner, vocabulary)] = history(which, engine_in_test)
    keys, values = learner.items()
    assert values.shape == (len(learner), learner.intercept.size if "ordinal" not in which else 1)
    assert INTERCEPT not in keys and np.array_equal(learner.get_weights(keys), values)
    assert not learner.get_weights(np.array([10**6, FIRST_NAME + 99])).any()
    x = {"a": 1.0, 5: -0.5, 1000: 1.0, "never met": 2.0}
    margins = learner.margins(vocabulary, x)
    for column, margin in enumerate(margins) if "ordinal" not in which else ():
        contributions = learner.contributions(vocabulary, x, column)
        assert set(contributions) <= {*keys, 1000} and FIRST_NAME in contributions
        total = math.fsum(contributions.values()) + learner.intercept[column]
        assert margin == pytest.approx(total, rel=1e-9, abs=1e-12)
    assert not any(learner.contributions(vocabulary, {}).values())


LIMITED = {
    "two": lambda e, limit: e.PegasosLearner(0.1, 2, 0.0, True, 0.5, max_features=limit),
    "ovr": lambda e, limit: e.PegasosLearner(0.1, 2, 0.0, True, 0.5, max_features=limit, reduction="ovr"),
    "adaptive": lambda e, limit: e.AdaptiveLearner(0.5, False, 5.0, 0.5, 30.0, 0.1, limit),
}


@pytest.mark.parametrize("rule", LIMITED)
@pytest.mark.parametrize("limit", [1, 7, 10, 29, 30, 31])
def test_it_ends_with_an_example_that_brings_too_many_features(engine_in_test, rule, limit):
    whole, part, before = (LIMITED[rule](engine_in_test, most) for most in (0, limit, limit))
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


@pytest.mark.parametrize("slope", [1e-200, 1e-9, 0.3, 1.0, 25.0, 1e200])
def test_probabilities_agree_with_decisions(engine_in_test, slope):
    learner = engine_in_test.PegasosLearner(1e-4, 1, 0.0, True, 0.0)
    learner.set_state({**learner.get_state(), "slope": slope})
    sizes = [0.0, 5e-324, *(10.0**exponent for exponent in range(-320, 309, 2)), 34.0 / slope, 1.7e308]
    for margin in (sign * size for size in sizes for sign in (1.0, -1.0)):
        other, p = engine_in_test.probabilities_one([-margin, margin], learner.calibrated)
        assert 0.0 < p < 1.0 and 0.0 < other < 1.0 and p + other == 1.0
        assert (p > other) == (margin > 0.0) if abs(margin * slope) > 1e-8 else p == pytest.approx(0.5)


def test_labels_as_targets(engine_in_test):
    targets = {"ham": -1.0, "spam": 1.0, 1: 2.0}
    assert engine_in_test.target_array(["ham", "spam", "spam", 1, True], targets).tolist() == [-1.0, 1.0, 1.0, 2.0, 2.0]
    assert engine_in_test.target_array([], targets).dtype == np.float64
    assert engine_in_test.target_array(["ham", "eggs"], targets) is None
    with pytest.raises(TypeError):
        engine_in_test.target_array([["ham"]], targets)
