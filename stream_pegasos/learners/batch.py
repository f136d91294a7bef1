"""Batch solvers on sparse matrices: what an online learner is measured against."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize, sparse
from scipy.sparse.linalg import LinearOperator, cg

from stream_pegasos.common.checks import LARGEST_L2, SMALLEST_L2, check_integer, check_lengths, check_number
from stream_pegasos.engine.pure.weights import VALUE_LIMIT
from stream_pegasos.learners.kernel import KernelPegasosClassifier
from stream_pegasos.learners.labels import check_label
from stream_pegasos.learners.pegasos import PegasosClassifier
from stream_pegasos.learners.text import TextClassifier

__all__ = ["newton", "objective", "subgradient_descent"]

# Its square is finite.
LARGEST_NUMBER = 1e150

Vector = NDArray[np.float64]
Kernel = Callable[[Any, Any], Any]


def objective(model: Any, X: Any, y: Iterable[Any], l2: float | None = None) -> float:
    """The objective λ/2 ‖w‖² + mean hinge loss, of a model or of plain weights.

    With several classes w is made of the weights of all of them, and the loss is the one of Crammer and Singer or, one
    against the rest, the sum over all classes. Weights of examples and of classes are ignored here. An intercept is the
    weight of one more feature, whose value is `intercept_scaling`.

    Parameters
    ----------
    model
        A `PegasosClassifier` or `KernelPegasosClassifier`, a `TextClassifier` with one of them, or an array of weights,
        one a column of X.
    X
        The examples: whatever the model's `decision_function_many` takes; for weights a matrix, SciPy sparse or dense.
    y
        As many labels: those of the model, or −1 and 1 for weights.
    l2
        λ, from 1e-30 to 1e30; that of the model if `None`.

    Raises
    ------
    TypeError
        If weights come without `l2`, or the model is none of these.
    ValueError
        If there are no examples, not as many labels, or labels that the model does not know.

    References
    ----------
    [^1]: Shalev-Shwartz, S., Singer, Y. and Srebro, N., 2007. Pegasos: Primal Estimated sub-GrAdient SOlver for
        SVM. ICML. Equation 1.

    Examples
    --------

    >>> from stream_pegasos import PegasosClassifier
    >>> from stream_pegasos.learners.batch import objective

    >>> model = PegasosClassifier(l2=0.5)
    >>> model.learn_one({"cheap": 1}, "ham")
    >>> model.learn_one({"cheap": 1, "pills": 1}, "spam")
    >>> round(objective(model, [{"cheap": 1}, {"pills": 1}], ["ham", "spam"]), 3)
    0.918

    """
    if isinstance(model, np.ndarray):
        X, signs = check_examples(X, y)
        weights = check_weights(model, X.shape[1])
        squares, losses = float(weights @ weights), hinge(signs * (X @ weights))
    else:
        classifier = model.classifier if isinstance(model, TextClassifier) else model
        if not isinstance(classifier, (PegasosClassifier, KernelPegasosClassifier)):
            raise TypeError(f"{model!r} is no classifier with an objective, nor an array of weights")
        l2 = classifier.l2 if l2 is None else l2
        squares, margins = squared_norm(classifier), model.decision_function_many(X)
        if isinstance(classifier, PegasosClassifier) and classifier.multi_class is not None:
            losses = multiclass_losses(classifier, margins, y)
        else:
            signs = model_signs(classifier.classes, y)
            check_number_of_labels(signs, len(margins))
            losses = hinge(signs * margins)
    check_number("l2", l2, SMALLEST_L2, LARGEST_L2)
    return float(0.5 * cast(float, l2) * squares + losses.mean())


def subgradient_descent(
    X: Any,
    y: ArrayLike,
    l2: float = 1e-4,
    tol: float = 1e-3,
    max_iter: int = 1_000,
    callback: Callable[..., object] | None = None,
) -> optimize.OptimizeResult:
    """Pegasos with all examples in each batch, which minimises λ/2 ‖w‖² + mean hinge loss.

    It starts at w = 0 and stops as soon as the duality gap shows that the objective is close to its minimum. The dual
    variable of an example is the share of the steps in which it violated the margin, shrunk with each projection.

    Parameters
    ----------
    X
        The examples: a matrix with a row each, SciPy sparse or dense.
    y
        As many labels, −1 or 1.
    l2
        λ, from 1e-30 to 1e30.
    tol
        How far above the least objective is close enough, at least 0.
    max_iter
        The most steps, at least 1.
    callback
        Called after each step with the keyword `intermediate_result`, an `OptimizeResult` with `x` and `fun`.

    Returns
    -------
    An `OptimizeResult`: the weights `x`, their objective `fun`, the duality `gap` (the objective is at most that far
    above its minimum), the number of steps `nit`, `success` and a `message`.

    Raises
    ------
    TypeError
        If X is no matrix of real numbers or a parameter no number.
    ValueError
        If X has no rows or values that are not finite, y other labels, or a parameter is out of its range.

    References
    ----------
    [^1]: Shalev-Shwartz, S., Singer, Y., Srebro, N. and Cotter, A., 2011. Pegasos: primal estimated sub-gradient solver
        for SVM. Mathematical Programming 127. Figure 2, with k = n.

    Examples
    --------

    >>> from scipy import sparse
    >>> from stream_pegasos.learners.batch import subgradient_descent

    >>> X = sparse.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> result = subgradient_descent(X, [-1, 1, 1], l2=0.1)
    >>> result.success, round(result.fun, 2)
    (True, 0.25)

    """
    X, y = check_examples(X, y)
    check_solver(l2, tol, max_iter, callback)
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
        if callback is not None:
            callback(intermediate_result=make_result(x=w, fun=fun))
        if gap <= tol:
            break
    return final_result(w, fun, gap, t, tol)


def newton(
    X: Any,
    y: ArrayLike,
    l2: float = 1e-4,
    kernel: Kernel | str | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callable[..., object] | None = None,
    x0: ArrayLike | None = None,
) -> optimize.OptimizeResult:
    """Newton's method in the primal, which minimises λ/2 ‖w‖² + mean squared hinge loss max(0, 1 − y⟨w, x⟩)².

    The linear steps are found by conjugate gradients and the Hessian is never formed; with a kernel each step solves
    (K + nλ/2 I)β = y over the examples that violate the margin. An exact line search follows.

    Parameters
    ----------
    X
        The examples: a matrix with a row each, SciPy sparse or dense.
    y
        As many labels, −1 or 1.
    l2
        λ, from 1e-30 to 1e30; scikit-learn's `LinearSVC` has C = 1/(λn).
    kernel
        `None` for the linear SVM; a function of two such matrices that returns their kernel matrix; or "precomputed" if
        X is that matrix, dense, with a row and a column for each example.
    tol
        How far above the least objective is close enough, at least 0.
    max_iter
        The most Newton steps, at least 1.
    callback
        Called after each step with the keyword `intermediate_result`, an `OptimizeResult` with `x` and `fun`.
    x0
        Where it begins: weights, or with a kernel coefficients, of at most 1e150; 0 if `None`. The optimum of a part of
        the examples saves steps.

    Returns
    -------
    An `OptimizeResult`: `x`, which is the weights, or with a kernel the coefficients β such that the margin of new
    examples is `kernel(X_new, X) @ x`; their objective `fun`, the `gap` (the objective is at most that far above its
    minimum), the number of steps `nit`, `success` and a `message`.

    Raises
    ------
    TypeError
        If X is no matrix of real numbers, the kernel no function or a parameter no number.
    ValueError
        If X has no rows or values that are not finite, y other labels, the kernel matrix another shape, or a parameter
        is out of its range.
    numpy.linalg.LinAlgError
        If the kernel matrix is not positive semi-definite.

    References
    ----------
    [^1]: Chapelle, O., 2007. Training a support vector machine in the primal. Neural Computation 19. With λ/2 and the
        mean where it has λ and the sum. (Its recursion begins with the optimum of half the examples.)

    Examples
    --------

    >>> from scipy import sparse
    >>> from stream_pegasos.learners.batch import newton

    >>> X = sparse.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> result = newton(X, [-1, 1, 1], l2=0.1)
    >>> result.x.round(2)
    array([-0.68,  1.46])
    >>> dual = newton(X, [-1, 1, 1], l2=0.1, kernel=lambda A, B: (A @ B.T).toarray())
    >>> (X.T @ dual.x).round(2)
    array([-0.68,  1.46])

    """
    X, y = check_examples(X, y)
    check_solver(l2, tol, max_iter, callback)
    space = FeatureSpace(X, y, l2) if kernel is None else KernelSpace(kernel_matrix(kernel, X), y, l2)
    x = np.zeros(space.size) if x0 is None else check_weights(x0, space.size)
    outputs, nit = space.outputs(x), 0
    while True:
        slack = np.maximum(0.0, 1.0 - y * outputs)
        fun = 0.5 * l2 * space.inner(x, x) + float(np.mean(slack**2))
        gradient = space.gradient(x, slack)
        # The objective curves by λ at least; a square below 0, of no kernel at all, must not pass for the optimum.
        gap = abs(space.inner(gradient, gradient)) / (2.0 * l2)
        if nit and callback is not None:
            callback(intermediate_result=make_result(x=x, fun=fun))
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

    def __init__(self, X: Any, y: Vector, l2: float) -> None:
        self.X, self.y, self.l2, self.size = X, y, l2, X.shape[1]

    def outputs(self, w: Vector) -> Vector:
        return np.asarray(self.X @ w)

    def inner(self, u: Vector, v: Vector) -> float:
        return float(u @ v)

    def gradient(self, w: Vector, slack: Vector) -> Vector:
        return np.asarray(self.l2 * w - self.X.T @ (2.0 / len(self.y) * slack * self.y))

    def direction(self, w: Vector, violating: NDArray[np.bool_], gradient: Vector) -> Vector:
        violators, scale = self.X[violating], 2.0 / len(self.y)
        hessian = LinearOperator(
            (len(w), len(w)), matvec=lambda v: self.l2 * v + scale * (violators.T @ (violators @ v)), dtype=np.float64
        )
        # However early it stops, this is a direction of descent.
        direction, _ = cg(hessian, -gradient, rtol=1e-3, maxiter=1_000)
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

    def direction(self, beta: Vector, violating: NDArray[np.bool_], gradient: Vector) -> Vector:
        (support,) = np.nonzero(violating)
        # One copy, that of the part: with many examples the memory is the limit.
        part = self.K[np.ix_(support, support)]
        part[np.diag_indices_from(part)] += 0.5 * len(self.y) * self.l2
        target = np.zeros_like(beta)
        target[support] = linalg.solve(part, self.y[support], overwrite_a=True, assume_a="pos")
        return np.asarray(target - beta)


def exact_step(l2: float, along: float, squares: float, slack: Vector, changes: Vector) -> float:
    """How far to go to the least objective in a direction; 0 where rounding errors leave no way down.

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


