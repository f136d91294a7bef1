import itertools
import math
import pickle
import random
import sys
import threading

import numpy as np
import pytest
from forging import forge
from hypothesis import given, settings
from hypothesis import strategies as st
from river import base, drift
from scipy import sparse

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    PegasosClassifier,
    TextClassifier,
    engine,
    load,
)
from stream_pegasos.evaluation.prequential import evaluate, learn, predict_learn
from stream_pegasos.learners.classifier import PartlyLearnedError
from stream_pegasos.learners.decisions import FalsePositiveControl
from stream_pegasos.streams import read

pure = engine.NAME == "pure"


class ScriptedDetector(base.DriftDetector):
    """Detects a drift at the updates with those numbers, and keeps what it was told."""

    def __init__(self, at=(0,)):
        super().__init__()
        self.at = at
        self.told = []

    def update(self, x):
        self.told.append(x)
        self._drift_detected = len(self.told) in self.at


def noisy_stream(n, seed=0, noise=0.1, labels=("ham", "spam")):
    """Dicts of which one feature gives the label away, but for some noise."""
    rng = random.Random(seed)
    for _ in range(n):
        positive = rng.random() < 0.3
        told = positive != (rng.random() < noise)
        yield {f"word{rng.randrange(20)}": 1.0, "pills" if told else "lunch": 1.0}, labels[positive]


def columns(stream):
    return [list(column) for column in zip(*stream, strict=True)]


def prequential(model, X, y):
    """The label predicted for each example, and then the example learned, one at a time."""
    predicted = []
    for x, label in zip(X, y, strict=True):
        predicted.append(model.predict_one(x))
        model.learn_one(x, label)
    return predicted


# --- parameters and protocol ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameter, bad",
    [
        *itertools.product(("learning_rate", "smoothing", "intercept_scaling"), (0.0, -1.0, math.nan, math.inf)),
        *itertools.product(("threshold", "max_false_positive_rate"), (0.0, 1.0, -0.1, 1.1, math.nan)),
        ("loss", "squared"),
        ("margin", -1.0),
        ("margin", math.nan),
        ("half_life", 0.5),
        ("class_weight", {"spam": -1.0}),
    ],
)
def test_a_parameter_out_of_its_range(parameter, bad):
    with pytest.raises(ValueError, match=parameter):
        AdaptiveClassifier(**{parameter: bad})


@pytest.mark.parametrize(
    "parameter, bad",
    [
        *itertools.product(("learning_rate", "threshold", "max_false_positive_rate", "half_life"), ("0.5", [0.5])),
        *itertools.product(("naive_bayes", "fit_intercept"), (1, "yes")),
        ("class_weight", "even"),
        ("class_weight", [1.0]),
        ("drift_detector", "ADWIN"),
        ("drift_detector", drift.ADWIN),
        ("drift_detector", PegasosClassifier()),
    ],
)
def test_a_parameter_of_another_type(parameter, bad):
    with pytest.raises(TypeError, match=parameter):
        AdaptiveClassifier(**{parameter: bad})


def test_a_class_that_never_appears():
    model = AdaptiveClassifier(pos_label="spam")
    model.learn_many([{"a": 1.0}, {"b": 1.0}] * 10, ["ham"] * 20)
    assert model.classes == ("ham", "spam")
    assert model.predict_one({"a": 1.0}) == "ham"
    assert 0.5 < model.predict_proba_one({"a": 1.0})["ham"] <= 1.0


# --- decisions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.01, 0.3, 0.5, 0.9])
def test_threshold(threshold):
    X, y = columns(noisy_stream(300))
    model = AdaptiveClassifier(pos_label="spam", threshold=threshold)
    model.learn_many(X, y)
    expected = ["spam" if model.predict_proba_one(x)["spam"] > threshold else "ham" for x in X]
    assert [model.predict_one(x) for x in X] == model.predict_many(X).tolist() == expected
    if threshold == 0.5:
        assert expected == ["spam" if margin > 0.0 else "ham" for margin in model.decision_function_many(X)]


def test_threshold_does_not_touch_learning():
    X, y = columns(noisy_stream(300))
    low, high = (
        AdaptiveClassifier(pos_label="spam", threshold=0.05),
        AdaptiveClassifier(pos_label="spam", threshold=0.95),
    )
    assert low.predict_learn_many(X, y).scores.tolist() == high.predict_learn_many(X, y).scores.tolist()
    assert sum(low.predict_many(X) == "spam") > sum(high.predict_many(X) == "spam")


