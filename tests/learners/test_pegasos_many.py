"""Many examples at once, in columns of any kind and with weights, are learned as one by one."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tables import as_dicts, in_parts, rows_and_labels, wide

from stream_pegasos import PegasosClassifier


@pytest.mark.parametrize("options", [{}, {"project": False, "t0": 0.5}, {"fit_intercept": True, "l2": 1.0, "t0": 9.0}])
@pytest.mark.parametrize("size", [1.0, 1e7])
def test_all_ways_to_learn_mix(options, size):
    """A model that learns by matrices, frames and dicts in turn, beside one that learns one by one."""
    generator = np.random.default_rng(3)
    mixed, single = PegasosClassifier(**options), PegasosClassifier(**options)
    for step in range(12):
        n, d = [(40, 9), (300, 30), (5, 1000), (3, 12)][step % 4]
        X = generator.normal(size=(n, d)) * (generator.random((n, d)) < min(0.5, 20 / d)) * size
        y = generator.random(n) < 0.5
        y[:2] = True, False
        w = generator.choice([0.0, 1.0, 2.0], n) if step % 3 else 1.0
        dicts = as_dicts(X)
        for x, label, weight in zip(dicts, y.tolist(), np.broadcast_to(w, n).tolist(), strict=True):
            single.learn_one(x, label, w=weight)
        way = generator.integers(6)
        if way < 3:
            mixed.learn_many([sparse.csr_matrix, wide, in_parts][way](X), y, w)
        elif way == 3:
            mixed.learn_many(pd.DataFrame(X), y, w)
        else:
            mixed.learn_many(dicts, y, w)
        for made in (mixed, single):
            made.learn_one({"name": size, -5: size, ("t",): 1.0, 3: -size}, step % 2 == 0)
        largest = max(map(abs, single.weights.values()), default=0.0)
        weights = {name: w for name, w in single.weights.items() if w}
        assert {k: w for k, w in mixed.weights.items() if w} == pytest.approx(weights, rel=1e-6, abs=1e-9 * largest)
        assert mixed.intercept == pytest.approx(single.intercept, rel=1e-6, abs=1e-9 * largest)
        assert mixed.decision_function_many(sparse.csr_matrix(X)) == pytest.approx(
            single.decision_function_many(dicts), rel=1e-6, abs=1e-6 * largest * size
        )
        state = mixed.trainer.learner.get_state()
        assert state["squares"] == pytest.approx((state["values"] ** 2).sum(axis=0), rel=1e-6)
        assert len(mixed.trainer.learner) == len(mixed.trainer.learner.items()[0])


def test_columns_of_any_number():
    far = (1 << 53) - 1
    matrix = sparse.csr_matrix(([1.0, 2.0], [0, far - 1], [0, 1, 2]), shape=(2, far))
    model = PegasosClassifier()
    model.learn_many(matrix, [False, True])
    assert set(model.weights) == {0, far - 1}


COLUMNS = {"mixed": ["a", 2, 3], "tuples": [("a", 1), ("a", 2), ("b", 1)]}


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_columns_of_a_frame_are_the_names(columns, is_sparse):
    names = COLUMNS[columns]
    X, y = rows_and_labels(30, 3)
    index = pd.MultiIndex.from_tuples(names) if columns == "tuples" else names
    frame = pd.DataFrame(X, columns=index)
    if is_sparse:
        frame = frame.astype(pd.SparseDtype(float, 0.0))
    model, expected = PegasosClassifier(), PegasosClassifier()
    model.learn_many(frame, pd.Series(y))
    expected.learn_many(as_dicts(X, names), y)
    assert model.weights == pytest.approx(expected.weights)
    assert {type(name) for name in model.weights} == {type(name) for name in names}
    assert list(model.predict_many(frame)) == list(expected.predict_many(as_dicts(X, names)))


@pytest.mark.heavy
def test_polars_frames():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y = rows_and_labels(30, 3)
    frame = polars.DataFrame(X, schema=list("abc"))
    model, expected = PegasosClassifier(), PegasosClassifier()
    model.learn_many(frame, polars.Series(y))
    expected.learn_many(as_dicts(X, "abc"), y)
    assert model.weights == pytest.approx(expected.weights)
    assert list(model.predict_many(frame)) == list(expected.predict_many(as_dicts(X, "abc")))


@pytest.mark.parametrize("kind", [pd.Series, iter, np.float32], ids=["index", "iterator", "float32"])
def test_weights_of_examples(kind):
    X, y = rows_and_labels(60)
    one, many = PegasosClassifier(l2=0.1), PegasosClassifier(l2=0.1)
    w = [float(i % 4) for i in range(60)]
    for x, label, weight in zip(as_dicts(X), y, w, strict=True):
        one.learn_one(x, label, w=weight)
    many.learn_many(as_dicts(X), y, w=pd.Series(w, index=range(5, 65)) if kind is pd.Series else kind(w))
    assert many.weights == one.weights


def test_a_weight_is_the_size_of_the_step():
    # The first step without projection is w = c·y·x/λ.
    for w, class_weight, expected in (
        (1.0, None, 2.0),
        (3.0, None, 6.0),
        (0.0, None, 0.0),
        (3.0, {"a": 5.0}, 30.0),
        (3.0, {"b": 5.0}, 6.0),
    ):
        for calls in (
            lambda m, w: m.learn_one({"x": 1.0}, "a", w=w),
            lambda m, w: m.learn_many([{"x": 1.0}], ["a"], w),
        ):
            model = PegasosClassifier(l2=0.5, project=False, pos_label="a", class_weight=class_weight)
            calls(model, w)
            assert model.decision_function_one({"x": 1.0}) == pytest.approx(expected)


@pytest.mark.parametrize("options", [{}, {"average": True}, {"fit_intercept": True}, {"project": False, "l2": 0.01}])
@pytest.mark.parametrize("n_before", [0, 50])
def test_a_wrong_value_undoes_the_loop_that_met_it(options, n_before):
    """Rows are checked as they come; wherever the wrong value stands, nothing of the call is left."""
    generator = np.random.default_rng(5)
    X = sparse.random(300, 40, 0.3, format="csr", rng=generator)
    y, model = generator.random(300) < 0.5, PegasosClassifier(**options)
    if n_before:
        model.learn_many(X[:n_before], y[:n_before])
        model.learn_many([{1 << 40: 1.0, "name": 2.0}], [True])  # features that are no columns of the matrix
    before, as_if = model.to_state(), model.clone(include_attributes=True)
    for place in (0, len(X.data) // 2, -1):
        wrong = X.copy()
        wrong.data[place] = np.nan
        for call in (lambda wrong=wrong: model.learn_many(wrong, y), lambda wrong=wrong: model.predictions(wrong)):
            with pytest.raises(ValueError, match=f"column {wrong.indices[place]} must be finite"):
                call()
        after = model.to_state()
        assert all(np.array_equal(after[0][name], array) for name, array in before[0].items())
        assert after[1:] == before[1:]
    model.learn_many(X, y)
    as_if.learn_many(X, y)
    assert model.decision_function_many(X).tolist() == as_if.decision_function_many(X).tolist()
