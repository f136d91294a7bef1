"""The checkpoint of several runs that share a stream, through which they exchange what they learned."""

from __future__ import annotations

import copy
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from stream_pegasos.learners.files import read_progress
from stream_pegasos.learners.merging import check_parts, merge
from stream_pegasos.operation.checkpoints import Checkpoints

if TYPE_CHECKING:
    from stream_pegasos.learners.model import Model

__all__ = ["BUSY", "FAILURE", "NAME", "PATIENCE", "Gain", "OvertakenError", "SharedCheckpoint", "Written"]

NAME = "model.safetensors"
FIRST = 1_000  # messages before the first exchange
BEGIN: dict[str, Any] = {"sources": (None, None), "n_read": 0, "n_learned": 0, "position": None, "outputs": {}}
BUSY, FAILURE = 0.1, 1.0  # seconds until it is tried again
PATIENCE = 60.0  # seconds in which other runs have exchanged

Written = tuple[str, int]  # the path of an output, and its length


class OvertakenError(Exception):
    """What was learned since the last exchange has been learned by another run."""


class Gain(NamedTuple):
    """What a run did since its last exchange."""

    position: object = None  # where the parts of the stream that it reads go on, each at an offset
    n_read: int = 0
    n_learned: int = 0
    written: Written | None = None


