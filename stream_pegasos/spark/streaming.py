"""Learning a stream as it comes, micro-batch by micro-batch, each exactly once."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.streaming.query import StreamingQuery

from stream_pegasos.common.checks import check_integer
from stream_pegasos.learners.files import remove_leftovers
from stream_pegasos.learners.loading import load, load_with_progress
from stream_pegasos.learners.merging import model_of, snapshot_of
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.operation.monitor import Monitor
from stream_pegasos.spark.columns import ANSWERS, arranged, check_new, check_order, check_text_model, plain_names
from stream_pegasos.spark.features import COLUMNS, FeatureModel, featured, rows_of, without_columns
from stream_pegasos.spark.parts import (
    CONTENT,
    MOST_PARTS,
    PART,
    PIECE,
    PIECES,
    Learned,
    Messages,
    Part,
    answered_part,
    check_can_merge,
    merged_parts,
    parts_of,
    some,
    worker,
)
from stream_pegasos.spark.sharing import context_of, packed, unpacked

__all__ = ["StreamLearning", "learn_stream"]

MODEL, QUERY, SPARK = "model.safetensors", "query", "spark"  # in the checkpoint
MOST_FIGURES = 1_000  # micro-batches

OnAnswers = Callable[[DataFrame, int], None]


def learn_stream(
    stream: DataFrame,
    checkpoint: str | os.PathLike[str],
    model: TextClassifier | None = None,
    *,
    text: str = "text",
    label: str = "label",
    weight: str | None = None,
    parts: int | None = None,
    order: str | Sequence[str] = (),
    answers: str | os.PathLike[str] | OnAnswers | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> StreamLearning:
    """Start a query that predicts each message of a stream, then learns it if it has a label.

    Each message is learned exactly once, whatever fails: the model file holds the number of the newest micro-batch that
    was learned, and one that comes again learns nothing. Answers are written under the number of their micro-batch.

    There are two ways. *In order*: workers turn texts into features, and the driver takes all steps, one message after
    the other. The model is that of one machine, bit for bit, and the driver limits the speed. *Merged*: with `parts`,
    each micro-batch is divided. All parts learn at the same time from the same model, and `merge` combines their models
    into one.

    Parameters
    ----------
    stream
        The messages.
    checkpoint
        A folder on a disk of the driver or on a mounted volume. It holds the model, `model.safetensors`, and Spark's
        own checkpoint, which belong together. If there is a model, the query goes on from it.
    model
        The `TextClassifier` to begin with, a new one if `None`; it stays as it is.
    text
        The column of texts; of structs with the fields, where the features of the model read several.
    label
        The column of labels: strings, booleans or integers; arrays of these if a message may have several. A message
        whose label is null is only predicted.
    weight
        A column of numbers from 0 to 1e30, the weight of the loss on each message; `None` for 1 each.
    parts
        How many parts of each micro-batch learn at the same time, at least 1; `None` for learning in order.
    order
        The column or columns to sort the messages of a micro-batch by. Without any, they are learned as Spark reads
        them or, in parts, in an arbitrary order that is always the same.
    answers
        Where answers go. A folder, by its name in Spark or as a local `Path`: each micro-batch is a folder of Parquet
        files in it. Or a function of the frame of answers and the number of the micro-batch; it may be called twice
        with the same number. Answers have the columns of the messages, and `prediction`, `probabilities` (a map from
        label) and `error` (why a message was skipped).
    trigger
        What `DataStreamWriter.trigger` takes, as in `{"availableNow": True}`; `None` for one micro-batch right after
        the other.

    Raises
    ------
    ValueError, TypeError
        If a column is missing or of another type, a column of answers exists already, the model is no text model, its
        parts cannot be merged, or model and Spark's checkpoint do not belong together.
    OSError
        If the checkpoint cannot be read or written.

    Examples
    --------

    >>> import pathlib, tempfile
    >>> from stream_pegasos.spark import learn_stream

    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = [("cheap pills", "spam"), ("see you at lunch", "ham")] * 20
    >>> spark.createDataFrame(rows, ["text", "label"]).write.json(str(folder / "mail"))
    >>> stream = spark.readStream.schema("text string, label string").json(str(folder / "mail"))
    >>> learning = learn_stream(
    ...     stream, folder / "checkpoint", answers=folder / "answers", trigger={"availableNow": True}
    ... )
    >>> learning.query.awaitTermination()
    >>> learning.learned.n_learned, learning.model.predict_one("pills, cheap pills")
    (40, 'spam')
    >>> learning.figures().select("batch", "n_learned").show()
    +-----+---------+
    |batch|n_learned|
    +-----+---------+
    |    0|       40|
    +-----+---------+
    <BLANKLINE>
    >>> spark.read.parquet(str(folder / "answers")).where("prediction = label").count() > 30
    True

    """
    if parts is not None:
        check_integer("parts", parts, 1, MOST_PARTS)
    model = TextClassifier() if model is None else model
    check_text_model(model)
    learning = StreamLearning(Path(checkpoint).absolute(), model)
    messages = Messages.of(stream, learning.model, text, label, weight)
    columns = check_order(stream, order)
    if parts is not None:
        check_can_merge(learning.model)
    of_folders = ["batch"] if isinstance(answers, (str, os.PathLike)) else []
    check_new(stream, [*ANSWERS, *of_folders])
    names = plain_names(stream.columns)
    messages, columns = messages.renamed(names), [names[name] for name in columns]
    way = InOrder(messages, columns) if parts is None else Merged(messages, columns, parts)
    to = local(Path(answers).absolute()) if isinstance(answers, os.PathLike) else answers
    learning.start(stream, way, to, trigger or {})
    return learning


def local(path: Path) -> str:
    """The URL of a local folder for Spark, which takes the path literally."""
    return f"file://{path}"


class InOrder:
    """Workers turn texts into features, and the driver takes all steps."""

    def __init__(self, messages: Messages, order: Sequence[str]) -> None:
        self._messages, self._order = messages, order

    def learn(self, batch: DataFrame, model: TextClassifier) -> tuple[TextClassifier, list[Part], DataFrame]:
        """The model that has learned a micro-batch, the reports of its parts, and the answers."""
        ordered = arranged(batch, self._order) if self._order else batch
        part = Part()
        if model.vector_source is None:
            learner = FeatureModel(model)
            sent = context_of(batch).broadcast(learner.features)
            work = worker(featured, sent, self._messages.text)
            try:
                table = ordered.mapInArrow(work, f"{batch.schema.toDDL()}, {COLUMNS}").toArrow()
            finally:
                sent.destroy()
            X = partial(rows_of, table, model.features.specification.n_features)
            answers = part.answer(learner, X, *self._messages.read(table), self._messages)
            table = without_columns(table)
        else:  # the columns of features have no place for the numbers of vectors
            table = ordered.toArrow()
            texts, labels, weights = self._messages.read(table)
            answers = part.answer(model, partial(some, texts), texts, labels, weights, self._messages)
        for name, values in answers.items():
            table = table.append_column(name, values)
        schema = answers_schema(batch, self._messages)
        return model, [part], batch.sparkSession.createDataFrame(table, schema).coalesce(1)

    def forget(self) -> None:
        """Free what the answers are computed from."""


class Merged:
    """Parts of each micro-batch learn at the same time."""

    def __init__(self, messages: Messages, order: Sequence[str], n_parts: int) -> None:
        self._messages, self._order, self._n_parts = messages, order, n_parts
        self._kept: list[Callable[[], object]] = []

    def learn(self, batch: DataFrame, model: TextClassifier) -> tuple[TextClassifier, list[Part], DataFrame]:
        base = snapshot_of(model)
        sent = context_of(batch).broadcast(packed(base))
        divided = arranged(batch, self._order, self._n_parts).withColumn(PART, f.spark_partition_id())
        work = worker(answered_part, sent, self._messages)
        answered = divided.mapInArrow(work, f"{answers_schema(batch, self._messages).toDDL()}, {PIECES}").persist()
        self._kept = [answered.unpersist, sent.destroy]
        pieces = answered.where(f.col(CONTENT).isNotNull()).select(PART, PIECE, CONTENT)
        parts = parts_of(pieces.toArrow())
        answers = answered.where(f.col(CONTENT).isNull()).drop(PART, PIECE, CONTENT)
        return model_of(merged_parts(base, parts)), parts, answers

    def forget(self) -> None:
        for free in self._kept:
            free()
        self._kept = []


def answers_schema(batch: DataFrame, messages: Messages) -> t.StructType:
    """The columns of messages and of answers; all may be null."""
    fields = [*batch.schema.fields, *messages.fields_of_answers]
    return t.StructType([t.StructField(field.name, field.dataType) for field in fields])


class StreamLearning:
    """A query that learns a stream, as `learn_stream` starts it.

    Attributes
    ----------
    query
        Spark's `StreamingQuery`: `awaitTermination`, `stop`, `exception`.
    model
        The `TextClassifier`, as it is after the newest micro-batch.
    learned
        How many messages were read, learned and refused, and why.
    monitor
        What can be seen of the model: scores of all messages, each predicted before it was learned, and more.
    batch
        The number of the newest micro-batch that was learned, −1 before the first.
    """

    query: StreamingQuery

    def __init__(self, checkpoint: Path, model: TextClassifier) -> None:
        checkpoint.mkdir(parents=True, exist_ok=True)
        self._checkpoint, self._path, self._query = checkpoint, checkpoint / MODEL, checkpoint / QUERY
        remove_leftovers(self._path)
        self.batch, self.learned = -1, Learned()
        self._figures: list[dict[str, Any]] = []
        progress: dict[str, Any] = {}
        if self._path.exists():
            loaded, progress = load_with_progress(self._path, model.vector_source)
            check_text_model(loaded)
            self.model: TextClassifier = loaded  # type: ignore[assignment]
        else:
            self.model = copy.deepcopy(model)
        self._begun = None if self._path.exists() else packed(snapshot_of(self.model))
        # A model without Spark's checkpoint would learn messages twice; the reverse would never learn some.
        query = self._query.read_text() if self._query.exists() else None
        has_begun = any((checkpoint / SPARK).glob("commits/*"))
        if (query != self._query_id()) if self._path.exists() else has_begun:
            raise ValueError(
                f"{self._path} and {checkpoint / SPARK} do not belong together; begin anew in another folder, with the "
                "model as `model` to go on from it"
            )
        self.monitor = Monitor(self.model)
        if progress:
            try:
                self.batch, self._figures = progress["batch"], progress["figures"]
                self.learned = Learned(**progress["learned"])
                self.monitor.set_state(progress["monitor"])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{self._path} is no model that learn_stream wrote: {error}") from None

    def start(self, stream: DataFrame, way: InOrder | Merged, answers: str | OnAnswers | None, trigger: Any) -> None:
        """Start the query."""
        self._session = stream.sparkSession
        self._way, self._answers = way, answers
        writer = stream.writeStream.foreachBatch(self._take)
        if trigger:
            writer = writer.trigger(**trigger)
        self.query = writer.option("checkpointLocation", local(self._checkpoint / SPARK)).start()

    def figures(self) -> DataFrame:
        """The scores of all messages after each of the newest thousand micro-batches: a frame with a row for each."""
        kinds = {"batch": "bigint", "n_read": "bigint", "n_learned": "bigint", "n_refused": "bigint"}
        names = dict.fromkeys([*kinds, *(name for row in self._figures for name in row)])
        schema = ", ".join(f"{name} {kinds.get(name, 'double')}" for name in names)
        rows = [tuple(row.get(name) for name in names) for row in self._figures]
        return self._session.createDataFrame(rows, schema)

    def _take(self, batch: DataFrame, number: int) -> None:
        """Learn a micro-batch. The model file changes last: until then the whole micro-batch can be repeated."""
        if number <= self.batch:
            return
        if number != self.batch + 1:
            raise ValueError(f"micro-batch {number} cannot follow {self.batch}, the newest one in {self._path}")
        try:
            learned, parts, answers = self._way.learn(batch.toDF(*plain_names(batch.columns).values()), self.model)
            self._send(answers.toDF(*batch.columns, *ANSWERS), number)
        except BaseException:
            self.model = self._saved()
            raise
        finally:
            self._way.forget()
        for part in parts:
            self.learned.add(part)
        newest = next((part.newest for part in reversed(parts) if part.newest is not None), None)
        self.monitor.learned_elsewhere(learned, [each for part in parts for each in part.outcomes], newest)
        self.model, self.batch = learned, number
        self._save()

    def _saved(self) -> TextClassifier:
        """The model before this micro-batch, for the next try."""
        if self._begun is not None:
            return model_of(unpacked(self._begun))  # type: ignore[no-any-return]
        return load(self._path, self.model.vector_source)  # type: ignore[return-value]

    def _query_id(self) -> str | None:
        """Spark's id of the query of this checkpoint."""
        metadata = self._checkpoint / SPARK / "metadata"
        return json.loads(metadata.read_text())["id"] if metadata.exists() else None

    def _send(self, answers: DataFrame, number: int) -> None:
        if callable(self._answers):
            self._answers(answers, number)
        elif self._answers is not None:
            answers.write.mode("overwrite").parquet(f"{self._answers}/batch={number}")

    def _save(self) -> None:
        with self.monitor.lock:  # as the monitor's page may predict meanwhile
            metrics, state = self.monitor.score.metrics(), self.monitor.get_state()
        figures = {name: None if math.isnan(value) else float(value) for name, value in metrics.items()}
        counts = {"n_read": self.learned.n_read, "n_learned": self.learned.n_learned}
        row = {"batch": self.batch, **counts, "n_refused": sum(self.learned.refused.values()), **figures}
        self._figures = [*self._figures, row][-MOST_FIGURES:]
        progress = {
            "batch": self.batch,
            "learned": dataclasses.asdict(self.learned),
            "figures": self._figures,
            "monitor": state,
        }
        if self._begun is not None:
            self._query.write_text(self._query_id() or "")
        self.model.snapshot(progress).write(self._path)
        self._begun = None
