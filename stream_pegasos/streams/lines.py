"""Records, most of them lines, their largest size, and the examples in them."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

from stream_pegasos.streams.chunks import Chunks
from stream_pegasos.streams.example import Example, Id, Parsed, is_no_id, unreadable

# The records of a stream, each with its number; an unreadable record is replaced by the reason.
Records = Iterable[tuple[int, Any]]
# The parser of a record; `None` for a blank record. A ValueError gives the reason if the record cannot be read.
Parser = Callable[[Any], Parsed | None]

# A line without end, or an open quote in CSV, must not consume an endless stream, but 100 MB must be accepted.
LONGEST_LINE = 1 << 28  # bytes
_LONGEST_LOOK = 1 << 18
TOO_LONG = f"longer than {LONGEST_LINE >> 20} MB"


def split_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines, without a byte order mark. A line that is too long is cut one byte after the limit."""
    readline = partial(file.readline, LONGEST_LINE + 1)
    first = readline().removeprefix(codecs.BOM_UTF8)
    return chain([first] if first else [], iter(readline, b""))


def unify_newlines(chunks: Chunks) -> Chunks:
    """The chunks, with line feeds in place of carriage returns if lines end in carriage returns alone."""
    head = chunks.look(lambda head: b"\n" not in head and len(head) < _LONGEST_LOOK)
    return Chunks(chunk.replace(b"\r", b"\n") for chunk in chunks) if ends_in_returns(head) else chunks


def ends_in_returns(head: bytes) -> bool:
    """Whether lines end in carriage returns alone, as in files of some spreadsheets."""
    return b"\r" in head[:-1] and b"\n" not in head


def pass_over(line: bytes, file: BinaryIO) -> None:
    """Skip the rest of a line that is too long."""
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
    """The examples in records, or the reasons why they cannot be read; blank records are skipped."""
    for line, record in records:
        example = make_example(record, parse, line)
        if example is not None:
            yield example


def make_example(record: object, parse: Parser, line: int = 0, id: Id | None = None) -> Example | None:
    """The example in one record, or the reason why it cannot be read; `None` if it is blank. `id` is the id of the
    record, if it has one.
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
