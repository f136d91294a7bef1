"""The decision of a model that has learned, changed where it is used."""

import copy
import random
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noisy import columns, noisy_stream, prequential

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    load,
)
from stream_pegasos.learners.decisions import Decision
from stream_pegasos.learners.false_positives import FalsePositiveLimit, Tail


def same(a, b):
    """Whether two models are the same to the last bit."""
    (arrays, *rest), (others, *other_rest) = a.to_state(), b.to_state()
    return {name: each.tobytes() for name, each in arrays.items()} == {
        name: each.tobytes() for name, each in others.items()
    } and rest == other_rest


def cut_of(model, rate):
    limit = FalsePositiveLimit(rate)
    limit.set_state(model.to_state()[2]["decisions"][0][1])
    return limit.cut


def three_classes(n=600, seed=4):
    rng = random.Random(seed)
    for _ in range(n):
        label = rng.choice(["card", "cash", "fee"])
        yield {rng.choice([label, "my", "lost"]): 1.0, f"word{rng.randrange(9)}": 1.0}, label


def labels_together(n=600, seed=5):
    rng = random.Random(seed)
    for _ in range(n):
        labels = [label for label in ("oil", "gas", "tea") if rng.random() < 0.4]
        told = [label for label in ("oil", "gas", "tea") if (label in labels) != (rng.random() < 0.15)]
        yield dict.fromkeys([*told, f"word{rng.randrange(9)}"], 1.0), labels


def learned(model, stream):
    model.learn_many(*columns(stream))
    return model


@pytest.mark.parametrize("threshold", [0.01, 0.3, 0.5, 0.9])
def test_a_threshold_set_after_learning_is_one_that_was_there(threshold, tmp_path):
    stream = list(noisy_stream(300))
    expected = learned(AdaptiveClassifier(pos_label="spam", threshold=threshold), stream)
    for made_with in (0.5, 0.7):
        model = learned(AdaptiveClassifier(pos_label="spam", threshold=made_with), stream)
        model.set_decision(threshold=threshold)
        assert same(model, expected)
    model = learned(AdaptiveClassifier(), stream)  # of which spam, met second, is the positive one anyway
    model.set_decision(threshold, pos_label="spam")
    assert same(model, expected)
    model.save(tmp_path / "m")
    X, y = columns(noisy_stream(100, seed=1))
    assert load(tmp_path / "m").predict_many(X).tolist() == expected.predict_many(X).tolist()
    assert prequential(model, X, y) == prequential(expected, X, y)


def test_a_threshold_is_for_its_label_and_only_pos_label_says_which_is_the_positive_one():
    X, y = columns(noisy_stream(300))
    model = learned(AdaptiveClassifier(), zip(X, y, strict=True))
    before, scores = copy.deepcopy(model), model.decision_function_many(X)
    expected = ["ham" if before.predict_proba_one(x)["ham"] > 0.9 else "spam" for x in X]
    for change, pair, sign in [
        ({"threshold": {"ham": 0.9}}, ("ham", "spam"), 1.0),
        ({"threshold": 0.9, "pos_label": "ham"}, ("spam", "ham"), -1.0),
    ]:
        model.set_decision(**change)
        assert model.pair == pair and model.threshold == {"ham": 0.9}
        assert model.decision_function_many(X).tolist() == (sign * scores).tolist()
        assert [model.predict_one(x) for x in X] == model.predict_many(X).tolist() == expected
    model.set_decision({"ham": 0.5}, pos_label="spam")
    assert model.predict_many(X).tolist() == before.predict_many(X).tolist()
    assert model.weights == before.weights


def rule(p, thresholds):
    """The likeliest of those that are above their own threshold, or else of all that have none."""
    own = [label for label in thresholds if p[label] > thresholds[label]]
    return max(own or [label for label in p if label not in thresholds], key=p.get, default=None)


@pytest.mark.parametrize("by_label", [False, True])
def test_thresholds_of_several_classes(by_label, tmp_path):
    X, y = columns(three_classes())
    model = learned(AdaptiveClassifier(threshold={"card": 0.4} if by_label else 0.5), zip(X, y, strict=True))
    weights = model.weights
    for change, thresholds in [
        ({"threshold": 0.9, "pos_label": "fee"}, {"fee": 0.9}),
        ({"threshold": 0.2}, {"fee": 0.2}),
        ({"threshold": {"cash": 0.35, "fee": 0.7}}, {"cash": 0.35, "fee": 0.7}),
    ]:
        if by_label:
            thresholds = {"card": 0.4, **thresholds}
            change.setdefault("pos_label", "fee")
        model.set_decision(**change)
        model.save(tmp_path / "m")
        expected = [rule(p, thresholds) for p in map(model.predict_proba_one, X)]
        for one in (model, load(tmp_path / "m")):
            assert [one.predict_one(x) for x in X] == one.predict_many(X).tolist() == expected
    assert model.weights == weights


