"""--describe: what labels mean is learned before the messages."""

import json
from pathlib import Path

import pytest
from commands import figures, reference_of, write_jsonl
from running import bits

from stream_pegasos import TextClassifier, load

MESSAGES = [("where is my card", "lost_card"), ("give it back", "refund"), ("card gone", "lost_card")]
DESCRIPTIONS = {"lost_card": None, "refund": ["money back", "Refund"], 7: "seven"}
LINES = "lost_card\nrefund\tmoney back\n\nrefund\tRefund\n7\tseven\n"


@pytest.fixture(autouse=True)
def messages(here):
    write_jsonl("stream.jsonl", MESSAGES)


def described(descriptions):
    model = TextClassifier()
    model.describe(descriptions)
    return model


@pytest.mark.parametrize("content", [LINES, json.dumps(DESCRIPTIONS)])
def test_a_model_is_described_and_taught(ok, content):
    Path("labels").write_text(content, encoding="utf-8")
    ok("train --describe labels --save m")
    assert bits(load("m")) == bits(described(DESCRIPTIONS))
    ok("train stream.jsonl --describe labels --save m")
    assert bits(load("m")) == bits(reference_of(MESSAGES, described(DESCRIPTIONS)))


def test_names_of_labels(main, ok):
    _, _, err = main("train stream.jsonl --labels lost_card,refund,9,a1,a2 --describe names --save m")
    assert "left out: 9, a1, a2" in err
    names = {"lost_card": None, "refund": None}
    expected = reference_of(MESSAGES, described(names))
    assert bits(load("m")) == bits(expected)
    ok("train m --describe names --save again")
    expected.describe(names)
    assert bits(load("again")) == bits(expected)


def test_an_evaluation_begins_with_it(ok):
    command = "evaluate stream.jsonl --labels lost_card,refund"
    assert figures(ok(command))["accuracy"] < figures(ok(f"{command} --describe names"))["accuracy"]


def test_names_of_the_labels_of_compared_models(ok):
    known = TextClassifier()
    known.learn_many(["gone", "back"], ["lost_card", "refund"])
    known.save("known")
    evaluate = "evaluate stream.jsonl --compare known --describe names"
    by_model, by_option = (ok(f"{evaluate} {more}") for more in ("", "--labels lost_card,refund"))
    assert by_model.partition("\n")[2] == by_option.partition("\n")[2] != ""  # behind how long it took


@pytest.mark.parametrize(
    "content, options, match",
    [
        ("a\tb", "--describe names", "name them by --labels"),
        ("\tno label", "", "line 1 has no label"),
        ('{"a": 3}', "", "'a' must be a text, got 3"),
        ('{"a": ', "", "labels: it must be JSON: Expecting value"),
        ("a\t b", "--ordered", "an ordered label must be an integer"),
        ("a\tb", "--format vw", "learns from features"),
        (
            "lost_card\tb\nlots_card\tc",
            "--labels lost_card,refund",
            "label must be one of lost_card, refund, got lots_card",
        ),
        ('{"lots_card": "c"}', "--labels lost_card,refund", "label must be one of lost_card, refund, got lots_card"),
        ('{"a": "b", " a ": "c"}', "", "label a must be described once"),
        ('{"a": "b", "a": "c"}', "", "label a must be described once"),
        ('{" ": "b"}', "", "got ' '"),
        ('{"a": {"b": "c"}}', "", "description of 'a'"),
        (f'{{"{"a" * 201}": "b"}}', "", "a label must have at most 200 characters, got 201"),
        (f"{'a' * 201}\tb", "", "a label must have at most 200 characters, got 201"),
        *(('{"a": ' + "[" * deep + "]" * deep + "}", "", "labels: ") for deep in (10, 900, 100_000)),
    ],
)
def test_what_is_refused(main, content, options, match):
    Path("labels").write_text(content, encoding="utf-8")
    code, _, err = main(f"train stream.jsonl --describe labels {options} --save m")
    assert code and match in err and "Traceback" not in err and not Path("m").exists()


def test_a_lone_surrogate_is_text(ok):
    Path("labels").write_text('{"lost_card": "card \\ud800 gone"}', encoding="utf-8")
    ok("train stream.jsonl --describe labels --save m")


@pytest.mark.parametrize(("written", "other"), [("true", "false"), ("True", "False"), ("1", "0")])
def test_labels_of_the_stream_are_those_described(ok, written, other):
    """However each is written: else a model would have four classes."""
    Path("d.tsv").write_text(f"{written}\twin a prize\n{other}\tlunch at noon\n", encoding="utf-8")
    write_jsonl("x.jsonl", [(f"word {i}", i % 2 == 0) for i in range(8)])
    ok("train x.jsonl --describe d.tsv --save m")
    assert len(load("m").classes) == 2
