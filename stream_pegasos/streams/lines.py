"""The lines of a stream, none too long."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import BinaryIO

from stream_pegasos.streams.example import Example, Parsed, unreadable

# Parses a line; `None` if it is blank. A ValueError says why if it cannot be read.
Parser = Callable[[bytes], Parsed | None]

# A line that never ends, or a quote left open in CSV, must not swallow an endless stream, yet 100 MB must pass.
LONGEST_LINE = 1 << 28  # bytes
TOO_LONG = f"longer than {LONGEST_LINE >> 20} MB"


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines, without a byte order mark. A line that is too long is cut one byte behind the limit."""
    readline = partial(file.readline, LONGEST_LINE + 1)
    return chain([readline().removeprefix(codecs.BOM_UTF8)], iter(readline, b""))


def pass_over(line: bytes, file: BinaryIO) -> None:
    """Read the rest of a line that is too long."""
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)


def read_lines(file: BinaryIO, parse: Parser, first: int = 1) -> Iterator[Example]:
    """Yield an example a line; `first` is the number of the first line."""
    for number, line in enumerate(lines_of(file), first):
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