def test_at_one_half_the_likeliest_is_predicted_again():
    stream = list(three_classes())
    model, other = (learned(AdaptiveClassifier(), stream) for _ in range(2))
    model.set_decision(0.9, pos_label="fee")
    model.set_decision(0.5)
    assert model.predict_many(columns(stream)[0]).tolist() == other.predict_many(columns(stream)[0]).tolist()
    assert model.threshold == 0.5


def test_thresholds_of_labels_that_hold_together(tmp_path):
    X, y = columns(labels_together())
    model = learned(MultiLabelClassifier(), zip(X, y, strict=True))
    for change, thresholds in [
        ({"threshold": 0.7}, dict.fromkeys(["oil", "gas", "tea"], 0.7)),
        ({"threshold": 0.3, "pos_label": "tea"}, {"oil": 0.7, "gas": 0.7, "tea": 0.3}),
        ({"threshold": {"oil": 0.1}}, {"oil": 0.1, "gas": 0.7, "tea": 0.3}),
        ({"threshold": 0.6}, dict.fromkeys(["oil", "gas", "tea"], 0.6)),
    ]:
        model.set_decision(**change)
        model.save(tmp_path / "m")
        for one in (model, load(tmp_path / "m")):
            p = [one.predict_proba_one(x) for x in X]
            assert one.predict_many(X).tolist() == [
                tuple(label for label in one.classes if each[label][True] > thresholds[label]) for each in p
            ]


numbers = st.one_of(st.floats(-3e4, 3e4), st.sampled_from([0.0, 1.0, -1.0, 0.5, 1.125]))


@given(margins=st.lists(numbers, min_size=1, max_size=300), n=st.integers(0, 300))
def test_the_cut_is_the_lowest_above_which_few_lie(margins, n):
    tail = Tail()
    for margin in margins:
        tail.learn(margin)
    number, above = tail.lowest(float(n))
    cut = tail.edge(number)
    assert sum(margin > cut for margin in margins) <= above <= n
    if n < len(margins):
        # A bin lower it would be more: it is an eighth of an eighth of its power of 2 wide, or half of that.
        assert sum(margin >= cut - max(abs(cut) / 64.0, 2.0**-16) for margin in margins) > n
    again = Tail()
    again.set_state(tail.get_state())
    assert again.lowest(float(n)) == (number, above)


def test_old_margins_count_less():
    limit = FalsePositiveLimit(0.01)
    for margin in [5.0] * 2_000 + [1.0] * 90_000:
        limit.learn(margin)
    assert limit.negatives.n < 1 << 15 and limit.cut < 2.0
    assert limit.cut == FalsePositiveLimit(0.01, limit.negatives).cut


@pytest.mark.parametrize("made_with", [0.5, 0.01])
def test_another_limit_is_kept_to_on_messages_like_those_learned(made_with, tmp_path):
    X, y = columns(noisy_stream(6_000))
    model = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=made_with, threshold=0.01)
    said = model.predict_learn_many(X, y)
    margins = said.scores[np.array(y) == "ham"]
    new, truths = columns(noisy_stream(6_000, seed=1))
    ham = np.array(truths) == "ham"
    for rate in (0.2, 0.05, 0.01):
        model.set_decision(max_false_positive_rate=rate)
        cut = cut_of(model, rate)
        assert 0.5 * rate < (margins > cut).mean() <= rate
        model.save(tmp_path / "m")
        assert load(tmp_path / "m").predict_many(new).tolist() == model.predict_many(new).tolist()
        assert (model.predict_many(new)[ham] == "spam").mean() < 1.5 * rate
    model.set_decision(max_false_positive_rate=1)
    model.set_decision(0.5)
    assert (
        model.predict_many(new).tolist()
        == learned(AdaptiveClassifier(), zip(X, y, strict=True)).predict_many(new).tolist()
    )


