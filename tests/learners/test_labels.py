import enum
import itertools
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos import AdaptiveClassifier, KernelPegasosClassifier, PegasosClassifier
from stream_pegasos.learners.label_policy import (
    LabelPolicy,
    all_ways_of_writing,
    check_label,
    label_list,
    label_of,
    written_like,
)
from stream_pegasos.learners.labels import (
    Labels,
    label_array,
    targets_many,
)


class Color(str):  # as a member of an Enum that is a str, too
    def __str__(self):
        return f"Color.{super().__str__()}"


class Digit(enum.IntEnum):
    TWO = 2


def after(*met, pos_label=None):
    """Labels that have met these, one call each."""
    labels = Labels(pos_label=pos_label)
    for y in met:
        labels = labels.add_labels([y])
    return labels


# What was met in turn, then (negative, positive) as DESIGN has it.
CONVENTIONS = [(met, pair) for pair in ((False, True), (0, 1), (-1, 1)) for met in (pair, pair[::-1])]
IN_ORDER = [("ham", "spam"), ("spam", "ham"), (2, 1), (1, 2), (0, -1), (-1, 0), (0, 2), ("1", "0"), ("0", "1")]
IN_ORDER += [("", "x"), (1, "one"), ("one", 1), (10**30, -(10**30)), ("a", True), ("a", False), (2, True), (2, False)]
CONVENTIONS += [(met, met) for met in IN_ORDER]


@pytest.mark.parametrize("met, expected", CONVENTIONS, ids=str)
def test_which_label_is_positive(met, expected):
    for repetitions in (1, 3):
        labels = after(*itertools.chain.from_iterable([y] * repetitions for y in met))
        assert labels.known == labels.classes == met and labels.pair == expected
        assert [type(label) for label in labels.pair] == [type(label) for label in expected]
        assert labels.targets == {met[0]: 0.0, met[1]: 1.0}
        assert labels.positive == met.index(expected[1])
    at_once = Labels().add_labels(list(met))
    assert at_once == labels
    assert after(*met, *reversed(met)) == labels


@pytest.mark.parametrize("met, expected", CONVENTIONS, ids=str)
def test_another_label_does_not_change_which_is_positive(met, expected):
    """Not even where the label that comes, or the one that goes, would have decided otherwise."""
    for another in ("another", 5, True, -1, "true"):
        if another in met:
            continue
        labels = after(*met, another)
        assert labels.pair == () and labels.known[labels.positive] == expected[1]
        assert labels.without(expected[0]).known[labels.without(expected[0]).positive] == expected[1]


@pytest.mark.parametrize("met, expected", CONVENTIONS, ids=str)
@pytest.mark.parametrize("which", [0, 1])
def test_pos_label_decides(met, expected, which):
    positive, negative = expected[which], expected[1 - which]
    if isinstance(positive, bool) and not isinstance(negative, bool):
        pytest.skip("a bool for pos_label says what the other label is")
    labels = after(*met, pos_label=positive)
    assert labels.known == met and labels.pair == (negative, positive)


@pytest.mark.parametrize(
    "met, pair", [((), (None, None)), ((1,), (None, 1)), ((2,), (2, None)), (("true",), (None, "true"))]
)
def test_while_labels_are_to_come(met, pair):
    assert after(*met).pair == pair
    assert after(*met, pos_label="spam").pair == ((*met, None)[0], None)
    assert after(*met, "ham", pos_label="spam").pair == (() if met else ("ham", None))


@pytest.mark.parametrize(
    "given, plain",
    [
        (np.bool_(True), True),
        (np.int64(7), 7),
        (np.uint8(0), 0),
        (np.str_("spam"), "spam"),
        (Color("red"), "red"),
        (Digit.TWO, 2),
        (1.0, 1),
        (-0.0, 0),
        (np.float32(3.0), 3),
        (1e300, int(1e300)),
        (True, True),
        ("", ""),
    ],
)
def test_numpy_labels_and_whole_floats_are_plain_labels(given, plain):
    assert check_label(given) == plain
    assert type(check_label(given)) is type(plain)
    labels = after(given)
    assert plain in labels.known
    assert {type(label) for label in labels.known if label is not None} == {type(plain)}
    assert labels.add_labels([plain, given]) == labels


NO_LABELS = [
    None,
    math.nan,
    np.float64("nan"),
    math.inf,
    0.5,
    b"spam",
    (1,),
    1j,
    object(),
    [1],
    {},
    np.array([1]),
    np.datetime64("2020-01-01"),
    Decimal(1),  # these equal the label 1, which the model may know
    Fraction(1),
    1 + 0j,
    np.complex64(1),
    np.timedelta64(1, "s"),
    np.datetime64(1, "ns"),
]


