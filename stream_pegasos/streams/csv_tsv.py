"""CSV and TSV: records below a header, or with named columns, quoted as in RFC 4180."""

from __future__ import annotations

import codecs
import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import BinaryIO, NamedTuple

from stream_pegasos.common.display import one_line
from stream_pegasos.streams.encoding import TextEncoding
from stream_pegasos.streams.example import Example, Parsed, RecordError, StreamError, Truth
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG, make_example, pass_over, split_lines
from stream_pegasos.streams.read_options import ReadOptions
from stream_pegasos.streams.record_fields import columns_to_read, parsed_fields


def read_csv(file: BinaryIO, options: ReadOptions, encoding: TextEncoding) -> Iterator[Example]:
    """Yield the records as examples. The first record names the columns unless the options do."""
    reader = CSVReader(options, encoding)
    for line in split_lines(file):
        if len(line) > LONGEST_LINE:
            pass_over(line, file)
        for example, _, _ in reader.add(line):
            if example is not None:
                yield example
    for example, _, _ in reader.end():
        if example is not None:
            yield example


# An example, the size of its record in bytes, and the number of its last line.
Taken = tuple[Example | None, int, int]

_may_be_name = re.compile(r"\w[\w .:/()-]{0,30}").fullmatch  # of a column


class _Line(NamedTuple):
    number: int
    text: str
    size: int  # in bytes
    fault: str | None  # the reason if it cannot be decoded


