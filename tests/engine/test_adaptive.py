"""The adaptive rule, in both engines: what is true of it alone."""

import math

import numpy as np
import pytest
from engines import assert_near, both_engines, compiled_engine, needs_compiled, same_state

from stream_pegasos.engine.pure.mistakes import N_MISTAKES


@both_engines
@pytest.mark.parametrize("half_life", [0.0, 1.0])
@pytest.mark.parametrize("hinge", [False, True])
def test_two_examples_by_hand(engine_in_test, hinge, half_life):
    """The first step on a weight is the learning rate, whatever the gradient; the second is worked out below."""
    learner, vocabulary = (
        engine_in_test.AdaptiveLearner(0.5, hinge, 5.0, 0.5, half_life, 0.1),
        engine_in_test.Vocabulary(),
    )
    learner.learn(vocabulary, {0: 3.0, 1: -3.0}, 1.0, 2.0)
    assert learner.items()[1][:, 1] == pytest.approx(
        [0.5 * 0.3, -0.5 * 0.3]
    )  # as often in positive ones as all examples
    assert learner.intercept == pytest.approx([-0.05, 0.05])
    kept = 0.5 if half_life else 1.0  # of the evidence
    slope = 1.0 if hinge else 0.5
    squares = kept * (2.0 * slope) ** 2 / 2.0, kept * (2.0 * slope * 0.1) ** 2
    scale, unknown = 0.3, 0.3 + math.log(2.5 / 0.5)
    value = scale / math.hypot(scale, unknown)
    margin = 0.5 * value + 0.05
    assert learner.margins(vocabulary, {0: 1.0, 2: 1.0})[1] == pytest.approx(margin)
    learner.learn(vocabulary, {0: 1.0, 2: 1.0}, 0.0, 1.0)
    slope = 1.0 if hinge else 1.0 / (1.0 + math.exp(-margin))
    weight = 0.5 - 0.5 * slope * value / math.sqrt(squares[0] + (slope * value) ** 2)
    intercept = 0.5 - 0.5 * slope * 0.1 / math.sqrt(squares[1] + (slope * 0.1) ** 2)
    assert learner.intercept == pytest.approx([-0.1 * intercept, 0.1 * intercept])
    positives = 2.0 * kept
    prior = math.log(positives + 0.5) - math.log(1.5)
    ratios = {0: prior, 1: math.log(2.5 / 0.5), 2: math.log(0.5 / 1.5)}
    expected = [w * (0.3 + abs(ratios[key] - prior)) for key, w in {0: weight, 1: -0.5, 2: -0.5}.items()]
    assert learner.get_weights(np.arange(3))[:, 1] == pytest.approx(expected)


@both_engines
def test_weights_below_the_least_squared_gradient_do_not_move(engine_in_test):
    """Those of features, whose squared gradients are 0 from 2⁻¹²⁶ on."""
    learner, vocabulary = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 0.0, 0.1), engine_in_test.Vocabulary()
    learner.learn(vocabulary, {0: 1.0}, 1.0, 1e-25)
    assert learner.get_weights(np.array([0])).tolist() == [[0.0, 0.0]]
    assert learner.intercept == pytest.approx([-0.05, 0.05])


@both_engines
def test_names_that_were_never_learned_count_as_such_columns_do(engine_in_test):
    """In the norm of the row, though their weight is 0; and looking at them brings them no name."""
    named, numbered = (engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 0.0, 0.1) for _ in range(2))
    vocabulary = engine_in_test.Vocabulary()
    for i in range(5):
        named.learn(vocabulary, {"a": 1.0, "b": 1.0 * i}, float(i % 2 == 0), 1.0)
        numbered.learn(vocabulary, {1: 1.0, 2: 1.0 * i}, float(i % 2 == 0), 1.0)
    expected = pytest.approx(numbered.margins(vocabulary, {1: 1.0, 3: 2.0})[1], rel=1e-12)
    x = {"a": 1.0, "never met": 2.0}
    assert named.margins(vocabulary, x)[1] == expected
    assert named.predict_learn_many(vocabulary, [x])[0][0, 1] == expected
    assert sum(named.contributions(vocabulary, x, 1).values()) + named.intercept[1] == expected
    assert vocabulary.names == ["a", "b"]
    assert named.predict_learn_many(vocabulary, [x], np.array([1.0]))[0][0, 1] == expected