@pytest.mark.parametrize("bad", NO_LABELS, ids=lambda bad: type(bad).__name__)
def test_what_is_no_label(bad):
    with pytest.raises((TypeError, ValueError), match="label"):
        check_label(bad)
    for start in (
        Labels(),
        Labels(pos_label="spam"),
        after("a"),
        after(1, 0),
        after(True),
        Labels(by_label=True),
    ):
        before = pickle.dumps(start)
        for ys in ([bad], [1, bad], [bad, 1]):
            with pytest.raises((TypeError, ValueError), match="label"):
                start.add_labels(ys)
            with pytest.raises((TypeError, ValueError), match="label"):
                targets_many(start, ys)
        assert pickle.dumps(start) == before
    model = AdaptiveClassifier()
    for y in (0, 1):
        model.learn_one({"a": 1.0}, y)
        with pytest.raises((TypeError, ValueError), match="label"):
            model.learn_one({"a": 1.0}, bad)


@pytest.mark.parametrize(
    "pos_label, met, third",
    [
        (None, (0, 1), "1"),
        (None, (False, True), "True"),
        (None, (1, 0), -1),
        ("spam", ("ham",), "eggs"),
        ("spam", ("ham", "spam"), "eggs"),
    ],
)
def test_a_third_label_is_an_error_where_there_are_two_classes(pos_label, met, third, unchanged):
    model = KernelPegasosClassifier(pos_label=pos_label)
    for y in met:
        model.learn_one({"x": 1.0}, y)
    with unchanged(model):
        for call in (
            lambda: model.learn_one({"new": 1.0}, third),
            lambda: model.learn_many([{"new": 1.0}], [third]),
            lambda: model.predict_learn_many([{"new": 1.0}] * (len(met) + 2), [*met, third, third]),
            lambda: model.learn_many([{"new": 1.0}], np.array([third])),
        ):
            with pytest.raises(ValueError, match="this model is for two") as error:
                call()
            assert repr(third) in str(error.value)
    with unchanged(model), pytest.raises(ValueError, match="this model is for two"):
        model.learn_many([{"new": 1.0}] * 3, ["one", "two", "three"])


@pytest.mark.parametrize(
    "ys",
    [
        [0, 1, 1, 0],
        [1, 2, 2, 1],
        [1, 1, 0, 1],
        [True, False, True, True],
        [1.0, 0.0, 1.0, -0.0],
        [2**40, 5, 5, 2**40],
        [-1, -1, 1, -1],
        [0.0, 2.0, 2.0, 0.0],
        ["ham", "spam", "spam", "ham"],
    ],
)
def test_labels_in_arrays_are_the_labels_in_lists(ys):
    expected = PegasosClassifier()
    expected.learn_many([{i: 1.0} for i in range(len(ys))], ys)
    for dtype in (bool, np.int8, np.int64, np.uint64, np.float32, np.float64, str, object):
        try:
            array = np.array(ys).astype(dtype)
        except (OverflowError, ValueError):
            continue
        if array.tolist() != ys:
            continue
        model = PegasosClassifier()
        model.learn_many([{i: 1.0} for i in range(len(ys))], array)
        assert model.classes == expected.classes
        assert {type(label) for label in model.classes} <= {bool, int, str}
        assert model.weights == expected.weights


@pytest.mark.parametrize(
    "pos_label, met, label, probabilities",
    [
        (None, (), None, {}),
        ("spam", (), None, {}),
        (1, (), None, {}),
        (True, (), None, {}),
        (None, ("ham",), "ham", {"ham": 1.0}),
        (None, (1,) * 8, 1, {1: 1.0}),
        (None, (0,), 0, {0: 1.0}),
        (None, (True,), True, {True: 0.5, False: 0.5}),  # which names the other one
        (None, (False,), False, {False: 0.5, True: 0.5}),
        ("spam", ("ham",), "ham", {"ham": 2 / 3, "spam": 1 / 3}),
        ("spam", ("spam",), "spam", {"spam": 1.0}),
    ],
)
def test_what_is_predicted_with_labels_missing(pos_label, met, label, probabilities, unchanged):
    """Of an example that nothing is known about."""
    model = PegasosClassifier(pos_label=pos_label)
    for y in met:
        model.learn_one({"known": 1.0}, y)
    with unchanged(model):
        predicted = model.predict_one({"unknown": 1.0})
        assert predicted == label and type(predicted) is type(label)
        assert model.predict_proba_one({"unknown": 1.0}) == pytest.approx(probabilities)
        assert model.predict_many([{"unknown": 1.0}, {}]).tolist() == [label, label]
        for each in model.predict_proba_many([{"unknown": 1.0}, {}]).tolist():
            assert each == pytest.approx(list(probabilities.values()))
        assert model.predict_many([]).tolist() == []
        assert model.decision_function_one({"unknown": 1.0}) == 0.0


