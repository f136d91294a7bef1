import itertools
import math

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import of_two
from river import evaluate as river_evaluate
from river import metrics as river_metrics
from sklearn import metrics

from stream_pegasos import (
    KernelPegasosClassifier,
    PegasosClassifier,
    TextClassifier,
)
from stream_pegasos.evaluation.prequential import (
    ExampleError,
    chunks,
    evaluate,
    learn,
    predict,
    predict_learn,
)
from stream_pegasos.evaluation.scores import Outcomes, PrequentialScore, ScoreRow
from stream_pegasos.streams import synthetic

# margins from a small set, so that ties are many
outcomes = st.lists(
    st.tuples(
        st.booleans(), st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.125, 0.5, 0.75, 1.0])
    ),
    min_size=1,
)


def scored(rows, sizes=(10**9,)):
    """A score that got the rows in blocks of the given sizes, over and over."""
    score = PrequentialScore()
    rows = iter(rows)
    for size in itertools.cycle(sizes):
        block = list(itertools.islice(rows, size))
        if not block:
            return score
        score.update(of_two(*zip(*block, strict=True)))


def same(a, b):
    assert np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True), (a, b)


# PrequentialScore


@given(outcomes)
def test_scores_are_those_of_scikit_learn(rows):
    y, margins, probabilities = (np.array(column) for column in zip(*rows, strict=True))
    score = scored(rows)
    predicted = margins > 0
    assert score.n == len(rows)
    assert score.confusion_matrix.tolist() == metrics.confusion_matrix(y, predicted, labels=[False, True]).tolist()
    same(score.accuracy, metrics.accuracy_score(y, predicted))
    clipped = np.clip(np.column_stack([1 - probabilities, probabilities]), 1e-15, 1)
    same(score.log_loss, metrics.log_loss(y, clipped, labels=[False, True]))
    same(score.f1, metrics.f1_score(y, predicted) if y.any() or predicted.any() else math.nan)
    one_class = y.all() or not y.any()
    same(score.balanced_accuracy, metrics.recall_score(y, predicted, labels=np.unique(y), average="macro"))
    same(score.roc_auc, math.nan if one_class else metrics.roc_auc_score(y, margins))


@given(outcomes, st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 9))
def test_scores_do_not_depend_on_the_blocks(rows, sizes, window):
    score = PrequentialScore(window)
    for start in range(0, len(rows), sizes[0]):
        score.update(of_two(*zip(*rows[start : start + sizes[0]], strict=True)))
        same(score.roc_auc, scored(rows[: start + sizes[0]]).roc_auc)
    whole = scored(rows, sizes)
    same(whole.row()[:6], scored(rows).row()[:6])
    newest = [y == (margin > 0) for y, margin, _ in rows][-window:]
    same(score.window_accuracy, sum(newest) / len(newest))


def test_scores_are_those_of_river():
    random = np.random.default_rng(5)
    y = random.random(500) < 0.3
    margins = random.normal(size=500) + y
    probabilities = 1 / (1 + np.exp(-margins))
    score = PrequentialScore()
    score.update(of_two(y, margins, probabilities))
    for metric, value in [
        (river_metrics.Accuracy(), score.accuracy),
        (river_metrics.BalancedAccuracy(), score.balanced_accuracy),
        (river_metrics.F1(), score.f1),
        (river_metrics.LogLoss(), score.log_loss),
    ]:
        for truth, margin, probability in zip(y.tolist(), margins.tolist(), probabilities.tolist(), strict=True):
            metric.update(truth, probability if isinstance(metric, river_metrics.LogLoss) else margin > 0)
        same(value, metric.get())


def test_predicted_may_differ_from_the_sign_of_the_margin():
    score = PrequentialScore()
    score.update(of_two([True, False], [1.0, 1.0], [0.5, 0.5], predicted=[False, False]))
    assert score.confusion_matrix.tolist() == [[1, 0], [1, 0]]


def test_empty_score():
    assert all(map(math.isnan, PrequentialScore().row()[1:]))
    assert PrequentialScore().n == 0
    with pytest.raises(ValueError, match="window is 0"):
        PrequentialScore(0)


@given(outcomes.filter(lambda rows: all(margin for _, margin, _ in rows)))
def test_swap(rows):
    score = scored(rows)
    score.update(of_two([], [], [], classes=(True, False)))
    same(score.row(), scored([(not y, -margin, 1 - p) for y, margin, p in rows]).row())