@both_engines
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_margins_stay_when_the_evidence_is_written_down_anew(engine_in_test, smoothing):
    """With a half-life of one example that is due every 16 of them, which weigh next to nothing and have no feature."""
    generator = np.random.default_rng(6)
    learner = engine_in_test.AdaptiveLearner(0.5, False, math.inf, smoothing, 1.0, 0.1)
    vocabulary = engine_in_test.Vocabulary()
    X = [{int(k): float(generator.normal()) for k in generator.choice(40, 5)} for _ in range(8)]
    for i, x in enumerate(X):
        learner.learn(vocabulary, x, float(i % 3 > 0), 1.0)
    n_renewed = 0
    for i in range(480):
        before, evidence = [learner.margins(vocabulary, x)[1] for x in X], learner.get_state()["evidence"]
        learner.learn(vocabulary, {}, 1.0, 1e-200)
        n_renewed += learner.get_state()["evidence"] < evidence
        if i > 60 or not smoothing:  # until then it is the ratio of all examples that goes
            assert_near([learner.margins(vocabulary, x)[1] for x in X], before, rel=1e-9, abs=1e-12)
    assert n_renewed == 30


@both_engines
@pytest.mark.parametrize("largest_margin", [0.5, 5.0, math.inf])
def test_examples_right_by_the_margin_leave_no_feature(engine_in_test, largest_margin):
    """Nor anything else but what is counted of all examples."""
    learner = engine_in_test.AdaptiveLearner(10.0, False, largest_margin, 0.5, 0.0, 0.1)
    vocabulary, n_skipped = engine_in_test.Vocabulary(), 0
    for i in range(60):
        x, y = {0: 1.0, 1: 1.0 if i % 2 else -1.0, 100 + i: 0.01}, 1.0 if i % 2 else -1.0
        is_right, before = y * learner.margins(vocabulary, x)[1] >= largest_margin, learner.get_state()
        learner.learn(vocabulary, x, float(y > 0.0), 1.0)
        after, n_skipped = learner.get_state(), n_skipped + is_right
        assert (100 + i in after["keys"]) == (not is_right) and after["n_iterations"] == i + 1
        for name in before.keys() - {"n_iterations", "slope", "calibration_squares", *learner.mistakes()}:
            assert not is_right or np.array_equal(before[name], after[name])
    assert (n_skipped > 0) == (largest_margin < math.inf)


@both_engines
def test_one_of_the_largest_examples_does_not_silence_those_after_it(engine_in_test):
    """Their steps are small beside its gradient; but with a half-life they come back."""
    learner, vocabulary = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 1.0, 0.0), engine_in_test.Vocabulary()
    learner.learn(vocabulary, {0: 1.0}, 1.0, 1e60)
    for _ in range(1000):
        learner.learn(vocabulary, {0: 1.0}, 0.0, 1.0)
    assert learner.margins(vocabulary, {0: 1.0})[1] < -1.0