@pytest.mark.parametrize("positive", ["spam", "ham"])
def test_a_limit_can_be_set_where_there_was_none(positive, tmp_path):
    """Of two classes, of either label: the cut is the lowest place that few of the margins of before are above."""
    X, y = columns(noisy_stream(6_000))
    model = AdaptiveClassifier()
    said = model.predict_learn_many(X, y)
    margins = (said.scores if positive == "spam" else -said.scores)[np.array(y) != positive]
    new, truths = columns(noisy_stream(6_000, seed=1))
    others = np.array(truths) != positive
    for rate in (0.02, 0.005):
        one = copy.deepcopy(model)
        one.set_decision(max_false_positive_rate=rate, pos_label=positive)
        cut = cut_of(one, rate)
        assert (margins > cut).mean() <= rate < (margins > 0.75 * cut).mean() / 0.9 + 1.0 / len(margins)
        one.save(tmp_path / "m")
        flagged = load(tmp_path / "m").predict_many(new) == positive
        assert flagged.tolist() == [one.predict_one(x) == positive for x in new]
        assert flagged.tolist() == (one.decision_function_many(new) > cut).tolist()
        assert flagged[others].mean() < 1.6 * rate
        again = np.array(prequential(one, new, truths))[others] == positive  # it goes on to learn
        assert again.mean() <= 1.1 * rate


def test_limits_of_a_class_and_of_labels_that_hold_together():
    X, y = columns(three_classes(4_000))
    model = learned(AdaptiveClassifier(max_false_positive_rate={"fee": 0.5}), zip(X, y, strict=True))
    model.set_decision(max_false_positive_rate=0.02)
    X, y = columns(three_classes(4_000, seed=6))
    said = model.predict_learn_many(X, y).labels.tolist()
    wrong = [label == "fee" for label, truth in zip(said, y, strict=True) if truth != "fee"]
    assert np.mean(wrong) < 0.03
    X, y = columns(labels_together(4_000))
    model = learned(MultiLabelClassifier(AdaptiveClassifier(max_false_positive_rate=0.5)), zip(X, y, strict=True))
    model.set_decision(max_false_positive_rate={"tea": 0.1})
    X, y = columns(labels_together(4_000, seed=6))
    said = model.predict_learn_many(X, y).labels.tolist()
    wrong = ["tea" in labels for labels, truth in zip(said, y, strict=True) if "tea" not in truth]
    assert np.mean(wrong) < 0.15


STREAM = list(noisy_stream(50))


@pytest.mark.parametrize(
    "model, change, message",
    [
        (AdaptiveClassifier(), {"threshold": 0.9}, "pos_label"),
        (AdaptiveClassifier(), {"threshold": 1.5, "pos_label": "spam"}, "threshold"),
        (AdaptiveClassifier(), {"threshold": 0.9, "pos_label": "eggs"}, "unknown label 'eggs'; known labels: 'ham'"),
        (AdaptiveClassifier(), {"max_false_positive_rate": 0.001, "pos_label": "spam"}, "needs 50"),
        (
            AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.5),
            {"max_false_positive_rate": 0.001},
            "needs 50",
        ),
        (AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.5), {"pos_label": "ham"}, "is for 'spam'"),
        (AdaptiveClassifier(threshold={"spam": 0.6}), {"threshold": {"eggs": 0.5}}, "unknown label"),
        (PegasosClassifier(), {"threshold": 0.9}, "PegasosClassifier has no threshold"),
        (TextClassifier(classifier=PegasosClassifier()), {"threshold": 0.9}, "PegasosClassifier has no threshold"),
        (OrdinalClassifier(), {"threshold": 0.9}, "OrdinalClassifier has no threshold"),
    ],
)
def test_what_cannot_be_decided_changes_nothing(model, change, message):
    model = model.clone()
    if isinstance(model, TextClassifier):
        model.learn_many([" ".join(x) for x, _ in STREAM], [label for _, label in STREAM])
    else:
        labels = {"ham": 1, "spam": 2} if isinstance(model, OrdinalClassifier) else {"ham": "ham", "spam": "spam"}
        model.learn_many([x for x, _ in STREAM], [labels[label] for _, label in STREAM])
    before = copy.deepcopy(model)
    with pytest.raises((TypeError, ValueError), match=message):
        model.set_decision(**change)
    assert same(model, before)


def test_no_label_at_all_changes_nothing():
    for model in (AdaptiveClassifier(pos_label="spam"), MultiLabelClassifier()):
        labels_of = (lambda label: [label]) if isinstance(model, MultiLabelClassifier) else str
        model.learn_many([x for x, _ in STREAM], [labels_of(label) for _, label in STREAM])
        before = copy.deepcopy(model)
        model.set_decision({}, {})
        model.set_decision(max_false_positive_rate={})
        assert same(model, before)


