"""What a classifier is composed of, each part alone, and pickles from before it was."""

import contextlib
import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    load,
    merge,
)
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


def taught(model, examples):
    part = copy.deepcopy(model)
    part.learn_many(*columns(examples))
    return part


def columns(examples):
    return ([{"a": 1.0, name: 2.0} for name, _, _ in examples], [label for _, label, _ in examples])


CALLS = {
    "learn_one": lambda model, examples: [model.learn_one({"a": 1.0}, label, w) for _, label, w in examples],
    "learn_many": lambda model, examples: model.learn_many(*columns(examples), [w for *_, w in examples]),
    "predict_learn_many": lambda model, examples: model.predict_learn_many(*columns(examples)),
    "a label too many": lambda model, examples: model.learn_many([{}, {}, {}], [examples[0][1], [], "c"]),
    "forget_class": lambda model, examples: model.forget_class(examples[0][1]),
    "set_decision": lambda model, examples: model.set_decision(pos_label=examples[0][1]),
    "pickle": lambda model, examples: pickle.loads(pickle.dumps(model)),
    "copy": lambda model, examples: copy.deepcopy(model),
    "merge": lambda model, examples: merge(model, [taught(model, examples), taught(model, examples[::-1])]),
}
EXAMPLES = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from([True, False, 0, "b"]), st.sampled_from([0.0, 1.0])),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("kind", [AdaptiveClassifier, PegasosClassifier, KernelPegasosClassifier])
@given(calls=st.lists(st.tuples(st.sampled_from([*CALLS]), EXAMPLES), max_size=6))
@settings(deadline=None, max_examples=60)
def test_a_learner_knows_which_classes_have_come(kind, calls, tmp_path_factory):
    """Whatever a model went through, also what it refused; of two classes that share a column."""
    model, path = kind(), tmp_path_factory.mktemp("model") / "model"
    for name, examples in calls:
        with contextlib.suppress(TypeError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = CALLS[name](model, examples)
            model = result if isinstance(result, kind) else model
        model.save(path)
        for each in (model, load(path)):
            learner, known = each.trainer.learner, each.trainer.labels.known
            assert learner.has_class_columns or learner.n_known == min(2, len(known))
            margins = learner.predict_learn_many(each.trainer.vocabulary, [{"a": 1.0}])[0]
            assert np.isfinite(margins[:, :2]).sum() == min(2, len(known))
            assert each.predict_one({"a": 1.0}) in (*known, None, False)
