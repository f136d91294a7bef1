"""Streams that Spark learns micro-batch by micro-batch."""

import json
import os

import numpy as np
import pytest

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
)
from stream_pegasos.learners.loading import load, load_with_progress
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.spark

SCHEMA = "id long, text string, label string"
MESSAGES = [(i, *pair) for i, pair in enumerate(synthetic(1_200, seed=1))]


def write(folder, number, rows, schema=SCHEMA):
    """One file, read after those with smaller numbers."""
    folder.mkdir(exist_ok=True)
    names = [field.split()[0] for field in schema.split(", ")]
    lines = [row if isinstance(row, str) else json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path = folder / f"{number:03}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (number, number))


def files(spark, folder, schema=SCHEMA):
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))


def run(stream, checkpoint, *arguments, **options):
    from stream_pegasos.spark import learn_stream

    learning = learn_stream(stream, checkpoint, *arguments, trigger={"availableNow": True}, **options)
    learning.query.awaitTermination()
    return learning


def state_of(model):
    arrays, _, values = model.to_state()
    return {name: array.tolist() for name, array in arrays.items()}, values


@pytest.mark.parametrize(
    "classifier, label, kind",
    [
        (AdaptiveClassifier(), str, "string"),
        (MultiLabelClassifier(), lambda label: [label, "mail"], "array<string>"),
        (OrdinalClassifier(), lambda label: int(label == "spam"), "int"),
    ],
    ids=["adaptive", "multilabel", "ordinal"],
)
def test_in_order_the_model_is_that_of_one_machine(spark, tmp_path, classifier, label, kind):
    schema = f"id long, text string, label {kind}"
    rows = [(i, text, label(y)) for i, text, y in MESSAGES[:600]]
    for number in range(3):
        write(tmp_path / "in", number, rows[200 * number : 200 * (number + 1)], schema)
    learning = run(
        files(spark, tmp_path / "in", schema), tmp_path / "out", TextClassifier(classifier=classifier.clone())
    )
    model = TextClassifier(classifier=classifier.clone())
    model.learn_many([text for _, text, _ in rows], [y for _, _, y in rows])
    assert state_of(learning.model) == state_of(model)


def test_workers_prepare_the_fields_of_a_message(spark, tmp_path):
    """What Python has to do to a text before the engine takes it is done there, too."""
    features = [TextFeatures(on=name, strip_accents="unicode") for name in ("subject", "body")]
    model = TextClassifier(features=features[0] + features[1])
    schema = "id long, mail struct<subject: string, body: string>, label string"
    messages = [{"subject": f"É{text[:5]}", "body": text[5:]} for _, text, _ in MESSAGES[:200]]
    folder, path = tmp_path / "in", tmp_path / "in" / "0.json"
    folder.mkdir()
    records = [{"id": i, "mail": x, "label": y} for x, (i, _, y) in zip(messages, MESSAGES, strict=False)]
    path.write_text("\n".join(map(json.dumps, records)))
    learning = run(files(spark, folder, schema), tmp_path / "out", model, text="mail")
    model.learn_many(messages, [record["label"] for record in records])
    assert state_of(learning.model) == state_of(model)


def test_other_rules_learn_in_order_to_rounding(spark, tmp_path):
    write(tmp_path / "in", 0, MESSAGES[:300])
    model = TextClassifier(classifier=PegasosClassifier())
    learning = run(files(spark, tmp_path / "in"), tmp_path / "out", model)
    assert model.n_iterations == 0
    model.learn_many([text for _, text, _ in MESSAGES[:300]], [y for _, _, y in MESSAGES[:300]])
    texts = [text for _, text, _ in MESSAGES[300:400]]
    found, wanted = (each.decision_function_many(texts) for each in (learning.model, model))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("parts", [None, 3])