@given(
    rate=st.floats(0.001, 0.9),
    margins=st.lists(st.one_of(st.floats(-1e100, 1e100), st.integers(-3, 3).map(float)), max_size=300),
)
def test_the_rate_holds_whatever_comes(rate, margins):
    control = FalsePositiveControl(rate)
    flagged = 0
    for n, margin in enumerate(margins, 1):
        allowed = bool(control.allows(margin))
        flagged += allowed
        control.learn(margin, allowed)
        assert flagged <= rate * n
        assert math.isfinite(control.cut)
    assert (control.n_negatives, control.n_flagged) == (len(margins), flagged)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_cut_follows_the_quantile(rate, scale):
    """Of margins of any scale, about as many are flagged as may be."""
    rng = np.random.default_rng(1)
    control = FalsePositiveControl(rate)
    for margin in (scale * rng.normal(-2.0, 1.0, 20_000)).tolist():
        control.learn(margin, bool(control.allows(margin)))
    assert 0.75 * rate < control.n_flagged / control.n_negatives <= rate
    other = scale * rng.normal(-2.0, 1.0, 20_000)
    assert rate / 3.0 < (other > control.cut).mean() < 3.0 * rate


@given(
    labels=st.sampled_from([("ham", "spam"), (False, True), (0, 1), (1, 2)]),
    pos_label=st.booleans(),
    rate=st.sampled_from([0.02, 0.1, 0.5]),
    words=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=150),
)
@settings(deadline=None)
def test_the_rate_holds_on_any_stream(labels, pos_label, rate, words):
    negative, positive = labels
    options = {"pos_label": positive} if pos_label else {}
    model = AdaptiveClassifier(max_false_positive_rate=rate, threshold=0.01, **options)
    X, y = [{word: 1.0} for word, _ in words], [labels[is_positive] for _, is_positive in words]
    if not pos_label and labels in (("ham", "spam"), (1, 2)):
        with pytest.raises(ValueError, match="pos_label"):
            prequential(model, [{}, {}], [negative, positive])
        return
    predicted = prequential(model, X, y)
    negatives = flagged = 0
    for label, guess in zip(y, predicted, strict=True):
        negatives += label == negative
        flagged += label == negative and guess == positive
        assert flagged <= rate * negatives


def test_a_rate_costs_few_positives():
    """The best constant cut in hindsight is what it is compared with."""
    X, y = columns(noisy_stream(4_000, noise=0.02))
    model = AdaptiveClassifier(max_false_positive_rate=0.05, pos_label="spam")
    margins = AdaptiveClassifier(pos_label="spam").predict_learn_many(X, y).scores
    spam = np.array(y) == "spam"
    cut = np.quantile(margins[~spam], 0.95)
    caught = np.array(prequential(model, X, y))[spam] == "spam"
    assert caught.mean() > 0.9 * (margins[spam] > cut).mean()


def test_both_rules_must_agree():
    X, y = columns(noisy_stream(1_000))
    strict = AdaptiveClassifier(pos_label="spam", threshold=0.999, max_false_positive_rate=0.5)
    strict.learn_many(X, y)
    assert "spam" not in strict.predict_many(X)
    lax = AdaptiveClassifier(pos_label="spam", threshold=0.001, max_false_positive_rate=0.5)
    lax.learn_many(X, y)
    assert "spam" in lax.predict_many(X)


@pytest.mark.parametrize("options", [{"threshold": 0.1}, {"max_false_positive_rate": 0.1}, {}])
@pytest.mark.parametrize("batch", [1, 64])
def test_evaluate_counts_what_was_predicted(options, batch):
    stream = list(noisy_stream(500))
    model, other = (AdaptiveClassifier(pos_label="spam", **options) for _ in range(2))
    predicted = prequential(other, *columns(stream))
    expected = sum(guess == y for guess, (_, y) in zip(predicted, stream, strict=True))
    assert evaluate(model, stream, batch=batch).score.confusion_matrix.trace() == expected


def test_the_text_model_decides_as_its_classifier():
    texts, y = columns((" ".join(x), label) for x, label in noisy_stream(600))
    bag = HashedBagOfWords()
    model = TextClassifier(
        bag, AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.1, drift_detector=drift.ADWIN())
    )
    parts = bag.clone() | model.classifier.clone()
    for text, label in zip(texts, y, strict=True):
        assert model.predict_one(text) == parts.predict_one(text)
        model.learn_one(text, label)
        parts.learn_one(text, label)


