"""Scores of several classes, ordered ones and several labels, against scikit-learn's metrics."""

import itertools
import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import of_two
from sklearn import metrics

from stream_pegasos import PegasosClassifier, TextClassifier
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.scores import OrderedScore, Outcomes, PrequentialScore, new_score, score_of_state
from stream_pegasos.evaluation.tallies import MOST_PAIRS, ConfusedRow, Tally

LABELS = ["b", "a", 1, "1", "café"]  # of mixed types, which nothing may sort
rows_of_classes = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from([*LABELS, None]), st.sampled_from([0.05, 0.35, 0.75, 1.0])),
    min_size=1,
)
rows_of_integers = st.lists(st.tuples(st.sampled_from([0, 1, 2, 5]), st.sampled_from([0, 1, 3, 5])), min_size=1)
label_sets = st.lists(st.sampled_from("abcd"), unique=True, max_size=4).map(tuple)
rows_of_labels = st.lists(
    st.tuples(label_sets, label_sets, st.lists(st.sampled_from([0.05, 0.4, 0.9]), min_size=4, max_size=4)), min_size=1
)


def same(a, b):
    assert np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True), (a, b)


def of_classes(rows):
    truths, predicted, probabilities = map(list, zip(*rows, strict=True))
    probabilities = np.array(probabilities)
    return Outcomes(truths, predicted, probabilities, probabilities)


def in_blocks(score, outcomes, size=3):
    while outcomes.n:
        first, outcomes = outcomes.split(size)
        score.update(first)
    return score


@given(rows_of_classes)
def test_scores_of_classes_are_those_of_scikit_learn(rows):
    score = in_blocks(PrequentialScore.of_several(), of_classes(rows))
    # To scikit-learn labels are strings, and None is a label of its own, that never occurs.
    y, predicted = [repr(y) for y, _, _ in rows], [repr(label) for _, label, _ in rows]
    there = sorted({*y, *predicted} - {"None"})
    occurring = {"labels": sorted(set(y)), "zero_division": 0.0}
    assert score.n == len(rows)
    same(score.accuracy, metrics.accuracy_score(y, predicted))
    same(score.balanced_accuracy, metrics.recall_score(y, predicted, average="macro", **occurring))
    for average in ("macro", "micro"):
        expected = metrics.f1_score(y, predicted, labels=there, average=average, zero_division=0.0)
        same(getattr(score, f"{average}_f1"), expected)
    same(score.log_loss, -np.mean(np.log([p for _, _, p in rows])))
    table = metrics.precision_recall_fscore_support(y, predicted, labels=there, zero_division=np.nan)
    expected = dict(zip(there, zip(*table, strict=True), strict=True))
    found = score.of_classes()
    assert [row.count for row in found] == sorted((row.count for row in found), reverse=True)
    assert {repr(row.label) for row in found} == set(there)
    for label, *numbers in found:
        same(numbers, expected[repr(label)])
    matrix = metrics.confusion_matrix(y, predicted, labels=[*there, "no label"])
    confused = {(repr(truth), repr(label)): count for truth, label, count in score.confused(100)}
    assert confused == {(there[i], there[j]): matrix[i, j] for i, j in np.argwhere(matrix).tolist() if i != j}
    # The rest is summed up.
    rest = score.others(1)
    assert (rest is None) == (len(found) == 1)
    if rest is not None:
        right = sum(round(row.recall * row.count) for row in found[1:] if row.count)
        assert (rest.n_classes, rest.count) == (len(found) - 1, len(rows) - found[0].count)
        same(rest.recall, right / rest.count if rest.count else math.nan)


@given(rows_of_classes)
def test_calibration_is_about_the_label_that_was_predicted(rows):
    score = in_blocks(PrequentialScore.of_several(), of_classes(rows))
    made = [(p, y == label) for y, label, p in rows if label is not None]
    error = 0.0
    for _, group in itertools.groupby(sorted(made), lambda row: min(int(10 * row[0]), 9)):
        p, right = np.array(list(group)).T
        error += abs(p.sum() - right.sum())
    same(score.expected_calibration_error, error / len(made) if made else math.nan)
    assert score.reliability[:, 0].sum() == len(made)