def test_answers_are_what_was_said_before_a_message_was_learned(spark, tmp_path, parts):
    rows = [(i, text, y if i % 5 else None) for i, text, y in MESSAGES[:800]]
    for number in range(2):
        write(tmp_path / "in", number, rows[400 * number : 400 * (number + 1)])
    learning = run(
        files(spark, tmp_path / "in"), tmp_path / "out", answers=tmp_path / "answers", parts=parts, order="id"
    )
    answers = spark.read.parquet(str(tmp_path / "answers")).orderBy("id").collect()
    assert [(row.id, row.text, row.label) for row in answers] == rows
    right = [row.prediction == y for row, (_, _, y) in zip(answers, MESSAGES, strict=False)]
    assert np.mean(right) > 0.9
    labelled = [is_right for is_right, (_, _, y) in zip(right, rows, strict=True) if y is not None]
    figures = learning.figures().collect()
    assert [row.batch for row in figures] == [0, 1]
    assert (figures[-1].n_read, figures[-1].n_learned) == (800, 640)
    assert figures[-1].accuracy == pytest.approx(np.mean(labelled))
    assert learning.monitor.score.n == 640
    for row in answers[100:]:
        assert sum(row.probabilities.values()) == pytest.approx(1.0)
        assert row.prediction == max(row.probabilities, key=row.probabilities.get)


@pytest.mark.parametrize("parts", [None, 2])
def test_a_batch_that_comes_again_learns_nothing(spark, tmp_path, parts):
    write(tmp_path / "in", 0, MESSAGES[:200])
    run(files(spark, tmp_path / "in"), tmp_path / "out", parts=parts)
    write(tmp_path / "in", 1, MESSAGES[200:400])
    run(files(spark, tmp_path / "in"), tmp_path / "out", parts=parts)
    before = (tmp_path / "out" / "model.safetensors").read_bytes()
    for lost in (tmp_path / "out" / "spark" / "commits").glob("*1*"):
        lost.unlink()
    learning = run(files(spark, tmp_path / "in"), tmp_path / "out", parts=parts)
    assert learning.learned.n_learned == 400
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == before


def test_an_executor_that_is_killed_changes_nothing(spark, tmp_path):
    """In the middle of the second micro-batch, both in order and in parts."""
    for number in range(3):
        write(tmp_path / "in", number, MESSAGES[200 * number : 200 * (number + 1)])

    def killing(once):
        def kill(batches):
            for batch in batches:
                if 200 in batch["id"].to_pylist() and not os.path.exists(once):
                    open(once, "w").close()
                    with open(f"/proc/{os.getppid()}/stat") as daemon:  # whose parent is the executor
                        os.kill(int(daemon.read().rpartition(")")[2].split()[1]), 9)
                yield batch

        return kill

    for name, parts in (("order", None), ("parts", 2)):
        outcomes = []
        for attempt, once in enumerate((os.devnull, str(tmp_path / f"{name} killed"))):
            stream = files(spark, tmp_path / "in").mapInArrow(killing(once), SCHEMA)
            folder = tmp_path / f"{name} {attempt}"
            learning = run(stream, folder, parts=parts, answers=folder / "answers")
            answers = spark.read.parquet(str(folder / "answers")).orderBy("id").collect()
            outcomes.append(((folder / "model.safetensors").read_bytes(), answers, learning.learned))
        assert os.path.exists(once)
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("parts", [None, 2])
def test_what_cannot_be_learned_is_answered_with_the_reason_and_counted(spark, tmp_path, parts):
    schema = f"{SCHEMA}, weight double"
    rows = [(*message, 1.0) for message in MESSAGES[:40]]
    rows += [(40, None, "ham", 1.0), (41, "lunch", "ham", -1.0), (42, "lunch", "ham", None), (43, "lunch", None, None)]
    write(tmp_path / "in", 0, ['{"id": 44, "text": ', *rows], schema)
    stream = files(spark, tmp_path / "in", schema)
    learning = run(stream, tmp_path / "out", weight="weight", answers=tmp_path / "answers", parts=parts)
    assert learning.learned.n_read == 45 and learning.learned.n_learned == 40
    assert sum(learning.learned.refused.values()) == 4 and learning.learned.refused["the text is null"] == 2
    answers = spark.read.parquet(str(tmp_path / "answers")).collect()
    errors = {row.id: row.error for row in answers if row.error is not None}
    assert errors.keys() == {None, 40, 41, 42}
    assert errors[41] == errors[42] == "the weight is not from 0 to 1e+30"
    _, progress = load_with_progress(tmp_path / "out" / "model.safetensors")
    assert progress["learned"]["refused"] == learning.learned.refused


