import csv
import gzip
import io
import json
import math
import os
import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from stream_pegasos.streams import Example, StreamError, format_of, label_of, read, readers


def examples(data, format, **options):
    """The examples in some bytes, and the bad lines."""
    bad = []
    source = io.BytesIO(data)
    found = list(read(source, format=format, on_bad_line=lambda *at: bad.append(at), **options))
    assert not source.closed
    return found, bad


def pairs(data, format, **options):
    """What the good lines hold; there must be no bad one."""
    found, bad = examples(data, format, **options)
    assert bad == []
    return [(example.x, example.y) for example in found]


def bad_lines(data, format, **options):
    return examples(data, format, **options)[1]


# labels and formats


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("0", 0),
        (" 12\t", 12),
        ("01", "01"),
        ("1.0", "1.0"),
        ("\u0661", "\u0661"),
        ("1_0", "1_0"),
        ("spam", "spam"),
        (" spam ", "spam"),
        ("9" * 5000, "9" * 5000),
        ("", None),
        ("  ", None),
    ],
)
def test_label_of(text, label):
    assert label_of(text) == label
    assert type(label_of(text)) is type(label)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.jsonl", "jsonl"),
        ("a.ndjson.gz", "jsonl"),
        ("dir.csv/A.TSV.GZ", "tsv"),
        ("a.csv", "csv"),
        ("a.txt", "labelled-text"),
        ("a.ft", "fasttext"),
        ("a.fasttext", "fasttext"),
        ("a.vw.gz", "vw"),
        ("a.svmlight", "svmlight"),
        ("a.svm", "svmlight"),
        ("a.libsvm", "svmlight"),
    ],
)
def test_format_of(name, format):
    assert format_of(name) == format


@pytest.mark.parametrize("name", ["a", "a.gz", "a.parquet", "jsonl", ""])
def test_unknown_extension(name):
    with pytest.raises(StreamError, match="one of jsonl, csv"):
        format_of(name)


def test_unknown_format():
    with pytest.raises(StreamError, match="'xml': choose one of jsonl, csv"):
        read(io.BytesIO(), format="xml")


def test_same_field_twice():
    with pytest.raises(StreamError, match="same field"):
        read(io.BytesIO(), format="jsonl", text_field="a", label_field="a")


# JSON lines


def test_jsonl():
    data = (
        b'{"text": "a", "label": "spam", "id": 7}\n'
        b'\n  \t\n{"label": 1, "text": "b"}\r\n'
        b'{"text": "", "label": true}\n'
        b'{"text": "c", "label": "-1"}\n'
        b'{"text": "d", "label": 2.0}'
    )
    assert examples(data, "jsonl") == (
        [
            Example("a", "spam", 1.0, 1, 7),
            Example("b", 1, 1.0, 4, None),
            Example("", True, 1.0, 5, None),
            Example("c", -1, 1.0, 6, None),
            Example("d", 2, 1.0, 7, None),
        ],
        [],
    )
    assert type(examples(data, "jsonl")[0][2].y) is bool
    assert type(examples(data, "jsonl")[0][4].y) is int


def test_jsonl_fields_are_options():
    data = b'{"text": "no", "label": 0, "body": "yes", "class": "x"}'
    assert pairs(data, "jsonl", text_field="body", label_field="class") == [("yes", "x")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "not JSON"),
        (b'{"text": "a", "label": 1', "not JSON"),
        (b'{"text": NaN, "label": 1}', "not JSON"),
        (b'{"text": "\\ud800", "label": 1, "x": NaN}', "not JSON"),
        (b"[" * 100_000 + b'"\\ud800"', "not JSON"),
        (b"[1]", "not a JSON object but a list"),
        (b"null", "not a JSON object but null"),
        (b'{"label": 1}', "no field 'text'"),
        (b'{"text": null, "label": 1}', "field 'text' is null, not a string"),
        (b'{"text": 5, "label": 1}', "field 'text' is a number, not a string"),
        (b'{"text": "a"}', "no label in the field 'label'"),
        (b'{"text": "a", "label": null}', "no label in the field 'label'"),
        (b'{"text": "a", "label": ""}', "no label in the field 'label'"),
        (b'{"text": "a", "label": 0.5}', "label 0.5 is not an integer"),
        (b'{"text": "a", "label": 1e300}', "label 1e\\+300 is not an integer"),
        (b'{"text": "a", "label": ["x"]}', "field 'label' is a list, not a label"),
        (b'{"text": "a", "label": {}}', "field 'label' is an object, not a label"),
        (b'{"text": "\xff", "label": 1}', "not UTF-8 \\(byte 0xff at column 11\\)"),
        (b'{"text": "\xed\xa0\x80", "label": 1}', "not UTF-8"),
    ],
)
def test_jsonl_bad_lines(line, reason):
    good = b'{"text": "good", "label": "x"}\n'
    found, bad = examples(good + line + b"\n" + good, "jsonl")
    assert [example.line for example in found] == [1, 3]
    ((number, text),) = bad
    assert number == 2
    with pytest.raises(StreamError, match=reason):
        list(read(io.BytesIO(line), format="jsonl"))
    assert "\n" not in text


