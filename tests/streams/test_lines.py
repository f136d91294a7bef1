import gzip
import io
import os
import threading
import tracemalloc

import pytest
from reading import bad_lines, examples, pairs

from stream_pegasos.streams import StreamError, csv_tsv, lines, read

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


def test_a_line_without_end_takes_no_memory(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 1 << 20)
    bomb = gzip.compress(bytes(64 << 20))
    tracemalloc.start()
    assert bad_lines(bomb, "jsonl") == [(1, "the line is longer than 256 MB")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20
