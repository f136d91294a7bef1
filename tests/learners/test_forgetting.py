"""`max_features`: which features are forgotten, and when."""

import math
import random

import numpy as np
import pytest
from contract import bits_of, through_a_file
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, PegasosClassifier, TextClassifier, engine, merge
from stream_pegasos.common.state import FEATURES, Declaration, Field, count, keys
from stream_pegasos.engine.pure.driver import CALIBRATION, Learner, ScoredExample
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.forgetting import Forgetting, name_hash
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.trainer import Trainer

pure = engine.NAME == "pure"


def forgetful(dense_class):
    """The algorithm as published, which forgets as the documentation has it; column 0 is the intercept."""

    class ForgetfulPegasos(dense_class):
        def __init__(self, dimension, max_features, **options):
            super().__init__(dimension, **options)
            self.max_features, self.known = max_features, np.zeros(dimension, bool)

        def flush(self):
            violating = [x for x, y, _ in self.batch if y * self.margin(x) < 1.0]
            if self.batch and self.t == 0 and self.t0 == 0.0:
                self.known[:] = False
            super().flush()
            for x in violating:
                self.known |= x != 0.0
            features = np.flatnonzero(self.known[1:]) + 1
            if len(features) > self.max_features:
                kept = sorted(features, key=lambda j: (-abs(self.w[j]), j))[: max(1, self.max_features * 3 // 4)]
                self.known[1:] = False
                self.known[kept] = True
                self.w = np.where(self.known, self.w, 0.0)

    return ForgetfulPegasos


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 4},
        {"fit_intercept": True, "project": False},
        {"t0": 10.0, "fit_intercept": True, "batch_size": 2},
    ],
)
@pytest.mark.parametrize("max_features", [1, 7, 25])
def test_those_with_the_smallest_weights_are_forgotten(max_features, options, dense_pegasos):
    generator = np.random.default_rng(4)
    model = PegasosClassifier(l2=0.1, max_features=max_features, **options)
    intercept = options.get("fit_intercept", False)
    options = {name: value for name, value in options.items() if name != "fit_intercept"}
    dense = forgetful(dense_pegasos)(81, max_features, l2=0.1, **options)
    for _ in range(100):
        x = np.where(generator.random(81) < 0.06, generator.normal(size=81), 0.0)
        x[0] = float(intercept)
        positive = bool(x[1:].sum() + 0.3 * generator.normal() > 0.0)
        model.learn_one({j: x[j] for j in np.flatnonzero(x[1:]).tolist() for j in [j + 1]}, positive)
        dense.learn(x, 1 if positive else -1)
        assert model.weights.keys() == set(np.flatnonzero(dense.known[1:]) + 1)
        assert list(model.weights.values()) == pytest.approx(dense.w[1:][dense.known[1:]], rel=1e-6, abs=1e-9)
        assert model.intercept == pytest.approx(dense.w[0], rel=1e-6, abs=1e-9)
        assert len(model.weights) <= max_features
        exact = np.linalg.norm([*model.weights.values(), model.intercept])
        (squares,), (scale,) = (model.trainer.learner.get_state()[name] for name in ("squares", "scale"))
        assert abs(scale) * math.sqrt(squares) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("names", [range(20, 0, -1), [f"name {i}" for i in range(20)]], ids=["numbers", "strings"])
def test_of_equal_weights_those_with_larger_numbers_or_hashes_are_forgotten(names):
    model = PegasosClassifier(max_features=15)
    model.learn_one(dict.fromkeys(names, -1.0), True)
    assert {*model.weights} == {*sorted(names, key=None if isinstance(names, range) else name_hash)[:11]}


@pytest.mark.parametrize("kind", [PegasosClassifier, AdaptiveClassifier])
@pytest.mark.parametrize("at_once", [False, True])
def test_names_that_leave_no_weight_are_forgotten(kind, at_once):
    """Examples that are right by far bring names and no features."""
    model = kind(max_features=5, **({"margin": 0.5} if kind is AdaptiveClassifier else {"l2": 0.1, "project": False}))
    for i in range(60):
        model.learn_one({"a": 1.0}, i % 2 == 0)
        model.learn_one({"b": 1.0}, False)
        model.learn_one({"a": 1.0}, True)
    rows = [{"b": 10.0, f"name {i}": 1e-9} for i in range(100)]
    if at_once:
        model.learn_many(rows, [False] * 100)
    else:
        for x in rows:
            model.learn_one(x, False)
    assert set(model.weights) == {"a", "b"}
    assert len(model.snapshot().names) <= 10


