"""Rounds of learning: the parts learn their next messages, and are merged on the workers."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2, nan
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from stream_pegasos.evaluation.scores import score_of_state
from stream_pegasos.learners.label_policy import LabelPolicy
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.spark.columns import arranged, hashed_columns
from stream_pegasos.spark.model_parts import PART, PIECES, ModelPart, learned_part, merged_pair, read_parts
from stream_pegasos.spark.shared_files import find_context

__all__ = ["RoundFile", "Rounds", "dealt", "learned_round"]

ROW = "_row"
ROW_BITS = 33  # of `monotonically_increasing_id`, below the number of the partition
FIRST_ROUND = 100_000  # messages
UNEVEN = 1.5  # the largest ratio of a part to the mean, if there are many equal messages
LAST = 1.1  # the largest ratio of the last round of a pass to others, so that no round has only a few messages
# Merging a feature takes as long as learning about a quarter of a message.
MERGED_FEATURE, SHARE_OF_MERGING = 0.25, 0.1


def dealt(
    frame: DataFrame, columns: Sequence[Column], order: Sequence[str], n_parts: int
) -> tuple[DataFrame, list[int]]:
    """The rows of a frame, kept by Spark, with the number of the part that learns each row and its number in the part;
    and the size of each part.
    """
    row = f.monotonically_increasing_id()
    for spread_equal in (False, True):
        rows = (
            arranged(frame, order, n_parts, spread_equal)
            .select(
                *columns,
                f.shiftright(row, ROW_BITS).cast("int").alias(PART),
                row.bitwiseAND((1 << ROW_BITS) - 1).alias(ROW),
            )
            .persist()
        )
        sizes = [n for _, n in rows.groupBy(PART).count().collect()]
        if n_parts == 1 or not sizes or max(sizes) <= max(UNEVEN * sum(sizes) / n_parts, FIRST_ROUND / n_parts):
            break
        if not spread_equal:
            rows.unpersist()
    return rows, sizes


@dataclass
class Rounds:
    """The rounds, and the messages of each part in the next one, from the size of the longest part."""

    n_parts: int
    longest: int
    passes: int
    round_size: int | None
    share: int = field(init=False)  # number of messages of each part in a round
    begin: int = 0
    n_passes: int = 0  # completed passes

    def __post_init__(self) -> None:
        self.share = max(1, self.longest if self.n_parts == 1 else (self.round_size or FIRST_ROUND) // self.n_parts)

    @property
    def are_done(self) -> bool:
        return self.n_passes == self.passes or not self.longest

    @property
    def end(self) -> int:
        """The number of the message after the next round, in each part."""
        length = self.longest - self.begin
        return self.longest if length <= LAST * self.share else self.begin + self.share

    def rows(self, rows: DataFrame) -> DataFrame:
        """The rows of the next round."""
        return rows.where(f.col(ROW).between(self.begin, self.end - 1)).drop(ROW)

    def advance(self, n_changed: int) -> None:
        """Continue with the next round; `n_changed` is the number of features changed in this one."""
        self.begin = self.end
        if self.begin == self.longest:
            self.begin, self.n_passes = 0, self.n_passes + 1
        if self.n_parts > 1 and self.round_size is None:
            merging = MERGED_FEATURE * n_changed * log2(2 * self.n_parts)
            self.share = min(max(self.share, int(merging / SHARE_OF_MERGING)), 2 * self.share)


def learned_round(rows: DataFrame, base: TextClassifier, policy: LabelPolicy, n_parts: int) -> list[ModelPart]:
    """The reports of at most two parts, into which all parts were merged, after learning these rows from one model."""
    sent = find_context(rows).broadcast(pickle.dumps(base, pickle.HIGHEST_PROTOCOL))
    try:
        pieces = rows.mapInArrow(lambda batches: learned_part(batches, sent, policy, n_parts == 1), PIECES)
        while n_parts > 2:
            pairs = pieces.groupBy(f.shiftright(PART, 1))
            pieces, n_parts = pairs.applyInArrow(lambda table: merged_pair(table, sent), PIECES), -(-n_parts // 2)
        return read_parts(pieces.toArrow())
    finally:
        sent.destroy()


class RoundFile:
    """A file with the model after the newest round, and the progress; without a path there is none.

    As a context it holds the lock of the file, and sets rounds and history to the progress in the file. A ValueError if
    it belongs to other messages, another initial model, or other options.
    """

    def __init__(self, path: str | os.PathLike[str] | None, rows: DataFrame, rounds: Rounds, history: Any) -> None:
        self._rounds, self._history = rounds, history
        self._checkpoints = None if path is None else Checkpoints(path, seconds=threading.TIMEOUT_MAX)
        if path is not None:
            begin = history.model.snapshot().checksum
            self._identity = [rounds.n_parts, rounds.passes, rounds.round_size, begin, *count_and_hash(rows)]

    def __enter__(self) -> RoundFile:
        if self._checkpoints is not None:
            self._checkpoints.claim()
            try:
                self._resume(self._checkpoints)
                self._checkpoints.start(lambda file: self._history.model.snapshot({"spark": self._progress()}, file))
            except BaseException:
                self._checkpoints.release()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._checkpoints is not None:
            self._checkpoints.close(last=False)

    def write(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.write_now()

    def _progress(self) -> dict[str, Any]:
        rounds, history = self._rounds, self._history
        return {
            "identity": self._identity,
            "rounds": [rounds.share, rounds.begin, rounds.n_passes],
            "counts": [history.n_rounds, history.n_read, history.n_learned, history.seconds],
            "refused": history.refused,
            "score": history.score.get_state(),
            "curve": [list(row) for row in history.curve],
        }

    def _resume(self, checkpoints: Checkpoints) -> None:
        rounds, history = self._rounds, self._history
        resumed = checkpoints.resume(history.model.vector_source)
        if resumed is None:
            return
        model, progress = resumed
        progress = progress.get("spark") if isinstance(progress, dict) else None
        if progress is None or [*progress["identity"]] != self._identity:
            raise ValueError(
                f"checkpoint {checkpoints.path} must be of the same messages, model and options; give another path, or "
                "remove the file to begin again"
            )
        rounds.share, rounds.begin, rounds.n_passes = progress["rounds"]
        history.model = model
        history.n_rounds, history.n_read, history.n_learned, history.seconds = progress["counts"]
        history.refused, history.score = progress["refused"], score_of_state(progress["score"], model)
        kind = type(history.score.row())
        history.curve = [kind(*(nan if value is None else value for value in row)) for row in progress["curve"]]


def count_and_hash(rows: DataFrame) -> list[int]:
    """The number of rows and, for each part, the combined hash of its rows."""
    hashed = f.xxhash64(*hashed_columns(rows))
    by_part = rows.groupBy(PART).agg(f.count("*"), f.bit_xor(hashed)).orderBy(PART)
    return [value for row in by_part.collect() for value in row]
