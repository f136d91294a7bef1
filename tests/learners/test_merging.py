"""One model of several parts, against what one machine knows of all examples and sums that are made here."""

import copy
import math
import warnings
from collections import Counter

import numpy as np
import pytest
from estimators import VECTORS
from hypothesis import given
from hypothesis import strategies as st
from parts import CLASSES, assert_same, base_and_parts, examples, flat, known_of, learned, make, state_of
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MailFeatures,
    MultiLabelClassifier,
    Number,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    load,
    merge,
)
from stream_pegasos.learners.merging import drop_unchanged

# --- what holds of every kind -----------------------------------------------------------------------------------------

every_kind = pytest.mark.parametrize("kind", CLASSES)


@every_kind
def test_one_part_is_that_part_and_neither_order_nor_parts_that_learned_nothing_change_anything(kind):
    """One part bit for bit; else singles are once more rounded."""
    base, parts = base_and_parts(kind)
    merged = merge(base, parts)
    assert_same(merge(base, parts[:1]), parts[0])
    for these, expected in (
        ([*parts, copy.deepcopy(base)], merged),
        (parts[::-1], merged),
        ([copy.deepcopy(base), copy.deepcopy(base)], base),
        ([copy.deepcopy(base), parts[0]], parts[0]),
    ):
        assert_same(merge(base, these), expected, 1e-6)


@every_kind
@pytest.mark.parametrize("half_life", [None, 50.0, 1.0])
def test_parts_without_what_is_as_it_was_make_the_same_model(kind, half_life):
    """As they are sent from a cluster."""
    labels, generator = CLASSES[kind], np.random.default_rng(0)

    def learn(model, n, n_words):
        y = [labels[i] for i in generator.integers(len(labels), size=n)]
        rows = zip(y, generator.integers(n_words, size=(n, 4)), strict=True)
        texts = [f"{label} of {' '.join(chr(0x4E00 + j) for j in row)}" for label, row in rows]
        model.learn_many(texts, [{label} for label in y] if kind == "labels" else y)
        return model

    base = learn(TextClassifier(classifier=make(kind, half_life=half_life, margin=None)), 200, 2_000)
    parts = [learn(learn(copy.deepcopy(base), 20, 20), 300, 1) for _ in range(3)]  # much later the one word alone
    thin = copy.deepcopy(parts)
    for part in thin:
        drop_unchanged(base, part)
        assert part.n_features < base.n_features / 2
    assert_same(merge(base, thin), merge(base, parts))


@every_kind
def test_a_merged_model_goes_on_learning_and_is_as_good_as_one_machine(kind):
    labels = CLASSES[kind]
    base = learned(make(kind, half_life=None), 100, labels, 0)
    parts = [learned(base, 100, labels, 1 + k) for k in range(4)]
    merged = merge(base, parts)
    one = base
    for k in range(4):
        one = learned(one, 100, labels, 1 + k)
    assert merged.n_iterations == one.n_iterations == 500
    X, y = examples(500, labels, 99)

    def right(model):
        if kind == "labels":
            return np.mean([model.predict_proba_one(x)[label][True] > 0.5 for x, label in zip(X, y, strict=True)])
        return np.mean(model.predict_many(X) == np.array(y))

    assert right(merged) > right(base) - 0.01
    assert right(merged) > right(one) - 0.01
    learned(merged, 10, labels, 7)


@pytest.mark.parametrize(
    "features, is_of_fields",
    [
        (TextFeatures(), False),
        (TextFeatures(on="text") + Number(on="size"), True),
        (MailFeatures(), False),
        (MailFeatures(vectors={"pills": [1.0, 0.0]}), False),
    ],
    ids=["texts", "fields", "mails", "mails with vectors"],
)
def test_models_of_whatever_features(features, is_of_fields):
    def learn(model, *texts):
        model.learn_many([{"text": each, "size": 1.0} if is_of_fields else each for each in texts], ["ham", "spam"])
        return model

    base = learn(TextClassifier(features), "see you at lunch", "cheap pills")
    one, other = (
        learn(copy.deepcopy(base), "lunch at noon", "watches"),
        learn(copy.deepcopy(base), "an agenda", "a prize"),
    )
    merged = merge(base, [one, other])
    assert merged.n_iterations == 6
    known = {feature for model in (one, other) for feature in model.weights}
    assert set(merged.weights) == known
    with pytest.raises(ValueError, match="part 1 is another kind of model than the base, or has other parameters"):
        merge(base, [TextClassifier(TextFeatures(ngram_range=(1, 3))), base])