# --- balanced classes -------------------------------------------------------------------------------------------------


def test_balanced_helps_a_rare_class():
    rng = random.Random(3)
    stream = [({rng.choice("abc"): 1.0, "rare" if rng.random() < 0.05 else "d": 1.0}, False) for _ in range(2_000)]
    stream = [(x, "rare" in x and rng.random() < 0.4) for x, _ in stream]
    recalls = []
    for class_weight in (None, "balanced"):
        model = AdaptiveClassifier(class_weight=class_weight)
        (_, _), (missed, caught) = evaluate(model, stream).score.confusion_matrix
        recalls.append(caught / (caught + missed))
    assert recalls[1] > recalls[0] + 0.3


# --- drift ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [False, True])
def test_the_detector_is_told_of_wrong_predictions(at_once):
    stream = [*noisy_stream(200, labels=(False, True))]
    given = ScriptedDetector(at=(50, 120))
    model = AdaptiveClassifier(drift_detector=given)
    by_hand = AdaptiveClassifier()
    wrong = []
    for i, (x, y) in enumerate(stream):
        if i > 0:  # before the first example no label is known
            wrong.append(float(by_hand.predict_one(x) != y))
        if i in (50, 120):
            by_hand._learner.forget(0.1)
        by_hand.learn_one(x, y)
    X, y = columns(stream)
    if at_once:
        model.learn_many(X, y)
    else:
        prequential(model, X, y)
    assert model._drift.detector.told == wrong
    assert model.n_drifts == 2
    assert model.weights == by_hand.weights
    assert model.drift_detector is given
    assert not given.told


@pytest.mark.parametrize(
    "detector", [drift.ADWIN(), drift.PageHinkley(), drift.KSWIN(seed=1), drift.binary.DDM(), drift.binary.HDDMW()]
)
def test_labels_that_swap(detector):
    stream = [(x, (y == "spam") != (i >= 4_000)) for i, (x, y) in enumerate(noisy_stream(6_000, noise=0.02))]
    plain, watching = AdaptiveClassifier(half_life=None), AdaptiveClassifier(half_life=None, drift_detector=detector)
    accuracies = [evaluate(model, stream).score.accuracy for model in (plain, watching)]
    assert watching.n_drifts >= 1
    assert accuracies[1] > accuracies[0] + 0.005


# --- files and copies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "detector", [drift.ADWIN(delta=0.01), drift.KSWIN(seed=3), drift.PageHinkley(), drift.binary.EDDM(alpha=0.9)]
)
def test_a_detector_is_loaded_by_its_parameters(detector, tmp_path):
    AdaptiveClassifier(drift_detector=detector).save(tmp_path / "model")
    loaded = load(tmp_path / "model").drift_detector
    assert type(loaded) is type(detector)
    assert loaded.clone()._get_params() == detector.clone()._get_params()


def test_a_detector_of_ones_own_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="cannot be saved"):
        AdaptiveClassifier(drift_detector=ScriptedDetector()).save(tmp_path / "model")


@pytest.mark.parametrize(
    "place, bad",
    [
        *((("false_positive_control", "n_negatives"), bad) for bad in (-1, 0.5, None, 1 << 60)),
        *((("false_positive_control", "n_flagged"), bad) for bad in (-1, 21, "1")),
        *((("false_positive_control", "cut"), bad) for bad in (1e308, "0", None)),
        *((("false_positive_control", "scale"), bad) for bad in (-1.0, None)),
        *((("n_drifts",), bad) for bad in (-1, 1_000, 0.5)),
        *((("label_counts",), bad) for bad in ([["ham", 0]], [["other", 1]], [["ham", 1], ["ham", 2]], 3)),
        (("parameters", "drift_detector"), {"drift_detector": ["DriftRetrainingClassifier", {"dict": []}]}),
        (("parameters", "drift_detector"), {"drift_detector": ["datasets", {"dict": []}]}),
        (("learner", "evidence"), 0.5),
        (("learner", "n_positives"), -1.0),
        (("learner", "intercept"), None),
    ],
)
def test_a_forged_file(place, bad, tmp_path):
    model = AdaptiveClassifier(
        pos_label="spam", max_false_positive_rate=0.1, class_weight="balanced", drift_detector=drift.ADWIN()
    )
    model.learn_many(*columns(noisy_stream(200)))
    path = tmp_path / "model"
    model.save(path)

    def change(arrays, state, header):
        *folders, name = place
        for folder in folders:
            state = state[folder]
        assert name in state
        state[name] = bad

    forge(path, change)
    with pytest.raises(ValueError, match="damaged"):
        load(path)


