"""Parquet: a row is a record."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from stream_pegasos.common.extras import missing
from stream_pegasos.streams.chunks import Chunks, buffered
from stream_pegasos.streams.example import Example, StreamError, one_line, unreadable
from stream_pegasos.streams.fields import parsed_fields
from stream_pegasos.streams.layout import Layout

try:
    import pyarrow
    from pyarrow import parquet
except ModuleNotFoundError as error:
    raise missing("Parquet", "parquet", error) from error

_ROWS = 1024  # rows held at a time
_BUFFER = 1 << 20  # bytes of a column read at a time


def read_parquet(
    file: BinaryIO | None, chunks: Chunks, name: str, layout: Layout, unlabelled: bool
) -> Iterator[Example]:
    """The rows of the file, or else of the chunks, which are copied first: what is in them stands at their end."""
    with _seekable(file, chunks) as whole:
        rows = _rows(whole, layout, unlabelled)
        while True:
            try:
                row = next(rows, None)
            except StreamError:
                raise
            except Exception as error:  # pyarrow has many
                if getattr(error, "errno", None) is not None:  # the disk is at fault
                    raise
                raise StreamError(f"{name}: no Parquet, or damaged ({one_line(str(error))})") from None
            if row is None:
                return
            yield row


@contextmanager
def _seekable(file: BinaryIO | None, chunks: Chunks) -> Iterator[Any]:
    if file is not None and file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(buffered(chunks), copy)
        copy.seek(0)
        yield copy


def _rows(file: Any, layout: Layout, unlabelled: bool) -> Iterator[Example]:
    # Not mapped, and no column read ahead: memory stays the same however large a group of rows is.
    table = parquet.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
    schema = table.schema_arrow
    columns = [field for field in (layout.text_field, layout.label_field) if _has(schema, field)]
    if layout.text_field not in columns or not (unlabelled or layout.label_field in columns):
        field = layout.label_field if layout.text_field in columns else layout.text_field
        raise StreamError(f"there is no column {field!r}, but {', '.join(map(one_line, schema.names))}")
    if "id" in schema.names:
        columns.append("id")
    row = 0
    for batch in table.iter_batches(_ROWS, columns=columns, use_threads=False):
        for record in _records(batch):
            row += 1
            try:
                if isinstance(record, ValueError):
                    raise record
                x, y, w, id = parsed_fields(record, layout)
            except ValueError as error:
                yield unreadable(error, row)
            else:
                yield Example(x, y, w, row, id)


def _records(batch: Any) -> Iterator[dict[str, Any] | ValueError]:
    """The rows, one by one where a text among them is not UTF-8."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        if batch.num_rows == 1:
            yield ValueError("not UTF-8")
        else:
            for i in range(batch.num_rows):
                yield from _records(batch.slice(i, 1))


def _has(fields: Any, name: str) -> bool:
    """Whether there is a column of this name, or, of a.b, a column a that is an object with a field b."""
    names = [field.name for field in fields]
    if name in names:
        return True
    outer, dot, inner = name.partition(".")
    if not dot or outer not in names:
        return False
    type = next(field.type for field in fields if field.name == outer)
    return pyarrow.types.is_struct(type) and _has(list(type), inner)
