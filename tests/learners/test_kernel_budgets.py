"""Budgets of support vectors."""

import copy
import math
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels import FUNCTIONS, KERNELS, NAMES, examples_of_any_kind, name_of, rbf, stream, vector_of
from scipy import optimize, sparse
from sklearn.metrics.pairwise import rbf_kernel

from stream_pegasos import (
    KernelPegasosClassifier,
)


def gram(vectors, gamma):
    return rbf_kernel(np.array(vectors), gamma=gamma)


def lost(before, after, kernel):
    """‖Σ β φ(x) − Σ β' φ(x')‖² of two lists of (vector, coefficient)."""
    vectors = np.array([v for v, _ in (*before, *after)])
    coefficients = np.array([*(b for _, b in before), *(-b for _, b in after)])
    return float(coefficients @ kernel(vectors) @ coefficients)


def expansion(model, names=NAMES):
    return [(vector_of(x, names), float(b)) for x, b in zip(model.support_vectors, model.dual_coef, strict=True)]


@pytest.mark.parametrize("kernel", [*KERNELS, *FUNCTIONS.values()], ids=name_of)
@pytest.mark.parametrize("budget", [1, 2, 7])
def test_removal_takes_the_smallest(kernel, budget):
    parameters, dense_kernel = KERNELS[name_of(kernel)]
    options = {"l2": 0.1, "kernel": kernel, "budget_maintenance": "removal", **parameters}
    model = KernelPegasosClassifier(budget=budget, **options)
    generator = np.random.default_rng(1)
    removals = 0
    for x, y in stream(80, seed=2):
        before, w = expansion(model), float(generator.uniform(0.1, 3.0))
        violated = (1.0 if y == model.classes[1] else -1.0) * model.decision_function_one(x) < 1.0
        if None in model.classes:
            model.learn_one(x, y, w)  # which is positive is not yet clear
            continue
        model.learn_one(x, y, w)
        if violated:
            before.append((vector_of(x), w if y == model.classes[1] else -w))
        if len(before) > budget:
            sizes = [b * b * float(dense_kernel(v[None, :])[0, 0]) for v, b in before]
            del before[int(np.argmin(sizes))]
            removals += 1
        found = sorted((tuple(v), b) for v, b in expansion(model))
        assert found == [(v, pytest.approx(b)) for v, b in sorted((tuple(v), b) for v, b in before)]
        assert len(model.support_vectors) <= budget
    assert removals > 10


@pytest.mark.parametrize("gamma", [0.02, 3.0])
def test_merging_is_that_of_wang_crammer_and_vucetic(gamma):
    """The smallest one with the one of its class with which least is lost, as the one point that keeps most of both."""
    budget = 6
    model = KernelPegasosClassifier(l2=0.05, kernel="rbf", gamma=gamma, budget=budget)
    generator = np.random.default_rng(1)
    merges = 0
    for i, (x, y) in enumerate(stream(120, seed=2)):
        before, w = expansion(model), float(generator.uniform(0.1, 3.0))
        if i < 2:
            model.learn_one(x, "in" if i else "out", w)
            continue
        assert model.classes == ("out", "in")
        sign = 1.0 if y == "in" else -1.0
        violated = sign * model.decision_function_one(x) < 1.0
        model.learn_one(x, y, w)
        after = expansion(model)
        assert len(after) <= budget
        if violated:
            before.append((vector_of(x), w * sign))
        if len(before) <= budget:
            assert sorted((tuple(v), b) for v, b in after) == sorted((tuple(v), b) for v, b in before)
            continue
        one, beta = before[(least := int(np.argmin([abs(b) for _, b in before])))]
        candidates = []
        for other, other_beta in (pair for j, pair in enumerate(before) if j != least and pair[1] * beta > 0.0):
            m, similarity = beta / (beta + other_beta), float(gram([one, other], gamma)[0, 1])

            def kept(h, m=m, similarity=similarity):
                return m * similarity ** ((1 - h) ** 2) + (1 - m) * similarity ** (h * h)

            grid = np.linspace(0.0, 1.0, 401)
            start = grid[np.argmax(kept(grid))]
            bounds = (max(start - 0.01, 0.0), min(start + 0.01, 1.0))
            h = optimize.minimize_scalar(
                lambda h: -kept(h), bounds=bounds, method="bounded", options={"xatol": 1e-12}
            ).x
            mixed, total = h * one + (1 - h) * other, beta + other_beta
            loss = lost([(one, beta), (other, other_beta)], [(mixed, total * kept(h))], lambda V: gram(V, gamma))
            candidates.append((loss, mixed, total * kept(h), other))
        if not candidates:
            assert len(after) == budget  # nothing of its class: removed
            continue
        merges += 1
        old = {tuple(v) for v, _ in before}
        new = [(v, b) for v, b in after if tuple(v) not in old]
        if not new:  # so far apart that the mixture is the larger of the two
            continue
        ((found, found_beta),) = new
        chosen = min(candidates, key=lambda candidate: np.abs(candidate[1] - found).max())
        # Features smaller than 1e-4 of the largest are dropped.
        assert found == pytest.approx(chosen[1], rel=1e-5, abs=2e-4 * np.abs(chosen[1]).max())
        assert found_beta == pytest.approx(chosen[2], rel=1e-6)
        best = min(candidate[0] for candidate in candidates)
        assert chosen[0] <= best + 2e-3 * (beta + chosen[2]) ** 2
        untouched = {tuple(v) for v, _ in before} - {tuple(one), tuple(chosen[3])}
        assert {tuple(v) for v, _ in after} == untouched | {tuple(found)}
    assert merges > 20


