"""The same label is the same label at every face: readers, commands, the service and files of descriptions."""

import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from serving import learn, send, serving
from serving import ok as answered

from stream_pegasos import TextClassifier, load
from stream_pegasos.learners.label_policy import Fault, LabelPolicy
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.streams import LabelFormat, read

# What is given, the labels that are known, and the one that is meant.
TABLE = [
    (" spam ", [], "spam"),
    ("8", [], 8),
    ("8.0", [], 8),
    (8.0, [], 8),
    ("1.5", [], "1.5"),
    ("-0", [], 0),  # as -0.0 and VW's -0
    ("007", [], "007"),
    ("true", [], "true"),
    (True, [], True),
    ("", [], None),
    (" ", [7, 8], None),
    (None, ["a"], None),
    (float("nan"), ["a"], None),
    ("8", ["7", "8"], "8"),
    ("8.0", ["7", "8"], "8"),
    (8, ["7", "8"], "8"),
    ("8", [7, 8], 8),
    ("8", [8, "8"], "8"),
    (8, [8, "8"], 8),
    ("9", ["7", "8"], "9"),
    (9, ["7", "8"], "9"),
    ("9", ["7", 8], 9),
    ("9", ["a", "b"], 9),
    ("2.0", ["1.0", "2.0"], "2.0"),
    (2, ["1.0", "2.0"], "2.0"),
    ("3.0", ["1.0", "2.0"], "3.0"),
    ("1", ["0", "1"], "1"),
    (1, ["0", "1"], "1"),
    (True, ["0", "1"], "1"),
    ("true", [False, True], True),
    ("False", [False, True], False),
    ("1", [False, True], True),
    (True, ["false", "true"], "true"),
    (1, ["false", "true"], "true"),
    ("TRUE", ["false", "true"], "true"),
    (True, ["False"], "True"),
    ("true", [1, 0], 1),
    (True, ["a", "b"], True),
    ("spam", [" spam "], " spam "),
    (" spam ", [" spam "], " spam "),
]


def is_same(label, expected):
    return type(label) is type(expected) and label == expected


@pytest.mark.parametrize(("given", "known", "expected"), TABLE)
def test_the_label_that_is_meant(given, known, expected):
    for order in (known, [None, *known[::-1]]):
        assert is_same(LabelPolicy(order).read(given), expected)
    is_known = expected is not None and LabelPolicy(known).knows(expected)
    assert LabelPolicy(known).candidates(given) == [expected] * is_known


@pytest.mark.parametrize("given", [1.5, float("inf"), 2.0**60, b"a", [1]])
def test_what_is_no_label(given):
    for known in ([], ["7"]):
        assert isinstance(LabelPolicy(known).read(given), Fault)


def lines_of(given):
    """The label in each format that can hold it, by the name of a file."""
    written = str(given).lower() if isinstance(given, bool) else str(given)
    files = {"m.jsonl": json.dumps({"text": "a b", "label": given}) + "\n"}
    if written.strip():
        files["m.csv"] = f"text,label\na b,{written}\n"
        files["m.txt"] = f"{written}\ta b\n"
        files["m.eml"] = f"Subject: a b\nX-Label: {written.strip()}\n\nx\n"
        if written == written.strip() and written not in ("007", "1.5"):  # there 007 is a number, and 1.5 no class
            files |= {"m.ft": f"__label__{written} a b\n", "m.vw": f"{written} |text a b\n"}
            files["m.svmlight"] = f"{written} 1:1\n"
    return files


@pytest.mark.parametrize(("given", "known", "expected"), [row for row in TABLE if row[2] is not None])
def test_every_reader(given, known, expected, tmp_path):
    if isinstance(given, bool):  # a text, in all formats but JSON and Parquet
        texts = {name: content for name, content in lines_of(given).items() if name == "m.jsonl"}
    else:
        texts = lines_of(given)
    if isinstance(given, int) and given in known and str(given) in known:
        texts = {"m.jsonl": texts["m.jsonl"]}  # in the others it is a text, which is known too
    parquet.write_table(pyarrow.table({"text": ["a b"], "label": [given]}), tmp_path / "m.parquet")
    for name, content in texts.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    for name in [*texts, "m.parquet"]:
        if name != "m.eml" and " spam " in known and given != "spam" and name in ("m.csv", "m.txt"):
            continue
        options = {"label_field": "X-Label"} if name == "m.eml" else {}
        if name == "m.eml" and given != str(given).strip() and " spam " in known:
            continue
        (example,) = read(tmp_path / name, labels=LabelFormat(policy=LabelPolicy(known)), **options)
        assert is_same(example.y, expected), name


WORDS = ["moon", "sun"]


def taught(known):
    model = TextClassifier()
    model.learn_many(WORDS[: len(known)] * 6, [*known] * 6)
    return model


BESIDE = [row for row in TABLE if len(row[1]) > 1 and row[2] in row[1] and not isinstance(row[0], float)]


@pytest.mark.parametrize(("given", "known", "expected"), BESIDE)
def test_every_operation_of_the_service(given, known, expected):
    with serving(LiveLearner(taught(known))) as client:
        explained = answered(send(client, "/explain", {"text": "moon", "label": given}))["explained"]
        assert is_same(explained, expected)
    service = LiveLearner(taught(known))
    with serving(service) as client:
        learn(client, {"text": "moon", "label": given, "id": 1})
        learn(client, {"text": "moon", "label": expected, "id": 1})  # the same label: nothing to correct
        answered(send(client, "/describe", {str(given): "moon sun"}))
        assert len({*service.model.classes} - {None}) == len({*known})
        assert all(any(is_same(label, each) for each in known) for label in service.model.classes if label is not None)


