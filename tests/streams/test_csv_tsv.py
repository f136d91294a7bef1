import csv
import io
import re

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import examples, pairs

from stream_pegasos.streams import ReadOptions, StreamError, csv_tsv, label_of
from stream_pegasos.streams.encoding import TextEncoding


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["ham", "spam", "1"]))))
def test_csv_and_tsv_read_what_the_csv_module_writes(rows):
    for delimiter, format in ((",", "csv"), ("\t", "tsv")):
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["label", "text"])
        writer.writerows((label, text) for text, label in rows)
        expected = [(text, label_of(label)) for text, label in rows]
        assert pairs(file.getvalue().encode(), format) == expected


@given(
    st.lists(st.sampled_from(['"', '""', ",", "\n", "a", " c", '"x"', ',"', '","', "\\", '\\"', "\\\n"])), st.booleans()
)
def test_what_the_csv_module_reads_is_read_line_by_line(parts, has_escapes):
    """Whatever it takes; records without any character but blanks are none."""
    data, escape = "".join(parts), "\\" if has_escapes else None
    try:
        expected = [*csv.reader(io.StringIO(data, newline=""), strict=True, escapechar=escape)]
    except csv.Error:
        return
    found = []
    options = ReadOptions(format="csv", columns=["text"], unlabelled=True, escape=escape)
    reader = csv_tsv.CSVReader(options, TextEncoding())
    reader._parse = found.append
    for line in io.BytesIO(data.encode()):
        assert [*reader.add(line)] or reader.n_open
    assert [row for row in found if "".join(row).strip()] == [row for row in expected if "".join(row).strip()]
    assert not reader.n_open


def test_csv_unknown_field():
    see = r" \(see --text-field, --label-field, --read-option delimiter=…; --read-option columns=… without a header\)$"
    with pytest.raises(StreamError, match=f"^the header has no field 'text'; its fields: a, label{see}"):
        examples(b"a, label\n", "csv")
    assert pairs(b"text,a\n1,2\n", "csv", unlabelled=True) == [("1", None)]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize(
    ("format", "delimiter"), [("csv", ";"), ("csv", "\t"), ("csv", "|"), ("tsv", ","), ("tsv", ";")]
)
def test_another_delimiter_is_named(format, delimiter, quoting):
    """As a spreadsheet writes it where the comma stands in numbers; with the name, the file is read."""
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, quoting=quoting).writerows([("id", "text", "label"), ("1", "a", "b")])
    data, written = file.getvalue().encode(), delimiter.replace("\t", "\\t")
    with pytest.raises(
        StreamError, match=re.escape(f"it looks separated by '{written}': --read-option 'delimiter={written}'")
    ):
        examples(data, format)
    for begin in (b"", f"sep={delimiter}\r\n".encode()):  # as some spreadsheets want it
        assert pairs(begin + data, format, delimiter=delimiter) == [("a", "b")]
    if quoting == csv.QUOTE_MINIMAL:
        assert "it looks separated by" in examples(data, format, columns=["id", "text", "label"])[1][0][1]


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


words = st.text(st.sampled_from('ab ,\n"é'), max_size=6)


