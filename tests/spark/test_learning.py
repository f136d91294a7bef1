"""History that is learned on Spark, in parts."""

import os

import numpy as np
import pytest
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
)
from stream_pegasos.learners.label_policy import LabelPolicy
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.spark

SCHEMA = "text string, label string"
MESSAGES = list(synthetic(500, seed=3))


def state_of(model):
    arrays, _, values = model.to_state()
    return {name: array.tolist() for name, array in arrays.items()}, values


@pytest.mark.parametrize(
    "classifier, label, kind",
    [
        (AdaptiveClassifier(), str, "string"),
        (PegasosClassifier(), lambda label: label == "spam", "boolean"),
        (MultiLabelClassifier(), lambda label: [label, "mail"], "array<string>"),
        (OrdinalClassifier(), lambda label: int(label == "spam"), "int"),
    ],
    ids=["adaptive", "pegasos", "multilabel", "ordinal"],
)
def test_in_order_the_model_is_that_of_one_machine(spark, classifier, label, kind):
    """Also with columns of any name, weights, two columns to sort by, and a model to go on from."""
    from stream_pegasos.spark import learn

    messages = [(text, label(y), i % 3) for i, (text, y) in enumerate(MESSAGES)]
    begin = TextClassifier(classifier=classifier.clone())
    begin.learn_many(*zip(*messages[:100], strict=True))
    rows = [(*message, i // 10, i % 10) for i, message in enumerate(messages)]
    schema = f"`the.text` string, `back``tick` {kind}, `größe` int, day int, `an hour` int"
    frame = spark.createDataFrame(rows[100:], schema).repartition(3)
    columns = {"text": "the.text", "label": "back`tick", "weight": "größe"}
    learned = learn(frame, begin, **columns, parts=1, order=["day", "an hour"], passes=2)
    n_learned = 2 * sum(weight > 0 for *_, weight in messages[100:])
    assert (learned.n_read, learned.n_learned, learned.refused, learned.n_rounds) == (800, n_learned, {}, 2)
    assert begin.n_learned == 66  # a third of the messages has no weight
    for _ in range(2):
        begin.learn_many(*zip(*messages[100:], strict=True))
    assert state_of(learned.model) == state_of(begin)


def test_no_bit_depends_on_how_messages_came_or_on_an_executor_that_is_killed(spark, tmp_path, monkeypatch):
    """Killed between two rounds, and the messages came through a shuffle, whose order differs each time."""
    from stream_pegasos.learners.merging import merge_into
    from stream_pegasos.spark import frame_learning, learn

    once = tmp_path / "killed"

    def kill(batches):
        if not once.exists():
            once.touch()
            with open(f"/proc/{os.getppid()}/stat", encoding="utf-8") as daemon:  # whose parent is the executor
                os.kill(int(daemon.read().rpartition(")")[2].split()[1]), 9)
        yield from batches

    def killing(*arguments):
        if not once.exists():
            spark.range(0, 1, 1, 1).mapInArrow(kill, "id long").toArrow()
        return merge_into(*arguments)

    found = []
    monkeypatch.setattr(frame_learning, "merge_into", killing)
    once.touch()
    for n_partitions in (8, 5, 8):
        rows = spark.sparkContext.parallelize(MESSAGES[::-1] if n_partitions == 5 else MESSAGES, n_partitions)
        frame = spark.createDataFrame(rows, SCHEMA).repartition(4)
        found.append(state_of(learn(frame, parts=3, round_size=200).model))
        if len(found) == 2:
            once.unlink()
    assert once.exists()
    assert found[0] == found[1] == found[2]


def test_bad_rows_are_counted(spark):
    from stream_pegasos.spark import learn

    rows = [
        *((text, label, 1.0) for text, label in MESSAGES[:90]),
        (None, "ham", 1.0),
        ("a", None, 1.0),
        ("a", "ham", -2.0),
    ]
    frame = spark.createDataFrame(rows, "text string, label string, weight double")
    learned = learn(frame, weight="weight", parts=1)
    assert (learned.n_read, learned.n_learned) == (93, 90)
    assert [*learned.refused.values()] == [1, 1, 1] and "the label is null" in learned.refused
    assert sum(learned.model.predict_one(text) == label for text, label in MESSAGES) > 400
    assert learn(frame.where("text = 'nothing of it'")).n_read == 0


def test_a_number_that_is_not_whole_is_refused(spark):
    from stream_pegasos.spark import learn

    labels = [0.0, 1.0] * 10 + [0.5, float("nan"), float("inf"), 2.0**53, None]
    frame = spark.createDataFrame([(f"word{label}", label) for label in labels], "text string, label double")
    learned = learn(frame, parts=1)
    assert learned.refused == {"the label is null": 2} | {  # NaN is missing, as in the other formats
        f"label must be an integer below 2**53, got {label}": 1 for label in (0.5, float("inf"), 2.0**53)
    }
    assert learned.n_learned == 20 and {*map(type, learned.model.classes)} == {int}


def test_what_can_never_be_learned_is_one_clear_error(spark):
    from stream_pegasos.spark import learn

    frame = spark.createDataFrame([(*message, 1, True) for message in MESSAGES[:50]], f"{SCHEMA}, n int, is boolean")
    limited, waiting = AdaptiveClassifier(threshold=0.9), TextClassifier(classifier=PegasosClassifier(batch_size=10))
    waiting.learn_many(*zip(*MESSAGES[:9], strict=True))
    watching = AdaptiveClassifier(drift_detector=drift.ADWIN())
    learned = TextClassifier()
    learned.learn_many(*zip(*MESSAGES[:9], strict=True))
    for model, options, kind, reason in (
        (TextClassifier(classifier=limited), {}, ValueError, r"^is label '\w+' the positive one\?"),
        (waiting, {}, ValueError, "examples wait in the mini-batch of the base"),
        (TextClassifier(classifier=watching), {}, TypeError, "drift_detector cannot be merged"),
        (
            TextClassifier(classifier=OrdinalClassifier()),
            {"label": "is"},
            TypeError,
            "ordered classes must be integers",
        ),
        (learned, {"label": "n"}, TypeError, "column 'n' is of type int, and the model has labels of type string"),
        (AdaptiveClassifier(), {}, TypeError, "model must be a TextClassifier"),
        (None, {"round_size": 0}, ValueError, "round_size"),
        (None, {"parts": 0}, ValueError, "parts"),
        (None, {"text": "body"}, ValueError, "no column 'body' for the texts; it has 'text', 'label', 'n', 'is'"),
        (None, {"text": "n"}, TypeError, "column 'n' is of type int; the texts must be strings"),
        (None, {"order": "time"}, ValueError, "no column 'time' for the order"),
        (None, {"weight": "weight"}, ValueError, "no column 'weight' for the weights"),
        (None, {"weight": "is"}, TypeError, "column 'is' is of type boolean; the weights must be numbers"),
        (None, {"weight": "text"}, ValueError, "column 'text' cannot be text and weight at once"),
    ):
        with pytest.raises(kind, match=reason):
            learn(frame, model, **options)


@pytest.mark.parametrize(
    ("known", "column", "given"),
    [
        ([], "string", ["7", "8.0", " spam "]),
        ([7, 8], "string", ["8", "+7"]),
        (["7", "8"], "int", [8, 7]),
        ([False, True], "string", ["true", "False"]),
        (["false", "true"], "boolean", [True, False]),
        ([], "double", [7.0, 8.0]),
        (["7"], "float", [8.0, 7.0]),
    ],
)
def test_labels_are_those_that_files_have(spark, known, column, given):
    from stream_pegasos.spark import learn

    model, rows = TextClassifier(), [(f"word{i}", label) for i, label in enumerate(given)] * 3
    model.learn_many([f"known{i}" for i in range(len(known))], known)
    found = learn(spark.createDataFrame(rows, f"text string, label {column}"), model, parts=1).model
    expected = {repr(LabelPolicy(known).read(label)) for label in given}
    assert {*map(repr, found.classes)} - {"None"} == expected | {*map(repr, known)}


@pytest.mark.parametrize("classifier", [AdaptiveClassifier(), MultiLabelClassifier()], ids=["adaptive", "multilabel"])
def test_a_label_that_is_too_long_is_refused_unless_the_model_has_it(spark, classifier):
    from stream_pegasos.spark import learn

    several, known = isinstance(classifier, MultiLabelClassifier), "k" * 1_000
    labels = ["ham", "spam"] * 20 + [known, "x" * 1_000_000]
    rows = [(f"word{i % 2}", [label] if several else label) for i, label in enumerate(labels)]
    rows += [("word", ["ham", empty]) for empty in (None, " ")] if several else []
    frame = spark.createDataFrame(rows, f"text string, label {'array<string>' if several else 'string'}")
    model = TextClassifier(classifier=classifier.clone())
    model.learn_one("known", {known} if several else known)
    learned = learn(frame, model, parts=1)
    empty = {"each label of a list must be written, got a blank one": 2} if several else {}
    assert learned.refused == {"a label must have at most 200 characters, got 1,000,000": 1, **empty}
    assert learned.n_learned == 41 and {*learned.model.classes} - {None} == {"ham", "spam", known}


@pytest.mark.parametrize("classifier", [AdaptiveClassifier(), MultiLabelClassifier()], ids=["adaptive", "multilabel"])
@pytest.mark.parametrize("parts", [1, 2])
def test_rows_without_weight_change_nothing(spark, classifier, parts):
    from stream_pegasos.spark import learn

    model, several = TextClassifier(classifier=classifier), isinstance(classifier, MultiLabelClassifier)
    model.learn_many([x for x, _ in MESSAGES[:60]], [[y] if several else y for _, y in MESSAGES[:60]])
    idle = [(f"{x} idle", [f"new{i}"] if several else f"new{i}", 0.0) for i, (x, _) in enumerate(MESSAGES[:40])]
    frame = spark.createDataFrame(idle, f"text string, label {'array<string>' if several else 'string'}, w double")
    learned = learn(frame, model, weight="w", parts=parts)
    assert (learned.n_read, learned.n_learned, learned.model.classes) == (40, 0, model.classes)
    assert learned.model.weights == model.weights and learned.model.intercept == model.intercept
    texts = [x for x, _ in MESSAGES]
    assert np.array_equal(learned.model.predict_proba_many(texts), model.predict_proba_many(texts))


def test_what_is_gone_says_what_to_use_instead(spark):
    with pytest.raises(ImportError, match="call learn on each micro-batch, in Spark's foreachBatch"):
        from stream_pegasos.spark import learn_stream  # noqa: F401
