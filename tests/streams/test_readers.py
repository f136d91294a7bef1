import gzip
import io
import json
import math

import pyarrow
import pytest
from pyarrow import parquet
from reading import ONE, bad_lines, examples, pairs
from sklearn.datasets import load_svmlight_file

from stream_pegasos.streams import StreamError, format_of, open_source, read

FORMATS = {
    "jsonl": "a.jsonl a.ndjson.gz a.json.xz",
    "csv": "a.csv a.csv.bz2",
    "tsv": "dir.csv/A.TSV.GZ",
    "labelled-text": "a.txt",
    "fasttext": "a.ft a.fasttext",
    "vw": "a.vw.zst a.vw.gz",
    "svmlight": "a.svmlight a.svm a.libsvm",
    "parquet": "a.parquet",
}


@pytest.mark.parametrize(("format", "names"), FORMATS.items(), ids=FORMATS)
def test_format_of(format, names):
    assert {format_of(name) for name in names.split()} == {format}


@pytest.mark.parametrize("name", ["a", "a.gz", "a.gz.parquet.old", "jsonl", ""])
def test_unknown_extension(name):
    with pytest.raises(StreamError, match="one of jsonl, csv"):
        format_of(name)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"format": "xml"}, "format must be one of jsonl, csv"),
        ({"text_field": "a", "label_field": "a"}, "text and label are the same field, 'a'"),
        ({"fields": ["subject", "label"]}, "text and label are the same field, 'label'"),
        ({"format": "labelled-text", "fields": ["subject"]}, "labelled-text has no fields, but subject are asked for"),
        ({"format": "mail", "fields": ["subject"]}, "a message of mail has no fields"),
        ({"format": "csv", "columns": ["a", "label"]}, "the list of columns has no field 'text': a, label"),
        ({"format": "csv", "delimiter": ""}, "must be one character"),
        ({"format": "csv", "delimiter": ";;"}, "must be one character"),
        ({"format": "csv", "delimiter": '"'}, "must be one character"),
        ({"delimiter": ";"}, "are for csv and tsv, not for jsonl"),
        ({"format": "text", "columns": ["text"]}, "are for csv and tsv, not for text"),
        ({"encoding_errors": "ignore"}, "must be one of windows-1252, strict"),
        *(({"encoding": name}, "unknown encoding") for name in ("nonsense", "rot13", "hex", "a\0b", "", "ünï")),
    ],
)
def test_options_that_cannot_be(options, reason):
    """At the call, before anything is read, for a live source as for a file."""
    for call in (lambda **given: read(io.BytesIO(), **given), lambda **given: open_source("none.jsonl", **given)):
        with pytest.raises(StreamError, match=reason):
            call(**{"format": "jsonl", **options})


def test_without_a_callback_a_bad_line_raises():
    stream = read(io.BytesIO(b'{"text": "a", "label": 1}\noops\n'), format="jsonl")
    assert next(stream).x == "a"
    with pytest.raises(StreamError, match="line 2: not JSON"):
        next(stream)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read(tmp_path / "none.jsonl"))
    with pytest.raises(IsADirectoryError):
        list(read(tmp_path, format="jsonl"))


@pytest.mark.parametrize(("format", "data"), ONE.items(), ids=ONE)
def test_marks_and_line_ends(format, data):
    expected = pairs(data, format)
    assert len(expected) == 1
    assert pairs(b"\xef\xbb\xbf" + data, format) == expected
    assert pairs(data.replace(b"\n", b"\r\n"), format) == expected
    assert pairs(data.rstrip(b"\n"), format) == expected
    assert pairs(data + b"\n\r\n \n", format) == expected
    assert bad_lines(data.replace(b"z", b"\xff").replace(b"1:1", b"\xff:1"), format, encoding_errors="strict")
    assert pairs(b"", format) == []
    # Files that were put together, and lines that end in CR alone.
    assert pairs((b"\xef\xbb\xbf" + data) * 3, format) == pairs(gzip.compress(b"\xef\xbb\xbf" + data) * 3, format)
    assert pairs((b"\xef\xbb\xbf" + data) * 3, format) == expected * 3
    assert pairs(data.replace(b"\n", b"\r") * 3, format) == expected * 3
    end = b"\xff\x00\xfe\n" + data.splitlines(True)[-1]
    found, bad = examples(data + end, format, encoding_errors="strict")
    assert (len(found), len(bad)) == (2, 1)


# real streams


