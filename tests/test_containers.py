"""Columns in the containers of other libraries: taken as lists are, or named in an error."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from river import datasets

from stream_pegasos import MultiLabelClassifier, PegasosClassifier, TextClassifier, prequential
from stream_pegasos.sklearn import OnlineTextClassifier
from stream_pegasos.streams import read

try:
    import polars as pl
except ImportError:  # of which a container less is tried
    pl = None

TEXTS = ["cheap pills", "see you", "pills now", "lunch at noon"]
LABELS = ["spam", "ham", "spam", "ham"]
WEIGHTS = [1.0, 2.0, 0.5, 1.0]
LISTED = {
    "PyArrow": pa.array,
    "PyArrow, in chunks": lambda column: pa.chunked_array([column[:1], column[1:]]),
    "PyArrow, as a dictionary": lambda column: pa.array(column).dictionary_encode(),
    "pandas": pd.Series,
    "NumPy": np.array,
    **({} if pl is None else {"Polars": pl.Series}),
}
FRAMES = [pd.DataFrame, *([] if pl is None else [pl.DataFrame])]


@pytest.mark.parametrize("name", LISTED)
def test_columns_of_other_libraries_are_learned_as_lists(name):
    expected, model = TextClassifier(), TextClassifier()
    expected.learn_many(TEXTS, LABELS, WEIGHTS)
    X, y, w = (LISTED[name](column) for column in (TEXTS, LABELS, WEIGHTS))
    weights = WEIGHTS if "dictionary" in name else w
    model.learn_many(X, y, weights)
    assert (model.classes, model.weights) == (expected.classes, expected.weights)
    assert list(model.predict_many(X)) == list(expected.predict_many(TEXTS))
    fitted = [OnlineTextClassifier().fit(*given) for given in ((TEXTS, LABELS, WEIGHTS), (X, y, weights))]
    assert np.array_equal(*(each.predict_proba(TEXTS) for each in fitted))


@pytest.mark.parametrize("kind", FRAMES)
def test_scikit_learns_labels_may_be_a_frame_with_one_column(kind):
    y, w = kind({"label": LABELS}), kind({"weight": WEIGHTS})
    expected = OnlineTextClassifier().fit(TEXTS, LABELS, WEIGHTS)
    for method in ("fit", "partial_fit"):
        found = getattr(OnlineTextClassifier(shuffle=method == "fit"), method)(TEXTS, y, sample_weight=w)
        assert found.classes_.tolist() == ["ham", "spam"]
    assert np.array_equal(OnlineTextClassifier().fit(TEXTS, y, w).predict_proba(TEXTS), expected.predict_proba(TEXTS))
    two = kind({"label": LABELS, "other": LABELS})
    with pytest.raises(ValueError, match="y must be one column, got a data frame of 2; choose one"):
        OnlineTextClassifier().fit(TEXTS, two)


@pytest.mark.parametrize("masked", ["y", "sample_weight"])
def test_scikit_learns_face_learns_nothing_that_is_masked(masked):
    given = {"y": LABELS, "sample_weight": WEIGHTS}
    given[masked] = np.ma.array(given[masked], mask=[False, True, False, False])
    with pytest.raises(ValueError, match=f"{masked} must have no masked values"):
        OnlineTextClassifier().fit(TEXTS, **given)
    given[masked] = given[masked].filled() if masked == "y" else np.ma.array(WEIGHTS)  # nothing of which is masked
    OnlineTextClassifier().fit(TEXTS, **given)


TRUTHS = [1, 0, 1.0, 0.0, np.int8(1), np.float32(0.0), np.bool_(True), Decimal(1), Decimal("0.0"), Fraction(1)]


def test_numbers_are_truths_of_several_labels():
    for holds in TRUTHS:
        one, other = MultiLabelClassifier(), MultiLabelClassifier()
        one.learn_one({"x": 1.0}, {"a": holds, "b": True})
        other.learn_one({"x": 1.0}, {"a": bool(holds), "b": True})
        assert one.predict_proba_one({"x": 1.0}) == other.predict_proba_one({"x": 1.0})
    for wrong in (2, -1, 0.5, float("nan"), None, "1", pd.NA, Decimal("0.1"), datetime.timedelta(0), []):
        with pytest.raises(TypeError, match=r"must be True or False, or 1 or 0"):
            MultiLabelClassifier().learn_one({"x": 1.0}, {"a": wrong})
    dataset = [*datasets.synth.Logical(20, seed=1)]
    score = prequential(dataset, MultiLabelClassifier()).score
    as_bools = [(x, {label: bool(holds) for label, holds in y.items()}) for x, y in dataset]
    assert score.metrics() == prequential(as_bools, MultiLabelClassifier()).score.metrics() and score.n == 80


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "float64", "bool", "Float32", "bool[pyarrow]", "int8[pyarrow]"])
def test_columns_of_truths_may_be_of_any_dtype(dtype):
    holds = {"a": [1, 0, 1, 0], "b": [0, 0, 1, 1]}
    frame = pd.DataFrame({name: pd.Series(column).astype(dtype) for name, column in holds.items()})
    model, expected = (TextClassifier(classifier=MultiLabelClassifier()) for _ in range(2))
    model.learn_many(TEXTS, frame)
    expected.learn_many(TEXTS, [("a",), (), ("a", "b"), ("b",)])
    assert model.weights == expected.weights
    if dtype in ("Int64", "boolean", "Float32"):
        frame.loc[1, "a"] = pd.NA
        with pytest.raises(TypeError, match="label 'a' of an example must be True or False"):
            model.learn_many(TEXTS, frame)


@pytest.mark.parametrize(
    "stream",
    [
        pd.DataFrame({"x": TEXTS, "y": LABELS}),
        FRAMES[-1]({"x": TEXTS, "y": LABELS}),
        pa.table({"x": TEXTS, "y": LABELS}),
        ("cheap pills", "spam"),
        ({"a": 1.0}, True),
        "mails.csv",
        TEXTS,
        [{"x": "cheap", "y": "spam"}],
        [("cheap",)],
        [None],
        {"x": TEXTS},
        7,
    ],
    ids=str,
)
@pytest.mark.parametrize("delay", [0, 2])
def test_a_stream_that_gives_no_tuples_is_named(stream, delay):
    with pytest.raises(TypeError, match=r"must (give|be a) tuples? \(x, y\).*, got "):
        prequential(stream, TextClassifier(), delay=delay)


def test_whatever_holds_x_and_y_is_an_example():
    for stream in ([[x, y] for x, y in zip(TEXTS, LABELS, strict=True)], np.array([*zip(TEXTS, LABELS, strict=True)])):
        assert prequential(stream, TextClassifier()).score.n == 4


def test_decimals_are_weights_and_features_but_no_labels():
    one, other = PegasosClassifier(), PegasosClassifier()
    one.learn_many([{"a": Decimal("0.5")}] * 2, [0, 1], [Decimal(2), Decimal("0.5")])
    other.learn_many([{"a": 0.5}] * 2, [0, 1], [2.0, 0.5])
    assert one.weights == other.weights
    with pytest.raises(TypeError, match="a label must be a bool, an int or a str, got Decimal"):
        one.learn_one({"a": 1.0}, Decimal(1))


def test_a_folder_of_parquet_parts_is_read(tmp_path):
    for i in range(2):
        pa.parquet.write_table(pa.table({"text": TEXTS, "label": LABELS}), tmp_path / f"part-{i}.parquet")
    (tmp_path / "_SUCCESS").touch()
    parts = [example for part in sorted(tmp_path.glob("*.parquet")) for example in read(part)]
    for given in ({}, {"format": "parquet"}):
        found = [*read(tmp_path, **given)]
        assert [each[:3] for each in found] == [each[:3] for each in parts] and len(found) == 8
        assert [each.line for each in found] == [*range(1, 9)]
    (tmp_path / "readme.txt").touch()
    for format in ("parquet", "csv"):
        with pytest.raises(IsADirectoryError, match=r"only mails and parts \*.parquet are read: name a file in it"):
            next(read(tmp_path, format=format))
