"""Pegasos in River, in threads, and with a limit of features."""

import math
import pickle
import random

import numpy as np
import pandas as pd
import pytest
from river import (
    bandit,
    checks,
    compose,
    datasets,
    drift,
    evaluate,
    feature_extraction,
    linear_model,
    metrics,
    model_selection,
    multiclass,
    optim,
    preprocessing,
    stream,
)
from scipy import sparse
from two_classes import as_dicts, examples, rows_and_labels

from stream_pegasos import AdaptiveClassifier, PegasosClassifier, engine, load
from stream_pegasos.learners.forgetting import hash_of
from stream_pegasos.streams import synthetic

pure = engine.NAME == "pure"


def state_of(model):
    """All that is saved of a model, comparable."""
    snapshot = model.snapshot()
    return {name: array.tolist() for name, array in snapshot.arrays.items()}, snapshot.values


# --- River ------------------------------------------------------------------------------------------------------------


def test_rivers_checks_of_a_pipeline():
    model = preprocessing.StandardScaler() | PegasosClassifier(l2=1e-2, fit_intercept=True)
    # River's scaler learns a whole batch before it scales the first row of it; and its report cannot put in order the
    # probabilities of a text and of None, which stands for the labels to come.
    left_out = ("check_learn_many_matches_learn_one", "check_debug_one")
    for check in checks.yield_checks(model):
        if check.__name__ not in left_out:
            check(model.clone())


def accuracy(model, **options):
    return evaluate.progressive_val_score(datasets.Phishing().take(600), model, metrics.Accuracy(), **options).get()


def test_in_a_pipeline_it_learns():
    model = preprocessing.StandardScaler() | PegasosClassifier(l2=1e-2, fit_intercept=True)
    assert accuracy(model) > 0.8
    assert abs(accuracy(model.clone()) - accuracy(model.clone(), delay=0)) < 0.05
    assert accuracy(model.clone(), delay=20) > 0.75
    union = (preprocessing.StandardScaler() + preprocessing.MinMaxScaler()) | PegasosClassifier(l2=1e-2)
    assert accuracy(union) > 0.75
    agnostic = compose.Select("is_popular", "long_url") | PegasosClassifier(l2=1e-2, fit_intercept=True)
    assert accuracy(agnostic) > 0.5
    report = model.debug_one(next(iter(datasets.Phishing()))[0])
    assert "PegasosClassifier" in report


def test_evaluation_with_delay_is_a_loop_with_delay():
    """Prequential evaluation by hand, each label ten examples late."""
    rows = list(datasets.Phishing().take(300))
    model, metric, waiting = PegasosClassifier(l2=1e-2), metrics.Accuracy(), []
    for i, (x, y) in enumerate(rows):
        while waiting and waiting[0][0] <= i:
            _, x_then, y_then, predicted = waiting.pop(0)
            metric.update(y_then, predicted)
            model.learn_one(x_then, y_then)
        waiting.append((i + 10, x, y, model.predict_one(x)))
    for _, _, y_then, predicted in waiting:
        metric.update(y_then, predicted)
    found = evaluate.progressive_val_score(rows, PegasosClassifier(l2=1e-2), metrics.Accuracy(), delay=10)
    assert found.get() == metric.get()


@pytest.mark.parametrize("wrapper", [multiclass.OneVsRestClassifier, multiclass.OneVsOneClassifier])
def test_several_classes_through_river(wrapper):
    model = preprocessing.StandardScaler() | wrapper(PegasosClassifier(l2=1e-2, fit_intercept=True))
    score = evaluate.progressive_val_score(datasets.ImageSegments().take(800), model, metrics.Accuracy())
    assert score.get() > 0.6
    x, _ = next(iter(datasets.ImageSegments()))
    assert pickle.loads(pickle.dumps(model)).predict_one(x) == model.predict_one(x)
    probabilities = model.predict_proba_one(x) if wrapper is multiclass.OneVsRestClassifier else None
    assert probabilities is None or sum(probabilities.values()) == pytest.approx(1.0)


def test_retraining_after_drift():
    def turning():
        generator = random.Random(0)
        for i in range(2000):
            x = {"a": generator.gauss(0, 1), "b": generator.gauss(0, 1)}
            yield x, (x["a"] > 0) == (i < 1000)

    for detector in (drift.binary.DDM(), drift.ADWIN()):
        train = isinstance(detector, drift.binary.DDM)
        wrapped = drift.DriftRetrainingClassifier(PegasosClassifier(l2=1e-2), detector, train_in_background=train)
        metric = metrics.Accuracy()
        for i, (x, y) in enumerate(turning()):
            predicted = wrapped.predict_one(x)
            if i > 1300 and predicted is not None:
                metric.update(y, predicted)
            wrapped.learn_one(x, y)
        assert metric.get() > (0.8 if train else 0.4)


def test_model_selection():
    candidates = [PegasosClassifier(l2=l2, fit_intercept=True) for l2 in (1e2, 1e-2)]
    for selector in (
        model_selection.BanditClassifier(candidates, metrics.Accuracy(), bandit.EpsilonGreedy(0.1, 0.01, seed=1)),
        model_selection.SuccessiveHalvingClassifier(
            [model.clone() for model in candidates], metrics.Accuracy(), budget=600, eta=2
        ),
    ):
        model = preprocessing.StandardScaler() | selector
        assert accuracy(model) > 0.75


