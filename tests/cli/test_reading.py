"""What a stream holds, in each format and with each option, for all that read it: `read`, live sources, the command."""

import functools
import gzip
import io
import json
import sys
from typing import Any, NamedTuple

import pyarrow
import pytest
from faulty_lines import BAD_JSON, BAD_SVMLIGHT, BAD_VW, WRONG_JSON, WRONG_SVMLIGHT, WRONG_VW
from pyarrow import parquet
from reading import examples, rest

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, TextClassifier, TextFeatures
from stream_pegasos.streams import Example, LabelFormat, ReadOptions


class Row(NamedTuple):
    """Bytes and what is in them: examples as x, y, line, id and w; bad lines with the beginning of the reason and, if
    it can be read, the id; blank lines; x, line, id and the beginning of the reason where the label alone is wrong.
    """

    format: str
    data: bytes
    good: list[tuple[Any, ...]]
    bad: list[tuple[Any, ...]] = []  # noqa: RUF012
    options: dict[str, Any] = {}  # noqa: RUF012
    blank: int = 0
    has_lines: bool = True  # whether a record is a line, so that the stream can be followed
    wrong: list[tuple[Any, ...]] = []  # noqa: RUF012

    @property
    def examples(self):
        return [Example(x, y, *(w or [1.0]), line, id) for x, y, line, id, *w in self.good]


PARQUET = io.BytesIO()
OBJECTS = [{"b": "one", "y": ["p", "q"]}, {"b": None, "y": []}, None, {"b": "two", "y": None}]
parquet.write_table(pyarrow.table({"a": OBJECTS, "id": [7, 8, 9, 10]}), PARQUET)


def lines(*given):
    return b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in given)


def bad_ones(format, good, x, faults, wrong):
    """Each bad line by itself costs no other, and a wrong label not even its message."""
    ends = [good, *wrong, *faults, good]
    labels = [(x, line, None, reason) for line, reason in enumerate(wrong.values(), 2)]
    bad = [*enumerate(faults.values(), 2 + len(wrong))]
    return Row(format, lines(*ends), [(x, 1, 1, None), (x, 1, len(ends), None)], bad, wrong=labels)


