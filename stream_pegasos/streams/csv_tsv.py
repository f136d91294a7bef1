"""CSV and TSV: records under a header, or in columns that are named, quoted as in RFC 4180."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

from stream_pegasos.common.display import one_line
from stream_pegasos.features.message import Fields
from stream_pegasos.streams.encoding import Encoding
from stream_pegasos.streams.example import Example, StreamError, unreadable
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG, lines_of, pass_over
from stream_pegasos.streams.options import ReadOptions

_Records = Iterator[tuple[int, list[str] | ValueError]]  # each with the line on which it begins


def read_csv(file: BinaryIO, options: ReadOptions, encoding: Encoding) -> Iterator[Example]:
    """Yield the records as examples. The first record names the columns unless the options do."""
    rows = _records(file, options, encoding)
    header = list(options.columns or ())
    while not header:
        line, record = next(rows, (0, None))
        if record is None:
            return
        if isinstance(record, ValueError):
            yield unreadable(record, line)
        else:
            header = [field.strip() for field in record]
    there = [name for name in options.fields if name in header] or [*options.message_fields[:1]]
    columns = {name: _column(name, header, options) for name in there}
    options.report_unread(header)
    text_column = columns[there[0]]
    label_column = id_column = None
    if options.label_field in header or not options.unlabelled:
        label_column = _column(options.label_field, header, options)
    if "id" in header or options.id_field != "id":
        id_column = _column(options.id_field, header, options)
    under = "under a header of" if options.columns is None else "where there are columns for"
    needed = max([*columns.values(), 0 if options.unlabelled else label_column or 0])
    for line, record in rows:
        if isinstance(record, ValueError):
            yield unreadable(record, line)
            continue
        id = record[id_column] if id_column is not None and id_column < len(record) else None
        if len(record) > len(header):
            yield unreadable(ValueError(f"{len(record)} fields {under} {len(header)}"), line, id)
        elif len(record) <= needed:
            missing = next((name for name, at in columns.items() if len(record) <= at), options.label_field)
            yield unreadable(ValueError(f"no field {missing!r}"), line, id)
        else:
            has_label = label_column is not None and label_column < len(record)
            try:
                y = options.labels.of_text(record[label_column]) if has_label else None  # type: ignore[index]
            except ValueError as error:
                yield unreadable(error, line, id)
                continue
            x = Fields({name: record[at] for name, at in columns.items()}) if options.fields else record[text_column]
            yield Example(x, y, 1.0, line, id)


def _records(file: BinaryIO, options: ReadOptions, encoding: Encoding) -> _Records:
    """Yield each record or, if it cannot be read, its error."""
    delimiter = options.delimiter or ("," if options.format == "csv" else "\t")
    lines = lines_of(file)
    n_lines = size = 0
    is_blank = False  # whether the line read last is blank
    undecodable: list[str] = []

    def decoded() -> str | None:
        """The next line of a record, `None` after the last."""
        nonlocal n_lines, size, is_blank
        line = next(lines, b"")
        if not line:
            return None
        n_lines += 1
        size += len(line)
        if size > LONGEST_LINE:
            if len(line) > LONGEST_LINE:
                pass_over(line, file)
            raise ValueError(f"the record is {TOO_LONG}")
        try:
            text = encoding.text(line)
        except ValueError as error:
            undecodable.append(str(error))
            text = line.decode(errors="replace")
        is_blank = not text.strip(" \t\r\n")  # as in pandas; a quoted field is not blank
        return text

    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    # Strict: a stray quote is reported, not guessed at.
    reader = csv.reader(iter(decoded, None), delimiter=delimiter, strict=True)
    while True:
        line = n_lines + 1
        size = 0
        undecodable.clear()
        try:
            record = next(reader)
        except StopIteration:
            return
        except StreamError:  # damaged compressed data, after which nothing can be read
            raise
        except ValueError as error:
            yield line, error
            continue
        except csv.Error as error:
            reason = one_line(str(error))
            if reason == "unexpected end of data":
                reason = "the quote is never closed"
            yield line, ValueError(f"not {str(options.format).upper()} ({reason})")
            continue
        if undecodable:
            yield line, ValueError(undecodable[0])
        elif len(record) > 1 or not is_blank:
            yield line, record
        elif options.on_blank_line is not None:
            options.on_blank_line()


def _column(field: str, header: list[str], options: ReadOptions) -> int:
    """The number of the column of a field; a StreamError unless there is one."""
    if header.count(field) == 1:
        return header.index(field)
    of = "header" if options.columns is None else "list of columns"
    there = f"the {of} {'has twice the' if field in header else 'has no'} field {field!r}"
    see = "--text-field, --label-field, --delimiter; --columns where there is no header"
    raise StreamError(f"{there}; its fields: {', '.join(map(one_line, header))} (see {see})")
