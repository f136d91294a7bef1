"""Learning in parts: a worker learns its part of the messages, and the driver merges the models of all parts."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from stream_pegasos.common.checks import LARGEST_WEIGHT
from stream_pegasos.evaluation.predicted import PredictedBlock
from stream_pegasos.evaluation.prequential import REFUSALS, predict_block
from stream_pegasos.features.frames import some_rows
from stream_pegasos.features.message import message_of
from stream_pegasos.learners.files import Snapshot
from stream_pegasos.learners.labels import PositiveLabelError
from stream_pegasos.learners.merging import Known, changes, check_mergeable, merged_snapshots, model_of, snapshot_of
from stream_pegasos.learners.predictions import settled
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.spark.columns import (
    ANSWERS,
    NUMBERS,
    arrow_of_answers,
    check_column,
    check_labels,
    check_messages,
    fields_of_answers,
)
from stream_pegasos.spark.sharing import packed, unpacked

__all__ = [
    "Learned",
    "Messages",
    "Part",
    "answered_part",
    "check_can_merge",
    "learned_part",
    "merged_parts",
    "parts_of",
    "unread_messages",
    "worker",
]

# A worker sends its report in pieces, in columns of their own.
PART, PIECE, CONTENT = "_part", "_piece", "_content"
TYPES_OF_PIECES = (pa.int32(), pa.int32(), pa.binary())
PIECES = f"{PART} int, {PIECE} int, {CONTENT} binary"
LARGEST_PIECE = 32 << 20  # bytes
NO_LABEL, NO_TEXT = "the label is null", "the text is null"
MOST_REASONS, OTHERS = 20, "other reasons"
MOST_PARTS = 1 << 20
NEWEST = 20  # messages that a page shows


@dataclass
class Learned:
    """Counts of messages that were learned.

    Attributes
    ----------
    n_read
        The number of messages.
    n_learned
        The number of messages that were learned.
    refused
        How many were skipped, by reason. In a stream, messages without a label do not count, as these are predicted.
    """

    n_read: int = 0
    n_learned: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def add(self, other: Learned) -> None:
        self.n_read += other.n_read
        self.n_learned += other.n_learned
        counts = Counter(self.refused) + Counter(other.refused)
        n_other = counts.pop(OTHERS, 0)
        rest = counts.most_common()
        self.refused = dict(rest[:MOST_REASONS])
        n_other += sum(count for _, count in rest[MOST_REASONS:])
        if n_other:
            self.refused[OTHERS] = n_other


@dataclass
class Part(Learned):
    """What a worker reports of its part to the driver."""

    number: int = 0
    snapshot: bytes = b""
    fault: str | None = None  # why nothing can be learned at all
    outcomes: list[Any] = field(default_factory=list)
    newest: PredictedBlock | None = None  # the last messages with labels

    def answer(
        self,
        model: Any,
        X: Callable[[list[int]], Any],
        texts: Sequence[Any],
        labels: Sequence[Any],
        weights: Sequence[Any],
        messages: Messages,
    ) -> dict[str, pa.Array]:
        """Predict, then learn, the messages without a fault, and return the answers to all, by column. `X` gives the
        model its input for messages at some places.

        Raises
        ------
        TypeError, ValueError
            If no message can be learned.
        """
        faults = faults_of(model, texts, labels, weights)
        at = [i for i, fault in enumerate(faults) if fault is None]
        given = [labels[i] for i in at]
        blocks = [*predicted_in_turn(model, X(at), given, [weights[i] for i in at])]
        self._take_note(model, blocks, [texts[i] for i in at])
        refused = [fault for fault in faults if fault is not None]
        self.add(Learned(len(texts), sum(len(block.y) for block in blocks), Counter(refused)))
        said = [messages.answers(block) for block in blocks] or [messages.no_answers]
        places = iter(range(len(at)))
        order = pa.array([None if fault is not None else next(places) for fault in faults], pa.int64())
        columns = [pa.concat_arrays(column).take(order) for column in zip(*said, strict=True)]
        return dict(zip(ANSWERS, [*columns, pa.array(faults, pa.string())], strict=True))

    def _take_note(self, model: Any, blocks: Sequence[PredictedBlock], texts: Sequence[str]) -> None:
        """Keep the outcomes, for scores, and the newest messages."""
        outcomes: list[Any] = [block.outcomes(model) for block in blocks if block.y]
        # Outcomes before and after an exchange of two classes, or a third class, cannot be joined.
        for _, alike in itertools.groupby(outcomes, lambda each: (type(each), getattr(each, "classes", None))):
            first, *rest = alike
            self.outcomes.append(first.joined([first, *rest]) if rest else first)
        end = len(texts)
        for block in reversed(blocks):
            if block.y:
                said, n = block.predictions, min(len(block), NEWEST)
                newest = settled(
                    said.scores[-n:], said.labels[-n:], (said.classes, said.probabilities[-n:]), said.limited
                )
                examples = list(zip(texts[end - n : end], block.y[-n:], strict=True))
                self.newest = PredictedBlock(newest, block.classes, block.y[-n:], examples)
                return
            end -= len(block)

    def report(self, before: Snapshot, model: Any) -> Iterator[pa.RecordBatch]:
        """This with the changes of the model, in rows of limited size; nothing if there were no messages."""
        if self.n_read:
            self.snapshot = packed(changes(before, snapshot_of(model)))
        content = pickle.dumps(self, pickle.HIGHEST_PROTOCOL) if self.n_read or self.fault else b""
        for number, begin in enumerate(range(0, len(content), LARGEST_PIECE)):
            row = ([self.number], [number], [content[begin : begin + LARGEST_PIECE]])
            arrays = [pa.array(value, kind) for value, kind in zip(row, TYPES_OF_PIECES, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, [PART, PIECE, CONTENT])


@dataclass(frozen=True)
class Messages:
    """The columns of a frame that hold messages.

    Parameters
    ----------
    text, label, weight
        The names of the columns; `None` if all weights are 1.
    of_label
        The type of a label.
    several
        Whether a message may have several labels, so that they come in arrays.
    """

    text: str
    label: str
    weight: str | None
    of_label: t.DataType
    several: bool

    @classmethod
    def of(cls, frame: DataFrame, model: Any, text: str, label: str, weight: str | None) -> Messages:
        """The columns of a frame, checked for the model that will learn them.

        Raises
        ------
        ValueError, TypeError
            If a column is not there or of another type, or the model is no text model.
        """
        check_messages(frame, text, model)
        if weight is not None:
            check_column(frame, "weights", weight, NUMBERS)
        return cls(text, label, weight, check_labels(frame, label, model), "several labels" in model.capabilities)

    @property
    def columns(self) -> list[str]:
        return [name for name in (self.text, self.label, self.weight) if name is not None]

    def renamed(self, names: Mapping[str, str]) -> Messages:
        """The columns under new names."""
        weight = None if self.weight is None else names[self.weight]
        return replace(self, text=names[self.text], label=names[self.label], weight=weight)

    @property
    def fields_of_answers(self) -> list[t.StructField]:
        return fields_of_answers(self.of_label, self.several)

    def answers(self, block: PredictedBlock) -> tuple[pa.Array, pa.Array]:
        """The labels predicted and the probabilities."""
        said = block.predictions
        if None not in block.classes:
            labels, classes, probabilities = said.labels.tolist(), said.classes, said.probabilities
        else:
            labels, known = [each.label for each in block.each()], [label in block.classes for label in said.classes]
            classes = tuple(itertools.compress(said.classes, known))
            probabilities = said.probabilities[:, known]
        return arrow_of_answers(labels, classes, probabilities, self.of_label, self.several)

    @property
    def no_answers(self) -> tuple[pa.Array, pa.Array]:
        return arrow_of_answers([], [], np.zeros((0, 0)), self.of_label, self.several)

    def read(self, batch: pa.RecordBatch | pa.Table) -> tuple[list[Any], list[Any], list[Any]]:
        """The messages, labels and weights."""
        texts, labels = [*map(message_of, batch[self.text].to_pylist())], batch[self.label].to_pylist()
        if self.weight is None:
            return texts, labels, [1.0] * len(texts)
        return texts, labels, [None if w is None else float(w) for w in batch[self.weight].to_pylist()]


def faults_of(model: Any, texts: Sequence[Any], labels: Sequence[Any], weights: Sequence[Any]) -> list[str | None]:
    """What is wrong with each message, `None` if it can be learned or has no label."""
    reasons = refused_labels(model, labels)
    faults: list[str | None] = []
    for unread, label, weight in zip(unread_messages(model, texts), labels, weights, strict=True):
        if unread is not None:
            faults.append(unread)
        elif label is not None and (weight is None or not 0.0 <= weight <= LARGEST_WEIGHT):
            faults.append(f"the weight is not from 0 to {LARGEST_WEIGHT:g}")
        else:
            faults.append(reasons.get(hashable(label)))
    return faults


def unread_messages(model: Any, messages: Sequence[Any]) -> list[str | None]:
    """Why each message cannot be read; `None` for one that can."""
    read = [None] * len(messages) if model.features.takes_text else model.features.refusals(messages)
    return [NO_TEXT if message is None else reason for message, reason in zip(messages, read, strict=True)]


def hashable(label: Any) -> Any:
    return tuple(label) if isinstance(label, list) else label


def refused_labels(model: Any, labels: Iterable[Any]) -> dict[Any, str]:
    """Why labels cannot be learned, by label; each is checked together with the accepted ones before it."""
    there = [label for label in dict.fromkeys(map(hashable, labels)) if label is not None]
    accepted: list[Any] = []
    reasons = {}
    try:
        model.check_labels(there)
    except PositiveLabelError:
        raise
    except REFUSALS:
        for label in there:
            try:
                model.check_labels([*accepted, label])
                accepted.append(label)
            except REFUSALS as error:
                reasons[label] = str(error)
    return reasons


def predicted_in_turn(model: Any, X: Any, labels: Sequence[Any], weights: Sequence[float]) -> Iterator[PredictedBlock]:
    """Predict each message, then learn it if it has a label. None of the messages may have a fault."""
    begin = 0
    for labelled, group in itertools.groupby(labels, lambda label: label is not None):
        end = begin + sum(1 for _ in group)
        while begin < end:
            # With two classes, the margin tells the predicted label only if both are known.
            is_alone = labelled and None in model.classes
            next_begin = begin + 1 if is_alone else end
            these = some_rows(X, begin, next_begin)
            y, w = list(labels[begin:next_begin]), weights[begin:next_begin]
            if labelled and not is_alone:
                yield PredictedBlock(model.predict_learn_many(these, y, w), model.classes, y)
            else:
                block = predict_block(model, these, y if labelled else [])
                if labelled:
                    model.learn_many(these, y, w)
                yield block
            begin = next_begin


def learned_part(
    batches: Iterable[pa.RecordBatch], base: Broadcast[bytes], messages: Messages
) -> Iterator[pa.RecordBatch]:
    """Learn a part of the messages, and yield the report on it for the driver, in pieces."""
    before = unpacked(base.value)
    model, part = model_of(before), Part()
    try:
        for batch in batches:
            part.number = batch[PART][0].as_py()
            texts, labels, weights = messages.read(batch)
            reasons = [
                NO_LABEL if fault is None and label is None else fault
                for fault, label in zip(faults_of(model, texts, labels, weights), labels, strict=True)
            ]
            at = [i for i, reason in enumerate(reasons) if reason is None]
            model.learn_many(*(some(column, at) for column in (texts, labels, weights)))
            part.add(Learned(len(texts), len(at), Counter(reason for reason in reasons if reason is not None)))
    except REFUSALS as error:
        part.fault = str(error)
    yield from part.report(before, model)


def answered_part(
    batches: Iterable[pa.RecordBatch], base: Broadcast[bytes], messages: Messages
) -> Iterator[pa.RecordBatch]:
    """Predict, then learn, a part of the messages; yield them with their answers, then the report for the driver."""
    before = unpacked(base.value)
    model, part, schema = model_of(before), Part(), pa.schema([])
    try:
        for batch in batches:
            part.number = batch[PART][0].as_py()
            batch = batch.drop_columns([PART])
            schema = with_fields(batch.schema, messages)
            texts, labels, weights = messages.read(batch)
            answers = part.answer(model, partial(some, texts), texts, labels, weights, messages)
            yield filled(batch, answers, schema)
    except REFUSALS as error:
        part.fault = str(error)
    for piece in part.report(before, model):
        yield filled(piece, {}, schema)


def with_fields(schema: pa.Schema, messages: Messages) -> pa.Schema:
    """The schema of rows with a message and its answer, or with a piece; the other columns are null."""
    kinds = [*(column.type for column in messages.no_answers), pa.string(), *TYPES_OF_PIECES]
    more = [pa.field(name, kind) for name, kind in zip((*ANSWERS, PART, PIECE, CONTENT), kinds, strict=True)]
    return pa.schema([field.with_nullable(True) for field in schema] + more)


def filled(batch: pa.RecordBatch, more: dict[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """A batch with more columns, and nulls in those of the schema that it does not have."""
    there = {**dict(zip(batch.schema.names, batch.columns, strict=True)), **more}
    arrays = [there.get(field.name, pa.nulls(len(batch), field.type)) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def some(values: Sequence[Any], at: list[int]) -> list[Any]:
    return [values[i] for i in at]


def parts_of(table: pa.Table) -> list[Part]:
    """The parts, in order, from the pieces that the workers have sent.

    Raises
    ------
    ValueError
        If a worker could learn nothing.
    """
    rows = sorted(zip(*(table.column(name).to_pylist() for name in (PART, PIECE, CONTENT)), strict=True))
    parts: list[Part] = []
    for _, group in itertools.groupby(rows, lambda row: row[0]):
        parts.append(pickle.loads(b"".join(content for _, _, content in group)))
        if parts[-1].fault is not None:
            raise ValueError(parts[-1].fault)
    return parts


def merged_parts(base: Snapshot, parts: Sequence[Part]) -> Snapshot:
    """The merged model of all parts. A Pegasos model takes one step with all that they have learned."""
    # A single part lacks the features that it did not change; merging it with empty parts brings them back.
    nothing = changes(base, base)
    merged = merged_snapshots(base, [*(unpacked(part.snapshot) for part in parts if part.snapshot), nothing, nothing])
    if "batch_size" not in Known.of(base).parameters:
        return merged
    model = model_of(merged)
    model.flush()
    return snapshot_of(model)


def worker(of_part: Any, *arguments: Any) -> Any:
    """A function of the batches of a partition."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return of_part(batches, *arguments)  # type: ignore[no-any-return]

    return work


def check_can_merge(model: TextClassifier, n_messages: int | None = None) -> None:
    """Raise a TypeError or a ValueError if the model's parts cannot be merged when they learn `n_messages` together."""
    known = Known.of(snapshot_of(model.clone()))
    check_mergeable(known)
    batch_size = known.parameters.get("batch_size")
    if batch_size is not None and (n_messages or 1) >= batch_size:
        what = "a message" if n_messages is None else f"a round of {n_messages:,} messages"
        mini_batch = f"a mini-batch of a PegasosClassifier with batch_size={batch_size:,}"
        raise ValueError(f"{what} must be smaller than {mini_batch}, as it becomes one step")
