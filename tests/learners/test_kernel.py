import copy
import json
import math
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest
from forging import forge
from hypothesis import given
from hypothesis import strategies as st
from pairwise import pairwise
from saved import fails_in_one_line
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from stream_pegasos import KernelPegasosClassifier, PegasosClassifier, load

NAMES = ["a", "b", 3, -1, ("c", 1), 1 << 60]


# As functions of two dicts; where pickle finds them.
def linear(x, z):
    return sum(v * z.get(name, 0.0) for name, v in x.items())


def polynomial(x, z):
    return (0.5 * linear(x, z) + 2.0) ** 2


def rbf(x, z):
    return math.exp(-0.3 * sum((x.get(name, 0.0) - z.get(name, 0.0)) ** 2 for name in x.keys() | z.keys()))


# By name: the parameters, scikit-learn's function of two matrices, and that of two dicts.
KERNELS = {
    "linear": ({}, linear_kernel, linear),
    "polynomial": (
        {"gamma": 0.5, "coef0": 2.0, "degree": 2},
        lambda X, Z: polynomial_kernel(X, Z, gamma=0.5, coef0=2.0, degree=2),
        polynomial,
    ),
    "rbf": ({"gamma": 0.3}, lambda X, Z: rbf_kernel(X, Z, gamma=0.3), rbf),
}


def vector_of(x):
    return np.array([float(x.get(name, 0.0)) for name in NAMES])


def stream(n, seed=0):
    """Two classes that no line separates."""
    generator = np.random.default_rng(seed)
    for _ in range(n):
        x = {name: float(generator.normal()) for name in NAMES if generator.random() < 0.6}
        yield x, "in" if sum(v * v for v in x.values()) < 3.0 else "out", float(generator.choice([1.0, 1.0, 0.0, 3.0]))


class Dense:
    """Section 4 of the paper of 2011 on dense vectors; of vectors beyond the budget the smallest in norm goes."""

    def __init__(self, kernel, l2, t0, budget=None):
        self.kernel, self.l2, self.t0, self.budget = kernel, l2, t0, budget
        self.t, self.vectors, self.betas = 0, [], []

    def margin(self, x):
        """And whether the rounding of it decides a step."""
        if not self.vectors:
            return 0.0, False
        terms = (
            np.array(self.betas) * self.kernel(np.array(self.vectors), x[None, :])[:, 0] / self.l2 / (self.t + self.t0)
        )
        return terms.sum(), abs(abs(terms.sum()) - 1.0) <= 1e-9 * (1.0 + np.abs(terms).sum())

    def learn(self, x, y, c):
        if c == 0.0:  # which is no example
            return
        violated = y * self.margin(x)[0] < 1.0
        self.t += 1
        if not violated:
            return
        alike = [i for i, z in enumerate(self.vectors) if (z == x).all()]
        if alike:
            self.betas[alike[0]] += c * y
        else:
            self.vectors.append(x)
            self.betas.append(c * y)
        sizes = [
            b * b * self.kernel(z[None, :], z[None, :])[0, 0] for b, z in zip(self.betas, self.vectors, strict=True)
        ]
        if alike and not self.betas[alike[0]]:
            del self.vectors[alike[0]], self.betas[alike[0]]
        elif self.budget and len(self.betas) > self.budget:
            smallest = int(np.argmin(sizes))
            self.vectors[smallest], self.betas[smallest] = self.vectors[-1], self.betas[-1]
            del self.vectors[-1], self.betas[-1]


def against_dense(kernel, examples, how="name", **options):
    parameters, of_matrices, function = KERNELS[kernel]
    parameters = {**parameters, "kernel": function if how == "function" else kernel, "pos_label": "in", **options}
    one, many = (KernelPegasosClassifier(**parameters) for _ in range(2))
    dense, used, margins = Dense(of_matrices, **options), [], []
    for x, y, w in examples:
        margin, is_close_call = dense.margin(vector_of(x))
        if is_close_call:
            continue
        size = np.abs(dense.betas).sum() / options["l2"] * max(1.0, vector_of(x) @ vector_of(x)) ** 2
        assert one.decision_function_one(x) == pytest.approx(margin, rel=1e-9, abs=1e-12 * size)
        margins.append(one.decision_function_one(x))
        used.append((x, y, w))
        one.learn_one(x, y, w)
        dense.learn(vector_of(x), 1.0 if y == "in" else -1.0, w)
        assert one.n_iterations == dense.t
        found = {tuple(vector_of(z)): beta for z, beta in zip(one.support_vectors, one.dual_coef, strict=True)}
        assert found == {tuple(z): pytest.approx(b) for z, b in zip(dense.vectors, dense.betas, strict=True)}
    if used:
        assert many.predict_learn_many(*zip(*used, strict=True)).scores.tolist() == margins
        assert many.dual_coef.tolist() == one.dual_coef.tolist()
    return len(used)


CHOICES = {"kernel": KERNELS, "how": ("name", "function"), "t0": (0.0, 0.5, 100.0), "l2": (1e-3, 0.5)}


