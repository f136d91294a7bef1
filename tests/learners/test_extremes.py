"""Values, counts, classes and numbers of vectors at the ends of their ranges."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from contract import assert_close
from engines import both_engines

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    load,
)
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.learners import probabilities, trainer


@both_engines
@pytest.mark.parametrize("kind", ["two", "ovr"])
def test_tiny_values_teach(engine_in_test, kind):
    found = []
    for size in (1.0, 1e-100, 1e-170, 1e-200, 1e-320):
        learner, vocabulary = (
            engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, 1_000.0, 0.1, 0, kind),
            engine_in_test.Vocabulary(),
        )
        for i in range(60):
            learner.learn(vocabulary, {"of all": size, f"of {i % 2}": size}, float(i % 2), 1.0)
        found.append(list(learner.margins(vocabulary, {"of all": size, "of 1": size})))
    assert found[0][1] > 0.3
    assert np.allclose(found, found[0], rtol=1e-5)  # so few bits has a number like the last


@pytest.mark.parametrize("make", [PegasosClassifier, AdaptiveClassifier, KernelPegasosClassifier])
def test_a_model_that_learned_with_the_largest_weights_loads(make, tmp_path):
    model = make(class_weight={1: 1e30})
    for i in range(4):
        model.learn_one({"x": 1.0, str(i): 1.0}, i % 2, 1e30)
    model.save(tmp_path / "m")
    assert_close(load(tmp_path / "m"), model)


def test_names_with_lone_surrogates(tmp_path):
    model = TextClassifier()
    model.keep_names()
    model.learn_many(["cheap \ud800 pills", "see you"], ["spam", "ham"])
    model.save(tmp_path / "model")
    assert dict(load(tmp_path / "model").names.weights(model)) == dict(model.names.weights(model))


@pytest.mark.parametrize("constant", [None, 0.0, 1.0])
def test_a_constant_number_stops_no_forgetting(constant):
    rng = np.random.default_rng(3)
    X, true = rng.normal(size=(20_000, 8)), rng.normal(size=8)
    if constant is not None:
        X[:, 5], true[5] = constant, 0.0
    features = TextFeatures(vectors=lambda texts: X[[int(text[1:]) if text[1:].isdigit() else 0 for text in texts]])
    model = TextClassifier(features, AdaptiveClassifier(half_life=800))
    accuracies = []
    for turn in range(5):
        rows = range(4_000 * turn, 4_000 * turn + 4_000)
        y = (X[rows] @ true > 0.0) != bool(turn % 2)
        said = model.predict_learn_many([f"w{row}" for row in rows], y.tolist()).labels
        accuracies.append(np.mean(said[:1_000] == y[:1_000]))
    assert min(accuracies[1:]) > accuracies[1] - 0.05


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_each_variance_grows_by_itself(share):
    block = DenseBlock.of("two", 3, 2)
    block.covariance = np.array([[0.01, 0.005, 0.0], [0.005, 0.02, 0.0], [0.0, 0.0, 1.0]])
    block.forget(share)
    assert np.allclose(
        block.covariance, [[0.01 / share, 0.005 / share, 0.0], [0.005 / share, 0.02 / share, 0], [0, 0, 1]]
    )


@pytest.mark.parametrize("make", [AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier])
def test_margins_in_blocks(make, monkeypatch):
    n, k = 600, 150
    rows = scipy.sparse.random(n, 50, 0.1, "csr", rng=np.random.default_rng(1))
    y = [i * i % k for i in range(n)]
    y = [{each} for each in y] if make is MultiLabelClassifier else y
    w = [float(i % 3) for i in range(n)]
    whole = make()
    whole.learn_many(rows, y, w)
    monkeypatch.setattr(trainer, "MOST_MARGINS", 10_000)
    blocks = make()
    blocks.learn_many(rows, y, w)
    assert blocks.classes == whole.classes
    assert np.array_equal(blocks.predict_proba_many(rows), whole.predict_proba_many(rows))
    for bad in ([*y[:-1], 1.5], y[:-1]):
        model = make()
        with pytest.raises((TypeError, ValueError)):
            model.learn_many(rows, bad, w)
        assert not model.n_iterations


def test_memory_of_many_rows_and_classes():
    n, k = 6_000, 2_000
    model = AdaptiveClassifier()
    rows, y = scipy.sparse.csr_matrix((np.ones(n), (range(n), np.arange(n) % 50)), (n, 50)), [i % k for i in range(n)]
    tracemalloc.start()
    try:
        model.learn_many(rows, y)
        assert tracemalloc.get_traced_memory()[1] < 60_000_000  # n × k numbers take 96 MB
    finally:
        tracemalloc.stop()


def limited():
    return AdaptiveClassifier(max_false_positive_rate=dict.fromkeys(range(5), 0.2))


@pytest.mark.parametrize("make", [AdaptiveClassifier, MultiLabelClassifier, limited])
def test_memory_of_predictions_for_many_rows_and_classes(make, monkeypatch):
    n, k = 1_200, 600
    model = make()
    rows, y = scipy.sparse.csr_matrix((np.ones(n), (range(n), np.arange(n) % 50)), (n, 50)), [i % k for i in range(n)]
    y = [{each} for each in y] if make is MultiLabelClassifier else y
    tracemalloc.start()
    try:
        said = model.predict_learn_many(rows, y)
        assert said.probabilities.shape == said.scores.shape == (n, k)
        assert tracemalloc.get_traced_memory()[1] < 22_000_000  # scores and probabilities take 6 MB each
    finally:
        tracemalloc.stop()
    whole = {}
    for size in (n * k, 10_001):
        monkeypatch.setattr(probabilities, "MOST_NUMBERS", size)
        model = make()
        said = model.predict_learn_many(rows, y)
        whole[size] = said.labels.tolist(), said.probabilities.tolist(), model.to_state()[2]
    assert whole[n * k] == whole[10_001]


@pytest.mark.parametrize(
    "y",
    [
        np.array([-128, 127, 0, 127, -128] * 4, np.int8),
        np.array([250, 3, 255, 3, 0] * 4, np.uint8),
        np.array([-(2**63), 2**63 - 1, 0, 0] * 5),
        np.array([2**64 - 1, 2**64 - 2, 2**63] * 5, np.uint64),
        np.array([-(2**63), 1 - 2**63] * 9),
    ],
    ids=["int8", "uint8", "int64", "uint64", "least"],
)
def test_arrays_of_labels_are_learned_in_parts_as_lists_are(y, monkeypatch):
    rows = scipy.sparse.csr_matrix(np.eye(len(y)))
    whole, parts = AdaptiveClassifier(), AdaptiveClassifier()
    whole.learn_many(rows, y.tolist())
    monkeypatch.setattr(trainer, "MOST_MARGINS", 12)
    parts.learn_many(rows, y)
    assert parts.classes == whole.classes and parts.to_state()[2] == whole.to_state()[2]
