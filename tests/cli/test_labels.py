"""Labels: which are known, which one is positive, and how they are written."""

import os
from pathlib import Path

import pytest
from commands import error_line, process, stream, write_jsonl

from stream_pegasos import load
from stream_pegasos.learners.loading import load_with_progress


def test_one_label_learned(main):
    write_jsonl("ham.jsonl", [("a", "ham"), ("b", "ham")])
    assert main("train", "ham.jsonl", "--save", "m")[0] == 0
    assert main("predict", "m", "ham.jsonl")[1] == "ham\t0.750000\n" * 2  # Laplace's rule of succession
    assert "for ham" in main("explain", "m")[1]


def test_labels_stay_in_their_column(main):
    strange = [("one two", "x\ty\n"), ("three four", "\ud800é")] * 5
    write_jsonl("strange.jsonl", strange)
    assert main("train", "strange.jsonl", "--save", "m")[0] == 0
    labels = [line.split("\t")[0] for line in main("predict", "m", "strange.jsonl")[1].splitlines()]
    # Labels are stripped when they are read.
    assert labels == ["x\\ty", "\\ud800é"] * 5
    with open("bool.jsonl", "w") as file:
        file.write('{"text": "yes", "label": true}\n{"text": "no", "label": false}\n' * 3)
    assert main("train", "bool.jsonl", "--save", "m")[0] == 0
    labels = [line.split("\t")[0] for line in main("predict", "m", "bool.jsonl")[1].splitlines()]
    assert labels == ["true", "false"] * 3


def test_labels_that_are_known_before(main):
    """Whichever comes first, others are passed over; text and JSON alike."""
    odd = [("win", "Spam"), *stream, ("hi", "eggs")]
    write_jsonl("odd.jsonl", odd)
    assert main("train", "mail.jsonl", "--save", "expected")[0] == 0
    code, out, err = main("train", "odd.jsonl", "--labels", "ham,spam", "--save", "m")
    assert code == 0 and out.startswith("learned 600 messages") and "2 bad lines" in out
    assert "line 1 skipped: label Spam is none of ham, spam" in err
    assert load("m").weights == load("expected").weights
    done = process("run", "--labels", "ham, spam", "--save", "live", input=Path("odd.jsonl").read_bytes())
    assert len(done.stdout.splitlines()) == 602 and load("live").weights == load("expected").weights
    with open("bool.jsonl", "w") as file:
        file.write('{"text": "yes", "label": true}\n{"text": "no", "label": "false"}\n{"text": "no", "label": 0}\n')
    code, out, err = main("evaluate", "bool.jsonl", "--labels", "true,false")
    assert out.startswith("bool.jsonl: 2 messages")
    assert err == "stream-pegasos: line 2 skipped: label false is none of true, false\n"
    for labels in ("True,False", "1,0", "+1,00"):
        code, out, _ = main("evaluate", "bool.jsonl", "--labels", labels)
        assert (code == 0 and out.startswith("bool.jsonl: 2 messages")) or labels == "+1,00"
    code, out, _ = main("train", "odd.jsonl", "--labels", "Spam,ham,spam,never", "--save", "m", "--limit", 0)
    assert code == 1  # as there is no message
    for bad in ("ham", "ham,ham", "ham,", "a,b,a", "", "1,+1"):
        code, _, err = main("train", "odd.jsonl", "--labels", bad, "--save", "m")
        assert code == 2 and "--labels" in err


def test_which_label_is_positive_must_be_said_where_a_decision_rests_on_it(main):
    """Whichever comes first: no line is learned, and no message is flagged as what it is not."""
    write_jsonl("odd.jsonl", [("win", "spam"), *stream])
    for option in (["--max-false-positive-rate", 0.01], ["--threshold", 0.9]):
        for arguments in (["evaluate"], ["evaluate", "--delay", 2], ["train", "--save", "m"], ["run"]):
            code, out, err = main(
                arguments[0], "odd.jsonl", *arguments[1:], *option, *["--no-follow"] * (arguments == ["run"])
            )
            assert (code, out) == (1, "")
            assert "line 1: is label 'spam' the positive one?" in error_line(err) and "--pos-label" in err
        code, out, _ = main("evaluate", "odd.jsonl", *option, "--pos-label", "spam")
        assert code == 0 and "F1 of spam" in out
    assert not os.path.exists("m")