def test_what_was_learned_before_an_interrupt_stays():
    class Interrupted(base.DriftDetector):
        n = 0

        def update(self, x):
            self.n += 1
            if self.n == 3:
                raise KeyboardInterrupt

    model, expected = AdaptiveClassifier(drift_detector=Interrupted()), AdaptiveClassifier()
    X, y = [{"a": 1}, {"b": 1}, {"a": 1, "c": 1}, {"b": 1}, {"c": 1}], [1, 2, 1, 2, 1]
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(X, y)
    expected.learn_many(X[:4], y[:4])
    assert (model.classes, model.n_iterations) == (expected.classes, expected.n_iterations) == ((1, 2), 4)
    assert model.weights == pytest.approx(expected.weights)


@pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("model", [AdaptiveClassifier(), PegasosClassifier(), KernelPegasosClassifier(budget=20)])
def test_predictions_that_python_has_to_look_at_do_not_disturb_learning(model, rounds):
    """NumPy's numbers let other threads in, in the middle of a prediction."""
    model, expected, done, failed = model.clone(), model.clone(), threading.Event(), []
    rounds = min(rounds, 5) if pure else rounds
    X = [{f"word{(7 * i + j) % 50}": 1.0 for j in range(20)} for i in range(100)]
    x = {f"never learned {i}": np.int64(1) for i in range(40)} | {"word1": np.float32(1)}

    def predict():
        try:
            while not done.is_set():
                assert math.isfinite(model.decision_function_one(x))
        except BaseException as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=predict) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        for i in range(rounds):
            model.learn_many(X, [j % 2 == 0 for j in range(100)])
            model.learn_one({f"new{i}": 1.0}, True)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    for i in range(rounds):
        expected.learn_many(X, [j % 2 == 0 for j in range(100)])
        expected.learn_one({f"new{i}": 1.0}, True)
    assert not failed
    assert model.snapshot().names == expected.snapshot().names
    assert model.snapshot().arrays["keys"].tolist() == expected.snapshot().arrays["keys"].tolist()
    assert model.decision_function_one(x) == expected.decision_function_one(x)


# --- max_features -----------------------------------------------------------------------------------------------------