def test_learning_many_through_pipelines():
    X, y = rows_and_labels(100, 4)
    frame, labels = pd.DataFrame(X, columns=list("abcd")), pd.Series(y)
    model = preprocessing.StandardScaler() | PegasosClassifier(l2=1e-2)
    expected, scaler = PegasosClassifier(l2=1e-2), preprocessing.StandardScaler()
    for begin in range(0, 100, 25):
        chunk = frame.iloc[begin : begin + 25]
        model.learn_many(chunk, labels.iloc[begin : begin + 25])
        scaler.learn_many(chunk)
        expected.learn_many(scaler.transform_many(chunk).to_dict("records"), y[begin : begin + 25])
    assert model["PegasosClassifier"].weights == pytest.approx(expected.weights)
    assert model.predict_many(frame).tolist() == list(
        expected.predict_many(scaler.transform_many(frame).to_dict("records"))
    )
    assert list(model.predict_proba_many(frame).columns) == [False, True]


def test_word_counts_of_rivers_own():
    model = feature_extraction.BagOfWords() | PegasosClassifier(l2=1e-2)
    rows = [("cheap pills", True), ("see you at lunch", False), ("pills for you", True), ("at noon", False)] * 5
    for text, y in rows:
        model.learn_one(text, y)
    assert [model.predict_one(text) for text, _ in rows] == [y for _, y in rows]
    series = pd.Series([text for text, _ in rows])
    many = feature_extraction.BagOfWords() | PegasosClassifier(l2=1e-2)
    many.learn_many(series, pd.Series([y for _, y in rows]))
    assert many["PegasosClassifier"].weights == pytest.approx(model["PegasosClassifier"].weights)
    assert many.predict_many(series).tolist() == [y for _, y in rows]


def test_it_is_close_to_another_linear_svm():
    """River's, which descends on the hinge loss with steps of its own: the two learn the same thing."""
    model = preprocessing.StandardScaler() | PegasosClassifier(l2=1e-3, t0=1e3, fit_intercept=True)
    from river import optim

    other = preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.05), loss=optim.losses.Hinge())
    assert abs(accuracy(model) - accuracy(other)) < 0.05


def test_csv_streams_through_river(tmp_path):
    path = tmp_path / "stream.csv"
    X, y = rows_and_labels(50, 3)
    pd.DataFrame(X, columns=list("abc")).assign(y=[int(v) for v in y]).to_csv(path, index=False)
    model, expected = PegasosClassifier(), PegasosClassifier()
    for x, label in stream.iter_csv(path, target="y", converters={**dict.fromkeys("abc", float), "y": int}):
        model.learn_one(x, label)
    expected.learn_many(as_dicts(X, "abc", zeros=True), [int(v) for v in y])
    assert model.weights == pytest.approx(expected.weights)


# --- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
@pytest.mark.parametrize("batch_size", [1, 3])
def test_threads_share_a_model(batch_size, tmp_path, run_threads):
    generator = np.random.default_rng(0)
    n, bulks, singles = (2_000, 2, 500) if pure else (2_000, 10, 1_000)
    X = sparse.random(n, 200_000, density=2e-4, format="csr", rng=generator)
    y = generator.random(n) < 0.5
    y[:2] = [True, False]
    model = PegasosClassifier(batch_size=batch_size, fit_intercept=True)
    model.learn_many(X[:2], y[:2])

    def learn_bulks():
        for _ in range(bulks):
            model.learn_many(X, y)

    def learn_singly():
        for i in range(singles):
            model.learn_one({i: 1.0, "name": 0.5, f"name {i}": -1.0}, i % 2 == 0)

    def save():
        model.save(tmp_path / "model")
        assert load(tmp_path / "model").n_iterations <= model.n_iterations

    learners = [learn_bulks, learn_bulks, learn_singly]
    readers = [
        lambda: model.predict_one({5: 1.0, "name": 1.0}),
        lambda: model.predict_proba_many(X[:50]),
        lambda: (model.weights, model.intercept, model._memory_usage),
        save,
        lambda: pickle.loads(pickle.dumps(model)).predict_one({5: 1.0}),
    ]
    run_threads(learners, readers)
    total = 2 + 2 * bulks * n + singles
    assert model.n_iterations == total // batch_size
    assert all(map(math.isfinite, model.weights.values()))
    assert sum(isinstance(name, str) for name in model.weights) <= singles + 1


# --- max_features -----------------------------------------------------------------------------------------------------