@every_kind
def test_only_the_most_used_features_are_kept(kind):
    base, parts = base_and_parts(kind, max_features=44)
    features = [name if kind in ("two", "ordinal") else name[1] for name in flat(merge(base, parts))]
    assert len(set(features)) == 33
    assert {f"of {number}" for number in range(len(CLASSES[kind]))} <= {*features}


# --- two classes ------------------------------------------------------------------------------------------------------


def test_a_feature_that_one_part_saw_keeps_its_whole_step():
    base, parts = base_and_parts()
    model = merge(base, parts)
    merged, of_now = known_of(model), state_of(model)[2]["evidence"]
    for number, part in enumerate(parts):
        own = {name: row for name, row in known_of(part).items() if name.startswith(f"of part {number}")}
        assert len(own) == 9
        for name, (weight, ratio, *evidence) in own.items():
            np.testing.assert_allclose(merged[name][:2], [weight, ratio], rtol=1e-6)
            same = np.array(evidence) * of_now / state_of(part)[2]["evidence"]  # the clock has gone on further
            np.testing.assert_allclose(merged[name][2:], same, rtol=0.02)


def test_counts_add_up_and_weights_move_by_their_shares_of_what_is_known():
    """Each change times φ(a) / φ(A), φ(a) = √(a (a + g)), where a² is Σ gradients² · p (1 − p) n."""
    base, parts = base_and_parts(half_life=None, margin=None)
    model = merge(base, parts)
    counts = {label: Counter() for label in base.classes}
    for n, seed, own in [(60, 0, ""), *((40 + 7 * k, k + 1, f"of part {k} ") for k in range(3))]:
        for x, label in zip(*examples(n, CLASSES["two"], seed, own=own), strict=True):
            counts[label].update(x)
    before, *after = (known_of(each) for each in (base, *parts))
    negative, positive = (counts[label] for label in base.classes)
    nothing = np.zeros(5)
    added = {name: np.array([each.get(name, before.get(name, nothing)) for each in after]) for name in known_of(model)}
    added = {name: rows - before.get(name, nothing) for name, rows in added.items()}
    squares, *of_labels = np.sum([rows.sum(axis=0) for rows in added.values()], axis=0)[2:]
    n_learned = sum(40 + 7 * k for k in range(3))
    g = 500.0 * squares / n_learned * np.sqrt(squares / sum(of_labels))
    for name, (weight, ratio, squares, p, n) in known_of(model).items():
        assert (p, n) == (positive[name], negative[name])
        first = before.get(name, nothing)
        changes, _, gradients, of_positive, of_negative = added[name].T
        assert squares == pytest.approx(first[2] + gradients.sum(), rel=1e-6)
        a = np.sqrt(gradients * (of_positive + 0.1) * (of_negative + 0.1) / (of_positive + of_negative + 0.2))
        moved = (changes * np.sqrt(a * (a + g))).sum() / np.sqrt(a.sum() * (a.sum() + g))
        assert weight == pytest.approx(first[0] + moved, rel=1e-5, abs=1e-6)
        if sum(name in each for each in after) > 1:
            assert ratio == pytest.approx(math.log((p + 0.5) / (n + 0.5)), rel=1e-6, abs=1e-6)


