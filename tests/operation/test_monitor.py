import json
import math
import random

import numpy as np
import pytest
from river import drift
from sklearn.metrics import roc_auc_score

from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, PegasosClassifier, TextClassifier, engine
from stream_pegasos.evaluation.prequential import PredictedBlock, evaluate, predict, predict_block, predict_learn
from stream_pegasos.learners import feature_names
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.learners.predictions import Predictions
from stream_pegasos.operation import monitor as monitor_module
from stream_pegasos.operation.monitor import Monitor
from stream_pegasos.streams import synthetic

STREAM = list(synthetic(n=1_100 if engine.NAME == "pure" else 2_500, seed=5))

MODELS = {
    "default": TextClassifier,
    "as published": lambda: TextClassifier(classifier=PegasosClassifier(l2=1e-3)),
    "with a detector": lambda: TextClassifier(
        classifier=AdaptiveClassifier(drift_detector=drift.binary.HDDMW(drift_confidence=0.05))
    ),
    "careful": lambda: TextClassifier(
        classifier=AdaptiveClassifier(max_false_positive_rate=0.05, pos_label="spam", max_features=2_000)
    ),
}


def follow(monitor, stream, size=100):
    """Learn a stream in chunks of that size, watched by the monitor."""
    for begin in range(0, len(stream), size):
        chunk = list(stream[begin : begin + size])
        for tested in predict_learn(monitor.model, chunk):
            monitor.learned(chunk[: len(tested)], tested)
            chunk = chunk[len(tested) :]
    return monitor


def view(monitor):
    """As a browser gets it, which takes no NaN."""
    text = json.dumps(monitor.view(), allow_nan=False)
    return json.loads(text)


@pytest.fixture
def clock(monkeypatch):
    """Time that stands still until it is moved."""

    class Clock:
        now = 1_000.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(monitor_module, "monotonic", clock)
    return clock


def test_before_anything_is_learned():
    seen = view(Monitor(TextClassifier()))
    assert seen["n"] == seen["n_predictions"] == seen["n_failed"] == seen["window"]["n"] == 0
    scores = ("accuracy", "roc_auc", "log_loss", "expected_calibration_error")
    assert [seen[name] for name in scores] == [None] * 4
    assert seen["window"]["accuracy"] is seen["window"]["roc_auc"] is None
    assert seen["curve"] == seen["newest"] == seen["drifts"] == []
    assert seen["words"] == {"positive": [], "negative": []}
    assert seen["confusion_matrix"] == [[0, 0], [0, 0]]
    assert seen["reliability"] == [[0, None, None]] * 10
    assert seen["model"]["classes"] == [None, None]
    assert seen["model"]["n_features"] == 0


@pytest.mark.parametrize("size", [1, 97])
@pytest.mark.parametrize("which", MODELS)
def test_scores_are_those_of_evaluate(which, size):
    stream = STREAM[: 500 if size == 1 else None]
    expected = evaluate(MODELS[which](), stream).score
    seen = view(follow(Monitor(MODELS[which]()), stream, size))
    assert seen["n"] == expected.n == len(stream)
    assert seen["accuracy"] == expected.accuracy
    assert seen["log_loss"] == pytest.approx(expected.log_loss, rel=1e-12)
    assert seen["roc_auc"] == pytest.approx(expected.roc_auc, abs=1e-3)
    assert seen["window"] == {
        "size": 1_000,
        "n": min(1_000, len(stream)),
        "accuracy": expected.window_accuracy,
        "roc_auc": expected.window_roc_auc,
    }
    assert seen["confusion_matrix"] == expected.confusion_matrix.tolist()
    assert seen["expected_calibration_error"] == pytest.approx(expected.expected_calibration_error, rel=1e-12)


def test_the_window_is_what_scikit_learn_says_of_the_newest():
    monitor = Monitor(TextClassifier(), window=150)
    model, truth, margins, right = TextClassifier(), [], [], []
    for text, label in STREAM[:800]:
        margins.append(model.decision_function_one(text))
        truth.append(label == "spam")
        right.append(model.predict_one(text) == label)
        model.learn_one(text, label)
    assert model.classes == ("ham", "spam")
    seen = view(follow(monitor, STREAM[:800], 37))
    assert seen["window"]["size"] == seen["window"]["n"] == 150
    assert seen["window"]["roc_auc"] == pytest.approx(roc_auc_score(truth[-150:], margins[-150:]), rel=1e-12)
    assert seen["window"]["accuracy"] == pytest.approx(np.mean(right[-150:]), rel=1e-12)


