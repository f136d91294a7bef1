import numpy as np
import pytest
from batch import newton, objective, subgradient_descent
from scipy import optimize, sparse
from scipy.spatial.distance import cdist
from sklearn.svm import LinearSVC

from stream_pegasos import PegasosClassifier


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


@pytest.mark.parametrize("l2", [1.0, 1e-2, pytest.param(1e-4, marks=pytest.mark.heavy)])
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
    for kernel, matrix in ((lambda A, B: (A @ B.T).toarray(), X), ("precomputed", (X @ X.T).toarray())):
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


@pytest.mark.parametrize("kernel", [None, rbf])
def test_newton_goes_on_from_where_it_is_told_to_begin(kernel):
    X, y = examples(n=80, seed=4)
    # Conjugate gradients go to the end: where they stop before, one rounding more or less may be two iterations.
    options = {"kernel": kernel, "rtol": 1e-12}
    path = [newton(X, y, 1e-3, tol=1e-12, max_iter=n, **options) for n in range(1, 5)]
    begun, stepped = path[:-1], path[1:]
    for start, after in zip(begun, stepped, strict=True):
        went_on = newton(X, y, 1e-3, tol=1e-12, max_iter=1, x0=start.x, **options)
        np.testing.assert_allclose(went_on.x, after.x, rtol=1e-9, atol=1e-9)
    assert newton(X, y, 1e-3, tol=1e-9, x0=newton(X, y, 1e-3, tol=1e-12, **options).x, **options).nit == 0


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


@pytest.mark.heavy
@pytest.mark.parametrize("l2", [1.0, 0.01])
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


def test_the_gap_of_an_online_model_shrinks():
    X, y = examples(n=2_000, seed=5)
    l2 = 0.01
    least = objective(linear_svc(X, y, l2, "hinge"), X, y, l2)
    model, gaps = PegasosClassifier(l2), []
    for _ in range(30):
        model.learn_many(X, y)
        weights = np.array([model.weights.get(j, 0.0) for j in range(X.shape[1])])
        gaps.append(objective(weights, X, y, l2) - least)
    assert min(gaps) >= 0.0
    assert gaps[-1] < 0.2 * gaps[0]
