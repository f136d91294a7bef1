import io
import subprocess
import sys
import tracemalloc

import pytest
from compressions import COMPRESSIONS
from reading import bad_lines, byte_by_byte, pairs

from stream_pegasos.streams import StreamError, lines, read
from stream_pegasos.streams.example import Truncated

good = b'{"text": "a", "label": 1}\n'


@pytest.fixture(params=COMPRESSIONS)
def kind(request):
    return request.param


@pytest.fixture
def compress(kind):
    return COMPRESSIONS[kind]


def test_it_is_seen_from_the_bytes(kind, compress, tmp_path):
    path = tmp_path / "stream.jsonl"
    path.write_bytes(compress(good) + compress(b"") + compress(good))
    assert [example.line for example in read(path)] == [1, 2]
    assert [example.line for example in read(str(path))] == [1, 2]
    path = tmp_path / "plain.jsonl.gz"
    path.write_bytes(good)
    assert len(list(read(path))) == 1
    assert pairs(compress(b"\xef\xbb\xbf" + good), "jsonl") == [("a", 1)]
    assert pairs(compress(b""), "jsonl") == []


def test_zeros_between_members_are_padding(compress):
    data = (compress(good) + bytes(8)) * 2
    assert len(pairs(data, "jsonl")) == 2


def test_what_is_truncated_yields_what_is_there_then_raises(kind, compress):
    data = compress(b"".join(b'{"text": "%d", "label": 1}\n' % (i * i) for i in range(50_000)))
    stream = read(io.BytesIO(data[: len(data) * 3 // 4]), format="jsonl")
    n = 0
    with pytest.raises(StreamError, match=f"stream: the {kind} data is truncated"):
        for n, example in enumerate(stream, 1):  # noqa: B007
            pass
    assert n > 5_000
    for end in (len(compress(good)) - 1, 10):
        with pytest.raises(StreamError, match="truncated"):
            list(read(io.BytesIO(compress(good)[:end]), format="jsonl"))


@pytest.mark.parametrize(
    ("format", "header", "record"),
    [
        ("jsonl", "", '{"text": "%d", "label": 1}\n'),
        ("jsonl", "[", '{"text": "%d", "label": 1},\n'),
        ("csv", "text,label\n", "%d,1\n"),
        ("tsv", "text\tlabel\n", "%d\t1\n"),
        ("labelled-text", "", "1\t%d\n"),
        ("fasttext", "", "__label__1 %d\n"),
        ("vw", "", "1 |t %d\n"),
        ("svmlight", "", "1 %d:1\n"),
    ],
)
def test_no_format_takes_the_end_for_a_bad_record(format, header, record):
    data = COMPRESSIONS["gzip"]((header + "".join(record % (i * i + 1) for i in range(20_000))).encode())
    bad = []
    with pytest.raises(Truncated):
        for _ in read(io.BytesIO(data[: len(data) // 2]), format=format, on_bad_line=lambda *told: bad.append(told)):
            pass
    assert not bad


def test_what_is_damaged(kind, compress):
    """After a member only another one may come, or what is damaged would be lost without a word."""
    for rest in (b"garbage that is no member", compress(good)[:6] + b"\xff" * 60):
        stream = read(io.BytesIO(compress(good) + rest), format="jsonl")
        assert next(stream).x == "a"
        with pytest.raises(StreamError, match=f"^stream: the {kind} data is damaged"):
            next(stream)


def test_checksums_are_checked():
    for name, at in (("gzip", -6), ("bzip2", -2), ("xz", -20)):
        data = bytearray(COMPRESSIONS[name](good * 1000))
        data[at] ^= 1
        with pytest.raises(StreamError, match=f"{name} data is damaged"):
            list(read(io.BytesIO(data), format="jsonl"))


def test_a_pipe_that_delivers_byte_by_byte(compress):
    with byte_by_byte(compress(good * 2)) as pipe:
        assert len(list(read(pipe, format="jsonl"))) == 2


def test_a_line_without_end_takes_no_memory(monkeypatch, compress):
    monkeypatch.setattr(lines, "LONGEST_LINE", 1 << 20)
    bomb = compress(bytes(32 << 20))
    tracemalloc.start()
    assert bad_lines(bomb, "jsonl") == [(1, "the line is longer than 256 MB")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20  # of which xz takes 8 for itself


ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


@pytest.mark.parametrize("library, extra", [(ZSTD, "zstd"), ("pyarrow", "parquet")])
def test_a_library_that_is_missing(library, extra, tmp_path):
    """One line says what to install; nothing else needs it."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(COMPRESSIONS["Zstandard"](good) if extra == "zstd" else b"PAR1\x15")
    code = f"""
import sys
sys.modules[{library!r}] = None
from stream_pegasos.streams import read
try:
    list(read({str(path)!r}))
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=120)
    (line,) = done.stdout.splitlines()
    assert f"needs {library.partition('.')[0]}" in line and "pip install" in line
