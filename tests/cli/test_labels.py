"""Labels: which are known, which one is positive, and how they are written."""

import os
from pathlib import Path

import pytest
from commands import labels_of, stream, write_jsonl

from stream_pegasos import load
from stream_pegasos.learners.loading import load_with_progress

BOOLS = '{"text": "yes", "label": true}\n{"text": "no", "label": false}\n'


def test_labels_are_printed_in_their_column(ok):
    write_jsonl("ham.jsonl", [("a", "ham"), ("b", "ham")])
    ok("train ham.jsonl --save m")
    assert ok("predict m ham.jsonl") == "ham\t0.750000\n" * 2  # Laplace's rule of succession
    assert "for ham" in ok("explain m")
    write_jsonl("odd.jsonl", [("one two", "x\ty\n"), ("three four", "\ud800é")] * 5)
    ok("train odd.jsonl --save m")
    # Labels are stripped when they are read.
    assert labels_of(ok("predict m odd.jsonl")) == ["x\\ty", "\\ud800é"] * 5
    Path("bool.jsonl").write_text(BOOLS * 3, encoding="utf-8")
    ok("train bool.jsonl --save m")
    assert labels_of(ok("predict m bool.jsonl")) == ["true", "false"] * 3


def test_labels_that_are_known_before(main, ok, fails):
    """Whichever comes first, others are passed over; text and JSON alike."""
    write_jsonl("odd.jsonl", [("win", "Spam"), *stream, ("hi", "eggs")])
    ok("train mail.jsonl --save expected")
    for command in ("train odd.jsonl", "run odd.jsonl --no-follow"):
        code, out, err = main(f"{command} --save m --labels 'ham, spam'")
        assert code == 0 and err.count("skipped") == 2
        assert "line 1 skipped: label must be one of ham, spam, got Spam" in err
        assert load("m").weights == load("expected").weights
    Path("bool.jsonl").write_text(BOOLS.replace("false", '"false"') + '{"text": "no", "label": 0}\n', encoding="utf-8")
    code, out, err = main("evaluate bool.jsonl --labels true,false")
    assert out.startswith("bool.jsonl: 2 messages")
    assert err == "stream-pegasos: line 2 skipped: label must be one of true, false, got false\n"
    for labels in ("True,False", "1,0"):
        assert ok(f"evaluate bool.jsonl --labels {labels}").startswith("bool.jsonl: 2 messages")
    for bad in ("ham", "ham,ham", "ham,", "a,b,a", "", "1,+1"):
        assert "--labels" in fails(f"train odd.jsonl --labels '{bad}' --save m", code=2)


@pytest.mark.parametrize("option", ["--max-false-positive-rate 0.01", "--threshold 0.9"])
def test_which_label_is_positive_must_be_said_where_a_decision_rests_on_it(ok, fails, option):
    """Whichever comes first: no line is learned, and no message is flagged as what it is not."""
    write_jsonl("odd.jsonl", [("win", "spam"), *stream])
    write_jsonl("twos.jsonl", [("a", 1), ("b", 2)] * 20)  # where the first label alone said enough
    ok(f"train {option} --save new")
    run = "run new {} --no-follow --checkpoint c"
    for command in (
        *(f"{line} {option}" for line in ("evaluate {}", "evaluate {} --delay 2", "train {} --save m")),
        run,
    ):
        for name, label in (("odd.jsonl", "'spam'"), ("twos.jsonl", "2")):
            if name == "odd.jsonl" or "delay" not in command:
                err = fails(command.format(name))
                assert f"is label {label} the positive one?" in err and "--pos-label" in err
    assert not os.path.exists("m") and not os.path.exists("c")
    assert "f1 of spam" in ok(f"evaluate odd.jsonl {option} --pos-label spam")


@pytest.mark.parametrize("labels", ["true false", '"true" "false"', "1 0", '"1" "0"', '"True" "False"'])
def test_positive_labels_that_are_true_or_1(ok, labels):
    """As JSON's bools and numbers, and as the text that they are written as."""
    names = [label.strip('"') for label in labels.split()]
    for first, second in (labels.split(), labels.split()[::-1]):
        lines = f'{{"text": "a", "label": {first}}}\n{{"text": "b", "label": {second}}}\n' * 3
        Path("t.jsonl").write_text(lines, encoding="utf-8")
        for given in ("true", "false", "1", "0"):
            positive = names[given in ("false", "0")]
            assert f"f1 of {positive} " in ok(f"evaluate t.jsonl --pos-label {given}")
        assert f"f1 of {names[0]} " in ok("evaluate t.jsonl")


@pytest.mark.parametrize("command", ["train {} --save n", "evaluate {}", "run {} --no-follow --output none"])
def test_labels_that_look_like_a_mistake_are_told(main, ok, command):
    """The positive one never came, or many are new to a model that knew others."""
    write_jsonl("few.jsonl", stream[:300])  # of 500 and more the model itself warns
    for given, is_told in () if command.startswith("run") else (("Spam", True), ("spam", False)):
        err = main(f"{command} --pos-label {given}".format("few.jsonl"))[2]
        assert (f"no message had the label '{given}' of pos_label; the labels were 'ham', 'spam'" in err) == is_told
    Path("bool.jsonl").write_text(BOOLS.replace("true", '"true"').replace("false", '"false"'), encoding="utf-8")
    if not command.startswith("run"):
        assert "no message" not in main(f"{command} --pos-label 1".format("bool.jsonl"))[2]
    if command.startswith("evaluate"):
        return
    ok("train mail.jsonl --save m")
    for n, said in ((0, None), (1, "1 label came"), (77, "77 labels came")):
        write_jsonl("new.jsonl", [*stream[:9], *((text, f"topic {i}") for i, (text, _) in enumerate(stream[:n]))])
        err = main(command.format("m new.jsonl"))[2]
        assert err.count("that the model did not know: topic 0") == (said is not None)
        assert said is None or (said in err and err.rstrip().endswith("it knew ham, spam"))
    # A model of many classes now and then gets another.
    write_jsonl("many.jsonl", [(text, f"topic {i % 5}") for i, (text, _) in enumerate(stream[:50])])
    ok("train many.jsonl --save m")
    write_jsonl("new.jsonl", [*stream[:9], ("word", "topic 0")])
    assert "did not know" not in main(command.format("m new.jsonl"))[2]


def test_a_class_is_removed(main, ok, fails):
    odd = [*stream[:50], ("win", "Spam"), ("win", 7), ("win", -7)]
    write_jsonl("odd.jsonl", odd)
    ok("run odd.jsonl --no-follow --checkpoint c --output none")
    expected, progress = load_with_progress("c")
    assert "must be a label that was learned (" in fails("forget-class c SPAM --save c", code=2)
    for label in ("Spam", 7, -7):
        assert f"removed {label}; " in ok("forget-class c --save c --", label)
        expected.forget_class(label)
    model, kept = load_with_progress("c")
    assert {*model.classes} == {"ham", "spam"} and kept == progress
    assert model.to_state()[2] == expected.to_state()[2]
    write_jsonl("odd.jsonl", [*odd, *stream[50:]])
    ok("run odd.jsonl --no-follow --checkpoint c --output none")
    assert {*load("c").classes} == {"ham", "spam"}


def test_a_class_that_is_a_bool_is_removed_and_what_cannot_be_is_told(ok, fails):
    Path("bool.jsonl").write_text(BOOLS + '{"text": "so", "label": "so"}\n', encoding="utf-8")
    ok("train bool.jsonl --save m")
    ok("forget-class m true --save n")
    assert {*load("n").classes} == {False, "so"} and True in load("m").classes
