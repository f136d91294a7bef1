"""Fields that hold no text."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos import Category, HashedBagOfWords, MailFeatures, Number, TextClassifier, TextFeatures, Time
from stream_pegasos.engine.pure.scanner import murmur3_32, words_32
from stream_pegasos.learners.files import packed_features, unpacked_features

ALL = TextFeatures(on="subject") + Category(on="sender") + Number(on="size") + Time(on="date")
MESSAGES = [
    {"subject": "free stuff", "sender": "a@b.c", "size": 9_000, "date": "2026-11-23T03:00:00+01:00"},
    {"subject": "lunch?", "sender": ["ann", "bob"], "size": 1.5, "date": None},
    {"sender": None, "size": "", "date": ""},
    {"size": 7, "other": 7},
]
LABELS = ["spam", "ham", "ham", "spam"]


def column(token, namespace):
    """Where a feature stands: by the hash of the engine's words and, of another field than the first, of its name."""
    return (
        abs(np.int32(np.uint32(words_32(token.encode("utf-8", "surrogatepass")) ^ murmur3_32(namespace.encode()))))
        % 2**30
    )


def test_a_category_is_one_feature_by_its_text():
    for value, tokens in (
        (" Ann  Lee\n", ["Ann␣Lee"]),
        (7, ["7"]),
        (7.0, ["7"]),
        (np.int64(7), ["7"]),
        (0.5, ["0.5"]),
        (True, ["true"]),
        (["b", 7, "b", None, "", "\ud800"], ["b", "7", "\ud800"]),
        ({"b": 1, "a": [2]}, ['{"a":␣[2],␣"b":␣1}']),
        ("", []),
        (None, []),
        (math.nan, []),
        ([], []),
    ):
        found = Category(on="x").transform_one({"x": value})
        assert found == dict.fromkeys(
            (column(t, "") for t in tokens), pytest.approx(len(tokens) ** -0.5 if tokens else 0)
        )
    with pytest.raises(TypeError, match="field 'x' must be a value that JSON can write"):
        Category(on="x").transform_one({"x": b"a"})


finite = st.floats(-1e250, 1e250).filter(lambda x: abs(x) > 1e-250)


def ends(x):
    """Those of the intervals that a number is in, the wide ones first."""
    sign, *names = Number(on="x").tokens({"x": x})
    assert sign == ("x > 0" if x > 0 else "x < 0")
    pairs = [name.removeprefix("x: ").split(" to ") for name in names]
    return [tuple(_value(end) for end in pair) for pair in pairs]


def _value(end):
    return (
        math.copysign(2.0 ** float(end.partition("^")[2]), float(end.partition("^")[0])) if "^" in end else float(end)
    )


def test_the_order_of_a_set_counts_nothing():
    names = [f"tag {i}" for i in range(20)]
    category = Category(on="x")
    assert category.prepare({"x": {*names}}) == category.prepare({"x": sorted(names)})


@given(finite)
def test_a_number_is_in_all_of_its_intervals_which_are_nested(x):
    found = ends(x)
    assert len(found) == 13
    written = 1e-11 * abs(x)  # to which the ends are
    assert all(low - written <= x <= high + written for low, high in found)
    widths = [high - low for low, high in found]
    assert widths == sorted(widths, reverse=True) and widths[-1] < 2e-6 * abs(x)


@given(finite, st.integers(1, 24))
def test_numbers_of_the_same_first_bits_share_an_interval(x, n):
    """Two numbers are in the same interval or in two that do not overlap."""
    y = x * (1 + 2.0**-n)
    of_x, of_y = (Number(on="x").prepare({"x": number}).split() for number in (x, y))
    shared = [a == b for a, b in zip(of_x, of_y, strict=True)]
    assert shared == sorted(shared, reverse=True)
    (a, e), (b, f) = math.frexp(x), math.frexp(y)
    assert sum(shared[4:]) == sum(
        e == f and int(abs(a) * 2**k) == int(abs(b) * 2**k) for k in (1, 2, 3, 5, 7, 9, 12, 15, 18, 21)
    )


def test_what_numbers_are():
    number = Number(on="x")
    assert number.prepare({"x": "1e3"}) == number.prepare({"x": 1000}) == number.prepare({"x": np.float32(1000)})
    assert number.tokens({"x": -0.0}) == number.tokens({"x": "0"}) == ["x = 0"]
    assert number.tokens({"x": 10**400}) == number.tokens({"x": "inf"}) == ["x = inf"] != number.tokens({"x": "-inf"})
    assert [number.transform_one({"x": x}) for x in (None, "", " \t", math.nan)] == [{}] * 4
    for wrong in ("x", "1_0", "nan", np.datetime64("2026-11-23")):
        with pytest.raises(ValueError, match=f"field 'x' must be a number, got '{wrong}'"):
            number.prepare({"x": wrong})
    for wrong in ([1], {}, b"1"):
        with pytest.raises(TypeError, match="must be a number"):
            number.prepare({"x": wrong})


def test_what_times_are():
    time = Time(on="x")
    for value in (
        "2026-11-23T19:54:58Z",
        "2026-11-23 19:54",
        " Mon, 23 Nov 2026 19:54:58 -0800 ",
        dt.datetime(2026, 11, 23, 19),
        pd.Timestamp("2026-11-23 19:00"),
        np.datetime64("2026-11-23T19:00:00.000000001"),
        1795463698,
        "1795463698.5",
    ):
        assert time.read_value(value) == "hour=19 Monday", value
    for value in (
        "2026-11-23",
        dt.date(2026, 11, 23),
        np.datetime64("2026-11-23"),
        20261123,
        20261123.0,
        "20261123",
        "20261123.0",
    ):
        assert time.read_value(value) == "Monday", value
    for wrong in ("x", "2026-13-01", 1e300, "9" * 400):
        with pytest.raises(ValueError, match="must be a time"):
            time.read_value(wrong)
    for wrong in (True, [1], b"x"):
        with pytest.raises(TypeError, match="must be a time"):
            time.read_value(wrong)


