import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from stream_pegasos import AdaptiveClassifier, OrdinalClassifier, TextClassifier


def stars(n, n_labels=5, seed=0):
    """A feature that grows with the label, and noise."""
    generator = np.random.default_rng(seed)
    for _ in range(n):
        y = int(generator.integers(n_labels))
        x = {j: float(round(v, 3)) for j, v in enumerate(generator.normal(size=6)) if v > -0.5}
        yield x | {"level": y + 0.4 * float(generator.normal()), "c": 1.0}, y


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", list(itertools.permutations((0, 1, 2))))
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_new_labels_in_the_middle_of_a_call(labels, size):
    """However a stream is cut into calls, what is predicted before learning and what is learned are the same."""
    for before in ("list", "csr", "frame"):
        X, y = zip(*stars(60, n_labels=3, seed=4), strict=True)
        y = [labels[0]] * 10 + [labels[v % 2] for v in y[10:30]] + [labels[v] for v in y[30:]]
        X = [{j: x.get(j, 0.0) + (v if j == 0 else 0.0) for j in range(6)} for x, v in zip(X, y, strict=True)]
        table = np.array([[x[j] for j in range(6)] for x in X])
        rows = {"list": X, "csr": sparse.csr_matrix(table), "frame": pd.DataFrame(table)}[before]
        one, many = OrdinalClassifier(), OrdinalClassifier()
        expected, found = [], []
        for x, label in zip(X, y, strict=True):
            expected.append(one.predict_one(x))
            one.learn_one(x, label)
        for begin in range(0, 60, size):
            end = min(begin + size, 60)
            part = rows.iloc[begin:end] if before == "frame" else rows[begin:end]
            found += many.predict_learn_many(part, np.array(y[begin:end])).labels.tolist()
        assert found == expected
        assert many.classes == one.classes == (0, 1, 2)
        assert many.weights == pytest.approx(one.weights, rel=1e-9, abs=1e-12)
        assert many.predict_proba_one(X[0]) == pytest.approx(one.predict_proba_one(X[0]), rel=1e-9)


def test_labels_of_any_integer_kind():
    for labels in ((False, True), (0, 1), (-1, 0, 1), (10**30, -(10**30), 0), (2**63, 2**64, -1)):
        model = OrdinalClassifier()
        model.learn_many(*zip(*[({i: 1.0}, y) for _ in range(20) for i, y in enumerate(labels)], strict=True))
        assert model.classes == tuple(sorted(labels))
        assert {type(label) for label in model.classes} == {type(labels[0])}
        found = [model.predict_one({i: 1.0}) for i in range(len(labels))]
        assert found == list(labels) == model.predict_many([{i: 1.0} for i in range(len(labels))]).tolist()
        assert {type(label) for label in found} == {type(labels[0])}
    model = OrdinalClassifier()
    for y in (np.int8(3), 3.0, np.float32(3), np.uint64(3), 3):
        model.learn_one({"x": 1.0}, y)
    model.learn_many([{"x": 1.0}] * 2, pd.Series([3.0, 4.0]))
    assert model.classes == (3, 4) and {type(label) for label in model.classes} == {int}


def trained(options=None, n=60, seed=0):
    model = OrdinalClassifier(AdaptiveClassifier(**(options or {})))
    for x, y in stars(n, seed=seed):
        model.learn_one(x, (y * 7) % 5)
    return model


def test_labels_without_an_order_leave_everything_as_it_was(unchanged):
    good = [{"new": 1.0}, {"newer": 1.0, 5: 2.0}, {2**60: 1.0}]
    for model in (trained(n=1), trained(), trained({"half_life": 30.0})):
        with unchanged(model):
            for bad in ("good", "3", "", np.str_("1")):
                with pytest.raises(TypeError, match=r"an ordered label must be an integer"):
                    model.learn_one({"new": 1.0}, bad)
                with pytest.raises(TypeError, match="must be an integer"):
                    model.learn_many(good, [0, 77, bad])
            for x in ({"new": 1.0, "bad": math.nan}, {"new": 1.0, 1.5: 1.0}):
                for y in ([0, 0, 0], [0, 1, 0], [0, 77, 78], [77, 77, 77], [77, 0, 78]):  # of which some are new
                    with pytest.raises((TypeError, ValueError)):
                        model.learn_many([*good[:2], x], y)
            matrix = sparse.csr_matrix(np.array([[1.0], [2.0], [math.inf]]))
            for y in ([0, 0, 0], [77, 77, 77], [0, 77, 78]):
                with pytest.raises(ValueError, match="column"):
                    model.predict_learn_many(matrix, y)


# --- thresholds -------------------------------------------------------------------------------------------------------


def marks(n, seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(n):
        star = int(generator.integers(5))
        yield {f"of {star}": 1.0, f"of {max(star - 1, 0)}": 0.5, f"any {generator.integers(9)}": 1.0}, star


def test_the_median_is_predicted():
    """The highest label that is reached with a probability above one half, which errs least on average."""
    model = OrdinalClassifier()
    for x, y in marks(400):
        model.learn_one(x, y)
    errors = 0
    for x, y in marks(100, seed=1):
        probabilities = model.predict_proba_one(x)
        reached = [sum(p for label, p in probabilities.items() if label >= star) for star in range(5)]
        assert model.predict_one(x) == max(star for star in range(5) if reached[star] > 0.5)
        logarithms = model.decision_function_one(x)
        assert {label: math.exp(value) for label, value in logarithms.items()} == pytest.approx(probabilities)
        errors += abs(model.predict_one(x) - y)
    assert errors < 30


def test_an_explanation_says_how_high_a_text_stands():
    model = TextClassifier(classifier=OrdinalClassifier())
    for text, star in [("awful", 1), ("dull", 2), ("fine", 4), ("superb", 5)] * 20:
        model.learn_one(text, star)
    explanation = model.explain_ngrams_one("awful superb")
    assert explanation["awful"] < 0.0 < explanation["superb"]
    with pytest.raises(ValueError, match="the place among them"):
        model.explain_ngrams_one("awful", 1)