def test_merging_loses_less_than_removal():
    generator = np.random.default_rng(0)
    losses, errors = {}, {}
    for maintenance in ("merging", "removal"):
        model = KernelPegasosClassifier(l2=0.01, gamma=1.0, budget=20, budget_maintenance=maintenance)
        generator = np.random.default_rng(0)
        losses[maintenance], wrong = [], []
        for i in range(800):
            x = dict(enumerate(generator.normal(size=2).tolist()))
            y = (x[0] * x[1] > 0.0) if i > 1 else bool(i)
            wrong.append(model.predict_one(x) != y)
            before, margin = expansion(model, [0, 1]), model.decision_function_one(x)
            model.learn_one(x, y)
            if len(before) == 20 and (1.0 if y else -1.0) * margin < 1.0:
                before.append((vector_of(x, [0, 1]), 1.0 if y else -1.0))
                losses[maintenance].append(lost(before, expansion(model, [0, 1]), lambda V: gram(V, 1.0)))
        errors[maintenance] = np.mean(wrong[200:])
    assert len(losses["merging"]) > 30 and len(losses["removal"]) > 30
    assert np.mean(losses["merging"]) < 0.5 * np.mean(losses["removal"])
    assert errors["merging"] <= errors["removal"] and errors["merging"] < 0.2


@given(
    kernel=st.sampled_from(sorted(KERNELS)),
    budget=st.integers(1, 4),
    maintenance=st.sampled_from([None, "removal"]),
    examples=st.lists(examples_of_any_kind, max_size=25),
)
def test_never_more_support_vectors_than_the_budget(kernel, budget, maintenance, examples):
    model = KernelPegasosClassifier(l2=0.1, kernel=kernel, budget=budget, budget_maintenance=maintenance)
    for x, y, w in examples:
        model.learn_one(x, y, w)
        assert len(model.support_vectors) == len(model.dual_coef) <= budget
        assert np.isfinite(model.dual_coef).all() and math.isfinite(model.decision_function_one(x))
    assert model.n_iterations == len(examples)


@pytest.mark.parametrize("kernel", [*KERNELS, rbf], ids=name_of)
def test_a_duplicate_adds_to_its_coefficient(kernel):
    model = KernelPegasosClassifier(l2=100.0, kernel=kernel, pos_label=True)
    for n in range(1, 5):
        model.learn_one({"a": 1.0, 3: 0.5}, True)
        assert model.support_vectors == [{"a": 1.0, 3: 0.5}]
        assert model.dual_coef.tolist() == [float(n)]
    model.learn_one({"a": 1.0, 3: 0.5, "zero": 0}, False, w=3.0)
    assert model.dual_coef.tolist() == [1.0]
    model.learn_one({"a": 1.0, 3: 0.5}, False)
    assert model.support_vectors == [] and model.dual_coef.tolist() == []
    assert model.decision_function_one({"a": 1.0}) == 0.0 and model.n_iterations == 6
    matrix = sparse.csr_matrix(np.array([[0.0, 2.0], [0.0, 2.0]]))
    model.learn_many(matrix, [True, True])
    assert model.support_vectors == [{1: 2.0}] and model.dual_coef.tolist() == [2.0]


@pytest.mark.parametrize("kernel", ["rbf", "linear", "cosine"])
def test_memory_is_bounded_on_a_stream_that_always_brings_new_features(kernel):
    """The index of features holds those of the support vectors alone."""
    model = KernelPegasosClassifier(l2=1.0, kernel=kernel, budget=10)
    sizes, n = [], 1_000
    for i in range(n):
        model.learn_one({1_000 * i + j: 1.0 for j in range(20)}, i % 2 == 0)
        held = model._learner._vectors
        n_dense = 0 if held.dense is None else held.dense.size
        sizes.append(len(held.columns) + len(held.keys) + len(held.matrix.data) + held.numbers.size + n_dense)
        assert max(map(len, model.support_vectors)) <= 20 * 14  # merged ones forget what has become small
    assert len(model.support_vectors) == 10
    assert max(sizes[n // 2 :]) <= 2 * max(sizes[: n // 4])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
@pytest.mark.parametrize("maintenance", ["merging", "removal"])
def test_an_interrupted_step_is_taken_whole_or_not_at_all(maintenance):
    class Interrupted(Exception):
        pass

    def interrupt(number, frame):
        if at_work:  # on a slow machine the timer may be late, or early
            raise Interrupted

    model = KernelPegasosClassifier(l2=0.01, budget=8, budget_maintenance=maintenance)
    examples, n, at_work = list(stream(300)), 0, False
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i, (x, y) in enumerate(examples):
            whole, old = copy.deepcopy(model), expansion(model)
            whole.learn_one(x, y)
            try:
                at_work = True
                signal.setitimer(signal.ITIMER_REAL, 2e-5 + 1e-6 * i)
                model.learn_one(x, y)
                at_work = False
            except Interrupted:
                at_work = False
                n += 1
            found = [[(v.tolist(), b) for v, b in one] for one in (expansion(model), old, expansion(whole))]
            assert found[0] in found[1:]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert n
