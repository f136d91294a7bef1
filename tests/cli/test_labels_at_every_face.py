"""A label is the same at every face: each does what `LabelPolicy` says of a value, or refuses it with its sentence."""

import enum
import json
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pyarrow
import pytest
from click import BadParameter
from pyarrow import parquet
from river.naive_bayes import MultinomialNB
from serving import learn, send, serving
from serving import ok as answered
from starlette.exceptions import HTTPException

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    load,
)
from stream_pegasos.blocks.river_models import RiverModel
from stream_pegasos.cli.description_options import read_descriptions
from stream_pegasos.cli.options import positive_label, read_label
from stream_pegasos.cli.stream import listed_labels
from stream_pegasos.learners.capabilities import LABELS
from stream_pegasos.learners.label_policy import Fault, LabelPolicy
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.service.messages import SentLabel, label_as_read, labels_as_read
from stream_pegasos.sklearn import OnlineClassifier
from stream_pegasos.streams import Example, LabelFormat, LabelJoin, read


class Color(str, enum.Enum):  # noqa: UP042 as programs wrote it before Python 3.11
    RED = "red"


class Digit(enum.IntEnum):
    TWO = 2


class No(str):
    """The sentence of a refusal."""


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


PLAIN, EXACT = No("a label must be a bool, an int or a str, got"), No("label must be an integer below 2**53, got")
LONG = No("a label must have at most 200 characters, got 201")
# Odd values; the label if a program passes one; the label if it comes from outside, where none is known.
ODD = [
    *[(each, each, each) for each in (True, 17, "spam", "007", "1.5", "\ufeffspam", "sp\u200bam", "x" * 200)],
    (np.bool_(True), True, True),
    (np.int64(17), 17, 17),
    (np.float32(17.0), 17, 17),
    (np.str_("spam"), "spam", "spam"),
    (Color.RED, "red", "red"),
    (Digit.TWO, 2, 2),
    (17.0, 17, 17),
    ("17.0", "17.0", 17),
    ("1.0", "1.0", 1),
    (" 17 ", " 17 ", 17),
    (2.0**53, 2**53, EXACT),
    (0.5, PLAIN, EXACT),
    (float("inf"), PLAIN, EXACT),
    (float("nan"), PLAIN, None),
    (2**63, 2**63, No("an integer must have at most 64 bits, got 9223372036854775808")),
    ("x" * 201, "x" * 201, LONG),
    ("", "", None),
    (" \t", " \t", None),
    (None, PLAIN, None),
    *[(each, PLAIN, PLAIN) for each in (pd.NA, np.ma.masked, Decimal(17), b"spam", ("a",), ["a"], {"a"}, {})],
]


def is_same(label, expected):
    return type(label) is type(expected) and label == expected


def agrees(outcome, expected):
    if isinstance(expected, No):
        return isinstance(outcome, (Exception, Fault)) and str(expected) in str(outcome)
    return is_same(outcome, expected)


def outcome_at(face, *arguments):
    """The label, or the refusal; `None` for no label."""
    try:
        return face(*arguments)
    except (TypeError, ValueError, HTTPException, BadParameter) as error:
        return error


# Faces of programs: the label that a value becomes.


def at_policy(value):
    return LabelPolicy().check(value)


def at_learn_one(value):
    model = AdaptiveClassifier()
    model.learn_one({"a": 1.0}, value)
    return model.classes[0]


def at_learn_many(value):
    model = PegasosClassifier(multi_class="ovr")
    model.learn_many([{"a": 1.0}] * 2, [value] * 2)
    return model.classes[0]


def at_predict_learn_many(value):
    model = TextClassifier()
    model.predict_learn_many(["a"], [value])
    return model.classes[0]


def at_class_weight(value):
    model = AdaptiveClassifier(class_weight={value: 2.0})
    model.learn_one({"a": 1.0}, value)
    return model.classes[0]


def at_several_labels(value):
    model = MultiLabelClassifier()
    model.learn_one({"a": 1.0}, [value])
    return model.classes[0]


def at_river(value):
    model = RiverModel(MultinomialNB())
    model.learn_one({"a": 1}, value)
    return model.classes[0]


def at_live_learner(value):
    return LiveLearner(TextClassifier()).labels.plain(value)


def at_waiting_labels(value):
    """A label that waits for its message, in a checkpoint."""
    join = LabelJoin()
    join.set_state({"messages": [], "labels": [("1", value)], "n_expired": [0, 0]})
    return join.get_state()["labels"][0][1]


def at_scikit_learn(value):
    return OnlineClassifier().fit(np.ones((2, 1)), [value] * 2).model_.classes[0]


PROGRAMS = [face for name, face in [*globals().items()] if name.startswith("at_")]


