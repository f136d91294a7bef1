import copy
import pickle
import random

import numpy as np
import pytest
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    FrozenTextClassifier,
    HashedBagOfWords,
    PegasosClassifier,
    TextClassifier,
    engine,
)
from stream_pegasos.learners.branches import CommonModel, declaration_of, same
from stream_pegasos.learners.compact import Packer

LABELS = ["ham", "spam", "work", "other"]


def messages(n, labels, seed):
    """Texts of words that tell something of their labels."""
    numbers = random.Random(seed)
    for _ in range(n):
        label = numbers.choice(labels)
        yield " ".join(f"{label if numbers.random() < 0.3 else ''}w{numbers.randrange(80)}" for _ in range(6)), label


def model_of(learned=(), **options):
    model = TextClassifier(HashedBagOfWords(token_pattern=r"(?u)\b\w+\b"), AdaptiveClassifier(**options))
    for text, label in learned:
        model.learn_one(text, label)
    return model


def said(model, text):
    return model.predict_one(text), model.predict_proba_one(text)


# What the common model learns, which labels a branch meets after, and the options of both. Evidence is weakened every
# 16 half-lives.
CASES = {
    "nothing in common": ([], LABELS[:2], {}),
    "two classes": (LABELS[:2], LABELS[:2], {}),
    "weakened": (LABELS[:2], LABELS[:2], {"half_life": 2}),
    "one class": (["spam"], ["spam", "ham"], {}),
    "exchanged": ([1], [1, 5], {"half_life": 3}),
    "exchanged, then several": ([1], [1, 5, 7], {"half_life": 3}),
    "a third class": (LABELS[:2], LABELS[:3], {"half_life": 3}),
    "several classes": (LABELS[:3], LABELS, {"half_life": 3}),
    "several classes, no weakening": (LABELS, LABELS, {"half_life": None}),
    "a limit": (LABELS[:2], LABELS[:2], {"pos_label": "spam", "max_false_positive_rate": 0.1}),
    "limits": (LABELS, LABELS, {"max_false_positive_rate": {"spam": 0.1}}),
    "balanced": (LABELS[:2], LABELS[:3], {"class_weight": "balanced"}),
    "few features": ([], LABELS[:3], {"max_features": 50}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_branch_is_a_copy_of_the_common_model(case):
    first, after, options = CASES[case]
    model = model_of(messages(200, first, 1) if first else (), **options)
    common, whole, kept = pickle.loads(pickle.dumps(CommonModel(model))), copy.deepcopy(model), None
    stream, numbers, nothing = list(messages(300, after, 2)), random.Random(3), common.branch([]).kept()
    if "several" in case or "third" in case:
        stream.sort(
            key=lambda message: message[1] == after[-1] and numbers.random() < 0.9
        )  # most of the last come late
    while stream:
        batch = [stream.pop(0) for _ in range(min(numbers.randrange(1, 9), len(stream)))]
        branch = common.branch([text for text, _ in batch], kept)
        for text, label in batch:
            assert said(branch.model, text) == said(whole, text)
            if numbers.random() < 0.8:  # others have no label
                branch.learn_one(text, label)
                whole.learn_one(text, label)
        kept = branch.kept()
    everything = [f"{label}w{i}" for label in ["", *map(str, after)] for i in range(80)]
    branch = common.branch(everything, kept)
    assert branch.model.weights == {
        of: {key: whole.weights[of][key] for key in weights} if isinstance(weights, dict) else whole.weights[of]
        for of, weights in branch.model.weights.items()
    }
    if "max_features" not in options:
        assert branch.model.n_features == whole.n_features
    assert common.branch([], kept).kept() == kept
    assert common.branch([]).kept() == nothing


def test_little_is_kept():
    common = CommonModel(model_of(messages(2_000, LABELS[:2], 1)))
    none = len(common.branch([]).kept())
    branch = common.branch(["spamw1 spamw2 spamw3"])
    branch.learn_one("spamw1 spamw2 spamw3", "ham")
    size = 8 if engine.NAME == "pure" else 4  # of each number of a feature
    assert len(branch.kept()) - 3 * 6 * size < none + 200 < 400
    assert common.branch(["spamw1"], branch.kept()).model.n_features == 3


@pytest.mark.parametrize(
    "model, error, about",
    [
        (TextClassifier(classifier=PegasosClassifier()), TypeError, "PegasosClassifier"),
        (AdaptiveClassifier(), TypeError, "AdaptiveClassifier"),
        (model_of(messages(9, LABELS[:2], 1)).freeze(), TypeError, FrozenTextClassifier.__name__),
        (model_of(drift_detector=drift.binary.DDM()), ValueError, "drift_detector"),
        (model_of(messages(9, LABELS[:2], 1), max_features=99), ValueError, "max_features"),
    ],
)
def test_models_that_cannot_be_common(model, error, about):
    with pytest.raises(error, match=about):
        CommonModel(model)


def test_a_feature_is_kept_for_what_changed_of_one_class_alone():
    classifier = model_of(messages(200, LABELS, 1)).classifier
    state, _, _ = classifier.to_state()
    changed = {**state, "values": state["values"].copy()}
    changed["values"][state["n_taught"][:5].sum()] += 0.5
    assert np.flatnonzero(~same(declaration_of(state), state, changed)).tolist() == [5]


def test_what_was_kept_of_another_model_is_refused():
    kept = CommonModel(model_of(messages(9, LABELS[:2], 1))).branch([]).kept()
    with pytest.raises(ValueError, match="another common model"):
        CommonModel(model_of(messages(9, LABELS[:2], 2))).branch([], kept)


@pytest.mark.parametrize(
    "array, size",
    [
        (np.arange(5), 5),
        (np.array([0, 0, 0, 0, 0, 0, 0, 0, 300]), 2 + 2),
        (np.array([-1, 70_000]), 8),
        (np.array([-129, 127]), 4),
        (np.array([1 << 62, 1]), 16),
        (np.array([0.1, 0.5]), 16),
        (np.array([0.25, 0.5]), 8),
        (np.array([1e60, 0.0]), 8 + 1),
        (np.zeros(128), 16),
        (np.array([0.1, 0.2, 0.3, 0.0]), 1 + 4),
        (np.zeros(0), 0),
    ],
)
def test_arrays_are_packed_small_and_exactly(array, size):
    packer = Packer({"array": np.array([0.1, 0.2, 0.3, 0.4])}, b'"array"')
    (arrays, values), none = packer.unpacked(packer.packed({"array": array}, {"a": 1})), packer.packed({}, {"a": 1})
    assert arrays["array"].dtype == array.dtype
    np.testing.assert_array_equal(arrays["array"], array)
    assert values == {"a": 1}
    assert size <= len(packer.packed({"array": array}, {"a": 1})) - len(none) <= size + 40
