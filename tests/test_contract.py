"""What every estimator of the registry promises. What is special to one is tested beside it."""

import collections
import copy
import inspect
import itertools
import math
import os
import pickle
import random
import sys
import threading

import numpy as np
import orjson
import pandas as pd
import pytest
from estimators import CASES, COLUMNS, NAMES, ORDERED, SEVERAL, TWO, seen
from forging import innermost, put_together, take_apart
from interpreter import run
from river import active, checks, compose, preprocessing
from safetensors import safe_open
from safetensors.numpy import save as safetensors_save
from scipy import sparse
from tables import TABLES, as_dicts

import stream_pegasos
from stream_pegasos import HashedBagOfWords, TextClassifier, engine
from stream_pegasos.evaluation.prequential import predict
from stream_pegasos.learners.persistence import checksum, pack_names

pure = engine.NAME == "pure"
of_features = [case for case in CASES if case.of == "features"]
of_texts = [case for case in CASES if case.of != "features"]
saveable = [case for case in CASES if case.can_be_saved]


def for_each(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def after(case, *numbers):
    """Models that have learned so many examples."""
    return [case.trained(n) for n in numbers]


def many_of(case, X):
    """Examples as a model takes many of them."""
    return pd.DataFrame(X) if case.of == "fields" and len(X) else X


def bits(case, model):
    """The state that a model is saved with; all of it, where no file can hold it."""
    if not case.can_be_saved:
        return pickle.dumps(model)
    return bits_of(model.snapshot())


def bits_of(snapshot):
    return checksum({**snapshot.arrays, **pack_names(snapshot.names)}, snapshot.values)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def assert_close(model, expected):
    """What both have learned is the same, to rounding."""
    (classes, types, n, learned), (classes_too, types_too, n_too, learned_too) = seen(model), seen(expected)
    assert (classes, types, n) == (classes_too, types_too, n_too)
    assert flat(learned) == pytest.approx(flat(learned_too), rel=1e-7, abs=1e-9)


def flat(learned, at=()):
    """The numbers in nested dicts, lists and tuples, by where they stand; those of 0 are left out."""
    if isinstance(learned, (dict, list, tuple)):
        items = learned.items() if isinstance(learned, dict) else enumerate(learned)
        return {place: v for name, inner in items for place, v in flat(inner, (*at, name)).items()}
    return {at: learned} if learned else {}


# --- River ------------------------------------------------------------------------------------------------------------

# Those drop fields of an example, or take them for numbers. The features of a text are its words.
ABOUT_FIELDS = {
    "check_emerging_features",
    "check_disappearing_features",
    "check_radically_disappearing_features",
    "check_learn_many_matches_learn_one",
}
# And these want examples to be dicts, or data frames of them.
ABOUT_DICTS = {
    "check_shuffle_features_no_impact",
    "check_no_state_aliasing_with_input",
    "check_predict_many_matches_predict_one",
    "check_predict_proba_many_matches_predict_proba_one",
}


def texts_for(case):
    """Streams for River's checks: its own have no text."""

    def rows_for(model, scale=1):
        for as_numpy in (False, True):
            rows = []
            for i, (x, y) in enumerate(case.stream(200 * scale)):
                label = y == "spam" if case.classes == TWO else case.labels.index(y)
                x = {**x, "a": float(i), "b": "b", "c": True} if case.of == "fields" else x
                rows.append((x, np.bool_(label) if as_numpy and case.classes == TWO else label))
            yield rows

    return rows_for


def labels_of(check):
    try:
        return {type(y) for _, y in getattr(check, "keywords", {}).get("dataset", [])}
    except TypeError:
        return set()


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.heavy)])
@for_each(CASES)
def test_rivers_checks(case, every, monkeypatch):
    """All of them for a case without options, otherwise one in four, other ones for the next case."""
    model, passed_over = case.make(), set()
    assert not model._unit_test_skips()  # as River calls it
    if case.of != "features":
        monkeypatch.setattr(checks, "_yield_datasets", texts_for(case))
        passed_over = ABOUT_FIELDS | (ABOUT_DICTS if case.of == "texts" else set())
    if case.option("max_features"):
        passed_over = passed_over | {"check_shuffle_features_no_impact"}  # of equal features the last are forgotten
    random.seed(0)  # which River shuffles with
    n_passed, all_checks = 0, list(checks.yield_checks(model))
    for check in all_checks[CASES.index(case) % every :: every] if "," in case.name else all_checks:
        if check.__name__ in passed_over or (case.classes == ORDERED and str in labels_of(check)):
            continue
        try:
            check(model.clone({"pos_label": True}) if case.pos_label else case.make())
        except BaseException as error:
            error.add_note(f"in {check.__name__}")
            raise
        n_passed += 1
    assert n_passed >= 4


@for_each(of_features)
def test_in_a_pipeline(case):
    """What River's scaler gives is learned, one by one."""
    model, scaler, alone = preprocessing.StandardScaler() | case.make(), preprocessing.StandardScaler(), case.make()
    for x, y in case.stream(60, names=NAMES[:2]):
        x = {"a": 0.0, "b": 1.0, **x}
        assert model.predict_one(x) == alone.predict_one(scaler.transform_one(x))
        model.learn_one(x, y)
        scaler.learn_one(x)
        alone.learn_one(scaler.transform_one(x), y)
    assert seen(list(model.steps.values())[-1]) == seen(alone)
    assert type(alone).__name__ in repr(model)


@for_each(of_texts)
def test_texts_in_a_pipeline(case):
    model, alone = compose.FuncTransformer(lambda x: x) | case.make(), case.make()
    for x, y in case.stream(40):
        assert model.predict_one(x) == alone.predict_one(x)
        model.learn_one(x, y)
        alone.learn_one(x, y)
    assert seen(list(model.steps.values())[-1]) == seen(alone)


# --- many at once -----------------------------------------------------------------------------------------------------


