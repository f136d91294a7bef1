import gzip
import io
import os

import pytest
from reading import ONE, examples

from stream_pegasos.streams import csv_tsv, lines, read


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_each_example_comes_as_soon_as_its_line(compress):
    """Also where each is a member by itself."""
    out, into = os.pipe()
    with open(out, "rb") as reader, open(into, "wb", buffering=0) as writer:
        stream = read(reader, format="labelled-text")
        for i in range(3):
            writer.write(compress(b"x\t%d\n" % i))
            assert next(stream).x == str(i)


@pytest.mark.parametrize("megabytes", [10, pytest.param(100, marks=pytest.mark.heavy)])
def test_a_line_of_many_megabytes(megabytes):
    text = "word " * (megabytes * 200_000)
    data = b'{"label": 1, "text": "' + text.encode() + b'"}\n' + ONE["jsonl"]
    stream = read(io.BytesIO(data), format="jsonl")
    assert next(stream).x == text
    assert next(stream).x == "z"


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize(("format", "data"), ONE.items(), ids=ONE)
def test_lines_that_are_too_long(monkeypatch, compress, format, data):
    for module in (lines, csv_tsv):
        monkeypatch.setattr(module, "LONGEST_LINE", 100)
    last = data.splitlines(True)[-1]
    long = last.replace(b"z", b"z" * 200)
    n = data.count(b"\n")
    at_most = last.rstrip(b"\n").ljust(99) + b"\n"
    for end in (b"", long.rstrip(b"\n"), long + last):
        found, bad = examples(compress(data + long + last + at_most + end), format)
        assert [example.line for example in found] == [n, n + 2, n + 3] + [n + 5] * end.endswith(b"\n")
        assert [line for line, _ in bad] == [n + 1] + [n + 4] * bool(end)
        assert {reason.split(" is ")[1] for _, reason in bad} == {"longer than 256 MB"}
