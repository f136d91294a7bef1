"""What a classifier is composed of, each part alone, and pickles from before it was."""

import copy
import pickle

import numpy as np
import pytest

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier, PegasosClassifier
from stream_pegasos.learners.adaptive import AdaptiveOptions
from stream_pegasos.learners.decision_policy import ClassPolicy, DecisionPolicy
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.predictions import RawScores, WeightedTargets

X = [{f"w{i % 7}": 1.0, f"v{i % 3}": 2.0} for i in range(40)]
CASES = {
    "adaptive": (lambda: AdaptiveClassifier(class_weight="balanced"), ["ham", "spam", "eggs"]),
    "limits": (
        lambda: AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.2, coverage=0.9, max_features=5),
        ["spam", "ham"],
    ),
    "f1": (lambda: AdaptiveClassifier(decide_for="macro_f1"), ["spam", "ham", "eggs"]),
    "pegasos": (lambda: PegasosClassifier(batch_size=3), ["spam", "ham"]),
    "ordered": (lambda: OrdinalClassifier(AdaptiveClassifier(coverage=0.8)), [2, 1, 3]),
    "sets": (lambda: MultiLabelClassifier(AdaptiveClassifier(threshold=0.3)), [{"a"}, {"a", "b"}, set()]),
}
OF_TRAINER = ("learner", "labels", "class_weights", "vocabulary")


def attributes_of_before(model):
    """The attributes that the model had before it had a trainer, of which they are parts now."""
    trainer, policy = model.trainer, model.trainer.policy
    own = {name: value for name, value in vars(model).items() if name != "trainer"}
    own |= {name: getattr(trainer, name) for name in OF_TRAINER}
    own |= {"_scaling": None if trainer.scaling is None else (trainer.scaler, None), "_drift": trainer.drift}
    own |= {"_told_of_labels": trainer.has_warned_of_labels, "_told_of_options": trainer.has_warned_of_options}
    own |= {"recency": trainer.forgetting.recency, "f1": policy.f1, "conformal": policy.conformal}
    own |= {"decisions": policy.decisions} if hasattr(policy, "decisions") else {}
    return own | ({"of_others": policy.default} if hasattr(policy, "default") else {})


@pytest.mark.parametrize("case", CASES)
def test_a_pickle_of_before_goes_on(case):
    make, labels = CASES[case]
    y = [labels[i % len(labels)] for i in range(len(X))]
    model = make()
    model.learn_many(X, y)
    again = type(model).__new__(type(model))
    again.__setstate__(pickle.loads(pickle.dumps(attributes_of_before(model))))
    for each in (model, again):
        each.learn_many(X[:9], y[:9])
    assert again.predictions(X).scores.tolist() == model.predictions(X).scores.tolist()
    assert again.predict_many(X).tolist() == model.predict_many(X).tolist()
    assert again.clone().trainer.is_new


def test_a_model_composes_its_trainer_when_it_is_first_asked_for():
    """The classifier inside another one is its options, and never makes an engine; a pickle does not, either."""
    for model, label in ((OrdinalClassifier(), 1), (MultiLabelClassifier(), {"spam"})):
        model.learn_one({"a": 1.0}, label)
        for each in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert "trainer" in vars(each) and "trainer" not in vars(each.classifier)
    fresh = AdaptiveClassifier()
    before = pickle.dumps(fresh)
    assert fresh.predict_one({"a": 1.0}) is None and pickle.dumps(fresh) == before


def test_options_are_checked_and_do_not_change():
    options = AdaptiveClassifier(half_life=100.0).options
    assert options == AdaptiveOptions(0.5, "log", 5.0, True, 0.5, 100.0, True, 0.1, None)
    with pytest.raises(AttributeError):
        options.margin = 1.0
    with pytest.raises(ValueError, match="learning_rate"):
        AdaptiveOptions(0.0, "log", 5.0, True, 0.5, 100.0, True, 0.1, None)


def test_a_policy_decides_alone():
    labels, margins = Labels(("ham", "spam")), np.array([[-1.0, 1.0], [0.5, -0.5]])
    raw = RawScores(margins, np.array([[1.0, 0.0, 1.0]] * 2))
    plain, careful = DecisionPolicy(), ClassPolicy(0.9, None, "spam", "accuracy", 0.5)
    assert plain.is_plain and plain.apply(labels, raw) is raw
    assert plain.label(labels, [-1.0, 1.0], (1.0, 0.0, 1.0)) == "spam"
    assert careful.apply(labels, raw).decided.tolist() == [0, 0]  # 1 / (1 + exp(−2)) is below .9
    before = careful.snapshot()
    learned = careful.apply(labels, raw, WeightedTargets(np.array([1.0, 0.0]), np.ones(2)))
    assert learned.members.any() and careful.conformal.n == 2.0
    careful.restore(before)
    assert careful.conformal.n == 0.0
