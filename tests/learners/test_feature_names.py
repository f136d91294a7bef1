"""The words of the heaviest features, kept as they are taught."""

import json
import math

import pytest

from stream_pegasos import AdaptiveClassifier, KernelPegasosClassifier, MultiLabelClassifier, TextClassifier, load
from stream_pegasos.blocks.predicted import PredictedBlock
from stream_pegasos.learners import feature_names
from stream_pegasos.learners.feature_names import FeatureNames
from stream_pegasos.runtime import monitor as monitor_module
from stream_pegasos.runtime.monitor import Monitor
from stream_pegasos.streams import read, synthetic

TEXTS, LABELS = map(list, zip(*synthetic(n=600, seed=3), strict=True))


def by_hand(model, texts):
    """What each n-gram of the texts weighs."""
    weights, known = {}, model.weights
    for text in texts:
        for ngram in model.features.tokens(text):
            column, sign = model.features.index(ngram)
            weights[ngram] = sign * known.get(column, 0.0)  # messages that were clear taught nothing
    return weights


def test_names_are_those_of_the_features(tmp_path, monkeypatch):
    monkeypatch.setattr(feature_names, "FIRST", 100)
    model, plain = TextClassifier(), TextClassifier()
    model.keep_names()
    for text, label in zip(TEXTS[:50], LABELS[:50], strict=True):
        model.learn_one(text, label)
    model.learn_many(iter(TEXTS[50:300]), LABELS[50:300])
    model.predict_learn_many(TEXTS[300:], LABELS[300:])
    plain.learn_many(TEXTS, LABELS)
    assert model.classifier.to_state()[2] == plain.classifier.to_state()[2]
    looked_at = [text for i, text in enumerate(TEXTS) if i < 100 or i % 16 == 0]
    expected = by_hand(model, looked_at)
    assert dict(model.names.weights(model)) == pytest.approx(expected)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert dict(loaded.names.weights(loaded)) == pytest.approx(expected, rel=1e-12, abs=1e-6)
    assert "names" not in plain.to_state()[2]


def test_the_lightest_are_dropped_first(monkeypatch):
    monkeypatch.setattr(feature_names, "MOST_NAMES", 40)
    model, names = TextClassifier(), FeatureNames()
    model.learn_many(TEXTS, LABELS)
    for text in TEXTS:
        names.add(model, text)
    every = sorted(by_hand(model, TEXTS).values(), key=abs)
    kept = [weight for _, weight in names.weights(model)]
    assert len(kept) <= 50
    assert sorted(kept, key=abs)[-30:] == pytest.approx(every[-30:])


def test_a_loaded_filter_shows_its_own_heaviest_words(data_folder, monkeypatch):
    """Not only those of its newest messages."""
    for limit in ("MOST_FOR_NAMES", "FOR_NAMES_AT_ONCE"):  # however slow the machine is
        monkeypatch.setattr(monitor_module, limit, math.inf)
    mail = [(text, label) for text, label, *_ in read(data_folder / "sms_spam.jsonl.gz")]
    model, every = TextClassifier(), FeatureNames()
    model.learn_many(*map(list, zip(*mail[:4_000], strict=True)))
    monitor = Monitor(model)
    for begin in range(4_000, 5_500, 100):
        part = mail[begin : begin + 100]
        said = model.predictions([text for text, _ in part])
        model.learn_many(*map(list, zip(*part, strict=True)))
        monitor.learned(part, PredictedBlock(said, model.classes, [label for _, label in part]))
    for text, _ in mail[:5_500]:
        every.add(model, text)
    weights = sorted(every.weights(model), key=lambda pair: pair[1])
    words = monitor.words("spam")
    for shown, heaviest in ((words["positive"], weights[:-21:-1]), (words["negative"], weights[:20])):
        assert len({word for word, _ in shown} & {word for word, _ in heaviest}) >= 15


def test_several_labels_have_names_too():
    model = TextClassifier(classifier=MultiLabelClassifier())
    model.keep_names()
    model.learn_many(["cheap pills", "pills"] * 20, [["drugs", "offer"], ["drugs"]] * 20)
    heaviest, _ = max(model.names.weights(model, "offer"), key=lambda pair: pair[1])
    assert heaviest in ("cheap", "cheap pills", "<s> cheap")
    json.dumps(model.names.get_state())


def test_a_kernel_has_no_weights_to_name():
    with pytest.raises(TypeError, match="no weights"):
        TextClassifier(classifier=KernelPegasosClassifier()).keep_names()


def test_words_of_messages_that_taught_nothing_are_not_kept():
    for w, class_weight in (([0.0, 1.0], None), (1.0, {"ham": 0.0})):
        model = TextClassifier(classifier=AdaptiveClassifier(class_weight=class_weight))
        model.keep_names()
        model.learn_many(["secret", "pills"], iter(["ham", "spam"]), w)
        assert "secret" not in dict(model.names.weights(model)) and "pills" in dict(model.names.weights(model))
