"""Files that the command reads, in each format, and those that it cannot read."""

import gzip
import os
import re

import pytest
from commands import error_line, metrics, stream

from stream_pegasos import AdaptiveClassifier, TextClassifier, load


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.jsonl", '{{"text": "{}", "label": "{}"}}'),
        ("a.csv", '"{}",{}'),
        ("a.tsv", "{}\t{}"),
        ("a.txt", "{1}\t{0}"),
        ("a.ft", "__label__{1} {0}"),
    ],
)
def test_every_text_format_gives_the_same(main, name, line, compress):
    head = {"a.csv": "text,label\n", "a.tsv": "text\tlabel\n"}.get(name, "")
    data = head + "".join(line.format(text, label) + "\n" for text, label in stream)
    with open(f"{name}.gz", "wb") as file:
        file.write(compress(data.encode()))
    code, out, err = main("evaluate", f"{name}.gz")
    assert (code, err) == (0, "")
    assert metrics(out) == metrics(main("evaluate", "mail.jsonl")[1])


def test_dict_formats(main):
    ids: dict[str, int] = {}
    with open("a.vw", "w") as vw, open("a.svm", "w") as svm:
        for text, label in stream:
            words = dict.fromkeys("".join(c if c.isalnum() else " " for c in text).split())
            y = 1 if label == "spam" else -1
            vw.write(f"{y} | {' '.join(words)}\n")
            svm.write(f"{y} {' '.join(f'{ids.setdefault(word, len(ids))}:1' for word in words)}\n")
    out = main("evaluate", "a.vw", "--save", "m")[1]
    assert metrics(out) == metrics(main("evaluate", "a.svm")[1])
    assert metrics(out)["accuracy"] > 0.7
    assert isinstance(load("m"), AdaptiveClassifier)
    code, out, _ = main("explain", "m", "--top", 3)
    assert code == 0
    assert out.splitlines()[0] == "for 1"
    weights = load("m").weights
    shown = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert len(shown) == 6
    assert all(f"{weights[name]:+.5f}" == weight for weight, name in shown)
    assert "text options" not in main("predict", "m", "a.vw")[2]


@pytest.mark.parametrize("data", [b"", gzip.compress(b""), b"\n\n"], ids=["nothing", "gzip", "lines"])
def test_empty_stream(main, here, data):
    (here / "e.jsonl").write_bytes(data)
    for arguments in (["evaluate", "--curve", "c.csv", "--plot", "c.png", "--save", "m"], ["train", "--save", "m"]):
        code, out, err = main(arguments[0], "e.jsonl", *arguments[1:])
        assert (code, out) == (1, "")
        assert error_line(err).startswith("stream-pegasos: error: no message of e.jsonl was learned")
    assert not any((here / name).exists() for name in ("m", "c.csv", "c.png"))
    TextClassifier().save("new")
    assert main("predict", "new", "e.jsonl") == (0, "", "")  # there was nothing to be done
    assert main("predict", "new", "mail.jsonl", "--limit", 2)[:2] == (0, "\t0.500000\n" * 2)
    assert main("explain", "new")[0] == 0


def test_missing_file(main):
    for arguments in (["evaluate", "x.jsonl"], ["train", "x.jsonl", "--save", "m"], ["predict", "x.jsonl"]):
        code, out, err = main(*arguments)
        assert (code, out) == (1, "")
        assert error_line(err) == "stream-pegasos: error: x.jsonl: No such file or directory"
    assert not os.path.exists("m")


def test_directory(main, here):
    (here / "d.jsonl").mkdir()
    assert "d.jsonl: Is a directory" in error_line(main("evaluate", "d.jsonl")[2])


def test_unknown_extension(main, here):
    (here / "mail.xyz").write_text("x")
    code, _, err = main("evaluate", "mail.xyz")
    assert code == 1
    assert "'.xyz'" in error_line(err)


def test_truncated_gzip(main, here):
    data = gzip.compress((here / "mail.jsonl").read_bytes())
    (here / "t.jsonl.gz").write_bytes(data[:-20])
    for strict in (0, 1):
        code, out, err = main("evaluate", "t.jsonl.gz", *["--strict"] * strict)
        assert code == strict and re.match(r"t\.jsonl\.gz: [4-6]\d\d messages .* 1 bad line\n", out)
        assert err == "stream-pegasos: the rest skipped: t.jsonl.gz: the gzip data is truncated\n"
        code, out, _ = main("train", "t.jsonl.gz", "--save", "m", *["--strict"] * strict)
        assert code == strict and load("m").n_iterations == int(out.split()[1]) > 400
    (here / "t.jsonl.gz").write_bytes(data[:30])  # nothing of it can be read
    code, out, err = main("evaluate", "t.jsonl.gz")
    assert (code, out) == (1, "")
    assert error_line(err) == "stream-pegasos: error: t.jsonl.gz: the gzip data is truncated"


def test_unknown_csv_field(main, here):
    (here / "a.csv").write_text("body,label\nx,1\n")
    code, _, err = main("evaluate", "a.csv")
    assert code == 1
    assert "no field 'text'; its fields: body, label" in error_line(err)


@pytest.mark.parametrize("data", [b"", b"nonsense" * 10])
def test_damaged_model(main, here, data):
    (here / "m").write_bytes(data)
    for arguments in (["predict", "m", "mail.jsonl"], ["explain", "m"]):
        code, _, err = main(*arguments)
        assert code == 1
        assert "m is damaged" in error_line(err)
