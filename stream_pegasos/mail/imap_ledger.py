"""A model and the memory of a mailbox in one checkpoint, with a journal."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from stream_pegasos.evaluation.chunks import learn
from stream_pegasos.learners.files import Snapshot
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.mail.imap_memory import Event, Memory
from stream_pegasos.mail.verdict import SPAM, Verdicts, message_of
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.operation.checkpoints import Checkpoints
from stream_pegasos.operation.journal import Entry, Journal

__all__ = ["LabelledMail", "Ledger"]

# Checkpoints are seldom needed, as the journal has all that came since the newest one.
CHECKPOINT_EVERY, CHECKPOINT_SECONDS = 2_000, 15 * 60.0


class LabelledMail(NamedTuple):
    """A mail, its key, its label, `"spam"` or `"ham"`, and its UID in Junk, if it is there."""

    content: bytes
    key: str
    outcome: str
    uid: int = 0

    @property
    def event(self) -> Event:
        return ["know", self.key, self.outcome == SPAM, self.outcome, self.uid, mail_id(self.content)]


class Ledger:
    """The model and the memory of a mailbox, in one file, with a journal beside it.

    A record of the journal holds labelled mails and events before these are learned and applied, and restores both
    after a kill. So each mail is learned once, however the process ends.

    Parameters
    ----------
    path
        The file of the model.
    model
        Makes the model to begin with, if there is no file yet.
    verdicts
        The verdicts, which check the model.
    window
        How many mails are remembered.
    is_kept
        Whether to write anything. If not, the model and the memory change in this process alone.
    tell
        Called with a line of text for the operator.

    Raises
    ------
    ValueError
        If the file or the journal is damaged, or belongs to another command.
    OSError
        If another process keeps its checkpoints there, or a file cannot be read.

    Attributes
    ----------
    model, memory
        The model and the memory of the mailbox.
    n_learned, n_corrected
        How many mails were learned, and how many of them had been learned with the other label.
    """

    def __init__(
        self,
        path: Path,
        model: Callable[[], Any],
        verdicts: Verdicts,
        window: int = 100_000,
        is_kept: bool = True,
        threads: int = 1,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.memory = Memory(window)
        self.n_learned = self.n_corrected = 0
        self._path, self._verdicts, self._threads, self._tell = path, verdicts, threads, tell
        self._lock = threading.Lock()
        self._is_changed = False  # since the newest checkpoint
        self._checkpoints = Checkpoints(path, CHECKPOINT_EVERY, CHECKPOINT_SECONDS, tell) if is_kept else None
        if self._checkpoints is not None:
            self._checkpoints.claim()
        try:
            self._resume(Path(os.path.realpath(path)), model)
        except BaseException:
            if self._checkpoints is not None:
                self._checkpoints.release()
            raise

    def _resume(self, path: Path, model: Callable[[], Any]) -> None:
        if self._checkpoints is not None:
            resumed = self._checkpoints.resume()
        else:
            resumed = load_with_progress(path) if path.exists() else None
        self.model, progress = resumed or (model(), None)
        self._verdicts.check(self.model)
        if progress is not None:
            if not isinstance(progress, dict) or "imap" not in progress:
                raise ValueError(f"{path} is kept by another command; give a copy that train --load … --save … made")
            self.memory.set_state(progress["imap"])
        self._journal = Journal(path, self._lock, self._tell, safe=True)
        for entries in self._journal.entries((progress or {}).get("journal")):
            self._apply(entries)
            self._is_changed |= bool(entries)
        self.n_learned = self.n_corrected = 0
        self._is_changed |= resumed is None
        if self._checkpoints is None:
            self._journal = Journal(None, self._lock)
        else:
            self._checkpoints.start(self._snapshot, lambda progress: self._journal.written(progress["journal"]))

    def _snapshot(self) -> Snapshot:
        with self._lock:
            progress = {"imap": self.memory.get_state(), "journal": self._journal.rotate()}
            snapshot: Snapshot = self.model.snapshot(progress)
            self._is_changed = False
        return snapshot

    def record(self, events: Sequence[Event], labelled: Sequence[LabelledMail] = ()) -> None:
        """Learn labelled mails, unless they were learned with this label before, and apply events.

        Raises
        ------
        OSError
            If the journal cannot be written; then nothing is learned or applied.
        Exception
            If the model fails at a mail; then the mails before it are learned and noted, and the rest is not.
        """
        labels = [mail.outcome for mail in labelled]
        if labels:
            self.model.check_labels(labels)
        entries, met = list[Entry](), dict[str, str]()
        for mail, label in zip(labelled, labels, strict=True):
            event = mail.event
            id = id_of(event)
            if (met.get(id) or self.memory.label_of(id, mail.key)) == mail.outcome:
                entries.append(("", None, 0.0, event))
            else:
                entries.append((message_of(mail.content, self.model), label, 1.0, event))
            met[id] = mail.outcome
        entries += [("", None, 0.0, event) for event in events]
        if not entries:
            return
        with self._lock:
            try:
                self._journal.learn(entries)
            except OSError as error:
                raise OSError(f"cannot write the journal of {self._path}: {error.strerror or error}") from None
            self._is_changed = True
            try:
                self._apply(entries)
            finally:
                with suppress(OSError):  # then the next record says so
                    self._journal.abort()
        if self._checkpoints is not None:
            self._checkpoints.count(len(labelled) or 1)

    def _apply(self, entries: Sequence[Entry]) -> None:
        """Learn mails and apply events. A mail that was learned with the other label before is learned twice: see
        `Learning`.
        """
        chunk, ends, met = list[Any](), list[int](), dict[str, str]()
        for x, label, weight, event in entries:
            if weight > 0.0:
                id, outcome = id_of(event), event[3]
                is_corrected = (met.get(id) or self.memory.label_of(id, event[1])) not in ("", outcome)
                chunk += [(x, label)] * (1 + is_corrected)
                met[id] = outcome
            ends.append(len(chunk))
        before = self.model.n_learned
        try:
            learn(self.model, chunk, threads=self._threads)
        finally:
            # A correction of which only the first step was learned counts as learned.
            for (*_, event), begin, end in zip(entries, [0, *ends], ends, strict=False):
                if begin < end and self.model.n_learned - before <= begin:
                    break
                self.memory.apply(event)
                self._journal.commit(1)
                self.n_learned += end > begin
                self.n_corrected += end - begin == 2

    def sync(self) -> None:
        """Flush the journal to the disk, so that all records outlive a power cut.

        Raises
        ------
        OSError
            If that failed.
        """
        self._journal.sync()

    def close(self) -> None:
        """Write a last checkpoint, if anything is new, and release the lock.

        Raises
        ------
        OSError
            If it could not be written.
        """
        if self._checkpoints is not None:
            try:
                self._checkpoints.close(last=self._is_changed or self._checkpoints.error is not None)
            finally:
                self._journal.close()


def id_of(event: Event) -> str:
    """The id of the mail of an event; old journals have its key instead."""
    return str(event[5] if len(event) > 5 else event[1])