def squared_norm(classifier: Any) -> float:
    """‖w‖² of what predicts, with the weights of intercepts."""
    if isinstance(classifier, KernelPegasosClassifier):
        if not classifier.support_vectors:
            return 0.0
        # w = Σ β φ(z)/(λ(t + t0)), so ‖w‖² is the same sum over the margins of the support vectors.
        margins = classifier.decision_function_many(classifier.support_vectors)
        return float(classifier.dual_coef @ margins / (classifier.l2 * (classifier.n_iterations + classifier.t0)))
    several = classifier.multi_class is not None
    weights = list(classifier.weights.values()) if several else [classifier.weights]
    intercepts = list(classifier.intercept.values()) if several else [classifier.intercept]
    numbers = [*(w for own in weights for w in own.values()), *(w / classifier.intercept_scaling for w in intercepts)]
    return float(np.sum(np.square(numbers)))


def multiclass_losses(classifier: PegasosClassifier, margins: Vector, y: Iterable[Any]) -> Vector:
    """What each example loses: by the best wrong class or, one against the rest, by all classes."""
    classes = {label: number for number, label in enumerate(classifier.classes)}
    labels = [check_label(label) for label in y]
    for label in labels:
        if label not in classes:
            known = ", ".join(map(repr, classes)) or "none yet"
            raise ValueError(f"label {label!r} is none of the model's, which are {known}")
    check_number_of_labels(np.array(labels, object), len(margins))
    own = np.arange(len(classes)) == np.array([classes[label] for label in labels])[:, np.newaxis]
    if classifier.multi_class == "ovr":
        return np.asarray(hinge(np.where(own, margins, -margins)).sum(axis=1))
    rivals = np.where(own, -np.inf, margins).max(axis=1)
    return hinge(margins[own] - rivals)


