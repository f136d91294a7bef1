"""Several models on one stream: each as if it were alone, and how they differ."""

import datetime
import itertools
import math

import numpy as np
import pytest
from river import datasets, drift, evaluate, linear_model, metrics, naive_bayes, preprocessing
from river.feature_extraction import BagOfWords
from scipy.stats import binom

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, TextClassifier, iter_prequential, prequential
from stream_pegasos.evaluation.results import Pair
from stream_pegasos.streams import synthetic

STREAM = list(synthetic(n=600, seed=4))


def bayes():
    return BagOfWords() | naive_bayes.MultinomialNB()


def without_time(evaluation):
    return [row[:-1] for row in evaluation.curve], evaluation.score.metrics()


@pytest.mark.parametrize("delay", [0, 7])
def test_each_is_as_if_it_were_alone(delay):
    together = prequential(STREAM, {"ours": TextClassifier(), "bayes": bayes()}, delay=delay, batch=100)
    for name, model in (("ours", TextClassifier()), ("bayes", bayes())):
        alone = prequential(STREAM, model, delay=delay)
        assert np.allclose(*[np.array(without_time(each)[0]) for each in (together[name], alone)], equal_nan=True)
        assert together[name].score.confused() == alone.score.confused()


def test_a_pair_by_its_definition():
    generator = np.random.default_rng(0)
    one, other = (generator.choice([1, 1, 0, -1], 1_003).astype(np.int8) for _ in range(2))
    pair = Pair.of("a", "b", (one, other))
    both = [(a, b) for a, b in zip(one.tolist(), other.tolist(), strict=True) if -1 not in (a, b)]
    n_first, n_second = both.count((1, 0)), both.count((0, 1))
    assert (pair.n_first, pair.n_second) == (n_first, n_second)
    assert pair.difference == pytest.approx((n_first - n_second) / len(both))
    least, n = min(n_first, n_second), n_first + n_second
    assert pair.p_value == pytest.approx(min(1.0, 2.0 * binom.cdf(least, n, 0.5)))
    ends = np.linspace(0, len(both), 51)
    means = [np.mean([a - b for a, b in part]) for part in np.array_split(np.array(both), 50)]
    assert pair.standard_error == pytest.approx(np.std(means, ddof=1) / math.sqrt(len(ends) - 1))


def test_a_model_is_no_better_than_itself():
    (pair,) = prequential(STREAM, {"a": TextClassifier(), "b": TextClassifier()}).pairs
    assert pair == ("a", "b", 0.0, 0.0, 0, 0, 1.0)


def test_an_example_that_one_refuses_counts_for_no_pair():
    stream, refused = [*STREAM[:50], ("half", 0.5), *STREAM[50:99]], []
    compared = prequential(
        stream, {"a": TextClassifier(), "b": bayes()}, on_refused=lambda example, reason: refused.append(example)
    )
    assert refused == [("half", 0.5)] * 2
    alone = [prequential(STREAM[:99], model).score for model in (TextClassifier(), bayes())]
    assert [each.score.n for each in compared.values()] == [99, 99]
    n = [round(score.accuracy * score.n_answered) for score in alone]
    (pair,) = compared.pairs
    assert pair.n_first - pair.n_second == n[0] - n[1]


def as_river(model, stream, **options):
    """The share of right predictions, as River's own loop finds it."""
    metric = evaluate.progressive_val_score(stream, model, metrics.Accuracy(), **options)
    return metric.get()


@pytest.mark.parametrize(
    "make",
    [
        bayes,
        lambda: BagOfWords() | linear_model.LogisticRegression(),
        lambda: BagOfWords() | linear_model.PAClassifier(),
    ],
)
def test_models_of_river_s_are_scored_as_by_river(make):
    stream = [(text, label == "spam") for text, label in STREAM]
    score = prequential(stream, make()).score
    skipped = len(stream) - score.n_answered
    expected = as_river(make(), stream) * len(stream)
    assert abs(score.accuracy * score.n_answered - expected) <= skipped <= 2
    assert math.isnan(score.log_loss) == math.isnan(score.calibration_error)


def test_datasets_and_keywords_of_river_s():
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    evaluation = prequential(datasets.Phishing(), model)
    assert repr(evaluation).startswith("<Evaluation of Phishing: 1,250 messages")
    with_keywords = [(x, y, {"w": 2.0}) for x, y in itertools.islice(datasets.Phishing(), 300)]
    one, other = AdaptiveClassifier(), AdaptiveClassifier()
    prequential(with_keywords, one)
    for x, y, _ in with_keywords:
        other.learn_one(x, y, 2.0)
    assert one.weights == other.weights
    with pytest.raises(ValueError, match="'t'; only w is known of River's keywords"):
        prequential([({}, True, {"t": 1})], AdaptiveClassifier())


def test_labels_that_come_after_a_time():
    """As River's loop, which learns what is due before it predicts."""
    stream = [({"a": i % 3, "b": i % 2, "at": i}, i % 6 > 2) for i in range(200)]
    for delay in (3, datetime.timedelta(hours=5), lambda x, y: 1 + x["a"]):
        moment = "at"
        if isinstance(delay, datetime.timedelta):
            moment = lambda x: datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=x["at"])  # noqa: E731
        said, model = [], AdaptiveClassifier()
        score = prequential(stream, model, moment=moment, delay=delay, on_predicted=said.append).score
        again = AdaptiveClassifier()
        evaluate.progressive_val_score(stream, again, metrics.Accuracy(), moment=moment, delay=delay)
        assert model.weights == again.weights and score.n == sum(map(len, said)) == 200