@for_each(CASES)
def test_many_at_once_give_the_same_bits(case):
    """However a stream is cut into calls."""
    X, y = case.columns(90)
    w = [[1.0, 2.0, 0.0, 1.0][i % 4] for i in range(90)]
    one, many, pieces, prequential = (case.make() for _ in range(4))
    before = []
    for x, label, weight in zip(X, y, w, strict=True):
        before.append((one.predict_one(x), one.decision_function_one(x)))
        one.learn_one(x, label, weight)
    many.learn_many(many_of(case, X), y, w)
    for begin in range(0, 90, 7):
        part = slice(begin, begin + 7)
        pieces.learn_many(iter(X[part]) if case.of != "fields" else many_of(case, X[part]), y[part], np.array(w[part]))
    told = prequential.predict_learn_many(many_of(case, X), pd.Series(y, dtype=object), tuple(w))
    assert bits(case, many) == bits(case, one)
    assert bits(case, pieces) == bits(case, one)
    assert bits(case, prequential) == bits(case, one)
    if case.classes == TWO:
        assert told.tolist() == close([margin for _, margin in before])
    elif case.classes == SEVERAL:
        expected = [list(margins.values()) for _, margins in before]
        assert told.tolist() == [close(row + [-math.inf] * (len(case.labels) - len(row))) for row in expected]
    else:
        assert told.tolist() == [label for label, _ in before]


@for_each(of_features)
def test_any_table_is_learned_as_its_rows(case, unchanged):
    dicts, y = case.columns(40, names=COLUMNS)
    X = np.array([[x.get(j, 0.0) for j in COLUMNS] for x in dicts])
    w = np.array([[1.0, 0.0, 3.0][i % 3] for i in range(40)])
    one, before = case.make(), []
    for x, label, weight in zip(as_dicts(X), y, w.tolist(), strict=True):
        before.append(one.decision_function_one(x))
        one.learn_one(x, label, weight)
    for kind, given_as in TABLES.items():
        many, given, labels = case.make(), given_as(X), np.array(y, dtype=object)
        keeps = unchanged(labels, w, *([given] if kind != "generator" else []))
        with keeps:
            told = many.predict_learn_many(given, labels, w)
        if case.classes == TWO:
            assert told.tolist() == close(before), kind
        assert_close(many, one)
        answers = many.predict_many(given_as(X))
        assert list(answers) == [many.predict_one(x) for x in as_dicts(X)], kind
        probabilities = many.predict_proba_many(given_as(X))
        expected = [list(many.predict_proba_one(x).values()) for x in as_dicts(X)]
        assert np.asarray(probabilities).tolist() == [close(row) for row in expected], kind
        if "frame" in kind:
            assert list(answers.index) == list(probabilities.index) == list(given.index)
            assert list(probabilities.columns) == list(many.predict_proba_one({}))
        margins = [many.decision_function_one(x) for x in as_dicts(X)]
        rows = [list(margin.values()) if isinstance(margin, dict) else margin for margin in margins]
        assert many.decision_function_many(given_as(X)).tolist() == [close(row) for row in rows], kind


@for_each(of_texts)
def test_any_sequence_of_texts_is_learned_as_its_texts(case):
    X, y = case.columns(40)
    one = case.trained(40)
    frame = pd.DataFrame(X if case.of == "fields" else {"text": X}, index=[f"row {i % 7}" for i in range(40)])
    given = frame if case.of == "fields" else frame["text"]
    for kind in (lambda: given, lambda: iter(X), lambda: tuple(X), lambda: np.array(X, dtype=object)):
        many = case.make()
        many.learn_many(kind(), np.array(y, dtype=object))
        assert bits(case, many) == bits(case, one)
        assert list(many.predict_many(kind())) == [many.predict_one(x) for x in X]
        expected = [list(many.predict_proba_one(x).values()) for x in X]
        assert np.asarray(many.predict_proba_many(kind())).tolist() == [close(row) for row in expected]
    if case.of == "fields":
        assert list(one.predict_many(frame).index) == list(one.predict_proba_many(frame).index) == list(frame.index)


@for_each(CASES)
def test_nothing_at_once_is_nothing(case, unchanged):
    for model in after(case, 0, 20):
        n = len(model.predict_proba_one(case.example([])))
        with unchanged(model):
            empty = [[], (), iter([])]
            empty += [sparse.csr_matrix((0, 5)), pd.DataFrame({"a": []})] if case.of == "features" else []
            for nothing in empty:
                assert len(model.predict_learn_many(nothing, [])) == 0
            assert model.predict_many([]).tolist() == []
            assert model.predict_proba_many([]).shape == (0, n)
            assert len(model.decision_function_many([])) == 0


@for_each(of_features)
def test_frames_without_columns(case):
    for model in after(case, 0, 20):
        frame = pd.DataFrame(index=[5, 6])
        assert list(model.predict_many(frame).index) == list(model.predict_proba_many(frame).index) == [5, 6]
        assert model.predict_many(frame).tolist() == [model.predict_one({})] * 2


@for_each(CASES)
def test_before_anything_is_learned(case):
    model, x = case.make(), case.example(["a"])
    one = model.predict_one(x)
    assert one is (False if case.classes == TWO and None not in model.classes else one)
    assert one in (None, False)
    assert model.predict_many(many_of(case, [x, x])).tolist() == [one, one]
    probabilities = model.predict_proba_one(x)
    assert set(probabilities.values()) <= {0.5}
    assert model.predict_proba_many(many_of(case, [x, x])).shape == (2, len(probabilities))
    assert model.decision_function_one(x) == (0.0 if case.classes == TWO else {})
    assert model.n_iterations == 0 and not flat(seen(model)[-1])
    assert [label for label in model.classes if label is not None] == [case.pos_label] * bool(case.pos_label)


@for_each([case for case in CASES if case.classes == TWO and not case.pos_label and not case.option("initializer")])
def test_labels_that_exchange(case):
    """1 is taken for the positive one until 2 comes; a model that knew it from the start is the same, to rounding."""
    X, y = case.columns(60)
    y = [1] * 9 + [1 + (label == "spam") for label in y[9:]]
    assert y[9:].count(2) > 9
    model, many, expected = case.make(), case.make(), case.make()
    expected.learn_many(many_of(case, X), ["ham" if label == 1 else "spam" for label in y])
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
    many.learn_many(many_of(case, X), y)
    for made in (model, many):
        assert made.classes == (1, 2)
        if not isinstance(case.option("class_weight"), dict):  # which knows the labels by name
            assert flat(seen(made)[-1]) == pytest.approx(flat(seen(expected)[-1]), rel=1e-9, abs=1e-12)


weighting = [case for case in of_features if "class_weight" in inspect.signature(type(case.make())).parameters]


