import json
import math
from datetime import datetime

import numpy as np
import pytest
from families import crossed
from kinds import ordered, several_labels
from outcomes import predictions_of
from river import drift

from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, PegasosClassifier, TextClassifier
from stream_pegasos.blocks.blockwise import predict_block, predict_learn
from stream_pegasos.blocks.predicted import PredictedBlock
from stream_pegasos.evaluation.metric_names import over_time
from stream_pegasos.evaluation.prequential import prequential
from stream_pegasos.learners import feature_names
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.learners.predictions import Predictions
from stream_pegasos.runtime import answers
from stream_pegasos.runtime import monitor as monitor_module
from stream_pegasos.runtime.monitor import Monitor
from stream_pegasos.streams import synthetic

STREAM = list(synthetic(n=1_100, seed=5))

GENERATOR = np.random.default_rng(3)
NUMBERS = GENERATOR.zipf(1.3, 900).clip(1, 30).tolist()
TEXTS = [f"word{n} {'noise' if n % 3 else 'other'} {i % 5}" for i, n in enumerate(NUMBERS)]
MANY = [*zip(TEXTS, (f"class {n}" for n in NUMBERS), strict=True)]
CASES = {
    "two classes": (TextClassifier, STREAM),
    "as published": (lambda: TextClassifier(classifier=PegasosClassifier(l2=1e-3)), STREAM),
    "with a detector": (
        lambda: TextClassifier(classifier=AdaptiveClassifier(drift_detector=drift.binary.HDDMW(drift_confidence=0.05))),
        STREAM,
    ),
    "careful": (
        lambda: TextClassifier(
            classifier=AdaptiveClassifier(max_false_positive_rate=0.05, pos_label="spam", max_features=2_000)
        ),
        STREAM,
    ),
    "many classes": (TextClassifier, MANY),
    "a third class": (TextClassifier, [*STREAM[:250], *MANY[:30], *STREAM[250:300]]),
    "positive at first": (
        TextClassifier,
        [(f"{['one', 'two'][n % 2 and i > 25]} {n}", 1 + (n % 2 and i > 25)) for i, n in enumerate(NUMBERS[:300])],
    ),
    "ordered": (ordered, [*zip(TEXTS, (min(n, 5) for n in NUMBERS), strict=True)]),
    "several labels": (
        several_labels,
        [*zip(TEXTS, (tuple(f"topic {k}" for k in (2, 3) if n % k == 0) for n in NUMBERS), strict=True)],
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


def rows_of(seen):
    return list(zip(*seen["curve"].values(), strict=True))


OF_TIME = ("docs_per_second", "uptime_seconds", "newest")


def lasting(monitor):
    return {name: value for name, value in view(monitor).items() if name not in OF_TIME}


@pytest.fixture
def find_all_names(monkeypatch):
    """Names of features, however long it takes."""
    monkeypatch.setattr(monitor_module, "MOST_FOR_NAMES", math.inf)
    monkeypatch.setattr(monitor_module, "FOR_NAMES_AT_ONCE", math.inf)


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
    scores = ("accuracy", "macro_f1", "roc_auc", "log_loss", "calibration_error")
    assert [seen[name] for name in scores] == [None] * 5
    assert seen["window"]["accuracy"] is seen["window"]["roc_auc"] is None
    assert seen["newest"] == seen["drifts"] == seen["classes"] == seen["confused"] == rows_of(seen) == []
    assert seen["reliability"] == [[0, None, None]] * 10
    assert (seen["model"]["n_classes"], seen["model"]["positive"], seen["model"]["n_features"]) == (0, None, 0)


@pytest.mark.parametrize(("case", "size"), crossed(CASES, [1, 97]))
def test_metrics_are_those_of_evaluate(case, size):
    make, stream = CASES[case]
    stream = stream[: 300 if size == 1 else 900]
    expected = prequential(stream, make(), batch=size).score
    metrics, seen = expected.metrics(), view(follow(Monitor(make()), stream, size))
    assert seen["kind"] == (case if case in ("ordered", "several labels") else "classes")
    assert ("roc_auc" in seen) == (case not in ("many classes", "a third class") and seen["kind"] == "classes")
    assert seen["model"]["positive"] == (expected.positive if seen["kind"] == "classes" else None)
    for name, value in metrics.items():
        place = seen["window"] if name.startswith("window_") else seen
        found = place[name.removeprefix("window_")]
        in_bins = {"abs": 1e-3} if name == "roc_auc" else {"rel": 1e-9}
        assert found == pytest.approx(value, **in_bins)
    n_answered = len(stream) - expected.n_unanswered
    assert seen["n_unanswered"] == expected.n_unanswered
    assert (seen["window"]["size"], seen["window"]["n"]) == (1_000, min(1_000, n_answered))
    assert {name: values[-1] for name, values in seen["curve"].items()} == {
        "n": len(stream),
        **{
            name: (seen["window"] if name.startswith("window_") else seen).get(name.removeprefix("window_"))
            for name in over_time(seen["kind"])
        },
    }
    others = expected.class_rows(20)
    for pair, other in zip(seen["confused"], expected.confused(12), strict=True):
        n = next(row.count for row in expected.class_rows() if row.label == other.truth)
        assert (pair["truth"], pair["predicted"], pair["n"], pair["share"]) == (*other, other.count / n)
    for row, other in zip(seen["classes"], sorted(others) if case == "ordered" else others, strict=True):
        assert (row["label"], row["n"], row["share"]) == (other.label, other.count, other.count / n_answered)
        for name in ("precision", "recall", "f1"):
            assert row[name] == (None if math.isnan(getattr(other, name)) else getattr(other, name))


def test_rows_of_the_curve_are_the_scores_at_their_time():
    seen = view(follow(Monitor(TextClassifier(), window=100), STREAM, 64))
    ns = seen["curve"]["n"]
    assert ns[-1] == len(STREAM)
    assert len(set(np.diff(ns[:-1]))) == 1  # evenly spaced
    for n, accuracy, macro_f1, roc_auc, window_accuracy, window_roc_auc, *of_sets in rows_of(seen)[:: len(ns) // 5]:
        assert of_sets == [None, None]
        score = prequential(STREAM[:n], TextClassifier()).score
        assert (accuracy, macro_f1) == (score.accuracy, score.macro_f1)
        assert roc_auc == pytest.approx(score.roc_auc, abs=2e-3)
        one = view(follow(Monitor(TextClassifier(), window=100), STREAM[:n], 50))
        assert [window_accuracy, window_roc_auc] == [one["window"]["accuracy"], one["window"]["roc_auc"]]


def test_one_label_only():
    seen = view(follow(Monitor(TextClassifier()), [(f"text {i}", "ham") for i in range(30)]))
    assert seen["accuracy"] == 1.0  # of all but the first, to which nothing could be said
    assert seen["roc_auc"] is seen["window"]["roc_auc"] is None
    assert (seen["curve"]["n"], seen["curve"]["roc_auc"]) == ([10, 20, 30], [None] * 3)
    assert seen["curve"]["accuracy"] == [1.0] * 3


def test_all_is_bounded_on_a_long_stream(monkeypatch, find_all_names):
    """Where the model is no model, so that it is fast; and every drift, every name is taken in."""

    monkeypatch.setattr(feature_names, "MOST_NAMES", 500)
    model, classes = TextClassifier(), ("ham", "spam")
    model.learn_many(["lunch", "pills"], classes)
    monitor = Monitor(model)
    generator = np.random.default_rng(0)
    sizes = []
    for block in range(400):
        margins = generator.normal(size=100) * 10.0 ** generator.integers(-9, 9, size=100)
        y = generator.random(100) < 0.5
        model.trainer.drift.n_drifts += 1
        words = " ".join(f"block{block}word{i}" for i in range(10)) + " " + "x" * 1_000
        examples = [(words, "ham")] * 100
        labels, halves = np.where(margins > 0, "spam", "ham"), np.full((100, 2), 0.5)
        said = Predictions(margins, lambda labels=labels: labels, lambda halves=halves: (classes, halves))
        monitor.learned(examples, PredictedBlock(said, classes, np.where(y, "spam", "ham").tolist()))
        monitor.predicted(["text"] * 100, PredictedBlock(said, classes, []))
        if block % 40 == 39:
            seen = view(monitor)
            assert len(rows_of(seen)) <= 200
            assert len(seen["drifts"]) <= 200
            assert len(seen["newest"]) == 20
            assert max(len(message["text"]) for message in seen["newest"]) <= 300
            sizes.append(len(json.dumps(monitor.get_state())))
            assert len(monitor._names) <= 625
            assert len(monitor._rate) <= 10
    assert seen["n"] == seen["n_predictions"] == 40_000
    assert seen["curve"]["n"][-1] == 40_000
    assert len(rows_of(seen)) >= 100
    assert seen["drifts"] == list(range(20_100, 40_001, 100))
    assert max(sizes[5:]) < 1.2 * sizes[4]


def test_drifts_are_on_the_time_line():
    model = CASES["with a detector"][0]()
    turned = [(text, label) for text, label in STREAM[:600]]
    turned += [(text, {"ham": "spam", "spam": "ham"}[label]) for text, label in STREAM[600:1_200]]
    seen = view(follow(Monitor(model), turned, 10))
    assert len(seen["drifts"]) == model.classifier.n_drifts > 0
    alone, expected = CASES["with a detector"][0](), []
    for i in range(0, len(turned), 10):
        before = alone.classifier.n_drifts
        alone.learn_many(*map(list, zip(*turned[i : i + 10], strict=True)))
        expected += [i + 10] * (alone.classifier.n_drifts > before)
    assert seen["drifts"] == expected


def test_a_state_stands_still_while_its_monitor_goes_on():
    """A checkpoint is written from it meanwhile."""
    monitor = follow(Monitor(CASES["with a detector"][0]()), STREAM[:600], 10)
    state = monitor.get_state()
    before = json.dumps(state)
    follow(monitor, [(text, {"ham": "spam", "spam": "ham"}[label]) for text, label in STREAM[600:1_200]], 10)
    assert len(monitor.get_state()["drifts"]) > len(state["drifts"])
    assert json.dumps(state) == before


@pytest.mark.parametrize("stream", [STREAM, MANY], ids=["two classes", "many classes"])
def test_the_newest_come_first_with_what_was_predicted(stream):
    model, other = TextClassifier(), TextClassifier()
    monitor = follow(Monitor(model), stream[:50])
    other.learn_many(*map(list, zip(*stream[:49], strict=True)))
    text, label = stream[49]
    predicted, probability, _ = predictions_of(other, [text])[0]
    probabilities = other.predict_proba_one(text)
    second = max(probabilities.keys() - {predicted}, key=probabilities.get)
    newest = monitor.view()["newest"][0]
    assert datetime.fromisoformat(newest.pop("time")).tzinfo is not None
    assert newest == {
        "number": 50,
        "text": text if len(text) <= 300 else text[:299] + "…",
        "label": label,
        "predicted": predicted,
        "probability": pytest.approx(probability),
        "right": predicted == label,
        "second": second,
        "second_probability": pytest.approx(probabilities[second]),
    }
    assert [message["number"] for message in monitor.view()["newest"]] == list(range(50, 30, -1))
    texts = ["a" * 300, "b" * 301]
    monitor.predicted(texts, predict_block(model, texts, []))
    newest = monitor.view()["newest"]
    assert [message["text"] for message in newest[:2]] == ["b" * 299 + "…", "a" * 300]
    assert newest[0]["number"] is newest[0]["label"] is newest[0]["right"] is None
    assert newest[2]["number"] == 50
    assert monitor.view()["n_predictions"] == 2
    assert monitor.view()["n"] == 50


@pytest.mark.parametrize(
    ("stream", "label", "options"),
    [
        (STREAM[:400], "spam", {}),
        (STREAM[:400], "ham", {"alternate_sign": True}),
        (MANY, "class 2", {"alternate_sign": True}),
    ],
)
def test_words_are_those_that_weigh_most_for_and_against_a_class(stream, label, options, monkeypatch, find_all_names):
    monkeypatch.setattr(feature_names, "MOST_WEIGHTS_AT_A_TIME", 100)  # some rows at a time give the same
    features = HashedBagOfWords(n_features=2**20, **options)
    monitor = follow(Monitor(TextClassifier(features, PegasosClassifier(l2=1e-3))), stream, 1)
    weights, sign_of_label = monitor.model.weights, 1.0 if label != "ham" else -1.0  # the one margin is that of spam
    weights, known = weights.get(label, weights), {}
    for text, _ in stream:
        for token in features.tokens(text):
            column, sign = features.index(token)
            known[token] = sign_of_label * sign * weights.get(column, 0.0)
    by_size, words = sorted(known.values()), monitor.words(label)
    assert [weight for _, weight in words["positive"]] == pytest.approx([w for w in by_size[::-1][:20] if w > 0.0])
    assert [weight for _, weight in words["negative"]] == pytest.approx([w for w in by_size[:20] if w < 0.0])
    for word, weight in (*words["positive"], *words["negative"]):
        assert weight == pytest.approx(known[word])
    with pytest.raises(LookupError, match="does not know"):
        monitor.words("class 99")


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


@pytest.mark.parametrize(("case", "n"), [("two classes", 0), ("two classes", 3), *((case, 277) for case in CASES)])
def test_it_goes_on_after_a_restart_as_if_nothing_had_happened(case, n, tmp_path):
    make, stream = CASES[case][0], CASES[case][1][:600]
    monitor = follow(Monitor(make()), stream[:n])
    monitor.predicted(["text"], predict_block(monitor.model, ["text"], []))
    monitor.n_failed = 4
    monitor.model.snapshot({"monitor": monitor.get_state()}).write(tmp_path / "model")
    model, progress = load_with_progress(tmp_path / "model")
    restored = Monitor(model)
    restored.set_state(progress["monitor"])
    assert lasting(restored) == lasting(monitor)
    if case != "with a detector":  # which begins afresh
        follow(monitor, stream[n:])
        follow(restored, stream[n:])
        assert lasting(restored) == lasting(monitor)
    assert view(restored)["n_failed"] == 4


def test_a_curve_of_another_version_has_other_metrics():
    monitor = follow(Monitor(TextClassifier()), STREAM[:30])
    state = json.loads(json.dumps(monitor.get_state()))
    columns = state["curve"]
    of_0_2 = ("n", "accuracy", "macro_f1", "roc_auc", "window_accuracy", "window_roc_auc")
    for curve, lacking in (
        ([list(row) for row in zip(*(columns[name] for name in of_0_2), strict=True)], set()),  # without names
        ({**columns, "informedness": [0.5] * 3}, set()),
        ({name: columns[name] for name in ("roc_auc", "n", "accuracy")}, set(of_0_2) - {"roc_auc", "n", "accuracy"}),
    ):
        restored = Monitor(monitor.model)
        restored.set_state({**state, "curve": curve})
        expected = {name: [None] * 3 if name in lacking else columns[name] for name in columns}
        assert restored.get_state()["curve"] == expected
        assert follow(restored, STREAM[30:50]).view()["curve"]["n"] == [10, 20, 30, 40, 50]


def test_no_message_is_in_the_state():
    monitor = follow(Monitor(TextClassifier()), [("first second third", "ham"), ("fourth fifth sixth", "spam")])
    state = json.dumps(monitor.get_state())
    assert "second third" in state  # a name of a feature
    assert "first second third" not in state


@pytest.mark.parametrize(
    "change",
    [
        *({"step": step} for step in (0, -5, 0.5, None)),
        {"curve": [[1, 0.5, 0.5, 0.5, 0.5, 0.5]] * 200},
        {"curve": [[1, 0.5]]},
        {"curve": [[None] * 6]},
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
    with pytest.raises(ValueError, match="must be one of a Monitor"):
        Monitor(TextClassifier()).set_state({**state, **change})


def test_margins_of_a_bin_that_is_none():
    state = Monitor(TextClassifier()).get_state()
    state["score"]["positive"]["margins"] = [[1 << 40, 1, 1]]
    with pytest.raises(ValueError, match="must be one of a Monitor"):
        Monitor(TextClassifier()).set_state(state)


def test_strange_texts(tmp_path):
    texts = ["\ud800", "", "\x00", "é" * 400, "<script>", "a\u202eb", " " * 1_000]
    monitor = follow(Monitor(TextClassifier()), [(text, i % 2 == 0) for i, text in enumerate(texts)], 1)
    assert json.loads(json.dumps(monitor.view()))["newest"][-1]["text"] == "\ud800"
    monitor.model.snapshot(monitor.get_state()).write(tmp_path / "model")
    restored = Monitor(load_with_progress(tmp_path / "model")[0])
    restored.set_state(load_with_progress(tmp_path / "model")[1])
    assert restored.get_state()["names"] == monitor.get_state()["names"]


def test_labels_as_they_are_shown_and_found():
    long = "ab" * 500_000
    labels = [1, "1", "a", long, 2**60, -(10**400), "\ud800"]
    shown = [answers.shown(label) for label in labels]
    assert shown[:3] == [1, "1", "a"]
    assert shown[3] == long[:199] + "…"
    assert shown[4] == str(2**60)
    assert len(shown[5]) <= 200
    for label, given in zip(labels, shown, strict=True):
        assert answers.label_named(labels, given) is label
        assert answers.label_named(labels, label) is label
    assert answers.label_named(["7"], 7) == "7"
    assert answers.label_named([None, "a"], "None") is None


def test_a_label_that_may_be_one_of_two_is_not_guessed():
    alike = ["x" * 199 + "yes", "x" * 199 + "no", "a"]
    for given in (answers.shown(alike[0]), str(2**60)):
        with pytest.raises(LookupError, match="any of 2 labels"):
            answers.label_named([*alike, 2**60, str(2**60)], given)
    assert answers.label_named(alike, alike[1]) == alike[1]


def test_very_many_labels_of_a_message_are_cut_off():
    monitor = follow(Monitor(several_labels()), [("text", tuple(range(50)))] * 100)
    newest = monitor.view()["newest"][0]
    assert newest["label"] == [*range(10), "… 40 more"]
    assert len(newest["predicted"]) == 11 and len(newest["probability"]) == 10
    assert newest["right"] is True
