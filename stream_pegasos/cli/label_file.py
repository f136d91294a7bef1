"""The labels that people give, in a file that can be learned from."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_pegasos.cli.answers import cut, to_json
from stream_pegasos.cli.console import Failure, note, writing

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from stream_pegasos.operation.teaching import Waiting


class LabelFile:
    """Labels, a line of JSON each, that are written as they are given; those taken back are cut out again.

    Parameters
    ----------
    path
        The file; what stands there stays.
    several
        Whether a message may have several labels.
    """

    def __init__(self, path: Path, several: bool) -> None:
        self.path, self.several = path, several
        self.n = 0  # labels that stand there
        with writing(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            if fcntl is not None:
                self._lock()
            self._end = cut(path)
        self._lines: dict[int, bytes] = {}  # by number of the message, those that can be taken back; the last lines

    def _lock(self) -> None:
        """Keep other processes off, which would write over these labels."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"{self.path} is in use: another process writes its labels there") from None

    def before(self) -> list[tuple[str, Any]]:
        """The texts and labels that stand there."""
        from stream_pegasos.streams import LabelFormat, StreamError, read

        def tell(line: int, reason: str) -> None:
            note(f"{self.path}: line {line} skipped: {reason}")

        try:
            labels = LabelFormat(several=self.several)
            given = [
                (str(example.x), example.y)
                for example in read(self.path, format="jsonl", labels=labels, on_bad_line=tell)
            ]
        except StreamError as error:
            raise StreamError(f"{self.path}: {error}") from None
        self.n = len(given)
        return given

    def given(self, message: "Waiting", label: Any) -> None:
        record = {**(message.origin or {}), "text": message.text, "label": label}
        line = to_json(record).encode("utf-8", "backslashreplace") + b"\n"
        self._write({**self._lines, message.number: line})

    def taken_back(self, message: "Waiting") -> None:
        self._write({number: line for number, line in self._lines.items() if number != message.number})

    def learned(self, message: "Waiting") -> None:
        self._end += len(self._lines.pop(message.number))

    @staticmethod
    def write_at(file: int, data: bytes, at: int) -> int:
        """Write at a place of a file; how many bytes were written."""
        os.lseek(file, at, os.SEEK_SET)  # Windows has no os.pwrite
        return os.write(file, data)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, lines: dict[int, bytes]) -> None:
        """Let these be the lines that can be taken back; where that fails, let those stay that were."""
        try:
            self._put(lines)
        except OSError:
            with suppress(OSError):
                self._put(self._lines)
            raise
        self.n += len(lines) - len(self._lines)
        self._lines = lines

    def _put(self, lines: dict[int, bytes]) -> None:
        rest, at = b"".join(lines.values()), self._end
        # What is the same is written over itself: a kill on the way loses at most the label that changes.
        while rest:
            n = self.write_at(self._file, rest, at)
            rest, at = rest[n:], at + n
        os.ftruncate(self._file, at)
