"""Scores of classes, two or more, of ordered ones and of several labels, against scikit-learn's metrics."""

import itertools
import math
from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import matrix, of_classes, of_two
from sklearn import metrics

from stream_pegasos import PegasosClassifier, TextClassifier
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.ranking import Ranking
from stream_pegasos.evaluation.scores import OrderedScore, Outcomes, PrequentialScore, new_score, score_of_state
from stream_pegasos.evaluation.tallies import MOST_PAIRS, ConfusedRow, Tally

LABELS = ["b", "a", 1, "1", "café"]  # of mixed types, which nothing may sort
PROBABILITIES = st.sampled_from([0.0, 0.05, 0.35, 0.5, 0.75, 1.0])
# Margins from a small set, so that ties are many.
rows_of_two = st.lists(
    st.tuples(st.booleans(), st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0]), PROBABILITIES), min_size=1
)
rows_of_classes = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from([*LABELS, None]), PROBABILITIES), min_size=1
)
several = rows_of_classes.map(lambda rows: of_classes(*zip(*rows, strict=True)))
two = rows_of_two.map(lambda rows: of_two(*zip(*rows, strict=True), classes=("b", "a")))
rows_of_integers = st.lists(st.tuples(st.sampled_from([0, 1, 2, 5]), st.sampled_from([0, 1, 3, 5])), min_size=1)
label_sets = st.lists(st.sampled_from("abcd"), unique=True, max_size=4).map(tuple)
rows_of_labels = st.lists(
    st.tuples(label_sets, label_sets, st.lists(st.sampled_from([0.05, 0.4, 0.9]), min_size=4, max_size=4)), min_size=1
)


def same(a, b):
    assert np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True), (a, b)


def in_blocks(score, outcomes, size=3):
    for begin in range(0, outcomes.n, size):
        score.update(outcomes.part(begin, begin + size))
    return score


@given(several | two, st.integers(1, 9), st.integers(1, 9))
def test_scores_of_classes_are_those_of_scikit_learn(outcomes, size, window):
    score = in_blocks(PrequentialScore(window), outcomes, size)
    # To scikit-learn labels are strings; what had no answer is left out.
    made = [label is not None for label in outcomes.predicted]
    y, predicted = (
        [repr(each) for each in itertools.compress(labels, made)] for labels in (outcomes.truths, outcomes.predicted)
    )
    there = sorted({*y, *predicted})
    occurring = {"labels": sorted(set(y)), "zero_division": 0.0}
    assert (score.n, score.n_unanswered) == (outcomes.n, made.count(False))
    if not y:
        assert math.isnan(score.accuracy) and math.isnan(score.log_loss)
        return
    same(score.accuracy, metrics.accuracy_score(y, predicted))
    same(score.window_accuracy, metrics.accuracy_score(y[-window:], predicted[-window:]))
    same(score.balanced_accuracy, metrics.recall_score(y, predicted, average="macro", **occurring))
    for average in ("macro", "micro"):
        expected = metrics.f1_score(y, predicted, labels=there, average=average, zero_division=0.0)
        same(getattr(score, f"{average}_f1"), expected)
    same(score.log_loss, -np.mean(np.log(np.clip(np.array(outcomes.of_truth)[made], 1e-15, 1.0))))
    table = metrics.precision_recall_fscore_support(y, predicted, labels=there, zero_division=np.nan)
    expected = dict(zip(there, zip(*table, strict=True), strict=True))
    found = score.class_rows()
    assert [row.count for row in found] == sorted((row.count for row in found), reverse=True)
    assert {repr(row.label) for row in found} == set(there)
    for label, *numbers in found:
        same(numbers, expected[repr(label)])
    cells = metrics.confusion_matrix(y, predicted, labels=[*there, "no label"])
    confused = {(repr(truth), repr(label)): count for truth, label, count in score.confused(100)}
    assert confused == {(there[i], there[j]): cells[i, j] for i, j in np.argwhere(cells).tolist() if i != j}
    # The rest is summed up.
    rest = score.others(1)
    assert (rest is None) == (len(found) == 1)
    if rest is not None:
        right = sum(round(row.recall * row.count) for row in found[1:] if row.count)
        assert (rest.n_classes, rest.count) == (len(found) - 1, len(y) - found[0].count)
        same(rest.recall, right / rest.count if rest.count else math.nan)
    values = score.metrics()
    if outcomes.classes:
        is_positive, given = np.array(y) == "'a'", np.array(predicted) == "'a'"
        same(values["f1"], metrics.f1_score(is_positive, given) if is_positive.any() or given.any() else math.nan)
        for name, rows in (("roc_auc", slice(None)), ("window_roc_auc", slice(-window, None))):
            one_class = len(set(y[rows])) == 1
            area = math.nan if one_class else metrics.roc_auc_score(is_positive[rows], outcomes.margins[rows])
            same(values[name], area)
    else:
        assert not values.keys() & {"f1", "roc_auc", "window_roc_auc"} and math.isnan(score.window_roc_auc)
        assert math.isnan(score.row().roc_auc) and score.positive is None


