"""Texts that are scored on Spark get what the library says of them."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from stream_pegasos import (
    AdaptiveClassifier,
    Category,
    MailFeatures,
    MultiLabelClassifier,
    Number,
    OrdinalClassifier,
    TextClassifier,
    TextFeatures,
    Time,
)
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.spark

TEXTS, LABELS = zip(*synthetic(400, seed=2), strict=True)
MODELS = {
    "two classes": (AdaptiveClassifier(), list(LABELS)),
    "booleans": (AdaptiveClassifier(), [label == "spam" for label in LABELS]),
    "several classes": (AdaptiveClassifier(), [f"{label}{i % 3}" for i, label in enumerate(LABELS)]),
    "ordered": (OrdinalClassifier(), [len(text) % 4 for text in TEXTS]),
    "several labels": (MultiLabelClassifier(), [{label, "mail"} for label in LABELS]),
}


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_the_model(spark, tmp_path, name):
    from stream_pegasos.spark import score

    classifier, labels = MODELS[name]
    model = TextClassifier(classifier=classifier.clone())
    model.learn_many(TEXTS[:300], labels[:300])
    texts = [*TEXTS[300:], "", "読む 🎉", None]
    frame = spark.createDataFrame(list(enumerate(texts)), "`a.b` long, `the text` string").repartition(3)
    rows = score(frame, model, text="the text", prediction="said", probabilities="p").orderBy("`a.b`").collect()
    assert rows[-1].said is None and rows[-1].p is None and rows[-1].error == "the text is null"
    wanted = model.predictions(texts[:-1])
    several = name == "several labels"
    assert [tuple(row.said) if several else row.said for row in rows[:-1]] == wanted.labels.tolist()
    found = [[row.p[label] for label in wanted.classes] for row in rows[:-1]]
    np.testing.assert_array_equal(found, wanted.probabilities)
    model.save(tmp_path / "model.safetensors")
    path = tmp_path / "model.safetensors"
    said = score(frame, path if several else str(path), text="the text", probabilities=None).orderBy("`a.b`").collect()
    assert "probabilities" not in said[0]
    assert [tuple(row.prediction) if several else row.prediction for row in said[:-1]] == wanted.labels.tolist()


@pytest.mark.parametrize("several", [False, True])
def test_a_text_that_is_not_utf8_has_no_answer_and_an_error(spark, several):
    """As `spark.read.text` gives them of a file in Latin-1."""
    from pyspark.sql import functions as f

    from stream_pegasos.spark import learn, score

    model = TextClassifier(features=TextFeatures(on="body") + Category(on="tag")) if several else TextClassifier()
    wrap = (lambda text: {"body": text, "tag": text}) if several else (lambda text: text)
    model.learn_many([*map(wrap, TEXTS[:300])], LABELS[:300])
    rows = [(i, text.encode(), label.encode()) for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))]
    rows[350:350] = [(1_000, "café".encode("latin-1"), b"spam"), (1_001, b"cafe", b"sp\xe4m"), (1_002, None, b"ham")]
    frame = spark.createDataFrame(rows, "i long, text binary, label binary").coalesce(1)
    frame = frame.select("i", *(f.col(name).cast("string").alias(name) for name in ("text", "label")))
    if several:
        fields = [f.col("text").alias(name) for name in ("body", "tag")]
        frame = frame.select("i", f.struct(*fields).alias("text"), "label")
    found = {row.i: row for row in score(frame.drop("label"), model).drop("text").collect()}
    assert (found[1_000].prediction, found[1_000].error) == (None, "the text is not UTF-8")
    assert [found[i].prediction for i in range(400)] == [model.predict_one(wrap(text)) for text in TEXTS]
    learned = learn(frame, model, order="i", parts=1)
    assert learned.refused == {"the text is not UTF-8": 1, "the label is not UTF-8": 1} | (
        {} if several else {"the text is null": 1}
    )


def test_messages_of_fields_come_as_structs(spark):
    from pyspark.sql import functions as f

    from stream_pegasos.spark import learn, score

    features = TextFeatures(on="subject") + TextFeatures(on="body") + Category(on="tags") + Number(on="size")
    model = TextClassifier(features=features + Time(on="date"))
    times = [dt.datetime(2026, 11, 23, i % 24) for i in range(len(TEXTS))]
    messages = [
        {"subject": text[:9], "body": text[9:] or None, "tags": text.split()[:2], "size": len(text), "date": time}
        for text, time in zip(TEXTS, times, strict=True)
    ]
    rows = [(i, *message.values(), label) for i, (message, label) in enumerate(zip(messages, LABELS, strict=True))]
    schema = "i long, subject string, body string, tags array<string>, size int, date timestamp_ntz, label string"
    frame = spark.createDataFrame(rows, schema).withColumn("mail", f.struct(*messages[0]))
    learned = learn(frame, model.clone(), text="mail", order="i", parts=1)
    model.learn_many(messages, LABELS)
    assert learned.model.weights == model.weights
    found = score(frame, model, text="mail").orderBy("i").collect()
    assert [row.prediction for row in found] == model.predict_many(messages).tolist()
    with pytest.raises(TypeError, match="the messages must be structs"):
        score(frame, model, text="body")
    with pytest.raises(ValueError, match="none of the fields subject, body, tags, size, date; it has i"):
        score(frame.withColumn("mail", f.struct("i")), model, text="mail")


def test_a_message_that_cannot_be_read_is_passed_over_and_counted(spark):
    from pyspark.sql import functions as f

    from stream_pegasos.spark import learn, score

    model = TextClassifier(TextFeatures(on="body") + Number(on="size") + Time(on="date"))
    bad = {7: ("size", "large", "field 'size' must be a number, got 'large'")}
    bad |= {11: ("date", "soon", "field 'date' must be a time, got 'soon'")}
    messages = [{"body": text, "size": str(len(text)), "date": "2026-11-23"} for text in TEXTS[:60]]
    for i, (name, value, _) in bad.items():
        messages[i][name] = value
    rows = [(i, *message.values(), label) for i, (message, label) in enumerate(zip(messages, LABELS, strict=False))]
    frame = spark.createDataFrame(rows, "i long, body string, size string, date string, label string")
    frame = frame.select("i", "label", f.struct("body", "size", "date").alias("mail"))
    learned = learn(frame, model, text="mail", order="i", parts=1)
    reasons = {reason: 1 for _, _, reason in bad.values()}
    assert (learned.n_learned, learned.refused) == (58, reasons)
    good = [i for i in range(60) if i not in bad]
    model.learn_many([messages[i] for i in good], [LABELS[i] for i in good])
    assert learned.model.weights == model.weights
    found = score(frame, model, text="mail").orderBy("i").collect()
    assert {row.i: row.error for row in found if row.error} == {i: reason for i, (*_, reason) in bad.items()}
    assert [found[i].prediction for i in good] == model.predict_many([messages[i] for i in good]).tolist()
    assert found[7].prediction is found[7].probabilities is None


def test_a_stream_is_scored_too(spark, tmp_path):
    from stream_pegasos.spark import score

    model = TextClassifier()
    model.learn_many(TEXTS[:300], LABELS[:300])
    spark.createDataFrame([(text,) for text in TEXTS[300:]], "text string").write.parquet(str(tmp_path / "in"))
    stream = score(spark.readStream.schema("text string").parquet(str(tmp_path / "in")), model)
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start(str(tmp_path / "out"), format="parquet").awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert {(row.text, row.prediction) for row in rows} == {(text, model.predict_one(text)) for text in TEXTS[300:]}


def test_columns_of_any_name_and_type_pass_through(spark):
    from stream_pegasos.spark import score

    came = spark.sql(
        "select id, concat('w', id % 7, ' spam') `the.text`, map('k', id) m, named_struct('a b', id) `it's`,"
        "timestamp_ntz'2024-03-10 02:30:00' ntz, interval 3 days d, make_interval(1) i, parse_json('[1]') v,"
        "cast(1.23 as decimal(10, 2)) `größe`, cast('x' as binary) `back``tick` from range(50)"
    )
    found = score(came, TextClassifier(), text="the.text").drop("prediction", "probabilities", "error")
    assert found.schema == came.schema
    texts = {"i": "cast(i as string)", "v": "cast(v as string)"}  # which Python knows
    found, came = (frame.selectExpr("* except (i, v)", *texts.values()).collect() for frame in (found, came))
    assert sorted(found) == sorted(came)


def test_a_wrong_call_says_what_is_wrong(spark, tmp_path):
    from stream_pegasos.spark import score

    frame = spark.createDataFrame([("lunch", 1)], ["text", "n"])
    model = TextClassifier()
    for arguments, options, kind, reason in (
        ([model], {"text": "body"}, ValueError, "no column 'body' for the texts; it has 'text', 'n'"),
        ([model], {"text": "n"}, TypeError, "column 'n' is of type bigint; the texts must be strings"),
        ([model], {"prediction": "n"}, ValueError, "already has a column 'n',"),
        ([AdaptiveClassifier()], {}, TypeError, "model must be a TextClassifier"),
        ([tmp_path / "none"], {}, FileNotFoundError, "none"),
    ):
        with pytest.raises(kind, match=reason):
            score(frame, *arguments, **options)


def test_a_field_within_a_struct_and_a_single_field(spark):
    from stream_pegasos.spark import learn, score

    rows = [(("see this", (name,)), label) for name, label in (("ann", "ham"), ("bob", "spam"))] * 10
    schema = "message struct<text: string, from: struct<name: string>>, label string"
    frame = spark.createDataFrame(rows, schema)
    model = TextClassifier(features=TextFeatures(on="text") + Category(on="from.name"))
    model.learn_many(
        [{"text": "see this", "from.name": ("ann", "bob")[i % 2]} for i in range(20)], ["ham", "spam"] * 10
    )
    found = score(frame, model, text="message").select("label", "prediction").collect()
    assert all(row.label == row.prediction for row in found)
    learned = learn(frame, model.clone(), text="message", parts=1)
    assert learned.n_learned == 20 and learned.model.predict_one({"from": {"name": "bob"}}) == "spam"
    other = TextClassifier(features=TextFeatures(on="text") + Category(on="from.address"))
    told = "none of the messages in column 'message' has the field from.address, which the model reads"
    with pytest.warns(UserWarning, match=told):
        score(frame, other, text="message")
    reason = "column 'message': the message has none of the fields from.address; it has text, from"
    with pytest.raises(ValueError, match=reason):
        score(frame, TextClassifier(features=Category(on="from.address")), text="message")
    alone = TextClassifier(features=Category(on="from.name"))
    assert learn(frame, alone, text="message", parts=1).model.predict_one({"from": {"name": "ann"}}) == "ham"


def test_mails_are_binary_or_in_a_field(spark):
    from stream_pegasos.spark import learn, score

    mails = [b"Subject: prize \xe9\n\nwin", b"Subject: lunch\n\nnoon"] * 10
    rows = [(bytearray(mail), ("spam", "ham")[i % 2]) for i, mail in enumerate(mails)]
    frame = spark.createDataFrame(rows, "text binary, label string")
    learned = learn(frame, TextClassifier(features=MailFeatures()), parts=1)
    assert learned.n_learned == 20
    assert all(row.label == row.prediction for row in score(frame, learned.model).collect())
    structs = spark.createDataFrame([((mail,), label) for mail, label in rows], "m struct<mail: binary>, label string")
    within = learn(structs, TextClassifier(features=MailFeatures(on="mail")), text="m", parts=1)
    assert all(row.label == row.prediction for row in score(structs, within.model, text="m").collect())


def test_what_score_and_learn_do_not_take_is_said_in_our_words(spark):
    from stream_pegasos.spark import learn, score

    frame = spark.createDataFrame([("a", "x")], ["text", "label"])
    model = TextClassifier()
    model.learn_many(["a", "b"], ["x", "y"])
    for call in (score, learn):
        with pytest.raises(TypeError, match=r"got a pandas.DataFrame; spark.createDataFrame\(frame\)"):
            call(pd.DataFrame({"text": ["a"], "label": ["x"]}), model)
    with pytest.raises(TypeError, match="prediction must be the name of the new column"):
        score(frame, model, prediction=None)
    with pytest.raises(TypeError, match="the name of a column must be a str, got 7"):
        score(frame, model, prediction=7)
    with pytest.raises(ValueError, match="column 'label' cannot be label and weight at once"):
        learn(frame, weight="label")
    with pytest.raises(ValueError, match="column 'text' cannot be text and label at once"):
        learn(frame, label="text")
    own = TextClassifier(TextFeatures(tokenizer=lambda text: text.split()))
    own.learn_many(["a", "b"], ["x", "y"])
    with pytest.raises(TypeError, match="no lambda"):
        score(frame, own)