@pytest.mark.parametrize("face", PROGRAMS)
def test_every_face_of_a_program(face):
    for value, expected, _ in ODD:
        if face is at_scikit_learn and (isinstance(value, (tuple, list)) or value is np.ma.masked):
            continue  # NumPy makes a column of these
        if face is at_waiting_labels and isinstance(value, (tuple, list)):
            continue  # several labels
        if face is at_class_weight and isinstance(expected, No):
            continue  # no label has this weight
        outcome = outcome_at(face, value)
        assert agrees(outcome, expected), (value, outcome)


def test_ordered_labels_are_the_integers_among_labels():
    for value, expected, _ in ODD:
        outcome = outcome_at(lambda y: OrdinalClassifier().learn_one({"a": 1.0}, y), value)
        if isinstance(expected, str) and not isinstance(expected, No):
            assert str(outcome).startswith("an ordered label must be an integer, such as 0 to 4")
        else:
            assert agrees(outcome, expected) if isinstance(expected, No) else outcome is None


# Faces of what comes from outside: the label that a value becomes beside known labels.


class NotWritten(Exception):
    """The face has no way of writing this value."""


def from_policy(value, known, here):
    return LabelPolicy(known).read(value)


def from_file(name, content, known, **options):
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    options["labels"] = LabelFormat(policy=LabelPolicy(known))
    (example,) = read(name, unlabelled=True, **options)
    return example.y if example.label_fault is None else ValueError(example.label_fault)


def as_json(value):
    if isinstance(value, (enum.Enum, tuple, list)) or (isinstance(value, float) and value == float("inf")):
        raise NotWritten  # in JSON, infinity is null
    try:
        return json.dumps(value)
    except TypeError:
        raise NotWritten from None


def as_text(value):
    if not isinstance(value, str) or isinstance(value, enum.Enum):
        raise NotWritten
    return value


def from_jsonl(value, known, here):
    return from_file("m.jsonl", f'{{"text": "a", "label": {as_json(value)}}}', known)


def from_late_labels(value, known, here):
    join = LabelJoin()
    join.add_message(Example("a", None, id=1))
    Path("l.jsonl").write_text(f'{{"id": 1, "label": {as_json(value)}}}', encoding="utf-8")
    said = []
    labels = LabelFormat(policy=LabelPolicy(known))
    for label in read("l.jsonl", labels=labels, are_labels=True, on_bad_line=lambda line, why: said.append(why)):
        return join.add_label(label.id, label.y).y
    return None if said[0].startswith("no label in") else ValueError(said[0])


def from_parquet(value, known, here):
    try:
        parquet.write_table(pyarrow.table({"text": ["a"], "label": [value]}), "m.parquet")
    except (TypeError, OverflowError, pyarrow.ArrowException):
        raise NotWritten from None
    (written,) = parquet.read_table("m.parquet")["label"].to_pylist()
    if isinstance(value, (list, bytes)) or (written is not None and written != value):
        raise NotWritten  # bytes are a text there
    labels = LabelFormat(policy=LabelPolicy(known))
    (example,) = read("m.parquet", unlabelled=True, labels=labels)
    return example.y if example.label_fault is None else ValueError(example.label_fault)


def from_csv(value, known, here):
    return from_file("m.csv", f'text,label\na,"{as_text(value)}"\n', known)


def from_tsv(value, known, here):
    return from_file("m.tsv", f'text\tlabel\na\t"{as_text(value)}"\n', known)


def from_labelled_text(value, known, here):
    if "\t" in as_text(value) or value.startswith("\ufeff"):  # there it is the mark of an encoding
        raise NotWritten
    return from_file("m.txt", f"{value}\ta\n", known)


def from_mail(value, known, here):
    if as_text(value) != value.strip() or not value.isascii() or not value:
        raise NotWritten
    return from_file("m.eml", f"Subject: a\nX-Label: {value}\n\nx\n", known, label_field="X-Label")


def from_options(value, known, here):
    return read_label(as_text(value), "--label", known)


def from_pos_label(value, known, here):
    outcome = outcome_at(positive_label, as_text(value), known)
    return None if str(outcome) == "it is blank" else outcome


def from_labels_option(value, known, here):
    if known or not as_text(value).strip():
        raise NotWritten
    return listed_labels(f"{value},other")[0]


def from_descriptions(value, known, here):
    if "\ufeff" in as_text(value) or (value != value.strip() and "\t" in value):
        raise NotWritten
    Path("labels").write_text(f"{value}\tsome words\n" if value.strip() else "", encoding="utf-8")
    return next(iter(read_descriptions(Path("labels"), LabelPolicy(known))), None)


def from_http(value, known, here):
    """A request, as far as its label: the body that msgspec accepts, then the policy."""
    written = as_json(value)
    try:
        sent = msgspec.json.decode(written, type=SentLabel)
    except msgspec.DecodeError:
        raise NotWritten from None  # the type of the body says what it must be
    learner = LiveLearner(TextClassifier())
    outcome = outcome_at(lambda: label_as_read(sent, "label", LabelPolicy(known), learner.limits.request_limits))
    return None if getattr(outcome, "detail", "") == "label: it is blank" else outcome


