"""What is seen of models of more than two classes."""

import json
import math

import numpy as np
import pytest
from kinds import ordered, several_classes, several_labels
from sklearn.metrics import precision_recall_fscore_support

from stream_pegasos import TextClassifier
from stream_pegasos.evaluation.prequential import PredictedBlock, evaluate, predict_block, predict_learn
from stream_pegasos.learners import feature_names
from stream_pegasos.learners.predictions import settled
from stream_pegasos.operation import answers
from stream_pegasos.operation import monitor as monitor_module
from stream_pegasos.operation.monitor import Monitor

GENERATOR = np.random.default_rng(3)
NUMBERS = GENERATOR.zipf(1.3, 900).clip(1, 30).tolist()
TEXTS = [f"word{n} {'noise' if n % 3 else 'other'} {i % 5}" for i, n in enumerate(NUMBERS)]
STREAMS = {
    "several classes": (several_classes, [*zip(TEXTS, (f"class {n}" for n in NUMBERS), strict=True)]),
    "ordered": (ordered, [*zip(TEXTS, (min(n, 5) for n in NUMBERS), strict=True)]),
    "several labels": (
        several_labels,
        [*zip(TEXTS, (tuple(f"topic {k}" for k in (2, 3) if n % k == 0) for n in NUMBERS), strict=True)],
    ),
}


def follow(monitor, stream, size=100):
    for begin in range(0, len(stream), size):
        chunk = list(stream[begin : begin + size])
        for block in predict_learn(monitor.model, chunk):
            monitor.learned(chunk[: len(block)], block)
            chunk = chunk[len(block) :]
    return monitor


def view(monitor):
    """As a browser gets it, which takes no NaN."""
    return json.loads(json.dumps(monitor.view(), allow_nan=False))


@pytest.mark.parametrize("size", [1, 97])
@pytest.mark.parametrize("kind", STREAMS)
def test_figures_are_those_of_evaluate(kind, size):
    make, stream = STREAMS[kind]
    stream = stream[: 300 if size == 1 else None]
    expected = evaluate(make(), stream, batch=size).score
    seen = view(follow(Monitor(make()), stream, size))
    assert seen["kind"] == kind
    figures = expected.figures()
    assert seen["expected_calibration_error"] == pytest.approx(figures.pop("calibration_error"), rel=1e-9)
    for name, value in figures.items():
        place = seen["window"] if name.startswith("window_") else seen
        assert place[name.removeprefix("window_")] == pytest.approx(value, rel=1e-12)
    assert seen["window"]["n"] == min(1_000, len(stream))
    assert seen["curve"][-1][:3] == [len(stream), *(figures[name] for name in monitor_module.OVER_TIME[kind])]
    others = expected.of_classes(20)
    for row, other in zip(seen["classes"], sorted(others) if kind == "ordered" else others, strict=True):
        assert (row["label"], row["n"], row["share"]) == (other.label, other.count, other.count / len(stream))


def test_rows_of_classes_are_those_of_scikit_learn():
    make, stream = STREAMS["several classes"]
    model, other, predicted = make(), make(), []
    for each in (model, other):  # while two classes are not known yet, what cannot be said counts as the wrong one
        each.learn_many(*map(list, zip(*stream[:20], strict=True)))
    stream = stream[20:]
    monitor = follow(Monitor(other), stream)
    for block in predict_learn(model, stream):
        predicted += [str(said.label) for said in block.each()]
    truth = [label for _, label in stream]
    seen = view(monitor)
    labels = [row["label"] for row in seen["classes"]]
    columns = precision_recall_fscore_support(truth, predicted, labels=labels, zero_division=0.0)
    for row, *expected, n in zip(seen["classes"], *columns, strict=True):
        assert [row["precision"] or 0.0, row["recall"], row["f1"]] == pytest.approx(expected)
        assert row["n"] == n
    assert len(labels) == 20
    assert seen["others"]["n_classes"] == len({*truth}) - 20
    assert seen["others"]["n"] == sum(label not in labels for label in truth)
    pair = seen["confused"][0]
    n = sum((a, b) == (pair["truth"], pair["predicted"]) for a, b in zip(truth, predicted, strict=True))
    assert (pair["n"], pair["share"]) == (n, n / truth.count(pair["truth"]))
    newest = seen["newest"][0]
    assert (newest["label"], newest["predicted"], newest["number"]) == (truth[-1], predicted[-1], len(stream))
    assert newest["right"] == (truth[-1] == predicted[-1])


