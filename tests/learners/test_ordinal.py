import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from pairwise import pairwise
from river import drift
from scipy import sparse

from stream_pegasos import (
    AdaptiveClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    engine,
)

pure = engine.NAME == "pure"
NAMES = ["a", "b", 3, ("c", 1), 1 << 60]


# --- the algorithm ----------------------------------------------------------------------------------------------------


class Pairs:
    """A binary machine for each pair of neighbours, and labels decided by what went with each pattern of signs."""

    def __init__(self, make):
        self.make = make
        self.machines, self.patterns, self.frequencies = {}, {}, Counter()

    @property
    def labels(self):
        return sorted(self.frequencies)

    def margins(self, x):
        return {pair: self.machines[pair].decision_function_one(x) for pair in itertools.pairwise(self.labels)}

    def counts(self, x):
        found = self.patterns.get(tuple(margin > 0.0 for margin in self.margins(x).values()), Counter())
        return found if sum(found.values()) else self.frequencies

    def predict(self, x):
        """The most frequent label with this pattern, among several the most frequent one, among those the lowest."""
        counts = self.counts(x)
        return min(self.labels, key=lambda label: (-counts[label], -self.frequencies[label], label), default=None)

    def probabilities(self, x):
        if len(self.labels) == 1:  # Laplace's rule of succession
            (label,), n = self.labels, int(sum(self.frequencies.values()))
            return {label: (n + 1) / (n + 2), None: 1 / (n + 2)}
        counts = self.counts(x)
        total = sum(counts.values())
        return {label: counts[label] / total if total else 1 / len(self.labels) for label in self.labels}

    def learn(self, x, y, w):
        if y not in self.frequencies:
            self.frequencies[y] = 0.0
            pairs = list(itertools.pairwise(self.labels))
            self.machines = {pair: self.machines.get(pair) or self.make() for pair in pairs}
            self.patterns = {}
        pattern = tuple(margin > 0.0 for margin in self.margins(x).values())
        self.frequencies[y] += w
        self.patterns.setdefault(pattern, Counter())[y] += w
        for (lower, higher), machine in self.machines.items():
            if y in (lower, higher):
                machine.learn_one(x, y == higher, w)


CHOICES = {
    "batch_size": (1, 3),
    "t0": (0.0, 0.5, 10.0),
    "project": (True, False),
    "fit_intercept": (False, True),
    "labels": ((0, 1, 2, 3), (2, 0, 3, 1), (-5, 100, 7, 8), (3, 2, 1, 0)),
}


