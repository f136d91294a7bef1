"""Files that the command reads, in each format, and those that it cannot read."""

import gzip
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pyarrow
import pytest
from commands import command as program
from commands import environment, figures, labels_of, reference_of, stream
from fuzz_inputs import STREAMS
from pyarrow import parquet

from stream_pegasos import AdaptiveClassifier, TextClassifier, TextFeatures, load
from stream_pegasos.cli import inputs
from stream_pegasos.streams import FORMATS, read


def test_parquet_and_arrays_give_the_same(ok, fails):
    rows = [{"mail": {"body": text}, "label": label} for text, label in stream]
    parquet.write_table(pyarrow.Table.from_pylist(rows), "a.parquet")
    with open("a.json", "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=2)
    for name in ("a.parquet", "a.json"):
        ok(f"train {name} --text-field mail.body --save m")
        assert load("m").weights == reference_of(stream).weights
    assert fails("evaluate a.parquet").endswith("column 'text' is missing; the file has mail, label\n")
    assert fails("run a.parquet").endswith(", stream-pegasos run --format parquet < a.parquet\n")


def test_lines_of_text_and_standard_input(main, ok, fails, here):
    reference_of(stream).save("m")
    lines = "".join(text + "\n" for text, _ in stream[:50]).encode()
    (here / "a").write_bytes(lines)
    expected = ok("predict m mail.jsonl --limit 50")
    assert ok("predict m a --format text") == ok("predict m --format text", input=lines) == expected
    assert ok("run m a --format text --no-follow") == ok("run m --format text", input=lines) == expected
    told = "stream-pegasos: standard input begins with neither { nor [ and is read as lines of text; "
    for words in ("predict m", "run m"):
        code, out, err = main(words, input=lines)
        assert (code, out, err) == (0, expected, f"{told}--format says otherwise\n")
        code, _, err = main(words, input=b'\n{"text": "win"}\n')
        assert code == 0 and err.endswith("1 line was blank, and there is no answer for it\n") and told not in err
    assert "not JSON" in main("run m --labels ham,spam", input=lines)[2]
    TextClassifier(TextFeatures(on="text") + TextFeatures(on="more")).save("f")
    for words in ("predict m --format jsonl", "predict f", "test m", "evaluate -"):
        assert "not JSON" in main(words, input=lines)[2]
    for words in ("evaluate a", "train a --save x"):
        assert "lines of text, which have no labels" in fails(f"{words} --format text")
    data = gzip.compress(b"".join(b"%s\t%s\n" % (y.encode(), x.encode()) for x, y in stream))
    out = ok("evaluate - --format labelled-text", input=data)
    assert out.startswith("standard input: 600 messages")
    assert ok("evaluate - --limit 1", input=b'{"text": "a", "label": 1}\n').startswith("standard input: 1 message")


def test_from_a_named_pipe_as_from_a_file(here, ok):
    """Also where the format is seen from the end of the file, or the text is in UTF-16."""
    reference_of(stream).save("m")
    parquet.write_table(pyarrow.Table.from_pylist([{"text": text} for text, _ in stream]), "a.parquet")
    (here / "a.txt").write_bytes((here / "mail.jsonl").read_bytes().decode().encode("utf-16"))
    os.mkfifo("pipe")
    predict, expected = f"{shlex.join(program)} predict m", ok("predict m mail.jsonl").encode()
    for script in (f"{predict} <(cat a.parquet)", f"cat a.txt > pipe & {predict} pipe"):
        done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, timeout=120)
        assert (done.stdout, done.stderr) == (expected, b"")


