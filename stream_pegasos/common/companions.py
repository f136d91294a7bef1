"""The files beside a model file: every name that is made from its name."""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path

__all__ = ["Companions", "model_beside"]

LONGEST_NAME = 255  # bytes
_named = re.compile(r"(.+)\.(?:previous|journal-[0-9a-f]{8}-[0-9]+)|\.(.+)\.lock", re.DOTALL).fullmatch


class Companions:
    """The files beside a model file: the lock of its writer, the temporary file that will replace it, the previous
    checkpoint, and the journal. The list is complete: no other code may make a file name from another file's name.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        name = self.path.name
        self._checksum = f"{zlib.crc32(os.fsencode(name)):08x}"  # for names that would be too long otherwise
        lock = f".{name}.lock"
        is_long = len(os.fsencode(lock)) > LONGEST_NAME
        self.lock = self.path.with_name(f".{self._checksum}.lock" if is_long else lock)
        self.previous = self.path.with_name(f"{name}.previous")
        self._journal = f"{name}.journal-"
        self._is_journal = re.compile(rf"{re.escape(self._journal)}([0-9a-f]{{8}})-([0-9]+)").fullmatch
        self._is_temporary = re.compile(rf"\.{self._checksum}-[0-9a-f]{{32}}\.tmp").fullmatch

    def journal(self, name: str, number: int) -> Path:
        """The path of a journal file. All files of a journal share the name, 8 hexadecimal digits, and each has a
        number.
        """
        return self.path.with_name(f"{self._journal}{name}-{number}")

    def journals(self) -> dict[tuple[str, int], Path]:
        """The existing journal files, by name and number."""
        candidates = [(self._is_journal(path.name), path) for path in self._siblings()]
        return {(match[1], int(match[2])): path for match, path in candidates if match}

    def temporary(self) -> Path:
        """A new name for the file that will replace the model file."""
        return self.path.with_name(f".{self._checksum}-{os.urandom(16).hex()}.tmp")

    def temporaries(self) -> list[Path]:
        """The existing temporary files."""
        return [path for path in self._siblings() if self._is_temporary(path.name)]

    def kind(self, path: Path) -> str | None:
        """The role of a path without links beside the model file, as a phrase; `None` if it has none."""
        if path.parent != self.path.parent:
            return None
        if path in (self.lock, self.previous):
            return "the lock of" if path == self.lock else "the checkpoint before"
        if self._is_journal(path.name):
            return "the journal of"
        return "a temporary file of" if self._is_temporary(path.name) else None

    def _siblings(self) -> list[Path]:
        return [*self.path.parent.iterdir()] if self.path.parent.is_dir() else []


def model_beside(path: Path) -> Path | None:
    """The model file that a path belongs to, by its name. Neither file needs to exist."""
    match = _named(path.name)
    return path.with_name(match[1] or match[2]) if match else None