@every_kind
def test_parts_may_be_merged_in_any_tree(kind):
    base, parts = base_and_parts(kind, half_life=None, n_parts=4, n=150)
    tree = merge(base, [merge(base, parts[:2]), merge(base, [merge(base, parts[2:3]), parts[3]])])
    together, base = flat(merge(base, parts)), flat(base)
    moved = [abs(weight - base.get(name, 0.0)) for name, weight in together.items()]
    differences = [abs(weight - together[name]) for name, weight in flat(tree).items()]
    assert sum(differences) < 0.02 * sum(moved)


@pytest.mark.parametrize("half_life", [30.0, 100.0])
def test_evidence_is_that_of_examples_at_their_place_in_time(half_life):
    labels, n_parts, n = CLASSES["two"], 3, 60
    base = learned(AdaptiveClassifier(half_life=half_life, margin=None), 50, labels, 0)
    parts = [learned(base, n, labels, k + 1) for k in range(n_parts)]
    merged = merge(base, parts)
    counts = Counter()
    for i, x in enumerate(examples(50, labels, 0)[0]):
        for name in x:
            counts[name] += 2.0 ** (-(n_parts * n + 50 - i) / half_life)
    for k in range(n_parts):
        for i, x in enumerate(examples(n, labels, k + 1)[0]):
            for name in x:
                counts[name] += 2.0 ** (-(n_parts * n - n_parts * i - k) / half_life)
    known, of_now = known_of(merged), state_of(merged)[2]["evidence"]
    found = {name: (row[3] + row[4]) / of_now for name, row in known.items()}
    # Within a part time goes by more slowly, so that the oldest count a little too much and the newest too little.
    assert sum(found.values()) == pytest.approx(sum(counts.values()), rel=0.03)
    for name in ("of 0", "of 1"):
        assert found[name] == pytest.approx(counts[name], rel=0.15)


@pytest.mark.parametrize("half_life", [1.0, 10.0])
def test_a_part_may_outlive_its_evidence(half_life):
    base, parts = base_and_parts(half_life=half_life, n=1_500, n_parts=2)
    merged = merge(base, parts)
    numbers = state_of(merged)[2]
    assert 1.0 <= numbers["evidence"] < 2.0**16
    n_total = (numbers["n_positives"] + numbers["n_negatives"]) / numbers["evidence"]
    assert 0.1 < n_total < 2.0 * half_life + 2.0
    assert set(merged.weights) == set(parts[0].weights) | set(parts[1].weights)


@pytest.mark.parametrize("kind", ["two", "several"])
def test_what_a_part_learned_longest_ago_stays_whatever_its_half_life(kind):
    """Also where evidence, in single precision, has become 0."""
    first, second, *_ = CLASSES[kind]
    base = learned(make(kind, half_life=1.0), 20, CLASSES[kind], 0)
    base.learn_one({"changed": 1.0}, first)
    parts = [copy.deepcopy(base) for _ in range(2)]
    for part in parts:
        part.learn_many([{"new": 1.0}, {"changed": 1.0}, {"other": 1.0}] * 5, [second, second, first] * 5)
        part.learn_many(*examples(300, [first, second], 5))
    thin = copy.deepcopy(parts)
    for part in thin:
        drop_unchanged(base, part)
    for model in (*parts, merge(base, parts), merge(base, thin)):
        assert model.predict_many([{name: 1.0} for name in ("new", "changed", "other")]).tolist() == [
            second,
            second,
            first,
        ]


@pytest.mark.parametrize("kind", ["two", "several", "ordinal"])
@pytest.mark.parametrize("n_base", [0, 60])
def test_parts_that_learned_one_class_each_are_warned_of(kind, n_base):
    labels = CLASSES[kind]
    base = learned(make(kind), n_base, labels, 0) if n_base else make(kind)
    X, y = examples(200, labels, 1)
    rows = sorted(zip(X, y, strict=True), key=lambda row: str(row[1]))
    by_class = [[row for row in rows if row[1] == label] for label in labels]
    for dealt, expected in ((by_class, True), ([rows[i :: len(labels)] for i in range(len(labels))], False)):
        parts = [copy.deepcopy(base) for _ in labels]
        for part, some in zip(parts, dealt, strict=True):
            part.learn_many(*map(list, zip(*some, strict=True)))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            merge(base, parts)
        assert [str(each.message) for each in told if "learned one class alone" in str(each.message)] or not expected
        assert len(told) == expected and all(each.filename == __file__ for each in told)


