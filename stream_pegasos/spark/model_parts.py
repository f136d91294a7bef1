"""The work of a worker on its part of the messages, and its report to the driver."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import Broadcast

from stream_pegasos.blocks.blockwise import REFUSALS, predict_learn
from stream_pegasos.common.batch_then_single import batch_then_single
from stream_pegasos.common.checks import LARGEST_WEIGHT
from stream_pegasos.evaluation.scores import block_outcomes, new_score
from stream_pegasos.learners.label_policy import Fault, LabelPolicy
from stream_pegasos.learners.labels import PositiveLabelError
from stream_pegasos.learners.merging import drop_unchanged, merge_changes

if TYPE_CHECKING:
    from stream_pegasos.evaluation.tallies import Score
    from stream_pegasos.learners.text import TextClassifier

__all__ = [
    "LearnedCounts",
    "ModelPart",
    "column_values",
    "learned_part",
    "merged_pair",
    "read_parts",
    "unread_messages",
]

TEXT, LABEL, WEIGHT, PART = "_text", "_label", "_weight", "_part"
# A worker sends its report in pieces, in separate columns.
PIECE, CONTENT = "_piece", "_content"
TYPES_OF_PIECES = (pa.int32(), pa.int32(), pa.binary())
PIECES = f"{PART} int, {PIECE} int, {CONTENT} binary"
LARGEST_PIECE = 32 << 20  # bytes
NO_LABEL, NO_TEXT = "the label is null", "the text is null"
LABEL_NOT_UTF8, TEXT_NOT_UTF8 = "the label is not UTF-8", "the text is not UTF-8"
MOST_REASONS, OTHERS = 20, "other reasons"


@dataclass
class LearnedCounts:
    """Counts of messages: all, learned (without those of weight 0), and skipped, by reason; and the score of the
    predictions made before learning.
    """

    n_read: int = 0
    n_learned: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    score: Score | None = None

    def add(self, other: LearnedCounts) -> None:
        self.n_read += other.n_read
        self.n_learned += other.n_learned
        counts = Counter(self.refused) + Counter(other.refused)
        n_other = counts.pop(OTHERS, 0)
        pairs = counts.most_common()
        self.refused = dict(pairs[:MOST_REASONS])
        n_other += sum(count for _, count in pairs[MOST_REASONS:])
        if n_other:
            self.refused[OTHERS] = n_other
        if self.score is None:
            self.score = other.score
        elif other.score is not None:
            self.score.add(other.score)


@dataclass
class ModelPart(LearnedCounts):
    """The report of a worker on its part to the driver."""

    number: int = 0
    model: TextClassifier = field(kw_only=True)
    fault: str | None = None  # why nothing can be learned

    def pieces(self) -> Iterator[pa.RecordBatch]:
        """This report in rows of limited size."""
        content = pickle.dumps(self, pickle.HIGHEST_PROTOCOL)
        for number, begin in enumerate(range(0, len(content), LARGEST_PIECE)):
            row = ([self.number], [number], [content[begin : begin + LARGEST_PIECE]])
            arrays = [pa.array(value, kind) for value, kind in zip(row, TYPES_OF_PIECES, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, [PART, PIECE, CONTENT])


def learned_part(
    batches: Iterable[pa.RecordBatch], base: Broadcast[bytes], policy: LabelPolicy, whole: bool
) -> Iterator[pa.RecordBatch]:
    """Learn a part of the messages, and yield the report on it, with the `whole` model or with its changes; nothing if
    there are no messages.
    """
    model: TextClassifier = pickle.loads(base.value)
    part = ModelPart(model=model)
    part.score = new_score(model, exact=False)
    try:
        for batch in batches:
            part.number = batch[PART][0].as_py()
            (texts, bad_texts), (labels, bad_labels) = (
                column_values(batch[TEXT]),
                column_values(batch[LABEL]),
            )
            labels, faults = read_labels(policy, labels)
            columns = [texts, labels, batch[WEIGHT].to_pylist()]
            reasons = reasons_against(model, *columns)
            for row, fault in faults.items():
                reasons[row] = fault
            for row in bad_labels:
                reasons[row] = LABEL_NOT_UTF8
            for row in bad_texts:
                reasons[row] = TEXT_NOT_UTF8
            is_good = [reason is None for reason in reasons]
            for block in predict_learn(model, [*itertools.compress(zip(*columns, strict=True), is_good)]):
                part.score.update(block_outcomes(block, model))
            refused = Counter(reason for reason in reasons if reason is not None)
            weights = itertools.compress(columns[2], is_good)
            part.add(LearnedCounts(len(reasons), sum(weight > 0.0 for weight in weights), refused))
    except REFUSALS as error:
        part.fault = str(error)
    if part.n_read or part.fault is not None:
        if not whole:
            drop_unchanged(pickle.loads(base.value), model)
        yield from part.pieces()


def merged_pair(table: pa.Table, base: Broadcast[bytes]) -> pa.Table:
    """The merged report on two parts, from the pieces of their reports, or on a single part. Its number is half of
    theirs.
    """
    reports = read_reports(table)
    models = [each.model for each in reports]
    fault = next((each.fault for each in reports if each.fault), None)
    report = ModelPart(number=reports[0].number // 2, model=models[0], fault=fault)
    for each in reports:
        report.add(each)
    if len(models) > 1 and not report.fault:
        report.model = pickle.loads(base.value)
        merge_changes(report.model, models)
    return pa.Table.from_batches([*report.pieces()])


def read_labels(policy: LabelPolicy, values: Iterable[Any]) -> tuple[list[Any], dict[int, str]]:
    """The label or labels of each row, `None` for no label; and the faults of rows, by number."""
    labels, faults = list[Any](), dict[int, str]()
    for row, value in enumerate(values):
        label = policy.read_several(value) if isinstance(value, list) else policy.read(value)
        if isinstance(label, Fault):
            faults[row] = str(label)
        labels.append(None if isinstance(label, Fault) else label)
    return labels, faults


def reasons_against(
    model: TextClassifier, texts: Sequence[Any], labels: Sequence[Any], weights: Sequence[float | None]
) -> list[str | None]:
    """The reason why each message cannot be learned; `None` if it can."""
    refused = refused_labels(model, zip(labels, map(bool, weights), strict=True))
    reasons: list[str | None] = []
    for unread, label, weight in zip(unread_messages(model, texts), labels, weights, strict=True):
        if unread is not None:
            reasons.append(unread)
        elif label is not None and (weight is None or not 0.0 <= weight <= LARGEST_WEIGHT):
            reasons.append(f"the weight is not from 0 to {LARGEST_WEIGHT:g}")
        else:
            reasons.append(NO_LABEL if label is None else refused.get((label, bool(weight))))
    return reasons


def column_values(array: pa.Array) -> tuple[list[Any], set[int]]:
    """The values of a column, and the rows that cannot be read, because Spark's strings may be any bytes; they are
    `None`.
    """
    values, unread = list[Any](), set[int]()
    for _, found in batch_then_single(array, lambda batch: batch.to_pylist(), UnicodeDecodeError):
        if isinstance(found, UnicodeDecodeError):
            unread.add(len(values))
        values += [None] if isinstance(found, UnicodeDecodeError) else found
    return values, unread


def unread_messages(model: TextClassifier, messages: Sequence[Any]) -> list[str | None]:
    """The reason why each message cannot be read; `None` if it can."""
    read = [None] * len(messages) if model.features.takes_text else model.features.refusals(messages)
    return [NO_TEXT if message is None else reason for message, reason in zip(messages, read, strict=True)]


def refused_labels(model: TextClassifier, labels: Iterable[tuple[Any, bool]]) -> dict[tuple[Any, bool], str]:
    """The reasons why labels cannot be learned, by the label and whether it has weight. Each is checked together with
    the accepted ones before it.
    """
    accepted: list[tuple[Any, bool]] = []

    def check(labels: list[tuple[Any, bool]]) -> None:
        model.check_labels(*zip(*accepted, *labels, strict=True))
        accepted.extend(labels)

    reasons = {}
    distinct = [pair for pair in dict.fromkeys(labels) if pair[0] is not None]
    for batch, error in batch_then_single(distinct, check, REFUSALS):
        if isinstance(error, PositiveLabelError):
            raise error
        if error is not None:
            reasons[batch[0]] = str(error)
    return reasons


def read_parts(table: pa.Table) -> list[ModelPart]:
    """The parts, in order, from the pieces that the workers have sent; a ValueError if one could not learn anything."""
    reports = read_reports(table)
    for report in reports:
        if report.fault is not None:
            raise ValueError(report.fault)
    return reports


def read_reports(table: pa.Table) -> list[ModelPart]:
    rows = sorted(zip(*(table.column(name).to_pylist() for name in (PART, PIECE, CONTENT)), strict=True))
    groups = itertools.groupby(rows, lambda row: row[0])
    return [pickle.loads(b"".join(content for _, _, content in group)) for _, group in groups]
