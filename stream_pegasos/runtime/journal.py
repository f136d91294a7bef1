"""The journal: the messages learned since the newest checkpoint, which are learned again after a kill."""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import orjson

from stream_pegasos.common.companions import Companions
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.locks import Lock
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.features.message import Message, check_depth, make_message
from stream_pegasos.runtime.active_learning import Waiting
from stream_pegasos.streams.example import Truth

__all__ = ["Entry", "Journal", "check_exact"]

log = logging.getLogger(__name__)

# A message to learn, its label, its weight and its id. Several labels are a tuple; or a dict, which may also have
# labels that do not hold.
Entry = tuple[Message, Any, float, Any]

_begins_record = re.compile(rb"[0-9a-f]{8} \{").finditer
_begins_journal = re.compile(rb"[0-9a-f]{8}.*|.{8} \{|[ \0]*|[0-9a-f]{0,8}", re.DOTALL).fullmatch


class Journal:
    """A write-ahead log, in files beside a checkpoint. It keeps messages until newer checkpoints have learned them.

    A record is written before its messages are learned. So an acknowledged message survives a kill of the process and,
    after `sync`, a power cut. Each line of a file is a record with its checksum and its number. A kill may truncate the
    last line; it has not been acknowledged.

    Each snapshot begins a new file, and holds the number of its first record. The files since the last but one
    checkpoint are kept: a run resumes from that checkpoint if the newest one is damaged. Records are numbered across
    all files, so that records missing from a copy or a restored checkpoint are noticed; only `allow_gap` continues
    without them. Damage to a record affects no other record.

    A journal is also the `LabelStore` of an `ActiveLearning`: it keeps the labels that can still be taken back.

    Its path is the file of the checkpoint, or `None` to write nothing; `begun_with` identifies the model before the
    first checkpoint. It is `safe` if `sync` will be called. Hold the model's lock to call a method that writes. If a
    record cannot be written (OSError), or JSON would change it (ValueError, TypeError), the journal holds no part of
    it.
    """

    def __init__(
        self,
        path: Path | None,
        lock: Lock,
        safe: bool = False,
        begun_with: str = "a new model",
        reads_only: bool = False,
        allow_gap: bool = False,
    ) -> None:
        self.path, self.safe = Path(os.devnull) if path is None else path, safe
        self._begun_with, self._allow_gap = begun_with, allow_gap
        self._files = Companions(self.path)
        self._reads, self._writes = path is not None, path is not None and not reads_only
        self.waiting: dict[int, Entry] = {}  # labels not learned yet, by the number of their message
        self.n_written = self.n_synced = 0  # records; records flushed to the disk
        self.error: str | None = None  # the reason if the newest record could not be written
        self._n_failed = 0  # the size of this record in bytes
        self._lock = lock
        self._name, self._number = os.urandom(4).hex(), 0  # all files share the name; this file has the number
        self._n_records = 0  # in all files, also removed ones; the number of the next record
        self._newest: tuple[str, int, int] | None = None  # the position in the newest checkpoint
        self._file: IO[bytes] | None = None  # created for its first record
        self._end = 0  # the size of the file after its last record
        self._open: Sequence[Entry] = ()  # the entries of the last record that had entries
        self._open_record = 0  # the number of that record
        self._n_committed = 0  # number of entries of `_open` that are learned
        # The number of a record, and the number of its last entries that will not be learned; the next record says it.
        self._aborted: tuple[int, int] | None = None
        self._failed: int | None = None  # the number of the file whose flush failed

    def entries(self, position: object) -> Iterator[list[Entry]]:
        """The entries written after a checkpoint, in order. `position` is the value of `rotate` for the checkpoint, or
        `None` if it has no journal or does not exist. At the end, `waiting` has the labels that are not learned. A
        ValueError if the journal belongs to another checkpoint, was begun with another model, or lacks records.
        """
        files = self._files.journals() if self._reads else {}
        names = {name for name, number in files if number == 0}
        if position is not None:
            self._newest = _checked(position)
            name, self._number, self._n_records = self._newest
            names = {name}
        for (name, _), path in files.items():
            if names != {name}:
                raise ValueError(f"{path} is the journal of another checkpoint; move it away, or remove it")
        self._name = min(names, default=self._name)
        first, entries_held, of_held = self._number, list[Entry](), None  # the last record, its number
        for file, record in self._numbered(files, first):
            number, before = record.get("n"), record.get("begun_with", self._begun_with)
            if position is None and before != self._begun_with:
                raise ValueError(
                    f"its journal was begun with {before}, not with {self._begun_with}, and has no "
                    "checkpoint yet; begin with the former again"
                )
            for number_of_label in record.get("resolved", ()):
                self.waiting.pop(number_of_label, None)
            self.waiting |= {number_of_label: _entry(*entry) for number_of_label, entry in record.get("labels", ())}
            if "dropped" in record:
                dropped = record["dropped"]
                of_dropped, n_dropped = dropped if isinstance(dropped, list) else (of_held, dropped)
                if of_dropped == of_held:
                    del entries_held[-n_dropped:]
            of_rest = record.get("rest")
            is_held = record.get("is_rest", False) and file > first if of_rest is None else of_rest == of_held
            if "entries" in record and not is_held:
                yield entries_held
                entries_held, of_held = (
                    [_entry(*entry) for entry in record["entries"]],
                    number if of_rest is None else of_rest,
                )
        yield entries_held

    def _numbered(self, files: dict[tuple[str, int], Path], first: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each record from the file `first` on, with the number of its file; a ValueError if records are missing."""
        before, n_damaged = self.path.name, 0
        for (_, file), path in sorted(files.items()):
            if file < first:
                continue
            for record in _records(path):
                if record is None:
                    n_damaged += 1
                    continue
                if "n" in record:  # older versions lack it
                    self._check_follows(record["n"], n_damaged, before, path.name)
                    self._n_records, n_damaged = record["n"] + 1, 0
                yield file, record
                before = path.name
            self._number = file + 1  # a new file: the last line of this one may be truncated
        self._n_records += n_damaged

    def _check_follows(self, number: int, n_damaged: int, before: str, name: str) -> None:
        """Check that a record is the next one: report damaged records; raise a ValueError if others are missing."""
        if 0 <= (n_missing := number - self._n_records) <= n_damaged:
            return
        between = f"between {before} and " if before != name else "within "
        lack = f"the journal lacks {n_missing:,} record{'s' * (n_missing != 1)} {between}{name}"
        if n_missing < 0:
            lack = f"the journal has a break between {before} and {name}, which belongs to another copy"
        if not self._allow_gap:
            raise ValueError(f"{lack}: restore all files of one backup, or learn only what is there by --allow-gap")
        log.warning(f"{self.path}: {lack}; continuing without")

    def goes_on(self, position: object) -> bool:
        """Whether anything was written after a checkpoint with this position. No records are read.

        Raises
        ------
        OSError, TypeError, ValueError
            If the files cannot be listed, or the position is not valid.
        """
        name, first, _ = _checked(position)
        files = self._files.journals().items()
        return any(of == name and number >= first and path.stat().st_size for (of, number), path in files)

    def learn(self, entries: Sequence[Entry], resolved: Sequence[int] = ()) -> None:
        """Record entries before they are learned, and the numbers of messages whose labels no longer wait."""
        if entries or resolved:
            number = self._n_records
            self._write({"entries": entries, "resolved": resolved})
            self._open, self._open_record, self._n_committed = entries, number, 0
            for number in resolved:
                self.waiting.pop(number, None)

    def commit(self, n: int) -> None:
        """Record that the next `n` messages of the last record are learned."""
        self._n_committed += n

    def abort(self) -> None:
        """Record that the rest of the last record is not learned; if this cannot be written now, the next record says
        it.
        """
        n = len(self._open) - self._n_committed
        if n > 0:
            self._open, self._aborted = (), (self._open_record, n)
            self._write({})

    def try_again(self) -> None:
        """Test whether a record of the size of the failed one can be written now."""
        self._check()
        if self._writes and self._n_failed:
            self._append(b" " * self._n_failed)
            assert self._file is not None
            with suppress(OSError):  # the next record is written over it
                self._file.truncate(self._end)

    def given(self, message: Waiting, label: Truth) -> None:
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
        tail = self._open[self._n_committed :]
        self._file, self._end = None, 0
        self._number += 1
        position = [self._name, self._number, self._n_records]
        begin: dict[str, Any] = {"labels": [*self.waiting.items()]} if self.waiting else {}
        if tail:
            begin |= {"entries": tail, "rest": self._open_record}
        try:
            if begin:
                self._put(begin)  # a single record, written whole or not at all
        except OSError:
            with suppress(OSError):
                self.close()
            self._file, self._end, self._number = before
            with suppress(OSError):
                self._files.journal(self._name, self._number + 1).unlink(missing_ok=True)
            raise
        self._open, self._n_committed = tail, 0
        if before[0] is not None:
            try:
                with before[0] as file:
                    if self.safe:
                        os.fsync(file.fileno())
            except OSError as error:
                self._fail(before[2], error)
        return position

    def written(self, position: object) -> None:
        """Record that a checkpoint is written; remove the files that neither it nor the previous one needs."""
        newest = _checked(position)
        with self._lock:
            if self._failed is not None and self._failed < newest[1]:
                self._failed = self.error = None
            before, self._newest = self._newest, newest
        with suppress(OSError):  # the next checkpoint tries again
            for (name, number), path in self._files.journals().items():
                if before is not None and name == self._name and number < before[1]:
                    path.unlink()

    def sync(self) -> None:
        """Flush to the disk, so that all records written so far survive a power cut; an OSError if a flush failed, now
        or since the newest checkpoint.
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
            self._check()  # `rotate` may have failed to flush the previous file
            self.n_synced = max(n, self.n_synced)

    def close(self) -> None:
        """Close the file; later records go to a new one."""
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
        if self._aborted is not None:
            record["dropped"] = self._aborted
        if self._end == 0 and self._newest is None:
            record["begun_with"] = self._begun_with
        record["n"] = self._n_records
        try:
            text = orjson.dumps(record)
        except TypeError:  # a lone surrogate, or an int beyond 64 bits
            # Escapes would join two lone surrogates into a pair.
            text = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        self._append(line)
        self._end += len(line)
        self._aborted = None
        self._n_records += 1
        self.n_written += 1

    def _append(self, line: bytes) -> None:
        """Write after the last record; after an error or an interrupt no part of it stays in the file."""
        try:
            self._file = self._file or self._made()
            self._file.seek(self._end)
            data = memoryview(line)
            while data:
                data = data[self._file.write(data) :]
        except BaseException as error:
            if isinstance(error, OSError):
                self.error, self._n_failed = _reason(error), len(line)
            if self._file is not None:
                with suppress(OSError):
                    self._file.truncate(self._end)
            raise
        self.error = None

    def _made(self) -> IO[bytes]:
        path = self._files.journal(self._name, self._number)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        if sys.platform == "win32":
            flags |= os.O_BINARY
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


def _checked(position: object) -> tuple[str, int, int]:
    """The name, the file and the number of the first record after a checkpoint; older versions had no numbers."""
    try:
        name, file, *number = position if isinstance(position, (list, tuple)) else ()
        (n_records,) = number or [0]
        return str(name), int(file), int(n_records)
    except (TypeError, ValueError):
        raise ValueError(must_be("a position in a journal", "one with its parts", position)) from None


def _records(path: Path) -> Iterator[dict[str, Any] | None]:
    """The records of a file, `None` for each damaged one; a truncated last line is no record."""
    with open(path, "rb") as file:
        if not _begins_journal(file.read(10)):
            raise ValueError(f"{path} must be a journal, got another file; move it away")
        file.seek(0)
        for number, line in enumerate(file, 1):
            for text in _texts(line):
                if text is not None:
                    yield json.loads(text.decode("utf-8", "surrogatepass"))
                elif line.endswith(b"\n"):
                    log.warning(f"{path}: line {number} is damaged and lost")
                    yield None


def _texts(line: bytes) -> Iterator[bytes | None]:
    """The text of the record in a line, `None` if it is damaged. If a line end is damaged, the line has two records."""
    while line:
        checksum, begin = 0, 9
        begins = () if line[:9] == b"%08x " % zlib.crc32(line[9:-1]) else _begins_record(line, 10)
        for end in itertools.chain((match.start() - 1 for match in begins), [len(line) - 1]):
            checksum, begin = zlib.crc32(line[begin:end], checksum), end
            if line[:9] == b"%08x " % checksum:
                yield line[9:end]
                break
        else:
            yield None
            return
        line = line[begin + 1 :]


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _entry(x: object, label: object, weight: float, id: object) -> Entry:
    label = tuple(label) if isinstance(label, list) else unpack(label)
    return make_message(x), label, weight, id


def _as_json(entry: Entry) -> Entry:
    x, label, weight, id = entry
    check_exact(x)
    check_exact(weight)
    if id is not None and type(id) not in (int, str, list):  # a list is a note
        raise TypeError(must_be("an id", "a str or an int", id))
    return x, pack(label) if isinstance(label, dict) else label, weight, id


def check_exact(value: object) -> None:
    """Raise a ValueError or TypeError about a message that JSON, and so the journal, would change: with NaN or an
    infinite number, with an object that JSON does not have, or with very deep values.
    """
    if isinstance(value, str):
        return
    for child in value.values() if isinstance(value, dict) else ():
        check_depth(child)
    _check_value(value)


def _check_value(value: object) -> None:
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(must_be("the names of fields", "texts", [*value]))
        value = [*value.values()]
    if isinstance(value, list):
        for child in value:
            _check_value(child)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a number must be one that JSON has, got {value}")
    elif not (value is None or isinstance(value, (str, int))):
        raise TypeError(must_be("a value", "of a type that JSON has", type_name(value)))
