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
    assert dict(zip(said.classes, said.probabilities.T, strict=True))[bool(label)] == pytest.approx(found)
    plain.learn_many([x] * len(labels), labels)
    assert one.predict_proba_one(x) == many.predict_proba_one(x) == plain.predict_proba_one(x)
