"""The classifier with a kernel over feature dicts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import (
    LARGEST_L2,
    SMALLEST_L2,
    check_integer,
    check_number,
    check_one_of,
)
from stream_pegasos.engine import Encoder
from stream_pegasos.engine.kernel import KernelLearner
from stream_pegasos.learners.class_weights import ClassWeight
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.labels import Label, Labels, SignedLabels
from stream_pegasos.learners.predictions import RawScores
from stream_pegasos.learners.probabilities import Floats

__all__ = ["KernelPegasosClassifier"]

Kernel = Callable[[dict[Any, float], dict[Any, float]], float]

KERNELS = ("linear", "polynomial", "rbf", "cosine")


class KernelPegasosClassifier(Classifier):
    """Support vector machine with a kernel, trained by Pegasos, one example at a time.

    The weights are never formed. At step t they are w = 1/(λ(t + t0)) Σ α y φ(x) over the support vectors, the examples
    that violated the margin; α counts how often each did. With a `budget`, at most that many support vectors are kept,
    so that memory and the time of a step stay bounded on an endless stream.

    Parameters
    ----------
    l2
        The regularisation λ, from 1e-30 to 1e30.
    t0
        The step size counts this many steps as already taken, at least 0.
    kernel
        `"linear"` ⟨x, z⟩, `"polynomial"` (γ⟨x, z⟩ + coef0)^degree, `"rbf"` exp(−γ‖x − z‖²), `"cosine"`
        ⟨x, z⟩/(‖x‖‖z‖), or a function that takes two feature dicts (without features that are 0) and returns a number.
        It must be symmetric and positive semidefinite (Mercer); this is not checked.
    gamma
        γ, above 0; for a polynomial and RBF.
    coef0
        The constant in the polynomial, at least 0.
    degree
        The degree of the polynomial, from 1 to 100.
    budget
        The largest number of support vectors, at least 1; `None` for no bound.
    budget_maintenance
        What happens when there is one support vector too many. `"removal"`: the one with the smallest ‖α φ(x)‖ is
        dropped. `"merging"`, for the RBF kernel only: the one with the smallest α is merged with another one of its
        class, chosen so that least is lost. `None` means merging for the RBF kernel and removal for others. A merged
        vector has the features of both, except those smaller than 1e-4 of its largest.
    class_weight
        The weight of the loss on each label, as a dict from label to a number of at least 0; 1 for labels not in it. Or
        `"balanced"`: N / (K · n), where N examples of K labels were learned so far and n of them have the label, with
        the example itself included.
    pos_label
        The label that positive margins stand for.

    Attributes
    ----------
    support_vectors : list of dict
        The support vectors, by the names of their features.
    dual_coef : array
        α·y for each of them.
    n_iterations : int
        t, the number of examples learned.
    classes : tuple
        The negative and the positive label, each `None` as long as it is unknown.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type or out of its range. Any method that calls a kernel raises a ValueError if the
        kernel returns NaN or a number larger than 1e200 in size; the model is then as it was before.

    References
    ----------
    [^1]: Shalev-Shwartz, S., Singer, Y., Srebro, N. and Cotter, A., 2011. Pegasos: primal estimated sub-gradient solver
        for SVM. Mathematical Programming 127, section 4.
    [^2]: Wang, Z., Crammer, K. and Vucetic, S., 2012. Breaking the curse of kernelization: budgeted stochastic gradient
        descent for large-scale SVM training. JMLR 13.

    Examples
    --------

    >>> from stream_pegasos import KernelPegasosClassifier

    No linear learner can tell these two classes apart:

    >>> stream = [({"x": 0, "y": 0}, "same"), ({"x": 0, "y": 1}, "other")]
    >>> stream += [({"x": 1, "y": 1}, "same"), ({"x": 1, "y": 0}, "other")]
    >>> model = KernelPegasosClassifier(l2=0.01, kernel="rbf", gamma=2.0)
    >>> for x, y in stream * 20:
    ...     model.learn_one(x, y)
    >>> [model.predict_one(x) for x, _ in stream]
    ['same', 'other', 'same', 'other']
    >>> len(model.support_vectors)
    4

    Any function of two feature dicts can be the kernel:

    >>> def common_words(x, z):
    ...     return len(x.keys() & z.keys())
    >>> model = KernelPegasosClassifier(l2=0.1, kernel=common_words, budget=100)
    >>> model.learn_one({"cheap": 1, "pills": 1}, "spam")
    >>> model.learn_one({"see": 1, "you": 1}, "ham")
    >>> model.predict_one({"pills": 2})
    'spam'

    """

    _learner: KernelLearner
    _linear = False

    def __init__(
        self,
        l2: float = 1e-4,
        t0: float = 0.0,
        kernel: Literal["linear", "polynomial", "rbf", "cosine"] | Kernel = "rbf",
        gamma: float = 1.0,
        coef0: float = 1.0,
        degree: int = 3,
        budget: int | None = None,
        budget_maintenance: Literal["merging", "removal"] | None = None,
        class_weight: ClassWeight = None,
        pos_label: Label | None = None,
    ) -> None:
        check_number("l2", l2, SMALLEST_L2, LARGEST_L2)
        check_number("t0", t0, 0.0, 1e100)
        if not callable(kernel):
            check_one_of("kernel", kernel, KERNELS)
        check_number("gamma", gamma, 1e-30, 1e30)
        check_number("coef0", coef0, 0.0, 1e30)
        check_integer("degree", degree, 1, 100)
        if budget is not None:
            check_integer("budget", budget, 1, 1 << 31)
        check_one_of("budget_maintenance", budget_maintenance, (None, "merging", "removal"))
        if budget_maintenance == "merging" and kernel != "rbf":
            raise ValueError("budget_maintenance is 'merging', which only the RBF kernel allows; use 'removal'")
        self.l2 = l2
        self.t0 = t0
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.budget = budget
        self.budget_maintenance = budget_maintenance
        self.class_weight = class_weight
        self.pos_label = pos_label
        merge = kernel == "rbf" and budget_maintenance != "removal"
        arguments = (float(gamma), float(coef0), int(degree), int(budget or 0), merge)
        learner = KernelLearner(float(l2), float(t0), kernel, *arguments)
        self._set_up(learner, SignedLabels(pos_label=pos_label, grows=False), class_weight)

    @property
    def support_vectors(self) -> list[dict[Any, float]]:
        with self.lock:
            state = self._learner.get_state()
            names = [self._vocabulary.name(key) for key in state["keys"].tolist()]
        items = list(zip(names, state["values"].tolist(), strict=True))
        ends = state["indptr"].tolist()
        return [dict(items[begin:end]) for begin, end in pairwise(ends)]

    @property
    def dual_coef(self) -> NDArray[np.float64]:
        with self.lock:
            return self._learner.get_state()["coefficients"]  # type: ignore[no-any-return]

    def _learn_targets(
        self, encoder: Encoder, rows: Any, labels: Labels, targets: Floats, weights: Floats | None
    ) -> RawScores:
        if self.kernel in ("linear", "rbf", "cosine"):
            return super()._learn_targets(encoder, rows, labels, targets, weights)
        before, names = self._learner.get_state(), self._vocabulary.names
        try:
            return super()._learn_targets(encoder, rows, labels, targets, weights)
        except BaseException:  # perhaps of the kernel's, which may fail for an example in the middle
            self._learner.set_state(before)
            self._vocabulary.set_names(names)
            raise