def test_several_classes_need_a_name():
    model = learned(AdaptiveClassifier(), three_classes(60))
    with pytest.raises(ValueError, match="which class"):
        model.set_decision(0.9)
    with pytest.raises(ValueError, match="max_false_positive_rate, of any"):
        model.set_decision(max_false_positive_rate=0.1, pos_label="card")


def test_a_model_that_has_learned_nothing():
    model = AdaptiveClassifier()
    model.set_decision(0.9, 0.2, "spam")
    stream = list(noisy_stream(300))
    made = AdaptiveClassifier(threshold=0.9, max_false_positive_rate=0.2, pos_label="spam")
    assert same(learned(model, stream), learned(made, stream))
    model = MultiLabelClassifier(AdaptiveClassifier(threshold={"tea": 0.3}))
    model.set_decision(max_false_positive_rate={"tea": 0.2})
    made = MultiLabelClassifier(AdaptiveClassifier(threshold={"tea": 0.3}, max_false_positive_rate={"tea": 0.2}))
    assert same(learned(model, labels_together()), learned(made, labels_together()))


@pytest.mark.parametrize("wrapped", [lambda model: model, lambda model: TextClassifier(classifier=model)])
def test_a_clone_decides_of_labels_to_come_as_the_model_does(wrapped):
    model = wrapped(MultiLabelClassifier())
    model.learn_one("a" if isinstance(model, TextClassifier) else {"a": 1}, {"x"})
    model.set_decision(0.9, {})
    model.set_decision(0.3, pos_label="x")
    for made in (model.clone(), model.clone().clone(), model.clone(include_attributes=True)):
        core = made.parts["classifier"]
        assert core.classifier.threshold == {"x": 0.3} and core.trainer.policy.default.parameters == (0.9, None)
    other = {"classifier": {"threshold": 0.7}}
    made = model.clone({"classifier": other} if isinstance(model, TextClassifier) else other)
    assert made.trainer.policy.default.parameters == (0.7, None)


def test_a_limit_for_a_label_that_never_comes_is_told_when_others_are_two():
    model = AdaptiveClassifier(pos_label="junk", max_false_positive_rate=0.1)
    model.learn_many([{"a": 1.0}] * 5, ["ham"] * 5)
    with pytest.warns(UserWarning, match="is for 'junk', a label that has not come: it holds neither for 'ham' nor"):
        model.learn_one({"b": 1.0}, "spam")
    assert set(model.classes) == {"ham", "spam"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_many([{"a": 1.0}, {"b": 1.0}, {"c": 1.0}] * 9, ["ham", "spam", "junk"] * 9)
        copied = AdaptiveClassifier.from_state(*model.to_state())
    assert copied.classes == model.classes


def test_a_class_that_is_forgotten_moves_no_decision():
    """Not even where the labels that are left would say otherwise which is the positive one."""
    model = AdaptiveClassifier(threshold=1.0 - 1e-12)
    model.learn_many([{"a": 1.0}, {"b": 1.0}, {"c": 1.0}] * 20, [1, 0, 7] * 20)
    before = [model.predict_one(x) for x in ({"a": 1.0}, {"c": 1.0})]
    assert model.predict_proba_one({"a": 1.0})[1] > 0.5 and before[0] != 1
    model.forget_class(0)
    assert model.predict_one({"a": 1.0}) == 7 and model.predict_one({"c": 1.0}) == 7
    model.set_decision(threshold=0.5)
    assert model.predict_one({"a": 1.0}) == 1


def test_a_threshold_alone_or_the_same_rate_keeps_the_limit():
    decision = Decision(0.5, 0.01)
    assert decision.changed(0.7, None).limit is decision.changed(None, 0.01).limit is decision.limit is not None
    assert decision.changed(0.7, None).threshold == 0.7 and decision.changed(None, 1.0).limit is None


@pytest.mark.parametrize("thresholds", [{"a": 0.5, "b": 0.5}, {"a": 0.2, "b": 0.9}, {"a": 0.9, "b": 0.9}])
def test_two_classes_that_both_have_thresholds_are_decided_alike_one_by_one_and_at_once(thresholds):
    model = AdaptiveClassifier(threshold=thresholds)
    X = [{"x": 1.0, "z": i % 3} if i % 2 else {"y": 1.0, "z": i % 3} for i in range(40)]
    model.learn_many(X, ["a" if i % 2 else "b" for i in range(40)])
    found = model.predict_many(X).tolist()
    assert found == [model.predict_one(x) for x in X] and {*found} == {"a", "b"}


@pytest.mark.parametrize(
    "made_with", [{"threshold": 0.9, "max_false_positive_rate": 0.5}, {"threshold": {"A": 0.9, "Z": 0.8}}]
)
def test_a_change_for_one_label_leaves_those_of_labels_to_come(made_with, tmp_path):
    before, changed = (MultiLabelClassifier(AdaptiveClassifier(**made_with)) for _ in range(2))
    for model in (before, changed):
        model.learn_many([{"a": 1.0}, {"b": 1.0}] * 20, [{"A"}, {"B"}] * 20)
    changed.set_decision(threshold=0.6, pos_label="B")
    changed.save(tmp_path / "m.st")
    for model in (before, changed, again := load(tmp_path / "m.st")):
        model.learn_many([{"c": 1.0}] * 5, [{"C"}, {"Z"}] * 2 + [{"C"}])
    of_all = {label: decision.parameters for label, decision in before.trainer.policy.decisions.items()}
    for model in (changed, again):
        found = {label: decision.parameters for label, decision in model.trainer.policy.decisions.items()}
        assert found == {**of_all, "B": (0.6, of_all["B"][1])}


def test_a_positive_class_that_was_forgotten_has_a_limit_that_knows_nothing():
    model = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.1)
    model.learn_many([{"a": 1.0}, {"b": 1.0}, {"c": 1.0}] * 30, ["ham", "spam", "work"] * 30)
    assert model.trainer.policy.decisions.of_label[None].limit.knows_enough
    model.forget_class("spam")
    assert model.trainer.policy.decisions.of_label[None].limit.negatives.n == 0.0


