"""Checkpoints: files of a model that learns, from which it resumes."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from time import monotonic
from typing import IO, Any

from stream_pegasos.common.companions import Companions
from stream_pegasos.common.errors import must_be
from stream_pegasos.common.file_lock import FileLock
from stream_pegasos.common.locks import Lock
from stream_pegasos.features.vectors import VectorsError
from stream_pegasos.learners.files import Snapshot, begins_as_model, remove_leftovers, write_model
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.learners.model import Model

__all__ = ["Checkpoints"]

LONGEST_PAUSE, BYTES_A_SECOND = 3_600.0, 1_000_000  # in seconds; the average rate of writing

Taking = Callable[[IO[bytes]], Snapshot]  # a snapshot whose arrays are in this file

log = logging.getLogger(__name__)


class Checkpoints:
    """Writes checkpoints of a model while it learns, and keeps the newest two.

    A thread writes each checkpoint from a snapshot. A checkpoint is due after `every` messages, or after so many
    seconds if there was any message. If `share` is below 1, a checkpoint of a large model may be delayed by up to an
    hour, so that writing takes at most this share of the time and at most 1 MB a second. If writing fails, it is
    logged; the model continues to learn, and the next checkpoint is a new attempt. The previous file has the same name
    with `.previous` added. With `reads_only` nothing is locked or written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: int = 10_000,
        seconds: float = 10.0,
        share: float = 1.0,
        reads_only: bool = False,
    ) -> None:
        if every < 1:
            raise ValueError(must_be("every", "at least 1", every))
        if not 0.0 < seconds <= threading.TIMEOUT_MAX:
            raise ValueError(must_be("seconds", "above 0", seconds))
        companions = Companions(path)
        self.path, self.previous = companions.path, companions.previous
        self.every = every
        self.seconds = seconds
        self._share = share
        self._next_write = monotonic()
        self.reads_only = reads_only
        self.error: str | None = None  # the reason if the last one could not be written
        self.n_failures = 0
        self.written_at: float | None = None
        self._is_whole = False  # whether the file at `path` is valid, and is to be kept as the previous one
        self._n_new = 0
        self._closing = threading.Event()
        self._last = True  # whether `close` writes a last checkpoint
        self._due = threading.Event()
        self._thread: threading.Thread | None = None
        self._writing = Lock()
        self._lock = FileLock(self.path, log.warning)

    def claim(self) -> None:
        """Lock the checkpoints against other processes, until `close`; an OSError if another process holds the lock. If
        locks are not supported, this is logged.
        """
        if not self.reads_only:
            self._lock.claim()

    def resume(self, vectors: object = None) -> tuple[Model, Any] | None:
        """The model and the progress in the newest valid checkpoint; `None` if there is no file, a ValueError if no
        file is valid. A VectorsError if word vectors are missing, are different, or must be named; `vectors` is as for
        `load`.
        """
        if not self.reads_only:
            self._check_previous()
            remove_leftovers(self.path)
        paths = [path for path in (self.path, self.previous) if path.exists()]
        if not paths:
            return None
        errors = []
        for path in paths:
            try:
                model, progress = load_with_progress(path, vectors)
            except VectorsError:
                raise
            except ValueError as error:
                errors.append(str(error))
                continue
            self._is_whole = path == self.path
            if not self._is_whole:
                fault = errors[0] if errors else f"{self.path} is missing"
                log.warning(f"{fault}; resuming from {path}, the one before")
            return model, progress
        raise ValueError("; ".join(errors))

    def _check_previous(self) -> None:
        """Raise a ValueError if the path of the previous file holds a file that is no model."""
        path = self.previous
        if path.exists() and not (path.is_file() and (not path.stat().st_size or begins_as_model(path))):
            raise ValueError(
                f"{path} must be a model, as the checkpoint before {self.path.name} is kept there, got another file"
            )

    def start(self, snapshot: Taking, on_written: Callable[[Any], None] | None = None) -> None:
        """Begin to write checkpoints. The writing thread calls `snapshot` with the file to write, and after each
        checkpoint `on_written` with its progress; if `on_written` fails, this is logged.
        """
        if self.reads_only:
            return
        self._snapshot, self._on_written = snapshot, on_written
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def write_now(self) -> None:
        """Write a checkpoint, after `start`; an OSError if it cannot be written."""
        if self._thread is not None:
            self._write()
            self._check()

    def write(self, snapshot: Taking) -> Snapshot:
        """Write a snapshot, which takes the file, and return it; keep the newest valid file as the previous one. An
        OSError if this fails.
        """
        written = write_model(self.path, snapshot, keep=self.previous if self._is_whole else None)
        self._is_whole, self.written_at = True, monotonic()
        return written

    def count(self, n: int) -> None:
        """Record that `n` more messages are learned."""
        self._n_new += n
        if self._n_new >= self.every:
            self._due.set()

    def close(self, last: bool = True) -> None:
        """Write a last checkpoint, if `last` is true and `start` was called, and release the lock; an OSError if the
        checkpoint could not be written.
        """
        if self._thread is not None:
            self._last = last
            self._closing.set()
            self._due.set()
            self._thread.join()
            self._thread = None
        self.release()
        self._check()

    def _check(self) -> None:
        if self.error is not None:
            raise OSError(f"cannot write {self.path}: {self.error}")

    def release(self) -> None:
        """Release the lock, without a last checkpoint."""
        self._lock.release()

    def _run(self) -> None:
        last = False
        while not last:
            self._due.wait(self.seconds)
            self._closing.wait(self._next_write - monotonic())
            self._due.clear()
            last = self._closing.is_set()
            # The last checkpoint is written even if no message came, so that there is a file.
            if self._last if last else self._n_new:
                self._write()

    def _write(self) -> None:
        with self._writing:
            start = monotonic()
            self._write_alone()
            self._next_write = monotonic() + self.pause(monotonic() - start)

    def pause(self, seconds: float) -> float:
        """The seconds without a checkpoint after one that took `seconds`."""
        if self._share == 1.0 or not self.path.is_file():
            return 0.0
        by_size = self.path.stat().st_size / BYTES_A_SECOND
        return min(max(seconds * (1.0 / self._share - 1.0), by_size), LONGEST_PAUSE)

    def _write_alone(self) -> None:
        self._n_new = 0
        try:
            snapshot = self.write(self._snapshot)
        except Exception as error:  # any error is reported, and does not end the thread
            message = _reason(error)
            if message != self.error:
                log.warning(f"cannot write {self.path}: {message}; learning continues, and it will be tried again")
            self.error = message
            self.n_failures += 1
            self._n_new += 1  # to try again
            return
        if self.error is not None:
            log.warning(f"{self.path} is written again")
        self.error = None
        if self._on_written is not None:
            try:
                self._on_written(snapshot.progress)
            except Exception as error:
                log.warning(f"{self.path} is written, but the next step failed: {_reason(error)}")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or "out of memory"
