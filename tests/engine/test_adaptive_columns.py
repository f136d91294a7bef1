"""The adaptive rule on several columns, in both engines."""

import math

import numpy as np
import pytest
from engines import both_engines


def learner_with(engine, reduction, order, hinge=False, limit=5.0, smoothing=0.5, half_life=0.0):
    learner = engine.AdaptiveColumnsLearner(0.5, hinge, limit, smoothing, half_life, 0.1, reduction=reduction)
    learner.order = order
    return learner


@both_engines
def test_two_examples_by_hand(engine_in_test):
    """Of class 0 and of class 1, which then begins; slopes of probabilities and offsets are still as at first."""
    learner, vocabulary = learner_with(engine_in_test, "ovr", np.zeros(0, np.int64)), engine_in_test.Vocabulary()
    rate = 0.5 * math.sqrt(2.0)
    learner.learn(vocabulary, {0: 3.0, 1: 4.0}, 0.0, 1.0)
    first = [rate * 0.5 * z / math.sqrt((0.5 * z) ** 2 + 0.001) for z in (0.6, 0.8)]
    assert learner.weights_of(np.arange(2))[:, 0] == pytest.approx([0.3 * w for w in first])
    # The softmax of one class is 1, so that neither slope nor offset moves. The first step of an intercept is the rate.
    assert learner.intercept == pytest.approx([0.1 * rate])
    assert learner.calibrated == (1.0, 0.0, 1.0)
    learner.learn(vocabulary, {0: 1.0}, 1.0, 2.0)
    margin = first[0] + 0.1 * rate  # of class 0; that of class 1 is log(2 - 1) = 0
    slopes = 1.0 / (1.0 + math.exp(-margin)), -0.5
    squares = 0.3**2 + (2.0 * slopes[0]) ** 2, (2.0 * slopes[1]) ** 2
    weights = [
        before - rate * 2.0 * slope / math.sqrt(square + 0.001)
        for before, slope, square in zip((first[0], 0.0), slopes, squares, strict=True)
    ]
    # Class 1 had the feature in 2 of 2 examples, the others in 1 of 1.
    odds = (2.0 + 0.5) / (1.0 + 0.5) * (1.0 + 0.5) / (2.0 + 0.5)
    assert odds == 1.0
    assert learner.weights_of(np.zeros(1, np.int64))[0] == pytest.approx([0.3 * w for w in weights])
    # Feature 1 had none of class 1: its ratio is that of when it was learned.
    assert learner.weights_of(np.ones(1, np.int64))[0] == pytest.approx([0.3 * first[1], 0.0])
    learner.learn(vocabulary, {2: 1.0}, 0.0, 1.0)
    learner.learn(vocabulary, {1: 1.0}, 1.0, 1.0)
    # Class 1: in 1 of its 3, and in 1 of the 2 others. Class 0: in 1 of its 2, and in 1 of 3 others, which is more.
    ratio = math.log((1.0 + 0.5) / (1.0 + 0.5) * (3.0 + 0.5) / (2.0 + 0.5))
    assert learner.get_state()["log_ratios"][learner.get_state()["keys"] == 1] == pytest.approx([ratio])


@both_engines
def test_several_labels_move_offsets_and_slope_by_their_errors(engine_in_test):
    """p = 1/(1 + exp(−s·m − o)) for each class by itself."""
    learner, vocabulary = learner_with(engine_in_test, "multilabel", np.zeros(0, np.int64)), engine_in_test.Vocabulary()
    learner.sets = np.array([0, 2]), np.array([0, 2], np.int64)
    learner.learn(vocabulary, {0: 1.0}, 0.0, 1.0)
    # Three classes begin at once with the margin −log 2, and so with a probability of ⅓.
    errors = np.array([-2.0, 1.0, -2.0]) / 3.0
    state = learner.get_state()
    assert state["offsets"] == pytest.approx(-0.1 * errors / np.sqrt(20.0 + errors**2))
    gradient = float((errors * -math.log(2.0)).sum())
    assert state["calibration_squares"] == pytest.approx(gradient**2)
    assert state["slope"] == pytest.approx(0.5)  # a first step of half its size, towards smaller margins


@both_engines
def test_ordered_classes_share_their_weights(engine_in_test):
    """Proportional odds: the probability of a class above k is 1/(1 + exp(−s·(w·z + b_k) − o_k))."""
    learner = learner_with(engine_in_test, "ordinal", np.array([0, 1, 2]), limit=math.inf)
    vocabulary = engine_in_test.Vocabulary()
    generator = np.random.default_rng(3)
    for i in range(60):
        number = i % 3
        learner.learn(vocabulary, {number: 1.0, 3: float(generator.normal())}, float(number), 1.0)
    state, x = learner.get_state(), {0: 1.0, 3: 0.5}
    assert learner.items()[1].shape == (4, 1)
    total = math.fsum(learner.contributions(vocabulary, x).values())
    log_odds = state["slope"] * (total + state["intercepts"]) + state["offsets"]
    above = np.concatenate([[1.0], 1.0 / (1.0 + np.exp(-log_odds)), [0.0]])
    assert np.exp(learner.margins(vocabulary, x)) == pytest.approx(above[:-1] - above[1:])
    assert (
        np.argmax(learner.margins(vocabulary, {0: 1.0})) == 0 and np.argmax(learner.margins(vocabulary, {2: 1.0})) == 2
    )
    # Feature 0 is of class 0 alone, and was learned last when there were 19 of each: the very first taught nothing, as
    # there was one class.
    ratios = math.log(0.5 / 19.5 / (38.5 / 19.5)), math.log(0.5 / 19.5 / (19.5 / 38.5))
    assert state["log_ratios"][state["keys"] == 0] == pytest.approx([(abs(ratios[0]) + abs(ratios[1])) / 2.0])


@both_engines
def test_only_columns_that_were_taught_are_kept(engine_in_test):
    """Of many classes with words of their own a feature keeps few."""
    learner, vocabulary = learner_with(engine_in_test, "ovr", np.zeros(0, np.int64)), engine_in_test.Vocabulary()
    for i in range(900):
        learner.learn(vocabulary, {i % 300: 1.0, 5_000 + i % 7: 1.0}, float(i % 300), 1.0)
    state = learner.get_state()
    of_own_word = dict(zip(state["keys"].tolist(), state["n_taught"].tolist(), strict=True))
    assert learner.n_columns == 300 and max(of_own_word[i] for i in range(200, 300)) < 20


@both_engines
def test_a_line_between_ordered_classes_begins_as_its_neighbour(engine_in_test):
    learner, vocabulary = learner_with(engine_in_test, "ordinal", np.array([0, 2, 1, 3])), engine_in_test.Vocabulary()
    for i in range(40):
        learner.learn(vocabulary, {"high" if i % 2 else "low": 1.0}, float(i % 2), 1.0)
    (between,) = learner.intercept
    before = learner.margins(vocabulary, {"low": 1.0})
    other = learner_with(engine_in_test, "ordinal", np.array([0, 2, 1, 3]))
    other.set_state(learner.get_state())
    other.order = np.array([0, 2, 1, 3])
    assert other.margins(vocabulary, {"low": 1.0}).tolist() == before.tolist()
    learner.learn(vocabulary, {}, 2.0, 0.0)  # which weighs nothing, but brings the class
    assert len(learner.intercept) == 2
    assert learner.intercept == pytest.approx([between, between], abs=2.0)
    assert learner.get_state()["order"].tolist() == [0, 2, 1]