@pytest.mark.parametrize(
    ("name", "n", "labels"),
    [("sms_spam.jsonl.gz", 5_574, {"ham", "spam"}), ("enron_1to3.jsonl.gz", 16_541, {"ham", "spam"})],
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
    ("format", "data"),
    [
        ("jsonl", b'{"text": "a", "label": 1, "id": "%s"}'),
        ("csv", b'text,label,id\na,1,"%s"'),
        ("tsv", b"text\tlabel\tid\na\t1\t%s"),
        ("vw", b"1 '%s |x a"),
        ("mail", b"From: a\nMessage-ID: %s\nlabel: 1\n\na"),
    ],
)
def test_an_id_that_is_blank_is_none(format, data):
    for written, id in ((b"m1", "m1"), (b"", None), (b" " * (format != "vw"), None)):
        assert [example.id for example in read(io.BytesIO(data % written), format=format)] == [id]


NO_LABEL = [
    ("jsonl", b'{"text": "a"}', "no field 'label'; its fields: text"),
    ("jsonl", b'{"text": "a", "label": null}', "no label in the field 'label'"),
    ("jsonl", b'{"text": "a", "label": ""}', "no label in the field 'label'"),
    ("csv", b"label,text\n,a", "no label in the field 'label'"),
    ("csv", b"text,label\na", "no field 'label'"),
    ("labelled-text", b"a", "no label and tab before the text"),
    ("labelled-text", b"__label__x a", "no label and tab before the text, but __label__; see --format fasttext"),
    ("fasttext", b"a", "no __label__ before the text"),
    ("vw", b"null | a", "no label"),
    ("svmlight", b"1:1", "no label"),
]


@pytest.mark.parametrize(("format", "data", "reason"), NO_LABEL)
def test_a_label_that_is_missing(format, data, reason):
    assert [why for _, why in examples(data, format)[1]] == [reason]
    [example], bad = examples(data, format, unlabelled=True)
    assert example.y is None and bad == []


LONG = "x" * 201
TOO_LONG = {
    "jsonl": json.dumps({"text": "a", "label": LONG, "id": "7"}),
    "csv": f"text,label,id\na,{LONG},7\n",
    "tsv": f"id\ttext\tlabel\tmore\n7\ta\t{LONG}\n",
    "labelled-text": f"{LONG}\ta",
    "fasttext": f"__label__ok __label__{LONG} a",
    "vw": f"{LONG} '7 |text a",
    "svmlight": f"{LONG} 1:1",
    "mail": f"Message-ID: 7\nlabel: {LONG}\n\na\n",
}


@pytest.mark.parametrize("format", TOO_LONG)
def test_a_label_that_cannot_be_read_costs_its_message_only_where_that_needs_one(format):
    data, id = TOO_LONG[format].encode(), "7" if "7" in TOO_LONG[format] else None
    reason = "a label must have at most 200 characters, got 201"
    found, bad = examples(data, format)
    assert found == [] and [why for _, why in bad] == [reason]
    [good], bad = examples(data.replace(LONG.encode(), b"ok"), format)
    [example], none = examples(data, format, unlabelled=True)
    assert example == good._replace(y=None, label_fault=reason) and example.id == id and bad == none == []


def test_where_no_labels_are_read_their_field_is_one_like_any_other():
    record = {"text": "a", "label": "b"}
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([record]), file)
    for format, data in (
        ("jsonl", json.dumps(record).encode()),
        ("csv", b"text,label\na,b"),
        ("parquet", file.getvalue()),
        ("mail", b"label: b\n\na"),
    ):
        given = {"text_field": "label"} if format != "mail" else {}
        [(x, y)] = pairs(data, format, label_field=None, unlabelled=True, **given)
        assert (x, y) == ("b" if given else "label: b\n\na", None)
        with pytest.raises(StreamError, match="no field has the label"):
            pairs(data, format, label_field=None)


@pytest.mark.parametrize("label", ["b", "9" * 201])
def test_where_no_labels_are_read_there_is_none_and_nothing_wrong_with_one(label):
    for format, line, x in (
        ("labelled-text", f"{label}\ta", "a"),
        ("fasttext", f"__label__{label} a", "a"),
        ("vw", f"{label} | a", {"a": 1.0}),
        ("svmlight", f"{label} 1:2", {1: 2.0}),
    ):
        [example], bad = examples(line.encode(), format, label_field=None, unlabelled=True)
        assert (example.x, example.y, example.label_fault, bad) == (x, None, None, [])


@pytest.mark.parametrize(
    "data", [b"", b"\xef\xbb\xbf", b"\xff\xfe", gzip.compress(b"")], ids=["nothing", "bom", "utf-16", "gzip"]
)
@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "labelled-text", "fasttext", "vw", "svmlight", "text"])
def test_where_there_is_nothing_there_is_no_message(format, data, tmp_path):
    """Also where an empty line is an empty text."""
    blank = []
    assert not [*read(io.BytesIO(data), format=format, unlabelled=True, on_blank_line=lambda: blank.append(1))]
    assert not blank
