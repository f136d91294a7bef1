"""Parquet: each row is a record."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any, BinaryIO

from stream_pegasos.common.batch_then_single import batch_then_single
from stream_pegasos.common.display import one_line
from stream_pegasos.common.extras import missing
from stream_pegasos.features.message import Fields
from stream_pegasos.streams.chunks import Chunks, buffered
from stream_pegasos.streams.example import Example, Parsed, StreamError
from stream_pegasos.streams.lines import make_examples
from stream_pegasos.streams.read_options import ReadOptions
from stream_pegasos.streams.record_fields import columns_to_read, decode_fields, parsed_fields

try:
    import pyarrow
    from pyarrow import parquet
except ModuleNotFoundError as error:
    raise missing("Parquet", "parquet", error) from error

_ROWS = 1024  # rows held at a time
_BUFFER = 1 << 20  # bytes of a column read at a time


def read_parquet(file: BinaryIO | None, chunks: Chunks, name: str, options: ReadOptions) -> Iterator[Example]:
    """Read the rows of the file, or else of the chunks, which are copied to a file first: the index comes last."""
    with _seekable(file, chunks) as whole:
        with _reading(name):
            # Without a memory map and without reading ahead, memory does not grow with the size of a row group.
            table = parquet.ParquetFile(whole, buffer_size=_BUFFER, pre_buffer=False)
            schema = table.schema_arrow
        columns = _columns(schema, options)
        options.report_unread(schema.names)
        rows = _rows(table.iter_batches(_ROWS, columns=columns, use_threads=False), name)
        yield from make_examples(enumerate(rows, 1), partial(_parsed, options=options))


def _parsed(record: dict[str, Any], options: ReadOptions) -> Parsed:
    decode_fields(record, record, options)
    x, y, w, id = parsed_fields(record, options)
    if options.fields:
        x = Fields({name: _as_in_json(value) for name, value in x.items()})
    return x, y, w, id


@contextmanager
def _seekable(file: BinaryIO | None, chunks: Chunks) -> Iterator[Any]:
    if file is not None and file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(buffered(chunks), copy)
        copy.seek(0)
        yield copy


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # pyarrow raises many kinds
        if isinstance(error, OSError) and error.errno is not None:  # the disk has failed
            raise
        raise StreamError(f"{name}: no Parquet, or damaged ({one_line(str(error))})") from None


def _columns(schema: Any, options: ReadOptions) -> list[str]:
    """The columns to read; a StreamError if one is missing or duplicated."""
    _, columns = columns_to_read(options, partial(_has, schema))
    for field in columns:
        if not _has(schema, field):
            raise StreamError(f"column {field!r} is missing; the file has {', '.join(map(one_line, schema.names))}")
        if schema.names.count(field) > 1:
            raise StreamError(f"there are several columns {field!r}")
    return columns


def _rows(batches: Iterator[Any], name: str) -> Iterator[dict[str, Any] | ValueError]:
    """The rows; if a text in a batch is not UTF-8, the batch is read row by row."""
    while True:
        with _reading(name):
            batch = next(batches, None)
            file = (
                [] if batch is None else [*batch_then_single(batch, lambda rows: rows.to_pylist(), UnicodeDecodeError)]
            )
        if batch is None:
            return
        for _, rows in file:
            yield from [ValueError("not UTF-8")] if isinstance(rows, UnicodeDecodeError) else rows


def _as_in_json(value: object) -> Any:
    """A value as in JSON: times and infinite numbers become texts, decimal numbers floats, and NaN `None`."""
    if isinstance(value, dict):
        return {name: _as_in_json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_in_json(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    value = float(value) if isinstance(value, Decimal) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _has(fields: Any, name: str) -> bool:
    """Whether there is a column of this name or, for a.b, a column a of objects with a field b."""
    names = [field.name for field in fields]
    if name in names:
        return True
    outer, dot, inner = name.partition(".")
    if not dot or outer not in names:
        return False
    type = next(field.type for field in fields if field.name == outer)
    return pyarrow.types.is_struct(type) and _has(list(type), inner)
