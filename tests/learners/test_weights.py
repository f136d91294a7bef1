"""What a weight means, for every kind of model and any number of classes."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
)

KINDS = {
    "two": (AdaptiveClassifier, ["ham", "spam"]),
    "two with a limit": (
        lambda **w: AdaptiveClassifier(max_false_positive_rate=0.2, pos_label="spam", **w),
        ["ham", "spam"],
    ),
    "several": (AdaptiveClassifier, ["a", "b", "c"]),
    "ordered": (lambda **w: OrdinalClassifier(AdaptiveClassifier(**w)), [1, 2, 3]),
    "labels": (lambda **w: MultiLabelClassifier(AdaptiveClassifier(**w)), [("a",), ("a", "b"), ("c",)]),
    "Pegasos": (PegasosClassifier, ["ham", "spam"]),
    "Pegasos ovr": (lambda **w: PegasosClassifier(multi_class="ovr", **w), ["a", "b", "c"]),
    "Crammer-Singer": (lambda **w: PegasosClassifier(multi_class="crammer_singer", **w), ["a", "b", "c"]),
}


def said(model, X):
    predictions = model.predictions(X)
    return (
        predictions.labels.tolist(),
        predictions.classes,
        predictions.probabilities.tolist(),
        predictions.scores.tolist(),
    )


def examples(labels, n, seed=0):
    generator = np.random.default_rng(seed)
    numbers = generator.integers(len(labels), size=n).tolist()
    X = [{f"of {i}": 1.0, f"f{generator.integers(9)}": 1.0} for i in numbers]
    return X, [labels[i] for i in numbers]


@pytest.mark.parametrize("taught", [0, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_0_changes_nothing(kind, taught):
    """Not even where it brings a label, or stands among others: those are learned as if they stood alone."""
    make, labels = KINDS[kind]
    model = make()
    X, y = examples(labels, taught)
    model.learn_many(X, y)
    before, n = said(model, X or [{"of 0": 1.0}]), model.n_learned
    new = [("z", "a")] if kind == "labels" else [9] if kind == "ordered" else labels[1:]
    model.learn_one({"of 0": 1.0}, new[0], 0.0)
    model.learn_many([{"of 0": 1.0}] * 60, [labels[0], labels[1], new[0]] * 20, 0.0)
    model.predict_learn_many([{"of 1": 1.0}] * 20, [labels[0], new[0]] * 10, [0.0] * 20)
    assert said(model, X or [{"of 0": 1.0}]) == before
    assert model.n_learned == n
    more, of_more = examples(labels, 30, 1)
    alone = copy.deepcopy(model)
    alone.learn_many(more, of_more)
    idle = [{**x, f"idle {i}": 1.0} for i, x in enumerate(more)]
    among = [x for pair in zip(more, idle, strict=True) for x in pair]
    their = [label for pair in zip(of_more, reversed(of_more), strict=True) for label in pair]
    model.learn_many(among, their, [1.0, 0.0] * 30)
    for x, label in zip(idle, of_more, strict=True):
        model.learn_one({"idle": 1.0, **x}, label, 0.0)
    assert said(model, more) == said(alone, more)
    (arrays, *rest), (expected, *others) = model.to_state(), alone.to_state()  # with the names of features
    assert rest == others and all(np.array_equal(arrays[name], expected[name]) for name in expected)


def test_a_class_of_weight_0_is_never_learned_and_balanced_does_not_count_it():
    model = AdaptiveClassifier(class_weight={"c0": 0.0})
    y = ["c0", "c1", "c0", "c2", "c0", "c0"] * 20
    model.learn_many([{"x": 1.0}] * 120, y)
    assert set(model.classes) == {"c1", "c2"} and model.n_learned == 40
    X, y = examples(["a", "b", "c"], 60)
    balanced, alone = AdaptiveClassifier(class_weight="balanced"), AdaptiveClassifier(class_weight="balanced")
    balanced.learn_many([*X, *X], [*y, *["a"] * 60], [1.0] * 60 + [0.0] * 60)
    alone.learn_many(X, y)
    assert said(balanced, X) == said(alone, X)


@pytest.mark.parametrize("kind", ["several", "ordered", "Pegasos ovr", "Crammer-Singer"])
def test_balanced_weights_make_classes_that_nothing_tells_apart_equally_probable(kind):
    make, labels = KINDS[kind]
    generator = np.random.default_rng(0)
    y = [labels[i] for i in generator.choice(3, 4_000, p=[0.9, 0.07, 0.03])]
    without, balanced = make(), make(class_weight="balanced")
    for model in (without, balanced):
        model.learn_many([{"x": 1.0}] * len(y), y)
    assert max(without.predict_proba_one({"x": 1.0}).values()) > 0.8
    assert max(balanced.predict_proba_one({"x": 1.0}).values()) < 0.45


@pytest.mark.parametrize("kind", ["several", "ordered"])
def test_balanced_weights_raise_the_accuracy_of_rare_classes(kind):
    make, labels = KINDS[kind]
    generator = np.random.default_rng(1)

    def drawn(n):
        numbers = generator.choice(3, n, p=[0.9, 0.07, 0.03])
        has = generator.random((n, 12)) < np.where(np.arange(12) % 3 == numbers[:, None], 0.5, 0.3)
        return [{f"f{j}": 1.0 for j in np.flatnonzero(row).tolist()} for row in has], [labels[i] for i in numbers]

    (X, y), (new, truths) = drawn(6_000), drawn(3_000)
    found = []
    for weights in (None, "balanced"):
        model = make(class_weight=weights)
        model.learn_many(X, y)
        found.append(balanced_accuracy_score(truths, model.predict_many(new)))
    assert found[1] > found[0] + 0.05


@given(
    seed=st.integers(0, 999),
    n=st.integers(1, 30),
    kind=st.sampled_from(["two", "two with a limit", "several", "ordered", "labels"]),
    weight=st.integers(2, 4),
)
def test_what_counts_counts_an_example_as_often_as_its_weight_says(seed, n, kind, weight):
    """Without a half-life and a margin, counts are those of the examples said so many times."""
    make, labels = KINDS[kind]
    options = {"half_life": None, "margin": None}
    X, y = examples(labels, n, seed)
    heavy, repeated = make(**options), make(**options)
    for model in (heavy, repeated):
        model.trainer.set_scaler(None)  # lest it begins in the middle of what is repeated
    heavy.learn_many(X, y, float(weight))
    repeated.learn_many([x for x in X for _ in range(weight)], [label for label in y for _ in range(weight)])
    for name in ("positives", "negatives", "counts", "taught_counts", "class_counts"):
        of_heavy, of_repeated = heavy.to_state()[0], repeated.to_state()[0]
        if name in of_heavy:
            np.testing.assert_allclose(of_heavy[name], of_repeated[name], rtol=1e-6)


@pytest.mark.parametrize("label", [[1], {}, {"spam"}, None])
def test_what_is_no_label_is_refused_beside_labels_without_weight(label):
    model = AdaptiveClassifier(class_weight={"ham": 0.0})
    for call in (
        lambda: model.learn_one({"a": 1.0}, label),
        lambda: model.learn_many([{"a": 1.0}], [label]),
        lambda: model.forget_class(label),
    ):
        with pytest.raises(TypeError, match="a label must be a bool, an int or a str"):
            call()


def one_by_one_and_at_once(make, X, y, w):
    """What models say that have learned examples one by one and at once; and what was said of each before."""
    one, many = make(), make()
    before = []
    for x, label, weight in zip(X, y, w, strict=True):
        found = one.predictions([x])
        before.append(dict(zip(found.classes, found.probabilities[0].tolist(), strict=True)))
        one.learn_one(x, label, weight)
    return one, many, before, many.predict_learn_many(X, y, w)


@pytest.mark.parametrize(
    ("options", "y", "w"),
    [
        ({"class_weight": {"ham": 0.25}}, ["ham", "spam", "ham", "spam"], [5e-324, 1.0, 1.0, 1.0]),
        ({"class_weight": {"ham": 0.0}}, ["spam", "ham", "ham", "spam"], [1.0] * 4),
        ({"class_weight": "balanced"}, ["ham", "ham", "spam", "spam"], [1.0, 1.0, 1.0, 5e-324]),
        ({"threshold": 0.6}, ["0", 1, "ham", "spam"], [0.0, 0.0, 0.0, 0.0]),
        ({"threshold": 0.6, "pos_label": "spam"}, ["a", "ham", "b", "spam"], [0.0, 1.0, 0.0, 1.0]),
        ({"threshold": 0.6}, [False, 0, "ham", True], [1.0, 0.0, 0.0, 1.0]),
    ],
)
def test_what_teaches_is_the_same_one_by_one_and_at_once(options, y, w):
    """However small a weight is, and whatever label has none."""
    X = [{"a": 1.0}, {"b": 1.0}, {"a": 1.0}, {"b": 1.0}]
    one, many, before, at_once = one_by_one_and_at_once(lambda: AdaptiveClassifier(**options), X, y, w)
    assert said(one, X) == said(many, X)
    for i, probabilities in enumerate(before):
        found = dict(zip(at_once.classes, at_once.probabilities[i], strict=True))
        known = [label for label in probabilities if label in many.classes]
        assert [found[label] for label in known] == pytest.approx([probabilities[label] for label in known])


def test_a_label_without_weight_is_no_third_one():
    model = KernelPegasosClassifier()
    X, y = examples(["ham", "spam"], 9)
    model.learn_many([*X, {"a": 1.0}], [*y, "new"], [1.0] * 9 + [0.0])
    model.learn_one({"a": 1.0}, "new", 0.0)
    assert {*model.classes} == {"ham", "spam"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_too_small_for_single_precision_counts_as_the_smallest(kind):
    """Of which both engines make the same."""
    make, labels = KINDS[kind]
    tiny, small = make(), make()
    X, y = examples(labels, 20)
    for model, weight in ((tiny, 5e-324), (small, 1e-30)):
        model.learn_many(X, y, [weight, 1.0] * 10)
        model.learn_one(X[0], y[0], weight)
    assert said(tiny, X) == said(small, X)