def final_result(x: Vector, fun: float, gap: float, nit: int, tol: float) -> optimize.OptimizeResult:
    message = f"the objective is within {gap:.3g} of the least one after {nit} iterations; tol is {tol:g}"
    return make_result(x=x, fun=fun, gap=gap, nit=nit, success=bool(gap <= tol), message=message)


def make_result(**fields: Any) -> optimize.OptimizeResult:
    result = optimize.OptimizeResult()
    result.update(fields)
    return result


def kernel_matrix(kernel: Kernel | str, X: Any) -> Vector:
    if not callable(kernel) and not (isinstance(kernel, str) and kernel == "precomputed"):
        raise TypeError(f"kernel is {kernel!r}; it must be None, 'precomputed' or a function of two matrices")
    K = kernel(X, X) if callable(kernel) else X
    K = np.asarray(K.toarray() if hasattr(K, "toarray") else K, np.float64)
    if K.shape != (X.shape[0], X.shape[0]) or not is_symmetric(K):
        raise ValueError(f"the kernel matrix, of shape {K.shape}, must be symmetric, {X.shape[0]} by {X.shape[0]}")
    return K


def is_symmetric(K: Vector) -> bool:
    # A thousand rows at a time, since the comparison takes several times the memory of what it compares.
    parts = [slice(begin, begin + 1_000) for begin in range(0, len(K), 1_000)]
    return all(np.allclose(K[part], K[:, part].T) for part in parts)