@given(st.text(), st.one_of(st.booleans(), st.integers(-(10**15), 10**15)))
def test_jsonl_takes_every_text(text, label):
    """Lone surrogates, nulls and line separators of Unicode included."""
    for ascii in (True, False):
        line = json.dumps({"text": text, "label": label}, ensure_ascii=ascii)
        line = line.encode(errors="surrogatepass")
        if ascii or not any("\ud800" <= c <= "\udfff" for c in text):
            assert pairs(line, "jsonl") == [(text, label)]


def test_lone_surrogate():
    assert pairs(b'{"text": "a\\ud83d b", "label": 1}', "jsonl") == [("a\ud83d b", 1)]
    assert pairs(b'{"text": "a\\uDC00", "label": 1}', "jsonl") == [("a\udc00", 1)]


def test_unlabelled():
    data = b'{"text": "a"}\n{"text": "b", "label": "x"}\n'
    assert pairs(data, "jsonl", unlabelled=True) == [("a", None), ("b", "x")]
    assert bad_lines(data, "jsonl") == [(1, "no label in the field 'label'")]


def test_without_a_callback_a_bad_line_raises():
    stream = read(io.BytesIO(b'{"text": "a", "label": 1}\noops\n'), format="jsonl")
    assert next(stream).x == "a"
    with pytest.raises(StreamError, match="line 2: not JSON"):
        next(stream)


# CSV and TSV


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"])),
            st.sampled_from(["ham", "spam", "1"]),
        )
    )
)
def test_csv_and_tsv_read_what_the_csv_module_writes(rows):
    for delimiter, format in ((",", "csv"), ("\t", "tsv")):
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["label", "text"])
        writer.writerows((label, text) for text, label in rows)
        expected = [(text, label_of(label)) for text, label in rows]
        assert pairs(file.getvalue().encode(), format) == expected


def test_csv_line_is_where_the_record_begins():
    data = (
        b"\xef\xbb\xbfid,text,label\r\n"
        b'a,"two\r\nlines, ""quoted""",ham\r\n'
        b"\r\n"
        b"b,one,spam\r\n"
        b"c,\xff,spam\r\n"
        b'd,"x\n\n",1\r\n'
        b"e,last,0"
    )
    assert examples(data, "csv") == (
        [
            Example('two\r\nlines, "quoted"', "ham", 1.0, 2, "a"),
            Example("one", "spam", 1.0, 5, "b"),
            Example("x\n\n", 1, 1.0, 7, "d"),
            Example("last", 0, 1.0, 10, "e"),
        ],
        [(6, "not UTF-8 (byte 0xff at column 3)")],
    )


def test_csv_bad_records():
    data = (
        b"text,label,more\n"
        b"a\n"  # 2
        b"a,x,1,2\n"  # 3
        b"a,x\n"  # 4: good
        b"a,,1\n"  # 5
        b'"a"b,x,1\n'  # 6
        b"a\x00,x,1\n"  # 7: good
        b'"open,x,1\n'  # 8
        b"a,x,1\n"
    )
    found, bad = examples(data, "csv")
    assert [(example.x, example.line) for example in found] == [("a", 4), ("a\x00", 7)]
    assert bad == [
        (2, "no field 'label'"),
        (3, "4 fields under a header of 3"),
        (5, "no label in the field 'label'"),
        (6, "not CSV (',' expected after '\"')"),
        (8, "not CSV (the quote is never closed)"),
    ]