@given(
    st.lists(st.tuples(words, words)), st.lists(st.tuples(words, words)), st.sampled_from(['x,"open', '"open', '"a"b"'])
)
def test_a_quote_that_is_never_closed_costs_its_line_alone(before, after, line):
    """What comes before it is read, and what comes after, but for what the quote closes."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL)
    writer.writerows([("text", "label"), *((text, f"l{label.strip()}") for text, label in before)])
    n = file.getvalue().count("\n") + 1
    file.write(line + "\n")
    plain = [("".join(c for c in text if c.isalpha()), "last") for text, _ in after]
    writer.writerows(plain)
    found, bad = examples(file.getvalue().encode(), "csv")
    assert [example.x for example in found] == [text for text, _ in [*before, *plain]]
    assert [line for line, _ in bad] == [n] and bad[0][1].startswith("not CSV (")


def test_quotes_that_stay_open_among_quoted_fields_cost_their_lines():
    rows = [f'{i},"a, ""b""\n{i}",ham\n' if i % 3 else f"{i},a,spam\n" for i in range(300)]
    broken = [f'{i},"a,spam\n' if i % 50 == 10 else row for i, row in enumerate(rows)]
    found, bad = examples(("id,text,label\n" + "".join(broken)).encode(), "csv")
    assert {example.id for example in found} >= {str(i) for i in range(300) if i % 50 not in (10, 11, 12)}
    starts = [sum(row.count("\n") for row in broken[:i]) + 2 for i in range(10, 300, 50)]
    assert {*starts} <= {line for line, _ in bad}


def test_a_quote_that_stays_open_takes_time_by_the_line_alone():
    """Also where each line closes a field and opens one: millions would otherwise be read again for each line."""
    reads = []

    class Counting(csv_tsv.CSVReader):
        def __init__(self, *given):
            super().__init__(*given)
            records = self._records
            self._records = lambda lines: reads.append(len(lines[0])) or records(lines)

    reader = Counting(ReadOptions(format="csv", unlabelled=True), TextEncoding())
    lines = [b"text,a,b\n", b'x,"\n', *[b'","\n', b"a\n", b'""\n'] * 500]
    found = [each for line in lines for each in reader.add(line)]
    assert len(reads) < 4 and reader.n_open and len(found) == 1


@given(st.lists(st.tuples(st.text(st.sampled_from('ab\\",\n\t é;')), st.sampled_from(["ham", "a\\b", 'c"d']))))
def test_backslashes_before_quotes(rows):
    """As the csv module, Spark and MySQL write them."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, escapechar="\\", doublequote=False, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("text", "label"), *rows])
    assert pairs(file.getvalue().encode(), "csv", escape="\\") == rows
    # MySQL puts quotes round nothing where it is not asked to, and a backslash before the end of a line.
    data = "\n".join("\t".join(each.translate(BACKSLASHES) for each in row) for row in [("text", "label"), *rows])
    assert pairs(data.encode() + b"\n", "tsv", escape="\\") == rows


BACKSLASHES = {ord(c): "\\" + c for c in '\\"\t\n'}


def test_null_of_mysql_is_nothing():
    data = b"text\tlabel\tid\na\t\\N\t1\n\\N\t\\\\N\t\\N\n"
    found, bad = examples(data, "tsv", escape="\\", unlabelled=True)
    assert [(x.x, x.y, x.id) for x in found] == [("a", None, "1"), ("", "\\N", None)] and bad == []


@pytest.mark.parametrize("escape", ["", "\\\\", '"', "\n", ","])
def test_an_escape_that_cannot_be(escape):
    with pytest.raises(StreamError, match="the escape must be one character"):
        examples(b"", "csv", escape=escape)


def test_a_header_again_is_no_message():
    """As in `cat a.csv b.csv`; a single column may hold its own name."""
    data = b"\xef\xbb\xbftext,label\r\na,1\r\n"
    assert pairs(data * 3, "csv") == [("a", 1)] * 3
    assert pairs(b"text\na\ntext\n", "csv", unlabelled=True) == [("a", None), ("text", None)]


@pytest.mark.parametrize("texts", [["a", "", "b"], ["a", " ", "\u3000", "b\n", "\n"]])
def test_a_column_alone_has_as_many_texts_as_pandas_finds(texts):
    """A field in quotes is a text though it is empty; a line of spaces is no record."""
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text"], *([text] for text in texts)])
    data = file.getvalue() + "\n \t\n\u3000\n"
    expected = pandas.read_csv(io.StringIO(data), keep_default_na=False)["text"].tolist()
    assert [x for x, _ in pairs(data.encode(), "csv", unlabelled=True)] == expected == [*texts, "\u3000"]
