"""Learning the messages of a frame in parts, all at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from stream_pegasos.common.checks import check_integer
from stream_pegasos.learners.merging import model_of, snapshot_of
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.spark.columns import arranged, check_order, column, plain_names
from stream_pegasos.spark.parts import (
    MOST_PARTS,
    PART,
    PIECES,
    Learned,
    Messages,
    check_can_merge,
    learned_part,
    merged_parts,
    parts_of,
    worker,
)
from stream_pegasos.spark.sharing import context_of, packed

__all__ = ["History", "learn"]

ROW = "_row"
ROW_BITS = 33  # of `monotonically_increasing_id`, below the number of the partition


@dataclass
class History(Learned):
    """What `learn` learned.

    Attributes
    ----------
    model
        The `TextClassifier`.
    n_rounds
        How often parts were merged.
    """

    model: Any = None
    n_rounds: int = 0


def learn(
    frame: DataFrame,
    model: TextClassifier | None = None,
    *,
    text: str = "text",
    label: str = "label",
    weight: str | None = None,
    parts: int | None = None,
    order: str | Sequence[str] = (),
    round_size: int = 100_000,
    passes: int = 1,
) -> History:
    """Learn the messages of a frame in parts, all of which learn at the same time.

    In each round all parts start from the same model, and each learns its next messages; then `merge` combines their
    models into one. A message's part depends on the message alone. So the same messages and number of parts give the
    same result, bit for bit, with any number of workers, and even if tasks fail and are tried again.

    Parameters
    ----------
    frame
        The messages. They are read once, shuffled, and kept by Spark, in memory or on disk, until all is learned.
    model
        The `TextClassifier` to go on from, a new one if `None`; it stays as it is.
    text
        The column of texts; of structs with the fields, where the features of the model read several.
    label
        The column of labels: strings, booleans or integers; arrays of these if a message may have several.
    weight
        A column of numbers from 0 to 1e30, the weight of the loss on each message; `None` for 1 each.
    parts
        How many parts there are, at least 1; `None` for as many as Spark has cores now.
    order
        The column or columns to sort by: parts learn their messages in that order. Without any, they learn in an
        arbitrary order that is always the same.
    round_size
        How many messages all parts together learn before they are merged, at least 1. Small rounds are more accurate,
        large ones faster: each round sends the model to all workers, and the changes back.
    passes
        How often all messages are learned, at least 1.

    Raises
    ------
    ValueError, TypeError
        If a column is missing or of another type, a number is out of its range, the model is no text model or cannot be
        merged, a round of a `PegasosClassifier` is larger than its `batch_size`, or a decision needs `pos_label` and
        there is none.

    Examples
    --------

    >>> from stream_pegasos.spark import learn

    >>> rows = [("cheap pills", "spam"), ("see you at lunch", "ham"), (None, "spam")] * 20
    >>> learned = learn(spark.createDataFrame(rows, ["text", "label"]), parts=2)
    >>> learned.n_learned, learned.refused
    (40, {'the text is null': 20})
    >>> learned.model.predict_one("pills, cheap pills")
    'spam'

    """
    model = TextClassifier() if model is None else model
    messages = Messages.of(frame, model, text, label, weight)
    columns = check_order(frame, order)
    context = context_of(frame)
    parts = context.defaultParallelism if parts is None else parts
    check_integer("parts", parts, 1, MOST_PARTS)
    check_can_merge(model, round_size)
    check_integer("round_size", round_size, 1, 1 << ROW_BITS)
    check_integer("passes", passes, 1, 1 << 31)
    names = plain_names([*messages.columns, *columns])
    needed = frame.select(*(column(name).alias(plain) for name, plain in names.items()))
    messages, columns = messages.renamed(names), [names[name] for name in columns]
    row = f.monotonically_increasing_id()
    rows = (
        arranged(needed, columns, parts)
        .select(
            *(column(name) for name in messages.columns),
            f.shiftright(row, ROW_BITS).cast("int").alias(PART),
            row.bitwiseAND((1 << ROW_BITS) - 1).alias(ROW),
        )
        .persist()
    )
    result, base = History(), snapshot_of(model)
    try:
        lengths = [length for (length,) in rows.groupBy(PART).count().select("count").collect()]
        share = max(1, round_size // parts)
        for begin in [begin for _ in range(passes) for begin in range(0, max(lengths, default=0), share)]:
            sent = context.broadcast(packed(base))
            here = rows.where(f.col(ROW).between(begin, begin + share - 1)).drop(ROW)
            try:
                learned = parts_of(here.mapInArrow(worker(learned_part, sent, messages), PIECES).toArrow())
            finally:
                sent.destroy()
            base = merged_parts(base, learned)
            for part in learned:
                result.add(part)
            result.n_rounds += 1
    finally:
        rows.unpersist()
    result.model = model_of(base)
    return result
