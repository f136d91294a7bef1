"""A run as one of several that share a stream."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Protocol

from stream_pegasos.runtime.shared_checkpoint import (
    BUSY,
    FAILURE,
    PATIENCE,
    Gain,
    OvertakenError,
    SharedCheckpoint,
    Written,
)
from stream_pegasos.streams.sources import Member

if TYPE_CHECKING:
    from stream_pegasos.learners.model import Model

    # A model, the position, the number of messages read and of messages learned, and the length of the output.
    Exchanged = tuple[Model, object, int, int, Written | None]

__all__ = ["SharedOutput", "Sharing"]


class SharedOutput(Protocol):
    """A file of answers."""

    def written(self) -> Written | None:
        """The output's path and its length so far."""

    def sync(self) -> None:
        """Flush the output to the disk; raise an OSError if this fails."""

    def cut(self, written: Written | None) -> None:
        """Truncate the output to this length."""


class Sharing:
    """Exchanges the lessons of a run with the other runs that share its stream: before its parts of the stream change,
    and from time to time.
    """

    def __init__(
        self,
        shared: SharedCheckpoint,
        source: Member,
        names: list[str | None],
        output: SharedOutput | None,
        on_event: Callable[[str], None],
    ) -> None:
        self.shared, self.source = shared, source
        self.is_behind = False  # whether the next batches were read before the run went back to the checkpoint
        self.is_over = threading.Event()  # set after the last exchange
        self._names, self._output, self._on_event = names, output, on_event
        self._exchanged = Gain(written=None if output is None else output.written())  # at the last exchange
        self._is_failing = False
        self._busy_at = 0.0  # when another run first held the file, since the last exchange

    def join(self, put: Callable[[threading.Event], bool]) -> None:
        """Make the source wait before parts change: `put` adds an event to the queue of batches; its setting ends the
        wait.
        """

        def hand_over() -> dict[str, Any] | None:
            is_done = threading.Event()
            if not put(is_done):
                is_done = self.is_over
            while not is_done.wait(0.1) and not self.is_over.is_set():
                pass
            position: dict[str, Any] | None = self.shared.progress["position"]
            return position

        self.source.join(hand_over)

    def begin_parts(self) -> None:
        """Record that the source continues with other parts, from the checkpoint."""
        self.shared.begin_parts()
        self.is_behind = False

    def is_due(self, n_read: int) -> bool:
        return self.shared.is_due(n_read - self._exchanged.n_read)

    def exchange(self, model: Model, now: Gain, waits: bool, is_stopping: Callable[[], bool]) -> Exchanged | None:
        """Merge the lessons since the last exchange into the checkpoint. Return the model, the position and the counts
        to continue with; `None` to try again later. With `waits` it returns only when it has succeeded.
        """
        while True:
            try:
                return self._exchange(model, now)
            except OvertakenError as error:
                self._on_event(str(error))
                return self._go_back(rejoins=not waits)
            except OSError as error:
                is_busy = self._is_busy(error)
                if is_stopping() and not is_busy:
                    raise
                if not is_busy and not self._is_failing:
                    self._is_failing = True
                    self._on_event(f"nothing is exchanged with other runs: {error}; trying again")
                if not waits:
                    return None
                sleep(BUSY if is_busy else FAILURE)

    def _is_busy(self, error: OSError) -> bool:
        """Whether another run exchanges at the moment; if it takes too long, this is a failure."""
        if not isinstance(error, BlockingIOError):
            return False
        self._busy_at = self._busy_at or monotonic()
        return monotonic() < self._busy_at + PATIENCE

    def _exchange(self, model: Model, now: Gain) -> Exchanged:
        if self._output is not None:
            self._output.sync()  # the answers are on the disk before the checkpoint that counts them
        before = self._exchanged
        gain = Gain(now.position, now.n_read - before.n_read, now.n_learned - before.n_learned, now.written)
        model = self.shared.exchange(model, gain, self._names)
        if self._is_failing:
            self._is_failing = False
            self._on_event("what was learned is exchanged with other runs again")
        self._exchanged, self._busy_at = now, 0.0
        return model, *now

    def _go_back(self, rejoins: bool) -> Exchanged:
        """Go back to the checkpoint, and with `rejoins` request parts again."""
        written = None
        if self._output is not None:
            self._output.cut(self._exchanged.written)
            written = self._output.written()
        if rejoins:
            self.is_behind = True
            self.source.rejoin()
        self._exchanged = Gain(None, self._exchanged.n_read, self._exchanged.n_learned, written)
        return self.shared.copy(), *self._exchanged
