import math
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels import (
    FUNCTIONS,
    KERNELS,
    dot,
    examples_of_any_kind,
    rbf,
    stream,
    vector_of,
)
from pairwise import pairwise
from scipy import sparse

from stream_pegasos import (
    KernelPegasosClassifier,
    PegasosClassifier,
)

# --- the algorithm ----------------------------------------------------------------------------------------------------


class DenseKernel:
    """Section 4 of the paper of 2011: α for every example ever seen, on dense vectors, and nothing else."""

    def __init__(self, kernel, l2, t0):
        self.kernel, self.l2, self.t0 = kernel, l2, t0
        self.X, self.alpha_y = [], []

    def margin(self, x):
        if not any(self.alpha_y):
            return 0.0
        similarities = self.kernel(np.array(self.X), x[None, :])[:, 0]
        return float(np.array(self.alpha_y) @ similarities) / (self.l2 * (len(self.X) + self.t0))

    def is_close_call(self, x):
        if not any(self.alpha_y):
            return False
        sizes = np.abs(self.kernel(np.array(self.X), x[None, :])[:, 0]) * np.abs(self.alpha_y)
        return abs(abs(self.margin(x)) - 1.0) <= 1e-9 * (1.0 + sizes.sum() / (self.l2 * (len(self.X) + self.t0)))

    def learn(self, x, y, c):
        violated = y * self.margin(x) < 1.0
        self.X.append(x)
        self.alpha_y.append(c * y if violated else 0.0)


def against_dense(kernel, options, examples, how):
    parameters, dense_kernel = KERNELS[kernel]
    given_kernel = FUNCTIONS[kernel] if how == "function" else kernel
    model = KernelPegasosClassifier(kernel=given_kernel, pos_label="in", **options, **parameters)
    dense = DenseKernel(dense_kernel, options["l2"], options["t0"])
    used, margins = [], []
    for x, y, w in examples:
        vector = vector_of(x)
        if dense.is_close_call(vector):
            continue
        margin = dense.margin(vector)
        size = np.abs(dense.alpha_y).sum() / (options["l2"] * max(1, len(dense.X))) * max(1.0, vector @ vector) ** 2
        expected = pytest.approx(margin, rel=1e-9, abs=1e-12 * size)
        assert model.decision_function_one(x) == expected
        assert model.decision_function_many([x, {}])[0] == expected
        margins.append(expected)
        used.append((x, y, w))
        model.learn_one(x, y, w)
        dense.learn(vector, 1.0 if y == "in" else -1.0, w)
        assert model.n_iterations == len(dense.X)
        # What w is: the support vectors are those of which some α is left.
        total = {}
        for z, alpha_y in zip(dense.X, dense.alpha_y, strict=True):
            total[tuple(z)] = total.get(tuple(z), 0.0) + alpha_y
        found = {}
        for z, alpha_y in zip(model.support_vectors, model.dual_coef, strict=True):
            found[tuple(vector_of(z))] = found.get(tuple(vector_of(z)), 0.0) + alpha_y
        nonzero = {z: pytest.approx(alpha_y) for z, alpha_y in total.items() if abs(alpha_y) > 1e-9}
        assert {z: alpha_y for z, alpha_y in found.items() if abs(alpha_y) > 1e-9} == nonzero
    if used:
        many = KernelPegasosClassifier(kernel=given_kernel, pos_label="in", **options, **parameters)
        assert many.predict_learn_many(*zip(*used, strict=True)).scores.tolist() == margins
        assert many.dual_coef.tolist() == model.dual_coef.tolist()
    return len(used)


CHOICES = {"kernel": KERNELS, "how": ("name", "function"), "t0": (0.0, 0.5, 100.0), "l2": (1e-3, 0.5)}


@pytest.mark.parametrize("chosen", pairwise(**CHOICES), ids=str)
def test_each_kernel_is_the_dense_algorithm(chosen):
    kernel, how, t0, l2 = chosen.values()
    generator = np.random.default_rng(0)
    examples = [(x, y, float(generator.choice([1.0, 1.0, 0.0, 3.0]))) for x, y in stream(40)]
    examples += [({}, "in", 1.0), *examples[3:8], ({"a": 0.0}, "out", 2.0)]
    assert against_dense(kernel, {"l2": l2, "t0": t0}, examples, how) > 30


