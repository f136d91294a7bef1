"""A model for each key, in Spark's own state store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from pyspark import Broadcast
from pyspark.sql import DataFrame, Row
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from stream_pegasos.learners.branches import Branch, CommonModel
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.spark.columns import (
    ANSWERS,
    check_labels,
    check_messages,
    check_new,
    check_order,
    check_there,
    column,
    fields_of_answers,
)
from stream_pegasos.spark.sharing import context_of

__all__ = ["learn_by_key"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def learn_by_key(
    stream: DataFrame,
    model: TextClassifier | None = None,
    *,
    key: str,
    text: str = "text",
    label: str = "label",
    order: str | Sequence[str] = (),
) -> DataFrame:
    """Predict, then learn, each message by the model of its key: one for each user, customer or language.

    The models are kept in Spark's state store, and so in the checkpoint of the query that writes the answers. So each
    message is learned once, even if a worker or the driver ends and is started again. Each model begins as a copy of a
    common model; only what it has learned since is stored. Its predictions are those of such a copy, bit for bit.

    A message without a label is only predicted. For one that cannot be learned, the answer has the reason.

    Parameters
    ----------
    stream
        The messages: a streaming frame, or a batch frame, whose models are dropped at its end. All messages of a key in
        one micro-batch must fit into the memory of a worker.
    model
        The common model: a `TextClassifier` with an `AdaptiveClassifier`, without drift detector and, if it has learned
        anything, without `max_features`. A new `TextClassifier` if `None`. It is sent to each worker once.
    key
        The column that says which model a message belongs to, of any type that Spark can group by.
    text
        The column of texts; of structs with the fields, where the features of the model read several.
    label
        The column of labels: strings, booleans or integers, null where there is none.
    order
        The column or columns to sort the messages of a key in one micro-batch by. Ties, and all messages without any
        such column, come in Spark's order, which is not the same each time.

    Returns
    -------
    DataFrame
        The columns of the messages, and `prediction` (null while no label is known), `probabilities` (a map from label;
        what is missing from 1 is for labels yet to come) and `error` (why a message was not learned that has a label).
        To be written with `outputMode("append")`.

    Raises
    ------
    TypeError
        If the model or a column is of another kind.
    ValueError
        If a column is missing, or has the name of a new one; if the model cannot be a common one; or if Spark does not
        keep its state in RocksDB.

    Notes
    -----
    The query fails if it goes on from a checkpoint with another common model than before: the stored models are
    differences from that one.

    Examples
    --------

    >>> from stream_pegasos.spark import learn_by_key

    >>> messages = spark.createDataFrame(
    ...     [
    ...         ("ann", 1, "lunch at noon", "good"),
    ...         ("ann", 2, "cheap pills", "bad"),
    ...         ("ann", 3, "lunch, then pills", None),
    ...         ("bob", 4, "cheap pills", "good"),
    ...     ],
    ...     "user string, n int, text string, label string",
    ... )
    >>> answers = learn_by_key(messages, key="user", order="n")
    >>> answers.select("user", "n", "prediction", "error").orderBy("n").show()
    +----+---+----------+-----+
    |user|  n|prediction|error|
    +----+---+----------+-----+
    | ann|  1|      NULL| NULL|
    | ann|  2|      good| NULL|
    | ann|  3|      good| NULL|
    | bob|  4|      NULL| NULL|
    +----+---+----------+-----+
    <BLANKLINE>

    """
    model = TextClassifier() if model is None else model
    check_messages(stream, text, model)
    of_label = check_labels(stream, label, model)
    check_there(stream, "keys", key)
    columns = check_order(stream, order)
    for name in columns:
        kind = stream.schema[name].dataType
        if not isinstance(kind, t.AtomicType):
            raise TypeError(f"column {name!r} is of type {kind.simpleString()}; the order must be of plain values")
    check_new(stream, ANSWERS)
    session = stream.sparkSession
    if "RocksDB" not in (session.conf.get(PROVIDER, "") or ""):
        raise ValueError(f"models by key are kept in RocksDB: spark.conf.set({PROVIDER!r}, {ROCKSDB!r})")
    common = context_of(stream).broadcast(CommonModel(model))
    schema = t.StructType([*stream.schema.fields, *fields_of_answers(of_label)])
    processor = ModelOfKey(Sent(lambda: common), schema.names, text, label, columns)
    return stream.groupBy(column(key)).transformWithState(processor, schema, "append", "none")


class Sent:
    """A broadcast that is looked up once its value is asked for: Spark takes what it calls apart from the workers in
    another process, too, where no broadcast comes.
    """

    def __init__(self, find: Callable[..., Any], *arguments: Any) -> None:
        self._find, self._arguments = find, arguments

    def __reduce__(self) -> Any:
        find, arguments = self.broadcast.__reduce__()  # which tells Spark that it is needed
        return Sent, (find, *arguments)

    @property
    def broadcast(self) -> Broadcast[CommonModel]:
        return cast(Broadcast[CommonModel], self._find(*self._arguments))


class ModelOfKey(StatefulProcessor):
    """What Spark calls with the messages of each key in a micro-batch."""

    def __init__(self, common: Sent, names: list[str], text: str, label: str, order: Sequence[str]) -> None:
        self._common, self._names = common, names
        self._text, self._label, self._order = text, label, order

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("model", "kept binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        in_order = list(rows)
        for name in reversed(self._order):
            in_order.sort(key=lambda row: (row[name] is not None, row[name]))
        kept = self._state.get()
        texts = [row[self._text] for row in in_order if row[self._text] is not None]
        branch = self._common.broadcast.value.branch(texts, None if kept is None else bytes(kept[0]))
        answered = Row(*self._names)
        answers = [answered(*row, *self._answer(branch, row[self._text], row[self._label])) for row in in_order]
        if branch.n_learned:
            self._state.update((branch.kept(),))
        return iter(answers)

    def _answer(self, branch: Branch, text: str | None, label: Any) -> tuple[Any, Any, str | None]:
        """The label that is predicted, the probabilities and why the message was not learned, if it was to be."""
        if text is None:
            return None, None, "the text is null"
        prediction, probabilities = None, {}
        if branch.model.classes != (None, None):
            prediction, found = branch.model.predict_one(text), branch.model.predict_proba_one(text)
            probabilities = {label: p for label, p in found.items() if label is not None}
        error = None
        if label is not None:
            try:
                branch.learn_one(text, label)
            except (TypeError, ValueError) as refused:
                error = str(refused)
        return prediction, probabilities, error

    def close(self) -> None:
        pass