@pytest.mark.parametrize("chosen", pairwise(**CHOICES), ids=str)
def test_each_two_neighbours_have_a_machine_and_patterns_of_signs_decide(chosen):
    """Labels come in any order and late, so machines begin anew in the middle."""
    generator = np.random.default_rng(0)
    labels, options = chosen["labels"], {name: value for name, value in chosen.items() if name != "labels"}
    model = OrdinalClassifier(PegasosClassifier(l2=0.05, **options))
    pairs, used = Pairs(lambda: PegasosClassifier(l2=0.05, pos_label=True, **options)), []
    for i in range(150):
        number = int(generator.integers(min(len(labels), 1 + i // 10)))
        x = {name: float(generator.normal()) for name in NAMES if generator.random() < 0.5}
        x["a"] = sorted(labels).index(labels[number]) - 1.5 + 0.5 * float(generator.normal())
        margins = pairs.margins(x)
        assert model.decision_function_one(x) == pytest.approx(margins, rel=1e-9, abs=1e-9)
        if any(0.0 < abs(margin) < 1e-9 for margin in margins.values()):
            continue  # rounding decides
        used.append((x, labels[number], float(generator.choice([1.0, 1.0, 0.0, 4.0])), pairs.predict(x)))
        assert model.predict_one(x) == used[-1][-1]
        assert model.predict_proba_one(x) == pytest.approx(pairs.probabilities(x))
        model.learn_one(*used[-1][:3])
        pairs.learn(*used[-1][:3])
        assert model.classes == tuple(pairs.labels)
    for pair, machine in pairs.machines.items():
        assert model.intercept[pair] == pytest.approx(machine.intercept)
        assert model.weights[pair] == pytest.approx({name: w for name, w in machine.weights.items() if w})
    X, y, w, predicted = zip(*used, strict=True)
    many = OrdinalClassifier(PegasosClassifier(l2=0.05, **options))
    assert many.predict_learn_many(X, y, w).labels.tolist() == list(predicted)
    assert many.weights == model.weights and len(used) > 100


def stars(n, n_labels=5, seed=0):
    """A feature that grows with the label, and noise."""
    generator = np.random.default_rng(seed)
    for _ in range(n):
        y = int(generator.integers(n_labels))
        x = {j: float(round(v, 3)) for j, v in enumerate(generator.normal(size=6)) if v > -0.5}
        yield x | {"level": y + 0.4 * float(generator.normal()), "c": 1.0}, y


def test_order_is_made_use_of():
    model = OrdinalClassifier(PegasosClassifier(l2=1e-3, t0=1e3))
    errors, plain = [], []
    frequencies = Counter()
    for x, y in stars(1500):
        predicted = model.predict_one(x)
        if predicted is not None:
            errors.append(abs(predicted - y))
            plain.append(abs(max(frequencies, key=frequencies.get) - y))
        model.learn_one(x, y)
        frequencies[y] += 1
    assert np.mean(errors[500:]) < 0.6 < np.mean(plain[500:])


def test_a_pattern_never_met_falls_back_to_frequency():
    model = OrdinalClassifier(PegasosClassifier(l2=1.0))
    for y, n in ((0, 2), (1, 5), (2, 1)):
        model.learn_many([{f"word {y}": 1.0}] * n, [y] * n)
    # Each machine says no to every word of its lower label; yes and yes was never met.
    pattern = {
        pair: margin > 0.0 for pair, margin in model.decision_function_one({"word 1": -1.0, "word 2": 1.0}).items()
    }
    assert pattern == {(0, 1): False, (1, 2): True}
    assert model.predict_one({"word 1": -1.0, "word 2": 1.0}) == 1
    assert model.predict_proba_one({"word 1": -1.0, "word 2": 1.0}) == {0: 2 / 8, 1: 5 / 8, 2: 1 / 8}


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
        one, many = OrdinalClassifier(PegasosClassifier(l2=0.01)), OrdinalClassifier(PegasosClassifier(l2=0.01))
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
        for pair in one.weights:
            assert many.weights[pair] == pytest.approx(one.weights[pair], rel=1e-9, abs=1e-12)
        assert many.predict_proba_one(X[0]) == one.predict_proba_one(X[0])


def test_a_new_label_between_two_starts_only_the_machines_beside_it_anew():
    model = OrdinalClassifier(PegasosClassifier(l2=0.1))
    model.learn_many(*zip(*[(x, [0, 10, 20, 30][y]) for x, y in stars(100, n_labels=4)], strict=True))
    before = model.weights
    model.learn_one({"level": 1.5, "c": 1.0}, 15)
    assert list(model.weights) == [(0, 10), (10, 15), (15, 20), (20, 30)]
    assert model.weights[0, 10] == before[0, 10] and model.weights[20, 30] == before[20, 30]
    assert all(abs(v) <= 1 / math.sqrt(0.1) for v in model.weights[10, 15].values())
    assert set(model.weights[10, 15]) <= {"level", "c"} >= set(model.weights[15, 20])
    assert model.intercept == dict.fromkeys(model.weights, 0.0)


def test_labels_of_any_integer_kind():
    for labels in ((False, True), (0, 1), (-1, 0, 1), (10**30, -(10**30), 0), (2**63, 2**64, -1)):
        model = OrdinalClassifier(PegasosClassifier(l2=0.1))
        model.learn_many(*zip(*[({i: 1.0}, y) for _ in range(20) for i, y in enumerate(labels)], strict=True))
        assert model.classes == tuple(sorted(labels))
        assert {type(label) for label in model.classes} == {type(labels[0])}
        found = [model.predict_one({i: 1.0}) for i in range(len(labels))]
        assert found == list(labels) == model.predict_many([{i: 1.0} for i in range(len(labels))]).tolist()
        assert {type(label) for label in found} == {type(labels[0])}
    model = OrdinalClassifier(PegasosClassifier())
    for y in (np.int8(3), 3.0, np.float32(3), np.uint64(3), 3):
        model.learn_one({"x": 1.0}, y)
    model.learn_many([{"x": 1.0}] * 2, pd.Series([3.0, 4.0]))
    assert model.classes == (3, 4) and {type(label) for label in model.classes} == {int}


def trained(options=None, n=60, seed=0):
    model = OrdinalClassifier(PegasosClassifier(**(options or {})))
    for x, y in stars(n, seed=seed):
        model.learn_one(x, (y * 7) % 5)
    return model


def test_labels_without_an_order_leave_everything_as_it_was(unchanged):
    good = [{"new": 1.0}, {"newer": 1.0, 5: 2.0}, {2**60: 1.0}]
    for model in (trained(n=1), trained(), trained({"batch_size": 4, "t0": 3.0})):
        with unchanged(model):
            for bad in ("good", "3", "", np.str_("1")):
                with pytest.raises(TypeError, match=r"label .* is a str; ordered labels must be integers"):
                    model.learn_one({"new": 1.0}, bad)
                with pytest.raises(TypeError, match="must be integers"):
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


def test_a_detector_hears_of_the_same_errors_one_by_one_and_at_once():
    """Also where a label is new in the call, and the last of all."""
    one, many = (OrdinalClassifier(AdaptiveClassifier(drift_detector=drift.ADWIN())) for _ in range(2))
    X, y = map(list, zip(*marks(200), strict=True))
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    many.learn_many(X, y)
    assert one.weights == many.weights and one.n_drifts == many.n_drifts
    told = many.predict_learn_many([{"of 0": 1.0}, {"new": 1.0}], [0, -3])
    assert told.classes == (-3, 0, 1, 2, 3, 4) and told.labels.tolist()[0] == 0


def test_what_thresholds_do_not_use():
    for option in ({"threshold": 0.4}, {"max_false_positive_rate": 0.1}, {"pos_label": 1}):
        with pytest.raises(ValueError, match="does not use"):
            OrdinalClassifier(AdaptiveClassifier(**option))
    for option in ({"average": True}, {"multi_class": "ovr"}, {"class_weight": "balanced"}):
        with pytest.raises(ValueError, match="does not use"):
            OrdinalClassifier(PegasosClassifier(**option))
    with pytest.raises(TypeError, match="AdaptiveClassifier"):
        OrdinalClassifier("adaptive")


def test_an_explanation_says_how_high_a_text_stands():
    model = TextClassifier(classifier=OrdinalClassifier())
    for text, star in [("awful", 1), ("dull", 2), ("fine", 4), ("superb", 5)] * 20:
        model.learn_one(text, star)
    explanation = model.explain_one("awful superb")
    assert explanation["awful"] < 0.0 < explanation["superb"]
    with pytest.raises(ValueError, match="the place among them"):
        model.explain_one("awful", 1)