def test_csv_unknown_field():
    with pytest.raises(StreamError, match=r"has no field 'text'; its fields: a, label$"):
        examples(b"a,label\n1,2\n", "csv")
    with pytest.raises(StreamError, match="has no field 'label'"):
        examples(b"text,a\n1,2\n", "csv")
    assert pairs(b"text,a\n1,2\n", "csv", unlabelled=True) == [("1", None)]


def test_messages_hold_no_control_characters():
    with pytest.raises(StreamError, match=r"its fields: a, \\x1b\[31mb$"):
        examples(b"a,\x1b[31mb\n", "csv")
    assert examples(b'text\tlabel\n"a"b\t1\n', "tsv") == ([], [(2, r"""not TSV ('\t' expected after '"')""")])


def test_csv_field_that_stands_twice():
    with pytest.raises(StreamError, match="twice the field 'text'"):
        examples(b"text,label,text\n1,2,3\n", "csv")
    assert pairs(b"text,a,label,a\n1,2,3,4\n", "csv") == [("1", 3)]


def test_csv_field_beyond_the_usual_limit():
    text = "x" * 200_000
    assert pairs(f"text,label\n{text},1\n".encode(), "csv") == [(text, 1)]


def test_csv_header_alone_or_nothing():
    assert pairs(b"", "csv") == []
    assert pairs(b"text,label\n", "csv") == []


# label<TAB>text and fastText


def test_labelled_text():
    data = "ham\thi\tyou\r\n\n+1\t\nspam\t ünï\u2028x \n".encode()
    expected = [("hi\tyou", "ham"), ("", 1), (" ünï\u2028x ", "spam")]
    assert pairs(data, "labelled-text") == expected
    data = b"no label\n\tnone either\nham\tone\n"
    assert pairs(data, "labelled-text", unlabelled=True) == [
        ("no label", None),
        ("none either", None),
        ("one", "ham"),
    ]
    assert [line for line, _ in bad_lines(data, "labelled-text")] == [1, 2]
    assert bad_lines(b"ham\t\xc3\n", "labelled-text") == [(1, "not UTF-8 (byte 0xc3 at column 5)")]


def test_fasttext():
    data = b"__label__spam win now\n__label__1\t x__label__y\n __label__0\nno label\n__label__ b\n"
    found, bad = examples(data, "fasttext")
    assert [(example.x, example.y) for example in found] == [
        ("win now", "spam"),
        ("x__label__y", 1),
        ("", 0),
    ]
    assert [line for line, _ in bad] == [4, 5]
    assert pairs(data, "fasttext", unlabelled=True)[3:] == [("no label", None), ("b", None)]


@pytest.mark.parametrize("line", [b"__label__a __label__b text", b"text __label__a"])
def test_fasttext_takes_one_label_that_stands_first(line):
    ((_, reason),) = bad_lines(line, "fasttext", unlabelled=True)
    assert "label" in reason


# Vowpal Wabbit