def test_parts_may_meet_the_labels_in_another_order():
    """A label that one part alone knows is positive in it, whatever it is to the others."""
    base = AdaptiveClassifier()
    X, y = examples(80, ["ham", "spam"], 3)
    first = copy.deepcopy(base)
    first.learn_many(X[:40], y[:40])
    second = copy.deepcopy(base)
    other_first = sorted(range(40, 80), key=lambda i: (y[i] == first.classes[0], i))
    second.learn_many([X[i] for i in other_first], [y[i] for i in other_first])
    assert second.classes == first.classes[::-1]
    merged = merge(base, [first, second])
    assert merged.classes == first.classes
    counts = Counter(name for x, label in zip(X, y, strict=True) for name in x if label == merged.classes[1])
    assert {name: row[3] for name, row in known_of(merged).items() if row[3]} == pytest.approx(dict(counts), rel=0.01)
    assert np.mean(merged.predict_many(X) == np.array(y)) > 0.85


def test_a_third_class_that_one_part_met():
    base, parts = base_and_parts(n_parts=2)
    X, y = examples(60, ["ham", "spam", "news"], 5)
    parts[1].learn_many(X, y)
    merged = merge(base, parts)
    assert set(merged.classes) == {"ham", "spam", "news"}
    assert merged.predict_one({"of 2": 1.0}) == "news"
    assert merged.predict_proba_one({"of 0": 1.0})["ham"] > 0.5
    arrays, _, numbers = state_of(merged)
    assert arrays["class_counts"].sum() == pytest.approx(numbers["n_examples"])


def test_new_classes_of_parts_follow_one_another():
    base = learned(AdaptiveClassifier(), 60, ["a", "b"], 0)
    merged = merge(base, [learned(base, 60, ["a", "b", "d"], 1), learned(base, 60, ["a", "b", "c"], 2)])
    assert merged.classes == (*base.classes, "d", "c")
    X, y = examples(60, ["a", "b", "c"], 9)
    assert np.mean(merged.predict_many(X) == np.array(y)) > 0.85


def test_a_label_that_one_part_was_told_never_holds_holds_once_another_has_it():
    base = MultiLabelClassifier()
    base.learn_one({"a": 1.0}, {"x": True, "y": False})
    parts = [copy.deepcopy(base), copy.deepcopy(base)]
    for part, last in zip(parts, ({"x": False, "y": True}, {"x": False, "z": False}), strict=True):
        part.learn_many([{"a": 1.0}, {"b": 1.0}] * 20, [{"x": True}, last] * 20)
    assert merge(base, parts).predict_one({"b": 1.0}) == {"x": False, "y": True, "z": False}


@pytest.mark.parametrize("kind", ["ordinal", "labels"])
def test_a_class_between_others_that_one_part_met(kind):
    labels = CLASSES[kind]
    base = learned(make(kind), 60, [labels[0], labels[2]], 0)
    parts = [learned(base, 60, [labels[0], labels[2]], 1), learned(base, 60, labels, 2)]
    merged = merge(base, parts)
    assert set(merged.classes) == set(labels)
    if kind == "ordinal":
        assert sum(merged.predict_proba_one({"of 1": 1.0}).values()) == pytest.approx(1.0)
    learned(merged, 10, labels, 3)


@pytest.mark.parametrize("name", ["balanced", "sqrt"])
def test_counts_of_labels_balance_classes(name):
    base, parts = base_and_parts(class_weight=name)
    counts = Counter(examples(60, CLASSES["two"], 0)[1])
    for k in range(3):
        counts.update(examples(40 + 7 * k, CLASSES["two"], k + 1, own="p")[1])
    found = dict(merge(base, parts).to_state()[2]["label_counts"])
    assert sorted(found.values()) == sorted(counts.values())


