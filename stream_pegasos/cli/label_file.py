"""The labels that people give, in a file that can be learned from."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_pegasos.cli.answers import begin_of_last_line, to_json
from stream_pegasos.cli.console import Failure, note, writing

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from stream_pegasos.operation.active_learning import Waiting
    from stream_pegasos.streams import Example


class LabelFile:
    """Labels, a line of JSON each, written as people give them; one that is taken back is removed again.

    Beside a message stand its label, and its line and id in the file that it comes from, as `label`, `line` and `id`.
    Where it has a field of such a name, what stands beside it is called `label_`, and so on.

    Parameters
    ----------
    path
        The file. Its content stays, except for an unfinished last line of JSON, as after a kill.
    several
        Whether a message may have several labels.
    fields
        The fields that a message is made of; none where it is a text.

    Raises
    ------
    Failure
        If the file does not have the extension of JSON lines, holds something other than labels, or another process
        writes there.
    """

    def __init__(self, path: Path, several: bool, fields: Sequence[str] = ()) -> None:
        self.path, self.several, self.fields = path, several, fields
        self._called = {name: _free(name, fields) for name in ("line", "id", "label")}
        if "label" in fields:
            called = self._called["label"]
            note(f"{path}: labels stand in the field {called} (--label-field), as a message has a label of its own")
        self.n = 0  # labels in the file
        _check_ending(path)
        with writing(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            try:
                if fcntl is not None:
                    self._lock()
                self._end = self._mended()
            except BaseException:
                os.close(self._file)
                raise
        self._lines: dict[int, bytes] = {}  # the last lines, whose labels can be taken back, by number of the message

    def _lock(self) -> None:
        """Lock the file: another process would overwrite these labels."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"{self.path} is in use: another process writes its labels there") from None

    def _mended(self) -> int:
        """End the last line, or cut it off if it is unfinished; return the size of the file."""
        with open(self.path, "rb") as file:
            begin = begin_of_last_line(file)
            file.seek(begin)
            last = file.read()
        size = begin + len(last)
        is_cut = last.startswith(b"{") and not last.rstrip().endswith(b"}")
        is_first = begin == 0 and is_cut and last.startswith(f'{{"{self._called["line"]}": '.encode())
        if size and not is_first and next(self._read(lambda *_: None), None) is None:
            raise Failure(f"{self.path} is there, and no line of it is JSON with a text and a label; it stays as it is")
        if is_cut:
            os.ftruncate(self._file, begin)
            return begin
        if last:
            size += self.write_at(self._file, b"\n", size)
        return size

    def before(self) -> list[tuple[Any, Any]]:
        """The messages and labels that stand there."""

        def tell(line: int, reason: str) -> None:
            note(f"{self.path}: line {line} skipped: {reason}")

        given = [(example.x, example.y) for example in self._read(tell)]
        self.n = len(given)
        return given

    def _read(self, tell: Callable[[int, str], None]) -> "Iterator[Example]":
        from stream_pegasos.streams import LabelFormat, StreamError, read

        try:
            yield from read(
                self.path,
                format="jsonl",
                label_field=self._called["label"],
                id_field=self._called["id"],
                labels=LabelFormat(several=self.several),
                fields=self.fields,
                on_bad_line=tell,
            )
        except StreamError as error:
            raise StreamError(f"{self.path}: {error}") from None

    def given(self, message: "Waiting", label: Any) -> None:
        content = {"text": message.x} if isinstance(message.x, str) else message.x
        beside = {self._called[name]: value for name, value in (message.origin or {}).items()}
        record = {**beside, **content, self._called["label"]: label}
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
        """Replace the lines that can be taken back; if that fails, restore those that were there."""
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
        # Equal lines overwrite each other: a kill meanwhile loses at most the label that changes.
        while rest:
            n = self.write_at(self._file, rest, at)
            rest, at = rest[n:], at + n
        os.ftruncate(self._file, at)


def _free(name: str, fields: Sequence[str]) -> str:
    return _free(f"{name}_", fields) if name in fields else name


def _check_ending(path: Path) -> None:
    from stream_pegasos.streams import StreamError, format_of

    try:
        is_taken = not path.suffix or format_of(f"labels{path.suffix}") == "jsonl"
    except StreamError:
        is_taken = False
    if not is_taken:
        raise Failure(f"{path}: labels are written as JSON lines; end its name in .jsonl")
