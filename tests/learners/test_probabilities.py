"""Probabilities before margins can say them."""

import pickle

import numpy as np
import pytest

from stream_pegasos import KernelPegasosClassifier, PegasosClassifier


@pytest.mark.parametrize("kind", [PegasosClassifier, KernelPegasosClassifier])
@pytest.mark.parametrize("label", [True, False, np.bool_(True)])
def test_one_truth_value_alone_earns_no_certainty(kind, label):
    """Laplace's rule of succession, one by one and at once."""
    one, many, plain = kind(), kind(), kind()
    x, labels = {"a": 1.0}, [label] * 5 + [not label, label] * 2
    found = []
    for n, y in enumerate(labels):
        found.append(one.predict_proba_one(x).get(bool(label), 0.5))
        assert not 0 < n <= 5 or found[n] == pytest.approx((n + 1) / (n + 2))
        one.learn_one(x, y)
        one = pickle.loads(pickle.dumps(one)) if n % 2 else one
    assert found[-1] != pytest.approx(len(labels) / (len(labels) + 1))  # from then on margins say it
    said = many.predict_learn_many([x] * len(labels), labels)
    assert dict(zip(said.classes, said.probabilities.T, strict=True))[bool(label)][1:] == pytest.approx(found[1:])
    plain.learn_many([x] * len(labels), labels)
    assert one.predict_proba_one(x) == many.predict_proba_one(x) == plain.predict_proba_one(x)


def test_a_third_label_ends_what_a_truth_value_alone_may_say():
    one, many = PegasosClassifier(), PegasosClassifier()
    X, y = [{"a": 1.0}, {"a": 1.0, "b": 1.0}] * 4, [True, True, "x", "x", True, False, "x", False]
    found = []
    for x, label in zip(X, y, strict=True):
        found.append(one.predict_proba_one(x))
        assert sum(found[-1].values()) == pytest.approx(1.0) or not found[-1]
        one.learn_one(x, label)
    said = many.predict_learn_many(X, y)
    for row, expected in zip(said.probabilities[1:], found[1:], strict=True):
        assert {label: p for label, p in zip(said.classes, row, strict=True) if p} == pytest.approx(expected)
