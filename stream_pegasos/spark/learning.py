"""Learning the messages of a frame, in order or in parts that learn at the same time."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from stream_pegasos.common.checks import check_integer
from stream_pegasos.learners.label_meaning import LabelsMeant
from stream_pegasos.learners.merging import check_parts, merge
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.spark.columns import (
    NUMBERS,
    arranged,
    check_apart,
    check_column,
    check_frame,
    check_labels,
    check_messages,
    check_order,
    column,
)
from stream_pegasos.spark.parts import LABEL, PART, PIECES, TEXT, WEIGHT, Learned, Part, learned_part, parts_of
from stream_pegasos.spark.sharing import context_of

__all__ = ["History", "learn"]

MOST_PARTS = 1 << 20
ROW = "_row"
ROW_BITS = 33  # of `monotonically_increasing_id`, below the number of the partition


@dataclass
class History(Learned):
    """What `learn` learned: the `TextClassifier`, the number of rounds, and the counts of messages."""

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
    """Learn the messages of a frame, in order or in parts that learn at the same time.

    There are two ways. *In order*, with `parts=1`: one worker learns one message after the other. The model is that of
    one machine, bit for bit. *Merged*, with more parts: in each round all parts start from the same model, and each
    learns its next messages; then `merge` combines their models into one. A message's part depends on the message
    alone. So the same messages and number of parts give the same result, bit for bit, with any number of workers, and
    even if tasks fail and are tried again.

    Parameters
    ----------
    frame
        The messages. They are read once, shuffled, and kept by Spark, in memory or on disk, until all is learned.
    model
        The `TextClassifier` to go on from, a new one if `None`; it stays as it is.
    text
        The column of texts; of structs with the fields, where the features of the model read several.
    label
        The column of labels: strings, booleans or integers; arrays of these if a message may have several. Which labels
        they stand for is what readers of files say of them, alone or beside those of `model`: a string "8" is the
        integer 8 unless the model knows "8".
    weight
        A column of numbers from 0 to 1e30, the weight of the loss on each message; `None` for 1 each.
    parts
        How many parts there are, at least 1; `None` for as many as Spark has cores now.
    order
        The column or columns to sort by: parts learn their messages in that order. Without any, they learn in an
        arbitrary order that is always the same.
    round_size
        How many messages several parts together learn before they are merged, at least 1. Small rounds are more
        accurate, large ones faster: each round sends the model to all workers, and the changes back. A single part
        learns all messages in one round.
    passes
        How often all messages are learned, at least 1.

    Raises
    ------
    ValueError, TypeError
        If a column is missing or of another type, a number is out of its range, the model is no text model, or a
        decision needs `pos_label` and there is none; with several parts if the model cannot be merged.

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
    check_frame(frame)
    check_apart(text=text, label=label, weight=weight)
    check_messages(frame, text, model)
    check_labels(frame, label, model)
    if weight is not None:
        check_column(frame, "weights", weight, NUMBERS)
    order = check_order(frame, order)
    parts = context_of(frame).defaultParallelism if parts is None else parts
    check_integer("parts", parts, 1, MOST_PARTS)
    check_integer("round_size", round_size, 1, 1 << ROW_BITS)
    check_integer("passes", passes, 1, 1 << 31)
    if parts > 1:
        check_parts([model, model])
    needed = [text, label, *([] if weight is None else [weight]), *order]
    plain = {name: f"_{number}" for number, name in enumerate(dict.fromkeys(needed))}  # names may have dots
    frame = frame.select(*(column(name).alias(plain[name]) for name in plain))
    row = f.monotonically_increasing_id()
    rows = (
        arranged(frame, [plain[name] for name in order], parts)
        .select(
            f.col(plain[text]).alias(TEXT),
            f.col(plain[label]).alias(LABEL),
            (f.lit(1.0) if weight is None else f.col(plain[weight]).cast("double")).alias(WEIGHT),
            f.shiftright(row, ROW_BITS).cast("int").alias(PART),
            row.bitwiseAND((1 << ROW_BITS) - 1).alias(ROW),
        )
        .persist()
    )
    result = History(model=copy.deepcopy(model))
    meant = LabelsMeant(model.classes)
    try:
        longest = max((n for _, n in rows.groupBy(PART).count().collect()), default=0)
        share = max(1, longest if parts == 1 else round_size // parts)
        for begin in [*range(0, longest, share)] * passes:
            here = rows.where(f.col(ROW).between(begin, begin + share - 1)).drop(ROW)
            learned = learned_round(here, result.model, meant, whole=parts == 1)
            models = [part.model for part in learned]
            # Beside the model itself, as a part that is alone would stay as it is: without what it did not change.
            result.model = models[0] if parts == 1 else merge(result.model, [*models, result.model])
            for part in learned:
                result.add(part)
            result.n_rounds += 1
    finally:
        rows.unpersist()
    return result


def learned_round(rows: DataFrame, base: TextClassifier, meant: LabelsMeant, whole: bool) -> list[Part]:
    """What each part has learned of its rows, from the same model."""
    sent = context_of(rows).broadcast(pickle.dumps(base, pickle.HIGHEST_PROTOCOL))
    try:
        return parts_of(rows.mapInArrow(lambda batches: learned_part(batches, sent, meant, whole), PIECES).toArrow())
    finally:
        sent.destroy()