# --- any number of classes --------------------------------------------------------------------------------------------


def classes_of(ys, start=None):
    """Labels that know these, too."""
    return (Labels(by_label=True) if start is None else start).add_labels(ys)


@given(st.lists(st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from(["", "a", "1", "\ud800"])), max_size=12))
def test_classes_are_numbered_as_they_come(ys):
    distinct = list(dict.fromkeys(ys))  # what compares equal is the same label, as the first one that came
    at_once = classes_of(ys)
    assert at_once.known == tuple(distinct) and list(map(type, at_once.known)) == list(map(type, distinct))
    assert [at_once.targets[y] for y in ys] == [distinct.index(y) for y in ys]
    assert list(at_once.targets) == distinct and list(map(at_once.label_from_target, range(len(distinct)))) == distinct
    one_by_one = Labels(by_label=True)
    for y in ys:
        before = one_by_one
        one_by_one = classes_of([y], before)
        assert (one_by_one is before) == (y in before.known)
    assert one_by_one == at_once and "another" not in at_once.targets


def test_classes_in_arrays_and_as_numpys_scalars():
    expected = classes_of([3, 1, 2])
    for y in (np.array([3, 1, 2, 1]), np.array([3.0, 1.0, 2.0]), (np.int8(3), 1.0, np.float32(2)), iter([3, 1, 2])):
        found = classes_of(label_list(y))
        assert found == expected and {type(label) for label in found.known} == {int}
        assert classes_of([np.float64(2), np.uint8(1)], expected) is expected
        assert [expected.targets[label] for label in (np.float64(2), np.uint8(1))] == [2, 1]
    for ys in (["a", 3], np.array([2, 1, 7]), [np.float64(2)]):
        known, targets = targets_many(expected, ys)
        assert targets.dtype == np.float64
        assert [known.label_from_target(target) for target in targets] == list(ys) and known.known[:3] == (3, 1, 2)


@given(
    st.lists(
        st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.just(2**70), st.just(2**63), st.text(max_size=3)),
        max_size=5,
    )
)
def test_arrays_hold_labels_as_they_are(labels):
    found = label_array(labels)
    assert found.shape == (len(labels),)
    assert found.tolist() == labels and list(map(type, found.tolist())) == list(map(type, labels))


def test_arrays_of_numbers_are_of_their_type_and_texts_are_objects():
    assert label_array([True, False]).dtype == bool
    assert label_array([1, -2]).dtype == np.int64
    assert label_array(["ham", "spam"]).dtype == label_array([1, "1"]).dtype == label_array([0, True]).dtype == object


# --- which label is the positive one, where a decision rests on it ----------------------------------------------------


@pytest.mark.parametrize("options", [{"threshold": 0.9}, {"max_false_positive_rate": 0.1}])
@pytest.mark.parametrize("pair", [("ham", "spam"), (1, 2), (0, 2), (0, -1), ("0", "1"), ("no", "yes")])
def test_it_must_be_said_before_anything_is_learned(options, pair, unchanged):
    """Whichever label comes first, alone or in the middle of others."""
    for first, second in (pair, pair[::-1]):
        model = AdaptiveClassifier(**options)
        refused = (
            [[first, second]] if LabelPolicy([first]).shows_positive else [[first], [first, second], [second, first]]
        )
        with unchanged(model):
            for y in refused:
                with pytest.raises(ValueError, match="pos_label"):
                    model.learn_many([{"x": 1.0}] * len(y), y)
            if len(refused) > 1:
                with pytest.raises(ValueError, match=re.escape(repr(first))):
                    model.learn_one({"x": 1.0}, first)
        given = AdaptiveClassifier(**options, pos_label=second)
        given.learn_many([{"x": 1.0}, {"z": 1.0}], [first, second])
        assert given.pair == given.classes == (first, second)


@pytest.mark.parametrize(
    "pair", [(False, True), (0, 1), (-1, 1), ("false", "true"), ("False", "True"), ("FALSE", "TRUE")]
)
def test_labels_that_say_themselves_which_is_positive(pair):
    """Whichever comes first, and with a decision or without."""
    for options, order in itertools.product(({}, {"threshold": 0.9}), (pair, pair[::-1])):
        model = AdaptiveClassifier(**options)
        for label in order:
            model.learn_one({"x": 1.0}, label)
        assert model.pair == pair and list(map(type, model.pair)) == list(map(type, pair))


