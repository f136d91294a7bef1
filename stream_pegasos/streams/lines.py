"""Records, of which lines are most, none too long, and the examples that they hold."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

from stream_pegasos.streams.chunks import Chunks
from stream_pegasos.streams.example import Example, Id, Parsed, is_no_id, unreadable

# The records of a stream, each with its number; in the place of one that cannot be had stands the reason.
Records = Iterable[tuple[int, Any]]
# Parses a record; `None` if it is blank. A ValueError says why if it cannot be read.
Parser = Callable[[Any], Parsed | None]

# A line that never ends, or a quote left open in CSV, must not swallow an endless stream, yet 100 MB must pass.
LONGEST_LINE = 1 << 28  # bytes
_LONGEST_LOOK = 1 << 18
TOO_LONG = f"longer than {LONGEST_LINE >> 20} MB"


def split_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines, without a byte order mark. A line that is too long is cut one byte behind the limit."""
    readline = partial(file.readline, LONGEST_LINE + 1)
    first = readline().removeprefix(codecs.BOM_UTF8)
    return chain([first] if first else [], iter(readline, b""))


def unify_newlines(chunks: Chunks) -> Chunks:
    """The chunks, with line feeds in the place of carriage returns if these alone end lines."""
    head = chunks.look(lambda head: b"\n" not in head and len(head) < _LONGEST_LOOK)
    return Chunks(chunk.replace(b"\r", b"\n") for chunk in chunks) if ends_in_returns(head) else chunks


def ends_in_returns(head: bytes) -> bool:
    """Whether lines end in carriage returns alone, as some spreadsheets write them."""
    return b"\r" in head[:-1] and b"\n" not in head


def pass_over(line: bytes, file: BinaryIO) -> None:
    """Read the rest of a line that is too long."""
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)


def numbered_lines(file: BinaryIO, first: int = 1) -> Records:
    """The lines as records; `first` is the number of the first one."""
    for number, line in enumerate(split_lines(file), first):
        if len(line) > LONGEST_LINE:
            pass_over(line, file)
            yield number, ValueError(f"the line is {TOO_LONG}")
        else:
            yield number, line


def make_examples(records: Records, parse: Parser) -> Iterator[Example]:
    """The examples that records hold, or why they cannot be read, but for blank ones."""
    for line, record in records:
        example = make_example(record, parse, line)
        if example is not None:
            yield example


def make_example(record: object, parse: Parser, line: int = 0, id: Id | None = None) -> Example | None:
    """The example of one record, or why it cannot be read; `None` if it is blank. The id is that of the record, if it
    has one.
    """
    try:
        if isinstance(record, ValueError):
            raise record
        parsed = parse(record)
    except ValueError as error:
        return unreadable(error, line, id)
    if parsed is None:
        return None
    x, y, w, own = parsed
    if is_no_id(own):
        own = id
    if isinstance(y, ValueError):
        return Example(x, None, w, line, own, label_fault=str(y))
    return Example(x, y, w, line, own)
