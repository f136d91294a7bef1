"""A growing file as a live source, followed through its rotation."""

from __future__ import annotations

import io
import os
import re
import shlex
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from stream_pegasos.streams.compression import EXTENSIONS, detect_compression
from stream_pegasos.streams.csv_tsv import CSVReader, Taken
from stream_pegasos.streams.encoding import marked_encoding
from stream_pegasos.streams.example import Example, StreamError
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG, ends_in_returns
from stream_pegasos.streams.read_options import TABLE, ReadOptions
from stream_pegasos.streams.sources import Lag, LiveSource, SourceSettings, check_position

_CHUNK = 1 << 20
_HEAD = 1024  # first bytes, which distinguish a file from another one with the same inode
_CSV = ("csv", "tsv")
_LONG_RECORD = 1 << 20  # bytes of an unfinished record from which on an operator is told
_INTERVAL = 0.1  # seconds between two looks at a file without new bytes
_GRACE = 1.0  # seconds without a write after which a rotated file counts as complete
_COMPRESSED = (*EXTENSIONS, ".lz4", ".zip")
# Suffixes of rotation: a number or a date. Names with other endings are other files, such as a model.
_is_rotation = re.compile(r"[._-]([0-9][0-9TZ:._+-]*|old|bak)").fullmatch
_rotations = re.compile(r"[._-]([0-9]{1,5})").fullmatch  # the number of rotations; more digits are a date or a time


