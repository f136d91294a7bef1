"""Labels that look wrong: which messages are suspects, and the estimate of how many labels are wrong."""

import math

import numpy as np
import pytest
from kinds import ordered, several_classes, several_labels

from stream_pegasos import TextClassifier, prequential
from stream_pegasos.blocks.predicted import PredictedBlock
from stream_pegasos.evaluation import label_errors as module
from stream_pegasos.evaluation.label_errors import LabelErrors
from stream_pegasos.learners.predictions import Predictions

LABELS = {
    several_classes: lambda n: f"class {n * n % 5}",
    ordered: lambda n: n % 4,
    several_labels: lambda n: tuple(f"topic {k}" for k in (2, 3, 5) if n % k == 0),
}


def stream_of(make):
    return [(f"word{n * n % 7} {n % 6} {n % 4}", LABELS[make](n), float(n % 11 > 0)) for n in range(700)]


def by_hand(model, stream):
    """Message by message: by how improbable the label was, then by its place."""
    suspects = []
    for place, (x, y, w) in enumerate(stream):
        said, chances = model.predict_one(x), model.predict_proba_one(x)
        if isinstance(y, tuple):
            said = tuple(label for label, holds in said.items() if holds)
            its = min([p[label in y] for label, p in chances.items()], default=1.0)
            is_known, wrong, y = {*y} <= {*model.classes}, {*said} != {*y}, dict.fromkeys(y, True)
        else:
            its, is_known, wrong = chances.get(y), y in model.classes, said is not None and said != y
        if w and is_known and wrong:
            suspects.append((its, place, x))
        model.learn_one(x, y, w=w)
    return sorted(suspects)


@pytest.mark.parametrize("make", LABELS)
def test_suspects_are_the_least_probable_labels_of_wrong_answers(make):
    stream, expected = stream_of(make), by_hand(make(), stream_of(make))
    seen = prequential(stream, make()).suspects(len(stream))
    assert [suspect.text for suspect in seen] == [x for *_, x in expected] and len(seen) > 50
    assert [suspect.label_probability for suspect in seen] == pytest.approx([its for its, *_ in expected], abs=1e-12)
    for batch, threads in ((1, 1), (50, 2)):
        assert prequential(stream, make(), batch=batch, threads=threads).suspects(len(stream)) == seen
    assert [stream[suspect.number - 1][0] for suspect in prequential([e[:2] for e in stream], make()).suspects(9)]


def test_as_many_are_kept_as_there_is_room(monkeypatch):
    stream = stream_of(several_classes)
    every = prequential(stream, TextClassifier()).suspects(700)
    monkeypatch.setattr(module, "MOST_SUSPECTS", 20)
    errors = prequential(stream, TextClassifier()).label_errors
    assert errors.suspects(700) == every[:20] and errors.suspects(3) == every[:3]


def test_models_of_river_have_suspects_if_they_have_probabilities():
    naive_bayes = pytest.importorskip("river.naive_bayes")
    stream = [(dict.fromkeys(x.split(), 1), y) for x, y, _ in stream_of(several_classes)]
    (first, *_) = prequential(stream, naive_bayes.MultinomialNB()).suspects()
    assert 0.0 <= first.label_probability < first.probability and first.predicted != first.label


def predicted(chance, n, rate, model_errors):
    """A block of a calibrated model of three classes, of whose labels a share was exchanged."""
    log_odds = np.abs(chance.normal(3.0, 3.0, n))
    best = np.maximum(1.0 / (1.0 + np.exp(-log_odds)), 0.4)
    truth = np.where(chance.random(n) < best, 0, 1) if model_errors else np.zeros(n, int)
    labels = np.where(chance.random(n) < rate, (truth + chance.integers(1, 3, n)) % 3, truth)
    probabilities = np.column_stack([best, (1.0 - best) / 2.0, (1.0 - best) / 2.0])
    said = np.full(n, "a", object)
    predictions = Predictions(probabilities, lambda: said, lambda: (("a", "b", "c"), probabilities))
    y = [*np.array(["a", "b", "c"], object)[labels]]
    return PredictedBlock(predictions, ("a", "b", "c"), y, [("text", label) for label in y])


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.2])
def test_the_interval_has_the_share_of_wrong_labels(rate):
    """At 95 %, or more often: errors of the model widen it."""
    held, widths = [], []
    for seed in range(60):
        errors = LabelErrors()
        for block in (predicted(np.random.default_rng((seed, i)), 4_000, rate, True) for i in range(4)):
            errors.update(block)
        if interval := errors.interval():
            low, high = interval
            held.append(low <= rate <= high)
            widths.append(high - low)
    assert np.mean(held) >= 0.9 and len(held) > 20 and np.median(widths) < max(0.03, rate)


def test_without_wrong_labels_there_are_few_at_most():
    errors = LabelErrors()
    errors.update(predicted(np.random.default_rng(0), 4_000, 0.0, False))
    low, high = errors.interval()
    # No error of a thousand: Wilson's interval ends at z² / (n + z²).
    assert low == 0.0 and high == pytest.approx(1.96**2 / (1_000 + 1.96**2))
    assert str(errors) == "at most 0.4% of labels look wrong"


def test_nothing_is_estimated_where_it_is_not_well_founded():
    errors = LabelErrors()
    errors.update(predicted(np.random.default_rng(0), 999, 0.1, True))
    assert errors.interval() is None and str(errors) == ""  # too few
    chance = np.random.default_rng(0)
    stream = [(f"word{i % 50}", "ab"[int(chance.random() < 0.6)]) for i in range(4_000)]
    assert prequential(stream, TextClassifier()).label_errors.interval() is None  # the model is never sure
    assert math.isnan(PredictedBlock(TextClassifier().predictions(["a"]), (), ["x"]).label_probabilities()[0])
