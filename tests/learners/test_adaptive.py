import copy
import functools
import math
import operator
import sys
import threading

import numpy as np
import pytest
from forging import forge
from noisy import ScriptedDetector, columns, noisy_stream
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    engine,
    load,
)
from stream_pegasos.evaluation.prequential import prequential
from stream_pegasos.learners.forgetting import name_hash
from stream_pegasos.streams import read

pure = engine.NAME == "pure"


# --- parameters and protocol ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x, unevenness", [({"a": 2, "b": -2}, 0.0), ({"a": 1, "b": 3}, 5**-0.5), ({"a": 0, "b": 9}, 0.0)]
)
def test_the_first_step_is_larger_where_values_differ(x, unevenness):
    growth = 1.0 + 2.0 * unevenness
    plain, scaled = AdaptiveClassifier(naive_bayes=False), AdaptiveClassifier(smoothing=0.5)
    plain.learn_one(x, True)
    scaled.learn_one(x, True)
    alpha = 0.5 * growth**2
    ratio = abs(math.log((1.0 + alpha) / alpha) - math.log(1.5 / 0.5))
    for name, value in x.items():
        if value:
            first_step = math.copysign(0.5 * growth, value)  # AdaGrad's first step is the learning rate
            assert plain.weights[name] == pytest.approx(first_step, rel=1e-6)
            assert scaled.weights[name] == pytest.approx(first_step * (0.3 + ratio), rel=1e-5)


@pytest.mark.parametrize("name, least", [("rcv1_ccat_train", 0.8595), ("rcv1_ccat_test", 0.805)])
def test_values_that_are_given(data_folder, name, least):
    examples = list(read(data_folder / f"{name}.svmlight.gz"))
    answers = AdaptiveClassifier().predict_learn_many(*zip(*((each.x, each.y) for each in examples), strict=True))
    # Of the first example nothing can be known.
    assert np.mean([said == each.y for said, each in zip(answers.labels[1:], examples[1:], strict=True)]) >= least


# --- balanced classes -------------------------------------------------------------------------------------------------


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
        *((("decisions", 0, 1, "n"), bad) for bad in (-1, None, 1 << 60)),
        *((("decisions", 0, 1, "places"), bad) for bad in ([-1], [1 << 13], 3)),
        *((("decisions", 0, 1, "counts"), bad) for bad in ([], [1e300], "1")),
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
        functools.reduce(operator.getitem, folders, state)[name] = bad

    forge(path, change)
    with pytest.raises(ValueError, match="damaged"):
        load(path)


@pytest.mark.parametrize("rounds", [5, pytest.param(40, marks=pytest.mark.heavy)])
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
        self.t = self.last = 0
        self.had_by = {}  # by feature, in the order in which they came: when the examples that had it came
        self.scores = {}  # of those that were kept the last time, before example `last`

    def learn(self, x):
        for name in x:
            self.had_by.setdefault(name, []).append(self.t)
        self.t += 1
        if len(self.had_by) > self.max_features:
            order = list(self.had_by)
            for name, times in self.had_by.items():
                since = sum(2.0 ** (self.decay * (t - self.t)) for t in times if t >= self.last)
                self.scores[name] = 0.98 * self.scores.get(name, 0.0) + since
            kept = sorted(order, key=lambda name: (-self.scores[name], self.rank(name)))
            kept = set(kept[: max(1, self.max_features * 3 // 4)])
            self.scores, self.last = {name: self.scores[name] for name in kept}, self.t
            self.had_by = {name: self.had_by[name] for name in order if name in kept}

    @staticmethod
    def rank(name):
        return name if isinstance(name, int) else name_hash(name)


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
    c, d, e = sorted("cde", key=name_hash)
    model.learn_one({c: 1.0, d: 1.0}, False)
    model.learn_one({e: 1.0}, False)  # one too many: d and e have the larger hashes
    assert list(model.weights) == ["a", "b", c]
    before = dict(model.weights)
    assert model.decision_function_one({e: 1.0, d: 1.0}) == 0.0
    assert model.weights == before
    model.learn_one({e: 1.0}, True)
    assert list(model.weights) == ["a", "b", c, e]
    assert model.weights[e] > 0.0


@pytest.mark.parametrize("half_life", [None, "auto"])
def test_what_was_common_once_makes_room_for_what_is_common_now(half_life):
    """Forty words, then forty others, however long the first were learned; and so from a file in the middle."""
    words = np.random.default_rng(0).integers(40, size=12_000)
    X, y = [{f"{i // 6_000} {word}": 1.0} for i, word in enumerate(words.tolist())], (words % 2 == 1).tolist()
    model = AdaptiveClassifier(max_features=40, half_life=half_life)
    model.learn_many(X[:6_100], y[:6_100])
    resumed = type(model).from_state(*copy.deepcopy(model.to_state()))
    for each in (model, resumed):
        each.learn_many(X[6_100:], y[6_100:])
    assert sum(name.startswith("1 ") for name in model.weights) >= 36
    assert resumed.weights == model.weights


def test_texts_are_forgotten_too(data_folder):
    stream = list(read(data_folder / "enron_1to3.jsonl.gz"))[: 1_500 if pure else None]
    scores = []
    for max_features in (None, 20_000 if pure else 100_000):
        model = TextClassifier(classifier=AdaptiveClassifier(max_features=max_features))
        scores.append(prequential(stream, model).score)
        assert max_features is None or len(model.weights) <= max_features
    assert abs(scores[0].accuracy - scores[1].accuracy) < 0.01


def test_a_file_with_more_features_than_the_bound_is_refused(tmp_path):
    model = AdaptiveClassifier()
    model.learn_one({"a": 1.0, "b": 1.0, "c": 1.0}, True)
    model.max_features = 2
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="there are more features than max_features=2"):
        load(tmp_path / "model")


@pytest.mark.parametrize("classes", ["two", "several", "ordered"])
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_a_margin_of_0_is_the_rule_of_a_perceptron(loss, classes):
    """It takes a step where y·margin is 0, as at first, so that it learns what the smallest margin above 0 does."""
    models = []
    for margin in (0.0, 1e-300):
        model = AdaptiveClassifier(margin=margin, loss=loss)
        models.append(OrdinalClassifier(model) if classes == "ordered" else model)
        for i in range(60):
            models[-1].learn_one({"abc"[i % 3]: 1.0, "d": 1.0}, i % 3 if classes != "two" else i % 3 == 0)
    one, other = (model.to_state() for model in models)
    assert all(np.array_equal(one[0][name], other[0][name]) for name in one[0]) and one[0]["values"].any()