@for_each([case for case in weighting if case.option("drift_detector") is None])
def test_balanced(case, tmp_path):
    """N / (K · n) for each label, with all counted anew for each example, times the weight of the example."""
    X, y = case.columns(90)
    w = [1.0 + (i % 3) for i in range(90)]
    balanced = [(i + 1) / (len(set(y[: i + 1])) * y[: i + 1].count(label)) for i, label in enumerate(y)]
    expected = case.make().clone({"class_weight": None})
    expected.learn_many(X, y, [a * b for a, b in zip(balanced, w, strict=True)])
    one, many = (case.make().clone({"class_weight": "balanced"}) for _ in range(2))
    for example in zip(X[:50], y[:50], w[:50], strict=True):
        one.learn_one(*example)
    many.learn_many(X[:50], y[:50], w[:50])
    copies = [one, many, pickle.loads(pickle.dumps(many)), copy.deepcopy(many)]
    if case.can_be_saved:
        many.save(tmp_path / "model")
        copies.append(stream_pegasos.load(tmp_path / "model"))
    for model in copies:
        model.learn_many(X[50:], y[50:], w[50:])
        assert seen(model) == seen(expected)


@for_each([case for case in weighting if isinstance(case.option("class_weight"), dict)])
def test_a_class_weight_is_a_weight_of_its_examples(case):
    weight_of, (X, y) = case.option("class_weight"), case.columns(60)
    model, many, expected = case.make(), case.make(), case.make().clone({"class_weight": None})
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label, 2.0)
        expected.learn_one(x, label, 2.0 * weight_of.get(label, 1.0))
    many.learn_many(X, y, 2.0)
    assert seen(model) == seen(many) == seen(expected)


# --- bad input --------------------------------------------------------------------------------------------------------


class Weird:
    def __float__(self):
        raise OSError("no number today")


BAD_VALUES = [math.nan, math.inf, -math.inf, 1e300, -1.1e45, None, "1", "", b"1", [1.0], {}, 1j, object(), Weird()]
BAD_VALUES += [np.array([1.0, 2.0]), np.float64("nan"), np.str_("1"), 10**400, pd.NA, pd.NaT]
BAD_NAMES = [1.5, None, (1, 2.5), ("a", None), b"a", frozenset(), math.nan, np.float64(1.5), (("a",), 1j)]
BAD_WEIGHTS = [-1.0, -1e-300, math.nan, math.inf, 1.1e30, None, "1", [1.0], np.array([1.0, 1.0]), {}, 1j]
BAD_LABELS = [None, math.nan, 0.5, b"spam", [1], {}, (1,), np.datetime64("now")]
BAD_EXAMPLES = [None, 5, "text", b"text", [("a", 1.0)], [1.0, 2.0], ("a",), {"a"}, np.ones(3), pd.Series({"a": 1.0})]
BAD_TEXTS = [None, 5, math.nan, b"text", ["text"], {"body": "x"}, ("a",), np.array("x"), object()]
REFUSALS = (TypeError, ValueError, OSError, OverflowError)
STATES = (0, 1, 10)  # after so many examples; with batches, in the middle of one


def refused(model, X, y, w=1.0, match=None):
    """Learning these in one call raises."""
    for given in (X, iter(X)):
        with pytest.raises(REFUSALS, match=match):
            model.learn_many(given, y, w)
    with pytest.raises(REFUSALS, match=match):
        model.predict_learn_many(tuple(X), y, w)


@for_each(of_features)
def test_names_of_what_is_not_kept_are_forgotten(case):
    """An example that teaches nothing brings a new name each time, one by one and at once."""
    known, another = case.labels[:2]
    one, many = case.make(), case.make()
    for model in (one, many):
        for _ in range(40):
            model.learn_one({"a": 1.0, "b": -1.0}, known)
            model.learn_one({"a": -1.0, "b": 1.0}, another)
    rows = [{"a": 1.0, f"new {i}": 1e-9} for i in range(3_000)]
    for x in rows:
        one.learn_one(x, known)
    many.learn_many(rows, [known] * len(rows))
    for model in (one, many):
        snapshot = model.snapshot() if case.can_be_saved else None
        n_features = len({*snapshot.arrays["keys"].tolist()}) if snapshot else len(model.support_vectors)
        if snapshot and n_features < 100:  # or else the names stand for what was learned
            exact = isinstance(model, stream_pegasos.AdaptiveClassifier)
            assert len(snapshot.names) <= (n_features if exact else 4 * n_features + 1_000)
    assert bits(case, one) == bits(case, many) or not case.can_be_saved


@for_each(CASES)
def test_one_label_leaves_room_for_others(case):
    """Laplace's rule of succession: after n examples of one label, n + 1 in n + 2."""
    if case.pos_label not in (None, case.labels[0]):
        return  # the other label is known
    model, x = case.make(), case.example(["a"])
    for n in range(1, 8):
        model.learn_one(x, case.labels[0])
        probabilities = model.predict_proba_one(case.example(["b"]))
        assert list(probabilities) == [case.labels[0], None]
        assert sum(probabilities.values()) == pytest.approx(1.0) and 0.5 <= probabilities[case.labels[0]] < 1.0
        if case.option("batch_size") in (None, 1):
            assert probabilities[case.labels[0]] == pytest.approx((n + 1) / (n + 2))
        many = model.predict_proba_many(many_of(case, [x, x]))
        assert np.asarray(many).tolist() == [pytest.approx(list(probabilities.values()))] * 2
        assert model.predict_one(x) in (case.labels[0], None)


@for_each([case for case in CASES if case.classes == TWO])
def test_a_sampler_asks_for_labels_of_any_kind(case):
    """It asks for no fewer where they are text than where they are bools, more or less."""
    asked = []
    for labels in ((False, True), case.labels):
        model = case.make()
        if case.pos_label:
            model = model.clone({"pos_label": labels[case.labels.index(case.pos_label)]})
        sampler, n = active.EntropySampler(model, discount_factor=1, seed=1), 0
        for x, y in case.stream(200):
            _, ask = sampler.predict_one(x)
            if ask:
                sampler.learn_one(x, labels[case.labels.index(y)])
                n += 1
        asked.append(n)
        assert set(model.classes) == set(labels)
    assert asked[1] > 5 and asked[1] >= 0.75 * asked[0] - 5


