"""Fields that hold no text."""

import datetime as dt
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stream_pegasos import Category, HashedBagOfWords, Number, TextClassifier, TextFeatures, Time, load
from stream_pegasos.engine.pure.scanner import murmur3_32, words_32

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
        ("Ann Lee", ["Ann Lee"]),
        (7, ["7"]),
        (7.0, ["7"]),
        (np.int64(7), ["7"]),
        (0.5, ["0.5"]),
        (True, ["true"]),
        (["b", 7, "b", None, "", "\ud800"], ["b", "7", "\ud800"]),
        ({"b": 1, "a": [2]}, ['{"a": [2], "b": 1}']),
        ("", []),
        (None, []),
        (math.nan, []),
        ([], []),
    ):
        found = Category(on="x").transform_one({"x": value})
        assert found == dict.fromkeys(
            (column(t, "") for t in tokens), pytest.approx(len(tokens) ** -0.5 if tokens else 0)
        )
    with pytest.raises(TypeError, match="field 'x' is of type bytes"):
        Category(on="x").transform_one({"x": b"a"})


finite = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) > 1e-300)


@given(finite)
@example(1e-299)
@example(-1.7976931348623157e308)
def test_a_number_is_in_all_of_its_intervals_which_are_nested(x):
    sign, *intervals = Number(on="x").tokens(x)
    assert sign == ("> 0" if x > 0 else "< 0")
    ends = [tuple(map(float, interval.split(".."))) for interval in intervals]
    assert all(low <= x < high if x > 0 else low < x <= high for low, high in ends)
    for (low, high), (inner_low, inner_high) in itertools.pairwise(ends):
        assert low <= inner_low <= inner_high <= high


@given(finite, st.integers(1, 20))
def test_numbers_of_the_same_first_bits_share_an_interval(x, n):
    """The widths are from 2^32 times down to 2^-20 of a number."""
    y = x * (1 + 2.0**-n)
    shared = len({*Number(on="x").tokens(x)} & {*Number(on="x").tokens(y)}) if math.isfinite(y) else 0
    (a, e), (b, f) = math.frexp(x), math.frexp(y)
    bits = sum(e == f and int(abs(a) * 2 ** (k + 1)) == int(abs(b) * 2 ** (k + 1)) for k in Number.bits)
    if shared:
        assert shared >= bits and (shared - bits) in range(6)


def test_what_numbers_are():
    number = Number(on="x")
    assert number.tokens("1e3") == number.tokens(1000) == number.tokens(np.float32(1000)) != number.tokens(-1000)
    assert [number.tokens(x) for x in (0, -0.0, "0")] == [["= 0"]] * 3
    assert number.tokens(10**400) == number.tokens("inf") == ["> 0", "inf"] != number.tokens("-inf")
    assert [number.transform_one({"x": x}) for x in (None, "", math.nan)] == [{}] * 3
    for wrong in ("x", "1_0", "nan"):
        with pytest.raises(ValueError, match=f"field 'x' is '{wrong}', which is no number"):
            number.prepare({"x": wrong})
    for wrong in ([1], {}, b"1"):
        with pytest.raises(TypeError, match="which is no number"):
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
        assert time.tokens(value) == ["hour 19", "Monday"], value
    assert time.tokens("2026-11-23") == time.tokens(dt.date(2026, 11, 23)) == ["Monday"]
    for wrong in ("x", "2026-13-01", 1e300, "9" * 400):
        with pytest.raises(ValueError, match="which is no time"):
            time.tokens(wrong)
    for wrong in (True, [1], b"x"):
        with pytest.raises(TypeError, match="which is no time"):
            time.tokens(wrong)


def test_a_model_of_all_kinds(tmp_path):
    model = TextClassifier(ALL)
    model.learn_many(MESSAGES * 5, LABELS * 5)
    one = TextClassifier(ALL)
    for x, label in zip(MESSAGES * 5, LABELS * 5, strict=True):
        one.learn_one(x, label)
    assert one.weights == model.weights
    explanation = model.explain_one(MESSAGES[0])
    assert {"sender=a@b.c", "size: 8192.0..16384.0", "date: hour 3", "date: Monday", "subject: free"} <= {*explanation}
    assert sum(explanation.values()) == pytest.approx(model.decision_function_one(MESSAGES[0]))
    for wrong in ({"subject": "a", "size": "big"}, {"subject": "a", "date": "noon"}, {"sender": b""}, {"other": 7}):
        with pytest.raises((TypeError, ValueError)):
            model.learn_one(wrong, "ham")
    assert one.weights == model.weights
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert [*map(loaded.predict_proba_one, MESSAGES)] == [*map(model.predict_proba_one, MESSAGES)]
    assert loaded.features.fields == ("subject", "sender", "size", "date")
    frame = pd.DataFrame(MESSAGES[:1])
    assert (ALL.transform_many(frame) != ALL.transform_many(MESSAGES[:1])).nnz == 0


def test_columns_are_those_of_the_text_in_any_order():
    for features in (
        Category(on="a") + HashedBagOfWords(on="b", n_features=64, norm=None, alternate_sign=False),
        HashedBagOfWords(on="b", n_features=64, norm=None, alternate_sign=False) + Category(on="a"),
    ):
        found = features.transform_one({"a": "x", "b": "y y zz zz"})
        assert max(found) < 64 and sorted(found.values()) == [1.0, 2.0]


def test_fields_of_one_namespace_share_words():
    shared = TextFeatures(on="body") + TextFeatures(on="subject", namespace="body") + Category(on="body")
    assert shared.transform_one({"body": "a b"}) == shared.transform_one({"subject": "a b"})
    apart = TextFeatures(on="x") + TextFeatures(on="a", namespace="n") + TextFeatures(on="b", namespace="n")
    assert (
        apart.transform_one({"a": "word"}) == apart.transform_one({"b": "word"}) != apart.transform_one({"x": "word"})
    )
    assert {*apart.transform_one({"a": "w"})} == {column(token, "n") for token in TextFeatures().tokens("w")}