@pytest.mark.parametrize("chosen", pairwise(**CHOICES), ids=str)
def test_each_kernel_is_the_dense_algorithm(chosen):
    examples = list(stream(40))
    examples += [({}, "in", 1.0), *examples[3:8], ({"a": 0.0}, "out", 2.0)]
    assert against_dense(examples=examples, **chosen) > 30


@pytest.mark.parametrize("chosen", pairwise(kernel=KERNELS, how=("name", "function"), budget=(1, 7)), ids=str)
def test_a_budget_removes_the_smallest(chosen):
    weights = np.random.default_rng(1).uniform(0.1, 3.0, 80).tolist()  # so that no two are equally small
    examples = [(x, y, w) for (x, y, _), w in zip(stream(80), weights, strict=True)]
    assert against_dense(examples=examples, l2=0.1, t0=0.0, **chosen) > 70


numbers = st.one_of(st.integers(-3, 3), st.floats(-10, 10).map(lambda v: round(v, 3)))
examples_of_any_kind = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), numbers, max_size=4),
    st.sampled_from(["in", "out"]),
    st.sampled_from([1.0, 1.0, 0.0, 0.25, 30.0]),
)


@given(
    kernel=st.sampled_from([*KERNELS]), budget=st.integers(1, 4), examples=st.lists(examples_of_any_kind, max_size=25)
)
def test_any_stream_can_be_learned(kernel, budget, examples):
    against_dense(kernel, examples, l2=0.01, t0=2.0)
    model = KernelPegasosClassifier(l2=0.1, kernel=kernel, budget=budget)
    for x, y, w in examples:
        model.learn_one(x, y, w)
        assert len(model.support_vectors) == len(model.dual_coef) <= budget
        assert np.isfinite(model.dual_coef).all() and math.isfinite(model.decision_function_one(x))


def test_the_linear_kernel_is_the_linear_classifier():
    model = KernelPegasosClassifier(l2=0.05, t0=7.0, kernel="linear", class_weight={"in": 2.0})
    expected = PegasosClassifier(l2=0.05, t0=7.0, project=False, class_weight={"in": 2.0})
    for x, y, w in stream(200):
        margin = expected.decision_function_one(x)
        assert model.decision_function_one(x) == pytest.approx(margin, rel=1e-9, abs=1e-9)
        if expected.n_learned:  # before, a model that is for two alone says False, and one that may grow nothing
            assert model.predict_proba_one(x) == pytest.approx(expected.predict_proba_one(x), rel=1e-6)
        for each in (model, expected):
            each.learn_one(x, y, w)
    assert model.classes == expected.classes


def test_a_duplicate_adds_to_its_coefficient():
    model = KernelPegasosClassifier(l2=100.0, pos_label=True)
    model.learn_many([{"a": 1.0, 3: 0.5}, {3: 0.5, "a": 1.0}], [True, True])
    assert (model.support_vectors, model.dual_coef.tolist()) == ([{"a": 1.0, 3: 0.5}], [2.0])
    model.learn_one({"a": 1.0, 3: 0.5, "zero": 0}, False, w=2.0)
    assert (model.support_vectors, model.dual_coef.tolist(), model.n_iterations) == ([], [], 3)
    model.learn_many(sparse.csr_matrix(np.array([[0.0, 2.0], [0.0, 2.0]])), [True, True])
    assert (model.support_vectors, model.dual_coef.tolist()) == ([{1: 2.0}], [2.0])


def test_memory_is_bounded_where_all_features_are_new():
    model, sizes = KernelPegasosClassifier(l2=1.0, budget=10), []
    for i in range(400):
        model.learn_one({f"{i} {j}": 1.0 for j in range(20)}, i % 2 == 0)
        sizes.append(len(pickle.dumps(model)))
    assert max(sizes[200:]) <= 1.1 * max(sizes[:200])


# --- kernels that are functions ---------------------------------------------------------------------------------------


def test_functions_get_dicts_by_the_names_that_came_in():
    seen = []

    def kernel(x, z):
        seen.append((dict(x), dict(z)))
        return 1.0

    model = KernelPegasosClassifier(kernel=kernel)
    model.learn_one({"a": 1, ("t", True): 2.0, 1 << 60: -1.0, 5: np.float32(3), "\ud800": True, "zero": 0.0}, 1)
    known = {"a": 1.0, ("t", 1): 2.0, 1 << 60: -1.0, 5: 3.0, "\ud800": 1.0}
    model.predict_many(sparse.csr_matrix([[0.0, 4.0]]))
    model.decision_function_one({"unheard of": 1.0})
    assert (known, known) in seen and ({1: 4.0}, known) in seen and ({"unheard of": 1.0}, known) in seen
    assert model.support_vectors == [known] and model.trainer.vocabulary.names == ["a", ("t", True), 1 << 60, "\ud800"]


