"""Lines that are passed over, counted and told of."""

import json
import os
import pty

import pytest
from commands import line_of, metrics, process, stream, write_jsonl

from stream_pegasos import TextClassifier, load


def test_bad_lines_are_reported_counted_and_skipped(main, here):
    with open("bad.jsonl", "w") as file:
        for i, (text, label) in enumerate(stream):
            file.write(json.dumps({"text": text, "label": label}) + "\n" + "oops\n" * (i < 12))
    code, out, err = main("evaluate", "bad.jsonl")
    assert code == 0
    assert "600 messages" in out
    assert "12 bad lines" in out.splitlines()[0]
    assert metrics(out) == metrics(main("evaluate", "mail.jsonl")[1])
    lines = err.splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("stream-pegasos: line 2 skipped: not JSON")
    assert lines[9].startswith("stream-pegasos: line 20 skipped: not JSON")
    assert lines[10] == "stream-pegasos: 2 more bad lines skipped"
    assert main("evaluate", "bad.jsonl", "--strict")[:2][0] == 1
    assert main("train", "bad.jsonl", "--strict", "--save", "m")[0] == 1
    assert main("predict", "m", "bad.jsonl", "--strict")[0] == 1
    assert main("evaluate", "mail.jsonl", "--strict")[0] == 0


def test_a_stream_without_a_good_line_gets_a_hint(main):
    TextClassifier().save("new")
    for arguments in (["evaluate"], ["train", "--save", "m"]):
        code, out, err = main(arguments[0], "mail.jsonl", "--label-field", "class", *arguments[1:])
        assert (code, out) == (1, "")
        assert "no field 'class'; its fields: text, label" in err.splitlines()[0]
        assert "--label-field" in err.splitlines()[-1]
    code, out, err = main("predict", "new", "mail.jsonl", "--text-field", "body")
    assert (code, out) == (1, "") and "--text-field" in err.splitlines()[-1]
    assert not os.path.exists("m")


def test_a_label_that_is_new_after_they_were_fixed(main):
    """It is passed over, and costs nothing of what came before or comes after."""
    write_jsonl("three.jsonl", [*stream, ("a", "eggs"), ("b", "ham")])
    write_jsonl("two.jsonl", [*stream, ("b", "ham")])
    for arguments in (["evaluate"], ["evaluate", "--delay", 3], ["train"]):
        assert main(arguments[0], "two.jsonl", *arguments[1:], "--save", "expected")[0] == 0
        for strict in (0, 1):
            options = ["--labels", "ham,spam", "--save", "m", *["--strict"] * strict]
            code, out, err = main(arguments[0], "three.jsonl", *arguments[1:], *options)
            assert code == strict and "1 bad line" in out and "601 messages" in out
            assert err == "stream-pegasos: line 601 skipped: label eggs is none of ham, spam\n"
            assert (load("m").weights, load("m").n_iterations) == (load("expected").weights, 601)


def test_run_passes_over_a_label_that_is_new_after_they_were_fixed(here):
    first, last = (b"".join(line_of(text, label) for text, label in part) for part in (stream[:30], stream[30:50]))
    done = process("run", "--labels", "ham,spam", "--save", "m", "--strict", input=first + line_of("x", "eggs") + last)
    assert done.returncode == 1
    assert "line 31 skipped: label eggs is none of ham, spam" in done.stderr.decode()
    assert len(done.stdout.splitlines()) == 51
    reference = TextClassifier()
    reference.learn_many(*zip(*stream[:50], strict=True))
    assert load("m").weights == reference.weights


def test_values_that_the_model_refuses_cost_their_line_alone(main, here):
    lines = ["1 a:1", "-1 b:1", "-1 b:1e300", "1 a:2", "1 a:1e300", "-1 b:2"]
    (here / "v.vw").write_text("".join(f"{label} | {x}\n" for label, x in map(str.split, lines)))
    good = [line for line in lines if "e300" not in line]
    (here / "good.vw").write_text("".join(f"{label} | {x}\n" for label, x in map(str.split, good)))
    assert main("train", "good.vw", "--save", "expected")[0] == 0
    for arguments in (["evaluate"], ["evaluate", "--delay", 2], ["train"]):
        code, out, err = main(arguments[0], "v.vw", *arguments[1:], "--save", "m")
        assert code == 0 and "4 messages" in out and "2 bad lines" in out
        assert [line.split()[1:3] for line in err.splitlines()] == [["line", "3"], ["line", "5"]]
        assert load("m").weights == load("expected").weights
    code, out, err = main("predict", "m", "v.vw")
    assert code == 0 and len(out.splitlines()) == 6 and "line 3 skipped" in err
    assert [i for i, line in enumerate(out.splitlines(), 1) if line == "\t"] == [3, 5]
    done = process("run", "v.vw", "--no-follow", "--checkpoint", "live")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 6 and done.stdout.splitlines()[2] == b"\t"
    assert load("live").weights == load("expected").weights