@given(
    kernel=st.sampled_from(sorted(KERNELS)),
    how=st.sampled_from(["name", "function"]),
    l2=st.sampled_from([1e-4, 0.01, 1.0]),
    t0=st.sampled_from([0.0, 2.0]),
    examples=st.lists(examples_of_any_kind, max_size=12),
)
def test_any_stream_is_learned_as_the_dense_algorithm_does(kernel, how, l2, t0, examples):
    against_dense(kernel, {"l2": l2, "t0": t0}, examples, how)


@pytest.mark.parametrize("t0", [0.0, 7.0])
def test_the_linear_kernel_is_the_linear_classifier(t0):
    model = KernelPegasosClassifier(l2=0.05, t0=t0, kernel="linear", class_weight={"in": 2.0})
    expected = PegasosClassifier(l2=0.05, t0=t0, project=False, class_weight={"in": 2.0})
    for i, (x, y) in enumerate(stream(200)):
        margin = expected.decision_function_one(x)
        assert model.decision_function_one(x) == pytest.approx(margin, rel=1e-9, abs=1e-9)
        assert model.predict_proba_one(x) == pytest.approx(expected.predict_proba_one(x), rel=1e-6)
        assert model.predict_one(x) == expected.predict_one(x)
        for made in (model, expected):
            made.learn_one(x, y, w=[1.0, 0.5, 0.0][i % 3])
    assert model.classes == expected.classes and model.n_iterations == expected.n_iterations == 200


def test_what_cosine_says_of_empty_examples():
    model = KernelPegasosClassifier(l2=1.0, kernel="cosine")
    model.learn_one({}, "a")
    assert model.decision_function_one({}) == model.decision_function_one({"x": 1.0}) == 0.0
    model.learn_one({"x": 2.0}, "b")
    assert model.decision_function_one({"x": 5.0}) == pytest.approx(0.5)
    assert model.decision_function_one({"x": -1e-200}) == pytest.approx(-0.5, abs=0.5)
    assert model.decision_function_one({}) == 0.0


