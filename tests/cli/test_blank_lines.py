"""Blank lines are no messages, which predict says; as lines of text they are empty texts."""

import json
from pathlib import Path

import pytest

TEXTS = ["win a prize", "see you"]
MANY = "stream-pegasos: 3 lines were blank, and there is no answer for them\n"
ONE = "stream-pegasos: 1 line was blank, and there is no answer for it\n"


@pytest.fixture
def model(ok):
    ok("train mail.jsonl --save m")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "lines", "header"),
    [
        ("t.jsonl", [json.dumps({"text": text}) for text in TEXTS], []),
        ("t.csv", TEXTS, ["text"]),
        ("t.tsv", [f"{text}\tham" for text in TEXTS], ["text\tlabel"]),
        ("t.txt", TEXTS, []),
        ("t.ft", TEXTS, []),
    ],
)
def test_predict_counts_them(model, main, name, lines, header, end):
    first, second = lines
    for between, expected in ((["", " ", "  "], MANY), ([""], ONE), ([], "")):
        Path(name).write_bytes("".join(line + end for line in [*header, first, *between, second]).encode())
        for command in (f"predict m {name}", f"run {name} --load m --no-follow"):
            if command.startswith("run") and name in ("t.csv", "t.tsv"):
                continue
            code, out, err = main(command)
            assert code == 0 and out.count("\n") == 2 and err == expected, name


def test_features_and_comments(main, ok):
    Path("t.svmlight").write_text("1 1:1\n\n# nothing\n0 2:1\n\n")
    Path("t.vw").write_text("1 |x a\n\n0 |x b\n")
    for name, expected in (("t.svmlight", MANY), ("t.vw", ONE)):
        ok(f"train {name} --save f")
        code, out, err = main(f"predict f {name}")
        assert code == 0 and out.count("\n") == 2 and err == expected


def test_lines_of_text_keep_one_answer_a_line(model, main):
    Path("t").write_text("win\n\n \nsee\n\n")
    code, out, err = main("predict m t --format text")
    assert code == 0 and out.count("\n") == 5 and err == ""


def test_a_blank_line_within_a_quote_is_text(model, main):
    Path("t.csv").write_text('text,label\n"win\n\nprize",\n\n,\n')
    code, out, err = main("predict m t.csv")
    assert code == 0 and out.count("\n") == 2 and err == ONE
