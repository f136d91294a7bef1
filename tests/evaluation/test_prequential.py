"""`evaluate` and what it is made of, with two classes, more, ordered ones, and several labels a message."""

import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from families import crossed
from outcomes import matrix, predictions_of
from river import evaluate as river_evaluate
from river import linear_model
from river import metrics as river_metrics

from stream_pegasos import AdaptiveClassifier, OrdinalClassifier, PegasosClassifier, TextClassifier
from stream_pegasos.blocks.blockwise import ExampleError, chunks, predict_learn
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.metric_names import LabelScoreRow, ScoreRow
from stream_pegasos.evaluation.prequential import prequential
from stream_pegasos.evaluation.scores import Outcomes, block_outcomes, new_score
from stream_pegasos.learners.multilabel import LabelSets
from stream_pegasos.learners.predictions import settled
from stream_pegasos.streams import synthetic


def same(a, b):
    assert np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True), (a, b)


def one_by_one(model, examples, delay=0):
    """The definition: predict, then learn the example of `delay` examples ago."""
    rows = []
    examples = list(examples)
    for i, (x, _, *_) in enumerate(examples):
        label, known = model.predict_one(x), set(model.classes)
        said = model.predictions([x])
        proba = {each: p for each, p in zip(said.classes, said.probabilities[0].tolist(), strict=True) if each in known}
        if len(known) > 1:
            assert proba == pytest.approx(model.predict_proba_one(x))
        rows.append([label if label in known else None, model.decision_function_one(x), proba, model.pair])
        if i >= delay:
            x, y, *w = examples[i - delay]
            model.learn_one(x, y, *w)
    for x, y, *w in examples[max(0, len(examples) - delay) :]:
        model.learn_one(x, y, *w)
    score, pair = new_score(model), model.pair
    for (label, margin, proba, known), (_, y, *_) in zip(rows, examples, strict=True):
        of_truth = proba[y] if y in proba and label is not None else 1 / (max(1, len(proba)) + 1)
        outcome = Outcomes([y], [label], [of_truth], [proba.get(label, 0.5)])
        if score.kind == "classes" and pair:
            sign = 1.0 if known[1] in (None, pair[1]) else -1.0
            outcome = replace(outcome, classes=pair, margins=np.array([sign * margin]))
        score.update(outcome)
    return score


def by_length(labels, n=700, first=40):
    """A stream of which the first messages have the first label."""
    return [
        (x, labels[min(len(x) % 7, len(labels) - 1)] if i > first else labels[0])
        for i, (x, _) in enumerate(synthetic(n))
    ]


def flat(weights):
    """Of each label where it has weights of its own."""
    if not isinstance(next(iter(weights.values()), None), dict):
        return weights
    return {(label, name): weight for label, some in weights.items() for name, weight in some.items()}


def dicts(stream):
    return [(dict.fromkeys(text.split(), 1.0), y) for text, y in stream]


streams = {
    "text": (TextClassifier, list(synthetic(n=1_500, seed=2))),
    "spam first": (TextClassifier, list(synthetic(n=800, seed=3))[::-1]),
    "late second label": (TextClassifier, sorted(synthetic(n=300, seed=4), key=lambda example: example[1])),
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
    "weights": (TextClassifier, [(x, y, [0.5, 1.0, 3.0][len(x) % 3]) for x, y in synthetic(n=600)]),
    "mini-batches": (lambda: TextClassifier(classifier=PegasosClassifier(batch_size=7)), list(synthetic(n=300))),
    "a third class": (TextClassifier, by_length(["b", "a", 3, "3"])),
    "nothing": (TextClassifier, []),
}


