"""The metrics that models are compared by, beside scikit-learn's, and how sure their differences are."""

import math

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, roc_auc_score, roc_curve

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier, TextClassifier, TextFeatures
from stream_pegasos.evaluation.metrics import BLOCKS, metric_named
from stream_pegasos.evaluation.plot import draw_tuning
from stream_pegasos.evaluation.prequential import ExampleError
from stream_pegasos.evaluation.tuning import Candidate, Tuning, tune
from stream_pegasos.streams import synthetic

STREAM = list(synthetic(n=1_200, seed=3))


def classifiers():
    return [TextClassifier(classifier=AdaptiveClassifier(learning_rate=rate, pos_label="spam")) for rate in (0.5, 0.1)]


def said_by(model, examples):
    labels, margins, probabilities = [], [], []
    for text, label, *_ in examples:
        labels.append(model.predict_one(text))
        margins.append(model.decision_function_one(text))
        probabilities.append(model.predict_proba_one(text).get(label, 0.5))
        model.learn_one(text, label)
    return labels, margins, probabilities


@pytest.mark.parametrize("metric", ["macro-f1", "log-loss", "auc", "recall@0.02", "recall@0"])
def test_metrics_are_those_of_scikit_learn_on_what_each_model_says(metric):
    """Whether features are shared or not, on the newer half."""
    models = [*classifiers(), TextClassifier(TextFeatures(ngram_range=(1, 1)), classifiers()[0].classifier)]
    tuning = tune(dict(zip("abc", models, strict=True)), STREAM, metric=metric, first_rung=10_000)
    newer = slice(len(STREAM) // 2, None)
    y = np.array([label == "spam" for _, label in STREAM])[newer]
    alone = [*classifiers(), TextClassifier(TextFeatures(ngram_range=(1, 1)), classifiers()[0].classifier)]
    for each, model in zip(tuning.candidates, alone, strict=True):
        labels, margins, probabilities = (np.array(column)[newer] for column in said_by(model, STREAM))
        expected = {
            "macro-f1": lambda labels=labels: f1_score(y, labels == "spam", average="macro"),
            "log-loss": lambda p=probabilities: -np.log(p).mean(),
            "auc": lambda margins=margins: roc_auc_score(y, margins),
        }
        if metric in expected:
            figure = expected[metric]()
        else:
            fpr, tpr, _ = roc_curve(y, margins, drop_intermediate=False)
            figure = tpr[fpr <= float(metric.partition("@")[2])].max()
        assert tuning.metric.figure(each.newer(tuning.n)) == pytest.approx(figure, abs=1e-5)
    first, other = tuning.candidates[:2]
    better = tuning.metric.figure(other.newer(tuning.n)) - tuning.metric.figure(first.newer(tuning.n))
    assert tuning.gain(other)[0] == pytest.approx(-better if metric == "log-loss" else better)
    assert tuning.gain(first) == (0.0, 0.0)
    (line, *_) = draw_tuning(tuning, "stream").axes[0].lines
    assert len(line.get_xdata()) in (100, 1_200)


def test_macro_f1_and_log_loss_of_several_classes():
    stream = [(text, "abcde"[len(text) % 5]) for text, _ in STREAM[:600]]
    labels, _, probabilities = said_by(TextClassifier(), stream)
    truths = [label for _, label in stream[300:]]
    for metric, expected in (
        ("macro-f1", f1_score(truths, labels[300:], average="macro")),
        ("log-loss", -np.log(probabilities[300:]).mean()),
    ):
        tuning = tune({"a": TextClassifier()}, stream, metric=metric)
        assert tuning.metric.figure(tuning.candidates[0].newer(600)) == pytest.approx(expected, abs=1e-5)


def test_the_error_of_a_figure_is_how_much_it_varies():
    """The jackknife's error of a gain, beside what the gain varies by in new samples of the same two models."""
    rng = np.random.default_rng(0)

    def sample(n=2_000):
        y = rng.random(n) < 0.3
        shared = rng.normal(size=n)
        return [np.column_stack([y, signal * y + shared + 0.5 * rng.normal(size=n)]) for signal in (1.0, 1.2)]

    for metric in (metric_named("auc", "two classes"), metric_named("recall@0.1", "two classes")):
        gains, errors = zip(*(metric.gain(*sample()) for _ in range(200)), strict=True)
        assert np.mean(errors) == pytest.approx(np.std(gains), rel=0.25)


def test_where_the_figure_is_a_mean_the_jackknife_has_nearly_its_error():
    rng = np.random.default_rng(1)
    first, other = rng.random((2, 4_000)) < 0.2
    mean = metric_named("accuracy", "two classes")
    by_blocks = metric_named("auc", "two classes")
    by_blocks = type(mean)("mean", by_blocks.rows, mean.figure, -1.0, False)
    (gain, error), (same, near) = mean.gain(first * 1.0, other * 1.0), by_blocks.gain(first * 1.0, other * 1.0)
    assert same == pytest.approx(gain) and near == pytest.approx(error, rel=3 / math.sqrt(2 * BLOCKS))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 30])
def test_without_two_classes_nobody_wins(n):
    metric = metric_named("auc", "two classes")
    rows = np.column_stack([np.zeros(n), np.arange(n)])
    tuning = Tuning([Candidate(name, None, [rows]) for name in "ab"], metric)
    assert tuning.best.name == "a" and tuning.gain(tuning.candidates[1])[0] == 0.0


def test_metrics_that_are_none_or_not_for_such_labels():
    for metric in ("f1", "recall", "recall@", "recall@1", "recall@-0.1", "recall@nan"):
        with pytest.raises(ValueError, match="is none of accuracy, macro-f1"):
            tune({"a": TextClassifier()}, STREAM, metric=metric)
    several = TextClassifier(classifier=MultiLabelClassifier())
    with pytest.raises(ValueError, match="for one label a message"):
        tune({"a": several}, STREAM, metric="log-loss")
    with pytest.raises(ValueError, match="have an order"):
        tune({"a": TextClassifier(classifier=OrdinalClassifier())}, STREAM, metric="recall@0.1")
    with pytest.raises(ExampleError, match="a third label") as raised:
        tune({"a": TextClassifier()}, [*STREAM[:100], ("hi", "eggs"), *STREAM[:9]], metric="auc")
    assert raised.value.example[1] == "eggs"


def test_log_loss_of_an_untaught_model_is_that_of_scikit_learn():
    tuning = tune({"a": TextClassifier()}, STREAM[:1], metric="log-loss")
    assert tuning.candidates[0].costs[0].tolist() == [pytest.approx(log_loss([1, 0], [0.5, 0.5]))]