ROWS = {
    "jsonl": Row(
        "jsonl",
        b'\xef\xbb\xbf{"text": "a", "label": "spam", "id": 7}\n\n  \t\n{"label": 1, "text": "b"}\r\n'
        b'{"text": "", "label": true}\n{"text": "c", "label": "-1"}\n{"text": "d", "label": 2.0, "id": "x"}\nno\n'
        b'{"text": "e", "label": null, "id": 1.5}\n{"text": "f", "label": ""}\n{"text": "g"}',
        [
            *[("a", "spam", 1, 7), ("b", 1, 4, None), ("", True, 5, None), ("c", -1, 6, None), ("d", 2, 7, "x")],
            *[("e", None, 9, None), ("f", None, 10, None), ("g", None, 11, None)],
        ],
        [(8, "not JSON")],
        blank=2,
    ),
    "bad lines of jsonl": bad_ones("jsonl", '{"text": "good", "label": 1}', "good", BAD_JSON, WRONG_JSON),
    "an id of a bad line": Row(
        "jsonl",
        b'{"text": "a"}\n{"id": 7}\n{"text": "b", "label": [[]], "id": "x"}\n',
        [("a", None, 1, None)],
        [(2, "no field 'text'; its fields: id", 7)],
        wrong=[("b", 3, "x", "field 'label': a label must be a bool, an int or a str, got ")],
    ),
    "other names": Row(
        "jsonl",
        b'{"text": "no", "label": 0, "body": "yes", "class": "x", "id": 1, "number": 2}\n',
        [("yes", "x", 1, 2)],
        options={"text_field": "body", "label_field": "class", "id_field": "number"},
    ),
    "lone surrogates": Row(
        "jsonl",
        b'{"text": "a\\ud83d b", "label": 1}\n{"text": "a\\uDC00", "label": 1}\n',
        [("a\ud83d b", 1, 1, None), ("a\udc00", 1, 2, None)],
    ),
    "lists of labels": Row(
        "jsonl",
        b'{"text": "a", "label": ["oil", "7", 7.0, true, "oil"]}\n{"text": "a", "label": []}\n'
        b'{"text": "a", "label": "oil"}\n',
        [("a", ("oil", 7, True), 1, None), ("a", (), 2, None), ("a", ("oil",), 3, None)],
        options={"labels": LabelFormat(several=True)},
    ),
    "fields of objects": Row(
        "jsonl",
        b'{"a": {"b": {"c": "one"}, "b.c": "two"}, "id": 1}\n{"a": {"b": {"c": "one"}}}\n{"a": {"b": 1}}\n'
        b'{"a": "x"}\n{"a.b.c": "three", "a": 1}\n{"a": {"b": {"c": null}}}\n',
        [("two", 1, 1, None), ("one", None, 2, None), ("three", None, 5, None)],
        [
            *[(3, "no field 'a.b.c'; its fields: a"), (4, "no field 'a.b.c'; its fields: a")],
            (6, "field 'a.b.c' must be a string, got null"),
        ],
        {"text_field": "a.b.c", "label_field": "id", "id_field": "number"},
    ),
    "messages of fields": Row(
        "jsonl",
        b'{"subject": "a", "size": "7", "label": 1}\n{"size": "8"}\n{"queue": 1}\n',
        [({"subject": "a", "size": "7"}, 1, 1, None), ({"size": "8"}, None, 2, None)],
        [(3, "no field 'subject' or 'size'; its fields: queue")],
        {"fields": ["subject", "size"]},
    ),
    "an array": Row(
        "jsonl",
        b'\n[\n  {"text": "a", "label": 1},\n  {"text": oops}, {"id": 7,\n   "label": 1},\n  , 3,\n'
        b'  {"text": "b",\n   "label": 2},\n]\n',
        [("a", 1, 3, None), ("b", 2, 7, None)],
        [
            *[(4, "element 2: not JSON"), (4, "element 3: no field 'text'; its fields: id, label", 7)],
            *[(6, "element 4: there is none"), (6, "element 5: it must be a JSON object, got a number")],
            (9, "element 7: there is none"),
        ],
        has_lines=False,
    ),
    "a compressed array": Row(
        "jsonl",
        gzip.compress('[{"a": {"b": "£5"}}]'.encode("latin-1")),
        [("£5", None, 1, None)],
        options={"text_field": "a.b"},
        has_lines=False,
    ),
    "csv": Row(
        "csv",
        b'\xef\xbb\xbfid,text,label,more\r\na,"two\r\nlines, ""quoted""",ham\r\n\r\nb,one,spam,x\r\n'
        b'd,"x\n\n",1\r\ne,short\r\nf\r\ng,a,x,1,2\r\nh,a,,1\r\n"i"b,a,x\r\nj,a\x00,0\r\nk,"open,x\r\nl,a,x',
        [
            *[('two\r\nlines, "quoted"', "ham", 2, "a"), ("one", "spam", 5, "b"), ("x\n\n", 1, 6, "d")],
            *[("short", None, 9, "e"), ("a", None, 12, "h"), ("a\x00", 0, 14, "j")],
            ("a", "x", 16, "l"),
        ],
        [
            *[(10, "no field 'text'"), (11, "5 fields under a header of 4")],
            *[(13, "not CSV (',' expected after '\"')"), (15, "not CSV (the quote is never closed)")],
        ],
        blank=1,
    ),
    "columns without a header": Row(
        "csv",
        b"\xef\xbb\xbfspam;1;win\nham;2\nham;3;a;b\n;4;c\n",
        [("win", "spam", 1, "1"), ("c", None, 4, "4")],
        [(2, "no field 'text'"), (3, "4 fields where there are columns for 3")],
        {"delimiter": ";", "columns": ["label", "id", "text"]},
    ),
    "tsv of fields": Row(
        "tsv",
        b'sender\tlabel\tsubject\nx\tham\ta\n\tspam\tb\n"q"r\t1\tc\n\n \r\n',
        [({"subject": "a", "sender": "x"}, "ham", 2, None), ({"subject": "b", "sender": ""}, "spam", 3, None)],
        [(4, r"""not TSV ('\t' expected after '"')""")],
        {"fields": ["subject", "sender", "body"]},
        blank=2,
    ),
    "labelled text": Row(
        "labelled-text",
        "ham\thi\tyou\r\n\n+1\t\nspam\t ünï\u2028x \nno label\n\tnone either\nham\tone".encode(),
        [
            *[("hi\tyou", "ham", 1, None), ("", 1, 3, None), (" ünï\u2028x ", "spam", 4, None)],
            *[("no label", None, 5, None), ("none either", None, 6, None), ("one", "ham", 7, None)],
        ],
        blank=1,
    ),
    "fasttext": Row(
        "fasttext",
        b"__label__spam win now\n__label__1\t x__label__y\n __label__0\nno label\n__label__ b\nc __label__a\n\r\n \n",
        [
            *[("win now", "spam", 1, None), ("x__label__y", 1, 2, None), ("", 0, 3, None)],
            *[("no label", None, 4, None), ("b", None, 5, None)],
        ],
        [(6, "a label after the text")],
        blank=2,
    ),
    "fasttext of several labels": Row(
        "fasttext",
        b"__label__b __label__1 __label__b win\n__label__a now\nnone\n__label__a,c  __label__b x\n",
        [
            ("win", ("b", 1), 1, None),
            ("now", ("a",), 2, None),
            ("none", None, 3, None),
            ("x", ("a", "c", "b"), 4, None),
        ],
        options={"labels": LabelFormat(",")},
    ),
    "text": Row(
        "text",
        b"win\n\n \nsee\r\n\xa35",
        [
            ("win", None, 1, None),
            ("", None, 2, None),
            (" ", None, 3, None),
            ("see", None, 4, None),
            ("£5", None, 5, None),
        ],
    ),
    "vw": Row(
        "vw",
        "1 |f a b:2 c:.5\r\n-1 2.5 'tag |a x |b:3 x y:2\n+1 0 tag| x\n1.0 | x x y:1 y:2\nspam |\tx\t y\nhalf |\n| x\n"
        "'id | x\n1|x y\n1 |:2 x |y z\n0 |f a|g b\n1 |f é\u00a0:1 \u2028\nnull |x :0.5 a :2".encode(),
        [
            ({"f^a": 1.0, "f^b": 2.0, "f^c": 0.5}, 1, 1, None),
            ({"a^x": 1.0, "b^x": 3.0, "b^y": 6.0}, -1, 2, "tag", 2.5),
            ({"x": 1.0}, 1, 3, "tag", 0.0),
            ({"x": 2.0, "y": 3.0}, 1, 4, None),
            ({"x": 1.0, "y": 1.0}, "spam", 5, None),
            ({}, "half", 6, None),
            ({"x": 1.0}, None, 7, None),
            ({"x": 1.0}, None, 8, "id"),
            ({"x^y": 1.0}, None, 9, "1"),
            ({"x": 2.0, "y^z": 1.0}, 1, 10, None),
            ({"f^a": 1.0, "g^b": 1.0}, 0, 11, None),
            ({"f^é\u00a0": 1.0, "f^\u2028": 1.0}, 1, 12, None),
            ({"x^0": 0.5, "x^a": 1.0, "x^1": 2.0}, None, 13, None),
        ],
    ),
    "several labels of vw": Row(
        "vw",
        b"1,2 | x\n 2.0,oil,2 3 'tag | x\n7 2 .5 't | x\n  7 2 -1e3 t| x\nnull | x\n",
        [
            *[({"x": 1.0}, (1, 2), 1, None), ({"x": 1.0}, (2, "oil"), 2, "tag", 3.0), ({"x": 1.0}, (7,), 3, "t", 2.0)],
            *[({"x": 1.0}, (7,), 4, "t", 2.0), ({"x": 1.0}, None, 5, None)],
        ],
        options={"labels": LabelFormat(several=True)},
    ),
    "labels of vw with a separator": Row(
        "vw",
        b"1;a,b | x\n3 | x\n",
        [({"x": 1.0}, (1, "a,b"), 1, None), ({"x": 1.0}, (3,), 2, None)],
        options={"labels": LabelFormat(";")},
    ),
    "bad lines of vw": bad_ones("vw", "1 | x", {"x": 1.0}, BAD_VW, WRONG_VW),
    "a namespace of vw": Row(
        "vw",
        b"1 'tag |subject win a prize |n:2 amount:3.5 |subject now\n0 |other x:1\n",
        [("win a prize now", 1, 1, "tag")],
        [(2, "no namespace 'subject'; it has other, other.x")],
        {"text_field": "subject"},
    ),
    "namespaces of vw": Row(
        "vw",
        b"1 'tag |subject win a prize |n:2 amount:3.5 count |body see |subject now\n0 |body noon\n0 |other x:1\n\n",
        [
            ({"subject": "win a prize now", "body": "see", "n.amount": "3.5", "n": "amount count"}, 1, 1, "tag"),
            ({"body": "noon"}, 0, 2, None),
        ],
        [(3, "no namespace 'subject' or 'body' or 'n.amount' or 'n'; it has other, other.x")],
        {"fields": ["subject", "body", "n.amount", "n"]},
        blank=1,
    ),
    "svmlight": Row(
        "svmlight",
        b"1.0 3:1 1:-.5\n\n  # note\n0\n2:7 # unlabelled\n1,2 1:1\n",
        [
            *[({3: 1.0, 1: -0.5}, 1, 1, None), ({}, 0, 4, None), ({2: 7.0}, None, 5, None)],
            ({1: 1.0}, (1, 2), 6, None),
        ],
        blank=2,
    ),
    "bad lines of svmlight": bad_ones("svmlight", "1 1:1", {1: 1.0}, BAD_SVMLIGHT, WRONG_SVMLIGHT),
    "Windows-1252": Row(
        "jsonl", '{"text": "£5"}\n{"text": "five"}\n'.encode("cp1252"), [("£5", None, 1, None), ("five", None, 2, None)]
    ),
    "another encoding": Row(
        "labelled-text",
        b"x\ta\nx\t\xff\nx\t\xb0\xa1\n",
        [("a", "x", 1, None), ("啊", "x", 3, None)],
        [(2, "not gb18030 (byte 0xff at column 3)")],
        {"encoding": "gb18030"},
    ),
    "parquet": Row(
        "parquet",
        PARQUET.getvalue(),
        [("one", ("p", "q"), 1, 7), ("two", None, 4, 10)],
        [(2, "field 'a.b' must be a string, got null", 8), (3, "no field 'a.b'; its fields: a, id", 9)],
        {"text_field": "a.b", "label_field": "a.y"},
        has_lines=False,
    ),
    "mail": Row(
        "mail",
        b"From a@b.c Mon Nov 23 10:00:00 2026\nMessage-ID: <1@b.c>\nX-Spam: ham\nSubject: a\n\n\xff\n",
        [("Message-ID: <1@b.c>\nSubject: a\n\nÿ\n", "ham", 1, "1@b.c")],
        options={"label_field": "X-Spam"},
        has_lines=False,
    ),
    "strict UTF-8": Row(
        "labelled-text",
        b"x\ta\nx\t\xc3\n",
        [("a", "x", 1, None)],
        [(2, "not UTF-8 (byte 0xc3 at column 3)")],
        {"encoding_errors": "strict"},
    ),
    "UTF-16": Row(
        "csv",
        'id;text\n1;"win ü"\n'.encode("utf-16"),
        [("win ü", None, 2, "1")],
        options={"delimiter": ";"},
        has_lines=False,
    ),
}