@for_each(of_features)
def test_bad_examples_leave_everything_as_it_was(case, unchanged):
    named = [("today" if isinstance(bad, Weird) else "bad", bad) for bad in BAD_VALUES]
    bad_ones = [({"new": 1.0, "bad": bad, "newer": 2.0}, match) for match, bad in named]
    bad_ones += [({2**60 + 5: bad}, None) for bad in BAD_VALUES]
    bad_ones += [({"new": 1.0, bad: 0.0}, "name") for bad in BAD_NAMES]
    bad_ones += [(bad, "dict") for bad in BAD_EXAMPLES]
    good = [{"new": 1.0}, {"newer": 1.0, 5: 2.0}]
    known, another = case.labels[:2]
    for model in after(case, *STATES):
        with unchanged(model):
            for i, (x, match) in enumerate(bad_ones):
                for label in (known, another):
                    with pytest.raises(REFUSALS, match=match):
                        model.learn_one(x, label)
                for call in (model.predict_one, model.predict_proba_one, model.decision_function_one):
                    with pytest.raises(REFUSALS, match=match):
                        call(x)
                X = [*good]
                X.insert(i % 3, x)
                with pytest.raises(REFUSALS, match=match):
                    [model.learn_many, model.predict_learn_many][i % 2](X, [known, another, known])
                with pytest.raises(REFUSALS, match=match):
                    [model.predict_many, model.predict_proba_many, model.decision_function_many][i % 3](X)


@for_each(of_features)
def test_bad_tables_leave_everything_as_it_was(case, unchanged):
    known, another = case.labels[:2]
    y = [known, another, known]
    for model in after(case, *STATES):
        with unchanged(model):
            for bad, position in itertools.product((math.nan, math.inf, 1e300), range(3)):
                matrix = sparse.csr_matrix(np.eye(3, 5))
                matrix.data[position] = bad
                for learn in (model.learn_many, model.predict_learn_many):
                    with pytest.raises(ValueError, match="column"):
                        learn(matrix, y)
                    with pytest.raises(ValueError):
                        learn(pd.DataFrame.sparse.from_spmatrix(matrix), y)
                    with pytest.raises(ValueError):
                        learn(pd.DataFrame(matrix.toarray()), y)
            for array, damage in (
                ("indptr", [0, 1, 2, 10**6]),
                ("indptr", [0, 3, 1, 3]),
                ("indptr", [1, 1, 2, 3]),
                ("indptr", [0, -5, 2, 3]),
                ("indices", [0, -5, 2]),
                ("indices", [0, 3, 2]),  # beyond the last column
                ("indices", [0, 1]),
                ("data", [1.0, 2.0]),
            ):
                matrix = sparse.csr_matrix(np.eye(3))
                setattr(matrix, array, np.array(damage, getattr(matrix, array).dtype))
                with pytest.raises(ValueError):
                    model.learn_many(matrix, y)
                with pytest.raises(ValueError):
                    model.predict_many(matrix)
            # Beyond, columns would be taken for names, and the first of these for an empty place in a table.
            for column in (1018231460777725123, 1 << 60, 1 << 62):
                with pytest.raises(ValueError):
                    model.learn_many(sparse.csr_matrix(([1.0], [column], [0, 1]), shape=(1, column + 1)), [known])
                matrix = sparse.csr_matrix(([1.0], [0], [0, 1]), shape=(1, 1 << 53))
                matrix.indices = np.array([column])
                with pytest.raises(ValueError, match="columns"):
                    model.learn_many(matrix, [known])
            for table in (sparse.eye(3, format="csr"), pd.DataFrame(np.eye(3))):
                with pytest.raises(ValueError, match="labels for 3 examples"):
                    model.learn_many(table, [known])
                with pytest.raises(ValueError, match="weights for 3 examples"):
                    model.predict_learn_many(table, y, [1.0, 1.0])
            with pytest.raises(TypeError, match="complex"):
                model.learn_many(sparse.csr_matrix(np.array([[1 + 2j]])), [known])
            with pytest.raises(TypeError, match="dense array"):
                model.learn_many(np.eye(3), y)


@for_each(of_texts)
def test_bad_texts_leave_everything_as_it_was(case, unchanged):
    good = [case.example(["new", "words"]), case.example(["more"])]
    known, another = case.labels[:2]
    for model in after(case, *STATES):
        with unchanged(model):
            for i, bad in enumerate([*BAD_TEXTS, *([{"text": None}, ["text"]] if case.of == "fields" else [])]):
                for call in (model.predict_one, model.predict_proba_one, model.decision_function_one):
                    with pytest.raises(REFUSALS, match="text"):
                        call(bad)
                for label in (known, another):
                    with pytest.raises(REFUSALS, match="text"):
                        model.learn_one(bad, label)
                X = [*good]
                X.insert(i % 3, bad)
                refused(model, X, [known, another, known], match="text")
                for predict in (model.predict_many, model.predict_proba_many, model.decision_function_many):
                    with pytest.raises(REFUSALS, match="text"):
                        predict(X)
            with pytest.raises(TypeError):
                model.learn_many(sparse.eye(3, format="csr"), [known, another, known])


@for_each(CASES)
def test_bad_labels_weights_and_lengths_leave_everything_as_it_was(case, unchanged):
    X = [case.example([f"new{i}", "words"]) for i in range(3)]
    known, another = case.labels[:2]
    for model in after(case, *STATES):
        with unchanged(model):
            for i, bad in enumerate(BAD_LABELS):
                with pytest.raises(REFUSALS, match="label"):
                    model.learn_one(X[0], bad)
                y = [known, another, known]
                y[i % 3] = bad
                refused(model, X, y, match="label")
            if case.classes == TWO:
                refused(model, X, [*case.labels, "third"], match="third|Multiclass")
            for i, bad in enumerate(BAD_WEIGHTS):
                for label in (known, another):
                    with pytest.raises((TypeError, ValueError)):
                        model.learn_one(X[0], label, w=bad)
                w = [1.0, 2.0, 0.0]
                w[i % 3] = bad
                refused(model, X, [known, another, known], w)
            for y in ([], [known], [known] * 4, np.array([known])):
                refused(model, X, y, match="labels for 3 examples")
            for w in ([], [1.0], [1.0] * 4, np.ones(2)):
                refused(model, X, [known, another, known], w, match="weights for 3 examples")
            refused(model, X, [known] * 3, np.ones((3, 2)))
            for single in ("spam", b"spam", {"spam": 1}, 1.0, None):
                with pytest.raises(TypeError, match="y must be a sequence of labels, not a single"):
                    model.learn_many(X, single)
            for single in ({"text": "a"}, "text", b"text"):
                for call in (model.predict_many, model.predict_proba_many, model.decision_function_many):
                    with pytest.raises(TypeError, match="sequence of"):
                        call(single)
                with pytest.raises(TypeError, match="sequence of"):
                    model.learn_many(single, [known])
            with pytest.raises(TypeError):
                model.learn_many(None, [known])