@pytest.mark.parametrize(
    ("line", "x", "y", "w", "tag"),
    [
        ("1 |f a b:2 c:.5", {"f^a": 1, "f^b": 2, "f^c": 0.5}, 1, 1, None),
        ("-1 2.5 'tag |a x |b:3 x y:2", {"a^x": 1, "b^x": 3, "b^y": 6}, -1, 2.5, "tag"),
        ("+1 0 tag| x", {"x": 1}, 1, 0, "tag"),
        ("1.0 | x x y:1 y:2", {"x": 2, "y": 3}, 1, 1, None),
        ("spam |\tx\t y", {"x": 1, "y": 1}, "spam", 1, None),
        ("0.5 |", {}, "0.5", 1, None),
        ("| x", {"x": 1}, None, 1, None),
        ("'id | x", {"x": 1}, None, 1, "id"),
        ("1|x y", {"x^y": 1}, None, 1, "1"),
        ("1 |:2 x |y z", {"x": 2, "y^z": 1}, 1, 1, None),
        ("0 |f a|g b", {"f^a": 1, "g^b": 1}, 0, 1, None),
        ("1 |f é\u00a0:1 \u2028", {"f^é\u00a0": 1, "f^\u2028": 1}, 1, 1, None),
    ],
)
def test_vw(line, x, y, w, tag):
    found, bad = examples(line.encode() + b"\r\n", "vw", unlabelled=True)
    assert (found, bad) == ([Example(x, y, w, 1, tag)], [])
    assert type(found[0].y) is type(y)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1", "no |"),
        ("1 |a x:nan", "value of feature 'x' is 'nan'"),
        ("1 |a x:inf", "'inf'"),
        ("1 |a x:1e999", "'1e999'"),
        ("1 |a x:1e308 x:1e308", "infinite"),
        ("1 |a x:", "value of feature 'x' is ''"),
        ("1 |a x:1:2", "'1:2'"),
        ("1 |a x:1_0", "'1_0'"),
        ("1 |a http://x", "'//x'"),
        ("1 |a :3", "no name"),
        ("1 |a:b x", "weight of namespace 'a' is 'b'"),
        ("1 -1 | x", "negative"),
        ("1 nan | x", "weight is 'nan'"),
        ("nan | x", "label is 'nan'"),
        ("1 1 0.5 | x", "more than"),
    ],
)
def test_vw_bad_lines(line, reason):
    ((number, text),) = bad_lines(line.encode(), "vw", unlabelled=True)
    assert number == 1
    assert reason in text


names = st.text(st.characters(exclude_characters=":| \t\r\n", exclude_categories=["Cs"]), min_size=1)
finite = st.floats(-1e30, 1e30)


@given(st.dictionaries(st.tuples(names, names), finite, max_size=5))
def test_vw_round_trip(features):
    sections = "".join(f" |{space} {name}:{value!r}" for (space, name), value in features.items())
    ((x, y),) = pairs(f"1 {sections or '|'}".encode(), "vw")
    assert x == {f"{space}^{name}": value for (space, name), value in features.items()}
    assert y == 1


# svmlight


@given(
    st.lists(
        st.tuples(st.sampled_from([-1, 1]), st.dictionaries(st.integers(1, 1000), finite)),
        min_size=1,
    )
)
def test_svmlight_reads_what_scikit_learn_reads(rows):
    lines = [
        f"{y:+d} qid:{i} " + " ".join(f"{k}:{v!r}" for k, v in sorted(x.items())) + " # note"
        for i, (y, x) in enumerate(rows)
    ]
    data = "\n".join(["# a comment", *lines]).encode()
    matrix, y = load_svmlight_file(io.BytesIO(data), zero_based=True, n_features=1001)
    found = pairs(data, "svmlight")
    assert [label for _, label in found] == y.tolist()
    for (x, _), row in zip(found, matrix.toarray(), strict=True):
        assert [x.get(k, 0.0) for k in range(1001)] == row.tolist()


def test_svmlight():
    data = b"1.0 3:1 1:-.5\n\n  # note\n0\n2:7 # unlabelled\n1,2 1:1\n"
    found, bad = examples(data, "svmlight", unlabelled=True)
    assert [(e.x, e.y, e.line) for e in found] == [
        ({3: 1.0, 1: -0.5}, 1, 1),
        ({}, 0, 4),
        ({2: 7.0}, None, 5),
        ({1: 1.0}, "1,2", 6),
    ]
    assert bad == []
    assert bad_lines(data, "svmlight") == [(5, "no label")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 a:1", "'a:1' is not id:value"),
        ("1 5", "'5' is not id:value"),
        ("1 -5:1", "'-5:1' is not id:value"),
        ("1 1_0:1", "'1_0:1' is not id:value"),
        ("1 1:2:3 4", "'2:3'"),
        ("1 1:2:3", "'2:3'"),
        ("1 1:nan", "'nan'"),
        ("1 1:-inf", "'-inf'"),
        ("1 1:1 1:2", "feature 1 occurs twice"),
        ("1 1:", "''"),
        ("inf 1:1", "label is 'inf'"),
        ("1 1:\xff", "'\xff'"),
    ],
)
def test_svmlight_bad_lines(line, reason):
    ((number, text),) = bad_lines(line.encode(), "svmlight")
    assert number == 1
    assert reason in text


