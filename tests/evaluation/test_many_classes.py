"""`evaluate` with more than two classes, ordered ones, and several labels a message."""

import math
import threading

import numpy as np
import pytest
from river import evaluate as river_evaluate
from river import metrics as river_metrics

from stream_pegasos import OrdinalClassifier, PegasosClassifier, TextClassifier
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore, LabelScoreRow
from stream_pegasos.evaluation.prequential import ExampleError, evaluate, predict, predict_learn
from stream_pegasos.evaluation.scores import ClassScoreRow
from stream_pegasos.learners.predictions import settled
from stream_pegasos.streams import synthetic

LABELS = ["b", "a", 3, "3"]
stream = [(text, LABELS[min(len(text) % 7, 3)] if i > 40 else "b") for i, (text, _) in enumerate(synthetic(n=700))]


def several():
    return TextClassifier(classifier=PegasosClassifier(multi_class="ovr", t0=1e3))


class LastLabels:
    """Says that the labels hold that held last."""

    capabilities = frozenset(["several labels"])

    def __init__(self):
        self.classes, self.last, self.lock = (), (), threading.RLock()

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


def test_several_classes_agree_with_river():
    def begun():  # as River leaves predictions of None out
        model = several()
        model.learn_one(stream[0][0], str(LABELS.index(stream[0][1])))
        return model

    rest = [(x, str(LABELS.index(y))) for x, y in stream[1:]]
    score = evaluate(begun(), rest).score
    assert score.kind == "several classes"
    for metric, value in [
        (river_metrics.Accuracy(), score.accuracy),
        (river_metrics.BalancedAccuracy(), score.balanced_accuracy),
        (river_metrics.MacroF1(), score.macro_f1),
    ]:
        assert value == pytest.approx(river_evaluate.progressive_val_score(rest, begun(), metric).get(), abs=1e-12)


@pytest.mark.parametrize(("delay", "batch"), [(0, 1), (0, 64), (3, 512), (1000, 64)])
def test_the_scores_are_those_of_predicting_then_learning_one_by_one(delay, batch):
    model, said = several(), []
    for i, (x, _) in enumerate(stream):
        said.append((model.predict_one(x), model.predict_proba_one(x)))
        if i >= delay:
            model.learn_one(*stream[i - delay])
    score = evaluate(several(), iter(stream), delay=delay, batch=batch).score
    assert score.accuracy == np.mean([label == y for (label, _), (_, y) in zip(said, stream, strict=True)])
    losses = []
    for (label, p), (_, y) in zip(said, stream, strict=True):
        known = max(1, len([other for other in p if other is not None]))
        losses.append(-math.log(p[y] if y in p and label is not None else 1 / (known + 1)))
    # What is said while one label alone is known depends on how many examples are read ahead.
    assert score.log_loss == pytest.approx(np.mean(losses), abs=0.02 if not delay else 1e-9)


@pytest.mark.parametrize("delay", [0, 4])
def test_rows_of_the_curve_are_those_of_a_shorter_stream(delay):
    evaluation = evaluate(several(), stream, delay=delay)
    assert [row.n for row in evaluation.curve] == [*range(50, 700, 50), 700]
    assert all(isinstance(row, ClassScoreRow) for row in evaluation.curve)
    if not delay:
        shorter = evaluate(several(), stream[:200]).score.row()
        assert evaluation.curve[3][:6] == pytest.approx(shorter[:6], rel=0.05)


def test_ordered_classes():
    examples = [(x, len(x) % 4) for x, _ in stream]
    model = TextClassifier(classifier=OrdinalClassifier())
    said = []
    for x, y in examples:
        said.append(model.predict_one(x))
        model.learn_one(x, y)
    score = evaluate(TextClassifier(classifier=OrdinalClassifier()), examples).score
    errors = [abs(a - y) for a, (_, y) in zip(said, examples, strict=True) if a is not None]
    assert score.kind == "ordered"
    assert score.mean_absolute_error == pytest.approx(np.mean(errors))
    assert score.accuracy == np.mean([a == y for a, (_, y) in zip(said, examples, strict=True)])


topics = [("x", [("a",), ("a", "b"), (), ("b", "c"), ("c", "b")][i * i % 5]) for i in range(120)]


@pytest.mark.parametrize(("delay", "batch"), [(0, 1), (0, 50), (2, 50), (500, 7)])
def test_labels_that_hold_together(delay, batch):
    evaluation = evaluate(LastLabels(), iter(topics), delay=delay, batch=batch)
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
    evaluation = evaluate(LastLabels(), examples, on_refused=lambda example, reason: bad.append(reason))
    assert (evaluation.score.n, bad) == (10, ["label 'a' is no list of labels"])
    with pytest.raises(ExampleError, match="no list of labels"):
        evaluate(LastLabels(), examples)


def test_predictions_of_several_classes_name_the_label_its_probability_and_its_margin():
    model = several()
    assert predict(model, ["x"]) == [(None, None, None)]
    blocks = list(predict_learn(model, stream))
    said = [prediction for block in blocks for prediction in block.each()]
    assert len(said) == len(stream) and said[0].label is None
    text = stream[3][0]
    ((label, probability, margin),) = predict(model, [text])
    assert label == model.predict_one(text)
    assert probability == model.predict_proba_one(text)[label] == max(model.predict_proba_one(text).values())
    assert margin == model.decision_function_one(text)[label] == max(model.decision_function_one(text).values())


def test_predictions_of_labels_that_hold_together():
    model = LastLabels()
    assert predict(model, ["x"]) == [((), (), ())]
    model.learn_one("x", ["a", "c"])
    model.learn_one("x", ["b", "a"])
    assert predict(model, ["x", "y"]) == [(("a", "b"), (0.8, 0.8), (1.0, 1.0))] * 2