@pytest.mark.parametrize(("name", "delay_and_batch"), crossed(streams, [(0, 7), (1, 512), (5_000, 64)]))
def test_evaluate_is_predicting_then_learning_one_by_one(name, delay_and_batch):
    (make, stream), (delay, batch) = streams[name], delay_and_batch
    reference, model = make(), make()
    expected = one_by_one(reference, stream, delay)
    evaluation = prequential(iter(stream), model, delay=delay, batch=batch)
    for of in ("class_rows", "confused"):
        assert sorted(map(str, getattr(evaluation.score, of)())) == sorted(map(str, getattr(expected, of)()))
    same(evaluation.score.row(0.0), expected.row(0.0))
    assert flat(model.weights) == pytest.approx(flat(reference.weights))
    assert model.n_iterations == reference.n_iterations
    assert not evaluation.interrupted


@pytest.mark.parametrize("labels", [["ham", "spam"], ["b", "a", "3", "4"]])
@pytest.mark.parametrize("delay", [0, 1, 30])
def test_evaluate_agrees_with_river(labels, delay):
    """There, a label with delay d is known to the d-th next prediction; here, to the one after. River leaves
    predictions of None out.
    """
    begin, *stream = by_length(labels, first=0)

    def begun():
        model = TextClassifier()
        model.learn_one(begin[0], labels[0])
        model.learn_one(begin[0], labels[1])
        return model

    score = prequential(stream, begun(), delay=delay).score
    for metric, value in [
        (river_metrics.Accuracy(), score.accuracy),
        (river_metrics.BalancedAccuracy(), score.balanced_accuracy),
        (river_metrics.MacroF1(), score.macro_f1),
    ]:
        expected = river_evaluate.progressive_val_score(stream, begun(), metric, delay=delay + 1)
        assert value == pytest.approx(expected.get(), abs=1e-12)


@pytest.mark.parametrize(
    ("classifier", "labels"),
    [(PegasosClassifier(multi_class="ovr", t0=1e3), ["b", "a", 3, "3"]), (OrdinalClassifier(), [0, 1, 2, 3])],
)
@pytest.mark.parametrize("delay", [0, 3])
def test_where_each_class_has_a_margin_scores_are_those_of_one_by_one(classifier, labels, delay):
    """But for what is said while one label alone is known, which depends on how many examples are read ahead."""
    stream = by_length(labels)
    reference, model = (TextClassifier(classifier=classifier.clone()) for _ in range(2))
    expected, score = one_by_one(reference, stream, delay), prequential(stream, model, delay=delay).score
    assert score.accuracy == expected.accuracy
    same(score.row(0.0), expected.row(0.0)._replace(log_loss=score.log_loss, calibration_error=score.calibration_error))
    assert score.log_loss == pytest.approx(expected.log_loss, abs=1e-9 if delay else 0.02)


class LastLabels:
    """Says that the labels hold that held last."""

    capabilities = frozenset(["several labels"])

    def __init__(self):
        self.classes, self.labels, self.last, self.lock = (), LabelSets(), (), threading.RLock()

    def predictions(self, X, threads=1):
        labels = np.empty(len(X), object)
        labels[:] = [self.last] * len(X)
        return settled(self.margins(len(X)), labels, (self.classes, np.where(self.margins(len(X)) > 0.0, 0.8, 0.3)))

    def margins(self, n):
        return np.array([[1.0 if label in self.last else -1.0 for label in self.classes]] * n).reshape(n, -1)

    def learn_one(self, x, y, w=1.0):
        if isinstance(y, str):
            raise TypeError(f"label {y!r} is no list of labels")
        self.classes = tuple(dict.fromkeys([*self.classes, *y]))
        self.last = tuple(label for label in self.classes if label in y)

    def predict_learn_many(self, X, y, w=1.0, threads=1):
        for each in y:
            if isinstance(each, str):
                raise TypeError(f"label {each!r} is no list of labels")
        said = []
        for x, each in zip(X, y, strict=True):
            said.append((self.predictions([x]), len(self.classes)))
            self.learn_one(x, each)
        n, k = len(said), len(self.classes)
        labels, margins, probabilities = np.empty(n, object), np.full((n, k), -np.inf), np.zeros((n, k))
        for i, (one, known) in enumerate(said):
            labels[i] = one.labels[0]
            margins[i, :known], probabilities[i, :known] = one.scores[0], one.probabilities[0]
        return settled(margins, labels, (self.classes, probabilities))