@pytest.mark.parametrize("bad", [math.nan, -math.inf, None, "one", 1e201, [1.0], 10**400, RuntimeError("no")], ids=repr)
def test_a_kernel_that_fails_leaves_everything_as_it_was(bad, unchanged):
    """For an example and a support vector, or for the example alone; in learn_one, and in the middle of learn_many."""

    def kernel(x, z):
        if "bad" not in x or ("known" in z) is alone:
            return 1.0 + linear(x, z)
        if isinstance(bad, Exception):
            raise bad
        return bad

    for alone in (False, True):  # noqa: B007
        model = KernelPegasosClassifier(kernel=kernel, budget=2)
        model.learn_many([{"known": 1.0}, {"known": -1.0}], [1, 0])
        before, seen = (
            (model.support_vectors, model.dual_coef.tolist(), model.trainer.vocabulary.names),
            model.n_iterations,
        )
        for call in (
            lambda model=model: model.learn_one({"bad": 1.0}, 1),
            lambda model=model: model.learn_many([{"known": -3.0}, {"new": 9.0}, {"bad": 1.0}], [1, 0, 1]),
            lambda model=model: model.predict_one({"bad": 1.0}),
            lambda model=model: model.predict_many([{"new": 1.0}, {"bad": 1.0}]),
        ):
            with pytest.raises((TypeError, ValueError, RuntimeError), match=r"the value of the kernel|no"):
                call()
            assert (model.support_vectors, model.dual_coef.tolist(), model.trainer.vocabulary.names) == before
            assert model.n_iterations == seen and model.classes == (1, 0) and model.pair == (0, 1)
    model = KernelPegasosClassifier(kernel="polynomial", degree=100)
    model.learn_one({"a": 1.0}, 1)
    with unchanged(model), pytest.raises(ValueError, match="the value of the kernel"):
        model.learn_many([{"new": 1.0}, {"newer": 1e40}], [2, 2])  # beside which 1 is the negative one


# --- parameters, files, interruptions ---------------------------------------------------------------------------------


def test_files_of_version_0_2_give_the_answers_of_then():
    folder = Path(__file__).parents[1] / "saved_models/0.2.0"
    for name, answers in json.loads((folder / "kernels.json").read_text("utf-8")).items():
        model = load(folder / f"{name}.safetensors")
        found = [model.predict_proba_one({"a": 1.0, "é": i % 3, 7: -0.5 * i})["in"] for i in range(4)]
        assert [*found, *model.dual_coef] == pytest.approx(answers, rel=1e-12)
        model.learn_one({"a": -3.0}, "out")
        assert model.n_iterations == 13


@pytest.mark.parametrize("rule", [None, "merging", "removal"])
@pytest.mark.parametrize("kernel, budget", [("linear", 5), ("rbf", None), ("rbf", 5), ("cosine", None)])
def test_what_version_0_2_had_alone_is_named(kernel, budget, rule, tmp_path):
    path, model = tmp_path / "model", KernelPegasosClassifier(kernel="linear", budget=budget)
    model.learn_many([{"a": 1.0}, {"b": 1.0}], [True, False])
    model.save(path)
    of_then = {"kernel": kernel, "budget_maintenance": rule}
    forge(path, lambda arrays, state, header: state["parameters"].update(of_then))
    if kernel == "cosine" or (kernel == "rbf" and budget and rule != "removal"):
        fails_in_one_line(path, f"cannot be used: .*{'cosine' if kernel == 'cosine' else 'merged'}")
    else:
        assert load(path).kernel == kernel


def test_a_state_that_none_can_have_is_refused(tmp_path):
    learner = KernelPegasosClassifier(l2=100.0).trainer.learner
    state = {"coefficients": np.array([1.0, -2.0]), "indptr": np.array([0, 1, 3]), "keys": np.array([1, 1, 2])}
    state |= {"values": np.ones(3), "n_iterations": 2, "slope": 1.0, "calibration_squares": 0.0}
    learner.declaration.check(state)
    for change in (
        {"coefficients": np.array([1.0, 0.0])},
        {"coefficients": np.array([1.0])},
        {"n_iterations": 1},
        {"keys": np.array([1, 2, 2])},
        *({"indptr": np.array(ends)} for ends in ([0, 1, 2], [1, 1, 3], [0, 3, 1], [0, 4, 3], [0, 3], [0])),
    ):
        with pytest.raises(ValueError):
            learner.declaration.check({**state, **change})


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_an_interrupted_step_is_taken_whole_or_not_at_all():
    class Interrupted(Exception):
        pass

    def interrupt(number, frame):
        if at_work:  # on a slow machine the timer may be late, or early
            raise Interrupted

    def learned(model):
        return model.support_vectors, model.dual_coef.tolist()

    model, n, at_work = KernelPegasosClassifier(l2=0.01, budget=8), 0, False
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i, (x, y, _) in enumerate(stream(300)):
            whole, old = copy.deepcopy(model), learned(model)
            whole.learn_one(x, y)
            try:
                at_work = True
                signal.setitimer(signal.ITIMER_REAL, 2e-5 + 1e-6 * i)
                model.learn_one(x, y)
                at_work = False
            except Interrupted:
                at_work = False
                n += 1
            assert learned(model) in (old, learned(whole))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert n
