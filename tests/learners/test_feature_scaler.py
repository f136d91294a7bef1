"""Numeric features, as those of a table, beside River's `StandardScaler`."""

import copy

import numpy as np
import pytest
from engines import needs_compiled
from hypothesis import given, settings
from hypothesis import strategies as st
from river import datasets, preprocessing

from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, MultiLabelClassifier, OrdinalClassifier, merge
from stream_pegasos.engine import pure
from stream_pegasos.learners.feature_scaler import FeatureScaler
from stream_pegasos.streams import synthetic


def table(n, seed=0, d=5):
    """Columns of very different sizes, some of whose values are 0, and labels."""
    generator = np.random.default_rng(seed)
    z = generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.9)
    X = (z + np.array([3.0, 0.0, -2.0, 0.0, 0.0])) * [1e5, 1e-3, 1.0, 40.0, 1e-6]
    labels = z @ [1, -1, 2, 0.5, -2] > 0
    return [dict(zip("abcde", row, strict=True)) for row in X.tolist()], labels.tolist()


def without_scaler(model):
    model.trainer.set_scaler(None)
    return model


@pytest.mark.parametrize(
    "make, label",
    [
        (AdaptiveClassifier, bool),
        (AdaptiveClassifier, lambda y: "yes" if y else "no"),
        (lambda: AdaptiveClassifier(class_weight={True: 1.0}), bool),
        (OrdinalClassifier, int),
        (MultiLabelClassifier, lambda y: ["holds"] if y else ["not", "never"]),
    ],
)
def test_a_table_is_learned_as_behind_a_standard_scaler(make, label):
    """As from the eleventh example on, by what came before each."""
    X, y = table(200)
    y = [label(of_one) for of_one in y]
    scaler, rows = preprocessing.StandardScaler(), []
    for i, x in enumerate(X):
        scaled = scaler.transform_one(x)
        rows.append({name: max(min(value, 8.0), -8.0) for name, value in scaled.items()} if i >= 10 else x)
        scaler.learn_one(x)
    model, many, expected = make(), make(), without_scaler(make())
    for x, row, of_one in zip(X, rows, y, strict=True):
        assert model.decision_function_one(x) == pytest.approx(expected.decision_function_one(row), rel=1e-4, abs=1e-4)
        model.learn_one(x, of_one)
        expected.learn_one(row, of_one)
    many.predict_learn_many(X, y)
    assert many.predict_proba_many(X[:9]).tolist() == model.predict_proba_many(X[:9]).tolist()
    last = scaler.transform_one(X[0])
    assert model.decision_function_one(X[0]) == pytest.approx(expected.decision_function_one(last), rel=1e-4)
    if make is AdaptiveClassifier:
        assert model.trainer.contributions(model.trainer.vocabulary, X[0]).features.keys() == {
            model.trainer.vocabulary.row({name: 1.0}, False).keys[0] for name in X[0]
        }


def test_accuracy_is_that_of_a_pipeline_with_a_scaler():
    for stream in (datasets.ImageSegments(), datasets.Phishing()):
        right = np.zeros(3)
        models = (
            AdaptiveClassifier(),
            preprocessing.StandardScaler() | AdaptiveClassifier(),
            without_scaler(AdaptiveClassifier()),
        )
        for x, y in stream.take(1_000):
            for i, model in enumerate(models):
                right[i] += model.predict_one(x) == y
                model.learn_one(x, y)
        by_itself, behind_scaler, unscaled = right / 1_000
        assert by_itself > behind_scaler - 0.01 > unscaled + 0.02


def test_a_large_number_among_words_is_scaled_and_words_are_not():
    generator = np.random.default_rng(1)
    scaler = FeatureScaler()
    for _ in range(50):
        words = {f"word {i}": 2.0 for i in generator.integers(200, size=8).tolist()}
        scaler.learn(words | {"of each": 1.0, "size": float(generator.normal(237.0, 20.0))}, 1.0)
    assert scaler.scaled({"word 1": 3.0, "of each": 1.0}) == pytest.approx(
        {"word 1": 3.0, "of each": 1.0, "size": -8.0}  # which is absent, and so 0
    )
    assert scaler.scaled({"size": 237.0})["size"] == pytest.approx(0.0, abs=0.5)


@pytest.mark.parametrize(
    "encode", [lambda text: dict.fromkeys(text.split(), 1), HashedBagOfWords(n_features=8).transform_one]
)
def test_texts_are_learned_as_before(encode):
    """As words, or as features of a message, however few columns these have."""
    model, expected = AdaptiveClassifier(), without_scaler(AdaptiveClassifier())
    for text, label in synthetic(n=1_200, seed=1):
        for each in (model, expected):
            each.learn_one(encode(text), label)
    assert (model.weights, model.intercept) == (expected.weights, expected.intercept)
    assert model.trainer.direct is model.trainer.learner  # there is nothing more to look for


def test_merged_moments_are_those_of_all_examples():
    X, y = table(400)
    base = AdaptiveClassifier()
    base.learn_many(X[:100], y[:100])
    parts = [copy.deepcopy(base) for _ in range(3)]
    for i, part in enumerate(parts):
        part.learn_many(X[100 + 100 * i : 200 + 100 * i], y[100 + 100 * i : 200 + 100 * i])
    scaler, values = merge(base, parts).trainer.scaler, np.array([[*x.values()] for x in X])
    counts, means, squares = scaler.moments
    assert (scaler.n, scaler.names) == (400, [*"abcde"])
    assert counts.tolist() == (values != 0.0).sum(axis=0).tolist()
    assert means == pytest.approx(values.mean(axis=0)) and squares / 400 == pytest.approx(values.var(axis=0))


def test_a_weight_counts_as_so_many_examples():
    X, _ = table(30)
    heavy, repeated = FeatureScaler(), FeatureScaler()
    for i, x in enumerate(X):
        heavy.learn(x, 1.0 + i % 3)
        for _ in range(1 + i % 3):
            repeated.learn(x, 1.0)
    assert (heavy.n, heavy.n_values) == (repeated.n, repeated.n_values)
    assert heavy.moments == pytest.approx(repeated.moments)


VALUES = st.one_of(st.floats(-1e45, 1e45), st.integers(-9, 9), st.booleans(), st.just("7"), st.just(float("nan")))


@needs_compiled
@settings(max_examples=100)
@given(
    x=st.dictionaries(st.sampled_from("abcdefgh"), VALUES), seed=st.integers(0, 9), weight=st.sampled_from([1.0, 3.5])
)
def test_engines_agree_on_moments_bit_for_bit(x, seed, weight):
    from stream_pegasos.engine import compiled

    X, _ = table(40, seed)
    names, moments, n = ["a", "b", "c", "h"], np.zeros((3, 4)), 0.0
    for other in X:
        expected = moments.copy()
        pure.learn_moments(other, names, expected, n, weight)
        compiled.learn_moments(other, names, moments, n, weight)
        assert moments.tolist() == expected.tolist()
        n += weight
    for n_values in (0.0, 3.0 * n, 1e6):
        assert compiled.find_numeric(moments, n, n_values) == pure.find_numeric(moments, n, n_values)
    scaled = [of.standardize(x, names, [0, 1, 3], moments, n) for of in (pure, compiled)]
    assert repr(scaled[0]) == repr(scaled[1])
