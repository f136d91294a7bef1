"""One message with a misspelt label changes little; a class that is no slip is learned."""

import copy
import math
import warnings

import numpy as np
import pytest
from engines import both_engines

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
)
from stream_pegasos.streams import synthetic

N = 1_000
STREAM = list(synthetic(n=N + 400, seed=3))
TEXTS = [text for text, _ in STREAM]


def of_two(text, label):
    return label


def of_four(text, label):
    return f"{label} {'long' if len(text) > 40 else 'short'}"


def of_sets(text, label):
    return [label, *(["long"] if len(text) > 40 else [])]


def of_stars(text, label):
    return 1 + 2 * (label == "ham") + (len(text) > 40)


# What labels are made of the stream, and slips among them.
KINDS = {
    "two classes": (AdaptiveClassifier, of_two, ["Spam", "ham "]),
    "four classes": (AdaptiveClassifier, of_four, ["spam  long"]),
    "weighted": (lambda: AdaptiveClassifier(class_weight={"spam": 3.0}), of_two, ["Spam"]),
    "half-life": (lambda: AdaptiveClassifier(half_life=300), of_two, ["Spam"]),
    "several labels": (MultiLabelClassifier, of_sets, [["Spam"], ["spam", "Long"]]),
    "ordered": (OrdinalClassifier, of_stars, [50, -1, 7]),
}


def log_loss(model, labels, known):
    """Of the labels that were known; of several the sum over all."""
    columns = [model.classes.index(label) for label in known]
    p = np.clip(model.predict_proba_many(TEXTS[N:])[:, columns], 1e-9, 1.0 - 1e-9)
    if isinstance(model.classifier, MultiLabelClassifier):
        holds = np.array([[label in of for label in known] for of in labels])
        return -np.log(np.where(holds, p, 1.0 - p)).sum(axis=1).mean()
    return -np.log([p[i, known.index(label)] for i, label in enumerate(labels)]).mean()


@pytest.mark.parametrize("kind", KINDS)
def test_a_slip_takes_little_from_the_probabilities_of_others(kind):
    """Be it made once, or twice; and once it is forgotten, next to nothing."""
    make, label_of, slips = KINDS[kind]
    labels = [label_of(*message) for message in STREAM]
    model = TextClassifier(classifier=make())
    model.learn_many(TEXTS[:N], labels[:N])
    known = list(model.classes)
    for slip in slips:
        # Ordered classes share their weights, which any wrong label moves: one that is known, too.
        same = (max(known) if slip > 1 else min(known)) if kind == "ordered" else None
        wrong, other = copy.deepcopy(model), copy.deepcopy(model)
        for text, most in ((TEXTS[N], 0.03), (TEXTS[N + 50], 0.15)):
            wrong.learn_one(text, slip)
            if same is not None:
                other.learn_one(text, same)
            before = max(log_loss(each, labels[N:], known) for each in (model, other))
            assert log_loss(wrong, labels[N:], known) < before + most, slip
        assert set(wrong.classes) > set(known)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ordered"])  # whose classes cannot be forgotten
def test_a_slip_that_is_forgotten_has_taken_next_to_nothing(kind):
    make, label_of, (slip, *_) = KINDS[kind]
    labels = [label_of(*message) for message in STREAM]
    model = TextClassifier(classifier=make())
    model.learn_many(TEXTS[:N], labels[:N])
    known = list(model.classes)
    before = log_loss(model, labels[N:], known)
    model.learn_one(TEXTS[N], slip)
    for label in set(model.classes) - set(known):
        model.forget_class(label)
    assert log_loss(model, labels[N:], known) < before + 0.01


@both_engines
@pytest.mark.parametrize("reduction", ["ovr", "multilabel"])
def test_a_class_that_comes_late_begins_rare_and_ends_so_with_its_third_example(engine_in_test, reduction):
    """With log(5K/n), where n examples were learned; but for what the offset learns by itself meanwhile."""
    learner, vocabulary = learner_of(engine_in_test, reduction), engine_in_test.Vocabulary()
    for i in range(200):
        learner.learn(vocabulary, {i % 2: 1.0}, float(i % 2), 1.0)
    calibrated = learner.calibrated
    offsets = []
    for _ in range(3):
        learner.learn(vocabulary, {2: 1.0}, 2.0, 1.0)
        offsets.append(learner.get_state()["offsets"][2])
    rarity = math.log(5 * 3 / 201)
    assert offsets == pytest.approx([rarity, rarity / 2.0, 0.0], abs=0.07)
    assert learner.calibrated != calibrated
    assert learner.get_state()["offsets"][2] >= 0.0