def test_roc_auc_is_exact_over_many_blocks():
    random = np.random.default_rng(1)
    y = random.random(30_000) < 0.2
    margins = np.round(random.normal(size=30_000) + y, 2)
    score = PrequentialScore()
    for block in np.array_split(np.arange(30_000), 100):
        score.update(of_two(y[block], margins[block], np.full(len(block), 0.5)))
        end = block[-1] + 1
        if end % 3_000 == 0:
            assert score.roc_auc == pytest.approx(metrics.roc_auc_score(y[:end], margins[:end]), abs=1e-12)


# evaluate


def one_by_one(model, examples, delay=0):
    """The definition: predict, then learn the example of `delay` examples ago."""
    rows = []
    examples = list(examples)
    for i, (x, _, *_) in enumerate(examples):
        label, known = model.predict_one(x), set(model.classes) - {None}
        proba = model.predict_proba_one(x) if known else {}
        rows.append([label if label in known else None, model.decision_function_one(x), proba, model.classes])
        if i >= delay:
            x, y, *w = examples[i - delay]
            model.learn_one(x, y, *w)
    for x, y, *w in examples[max(0, len(examples) - delay) :]:
        model.learn_one(x, y, *w)
    score = PrequentialScore()
    for (label, margin, proba, known), (_, y, *_) in zip(rows, examples, strict=True):
        if known[1] not in (None, model.classes[1]):
            margin = -margin
        of_truth = proba[y] if y in proba and label is not None else 0.5
        score.update(Outcomes([y], [label], [of_truth], [proba.get(label, 0.5)], model.classes, np.array([margin])))
    return score


def dicts(stream):
    return [(dict.fromkeys(text.split(), 1.0), y) for text, y in stream]


streams = {
    "text": (TextClassifier, list(synthetic(n=1_500, seed=2))),
    "spam first": (TextClassifier, list(synthetic(n=800, seed=3))[::-1]),
    "late second label": (
        TextClassifier,
        sorted(synthetic(n=300, seed=4), key=lambda example: example[1]),
    ),
    "one label": (TextClassifier, [(text, "ham") for text, _ in synthetic(n=100)]),
    "dicts of 0 and 1": (PegasosClassifier, [(x, int(y == "spam")) for x, y in dicts(synthetic(n=600))]),
    "1 turns out negative": (
        lambda: PegasosClassifier(fit_intercept=True),
        [({"a": 1.0}, 1)] * 5 + [(x, 2 if y == "spam" else 1) for x, y in dicts(synthetic(n=300))],
    ),
    "bool": (PegasosClassifier, [(x, y == "spam") for x, y in dicts(synthetic(n=300))]),
    "positive label given": (
        lambda: TextClassifier(classifier=PegasosClassifier(pos_label="ham")),
        list(synthetic(n=300)),
    ),
    "weights": (
        TextClassifier,
        [(x, y, [0.5, 1.0, 3.0][len(x) % 3]) for x, y in synthetic(n=1_000)],
    ),
    "mini-batches": (
        lambda: TextClassifier(classifier=PegasosClassifier(batch_size=7)),
        list(synthetic(n=300)),
    ),
    "nothing": (TextClassifier, []),
}


@pytest.mark.parametrize("name", streams)
@pytest.mark.parametrize(("delay", "batch"), [(0, 7), (1, 512), (5_000, 64)])
def test_evaluate_is_predicting_then_learning_one_by_one(name, delay, batch):
    make, stream = streams[name]
    reference, model = make(), make()
    expected = one_by_one(reference, stream, delay)
    evaluation = evaluate(model, iter(stream), delay=delay, batch=batch)
    assert evaluation.score.confusion_matrix.tolist() == expected.confusion_matrix.tolist()
    assert evaluation.score.unanswered.tolist() == expected.unanswered.tolist()
    same(evaluation.score.row(), expected.row())
    assert model.weights == pytest.approx(reference.weights)
    assert model.n_iterations == reference.n_iterations
    assert not evaluation.interrupted