@pytest.mark.parametrize("given, positive", [(True, 1), (1, 1)])
def test_a_bool_stands_for_1_beside_minus_1_too(given, positive):
    for order in ((-1, 1), (1, -1)):
        model = KernelPegasosClassifier(pos_label=given)
        model.learn_many([{"x": 1.0}] * 2, order)
        assert model.pair == (-1, positive)


@pytest.mark.parametrize("given", [True, False, 1, 0, "true", "false", "True", "1", "0"])
@pytest.mark.parametrize(
    "pair", [(False, True), (0, 1), ("false", "true"), ("False", "True"), ("FALSE", "TRUE"), ("0", "1")]
)
def test_a_bool_and_0_and_1_stand_for_their_texts(given, pair):
    positive = pair[str(given).lower() in ("true", "1")]
    for order in (pair, pair[::-1]):
        model = PegasosClassifier(pos_label=given)
        for label in order:
            model.learn_one({"x": 1.0}, label)
        assert model.pair[1] == positive and type(model.pair[1]) is type(positive)
        assert model.pair[0] in pair and type(model.pair[0]) is type(positive)


NO_INTEGERS = ["01", "1.", "1.5", "01.0", "9007199254740993.0", "\u0661", "1_0", "spam", "9" * 5000]
READ = {"1": 1, "1.0": 1, "-2.00": -2, "-1": -1, "+1": 1, "0": 0, " 12\t": 12, " spam ": "spam", "": None, "  ": None}


@pytest.mark.parametrize(("text", "label"), [*READ.items(), *zip(NO_INTEGERS, NO_INTEGERS, strict=True)])
def test_how_a_text_is_read_as_a_label(text, label):
    assert label_of(text) == label
    assert type(label_of(text)) is type(label)


@pytest.mark.parametrize("positive", [10**5_000, 1], ids=["long", "short"])
def test_a_number_longer_than_python_writes_is_a_label(positive):
    model = AdaptiveClassifier(pos_label=positive)
    for label in (1, 10**5_000, 1, 10**5_000):
        model.learn_one({f"of {label == 1}": 1.0}, label)
    assert model.predict_one({"of True": 1.0}) == 1
    assert model.predict_one({"of False": 1.0}) == 10**5_000
    assert model.decision_function_one({f"of {positive == 1}": 1.0}) > 0
    with pytest.raises(ValueError, match=r"known labels: 1, 0x[0-9a-f]*$"):
        model.forget_class("none")


WRITTEN = [True, False, 0, 1, -1, 2, "true", "True", "TRUE", "tRue", "false", "0", "1", "-1", "yes", "spam", ""]


@pytest.mark.parametrize("named", WRITTEN, ids=repr)
def test_a_label_that_is_named_is_found_however_it_is_written(named):
    for label in WRITTEN:
        assert (label in all_ways_of_writing(named)) == (written_like(named, label) == label)
        expected = 0 if written_like(named, label) == label else 2  # the number of one to come
        assert Labels(("other", label)[::-1], named).positive == expected


@pytest.mark.parametrize(
    ("y", "w", "match"),
    [
        (
            pd.DataFrame({"label": ["spam"]}),
            1.0,
            "y must be a column, got a data frame; pass the column that holds the labels",
        ),
        (
            ["spam"],
            pd.DataFrame({"weight": [1.0]}),
            "w must be a column, got a data frame; pass the column that holds the weights",
        ),
        (np.array("spam"), 1.0, "y must be a sequence of labels"),
        (np.array(7), 1.0, "y must be a sequence of labels"),
        (np.ma.array([7], mask=[True]), 1.0, "a label must be a bool, an int or a str, got None"),
        (["spam"], np.ma.array([1.0], mask=[True]), "w must be a number, got None"),
        (["spam"], np.ones((1, 2)), "w must be a number, got .*"),
        ([], None, "w must be a number, got None"),
    ],
)
def test_what_is_no_column_of_labels_or_weights(y, w, match, unchanged):
    for model in (AdaptiveClassifier(), PegasosClassifier(multi_class="ovr")):
        model.learn_many([{"a": 1.0}] * 2, [7, 8])
        for learn in (model.learn_many, model.predict_learn_many):
            with unchanged(model), pytest.raises(TypeError, match=match):
                learn([{"a": 1.0}] * len([y] if np.ndim(y) == 0 else y), y, w)