@both_engines
@pytest.mark.parametrize("reduction", ["ovr", "multilabel", "ordinal"])
def test_a_new_class_moves_no_slope(engine_in_test, reduction):
    """No probability could have told it; nor, of two classes, the confidence."""
    learner, vocabulary = learner_of(engine_in_test, reduction), engine_in_test.Vocabulary()
    for i in range(100):
        learner.learn(vocabulary, {i % 2: 1.0}, float(i % 2), 1.0)
    before = learner.calibrated
    learner.learn(vocabulary, {0: 1.0}, 2.0, 1.0)
    assert learner.calibrated[0] == before[0]
    assert reduction != "ovr" or learner.calibrated == before


@both_engines
@pytest.mark.parametrize("order, problem, sign", [([0, 1, 2], 1, 1.0), ([2, 0, 1], 0, -1.0)])
def test_a_class_beyond_ordered_ones_begins_rare_too(engine_in_test, order, problem, sign):
    """Its threshold stands where its neighbour stands, moved by the log-odds, and 1.5 times as far in margins."""
    learner, vocabulary = learner_of(engine_in_test, "ordinal", order), engine_in_test.Vocabulary()
    for i in range(200):
        learner.learn(vocabulary, {i % 2: 1.0}, float(i % 2), 1.0)
    (neighbour,), (slope, *_) = learner.get_state()["offsets"], learner.calibrated
    learner.learn(vocabulary, {0: 1.0, 1: 1.0}, 2.0, 1.0)
    moved = learner.get_state()["offsets"][problem] - neighbour
    expected = math.log(5 * 3 / 201) * (1.0 + 1.5 * slope)
    assert moved * sign == pytest.approx(expected, abs=0.8)  # one step of its own is up to 0.71


def learner_of(engine, reduction, order=(0, 1, 2)):
    learner = engine.AdaptiveLearner(0.5, False, math.inf, 0.5, 0.0, 0.1, reduction=reduction)
    learner.order, learner.sets = np.array(order), (np.arange(4), np.arange(3))
    return learner


def test_a_class_that_is_no_slip_is_learned():
    """45 of 50 messages after its first ten, which no other class is like."""
    model = TextClassifier()
    model.learn_many(TEXTS[:N], [label for _, label in STREAM[:N]])
    found = model.predict_learn_many([f"ticket {i} opened for server {i % 7}" for i in range(60)], ["ops"] * 60)
    assert sum(label == "ops" for label in found.labels[10:]) >= 45


@pytest.mark.parametrize("weight", [1e-200, 1e12])
def test_weights_of_any_size_leave_a_class_that_can_be_learned(weight):
    model = AdaptiveClassifier()
    for i in range(100):
        model.learn_one({"a": 1, "x": i % 3}, "a")
        model.learn_one({"b": 1, "x": i % 3}, "b")
    model.learn_one({"c": 1}, "c", weight)
    for _ in range(5):
        model.learn_one({"c": 1}, "c")
    assert model.predict_one({"c": 1}) == "c"


@pytest.mark.parametrize("kind", [AdaptiveClassifier, PegasosClassifier, MultiLabelClassifier])
def test_a_label_that_looks_like_a_known_one_is_told_of_once(kind):
    several = kind is MultiLabelClassifier
    model = kind()
    for label in ("ham", "spam", "eggs"):
        model.learn_one({"a": 1}, [label] if several else label)
    for slip in ("Spam", "\ufeffham", "e ggs", "\uff53pam"):
        with pytest.warns(UserWarning, match="label .* is new, and looks like '(ham|spam|eggs)'") as told:
            model.learn_many([{"a": 1}] * 2, [[slip] if several else slip] * 2)
        assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for label in ("spam2", "spän", "Spam", 7):
            model.learn_one({"a": 1}, [label] if several else label)
