"""Durable learning: messages are learned by their ids, corrected, and kept through any kill."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.blocks.blockwise import n_teaching, predict_block, predict_learn
from stream_pegasos.blocks.predicted import Labelled, PredictedBlock
from stream_pegasos.common.locks import Lock
from stream_pegasos.engine.pure.adaptive_state import SHARE_OF_REST
from stream_pegasos.features.message import Message, message_size
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.files import Snapshot
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.predictions import Predictions
from stream_pegasos.learners.probabilities import Floats
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.journal import Entry, Journal
from stream_pegasos.runtime.learned_ids import CORRECTED, KNOWN, IdMemory
from stream_pegasos.runtime.micro_batching import slices
from stream_pegasos.runtime.monitor import Monitor
from stream_pegasos.streams import Answer
from stream_pegasos.streams.example import Id, Truth

if TYPE_CHECKING:
    from stream_pegasos.learners.text import TextClassifier

__all__ = ["ONE_STEP", "TAUGHT_ANEW", "UNKNOWN", "DurableLearning", "Notes", "noted"]

log = logging.getLogger(__name__)

SMALLEST_LESSON, MOST_STEPS_BACK = 2.0**-15, 2
TAUGHT_ANEW, ONE_STEP, UNKNOWN = "taught anew", "one step", "unknown"


class Notes(Protocol):
    """State beside a model, under `name` in its checkpoint. It changes only by notes, which are JSON lists in the
    journal.
    """

    name: str

    def id_of(self, note: list[Any], learned_ids: IdMemory) -> Id:
        """The id of the message that is learned with a note."""

    def apply(self, note: list[Any]) -> None:
        """Apply a note; applying it twice changes nothing more."""

    def get_state(self) -> Any:
        """The state to save, as JSON."""

    def set_state(self, state: object) -> None:
        """Restore the state from `get_state`; raise a ValueError if it is not valid."""


def noted(note: list[Any]) -> Entry:
    """The entry of a journal that holds only a note."""
    return "", None, 0.0, note


def _n_first(examples: Sequence[Labelled], n: int) -> int:
    """The length of the shortest prefix with `n` teaching examples, or with all of them if there are fewer."""
    teaching = [place for place, example in enumerate(examples, 1) if n_teaching([example])]
    return [0, *teaching][min(n, len(teaching))]


def surprises(block: PredictedBlock, labels: Sequence[Any], model: TextClassifier) -> list[float]:
    """The surprise of each label: 1 minus the probability of the label. It is 0 if the model learns nothing, because it
    is certain enough; it is 1 for a new label, and for several labels.
    """
    predictions = block.predictions
    columns = {label: column for column, label in enumerate(predictions.classes) if label is not None}
    at = np.array([columns.get(label, -1) if is_one(label) else -1 for label in labels], np.intp)
    rows = np.flatnonzero(at >= 0)
    at, result = at[rows], np.ones(len(labels))
    result[rows] = np.maximum(1.0 - predictions.probabilities[rows, at], SMALLEST_LESSON)
    inner = model.classifier.inner
    limit = inner.margin if isinstance(inner, AdaptiveClassifier) else None
    if limit is not None and len(rows):
        result[rows[margins_at(predictions, rows, [labels[row] for row in rows.tolist()]) > limit]] = 0.0
    return result.tolist()


def is_one(label: object) -> bool:
    """Whether this is one label, and not the labels of a message that may have several."""
    return isinstance(label, (str, int))


def margins_at(predictions: Predictions, rows: NDArray[np.intp], labels: Sequence[Label]) -> Floats:
    """The margins of examples on the side of their labels, to compare with the margin up to which they are learned;
    −inf for a label without a margin.
    """
    classes, class_margins = predictions.class_margins
    places = {label: place for place, label in enumerate(classes)}
    margins = np.pad(class_margins[rows], ((0, 0), (0, 1)), constant_values=-np.inf)
    own = np.arange(len(rows)), np.array([places.get(label, -1) for label in labels], np.intp)
    other_margins = margins / -SHARE_OF_REST
    other_margins[own] = np.inf
    result: Floats = np.minimum(margins[own], other_margins.min(axis=1))
    return result


class DurableLearning:
    """Learns messages with ids by a `TextClassifier`, and keeps the result in a claimed checkpoint with a journal.

    If a message was learned with another label, two steps correct it: the model learns it twice with the new label, to
    undo the old label and then for the new one. The first step undoes as much as was learned: the surprise is kept with
    the id, 1 minus the probability of the old label at that time. The weight of the step is the surprise divided
    by 1 minus the probability of the new label now, at most 1. An exact correction would need a second model.

    The progress is the state in the checkpoint beside the model; newer entries of the journal are learned again. A
    ValueError says that the progress or the journal does not belong to this model, or that the journal lacks messages;
    `allow_gap` accepts missing messages. Other state `beside` the model has `get_state` and `set_state`.
    """

    def __init__(
        self,
        model: TextClassifier,
        checkpoints: Checkpoints | None = None,
        progress: dict[str, Any] | None = None,
        *,
        monitor: Monitor | None = None,
        notes: Notes | None = None,
        id_window: int = 100_000,
        sync: bool = False,
        begun_with: str = "a new model",
        threads: int = 1,
        allow_gap: bool = False,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        self._model, self._monitor, self._notes, self._threads = model, monitor, notes, threads
        self._more_beside = beside or {}
        self._checkpoints = checkpoints
        self.ids = IdMemory(id_window)
        self.lock = Lock() if monitor is None else monitor.lock
        self.is_changed = False  # whether anything was learned since the newest checkpoint
        if progress:
            for name, part in self._beside.items():
                part.set_state(progress.get(name, {}))
            self.ids.set_state(progress.get("ids", ""), progress.get("labels_of_ids", ""))
        self.journal = Journal(None, self.lock)
        self.n_learned = self.n_corrected = 0
        before = self.model.n_learned
        if checkpoints is not None:
            self.journal = Journal(checkpoints.path, self.lock, sync, begun_with, checkpoints.reads_only, allow_gap)
            with nullcontext() if monitor is None else monitor.learning_again():
                self._learn_again((progress or {}).get("journal"))
        self.n_learned_again = self.model.n_learned - before
        self.n_learned = self.n_corrected = 0  # by this object

    @property
    def model(self) -> TextClassifier:
        return self._model if self._monitor is None else self._monitor.model

    @property
    def _beside(self) -> dict[str, Any]:
        """The state beside the model, by its name in the checkpoint."""
        notes = {} if self._notes is None else {self._notes.name: self._notes}
        monitor: dict[str, Any] = {} if self._monitor is None else {"monitor": self._monitor}
        return {**monitor, **notes, **self._more_beside}

    def _learn_again(self, position: object) -> None:
        """Learn the messages after the checkpoint again, and restore labels that were given but not learned."""
        for entries in self.journal.entries(position):
            self._take_again(entries)
        for number, entry in [*self.journal.waiting.items()]:
            self.journal.learn([entry], [number])
            self._take_again([entry])

    def _take_again(self, entries: list[Entry]) -> None:
        try:
            for part in slices(entries, lambda entry: message_size(entry[0])):
                self._take([(entry, False) for entry in part])
        except (ValueError, TypeError) as error:
            log.error("not learned again: %s", error)

    def snapshot(self, file: IO[bytes] | None = None) -> Snapshot:
        """The model and its other state, to be written to this file, if given; the journal begins a new file."""
        with self.lock:
            ids, digests = self.ids.ids(), self.ids.digests()
            progress: dict[str, Any] = {name: beside.get_state() for name, beside in self._beside.items()}
            progress["journal"] = self.journal.rotate()
            snapshot: Snapshot = self.model.snapshot(progress, file)
            self.is_changed = False
        # Each list is one string: this is fast, and needs no lock.
        progress |= {"ids": json.dumps(ids), "labels_of_ids": json.dumps(digests)}
        return snapshot

    def start(self) -> None:
        """Begin to write checkpoints."""
        if self._checkpoints is not None:
            self._checkpoints.start(self.snapshot, lambda progress: self.journal.written(progress["journal"]))

    def close(self, last: bool = True) -> None:
        """Write a last checkpoint, if `last` is true, and end; an OSError if it could not be written."""
        if self._checkpoints is not None:
            try:
                self._checkpoints.close(last)
            finally:
                self.journal.close()

    def taking(self, entries: Sequence[Entry], resolved: Sequence[int] = ()) -> Generator[list[Any], None, None]:
        """Learn messages, unless their ids are known with the same label; forget those without a label; take notes.
        Yield the answers to one slice of the messages at a time; the lock is free between two slices. All entries are
        first written as one record of the journal; `resolved` is as in `Journal.learn`.

        An answer is that of `learn`, with `learned` true or false; the answer to a message without a label is the
        result of `unlearn`.

        If the journal cannot be written (OSError), nothing is learned. If the model fails at a message, the messages
        before it are learned and noted, and the others are not.
        """
        labelled = [entry for entry in entries if entry[1] is not None]
        with self.lock:
            outcomes = iter(self.ids.compared(self._entry_ids(labelled), [entry[1] for entry in labelled]))
            are_known = [entry[1] is not None and next(outcomes) == KNOWN for entry in entries]
            new_entries = [
                noted(entry[3]) if is_known else entry for entry, is_known in zip(entries, are_known, strict=True)
            ]
            if self._notes is None:
                new_entries = [entry for entry, is_known in zip(entries, are_known, strict=True) if not is_known]
            self.journal.learn(new_entries, resolved)
        try:
            for part in slices(
                [*zip(entries, are_known, strict=True)], lambda entry_pair: message_size(entry_pair[0][0])
            ):
                with self.lock:
                    answers = self._take(part)
                yield answers
        finally:
            with self.lock, suppress(OSError):  # the next record says it
                self.journal.abort()

    def _entry_ids(self, entries: Sequence[Entry]) -> list[Id | None]:
        """The id of each message after it is learned; a message of weight 0 is not learned."""
        if self._notes is None:
            return [entry[3] if entry[2] else None for entry in entries]
        return [self._notes.id_of(entry[3], self.ids) if entry[2] else None for entry in entries]

    def _take(self, entries: Sequence[tuple[Entry, bool]]) -> list[Any]:
        """Learn, forget and note the entries of the journal, in order; only predict known messages."""
        answers: list[Any] = []
        for (is_labelled, is_known), group in itertools.groupby(
            entries, lambda pair: (pair[0][1] is not None, pair[1])
        ):
            part = [entry for entry, _ in group]
            X, notes = [entry[0] for entry in part], [entry[3] for entry in part]
            if is_known:
                answers_of_part = predict_block(self.model, X, []).answers()
                self._note(notes)
            elif is_labelled:
                answers_of_part = self.learn([entry[:3] for entry in part], self._entry_ids(part), notes)
            else:
                for x, _, weight, id in part:
                    if weight:
                        answers.append(self.unlearn(x, id))
                    else:
                        self._note([id])
                continue
            learned = [not is_known and weight > 0.0 for _, _, weight, _ in part]
            answers += [
                answer._replace(learned=is_new) for answer, is_new in zip(answers_of_part, learned, strict=True)
            ]
        return answers

    def _note(self, notes: Sequence[Any]) -> None:
        """Apply notes that come without messages and are in the journal."""
        if self._notes is not None:
            self._apply(notes)
            self.journal.commit(len(notes))

    def _apply(self, notes: Sequence[Any]) -> None:
        self.is_changed = True
        if self._notes is not None:
            for note in notes:
                self._notes.apply(note)

    def learn(self, examples: Sequence[Labelled], ids: Sequence[Id | None], notes: Sequence[Any] = ()) -> list[Answer]:
        """Predict each message, then learn it, even if its id is known with this label. The messages are in the
        journal; each may have a note, which is applied once the message is learned. Answers to corrections have the
        `correction` "taught anew". If the model refuses a message, the messages before it are learned.
        """
        answers: list[Answer] = []
        outcomes = self.ids.compared(ids, [example[1] for example in examples])
        corrected = [i for i, outcome in enumerate(outcomes) if outcome == CORRECTED]
        begin = 0
        for end in (*corrected, len(examples)):
            answers += self._learn(examples[begin:end], ids[begin:end], notes[begin:end])
            if end < len(examples):
                x, label, *weight = examples[end]
                id = ids[end]
                assert id is not None  # a correction has a known id
                self._step_back(x, label, id, *weight)
                self.n_corrected += 1
            begin = end
        for i in corrected:
            answers[i] = answers[i]._replace(correction=TAUGHT_ANEW)
        return answers

    def _step_back(self, x: Message, label: Truth, id: Id, weight: float = 1.0) -> None:
        """Undo what was learned of a message with another label than `label`. Learn `label` in a few steps,
        weighted by the surprise of the other label, until 1 minus its probability is at most the probability that the
        other label had before it was learned. Limits of false positives forget the message.
        """
        surprise = self.ids.surprise(id)
        other_labels = [other for other in self.model.classes if other != label]
        if surprise is not None and len(other_labels) == 1:
            self._forget_negative(other_labels[0], 1.0 - surprise, weight)
        for _ in range(MOST_STEPS_BACK if is_one(label) else 1):
            (lacking,) = surprises(predict_block(self.model, [x], []), [label], self.model)
            surprise = 1.0 - lacking if surprise is None else surprise  # of an older state: as certain as now
            if surprise == 0.0 or lacking <= 1.0 - surprise:
                return
            weight_back = weight * min(surprise / lacking, 1.0)
            for _ in predict_learn(self.model, [(x, label, weight_back)]):
                pass
            self._forget_negative(label, 1.0 - lacking, weight_back)  # a step back is no example of this label

    def _forget_negative(self, label: Truth, probability: float, weight: float) -> None:
        trainer = self.model.trainer
        if not isinstance(label, tuple):
            with self.model.lock:
                trainer.policy.forget_negative(trainer.labels, label, probability, weight, trainer.learner.calibrated)

    def _learn(self, examples: Sequence[Labelled], ids: Sequence[Id | None], notes: Sequence[Any]) -> list[Answer]:
        answers: list[Answer] = []
        taught: list[float] = []
        before = self.model.n_learned
        try:
            for block in predict_learn(self.model, [*examples], threads=self._threads):
                n_done = len(answers)
                if self._monitor is not None:
                    rows = slice(n_done, n_done + len(block))
                    self._monitor.learned([*examples[rows]], block, ids[rows])
                taught += surprises(block, block.y, self.model)
                answers += block.answers()
        finally:
            # If learning failed, the model's `n_learned` tells after how many teaching messages.
            n = max(len(answers), _n_first(examples, self.model.n_learned - before))
            taught += [1.0] * (n - len(taught))
            self.ids.add(ids[:n], [example[1] for example in examples[:n]], taught[:n])
            self._apply(notes[:n])
            self.n_learned += n_teaching(examples[:n])
            self._count(n)
        return answers

    def unlearn(self, x: Message, id: Id) -> str:
        """Forget the label of a message. A model of two labels learns the message with the other label, until the
        probability of the other label is at least that before the message was learned; then the id is new again.
        Return "one step", or "unknown" if the id or the other label is unknown and nothing is done.
        """
        labels = list(self.model.classes)
        other_labels = [label for label in labels if not self.ids.has(id, label)]
        is_known = len(labels) == 2 and len(other_labels) == 1
        if is_known:
            self._step_back(x, other_labels[0], id)
            self.ids.remove(id)
        self._count(1)
        return ONE_STEP if is_known else UNKNOWN

    def _count(self, n: int) -> None:
        """Record that `n` more messages are learned or forgotten."""
        self.is_changed = True
        self.journal.commit(n)
        if self._checkpoints is not None:
            self._checkpoints.count(n)
