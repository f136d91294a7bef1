import itertools

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.spatial.distance import cdist
from sklearn.svm import LinearSVC

from stream_pegasos import (
    HashedBagOfWords,
    KernelPegasosClassifier,
    PegasosClassifier,
    TextClassifier,
)
from stream_pegasos.learners.batch import newton, objective, subgradient_descent


def examples(n=200, n_columns=30, seed=0, density=0.3):
    """Sparse rows and labels that no plane separates."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, n_columns), density=density, format="csr", rng=rng)
    noise = 0.5 * rng.normal(size=n)
    return X, np.where(X @ rng.normal(size=n_columns) + noise > 0.0, 1, -1)


def squared_hinge(w, X, y, l2):
    slack = np.maximum(0.0, 1.0 - y * (X @ w))
    return 0.5 * l2 * (w @ w) + np.mean(slack**2), l2 * w - 2.0 * X.T @ (slack * y) / len(y)


def linear_svc(X, y, l2, loss):
    """The weights of scikit-learn's optimum, as exact as liblinear can."""
    svc = LinearSVC(
        loss=loss, C=1.0 / (l2 * len(y)), fit_intercept=False, tol=1e-10, max_iter=1_000_000, random_state=0
    )
    return svc.fit(X, y).coef_[0]


def rbf(A, B):
    return np.exp(-cdist(A.toarray(), B.toarray(), "sqeuclidean"))


# --- Newton's method --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [1.0, 1e-2, pytest.param(1e-5, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("n_columns", [30, 500])  # fewer and more columns than examples
def test_newton_finds_the_optimum_of_other_solvers(l2, n_columns):
    X, y = examples(n_columns=n_columns)
    result = newton(X, y, l2, tol=1e-12)
    assert result.success and result.gap <= 1e-12
    assert result.fun == pytest.approx(squared_hinge(result.x, X, y, l2)[0], rel=1e-12)
    peer = optimize.minimize(
        squared_hinge, np.zeros(n_columns), (X, y, l2), "L-BFGS-B", True, options={"ftol": 0.0, "gtol": 1e-9}
    )
    assert result.fun == pytest.approx(peer.fun, abs=1e-9)
    assert squared_hinge(linear_svc(X, y, l2, "squared_hinge"), X, y, l2)[0] == pytest.approx(result.fun, abs=1e-8)


def test_newton_with_a_linear_kernel_is_the_linear_one():
    X, y = examples()
    linear = newton(X, y, 0.01, tol=1e-13)
    for kernel, matrix in ((lambda A, B: A @ B.T, X), ("precomputed", (X @ X.T).toarray())):
        dual = newton(matrix, y, 0.01, kernel=kernel, tol=1e-13)
        assert dual.success
        assert dual.fun == pytest.approx(linear.fun, abs=1e-12)
        np.testing.assert_allclose(X.T @ dual.x, linear.x, atol=1e-5)


@pytest.mark.parametrize("l2", [1.0, 1e-3])
def test_newton_with_a_kernel_solves_the_equation_of_its_support_vectors(l2):
    X, y = examples(seed=1)
    K = rbf(X, X)
    result = newton(X, y, l2, kernel=rbf, tol=1e-12)
    support = y * (K @ result.x) < 1.0
    assert result.success and support.any()
    np.testing.assert_allclose(result.x[~support], 0.0, atol=1e-12)
    equation = K[np.ix_(support, support)] @ result.x[support] + 0.5 * l2 * len(y) * result.x[support]
    np.testing.assert_allclose(equation, y[support], rtol=1e-9)


@pytest.mark.parametrize("kernel", [None, rbf])
def test_what_newton_certifies_is_true(kernel):
    X, y = examples(seed=2)
    least = newton(X, y, 1e-3, kernel=kernel, tol=1e-13).fun
    for max_iter in (1, 2, 4, 7):
        result = newton(X, y, 1e-3, kernel=kernel, tol=1e-10, max_iter=max_iter)
        assert -1e-12 <= result.fun - least <= result.gap + 1e-12
        assert result.nit <= max_iter
        assert result.success == (result.gap <= 1e-10)
    assert not newton(X, y, 1e-3, kernel=kernel, tol=1e-10, max_iter=1).success


def test_each_newton_step_goes_down():
    X, y = examples(seed=3)
    history = []
    result = newton(X, y, 1e-4, callback=lambda intermediate_result: history.append(intermediate_result))
    values = [step.fun for step in history]
    assert len(values) == result.nit >= 3
    assert all(after < before for before, after in itertools.pairwise(values))
    assert [squared_hinge(step.x, X, y, 1e-4)[0] for step in history] == pytest.approx(values)
    np.testing.assert_array_equal(history[-1].x, result.x)


