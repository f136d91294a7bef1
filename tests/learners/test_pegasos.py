import enum
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairwise import pairwise
from scipy import optimize, sparse
from tables import as_dicts

from stream_pegasos import PegasosClassifier, engine
from stream_pegasos.blocks.blockwise import predict_learn

pure = engine.NAME == "pure"

NAMES = ["a", "b", 3, -1, ("c", 1), 1 << 60, ""]


# --- the algorithm ----------------------------------------------------------------------------------------------------


CHOICES = {
    "batch_size": (1, 3),
    "t0": (0.0, 1.0, 0.5),
    "project": (True, False),
    "intercept": (None, 1.0, 0.2),
    "class_weight": (None, {"pos": 5.0}, {"pos": 0.0, "neg": 0.5}),
}


VARIANTS = {
    "batch_size": (1, 3),
    "t0": (0.0, 2.0, 5.0),
    "project": (True, False),
    "intercept": (None, 1.0),
    "variant": ({"average": True}, {"average": 7}, {"average": "weighted"}),
}


def options_of(intercept, variant=None, class_weight=None, **options):
    scaling = {"fit_intercept": intercept is not None, "intercept_scaling": intercept or 1.0}
    return {**options, **scaling, "class_weight": class_weight, **(variant or {})}


def against_dense(dense_pegasos, l2, options, examples):
    """Compare a classifier with the dense transcription at each step of a stream of (x, y, w, flush)."""
    model = PegasosClassifier(l2=l2, pos_label="pos", **options)
    scaling = options["intercept_scaling"] if options["fit_intercept"] else 0.0
    same = {name: options[name] for name in ("batch_size", "t0", "project", "average") if name in options}
    dense = dense_pegasos(len(NAMES) + 1, l2, **same)
    for x, y, w, flush in examples:
        vector = np.array([*(x.get(name, 0.0) for name in NAMES), scaling])
        if dense.is_close_call(vector):
            continue
        error = 1e-10 * dense.largest + 1e-300
        margin = float(dense.predicting @ vector)
        expected = pytest.approx(margin, rel=1e-9, abs=error * np.abs(vector).sum())
        assert model.decision_function_one(x) == expected
        assert model.decision_function_many([x]).tolist() == [expected]
        if len(model.classes) == 2 and abs(margin) > 1e-6 * dense.largest:
            assert model.predict_one(x) == ("pos" if margin > 0 else "neg")
        model.learn_one(x, y, w=w)
        dense.learn(vector, 1.0 if y == "pos" else -1.0, w * (options["class_weight"] or {}).get(y, 1.0))
        if flush:
            model.flush()
            dense.flush()
        assert model.n_iterations == dense.t
        error = 1e-10 * dense.largest + 1e-300
        w = dense.predicting
        assert model.intercept == pytest.approx(w[-1] * scaling, rel=1e-9, abs=error * scaling)
        weights = model.weights
        assert set(weights) <= set(NAMES)
        named = np.array([weights.get(name, 0.0) for name in NAMES])
        assert named == pytest.approx(w[:-1], rel=1e-9, abs=error)


@pytest.mark.parametrize("chosen", [*pairwise(**CHOICES), *pairwise(**VARIANTS)], ids=str)
def test_any_two_options_together_are_the_published_algorithm(dense_pegasos, chosen):
    generator = np.random.default_rng(0)
    for l2 in (1e-3, 0.1):
        examples = []
        for _ in range(60):
            # Easy ones, so that some steps find no violation.
            label = str(generator.choice(["neg", "pos"]))
            x = {name: float(generator.normal(2.0 if label == "pos" else -2.0)) for name in NAMES}
            x = {name: value for name, value in x.items() if generator.random() < 0.6}
            examples.append((x, label, float(generator.choice([1.0, 1.0, 0.0, 4.0])), generator.random() < 0.15))
        against_dense(dense_pegasos, l2, options_of(**chosen), examples)


numbers = st.one_of(st.integers(-3, 3), st.floats(-100, 100, allow_subnormal=False), st.booleans())


examples_of_any_kind = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), numbers, max_size=5),
    st.sampled_from(["neg", "pos"]),
    st.sampled_from([1.0, 1.0, 0.0, 0.25, 30.0]),
    st.sampled_from([False, False, False, True]),
)


