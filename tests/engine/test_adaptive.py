"""The learner behind `AdaptiveClassifier`, in both engines."""

import math
import pickle

import numpy as np
import pytest
from engines import both_engines, same_state
from pairwise import pairwise
from scipy import sparse

from stream_pegasos import AdaptiveClassifier, engine, load
from stream_pegasos.engine.pure.mistakes import N_MISTAKES
from stream_pegasos.engine.pure.weights import FIRST_NAME

KEYS = [0, 1, 7, -3, FIRST_NAME, FIRST_NAME + 1]
NAMES = ["a", ("b", 1)]  # of the last two keys
FEATURES = [*KEYS[:4], *NAMES]


CHOICES = {
    "hinge": (True, False),
    "margin": (0.5, 5.0, math.inf),
    "smoothing": (0.0, 0.5),
    "half_life": (0.0, 1.0, 30.0),
    "scaling": (0.0, 0.1, 1.0),
}
OPTIONS = [tuple(chosen.values()) for chosen in pairwise(**CHOICES)]


def random_rows(generator, n, d):
    """Rows with a feature in two or so, of sizes that differ, and one row of zeros alone."""
    X = generator.normal(size=(n, d)) * 10.0 ** generator.integers(-2, 3, (n, d)) * (generator.random((n, d)) < 0.5)
    X[n // 2] = 0.0
    y = np.where(X[:, 0] + X[:, 1] + generator.normal(size=n) > 0.0, 1.0, -1.0)
    return X, y, generator.choice([1.0, 1.0, 0.0, 0.3, 20.0, 1e30], n, p=[0.4, 0.3, 0.1, 0.1, 0.09, 0.01])


def as_features(x, names=FEATURES):
    return {name: float(value) for name, value in zip(names, x, strict=True) if value}


@both_engines
@pytest.mark.parametrize("half_life", [0.0, 1.0])
@pytest.mark.parametrize("hinge", [False, True])
def test_two_examples_by_hand(engine_in_test, hinge, half_life):
    """The first step on a weight is the learning rate, whatever the gradient; the second is worked out below."""
    learner, vocabulary = (
        engine_in_test.AdaptiveLearner(0.5, hinge, 5.0, 0.5, half_life, 0.1),
        engine_in_test.Vocabulary(),
    )
    learner.learn(vocabulary, {0: 3.0, 1: 4.0}, 1.0, 2.0)
    assert learner.items()[1] == pytest.approx(np.full((2, 1), 0.5 * 0.3))  # as often in positive ones as all examples
    assert learner.intercept == pytest.approx([0.05])
    kept = 0.5 if half_life else 1.0  # of the evidence
    slope = 1.0 if hinge else 0.5
    squares = kept * (2.0 * slope * 0.6) ** 2, kept * (2.0 * slope * 0.1) ** 2
    scale, unknown = 0.3, 0.3 + math.log(2.5 / 0.5)
    value = scale / math.hypot(scale, unknown)
    margin = 0.5 * value + 0.05
    assert learner.margins(vocabulary, {0: 1.0, 2: 1.0})[1] == pytest.approx(margin)
    learner.learn(vocabulary, {0: 1.0, 2: 1.0}, 0.0, 1.0)
    slope = 1.0 if hinge else 1.0 / (1.0 + math.exp(-margin))
    weight = 0.5 - 0.5 * slope * value / math.sqrt(squares[0] + (slope * value) ** 2)
    intercept = 0.5 - 0.5 * slope * 0.1 / math.sqrt(squares[1] + (slope * 0.1) ** 2)
    assert learner.intercept == pytest.approx([0.1 * intercept])
    positives = 2.0 * kept
    prior = math.log(positives + 0.5) - math.log(1.5)
    ratios = {0: prior, 1: math.log(2.5 / 0.5), 2: math.log(0.5 / 1.5)}
    expected = [w * (0.3 + abs(ratios[key] - prior)) for key, w in {0: weight, 1: 0.5, 2: -0.5}.items()]
    assert learner.weights_of(np.arange(3))[:, 0] == pytest.approx(expected)


@both_engines
def test_weights_below_the_least_squared_gradient_do_not_move(engine_in_test):
    """Those of features, whose squared gradients are 0 from 2⁻¹²⁶ on."""
    learner, vocabulary = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 0.0, 0.1), engine_in_test.Vocabulary()
    learner.learn(vocabulary, {0: 1.0}, 1.0, 1e-25)
    assert learner.weights_of(np.array([0])).tolist() == [[0.0]] and learner.intercept == pytest.approx([0.05])


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
    assert sum(named.contributions(vocabulary, x).values()) + named.intercept == expected
    assert vocabulary.names == ["a", "b"]
    assert named.predict_learn_many(vocabulary, [x], np.array([1.0]))[0][0, 1] == expected