# --- what must not change ---------------------------------------------------------------------------------------------


@for_each(CASES)
def test_predicting_changes_nothing(case, unchanged):
    X, _ = case.columns(20, seed=9)
    X += [case.example([]), case.example(["unheard", "of"])]
    given = [X] if case.of != "features" else [X, sparse.eye(9, format="csr"), pd.DataFrame(np.eye(9))]
    for model in after(case, 0, 1, 40):
        with unchanged(model, X):
            for x in X:
                model.predict_one(x)
                model.predict_proba_one(x)
                model.decision_function_one(x)
            for many in given:
                model.predict_many(many)
                model.predict_proba_many(many)
                model.decision_function_many(many)
            seen(model), repr(model), model._memory_usage


@for_each(CASES)
def test_learning_never_changes_its_input(case, unchanged):
    X, y = case.columns(30)
    w = [1.0] * 30
    model = case.make()
    with unchanged(X, y, w, getattr(getattr(model, "classifier", model), "class_weight", None)):
        model.learn_one(X[0], y[0])
        model.learn_many(X, y, w)
        model.predict_learn_many(X, y, w)


@for_each([case for case in CASES if case.has_weights])
def test_weights_are_a_copy(case):
    model = case.trained()
    before = copy.deepcopy(model.weights)
    model.weights.clear()
    assert model.weights == before and flat(before)


@for_each(CASES)
def test_any_dict_and_any_number_is_taken(case):
    """Counters and other dicts; NumPy's numbers as values, names, labels and weights."""
    plain, strange = case.make(), case.make()
    for i, (x, y) in enumerate(case.stream(30, names=["a", "b", 3, 7])):
        if case.of == "features":
            x = {name: float(round(v)) for name, v in x.items()}
            kind = [collections.Counter, collections.OrderedDict, lambda x: collections.defaultdict(int, x)][i % 3]
            number = [int, np.float32, np.int8, np.longdouble][i % 4]
            other = kind({np.int64(n) if isinstance(n, int) else np.str_(n): number(v) for n, v in x.items()})
        else:
            other = collections.OrderedDict(x) if case.of == "fields" else np.str_(x)
        plain.learn_one(x, y, 2.0)
        strange.learn_one(other, np.array([y])[0], [2, np.float32(2), np.int64(2)][i % 3])
        assert strange.decision_function_one(other) == plain.decision_function_one(x)
    assert seen(strange) == seen(plain)


# --- probabilities ----------------------------------------------------------------------------------------------------


@for_each(CASES)
def test_probabilities_and_predictions_agree(case):
    model = case.trained(60)
    decides = case.option("threshold") in (None, 0.5) and case.option("max_false_positive_rate") is None
    for x, _ in case.stream(40, seed=3):
        probabilities, margins, label = model.predict_proba_one(x), model.decision_function_one(x), model.predict_one(x)
        assert list(probabilities) == list(model.classes)
        assert all(0.0 <= p <= 1.0 for p in probabilities.values())
        assert sum(probabilities.values()) == pytest.approx(1.0, rel=1e-12)
        if decides:
            assert probabilities[label] == max(probabilities.values())
            if case.classes == TWO:
                assert label == model.classes[margins > 0.0]
                assert (probabilities[model.classes[1]] > 0.5) == (margins > 0.0)
        if case.classes == SEVERAL:
            assert margins[label] == max(margins.values())


@for_each(of_features)
@pytest.mark.parametrize("size", [1e45, 1e-200, 5e-324])
def test_values_of_any_size_leave_everything_finite(case, size, tmp_path):
    if "polynomial" in case.name or case.name == "kernel, in Python":
        size = min(size, 1e10)  # its powers must be numbers too
    model = case.make()
    labels = case.labels
    for i in range(30):
        x = {"x": size, "y": -size, i % 5: size, "z": -1.0}
        probabilities = model.predict_proba_one(x)
        assert all(0.0 <= p <= 1.0 for p in probabilities.values())
        assert not probabilities or sum(probabilities.values()) == pytest.approx(1.0)
        margins = model.decision_function_one(x)
        assert np.isfinite(list(margins.values()) if isinstance(margins, dict) else margins).all()
        model.learn_one(x, labels[i % len(labels)], w=1e30 if i % 3 else 1e-300)
    assert all(map(math.isfinite, flat(seen(model)[-1]).values()))
    if case.can_be_saved:
        model.save(tmp_path / "model")
        assert seen(stream_pegasos.load(tmp_path / "model")) == seen(model)


@for_each(CASES)
@pytest.mark.parametrize("w", [1.0, 0.0, 1e30])
def test_streams_without_news_leave_everything_finite(case, w):
    """One class alone, the same example with every label, examples of nothing."""
    a, nothing = case.example(["a"]), case.example([])
    for X, labels in (([a], case.labels[:1]), *((X, case.labels) for X in ([a], [nothing], [a, nothing]))):
        model, n = case.make(), 20 * len(labels)
        model.learn_many(many_of(case, (X * n)[:n]), list(labels) * 20, w)
        probabilities = model.predict_proba_many(many_of(case, X))
        assert ((np.asarray(probabilities) >= 0.0) & (np.asarray(probabilities) <= 1.0)).all()
        assert np.isfinite(model.decision_function_many(many_of(case, X))).all()
        assert all(map(math.isfinite, flat(seen(model)[-1]).values()))


# --- copies and files -------------------------------------------------------------------------------------------------


def through_a_file(model, path):
    model.save(path)
    return stream_pegasos.load(path)