topics = [("x", [("a",), ("a", "b"), (), ("b", "c"), ("c", "b")][i * i % 5]) for i in range(120)]


@pytest.mark.parametrize(("delay", "batch"), [(0, 1), (0, 50), (2, 50), (500, 7)])
def test_labels_that_hold_together(delay, batch):
    evaluation = prequential(iter(topics), LastLabels(), delay=delay, batch=batch)
    model, expected = LastLabels(), LabelScore()
    for i, (x, y) in enumerate(topics):
        said = model.predictions([x])
        expected.update(LabelOutcomes.of([y], said.labels, said.classes, said.probabilities))
        if i >= delay:
            model.learn_one(*topics[i - delay])
    assert evaluation.score.row()[:-1] == pytest.approx(expected.row()[:-1], nan_ok=True)
    assert isinstance(evaluation.curve[-1], LabelScoreRow)
    assert 0 < evaluation.score.exact_matches < evaluation.score.micro_f1 < 1 or delay


def test_one_label_where_a_list_is_wanted():
    bad = []
    examples = [*topics[:5], ("x", "a"), *topics[5:10]]
    evaluation = prequential(examples, LastLabels(), on_refused=lambda example, reason: bad.append(reason))
    assert (evaluation.score.n, bad) == (10, ["label 'a' is no list of labels"])
    with pytest.raises(ExampleError, match="no list of labels"):
        prequential(examples, LastLabels())


@pytest.mark.parametrize("labels", [["ham", "spam"], ["b", "a", 3]])
def test_curve(labels):
    stream = by_length(labels, n=23_456, first=0)
    seen = []
    evaluation = prequential(stream, TextClassifier(), on_row=seen.append)
    curve = evaluation.curve
    assert [row.n for row in curve] == [*range(200, 23_456, 200), 23_456]
    assert {row.n for row in curve} <= {row.n for row in seen}
    assert all(isinstance(row, ScoreRow) for row in curve)
    assert sorted(row.seconds for row in curve) == [row.seconds for row in curve]
    same(curve[-1][:-1], evaluation.score.row()[:-1])
    # A row is what an evaluation of that many examples gives.
    shorter = prequential(stream[: curve[10].n], TextClassifier())
    same(curve[10][:-1], shorter.score.row()[:-1])
    assert prequential(stream[:100], TextClassifier()).curve[-1].n == 100
    assert [row.n for row in prequential(stream[:120], TextClassifier()).curve] == [50, 100, 120]
    assert prequential([], TextClassifier()).curve == []