class FollowedFile(LiveSource):
    """A file that other programs append to and rotate, by a rename or by copying and emptying it. Each line is a
    record, or the file is CSV or TSV, whose records are taken when they are complete; a rotated file may have its own
    header.

    A position identifies its file by the inode and the checksum of the first bytes. The source finds this file at the
    path or among the rotated files, whose names end in a number or a date. Then it reads the files that were modified
    later, and finally the file at the path. If files were modified at the same time, a larger number or an earlier date
    comes first.
    """

    def __init__(self, path: str, settings: SourceSettings) -> None:
        super().__init__(os.path.abspath(path), settings)  # a run that resumes may start in another folder
        _check_can_be_followed(path, settings.options)
        self._csv: CSVReader | None = None
        self._is_csv = settings.options.format in _CSV
        self._parse = None if self._is_csv and not settings.options.are_labels else self.line_parser("a growing file")
        position = settings.position
        self._resume = None if position is None else check_position(position, "file", _is_position)
        self._whole_lines = settings.whole_lines
        self._file: io.FileIO | None = None  # the open file
        self._status: os.stat_result
        self._head = b""
        self._offset = self._line = 0  # after the last line handed out
        self._rest: list[bytes] = []  # pieces of an unfinished line
        self._n_rest = 0
        self._seen: tuple[int, ...] = ()  # the status of the open file at the last look for its successor
        self._seen_at = 0.0  # the time since which the status is the same

    def next_batch(self) -> Iterable[Example | None] | None:
        try:
            chunk = self._read(self._file or self._find())
            successor = None if chunk else self._successor()
        except OSError as error:
            if not self._follow:
                raise
            self.down("file", f"waiting for {self.name} ({error.strerror or error})")
            time.sleep(_INTERVAL)
            return ()
        self.up("file", f"{self.name} is there")
        if chunk:
            return self._examples(self._lines(chunk, False))
        if self._follow and (successor is None or not self._is_done()):
            time.sleep(_INTERVAL)
            return ()
        if successor is not None:
            return self._rest_before(successor)
        # The last line of a file counts even without a line end, unless the line end may still come.
        if self._n_open and not self._whole_lines:
            return self._last_examples()
        if self._n_open:
            self.event(f"the last line of {self.name} has no end yet: it is read when it has one")
        return None

    @property
    def _n_open(self) -> int:
        """The number of bytes read of an unfinished line or record."""
        return self._n_rest + (0 if self._csv is None else self._csv.n_open)

    def _rest_before(self, successor: tuple[str, os.stat_result]) -> Iterator[Example | None]:
        """The last line of the open file, if it has no line end; then continue at the beginning of the next file."""
        yield from self._last_examples()
        if self._move_to(successor) and self._head:
            yield None  # the position is now in the next file
        else:
            time.sleep(_INTERVAL)

    def release(self) -> None:
        if self._file is not None:
            self._file.close()

    def lag(self, position: object) -> Lag | None:
        """The bytes after the position, including the files that came after a rotated one."""
        try:
            files = [*self._siblings(), (self.name, os.stat(self.name))]
        except OSError:
            return None
        places = [(status.st_ino, status.st_dev) for _, status in files]
        begin, offset = len(files) - 1, 0
        if isinstance(position, dict) and (at := (position["inode"], position["device"])) in places:
            begin, offset = places.index(at), position["offset"]
        return Lag("bytes", {"": max(0, sum(status.st_size for _, status in files[begin:]) - offset)})

    # Lines

    def _lines(self, chunk: bytes, ends_line: bool) -> Iterator[tuple[int, bytes | ValueError]]:
        """Yield the length of each line that ends in the chunk, and the line or the reason why it cannot be read. With
        `ends_line` the end of the chunk ends the last line.
        """
        end = len(chunk) if ends_line else chunk.rfind(b"\n") + 1
        if end or (ends_line and self._n_rest):
            lines = io.BytesIO(chunk[:end])
            first = lines.readline()
            size = self._n_rest + len(first)
            whole = b"".join([*self._rest, first])
            self._rest, self._n_rest = [], 0
            yield size, ValueError(f"the line is {TOO_LONG}") if size > LONGEST_LINE else whole
            for line in lines:
                yield len(line), line
        if end < len(chunk):
            self._rest.append(chunk[end:])
            self._n_rest += len(chunk) - end
            if self._n_rest > LONGEST_LINE:
                self._rest.clear()

    def _examples(self, lines: Iterator[tuple[int, bytes | ValueError]]) -> Iterator[Example | None]:
        for size, line in lines:
            if self._csv is not None:
                yield from self._taken(self._csv.add(line, size))
                self._tell_of_open_record(self._csv.n_open)
            elif self._parse is not None:
                self._offset += size
                self._line += 1
                yield self.example(line, self._parse, f"line {self._line}", self._line)

    def _last_examples(self) -> Iterator[Example | None]:
        yield from self._examples(self._lines(b"", True))
        if self._csv is not None:
            yield from self._taken(self._csv.end())

    def _taken(self, records: Iterable[Taken]) -> Iterator[Example | None]:
        for example, size, self._line in records:
            self._offset += size
            yield None if example is None else self.checked(example, f"line {example.line}", example.line)

    def _tell_of_open_record(self, n_bytes: int) -> None:
        if n_bytes > _LONG_RECORD:
            place = f"the record that begins on line {self._line + 1} of {self.name}"
            self.down("record", f"{place} has no end after 1 MB, and waits for it: is a quote never closed?")
        elif not n_bytes:
            self.up("record", f"the record of {self.name} has ended")

    # Files

    def snapshot(self) -> dict[str, Any]:
        return {
            "inode": self._status.st_ino,
            "device": self._status.st_dev,
            "offset": self._offset,
            "line": self._line,
            "fingerprint": [len(self._head), zlib.crc32(self._head)],
            **({} if self._csv is None else {"columns": self._csv.columns}),
        }

    def _read(self, file: io.FileIO) -> bytes:
        """Read more. If the file was emptied meanwhile, continue in the file that now holds the bytes read so far."""
        read_to = self._offset + self._n_open
        file.seek(read_to)
        chunk = file.read(_CHUNK)
        self._head = self._head or chunk[:_HEAD]
        file.seek(0)
        head = file.read(_HEAD)
        if os.fstat(file.fileno()).st_size >= read_to + len(chunk) and head.startswith(self._head):
            self._head = head
            return chunk.replace(b"\r", b"\n") if ends_in_returns(head) else chunk
        self._resume = self.snapshot()
        file.close()
        self._file = None
        self.event(f"{self.name} was emptied or rewritten")
        return self._read(self._find())

    @property
    def _opened(self) -> io.FileIO:
        assert self._file is not None
        return self._file

    def _find(self) -> io.FileIO:
        """Open the file to read next."""
        position = self._resume
        if position is not None:
            for by_inode in (True, False):
                for path in (self.name, *(path for path, _ in self._siblings())):
                    if self._open(path, position, by_inode):
                        if path != self.name:
                            self.event(f"going on in {path}, line {position['line'] + 1}")
                        return self._opened
        self._open(self.name)
        if position is not None:
            self.event(
                f"starting at the beginning of {self.name}: the file read before does not exist any more, and records "
                f"after its line {position['line']} may be lost"
            )
        return self._opened

    def _open(self, path: str, position: dict[str, Any] | None = None, by_inode: bool = False) -> bool:
        """Open a file at its beginning or, if it is the file of the position, there; return whether it is open."""
        try:
            file = io.FileIO(path)
        except OSError:
            # A rotated file may be renamed at any moment; the next search finds it.
            if path == self.name and not (position is not None and not os.path.exists(path)):
                raise
            return False
        status, head = os.fstat(file.fileno()), file.read(_HEAD)
        if position is not None and not _is_in(position, status, head, by_inode):
            file.close()
            return False
        if detect_compression(head) or marked_encoding(head):
            file.close()
            raise _not_followed(path, marked_encoding(head) or "compressed")
        if self._file is not None:
            self._file.close()
        self._file, self._status, self._head, self._resume = file, status, head, None
        self._offset, self._line = (position["offset"], position["line"]) if position else (0, 0)
        self._rest, self._n_rest = [], 0
        if self._parse is None:
            columns = None if self._csv is None else self._csv.columns
            columns = position.get("columns", columns) if position else columns
            self._csv = CSVReader(self._options, self._options.decoder, columns, self._line)
        return True

    def _siblings(self) -> list[tuple[str, os.stat_result]]:
        """The rotated files, the oldest first."""
        folder, name = os.path.split(self.name)
        siblings = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(name) and _is_rotation(entry.name[len(name) :]):
                    try:
                        status = os.stat(os.path.join(folder, entry.name))
                    except OSError:
                        continue
                    if stat.S_ISREG(status.st_mode):
                        siblings.append((os.path.join(folder, entry.name), status))
        return sorted(siblings, key=self._age)

    def _age(self, sibling: tuple[str, os.stat_result]) -> tuple[int | str, ...]:
        """A key that sorts rotated files, the oldest first; files rotated within a moment have the same time."""
        path, status = sibling
        rotations = _rotations(path[len(self.name) :])
        return status.st_mtime_ns, -int(rotations[1]) if rotations else 0, path

    def _successor(self) -> tuple[str, os.stat_result] | None:
        """The file after the open one; `None` while that file is empty: its writer may still use the old one."""
        try:
            current = os.stat(self.name)
        except FileNotFoundError:
            current = None
        if current is not None and os.path.samestat(current, self._status):
            return None
        siblings = self._siblings()
        own_age = (os.fstat(self._opened.fileno()).st_mtime_ns, 1)
        age = next((self._age(entry) for entry in siblings if os.path.samestat(entry[1], self._status)), own_age)
        for sibling in siblings:
            if sibling[1].st_size and self._age(sibling) > age:
                return sibling
        return (self.name, current) if current is not None and current.st_size else None

    def _is_done(self) -> bool:
        """Whether the open file was read to its end, and had no new bytes for a while. File times cannot tell this:
        clocks are set, and files come from other machines.
        """
        status, now = os.fstat(self._opened.fileno()), time.monotonic()
        state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if state != self._seen:
            self._seen, self._seen_at = state, now
        return now - self._seen_at >= _GRACE and status.st_size == self._offset + self._n_open

    def _move_to(self, successor: tuple[str, os.stat_result]) -> bool:
        path, status = successor
        beginning = {"inode": status.st_ino, "device": status.st_dev, "offset": 0, "line": 0, "fingerprint": [0, 0]}
        try:
            moved = self._open(path, beginning, by_inode=True)  # unless it was rotated meanwhile
        except OSError:
            if not self._follow:
                raise
            return False
        if moved:
            place = "the new file" if path == self.name else path
            self.event(f"{self.name} was rotated: going on in {place}")
        return moved