@pytest.mark.parametrize("delay", [0, 1, 30])
def test_evaluate_agrees_with_river(delay):
    """There, a label with delay d is known to the d-th next prediction; here, to the one after."""
    stream = list(synthetic(n=1_000, seed=9))
    metric = river_evaluate.progressive_val_score(stream, TextClassifier(), river_metrics.Accuracy(), delay=delay + 1)
    score = evaluate(TextClassifier(), stream, delay=delay).score
    assert score.accuracy == pytest.approx(metric.get(), abs=1e-12)


def test_curve():
    stream = list(synthetic(n=23_456))
    seen = []
    evaluation = evaluate(TextClassifier(), stream, on_row=seen.append)
    curve = evaluation.curve
    assert [row.n for row in curve] == [*range(200, 23_456, 200), 23_456]
    assert set(curve[:-1]) <= set(seen)
    assert all(isinstance(row, ScoreRow) for row in curve)
    assert curve[-1][:-1] == evaluation.score.row()[:-1]
    assert sorted(row.seconds for row in curve) == [row.seconds for row in curve]
    # A row is what an evaluation of that many examples gives.
    row = curve[10]
    shorter = evaluate(TextClassifier(), stream[: row.n])
    same(row[:-1], shorter.score.row()[:-1])
    assert evaluate(TextClassifier(), stream[:100]).curve[-1].n == 100
    assert [row.n for row in evaluate(TextClassifier(), stream[:120]).curve] == [50, 100, 120]
    assert evaluate(TextClassifier(), []).curve == []


@pytest.mark.parametrize("delay", [0, 3])
def test_a_refused_label_is_an_error_that_carries_its_example(delay):
    stream = list(synthetic(n=700, seed=1))
    stream[650] = ("odd one", 0.5, 1.0, 651)
    model = TextClassifier()
    with pytest.raises(ExampleError, match=r"label 0\.5 is no class") as error:
        evaluate(model, stream, delay=delay)
    assert error.value.example == stream[650]
    reference = TextClassifier()
    reference.learn_many(*zip(*stream[:650], strict=True))
    assert model.weights == pytest.approx(reference.weights)


def test_learn_finds_the_example_that_is_refused():
    model = TextClassifier()
    with pytest.raises(ExampleError, match=r"label 0\.5 is no class") as error:
        learn(model, [("a", "ham"), ("b", "spam"), ("c", 0.5), ("d", "ham")])
    assert error.value.example[0] == "c"
    assert model.n_iterations == 2


def test_learn_takes_weights():
    model, reference = TextClassifier(), TextClassifier()
    stream = [(x, y, 0.5 + len(x) % 2) for x, y in synthetic(n=100)]
    learn(model, stream)
    for x, y, w in stream:
        reference.learn_one(x, y, w)
    assert model.weights == pytest.approx(reference.weights)


@pytest.mark.parametrize("n", [0, 1, 511, 512, 700])
def test_interrupted(n):
    stream = list(synthetic(n=1_000, seed=1))

    def examples():
        yield from stream[:n]
        raise KeyboardInterrupt

    evaluation = evaluate(TextClassifier(), examples())
    assert evaluation.interrupted
    assert evaluation.score.n == n
    same(
        evaluation.score.row()[:-1],
        evaluate(TextClassifier(), stream[:n]).score.row()[:-1],
    )


def test_long_texts_make_shorter_chunks():
    assert [len(chunk) for chunk in chunks([("x" * 3_000_000, "y")] * 5)] == [2, 2, 1]
    assert [len(chunk) for chunk in chunks([("x", "y")] * 5, batch=2)] == [2, 2, 1]
    assert list(chunks([])) == []


def test_impossible_parameters():
    with pytest.raises(ValueError, match="delay is -1"):
        evaluate(TextClassifier(), [], delay=-1)
    with pytest.raises(ValueError, match="batch is 0"):
        evaluate(TextClassifier(), [], batch=0)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([1, 2, 3]))).filter(
        lambda stream: len({y for _, y in stream}) < 3
    ),
    st.integers(0, 4),
    st.integers(1, 4),
)
def test_any_two_integers(stream, delay, batch):
    examples = [({x: 1.0}, y) for x, y in stream]
    expected = one_by_one(PegasosClassifier(), examples, delay).row()
    same(evaluate(PegasosClassifier(), examples, delay=delay, batch=batch).score.row(), expected)