@pytest.mark.parametrize("given", ["true", "false", "1", "0"])
@pytest.mark.parametrize("labels", ["true false", '"true" "false"', "1 0", '"1" "0"', '"True" "False"'])
@pytest.mark.parametrize("first", [0, 1])
def test_positive_labels_that_are_true_or_1(main, given, labels, first):
    """As JSON's bools and numbers, and as the text that they are written as."""
    labels = labels.split()
    with open("t.jsonl", "w") as file:
        for i in range(6):
            file.write(f'{{"text": "{"ab"[i % 2]}", "label": {labels[(i + first) % 2]}}}\n')
    positive = labels[given in ("false", "0")].strip('"')
    assert f"F1 of {positive} " in main("evaluate", "t.jsonl", "--pos-label", given)[1]
    assert f"F1 of {labels[0].strip(chr(34))} " in main("evaluate", "t.jsonl")[1]


def test_a_missing_positive_label_is_no_odd_label(main):
    """Also where the first label alone said enough."""
    write_jsonl("m.jsonl", [("a", 1), ("b", 2)] * 20)
    for command in ("evaluate", "train", "run"):
        options = {"train": ["--save", "m"], "run": ["--no-follow", "--checkpoint", "c"]}.get(command, [])
        code, _, err = main(command, "m.jsonl", "--threshold", 0.9, *options)
        assert code == 1 and "is label 2 the positive one?" in error_line(err)
    assert not os.path.exists("m") and not os.path.exists("c")


@pytest.mark.parametrize("command", ["train --save m", "evaluate", "run --no-follow --output none"])
def test_a_positive_label_that_never_came_is_told(main, command):
    for given, is_told in (("Spam", True), ("spam", False)):
        err = main(*command.split(), "mail.jsonl", "--pos-label", given)[2]
        assert (f"no message had the label {given} of --pos-label; the labels were ham, spam" in err) == is_told
    with open("bool.jsonl", "w") as file:
        file.write('{"text": "yes", "label": "true"}\n{"text": "no", "label": "false"}\n')
    assert "no message" not in main(*command.split(), "bool.jsonl", "--pos-label", "1")[2]


@pytest.mark.parametrize("command", ["train --save n", "run --no-follow --output none"])
def test_labels_that_a_loaded_model_did_not_know_are_told(main, command):
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    for n, said in ((0, None), (1, "1 label came"), (77, "77 labels came")):
        write_jsonl("new.jsonl", [*stream[:9], *((text, f"topic {i}") for i, (text, _) in enumerate(stream[:n]))])
        err = main(*command.split(), "new.jsonl", "--load", "m")[2]
        assert err.count("that the model did not know: topic 0") == (said is not None)
        assert said is None or (said in err and err.rstrip().endswith("it knew ham, spam"))
    assert "did not know" not in main(*command.split(), "new.jsonl")[2]
    # A model of many classes now and then gets another.
    write_jsonl("many.jsonl", [(text, f"topic {i % 5}") for i, (text, _) in enumerate(stream[:50])])
    assert main("train", "many.jsonl", "--save", "m")[0] == 0
    assert "did not know" not in main(*command.split(), "mail.jsonl", "--load", "m")[2]


def test_a_class_is_removed(main):
    write_jsonl("odd.jsonl", [*stream[:50], ("win", "Spam"), ("win", 7), ("win", -7)])
    assert main("run", "odd.jsonl", "--no-follow", "--checkpoint", "c", "--output", "none")[0] == 0
    classes, before = load("c").classes, load_with_progress("c")
    code, _, err = main("forget-class", "c", "SPAM", "--save", "c")
    assert code == 2 and "'SPAM' is none of the labels learned: " in err
    for label in ("Spam", 7, "-7"):
        code, out, err = main("forget-class", "c", "--save", "c", "--", label)
        assert (code, err) == (0, "") and f"removed {label}; " in out
    model, progress = load_with_progress("c")
    assert model.classes == tuple(label for label in classes if label in ("ham", "spam")) and progress == before[1]
    before[0].forget_class("Spam")
    before[0].forget_class(7)
    before[0].forget_class(-7)
    assert model.to_state()[2] == before[0].to_state()[2]
    write_jsonl("odd.jsonl", [*stream[:50], ("win", "Spam"), ("win", 7), ("win", -7), *stream[50:]])
    assert main("run", "odd.jsonl", "--no-follow", "--checkpoint", "c", "--output", "none")[0] == 0
    assert set(load("c").classes) == {"ham", "spam"}


def test_a_class_that_is_a_bool_is_removed_and_what_cannot_be_is_told(main):
    with open("bool.jsonl", "w") as file:
        file.write('{"text": "yes", "label": true}\n{"text": "no", "label": false}\n{"text": "so", "label": "so"}\n')
    assert main("train", "bool.jsonl", "--save", "m")[0] == 0
    assert main("forget-class", "m", "true", "--save", "n")[0] == 0
    assert set(load("n").classes) == {False, "so"} and True in load("m").classes
    assert main("freeze", "m", "frozen")[0] == 0
    code, _, err = main("forget-class", "frozen", "true", "--save", "n")
    assert code == 1 and "a frozen model cannot forget a class" in error_line(err)