def test_run_tells_of_ever_more_bad_lines(here, main):
    (here / "bad.jsonl").write_text("no JSON\n" * 1_234)
    _, _, err = main("run", "bad.jsonl", "--no-follow")
    lines = err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "line 1 skipped",
        "100 lines skipped, the newest of them line 100",
        "1,000 lines skipped, the newest of them line 1000",
        "1,233 more bad lines skipped",
    ]


def test_a_list_where_one_label_is_expected(main):
    """The first message tells; a list that comes later is that message's error, an empty one too."""
    write_jsonl("t.jsonl", [("well", "oil"), ("pipe", ["gas", "tea"]), ("pipe", "gas"), ("leaf", [])])
    for arguments in (["evaluate", "t.jsonl"], ["train", "t.jsonl", "--save", "m"]):
        code, out, err = main(*arguments)
        assert code == 0 and "2 messages" in out and "2 bad lines" in out
        assert err.splitlines()[0] == (
            "stream-pegasos: line 2 skipped: its label is a list, [gas, tea], and the model takes one label; "
            "for several see --multi-label"
        )
    code, out, err = main("run", "t.jsonl", "--no-follow")
    assert code == 0 and len(out.splitlines()) == 4
    assert len(err.splitlines()) == 2 and "line 4 skipped: its label is a list, []" in err


@pytest.mark.parametrize("wrong", ["--text-field", "--label-field"])
@pytest.mark.parametrize("command", ["evaluate", "train --save n", "tune"])
def test_a_wrong_field_is_told_once_with_the_fields_there_are(main, command, wrong):
    code, _, err = main(*command.split(), "mail.jsonl", wrong, "body")
    assert code == 1
    first, *_, more, end = err.splitlines()
    assert first == "stream-pegasos: line 1 skipped: no field 'body'; its fields: text, label"
    assert more == "stream-pegasos: 599 more bad lines skipped" and wrong in end
    assert err.count("its fields") == 1 and len(err.splitlines()) <= 4


def test_bad_lines_among_good_ones_are_told_each(main, here):
    (here / "bad.jsonl").write_text('{"text": "a", "label": "x"}\n{"label": 1}\n{"label": 1}\n')
    assert main("train", "bad.jsonl", "--save", "m")[2].count("its fields: label") == 2


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("fast.txt", "__label__a hi\n__label__b yo\n", "see --format fasttext"),
        ("mail.csv", "text;label\nhi;a\n", "(see --delimiter ';')"),
        ("mail.csv", "text\tlabel\nhi\ta\n", r"(see --delimiter '\t')"),
        ("mail.csv", "body,label\nhi,a\n", "(see --columns, --delimiter)"),
    ],
)
def test_another_format_is_suggested(main, here, name, text, hint):
    (here / name).write_text(text)
    code, _, err = main("train", name, "--save", "m")
    assert code == 1 and hint in err.splitlines()[0]
    if "see --columns" not in hint:
        option = hint.strip("()").split(" ", 1)[1].replace("'", "").split()
        assert main("train", name, "--save", "m", *option)[0] == 0


def test_a_model_where_messages_are_expected_and_the_other_way_round(main):
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    for words in ("train m --save n", "evaluate m", "predict mail.jsonl m", "test mail.jsonl m", "tune m", "run m"):
        code, _, err = main(*words.split())
        assert code == 1 and "m is a model, not messages; a model is given before FILE, or by --load" in err
    for words in ("predict mail.jsonl mail.jsonl", "explain mail.jsonl", "train mail.jsonl --load mail.jsonl --save n"):
        code, _, err = main(*words.split())
        assert (
            code == 1 and "mail.jsonl is damaged or is no model, as --save writes one; MODEL comes before FILE" in err
        )


@pytest.mark.parametrize("command", ["predict m", "train - --save n", "run --load m"])
def test_a_command_that_reads_from_the_keyboard_says_so(main, here, command):
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    keyboard, end = pty.openpty()
    os.write(keyboard, b'{"text": "win", "label": "spam"}\n\x04')  # and Ctrl-D
    done = process(*command.split(), stdin=end)
    os.close(keyboard)
    os.close(end)
    assert done.returncode == 0 and b"reading jsonl from the keyboard; Ctrl-D ends it" in done.stderr
    assert b"keyboard" not in process(*command.split(), input=b'{"text": "win", "label": "spam"}\n').stderr