@pytest.mark.parametrize(
    "kind, options",
    [
        ("two", {"pos_label": "spam", "max_false_positive_rate": 0.1}),
        ("several", {"max_false_positive_rate": {"b": 0.1}}),
        ("labels", {"max_false_positive_rate": {"y": 0.1}}),
    ],
)
def test_limits_of_false_positives_add_up(kind, options):
    def counts_of(model):
        values = model.to_state()[2]
        limit = values["decisions"][0][1]
        assert limit["n"] == sum(limit["counts"])
        return Counter(dict(zip(limit["places"], limit["counts"], strict=True)))

    base, parts = base_and_parts(kind, n=200, **options)
    merged, before, *after = map(counts_of, (merge(base, parts), base, *parts))
    expected = {
        place: before[place] + sum(each[place] - before[place] for each in after)
        for place in {*before, *(place for each in after for place in each)}
    }
    assert merged == expected and sum(expected.values()) > before.total()


def test_newest_mistakes_and_the_slope_of_probabilities():
    base, parts = base_and_parts()
    before, *after = (model.to_state() for model in (base, *parts))
    merged = merge(base, parts).to_state()
    for name in ("false_positives", "false_negatives"):
        expected = before[0][name] + sum(each[0][name] - before[0][name] for each in after)
        np.testing.assert_allclose(merged[0][name], expected, atol=1e-9)
    slopes = [each[2]["learner"]["slope"] for each in (merged, *after)]
    assert min(slopes[1:]) <= slopes[0] <= max(slopes[1:])


def test_words_that_parts_kept_are_those_of_the_merged_model():
    base = TextClassifier()
    for keeps in (False, True):
        parts = [copy.deepcopy(base) for _ in range(2)]
        for part, texts in zip(parts, (["cheap pills", "at noon"], ["a prize", "agenda"]), strict=True):
            part.keep_names()
            part.learn_many(texts * 2, ["spam", "ham"] * 2)
        merged = merge(base, parts)
        words = {word for part in parts for word, _ in part.names.weights(part)}
        assert {word for word, _ in merged.names.weights(merged)} == words and {"pills", "prize"} <= words
        if not keeps:
            base.keep_names()


# --- what is refused, and what is hard --------------------------------------------------------------------------------


def refused():
    two = CLASSES["two"]
    base = learned(AdaptiveClassifier(), 20, two, 0)
    part = learned(base, 20, two, 1)
    yield base, [], ValueError, "at least one model to merge"
    yield base, [part, learned(AdaptiveClassifier(half_life=7), 30, two, 0)], ValueError, "part 2 .* other parameters"
    yield part, [part, base], ValueError, "part 2 did not continue from the base"
    waiting = learned(PegasosClassifier(batch_size=8), 20, two, 0)
    yield waiting, [learned(waiting, 5, two, 1)] * 2, ValueError, "examples wait in the mini-batch of the base"
    yield base, [learned(PegasosClassifier(), 30, two, 0)], ValueError, "part 1 is another kind"
    forgetful = learned(base, 20, two, 1)
    forgetful.forget_class(two[0])
    yield base, [part, forgetful], ValueError, f"part 2 has forgotten '{two[0]}'"
    for model, said in [
        (KernelPegasosClassifier(), "KernelPegasosClassifier cannot be merged"),
        (AdaptiveClassifier(drift_detector=drift.binary.DDM()), "drift_detector cannot be merged"),
    ]:
        yield model, [copy.deepcopy(model)], TypeError, said


@pytest.mark.parametrize("base, parts, error, said", [pytest.param(*each, id=each[-1]) for each in refused()])
def test_models_that_cannot_be_merged_are_refused(base, parts, error, said):
    with pytest.raises(error, match=said):
        merge(base, parts)


