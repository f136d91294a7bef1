import datetime
import os
import pickle
import random
import signal
from pathlib import Path

import pytest

from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, PegasosClassifier, TextClassifier

pytestmark = pytest.mark.spark

N_KEYS = 10_000
LABELS = ["ham", "spam", "work"]
SCHEMA = "user string, n long, at timestamp, text string, label string, exact long, more struct<a:int,b:array<string>>"
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678)


def messages(first, n, n_keys, labels, seed):
    """Rows of `SCHEMA`, some without a text or a label."""
    numbers = random.Random(seed)
    for i in range(first, first + n):
        label = numbers.choice(labels)
        text = " ".join(f"{label if numbers.random() < 0.3 else ''}w{numbers.randrange(30)}" for _ in range(4))
        user = f"user {i % n_keys}"
        shown = label if numbers.random() < 0.8 else None
        exact = None if i % 2 else (1 << 60) + i
        yield user, i, NOW, None if numbers.random() < 0.02 else text, shown, exact, (i, ["a", None])


def common_model(seed=1):
    model = TextClassifier(
        HashedBagOfWords(token_pattern=r"(?u)\b\w+\b"), AdaptiveClassifier(half_life=2, pos_label="spam")
    )
    for _, _, _, text, label, *_ in messages(0, 121, 1, ["ham", "spam"], seed):
        if text is not None and label is not None:
            model.learn_one(text, label)
    return model


def expected(models, row):
    """What is said of a message, then learned, by whole models in a dict."""
    user, _, _, text, label, *_ = row
    if text is None:
        return None, None, "the text is null"
    if user not in models:
        models[user] = pickle.loads(models[None])
    said = models[user].predict_one(text), models[user].predict_proba_one(text), None
    if label is not None:
        models[user].learn_one(text, label)
    return said


def killing_once(flag, n):
    """A function that ends, with SIGKILL and once, the executor that brings it that message."""
    from pyspark.sql.functions import udf

    @udf("long")
    def same(number):
        if number == n and not os.path.exists(flag):
            Path(flag).touch()
            executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().split()[3])
            os.kill(executor, signal.SIGKILL)
            signal.pause()
        return number

    return same


def run(answers, folder):
    """Write all answers that there are so far, and end."""
    writer = answers.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


def put(spark, folder, rows):
    spark.createDataFrame(rows, SCHEMA).repartition(3).write.mode("append").parquet(str(folder / "in"))


def test_models_by_key_are_those_of_a_dict(spark, tmp_path):
    """Through two micro-batches, the second after a start from the checkpoint."""
    from stream_pegasos.spark import learn_by_key

    halves = [[*messages(0, N_KEYS, N_KEYS, LABELS, 2)], [*messages(N_KEYS, 4_000, 1_000, LABELS, 3)]]
    rows = [*halves[0], *halves[1]]
    models = {None: pickle.dumps(common_model())}
    wanted = {row[1]: expected(models, row) for row in rows}
    for i, half in enumerate(halves):
        put(spark, tmp_path, half)
        stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
        answers = learn_by_key(stream, key="user", model=common_model(), order="n")
        if i:  # in the middle of this one an executor is killed
            same = killing_once(str(tmp_path / "killed"), rows[-50][1])
            answers = answers.withColumn("n", same("n"))
        run(answers, tmp_path)
    assert (tmp_path / "killed").exists()
    found = {row.n: row for row in spark.read.parquet(str(tmp_path / "out")).collect()}
    for row in rows:
        answer = found.pop(row[1])
        assert (*answer[:6], tuple(answer.more)) == row
        assert (answer.prediction, answer.probabilities, answer.error) == wanted[row[1]]
    assert not found


def test_each_key_begins_anew_without_a_common_model(spark):
    from stream_pegasos.spark import learn_by_key

    messages = spark.createDataFrame(
        [("a", i, f"w{i % 3}", i % 3) for i in range(30)], "k string, n int, t string, l int"
    )
    model = TextClassifier()
    for answer in learn_by_key(messages, key="k", text="t", label="l", order="n").orderBy("n").collect():
        if answer.n:
            assert answer.prediction == model.predict_one(answer.t)
            known = {label: p for label, p in model.predict_proba_one(answer.t).items() if label is not None}
            assert answer.probabilities == known
        else:
            assert (answer.prediction, answer.probabilities) == (None, {})
        model.learn_one(answer.t, answer.l)


def test_what_a_model_refuses_is_answered(spark):
    from stream_pegasos.spark import learn_by_key

    rows = [("a", 1, NOW, "w1", "good", None, None), ("b", 2, NOW, "w1", "bad", None, None)]
    strict = TextClassifier(classifier=AdaptiveClassifier(max_false_positive_rate=0.1))
    answers = learn_by_key(spark.createDataFrame(rows, SCHEMA), key="user", model=strict).collect()
    assert {row.user: row.error.split("?")[0] for row in answers} == {
        "a": "is label 'good' the positive one",
        "b": "is label 'bad' the positive one",
    }


@pytest.mark.parametrize(
    "named, error, about",
    [
        ({"key": "customer"}, ValueError, "no column 'customer' for the keys; it has 'user', 'n', 'at',"),
        ({"text": "n"}, TypeError, "'n' is of type bigint; the texts must be strings"),
        ({"label": "at"}, TypeError, "'at' is of type timestamp; the labels must be strings, booleans or integers"),
        ({"order": "at_most"}, ValueError, "no column 'at_most' for the order"),
        ({"model": TextClassifier(classifier=PegasosClassifier())}, TypeError, "PegasosClassifier"),
    ],
)
def test_what_cannot_work_is_said_at_the_call(spark, named, error, about):
    from stream_pegasos.spark import learn_by_key

    with pytest.raises(error, match=about):
        learn_by_key(spark.createDataFrame([], SCHEMA), **{"key": "user", **named})


def test_columns_in_the_way_and_another_state_store(spark):
    from stream_pegasos.spark import learn_by_key

    frame = spark.createDataFrame([], SCHEMA)
    with pytest.raises(ValueError, match="already has a column 'error'"):
        learn_by_key(frame.withColumnRenamed("at", "error"), key="user")
    with pytest.raises(ValueError, match="two columns 'at'"):
        learn_by_key(frame.withColumnRenamed("exact", "at"), key="user")
    provider = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(provider)
    spark.conf.unset(provider)
    try:
        spark.conf.set(provider, before.replace("RocksDB", "HDFSBacked"))
        with pytest.raises(ValueError, match="RocksDBStateStoreProvider"):
            learn_by_key(frame, key="user")
    finally:
        spark.conf.set(provider, before)