@pytest.mark.parametrize("several", [False, True])
def test_a_class_that_was_forgotten_has_a_limit_that_knows_nothing_when_it_comes_again(several, tmp_path):
    model, labels_of = AdaptiveClassifier(max_false_positive_rate={"spam": 0.1}), str
    if several:
        model, labels_of = MultiLabelClassifier(model), lambda label: [label]
    model.learn_many([{"a": 1.0}, {"b": 1.0}, {"c": 1.0}] * 30, [*map(labels_of, ["ham", "spam", "work"] * 30)])
    model.forget_class("spam")
    model.learn_one({"b": 1.0}, labels_of("spam"))
    limit = (model.trainer.policy.decisions if several else model.trainer.policy.decisions.of_label)["spam"].limit
    assert limit.negatives.n == 0.0 and not limit.knows_enough
    model.forget_class("spam")
    model.save(tmp_path / "m.st")
    assert load(tmp_path / "m.st").predict_one({"c": 1.0}) == model.predict_one({"c": 1.0})


@given(
    margins=st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=60),
    seed=st.integers(0, 99),
    weight=st.sampled_from([1.0, 0.25]),
)
def test_margins_that_are_taken_back_leave_the_cut_as_it_was(margins, seed, weight):
    """In any order, and where a margin is known about so well as its bin is wide."""
    limit, expected = FalsePositiveLimit(0.1), FalsePositiveLimit(0.1)
    for margin in (0.5, -1.0, 2.0, -3.0):
        limit.learn(margin)
        expected.learn(margin)
    for margin in margins:
        limit.learn(margin, weight)
    for margin in random.Random(seed).sample(margins, len(margins)):
        limit.forget(margin, weight)
    assert (limit.negatives.counts, limit.negatives.n) == (expected.negatives.counts, expected.negatives.n)
    assert limit.cut == expected.cut


def test_a_label_that_a_change_named_and_that_was_forgotten_is_the_same_in_a_file():
    model = MultiLabelClassifier(AdaptiveClassifier(threshold={"red": 0.7}))
    model.learn_many([{"a": 1.0}, {"b": 1.0}], [["red"], ["red", "blue"]])
    model.set_decision(pos_label="blue")
    model.forget_class("blue")
    loaded = type(model).from_state(*copy.deepcopy(model.to_state()))
    for each in (model, loaded):
        each.set_decision(pos_label="red", threshold=0.6)
    assert model.classifier.threshold == loaded.classifier.threshold == {"red": 0.6, "blue": 0.5}
