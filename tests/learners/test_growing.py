"""A third class in the middle of a stream: nothing is refused, and nothing starts anew."""

import pickle

import numpy as np
import pytest
from estimators import NAMES
from noisy import columns
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    load,
)

MODELS = {
    "adaptive": AdaptiveClassifier,
    "adaptive, hinge": lambda: AdaptiveClassifier(loss="hinge", half_life=20.0, fit_intercept=False),
    "adaptive, plain": lambda: AdaptiveClassifier(naive_bayes=False, half_life=None),
    "pegasos": lambda: PegasosClassifier(l2=0.01),
    "pegasos, average": lambda: PegasosClassifier(l2=0.01, average=3, batch_size=4, fit_intercept=True),
    "pegasos, gentle": lambda: PegasosClassifier(l2=0.1, batch_size=3, t0=2.0),
}
for_each_model = pytest.mark.parametrize("which", MODELS)


def stream(n, labels=("ham", "spam"), seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(n):
        number = int(generator.integers(len(labels)))
        names = [NAMES[place] for place in np.flatnonzero(generator.random(6) < 0.6)]
        x = {
            name: float(generator.normal(1.0 if NAMES.index(name) % len(labels) == number else -0.3)) for name in names
        }
        yield x, labels[number]


def with_two(which):
    model = MODELS[which]()
    for x, y in [({"a": 1.0}, "ham"), ({"b": 1.0}, "spam"), *stream(60)]:
        model.learn_one(x, y)
    return model


@for_each_model
def test_two_classes_go_on_with_opposite_margins(which):
    """Half of how far they are apart is the one margin there was: less by a share where Pegasos counts the step of the
    third one, and with offsets of their own elsewhere.
    """
    model, before = with_two(which), with_two(which)
    model.flush(), before.flush()
    for each in (model, before):
        each.trainer.set_scaler(None)  # lest the example of the third class has the features of the table, too
    model.learn_one({"c": 1.0}, "eggs", w=1e-200)
    X = [x for x, _ in stream(10, seed=7)]
    margins = [model.decision_function_one(x) for x in X]
    halves = np.array([(each["spam"] - each["ham"]) / 2.0 for each in margins])
    expected = np.array([before.decision_function_one(x) for x in X])
    shares = halves / expected if "pegasos" in which else 1.0 + halves - expected
    assert shares.tolist() == pytest.approx([shares[0]] * 10, rel=1e-5)
    assert "pegasos" in which or shares[0] == pytest.approx(1.0, abs=1e-3)


@for_each_model
def test_it_learns_the_third_class_as_well_as_one_that_is_alone(which):
    """Accuracy on three classes after two, beside a model that met all three from the start."""
    labels = ("ham", "spam", "eggs")
    late, fresh = with_two(which), MODELS[which]()
    right = {"late": 0, "fresh": 0}
    for i, (x, y) in enumerate(stream(900, labels, seed=2)):
        if i >= 450:
            right["late"] += late.predict_one(x) == y
            right["fresh"] += fresh.predict_one(x) == y
        late.learn_one(x, y)
        fresh.learn_one(x, y)
    assert right["late"] > 0.93 * right["fresh"] > 200


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {1.5: 1.0}, "text"], ids=repr)
@for_each_model
def test_a_bad_example_behind_the_third_label_leaves_everything_as_it_was(which, bad, unchanged):
    model = with_two(which)
    X, y = [{"a": 1.0}, {"b": 1.0}, {"c": 1.0}, bad], ["ham", "spam", "eggs", "ham"]
    with unchanged(model):
        for w in (1.0, [1.0, 1.0, 1.0, 2.0]):
            with pytest.raises((TypeError, ValueError)):
                model.learn_many(X, y, w)
        for worse in ([*y[:3], None], [*y[:3], 0.5]):
            with pytest.raises((TypeError, ValueError), match="label"):
                model.learn_many([*X[:3], {"d": 1.0}], worse)
        with pytest.raises(ValueError, match="w must be from 0 to "):
            model.learn_many([*X[:3], {"d": 1.0}], y, [1.0, 1.0, 1.0, -1])


def test_decisions_go_on_for_the_positive_class():
    model = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.05)
    flagged = negatives = 0
    for i, (x, y) in enumerate(stream(3_000, ("ham", "spam", "eggs"), seed=3)):
        y = "ham" if i < 200 and y == "eggs" else y
        if y != "spam":
            negatives += 1
            flagged += model.predict_one(x) == "spam"
        model.learn_one(x, y)
    assert model.classes[:2] == ("ham", "spam") and negatives > 1_500 and 20 < flagged < 0.06 * negatives


@pytest.mark.parametrize("limited", [("eggs",), ("spam", "eggs")])
def test_limits_by_label(limited):
    model = AdaptiveClassifier(max_false_positive_rate=dict.fromkeys(limited, 0.04))
    wrong, others, right = dict.fromkeys(limited, 0), dict.fromkeys(limited, 0), 0
    for x, y in stream(1_500, ("ham", "spam", "eggs"), seed=4):
        predicted = model.predict_one(x)
        right += predicted == y
        for label in limited:
            if y != label:
                others[label] += 1
                wrong[label] += predicted == label
        model.learn_one(x, y)
    assert right > 500 and all(0 < wrong[label] < 0.05 * others[label] for label in limited)