def _is_in(position: dict[str, Any], status: os.stat_result, head: bytes, by_inode: bool) -> bool:
    """Whether a file is the file of a position, by its inode and first bytes or by its first bytes alone."""
    n, checksum = position["fingerprint"]
    same_inode = (status.st_ino, status.st_dev) == (position["inode"], position["device"])
    same_head = len(head) >= n and zlib.crc32(head[:n]) == checksum
    return same_head and status.st_size >= position["offset"] and (same_inode if by_inode else n > 0)


def _check_can_be_followed(path: str, options: ReadOptions) -> None:
    format = str(options.format)
    if os.path.isdir(path):
        raise StreamError(
            f"{path} is a folder and cannot be followed: name a file in it, or read it by train or predict"
        )
    if format == "mail":
        raise StreamError(f"{path} is mail, which predict and train read to its end; to go on, {_hint(path, format)}")
    if not (TABLE[format].has_lines or format in _CSV or options.are_labels):
        raise _not_followed(path, f"{format}, whose records take several lines,", format)
    if not options.decoder.has_lines:
        raise _not_followed(path, f"{options.encoding}, whose lines are found only after decoding,", format)
    if path.lower().endswith(_COMPRESSED):
        raise _not_followed(path, "compressed")
    if os.path.exists(path) and not os.path.isfile(path):
        raise _not_followed(path, "not a regular file")


def _not_followed(path: str, reason: str, format: str = "NAME") -> StreamError:
    return StreamError(f"{path} is {reason} and cannot be followed: {_hint(path, format)}")


def _hint(path: str, format: str) -> str:
    return f"read it through standard input, stream-pegasos run --format {format} < {shlex.quote(path)}"


def _is_position(position: dict[str, Any]) -> bool:
    n, checksum = position["fingerprint"]
    columns = position.get("columns")
    is_named = columns is None or (isinstance(columns, list) and all(isinstance(name, str) for name in columns))
    numbers = [n, checksum, *(position[key] for key in ("inode", "device", "offset", "line"))]
    return all(type(number) is int and number >= 0 for number in numbers) and n <= _HEAD and is_named
