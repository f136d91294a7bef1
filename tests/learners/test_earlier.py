"""What version 0.2 wrote of labels, of which two exchanged their numbers so that the second was the positive one."""

import copy

import pytest

from stream_pegasos import AdaptiveClassifier, KernelPegasosClassifier, PegasosClassifier
from stream_pegasos.learners.earlier import mirrored

KINDS = (AdaptiveClassifier, PegasosClassifier, KernelPegasosClassifier)
X = [{"a": 1.0, "b": 0.5}, {"b": 1.0, "c": -2.0}, {"c": 1.0}]


def written_by_0_2(model, labels, exchanged):
    """The state of a model as that version would have written it."""
    arrays, names, values = copy.deepcopy(model.to_state())
    if exchanged:
        state = mirrored({**arrays, **values["learner"]})
        arrays, values["learner"] = {name: state[name] for name in arrays}, {of: state[of] for of in values["learner"]}
    return arrays, names, {**values, "labels": labels}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "y, negative, positive", [([1, 1, 1], None, 1), ([1, 0, 1], 0, 1), ([0, 1, 0], 0, 1), ([0] * 3, 0, None)]
)
def test_labels_of_two(kind, y, negative, positive):
    model = kind()
    model.learn_many(X, y)
    labels = {"negative": negative, "positive": positive, "met": True, "only_named": False}
    loaded = kind.from_state(*written_by_0_2(model, labels, exchanged=y[0] == 1))
    assert set(loaded.classes) == set(y) and loaded.pair == model.pair
    for x in X:
        assert loaded.decision_function_one(x) == model.decision_function_one(x)
        assert loaded.predict_proba_one(x) == pytest.approx(model.predict_proba_one(x))
    for each in (loaded, model):
        each.learn_many(X, [0, 1, 1])
    assert loaded.decision_function_many(X) == pytest.approx(model.decision_function_many(X), rel=1e-6)


@pytest.mark.parametrize("kind", [AdaptiveClassifier, PegasosClassifier])
def test_a_label_that_was_only_named(kind):
    model = kind(pos_label="spam")
    model.learn_many(X, ["ham"] * 3)
    labels = {"negative": "ham", "positive": "spam", "met": True, "only_named": True}
    loaded = kind.from_state(*written_by_0_2(model, labels, exchanged=False))
    assert (loaded.classes, loaded.pair) == (("ham",), ("ham", None))
    assert loaded.predict_proba_one(X[0]) == model.predict_proba_one(X[0])


def test_a_decision_on_one_of_several_classes():
    model = AdaptiveClassifier(threshold=0.9, pos_label="a")
    model.learn_many(X * 9, ["c", "b", "a"] * 9)
    arrays, names, values = model.to_state()
    assert values["decisions"] == [[None, None]] and model.trainer.learner.has_class_columns
    loaded = AdaptiveClassifier.from_state(
        arrays, names, {**values, "labels": ["c", "b", "a"], "decisions": [["a", None]]}
    )
    assert [loaded.predict_one(x) for x in X] == [model.predict_one(x) for x in X]
    assert loaded.trainer.policy.limited(loaded.trainer.labels) == {}
