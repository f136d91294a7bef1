"""Batch solvers on sparse matrices, for comparison with an online learner."""

import math
from collections.abc import Callable

import numpy as np
from scipy import linalg, optimize, sparse
from scipy.sparse.linalg import LinearOperator, cg

Vector = np.ndarray
Kernel = Callable[..., Vector]


def objective(weights: Vector, X: sparse.csr_array, y: Vector, l2: float) -> float:
    """λ/2 ‖w‖² + mean hinge loss, equation 1 of Shalev-Shwartz, Singer and Srebro (ICML 2007); labels are −1 and 1."""
    return hinge_objective(l2, weights, y * (X @ weights))


def subgradient_descent(
    X: sparse.csr_array,
    y: Vector,
    l2: float,
    tol: float = 1e-3,
    max_iter: int = 1_000,
    callback: Callable[..., object] = lambda intermediate_result: None,
) -> optimize.OptimizeResult:
    """Pegasos with all examples in each batch, which minimises λ/2 ‖w‖² + mean hinge loss over labels of −1 and 1.

    It starts at w = 0 and stops as soon as the duality gap is at most `tol`. The dual variable of an example is the
    share of the steps in which it violated the margin, shrunk with each projection. (Figure 2, with k = n, of
    Shalev-Shwartz, Singer, Srebro and Cotter, Mathematical Programming 127, 2011.)

    Returns the weights `x`, their objective `fun`, the duality `gap` (the objective is at most that far above its
    minimum), the number of steps `nit` and `success`. The callback gets `x` and `fun` after each step.
    """
    n, radius = len(y), 1.0 / math.sqrt(l2)
    w, margins, mean_dual = np.zeros(X.shape[1]), np.zeros(n), 0.0
    for t in range(1, max_iter + 1):
        violating = margins < 1.0
        w = (1.0 - 1.0 / t) * w + X.T @ (y * violating) / (l2 * t * n)
        mean_dual = (1.0 - 1.0 / t) * mean_dual + violating.mean() / t
        shrink = radius / max(radius, linalg.norm(w))
        w, mean_dual = shrink * w, shrink * mean_dual
        margins = y * (X @ w)
        fun = hinge_objective(l2, w, margins)
        gap = fun - (mean_dual - 0.5 * l2 * (w @ w))
        callback(intermediate_result=optimize.OptimizeResult(x=w, fun=fun))
        if gap <= tol:
            break
    return final_result(w, fun, gap, t, tol)


def newton(
    X: sparse.csr_array | Vector,
    y: Vector,
    l2: float,
    kernel: Kernel | str | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callable[..., object] = lambda intermediate_result: None,
    x0: Vector | None = None,
    rtol: float = 1e-3,
) -> optimize.OptimizeResult:
    """Newton's method in the primal, which minimises λ/2 ‖w‖² + mean squared hinge loss max(0, 1 − y⟨w, x⟩)².

    The linear steps are found by conjugate gradients, down to a residual of `rtol` times the gradient, and the Hessian
    is never formed. With a kernel (a function of two matrices, or "precomputed" where X is the kernel matrix) each step
    solves (K + nλ/2 I)β = y over the examples that violate the margin. An exact line search follows. It begins at `x0`,
    or at 0. (Chapelle, Training a support vector machine in the primal, Neural Computation 19, 2007, with λ/2 and the
    mean where it has λ and the sum.)

    Returns the weights `x`, or with a kernel the coefficients β of the examples; their objective `fun`, the `gap` (the
    objective is at most that far above its minimum), the number of steps `nit` and `success`.
    """
    space = (
        FeatureSpace(X, y, l2, rtol)
        if kernel is None
        else KernelSpace(X if kernel == "precomputed" else kernel(X, X), y, l2)
    )
    x = np.zeros(space.size) if x0 is None else x0
    outputs, nit = space.outputs(x), 0
    while True:
        slack = np.maximum(0.0, 1.0 - y * outputs)
        fun = 0.5 * l2 * space.inner(x, x) + float(np.mean(slack**2))
        gradient = space.gradient(x, slack)
        # The objective curves by λ at least; a square below 0, which no kernel has, must not pass for the optimum.
        gap = abs(space.inner(gradient, gradient)) / (2.0 * l2)
        if nit:
            callback(intermediate_result=optimize.OptimizeResult(x=x, fun=fun))
        if gap <= tol or nit == max_iter:
            return final_result(x, fun, gap, nit, tol)
        direction = space.direction(x, slack > 0.0, gradient)
        changes = space.outputs(direction)
        along, squares = space.inner(x, direction), space.inner(direction, direction)
        step = exact_step(l2, along, squares, 1.0 - y * outputs, y * changes)
        if step == 0.0:
            return final_result(x, fun, gap, nit, tol)
        x, outputs, nit = x + step * direction, outputs + step * changes, nit + 1


