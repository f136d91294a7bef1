"""Decisions for F1, beside what brute force and a transcription in plain Python decide."""

import copy
import itertools

import numpy as np
import pytest
from estimators import LABELS, SETS, SEVERAL

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier, PegasosClassifier, merge
from stream_pegasos.learners.f1_decisions import F1Decision

X = {"x": 1.0}
FIRST = {"micro_f1": 25.0, "macro_f1": 2.0}


def of_several_labels(decide_for, **options):
    return MultiLabelClassifier(AdaptiveClassifier(decide_for=decide_for, **options))


def examples(n, labels, seed=0, noise=0.4):
    """Examples whose labels are rare to different degrees, and seldom clear."""
    generator = np.random.default_rng(seed)
    share = 0.5 ** np.arange(len(labels))
    for number in generator.choice(len(labels), n, p=share / share.sum()).tolist():
        shown = number if generator.random() > noise else int(generator.integers(len(labels)))
        yield {f"of {shown}": 1.0, f"any {generator.integers(5)}": 1.0}, labels[number]


def test_what_nothing_tells_is_decided_as_brute_force_says():
    shares = {"often": 0.7, "at times": 0.4, "seldom": 0.1}
    generator, truths = np.random.default_rng(0), []
    for _ in range(4_000):
        truths.append({label for label, share in shares.items() if generator.random() < share})
    sets = [set(of) for n in range(4) for of in itertools.combinations(shares, n)]

    def micro_f1(of):
        return 2.0 * sum(map(shares.get, of)) / (len(of) + sum(shares.values()))

    for decide_for, best in {"accuracy": {"often"}, "micro_f1": max(sets, key=micro_f1), "macro_f1": {*shares}}.items():
        model = of_several_labels(decide_for)
        model.learn_many([X] * len(truths), truths)
        assert {label for label, holds in model.predict_one(X).items() if holds} == best, decide_for


def test_classes_that_nothing_tells_apart_are_predicted_as_often_as_they_come():
    """With shares p and predicted shares q, the mean of 2 p q / (p + q) is largest where q = p."""
    shares = np.array([0.6, 0.3, 0.1])
    truths = np.random.default_rng(0).choice(3, 6_000, p=shares)
    model = AdaptiveClassifier(decide_for="macro_f1")
    said = model.predict_learn_many([X] * len(truths), truths).labels[1_000:]
    assert np.allclose(np.bincount(said.astype(int)) / len(said), shares, atol=0.03)
    plain = AdaptiveClassifier().predict_learn_many([X] * len(truths), truths).labels[1_000:]
    assert (plain == 0).mean() > 0.99


@pytest.mark.parametrize("decide_for, kind", [("macro_f1", SEVERAL), ("macro_f1", SETS), ("micro_f1", SETS)])
def test_each_decision_is_that_of_the_counts_before_it(decide_for, kind):
    sets = kind == SETS
    model = of_several_labels(decide_for) if sets else AdaptiveClassifier(decide_for=decide_for)
    right, counted, first = {}, {}, FIRST[decide_for]
    for i, (x, y) in enumerate(examples(300, LABELS[kind])):
        probabilities, said, w = model.predict_proba_one(x), model.predict_one(x), 1.0 + (i % 3)
        totals = [sum(right.values()), sum(counted.values())]
        of = {}
        for label in model.classes:
            a, b = totals if decide_for == "micro_f1" else (right.get(label, 0.0), counted.get(label, 0.0))
            p = probabilities[label][True] if sets else probabilities[label]
            of[label] = (p - (a + first) / (b + 2.0 * first)) / (b + 2.0 * first)
        expected = {label for label in of if of[label] > 0.0} if sets else {max(of, key=of.get, default=None)}
        found = {label for label, holds in said.items() if holds} if sets else {said}
        assert found == expected
        for label in {*(found - {None}), *(truth := {*y} if sets else {y})}:
            right[label] = right.get(label, 0.0) + w * (label in found and label in truth)
            counted[label] = counted.get(label, 0.0) + w * ((label in found) + (label in truth))
        model.learn_one(x, y, w)
    assert model.trainer.policy.f1.counts == {label: (right[label], counted[label]) for label in model.classes}


