"""Several labels an example."""

import numpy as np
import pandas as pd
import pytest
from contract import bits_of
from river import drift

import stream_pegasos
from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    load,
)
from stream_pegasos.learners.probabilities import probabilities_by_class

LABELS = ["grain", "ship", 7, True]


def stream(n, seed=0):
    """Each label holds where its own feature is large."""
    generator = np.random.default_rng(seed)
    for _ in range(n):
        values = generator.normal(size=len(LABELS))
        x = {f"of {label}": float(value) for label, value in zip(LABELS, values, strict=True)} | {"noise": 1.0}
        yield x, {label for label, value in zip(LABELS, values, strict=True) if value > 0.7}


def test_it_learns_which_labels_hold():
    model, right, n = MultiLabelClassifier(), 0, 0
    for i, (x, y) in enumerate(stream(1_500)):
        if i >= 500:
            right += {label for label, holds in model.predict_one(x).items() if holds} == y
            n += 1
        model.learn_one(x, y)
    assert right > 0.8 * n and set(model.classes) == set(LABELS)


def test_the_forms_of_labels_mean_the_same():
    """A set, list, tuple, array, River's dict, and River's data frame."""
    forms = [
        set,
        frozenset,
        lambda y: sorted(y, key=str),
        lambda y: tuple(sorted(y, key=str)),
        lambda y: np.array(sorted(y, key=str), dtype=object),
        lambda y: {label: label in y for label in sorted(y, key=str)},
    ]
    models = [MultiLabelClassifier() for _ in forms]
    for x, y in stream(40):
        for model, form in zip(models, forms, strict=True):
            model.learn_one(x, form(y))
    for model in models[1:]:
        assert set(model.classes) == set(models[0].classes)
        for x, _ in stream(10, seed=1):
            expected = models[0].decision_function_one(x)
            assert model.decision_function_one(x) == pytest.approx(expected, rel=1e-9)
    X, y = zip(*stream(40), strict=True)
    many = MultiLabelClassifier()
    many.learn_many(pd.DataFrame(X), pd.DataFrame([{label: label in of for label in LABELS} for of in y]))
    assert set(many.classes) == set(LABELS)
    frame = many.predict_many(pd.DataFrame(X[:5]))
    assert frame.to_dict("records") == [many.predict_one(x) for x in X[:5]]


def test_probabilities_are_calibrated_and_decide():
    model, found, held = MultiLabelClassifier(), [], []
    for x, y in stream(3_000):
        each, labels = model.predict_proba_one(x), model.predict_one(x)
        for label, p in each.items():
            assert p[True] + p[False] == pytest.approx(1.0) and (p[True] > 0.5) == labels[label]
            found.append(p[True])
            held.append(label in y)
        model.learn_one(x, y)
    found, held = np.array(found), np.array(held)
    bins = np.minimum((10 * found).astype(int), 9)
    assert np.abs(np.bincount(bins, found - held)).sum() / len(found) < 0.03


def test_thresholds_and_limits_by_label():
    options = {"threshold": {"ship": 0.9}, "max_false_positive_rate": {"grain": 0.02}}
    model, plain = MultiLabelClassifier(AdaptiveClassifier(**options)), MultiLabelClassifier()
    flagged = others = 0
    for x, y in stream(2_000):
        labels, each = model.predict_one(x), plain.predict_proba_one(x)
        assert labels.get("ship", False) == (each.get("ship", {True: 0.0})[True] > 0.9)
        assert all(labels[label] == (each[label][True] > 0.5) for label in labels if label in (7, True))
        if "grain" not in y:
            others += 1
            flagged += labels.get("grain", False)
        model.learn_one(x, y)
        plain.learn_one(x, y)
    assert 0.01 * others < flagged < 0.03 * others


def test_no_label_at_all():
    model = MultiLabelClassifier()
    for x, _ in stream(5):
        model.learn_one(x, set())
    assert model.classes == () and model.predict_one({}) == model.predict_proba_one({}) == {}
    assert model.predict_many([{}]).tolist() == [()] and model.n_iterations == 5
    model.learn_one({"a": 1.0}, ["late"])
    assert model.predict_one({"a": 1.0}) == {"late": True} or model.classes == ("late",)


def test_an_explanation_adds_up_to_the_margin_of_a_label():
    model = stream_pegasos.TextClassifier(classifier=MultiLabelClassifier())
    for text, labels in [("wheat and corn", ["grain"]), ("a ship of wheat", ["grain", "ship"]), ("oil", [])] * 10:
        model.learn_one(text, labels)
    margins = model.decision_function_one("a ship of corn")
    for label in ("grain", "ship"):
        assert sum(model.explain_ngrams_one("a ship of corn", label).values()) == pytest.approx(margins[label])
    assert sum(model.explain_ngrams_one("a ship of corn").values()) == pytest.approx(max(margins.values()))
    with pytest.raises(ValueError, match="must be one of the classes"):
        model.explain_ngrams_one("corn", "oil")


@pytest.mark.parametrize("holds", ["yes", 2, None, 0.5])
def test_whether_a_label_holds_is_true_or_false(holds):
    model = MultiLabelClassifier()
    with pytest.raises(TypeError, match=f"label 'a' of an example must be True or False, or 1 or 0, got {holds!r}"):
        model.learn_one({"x": 1.0}, {"b": True, "a": holds})
    assert model.n_learned == 0 and model.classes == ()


def test_a_label_that_never_held_is_answered_and_is_no_class(tmp_path):
    model = MultiLabelClassifier()
    model.learn_one({"a": 1.0}, {"x": True, "never": False})
    assert model.predict_one({"a": 1.0})["never"] is False and model.classes == ("x",)
    assert model.predict_proba_one({"a": 1.0})["never"] == {False: 1.0, True: 0.0}
    model.save(tmp_path / "m.st")
    again = load(tmp_path / "m.st")
    assert again.predict_one({"a": 1.0}) == model.predict_one({"a": 1.0})
    again.learn_many([{"a": 1.0}, {"b": 1.0}], [{"x": True, "never": False}, {"never": True, "other": False}])
    assert again.classes == ("x", "never") and [*again.predict_one({"b": 1.0})] == ["x", "never", "other"]


def test_a_label_holds_only_above_a_margin_of_0():
    """Its probability is above one half exactly there, however small the margin."""
    margins = np.array([[0.0, 5e-324, -5e-324, 1e-20, -1e-20, 1.0]])
    assert (probabilities_by_class(margins, np.array([[1.0]])) > 0.5).tolist() == (margins > 0.0).tolist()
    assert probabilities_by_class(margins, np.array([[1.0]]))[0, 0] == 0.5


def test_two_columns_of_one_name_are_refused():
    model = MultiLabelClassifier()
    with pytest.raises(ValueError, match="two columns with the name 'a'"):
        model.learn_many([{"x": 1}], pd.DataFrame([[True, False]], columns=["a", "a"]))
    assert model.classes == ()


def test_a_label_has_its_limit_before_it_is_predicted():
    detector = drift.binary.DDM()  # with which a label that comes has no column yet when its example is decided
    model = MultiLabelClassifier(AdaptiveClassifier(max_false_positive_rate=0.2, drift_detector=detector))
    model.learn_one({"x": 1.0}, {"a"})
    before = bits_of(model.snapshot())
    model.predict_one({"x": 1.0})
    assert bits_of(model.snapshot()) == before