@pytest.mark.parametrize("parts", [None, 2])
def test_columns_of_any_name_and_type_pass_through(spark, tmp_path, parts):
    spark.sql(
        "select id, concat('w', id % 7, ' spam') `the.text`, if(id % 5 = 0, null, id % 2) _part, map('k', id) m,"
        "named_struct('a b', id, 'n', array(1, 2)) `it's`, timestamp_ntz'2024-03-10 02:30:00' ntz, interval 3 days d,"
        "cast(1.23 as decimal(10, 2)) `größe`, cast('x' as binary) `back``tick` from range(50)"
    ).write.parquet(str(tmp_path / "in"))
    came = spark.read.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(came.schema).parquet(str(tmp_path / "in"))
    options = {"text": "the.text", "label": "_part", "parts": parts, "order": "it's"}
    assert run(stream, tmp_path / "out", answers=tmp_path / "a b", **options).learned.n_learned == 40
    answers = spark.read.parquet(str(tmp_path / "a b")).drop("prediction", "probabilities", "error", "batch")
    assert answers.schema == came.schema
    assert sorted(answers.collect()) == sorted(came.collect())


def test_half_a_checkpoint_is_refused(spark, tmp_path):
    from stream_pegasos.spark import learn_stream

    write(tmp_path / "in", 0, MESSAGES[:50])
    stream = files(spark, tmp_path / "in")
    for lost in ("spark", "model.safetensors"):
        run(stream, tmp_path / "out" / lost)
        (tmp_path / "out" / lost / lost).rename(tmp_path / lost)
        with pytest.raises(ValueError, match="do not belong together; begin anew in another folder"):
            learn_stream(stream, tmp_path / "out" / lost)
    # As it says.
    model = load(tmp_path / "model.safetensors")
    assert run(stream, tmp_path / "new", model).model.n_learned == 100


def test_a_wrong_call_says_what_is_wrong(spark, tmp_path):
    from stream_pegasos.spark import learn_stream

    write(tmp_path / "in", 0, MESSAGES[:50])
    stream = files(spark, tmp_path / "in")
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="no column 'body' for the texts; it has 'id', 'text', 'label'"):
        learn_stream(stream, out, text="body")
    with pytest.raises(TypeError, match="column 'id' is of type bigint; the texts must be strings"):
        learn_stream(stream, out, text="id")
    with pytest.raises(ValueError, match="no column 'time' for the order"):
        learn_stream(stream, out, order="time")
    with pytest.raises(ValueError, match="already has a column 'prediction'"):
        learn_stream(stream.withColumnRenamed("id", "prediction"), out)
    with pytest.raises(TypeError, match="the model is of class AdaptiveClassifier"):
        learn_stream(stream, out, AdaptiveClassifier())
    with pytest.raises(TypeError, match="ordered classes must be integers"):
        learn_stream(stream, out, TextClassifier(classifier=OrdinalClassifier()))
    with pytest.raises(ValueError, match="parts"):
        learn_stream(stream, out, parts=0)
    run(stream, out)
    # The stream has changed since.
    with pytest.raises(TypeError, match="column 'label' is of type int, and the model has labels of type string"):
        learn_stream(files(spark, tmp_path / "in", "text string, label int"), out)
    with pytest.raises(ValueError, match="no column 'label'"):
        learn_stream(files(spark, tmp_path / "in", "text string"), out)