def test_a_csv_in_latin_1_without_header(main, fails, here):
    """No message is lost, which in one of the two labels alone would be a bias."""
    texts = [f"{text} £{i}" if label == "spam" and i % 3 else text for i, (text, label) in enumerate(stream)]
    lines = "".join(f'"{text}";{label}\n' for text, (_, label) in zip(texts, stream, strict=True))
    n = sum("£" in text for text in texts)
    for name, encoding in (("u.csv", "utf-8"), ("l.csv", "latin-1")):
        (here / name).write_bytes(lines.encode(encoding))
    options = "--read-option 'delimiter=;' --read-option columns=text,label"
    assert main(f"train u.csv {options} --save u")[::2] == (0, "")
    told = f"stream-pegasos: {n} lines were not UTF-8 and were read as Windows-1252\n"
    for learn in ("evaluate", "train"):
        assert main(f"{learn} l.csv {options} --save l")[::2] == (0, told) and n > 100
        assert load("l").weights == load("u").weights
    assert main(f"evaluate l.csv {options} --read-option encoding=latin-1")[2] == ""
    assert "unknown encoding 'nonsense'" in fails(f"evaluate l.csv {options} --read-option encoding=nonsense")
    (here / "l.jsonl").write_bytes('{"text": "£5", "label": "spam"}\n{"text": "five"}\n'.encode("latin-1"))
    code, out, err = main("run l.jsonl --no-follow")
    assert (code, out.count("\n")) == (0, 2)
    assert err == "stream-pegasos: 1 line was not UTF-8 and was read as Windows-1252\n"


def test_every_format_is_named_where_people_look_and_fuzzed(ok):
    for name in FORMATS:
        assert name in STREAMS
        for page in (ok("evaluate", "--help"), read.__doc__):
            assert re.search(rf"(?<![-\w]){name}(?![-\w])", page), name


def test_dict_formats(ok):
    ids: dict[str, int] = {}
    with open("a.vw", "w", encoding="utf-8") as vw, open("a.svm", "w", encoding="utf-8") as svm:
        for text, label in stream:
            words = dict.fromkeys("".join(c if c.isalnum() else " " for c in text).split())
            y = 1 if label == "spam" else -1
            vw.write(f"{y} | {' '.join(words)}\n")
            svm.write(f"{y} {' '.join(f'{ids.setdefault(word, len(ids))}:1' for word in words)}\n")
    out = ok("evaluate a.vw --save m")
    assert figures(out) == figures(ok("evaluate a.svm")) and figures(out)["accuracy"] > 0.7
    assert isinstance(load("m"), AdaptiveClassifier)
    first, *lines = ok("explain m --top 3").splitlines()
    weights, shown = load("m").weights, [line.split() for line in lines if line.startswith("  ")]
    assert first == "for 1" and len(shown) == 6
    assert all(f"{weights[name]:+.5f}" == weight for weight, name in shown)


@pytest.mark.parametrize("data", [b"", gzip.compress(b""), b"\n\n"], ids=["nothing", "gzip", "lines"])
def test_empty_stream(main, fails, here, data):
    (here / "e.jsonl").write_bytes(data)
    for command in ("evaluate e.jsonl --plot c.csv --save m", "train e.jsonl --save m"):
        assert fails(command).startswith("stream-pegasos: error: no message of e.jsonl was learned")
    assert not any((here / name).exists() for name in ("m", "c.csv"))
    TextClassifier().save("new")
    code, out, err = main("predict new e.jsonl")  # there was nothing to be done
    assert (code, out) == (0, "") and ("no message of e.jsonl was read; it is empty" in err) == (data != b"\n\n")
    assert main("explain new")[0] == 0


def test_files_that_cannot_be_read(fails, here):
    for command in ("evaluate x.jsonl", "train x.jsonl --save m", "predict x.jsonl"):
        assert fails(command) == "stream-pegasos: error: x.jsonl: No such file or directory\n"
    (here / "d.jsonl").mkdir()
    (here / "mail.xyz").write_text("x", encoding="utf-8")
    assert "d.jsonl: a folder, of which only mails and parts *.parquet are read: " in fails(
        "evaluate d.jsonl --format jsonl"
    )
    assert "'.xyz'" in fails("evaluate mail.xyz")