def assert_agree(one, other):
    """That the learners are in the same state, to rounding, whatever the order of their features."""
    states = [one.get_state(), other.get_state()]
    orders = [np.argsort(state["keys"]) for state in states]
    of_features = {field.name for field in one.declaration.fields if "features" in field.shape}
    for name in states[0]:
        pair = [s[name][o] if name in of_features else s[name] for s, o in zip(states, orders, strict=True)]
        exact = name in ("keys", "n_iterations")
        assert np.array_equal(*pair) if exact else pair[0] == pytest.approx(pair[1], rel=1e-7, abs=1e-9), name


@both_engines
@pytest.mark.parametrize("half_life", [0.0, 1.0, 30.0])
def test_many_at_once_is_one_by_one(engine_in_test, half_life):
    generator = np.random.default_rng(3)
    X, y, c = random_rows(generator, 600, len(KEYS))
    X = [as_features(x) for x in X]
    one, many = (engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, half_life, 0.1) for _ in range(2))
    vocabulary = engine_in_test.Vocabulary(NAMES)
    expected = []
    for x, sign, weight in zip(X, y, c, strict=True):
        margin = one.margins(vocabulary, x)[1]
        expected.append((margin, one.calibrated_for([-margin, margin])[0]))
        one.learn(vocabulary, x, float(sign > 0.0), weight)
    margins, probabilities = many.predict_learn_many(vocabulary, X, 1.0 * (y > 0.0), c)
    assert list(zip(margins[:, 1].tolist(), probabilities[:, 0].tolist(), strict=True)) == expected
    assert same_state(one, many)
    predicted, _ = many.predict_learn_many(vocabulary, X)
    assert predicted[:, 1].tolist() == [one.margins(vocabulary, x)[1] for x in X]
    assert same_state(one, many)
    for nothing in (None, np.empty(0)):
        assert [len(out) for out in many.predict_learn_many(vocabulary, [], nothing)] == [0, 0]


@both_engines
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_contributions_and_the_intercept_make_the_margin(engine_in_test, options):
    generator = np.random.default_rng(4)
    X, y, _ = random_rows(generator, 100, len(KEYS))
    learner, vocabulary = engine_in_test.AdaptiveLearner(0.5, *options), engine_in_test.Vocabulary(NAMES)
    learner.predict_learn_many(vocabulary, [as_features(x) for x in X], 1.0 * (y > 0.0))
    for x in X:
        features = {**as_features(x), 1000: 1.0}  # the last one unknown
        contributions = learner.contributions(vocabulary, features)
        assert set(contributions) <= set(KEYS)
        total = math.fsum(contributions.values()) + learner.intercept[0]
        assert total == pytest.approx(learner.margins(vocabulary, features)[1], rel=1e-9, abs=1e-12)
    assert learner.contributions(vocabulary, {}) == {}
    assert [learner.margins(vocabulary, {})[1]] == learner.intercept.tolist()


@both_engines
def test_exchanging_the_classes_is_learning_the_other_way_round(engine_in_test):
    X, y, c = random_rows(np.random.default_rng(5), 100, len(KEYS))
    one, other = (engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 30.0, 0.1) for _ in range(2))
    vocabulary = engine_in_test.Vocabulary(NAMES)
    X = [as_features(x) for x in X]
    one.predict_learn_many(vocabulary, X[:50], 1.0 * (-y[:50] > 0.0), c[:50])
    one.negate()
    one.predict_learn_many(vocabulary, X[50:], 1.0 * (y[50:] > 0.0), c[50:])
    other.predict_learn_many(vocabulary, X, 1.0 * (y > 0.0), c)
    assert_agree(one, other)