@given(rows_of_integers)
def test_scores_of_ordered_classes_are_those_of_scikit_learn(rows):
    y, predicted = map(list, zip(*rows, strict=True))
    score = in_blocks(OrderedScore(), of_classes([(*row, 0.5) for row in rows]))
    same(score.mean_absolute_error, metrics.mean_absolute_error(y, predicted))
    one_label = len({*y, *predicted}) == 1
    # Given all integers between, distances of places are those of labels.
    kappa = math.nan if one_label else metrics.cohen_kappa_score(y, predicted, labels=range(6), weights="quadratic")
    same(score.quadratic_kappa, kappa)
    same(score.accuracy, metrics.accuracy_score(y, predicted))


@given(rows_of_labels)
def test_scores_of_labels_are_those_of_scikit_learn(rows):
    truths, predicted, probabilities = map(list, zip(*rows, strict=True))
    probabilities = np.array(probabilities)
    score = in_blocks(LabelScore(), LabelOutcomes.of(truths, predicted, "abcd", probabilities))
    met = sorted({*itertools.chain(*truths, *predicted)})
    y, said = (np.array([[label in each for label in met] for each in column], int) for column in (truths, predicted))
    if len(met) > 1:  # or scikit-learn takes them for two classes
        same(score.exact_matches, metrics.accuracy_score(y, said))
        same(score.hamming_loss, metrics.hamming_loss(y, said))
        same(score.micro_f1, metrics.f1_score(y, said, average="micro"))
        same(score.macro_f1, metrics.f1_score(y, said, average="macro"))
    holds = np.array([[label in each for label in "abcd"] for each in truths])
    same(score.log_loss, metrics.log_loss(holds.ravel(), probabilities.ravel(), labels=[False, True]))
    as_two = PrequentialScore()
    as_two.update(of_two(holds.ravel(), probabilities.ravel() - 0.5, probabilities.ravel()))
    same(score.expected_calibration_error, as_two.expected_calibration_error)
    for label, precision, recall, _, count in score.of_classes():
        column = met.index(label)
        same(precision, metrics.precision_score(y[:, column], said[:, column], zero_division=np.nan))
        same(recall, metrics.recall_score(y[:, column], said[:, column], zero_division=np.nan))
        assert count == y[:, column].sum()


def test_labels_come_in_any_collection_and_may_be_new():
    probabilities = np.array([[0.8, 0.0], [0.5, 0.5]])
    outcomes = LabelOutcomes.of([{"a": True, "b": False}, {"b", "c"}], [(), ("b",)], ("a", "b"), probabilities)
    score = in_blocks(LabelScore(), outcomes)
    assert outcomes.truths[0] == ("a",)
    # b was not known at first, so it was no decision; c was not either, though it held.
    same(score.log_loss, -np.log([0.8, 0.5, 0.5, 0.5]).mean())
    assert score.hamming_loss == 2 / 6
    assert score.confused(9) == []
    score.update(LabelOutcomes.of([("a", "c")], [("a", "b")], ("a", "b"), probabilities[1:]))
    assert score.confused(9) == [ConfusedRow("c", "b", 1)]


def test_a_label_that_was_not_known_is_as_probable_as_each_of_the_others():
    probabilities = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    outcomes = Outcomes.of(["a", "b", "c", "c"], [None, "a", "a", "c"], ("a", "b", "c"), probabilities)
    assert outcomes.of_truth.tolist() == [1 / 2, 1 / 2, 1 / 3, 0.5]
    assert outcomes.of_predicted.tolist() == [0.0, 1.0, 0.9, 0.5]
    assert Outcomes.of(["d"], ["a"], ("a", "b", "c"), probabilities[3:]).of_truth.tolist() == [1 / 4]


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([-1.0, 0.5, 2.0])), min_size=1, max_size=40),
    rows_of_classes,
)
def test_a_third_class_goes_on_from_the_counts_of_two(two, more):
    """As if all had been several classes from the beginning."""
    y, margins = map(np.array, zip(*two, strict=True))
    first = of_two(y, margins, 1 / (1 + np.exp(-margins)), classes=("b", "a"))
    score, whole = PrequentialScore(30), PrequentialScore.of_several(30)
    for each in (score, whole):
        each.update(first)
        each.update(of_classes(more))
    assert score.kind == "several classes"
    assert score.row() == pytest.approx(whole.row(), nan_ok=True)
    assert score.get_state().keys() == whole.get_state().keys()
    same(score.reliability, whole.reliability)
    assert [*map(str, score.of_classes())] == [*map(str, whole.of_classes())]
    assert score.confused(99) == whole.confused(99)


