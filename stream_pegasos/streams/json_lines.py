"""JSON lines, and arrays of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import orjson

from stream_pegasos.features.message import Fields
from stream_pegasos.streams.chunks import Chunks, buffered
from stream_pegasos.streams.example import Example, Parsed, unreadable
from stream_pegasos.streams.lines import (
    LONGEST_LINE,
    TOO_LONG,
    Parser,
    make_example,
    make_examples,
    numbered_lines,
)
from stream_pegasos.streams.read_options import ReadOptions
from stream_pegasos.streams.record_fields import parsed_fields

# The beginning of an array of objects, or of an empty array; no line of JSON begins like this. A byte order mark may
# come first.
_begins_array = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\]]").match
_may_begin_array = re.compile(rb"\xef|\xef\xbb|(?:\xef\xbb\xbf)?\s*(?:\[\s*)?").fullmatch
_LONGEST_BEGINNING = 1 << 16

# A whole object that holds no other object, or a whole string; or a single opening or closing character, if the rest
# comes in the next chunk.
# chunk, the rest comes in the next.
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_mark = re.compile(rb'\{(?:[^"{}\[\]]++|%b)*+\}|%b|["\[\]{},]' % (_STRING, _STRING), re.DOTALL).search
_in_string = re.compile(rb'["\\]').search

_BEYOND = 2.0**63
# NaN and Infinity count as missing: pandas and JavaScript write them for missing values.
_loads = partial(json.loads, parse_constant=lambda name: None)


def json_parser(options: ReadOptions) -> Parser:
    """Make the parser of a JSON object."""

    def parse(line: bytes) -> Parsed:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            record = _lenient_json(line, error)
        parsed = parsed_fields(record, options)
        x = parsed[0]
        if type(x) is Fields and _may_be_rounded(x.values()):
            with suppress(RecursionError):  # other fields are nested too deep for Python's parser
                return parsed_fields(_loads(line), options)[0], *parsed[1:]
        return parsed

    return parse


def _may_be_rounded(values: Iterable[Any]) -> bool:
    """Whether there may be an integer beyond 64 bits, which orjson turns into a float; only shallow values are
    searched.
    """
    for value in values:
        kind = type(value)
        if kind is float:
            if not -_BEYOND < value < _BEYOND:
                return True
        elif (kind is dict and _may_be_rounded(value.values())) or (kind is list and _may_be_rounded(value)):
            return True
    return False


def read_json(chunks: Chunks, parse: Parser) -> Iterator[Example]:
    """Read arrays of objects (usually one array and nothing else), then one object per line."""
    line = 1
    while _begins_array(chunks.look(_may_still_begin_array)):
        elements = _Elements(chunks, line)
        for number, (begin, element) in enumerate(elements, 1):
            if (example := make_example(element, parse, begin)) is not None:
                fault = None if example.fault is None else f"element {number}: {example.fault}"
                yield example._replace(fault=fault)
                if fault is not None and isinstance(element, bytes) and _is_broken(element):
                    yield from _objects_of_lines(element, begin, parse)
        line = elements.line
        if elements.is_open:
            yield unreadable(ValueError("the array is never closed"), line)
            yield from _objects_of_lines(*elements.rest, parse)
        first_line, end, _ = chunks.look(lambda head: not head.strip() and b"\n" not in head).partition(b"\n")
        if end and not first_line.strip():  # the rest of the last line of the array, not a blank line
            chunks.push_back(next(chunks)[len(first_line) + 1 :])
            line += 1
    yield from make_examples(numbered_lines(buffered(chunks), line), parse)


def _is_broken(element: bytes) -> bool:
    try:
        orjson.loads(element)
    except orjson.JSONDecodeError:
        return b"\n" in element
    return False


def _objects_of_lines(element: bytes, line: int, parse: Parser) -> Iterator[Example]:
    """The examples in a broken element, e.g. after a quote that is never closed: each later line that is an object."""
    for number, text in enumerate(element.split(b"\n")[1:], line + 1):
        text = text.strip().rstrip(b"],").rstrip()
        if text.startswith(b"{") and text.endswith(b"}"):
            yield from make_examples([(number, text)], parse)


def _may_still_begin_array(head: bytes) -> bool:
    return len(head) < _LONGEST_BEGINNING and _may_begin_array(head) is not None


class _Elements:
    """The elements of an array, each with the number of its first line. Afterwards `chunks` has the bytes after it."""

    def __init__(self, chunks: Chunks, line: int) -> None:
        self.line = line
        self._chunks = chunks
        self.is_open = False  # whether the array has no end
        self._parts: list[bytes] = []  # of an unfinished element
        self._size = 0
        self._first_line = line
        self.rest = b"", line  # the rest of an array without an end, and the number of its first line

    def __iter__(self) -> Iterator[tuple[int, bytes | ValueError]]:
        depth = n = skip = 0
        is_string = False
        for chunk in self._chunks:
            begin, position = 0, skip
            skip = 0
            while True:
                match = (_in_string if is_string else _mark)(chunk, position)
                if match is None:
                    break
                position = match.end()
                mark = match[0]
                if is_string:
                    is_string = mark == b"\\"
                    position += is_string
                elif mark == b'"':
                    is_string = True
                elif mark in (b"[", b"{"):
                    depth += 1
                    if depth == 1:
                        self.line += chunk.count(b"\n", 0, position)
                        begin = position
                elif mark in (b"]", b"}"):
                    depth -= 1
                    if depth == 0:
                        self._add(chunk[begin : match.start()])
                        if n or self._parts:
                            yield self._element()
                        self._chunks.push_back(chunk[position:])
                        return
                elif mark == b"," and depth == 1:
                    self._add(chunk[begin : match.start()])
                    n += 1
                    yield self._element()
                    begin = position
            skip = max(0, position - len(chunk))
            if depth:
                self._add(chunk[begin:])
        self.is_open = True
        self.rest = b"".join(self._parts), self._first_line
        if depth == 1 and self._size:
            self.rest = b"", self.line
            yield self._element()

    def _add(self, part: bytes) -> None:
        """Keep a part of an element unless the element is too long."""
        if not self._parts and not self._size:
            blank = len(part) - len(part.lstrip())
            self.line += part.count(b"\n", 0, blank)
            self._first_line = self.line
            part = part[blank:]
        self.line += part.count(b"\n")
        self._size += len(part)
        if self._size > LONGEST_LINE:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _element(self) -> tuple[int, bytes | ValueError]:
        element: bytes | ValueError = b"".join(self._parts)
        if not element:
            element = ValueError(f"it is {TOO_LONG}" if self._size else "there is none")
        self._parts.clear()
        self._size = 0
        return self._first_line, element


def _lenient_json(line: bytes, error: orjson.JSONDecodeError) -> Any:
    """Parse JSON that orjson rejects: a lone surrogate, which JSON allows, or NaN and Infinity, which Python writes. A
    ValueError gives any other fault.
    """
    line.decode()
    if any(mark in line for mark in (b"\\ud", b"\\uD", b"NaN", b"Infinity")):
        try:
            return _loads(line)
        except (ValueError, RecursionError):
            pass
    raise ValueError(f"not JSON ({error.msg}, column {error.colno})")