@given(
    l2=st.sampled_from([1e-4, 0.01, 1.0, 50.0]),
    chosen=st.one_of(
        *(st.fixed_dictionaries({k: st.sampled_from(v) for k, v in of.items()}) for of in (CHOICES, VARIANTS))
    ),
    examples=st.lists(examples_of_any_kind, max_size=20),
)
def test_any_stream_is_learned_as_published(dense_pegasos, l2, chosen, examples):
    against_dense(dense_pegasos, l2, options_of(**chosen), examples)


@pytest.mark.parametrize(
    "options", [{}, {"project": False}, {"batch_size": 10}, {"t0": 100.0}, {"fit_intercept": True}]
)
def test_many_passes_reach_the_optimum_of_the_objective(options):
    generator = np.random.default_rng(0)
    n, l2 = 40, 0.1
    X = generator.normal(size=(n, 3)) + np.array([0.3, 0.0, 0.0])
    y = np.where(X @ [1.0, -2.0, 0.5] + generator.normal(size=n) > 0, 1, -1)
    columns = np.column_stack([X, np.ones(n)]) if options.get("fit_intercept") else X

    def objective(w):
        return l2 / 2 * w @ w + np.maximum(0.0, 1.0 - y * (columns @ w)).mean()

    # As a quadratic programme: the hinges become slack variables.
    d = columns.shape[1]
    best = optimize.minimize(
        lambda v: l2 / 2 * v[:d] @ v[:d] + v[d:].mean(),
        np.concatenate([np.zeros(d), np.ones(n)]),
        jac=lambda v: np.concatenate([l2 * v[:d], np.full(n, 1 / n)]),
        bounds=[(None, None)] * d + [(0, None)] * n,
        constraints={
            "type": "ineq",
            "fun": lambda v: y * (columns @ v[:d]) - 1 + v[d:],
            "jac": lambda v: np.column_stack([y[:, None] * columns, np.eye(n)]),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert best.success
    model = PegasosClassifier(l2=l2, **options)
    matrix = sparse.csr_matrix(X)
    for seed in range(25 if pure else 150):
        order = np.random.default_rng(seed).permutation(n)
        model.learn_many(matrix[order], y[order])
    w = np.array([*(model.weights[i] for i in range(3)), *([model.intercept] if d == 4 else [])])
    assert best.fun <= objective(w) + 1e-6
    assert objective(w) <= best.fun * (1.1 if pure else 1.02)


# --- names ------------------------------------------------------------------------------------------------------------


def test_weights_come_back_by_the_names_that_came_in():
    names = ["word", "", "\ud800", 0, -5, 2**53 - 1, 2**53, -(2**60), 2**80, ("a", 1), (), (("x",), True), "0", "-5"]
    model = PegasosClassifier(l2=0.5)
    model.learn_one({name: float(i + 1) for i, name in enumerate(names)}, True)
    scale = 1 / math.sqrt(0.5 * sum((i + 1) ** 2 for i in range(len(names))))
    expected = {name: pytest.approx((i + 1) * scale) for i, name in enumerate(names)}
    assert model.weights == expected
    assert {type(name) for name in model.weights} == {str, int, tuple}
    # Each by itself, too.
    for i, name in enumerate(names):
        assert model.decision_function_one({name: 2.0}) == pytest.approx(2 * (i + 1) * scale)
    assert model.decision_function_one({"another": 2.0, 2**54: 1.0, -(2**90): 1.0, ("a", 2): 1.0}) == 0.0


class Colour(enum.IntEnum):
    RED = 5
    HUGE = 2**60


class Word(str):
    pass


@pytest.mark.parametrize(
    "name, same",
    [
        (True, 1),
        (np.bool_(False), 0),
        (np.int64(-1), -1),
        (np.uint8(7), 7),
        (np.int64(2**60), 2**60),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (Colour.RED, 5),
        (Colour.HUGE, 2**60),
        (np.str_("x"), "x"),
        (Word("x"), "x"),
        ((np.int64(1), np.str_("x")), (1, "x")),
        ((True,), (1,)),
    ],
)
def test_names_that_are_equal_are_the_same_feature(name, same):
    for first, second in ((name, same), (same, name)):
        model = PegasosClassifier(l2=1.0, project=False)
        model.learn_one({first: 1.0, "other": 1.0}, True)
        assert model.decision_function_one({second: 2.0}) == pytest.approx(2.0)
        assert model.weights == {same: pytest.approx(1.0), "other": pytest.approx(1.0)}
        model.learn_one({second: 3.0}, False)
        assert len(model.weights) == 2


# --- bad input --------------------------------------------------------------------------------------------------------


def test_parameters_at_the_ends_of_their_ranges():
    for parameters in (
        {"l2": 1e-30},
        {"l2": 1e30},
        {"l2": 1},
        {"t0": 1e100},
        {"t0": 5e-324},
        {"batch_size": 1 << 31},
        {"intercept_scaling": 1e-30, "fit_intercept": True},
        {"intercept_scaling": 1e30, "fit_intercept": True},
        {"class_weight": {}},
        {"class_weight": {"a": 1e30, "b": 0}},
        {"l2": np.float32(0.5), "batch_size": np.int32(2), "t0": 1},
    ):
        model = PegasosClassifier(**parameters)
        for i in range(30):
            model.learn_one({"x": 1e45 if i % 3 else 1e-300, "y": -1.0}, "a" if i % 2 else "b", w=1e30)
        model.flush()
        assert all(map(math.isfinite, model.weights.values())), parameters
        assert math.isfinite(model.intercept)
        assert math.isfinite(model.decision_function_one({"x": 1e45}))
        said = model.predictions([{"x": 1e45}])
        assert 0.0 < said.probabilities[0, said.classes.index("a")] < 1.0


# --- probabilities ----------------------------------------------------------------------------------------------------


def log_loss(probabilities, y):
    return -np.log(np.where(y, probabilities, 1.0 - probabilities)).mean()


@pytest.mark.parametrize("options", [{}, {"l2": 1.0}, {"t0": 1e3}, {"batch_size": 20}], ids=repr)
def test_calibration_improves_on_the_plain_logistic(options):
    """On a stream whose probabilities are known."""
    generator = np.random.default_rng(5)
    n = 20_000
    X = generator.normal(size=(n, 4))
    truth = 1.0 / (1.0 + np.exp(-X @ [2.0, -1.0, 0.5, 0.0]))
    y = generator.random(n) < truth
    model = PegasosClassifier(**options)
    chunk = list(zip(as_dicts(X), y.tolist(), strict=True))
    predictions = [prediction for block in predict_learn(model, chunk) for prediction in block.each()]
    margins = np.array([margin or 0.0 for _, _, margin in predictions])  # none before two labels are known
    probabilities = np.array([p if label else 1.0 - (p or 0.0) for label, p, _ in predictions])  # of True
    late = slice(n // 2, None)
    plain = np.clip(1.0 / (1.0 + np.exp(-np.clip(margins, -500, 500))), 1e-15, 1 - 1e-15)
    calibrated = log_loss(probabilities[late], y[late])
    assert calibrated < log_loss(plain[late], y[late])
    # And it is not far from the best slope there is, chosen in hindsight.
    best = min(
        log_loss(1 / (1 + np.exp(-np.clip(s * margins[late], -30, 30))), y[late]) for s in np.geomspace(1e-3, 1e3, 61)
    )
    assert calibrated < best + 0.02
    assert log_loss(truth[late], y[late]) <= best + 0.01


# --- copies -----------------------------------------------------------------------------------------------------------


def test_clones_may_have_another_parameter():
    assert PegasosClassifier().clone({"l2": 0.25}).l2 == 0.25
    with pytest.raises(ValueError):
        PegasosClassifier().clone({"l2": -1.0})


def test_memory_is_counted_once():
    model = PegasosClassifier()
    empty = model._raw_memory_usage
    assert empty < 20_000
    n = 100_000
    model.learn_many(sparse.csr_matrix(np.ones((1, n))), [True])
    grown = model._raw_memory_usage - empty
    assert grown >= 16 * n
    if not pure:
        assert grown <= 33 * n
    names = [f"feature number {i}" for i in range(10_000)]
    model.learn_one(dict.fromkeys(names, 1.0), True)
    named = model._raw_memory_usage - empty - grown
    assert named >= sum(map(sys.getsizeof, names))
    assert named <= 2 * sum(map(sys.getsizeof, names)) + 200 * len(names)
    batches = PegasosClassifier(batch_size=10)
    batches.learn_many(sparse.csr_matrix(np.ones((5, 10_000))), [True] * 5)
    assert batches._raw_memory_usage >= 5 * 10_000 * 16
