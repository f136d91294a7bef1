"""A base and the parts that went on from it, and what they know."""

import copy

import numpy as np
import pytest

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
)
from stream_pegasos.learners.files import Snapshot

CLASSES = {"two": ["ham", "spam"], "several": ["a", "b", "c"], "ordinal": [1, 2, 3, 4], "labels": ["x", "y", "z"]}


def examples(n, labels, seed=0, n_features=30, own=""):
    """Dicts of features of which some tell the label; with `own`, features that no other stream has."""
    generator = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        number = int(generator.integers(len(labels)))
        having = np.flatnonzero(generator.random(n_features) < 0.2).tolist()
        X.append({f"f{j}": 1.0 for j in having} | {f"of {number}": 1.0})
        if generator.random() < 0.1:
            number = int(generator.integers(len(labels)))
        if own:
            X[-1][f"{own}{generator.integers(9)}"] = 1.0
        y.append(labels[number])
    return X, y


def make(kind, **options):
    if kind == "ordinal":
        return OrdinalClassifier(AdaptiveClassifier(**options))
    if kind == "labels":
        return MultiLabelClassifier(AdaptiveClassifier(**options))
    return AdaptiveClassifier(**options)


def learned(model, n, labels, seed, **options):
    model = copy.deepcopy(model)
    X, y = examples(n, labels, seed, **options)
    model.learn_many(X, [{label} for label in y] if isinstance(model, MultiLabelClassifier) else y)
    return model


def base_and_parts(kind="two", n_parts=3, n=40, n_base=60, **options):
    labels = CLASSES[kind]
    base = learned(make(kind, **options), n_base, labels, 0)
    return base, [learned(base, n + 7 * k, labels, k + 1, own=f"of part {k} ") for k in range(n_parts)]


def snapshot_of(model):
    return Snapshot(type(model).__name__, *copy.deepcopy(model.to_state()), None)


def flat(model):
    """The weights, by feature or by class and feature."""
    weights = model.weights
    if not any(isinstance(each, dict) for each in weights.values()):
        return weights
    return {(label, name): weight for label, each in weights.items() for name, weight in each.items()}


def state_of(model):
    """Arrays, by the features' order of names, and single numbers."""
    arrays, names, values = model.to_state()
    numbers = {
        name: value
        for name, value in values.get("classifier", values)["learner"].items()
        if isinstance(value, (int, float))
    }
    return arrays, names, numbers


def known_of(model):
    """What is known of each feature of two classes: weight, ratio, squared gradients, and counts."""
    arrays, names, _ = state_of(model)
    order = np.argsort(arrays["keys"])
    columns = ("values", "log_ratios", "gradient_squares", "positives", "negatives")
    rows = np.array([arrays[name][order] for name in columns]).T
    return dict(zip(names, rows, strict=True))


def assert_same(one, other, rtol=0.0):
    """Whether all that two models know is the same, up to the order of features."""
    a, b = snapshot_of(one), snapshot_of(other)
    if rtol == 0.0:
        assert sorted(a.arrays) == sorted(b.arrays)
        for name in a.arrays:
            np.testing.assert_array_equal(a.arrays[name], b.arrays[name], err_msg=name)
        assert (a.names, a.values) == (b.names, b.values)
        return
    weights, others = flat(one), flat(other)
    for name in {*weights, *others}:
        np.testing.assert_allclose(weights.get(name, 0.0), others.get(name, 0.0), rtol, rtol, err_msg=str(name))
    (of_one, _, numbers), (of_other, _, others) = state_of(one), state_of(other)
    units = numbers.pop("evidence", 1.0), others.pop("evidence", 1.0)
    evidence = {"n_positives", "n_negatives", "intercept_squares", "n_examples"}
    for name in numbers:
        a, b = numbers[name], others[name]
        if name in evidence:
            a, b = a / units[0], b / units[1]
        assert a == pytest.approx(b, rel=rtol, abs=rtol), name
    for name in {"gradient_squares", "positives", "negatives", "counts", "taught_counts"} & of_one.keys():
        assert of_one[name].sum() / units[0] == pytest.approx(of_other[name].sum() / units[1], rel=rtol), name
