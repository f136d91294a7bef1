"""What every estimator promises of what it is given: bad input changes nothing, and nothing changes its input."""

import collections
import copy
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from contract import KINDS, after, bad_labels, bits, flat, for_each, for_each_kind, many_of, of_features, of_texts
from estimators import CASES, GROWING, SETS, SEVERAL, TWO, seen
from river import active
from scipy import sparse

import stream_pegasos

# --- bad input --------------------------------------------------------------------------------------------------------


class Weird:
    def __float__(self):
        raise OSError("no number today")


BAD_VALUES = [math.nan, math.inf, -math.inf, 1e300, -1.1e45, None, "1", "", b"1", [1.0], {}, 1j, object(), Weird()]
BAD_VALUES += [np.array([1.0, 2.0]), np.float64("nan"), np.str_("1"), 10**400, pd.NA, pd.NaT]
BAD_VALUES += [np.datetime64("NaT", "ns"), np.float32("nan")]
BAD_NAMES = [1.5, None, (1, 2.5), ("a", None), b"a", frozenset(), math.nan, np.float64(1.5), (("a",), 1j)]
BAD_WEIGHTS = [-1.0, -1e-300, math.nan, math.inf, 1.1e30, None, "1", [1.0], np.array([1.0, 1.0]), {}, 1j]
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


@pytest.mark.filterwarnings("ignore:no message had the label")  # as options of some cases name others
@for_each(of_features, heavy=lambda case: case not in KINDS)
def test_names_of_what_is_not_kept_are_forgotten(case):
    """An example that teaches nothing brings a new name each time, one by one and at once."""
    known, another = case.labels[:2]
    one, many = case.make(), case.make()
    for model in (one, many):
        for _ in range(40):
            model.learn_one({"a": 1.0, "b": -1.0}, known)
            model.learn_one({"a": -1.0, "b": 1.0}, another)
    rows = [{"a": 1.0, f"new {i}": 1e-9} for i in range(1_600)]
    for x in rows:
        one.learn_one(x, known)
    many.learn_many(rows, [known] * len(rows))
    for model in (one, many):
        snapshot = model.snapshot() if case.can_be_saved else None
        n_features = len({*snapshot.arrays["keys"].tolist()}) if snapshot else len(model.support_vectors)
        if snapshot and n_features < 100:  # or else the names stand for what was learned
            exact = isinstance(model, stream_pegasos.AdaptiveClassifier)
            assert len(snapshot.names) <= (n_features if exact else 4 * n_features + 1_000)
    if case.classes in (SEVERAL, GROWING) and case.option("max_features"):
        assert seen(one) == seen(many)  # names that stand for nothing go one by one, or after the call
    else:
        assert bits(case, one) == bits(case, many) or not case.can_be_saved


@for_each([case for case in CASES if case.classes != SETS])
def test_one_label_leaves_room_for_others(case):
    """Laplace's rule of succession: after n examples of one label, n + 1 in n + 2."""
    if case.pos_label not in (None, case.labels[0]):
        return  # the other label is known
    model, x = case.make(), case.example(["a"])
    for n in range(1, 8):
        model.learn_one(x, case.labels[0])
        said = model.predictions(many_of(case, [case.example(["b"])]))
        probabilities = dict(zip(said.classes, said.probabilities[0].tolist(), strict=True))
        assert list(probabilities) == [case.labels[0], None]
        assert sum(probabilities.values()) == pytest.approx(1.0) and 0.5 <= probabilities[case.labels[0]] < 1.0
        if case.option("batch_size") in (None, 1):
            assert probabilities[case.labels[0]] == pytest.approx((n + 1) / (n + 2))
        # River's protocol knows labels alone, and the only one has all.
        assert model.predict_proba_one(x) == {case.labels[0]: 1.0}
        many = model.predict_proba_many(many_of(case, [x, x]))
        assert np.asarray(many).tolist() == [[1.0]] * 2
        assert model.predict_one(x) in (case.labels[0], None)