@pytest.mark.parametrize("classifier", [AdaptiveClassifier, PegasosClassifier])
@pytest.mark.parametrize("max_features", [1, 10])
def test_few_features_and_many_texts_in_one_call(classifier, max_features):
    """Nearly every text brings more than there may be, many more times than Python nests calls."""
    texts = [f"word{i} and {i % 7}" for i in range(300 if pure else 1_100)]
    labels = [i % 2 for i in range(len(texts))]
    model, view = (TextClassifier(classifier=classifier(max_features=max_features)) for _ in range(2))
    model.learn_many(texts, labels)
    for i, (text, label) in enumerate(zip(texts, labels, strict=True)):
        view.learn_one(text, label)
        assert i % 7 or len(view.weights) <= max_features
    assert model.weights == view.weights and len(model.weights) <= max_features


@given(seed=st.integers(0, 10_000), batch_size=st.integers(1, 3), max_features=st.sampled_from([2, None]))
def test_a_name_whose_value_is_0_is_never_kept(seed, batch_size, max_features):
    """Whether other examples of a call bring it or not: one by one and at once give the same bits."""
    generator = random.Random(seed)
    one, many, without = (PegasosClassifier(batch_size=batch_size, max_features=max_features) for _ in range(3))
    for n in generator.choices(range(5), k=3):
        X = [{name: generator.choice([0.0, 1.0]) for name in "abcd"} for _ in range(n)]
        y, w = generator.choices([0, 1, 2], k=n), generator.choices([0.0, 1.0], k=n)
        for example in zip(X, y, w, strict=True):
            one.learn_one(*example)
        many.learn_many(X, y, w)
        without.learn_many([{name: value for name, value in x.items() if value} for x in X], y, w)
    if max_features is None:
        assert bits_of(one.snapshot()) == bits_of(many.snapshot()) == bits_of(without.snapshot())


@pytest.mark.parametrize("kind", [AdaptiveClassifier, PegasosClassifier])
def test_with_its_last_class_a_model_forgets_all_features(kind, tmp_path):
    model = kind(pos_label="b")
    model.learn_many([{"a": 1.0}, {3: 1.0}], ["a", "a"])
    model.forget_class("a")
    assert model.n_features == 0
    loaded = through_a_file(model, tmp_path / "m")
    for each in (model, loaded):
        each.learn_one({"b": 1.0}, "a")
    assert bits_of(model.snapshot()) == bits_of(loaded.snapshot())


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5])
@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_a_class_is_forgotten_within_the_limit_of_features(classes, batch_size, tmp_path):
    """Whatever waits in a mini-batch then."""
    for n in range(1, 12):
        model = PegasosClassifier(max_features=4, batch_size=batch_size)
        model.learn_many(
            [{f"{i} {j}": 1.0 for j in range(3)} for i in range(n)], [classes[i % len(classes)] for i in range(n)]
        )
        for label in model.classes:
            model.forget_class(label)
            assert model.n_features <= 4
            assert bits_of(through_a_file(model, tmp_path / "m").snapshot()) == bits_of(model.snapshot())


@pytest.mark.parametrize("kind", [AdaptiveClassifier, PegasosClassifier])
def test_names_of_any_length_can_be_forgotten(kind):
    model = kind(max_features=4)
    for i in range(20):
        model.learn_one({10**5_000 + i: 1.0, ("a", -(10**5_000) - i): 1.0, str(i): 1.0}, i % 2)
    assert model.n_features <= 4


def test_of_a_forgotten_label_no_decision_is_kept_but_what_was_asked_for_it(tmp_path):
    model = MultiLabelClassifier(AdaptiveClassifier(threshold={"a": 0.7}))
    model.learn_many([{"x": 1.0}] * 3, [("a", "b"), ("c",), ()])
    for label in ("a", "b"):
        model.forget_class(label)
    loaded = through_a_file(model, tmp_path / "m")
    for each in (model, loaded):
        each.set_decision(threshold=0.6, pos_label="c")
        assert each.classifier.threshold == {"a": 0.7, "c": 0.6}


