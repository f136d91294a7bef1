"""--describe: what labels mean is learned before the messages."""

import json

import pytest
from commands import figures, process, write_jsonl

from stream_pegasos import TextClassifier, load

MESSAGES = [("where is my card", "lost_card"), ("give it back", "refund"), ("card gone", "lost_card")]
DESCRIPTIONS = {"lost_card": None, "refund": ["money back", "Refund"], 7: "seven"}
LINES = "lost_card\nrefund\tmoney back\n\nrefund\tRefund\n7\tseven\n"


@pytest.fixture
def stream(tmp_path):
    write_jsonl(tmp_path / "stream.jsonl", MESSAGES)
    return tmp_path / "stream.jsonl"


def bits(model):
    return model.snapshot().values, {name: array.tolist() for name, array in model.snapshot().arrays.items()}


@pytest.mark.parametrize("content", [LINES, json.dumps(DESCRIPTIONS)])
@pytest.mark.parametrize("has_messages", [True, False])
def test_a_model_is_described_and_taught(content, has_messages, stream, tmp_path):
    (tmp_path / "labels").write_text(content)
    done = process("train", *[stream][:has_messages], "--describe", tmp_path / "labels", "--save", tmp_path / "model")
    assert done.returncode == 0, done.stderr
    expected = TextClassifier()
    expected.describe(DESCRIPTIONS)
    if has_messages:
        expected.learn_many(*zip(*MESSAGES, strict=True))
    assert bits(load(tmp_path / "model")) == bits(expected)


def test_names_of_labels(stream, tmp_path):
    options = "--labels", "lost_card,refund,9,a1,a2"
    done = process("train", stream, *options, "--describe", "names", "--save", tmp_path / "model")
    assert "left out: 9, a1, a2" in done.stderr.decode()
    expected = TextClassifier()
    expected.describe(dict.fromkeys(["lost_card", "refund"]))
    expected.learn_many(*zip(*MESSAGES, strict=True))
    assert bits(load(tmp_path / "model")) == bits(expected)
    done = process("train", "--load", tmp_path / "model", "--describe", "names", "--save", tmp_path / "again")
    expected.describe({"lost_card": None, "refund": None})
    assert bits(load(tmp_path / "again")) == bits(expected)


def test_an_evaluation_begins_with_it(stream):
    without, described = (
        figures(process("evaluate", stream, "--labels", "lost_card,refund", *more).stdout.decode())["accuracy"]
        for more in ([], ["--describe", "names"])
    )
    assert without < described


def test_names_of_the_labels_of_compared_models(stream, tmp_path):
    known = TextClassifier()
    known.learn_many(["gone", "back"], ["lost_card", "refund"])
    known.save(tmp_path / "known")
    by_model, by_option = (
        process("evaluate", stream, "--compare", tmp_path / "known", "--describe", "names", *more).stdout.decode()
        for more in ([], ["--labels", "lost_card,refund"])
    )
    assert by_model.partition("\n")[2] == by_option.partition("\n")[2] != ""  # behind how long it took


@pytest.mark.parametrize(
    "content, options, match",
    [
        ("a\tb", ["--describe", "names"], "name them by --labels"),
        ("\tno label", [], "line 1 has no label"),
        ('{"a": 3}', [], "'a' is 3"),
        ('{"a": ', [], "labels: it is no JSON: Expecting value"),
        ("a\t b", ["--ordered"], "label 'a'"),
        ("a\tb", ["--format", "vw"], "learns from features"),
        (
            "lost_card\tb\nlots_card\tc",
            ["--labels", "lost_card,refund"],
            "label lots_card is none of lost_card, refund",
        ),
        ('{"lots_card": "c"}', ["--labels", "lost_card,refund"], "label lots_card is none of lost_card, refund"),
        ('{"a": "b", " a ": "c"}', [], "label a stands there twice"),
        ('{"a": "b", "a": "c"}', [], "label a stands there twice"),
        ('{" ": "b"}', [], "' ' is no label"),
        ('{"a": {"b": "c"}}', [], "description of 'a'"),
        (f'{{"{"a" * 201}": "b"}}', [], "a label of 201 characters; it may have 200"),
        (f"{'a' * 201}\tb", [], "a label of 201 characters; it may have 200"),
    ],
)
def test_what_is_refused(content, options, match, stream, tmp_path):
    (tmp_path / "labels").write_text(content)
    done = process("train", stream, "--describe", tmp_path / "labels", *options, "--save", tmp_path / "model")
    assert done.returncode and match in done.stderr.decode() and not (tmp_path / "model").exists()


@pytest.mark.parametrize("deep", [10, 900, 100_000])
def test_lists_within_lists_are_refused(deep, stream, tmp_path):
    (tmp_path / "labels").write_text('{"a": ' + "[" * deep + "]" * deep + "}")
    done = process("train", stream, "--describe", tmp_path / "labels", "--save", tmp_path / "model")
    assert done.returncode == 1 and done.stderr.startswith(b"stream-pegasos: error: ") and b"labels: " in done.stderr


def test_a_lone_surrogate_is_text(stream, tmp_path):
    (tmp_path / "labels").write_text('{"lost_card": "card \\ud800 gone"}')
    done = process("train", stream, "--describe", tmp_path / "labels", "--save", tmp_path / "model")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("written", ["true", "True", "1"])
def test_labels_of_the_stream_are_those_described(written, tmp_path):
    """However each is written: else a model would have four classes."""
    other = {"true": "false", "True": "False", "1": "0"}[written]
    (tmp_path / "d.tsv").write_text(f"{written}\twin a prize\n{other}\tlunch at noon\n")
    lines = [json.dumps({"text": f"word {i}", "label": i % 2 == 0}) + "\n" for i in range(8)]
    (tmp_path / "x.jsonl").write_text("".join(lines))
    done = process("train", tmp_path / "x.jsonl", "--describe", tmp_path / "d.tsv", "--save", tmp_path / "m.st")
    assert done.returncode == 0, done.stderr
    assert len(load(tmp_path / "m.st").classes) == 2