def test_what_ends_within_a_compressed_block_is_learned_so_far_and_fails(main, fails, here):
    data = gzip.compress((here / "mail.jsonl").read_bytes() * 3 + b"\n" * 140_000)
    (here / "t.jsonl.gz").write_bytes(data[:-20])
    code, out, err = main("evaluate t.jsonl.gz")
    ended = "1 bad line, the input ended within a compressed block"
    assert code == 1 and re.match(rf"t\.jsonl\.gz: \d,\d\d\d messages .* {ended}\n", out)
    assert err == "stream-pegasos: the rest skipped: t.jsonl.gz: the gzip data is truncated\n"
    code, out, _ = main("train t.jsonl.gz --save m")
    assert code == 1 and f", {ended}; saved m" in out
    assert load("m").n_iterations == int(out.split()[1].replace(",", "")) > 1000
    assert main("predict m t.jsonl.gz")[0] == main("explain m t.jsonl.gz")[0] == 1
    code, out, err = main("run --save n", input=data[:-20])
    assert code == 1 and "the gzip data is truncated" in err
    assert load("n").n_iterations == load("m").n_iterations
    (here / "t.jsonl.gz").write_bytes(data[:30])  # nothing of it can be read
    assert fails("evaluate t.jsonl.gz") == "stream-pegasos: error: t.jsonl.gz: the gzip data is truncated\n"


def test_a_parquet_file_whose_rows_end_early_fails(main, here):
    rows = [{"text": f"{text} {i}", "label": label} for i, (text, label) in enumerate(stream * 5)]
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, "a.parquet", row_group_size=1024, use_dictionary=False)
    begin = parquet.ParquetFile("a.parquet").metadata.row_group(2).column(0).data_page_offset
    with open("a.parquet", "r+b") as file:
        file.seek(begin)
        file.write(b"\0" * 500)
    code, out, err = main("train a.parquet --save m")
    assert code == 1 and "the rest could not be read; saved m" in out and "the rest skipped" in err
    assert load("m").n_iterations == int(out.split()[1].replace(",", "")) == 2048


