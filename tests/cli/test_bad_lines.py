"""Lines that are passed over, counted and told of."""

import json
import os
import pty
from pathlib import Path

import pytest
from commands import figures, line_of, process, reference_of, stream, write_jsonl

from stream_pegasos import TextClassifier, load


def test_bad_lines_are_reported_counted_and_skipped(main, here):
    lines = [line_of(*example) + b"oops\n" * (i < 12) for i, example in enumerate(stream)]
    (here / "bad.jsonl").write_bytes(b"".join(lines))
    code, out, err = main("evaluate bad.jsonl")
    assert code == 0 and "600 messages" in out and "12 bad lines" in out.splitlines()[0]
    assert figures(out) == figures(main("evaluate mail.jsonl --strict")[1])
    first, *others, rest = err.splitlines()
    assert first.startswith("stream-pegasos: line 2 skipped: not JSON") and len(others) == 9
    assert rest == "stream-pegasos: 2 more bad lines skipped"
    TextClassifier().save("m")
    for command in ("evaluate bad.jsonl", "train bad.jsonl --save n", "predict m bad.jsonl", "run bad.jsonl"):
        assert main(command, "--strict", *["--no-follow"] * command.startswith("run"))[0] == 1


@pytest.mark.parametrize("wrong", ["--text-field", "--label-field"])
@pytest.mark.parametrize("command", ["evaluate mail.jsonl", "train mail.jsonl --save n", "tune mail.jsonl"])
def test_a_wrong_field_is_told_once_with_the_fields_there_are(fails, command, wrong):
    first, *_, more, end = fails(command, wrong, "body").splitlines()
    assert first == "stream-pegasos: line 1 skipped: no field 'body'; its fields: text, label"
    assert more == "stream-pegasos: 599 more bad lines skipped" and wrong in end
    assert not os.path.exists("n")


def test_bad_lines_among_good_ones_are_told_each(main, here):
    (here / "bad.jsonl").write_text('{"text": "a", "label": "x"}\n{"label": 1}\n{"label": 1}\n', encoding="utf-8")
    assert main("train bad.jsonl --save m")[2].count("its fields: label") == 2


@pytest.mark.parametrize("command", ["evaluate {}", "evaluate {} --delay 3", "train {}", "run {} --no-follow"])
def test_what_the_model_refuses_costs_its_line_alone(main, ok, here, command):
    """A label that is new after they were fixed, and a value that is too large."""
    write_jsonl("three.jsonl", [*stream[:30], ("a", "eggs"), *stream[30:50]])
    write_jsonl("two.jsonl", stream[:50])
    lines = ["1 | a:1", "-1 | b:1", "-1 | b:1e300", "1 | a:2", "1 | a:1e300", "-1 | b:2"]
    (here / "v.vw").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (here / "good.vw").write_text("".join(f"{line}\n" for line in lines if "e300" not in line), encoding="utf-8")
    for bad, good, options, n, told in (
        ("three.jsonl", "two.jsonl", "--labels ham,spam", 1, "line 31 skipped: label must be one of ham, spam, got"),
        ("v.vw", "good.vw", "", 2, "line 3 skipped: "),
    ):
        ok(f"{command} --save expected".format(good))
        code, out, err = main(f"{command} --save m {options}".format(bad))
        assert code == 0 and err.count(" skipped: ") == n and told in err
        assert load("m").weights == load("expected").weights and load("m").n_learned == load("expected").n_learned
        if command.startswith("run"):
            empty = [i for i, line in enumerate(out.splitlines(), 1) if line == "\t"]
            assert empty == ([] if bad == "three.jsonl" else [3, 5])
        else:
            assert f"{n} bad line" in out


def test_run_tells_of_ever_more_bad_lines(here, main):
    (here / "bad.jsonl").write_text("no JSON\n" * 1_234, encoding="utf-8")
    assert [line.split(": ")[1] for line in main("run bad.jsonl --no-follow")[2].splitlines()] == [
        "line 1 skipped",
        "100 lines skipped, the newest of them line 100",
        "1,000 lines skipped, the newest of them line 1000",
        "1,233 more bad lines skipped",
        "error",
    ]


def test_a_list_where_one_label_is_expected(main):
    """The first message tells; a list that comes later is that message's error, an empty one too."""
    write_jsonl("t.jsonl", [("well", "oil"), ("pipe", ["gas", "tea"]), ("pipe", "gas"), ("leaf", [])])
    for command in ("evaluate t.jsonl", "train t.jsonl --save m", "run t.jsonl --no-follow"):
        code, _, err = main(command)
        first, second = err.splitlines()
        assert code == 0 and "line 4 skipped: its label is a list, []" in second
        assert first == (
            "stream-pegasos: line 2 skipped: its label is a list, [gas, tea], and the model takes one label; "
            "for several see train --multi-label"
        )
    assert "--multi-label" in main("train --help")[1]  # which run has not