@pytest.fixture(params=ROWS)
def row(request):
    return ROWS[request.param]


def check(row, found, bad):
    wrong = [each for each in found if each.label_fault is not None]
    for each, (*expected, reason) in zip(wrong, row.wrong, strict=True):
        assert [each.x, each.line, each.id] == expected and each.y is None and each.label_fault.startswith(reason)
    good = [each for each in found if each.label_fault is None]
    assert [*map(repr, good)] == [*map(repr, row.examples)]  # which tells 1, 1.0 and True apart
    assert [line for line, _ in bad] == [line for line, *_ in row.bad]
    for (_, reason), (_, expected, *_) in zip(bad, row.bad, strict=True):
        assert reason.startswith(expected) and "\n" not in reason


def test_read(row):
    blank = []
    count = functools.partial(blank.append, 1)
    check(row, *examples(row.data, row.format, unlabelled=True, on_blank_line=count, **row.options))
    assert len(blank) == row.blank
    found, bad = examples(row.data, row.format, unlabelled=True, unreadable=True, **row.options)
    assert [(each.line, each.fault) for each in found if each.fault is not None] == bad
    check(row, [each for each in found if each.fault is None], bad)
    for each, (_, _, *id) in zip([each for each in found if each.fault is not None], row.bad, strict=True):
        assert not id or [each.id] == id