def test_real_stream(data_folder):
    from stream_pegasos.streams import read

    model = TextClassifier()
    evaluation = evaluate(model, read(data_folder / "sms_spam.jsonl.gz"))
    assert model.classes == ("ham", "spam")
    assert evaluation.score.n == 5_574
    assert evaluation.score.confusion_matrix.sum(1).tolist() == [4_826, 747]
    assert evaluation.score.unanswered.tolist() == [1, 0]  # the first one
    assert evaluation.score.accuracy > 0.9


def test_kernels_are_evaluated_as_one_by_one():
    examples = list(synthetic(n=300, seed=2))
    model, other = (TextClassifier(classifier=KernelPegasosClassifier(budget=30)) for _ in range(2))
    evaluation = evaluate(model, examples, batch=64)
    accuracy = river_evaluate.progressive_val_score(examples, other, river_metrics.Accuracy())
    # River counts predictions from the first on, and so does this.
    assert evaluation.score.accuracy == pytest.approx(accuracy.get(), abs=1e-12)


def test_reliability_is_what_scikit_learn_says():
    calibration = pytest.importorskip("sklearn.calibration")
    rng = np.random.default_rng(3)
    probabilities = rng.uniform(size=2_000).round(3)
    y = rng.uniform(size=2_000) < probabilities**2
    inside = np.abs(probabilities * 10 - (probabilities * 10).round()) > 1e-9  # on an edge both tenths are right
    share, mean = calibration.calibration_curve(y[inside], probabilities[inside], n_bins=10)
    score, opposite = PrequentialScore(), PrequentialScore()
    for part in np.array_split(np.flatnonzero(inside), 7):
        score.update(of_two(y[part], probabilities[part] - 0.5, probabilities[part]))
        opposite.update(of_two(~y[part], 0.5 - probabilities[part], 1 - probabilities[part]))
    n = score.reliability[:, 0]
    assert score.reliability[:, 1:] == pytest.approx(np.column_stack([mean, share]))
    assert score.expected_calibration_error == pytest.approx(np.average(np.abs(mean - share), weights=n))
    opposite.update(of_two([], [], [], classes=(True, False)))
    assert opposite.reliability == pytest.approx(score.reliability)
    assert math.isnan(PrequentialScore().expected_calibration_error)


# --- predictions, and scores in constant memory -----------------------------------------------------------------------


@pytest.mark.parametrize("label", [False, 0, 1, "spam", 7])
def test_predict_says_nothing_until_it_can(label):
    model = TextClassifier()
    assert predict(model, ["a", "b"]) == [(None, None, 0.0)] * 2
    assert predict(model, []) == []
    model.learn_one("a", label)
    for prediction in predict(model, ["a", "never met"]):
        if label is False:  # beside which True is known as well
            assert prediction.label is False
            assert prediction.probability >= 0.5
        else:
            assert (prediction.label, prediction.probability) == (label, 2 / 3)  # Laplace's rule of succession


def test_predict_is_what_the_model_says_one_by_one():
    model = TextClassifier()
    model.learn_many(*map(list, zip(*synthetic(n=200, seed=1), strict=True)))
    texts = [text for text, _ in synthetic(n=50, seed=2)]
    for text, (label, probability, margin) in zip(texts, predict(model, texts), strict=True):
        assert label == model.predict_one(text)
        assert probability == model.predict_proba_one(text)[label] >= 0.5
        assert margin == model.decision_function_one(text)


@pytest.mark.parametrize("size", [1, 7, 300])
def test_predict_learn_gives_blocks_that_make_up_the_chunk(size):
    stream = list(synthetic(n=300, seed=3))
    model, alone, predictions, outcomes = TextClassifier(), TextClassifier(), [], []
    for begin in range(0, 300, size):
        for tested in predict_learn(model, stream[begin : begin + size]):
            predictions += tested.each()
            told = tested.outcomes(model)
            outcomes += zip(*told[:4], told.margins, told.is_positive, strict=True)
    for i, ((text, label), prediction, outcome) in enumerate(zip(stream, predictions, outcomes, strict=True)):
        assert prediction == predict(alone, [text])[0]
        alone.learn_one(text, label)
        assert (outcome[0], outcome[1], outcome[5]) == (label, prediction.label, label == alone.classes[1])
        if i > 10:
            of_truth = prediction.probability if prediction.label == label else 1.0 - prediction.probability
            assert outcome[2:5] == (pytest.approx(of_truth, abs=1e-15), prediction.probability, prediction.margin)
    assert model.weights == alone.weights