@for_each_kind([case for case in CASES if case.classes == TWO])
def test_a_sampler_asks_for_labels_of_any_kind(case):
    """It asks for no fewer where they are text than where they are bools, more or less."""
    asked = []
    for labels in ((False, True), case.labels):
        model = case.make()
        if case.pos_label:
            model = model.clone({"pos_label": labels[case.labels.index(case.pos_label)]})
        examples = [*case.stream(200)]
        for label in case.labels:  # nothing is uncertain before labels are known
            model.learn_one(next(x for x, y in examples if y == label), labels[case.labels.index(label)])
        sampler, n = active.EntropySampler(model, discount_factor=1, seed=1), 0
        for x, y in examples:
            _, ask = sampler.predict_one(x)
            if ask:
                sampler.learn_one(x, labels[case.labels.index(y)])
                n += 1
        asked.append(n)
        assert set(model.classes) == set(labels)
    assert asked[1] > 5 and asked[1] >= 0.75 * asked[0] - 5


@for_each_kind(of_features)
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


@for_each_kind(of_features)
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
                with pytest.raises(ValueError, match="a column of X"):
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


@for_each_kind(of_texts)
def test_bad_texts_leave_everything_as_it_was(case, unchanged):
    good = [case.example(["new", "words"]), case.example(["more"])]
    known, another = case.labels[:2]
    for model in after(case, *STATES):
        with unchanged(model):
            for i, bad in enumerate([*BAD_TEXTS, *([{"text": 7}, ["text"]] if case.of == "fields" else [])]):
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


@for_each_kind(CASES)
def test_bad_labels_weights_and_lengths_leave_everything_as_it_was(case, unchanged):
    X = [case.example([f"new{i}", "words"]) for i in range(3)]
    known, another = case.labels[:2]
    for model in after(case, *STATES):
        with unchanged(model):
            for i, bad in enumerate(bad_labels(case)):
                with pytest.raises(REFUSALS, match="label"):
                    model.learn_one(X[0], bad)
                y = [known, another, known]
                y[i % 3] = bad
                refused(model, X, y, match="label")
            if "several classes" not in model.capabilities:
                refused(model, X, [*case.labels, "third"], match="third")
            for i, bad in enumerate(BAD_WEIGHTS):
                for label in (known, another):
                    with pytest.raises((TypeError, ValueError)):
                        model.learn_one(X[0], label, w=bad)
                w = [1.0, 2.0, 0.0]
                w[i % 3] = bad
                refused(model, X, [known, another, known], w)
            for y in ([], [known], [known] * 4, pd.Series([known])):
                refused(model, X, y, match="labels for 3 examples")
            for w in ([], [1.0], [1.0] * 4, np.ones(2)):
                refused(model, X, [known, another, known], w, match="weights for 3 examples")
            refused(model, X, [known] * 3, np.ones((3, 2)))
            for single in ("spam", b"spam", {"spam": 1}, {"spam", "ham", "x"}, frozenset(["spam"]), 1.0, None):
                with pytest.raises(TypeError, match="y must be a sequence"):
                    model.learn_many(X, single)
                with pytest.raises(TypeError, match="y must be a sequence"):
                    model.check_labels(single)
            for single in ({1.0, 2.0, 3.0}, frozenset([1.0]), {1.0: 1}, "123"):
                refused(model, X, [known, another, known], single, match="w must be a sequence of weights")
            for single in ({"text": "a"}, "text", b"text", {"text", "b"}, frozenset(["text"])):
                for call in (model.predict_many, model.predict_proba_many, model.decision_function_many):
                    with pytest.raises(TypeError, match="sequence of"):
                        call(single)
                with pytest.raises(TypeError, match="sequence of"):
                    model.learn_many(single, [known])
            with pytest.raises(TypeError):
                model.learn_many(None, [known])


# --- what must not change ---------------------------------------------------------------------------------------------


@for_each_kind(CASES)
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


@for_each_kind(CASES)
def test_learning_never_changes_its_input(case, unchanged):
    X, y = case.columns(30)
    w = [1.0] * 30
    model = case.make()
    with unchanged(X, y, w, getattr(getattr(model, "classifier", model), "class_weight", None)):
        model.learn_one(X[0], y[0])
        model.learn_many(X, y, w)
        model.predict_learn_many(X, y, w)


@for_each_kind([case for case in CASES if case.has_weights])
def test_weights_are_a_copy(case):
    model = case.trained()
    before = copy.deepcopy(model.weights)
    model.weights.clear()
    assert model.weights == before and flat(before)


@for_each_kind(CASES)
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
        label = [np.array([of])[0] for of in y] if case.classes == SETS else np.array([y])[0]
        strange.learn_one(other, label, [np.array(2.0), 2, np.float32(2), np.int64(2)][i % 4])
        assert strange.decision_function_one(other) == plain.decision_function_one(x)
    assert seen(strange) == seen(plain)