def test_read_what_is_labelled(row):
    """A message without a label, or with a wrong one, is a bad line then."""
    labelled = [each for each in row.examples if each.y is not None]
    if labelled:
        found, bad = examples(row.data, row.format, **row.options)
        assert found == labelled
        others = [each.line for each in row.examples if each.y is None] + [line for _, line, *_ in row.wrong]
        assert sorted(line for line, _ in bad) == sorted([line for line, *_ in row.bad] + others)


@pytest.mark.parametrize("address", ["mail.log", "-"])
def test_a_live_source(row, address, tmp_path, monkeypatch):
    """Of a file or standard input."""
    if address == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(row.data), "utf-8"))
    elif not row.has_lines:
        return
    else:
        address = tmp_path / address
        address.write_bytes(row.data)
    blank = []
    count = functools.partial(blank.append, 1)
    batches, bad, events = rest(address, options=ReadOptions(row.format, on_blank_line=count, **row.options))
    assert events == [] and len(blank) == row.blank
    check(row, [each for batch in batches for each in batch.examples], [(int(where[5:]), why) for where, why in bad])


def test_the_command(row, main, here):
    options, labels, fields = dict(row.options), row.options.get("labels"), row.options.get("fields")
    if options.pop("encoding_errors", None):
        return
    if labels is not None and labels.separator:
        options["label_separator"] = labels.separator
    if fields or isinstance(row.examples[0].x, str):
        features = [TextFeatures(on=name) for name in fields or ()]
        model = TextClassifier(sum(features[1:], features[0]) if features else None)
        model = model if labels is None else TextClassifier(classifier=MultiLabelClassifier())
    else:
        model = AdaptiveClassifier() if labels is None else MultiLabelClassifier()
    model.save("m")
    (here / "mail.log").write_bytes(row.data)
    options = {name: value for name, value in options.items() if name not in ("labels", "fields")}
    words = [
        f"--read-option={name}={value if isinstance(value, str) else ','.join(value)}"
        if name in ("encoding", "delimiter", "columns")
        else f"--{name.replace('_', '-')}={value}"
        for name, value in options.items()
    ]
    code, out, err = main(f"predict m mail.log --format {row.format} --output-format jsonl", *words)
    answers = [json.loads(line) for line in out.splitlines()]
    records = [(each.line, None, each.id) for each in row.examples] + [(*bad, None)[:3] for bad in row.bad]
    records += [(line, None, id) for _, line, id, _ in row.wrong]
    assert code == 0 and len(answers) == len(records)
    for answer, (_, fault, id) in zip(answers, sorted(records, key=lambda record: record[0]), strict=True):
        assert (answer["error"] or "").startswith(fault or "") and (answer["error"] is None) == (fault is None)
        assert id is None or answer["id"] == id
    lines, it = ("line was", "it") if row.blank == 1 else ("lines were", "them")
    assert (f"{row.blank} {lines} blank, and there is no answer for {it}\n" if row.blank else "") in err
    assert ("blank" in err) == (row.blank > 0)
