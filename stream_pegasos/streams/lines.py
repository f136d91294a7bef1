"""The lines of a file or pipe, compressed or not: UTF-8, and none too long."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

from stream_pegasos.streams.example import Example, Parsed, StreamError, unreadable

PathOrFile = str | os.PathLike[str] | BinaryIO
OnBadLine = Callable[[int, str], None]

# A line that never ends, or a quote left open in CSV, must not swallow an endless stream, yet 100 MB must pass.
LONGEST_LINE = 1 << 28  # bytes
TOO_LONG = f"longer than {LONGEST_LINE >> 20} MB"


@contextmanager
def opened(source: PathOrFile) -> Iterator[BinaryIO]:
    """The bytes of the source, decompressed where they begin with the magic of gzip."""
    if isinstance(source, str | os.PathLike) and source != "-":
        with open(source, "rb") as raw, opened(raw) as decompressed:
            yield decompressed
        return
    if source == "-":
        if sys.stdin is None:
            raise StreamError("standard input is closed")
        source = sys.stdin.buffer
    wrapped = None if hasattr(source, "peek") else io.BufferedReader(source)  # type: ignore[type-var]
    file: Any = wrapped or source
    try:
        # A pipe may hand over one byte at first. It decides: no text begins with 0x1f.
        if file.peek(2)[:2] in (b"\x1f\x8b", b"\x1f"):
            with gzip.GzipFile(fileobj=file, mode="rb") as unzipped:
                yield unzipped  # type: ignore[misc]
        else:
            yield file
    finally:
        if wrapped:
            wrapped.detach()


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines without a byte order mark; of one that is too long only so much that this is seen."""
    readline = partial(file.readline, LONGEST_LINE + 1)
    return chain([readline().removeprefix(codecs.BOM_UTF8)], iter(readline, b""))


def pass_over(line: bytes, file: BinaryIO) -> None:
    """Read the rest of a line that is too long."""
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)


def read_lines(file: BinaryIO, parse: Callable[[bytes], Parsed | None]) -> Iterator[Example]:
    for number, line in enumerate(lines_of(file), 1):
        try:
            if len(line) > LONGEST_LINE:
                pass_over(line, file)
                raise ValueError(f"the line is {TOO_LONG}")
            parsed = parse(line)
        except ValueError as error:
            yield unreadable(error, number)
        else:
            if parsed is not None:
                x, y, w, id = parsed
                yield Example(x, y, w, number, id)


def utf8_fault(error: UnicodeDecodeError) -> str:
    return f"not UTF-8 (byte 0x{error.object[error.start]:02x} at column {error.start + 1})"