@both_engines
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_margins_stay_when_the_evidence_is_written_down_anew(engine_in_test, smoothing):
    """With a half-life of one example that is due every 16 of them."""
    generator = np.random.default_rng(6)
    learner = engine_in_test.AdaptiveLearner(0.5, False, math.inf, smoothing, 1.0, 0.1)
    vocabulary = engine_in_test.Vocabulary()
    X = [{int(k): float(generator.normal()) for k in generator.choice(40, 5)} for _ in range(20)]
    for i, x in enumerate(X):
        learner.learn(vocabulary, x, float(i % 3 > 0), 1.0)
    n_renewed = 0
    for _ in range(480):
        before, evidence = [learner.margins(vocabulary, x)[1] for x in X], learner.get_state()["evidence"]
        learner.learn(vocabulary, {}, 1.0, 0.0)  # weighs nothing and has no feature
        n_renewed += learner.get_state()["evidence"] < evidence
        # The prior, which this example has learned, is all that may have changed.
        after = [learner.margins(vocabulary, x)[1] for x in X]
        if learner.get_state()["evidence"] < evidence and not smoothing:
            assert after == before
        settled = abs(learner.get_state()["intercept_log_ratio"]) < 1e-12
        if settled:
            assert after == pytest.approx(before, rel=1e-9)
    assert n_renewed == 30


@both_engines
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_examples_right_by_the_margin_leave_no_feature(engine_in_test, options):
    learner, vocabulary = engine_in_test.AdaptiveLearner(10.0, *options), engine_in_test.Vocabulary()
    n_skipped = 0
    for i in range(60):
        x, y = {0: 1.0, 1: 1.0 if i % 2 else -1.0, 100 + i: 0.01}, 1.0 if i % 2 else -1.0
        margin, before = y * learner.margins(vocabulary, x)[1], learner.get_state()
        learner.learn(vocabulary, x, float(y > 0.0), 1.0)
        after = learner.get_state()
        assert (100 + i in after["keys"]) == (margin < options[1])
        if margin >= options[1]:
            n_skipped += 1
            of_each = {"evidence", "n_iterations", "slope", "calibration_squares", *learner.mistakes()}
            anew = after["evidence"] < before["evidence"]
            for name in before.keys() - of_each:
                is_evidence = name.endswith(("squares", "positives", "negatives"))
                assert np.array_equal(before[name], after[name] * (2.0**16 if anew and is_evidence else 1.0))
        assert after["n_iterations"] == i + 1
    assert (n_skipped > 0) == (options[1] < math.inf)


@both_engines
def test_explicit_zeros_are_neither_stored_nor_counted(engine_in_test):
    with_zeros, without = (engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 30.0, 0.1) for _ in range(2))
    vocabulary, rows = engine_in_test.Vocabulary(), engine_in_test.Rows(1 << 20)
    X, y, c = random_rows(np.random.default_rng(7), 50, 8)
    X[:, 6] = 0.0
    full, thin = sparse.csr_array(np.ones_like(X)), sparse.csr_array(X)
    full.data = X.ravel().copy()
    full.data[full.data == 0.0] = np.resize([0.0, -0.0], (X == 0.0).sum())
    for learner, matrix in ((with_zeros, full), (without, thin)):
        learner.predict_learn_many(
            rows, (matrix.indptr.astype(np.int64), matrix.indices, matrix.data), 1.0 * (y > 0.0), c
        )
    assert_agree(with_zeros, without)
    for x in X:
        with_zeros.learn(vocabulary, dict(enumerate(x.tolist())) | {"zero": 0.0}, 1.0, 1.0)
        without.learn(vocabulary, as_features(x, range(8)), 1.0, 1.0)
    assert_agree(with_zeros, without)
    assert 6 not in with_zeros.items()[0] and vocabulary.names == []


# --- extremes ---------------------------------------------------------------------------------------------------------


@both_engines
@pytest.mark.parametrize("chosen", pairwise(**CHOICES, rate=(1e-30, 0.5, 1e30)), ids=str)
def test_nothing_is_ever_infinite(engine_in_test, chosen):
    *options, rate = chosen.values()
    generator = np.random.default_rng(8)
    for scaling in {options[4], options[4] and 1e30, options[4] and 1e-30}:
        learner, vocabulary = engine_in_test.AdaptiveLearner(rate, *options[:4], scaling), engine_in_test.Vocabulary()
        sizes = [1e45, 1e20, 1.0, 1e-160, 1e-162, 1e-300, 5e-324]
        for i in range(300):
            x = {int(k): float(generator.choice([-1.0, 1.0]) * generator.choice(sizes)) for k in generator.choice(9, 4)}
            weight = float(generator.choice([0.0, 5e-324, 1e-200, 1e-30, 1.0, 1e30, 1e60]))
            y = 1.0 if generator.random() < 0.5 else -1.0
            margin = learner.margins(vocabulary, x)[1]
            assert math.isfinite(margin)
            assert 0.0 < learner.calibrated_for([-margin, margin])[0] < 1.0
            learner.learn(vocabulary, x, float(y > 0.0), weight)
            if i % 100 == 50:
                learner.forget(1e-3)
            assert all(np.isfinite(value).all() for value in learner.get_state().values())
        assert np.isfinite(learner.items()[1]).all()