def test_the_newest_count_most():
    for many in (False, True):
        f1 = AdaptiveClassifier(decide_for="macro_f1")
        f1.trainer.policy.f1.n = F1Decision.MOST - 2.0
        f1.trainer.policy.f1.counts = {"a": (100.0, 300.0)}
        f1.learn_many([X] * 3, ["a"] * 3) if many else [f1.learn_one(X, "a") for _ in range(3)]
        assert f1.trainer.policy.f1.n == F1Decision.MOST / 2.0 + 1.0
        assert f1.trainer.policy.f1.counts["a"] == (50.5 + 1.0, 150.0 + 1.5 + 2.0)  # the first is no prediction yet


@pytest.mark.parametrize("kind", [SEVERAL, SETS])
def test_merged_models_count_what_each_part_did(kind):
    model = of_several_labels("macro_f1") if kind == SETS else AdaptiveClassifier(decide_for="macro_f1")
    streams = [list(zip(*examples(80, LABELS[kind], seed), strict=True)) for seed in range(3)]
    model.learn_many(*map(list, streams[0]))
    parts = [copy.deepcopy(model) for _ in range(2)]
    for part, stream in zip(parts, streams[1:], strict=True):
        part.learn_many(*map(list, stream))
    merged, before = merge(model, parts).trainer.policy.f1, model.trainer.policy.f1.counts
    assert merged.n == 240.0
    for label in merged.counts:
        of = [
            np.array(each.get(label, (0.0, 0.0)))
            for each in (before, *(part.trainer.policy.f1.counts for part in parts))
        ]
        assert merged.counts[label] == tuple(of[1] + of[2] - of[0])
    assert model.trainer.policy.f1.counts == before


def test_the_decision_changes_and_keeps_what_was_counted():
    X, y = map(list, zip(*examples(300, LABELS[SETS]), strict=True))
    model, other = of_several_labels("micro_f1"), of_several_labels("accuracy")
    for each in (model, other):
        each.learn_many(X, y)
    assert model.weights == other.weights  # learning is the same
    counts = model.trainer.policy.f1.counts
    model.set_decision(decide_for="macro_f1")
    assert model.trainer.policy.f1.counts == counts and model.classifier.decide_for == "macro_f1"
    with pytest.raises(ValueError, match=r"threshold must be left out with decide_for='macro_f1'"):
        model.set_decision(threshold=0.3)
    model.set_decision(threshold=0.3, decide_for="accuracy")
    assert model.trainer.policy.f1 is None and model.classifier.threshold == 0.3
    other.set_decision(decide_for="macro_f1")  # begins to count
    assert other.trainer.policy.f1.n == 0.0
    two = AdaptiveClassifier()
    two.learn_many([x for x, _ in examples(90, ["a", "b", "c"])], [y for _, y in examples(90, ["a", "b", "c"])])
    two.set_decision(decide_for="macro_f1")
    assert two.decide_for == "macro_f1" and not two.trainer.policy.by_margin
    two.set_decision(decide_for="accuracy")
    assert two.trainer.policy.by_margin


@pytest.mark.parametrize("options", [{"threshold": 0.3}, {"max_false_positive_rate": {"a": 0.1}}])
def test_other_decisions_and_f1_are_refused_together(options):
    with pytest.raises(ValueError, match="must be left out"):
        AdaptiveClassifier(decide_for="micro_f1", **options)
    with pytest.raises(ValueError, match="must be one of 'accuracy', 'micro_f1', 'macro_f1'"):
        AdaptiveClassifier(decide_for="f1")
    with pytest.raises(ValueError, match="does not use"):
        OrdinalClassifier(AdaptiveClassifier(decide_for="macro_f1"))
    with pytest.raises(TypeError, match="PegasosClassifier has no threshold"):
        PegasosClassifier().set_decision(decide_for="macro_f1")


@pytest.mark.parametrize("label", LABELS[SEVERAL])
def test_a_class_that_is_forgotten_is_counted_no_more(label):
    model = AdaptiveClassifier(decide_for="macro_f1")
    X, y = map(list, zip(*examples(200, LABELS[SEVERAL]), strict=True))
    model.learn_many(X, y)
    counts = dict(model.trainer.policy.f1.counts)
    model.forget_class(label)
    del counts[label]
    assert model.trainer.policy.f1.counts == counts