class CSVReader:
    """Makes examples of lines that are added one by one. Each example comes with the size of its record in bytes and
    the number of its last line; a record without an example, such as a header, is `None`. `columns` are the columns of
    a header that was read before; `n_lines` is the number of lines that were read before.
    """

    def __init__(
        self, options: ReadOptions, encoding: TextEncoding, columns: list[str] | None = None, n_lines: int = 0
    ) -> None:
        self.columns = [*options.columns] if options.columns is not None else columns
        self.n_lines = n_lines
        self._options, self._encoding = options, encoding
        self._open: list[_Line] = []  # of a record that has not ended yet
        self._size = 0  # of these lines
        delimiter, escape = options.delimiter or ("," if options.format == "csv" else "\t"), options.escape
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
        # Strict: a stray quote is reported, not guessed at.
        self._delimiter = delimiter
        self._records = partial(csv.reader, delimiter=delimiter, escapechar=escape, strict=True)
        between, other = re.escape(delimiter), rf"|{re.escape(escape)}." if escape else ""
        plain = re.escape(escape) if escape else ""
        quoted = rf'(?:[^"{plain}]++|""{other})*+'
        field = rf'(?:"{quoted}"|(?!")(?:[^{between}{plain}]++{other})*+)'
        # A line whose beginning and end are within a quoted field.
        self._stays_open = re.compile(rf'{quoted}(?:"{between}(?:{field}{between})*+"{quoted})?', re.DOTALL).fullmatch
        self._escaped_end = None if escape is None else escape + "\n"
        # MySQL and Hive write `\N` for NULL.
        null = rf"(?:^|(?<={between})){plain}N(?={between}|\r?\n?$)"
        self._null = re.compile(null) if escape else None
        if self.columns is not None:
            self._set_columns(self.columns)
        self._may_be_header = options.columns is None and (n_lines == 0 or columns is None)

    @property
    def n_open(self) -> int:
        """The bytes of the record that has not ended yet."""
        return self._size

    def add(self, line: bytes | ValueError, size: int = 0) -> Iterable[Taken]:
        """The examples whose records end with this line, usually one. A line that is too long counts as bad."""
        self.n_lines += 1
        if isinstance(line, ValueError) or len(line) > LONGEST_LINE:
            too_long = ValueError(f"the record is {TOO_LONG}")
            return [*self.end(str(too_long)), (self._example(self.n_lines, too_long), size, self.n_lines)]
        size = len(line)
        fault = None
        if not self._open and self._encoding.is_utf8:  # a mark within the stream: files were concatenated
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = self._encoding.text(line)
        except ValueError as error:
            text, fault = line.decode(errors="replace"), str(error)
        if not self._open and fault is None:  # most lines are a record
            try:
                record = self._record(text)
            except csv.Error:
                pass
            else:
                return self._read(self.n_lines, record, text, size, self.n_lines)
        return self._add(_Line(self.n_lines, text, size, fault))

    def end(self, reason: str = "") -> Iterator[Taken]:
        """The lines of a record that has no end; the first line is bad."""
        while self._open:
            yield from self._resume(ValueError(reason or self._fault("the quote is never closed")))

    def _add(self, line: _Line) -> Iterable[Taken]:
        was_open = bool(self._open)
        self._open.append(line)
        self._size += line.size
        if self._size > LONGEST_LINE:
            return self._resume(ValueError(f"the record is {TOO_LONG}"))
        if was_open and self._stays_open(line.text) and not self._follows_escape():
            return ()
        text = line.text if not was_open else "".join(open_line.text for open_line in self._open)
        try:
            record = self._record(text)
        except csv.Error as error:
            reason = one_line(str(error))
            return () if reason == "unexpected end of data" else self._resume(ValueError(self._fault(reason)))
        number, size = self._open[0].number, self._size
        fault = (
            next((open_line.fault for open_line in self._open if open_line.fault is not None), None)
            if was_open
            else line.fault
        )
        self._open, self._size = [], 0
        if fault is not None:
            return ((self._example(number, ValueError(fault)), size, line.number),)
        return self._read(number, record, text, size, line.number)

    def _read(self, line: int, record: list[str], text: str, size: int, last: int) -> Iterable[Taken]:
        if len(record) > 1 or text.strip(" \t\r\n"):  # as in pandas; a quoted field is not blank
            return ((self._example(line, record), size, last),)
        if self._options.on_blank_line is not None:
            self._options.on_blank_line()
        return ((None, size, last),)

    def _follows_escape(self) -> bool:
        return self._escaped_end is not None and self._open[-2].text.endswith(self._escaped_end)

    def _resume(self, error: ValueError) -> Iterator[Taken]:
        """Report the first line of a record that cannot be read, and continue with the next line."""
        first, *other_lines = self._open
        self._open, self._size = [], 0
        if self.columns is None and (way_out := self._way_out(first.text, self._options.message_fields)):
            raise StreamError(f"the header cannot be read; {way_out}")
        yield self._example(first.number, error), first.size, first.number
        waiting = deque(other_lines)
        while waiting:
            yield from self._add(waiting.popleft())

    def _record(self, text: str) -> list[str]:
        """The record in a text; a csv.Error if there is none, or if the record is not complete."""
        return next(self._records((text if self._null is None else self._null.sub("", text),)))

    def _fault(self, reason: str) -> str:
        return f"not {str(self._options.format).upper()} ({reason})"

    # Records

    def _example(self, line: int, record: list[str] | ValueError) -> Example | None:
        if isinstance(record, list):
            if self._may_be_header:
                names = [field.strip() for field in record]
                if line == 1 and re.fullmatch("sep=.", self._delimiter.join(record)):
                    return None  # `sep=`, which some spreadsheets want before the header
                if self.columns is None or {*self._needed} <= {*names}:
                    self._set_columns(names)
                    return None
                self._may_be_header = False
            if record[0].strip() == self._first and [field.strip() for field in record] == self.columns:
                return None  # the header again: files were concatenated
        return make_example(record, self._parse, line)

    def _set_columns(self, columns: list[str]) -> None:
        options = self._options
        self._needed, all_fields = columns_to_read(options, columns.__contains__)
        places = {name: self._column(name, columns) for name in all_fields}
        options.report_unread(columns)
        self.columns, self._places = columns, [*places.items()]
        self._last = max(places[name] for name in self._needed)
        # Most records are a text and a label, and need no dict.
        self._text = places[self._needed[0]]
        self._label = -1 if options.label_field is None else places.get(options.label_field, -1)
        self._id = places.get(options.id_field)
        self._is_usual = self._label >= 0 and not options.fields and not options.are_labels
        self._may_be_header = False
        self._first = columns[0] if len(columns) > 1 and options.columns is None else None

    def _parse(self, row: list[str]) -> Parsed:
        options, n, width = self._options, len(row), len(self.columns or ())
        if n == width and self._is_usual:
            own = None if self._id is None else row[self._id]
            y: Truth | ValueError | None
            try:
                y = options.labels.of_text(row[self._label])
            except ValueError as error:
                y = options.wrong_label(error, own)
            return row[self._text], y, 1.0, own
        record = {name: row[at] for name, at in self._places if at < n}
        if self._last < n <= width:
            return parsed_fields(record, options)
        under = "under a header of" if options.columns is None else "where there are columns for"
        lacking = next((name for name in self._needed if name not in record), None)
        fault = f"{n} fields {under} {width}" if n > width else f"no field {lacking!r}"
        if n == 1 and (way_out := self._way_out(row[0], width)):
            fault += f"; {way_out}"
        raise RecordError(fault, record.get(options.id_field))

    def _way_out(self, text: str, expected: Sequence[str] | int) -> str | None:
        """A hint at another delimiter, which gives one of the wanted fields or the wanted number of fields."""
        for other in ";\t|,".replace(self._delimiter, ""):
            with suppress(csv.Error, StopIteration):
                names = [name.strip() for name in next(csv.reader((text,), delimiter=other, strict=True))]
                is_header = len(names) > 1 and self._delimiter not in text and all(map(_may_be_name, names))
                if len(names) == expected if isinstance(expected, int) else is_header or {*names} & {*expected}:
                    written = "\\t" if other == "\t" else other
                    return f"it looks separated by {written!r}: --read-option 'delimiter={written}'".replace(
                        "\\\\", "\\"
                    )
        return None

    def _column(self, field: str, header: list[str]) -> int:
        """The number of the column of a field; a StreamError unless there is one."""
        if header.count(field) == 1:
            return header.index(field)
        of = "header" if self._options.columns is None else "list of columns"
        place = f"the {of} {'has twice the' if field in header else 'has no'} field {field!r}"
        if way_out := self._way_out(self._delimiter.join(header), [field]):
            raise StreamError(f"{place}; its fields: {', '.join(map(one_line, header))}; {way_out}")
        see = "--text-field, --label-field, --read-option delimiter=…; --read-option columns=… without a header"
        raise StreamError(f"{place}; its fields: {', '.join(map(one_line, header))} (see {see})")