WAYS = {
    "prequential": lambda model, stream: prequential(stream, model),
    "delay": lambda model, stream: prequential(stream, model, delay=3),
    "predict_learn": lambda model, stream: [*predict_learn(model, stream)],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_label_is_an_error_that_carries_its_example(way):
    """All before it is learned."""
    stream = list(synthetic(n=700, seed=1))
    stream[650] = ("odd one", 0.5, 1.0, 651)
    model, reference = TextClassifier(), TextClassifier()
    with pytest.raises(ExampleError, match=r"a label must be .*, got 0\.5") as error:
        WAYS[way](model, stream)
    assert error.value.example == stream[650]
    reference.learn_many(*zip(*stream[:650], strict=True))
    assert model.n_iterations == 650 and model.weights == pytest.approx(reference.weights)


def test_without_learning_a_label_of_another_kind_is_refused_alone():
    model = TextClassifier(classifier=OrdinalClassifier())
    model.learn_many(["bad", "good"], [1, 5])
    refused = []
    examples = [("bad", 1), ("good", "five"), ("good", 5)]
    on_refused = lambda example, reason: refused.append(example[1])  # noqa: E731
    evaluation = prequential(examples, model, learn=False, on_refused=on_refused)
    assert (evaluation.score.n, refused, model.n_learned) == (2, ["five"], 2)


def test_weights_are_learned():
    model, reference = TextClassifier(), TextClassifier()
    stream = [(x, y, 0.5 + len(x) % 2) for x, y in synthetic(n=100)]
    prequential(stream, model)
    for x, y, w in stream:
        reference.learn_one(x, y, w)
    assert model.weights == pytest.approx(reference.weights)


@pytest.mark.parametrize("n", [0, 1, 511, 512, 700])
def test_interrupted(n):
    stream = list(synthetic(n=1_000, seed=1))

    def examples():
        yield from stream[:n]
        raise KeyboardInterrupt

    evaluation = prequential(examples(), TextClassifier())
    assert evaluation.interrupted
    assert evaluation.score.n == n
    same(evaluation.score.row()[:-1], prequential(stream[:n], TextClassifier()).score.row()[:-1])


def test_chunks():
    assert [len(chunk) for chunk in chunks([("x", "y")] * 5, batch=2)] == [2, 2, 1]
    assert list(chunks([])) == []


def test_impossible_parameters():
    with pytest.raises(ValueError, match="delay must be 0 or more"):
        prequential([], TextClassifier(), delay=-1)
    with pytest.raises(ValueError, match="batch must be at least 1"):
        prequential([], TextClassifier(), batch=0)


def test_real_stream(data_folder):
    from stream_pegasos.streams import read

    model = TextClassifier()
    evaluation = prequential(read(data_folder / "sms_spam.jsonl.gz"), model)
    assert model.classes == ("ham", "spam")
    assert evaluation.score.n == 5_574
    (ham, _), (missed, spam) = matrix(evaluation.score, *model.classes)
    assert missed + spam == 747 and (ham + spam) / 5_573 == evaluation.score.accuracy
    assert sum(row.count for row in evaluation.score.confused()) + ham + spam == 5_573  # the first one has no answer
    assert evaluation.score.accuracy > 0.9


# --- predictions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [False, 0, 1, "spam", 7])
def test_predict_says_nothing_until_it_can(label):
    model = TextClassifier()
    assert predictions_of(model, ["a", "b"]) == [(None, None, None)] * 2
    assert predictions_of(model, []) == []
    model.learn_one("a", label)
    for prediction in predictions_of(model, ["a", "never met"]):
        if label is False:  # beside which True is known as well
            assert prediction.label is False
            assert prediction.probability >= 0.5
        else:
            assert (prediction.label, prediction.probability) == (label, 2 / 3)  # Laplace's rule of succession


@pytest.mark.parametrize("size", [1, 7, 300])
def test_predict_learn_gives_blocks_that_make_up_the_chunk(size):
    stream = list(synthetic(n=300, seed=3))
    model, alone, predictions, outcomes = TextClassifier(), TextClassifier(), [], []
    for begin in range(0, 300, size):
        for tested in predict_learn(model, stream[begin : begin + size]):
            predictions += tested.answers()
            told = block_outcomes(tested, model)
            columns = (told.truths, told.predicted, told.of_truth, told.of_predicted, told.margins)
            outcomes += zip(*columns, strict=True)
    for i, ((text, label), prediction, outcome) in enumerate(zip(stream, predictions, outcomes, strict=True)):
        assert (prediction.label, prediction.probability, prediction.margin) == predictions_of(alone, [text])[0]
        alone.learn_one(text, label)
        assert outcome[:2] == (label, prediction.label)
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


@pytest.mark.parametrize("batch", [1, 3, 512])
def test_a_model_of_rivers_learns_each_example_once_though_it_refuses_one(batch):
    learned = []

    class Noting(linear_model.LogisticRegression):
        def learn_one(self, x, y, w=1.0):
            super().learn_one(x, y)
            learned.append(x["i"])

    refused = []
    stream = [({"i": float(i) if i != 5 else "five"}, i % 2 == 0) for i in range(9)]
    evaluation = prequential(stream, Noting(), batch=batch, on_refused=lambda *args: refused.append(args))
    assert learned == [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0] and len(refused) == 1
    assert evaluation.score.n == len(learned)


SEVERAL = [partial(PegasosClassifier, multi_class=of) for of in ("ovr", "crammer_singer")]


@pytest.mark.parametrize("make", [OrdinalClassifier, AdaptiveClassifier, *SEVERAL])
def test_while_one_class_is_known_it_has_the_probability_of_laplaces_rule(make):
    stream = [("good film", 3), ("good one", 3), ("so good", 3), ("bad", 1), ("bad one", 1)]
    scores = [prequential(stream, TextClassifier(classifier=make()), batch=batch).score for batch in (1, 2, 512)]
    assert scores[0].log_loss == scores[1].log_loss == scores[2].log_loss
    said = TextClassifier(classifier=make()).predict_learn_many(*map(list, zip(*stream, strict=True)))
    known = said.probabilities[1:4, said.classes.index(3)]
    assert known.tolist() == pytest.approx([2 / 3, 3 / 4, 4 / 5])
    assert said.probabilities[1:].sum(axis=1) == pytest.approx(np.ones(4))


def test_predictions_name_the_label_its_probability_and_its_margin():
    model = TextClassifier(classifier=PegasosClassifier(multi_class="ovr"))
    assert predictions_of(model, ["x"]) == [(None, None, None)]
    blocks = list(predict_learn(model, by_length(["b", "a", 3])))
    assert sum(map(len, blocks)) == 700 and blocks[0].answers()[0].label is None
    text = "some words of the stream"
    ((label, probability, margin),) = predictions_of(model, [text])
    assert label == model.predict_one(text)
    assert probability == model.predict_proba_one(text)[label] == max(model.predict_proba_one(text).values())
    next_best, best = sorted(model.decision_function_one(text).values())[-2:]
    assert margin == best - next_best and model.decision_function_one(text)[label] == best
    model = LastLabels()
    assert predictions_of(model, ["x"]) == [((), (), ())]
    model.learn_one("x", ["a", "c"])
    model.learn_one("x", ["b", "a"])
    assert predictions_of(model, ["x", "y"]) == [(("a", "b"), (0.8, 0.8), (1.0, 1.0))] * 2


def test_ordered_classes_have_a_margin():
    stream = [(f"word{i % 3} rest{i % 7}", i % 3 + 1) for i in range(300)]
    model = TextClassifier(classifier=OrdinalClassifier())
    model.learn_many(*map(list, zip(*stream, strict=True)))
    for text in ("word0", "word1 rest1", "word2", "other"):
        ((label, probability, margin),) = predictions_of(model, [text])
        others = [p for other, p in model.predict_proba_one(text).items() if other != label]
        assert margin == pytest.approx(np.log(probability) - np.log(max(others)), abs=1e-9)


@pytest.mark.parametrize("make", [TextClassifier, lambda: TextClassifier(classifier=PegasosClassifier())])
@pytest.mark.parametrize("weights", [[1.0] * 9, [1.0, 0.0, 2.0] * 3, [0.0] * 9])
def test_examples_of_the_only_label_are_learned_together_as_one_by_one(make, weights):
    chunk = [(f"word {i}", "b" if i == 7 else "a", weights[i]) for i in range(9)]
    together, apart = make(), make()
    blocks = [*predict_learn(together, chunk)]
    assert len(blocks) < len(chunk) or not any(weights)
    labels, found = [], []
    for block in blocks:
        labels += block.predictions.labels.tolist()
        found += [
            dict(zip(block.predictions.classes, row, strict=True)) for row in block.predictions.probabilities.tolist()
        ]
    for (x, y, w), label, probabilities in zip(chunk, labels, found, strict=True):
        assert label == apart.predict_one(x)
        said = apart.predictions([x])
        expected = dict(zip(said.classes, said.probabilities[0].tolist(), strict=True))
        assert {name: value for name, value in probabilities.items() if value} == pytest.approx(expected)
        apart.learn_one(x, y, w)