@pytest.mark.parametrize("size", [1, 4, 30])
def test_classes_are_told_from_when_they_came(size):
    """However the stream is cut, each answer is what the model says of the message alone."""
    stream = [(word, f"topic {i % 3}") for i in range(10) for word in ("goal match", "bank rates", "rain wind")][:30]
    model, alone = (TextClassifier(classifier=PegasosClassifier(multi_class="ovr")) for _ in range(2))
    told = []
    for begin in range(0, 30, size):
        told += [it for block in predict_learn(model, stream[begin : begin + size]) for it in block.each()]
    for (text, label), (predicted, _, _) in zip(stream, told, strict=True):
        assert predicted == alone.predict_one(text)
        alone.learn_one(text, label)


def test_predict_learn_has_learned_all_before_the_example_that_is_refused():
    stream = [*synthetic(n=20, seed=4), ("third", 0.5), ("ham", "ham")]
    model, n = TextClassifier(), 0
    with pytest.raises(ExampleError, match=r"label 0\.5 is no class") as error:
        for tested in predict_learn(model, stream):
            n += len(tested)
    assert n == model.n_iterations == 20
    assert error.value.example == ("third", 0.5)


@given(
    st.lists(st.tuples(st.booleans(), st.floats(-1e6, 1e6)), min_size=1, max_size=60),
    st.integers(1, 70),
    st.lists(st.integers(1, 20), min_size=1),
)
def test_the_roc_auc_of_the_window_is_that_of_scikit_learn(rows, window, sizes):
    score, given_rows, i = PrequentialScore(window, exact=False), rows, 0
    while rows:
        size = sizes[i % len(sizes)]
        some, rows, i = rows[:size], rows[size:], i + 1
        y, margins = zip(*some, strict=True)
        score.update(of_two(y, margins, [0.5] * len(y)))
    y, margins = zip(*given_rows[-window:], strict=True)
    if len(set(y)) == 2:
        assert score.window_roc_auc == pytest.approx(metrics.roc_auc_score(y, margins))
    else:
        assert math.isnan(score.window_roc_auc)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e12])
def test_counted_margins_are_close_to_exact_ones(scale):
    generator = np.random.default_rng(1)
    y = generator.random(20_000) < 0.3
    margins = scale * (generator.normal(size=20_000) + y)
    exact, counted = PrequentialScore(), PrequentialScore(exact=False)
    for score in (exact, counted):
        score.update(of_two(y, margins, np.full(20_000, 0.5)))
    # Beyond 3.8 million all are the same.
    assert counted.roc_auc == pytest.approx(exact.roc_auc, abs=1e-3 if scale < 1e6 else 0.2)
    swapped = PrequentialScore(exact=False)
    swapped.update(of_two(~y, -margins, np.full(20_000, 0.5)))
    counted.update(of_two([], [], [], classes=(True, False)))
    assert counted.roc_auc == pytest.approx(swapped.roc_auc, rel=1e-12)
    assert counted.window_roc_auc == pytest.approx(swapped.window_roc_auc, rel=1e-12)


def test_counted_scores_go_on_from_their_state():
    generator = np.random.default_rng(2)
    blocks = [(generator.random(50) < 0.5, generator.normal(size=50), generator.random(50)) for _ in range(6)]
    whole, first, second = (PrequentialScore(70, exact=False) for _ in range(3))
    for block in blocks:
        whole.update(of_two(*block))
    for block in blocks[:3]:
        first.update(of_two(*block))
    second.set_state(orjson.loads(orjson.dumps(first.get_state())))
    for block in blocks[3:]:
        second.update(of_two(*block))
    assert second.row(0.0) == whole.row(0.0)
    assert second.get_state() == whole.get_state()
    assert second.window_roc_auc == whole.window_roc_auc
    assert np.array_equal(second.reliability, whole.reliability)
    empty = PrequentialScore(exact=False)
    empty.set_state(orjson.loads(orjson.dumps(empty.get_state())))
    assert empty.n == 0
    with pytest.raises(ValueError, match="exact=False"):
        PrequentialScore().get_state()
    for bad in ({}, {**first.get_state(), "tenths": 3}, {**first.get_state(), "margins": [[1, 2]]}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            second.set_state(bad)
