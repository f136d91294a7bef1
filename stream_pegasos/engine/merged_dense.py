"""How the dense blocks of several parts become one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State
from stream_pegasos.engine.pure.adaptive_state import JOINT_PRECISION, LARGEST_JOINT_WEIGHT, OF_ONE_WEIGHT
from stream_pegasos.engine.pure.dense import DenseBlock

__all__ = ["merged_dense"]

Floats = NDArray[np.float64]


class Known(NamedTuple):
    """What a block knows, as numbers that add up: the precision without the prior's, weights · precision, counts of
    classes, and the number and the sum of vectors. An example learned now counts 1.
    """

    precision: Floats
    weighted: Floats
    counts: Floats
    n: float
    total: Floats


def merged_dense(
    base: State,
    parts: Sequence[State],
    reduction: str,
    numbers: Sequence[NDArray[np.int64]],
    n_classes: int,
    kept: Sequence[float],
) -> State:
    """The merged dense block of several parts; empty if no part has one.

    Precisions add up, and so do weights · precisions, as for normal distributions. `numbers` maps the classes of the
    base and of each part to numbers among all; each part has `kept` a share of the base's evidence.
    """
    states = [base, *parts]
    n_dimensions = max(len(state.get("vector_mean", ())) for state in states)
    if not n_dimensions:
        return {}
    blocks = [
        DenseBlock.from_state(reduction, state, len(of))
        if "vector_mean" in state
        else DenseBlock.of(reduction, n_dimensions, len(of))
        for state, of in zip(states, numbers, strict=True)
    ]
    before, *after = [known(block, of, n_classes) for block, of in zip(blocks, numbers, strict=True)]

    def together(name: str) -> Any:
        """What the base knew, and what the parts added."""
        old = getattr(before, name)
        new = [getattr(each, name) - share * old for each, share in zip(after, kept, strict=True)]
        return math.prod(kept) * old + sum(new)

    made = DenseBlock.of(reduction, n_dimensions, n_classes)
    made.n, made.counts = max(float(together("n")), 0.0), np.maximum(together("counts"), 0.0)
    made.mean = together("total") / (made.n + 1.0)
    made.mean /= max(float(np.linalg.norm(made.mean)), 1.0)
    sizes, axes = np.linalg.eigh(together("precision"))
    made.covariance = (axes / (np.maximum(sizes, 0.0) + 1.0)) @ axes.T
    made.weights = together("weighted") @ made.covariance
    made.joint, made.information = merged_joint(blocks)
    return made.get_state()


def known(block: DenseBlock, of: NDArray[np.int64], n_classes: int) -> Known:
    sizes, axes = np.linalg.eigh(block.covariance * block.evidence)
    precision = (axes / np.clip(sizes, 1e-9, 1.0)) @ axes.T
    weights, counts = block.weights, np.zeros(n_classes)
    if block.reduction not in OF_ONE_WEIGHT:
        weights = np.zeros((n_classes, weights.shape[1]))
        weights[of] = block.weights
    counts[of] = block.counts / block.evidence
    n = block.n / block.evidence
    return Known(precision - np.eye(len(precision)), weights @ precision, counts, n, (n + 1.0) * block.mean)


def merged_joint(blocks: Sequence[DenseBlock]) -> tuple[Floats, Floats]:
    """The mean of the parts' joint weights, each weighted by its information."""
    prior = np.diag(JOINT_PRECISION)
    of_parts = [(block.information + prior, block.joint) for block in blocks[1:]]
    information = np.sum([each for each, _ in of_parts], axis=0)
    joint = np.linalg.solve(information, np.sum([each @ weights for each, weights in of_parts], axis=0))
    return joint.clip(0.0, LARGEST_JOINT_WEIGHT), information / len(of_parts) - prior