COPIES = {
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "oldest pickle": lambda model, path: pickle.loads(pickle.dumps(model, 2)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "clone": lambda model, path: model.clone(include_attributes=True),
    "file": through_a_file,
    "file of its class": lambda model, path: type(model).load(str(through_a_file(model, path) and path)),
}


def copies(case):
    for how in COPIES:
        if (case.can_be_saved or "file" not in how) and (how != "clone" or case.of == "features"):
            yield how  # a text model's parts are parameters, and are cloned as such


COPIED = [pytest.param(case, how, id=f"{case.name}-{how}") for case in CASES for how in copies(case)]


@pytest.mark.parametrize("case, how", COPIED)
def test_copies_go_on_alike_and_apart(case, how, tmp_path):
    for n in (0, 1, 4, 40):
        model = case.trained(n)
        other = COPIES[how](model, tmp_path / "model")
        assert type(other) is type(model) and repr(other) == repr(model) and seen(other) == seen(model)
        untouched = bits(case, other)
        assert untouched == bits(case, model)
        if "file" in how and case.option("drift_detector"):
            continue  # what the detector has seen is not in the file
        for x, _ in case.stream(20, seed=1):
            assert other.predict_proba_one(x) == model.predict_proba_one(x)
        for x, y in case.stream(20, seed=1):
            model.learn_one(x, y)
        assert bits(case, other) == untouched
        for x, y in case.stream(20, seed=1):
            other.learn_one(x, y)
        for made in (model, other):
            made.flush()
        assert bits(case, other) == bits(case, model)


@for_each(CASES)
def test_clones_know_nothing(case):
    model = case.trained()
    clone = model.clone()
    assert clone.n_iterations == 0 and not flat(seen(clone)[-1])
    assert bits(case, clone) == bits(case, case.make())
    for x, y in case.stream(20):
        clone.learn_one(x, y)
    assert seen(clone) == seen(case.trained(20))


@for_each(saveable)
def test_a_saved_model_is_the_same_file_each_time(case, tmp_path, unchanged):
    model, path, again = case.trained(), tmp_path / "model", tmp_path / "again"
    with unchanged(model):
        model.save(path)
    for _ in range(3):
        stream_pegasos.load(path).save(again)
        assert again.read_bytes() == path.read_bytes()
    with safe_open(path, "numpy") as file:  # so other programs read it as well
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        assert path.read_bytes() == safetensors_save(arrays, file.metadata())


@for_each(saveable)
def test_the_class_that_loads_is_the_class_that_was_saved(case, tmp_path):
    model = case.trained(5)
    model.save(tmp_path / "model")
    for other in {type(case.make()) for case in CASES} - {type(model)}:
        with pytest.raises(ValueError, match=f"holds a {type(model).__name__}, not a {other.__name__}"):
            other.load(tmp_path / "model")


@for_each(saveable)
def test_a_snapshot_stands_still_while_its_model_learns(case, tmp_path):
    model = case.make()
    calls = calls_of(case)
    for n, (X, y) in enumerate(calls[:-5]):
        learn(model, X, y)
        snapshot = model.snapshot()
        before = bits_of(snapshot)
        for more in calls[n + 1 : n + 6]:
            learn(model, *more)
        assert bits_of(snapshot) == before


@for_each(saveable)
def test_files_of_version_1_are_read(case, tmp_path):
    """They had the state and the names of features in the header."""
    model = case.trained(40)
    model.save(tmp_path / "new")
    arrays, header = take_apart(tmp_path / "new")
    header |= {"format_version": 1, "checksum": checksum(arrays, header["state"])}
    metadata = {"stream_pegasos": orjson.dumps(header).decode()}
    (tmp_path / "old").write_bytes(safetensors_save(arrays, metadata))
    loaded = stream_pegasos.load(tmp_path / "old")
    assert bits(case, loaded) == bits(case, model)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "new").read_bytes()


@for_each(saveable)
def test_the_header_of_a_file_does_not_grow(case, tmp_path):
    """It may have 100 MB, beyond which a file can be written and never read."""
    model, path = case.make(), tmp_path / "model"
    sizes = []
    for i in (0, 1000):
        X = [case.example([f"word {i + j} {'long ' * 20}" for j in range(1 + i)]) for _ in range(3)]
        model.learn_many(many_of(case, X), case.labels[:3] if case.classes != TWO else [*case.labels, case.labels[0]])
        model.save(path)
        sizes.append(int.from_bytes(path.read_bytes()[:8], "little"))
    assert sizes[1] <= sizes[0] + 200 < 4_000  # the digits of sizes and places


def refuses(path):
    with pytest.raises(ValueError) as error:
        stream_pegasos.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


