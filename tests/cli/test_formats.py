"""Files that the command reads, in each format, and those that it cannot read."""

import gzip
import json
import os
import re
import shlex
import subprocess

import pyarrow
import pytest
from commands import command, environment, error_line, metrics, process, stream
from compressions import COMPRESSIONS
from pyarrow import parquet

from stream_pegasos import AdaptiveClassifier, TextClassifier, load


@pytest.mark.parametrize("compress", [bytes, *COMPRESSIONS.values()])
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


def test_parquet_and_arrays_give_the_same(main):
    rows = [{"mail": {"body": text}, "label": label} for text, label in stream]
    parquet.write_table(pyarrow.Table.from_pylist(rows), "a.parquet")
    with open("a.json", "w") as file:
        json.dump(rows, file, indent=2)
    expected = metrics(main("evaluate", "mail.jsonl")[1])
    for name in ("a.parquet", "a.json"):
        code, out, err = main("evaluate", name, "--text-field", "mail.body")
        assert (code, err) == (0, "") and metrics(out) == expected
    code, _, err = main("evaluate", "a.parquet")
    assert code == 1 and error_line(err).endswith("there is no column 'text', but mail, label")
    code, _, err = main("run", "a.parquet")
    assert code == 1 and "a growing file cannot be parquet" in error_line(err)


def test_lines_of_text(main, here):
    main("train", "mail.jsonl", "--save", "m")
    (here / "a").write_text("".join(text + "\n" for text, _ in stream[:50]))
    expected = main("predict", "m", "mail.jsonl", "--limit", 50)[1]
    assert main("predict", "m", "a", "--format", "text") == (0, expected, "")
    assert main("run", "a", "--format", "text", "--load", "m", "--no-follow") == (0, expected, "")
    for arguments in (["evaluate", "a"], ["train", "a", "--save", "x"]):
        code, out, err = main(*arguments, "--format", "text")
        assert (code, out) == (1, "") and "lines of text, which have no labels" in error_line(err)


def test_from_a_pipe_as_from_a_file(here):
    """Whatever it is called: standard input, a named pipe, or what a shell calls <( )."""
    process("train", "mail.jsonl", "--save", "m")
    data = (here / "mail.jsonl").read_bytes()
    parquet.write_table(pyarrow.Table.from_pylist([{"text": text} for text, _ in stream]), "a.parquet")
    (here / "a.txt").write_bytes(data.decode().encode("utf-16"))
    expected = process("predict", "m", "mail.jsonl").stdout
    assert len(expected.splitlines()) == len(stream)
    os.mkfifo("pipe")
    predict = f"{shlex.join(command)} predict m"
    for name in ("mail.jsonl", "a.parquet", "a.txt"):
        given = (here / name).read_bytes()
        assert process("predict", "m", "-", input=given).stdout == expected
        assert process("run", "--load", "m", input=given).stdout.count(b"\n") == len(stream)
        for script in (f"{predict} <(cat {name})", f"cat {name} > pipe & {predict} pipe"):
            done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, timeout=60)
            assert (done.stdout, done.stderr) == (expected, b"")


def test_a_csv_in_latin_1_without_header(main, here):
    """No message is lost, which in one of the two labels alone would be a bias."""
    texts = [f"{text} £{i}" if label == "spam" and i % 3 else text for i, (text, label) in enumerate(stream)]
    lines = [f'"{text}";{label}\n' for text, (_, label) in zip(texts, stream, strict=True)]
    n = sum("£" in text for text in texts)
    assert n > 100
    for name, encoding in (("u.csv", "utf-8"), ("l.csv", "latin-1")):
        (here / name).write_bytes("".join(lines).encode(encoding))
    options = ["--delimiter", ";", "--columns", "text,label"]
    code, expected, err = main("evaluate", "u.csv", *options, "--save", "u")
    assert (code, err) == (0, "")
    told = f"stream-pegasos: {n} lines were not UTF-8 and were read as Windows-1252\n"
    for learn in ("evaluate", "train"):
        assert main(learn, "l.csv", *options, "--save", "l")[::2] == (0, told)
        assert load("l").weights == load("u").weights
    assert metrics(main("evaluate", "l.csv", *options)[1]) == metrics(expected)
    assert main("evaluate", "l.csv", *options, "--encoding", "latin-1")[2] == ""
    assert main("predict", "u", "l.csv", *options)[::2] == (0, told)
    code, out, err = main("evaluate", "l.csv", *options, "--encoding-errors", "strict")
    assert f"{n} bad lines" in out and "not UTF-8 (byte 0xa3 at column" in err
    code, _, err = main("evaluate", "l.csv", *options, "--encoding", "nonsense")
    assert code == 1 and "unknown encoding 'nonsense'" in error_line(err)
    (here / "h.csv").write_text("text;label\nwin;spam\n")
    code, _, err = main("evaluate", "h.csv")
    assert code == 1 and "its fields: text;label (see --delimiter ';')" in error_line(err)


def test_run_tells_how_many_lines_were_no_utf8(main, here):
    (here / "l.jsonl").write_bytes('{"text": "£5", "label": "spam"}\n{"text": "five"}\n'.encode("latin-1"))
    code, out, err = main("run", "l.jsonl", "--no-follow")
    assert (code, len(out.splitlines())) == (0, 2)
    assert err == "stream-pegasos: 1 line was not UTF-8 and was read as Windows-1252\n"


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