OTHERS = {"squares": 4.0, "evidence": 0.0, "n_buffered": 3, "n_taught": 2, "n_steady": 1, "class_counts": 5}


class PerceptronLearner(Learner, is_rule=False):
    """A rule with other meanings of the names that the rules of this package use."""

    declaration = Declaration(
        (
            keys("keys", FEATURES),
            Field("values", shape=(FEATURES,), signed=True),
            Field("counts", shape=(FEATURES,), signed=True),  # here the newest sign, no number of examples
            Field("squares"),
            Field("evidence"),
            *(count(name) for name in ("n_iterations", "n_buffered", "n_taught", "n_steady", "class_counts")),
            Field("confidence_intercept"),
            *CALIBRATION,
        )
    )
    n_iterations = 0

    def __init__(self, max_features):
        super().__init__()
        self.max_features = max_features
        self.numbers = {}

    def __len__(self):
        return len(self.numbers)

    def _find_margins(self, encoder, row):
        pairs = zip(row.keys, row.values, strict=True)
        return ScoredExample(row, [sum(self.numbers.get(key, (0.0, 0.0))[0] * value for key, value in pairs)])

    def _learn(self, encoder, scored, y, weight):
        self.n_iterations += 1
        for key, value in zip(scored.row.keys, scored.row.values, strict=True):
            self.numbers[key] = self.numbers.get(key, (0.0, 0.0))[0] + y * value, y
        return True

    def get_state(self, lazy=False):
        values, counts = np.array([*self.numbers.values()]).reshape(-1, 2).T
        state = {"keys": np.array([*self.numbers], np.int64), "values": values.copy(), "counts": counts.copy()}
        state |= OTHERS | {"n_iterations": self.n_iterations, "confidence_intercept": 0.0}
        return state | self.calibration.get_state()

    def set_state(self, state):
        columns = (state[name].tolist() for name in ("keys", "values", "counts"))
        self.numbers = {key: numbers for key, *numbers in zip(*columns, strict=True)}
        self.n_iterations = state["n_iterations"]
        self.calibration.set_state(state)


class StrangeForgetting(Forgetting):
    def importance(self, learner, state):
        return np.abs(state["values"])


class StrangeClassifier(Classifier):
    def make_trainer(self):
        labels = Labels(most=2, counts_alone=True)
        return Trainer(self.lock, PerceptronLearner(max_features=4), labels, forgetting=StrangeForgetting(4))


def test_a_rule_is_not_taken_for_another_by_the_names_of_its_fields(monkeypatch):
    model = StrangeClassifier()
    X = [{name: 1.0 + number for number, name in enumerate("abcdefgh"[i : i + 3])} for i in range(6)]
    for i, x in enumerate(X):
        model.learn_one(x, "yes" if i % 2 else "no")
    learner = model.trainer.learner
    state, declaration = learner.get_state(), learner.declaration
    assert 3 <= len(learner) <= 4 and state["n_taught"] == 2 and state["squares"] == 4.0
    some = declaration.selected(state, state["keys"] == state["keys"][0])
    assert [len(some[name]) for name in ("keys", "values", "counts")] == [1, 1, 1] and some["squares"] == 4.0
    assert not learner.has_columns_in(state)
    for changed in (declaration.mirrored(state), declaration.drop_column(state, 0)):
        assert changed.keys() == state.keys() and all(changed[name] is state[name] for name in state)
    with pytest.raises(TypeError, match="count the examples with each feature"):
        declaration.occurrences(state)
    with pytest.raises(TypeError, match="cannot be merged"):
        merge(model, [model, model])
    monkeypatch.setattr("stream_pegasos.learners.merging.MERGEABLE", ("StrangeClassifier",))
    with pytest.raises(TypeError, match="cannot be merged"):  # as its fields do not say how
        merge(model, [model, model])
    declaration.check(state, columns=1)
    assert learner.get_state().keys() == state.keys()
