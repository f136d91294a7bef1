"""Tuning: who is dropped when, who wins, and by what figures."""

import math
import re

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
)
from stream_pegasos.blocks.blockwise import ExampleError
from stream_pegasos.evaluation import tuning as module
from stream_pegasos.evaluation.tuning import check_metric, tune
from stream_pegasos.streams import synthetic

STREAM = list(synthetic(n=1_200, seed=3))


def models(n):
    return {str(i): TextClassifier(classifier=AdaptiveClassifier(learning_rate=0.1 + 0.1 * i)) for i in range(n)}


@pytest.fixture
def first_rung(monkeypatch):
    return lambda n: monkeypatch.setattr(module, "FIRST_RUNG", n)


def said_by(model, examples):
    """What a model says of the newer half, alone and one by one, of examples that it then learns."""
    said = []
    for text, label in examples:
        said.append((model.predict_one(text), model.decision_function_one(text), model.predict_proba_one(text)))
        model.learn_one(text, label)
    return [*zip(*said[len(examples) // 2 :], strict=True)]


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "log_loss", "roc_auc"])
def test_figures_are_those_of_scikit_learn_on_what_each_model_says(metric):
    def made():
        return [TextClassifier(classifier=AdaptiveClassifier(rate, pos_label="spam")) for rate in (0.5, 0.1)]

    stream = STREAM[:1_000]
    tuning = tune(dict(zip("ab", made(), strict=True)), stream, metric)
    truth = np.array([label == "spam" for _, label in stream[500:]])
    for each, model in zip(tuning.candidates, made(), strict=True):
        labels, margins, probabilities = said_by(model, stream)
        is_spam = np.array(labels) == "spam"
        expected = {
            "accuracy": lambda given=is_spam: (given == truth).mean(),
            "macro_f1": lambda given=is_spam: f1_score(truth, given, average="macro"),
            "log_loss": lambda given=probabilities: log_loss(truth, [one["spam"] for one in given]),
            "roc_auc": lambda given=margins: roc_auc_score(truth, given),
        }[metric]()
        assert each.figure == pytest.approx(expected, abs=1e-6)
        assert each.model.n_learned == each.n == 1_000
    first, other = tuning.candidates
    better = other.figure - first.figure
    assert other.gain == pytest.approx(-better if metric == "log_loss" else better) and 0 < other.error < 0.1
    assert (first.gain, first.error) == (0.0, 0.0)


def test_the_error_of_a_mean_is_nearly_that_of_its_differences():
    tuning = tune(models(2), STREAM[:1_000], "log_loss")
    losses = [
        [
            -math.log(said[label])
            for said, (_, label) in zip(said_by(model, STREAM[:1_000])[2], STREAM[500:], strict=False)
        ]
        for model in models(2).values()
    ]
    saved = np.subtract(*losses)
    assert tuning.candidates[1].gain == pytest.approx(saved.mean())
    # Ten groups tell an error to a quarter or so.
    assert tuning.candidates[1].error == pytest.approx(saved.std(ddof=1) / len(saved) ** 0.5, rel=0.7)


@pytest.mark.parametrize(
    ("make", "y", "metric"),
    [
        (lambda: PegasosClassifier(t0=100), lambda label, i: label, "accuracy"),
        (OrdinalClassifier, lambda label, i: i % 3, "mean_absolute_error"),
        (MultiLabelClassifier, lambda label, i: ("a", label)[i % 2 :], "hamming_loss"),
    ],
)
def test_models_of_all_kinds_learn_the_stream_as_they_do_alone(make, y, metric):
    stream = [(text, y(label, i), 1.0 + i % 2) for i, (text, label) in enumerate(STREAM[:700])]
    tuning = tune({name: TextClassifier(classifier=make()) for name in "abc"}, stream, metric)
    alone = TextClassifier(classifier=make())
    for text, truth, w in stream:
        alone.learn_one(text, truth, w)
    for each in tuning.candidates:
        assert each.model.n_learned == each.n == 700 and each.figure == tuning.candidates[0].figure
        found = [model.predictions(["free prize", "lunch"]).probabilities for model in (each.model, alone)]
        np.testing.assert_allclose(*found, atol=1e-9)
    assert tuning.best.name == "a"


def test_the_worse_half_is_dropped_whenever_messages_have_doubled(first_rung):
    first_rung(100)
    left = {}
    tuning = tune(models(9), STREAM, on_block=lambda n, text: left.update({n: text}))
    assert sorted(each.n for each in tuning.candidates) == [100] * 4 + [200] * 2 + [400] + [1_200] * 2
    assert tuning.candidates[0].n == 1_200
    assert all(each.model.n_learned == each.n for each in tuning.candidates)
    assert [each.n for each in tuning.ranking] == sorted((each.n for each in tuning.candidates), reverse=True)
    assert (left[95], left[100], left[1_200]) == tuple(f"{n} of 9 models left" for n in (9, 5, 2))


def test_what_is_much_better_wins_and_what_is_a_little_better_does_not(first_rung):
    first_rung(100)
    tuning = tune({"poor": TextClassifier(HashedBagOfWords(n_features=2)), **models(3)}, STREAM)
    assert tuning.best.name in "012" and tuning.best.gain > 3 * tuning.best.error > 0
    assert tuning.best.model.predict_one(STREAM[0][0]) == STREAM[0][1]
    best = tuning.best
    best.error = best.gain / 3
    assert tuning.best.name == "poor"


def test_what_the_first_model_refuses_no_other_learns(first_rung):
    first_rung(100)
    refused = []
    stream = [*STREAM[:150], ("text", ["a", "list"]), *STREAM[150:300]]
    tuning = tune(models(4), stream, on_refused=lambda example, reason: refused.append(example))
    assert [example[1] for example in refused] == [["a", "list"]]
    assert tuning.n == 300
    assert {each.model.n_learned for each in tuning.candidates} == {100, 200, 300}
    with pytest.raises(ExampleError):
        tune(models(2), stream)
    with pytest.raises(ExampleError):
        tune({"texts": TextClassifier(), "stars": TextClassifier(classifier=OrdinalClassifier())}, STREAM)


def test_ctrl_c_ends_it_with_what_is_found_by_then():
    def interrupted():
        yield from STREAM[:150]
        raise KeyboardInterrupt

    tuning = tune(models(2), interrupted())
    assert [each.n for each in tuning.candidates] == [tuning.n] * 2 == [150] * 2
    assert tuning.interrupted


def test_a_block_that_only_some_have_learned_does_not_count(monkeypatch):
    last = TextClassifier()
    learn = last.predict_learn_many

    def interrupted(X, y, w, **options):
        if last.n_learned >= 100:
            raise KeyboardInterrupt
        return learn(X, y, w, **options)

    monkeypatch.setattr(last, "predict_learn_many", interrupted)
    tuning = tune({"first": TextClassifier(HashedBagOfWords()), "last": last}, STREAM)
    assert tuning.interrupted
    assert {each.n for each in tuning.candidates} == {tuning.n} == {100}


@pytest.mark.parametrize("n", [0, 1, 2, 3, 60])
def test_without_a_figure_nobody_wins(n):
    """As of one class, whose margins rank nothing."""
    tuning = tune(models(2), [(text, "ham") for text, _ in STREAM[:n]], "roc_auc")
    assert tuning.best.name == "0" and tuning.candidates[1].gain == 0.0 and math.isnan(tuning.best.figure)


def test_metrics_are_those_that_evaluate_has_for_such_labels():
    several, stars = (TextClassifier(classifier=make()) for make in (MultiLabelClassifier, OrdinalClassifier))
    assert [check_metric(model) for model in (TextClassifier(), stars, several)] == ["accuracy", "accuracy", "micro_f1"]
    for model, metric in ((TextClassifier(), "recall@0.01"), (several, "roc_auc"), (stars, "window_accuracy")):
        with pytest.raises(
            ValueError, match=f"metric must be one of (accuracy|micro_f1), .*got {re.escape(repr(metric))}"
        ):
            tune({"a": model}, STREAM, metric)
    with pytest.raises(ValueError, match="at least one model"):
        tune({}, STREAM)