@given(several | two)
def test_calibration_is_about_the_positive_label_or_that_which_was_predicted(outcomes):
    score = in_blocks(PrequentialScore(), outcomes)
    if outcomes.classes:
        is_positive = np.array([y == "a" for y in outcomes.truths])
        pairs = [*zip(np.where(is_positive, outcomes.of_truth, 1.0 - outcomes.of_truth), is_positive, strict=True)]
    else:
        columns = zip(outcomes.of_predicted, outcomes.truths, outcomes.predicted, strict=True)
        pairs = [(p, y == label) for p, y, label in columns if label is not None]
    error = 0.0
    for tenth, group in itertools.groupby(sorted(pairs), lambda row: min(int(10 * row[0]), 9)):
        p, right = np.array(list(group)).T
        error += abs(p.sum() - right.sum())
        same(score.reliability[tenth], [len(p), p.mean(), right.mean()])
    same(score.calibration_error, error / len(pairs) if pairs else math.nan)
    assert score.reliability[:, 0].sum() == len(pairs)


@given(rows_of_two.filter(lambda rows: all(margin for _, margin, _ in rows)), st.booleans())
def test_two_classes_that_are_exchanged(rows, exact):
    score, opposite = (PrequentialScore(9, exact) for _ in range(2))
    score.update(of_two(*zip(*rows, strict=True)))
    score.update(of_two([], [], [], classes=(True, False)))
    opposite.update(of_two(*zip(*((not y, -margin, 1 - p) for y, margin, p in rows), strict=True)))
    same([*score.metrics().values()], [*opposite.metrics().values()])


def test_predicted_may_differ_from_the_sign_of_the_margin():
    score = PrequentialScore()
    score.update(of_two([True, False], [1.0, 1.0], [0.5, 0.5], predicted=[False, False]))
    assert matrix(score, False, True) == [[1, 0], [1, 0]]


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
    assert counted.window_roc_auc == exact.window_roc_auc


@given(rows_of_integers)
def test_scores_of_ordered_classes_are_those_of_scikit_learn(rows):
    y, predicted = map(list, zip(*rows, strict=True))
    score = in_blocks(OrderedScore(), of_classes(y, predicted, [0.5] * len(rows)))
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
    same(score.calibration_error, as_two.calibration_error)
    for label, precision, recall, _, count in score.class_rows():
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


@given(two, several)
def test_a_third_class_goes_on_from_the_counts_of_two(first, more):
    """As if there had been no positive class from the beginning."""
    score, whole = PrequentialScore(30), PrequentialScore(30)
    for each, outcomes in ((score, first), (whole, replace(first, classes=()))):
        each.update(outcomes)
        each.update(more)
    assert score.row() == pytest.approx(whole.row(), nan_ok=True)
    assert score.get_state() == whole.get_state()


SCORES = {"two classes": PrequentialScore, "classes": PrequentialScore, "ordered": OrderedScore, "labels": LabelScore}


def outcomes_of(kind, labels, random):
    if kind == "two classes":
        return of_two(random.random(20) < 0.5, random.normal(size=20), random.random(20), classes=tuple(labels[:2]))
    truths, predicted = (
        [labels[i] for i in random.integers(0, 4, 20)]
        if kind != "labels"
        else [tuple(label for label in labels if random.random() < 0.4) for _ in range(20)]
        for _ in range(2)
    )
    probabilities = random.dirichlet(np.ones(4), 20)
    return (LabelOutcomes if kind == "labels" else Outcomes).of(truths, predicted, labels, probabilities)


