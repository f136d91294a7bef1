"""CSV and TSV: records under a header, quoted as in RFC 4180."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

from stream_pegasos.streams.example import Example, LabelFormat, StreamError, unreadable
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG, lines_of, pass_over, utf8_fault


def read_csv(
    file: BinaryIO,
    delimiter: str,
    text_field: str,
    label_field: str,
    unlabelled: bool,
    labels: LabelFormat,
) -> Iterator[Example]:
    lines = lines_of(file)
    n_lines = size = 0
    not_utf8: list[str] = []

    def decoded() -> str | None:
        """The next line of a record, `None` after the last."""
        nonlocal n_lines, size
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
            return line.decode()
        except UnicodeDecodeError as error:
            not_utf8.append(utf8_fault(error))
            return line.decode(errors="replace")

    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    # Strict: a stray quote is reported, not guessed at.
    reader = csv.reader(iter(decoded, None), delimiter=delimiter, strict=True)

    def records() -> Iterator[tuple[int, list[str] | ValueError]]:
        """The records, each with the line on which it begins, or what is wrong with it."""
        nonlocal size
        while True:
            line = n_lines + 1
            size = 0
            not_utf8.clear()
            try:
                record = next(reader)
            except StopIteration:
                return
            except ValueError as error:
                yield line, error
                continue
            except csv.Error as error:
                reason = _printable(str(error))
                if reason == "unexpected end of data":
                    reason = "the quote is never closed"
                yield line, ValueError(f"not {'CSV' if delimiter == ',' else 'TSV'} ({reason})")
                continue
            if not_utf8:
                yield line, ValueError(not_utf8[0])
            elif len(record) > 1 or (record and record[0].strip()):
                yield line, record

    rows = records()
    header: list[str] = []
    for line, record in rows:
        if isinstance(record, list):
            header = [field.strip() for field in record]
            break
        yield unreadable(record, line)

    def column(field: str) -> int:
        if header.count(field) == 1:
            return header.index(field)
        fault = "has twice the" if field in header else "has no"
        raise StreamError(f"the header {fault} field {field!r}; its fields: {', '.join(map(_printable, header))}")

    if not header:
        return
    text_column = column(text_field)
    label_column = None if unlabelled and label_field not in header else column(label_field)
    id_column = header.index("id") if "id" in header else None
    needed = max(text_column, label_column or 0)
    for line, record in rows:
        if isinstance(record, ValueError):
            yield unreadable(record, line)
            continue
        id = record[id_column] if id_column is not None and id_column < len(record) else None
        if len(record) > len(header):
            yield unreadable(ValueError(f"{len(record)} fields under a header of {len(header)}"), line, id)
        elif len(record) <= needed:
            missing = text_field if len(record) <= text_column else label_field
            yield unreadable(ValueError(f"no field {missing!r}"), line, id)
        else:
            y = None if label_column is None else labels.of_text(record[label_column])
            yield Example(record[text_column], y, 1.0, line, id)


def _printable(text: str) -> str:
    """A message may end up on a terminal, which obeys control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
