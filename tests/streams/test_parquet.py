import datetime
import decimal
import gzip
import io
import json
import math

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from reading import byte_by_byte, examples, pairs

from stream_pegasos.streams import LabelFormat, StreamError, open_source, read

text = st.text(st.characters(exclude_categories=["Cs"]))


def written(columns, **options):
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns) if isinstance(columns, dict) else columns, file, **options)
    return file.getvalue()


@given(st.lists(st.tuples(text, text, st.integers(-(2**63), 2**63 - 1))), st.integers(1, 5), st.booleans())
def test_rows_are_read_as_lines_of_json(rows, group, is_dictionary):
    names = ("text", "label", "id")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {"text": [], "label": []}
    data = written(columns, row_group_size=group, use_dictionary=is_dictionary)
    lines = b"".join(json.dumps(dict(zip(names, row, strict=True))).encode() + b"\n" for row in rows)
    assert examples(data, "parquet") == tuple(examples(lines, "jsonl"))


def test_labels_and_nested_columns():
    columns = {
        "number": [1.0, 2.0, 3.0, None],
        "true": [True, False, None, True],
        "topics": ["x;y", "x", "", "z"],
        "a.c": ["literal"] * 4,
        "day": pyarrow.array([1, 2, 3, 4], pyarrow.date32()),
    }
    data = written(columns)
    assert pairs(data, "parquet", text_field="a.c", label_field="true", unlabelled=True)[2] == ("literal", None)
    several = LabelFormat(";")
    assert pairs(data, "parquet", text_field="a.c", label_field="topics", labels=several, unlabelled=True) == [
        ("literal", y) for y in (("x", "y"), ("x",), None, ("z",))
    ]
    found, bad = examples(data, "parquet", text_field="a.c", label_field="number")
    assert [example.y for example in found] == [1, 2, 3] and bad == [(4, "no label in the field 'number'")]
    _, bad = examples(data, "parquet", text_field="a.c", label_field="day")
    assert bad[0] == (1, "field 'day': a label must be a bool, an int or a str, got datetime.date(1970, 1, 2)")


def test_values_are_those_that_json_has_at_any_depth():
    day, price = datetime.date(2026, 11, 27), decimal.Decimal("1.50")
    columns = {
        "text": ["a"] * 2,
        "x": [[math.nan, math.inf, 2.0], None],
        "o": [{"day": day, "prices": [price, None]}, {"day": None, "prices": []}],
    }
    found, bad = examples(written(columns), "parquet", fields=("text", "x", "o"), unlabelled=True)
    assert not bad and [json.loads(json.dumps(example.x)) for example in found] == [
        {"text": "a", "x": [None, "inf", 2.0], "o": {"day": "2026-11-27", "prices": [1.5, None]}},
        {"text": "a", "x": None, "o": {"day": None, "prices": []}},
    ]


def test_labels_some_of_which_are_missing():
    """pandas writes them as floats, and a missing one as NaN."""
    columns = {"text": ["a", "b"], "label": [7.0, math.nan], "o": [{"y": math.nan}, {"y": 8.0}]}
    assert pairs(written(columns), "parquet", unlabelled=True) == [("a", 7), ("b", None)]
    assert pairs(written(columns), "parquet", unlabelled=True, label_field="o.y") == [("a", None), ("b", 8)]
    assert examples(written(columns), "parquet")[1] == [(2, "no label in the field 'label'")]


def test_ids_some_of_which_are_missing():
    """pandas writes them as floats."""
    found, _ = examples(written({"text": ["a", "b", "c"], "id": [7.0, None, 1.5]}), "parquet", unlabelled=True)
    assert [example.id for example in found] == [7, None, None]


