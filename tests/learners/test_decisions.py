"""Thresholds, and limits of false positives."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noisy import columns, noisy_stream, prequential
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    TextClassifier,
)
from stream_pegasos.evaluation.prequential import evaluate
from stream_pegasos.learners.decisions import FalsePositiveControl


@pytest.mark.parametrize("threshold", [0.01, 0.3, 0.5, 0.9])
def test_threshold(threshold):
    X, y = columns(noisy_stream(300))
    model = AdaptiveClassifier(pos_label="spam", threshold=threshold)
    model.learn_many(X, y)
    expected = ["spam" if model.predict_proba_one(x)["spam"] > threshold else "ham" for x in X]
    assert [model.predict_one(x) for x in X] == model.predict_many(X).tolist() == expected
    if threshold == 0.5:
        assert expected == ["spam" if margin > 0.0 else "ham" for margin in model.decision_function_many(X)]


def test_threshold_does_not_touch_learning():
    X, y = columns(noisy_stream(300))
    low, high = (
        AdaptiveClassifier(pos_label="spam", threshold=0.05),
        AdaptiveClassifier(pos_label="spam", threshold=0.95),
    )
    assert low.predict_learn_many(X, y).scores.tolist() == high.predict_learn_many(X, y).scores.tolist()
    assert sum(low.predict_many(X) == "spam") > sum(high.predict_many(X) == "spam")


@given(
    rate=st.floats(0.001, 0.9),
    margins=st.lists(st.one_of(st.floats(-1e100, 1e100), st.integers(-3, 3).map(float)), max_size=300),
)
def test_the_rate_holds_whatever_comes(rate, margins):
    control = FalsePositiveControl(rate)
    flagged = 0
    for n, margin in enumerate(margins, 1):
        allowed = bool(control.allows(margin))
        flagged += allowed
        control.learn(margin, allowed)
        assert flagged <= rate * n
        assert math.isfinite(control.cut)
    assert (control.n_negatives, control.n_flagged) == (len(margins), flagged)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_cut_follows_the_quantile(rate, scale):
    """Of margins of any scale, about as many are flagged as may be."""
    rng = np.random.default_rng(1)
    control = FalsePositiveControl(rate)
    for margin in (scale * rng.normal(-2.0, 1.0, 20_000)).tolist():
        control.learn(margin, bool(control.allows(margin)))
    assert 0.75 * rate < control.n_flagged / control.n_negatives <= rate
    other = scale * rng.normal(-2.0, 1.0, 20_000)
    assert rate / 3.0 < (other > control.cut).mean() < 3.0 * rate


@given(
    labels=st.sampled_from([("ham", "spam"), (False, True), (0, 1), (1, 2)]),
    pos_label=st.booleans(),
    rate=st.sampled_from([0.02, 0.1, 0.5]),
    words=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=150),
)
@settings(deadline=None)
def test_the_rate_holds_on_any_stream(labels, pos_label, rate, words):
    negative, positive = labels
    options = {"pos_label": positive} if pos_label else {}
    model = AdaptiveClassifier(max_false_positive_rate=rate, threshold=0.01, **options)
    X, y = [{word: 1.0} for word, _ in words], [labels[is_positive] for _, is_positive in words]
    if not pos_label and labels in (("ham", "spam"), (1, 2)):
        with pytest.raises(ValueError, match="pos_label"):
            prequential(model, [{}, {}], [negative, positive])
        return
    predicted = prequential(model, X, y)
    negatives = flagged = 0
    for label, guess in zip(y, predicted, strict=True):
        negatives += label == negative
        flagged += label == negative and guess == positive
        assert flagged <= rate * negatives


def test_a_rate_costs_few_positives():
    """The best constant cut in hindsight is what it is compared with."""
    X, y = columns(noisy_stream(4_000, noise=0.02))
    model = AdaptiveClassifier(max_false_positive_rate=0.05, pos_label="spam")
    margins = AdaptiveClassifier(pos_label="spam").predict_learn_many(X, y).scores
    spam = np.array(y) == "spam"
    cut = np.quantile(margins[~spam], 0.95)
    caught = np.array(prequential(model, X, y))[spam] == "spam"
    assert caught.mean() > 0.9 * (margins[spam] > cut).mean()


def test_both_rules_must_agree():
    X, y = columns(noisy_stream(1_000))
    strict = AdaptiveClassifier(pos_label="spam", threshold=0.999, max_false_positive_rate=0.5)
    strict.learn_many(X, y)
    assert "spam" not in strict.predict_many(X)
    lax = AdaptiveClassifier(pos_label="spam", threshold=0.001, max_false_positive_rate=0.5)
    lax.learn_many(X, y)
    assert "spam" in lax.predict_many(X)


@pytest.mark.parametrize("options", [{"threshold": 0.1}, {"max_false_positive_rate": 0.1}, {}])
@pytest.mark.parametrize("batch", [1, 64])
def test_evaluate_counts_what_was_predicted(options, batch):
    stream = list(noisy_stream(500))
    model, other = (AdaptiveClassifier(pos_label="spam", **options) for _ in range(2))
    predicted = prequential(other, *columns(stream))
    expected = sum(guess == y for guess, (_, y) in zip(predicted, stream, strict=True))
    assert evaluate(model, stream, batch=batch).score.confusion_matrix.trace() == expected


def test_the_text_model_decides_as_its_classifier():
    texts, y = columns((" ".join(x), label) for x, label in noisy_stream(600))
    bag = HashedBagOfWords()
    model = TextClassifier(
        bag, AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.1, drift_detector=drift.ADWIN())
    )
    parts = bag.clone() | model.classifier.clone()
    for text, label in zip(texts, y, strict=True):
        assert model.predict_one(text) == parts.predict_one(text)
        model.learn_one(text, label)
        parts.learn_one(text, label)