class Forgetting:
    """Which features are known, as the documentation has it, for models that learn from every example."""

    def __init__(self, max_features, half_life=None):
        self.max_features, self.decay = max_features, 0.0 if half_life is None else 1.0 / half_life
        self.t = 0
        self.had_by = {}  # by feature, in the order in which they came: when the examples that had it came

    def learn(self, x):
        for name in x:
            self.had_by.setdefault(name, []).append(self.t)
        self.t += 1
        if len(self.had_by) > self.max_features:
            order = list(self.had_by)
            counts = {
                name: sum(2.0 ** (self.decay * (t - self.t)) for t in times) for name, times in self.had_by.items()
            }
            kept = sorted(order, key=lambda name: (-counts[name], self.number(order, name)))
            kept = set(kept[: max(1, self.max_features * 3 // 4)])
            self.had_by = {name: self.had_by[name] for name in order if name in kept}

    @staticmethod
    def number(order, name):
        return name if isinstance(name, int) else order.index(name)


def words_of_zipf(n, seed, of=str):
    """Examples of few frequent and many rare features, of which some appear again long after."""
    generator = np.random.default_rng(seed)
    return [{of(word): 1.0 for word in generator.zipf(1.3, 6) % 1_000 + 2} for _ in range(n)]


@pytest.mark.parametrize("half_life", [None, 20])
@pytest.mark.parametrize("max_features", [1, 2, 10, 50])
@pytest.mark.parametrize("of", [int, str])
def test_those_that_the_fewest_examples_had_are_forgotten(of, max_features, half_life):
    model = AdaptiveClassifier(max_features=max_features, half_life=half_life, margin=None)
    expected = Forgetting(max_features, half_life)
    for i, x in enumerate(words_of_zipf(300, 1, of)):
        model.learn_one(x, i % 3 == 0)
        expected.learn(x)
        assert model.weights.keys() == expected.had_by.keys()
        assert len(model.weights) <= max_features
        assert len(model.snapshot().names) <= 2 * max_features


def test_what_was_forgotten_begins_afresh():
    model = AdaptiveClassifier(max_features=4, half_life=None, fit_intercept=False)
    for _ in range(5):
        model.learn_one({"a": 1.0, "b": 1.0}, True)
    model.learn_one({"c": 1.0, "d": 1.0}, False)
    model.learn_one({"e": 1.0}, False)  # one too many: d and e have the larger numbers
    assert list(model.weights) == ["a", "b", "c"]
    before = dict(model.weights)
    assert model.decision_function_one({"e": 1.0, "d": 1.0}) == 0.0
    assert model.weights == before
    model.learn_one({"e": 1.0}, True)
    assert list(model.weights) == ["a", "b", "c", "e"]
    assert model.weights["e"] > 0.0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"margin": None},
        {"class_weight": "balanced"},
        {"max_false_positive_rate": 0.2, "pos_label": 2},
        {"drift_detector": drift.binary.DDM(warm_start=5)},
        {"naive_bayes": False, "half_life": None, "loss": "hinge"},
    ],
)
def test_with_forgetting_all_ways_to_learn_give_the_same_bits(options, tmp_path):
    xs = words_of_zipf(400, 2, int)
    labels = [1 + ((sum(x) % 3 == 0) != (i % 7 == 0)) for i, x in enumerate(xs)]
    one = AdaptiveClassifier(max_features=40, **options)
    many, matrix, loaded = one.clone(), one.clone(), one.clone()
    margins = []
    for i, (x, y) in enumerate(zip(xs, labels, strict=True)):
        margins.append(one.decision_function_one(x))
        one.learn_one(x, y)
        loaded.learn_one(x, y)
        if i % 150 == 70 and "drift_detector" not in options:
            loaded.save(tmp_path / "model")
            loaded = pickle.loads(pickle.dumps(load(tmp_path / "model")))
    rows = sparse.dok_array((len(xs), 1_002))
    for i, x in enumerate(xs):
        for name in x:
            rows[i, name] = 1.0
    in_turn = [{int(name): 1.0 for name in sorted(x)} for x in xs]
    given = many.predict_learn_many(xs, labels).scores
    assert np.array_equal(given[60:], margins[60:])  # by then both labels are known
    for others, model, examples in ((xs, many, None), (in_turn, matrix, sparse.csr_array(rows))):
        expected = one.clone()
        expected.learn_many(others[:1], labels[:1])
        for x, y in zip(others[1:], labels[1:], strict=True):
            expected.learn_one(x, y)
        if examples is not None:
            model.learn_many(examples, labels)
        assert model.weights == expected.weights
        assert model.intercept == expected.intercept
        assert state_of(model) == state_of(expected)
    assert state_of(loaded) == state_of(one)


def state_of(model):
    snapshot = model.snapshot()
    return {name: array.tolist() for name, array in snapshot.arrays.items()}, snapshot.values


def test_names_are_forgotten_by_those_who_learn_many_as_well():
    xs = words_of_zipf(500, 3)
    one, many = AdaptiveClassifier(max_features=30), AdaptiveClassifier(max_features=30)
    for i, x in enumerate(xs):
        one.learn_one(x, i % 2)
    many.learn_many(xs, [i % 2 for i in range(500)])
    assert many.weights == one.weights
    names = set(many.snapshot().names)
    assert set(many.weights) <= names and len(names) <= 60
    assert many.predict_proba_many(xs[:50]).tolist() == one.predict_proba_many(xs[:50]).tolist()


def test_forgetting_at_each_example_of_a_long_call():
    n = 1_500 if pure else 10_000
    model = AdaptiveClassifier(max_features=4)
    model.learn_many([{f"new {i}": 1.0, f"newer {i}": 1.0, "old": 1.0} for i in range(n)], [i % 2 for i in range(n)])
    assert model.n_iterations == n
    assert "old" in model.weights


def test_texts_are_forgotten_too(data_folder):
    stream = list(read(data_folder / "enron_1to3.jsonl.gz"))[: 1_500 if pure else None]
    scores = []
    for max_features in (None, 20_000 if pure else 100_000):
        model = TextClassifier(classifier=AdaptiveClassifier(max_features=max_features))
        scores.append(evaluate(model, stream).score)
        assert max_features is None or len(model.weights) <= max_features
    assert abs(scores[0].accuracy - scores[1].accuracy) < 0.01


@pytest.mark.parametrize("bad", [0, -1, 1.5, "many", True, 1 << 54])
def test_a_bound_that_is_none(bad):
    for kind in (AdaptiveClassifier, PegasosClassifier):
        with pytest.raises((ValueError, TypeError), match="max_features"):
            kind(max_features=bad)