def model_signs(classes: tuple[Any, ...], y: Iterable[Any]) -> Vector:
    """+1 or −1 for each label; one that the model has yet to meet is the class that it does not know."""
    negative, positive = classes
    labels = list(y)
    distinct = {label: check_label(label) for label in labels}
    unknown = set(distinct.values()) - {negative, positive}
    if len(unknown) > classes.count(None):
        raise ValueError(f"label {unknown.pop()!r} is none of the model's, which are {negative!r} and {positive!r}")
    sign = {
        label: 1.0 if known == positive or (positive is None and known != negative) else -1.0
        for label, known in distinct.items()
    }
    return np.array([sign[label] for label in labels], np.float64)


def check_examples(X: Any, y: Any) -> tuple[Any, Vector]:
    """The matrix as a sparse one and the labels as floats."""
    X = X if sparse.issparse(X) else np.asarray(X)
    if X.dtype.kind not in "biuf" or X.ndim != 2:
        raise TypeError(f"X has {X.ndim} dimensions of {X.dtype}; it must be a matrix of real numbers")
    X = sparse.csr_array(X, dtype=np.float64)
    if not (np.abs(X.data) <= VALUE_LIMIT).all():
        raise ValueError(f"X has values that are NaN, infinite or beyond {VALUE_LIMIT:g}; drop, fill or scale them")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y has {labels.ndim} dimensions; it must have one")
    check_number_of_labels(labels, X.shape[0])
    for label in labels[~np.isin(labels, (-1, 1))][:1]:
        raise ValueError(f"label {label!r} is neither -1 nor 1; numpy.where(y == positive, 1, -1) makes such labels")
    return X, labels.astype(np.float64)


def check_weights(weights: ArrayLike, size: int) -> Vector:
    """The weights as floats."""
    numbers = np.asarray(weights)
    if numbers.shape != (size,):
        raise ValueError(f"the weights have the shape {numbers.shape}; it must be ({size},)")
    if numbers.dtype.kind not in "biuf" or not (np.abs(numbers) <= LARGEST_NUMBER).all():
        raise ValueError(f"the weights are no finite numbers of at most {LARGEST_NUMBER:g}")
    return numbers.astype(np.float64)


def check_number_of_labels(labels: NDArray[Any], n_examples: int) -> None:
    check_lengths("labels", len(labels), n_examples)
    if not n_examples:
        raise ValueError("there are no examples, and so no mean of their losses")


def check_solver(l2: float, tol: float, max_iter: int, callback: Any) -> None:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is {callback!r}; it must be a function, or None")
    check_number("l2", l2, SMALLEST_L2, LARGEST_L2)
    check_number("tol", tol, 0.0, LARGEST_NUMBER)
    check_integer("max_iter", max_iter, 1, 1 << 31)