def test_columns_that_there_are_not():
    data = written({"body": ["x"], "label": [{"y": 1}]})
    with pytest.raises(StreamError, match="column 'text' is missing; the file has body, label"):
        examples(data, "parquet")
    with pytest.raises(StreamError, match=r"column 'label\.z' is missing"):
        examples(data, "parquet", text_field="body", label_field="label.z")
    assert pairs(data, "parquet", text_field="body", label_field="y", unlabelled=True) == [("x", None)]
    with pytest.raises(StreamError, match="there are several columns 'text'"):
        examples(written(pyarrow.Table.from_arrays([["a"], ["b"], [1]], names=["text", "text", "label"])), "parquet")


def test_it_is_told_by_name_and_by_content(tmp_path):
    path = tmp_path / "mail.parquet"
    path.write_bytes(written({"text": ["win"], "label": ["spam"]}))
    assert [example.x for example in read(path)] == ["win"]
    assert pairs(path.read_bytes(), "jsonl") == [("win", "spam")]
    assert pairs(written({"text": pyarrow.array([], "string"), "label": []}), "jsonl") == []
    assert pairs(b"PAR1\twin\n", "labelled-text") == [("win", "PAR1")]
    with pytest.raises(StreamError, match=r"is parquet, .* cannot be followed: .* --format parquet < "):
        open_source(path)


def test_it_may_come_from_a_pipe_or_compressed():
    data = written({"text": ["win", None, "see you"], "label": ["spam"] * 3})
    bad = []
    with byte_by_byte(data) as pipe:
        found = list(read(pipe, format="jsonl", on_bad_line=lambda *at: bad.append(at)))
    assert [example.line for example in found] == [1, 3]
    assert bad == [(2, "field 'text' must be a string, got null")]
    assert len(examples(gzip.compress(data), "parquet")[0]) == 2


def test_what_is_truncated_or_damaged():
    data = written({"text": ["win"] * 100, "label": ["spam"] * 100})
    for broken in (data[:-10], data[:40], data[:5], b"", b"nonsense" * 5, data[:20] + b"\xff" * 20 + data[40:]):
        with pytest.raises(StreamError, match=r"^stream: no Parquet, or damaged") as caught:
            examples(broken, "parquet")
        assert str(caught.value).isprintable()


def test_text_that_is_no_utf8():
    column = pyarrow.array([b"a", b"\xff", b"b"], "binary")
    data = written({"text": column.view("string"), "label": [1, 2, 3]})
    found, bad = examples(data, "parquet")
    assert [example.x for example in found] == ["a", "b"] and bad == [(2, "not UTF-8")]


@pytest.mark.parametrize("fields", [(), ("text",)])
def test_binary_columns_are_text_as_the_bytes_of_any_stream(fields):
    column = pyarrow.array([b"a", b"\xff", "\u00e9".encode()], "binary")
    data = written({"text": column, "label": pyarrow.array([b"x", b"y", b"x"], "binary"), "id": column})
    found, bad = examples(data, "parquet", fields=fields)
    texts = [example.x["text"] if fields else example.x for example in found]
    assert (texts, [example.y for example in found], bad) == (["a", "\u00ff", "\u00e9"], ["x", "y", "x"], [])
    assert [example.id for example in found] == texts
    found, bad = examples(data, "parquet", fields=fields, encoding_errors="strict")
    assert len(found) == 2 and bad[0][1].endswith("is not UTF-8 (byte 0xff at column 1)")


def test_a_large_group_of_rows_takes_no_memory(tmp_path):
    path = tmp_path / "large.parquet"
    n = 40_000
    texts = pyarrow.array([f"{i} " + "word " * 200 for i in range(n)])
    parquet.write_table(
        pyarrow.table({"text": texts, "label": ["x"] * n}), path, row_group_size=n, use_dictionary=False
    )
    size = texts.nbytes
    del texts
    before, peak, count = pyarrow.total_allocated_bytes(), 0, 0
    for count, _ in enumerate(read(path), 1):
        if count % 1000 == 0:
            peak = max(peak, pyarrow.total_allocated_bytes() - before)
    assert count == n and size > 40_000_000 and peak < 16_000_000