def test_newton_stops_where_rounding_leaves_no_way_down():
    X, y = examples()
    result = newton(X, y, 1e-2, tol=0.0)
    assert result.gap < 1e-12
    assert result.fun == pytest.approx(newton(X, y, 1e-2, tol=1e-12).fun, abs=1e-12)


@pytest.mark.parametrize("kernel", [None, rbf])
def test_newton_goes_on_from_where_it_is_told_to_begin(kernel):
    X, y = examples(seed=4)
    path = [newton(X, y, 1e-3, kernel=kernel, tol=1e-12, max_iter=n) for n in range(1, 5)]
    begun, stepped = path[:-1], path[1:]
    for start, after in zip(begun, stepped, strict=True):
        went_on = newton(X, y, 1e-3, kernel=kernel, tol=1e-12, max_iter=1, x0=start.x.tolist())
        np.testing.assert_allclose(went_on.x, after.x, rtol=1e-3, atol=1e-4)
    assert newton(X, y, 1e-3, kernel=kernel, tol=1e-9, x0=newton(X, y, 1e-3, kernel=kernel, tol=1e-12).x).nit == 0


def test_kernel_of_many_rows_must_be_symmetric_to_the_last():
    K = np.eye(1_003)
    K[0, 1_002] = 1.0
    with pytest.raises(ValueError, match="must be symmetric, 1003 by 1003"):
        newton(K, np.ones(1_003), kernel="precomputed")


def test_bad_first_weights():
    X, y = examples()
    for kernel, size in ((None, 30), (rbf, 200)):
        with pytest.raises(ValueError, match=rf"the shape \(7,\); it must be \({size},\)"):
            newton(X, y, kernel=kernel, x0=np.zeros(7))
        with pytest.raises(ValueError, match="no finite numbers"):
            newton(X, y, kernel=kernel, x0=np.full(size, np.nan))


# --- subgradient descent ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [1.0, 0.01])
@pytest.mark.parametrize("n_steps", [1, 2, 30])
def test_subgradient_descent_is_pegasos_with_all_examples(dense_pegasos, l2, n_steps):
    X, y = examples(n=50)
    result = subgradient_descent(X, y, l2, tol=0.0, max_iter=n_steps)
    dense = dense_pegasos(X.shape[1], l2, batch_size=len(y))
    for _ in range(n_steps):
        for x, label in zip(X.toarray(), y, strict=True):
            dense.learn(x, label)
    np.testing.assert_allclose(result.x, dense.w, rtol=1e-9, atol=1e-12)
    assert result.nit == dense.t
    slack = np.maximum(0.0, 1.0 - y * (X.toarray() @ dense.w))
    assert result.fun == pytest.approx(0.5 * l2 * (dense.w**2).sum() + slack.mean())


@pytest.mark.parametrize("l2", [1.0, 0.1, 0.01])
def test_subgradient_descent_reaches_the_optimum_of_liblinear(l2):
    X, y = examples()
    least = objective(linear_svc(X, y, l2, "hinge"), X, y, l2)
    result = subgradient_descent(X, y, l2, tol=1e-4, max_iter=100_000)
    assert result.success
    assert -1e-9 <= result.fun - least <= result.gap <= 1e-4


def test_what_subgradient_descent_certifies_is_true():
    X, y = examples(seed=4)
    X = 20.0 * X  # so that the projection has something to do
    least = objective(linear_svc(X, y, 0.1, "hinge"), X, y, 0.1)
    steps = []
    subgradient_descent(X, y, 0.1, callback=lambda intermediate_result: steps.append(intermediate_result.x))
    assert max(map(np.linalg.norm, steps)) == pytest.approx(0.1**-0.5)
    for n_steps in (1, 2, 3, 10, 100, len(steps)):
        result = subgradient_descent(X, y, 0.1, max_iter=n_steps)
        assert -1e-9 <= result.fun - least <= result.gap
        np.testing.assert_array_equal(result.x, steps[n_steps - 1])


# --- the objective ----------------------------------------------------------------------------------------------------


def test_objective_by_hand():
    X = sparse.csr_array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    w = np.array([0.5, -1.0])
    # λ/2 ‖w‖² = 0.1 · 1.25; the margins are 0.5, 2 and 0.5.
    assert objective(w, X, [1, -1, -1], l2=0.2) == pytest.approx(0.125 + (0.5 + 0.0 + 0.5) / 3)
    assert objective(w, X.toarray(), np.array([1.0, -1.0, -1.0]), l2=0.2) == objective(w, X, [1, -1, -1], l2=0.2)