@given(st.integers(0, 10**13) | st.floats(-1e10, 1e10))
def test_a_time_is_the_same_as_a_number_and_as_a_text(number):
    def read(value):
        try:
            return Time(on="x").read_value(value)
        except ValueError:
            return None

    assert read(number) == read(str(number)) == read(np.array([number])[0])
    if isinstance(number, int) and len(str(number)) != 8 and number < 1e11:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=number)
        assert read(number) == f"hour={moment.hour} {moment:%A}"


def test_a_model_of_all_kinds(unchanged):
    model = TextClassifier(ALL)
    model.learn_many(MESSAGES * 5, LABELS * 5)
    explanation = model.explain_ngrams_one(MESSAGES[0])
    assert {"sender=a@b.c", "size: 8192 to 16384", "date: hour=3", "date: Monday", "subject: free"} <= {*explanation}
    assert sum(explanation.values()) == pytest.approx(model.decision_function_one(MESSAGES[0]))
    for wrong in ({"subject": "a", "size": "big"}, {"subject": "a", "date": "noon"}, {"sender": b""}, {"other": 7}):
        with unchanged(model), pytest.raises((TypeError, ValueError)):
            model.learn_one(wrong, "ham")
    assert ALL.fields == ALL.clone().fields == ("subject", "sender", "size", "date")
    frame = pd.DataFrame(MESSAGES[:1])
    assert (ALL.transform_many(frame) != ALL.transform_many(MESSAGES[:1])).nnz == 0


def test_columns_are_those_of_the_text_in_any_order():
    for features in (
        Category(on="a") + HashedBagOfWords(on="b", n_features=64, norm=None, alternate_sign=False),
        HashedBagOfWords(on="b", n_features=64, norm=None, alternate_sign=False) + Category(on="a"),
    ):
        found = features.transform_one({"a": "x", "b": "y y zz zz"})
        assert max(found) < 64 and sorted(found.values()) == [1.0, 2.0]


def test_parameters_are_checked_where_they_are_given():
    for make, fault in (
        (lambda: Category(on=None), "reads a field"),
        (lambda: Number(on=["x"]), "must be the name of a field"),
        (lambda: MailFeatures(on=["x"]), "must be the name of a field"),
        (lambda: TextFeatures(on="x", namespace=["y"]), "namespace must be a str"),
        (lambda: HashedBagOfWords(stop_words=iter(["the"])), "can be read only once"),
    ):
        with pytest.raises(TypeError, match=fault):
            make()


def test_fields_of_one_namespace_share_words():
    shared = TextFeatures(on="body") + TextFeatures(on="subject", namespace="body")
    assert shared.transform_one({"body": "a b"}) == shared.transform_one({"subject": "a b"})
    both = TextFeatures(on="a") + TextFeatures(on="body") + Category(on="body")
    assert len(both.transform_one({"body": "free"})) == len(TextFeatures().tokens("free")) + 1
    apart = TextFeatures(on="x") + TextFeatures(on="a", namespace="n") + TextFeatures(on="b", namespace="n")
    assert (
        apart.transform_one({"a": "word"}) == apart.transform_one({"b": "word"}) != apart.transform_one({"x": "word"})
    )
    assert {*apart.transform_one({"a": "w"})} == {column(token, "n") for token in TextFeatures().tokens("w")}
    unnamed = TextFeatures(on="body") + TextFeatures(on="subject", namespace="")
    assert unnamed.transform_one({"body": "a"}).keys().isdisjoint(unnamed.transform_one({"subject": "a"}))


@pytest.mark.parametrize("first", [TextFeatures(on="body"), TextFeatures(on="body", namespace="n")])
def test_a_space_without_a_name_is_in_a_file_of_0_2_that_of_the_first_field(first):
    features, find_vectors = first + TextFeatures(on="subject", namespace="") + TextFeatures(on=""), None
    x, y = {"body": "a b"}, {"subject": "a b"}
    packed = packed_features(features)
    assert unpacked_features(packed, find_vectors).transform_one(y) == features.transform_one(y)
    del packed["empty_space"]
    of_then = unpacked_features(packed, find_vectors)
    assert of_then.transform_one(y) == of_then.transform_one({"": "a b"}) == of_then.transform_one(x)
    assert of_then.transform_one(x) == features.transform_one(x)
    assert unpacked_features(packed_features(of_then), find_vectors).transform_one(y) == of_then.transform_one(y)


def test_what_is_missing_in_a_frame_counts_nothing():
    mails = MailFeatures(on="m")
    features = TextFeatures(on="t") + Category(on="c") + Number(on="n") + Time(on="d") + mails
    frame = pd.DataFrame(
        {"t": ["a", None], "n": [1, None], "d": [pd.Timestamp(0), None], "m": ["Subject: b\n\n", None]}
    )
    frame["c"] = [np.array(["x", "y"]), None]  # as pandas reads lists from Parquet
    message = {"t": "a", "c": ["x", "y"], "n": 1, "d": 0, "m": "Subject: b\n\n"}
    for each in (frame, frame.convert_dtypes(), frame.astype(object).where(frame.notna(), np.nan)):
        assert (features.transform_many(each) != features.transform_many([message, {}])).nnz == 0
