"""The bytes of a stream in chunks, and a look at the first ones before they are read."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from stream_pegasos.streams.example import StreamError

PathOrFile = str | os.PathLike[str] | BinaryIO

_SIZE = 1 << 16


@contextmanager
def opened(source: PathOrFile) -> Iterator[BinaryIO]:
    """Open the source; at the end close it, unless it was given as an open file."""
    if isinstance(source, str | os.PathLike) and source != "-":
        with open(source, "rb") as file:
            yield file
    elif not isinstance(source, str | os.PathLike):
        yield source
    elif sys.stdin is None:
        raise StreamError("standard input is closed")
    else:
        yield sys.stdin.buffer


class Chunks(io.RawIOBase):
    """Chunks of bytes, or a file of them. The first may be looked at before they are read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._back: list[bytes] = []  # chunks to read before the others, the first one last

    def __next__(self) -> bytes:
        return self._back.pop() if self._back else next(self._chunks)

    def push_back(self, chunk: bytes) -> None:
        if chunk:
            self._back.append(chunk)

    def look(self, wants_more: Callable[[bytes], bool]) -> bytes:
        """The first bytes, read until no more are wanted or the stream ends; they are not consumed. A pipe may deliver
        one byte first, and the next one only after the first line has been answered.
        """
        head = b""
        for chunk in self:
            head += chunk
            if not wants_more(head):
                break
        self.push_back(head)
        return head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = next((chunk for chunk in self if chunk), b"")
        n = min(len(buffer), len(chunk))
        buffer[:n] = chunk[:n]
        self.push_back(chunk[n:])
        return n


def read_chunks(file: BinaryIO) -> Chunks:
    """The chunks of a file, each as soon as some bytes are available."""
    read = getattr(file, "read1", None) or file.read
    return Chunks(iter(lambda: read(_SIZE) or b"", b""))


def may_begin(head: bytes, marks: tuple[bytes, ...]) -> bool:
    """Whether the bytes are only the beginning of a mark, so that more bytes are needed to decide."""
    return any(len(mark) > len(head) and mark.startswith(head) for mark in marks)


def buffered(chunks: Chunks) -> BinaryIO:
    """A file of the chunks."""
    return io.BufferedReader(chunks, _SIZE)
