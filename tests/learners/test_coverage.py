"""Sets of labels with a coverage, beside a transcription in plain Python and what was proved of them."""

import copy
import math
import pickle

import numpy as np
import pytest
from engines import on_pure
from estimators import LABELS, ORDERED, SETS, SEVERAL, TWO
from hypothesis import given
from hypothesis import strategies as st

import stream_pegasos
from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    merge,
)
from stream_pegasos.learners.coverage import HIGHEST, LOWEST, STEP, Coverage
from stream_pegasos.streams import synthetic


def of_kind(kind, **options):
    around = {ORDERED: OrdinalClassifier, SETS: MultiLabelClassifier}.get(kind, lambda classifier: classifier)
    return TextClassifier(classifier=around(AdaptiveClassifier(**options)))


def stream(kind, n=300, seed=0):
    """Texts whose labels are seldom clear, and come one after the other."""
    generator, labels = np.random.default_rng(seed), LABELS[kind]
    for i in range(n):
        number = int(generator.integers(min(len(labels), 1 + i // 20)))
        shown = number if generator.random() < 0.6 else int(generator.integers(len(labels)))
        yield f"of{shown} any{generator.integers(5)} word{generator.integers(30)}", labels[number]


def columns(kind, n=300, seed=0):
    return [[*column] for column in zip(*stream(kind, n, seed), strict=True)]


KINDS = pytest.mark.parametrize("kind", [TWO, SEVERAL, ORDERED, SETS])


@KINDS
@pytest.mark.parametrize("coverage", [0.7, 0.9])
def test_each_set_is_that_of_a_transcription(kind, coverage):
    """Gibbs and Candès' update, on log-odds, in plain Python on what `predict_proba_one` says."""
    model, level = of_kind(kind, coverage=coverage), math.log(coverage / (1.0 - coverage))
    for i, (x, y) in enumerate(stream(kind)):
        p = model.predict_proba_one(x)
        p = {label: each[True] for label, each in p.items()} if kind == SETS else p
        least = 1.0 / (1.0 + math.exp(level)) if level < HIGHEST else 0.0
        members = {label for label in p if p[label] >= least}
        if kind == ORDERED and p:
            members |= {model.predict_one(x)}
            members = {label for label in p if min(members) <= label <= max(members)}
        elif kind != SETS and p:
            members |= {max(p, key=p.get)}
        found = model.predict_set_one(x)
        assert len(found) == len({*found}) and {*found} == members
        assert [p[label] for label in found] == sorted((p[label] for label in found), reverse=True)
        truth, w = {*y} if kind == SETS else {y}, [1.0, 0.5, 0.0, 3.0][i % 4]
        if truth <= p.keys():  # a new label moves nothing
            level = max(LOWEST, level + STEP * min(w, 1.0) * ((not truth <= members) - (1.0 - coverage)))
        model.learn_one(x, y, w)
        assert model.trainer.policy.conformal.level == pytest.approx(level, abs=1e-9)


@KINDS
def test_sets_are_the_same_one_by_one_and_many(kind, tmp_path):
    X, y = columns(kind)
    w = [[1.0, 2.0, 0.0][i % 3] for i in range(len(X))]
    one, sets = of_kind(kind, coverage=0.8), []
    for x, label, weight in zip(X, y, w, strict=True):
        sets.append(one.predict_set_one(x))
        one.learn_one(x, label, weight)
    assert one.trainer.policy.conformal.n > 0.0
    for size, threads in ((300, 1), (300, 3), (7, 1), (100, 2)):
        model, found = of_kind(kind, coverage=0.8), []
        for begin in range(0, 300, size):
            part = slice(begin, begin + size)
            found += model.predict_learn_many(X[part], y[part], w[part], threads=threads).sets
            model.save(tmp_path / "model")
            model = stream_pegasos.load(tmp_path / "model") if begin % 2 else pickle.loads(pickle.dumps(model))
        assert found == sets
        assert model.trainer.policy.conformal == one.trainer.policy.conformal
    assert copy.deepcopy(one).predictions(X, threads=2).sets == [one.predict_set_one(x) for x in X]
    with on_pure():
        pure = of_kind(kind, coverage=0.8)
        assert pure.predict_learn_many(X, y, w).sets == sets


@KINDS
def test_nothing_that_is_known_is_no_set(kind):
    model = of_kind(kind, coverage=0.8)
    assert model.predict_set_one("any") == [] and model.predictions(["any"] * 2).sets == [[], []]
    model.learn_one("any", y := LABELS[kind][0])
    assert model.predict_set_one("any") == ([*y] if kind == SETS else [y])
    if kind != SETS:
        model.learn_many(*columns(kind))
        model.trainer.policy.conformal = Coverage(0.8, LOWEST)
        assert all(model.predictions(columns(kind, 50, 1)[0]).sets)  # never an empty one


@given(
    st.lists(st.tuples(st.sampled_from(["over", "under", "known", "new"]), st.floats(0.0, 1.0))), st.floats(0.05, 0.99)
)
def test_no_sequence_is_missed_more_often_than_proved(sequence, coverage):
    """An adversary who sees the level has its misses, beside new labels, within a constant over the examples."""
    level, misses, n = Coverage.new(coverage), 0, 0
    for kind, p in sequence * 20:
        least = level.least
        p = {"over": least, "under": np.nextafter(least, -1.0) if least else 0.0, "known": p, "new": -1.0}[kind]
        before = level
        level, leasts = level.learned(np.array([p]), np.ones(1))
        assert leasts[0] == least and (kind != "new" or level == before)
        if kind != "new":
            misses, n = misses + (p < least), n + 1
    assert misses - (1.0 - coverage) * n <= (HIGHEST + STEP - LOWEST) / STEP
    assert LOWEST <= level.level <= HIGHEST + STEP
    if level.level > LOWEST and all(kind != "known" for kind, _ in sequence):
        assert Coverage.from_state(level.get_state(), coverage) == level


def test_the_share_that_is_held_is_the_one_asked_for_also_after_a_drift():
    """Labels are exchanged half-way: the model is sure of what is wrong."""
    X, y = map(list, zip(*synthetic(6_000, seed=1), strict=True))
    y = [*y[:3_000], *({"ham": "spam", "spam": "ham"}[label] for label in y[3_000:])]
    for coverage in (0.95, 0.99):
        sets = TextClassifier(classifier=AdaptiveClassifier(coverage=coverage)).predict_learn_many(X, y).sets
        held = np.array([label in members for label, members in zip(y, sets, strict=True)][2:])
        newest = np.convolve(held, np.ones(500) / 500.0, "valid")
        assert newest.min() >= coverage - 0.04 and held.mean() >= coverage - 0.01


@KINDS
def test_merged_levels_are_the_mean_by_what_each_part_learned(kind):
    base = of_kind(kind, coverage=0.8)
    base.learn_many(*columns(kind, 100))
    parts = [copy.deepcopy(base) for _ in range(3)]
    for i, part in enumerate(parts[:2]):
        part.learn_many(*columns(kind, 50 + 50 * i, seed=i + 1))
    before, *after = [each.trainer.policy.conformal for each in (base, *parts)]
    merged = merge(base, parts).trainer.policy.conformal
    n = [each.n - before.n for each in after]
    assert n[2] == 0.0 and merged.n == before.n + sum(n)
    assert merged.level == pytest.approx(np.average([each.level for each in after], weights=n))
    assert merge(base, [parts[0]]).trainer.policy.conformal == parts[0].trainer.policy.conformal


@KINDS
def test_a_coverage_is_asked_for_changed_and_left(kind):
    X, y = columns(kind)
    model, plain = of_kind(kind), of_kind(kind)
    plain.learn_many(X, y)
    with pytest.raises(ValueError, match=r"predict_set_one: a coverage must be asked for first, as by set_decision"):
        model.predict_set_one("any")
    assert model.predictions(X).sets is None
    model.set_decision(coverage=0.8)
    model.learn_many(X, y)
    assert model.weights == plain.weights and model.predict_many(X).tolist() == plain.predict_many(X).tolist()
    before, sets = model.trainer.policy.conformal, model.predictions(X).sets
    model.set_decision(coverage=0.95)
    assert all({*few} <= {*many} for few, many in zip(sets, model.predictions(X).sets, strict=True))
    model.set_decision(coverage=0.8)
    assert model.trainer.policy.conformal.level == pytest.approx(before.level)
    assert model.clone().predict_set_one("any") == []
    for wrong in (1.0, -0.1, 2, "0.9"):
        with pytest.raises((TypeError, ValueError), match="coverage"):
            model.set_decision(coverage=wrong)
    model.set_decision(coverage=0)
    assert model.predictions(X).sets is None
    plain.set_decision(coverage=0.9)  # begins with what is probable enough
    assert plain.trainer.policy.conformal.least == pytest.approx(0.1)
    with pytest.raises(TypeError, match="PegasosClassifier has no threshold"):
        PegasosClassifier().set_decision(coverage=0.9)


def test_a_row_and_a_copy_of_predictions_have_their_sets():
    X, y = columns(SEVERAL)
    model = of_kind(SEVERAL, coverage=0.8)
    said = model.predict_learn_many(X, y)
    assert pickle.loads(pickle.dumps(said)).sets == said.sets
    assert said.rows([3, 5, 200]).sets == [said.sets[row] for row in (3, 5, 200)]