@both_engines
def test_mistakes_are_counted_by_their_size(engine_in_test):
    """A size is the mean of the two places that it counts at; half of all is forgotten at 32,768 of a class."""
    learner, vocabulary = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 0.0, 0.1), engine_in_test.Vocabulary()
    generator = np.random.default_rng(5)
    names = ("n_newest_negatives", "n_newest_positives", "false_positives", "false_negatives")
    n, sizes = np.zeros(2), [[], []]
    for _ in range(300):
        x = {int(i): 1.0 for i in generator.integers(0, 9, 3)}
        y = float(generator.choice([-1.0, 1.0]))
        margin = learner.margins(vocabulary, x)[1]
        learner.learn(vocabulary, x, float(y > 0.0), 1.0)
        n[int(y > 0)] += 1
        if y * margin < 0:
            sizes[int(y > 0)].append(abs(margin))
    state = learner.get_state()
    places = np.array([(1.0 + i % 8 / 8.0) * 2.0 ** (i // 8 - 9) for i in range(N_MISTAKES)])
    for sign in (0, 1):
        counts = state[names[2 + sign]]
        assert state[names[sign]] == n[sign]
        assert counts @ places == pytest.approx(sum(sizes[sign]))
        large = [size for size in sizes[sign] if size >= places[0]]
        assert counts.sum() == pytest.approx(len(large) + sum(s / places[0] for s in sizes[sign] if s < places[0]))
        assert counts[places > max(sizes[sign]) * 1.13].sum() == 0.0
    learner.set_state(learner.declaration.mirrored(state))
    assert np.array_equal(learner.get_state()["false_positives"], state["false_negatives"])
    full = {**learner.get_state(), "n_newest_positives": 32_767.0}
    learner.set_state(full)
    learner.learn(vocabulary, {}, 1.0, 1.0)
    after = learner.get_state()
    assert after["n_newest_positives"] == 16_384.0
    assert after["false_negatives"].sum() == pytest.approx(full["false_negatives"].sum() / 2.0, abs=0.51)
    assert np.array_equal(after["false_positives"], full["false_positives"])


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


# --- several columns --------------------------------------------------------------------------------------------------


def columns_of(engine, reduction, order, hinge=False, limit=5.0, smoothing=0.5, half_life=0.0):
    learner = engine.AdaptiveLearner(0.5, hinge, limit, smoothing, half_life, 0.1, reduction=reduction)
    learner.order = order
    return learner


@both_engines
def test_two_examples_of_two_columns_by_hand(engine_in_test):
    """Of class 0 and of class 1, which then begins; slopes of probabilities and offsets are still as at first."""
    learner, vocabulary = columns_of(engine_in_test, "ovr", np.zeros(0, np.int64)), engine_in_test.Vocabulary()
    rate = 0.5 * math.sqrt(2.0)
    learner.learn(vocabulary, {0: 3.0, 1: 4.0}, 0.0, 1.0)
    first = [rate * 0.5 * z / math.sqrt((0.5 * z) ** 2 + 0.001) for z in (0.6, 0.8)]
    assert learner.get_weights(np.arange(2))[:, 0] == pytest.approx([0.3 * w for w in first])
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
    assert learner.get_weights(np.zeros(1, np.int64))[0] == pytest.approx([0.3 * w for w in weights])
    # Feature 1 had none of class 1: its ratio is that of when it was learned.
    assert learner.get_weights(np.ones(1, np.int64))[0] == pytest.approx([0.3 * first[1], 0.0])
    learner.learn(vocabulary, {2: 1.0}, 0.0, 1.0)
    learner.learn(vocabulary, {1: 1.0}, 1.0, 1.0)
    # Class 1: in 1 of its 3, and in 1 of the 2 others. Class 0: in 1 of its 2, and in 1 of 3 others, which is more.
    ratio = math.log((1.0 + 0.5) / (1.0 + 0.5) * (3.0 + 0.5) / (2.0 + 0.5))
    assert learner.get_state()["log_ratios"][learner.get_state()["keys"] == 1] == pytest.approx([ratio])


@both_engines
def test_several_labels_move_offsets_and_slope_by_their_errors(engine_in_test):
    """p = 1/(1 + exp(−s·m − o)) for each class by itself."""
    learner, vocabulary = (
        columns_of(engine_in_test, "multilabel", np.zeros(0, np.int64)),
        engine_in_test.Vocabulary(),
    )
    learner.sets = np.array([0, 2]), np.array([0, 2], np.int64)
    learner.learn(vocabulary, {0: 1.0}, 0.0, 1.0)
    # Three classes begin at once with the margin −log 2, and so with a probability of ⅓.
    errors = np.array([-2.0, 1.0, -2.0]) / 3.0
    state = learner.get_state()
    assert state["offsets"] == pytest.approx(-0.1 * errors / np.sqrt(20.0 + errors**2))
    gradient = float((errors * -math.log(2.0)).sum())
    assert state["calibration_squares"] == pytest.approx(gradient**2)
    assert state["slope"] == 1.0  # no probability could have told labels that are new


@both_engines
def test_an_ordered_class_moves_the_offset_of_its_threshold_further(engine_in_test):
    """From a margin of 0, and so a probability of ½: by the first step of a rate of 1, from squares of 1."""
    learner, vocabulary = columns_of(engine_in_test, "ordinal", np.array([0, 1])), engine_in_test.Vocabulary()
    for y in (0.0, 1.0):
        learner.learn(vocabulary, {0: 1.0}, y, 1.0)
    assert learner.get_state()["offsets"] == pytest.approx([0.5 / math.sqrt(1.0 + 0.5**2)])


@both_engines
def test_ordered_classes_share_their_weights(engine_in_test):
    """Proportional odds: the probability of a class above k is 1/(1 + exp(−s·(w·z + b_k) − o_k))."""
    learner = columns_of(engine_in_test, "ordinal", np.array([0, 1, 2]), limit=math.inf)
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
    learner, vocabulary = columns_of(engine_in_test, "ovr", np.zeros(0, np.int64)), engine_in_test.Vocabulary()
    for i in range(900):
        learner.learn(vocabulary, {i % 300: 1.0, 5_000 + i % 7: 1.0}, float(i % 300), 1.0)
    state = learner.get_state()
    of_own_word = dict(zip(state["keys"].tolist(), state["n_taught"].tolist(), strict=True))
    assert learner.n_columns == 300 and max(of_own_word[i] for i in range(200, 300)) < 20


@both_engines
def test_a_line_between_ordered_classes_begins_as_its_neighbour(engine_in_test):
    learner, vocabulary = columns_of(engine_in_test, "ordinal", np.array([0, 2, 1, 3])), engine_in_test.Vocabulary()
    for i in range(40):
        learner.learn(vocabulary, {"high" if i % 2 else "low": 1.0}, float(i % 2), 1.0)
    (between,) = learner.intercept
    before = learner.margins(vocabulary, {"low": 1.0})
    other = columns_of(engine_in_test, "ordinal", np.array([0, 2, 1, 3]))
    other.set_state(learner.get_state())
    other.order = np.array([0, 2, 1, 3])
    assert other.margins(vocabulary, {"low": 1.0}).tolist() == before.tolist()
    learner.learn(vocabulary, {}, 2.0, 1e-200)  # which weighs next to nothing, but brings the class
    assert len(learner.intercept) == 2
    assert learner.intercept == pytest.approx([between, between], abs=2.0)
    assert learner.get_state()["order"].tolist() == [0, 2, 1]


@both_engines
def test_a_class_that_is_gone_leaves_nothing(engine_in_test):
    """A learner with the state of fewer classes is one that never knew of more. Four take all the room of a feature, so
    that what stands behind its counts are large weights of the next one.
    """
    order = np.arange(5)
    learner, vocabulary = columns_of(engine_in_test, "ovr", order), engine_in_test.Vocabulary()
    for i in range(200):
        learner.learn(vocabulary, {i % 7: 1.0, i % 11: 2.0}, float(i % 5), 1.0)
    fewer, fresh = learner.declaration.drop_column(learner.get_state(), 0), columns_of(engine_in_test, "ovr", order)
    fewer["values"] = 1e6 + np.abs(fewer["values"])
    for each in (learner, fresh):
        each.set_state(fewer)
        for i in range(100):
            each.learn(vocabulary, {i % 7: 1.0, i % 11: 2.0}, float(i % 4), 1.0)
    assert same_state(learner, fresh)