class FeatureSpace:
    """Newton's method over the weights of a linear machine."""

    def __init__(self, X: sparse.csr_array, y: Vector, l2: float, rtol: float) -> None:
        self.X, self.y, self.l2, self.rtol, self.size = X, y, l2, rtol, X.shape[1]

    def outputs(self, w: Vector) -> Vector:
        return np.asarray(self.X @ w)

    def inner(self, u: Vector, v: Vector) -> float:
        return float(u @ v)

    def gradient(self, w: Vector, slack: Vector) -> Vector:
        return np.asarray(self.l2 * w - self.X.T @ (2.0 / len(self.y) * slack * self.y))

    def direction(self, w: Vector, violating: Vector, gradient: Vector) -> Vector:
        violators, scale = self.X[violating], 2.0 / len(self.y)
        hessian = LinearOperator(
            (len(w), len(w)), matvec=lambda v: self.l2 * v + scale * (violators.T @ (violators @ v)), dtype=np.float64
        )
        # This is a direction of descent even if it stops early.
        direction, _ = cg(hessian, -gradient, rtol=self.rtol, maxiter=1_000)
        return np.asarray(direction)


class KernelSpace:
    """Newton's method over the coefficients of the examples, the inner products being those of the kernel's space."""

    def __init__(self, K: Vector, y: Vector, l2: float) -> None:
        self.K, self.y, self.l2, self.size = K, y, l2, len(y)

    def outputs(self, beta: Vector) -> Vector:
        return np.asarray(self.K @ beta)

    def inner(self, u: Vector, v: Vector) -> float:
        return float(u @ self.K @ v)

    def gradient(self, beta: Vector, slack: Vector) -> Vector:
        return np.asarray(self.l2 * beta - 2.0 / len(self.y) * slack * self.y)

    def direction(self, beta: Vector, violating: Vector, gradient: Vector) -> Vector:
        (support,) = np.nonzero(violating)
        # One copy, that of the part: with many examples the memory is the limit.
        part = self.K[np.ix_(support, support)]
        part[np.diag_indices_from(part)] += 0.5 * len(self.y) * self.l2
        target = np.zeros_like(beta)
        target[support] = linalg.solve(part, self.y[support], overwrite_a=True, assume_a="pos")
        return np.asarray(target - beta)


def exact_step(l2: float, along: float, squares: float, slack: Vector, changes: Vector) -> float:
    """The step to the least objective in a direction; 0 if rounding errors leave no way down.

    `along` is ⟨x, direction⟩, `squares` is ‖direction‖², `slack` is 1 − margin, `changes` what a step adds to margins.
    """

    def slope(step: float) -> float:
        losing = np.maximum(0.0, slack - step * changes)
        return float(l2 * (along + step * squares) - 2.0 * np.mean(losing * changes))

    if slope(0.0) >= 0.0:
        return 0.0
    far = 1.0
    while slope(far) < 0.0:
        far *= 2.0
    return float(optimize.brentq(slope, 0.0, far))


def hinge(margins: Vector) -> Vector:
    return np.maximum(0.0, 1.0 - margins)


def hinge_objective(l2: float, weights: Vector, margins: Vector) -> float:
    return float(0.5 * l2 * (weights @ weights) + np.mean(hinge(margins)))


def final_result(x: Vector, fun: float, gap: float, nit: int, tol: float) -> optimize.OptimizeResult:
    return optimize.OptimizeResult(x=x, fun=fun, gap=gap, nit=nit, success=bool(gap <= tol))
