"""Drift detectors that are told of predictions, and some that raise."""

import pickle

import pytest
from contract import assert_close
from noisy import ScriptedDetector, columns, noisy_stream, prequential
from river import drift

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier, load
from stream_pegasos.blocks.blockwise import predict_learn
from stream_pegasos.evaluation.prequential import prequential as evaluated
from stream_pegasos.learners.predictions import PartlyLearnedError

# --- drift ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [False, True])
def test_the_detector_is_told_of_wrong_predictions(at_once):
    stream = [*noisy_stream(200, labels=(False, True))]
    given = ScriptedDetector(at=(50, 120))
    model = AdaptiveClassifier(drift_detector=given)
    by_hand = AdaptiveClassifier()
    wrong = []
    for x, y in stream:
        if len(by_hand.classes) == 2:  # before, there is nothing to decide between
            wrong.append(float(by_hand.predict_one(x) != y))
        if len(wrong) in (50, 120):
            by_hand.trainer.learner.forget(0.1)
        by_hand.learn_one(x, y)
    X, y = columns(stream)
    if at_once:
        model.learn_many(X, y)
    else:
        prequential(model, X, y)
    assert model.trainer.drift.detector.told == wrong
    assert model.n_drifts == 2
    assert model.weights == by_hand.weights
    assert model.drift_detector is given
    assert not given.told


@pytest.mark.parametrize("kind, labels", [(OrdinalClassifier, (1, 2)), (MultiLabelClassifier, (("a",), ("a", "b")))])
def test_each_kind_tells_the_detector_of_its_wrong_predictions(kind, labels):
    model, wrong = kind(AdaptiveClassifier(drift_detector=ScriptedDetector(at=(50,)))), []
    for x, y in noisy_stream(200, labels=labels):
        if kind is MultiLabelClassifier or len(model.classes) == 2:
            wrong.append(float(model.predict_many([x]).tolist() != [y]))
        model.learn_one(x, y)
    assert model.trainer.drift.detector.told == wrong and 0 < sum(wrong) < len(wrong) and model.n_drifts == 1


@pytest.mark.parametrize("detector", [drift.ADWIN(), drift.binary.DDM()])  # of numbers and of bools
def test_labels_that_swap(detector):
    stream = [(x, (y == "spam") != (i >= 2_000)) for i, (x, y) in enumerate(noisy_stream(3_000, noise=0.02))]
    plain, watching = AdaptiveClassifier(half_life=None), AdaptiveClassifier(half_life=None, drift_detector=detector)
    accuracies = [evaluated(stream, model).score.accuracy for model in (plain, watching)]
    assert watching.n_drifts >= 1
    assert accuracies[1] > accuracies[0] + 0.005


@pytest.mark.parametrize("detector", [drift.ADWIN(delta=0.1), drift.binary.DDM(warm_start=7)])
def test_in_a_loaded_model_the_detector_begins_anew_and_in_a_copy_it_goes_on(detector, tmp_path):
    model = AdaptiveClassifier(drift_detector=detector)
    model.learn_many(*columns(noisy_stream(300)))
    model.save(tmp_path / "model")
    loaded, copied = load(tmp_path / "model"), pickle.loads(pickle.dumps(model))
    told = [
        pickle.dumps(each.trainer.drift.detector)
        for each in (model, loaded, copied, AdaptiveClassifier(drift_detector=detector))
    ]
    assert told[0] == told[2] != told[1] == told[3]
    assert loaded.n_drifts == model.n_drifts


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


@pytest.mark.parametrize("error", [ValueError, RuntimeError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("labels", [("ham", "spam"), (1, 2), ("ham", "spam", "ham", "eggs")])
@pytest.mark.parametrize("n_told", [1, 2, 3, 5])
def test_a_detector_that_raises_leaves_learned_what_is_told(error, labels, n_told):
    """As if it had been learned alone; the detector is told of predictions once two labels are known."""
    X = [{f"word {i % 3}": 1.0} for i in range(12)]
    y = [labels[i % len(labels)] for i in range(12)]
    options = {"class_weight": "balanced", "pos_label": 1 if 1 in labels else None}
    model, expected = (AdaptiveClassifier(**options, drift_detector=of) for of in (Failing(n_told, error), None))
    with pytest.raises(error if error is KeyboardInterrupt else PartlyLearnedError) as raised:
        model.predict_learn_many(X, y)
    n = n_told + 1
    said = expected.predict_learn_many(X[:n], y[:n])
    assert model.n_iterations == n
    if error is not KeyboardInterrupt:
        assert raised.value.n_learned == n and type(raised.value.__cause__) is error
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value) and "is ill" in str(raised.value)
        assert len(raised.value.predictions) == n
        for told in (raised.value.predictions.scores, expected.trainer.labels.scores_many(raised.value.found.margins)):
            assert len(labels) > 2 or told == pytest.approx(said.scores)  # a third class may have no column yet
    assert_close(model, expected)
    model.learn_many(X[n:], y[n:])
    expected.learn_many(X[n:], y[n:])
    assert_close(model, expected)


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
    model = AdaptiveClassifier(drift_detector=Failing(13, RuntimeError))
    blocks = []
    with pytest.raises(PartlyLearnedError):
        blocks.extend(predict_learn(model, stream, lambda *_: None))
    assert sum(map(len, blocks)) == model.n_iterations == 14


def test_a_detector_that_detects_nothing_changes_no_decision():
    stream = list(noisy_stream(400))
    options = {"pos_label": "spam", "max_false_positive_rate": 0.1}
    models = [AdaptiveClassifier(**options), AdaptiveClassifier(**options, drift_detector=drift.NoDrift())]
    assert "spam" in prequential(models[0], *columns(stream)) == prequential(models[1], *columns(stream))
    assert models[0].weights == models[1].weights
    before_the_second = [AdaptiveClassifier(**options), AdaptiveClassifier(**options, drift_detector=drift.NoDrift())]
    for model in before_the_second:
        model.learn_many([{"a": 1.0}, {"b": 1.0}], ["spam", "ham"])
    assert [model.trainer.policy.decisions.of_label[None].limit.negatives.n for model in before_the_second] == [
        1.0,
        1.0,
    ]


def test_a_detector_that_raises_for_one_example_leaves_the_model_as_it_was(unchanged):
    model = AdaptiveClassifier(drift_detector=Failing(1), max_false_positive_rate=0.5, pos_label="spam")
    model.learn_many([{"a": 1.0}, {"b": 1.0}], ["ham", "spam"])
    weights, n, classes = model.weights, model.n_iterations, model.classes
    with pytest.raises(ValueError, match="the detector is ill"):
        model.learn_one({"a": 1.0}, "spam")
    assert (model.weights, model.n_iterations, model.classes) == (weights, n, classes)


def test_labels_are_checked_before_the_first_is_learned_though_a_detector_is_told_of_each():
    """The first, a truth value, says which one is positive, and the others may be any."""
    one, many = (AdaptiveClassifier(threshold=0.6, drift_detector=ScriptedDetector(at=(9,))) for _ in range(2))
    X, y = [{"a": 1.0}, {"b": 1.0}, {"a": 1.0}], [True, "red", False]
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    many.learn_many(X, y)
    assert many.classes == one.classes == (True, False, "red") and many.n_learned == 3