@pytest.mark.parametrize(("given", "known", "expected"), BESIDE)
def test_every_command(given, known, expected, main, ok, here):
    taught(known).save("m")
    place = known.index(expected)
    for name, content in lines_of(given).items():
        if name not in ("m.jsonl", "m.csv", "m.txt") or (name != "m.jsonl" and not isinstance(given, str)):
            continue
        Path(name).write_text(content.replace("a b", WORDS[place]), encoding="utf-8")
        assert "accuracy" in (out := ok(f"test m {name}")) and "1.0000" in out
        ok(f"train m {name} --save n")
        follows = name != "m.csv"
        if follows:
            ok(f"run m {name} --no-follow --checkpoint c")
        for path in ("n", "c")[: 1 + follows]:
            classes = [label for label in load(path).classes if label is not None]
            assert len(classes) == len(known) and all(any(is_same(a, b) for b in known) for a in classes)
        for path in ("c", "c.previous"):
            Path(path).unlink(missing_ok=True)
    if not isinstance(given, bool):
        Path("labels").write_text(f"{given}\t{WORDS[place]}\n", encoding="utf-8")
        ok("train m --describe labels --save n")
        assert {*load("n").classes} - {None} == {*known}


def test_a_truth_value_and_its_text_are_two_labels_where_none_is_known(ok, here):
    Path("m.jsonl").write_text(
        '{"text": "moon", "label": true}\n{"text": "sun", "label": "true"}\n' * 5, encoding="utf-8"
    )
    ok("train m.jsonl --save m")
    assert {*load("m").classes} == {False, True, "true"}  # a truth value brings the other one
    model = TextClassifier()
    model.learn_many(["moon", "sun", "star", "moon"], [7, "7", np.int64(7), np.str_("7")])
    assert [*map(repr, model.classes)] == ["7", "'7'"]


def test_only_these_labels_are_those_of_the_model(ok, main, here):
    taught(["7", "8"]).save("m")
    Path("m.csv").write_text("text,label\nw0,7\nw1,8.0\nw1,9\n", encoding="utf-8")
    code, _, err = main("train m m.csv --labels 7,8 --save n")
    assert code == 0 and "line 4 skipped: label must be one of 7, 8, got 9" in err
    assert {*load("n").classes} - {None} == {"7", "8"}


@pytest.mark.parametrize(
    "content", ["lost_card\tgone\u2028away\x85now\nrefund\n", '{"lost_card": "gone", "refund": null}']
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_of_descriptions_makes_no_ghost_classes(content, encoding, ok, here):
    Path("labels").write_bytes(content.encode(encoding))
    ok("train --describe labels --save m")
    assert {*load("m").classes} - {None} == {"lost_card", "refund"}


def test_labels_that_the_model_never_knew(main, here):
    """They are told once, with some of each."""
    taught(["ham", "spam"]).save("m")
    lines = [f"L{i % 30}\tmoon\n" for i in range(300)]
    Path("m.txt").write_text("".join([*lines, "ham\tmoon\n"]), encoding="utf-8")
    _, _, err = main("test m m.txt")
    assert err.count("\n") == 1 and "30 labels came that the model does not know: L0, L1, " in err
    assert err.endswith("; it knows ham, spam\n")
    Path("m.txt").write_text("ham\tmoon\nSpam\tsun\n", encoding="utf-8")
    assert "1 label came that the model does not know: Spam; it knows ham, spam" in main("test m m.txt")[2]
    Path("m.txt").write_text("ham\tmoon\n", encoding="utf-8")
    assert main("test m m.txt")[2] == ""


def test_a_file_whose_labels_the_model_never_knew(main, here):
    """It is told once by each command that begins from a saved model, with some of each side."""
    model = TextClassifier()
    model.learn_many(["moon", "sun", "star"] * 6, ["a", "b", "c"] * 6)
    model.save("m")
    commands = ("test m m.jsonl", "predict m m.jsonl", "train m m.jsonl --save n")
    commands += ("run m m.jsonl --no-follow --output none",)
    for labels, is_told in ((["x", "y"], True), (["x", "a"], False)):
        lines = [json.dumps({"text": "moon", "label": label}) for label in labels]
        Path("m.jsonl").write_text("\n".join(lines), encoding="utf-8")
        for command in commands:
            err = main(command)[2]
            assert err.count("\n") == (is_told or command.startswith("test"))
            if is_told:
                assert ": x, y; it kn" in err and err.endswith(" a, b, c\n")


@pytest.mark.parametrize(
    ("known", "listed", "written", "taken", "refused"),
    [
        ([], None, None, ["spam", 7, True], []),
        ([], ["spam", 1, 0], ("spam", 1, 0), ["spam", "true", "false"], [1, False, "ham", "True"]),
        ([], [True, False], (True, False), [1, 0], ["true", "1"]),
        (["a", "false"], [1, 0], ("true", "false"), ["true", "false"], [1, "True", "a"]),
        ([False], ["a", "1", "0"], ("a", True, False), [True, "a"], ["true", "b"]),
        ([7], ["7", 8], ("7", 8), [7, "8"], [9, "a"]),
    ],
)
def test_listed_labels_are_written_as_known_ones_or_as_the_first_that_comes(known, listed, written, taken, refused):
    policy = LabelPolicy(known, allowed=listed)
    assert policy.allowed == written and repr(policy.allowed) == repr(written)
    assert not any(map(policy.refusal, taken)) and all(map(policy.refusal, refused))


def test_a_label_may_be_long_if_it_is_known():
    policy = LabelPolicy(["x" * 201])
    assert policy.read("x" * 201) == "x" * 201 and policy.read("y" * 200) == "y" * 200
    assert str(policy.read("y" * 201)) == "a label must have at most 200 characters, got 201"
    assert str(policy.read("y" * 9, 8)) == "a label must have at most 8 characters, got 9"
