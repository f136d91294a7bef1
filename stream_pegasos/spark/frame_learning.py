"""Learning of the messages of a frame, in order or in parts that learn at the same time."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from stream_pegasos.common.checks import check_integer
from stream_pegasos.evaluation.results import Evaluation
from stream_pegasos.evaluation.scores import new_score
from stream_pegasos.evaluation.tallies import Score
from stream_pegasos.learners.label_policy import LabelPolicy
from stream_pegasos.learners.merging import check_parts, merge_into
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.spark.columns import (
    NUMBERS,
    check_apart,
    check_column,
    check_frame,
    check_labels,
    check_messages,
    check_order,
    column,
)
from stream_pegasos.spark.model_parts import LABEL, TEXT, WEIGHT, LearnedCounts, ModelPart
from stream_pegasos.spark.rounds import ROW_BITS, RoundFile, Rounds, dealt, learned_round
from stream_pegasos.spark.shared_files import find_context

__all__ = ["History", "learn"]

MOST_PARTS = 1 << 20

log = logging.getLogger(__name__)


@dataclass
class History(LearnedCounts):
    """The result of `learn`: the `TextClassifier`, the number of rounds, the counts of messages, and the quality of
    predictions: the score, its rows after each round, and the duration in seconds.
    """

    model: TextClassifier = field(kw_only=True)
    score: Score = field(kw_only=True)
    n_rounds: int = 0
    curve: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation of predictions, each made before its message was learned, by the model of its part."""
        return Evaluation(self.score, self.curve, self.seconds, name="history")

    def take(self, parts: Sequence[ModelPart], is_whole: bool) -> None:
        """Add the results of the parts in a round."""
        models = [part.model for part in parts]
        if is_whole:
            self.model = models[0]
        else:
            merge_into(self.model, models)
        for part in parts:
            self.add(part)
        self.n_rounds += 1


def learn(
    frame: DataFrame,
    model: TextClassifier | None = None,
    *,
    text: str = "text",
    label: str = "label",
    weight: str | None = None,
    parts: int | None = None,
    order: str | Sequence[str] = (),
    round_size: int | None = None,
    passes: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
) -> History:
    """Learn the messages of a frame, in order or in parts that learn at the same time.

    There are two ways. *In order*, with `parts=1`: one worker learns one message after the other. The model is the same
    as that of one machine, bit for bit. *Merged*, with more parts: in each round all parts start from the same model,
    and each learns its next messages; then `merge` combines their models into one, in pairs on the workers. A hash
    assigns messages to parts, so that each part gets all labels, and equal messages are spread. So the same messages
    and number of parts give the same result, bit for bit, with any number of workers, and even if tasks fail and are
    repeated.

    Each message is predicted by the model of its part before it is learned: `evaluation` of the result shows the
    quality of these predictions.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The messages. Spark reads them once, shuffles them, and keeps them, in memory or on disk, until learning ends.
    model : TextClassifier or None, default None
        The `TextClassifier` to continue with; it is not changed. `None` for a new one.
    text : str, default "text"
        The column of texts; or of structs with the fields, if the features of the model read several.
    label : str, default "label"
        The column of labels: strings, booleans, integers or doubles; or arrays of these if a message may have several.
        The labels are converted like labels in files, beside those of `model`: a string "8" and a double 8.0 are the
        integer 8 unless the model knows "8". A double that is not an integer is refused.
    weight : str or None, default None
        A column of numbers from 0 to 1e30, the weight of the loss on each message; `None` for a weight of 1.
    parts : int or None, default None
        The number of parts, at least 1; `None` for the current number of cores in Spark.
    order : str or sequence of str, default ()
        The column or columns to sort by: parts learn their messages in this order. Without any, they learn in an
        arbitrary order that is always the same.
    round_size : int or None, default None
        The number of messages that several parts together learn before they are merged, at least 1; the last round of a
        pass may be up to a tenth larger. Small rounds are more accurate, large ones faster: each round sends the model
        to all workers, and the changes back. `None` for 100,000 in the first round, and up to twice the last size in
        each later round, until merging takes about a tenth of the time. A single part learns all messages in one round.
    passes : int, default 1
        The number of times that all messages are learned, at least 1.
    checkpoint : str, os.PathLike or None, default None
        A file of the driver. After each round the model is written there, with the progress; if the file exists,
        learning continues from it. It must belong to the same messages, `model` and options. The previous file has the
        same name with `.previous` added.

    Raises
    ------
    ValueError, TypeError
        If a column is missing or of another type, a number is out of its range, the model is no text model, a decision
        needs `pos_label` and there is none, or the checkpoint belongs to other messages or options; with several parts,
        if the model cannot be merged.
    OSError
        If the checkpoint cannot be read or written, or another process uses it.

    Examples
    --------

    >>> from stream_pegasos.spark import learn

    >>> rows = [("cheap pills", "spam"), ("see you at lunch", "ham"), (None, "spam")] * 20
    >>> learned = learn(spark.createDataFrame(rows, ["text", "label"]), parts=2)
    >>> learned.n_learned, learned.refused
    (40, {'the text is null': 20})
    >>> learned.model.predict_one("pills, cheap pills")
    'spam'
    >>> learned.evaluation.score.n, learned.evaluation.score.accuracy > 0.9
    (40, True)

    """
    model = TextClassifier() if model is None else model
    check_frame(frame)
    check_apart(text=text, label=label, weight=weight)
    check_messages(frame, text, model)
    check_labels(frame, label, model)
    if weight is not None:
        check_column(frame, "weights", weight, NUMBERS)
    order = check_order(frame, order)
    parts = find_context(frame).defaultParallelism if parts is None else parts
    check_integer("parts", parts, 1, MOST_PARTS)
    if round_size is not None:
        check_integer("round_size", round_size, 1, 1 << ROW_BITS)
    check_integer("passes", passes, 1, 1 << 31)
    if parts > 1:
        check_parts([model, model])
    needed = [text, label, *([] if weight is None else [weight]), *order]
    plain = {name: f"_{number}" for number, name in enumerate(dict.fromkeys(needed))}  # names may have dots
    frame = frame.select(*(column(name).alias(plain[name]) for name in plain))
    columns = [
        f.col(plain[text]).alias(TEXT),
        f.col(plain[label]).alias(LABEL),
        (f.lit(1.0) if weight is None else f.col(plain[weight]).cast("double")).alias(WEIGHT),
    ]
    rows, sizes = dealt(frame, columns, [plain[name] for name in order], parts)
    rounds = Rounds(parts, max(sizes, default=0), passes, round_size)
    history = History(model=copy.deepcopy(model), score=new_score(model, exact=False))
    policy = LabelPolicy(model.classes)
    try:
        with RoundFile(checkpoint, rows, rounds, history) as file:
            while not rounds.are_done:
                start = perf_counter()
                learned = learned_round(rounds.rows(rows), history.model, policy, parts)
                history.take(learned, is_whole=parts == 1)
                rounds.advance(sum(part.model.n_features for part in learned))
                history.seconds += perf_counter() - start
                history.curve.append(history.score.row(history.seconds))
                log.info(f"round {history.n_rounds}: {history.evaluation!r}")
                file.write()
    finally:
        rows.unpersist()
    return history