@pytest.mark.parametrize("how", ["name", "function"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_names_never_learned_count_as_integers_never_learned_do(kernel, how, unchanged):
    """A new feature makes an example longer, and so less similar; whatever its name is."""
    parameters, dense_kernel = KERNELS[kernel]
    for name in (7, "new", ("n", 1), 1 << 62):
        model = KernelPegasosClassifier(kernel=FUNCTIONS[kernel] if how == "function" else kernel, l2=1.0, **parameters)
        model.learn_one({"a": 1.0, "b": 2.0}, False)
        x = {"a": 1.0, name: 1.5}
        expected = -float(dense_kernel(np.array([[1.0, 2.0, 0.0]]), np.array([[1.0, 0.0, 1.5]]))[0, 0])
        with unchanged(model):
            assert model.decision_function_one(x) == pytest.approx(expected)
            assert model.decision_function_many([x, x]).tolist() == pytest.approx([expected] * 2)
        assert model.predict_learn_many([x], [True]).scores.tolist() == pytest.approx([expected])


# --- kernels that are functions ---------------------------------------------------------------------------------------


def test_functions_get_dicts_by_the_names_that_came_in():
    seen = []

    def kernel(x, z):
        seen.append((dict(x), dict(z)))
        return 1.0

    model = KernelPegasosClassifier(kernel=kernel)
    first = {"a": 1, ("t", True): 2.0, 1 << 60: -1.0, 5: 3, "\ud800": True, "zero": 0.0}
    model.learn_one(first, 1)
    model.learn_one({np.str_("b"): np.float32(2), False: 1.0}, 0)
    known = {"a": 1.0, ("t", 1): 2.0, 1 << 60: -1.0, 5: 3.0, "\ud800": 1.0}
    assert (known, known) in seen and ({"b": 2.0, 0: 1.0}, known) in seen
    assert all(type(v) is float for pair in seen for x in pair for v in x.values())
    assert all("zero" not in x for pair in seen for x in pair)
    seen.clear()
    model.decision_function_one({"unheard of": 1.0})
    model.predict_many(sparse.csr_matrix([[0.0, 4.0]]))
    assert ({"unheard of": 1.0}, known) in seen and ({1: 4.0}, known) in seen
    assert model.support_vectors[0] == known


BAD = [math.nan, -math.inf, None, "one", 1e201, [1.0], 10**400]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("budget", [None, 2])
def test_kernels_that_give_no_number_leave_everything_as_it_was(bad, budget, unchanged):
    """For an example and a support vector or for the example alone; in learn_one, and in the middle of learn_many."""
    for itself in (False, True):

        def kernel(x, z, itself=itself):
            wrong = x.keys() == z.keys() == {"bad"} if itself else "bad" in x and "known" in z
            return bad if wrong else 1.0 + dot(x, z)

        model = KernelPegasosClassifier(kernel=kernel, budget=budget)
        model.learn_one({"known": 1.0}, 1)
        model.learn_one({"known": -1.0}, 0)
        before, names = model._learner.get_state(), model._vocabulary.names
        for call in (
            lambda model=model: model.learn_one({"bad": 1.0}, 1),
            lambda model=model: model.learn_one({"bad": 1.0}, 0, 2.0),
            lambda model=model: model.learn_many([{"known": -3.0}, {"new": 9.0}, {"bad": 1.0}], [1, 0, 1]),
            lambda model=model: model.predict_one({"bad": 1.0}),
            lambda model=model: model.predict_many([{"new": 1.0}, {"bad": 1.0}]),
        ):
            with pytest.raises(ValueError, match="the kernel gives"):
                call()
            assert repr(model._learner.get_state()) == repr(before) and model._vocabulary.names == names
            assert model.classes == (0, 1)


def test_a_label_that_exchanges_the_classes_brings_them_back_if_the_kernel_fails(unchanged):
    model = KernelPegasosClassifier(kernel="polynomial", degree=100)
    model.learn_one({"a": 1.0}, 1)
    assert model.classes == (None, 1)
    with unchanged(model):
        for X in ([{"new": 1e40}], [{"new": 1.0}, {"newer": 1e40}]):
            with pytest.raises(ValueError, match="scale the features"):
                model.learn_many(X, [2] * len(X))
        with pytest.raises(ValueError, match="the kernel gives"):
            model.learn_one({"new": 1e40}, 2)
        with pytest.raises(ValueError, match="the kernel gives"):
            model.learn_one({"new": 1e40}, 1)
        with pytest.raises(ValueError, match="the kernel gives"):
            model.predict_one({"a": 1e40})


def test_functions_can_be_pickled_but_not_saved(tmp_path):
    model = KernelPegasosClassifier(kernel=operator.itemgetter)  # any function that can be imported
    assert pickle.loads(pickle.dumps(model)).kernel is operator.itemgetter
    model = KernelPegasosClassifier(kernel=rbf)
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# --- labels, many at once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"l2": 0.0},
        {"t0": -1.0},
        {"kernel": "sigmoid"},
        {"gamma": 0.0},
        {"gamma": math.nan},
        {"coef0": -1.0},
        {"degree": 0},
        {"degree": 101},
        {"budget": 0},
        {"budget_maintenance": "projection"},
        {"budget_maintenance": "merging", "kernel": "linear"},
        {"budget_maintenance": "merging", "kernel": rbf},
        {"class_weight": {"a": -1.0}},
    ],
    ids=lambda parameters: " ".join(map(str, parameters)),
)
def test_impossible_parameters_are_refused_by_name(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        KernelPegasosClassifier(**parameters)


# --- River, and threads -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", range(1, 12))
def test_a_kernel_that_fails_from_some_call_on_leaves_the_model_usable(k):
    """Also where it goes on failing while the model is put back."""
    calls, limit = 0, math.inf

    def common(x, z):
        nonlocal calls
        calls += 1
        if calls > limit:
            raise RuntimeError("no more")
        return float(len(x.keys() & z.keys()))

    model = KernelPegasosClassifier(l2=0.1, kernel=common)
    model.learn_many([{"a": 1.0}, {"b": 1.0}], [True, False])
    before = model.dual_coef.tolist(), model.support_vectors, model.n_iterations
    calls, limit = 0, k
    try:
        model.learn_many([{"c": 1.0}, {"d": 2.0}, {"z": 1.0}], [True, False, True])
    except RuntimeError:
        assert (model.dual_coef.tolist(), model.support_vectors, model.n_iterations) == before
    else:
        assert k >= calls
    limit = math.inf
    model.learn_one({"a": 1.0, "new": 1.0}, False)
    assert model.decision_function_one({"a": 1.0}) == pytest.approx(
        sum(beta * len(x.keys() & {"a"}) for beta, x in zip(model.dual_coef, model.support_vectors, strict=True))
        / (0.1 * model.n_iterations)
    )