def forgetful(dense_class):
    """The algorithm as published, which forgets as the documentation has it; column 0 is the intercept."""

    class ForgetfulPegasos(dense_class):
        def __init__(self, dimension, max_features, **options):
            super().__init__(dimension, **options)
            self.max_features, self.known = max_features, np.zeros(dimension, bool)

        def flush(self):
            violating = [x for x, y, _ in self.batch if y * self.margin(x) < 1.0]
            if self.batch and self.t == 0 and self.t0 == 0.0:
                self.known[:] = False
            super().flush()
            for x in violating:
                self.known |= x != 0.0
            features = np.flatnonzero(self.known[1:]) + 1
            if len(features) > self.max_features:
                kept = sorted(features, key=lambda j: (-abs(self.w[j]), j))[: max(1, self.max_features * 3 // 4)]
                self.known[1:] = False
                self.known[kept] = True
                self.w = np.where(self.known, self.w, 0.0)

    return ForgetfulPegasos


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 4},
        {"fit_intercept": True, "project": False},
        {"t0": 10.0, "fit_intercept": True, "batch_size": 2},
    ],
)
@pytest.mark.parametrize("max_features", [1, 7, 25])
def test_those_with_the_smallest_weights_are_forgotten(max_features, options, dense_pegasos):
    generator = np.random.default_rng(4)
    model = PegasosClassifier(l2=0.1, max_features=max_features, **options)
    intercept = options.get("fit_intercept", False)
    options = {name: value for name, value in options.items() if name != "fit_intercept"}
    dense = forgetful(dense_pegasos)(81, max_features, l2=0.1, **options)
    for _ in range(200):
        x = np.where(generator.random(81) < 0.06, generator.normal(size=81), 0.0)
        x[0] = float(intercept)
        positive = bool(x[1:].sum() + 0.3 * generator.normal() > 0.0)
        model.learn_one({j: x[j] for j in np.flatnonzero(x[1:]).tolist() for j in [j + 1]}, positive)
        dense.learn(x, 1 if positive else -1)
        assert model.weights.keys() == set(np.flatnonzero(dense.known[1:]) + 1)
        assert list(model.weights.values()) == pytest.approx(dense.w[1:][dense.known[1:]], rel=1e-6, abs=1e-9)
        assert model.intercept == pytest.approx(dense.w[0], rel=1e-6, abs=1e-9)
        assert len(model.weights) <= max_features
        exact = np.linalg.norm([*model.weights.values(), model.intercept])
        assert math.sqrt(model._learner.weights.squared_norm()) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("names", [range(20, 0, -1), [f"name {i}" for i in range(20)]], ids=["numbers", "strings"])
def test_of_equal_weights_those_with_larger_numbers_or_hashes_are_forgotten(names):
    model = PegasosClassifier(max_features=15)
    model.learn_one(dict.fromkeys(names, -1.0), True)
    assert {*model.weights} == {*sorted(names, key=None if isinstance(names, range) else hash_of)[:11]}


def test_which_features_are_forgotten_depends_on_no_way_to_learn():
    """Though names that come again get other numbers, as they were forgotten at other moments."""
    messages = [*synthetic(2_000, seed=3)]
    X, y = [dict.fromkeys(text.split(), 1.0) for text, _ in messages], [label for _, label in messages]
    one, many = (PegasosClassifier(max_features=100) for _ in range(2))
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    many.learn_many(X, y)
    assert many.weights == one.weights


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 3, "fit_intercept": True},
        {"average": True},
        {"average": "weighted", "batch_size": 2},
        {"class_weight": "balanced", "counter": "violations"},
        {"initializer": optim.initializers.Normal(seed=3), "t0": 2.0},
    ],
)
def test_with_forgetting_all_ways_to_learn_give_the_same_bits(options, tmp_path):
    stream_of_names = [(x, y) for x, y in examples(300)]
    one = PegasosClassifier(l2=1e-2, max_features=12, **options)
    many, loaded = one.clone(), one.clone()
    for i, (x, y) in enumerate(stream_of_names):
        one.learn_one(x, y)
        loaded.learn_one(x, y)
        if i % 100 == 70:
            loaded.save(tmp_path / "model")
            loaded = pickle.loads(pickle.dumps(load(tmp_path / "model")))
    many.learn_many(*map(list, zip(*stream_of_names, strict=True)))
    assert 0 < len(one.weights) <= 12
    assert len(one.snapshot().names) <= 24
    for other in (many, loaded):
        assert other.weights == one.weights
        assert other.intercept == one.intercept
        assert state_of(other) == state_of(one)


@pytest.mark.parametrize("kind", [PegasosClassifier, AdaptiveClassifier])
@pytest.mark.parametrize("at_once", [False, True])
def test_names_that_leave_no_weight_are_forgotten(kind, at_once):
    """Examples that are right by far bring names and no features."""
    model = kind(
        max_features=5,
        **({"margin": 0.5} if kind is AdaptiveClassifier else {"counter": "violations", "l2": 0.1, "project": False}),
    )
    for i in range(60):
        model.learn_one({"a": 1.0}, i % 2 == 0)
        model.learn_one({"b": 1.0}, False)
        model.learn_one({"a": 1.0}, True)
    rows = [{"b": 1.0, f"name {i}": 1e-9} for i in range(100)]
    if at_once:
        model.learn_many(rows, [False] * 100)
    else:
        for x in rows:
            model.learn_one(x, False)
    assert set(model.weights) == {"a", "b"}
    assert len(model.snapshot().names) <= 10
