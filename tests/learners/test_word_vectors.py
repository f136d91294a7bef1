"""What a model makes of word vectors: words that it never met, explanations that add up, parts that become one."""

import copy

import numpy as np
import pytest
from engines import full
from estimators import CASES, ORDERED, TWO, VECTORS
from river import linear_model, preprocessing

from stream_pegasos import AdaptiveClassifier, TextClassifier, TextFeatures, merge

WITH_VECTORS = [case for case in CASES if "vectors" in case.name]
MOODS = {"great": [1.0, 0.1], "superb": [0.9, 0.2], "awful": [-1.0, 0.1], "dire": [-0.8, 0.0], "film": [0.0, 1.0]}
for_each = pytest.mark.parametrize("case", WITH_VECTORS, ids=lambda case: case.classes)


def taught():
    model = TextClassifier(TextFeatures(vectors=MOODS))
    model.learn_many(["great film", "awful film", "great", "awful"] * 10, ["good", "bad"] * 20)
    return model


def test_a_word_that_was_never_met_is_told_by_its_neighbours():
    model = taught()
    assert [model.predict_one(x) for x in ("superb", "dire", "a superb one")] == ["good", "bad", "good"]
    assert (
        model.explain_ngrams_one("superb")["superb"] < -0.2 < 0.2 < model.explain_ngrams_one("dire film")["dire"]
    )  # of "bad"
    plain = TextClassifier()
    plain.learn_many(["great film", "awful film", "great", "awful"] * 10, ["good", "bad"] * 20)
    assert "superb" not in plain.explain_ngrams_one("superb")


@pytest.mark.parametrize(
    "case", [case for case in WITH_VECTORS if case.classes != ORDERED], ids=lambda case: case.classes
)
def test_explanations_add_up_to_what_predicts(case):
    model = case.trained(60)
    for x, _ in case.stream(8, seed=5):
        scores = model.decision_function_one(x)
        for label, score in {None: scores}.items() if case.classes == TWO else scores.items():
            assert sum(model.explain_ngrams_one(x, label=label).values()) == pytest.approx(score, rel=1e-5, abs=1e-6)


def test_fields_share_one_vector():
    features = TextFeatures(on="a", vectors=MOODS) + TextFeatures(on="b", vectors=MOODS) + TextFeatures(on="c")
    model = TextClassifier(features)
    model.learn_many([{"a": "great", "b": "film"}, {"a": "awful", "c": "great"}] * 20, ["good", "bad"] * 20)
    x = {"a": "dire", "b": "superb superb", "c": "awful"}
    explained = model.explain_ngrams_one(x)
    assert {"a: dire", "b: superb"} <= explained.keys()
    assert sum(explained.values()) == pytest.approx(model.decision_function_one(x), rel=1e-5)
    with pytest.raises(ValueError, match="different word vectors"):
        TextFeatures(on="a", vectors=MOODS) + TextFeatures(on="b", vectors=VECTORS)


def test_a_pipeline_of_river_gets_the_numbers_as_columns():
    features = TextFeatures(vectors=MOODS, n_features=100)
    x = features.transform_one("great film")
    assert [x[100], x[101]] == pytest.approx(np.array([1.0, 1.1]) / np.hypot(1.0, 1.1), abs=0.01)
    assert features.transform_many(["great film"]).shape == (1, 102)
    pipeline = TextFeatures(vectors=MOODS) | preprocessing.StandardScaler() | linear_model.LogisticRegression()
    for text, y in [("great film", True), ("awful film", False)] * 30:
        pipeline.learn_one(text, y)
    assert pipeline.predict_one("superb") and not pipeline.predict_one("dire")


def state_of(model):
    return model.classifier.to_state()[0] | model.classifier.to_state()[2]["learner"]


def test_precisions_of_parts_add_up():
    """And so do weights times precisions, counts and sums of vectors: as normal distributions are multiplied."""
    base = TextClassifier(TextFeatures(vectors=VECTORS), AdaptiveClassifier(half_life=None))
    case = next(case for case in WITH_VECTORS if case.of == "texts")
    base.learn_many(*case.columns(30))
    parts = [copy.deepcopy(base) for _ in range(3)]
    for seed, part in enumerate(parts):
        part.learn_many(*case.columns(20 + 5 * seed, seed=seed + 1))
    before, *after = map(state_of, (base, *parts))
    merged = state_of(merge(base, parts))
    assert merged["n_vectors"] == before["n_vectors"] + sum(each["n_vectors"] - before["n_vectors"] for each in after)
    precisions = [np.linalg.inv(full(each["vector_covariance"])) for each in (before, *after)]
    precision = sum(precisions[1:]) - 2.0 * precisions[0]
    assert full(merged["vector_covariance"]) == pytest.approx(np.linalg.inv(precision), rel=1e-4, abs=1e-6)
    weighted = [P @ each["vector_weights"] for P, each in zip(precisions, (before, *after), strict=True)]
    expected = np.linalg.solve(precision, sum(weighted[1:]) - 2.0 * weighted[0])
    assert merged["vector_weights"] == pytest.approx(expected, rel=1e-3, abs=1e-5)


@for_each
def test_parts_may_bring_vectors_and_classes_first(case):
    base = case.make()
    parts = [copy.deepcopy(base) for _ in range(2)]
    for seed, part in enumerate(parts):
        part.learn_many(*case.columns(40, seed=seed))
    model = merge(base, parts)
    assert model.n_iterations == 80 and len(state_of(model)["vector_mean"]) == 5
    texts, labels = case.columns(60, seed=9)
    right = [case.predicted(model, x) == y for x, y in zip(texts, labels, strict=True)]
    alone = [case.predicted(parts[0], x) == y for x, y in zip(texts, labels, strict=True)]
    assert np.mean(right) >= np.mean(alone) - 0.1