@given(
    kind=st.sampled_from([*CLASSES]),
    sizes=st.lists(st.integers(0, 12), min_size=2, max_size=4),
    n_base=st.integers(0, 15),
    n_labels=st.integers(1, 4),
    seed=st.integers(0, 2**16),
    weight=st.sampled_from([0.0, 1e-15, 1.0, 1e15]),
    value=st.sampled_from([1.0, -1.0, 1e-30, 1e30]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "half_life": st.sampled_from([None, 1.0, 3.0]),
            "fit_intercept": st.just(False),
            "naive_bayes": st.just(False),
            "loss": st.just("hinge"),
            "class_weight": st.sampled_from(["balanced", "sqrt"]),
            "max_features": st.just(7),
            "learning_rate": st.sampled_from([1e-30, 1e30]),
        },
    ),
)
def test_whatever_parts_have_learned_the_merged_model_is_one(
    tmp_path_factory, kind, sizes, n_base, n_labels, seed, weight, value, options
):
    """It passes the checks of a file, and goes on from there."""
    labels = CLASSES[kind][:n_labels]
    if kind == "labels":
        options.pop("class_weight", None)

    def learn(model, n, seed):
        X, y = examples(n, labels, seed, n_features=8)
        X = [dict.fromkeys(x, value) for x in X]
        model.learn_many(X, [{label} for label in y] if kind == "labels" else y, weight)
        return model

    base = learn(make(kind, **options), n_base, seed)
    merged = merge(base, [learn(copy.deepcopy(base), n, seed + 1 + i) for i, n in enumerate(sizes)])
    path = tmp_path_factory.getbasetemp() / "merged.safetensors"
    merged.save(path)
    again = load(path)
    assert again.n_iterations == merged.n_iterations == (n_base + sum(sizes) if weight else 0)
    assert np.isfinite([*flat(merged).values()]).all()
    learn(again, 5, seed)


def test_a_decision_of_a_base_that_met_nothing_is_for_the_label_of_its_parts():
    for options in ({"threshold": 0.1}, {"max_false_positive_rate": 0.1}):
        base = AdaptiveClassifier(**options)
        parts = [copy.deepcopy(base) for _ in range(2)]
        parts[0].learn_many([{"a": 1.0}] * 2, [0, 1])
        parts[1].learn_many([{"a": 1.0}] * 3, [0, 1, 2])
        merged = merge(base, parts)
        assert merged.classes == (0, 1, 2)
        assert merged.trainer.labels.positive == 1 and merged.trainer.policy.limited(merged.trainer.labels).keys() <= {
            1
        }


@pytest.mark.parametrize("kind", [AdaptiveClassifier, PegasosClassifier])
@pytest.mark.parametrize("forgotten", [[True], [False, True]])
def test_the_opposite_of_a_truth_value_that_a_part_has_forgotten_stays_forgotten(kind, forgotten):
    base = kind()
    part, idle = copy.deepcopy(base), copy.deepcopy(base)
    part.learn_one({"a": 1.0}, False)
    for label in forgotten:
        part.forget_class(label)
    merged = merge(base, [idle, part])
    assert merged.classes == part.classes
    merged.learn_many([{"a": 1.0}] * 2, [False, "new"])
    assert {False, "new"} <= {*merged.classes}


@pytest.mark.parametrize("labels", [["ham", "spam"], ["ham", "spam", "news"]])
def test_a_part_that_learned_nothing_changes_nothing(labels):
    """Beside another one, dense weights too, which rest on no evidence of single features."""
    base = TextClassifier(TextFeatures(vectors=VECTORS))
    part, idle = copy.deepcopy(base), copy.deepcopy(base)
    X = ["cheap pills", "see you at lunch", "x1"] * 4
    part.learn_many(X, (labels * 6)[:12])
    alone, beside = part.predictions(X), merge(base, [idle, part]).predictions(X)
    assert alone.classes == beside.classes
    assert alone.probabilities == pytest.approx(beside.probabilities, abs=1e-6)