@pytest.mark.parametrize(
    ("labels", "pos_label"), [((-1, 1), None), ((False, True), None), (("ham", "spam"), None), (("spam", "ham"), "ham")]
)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_objective_of_a_model_is_that_of_its_weights(labels, pos_label, fit_intercept):
    X, signs = examples()
    y = [labels[int(sign > 0)] for sign in [-1, *signs]]  # the negative label comes first
    X = sparse.vstack([X[:1], X]).tocsr()
    model = PegasosClassifier(0.01, fit_intercept=fit_intercept, intercept_scaling=2.0, pos_label=pos_label)
    model.learn_many(X, y)
    weights = np.array([*(model.weights.get(i, 0.0) for i in range(X.shape[1])), model.intercept / 2.0])
    with_constant = sparse.hstack([X, np.full((X.shape[0], 1), 2.0)])
    expected = objective(weights, with_constant, [-1, *signs], l2=0.01)
    assert objective(model, X, y) == pytest.approx(expected)
    assert objective(model, X, y, l2=0.02) == pytest.approx(expected + 0.005 * weights @ weights)
    dicts = [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X]
    assert objective(model, dicts, y) == pytest.approx(expected)


def test_objective_of_a_text_classifier_is_that_of_its_two_parts():
    texts, y = ["see you at lunch", "cheap pills", "lunch?", "pills for you"], ["ham", "spam", "ham", "spam"]
    model = TextClassifier(HashedBagOfWords(n_features=64), PegasosClassifier(l2=0.1))
    model.learn_many(texts, y)
    parts = PegasosClassifier(l2=0.1)
    X = HashedBagOfWords(n_features=64).transform_many(texts)
    parts.learn_many(X, y)
    assert objective(model, texts, y) == pytest.approx(objective(parts, X, y))


def test_objective_of_a_model_that_has_not_met_both_labels():
    model = PegasosClassifier(l2=1.0)
    assert objective(model, [{"a": 1}, {}], ["ham", "spam"]) == 1.0
    model.learn_one({"a": 1}, "ham")  # w = −1, so that the margin of the other is −1
    assert objective(model, [{"a": 1}, {"a": 1}], ["ham", "spam"]) == pytest.approx(0.5 + (0.0 + 2.0) / 2)
    positive = PegasosClassifier(l2=1.0)
    positive.learn_one({"a": 1}, 1)
    assert objective(positive, [{"a": 1}, {"a": 1}], [1, 0]) == pytest.approx(0.5 + (0.0 + 2.0) / 2)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_objective_of_several_classes(multi_class):
    X, _ = examples(n=60, n_columns=8)
    labels = [str(label) for label in np.random.default_rng(2).integers(0, 4, 60)]
    model = PegasosClassifier(multi_class=multi_class, l2=0.1, fit_intercept=True, intercept_scaling=2.0)
    model.learn_many(X, labels)
    margins = [model.decision_function_one(dict(enumerate(row))) for row in X.toarray().tolist()]
    losses = []
    for own, label in zip(margins, labels, strict=True):
        rest = {other: margin for other, margin in own.items() if other != label}
        if multi_class == "crammer_singer":
            losses.append(max(0.0, 1.0 + max(rest.values()) - own[label]))
        else:
            losses.append(max(0.0, 1.0 - own[label]) + sum(max(0.0, 1.0 + margin) for margin in rest.values()))
    squares = sum(w * w for weights in model.weights.values() for w in weights.values())
    squares += sum((w / 2.0) ** 2 for w in model.intercept.values())
    assert objective(model, X, labels) == pytest.approx(0.05 * squares + np.mean(losses), rel=1e-12)
    with pytest.raises(ValueError, match="label 'other' is none of the model's, which are"):
        objective(model, X[:1], ["other"])


def test_objective_with_a_kernel():
    X, y = examples(n=60, n_columns=8)
    linear, kernel = PegasosClassifier(l2=0.1, project=False), KernelPegasosClassifier(l2=0.1, kernel="linear")
    assert objective(kernel, X, y) == 1.0
    for model in (linear, kernel):
        model.learn_many(X, y)
    assert objective(kernel, X, y) == pytest.approx(objective(linear, X, y), rel=1e-12)
    curved = KernelPegasosClassifier(l2=0.1, t0=3.0, gamma=0.5)
    curved.learn_many(X, y)
    vectors = np.array([[x.get(j, 0.0) for j in range(8)] for x in curved.support_vectors])
    beta = curved.dual_coef / (0.1 * (60 + 3))
    squares = beta @ np.exp(-0.5 * cdist(vectors, vectors, "sqeuclidean")) @ beta
    margins = np.exp(-0.5 * cdist(X.toarray(), vectors, "sqeuclidean")) @ beta
    expected = 0.05 * squares + np.maximum(0.0, 1.0 - y * margins).mean()
    assert objective(curved, X, y) == pytest.approx(expected, rel=1e-12)


