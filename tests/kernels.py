"""Kernels by name and as functions, and a stream for them."""

import math

import numpy as np
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel, polynomial_kernel, rbf_kernel

NAMES = ["a", "b", 3, -1, ("c", 1), 1 << 60]


KERNELS = {
    "linear": ({}, linear_kernel),
    "polynomial": (
        {"gamma": 0.5, "coef0": 2.0, "degree": 2},
        lambda X, Z=None: polynomial_kernel(X, Z, gamma=0.5, coef0=2.0, degree=2),
    ),
    "rbf": ({"gamma": 0.3}, lambda X, Z=None: rbf_kernel(X, Z, gamma=0.3)),
    "cosine": ({}, cosine_similarity),
}


def dot(x, z):
    return sum(v * z.get(name, 0.0) for name, v in x.items())


# The same as functions of two dicts; where pickle finds them.
def linear(x, z):
    return dot(x, z)


def polynomial(x, z):
    return (0.5 * dot(x, z) + 2.0) ** 2


def rbf(x, z):
    return math.exp(-0.3 * sum((x.get(name, 0.0) - z.get(name, 0.0)) ** 2 for name in x.keys() | z.keys()))


def cosine(x, z):
    return dot(x, z) / math.sqrt(dot(x, x) * dot(z, z)) if x and z else 0.0


def name_of(kernel):
    return kernel if isinstance(kernel, str) else kernel.__name__


FUNCTIONS = {"linear": linear, "polynomial": polynomial, "rbf": rbf, "cosine": cosine}


def vector_of(x, names=NAMES):
    return np.array([float(x.get(name, 0.0)) for name in names])


def stream(n, seed=0, names=NAMES):
    """Two classes that no line separates."""
    generator = np.random.default_rng(seed)
    for _ in range(n):
        x = {name: float(generator.normal()) for name in names if generator.random() < 0.6}
        yield x, "in" if sum(v * v for v in x.values()) < 3.0 else "out"


numbers = st.one_of(st.integers(-3, 3), st.floats(-10, 10).map(lambda v: round(v, 3)))


examples_of_any_kind = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), numbers, max_size=4),
    st.sampled_from(["in", "out"]),
    st.sampled_from([1.0, 1.0, 0.0, 0.25, 30.0]),
)
