"""CSV and TSV: records under a header, or in columns that are named, quoted as in RFC 4180."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

from stream_pegasos.common.display import one_line
from stream_pegasos.streams.encoding import Encoding
from stream_pegasos.streams.example import Example, Parsed, RecordError, StreamError, Truth, unreadable
from stream_pegasos.streams.fields import columns_to_read, parsed_fields
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG, examples_of, lines_of, pass_over
from stream_pegasos.streams.options import ReadOptions


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
    needed, all_fields = columns_to_read(options, header.__contains__)
    columns = {name: _column(name, header, options) for name in all_fields}
    options.report_unread(header)
    last = max(columns[name] for name in needed)
    places, width = [*columns.items()], len(header)
    # Most records are a text and a label, which need no dict.
    of_text, text = options.labels.of_text, columns[needed[0]]
    label = -1 if options.label_field is None else columns.get(options.label_field, -1)
    id = columns.get(options.id_field)
    is_usual = label >= 0 and not options.fields and not options.are_labels

    def parse(row: list[str]) -> Parsed:
        n = len(row)
        if n == width and is_usual:
            own = None if id is None else row[id]
            y: Truth | ValueError | None
            try:
                y = of_text(row[label])
            except ValueError as error:
                y = options.wrong_label(error, own)
            return row[text], y, 1.0, own
        if n == width:
            return parsed_fields({name: row[at] for name, at in places}, options)
        record = {name: row[at] for name, at in places if at < n}
        if last < n < width:
            return parsed_fields(record, options)
        under = "under a header of" if options.columns is None else "where there are columns for"
        lacking = next((name for name in needed if name not in record), None)
        fault = f"{n} fields {under} {width}" if n > width else f"no field {lacking!r}"
        raise RecordError(fault, record.get(options.id_field))

    yield from examples_of(rows, parse)


def _records(file: BinaryIO, options: ReadOptions, encoding: Encoding) -> Iterator[tuple[int, list[str] | ValueError]]:
    """Yield each record or, if it cannot be read, its error, with the line on which it begins."""
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
    see = "--text-field, --label-field, --read delimiter=…; --read columns=… where there is no header"
    raise StreamError(f"{there}; its fields: {', '.join(map(one_line, header))} (see {see})")