def test_the_gap_of_an_online_model_shrinks():
    X, y = examples(n=2_000, seed=5)
    l2 = 0.01
    least = objective(linear_svc(X, y, l2, "hinge"), X, y, l2)
    model, gaps = PegasosClassifier(l2), []
    for _ in range(30):
        model.learn_many(X, y)
        gaps.append(objective(model, X, y) - least)
    assert min(gaps) >= 0.0
    assert gaps[-1] < 0.2 * gaps[0]


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solve", [subgradient_descent, newton, lambda X, y: objective(np.zeros(2), X, y, l2=1.0)])
@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[1.0, np.nan]], [1], ValueError, "NaN, infinite or beyond"),
        ([[1.0, -np.inf]], [1], ValueError, "NaN, infinite or beyond"),
        ([["a", "b"]], [1], TypeError, "real numbers"),
        (sparse.csr_array([[1j, 0]]), [1], TypeError, "real numbers"),
        ([1.0, 2.0], [1, 1], TypeError, "1 dimensions"),
        (np.eye(2), [1], ValueError, "1 labels for 2 examples"),
        (np.eye(2), [1, 0], ValueError, r"label .*0.* is neither -1 nor 1; numpy.where"),
        (np.eye(2), ["ham", "spam"], ValueError, "'ham'.* is neither -1 nor 1"),
        (np.eye(2), [1, np.nan], ValueError, "nan.* is neither"),
        (np.eye(2), [[1], [1]], ValueError, "2 dimensions"),
        (np.empty((0, 2)), [], ValueError, "no examples"),
    ],
)
def test_bad_examples(solve, X, y, error, message):
    with pytest.raises(error, match=message):
        solve(X, y)


@pytest.mark.parametrize("solve", [subgradient_descent, newton])
@pytest.mark.parametrize(
    ("parameter", "error", "message"),
    [
        ({"l2": 0.0}, ValueError, "l2 is 0.0"),
        ({"l2": np.inf}, ValueError, "l2 is inf"),
        ({"l2": "1"}, TypeError, "l2 is '1'"),
        ({"tol": -1.0}, ValueError, "tol is -1.0"),
        ({"tol": np.nan}, ValueError, "tol is nan"),
        ({"max_iter": 0}, ValueError, "max_iter is 0"),
        ({"max_iter": 2.5}, TypeError, "max_iter is 2.5"),
        ({"callback": "f"}, TypeError, "callback is 'f'"),
        ({"tol": 1e200}, ValueError, "tol is 1e"),
    ],
)
def test_bad_parameters(solve, parameter, error, message):
    with pytest.raises(error, match=message):
        solve(np.eye(2), [1, -1], **parameter)


def test_bad_kernels():
    for kernel in ("rbf", 1):
        with pytest.raises(TypeError, match=f"kernel is {kernel!r}"):
            newton(np.eye(2), [1, -1], kernel=kernel)
    for kernel in (lambda A, B: np.ones((2, 3)), lambda A, B: np.array([[1.0, 0.0], [1.0, 1.0]])):
        with pytest.raises(ValueError, match="must be symmetric, 2 by 2"):
            newton(np.eye(2), [1, -1], kernel=kernel)
    with pytest.raises(ValueError, match="must be symmetric"):
        newton(np.ones((2, 3)), [1, -1], kernel="precomputed")
    with pytest.raises(np.linalg.LinAlgError):
        newton(-np.eye(2), [1, -1], kernel="precomputed")


def test_what_has_no_objective():
    model = PegasosClassifier(l2=0.1)
    model.learn_many([{"a": 1}, {"a": 2}], ["ham", "spam"])
    with pytest.raises(ValueError, match="label 'eggs' is none of the model's, which are 'ham' and 'spam'"):
        objective(model, [{"a": 1}], ["eggs"])
    with pytest.raises(ValueError, match="2 labels for 1 examples"):
        objective(model, [{"a": 1}], ["ham", "spam"])
    with pytest.raises(ValueError, match="no examples"):
        objective(model, [], [])
    with pytest.raises(TypeError, match="no classifier with an objective"):
        objective(LinearSVC(), np.eye(2), [1, -1])
    with pytest.raises(TypeError, match="l2 is None"):
        objective(np.zeros(2), np.eye(2), [1, -1])
    for weights in ([np.nan, 1.0], [np.inf, 1.0], [1j, 1.0], ["a", "b"]):
        with pytest.raises(ValueError, match="weights are no finite numbers"):
            objective(np.array(weights), np.eye(2), [1, -1], l2=1.0)
    with pytest.raises(ValueError, match="which are none yet"):
        objective(PegasosClassifier(multi_class="crammer_singer"), [{"a": 1}], ["ham"])
    with pytest.raises(ValueError, match=r"the shape \(3,\); it must be \(2,\)"):
        objective(np.zeros(3), np.eye(2), [1, -1], l2=1.0)