@pytest.mark.parametrize(
    "label", [1.5, {"a": 1}, [[]], "x" * 201, pytest.param(["ham"], id="a list where the model takes one label")]
)
def test_a_wrong_label_costs_no_answer(main, ok, here, label):
    """Where labels are not used, not a word; run says that the message is not learned."""
    reference_of(stream[:50]).save("m")
    write_jsonl("wrong.jsonl", [*stream[50:60], ("win a prize", label), *stream[60:70]])
    write_jsonl("right.jsonl", [*stream[50:60], ("win a prize", ""), *stream[60:70]])
    for command in ("predict m {}", "explain m {}"):
        assert main(command.format("wrong.jsonl")) == main(command.format("right.jsonl"))
    run = "run m {} --no-follow --output-format jsonl --save {}"
    code, out, err = main(run.format("wrong.jsonl", "wrong"))
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and err.count("skipped") == 1 and err.startswith("stream-pegasos: line 11 skipped: ")
    assert answers[10].pop("error") in err
    others = [json.loads(line) for line in ok(run.format("right.jsonl", "right")).splitlines()]
    del others[10]["error"]
    assert answers == others and load("wrong").weights == load("right").weights


def test_another_format_is_suggested(ok, fails, here):
    (here / "fast.txt").write_text("__label__a hi\n__label__b yo\n", encoding="utf-8")
    assert "see --format fasttext" in fails("train fast.txt --save m").splitlines()[0]
    ok("train fast.txt --save m --format fasttext")


def test_a_model_where_messages_are_expected_and_the_other_way_round(fails):
    reference_of(stream[:50]).save("m")
    for command in (
        "train m m --save n",
        "evaluate m",
        "predict mail.jsonl m",
        "test mail.jsonl m",
        "tune m",
        "run m m",
    ):
        assert "m is a model, not messages; a model stands before FILE" in fails(command)
    for command in (
        "predict mail.jsonl mail.jsonl",
        "explain mail.jsonl",
        "train mail.jsonl mail.jsonl --save n",
    ):
        message = (
            "mail.jsonl must be a model, as --save writes one, got another or a damaged file; MODEL comes before FILE"
        )
        assert message in fails(command)
    for data in (b"", b"nonsense" * 10, Path("m").read_bytes()[:-1]):
        Path("damaged").write_bytes(data)
        assert "damaged must be a model" in fails("predict damaged mail.jsonl")


@pytest.mark.parametrize("command", ["predict m", "run m"])
def test_a_command_that_reads_from_the_keyboard_says_so(here, command):
    reference_of(stream[:50]).save("m")
    keyboard, end = pty.openpty()
    os.write(keyboard, b'{"text": "win", "label": "spam"}\n\x04')  # and Ctrl-D
    done = process(*command.split(), stdin=end)
    os.close(keyboard)
    os.close(end)
    assert done.returncode == 0 and b"reading jsonl from the keyboard; Ctrl-D ends it" in done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_messages_of_weight_0_are_not_learned(fails, here):
    (here / "z.vw").write_text("1 0 |a x\n-1 0 |a y\n", encoding="utf-8")
    assert "no message of z.vw was learned, and m is not written" in fails("train z.vw --save m")
    assert not (here / "m").exists()


def test_a_label_that_looks_like_a_known_one_is_told_of_and_with_strict_refused(main):
    """But for case, blanks and what nobody sees; one by one, live, and beside those of a model."""
    write_jsonl("slip.jsonl", [*stream[:20], ("call now", "Spam"), ("call me", "s\u200bpam"), ("win", "SPAM")])
    with pytest.warns(UserWarning, match="looks like 'spam'"):
        assert main("train slip.jsonl --save all")[0] == 0
    assert {*load("all").classes} == {"ham", "spam", "Spam", "s\u200bpam", "SPAM"}
    code, out, err = main("train slip.jsonl --strict --save known")
    assert (code, *load("known").classes) == (1, *load("all").classes[:2])
    assert "3 bad lines" in out and "line 21 skipped: label Spam is new, and looks like spam" in err
    write_jsonl("slip.jsonl", [("call now", "Ham")])
    code, _, err = main("run known slip.jsonl --strict --no-follow --checkpoint c")
    assert code == 1 and "looks like ham" in err