@both_engines
def test_one_of_the_largest_examples_does_not_silence_those_after_it(engine_in_test):
    """Their steps are small beside its gradient; but with a half-life they come back."""
    learner, vocabulary = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 1.0, 0.0), engine_in_test.Vocabulary()
    learner.learn(vocabulary, {0: 1.0}, 1.0, 1e60)
    for _ in range(1000):
        learner.learn(vocabulary, {0: 1.0}, 0.0, 1.0)
    assert learner.margins(vocabulary, {0: 1.0})[1] < -1.0


@both_engines
def test_a_state_taken_out_does_not_follow_the_learner(engine_in_test):
    learner, vocabulary = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 30.0, 0.1), engine_in_test.Vocabulary()
    learner.learn(vocabulary, {0: 1.0, "a": 1.0}, 1.0, 1.0)
    state = learner.get_state()
    kept = {name: np.copy(value) for name, value in state.items()}
    other = engine_in_test.AdaptiveLearner(*learner.arguments)
    other.learn(vocabulary, {5: 1.0}, 0.0, 1.0)  # to be forgotten
    other.set_state(state)
    assert same_state(other, learner)
    for made in (learner, other):
        made.learn(vocabulary, {0: -1.0, 1: 1.0}, 0.0, 2.0)
    assert same_state(other, learner)
    assert all(np.array_equal(state[name], kept[name]) for name in state)


@both_engines
def test_a_table_of_many_features_keeps_them_all(engine_in_test):
    generator = np.random.default_rng(9)
    learner, vocabulary = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.0, 0.0, 0.0), engine_in_test.Vocabulary()
    keys = generator.permutation(1 << 20)[:20_000].reshape(200, 100)
    for row in keys:
        learner.learn(vocabulary, dict.fromkeys(row.tolist(), 1.0), 1.0, 1.0)
    # AdaGrad's first step on a feature is the learning rate, whatever the gradient.
    assert len(learner) == 20_000
    assert np.abs(learner.weights_of(keys.ravel()) - 0.5).max() < 1e-6


# --- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
@pytest.mark.skipif(
    engine.NAME == "pure", reason="the pure engine is one step of Python after another, and locks nothing"
)
def test_threads_share_a_model(tmp_path, run_threads):
    generator = np.random.default_rng(0)
    X = sparse.random(2_000, 200_000, density=2e-4, format="csr", rng=generator)
    y = generator.random(2_000) < 0.5
    y[:2] = [True, False]
    model = AdaptiveClassifier()
    model.learn_many(X[:2], y[:2])

    def learn_bulks():
        for _ in range(10):
            model.learn_many(X, y)

    def learn_singly():
        for i in range(3_000):
            model.learn_one({i: 1.0, "name": 0.5, f"name {i}": -1.0}, i % 2 == 0)

    def save():
        model.save(tmp_path / "model")
        assert load(tmp_path / "model").n_iterations <= model.n_iterations

    def look():
        assert np.isfinite(model.decision_function_many(X[:50])).all()
        assert all(map(math.isfinite, model.weights.values())) and math.isfinite(model.intercept)

    learners = [learn_bulks, learn_bulks, learn_singly]
    readers = [
        lambda: model.predict_one({5: 1.0, "name": 1.0}),
        look,
        save,
        lambda: pickle.loads(pickle.dumps(model)).predict_one({5: 1.0}),
    ]
    run_threads(learners, readers)
    assert model.n_iterations == 2 + 2 * 10 * 2_000 + 3_000


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
    learner.negate()
    assert np.array_equal(learner.get_state()["false_positives"], state["false_negatives"])
    full = {**learner.get_state(), "n_newest_positives": 32_767.0}
    learner.set_state(full)
    learner.learn(vocabulary, {}, 1.0, 1.0)
    after = learner.get_state()
    assert after["n_newest_positives"] == 16_384.0
    assert after["false_negatives"].sum() == pytest.approx(full["false_negatives"].sum() / 2.0, abs=0.51)
    assert np.array_equal(after["false_positives"], full["false_positives"])