def test_as_the_stream_goes_by():
    seen = [(each.score.n, len(each.curve)) for each in iter_prequential(STREAM, TextClassifier(), every=160, batch=40)]
    assert [n for n, _ in seen] == [160, 320, 480, 600] and seen[0][1] < seen[-1][1]
    compared = [len(each.pairs) for each in iter_prequential(STREAM[:300], {"a": bayes(), "b": bayes()}, batch=300)]
    assert compared == [1]


@pytest.mark.parametrize("model", [linear_model.LinearRegression(), drift.ADWIN(), "a text", None])
def test_what_is_no_classifier(model):
    with pytest.raises(TypeError, match="must be a classifier of this package or of River's"):
        prequential(STREAM, model)


def test_none_to_compare():
    with pytest.raises(ValueError, match="at least one model"):
        prequential(STREAM, {})


def test_several_labels_an_example():
    stream = [(text, {label, "long"} if len(text) > 60 else {label}) for text, label in STREAM[:300]]
    models = {name: TextClassifier(classifier=MultiLabelClassifier()) for name in "ab"}
    compared = prequential(stream, models)
    assert compared.pairs[0].difference == 0.0 and "micro_f1" in str(compared)


def test_what_is_printed_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    compared = prequential(STREAM, {"ours": TextClassifier(), "bayes": bayes()}, name="mine", marks={300: "new words"})
    (pair,), text = compared.pairs, str(compared)
    head, of_models, of_pairs = text.split("\n\n")
    assert head.startswith("mine: 600 messages in ") and repr(compared).startswith("<Comparison on mine: 600")
    accuracies = [f"{each.score.accuracy:.4f}" for each in compared.values()]
    assert [line.split() for line in of_models.splitlines()[:2]] == [["model", *compared], ["accuracy", *accuracies]]
    assert "micro" not in of_models  # which is the accuracy
    assert [line.split()[-1] for line in of_pairs.splitlines()[1:3]] == [
        f"{pair.difference:+.4f}",
        f"{pair.standard_error:.4f}",
    ]
    assert "<th>bayes</th>" in compared._repr_html_()
    assert list(compared.to_frame()["model"].unique()) == ["ours", "bayes"]
    axes = Figure().subplots()
    for drawn in (compared.plot(axes), compared["ours"].plot(Figure().subplots()), compared.plot().axes[0]):
        assert any(line.get_xdata()[0] == 300 for line in drawn.get_lines())
        assert "new words" in [each.get_text() for each in drawn.texts]
    assert [line.get_label().split()[0] for line in axes.get_lines()[:2]] == ["ours", "bayes"]
    compared.plot(tmp_path / "two.png")
    compared["ours"].plot(tmp_path / "one.svg")
    assert (tmp_path / "two.png").stat().st_size > 1_000 < (tmp_path / "one.svg").stat().st_size


NAMES = ["this model", *(f"models/2026-{month:02}/filter_of_the_whole_company.safetensors" for month in range(1, 13))]


@pytest.mark.parametrize("label", ["spam", "a very long label, as strangers may write it down"])
@pytest.mark.parametrize("n", [2, 3, len(NAMES)])
def test_the_report_fits_a_hundred_columns_however_many_models_there_are(n, label):
    stream = [(text, label if y == "spam" else y) for text, y in STREAM[:60]]
    compared = prequential(stream, {name: TextClassifier() for name in NAMES[:n]})
    text = str(compared)
    assert max(map(len, text.splitlines())) <= 100
    assert all(name in text for name in NAMES[:n])
    of_models = [part.splitlines() for part in text.split("\n\n") if "accuracy " in part]
    accuracies = [cell for part in of_models for cell in part[1].split()[1:]]
    assert accuracies == [f"{each.score.accuracy:.4f}" for each in compared.values()]
    of_pairs = [part.splitlines() for part in text.split("\n\n") if part.startswith("right more often")]
    assert sum(len(part[1].split()) - 1 for part in of_pairs) == len(compared.pairs)


def test_models_that_predicted_no_message_in_common_differ_by_nothing():
    compared = prequential([], {"a": TextClassifier(), "b": TextClassifier()})
    (pair,) = compared.pairs
    assert (pair.n_first, pair.n_second, pair.p_value) == (0, 0, 1.0) and "a" in compared.report()


@pytest.mark.parametrize("as_given", [str, np.str_])
def test_rows_from_before_a_third_class_are_those_of_two_whatever_the_batch(as_given):
    stream = [*synthetic(n=610), *[("third", "c"), ("class", "ham")] * 20]
    stream = [(x, as_given(y)) for x, y in stream]
    curves = [prequential(stream, TextClassifier(), batch=batch).curve for batch in (1, 64, 512)]
    for row, *others in zip(*curves, strict=True):
        for other in others:
            assert np.allclose(row[:-1], other[:-1], rtol=1e-9, equal_nan=True)
    assert curves[0][11].n == 600 and curves[0][11].roc_auc > 0.9 and np.isnan(curves[0][-1].roc_auc)