@pytest.mark.parametrize("is_set", [False, True])
@pytest.mark.parametrize("options", [{"threshold": {"eggs": 0.6}}, {"max_false_positive_rate": {"eggs": 0.1}}, {}])
def test_a_detector_beside_decisions_by_label(options, is_set):
    """The label comes late, in the middle of a call; classes are those known afterwards."""
    one, many = (AdaptiveClassifier(drift_detector=drift.ADWIN(), **options) for _ in range(2))
    if is_set:
        one, many = MultiLabelClassifier(one), MultiLabelClassifier(many)
    examples = [*stream(60, seed=9), *stream(60, ("ham", "spam", "eggs"), seed=10)]
    examples = [(x, {label, "all"} if is_set else label) for x, label in examples]
    for x, label in examples:
        one.learn_one(x, label)
    told = many.predict_learn_many([x for x, _ in examples], [label for _, label in examples])
    assert one.classes == many.classes == told.classes and told.scores.shape == (120, 3 + is_set)
    assert one.weights == many.weights


def test_a_label_that_was_only_named_is_never_predicted(tmp_path):
    """Of two classes, and of the third that comes then; until it comes itself, as any other."""
    examples = list(stream(300, ("ham", "spam"), seed=6))
    named, plain = (AdaptiveClassifier(pos_label=label) for label in ("Spam", None))
    for i, (x, y) in enumerate([*examples[:1], *(example for example in examples if example[1] != examples[0][1])]):
        named.learn_one(x, y)
        assert named.predict_one(x) in ("ham", "spam")
        assert i or (named.classes, named.pair) == ((y,), (y, None))
    assert set(named.classes) == {"ham", "spam"}
    named.learn_one({"pills": 1.0}, "Spam")
    assert set(named.classes) == {"ham", "spam", "Spam"}
    named, plain = (AdaptiveClassifier(pos_label=label) for label in ("spam", None))
    named.learn_one(*examples[0])
    named.save(tmp_path / "m")
    named = load(tmp_path / "m")
    for model in (named, plain):
        for x, y in examples[model.n_iterations :]:
            model.learn_one(x, y)
    assert named.classes == ("ham", "spam")


@pytest.mark.parametrize("options", [{}, {"threshold": 0.2}])
def test_what_was_said_before_a_third_label_came_has_no_share_of_one_that_was_only_named(options):
    model = AdaptiveClassifier(pos_label="never", **options)
    model.learn_many([{"a": 1.0}] * 2, ["ham"] * 2)
    said = model.predict_learn_many([{"b": 1.0}, {"c": 1.0}, {"a": 1.0}], ["eggs", "ham", "eggs"])
    assert said.classes == ("ham", "eggs") and said.labels[0] == "ham"
    assert said.probabilities[0].tolist() == [0.75, 0.25]  # Laplace's rule, after two examples
    assert said.probabilities.sum(axis=1) == pytest.approx(np.ones(3))


def test_a_label_that_was_only_named_cannot_be_forgotten():
    model = AdaptiveClassifier(pos_label="spam")
    model.learn_many([{"a": 1.0}] * 3, ["ham"] * 3)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="unknown label"):
        model.forget_class("spam")
    assert pickle.dumps(model) == before
    model.learn_one({"b": 1.0}, "spam")
    assert model.classes == ("ham", "spam")


@pytest.mark.parametrize(
    "make",
    [
        AdaptiveClassifier,
        lambda: AdaptiveClassifier(class_weight="balanced", threshold={"spam": 0.6}),
        PegasosClassifier,
        lambda: PegasosClassifier(multi_class="ovr", batch_size=4, average=True),
        lambda: PegasosClassifier(multi_class="crammer_singer"),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_class_is_forgotten(make, n_classes, tmp_path):
    """The others are as they were, and the model goes on, also from its file."""
    labels = ("ham", "Spam", "spam", "eggs")[:n_classes]
    model = make()
    model.learn_many(*columns(stream(400, labels, seed=7)))
    model.flush()
    others = [label for label in model.classes if label != "Spam"]
    if n_classes > 2:
        weights = {label: model.weights[label] for label in others}
        margins = [model.decision_function_one(x) for x, _ in stream(20, labels, seed=8)]
    model.forget_class("Spam")
    assert list(model.classes) == others
    if n_classes > 2:
        assert {label: model.weights[label] for label in others} == weights
        base = np.log((len(others) - 1.0) / len(others)) if isinstance(model, AdaptiveClassifier) else 0.0
        for before, (x, _) in zip(margins, stream(20, labels, seed=8), strict=True):
            now = model.decision_function_one(x)
            assert [now[label] for label in others] == pytest.approx([before[label] - base for label in others])
    model.save(tmp_path / "m")
    for one in (model, load(tmp_path / "m")):
        assert {one.predict_one(x) for x, _ in stream(50, labels, seed=9)} <= set(others)
        assert list(one.predict_proba_one({"pills": 1.0}))[: len(others)] == others
        one.learn_many(*columns(stream(200, ("ham", "spam", "new"), seed=10)))
        assert set(one.classes) == {*others, "ham", "spam", "new"}
    with pytest.raises(ValueError, match="unknown label"):
        model.forget_class("Spam")


def test_which_models_forget_no_class():
    for model in (OrdinalClassifier(), KernelPegasosClassifier()):
        model.learn_many([{"a": 1.0}, {"b": 1.0}], [1, 2])
        with pytest.raises(TypeError, match="cannot forget a class"):
            model.forget_class(2)
    text = TextClassifier()
    text.learn_many(["a", "b", "c"], ["x", "y", "z"])
    text.forget_class("x")
    assert text.classes == ("y", "z") and text.predict_one("b") in ("y", "z")
    together = MultiLabelClassifier(AdaptiveClassifier(max_false_positive_rate=0.1))
    together.learn_many([{"a": 1.0}, {"b": 1.0}] * 9, [["x", "y"], ["y", "z"]] * 9)
    together.forget_class("x")
    assert together.predict_one({"b": 1.0}).keys() == {"y", "z"}