def test_svmlight_huge_finite_values():
    assert pairs(b"1 1:1e308 2:1e308", "svmlight") == [({1: 1e308, 2: 1e308}, 1)]


# bytes: gzip, marks, pipes, size


good = b'{"text": "a", "label": 1}\n'


def test_gzip_is_seen_from_its_bytes(tmp_path):
    path = tmp_path / "stream.jsonl"
    path.write_bytes(gzip.compress(good) + gzip.compress(good))
    assert [example.line for example in read(path)] == [1, 2]
    assert [example.line for example in read(str(path))] == [1, 2]
    path = tmp_path / "plain.jsonl.gz"
    path.write_bytes(good)
    assert len(list(read(path))) == 1
    assert pairs(gzip.compress(b"\xef\xbb\xbf" + good), "jsonl") == [("a", 1)]


def test_truncated_gzip_yields_what_is_there_then_raises():
    data = gzip.compress(b"".join(b'{"text": "%d", "label": 1}\n' % i for i in range(100_000)))
    stream = read(io.BytesIO(data[: len(data) // 2]), format="jsonl")
    n = 0
    with pytest.raises(StreamError, match="truncated"):
        for n, example in enumerate(stream, 1):  # noqa: B007
            pass
    assert n > 10_000
    with pytest.raises(StreamError, match="truncated"):
        list(read(io.BytesIO(data[:5]), format="jsonl"))


def test_damaged_gzip():
    data = bytearray(gzip.compress(good * 1000))
    data[-6] ^= 1
    with pytest.raises(StreamError, match="damaged"):
        list(read(io.BytesIO(data), format="jsonl"))
    with pytest.raises(StreamError, match="damaged"):
        list(read(io.BytesIO(data[:12] + b"\xff" * 50), format="jsonl"))


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read(tmp_path / "none.jsonl"))
    with pytest.raises(IsADirectoryError):
        list(read(tmp_path, format="jsonl"))


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_pipe_that_delivers_byte_by_byte(compress):
    out, into = os.pipe()

    def feed():
        with open(into, "wb", buffering=0) as pipe:
            for byte in compress(good * 2):
                pipe.write(bytes([byte]))

    thread = threading.Thread(target=feed)
    thread.start()
    with open(out, "rb") as pipe:
        assert len(list(read(pipe, format="jsonl"))) == 2
    thread.join()


def test_each_example_comes_as_soon_as_its_line():
    out, into = os.pipe()
    with open(out, "rb") as reader, open(into, "wb", buffering=0) as writer:
        stream = read(reader, format="labelled-text")
        for i in range(3):
            writer.write(b"x\t%d\n" % i)
            assert next(stream).x == str(i)


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("jsonl", good),
        ("csv", b"text,label\na,1\n"),
        ("tsv", b"text\tlabel\na\t1\n"),
        ("labelled-text", b"1\ta\n"),
        ("fasttext", b"__label__1 a\n"),
        ("vw", b"1 | a\n"),
        ("svmlight", b"1 1:1\n"),
    ],
)
def test_marks_and_line_ends(format, data):
    expected = pairs(data, format)
    assert len(expected) == 1
    assert pairs(b"\xef\xbb\xbf" + data, format) == expected
    assert pairs(data.replace(b"\n", b"\r\n"), format) == expected
    assert pairs(data.rstrip(b"\n"), format) == expected
    assert pairs(data + b"\n\r\n \n", format) == expected
    assert bad_lines(data.replace(b"a", b"\xff").replace(b"1:1", b"\xff:1"), format)
    assert pairs(b"", format) == []
    found, bad = examples(data + b"\xff\x00\xfe\n" + data.splitlines(True)[-1], format)
    assert (len(found), len(bad)) == (2, 1)


def test_a_line_of_100_mb():
    text = "word " * 20_000_000
    data = b'{"label": 1, "text": "' + text.encode() + b'"}\n' + good
    stream = read(io.BytesIO(data), format="jsonl")
    assert len(next(stream).x) == 100_000_000
    assert next(stream).x == "a"


