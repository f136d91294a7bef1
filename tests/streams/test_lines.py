import gzip
import io
import os

import pytest
from reading import examples

from stream_pegasos.streams import csv_tsv, lines, read

good = b'{"text": "a", "label": 1}\n'


def test_each_example_comes_as_soon_as_its_line():
    out, into = os.pipe()
    with open(out, "rb") as reader, open(into, "wb", buffering=0) as writer:
        stream = read(reader, format="labelled-text")
        for i in range(3):
            writer.write(b"x\t%d\n" % i)
            assert next(stream).x == str(i)


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
    for module in (lines, csv_tsv):
        monkeypatch.setattr(module, "LONGEST_LINE", 100)
    last = data.splitlines(True)[-1]
    n = data.count(b"\n")
    at_most = last.rstrip(b"\n").ljust(99) + b"\n"
    for end in (b"", long.rstrip(b"\n"), long + last):
        found, bad = examples(compress(data + long + last + at_most + end), format)
        assert [example.line for example in found] == [n, n + 2, n + 3] + [n + 5] * end.endswith(b"\n")
        assert [line for line, _ in bad] == [n + 1] + [n + 4] * bool(end)
        assert {reason.split(" is ")[1] for _, reason in bad} == {"longer than 256 MB"}