def test_the_second_is_the_most_probable_other():
    make, stream = STREAMS["several classes"]
    monitor = follow(Monitor(make()), stream)
    block = predict_block(monitor.model, ["word1 other"], [])
    monitor.predicted(["word1 other"], block)
    row = block.predictions.probabilities[0]
    first, second = np.argsort(-row)[:2]
    newest = monitor.view()["newest"][0]
    assert (newest["predicted"], newest["probability"]) == (monitor.model.classes[first], row[first])
    assert (newest["second"], newest["second_probability"]) == (monitor.model.classes[second], row[second])
    assert newest["right"] is newest["label"] is newest["number"] is None


def test_words_are_those_that_weigh_most_for_and_against_a_class(monkeypatch):
    monkeypatch.setattr(monitor_module, "MOST_FOR_NAMES", math.inf)
    monkeypatch.setattr(monitor_module, "FOR_NAMES_AT_ONCE", math.inf)
    monkeypatch.setattr(feature_names, "MOST_WEIGHTS_AT_A_TIME", 100)  # some rows at a time give the same
    make, stream = STREAMS["several classes"]
    monitor = follow(Monitor(make()), stream, 1)
    words = monitor.words("class 2")
    assert words["positive"][0][0] in ("word0", " word", "<s> word0", "noise", "word0 noise", "word0 other", "other")
    place = monitor.model.classes.index("class 2")
    names = {name for text, _ in stream for name in monitor.model.features.tokens(text)}
    weights = {
        name: sign * monitor.model.weights_of(np.array([column]))[0, place]
        for name in names
        for column, sign in [monitor.model.features.index(name)]
    }
    by_size = sorted(weight for weight in weights.values() if weight)
    assert [weight for _, weight in words["positive"]] == [weight for weight in by_size[::-1][:20] if weight > 0]
    assert [weight for _, weight in words["negative"]] == [weight for weight in by_size[:20] if weight < 0]
    with pytest.raises(LookupError, match="does not know"):
        monitor.words("class 99")


class Stub(TextClassifier):
    """Predicts what it is told to; its classes are those that it is told."""

    known = (None, None)

    @property
    def classes(self):
        return self.known

    def block(self, y, predicted, classes):
        probabilities = np.array(
            [[0.7 if label == said else 0.3 / (len(classes) - 1) for label in classes] for said in predicted]
        )
        scores = np.log(probabilities)
        scores = scores[:, 1] - scores[:, 0] if len(classes) == 2 else scores
        return PredictedBlock(settled(scores, np.array(predicted, object), (classes, probabilities)), classes, y)


def test_a_third_class_in_the_middle_goes_on_from_two():
    model = Stub()
    monitor = Monitor(model)
    model.known = ("ham", "spam")
    two = ["ham", "spam"] * 10
    monitor.learned([("a", label) for label in two], model.block(two, ["ham"] * 20, model.known))
    seen = view(monitor)
    assert "kind" not in seen and seen["confusion_matrix"] == [[10, 0], [10, 0]]
    assert [row[2] for row in seen["curve"]] == [0.5, 0.5]  # ROC AUC of margins that are all the same

    model.known = ("ham", "spam", "eggs")
    more = ["eggs", "spam"] * 10
    monitor.learned([("b", label) for label in more], model.block(more, ["spam"] * 20, model.known))
    seen = view(monitor)
    assert (seen["kind"], seen["n"], seen["accuracy"]) == ("several classes", 40, 0.5)
    assert {row["label"]: (row["n"], row["recall"]) for row in seen["classes"]} == {
        "spam": (20, 0.5),
        "ham": (10, 1.0),
        "eggs": (10, 0.0),
    }
    assert {(pair["truth"], pair["predicted"]): pair["n"] for pair in seen["confused"]} == {
        ("spam", "ham"): 10,
        ("eggs", "spam"): 10,
    }
    assert [row[0] for row in seen["curve"]] == [10, 20, 30, 40]
    assert [row[2] is None for row in seen["curve"]] == [True, True, False, False]
    assert monitor.classes("egg")["classes"][0]["n"] == 10


@pytest.mark.parametrize("n", [0, 3, 777])
@pytest.mark.parametrize("kind", STREAMS)
def test_it_goes_on_after_a_restart_as_if_nothing_had_happened(kind, n):
    make, stream = STREAMS[kind]
    monitor = follow(Monitor(make()), stream[:n])
    restored = Monitor(monitor.model)
    restored.set_state(json.loads(json.dumps(monitor.get_state())))
    of_time = ("docs_per_second", "uptime_seconds", "newest")
    expected, seen = view(monitor), view(restored)
    assert {name: seen[name] for name in seen if name not in of_time} == {
        name: expected[name] for name in expected if name not in of_time
    }


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