@pytest.mark.parametrize("kind", SCORES)
def test_scores_go_on_from_their_state(kind):
    random = np.random.default_rng(4)
    labels = [1 << 60, 7, 2, -3] if kind == "ordered" else ["a", 1 << 60, "\ud800", True]
    options = {"exact": False} if SCORES[kind] is PrequentialScore else {}
    first, second = (SCORES[kind](25, **options) for _ in range(2))
    second.set_state(orjson.loads(orjson.dumps(first.get_state())))
    assert second.n == 0
    for _ in range(3):
        first.update(outcomes_of(kind, labels, random))
    second.set_state(orjson.loads(orjson.dumps(first.get_state())))
    last = outcomes_of(kind, labels, random)
    for score in (first, second):
        score.update(last)
    assert first.metrics() == second.metrics()
    assert first.get_state() == second.get_state()
    assert np.array_equal(first.reliability, second.reliability, equal_nan=True)
    assert [*map(type, first.tally.labels)] == [*map(type, second.tally.labels)]
    for name in first.get_state():
        if name != "kind":
            with pytest.raises((ArithmeticError, LookupError, TypeError, ValueError)):
                second.set_state({**first.get_state(), name: {"labels": [1], "newest": [], "classes": [1, 2, 3]}})


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kind", SCORES)
def test_scores_add_up(kind, exact):
    """To that of all outcomes in a row, whichever label each took for positive, and where one has met nothing."""
    random = np.random.default_rng(5)
    labels = [2, 1, -7, 4] if kind == "ordered" else ["a", "b", "c", "d"]

    def make():
        return SCORES[kind](25, **({"exact": exact} if SCORES[kind] is PrequentialScore else {}))

    outcomes = [outcomes_of(kind, labels, random) for _ in range(4)]
    whole, first, second, total = make(), make(), make(), make()
    for score, some in ((whole, outcomes), (first, outcomes[:2]), (second, outcomes[2:])):
        for each in some:
            turned = kind == "two classes" and score is second
            score.update(replace(each, classes=each.classes[::-1], margins=-each.margins) if turned else each)
    for score in (make(), first, make(), second):
        total.add(score)
    names = [name for name in whole.metrics() if kind != "two classes" or "f1" not in name]
    assert {name: total.metrics()[name] for name in names} == pytest.approx(
        {name: whole.metrics()[name] for name in names}
    )
    assert (total.n, total.tally.occurred.tolist()) == (whole.n, whole.tally.occurred.tolist())
    assert sorted(total.confused()) == sorted(whole.confused())
    mixed = make()
    mixed.add(first)
    mixed.update(outcomes[3])
    assert mixed.n == 60


def test_exact_scores_have_no_state():
    with pytest.raises(ValueError, match="exact=False"):
        PrequentialScore().get_state()


def test_the_state_tells_which_score_it_is_of():
    model = TextClassifier(classifier=PegasosClassifier(multi_class="ovr"))
    score = new_score(model, 50)
    score.update(of_classes("a", "b", [0.5]))
    assert score_of_state(score.get_state(), model, 50).get_state() == score.get_state()
    with pytest.raises(ValueError, match="the kind of the score must be 'classes'"):
        score_of_state(LabelScore().get_state(), model)


def test_memory_for_pairs_is_bounded():
    tally = Tally()
    n = 300
    tally.label_numbers(range(n))
    tally.add_pairs([1] * 5, [2] * 5)
    tally.add_pairs(*np.argwhere(~np.eye(n, dtype=bool)).T)
    assert len(tally.get_state()["pairs"]) <= MOST_PAIRS
    assert tally.confused(1) == [(1, 2, 6)]


def test_empty_scores():
    for make in (PrequentialScore, OrderedScore, LabelScore):
        score = make()
        assert score.n == 0
        assert all(map(math.isnan, score.row()[1:]))
        assert (score.class_rows(), score.others(3), score.confused(3)) == ([], None, [])
        with pytest.raises(ValueError, match="window must be at least 1 example, got 0"):
            make(0)


@pytest.mark.parametrize("first", [0, 10**8, -(10**12), 2**62])
def test_quadratic_kappa_of_large_labels_is_that_of_small_ones(first):
    steps = np.random.default_rng(3).integers(0, 5, (2, 300))
    truths, predicted = steps[0], np.where(steps[1] > 1, steps[0], steps[1])
    score = OrderedScore()
    for part in np.array_split(np.arange(300), 3):
        labels = [[first + int(label) for label in each[part]] for each in (truths, predicted)]
        score.update(Outcomes(*labels, [0.5] * len(part), [0.5] * len(part)))
        state, score = score.get_state(), OrderedScore()
        score.set_state(orjson.loads(orjson.dumps(state)))
    wanted = metrics.cohen_kappa_score(truths, predicted, weights="quadratic")
    assert score.quadratic_kappa == pytest.approx(wanted, rel=1e-12)


@given(rows_of_two, rows_of_two)
def test_where_the_positive_label_turns_out_to_be_the_other_one_the_pairs_stay(before, after):
    """As if the margins had been those of the other label from the beginning."""
    ranking, rows = Ranking(), [(not y, -margin) for y, margin, _ in before] + [row[:2] for row in after]
    for these, is_first in ((before, True), (after, False)):
        ranking.update(*(np.array(column) for column in list(zip(*these, strict=True))[:2]))
        if is_first:
            ranking.swap()
    truths, margins = zip(*rows, strict=True)
    if len({*truths}) == 2:
        assert ranking.roc_auc == pytest.approx(metrics.roc_auc_score(truths, margins), abs=1e-12)