def from_spark(value, known, here):
    if isinstance(value, (list, tuple)):
        raise NotWritten
    from stream_pegasos.spark.model_parts import read_labels

    (label,), faults = read_labels(LabelPolicy(known), [value])
    return ValueError(faults[0]) if faults else label


HAS_SPARK = find_spec("pyspark") is not None
LEFT_OUT = {"from_file", *(() if HAS_SPARK else ("from_spark",))}
OUTSIDE = [face for name, face in [*globals().items()] if name.startswith("from_") and name not in LEFT_OUT]


@pytest.mark.parametrize("face", OUTSIDE)
def test_every_face_of_what_comes_from_outside(face, here):
    n = 0
    rows = [*((value, [], expected) for value, _, expected in ODD), *TABLE]
    for value, known, expected in rows:
        try:
            outcome = outcome_at(face, value, known, here)
        except NotWritten:
            continue
        n += 1
        assert agrees(outcome, expected), (value, known, outcome)
    assert n > 8


SEVERAL = [
    (["a", "b", "a"], [], ("a", "b")),
    (["7", 8.0], ["7", "8"], ("7", "8")),
    ([], [], ()),
    (["a", " "], [], No("each label of a list must be written, got a blank one")),
    ([None], [], No("each label of a list must be written, got a blank one")),
    ([["a"]], [], No(f"{PLAIN} ['a']")),
    (["a", 0.5], [], No(f"{EXACT} 0.5")),
    (["a", "x" * 201], [], LONG),
]


@pytest.mark.parametrize(("values", "known", "expected"), SEVERAL)
def test_lists_of_labels(values, known, expected, here):
    policy = LabelPolicy(known, LABELS)
    limits = LiveLearner(TextClassifier()).limits.request_limits
    content = json.dumps({"text": "a", "label": values})
    outcomes = [
        policy.read_example(values),
        outcome_at(labels_as_read, values, "label", policy, limits),
        from_file("m.jsonl", content, known),
    ]
    if HAS_SPARK:
        from stream_pegasos.spark.model_parts import read_labels

        (labels,), faults = read_labels(policy, [values])
        outcomes.append(faults[0] if faults else labels)
    if all(isinstance(value, str) for value in values):
        parquet.write_table(pyarrow.table({"text": ["a"], "label": [values]}), "m.parquet")
        outcomes.append(from_file("m.parquet", Path("m.parquet").read_bytes(), known))
    for outcome in outcomes:
        assert str(expected) in str(outcome) if isinstance(expected, No) else outcome == expected


def test_one_label_or_several():
    one, several = LabelPolicy(), LabelPolicy(kind=LABELS)
    assert str(one.read_example(["a"])).startswith("it must be one label, got a list")
    assert str(several.read_example("a")).startswith("it must be a list of the labels that hold")
    assert several.check_set({"a": 1, "b": False}) == {"a": True, "b": False}
    assert [*several.check_set({"b", 2, "a"})] == [2, "a", "b"] and [*several.check_set(("b", "a"))] == ["b", "a"]
    for wrong in ("a", 7, None, {"a": 2}):
        assert isinstance(outcome_at(several.check_set, wrong), TypeError)


def test_what_is_read_reads_the_same_again():
    values = [value for value, *_ in TABLE] + [value for value, *_ in ODD]
    for policy in (LabelPolicy(known) for _, known, _ in TABLE):
        for label in map(policy.read, values):
            assert label is None or isinstance(label, Fault) or is_same(policy.read(label), label)


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


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [(" 8.0", ["7", "8"], "8"), (8, ["7", "8"], "8"), ("true", [False, True], True), (True, ["0", "1"], "1")],
)
def test_every_command(given, known, expected, main, ok, here):
    """They give the policy the labels of their model."""
    taught(known).save("m")
    word = WORDS[known.index(expected)]
    name, content = "m.jsonl", json.dumps({"text": word, "label": given}) + "\n"
    if isinstance(given, str):
        name, content = "m.csv", f"text,label\n{word},{given}\n"
        Path("labels").write_text(f"{given}\t{word}\n", encoding="utf-8")
        ok("train m --describe labels --save n")
        assert {*load("n").classes} - {None} == {*known}
    Path(name).write_text(content, encoding="utf-8")
    assert "accuracy" in (out := ok(f"test m {name}")) and "1.0000" in out
    ok(f"train m {name} --save n")
    if name == "m.jsonl":
        ok(f"run m {name} --no-follow --checkpoint c")
    for path in ("n", "c")[: 1 + (name == "m.jsonl")]:
        classes = [label for label in load(path).classes if label is not None]
        assert len(classes) == len(known) and all(any(is_same(a, b) for b in known) for a in classes)


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