def test_a_model_of_fields_reads_them_from_every_stream(ok, fails, here):
    """Whatever `--text-field` says: the model knows what it reads."""
    records = [{"subject": text[:5], "body": text[5:], "label": label} for text, label in stream]
    (here / "mail.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    model = TextClassifier(features=TextFeatures(on="subject") + TextFeatures(on="body"))
    model.save(here / "new.safetensors")
    ok("train new.safetensors mail.jsonl --save old.safetensors")
    model.learn_many(records, [record["label"] for record in records])
    assert load(here / "old.safetensors").weights == model.weights
    answers = ok("predict old.safetensors mail.jsonl").splitlines()
    assert [answer.split("\t")[0] for answer in answers] == model.predict_many(records).tolist()
    unlabelled = json.dumps({"body": records[0]["body"]}).encode()
    (answer,) = ok("run old.safetensors", input=unlabelled).splitlines()
    assert answer.split("\t")[0] == load(here / "old.safetensors").predict_one({"body": records[0]["body"]})
    (here / "other.csv").write_text("queue,label\na,ham\n", encoding="utf-8")
    assert "the header has no field 'subject'" in fails("train new.safetensors other.csv --save x.safetensors")
    (here / "plain.txt").write_text("ham\thello\n", encoding="utf-8")
    assert "a message of labelled-text has no fields" in fails("train new.safetensors plain.txt --save x")


def test_a_model_keeps_the_names_of_the_columns_that_it_was_taught_from(main, ok, fails, here):
    lines = [f"{text},{label}\n" for text, label in stream if "," not in text]
    (here / "imdb.csv").write_text("review,sentiment\n" + "".join(lines), encoding="utf-8")
    names = "--text-field review --label-field sentiment"
    assert "its fields: review, sentiment (see --text-field" in fails("train imdb.csv --save s.st")
    ok(f"train imdb.csv {names} --save s.st")
    ok("train s.st imdb.csv --save twice.st")
    for model in ("s.st", "twice.st"):
        assert ok(f"predict {model} imdb.csv") == ok(f"predict {model} imdb.csv {names}")
        assert f"imdb.csv: {len(lines)} messages" in ok(f"test {model} imdb.csv")
    answers = ok("run s.st --checkpoint c", input=b'{"review": "win", "sentiment": "spam"}\n{"review": "win"}\n')
    assert labels_of(answers)[1] == "spam" and load("c").n_iterations == load("s.st").n_iterations + 1
    assert labels_of(ok("run --checkpoint c", input=b'{"review": "win"}\n')) == ["spam"]
    assert "learned 600 messages" in ok("train s.st mail.jsonl --text-field text --label-field label --save new")
    assert ok("test new mail.jsonl")  # an option wins, and is kept
    ok("train mail.jsonl --save plain")
    assert load("plain").field_names == {}


def write_records(name, records):
    with open(name, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


@pytest.mark.filterwarnings("ignore:none of 500 messages has the field body")
def test_fields_of_each_kind_are_options(main, ok, fails, here):
    records = [
        {
            "id": i,
            "title": text,
            "body": "",
            "from": {"name": label},
            "size": len(text),
            "at": "2026-11-23",
            "label": label,
        }
        for i, (text, label) in enumerate(stream)
    ]
    write_records("fields.jsonl", records)
    options = "--text-field title,body --fields from.name:category,size:number,at:time"
    ok(f"train fields.jsonl {options} --save m")
    features = load("m").features
    assert features.fields == ("title", "body", "from.name", "size", "at")
    answers = ok("predict m fields.jsonl --output-format tsv").splitlines()[1:]
    assert [line.split("\t")[:2] for line in answers] == [[str(r["id"]), r["label"]] for r in records]
    assert "from.name=ham" in ok("explain m fields.jsonl")
    message = '{"title": "prize", "from": {"name": "ham"}}'
    assert "from.name=ham" in ok("explain m --top 3 --text", message)
    assert "JSON object with title, body" in fails("explain m --text prize", code=2)
    (here / "fields.vw").write_text(
        "".join(f"{r['label']} |title {r['title']} |n size:{r['size']}\n" for r in records), encoding="utf-8"
    )
    assert "learned 600 messages" in ok("train fields.vw --text-field title,body --fields n.size:number --save v")
    assert main(f"evaluate fields.jsonl {options} --strict")[2] == ""
    records[0]["queue"] = 7
    write_records("fields.jsonl", records)
    assert "the model does not read the field queue" in main("predict m fields.jsonl --strict")[2]
    records[0]["size"] = "large"
    write_records("fields.jsonl", records)
    code, out, err = main("explain m fields.jsonl")
    assert code == 0 and "from.name=ham" in out and "line 1 skipped: field 'size' must be a number, got 'large'" in err
    assert "but --text-field names other" in fails("predict m fields.jsonl --text-field title,other")
    ok(f"train {options} --save new")
    resumed = "run new fields.jsonl --no-follow --checkpoint c"
    ok(resumed)
    assert "resuming with 599 messages learned" in main(resumed)[2]
    ok("train mail.jsonl --save text")
    assert "reads one text, but --text-field names title, body" in fails(
        "predict text mail.jsonl --text-field title,body"
    )


def test_fields_that_are_new_without_end_are_named_up_to_a_number(main, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_UNREAD", 5)
    TextClassifier(TextFeatures(on="text") + TextFeatures(on="more")).save("m")
    write_records("new.jsonl", [{"text": "win", f"new {i}": i} for i in range(9)])
    _, _, err = main("predict m new.jsonl --strict")
    assert [line.split()[-1] for line in err.splitlines()] == [*"01234"]
    Path("index.csv").write_text(",text,more\n0,win,b\n", encoding="utf-8")  # as pandas writes it
    assert "does not read the field without a name" in main("predict m index.csv --strict")[2]
