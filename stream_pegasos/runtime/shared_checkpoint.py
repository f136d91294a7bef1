"""The checkpoint of several runs that share a stream, through which they exchange their models."""

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

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.learners.files import read_progress
from stream_pegasos.learners.merging import check_parts, merge
from stream_pegasos.runtime.checkpoints import Checkpoints

if TYPE_CHECKING:
    from stream_pegasos.learners.model import Model

__all__ = ["BUSY", "FAILURE", "NAME", "PATIENCE", "Gain", "OvertakenError", "SharedCheckpoint", "Written"]

NAME = "model.safetensors"
FIRST = 1_000  # messages before the first exchange
BEGIN: dict[str, Any] = {"sources": (None, None), "n_read": 0, "n_learned": 0, "position": None, "outputs": {}}
BUSY, FAILURE = 0.1, 1.0  # seconds before the next attempt
PATIENCE = 60.0  # seconds until another run that still exchanges counts as a failure

Written = tuple[str, int]  # the path of an output, and its length


class OvertakenError(Exception):
    """Another run has learned the messages that this run learned since its last exchange."""


class Gain(NamedTuple):
    """The progress of a run since its last exchange."""

    position: object = None  # the next offset of each part of the stream that the run reads
    n_read: int = 0
    n_learned: int = 0
    written: Written | None = None


class SharedCheckpoint:
    """One checkpoint of several runs, in a folder that they share.

    The file holds a model and, for each part of the stream, the offset up to which this model has learned it. Both
    change in one replacement of the file, so they always match, and only this file tells what is learned: a message
    below the offset is in the model once, any other message is not in it.

    A run starts with the model of the file. At an `exchange` it locks the file and merges the lessons since its last
    exchange into the model there, to which other runs may have added lessons meanwhile; its offsets are merged, too.
    The result is written, and the run continues with it. If a run is killed, its lessons since the last exchange are
    lost; the next reader of its parts begins at the offsets of the file.

    If the file has another offset for a part than the one at which the run began, another run has read the part
    meanwhile, e.g. during a long pause of this run. The run then gets an OvertakenError, drops its lessons since the
    last exchange, and continues with the file.

    An exchange is due after `every` messages or so many seconds. At first it is due as soon as a run has learned as
    many messages as the file has.
    """

    def __init__(self, folder: str | os.PathLike[str], every: int, seconds: float, vectors: object = None) -> None:
        self.checkpoints = Checkpoints(Path(folder, NAME))
        self.model: Model  # of the file, at the last exchange
        self.progress: dict[str, Any] = {}  # of the file, at the last exchange
        self._begins: dict[str, int] = {}  # for each part, the offset of the first message read since the last exchange
        # The position, with the offsets of parts that are also in the previous file.
        self.committable: dict[str, Any] | None = None
        self._every, self._seconds, self._vectors = every, seconds, vectors
        self._next = self._next_try = 0.0

    def begin(self, make: Callable[[], Model]) -> Model:
        """The model to start with: the model of the file, which may come from a run that did not share it, or else a
        new model, which is written. A ValueError if the file is another checkpoint, a TypeError if models of its kind
        cannot be merged, a BlockingIOError if another process keeps it locked.
        """
        end = monotonic() + PATIENCE
        while True:
            try:
                self.checkpoints.claim()
                break
            except BlockingIOError:  # another run holds it for a moment
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
        """The first progress, if no run has shared the stream before."""
        if more := sorted(progress.keys() - {*BEGIN, "output"}):
            raise ValueError(f"{self.checkpoints.path} is a checkpoint with {', '.join(more)}, which runs cannot share")
        if (position := progress.get("position")) is not None and "offsets" not in position:
            raise ValueError(f"{self.checkpoints.path} has a place in another kind of stream, which runs cannot share")
        outputs = length_by_path(progress.pop("output", None))
        return {**BEGIN, **progress, "outputs": outputs, "id": new_id()}

    def copy(self) -> Model:
        """A copy of the model of the file, which continues to learn."""
        return copy.deepcopy(self.model)

    def progress_for(self, output: Path | None) -> dict[str, Any]:
        """The progress to start a run with, including the length of its output at its last exchange."""
        path = "" if output is None else os.path.abspath(output)
        length = self.progress["outputs"].get(place(path))
        known_progress: dict[str, Any] = {"sources": self.progress["sources"], "position": self.progress["position"]}
        return known_progress if length is None else {**known_progress, "output": (path, length)}

    def begin_parts(self) -> None:
        """Record that all parts are given up; new parts begin at the offsets of the file."""
        self._begins = {**offsets_at(self.progress["position"])}

    def is_due(self, n_new: int) -> bool:
        """Whether an exchange is due, after so many messages since the last one."""
        now = monotonic()
        is_large = n_new >= min(self._every, max(FIRST, self.progress["n_read"]))
        return now >= self._next_try and (is_large or now >= self._next)

    def exchange(self, model: Model, gain: Gain, sources: Sequence[str | None] | None = None) -> Model:
        """Merge the model's lessons since the last exchange into the file, and return the model to continue with. An
        OSError if the file cannot be read or written, a BlockingIOError while another run holds it: then nothing has
        changed.
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
        if own.items() <= offsets.items() and outputs.keys() == path["outputs"].keys():  # a new output is recorded
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
        with suppress(LookupError, TypeError, ValueError):  # if it is damaged, the previous file is read
            if read_progress(self.checkpoints.path)["id"] == self.progress["id"]:
                return self.model, self.progress
        resumed = self.checkpoints.resume(self.model.vector_source)  # it is open already
        if resumed is None:
            raise FileNotFoundError(f"{self.checkpoints.path} is gone")
        return resumed

    def _take(self, model: Model, progress: dict[str, Any]) -> None:
        if progress is not self.progress and (position := progress["position"]) is not None:
            before = offsets_at(self.progress.get("position"))
            offsets = {part: offset for part, offset in position["offsets"].items() if part in before}
            # If the file is damaged, the previous one is read; for parts missing there, the group has the offset.
            self.committable = {**position, "offsets": offsets}
        self.model, self.progress = model, progress


def offsets_at(position: object) -> dict[str, int]:
    if position is None:
        return {}
    if not isinstance(position, dict):
        raise TypeError(must_be("a position", "a dict with offsets", type_name(position)))
    offsets: dict[str, int] = position["offsets"]
    return offsets


def length_by_path(written: Written | None) -> dict[str, int]:
    return {} if written is None else {place(written[0]): written[1]}


def place(path: str) -> str:
    """The key of an output: its path and the machine."""
    return f"{socket.gethostname()}:{path}"


def new_id() -> str:
    return os.urandom(8).hex()