def test_rows_of_the_curve_are_the_scores_at_their_time():
    seen = view(follow(Monitor(TextClassifier(), window=100), STREAM, 64))
    ns = [row[0] for row in seen["curve"]]
    assert ns[-1] == len(STREAM)
    assert len(set(np.diff(ns[:-1]))) == 1  # evenly spaced
    for n, accuracy, roc_auc, window_accuracy, window_roc_auc in seen["curve"][:: len(ns) // 5]:
        score = evaluate(TextClassifier(), STREAM[:n]).score
        assert accuracy == score.accuracy
        assert roc_auc == pytest.approx(score.roc_auc, abs=2e-3)
        one = view(follow(Monitor(TextClassifier(), window=100), STREAM[:n], 50))
        assert [window_accuracy, window_roc_auc] == [one["window"]["accuracy"], one["window"]["roc_auc"]]


def test_labels_that_turn_out_to_be_the_other_way_round():
    """1 is taken for positive until 2 shows it to be negative."""
    generator = random.Random(0)
    stream = [(f"one a{generator.randrange(9)}", 1) for _ in range(25)]
    stream += [(f"{('one', 'two')[y]} a{generator.randrange(9)}", y + 1) for y in generator.choices((0, 1), k=300)]
    for size in (10, 40):
        monitor = follow(Monitor(TextClassifier()), stream, size)
        expected = evaluate(TextClassifier(), stream).score
        seen = view(monitor)
        assert seen["model"]["classes"] == [1, 2]
        assert seen["confusion_matrix"] == expected.confusion_matrix.tolist()
        assert sum(seen["confusion_matrix"][0]) == sum(label == 1 for _, label in stream) - expected.unanswered[0]
        assert seen["roc_auc"] == pytest.approx(expected.roc_auc, abs=1e-3)
        assert seen["window"]["roc_auc"] == expected.window_roc_auc
        assert seen["log_loss"] == pytest.approx(expected.log_loss, rel=1e-9)


def test_one_label_only():
    seen = view(follow(Monitor(TextClassifier()), [(f"text {i}", "ham") for i in range(30)]))
    assert seen["accuracy"] == pytest.approx(29 / 30)
    assert seen["roc_auc"] is seen["window"]["roc_auc"] is None
    assert [row[:3] for row in seen["curve"]] == [[n, pytest.approx((n - 1) / n), None] for n in (10, 20, 30)]


def test_all_is_bounded_on_a_long_stream(monkeypatch):
    """Where the model is no model, so that it is fast; and every drift, every name is taken in."""

    class Classifier(AdaptiveClassifier):
        n_drifts = 0

    monkeypatch.setattr(monitor_module, "MOST_FOR_NAMES", math.inf)
    monkeypatch.setattr(monitor_module, "FOR_NAMES_AT_ONCE", math.inf)
    monkeypatch.setattr(feature_names, "MOST_NAMES", 500)
    model, classes = TextClassifier(classifier=Classifier()), ("ham", "spam")
    model.learn_many(["lunch", "pills"], classes)
    monitor = Monitor(model)
    generator = np.random.default_rng(0)
    sizes = []
    for block in range(400):
        margins = generator.normal(size=100) * 10.0 ** generator.integers(-9, 9, size=100)
        y = generator.random(100) < 0.5
        model.classifier.n_drifts += 1
        words = " ".join(f"block{block}word{i}" for i in range(10)) + " " + "x" * 1_000
        examples = [(words, "ham")] * 100
        labels, halves = np.where(margins > 0, "spam", "ham"), np.full((100, 2), 0.5)
        said = Predictions(margins, lambda labels=labels: labels, lambda halves=halves: (classes, halves))
        monitor.learned(examples, PredictedBlock(said, classes, np.where(y, "spam", "ham").tolist()))
        monitor.predicted(["text"] * 100, PredictedBlock(said, classes, []))
        if block % 40 == 39:
            seen = view(monitor)
            assert len(seen["curve"]) <= 200
            assert len(seen["drifts"]) <= 200
            assert len(seen["newest"]) == 20
            assert max(len(message["text"]) for message in seen["newest"]) <= 300
            sizes.append(len(json.dumps(monitor.get_state())))
            assert len(monitor._names) <= 625
            assert len(monitor._rate) <= 10
    assert seen["n"] == seen["n_predictions"] == 40_000
    assert seen["curve"][-1][0] == 40_000
    assert len(seen["curve"]) >= 100
    assert seen["drifts"] == list(range(20_100, 40_001, 100))
    assert max(sizes[5:]) < 1.2 * sizes[4]


def test_drifts_are_on_the_time_line():
    model = MODELS["with a detector"]()
    turned = [(text, label) for text, label in STREAM[:600]]
    turned += [(text, {"ham": "spam", "spam": "ham"}[label]) for text, label in STREAM[600:1_200]]
    seen = view(follow(Monitor(model), turned, 10))
    assert len(seen["drifts"]) == model.classifier.n_drifts > 0
    alone, expected = MODELS["with a detector"](), []
    for i in range(0, len(turned), 10):
        before = alone.classifier.n_drifts
        alone.learn_many(*map(list, zip(*turned[i : i + 10], strict=True)))
        expected += [i + 10] * (alone.classifier.n_drifts > before)
    assert seen["drifts"] == expected


def test_a_state_stands_still_while_its_monitor_goes_on():
    """A checkpoint is written from it meanwhile."""
    monitor = follow(Monitor(MODELS["with a detector"]()), STREAM[:600], 10)
    state = monitor.get_state()
    before = json.dumps(state)
    follow(monitor, [(text, {"ham": "spam", "spam": "ham"}[label]) for text, label in STREAM[600:1_200]], 10)
    assert len(monitor.get_state()["drifts"]) > len(state["drifts"])
    assert json.dumps(state) == before


def test_the_newest_come_first_with_what_was_predicted():
    model, other = TextClassifier(), TextClassifier()
    monitor = follow(Monitor(model), STREAM[:50])
    other.learn_many(*map(list, zip(*STREAM[:49], strict=True)))
    text, label = STREAM[49]
    predicted, probability, margin = predict(other, [text])[0]
    shown = text if len(text) <= 300 else text[:299] + "…"
    assert monitor.view()["newest"][0] == {
        "number": 50,
        "text": shown,
        "label": label,
        "predicted": predicted,
        "probability": pytest.approx(probability),
        "margin": pytest.approx(margin),
    }
    assert [message["number"] for message in monitor.view()["newest"]] == list(range(50, 30, -1))
    texts = ["a" * 300, "b" * 301]
    monitor.predicted(texts, predict_block(model, texts, []))
    newest = monitor.view()["newest"]
    assert [message["text"] for message in newest[:2]] == ["b" * 299 + "…", "a" * 300]
    assert newest[0]["number"] is newest[0]["label"] is None
    assert newest[2]["number"] == 50
    assert monitor.view()["n_predictions"] == 2
    assert monitor.view()["n"] == 50


@pytest.mark.parametrize("signed", [False, True])
def test_words_are_those_that_weigh_most(signed, monkeypatch):
    monkeypatch.setattr(monitor_module, "MOST_FOR_NAMES", math.inf)
    monkeypatch.setattr(monitor_module, "FOR_NAMES_AT_ONCE", math.inf)
    features = HashedBagOfWords(n_features=2**20, alternate_sign=signed)
    model = TextClassifier(features, PegasosClassifier(l2=1e-3))
    words = follow(Monitor(model), STREAM[:400], 1).view()["words"]
    weights = model.weights
    known = {}
    for text, _ in STREAM[:400]:
        for token in features.tokens(text):
            column, sign = features.index(token)
            known[token] = sign * weights.get(column, 0.0)
    largest = sorted(known.values())
    assert [weight for _, weight in words["positive"]] == pytest.approx(largest[: -20 - 1 : -1])
    assert [weight for _, weight in words["negative"]] == pytest.approx(largest[:20])
    for word, weight in (*words["positive"], *words["negative"]):
        assert weight == pytest.approx(known[word])


def test_finding_names_takes_a_small_share_of_the_time(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(monitor_module, "monotonic", lambda: clock[0])
    monkeypatch.setattr(monitor_module, "MOST_FOR_NAMES", 0.0)
    model, looked = TextClassifier(), []
    contents = model.features.contents

    def slow(text):
        clock[0] += 1.0
        looked.append(clock[0])
        return contents(text)

    monkeypatch.setattr(model.features, "contents", slow, raising=False)
    monitor = Monitor(model)
    while clock[0] < 500.0:
        clock[0] += 0.5
        follow(monitor, [("text", "ham")])
    assert 8 <= len(looked) <= 11  # of 500 seconds 2 %


def test_docs_per_second(clock):
    monitor = Monitor(TextClassifier())
    assert monitor.view()["docs_per_second"] == 0.0
    for _ in range(20):
        follow(monitor, STREAM[:7])
        monitor.predicted(["text"] * 3, predict_block(monitor.model, ["text"] * 3, []))
        clock.now += 1.0
    assert monitor.view()["docs_per_second"] == 10.0
    assert monitor.view()["uptime_seconds"] == 20.0
    clock.now += 30.0
    assert monitor.view()["docs_per_second"] == 0.0


@pytest.mark.parametrize("n", [3, 777])
@pytest.mark.parametrize("which", MODELS)
def test_it_goes_on_after_a_restart_as_if_nothing_had_happened(which, n, tmp_path):
    monitor = follow(Monitor(MODELS[which]()), STREAM[:n])
    monitor.predicted(["text"], predict_block(monitor.model, ["text"], []))
    monitor.n_failed = 4
    monitor.model.snapshot({"monitor": monitor.get_state()}).write(tmp_path / "model")
    model, progress = load_with_progress(tmp_path / "model")
    restored = Monitor(model)
    restored.set_state(progress["monitor"])
    of_time = ("docs_per_second", "uptime_seconds", "newest")
    expected, seen = view(monitor), view(restored)
    assert {name: seen[name] for name in seen if name not in of_time} == {
        name: expected[name] for name in expected if name not in of_time
    }
    if which != "with a detector":  # which begins afresh
        follow(monitor, STREAM[n:])
        follow(restored, STREAM[n:])
        expected, seen = view(monitor), view(restored)
        of_time = (*of_time, "words")  # which are found as there is time
        assert {name: seen[name] for name in seen if name not in of_time} == {
            name: expected[name] for name in expected if name not in of_time
        }
    assert seen["n_failed"] == 4


def test_it_goes_on_after_one_label_only(tmp_path):
    """What is not known yet is no number, and JSON has none for it."""
    monitor = follow(Monitor(TextClassifier()), [(f"text {i}", 1) for i in range(25)])
    monitor.model.snapshot(monitor.get_state()).write(tmp_path / "model")
    model, state = load_with_progress(tmp_path / "model")
    restored = Monitor(model)
    restored.set_state(state)
    for each in (monitor, restored):
        follow(each, [(f"other {i}", 2 - i % 2) for i in range(25)])
    assert view(restored)["curve"] == view(monitor)["curve"]
    assert view(restored)["confusion_matrix"] == view(monitor)["confusion_matrix"]


def test_no_message_is_in_the_state():
    monitor = follow(Monitor(TextClassifier()), [("first second third", "ham"), ("fourth fifth sixth", "spam")])
    state = json.dumps(monitor.get_state())
    assert "second third" in state  # a name of a feature
    assert "first second third" not in state


@pytest.mark.parametrize(
    "change",
    [
        *({"step": step} for step in (0, -5, 0.5, None)),
        {"curve": [[1, 0.5, 0.5, 0.5, 0.5]] * 200},
        {"curve": [[1, 0.5]]},
        {"names": {"n": 0, "names": [[1 << 80, "a", 1.0]]}},
        {"names": {"n": 0, "names": [["a"]]}},
        {"names": [["a"]]},
        {"score": {}},
        {"drifts": [math.inf]},
        {"n_failed": "many"},
    ],
)
def test_states_that_are_none(change):
    state = Monitor(TextClassifier()).get_state()
    Monitor(TextClassifier()).set_state(state)
    with pytest.raises(ValueError, match="no state of a Monitor"):
        Monitor(TextClassifier()).set_state({**state, **change})


def test_margins_of_a_bin_that_is_none():
    state = Monitor(TextClassifier()).get_state()
    state["score"]["margins"] = [[1 << 40, 1, 1]]
    with pytest.raises(ValueError, match="no state of a Monitor"):
        Monitor(TextClassifier()).set_state(state)


def test_strange_texts(tmp_path):
    texts = ["\ud800", "", "\x00", "é" * 400, "<script>", "a\u202eb", " " * 1_000]
    monitor = follow(Monitor(TextClassifier()), [(text, i % 2 == 0) for i, text in enumerate(texts)], 1)
    assert json.loads(json.dumps(monitor.view()))["newest"][-1]["text"] == "\ud800"
    monitor.model.snapshot(monitor.get_state()).write(tmp_path / "model")
    restored = Monitor(load_with_progress(tmp_path / "model")[0])
    restored.set_state(load_with_progress(tmp_path / "model")[1])
    assert restored.get_state()["names"] == monitor.get_state()["names"]
