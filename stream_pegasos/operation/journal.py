"""The journal: messages learned since the newest checkpoint, to be learned again after a kill."""

from __future__ import annotations

import json
import logging
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import orjson

from stream_pegasos.common.locks import Lock
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.features.message import Message, check_depth, message_of
from stream_pegasos.operation.active_learning import Waiting

__all__ = ["Entry", "Journal", "check_exact"]

log = logging.getLogger(__name__)

# A message to learn, its label, its weight and its id. Several labels are a tuple, or a dict that has those that do not
# hold, too.
Entry = tuple[Message, Any, float, Any]


class Journal:
    """A write-ahead log, in files beside a checkpoint: it keeps messages until newer checkpoints have learned them.

    A record is written before its messages are learned. So an acknowledged message outlives a killed process and, after
    `sync`, a power cut. Each line of a file is a record with its checksum. A kill may truncate the last line, which
    nobody has acknowledged.

    Each snapshot begins a new file. The files since the last but one checkpoint stay: a run resumes from that
    checkpoint if the newest one is damaged.

    A journal is also the `LabelStore` of an `ActiveLearning`: it keeps the labels that can still be taken back.

    Its path is the file of the checkpoint, `None` to write nothing, and `begun_with` names the model before the first
    one. It is `safe` if `sync` will be called. Hold the lock, which is the model's, to call a method that writes. If a
    record cannot be written (OSError), or would not come back as it is (ValueError, TypeError), the journal has nothing
    of it.
    """

    def __init__(
        self,
        path: Path | None,
        lock: Lock,
        safe: bool = False,
        begun_with: str = "a new model",
        reads_only: bool = False,
    ) -> None:
        self.path, self.safe, self._begun_with = path or Path(), safe, begun_with
        self._reads, self._writes = path is not None, path is not None and not reads_only
        self.waiting: dict[int, Entry] = {}  # labels that are not learned yet, by the number of their message
        self.n_written = self.n_synced = 0  # records; those that are flushed to the disk
        self.error: str | None = None  # why the newest record could not be written, until a checkpoint is
        self._lock = lock
        self._name, self._number = os.urandom(4).hex(), 0  # all files have the name, this one the number
        self._newest: Any = None  # the position in the newest checkpoint
        self._file: IO[bytes] | None = None  # made for its first record
        self._end = 0  # the size of the file after its last record
        self._open: Sequence[Entry] = ()  # the entries of the last record
        self._n_committed = 0  # how many of `_open` are learned
        self._n_aborted = 0  # entries of the last record that will not be learned; the next record says so
        self._failed: int | None = None  # the number of the file whose flush failed

    def entries(self, position: Any) -> Iterator[list[Entry]]:
        """The entries written after a checkpoint, in order, given what `rotate` returned for it; `None` if it has no
        journal, or there is no checkpoint. At the end `waiting` has the labels that are not learned. It raises a
        ValueError if the journal belongs to another checkpoint, or was begun with another model.
        """
        files = self._files()
        names = {name for name, number in files if number == 0}
        if position is not None:
            try:
                name, number = position
                names, self._number = {str(name)}, int(number)
            except (TypeError, ValueError):
                raise ValueError(f"{position!r} is no position in a journal") from None
        for (name, _), path in files.items():
            if names != {name}:
                raise ValueError(f"{path} is the journal of another checkpoint; move it away, or remove it")
        self._name, self._newest = min(names, default=self._name), position
        first, held = self._number, list[Entry]()
        for (_, number), path in sorted(files.items()):
            if number >= first:
                for record in self._records(path):
                    before = record.get("begun_with", self._begun_with)
                    if position is None and before != self._begun_with:
                        raise ValueError(
                            f"its journal was begun with {before}, not with {self._begun_with}, and there is no "
                            "checkpoint yet; begin with the former again"
                        )
                    for each in record.get("resolved", ()):
                        self.waiting.pop(each, None)
                    self.waiting |= {each: _entry(*entry) for each, entry in record.get("labels", ())}
                    if "dropped" in record:
                        del held[-record["dropped"] :]
                    if "entries" in record and (number == first or not record["is_rest"]):
                        yield held
                        held = [_entry(*entry) for entry in record["entries"]]
                self._number = number + 1  # a new file, as the last line of this one may be truncated
        yield held

    def goes_on(self, position: Any) -> bool:
        """Whether anything was written after a checkpoint with this position, of which nothing is read.

        Raises
        ------
        OSError, TypeError, ValueError
            If the files cannot be listed, or it is no position.
        """
        name, first = position
        files = self._files().items()
        return any(of == name and number >= first and path.stat().st_size for (of, number), path in files)

    def learn(self, entries: Sequence[Entry], resolved: Sequence[int] = ()) -> None:
        """Record entries before they are learned, and the numbers of messages whose labels wait no longer."""
        if entries or resolved:
            self._write({"entries": entries, "is_rest": False, "resolved": resolved})
            self._open, self._n_committed = entries, 0
            for number in resolved:
                self.waiting.pop(number, None)

    def commit(self, n: int) -> None:
        """Take note that the next `n` messages of the last record are learned."""
        self._n_committed += n

    def abort(self) -> None:
        """Take note that the rest of the last record is not learned; if that cannot be written, the next record says
        so.
        """
        n = len(self._open) - self._n_committed
        if n > 0:
            self._open, self._n_aborted = (), n
            self._write({})

    def try_again(self) -> None:
        """See whether records can be written again."""
        self._write({})

    def given(self, message: Waiting, label: Any) -> None:
        entry = (message.x, label, 1.0, message.origin)
        self._write({"labels": [(message.number, entry)]})
        self.waiting[message.number] = entry

    def taken_back(self, message: Waiting) -> None:
        if message.number in self.waiting:
            self._write({"resolved": [message.number]})
            del self.waiting[message.number]

    def learned(self, message: Waiting) -> None:
        """Write nothing: `learn` has recorded the label."""

    def rotate(self) -> Any:
        """Begin a new file, at the moment of a snapshot, and return its position. If the entries that are not learned
        yet cannot be written there (OSError), the old file stays in use.
        """
        before = self._file, self._end, self._number
        rest = self._open[self._n_committed :]
        self._file, self._end = None, 0
        self._number += 1
        begin: dict[str, Any] = {"labels": [*self.waiting.items()]} if self.waiting else {}
        if rest:
            begin |= {"entries": rest, "is_rest": True}
        try:
            if begin:
                self._put(begin)  # a single record, which is written whole or not at all
        except OSError:
            with suppress(OSError):
                self.close()
            self._file, self._end, self._number = before
            with suppress(OSError):
                self._path_of(self._number + 1).unlink(missing_ok=True)
            raise
        self._open, self._n_committed = rest, 0
        if before[0] is not None:
            try:
                with before[0] as file:
                    if self.safe:
                        os.fsync(file.fileno())
            except OSError as error:
                self._fail(before[2], error)
        return [self._name, self._number]

    def written(self, position: Any) -> None:
        """Take note that a checkpoint is written; remove the files that neither it nor the one before needs."""
        with self._lock:
            if self._failed is not None and self._failed < position[1]:
                self._failed = None
            if self._failed is None:
                self.error = None
            before, self._newest = self._newest, position
        with suppress(OSError):  # the next checkpoint tries again
            for (name, number), path in self._files().items():
                if before is not None and name == self._name and number < before[1]:
                    path.unlink()

    def sync(self) -> None:
        """Flush to the disk, so that all records written by now outlive a power cut; an OSError if that failed, now or
        since the newest checkpoint.
        """
        with self._lock:
            self._check()
            n, number, file = self.n_written, self._number, None if self._file is None else os.dup(self._file.fileno())
        if file is not None:
            try:
                os.fsync(file)
            except OSError as error:
                with self._lock:
                    self._fail(number, error)
                raise
            finally:
                os.close(file)
        with self._lock:
            self._check()  # as `rotate` may have failed to flush the file before
            self.n_synced = max(n, self.n_synced)

    def close(self) -> None:
        """Close the file; later records are written to a new one."""
        if self._file is not None:
            file, self._file, self._end = self._file, None, 0
            self._number += 1
            file.close()

    def _fail(self, number: int, error: OSError) -> None:
        """Remember that a flush failed: a later fsync may succeed although data was lost."""
        self._failed, self.error = number, _reason(error)

    def _check(self) -> None:
        if self._failed is not None:
            raise OSError(f"the journal of {self.path.name} failed; it is tried again after the next checkpoint")

    def _write(self, record: dict[str, Any]) -> None:
        self._check()
        self._put(record)

    def _put(self, record: dict[str, Any]) -> None:
        if not self._writes:
            return
        if "entries" in record:
            record["entries"] = [*map(_as_json, record["entries"])]
        if "labels" in record:
            record["labels"] = [(number, _as_json(entry)) for number, entry in record["labels"]]
        if self._n_aborted:
            record["dropped"] = self._n_aborted
        if self._end == 0 and self._newest is None:
            record["begun_with"] = self._begun_with
        try:
            text = orjson.dumps(record)
        except TypeError:  # a lone surrogate, or an int beyond 64 bits
            # Escapes would join two lone surrogates that make a pair.
            text = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        try:
            self._file = self._file or self._made()
            self._file.seek(self._end)
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.error = _reason(error)
            if self._file is not None:
                with suppress(OSError):
                    self._file.truncate(self._end)
            raise
        self._end += len(line)
        self._n_aborted = 0
        self.n_written += 1
        self.error = None

    def _made(self) -> IO[bytes]:
        path = self._path_of(self._number)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)
        if self.safe and os.name == "posix":
            try:
                folder = os.open(path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
            except OSError:
                file.close()
                raise
        return file

    def _path_of(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.journal-{self._name}-{number}")

    def _files(self) -> dict[tuple[str, int], Path]:
        begin = f"{self.path.name}.journal-"
        found = {}
        for path in self.path.parent.iterdir() if self._reads and self.path.parent.is_dir() else ():
            name, _, number = path.name.removeprefix(begin).partition("-")
            if path.name.startswith(begin) and number.isdecimal():
                found[name, int(number)] = path
        return found

    def _records(self, path: Path) -> Iterator[dict[str, Any]]:
        with open(path, "rb") as file:
            bad = 0
            for number, line in enumerate(file, 1):
                if bad:
                    log.warning(f"{path}: line {bad} is damaged and lost")
                    bad = 0
                text = line[9:-1]
                if line.endswith(b"\n") and line[:9] == b"%08x " % zlib.crc32(text):
                    yield json.loads(text.decode("utf-8", "surrogatepass"))
                else:
                    bad = number  # reported unless it is the last line, which may be truncated


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _entry(x: Any, label: Any, weight: float, id: Any) -> Entry:
    label = tuple(label) if isinstance(label, list) else unpack(label)
    return message_of(x), label, weight, id


def _as_json(entry: Entry) -> Entry:
    x, label, weight, id = entry
    check_exact(x)
    check_exact(weight)
    if id is not None and type(id) not in (int, str, list):  # a list is a note
        raise TypeError(f"an id is a str or an int, not {id!r}")
    return x, pack(label) if isinstance(label, dict) else label, weight, id


def check_exact(value: Any) -> None:
    """Raise a ValueError or TypeError about a message that JSON, and so the journal, would not give back as it is: one
    with NaN or an infinite number, with an object that JSON does not have, or with very deep values.
    """
    if isinstance(value, str):
        return
    for each in value.values() if isinstance(value, dict) else ():
        check_depth(each)
    _check_value(value)


def _check_value(value: Any) -> None:
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"the names of fields must be texts, not {[*value]!r}"[:200])
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            _check_value(each)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number that JSON has")
    elif not (value is None or isinstance(value, (str, int))):
        raise TypeError(f"{value!r:.100} is a {type(value).__name__}, which JSON does not have")