def test_a_file_with_more_features_than_the_bound_is_refused(tmp_path):
    model = AdaptiveClassifier()
    model.learn_one({"a": 1.0, "b": 1.0, "c": 1.0}, True)
    model.max_features = 2
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="there are more features than max_features=2"):
        load(tmp_path / "model")


# --- detectors that raise ---------------------------------------------------------------------------------------------


class Failing(drift.ADWIN):
    """Raises when it is told of the n-th prediction."""

    def __init__(self, n=5, error=ValueError):
        super().__init__()
        self.n, self.error = n, error
        self.calls = 0

    def update(self, x):
        self.calls += 1
        if self.calls == self.n:
            raise self.error("the detector is ill")
        super().update(x)


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
@pytest.mark.parametrize("labels", [("ham", "spam"), (1, 2)])
def test_a_detector_that_raises_leaves_learned_what_is_told(error, labels):
    """With labels 1 and 2 the classes are exchanged when the 2 comes, which here is after the failure."""
    X = [{f"word {i % 3}": 1.0} for i in range(12)]
    y = [labels[i >= 9] for i in range(12)] if labels == (1, 2) else [labels[i % 2] for i in range(12)]
    options = {"class_weight": "balanced", "drift_detector": Failing(5, error)}
    if labels == (1, 2):
        options |= {"pos_label": 2}
    model, expected = AdaptiveClassifier(**options), AdaptiveClassifier(**{**options, "drift_detector": None})
    with pytest.raises(PartlyLearnedError, match="the detector is ill") as raised:
        model.learn_many(X, y)
    n = raised.value.n_learned
    assert 0 < n < 12 and model.n_iterations == n and type(raised.value.__cause__) is error
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    said = expected.predict_learn_many(X[:n], y[:n])
    assert raised.value.met.margins == pytest.approx(said.scores)
    if labels != (1, 2):  # or else there is one label, which needs no calibration
        assert raised.value.met.calibrated == pytest.approx(said.probabilities[:, 1])
    assert model.classes == expected.classes and model.weights == pytest.approx(expected.weights)
    model.learn_many(X[n:], y[n:])
    expected.learn_many(X[n:], y[n:])
    assert model.classes == expected.classes and model.weights == pytest.approx(expected.weights)


def test_on_a_stream_each_example_is_learned_once_though_a_detector_raises():
    stream = list(noisy_stream(50))
    model, refused = AdaptiveClassifier(drift_detector=Failing(13)), []
    blocks = list(predict_learn(model, stream, lambda example, reason: refused.append((example, reason))))
    n = sum(map(len, blocks))
    assert (n, model.n_iterations, len(refused)) == (49, 49, 1)
    assert "the detector is ill" in refused[0][1]
    expected = AdaptiveClassifier()
    expected.learn_many(*columns(example for example in stream if example is not refused[0][0]))
    assert model.weights == pytest.approx(expected.weights)
    model = AdaptiveClassifier(drift_detector=Failing(13))
    told = []
    assert learn(model, stream, lambda example, _: told.append(example)) == model.n_iterations == 49
    assert told == [refused[0][0]]
    model = AdaptiveClassifier(drift_detector=Failing(13, RuntimeError))
    with pytest.raises(PartlyLearnedError) as raised:
        learn(model, stream, lambda *_: None)
    assert raised.value.n_learned == model.n_iterations


def test_a_detector_that_detects_nothing_changes_no_decision():
    stream = list(noisy_stream(400))
    options = {"pos_label": "spam", "max_false_positive_rate": 0.1}
    models = [AdaptiveClassifier(**options), AdaptiveClassifier(**options, drift_detector=drift.NoDrift())]
    assert "spam" in prequential(models[0], *columns(stream)) == prequential(models[1], *columns(stream))
    assert models[0].weights == models[1].weights


def test_a_detector_that_raises_for_one_example_leaves_the_model_as_it_was(unchanged):
    model = AdaptiveClassifier(drift_detector=Failing(1), max_false_positive_rate=0.5, pos_label="spam")
    model.learn_one({"a": 1.0}, "ham")
    weights, n, classes = model.weights, model.n_iterations, model.classes
    with pytest.raises(ValueError, match="the detector is ill"):
        model.learn_one({"a": 1.0}, "spam")
    assert (model.weights, model.n_iterations, model.classes) == (weights, n, classes)
