"""The lock of a model file. A writer holds it from before the first read until the file is written."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from stream_pegasos.common.companions import Companions
from stream_pegasos.common.locks import Lock

try:
    import fcntl
except ImportError:  # only POSIX has it
    fcntl = None  # type: ignore[assignment]

__all__ = ["FileLock", "locked"]

LONGEST_NUMBER = 20  # digits
PATIENCE = 1.0  # seconds to wait for another process that only writes the file


class FileLock:
    """A lock that keeps other processes from writing a file; it is held on a file beside it. Devices and pipes need no
    lock. `tell` gets a line if the file system has no locks.
    """

    def __init__(self, path: str | os.PathLike[str], tell: Callable[[str], None] = lambda text: None) -> None:
        companions = Companions(path)
        self.path, self._at, self._tell = companions.path, companions.lock, tell
        self._file: int | None = None

    def claim(self) -> None:
        """Take the lock until `release`. Raise a BlockingIOError if another process has it."""
        if fcntl is None or self._file is not None or (self.path.exists() and not self.path.is_file()):
            return
        try:
            file = os.open(self._at, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:  # no write would succeed, and another process could start
            raise OSError(f"cannot write {self.path}, nor a lock beside it: {error.strerror or error}") from None
        if not (os.pread(file, LONGEST_NUMBER + 1, 0) or b"0").isdigit():  # not a lock: `release` would remove it
            os.close(file)
            raise OSError(
                f"cannot write {self.path}: {self._at} must be an empty file, got one with content; move it away"
            )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file), os.stat(self._at)):
                raise BlockingIOError  # the process that released it has just removed it
        except (BlockingIOError, PermissionError, FileNotFoundError):
            owner = b""
            with contextlib.suppress(OSError):
                owner = os.pread(file, LONGEST_NUMBER, 0)
            os.close(file)
            raise BlockingIOError(f"{self.path} is in use: another process writes it{_named(owner)}") from None
        except OSError as error:
            os.close(file)
            reason = error.strerror or error
            self._tell(f"cannot lock {self._at} ({reason}): see to it that no other process writes {self.path.name}")
            return
        with contextlib.suppress(OSError):  # on a full disk the lock works without the process number
            os.ftruncate(file, 0)
            os.pwrite(file, b"%d" % os.getpid(), 0)
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._at)
            os.close(self._file)
            self._file = None


def _named(owner: bytes) -> str:
    """The process that holds a lock, by the number that it wrote there."""
    if not owner.isdigit():
        return ""
    return f"{', or another part of this one' * (int(owner) == os.getpid())} (process {int(owner)})"


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file while it is written once. Threads of this process wait for each other, first come, first
    served.
    """
    lock = FileLock(path)
    with _turn(lock.path):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                lock.claim()
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.01)
            except OSError:  # the write itself will raise the reason
                break
        try:
            yield
        finally:
            lock.release()


_queues: dict[Path, deque[threading.Event]] = {}  # by file: the thread whose turn it is, then those that wait
_changing = Lock()


@contextlib.contextmanager
def _turn(path: Path) -> Iterator[None]:
    own = threading.Event()
    with _changing:
        queue = _queues.setdefault(path, deque())
        queue.append(own)
        queue[0].set()
    try:
        own.wait()
        yield
    finally:
        with _changing:
            queue.remove(own)
            if queue:
                queue[0].set()
            else:
                _queues.pop(path, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_queues.clear)  # the child has none of these threads