def test_two_classes_have_rows_of_classes_too():
    score = PrequentialScore()
    predicted = ["spam", "spam", "ham", "ham", "ham"]
    score.update(of_two([1, 0, 1, 0, 0], [0.5] * 5, [0.5] * 5, predicted, ("ham", "spam")))
    assert score.of_classes(1) == [("ham", 2 / 3, 2 / 3, 2 / 3, 3)]
    assert score.others(1) == (1, 0.5, 0.5, 0.5, 2)
    assert score.confused(9) == [("ham", "spam", 1), ("spam", "ham", 1)]


SCORES = [PrequentialScore.of_several, OrderedScore, LabelScore]


@pytest.mark.parametrize("kind", SCORES)
def test_scores_go_on_from_their_state(kind):
    random = np.random.default_rng(4)
    labels = [1 << 60, 7, 2, -3] if kind is OrderedScore else ["a", 1 << 60, "\ud800", True]

    def block():
        truths, predicted = (
            [labels[i] for i in random.integers(0, 4, 20)]
            if kind is not LabelScore
            else [tuple(label for label in labels if random.random() < 0.4) for _ in range(20)]
            for _ in range(2)
        )
        probabilities = random.dirichlet(np.ones(4), 20)
        return (LabelOutcomes if kind is LabelScore else Outcomes).of(truths, predicted, labels, probabilities)

    first, second = kind(window=25), kind(window=25)
    for _ in range(3):
        first.update(block())
    second.set_state(orjson.loads(orjson.dumps(first.get_state())))
    last = block()
    for score in (first, second):
        score.update(last)
    assert first.row(0.0) == second.row(0.0)
    assert first.get_state() == second.get_state()
    assert [*map(type, first.tally.labels)] == [*map(type, second.tally.labels)]
    for name in first.get_state():
        if name != "kind":
            with pytest.raises((ArithmeticError, LookupError, TypeError, ValueError)):
                second.set_state({**first.get_state(), name: {"labels": [1]}})


def test_the_state_tells_which_score_it_is_of():
    two, several = TextClassifier(), TextClassifier(classifier=PegasosClassifier(multi_class="ovr"))
    assert (new_score(two).kind, new_score(several).kind) == ("two classes", "several classes")
    score = new_score(several, 50)
    score.update(of_classes([("a", "b", 0.5)]))
    assert score_of_state(score.get_state(), several, 50).row(0.0) == score.row(0.0)
    with pytest.raises(ValueError, match="a score of several labels beside a model of two classes"):
        score_of_state(LabelScore().get_state(), two)


def test_memory_for_pairs_is_bounded():
    tally = Tally()
    n = 300
    tally.numbers_of(range(n))
    tally.add_pairs([1] * 5, [2] * 5)
    tally.add_pairs(*np.argwhere(~np.eye(n, dtype=bool)).T)
    assert len(tally.get_state()["pairs"]) <= MOST_PAIRS
    assert tally.confused(1) == [(1, 2, 6)]


def test_empty_scores():
    for make in (PrequentialScore, *SCORES):
        score = make()
        assert score.n == 0
        assert all(map(math.isnan, score.row()[1:]))
        assert (score.of_classes(), score.others(3), score.confused(3)) == ([], None, [])
        with pytest.raises(ValueError, match="window is 0"):
            make(0)