@for_each(saveable)
def test_damaged_files_are_refused_or_harmless(case, tmp_path):
    """Each byte changed, one at a time, and ends cut off or added."""
    model, path = case.trained(3), tmp_path / "model"
    model.save(path)
    content, expected = path.read_bytes(), seen(model)
    with path.open("r+b", buffering=0) as file:  # in place, as new files take long
        for i in range(len(content)):
            change = (0x01, 0x04, 0x10, 0x20, 0x80, 0xFF)[i % 6]
            os.pwrite(file.fileno(), bytes([content[i] ^ change]), i)
            try:
                loaded = stream_pegasos.load(path)
            except ValueError as error:
                assert "\n" not in str(error)
            else:  # padding
                assert seen(loaded) == expected, i
            os.pwrite(file.fileno(), content[i : i + 1], i)
        assert seen(stream_pegasos.load(path)) == expected
        for more in (content, b"x" * 8, b" ", b"\0"):
            file.truncate(len(content))
            os.pwrite(file.fileno(), more, len(content))
            refuses(path)
        for n in (len(content) - 1, *range(len(content) // 31 * 31, -1, -31)):
            file.truncate(n)
            refuses(path)


def forgeries(arrays, state):
    """Changes of the arrays and of the state of a saved model, none of which any model can have."""
    for name in arrays:
        yield f"without {name}", lambda a, s, name=name: a.pop(name)
        if not arrays[name].size:
            continue
        yield f"{name} shorter", lambda a, s, name=name: a.update({name: a[name][:-1]})
        yield f"{name} folded", lambda a, s, name=name: a.update({name: a[name].reshape(1, *a[name].shape)})
        yield f"{name} of 32 bits", lambda a, s, name=name: a.update({name: a[name].astype(np.float32)})
        if arrays[name].dtype == np.float64:
            for bad in (math.nan, math.inf, -math.inf):
                yield f"{bad} in {name}", lambda a, s, name=name, bad=bad: np.copyto(a[name].ravel()[:1], bad)
        else:
            yield f"{name} as floats", lambda a, s, name=name: a.update({name: a[name].view(np.float64)})
            yield f"huge {name}", lambda a, s, name=name: np.copyto(a[name].ravel()[:1], (1 << 62) + 5)
    for place, value in places(state):
        if "parameters" in place or "features" in place:
            bads = [{"code": "1+1"}, {"dict": 5}, {"int": "zz"}]
        elif place[-1] in ("negative", "positive", "kind"):
            bads = [1.5, {"list": []}, {"str": "zz"}]
        elif isinstance(value, (int, float)):
            bads = [None, "3x", [], {}, {"str": "00"}, *([1e308] if "learner" in place else [])]
        else:
            bads = [None, 5, *([[]] if isinstance(value, dict) else ["3x"] if value else [])]
        for bad in bads:
            yield f"{bad} at {place}", lambda a, s, place=place, bad=bad: put(s, place, bad)
    yield "an unknown parameter", lambda a, s: innermost(s)["parameters"].update(unknown=1)
    for name in {*state, *innermost(state)} - {"kind"}:  # without which it is a PegasosClassifier
        yield f"without {name}", lambda a, s, name=name: (s.pop(name, None), innermost(s).pop(name, None))


def places(state, at=()):
    """What stands in the state by name, and where."""
    for name, value in state.items():
        yield (*at, name), value
        if isinstance(value, dict) and "parameters" not in at and "features" not in at:
            yield from places(value, (*at, name))


def put(state, place, value):
    *folders, name = place
    for folder in folders:
        state = state[folder]
    state[name] = value


@for_each(saveable)
def test_forged_files_are_refused(case, tmp_path):
    """With a checksum to fit."""
    path = tmp_path / "model"
    case.trained(40).save(path)
    arrays, header = take_apart(path)
    wrong = []
    for what, change in forgeries(arrays, header["state"]):
        changed, state = {name: array.copy() for name, array in arrays.items()}, copy.deepcopy(header["state"])
        change(changed, state)
        put_together(path, changed, header | {"state": state})
        try:
            refuses(path)
        except BaseException as error:
            wrong.append((what, repr(error)[:100]))
    print(*wrong, sep="\n")
    assert not wrong


# --- in every process, on both engines, in many threads ---------------------------------------------------------------


def test_the_same_stream_gives_the_same_file_in_every_process(tmp_path):
    code = f"""
        import hashlib, json, pathlib, pickle
        from estimators import CASES
        path, digests = pathlib.Path({str(tmp_path / "model")!r} + SEED), {{}}
        for case in CASES:
            model = case.trained(60)
            if case.can_be_saved:
                model.save(path)
            made = path.read_bytes() if case.can_be_saved else pickle.dumps(model)
            digests[case.name] = hashlib.sha256(made).hexdigest()
        print(json.dumps(digests))
    """
    one, other = (run(code.replace("SEED", repr(seed)), PYTHONHASHSEED=seed) for seed in ("1", "31337"))
    assert one == other and len(one) == len(CASES)


ON_THE_OTHER_ENGINE = """
    import pathlib, pickle
    import stream_pegasos
    from estimators import CASES, seen
    from stream_pegasos import engine

    folder, results = pathlib.Path(FOLDER), {"engine": engine.NAME}
    for i, case in enumerate(CASES):
        alone, path = case.trained(60), folder / f"{i}.pickle"
        models = [alone, pickle.loads(path.read_bytes())]
        if case.can_be_saved:
            models.append(stream_pegasos.load(folder / f"{i}.file"))
        for model in models[1:]:
            for x, y in list(case.stream(60))[40:]:
                model.learn_one(x, y)
        results[case.name] = [
            (seen(model), [model.predict_proba_one(x) for x, _ in case.stream(20, seed=1)]) for model in models
        ]
        path.write_bytes(pickle.dumps(models[1]))
        if case.can_be_saved:
            models[-1].save(folder / f"{i}.file")
    (folder / "results").write_bytes(pickle.dumps(results))
    print("true")
"""


def has_compiled():
    try:
        import stream_pegasos.engine.compiled  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.skipif(not has_compiled(), reason="the compiled engine was not built")
def test_the_engines_are_alike_and_models_move_between_them(tmp_path):
    for i, case in enumerate(CASES):
        model = case.trained(40)
        (tmp_path / f"{i}.pickle").write_bytes(pickle.dumps(model))
        if case.can_be_saved:
            model.save(tmp_path / f"{i}.file")
    other = "compiled" if pure else "pure"
    run(ON_THE_OTHER_ENGINE.replace("FOLDER", repr(str(tmp_path))), STREAM_PEGASOS_ENGINE=other)
    results = pickle.loads((tmp_path / "results").read_bytes())
    assert results["engine"] == other
    for i, case in enumerate(CASES):
        model = case.trained(60)
        classes, types, n, learned = seen(model)
        probabilities = [model.predict_proba_one(x) for x, _ in case.stream(20, seed=1)]
        for (classes_there, types_there, n_there, learned_there), probabilities_there in results[case.name]:
            assert (classes_there, types_there, n_there) == (classes, types, n), case.name
            assert flat(learned_there) == pytest.approx(flat(learned), rel=1e-7, abs=1e-9), case.name
            assert flat(probabilities_there) == pytest.approx(flat(probabilities), rel=1e-6, abs=1e-9), case.name
        assert_close(pickle.loads((tmp_path / f"{i}.pickle").read_bytes()), model)
        if case.can_be_saved:
            assert_close(stream_pegasos.load(tmp_path / f"{i}.file"), model)


def calls_of(case):
    """Examples and labels of 24 calls, some of one example, some of many. The first label is 1, until 2 makes it the
    negative one; half-way the labels swap.
    """
    first, second = case.labels if case.pos_label else (1, 2)
    words = [f"word{i}" for i in range(60)]
    generator = random.Random(3)
    calls = []
    for i in range(24):
        X, y = [], []
        for _ in range(1 if i % 3 else generator.randrange(2, 12)):
            positive = generator.random() < 0.5
            likely = words[:30] if positive else words[30:]
            X.append(case.example([*generator.choices(likely, k=4), generator.choice(words)]))
            y.append(second if i > 7 and positive != (i > 15) else first)
        calls.append((X, y))
    return calls


def learn(model, X, y):
    if len(X) == 1:
        model.learn_one(X[0], y[0])
    else:
        model.learn_many(X, y)


def looks_of(case, model):
    """All that can be seen of a model, by name, each as a function that gives values to compare."""
    words = [f"word{i}" for i in range(60)]
    probes = [case.example(words[:20]), case.example(words[40:]), case.example(["never", "met"])]
    looks = {
        "label": lambda: model.predict_one(probes[0]),
        "probabilities": lambda: model.predict_proba_one(probes[1]),
        "margin": lambda: model.decision_function_one(probes[0]),
        "labels": lambda: model.predict_many(probes).tolist(),
        "probabilities of many": lambda: model.predict_proba_many(probes).tolist(),
        "margins": lambda: model.decision_function_many(probes).tolist(),
    }
    if case.can_be_saved:
        looks["state"] = lambda: bits_of(model.snapshot())
    if case.classes == TWO:
        looks["label, probability and margin"] = lambda: predict(model, probes)
    if case.has_weights:
        looks["weights"] = lambda: model.weights
        if case.of != "features" and case.classes == TWO:
            looks["explanation"] = lambda: model.explain_one(probes[0])
    else:
        looks["support vectors"] = lambda: getattr(model, "classifier", model).support_vectors
    return looks


@pytest.fixture
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@for_each(CASES)
def test_threads_see_the_model_between_two_calls(case, run_threads, restless):
    reference, model = case.make(), case.make()
    calls = calls_of(case)
    seen_by = {look: [see()] for look, see in looks_of(case, reference).items()}
    for X, y in calls:
        learn(reference, X, y)
        for look, see in looks_of(case, reference).items():
            seen_by[look].append(see())

    looked = threading.Semaphore(0)

    def learning():
        for X, y in calls:
            while looked.acquire(blocking=False):
                pass
            assert looked.acquire(timeout=20)  # so that somebody looks between any two calls, and during them
            learn(model, X, y)

    def looking(look, see):
        at_least = 0

        def once():
            nonlocal at_least
            found = see()
            try:
                at_least = seen_by[look].index(found, at_least)
            except ValueError:
                pytest.fail(f"{look}: {found!r} is none of a model after {at_least} calls or more")
            looked.release()

        return once

    run_threads([learning], [looking(look, see) for look, see in looks_of(case, model).items()])
    for look, see in looks_of(case, model).items():
        assert see() == seen_by[look][-1]
    assert len({repr(found) for found in seen_by["margins"]}) > 5  # there was something to see


@for_each(CASES)
def test_threads_that_learn_lose_nothing(case, run_threads, tmp_path):
    X, y = case.columns(60)
    model, expected = case.make(), case.make()
    for made in (model, expected):
        made.learn_many(many_of(case, X), y)
    bulks, singles = (1, 50) if pure else (5, 150)

    def learn_bulks():
        for _ in range(bulks):
            model.learn_many(many_of(case, X), y)

    def learn_singly():
        for i in range(singles):
            model.predict_one(X[i % 60])
            model.learn_one(case.example([f"name{i}", "name"]), y[i % 60])

    def save():
        model.save(tmp_path / "model")
        assert stream_pegasos.load(tmp_path / "model").n_iterations <= model.n_iterations

    readers = [
        lambda: model.predict_one(X[0]),
        lambda: np.isfinite(model.decision_function_many(many_of(case, X[:20]))).all() or pytest.fail("not finite"),
        lambda: (looks_of(case, model)["weights" if case.has_weights else "support vectors"](), model._memory_usage),
        lambda: copy.deepcopy(model).predict_proba_one(X[1]),
        *([save] if case.can_be_saved else []),
    ]
    run_threads([learn_bulks, learn_bulks, learn_singly], readers)
    for _ in range(2 * bulks):
        expected.learn_many(many_of(case, X), y)
    for i in range(singles):
        expected.learn_one(case.example([f"name{i}", "name"]), y[i % 60])
    for made in (model, expected):
        made.flush()
    if case.option("counter") != "violations":
        assert model.n_iterations == expected.n_iterations
    assert model.classes == expected.classes
    assert all(map(math.isfinite, flat(seen(model)[-1]).values()))


# --- in the text model ------------------------------------------------------------------------------------------------


@for_each(of_features)
@pytest.mark.parametrize("features", [{}, {"n_features": 5, "norm": None}], ids=repr)
def test_in_the_text_model_it_is_the_pipeline_of_the_parts(case, features, tmp_path):
    texts = next(other for other in CASES if (other.of, other.classes) == ("texts", case.classes))
    model, bag = TextClassifier(HashedBagOfWords(**features), case.make()), HashedBagOfWords(**features)
    expected = case.make()
    near = {"rel": 1e-7, "abs": 1e-7}
    for i, (text, y) in enumerate(texts.stream(60)):
        x = bag.transform_one("".join(list(text)))  # another string, which nothing has kept
        assert flat(model.decision_function_one(text)) == pytest.approx(flat(expected.decision_function_one(x)), **near)
        assert flat(model.predict_proba_one(text)) == pytest.approx(flat(expected.predict_proba_one(x)), **near)
        model.learn_one(text, y, float(i % 3))
        expected.learn_one(x, y, float(i % 3))
        assert model.features.transform_one(text) == x
    X, y = texts.columns(40, seed=1)
    made = [model, through_a_file(model, tmp_path / "model")] if case.can_be_saved else [model]
    made = made[:1] if case.option("drift_detector") else made
    matrix = bag.transform_many(X)
    told = expected.predict_learn_many(matrix, y)
    for each in made:
        found = each.predict_learn_many(X, y)
        assert found.tolist() == told.tolist() if case.classes == ORDERED else found == pytest.approx(told, **near)
        assert type(each.classifier) is type(expected)
        assert (each.classes, each.n_iterations) == (expected.classes, expected.n_iterations)
        assert each.decision_function_many(X) == pytest.approx(expected.decision_function_many(matrix), **near)
        assert each.predict_proba_many(X) == pytest.approx(expected.predict_proba_many(matrix), **near)
        if case.has_weights:
            assert flat(each.weights) == pytest.approx(flat(expected.weights), rel=1e-6, abs=1e-7)


@for_each([case for case in of_features if case.classes == TWO])
def test_a_name_that_comes_again_with_nothing_is_no_feature(case):
    """Each example but the first few is right by far, so that names come and go."""
    known, another = case.labels
    rows = [{"a": 1.0, "w": 0.01}, {"a": 1.0, "b": 1.0, "w": 0.0}, {"b": 1.0, "v": 0.0, "u": 1e-9}] * 3
    labels = [known, another, another] * 3
    one, many = case.make(), case.make()
    for model in (one, many):
        for _ in range(30):
            model.learn_one({"a": 1.0}, known)
            model.learn_one({"b": 1.0}, another)
    for x, y in zip(rows, labels, strict=True):
        one.learn_one(x, y)
    many.learn_many(rows, labels)
    if case.can_be_saved:
        assert bits(case, one) == bits(case, many)