LONG = b"x" * 200


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("format", "data", "long"),
    [
        ("jsonl", good, b'{"label": 1, "text": "' + LONG + b'"}\n'),
        ("csv", b"text,label\na,1\n", LONG + b",1\n"),
        ("tsv", b"text\tlabel\na\t1\n", LONG + b"\t1\n"),
        ("labelled-text", b"1\ta\n", b"1\t" + LONG + b"\n"),
        ("fasttext", b"__label__1 a\n", b"__label__1 " + LONG + b"\n"),
        ("vw", b"1 | a\n", b"1 | " + LONG + b"\n"),
        ("svmlight", b"1 1:1\n", b"1 1:1 # " + LONG + b"\n"),
    ],
)
def test_lines_that_are_too_long(monkeypatch, compress, format, data, long):
    monkeypatch.setattr(readers, "LONGEST_LINE", 100)
    last = data.splitlines(True)[-1]
    n = data.count(b"\n")
    at_most = last.rstrip(b"\n").ljust(99) + b"\n"
    for end in (b"", long.rstrip(b"\n"), long + last):
        found, bad = examples(compress(data + long + last + at_most + end), format)
        assert [example.line for example in found] == [n, n + 2, n + 3] + [n + 5] * end.endswith(b"\n")
        assert [line for line, _ in bad] == [n + 1] + [n + 4] * bool(end)
        assert {reason.split(" is ")[1] for _, reason in bad} == {"longer than 256 MB"}


def test_csv_records_that_are_too_long(monkeypatch):
    monkeypatch.setattr(readers, "LONGEST_LINE", 100)
    short = '"' + "x\n" * 40 + '",1\n'
    found, bad = examples(f"text,label\n{short}{short}a,1\n".encode(), "csv")
    assert [example.line for example in found] == [2, 43, 84]
    assert bad == []
    # Each field is short; the record never ends.
    found, bad = examples(b"text,label\n" + b'"x\n",' * 1000, "csv")
    assert found == []
    assert bad[0] == (2, "the record is longer than 256 MB")


def test_a_line_without_end_takes_no_memory(monkeypatch):
    monkeypatch.setattr(readers, "LONGEST_LINE", 1 << 20)
    bomb = gzip.compress(bytes(64 << 20))
    tracemalloc.start()
    assert bad_lines(bomb, "jsonl") == [(1, "the line is longer than 256 MB")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20


# real streams


@pytest.mark.parametrize(
    ("name", "n", "labels"),
    [
        ("sms_spam.jsonl.gz", 5_574, {"ham", "spam"}),
        ("enron_1to3.jsonl.gz", 16_541, {"ham", "spam"}),
        ("rotten_tomatoes_phrases.jsonl.gz", 211_888, {0, 1, 2, 3, 4}),
    ],
)
def test_real_text(data_folder, name, n, labels):
    found = list(read(data_folder / name))
    assert len(found) == n
    assert {example.y for example in found} == labels
    with gzip.open(data_folder / name) as lines:
        assert [example.x for example in found] == [json.loads(line)["text"] for line in lines]


def test_real_svmlight(data_folder):
    path = data_folder / "rcv1_ccat_train.svmlight.gz"
    found = list(read(path))
    matrix, y = load_svmlight_file(str(path), zero_based=True)
    assert [example.y for example in found] == y.tolist()
    for example, row in zip(found, matrix, strict=True):
        assert example.x == dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
    assert math.isclose(sum(v * v for v in found[0].x.values()), 1.0, rel_tol=1e-3)


@pytest.mark.parametrize(
    ("id", "read_as"),
    [
        *[('"a"', "a"), ("7", 7), ("1.5", None), ("true", None), ("null", None), ("[1]", None), ("1e400", None)],
        # Neighbours would be one and the same float.
        *[(str(2**64 - 1), 2**64 - 1), (str(2**70), None), (str(2**70 + 1), None)],
    ],
)
def test_ids_are_strings_and_integers(id, read_as):
    text = "\\ud83d" if id == "1e400" else "win"  # which Python's parser reads, that takes it for infinite
    data = f'{{"id": {id}, "text": "{text}"}}\n'.encode()
    [example] = read(io.BytesIO(data), format="jsonl", unlabelled=True)
    assert example.id == read_as
    assert type(example.id) is type(read_as)