class SharedCheckpoint:
    """One checkpoint of several runs, in a folder that they share.

    The file holds a model and, of each part of the stream, the offset up to which this very model has learned it. Both
    change in one replacement of the file, so they always fit, and nothing else says what is learned: a message below
    the offset is in the model once, any other is not in it.

    A run goes on from the model of the file. At an `exchange` it takes the lock of the file and merges into the model
    there, to which others may have added meanwhile, what it learned since; with it go the offsets that it has come to.
    The result is written, and the run goes on from that. What a run has learned since its last exchange is lost with
    it, and whoever reads its parts then begins at the offsets of the file.

    If a part that the run reads stands at another offset in the file than the run began at, another run has read it
    meanwhile, such as after a long pause of this one. The run then drops what it learned since its last exchange, as an
    OvertakenError says, and goes back to the file.

    An exchange is due after `every` messages or so many seconds; at first as soon as a run has learned as many messages
    as the file has.
    """

    def __init__(self, folder: str | os.PathLike[str], every: int, seconds: float, vectors: object = None) -> None:
        self.checkpoints = Checkpoints(Path(folder, NAME))
        self.model: Model  # that of the file, as of the last exchange
        self.progress: dict[str, Any] = {}  # the same
        self._begins: dict[str, int] = {}  # where what was read since the last exchange begins, of each part
        # The position, with the offsets of parts that the file before knows, too.
        self.committable: dict[str, Any] | None = None
        self._every, self._seconds, self._vectors = every, seconds, vectors
        self._next = self._next_try = 0.0

    def begin(self, make: Callable[[], Model]) -> Model:
        """The model to go on from: that of the file, which may be of a run that did not share it, or else a new one,
        which is written. A ValueError if the file is another checkpoint, a TypeError if models of its kind cannot be
        merged, a BlockingIOError if another process keeps it locked.
        """
        end = monotonic() + PATIENCE
        while True:
            try:
                self.checkpoints.claim()
                break
            except BlockingIOError:  # another run has it for a moment
                if monotonic() >= end:
                    raise
                sleep(BUSY)
        try:
            model, progress = self.checkpoints.resume(self._vectors) or (make(), None)
            if progress is None or "id" not in progress:
                progress = self._first(progress or {})
                model.flush()
                check_parts([model, model])
                self.checkpoints.write(partial(model.snapshot, progress))
        finally:
            self.checkpoints.release()
        self._take(model, progress)
        self._next = monotonic() + self._seconds
        return self.copy()

    def _first(self, progress: dict[str, Any]) -> dict[str, Any]:
        """The progress to begin with, where no run shared the stream."""
        if more := sorted(progress.keys() - {*BEGIN, "output"}):
            raise ValueError(f"{self.checkpoints.path} is a checkpoint with {', '.join(more)}, which runs cannot share")
        if (position := progress.get("position")) is not None and "offsets" not in position:
            raise ValueError(f"{self.checkpoints.path} has a place in another kind of stream, which runs cannot share")
        outputs = length_by_path(progress.pop("output", None))
        return {**BEGIN, **progress, "outputs": outputs, "id": new_id()}

    def copy(self) -> Model:
        """The model of the file, to learn on."""
        return copy.deepcopy(self.model)

    def progress_for(self, output: Path | None) -> dict[str, Any]:
        """The progress from which a run goes on, with how long its output was at its last exchange."""
        path = "" if output is None else os.path.abspath(output)
        length = self.progress["outputs"].get(place(path))
        known_progress: dict[str, Any] = {"sources": self.progress["sources"], "position": self.progress["position"]}
        return known_progress if length is None else {**known_progress, "output": (path, length)}

    def begin_parts(self) -> None:
        """Take note that all parts are given up; those that are read from now on begin at the offsets of the file."""
        self._begins = {**offsets_at(self.progress["position"])}

    def is_due(self, n_new: int) -> bool:
        """Whether it is time for an exchange, after so many messages since the last one."""
        now = monotonic()
        is_large = n_new >= min(self._every, max(FIRST, self.progress["n_read"]))
        return now >= self._next_try and (is_large or now >= self._next)

    def exchange(self, model: Model, gain: Gain, sources: Sequence[str | None] | None = None) -> Model:
        """Merge what a model gained since the last exchange into the file, and return the model to go on from. An
        OSError if the file cannot be read or written, a BlockingIOError while another run has it: nothing has changed.
        """
        self._next_try = monotonic() + BUSY
        try:
            self.checkpoints.claim()
            try:
                self._exchange(model, gain, sources)
            finally:
                self.checkpoints.release()
        except BlockingIOError:
            raise
        except OSError:
            self.checkpoints.n_failures += 1
            self._next_try = monotonic() + FAILURE
            raise
        self._next_try, self._next = 0.0, monotonic() + self._seconds
        return self.copy()

    def _exchange(self, model: Model, gain: Gain, sources: Sequence[str | None] | None) -> None:
        model.flush()
        newest, path = self._newest()
        own, offsets = offsets_at(gain.position), offsets_at(path["position"])
        is_older = any(offsets.get(part, -1) < offset for part, offset in offsets_at(self.progress["position"]).items())
        overtaken = [part for part in own if offsets.get(part) != self._begins.get(part)]
        if is_older or overtaken:
            self._take(newest, path)
            reason = f"another run has read partition {', '.join(overtaken)} meanwhile"
            reason = f"{self.checkpoints.path} is older than it was" if is_older else reason
            raise OvertakenError(f"{reason}; what was learned since the last exchange is dropped, and learned again")
        outputs = {**path["outputs"], **length_by_path(gain.written)}
        if own.items() <= offsets.items() and outputs.keys() == path["outputs"].keys():  # a new output is noted
            self._take(newest, path)
            self._begins |= own
            return
        if not gain.n_learned:
            model = newest
        elif newest is not self.model:
            model = merge(self.model, [model, newest])
        progress = {
            "id": new_id(),
            "sources": sources,
            "n_read": path["n_read"] + gain.n_read,
            "n_learned": path["n_learned"] + gain.n_learned,
            "position": {**gain.position, "offsets": {**offsets, **own}}
            if isinstance(gain.position, dict) and own
            else path["position"],
            "outputs": outputs,
        }
        self.checkpoints.write(partial(model.snapshot, progress))
        self._take(model, progress)
        self._begins |= own

    def _newest(self) -> tuple[Model, dict[str, Any]]:
        """The model and the progress in the file, which is read only if another run has written it."""
        with suppress(LookupError, TypeError, ValueError):  # if it is damaged, the one before is read
            if read_progress(self.checkpoints.path)["id"] == self.progress["id"]:
                return self.model, self.progress
        resumed = self.checkpoints.resume(self.model.vector_source)  # which is open
        if resumed is None:
            raise FileNotFoundError(f"{self.checkpoints.path} is gone")
        return resumed

    def _take(self, model: Model, progress: dict[str, Any]) -> None:
        if progress is not self.progress and (position := progress["position"]) is not None:
            before = offsets_at(self.progress.get("position"))
            offsets = {part: offset for part, offset in position["offsets"].items() if part in before}
            # If the file is damaged the one before is read; of what that lacks, the group tells where it goes on.
            self.committable = {**position, "offsets": offsets}
        self.model, self.progress = model, progress


def offsets_at(position: object) -> dict[str, int]:
    return position["offsets"] if isinstance(position, dict) else {}


def length_by_path(written: Written | None) -> dict[str, int]:
    return {} if written is None else {place(written[0]): written[1]}


def place(path: str) -> str:
    """The place of an output, which is that of one machine."""
    return f"{socket.gethostname()}:{path}"


def new_id() -> str:
    return os.urandom(8).hex()
