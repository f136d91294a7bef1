"""Disks that are full."""

import errno
from types import SimpleNamespace

from stream_pegasos.runtime.journal import Journal


class Full:
    """Files on a disk that has room for so many bytes of each."""

    def __init__(self, room, monkeypatch):
        self.room, made = room, Journal._made
        monkeypatch.setattr(Journal, "_made", lambda journal: self.file(made(journal)))

    def file(self, file):
        def write(data):
            if file.tell() + len(data) > self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return file.write(data)

        names = ("seek", "truncate", "fileno", "close")
        return SimpleNamespace(write=write, **{name: getattr(file, name) for name in names})
