import csv
import io

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import examples, pairs

from stream_pegasos.streams import StreamError, csv_tsv, label_of


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["ham", "spam", "1"]))))
def test_csv_and_tsv_read_what_the_csv_module_writes(rows):
    for delimiter, format in ((",", "csv"), ("\t", "tsv")):
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["label", "text"])
        writer.writerows((label, text) for text, label in rows)
        expected = [(text, label_of(label)) for text, label in rows]
        assert pairs(file.getvalue().encode(), format) == expected


def test_csv_unknown_field():
    see = r" \(see --text-field, --label-field, --read delimiter=…; --read columns=… where there is no header\)$"
    for header in "a, label", "text;label":
        with pytest.raises(StreamError, match=f"^the header has no field 'text'; its fields: {header}{see}"):
            examples(header.encode() + b"\n", "csv")
    assert pairs(b"text,a\n1,2\n", "csv", unlabelled=True) == [("1", None)]


def test_messages_hold_no_control_characters():
    with pytest.raises(StreamError, match=r"its fields: a, \\x1b\[31mb \("):
        examples(b"a,\x1b[31mb\n", "csv")


def test_csv_field_that_stands_twice():
    with pytest.raises(StreamError, match="twice the field 'text'"):
        examples(b"text,label,text\n1,2,3\n", "csv")
    assert pairs(b"text,a,label,a\n1,2,3,4\n", "csv") == [("1", 3)]


def test_csv_field_beyond_the_usual_limit():
    text = "x" * 200_000
    assert pairs(f"text,label\n{text},1\n".encode(), "csv") == [(text, 1)]


@given(
    st.lists(st.tuples(*[st.text(st.characters(exclude_categories=["Cs"]), min_size=1)] * 3)),
    st.sampled_from(";|,\t\x01 é"),
    st.booleans(),
)
def test_other_delimiters_and_columns_without_a_header(rows, delimiter, has_header):
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter)
    names = ["_", "text", "_"]
    writer.writerows([names] * has_header + rows)
    options = {"delimiter": delimiter, "unlabelled": True} | ({} if has_header else {"columns": names})
    assert pairs(file.getvalue().encode(), "csv", **options) == [(text, None) for _, text, _ in rows]


def test_columns_that_have_a_field_twice():
    with pytest.raises(StreamError, match="has twice the field 'text'"):
        examples(b"x\n", "csv", columns=["text", "text", "label"])


def test_csv_header_alone_or_nothing():
    assert pairs(b"", "csv") == []
    assert pairs(b"text,label\n", "csv") == []


def test_csv_records_that_are_too_long(monkeypatch):
    monkeypatch.setattr(csv_tsv, "LONGEST_LINE", 100)
    short = '"' + "x\n" * 40 + '",1\n'
    found, bad = examples(f"text,label\n{short}{short}a,1\n".encode(), "csv")
    assert [example.line for example in found] == [2, 43, 84]
    assert bad == []
    # Each field is short; the record never ends.
    found, bad = examples(b"text,label\n" + b'"x\n",' * 1000, "csv")
    assert found == []
    assert bad[0] == (2, "the record is longer than 256 MB")


@pytest.mark.parametrize("texts", [["a", "", "b"], ["a", " ", "\u3000", "b\n", "\n"]])
def test_a_column_alone_has_as_many_texts_as_pandas_finds(texts):
    """A field in quotes is a text though it is empty; a line of spaces is no record."""
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text"], *([text] for text in texts)])
    data = file.getvalue() + "\n \t\n\u3000\n"
    expected = pandas.read_csv(io.StringIO(data), keep_default_na=False)["text"].tolist()
    assert [x for x, _ in pairs(data.encode(), "csv", unlabelled=True)] == expected == [*texts, "\u3000"]
