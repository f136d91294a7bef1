"""Read labelled streams from files and pipes, one example at a time."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import math
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, NoReturn

import orjson

from stream_pegasos.learners.labels import Label

Source = str | os.PathLike[str] | BinaryIO
OnBadLine = Callable[[int, str], None]

EXTENSIONS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "labelled-text",
    ".ft": "fasttext",
    ".fasttext": "fasttext",
    ".vw": "vw",
    ".svmlight": "svmlight",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
}
FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))

# A line that never ends, or a quote left open in CSV, must not swallow an endless stream, yet 100 MB must pass.
LONGEST_LINE = 1 << 28  # bytes
TOO_LONG = f"longer than {LONGEST_LINE >> 20} MB"

_is_integer = re.compile(r"0|[+-]?[1-9][0-9]{0,17}").fullmatch


class Example(NamedTuple):
    """One example of a stream, as `read` yields it.

    Parameters
    ----------
    x
        The text; a dict of features for the formats vw and svmlight.
    y
        The label, `None` where the example carries none.
    w
        The weight of the example; only the format vw has one.
    line
        The physical line, counted from 1, on which the example begins.
    id
        The field `id` of the record where there is one; the tag in the format vw.

    """

    x: str | dict[str, float] | dict[int, float]
    y: Label | None
    w: float = 1.0
    line: int = 0
    id: Any = None


# What a parser of one line gives: x, y, w, id.
Parsed = tuple[Any, Label | None, float, Any]


class StreamError(ValueError):
    """A stream that cannot be read at all, or no further."""


def read(
    source: Source,
    *,
    format: str | None = None,
    text_field: str = "text",
    label_field: str = "label",
    unlabelled: bool = False,
    on_bad_line: OnBadLine | None = None,
) -> Iterator[Example]:
    """Yield the examples of a stream in constant memory, each as soon as its line is there.

    Any format may be gzip-compressed: that is seen from the first bytes, so it works on pipes too.
    Empty lines are skipped. Labels that read as integers become `int`, JSON's `true` and `false`
    stay `bool`, all others are `str`.

    | format | one example | extensions |
    |---|---|---|
    | `jsonl` | a JSON object a line | .jsonl .ndjson .json |
    | `csv`, `tsv` | a record under a header, quoted as in RFC 4180 | .csv .tsv .tab |
    | `labelled-text` | `label<TAB>text`; without a tab, or a label before it, unlabelled | .txt |
    | `fasttext` | `__label__x text` | .ft .fasttext |
    | `vw` | `label weight 'tag\\|namespace:weight feature:value ...` | .vw |
    | `svmlight` | `label id:value ... # comment` | .svmlight .svm .libsvm |

    Parameters
    ----------
    source
        A path, `-` for standard input, or a file opened in binary mode, which stays open.
    format
        One of the formats above; by default the one that the path's extension stands for.
    text_field
        The field of the text in the formats jsonl, csv and tsv.
    label_field
        The field of the label in the formats jsonl, csv and tsv.
    unlabelled
        Whether an example without a label is yielded, its `y` being `None`. Otherwise it is a
        bad line.
    on_bad_line
        Called with the line number and the reason for each line that cannot be parsed, lacks a
        field, is not UTF-8 or has more than 256 MB; reading goes on after it. Without it a bad line
        raises.

    Raises
    ------
    StreamError
        If the format is unknown, a CSV header lacks a field, the gzip data is truncated or
        damaged, or, without `on_bad_line`, a line is bad.
    OSError
        If the source cannot be opened or read.

    Examples
    --------

    >>> import io
    >>> from stream_pegasos.streams import read

    >>> lines = b'{"text": "win a prize now", "label": "spam"}\\n{"text": "see you"}\\n'
    >>> bad = []
    >>> for example in read(
    ...     io.BytesIO(lines), format="jsonl", on_bad_line=lambda *line: bad.append(line)
    ... ):
    ...     print(example.y, example.x)
    spam win a prize now
    >>> bad
    [(2, "no label in the field 'label'")]

    """
    name = _name(source)
    format = format or format_of(name)
    check_format(format, text_field, label_field)

    def bad(line: int, reason: str) -> None:
        if on_bad_line is None:
            raise StreamError(f"{name}: line {line}: {reason}")
        on_bad_line(line, reason)

    if format in ("csv", "tsv"):
        delimiter = "," if format == "csv" else "\t"

        def examples(file: BinaryIO) -> Iterator[Example]:
            return _read_csv(file, delimiter, text_field, label_field, unlabelled, bad)
    else:
        parse = line_parser(format, text_field, label_field)

        def examples(file: BinaryIO) -> Iterator[Example]:
            return _read_lines(file, parse, bad)

    no_label = {
        "labelled-text": "no label and tab before the text",
        "fasttext": "no __label__ before the text",
        "vw": "no label",
        "svmlight": "no label",
    }.get(format, f"no label in the field {label_field!r}")
    return _read(source, name, examples, None if unlabelled else no_label, bad)


def check_format(format: str, text_field: str, label_field: str) -> None:
    if format not in FORMATS:
        raise StreamError(f"unknown format {format!r}: choose one of {', '.join(FORMATS)}")
    if text_field == label_field:
        raise StreamError(f"text and label are the same field, {text_field!r}")


def line_parser(format: str, text_field: str, label_field: str) -> Callable[[bytes], Parsed | None]:
    """The parser of one line in a format that has a record a line.

    It gives `None` for a line without a record; a bad line raises a ValueError with the reason.
    """
    parse: Callable[[bytes], Parsed | None] = {
        "jsonl": _json_parser(text_field, label_field),
        "labelled-text": _parse_labelled_text,
        "fasttext": _parse_fasttext,
        "vw": _parse_vw,
        "svmlight": _parse_svmlight,
    }[format]
    return _line_parser(parse)


def label_parser(label_field: str) -> Callable[[bytes], Parsed | None]:
    """The parser of one line of JSON that holds no text but the label of the message with its `id`."""

    def parse(line: bytes) -> Parsed:
        record = _json_record(line)
        label = _json_label(record, label_field)
        if label is None:
            raise ValueError(f"no field {label_field!r}")
        return "", label, 1.0, _json_id(record)

    return _line_parser(parse)


def _line_parser(parse: Callable[[bytes], Parsed | None]) -> Callable[[bytes], Parsed | None]:
    def parse_line(line: bytes) -> Parsed | None:
        if not line or line.isspace():
            return None
        try:
            return parse(line.rstrip(b"\r\n"))
        except UnicodeDecodeError as error:
            raise ValueError(utf8_fault(error)) from None

    return parse_line


def format_of(name: str) -> str:
    """The format that a file's extension stands for, `.gz` aside.

    >>> from stream_pegasos.streams import format_of
    >>> format_of("mail/2024.JSONL.gz")
    'jsonl'

    """
    extension = os.path.splitext(name.lower().removesuffix(".gz"))[1]
    if extension not in EXTENSIONS:
        raise StreamError(
            f"{name}: no known format has the extension {extension!r}: name the format, one of {', '.join(FORMATS)}"
        )
    return EXTENSIONS[extension]


def label_of(text: str) -> Label | None:
    """The label that a text spells: an `int` where it reads as one, `None` where it is blank.

    >>> from stream_pegasos.streams import label_of
    >>> label_of("+1"), label_of("spam"), label_of("007"), label_of(" ")
    (1, 'spam', '007', None)

    """
    text = text.strip()
    return int(text) if _is_integer(text) else text or None


def _name(source: Source) -> str:
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    name = getattr(source, "name", "stream")
    return "standard input" if name == "<stdin>" else str(name)


@contextmanager
def _opened(source: Source) -> Iterator[BinaryIO]:
    """The bytes of the source, decompressed where they begin with the magic of gzip."""
    if isinstance(source, str | os.PathLike) and source != "-":
        with open(source, "rb") as raw, _opened(raw) as opened:
            yield opened
        return
    if source == "-":
        if sys.stdin is None:
            raise StreamError("standard input is closed")
        source = sys.stdin.buffer
    wrapped = None if hasattr(source, "peek") else io.BufferedReader(source)  # type: ignore[type-var]
    file: Any = wrapped or source
    try:
        # A pipe may hand over one byte at first. It decides: no text begins with 0x1f.
        if file.peek(2)[:2] in (b"\x1f\x8b", b"\x1f"):
            with gzip.GzipFile(fileobj=file, mode="rb") as unzipped:
                yield unzipped  # type: ignore[misc]
        else:
            yield file
    finally:
        if wrapped:
            wrapped.detach()


def _read(
    source: Source,
    name: str,
    examples: Callable[[BinaryIO], Iterator[Example]],
    no_label: str | None,
    bad: OnBadLine,
) -> Iterator[Example]:
    try:
        with _opened(source) as file:
            for example in examples(file):
                if example.y is None and no_label is not None:
                    bad(example.line, no_label)
                else:
                    yield example
    except EOFError:
        raise StreamError(f"{name}: the gzip data is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise StreamError(f"{name}: the gzip data is damaged ({error})") from None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines without a byte order mark; of one that is too long only so much that this is seen."""
    readline = partial(file.readline, LONGEST_LINE + 1)
    return chain([readline().removeprefix(codecs.BOM_UTF8)], iter(readline, b""))


def _pass_over(line: bytes, file: BinaryIO) -> None:
    """Read the rest of a line that is too long."""
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)


def _read_lines(file: BinaryIO, parse: Callable[[bytes], Parsed | None], bad: OnBadLine) -> Iterator[Example]:
    for number, line in enumerate(_lines(file), 1):
        try:
            if len(line) > LONGEST_LINE:
                _pass_over(line, file)
                raise ValueError(f"the line is {TOO_LONG}")
            parsed = parse(line)
        except ValueError as error:
            bad(number, str(error))
        else:
            if parsed is not None:
                x, y, w, id = parsed
                yield Example(x, y, w, number, id)


def _printable(text: str) -> str:
    """A message may end up on a terminal, which obeys control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def utf8_fault(error: UnicodeDecodeError) -> str:
    return f"not UTF-8 (byte 0x{error.object[error.start]:02x} at column {error.start + 1})"


# JSON lines ---------------------------------------------------------------------------------------


def _json_parser(text_field: str, label_field: str) -> Callable[[bytes], Parsed]:
    def parse(line: bytes) -> Parsed:
        record = _json_record(line)
        text = record.get(text_field)
        if type(text) is not str:
            if text_field not in record:
                raise ValueError(f"no field {text_field!r}")
            raise ValueError(f"field {text_field!r} is {_json_type(text)}, not a string")
        return text, _json_label(record, label_field), 1.0, _json_id(record)

    return parse


def _json_record(line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        record = _lenient_json(line, error)
    if type(record) is not dict:
        raise ValueError(f"not a JSON object but {_json_type(record)}")
    return record


def _json_label(record: dict[str, Any], label_field: str) -> Label | None:
    label = record.get(label_field)
    if type(label) is str:
        return label_of(label)
    if type(label) is float:
        # Beyond 2**53 the integer that was written is lost.
        if not label.is_integer() or abs(label) > 2**53:
            raise ValueError(f"label {label} is not an integer")
        return int(label)
    if type(label) is list or type(label) is dict:
        raise ValueError(f"field {label_field!r} is {_json_type(label)}, not a label")
    return label


def _json_id(record: dict[str, Any]) -> Any:
    """The id, where it is one: a string or an integer. Others may not come back as they were from a checkpoint, and an
    integer beyond 64 bits has become a float, as have its neighbours.
    """
    id = record.get("id")
    return id if type(id) is str or type(id) is int else None


def _lenient_json(line: bytes, error: orjson.JSONDecodeError) -> Any:
    """What orjson refuses: a lone surrogate is legal in a text. Other errors get their reason."""
    line.decode()
    if b"\\ud" in line or b"\\uD" in line:
        try:
            return json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            pass
    raise ValueError(f"not JSON ({error.msg}, column {error.colno})")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _json_type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")


# CSV and TSV --------------------------------------------------------------------------------------


def _read_csv(
    file: BinaryIO,
    delimiter: str,
    text_field: str,
    label_field: str,
    unlabelled: bool,
    bad: OnBadLine,
) -> Iterator[Example]:
    lines = _lines(file)
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
                _pass_over(line, file)
            raise ValueError(f"the record is {TOO_LONG}")
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            not_utf8.append(utf8_fault(error))
            return line.decode(errors="replace")

    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    # Strict: a stray quote is reported, not guessed at.
    reader = csv.reader(iter(decoded, None), delimiter=delimiter, strict=True)

    def records() -> Iterator[tuple[int, list[str]]]:
        """The records that are whole, each with the line on which it begins."""
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
                bad(line, str(error))
                continue
            except csv.Error as error:
                reason = _printable(str(error))
                if reason == "unexpected end of data":
                    reason = "the quote is never closed"
                bad(line, f"not {'CSV' if delimiter == ',' else 'TSV'} ({reason})")
                continue
            if not_utf8:
                bad(line, not_utf8[0])
            elif len(record) > 1 or (record and record[0].strip()):
                yield line, record

    rows = records()
    header = [field.strip() for field in next(rows, (0, []))[1]]
    if not header:
        return

    def column(field: str) -> int:
        if header.count(field) == 1:
            return header.index(field)
        fault = "has twice the" if field in header else "has no"
        raise StreamError(f"the header {fault} field {field!r}; its fields: {', '.join(map(_printable, header))}")

    text_column = column(text_field)
    label_column = None if unlabelled and label_field not in header else column(label_field)
    id_column = header.index("id") if "id" in header else None
    needed = max(text_column, label_column or 0)
    for line, record in rows:
        if len(record) > len(header):
            bad(line, f"{len(record)} fields under a header of {len(header)}")
        elif len(record) <= needed:
            missing = text_field if len(record) <= text_column else label_field
            bad(line, f"no field {missing!r}")
        else:
            y = None if label_column is None else label_of(record[label_column])
            id = record[id_column] if id_column is not None and id_column < len(record) else None
            yield Example(record[text_column], y, 1.0, line, id)


# label<TAB>text and fastText ----------------------------------------------------------------------


def _parse_labelled_text(line: bytes) -> Parsed:
    label, tab, text = line.decode().partition("\t")
    return (text, label_of(label), 1.0, None) if tab else (label, None, 1.0, None)


_fasttext = re.compile(r"\s*__label__(\S*)(?:\s+|$)").match
_fasttext_label = re.compile(r"(?:^|\s)__label__\S").search


def _parse_fasttext(line: bytes) -> Parsed:
    text = line.decode()
    label = None
    if match := _fasttext(text):
        label = label_of(match[1])
        text = text[match.end() :]
    if _fasttext_label(text):
        raise ValueError("more than one label, or a label after the text")
    return text, label, 1.0, None


# Vowpal Wabbit and svmlight -----------------------------------------------------------------------


def _parse_vw(line: bytes) -> Parsed:
    head, bar, features = line.decode().partition("|")
    if not bar:
        raise ValueError("no | before the features")
    tokens = head.split()
    tag = None
    # The tag is what touches the bar, or what a quote announces.
    if tokens and (not head[-1].isspace() or tokens[-1].startswith("'")):
        tag = tokens.pop().removeprefix("'")
    if len(tokens) > 2:
        raise ValueError("more than a label, a weight and a tag before the first |")
    y = _number_label(tokens[0]) if tokens else None
    w = _number(tokens[1], "weight") if len(tokens) > 1 else 1.0
    if w < 0:
        raise ValueError(f"weight {tokens[1]} is negative")
    x: dict[str, float] = {}
    for namespace in features.replace("\t", " ").split("|"):
        prefix, scale = "", 1.0
        name, _, rest = namespace.partition(" ")
        if name:
            name, colon, value = name.partition(":")
            prefix = f"{name}^" if name else ""
            scale = _number(value, f"weight of namespace {name!r}") if colon else 1.0
        for token in rest.split(" "):
            if token:
                name, colon, value = token.partition(":")
                if not name:
                    raise ValueError(f"feature {token!r} has no name")
                number = scale * _number(value, f"value of feature {name!r}") if colon else scale
                name = prefix + name
                x[name] = x[name] + number if name in x else number
    if not all(map(math.isfinite, x.values())):
        raise ValueError("a feature's value is infinite")
    return x, y, w, tag


def _parse_svmlight(line: bytes) -> Parsed | None:
    tokens = line.partition(b"#")[0].split()
    if not tokens:
        return None
    y = None
    if b":" not in tokens[0]:
        y = _number_label(tokens.pop(0).decode())
    if tokens and tokens[0].startswith(b"qid:"):
        del tokens[0]
    try:
        x = {int(id): float(value) for id, value in (token.split(b":") for token in tokens)}
        well_formed = len(x) == len(tokens) and math.isfinite(sum(x.values()))
    except ValueError:
        well_formed = False
    if not well_formed or min(x, default=0) < 0 or b"_" in line:
        x = _careful_svmlight(tokens)
    return x, y, 1.0, None


def _careful_svmlight(tokens: list[bytes]) -> dict[int, float]:
    """The features one by one, to name what is wrong with the first that is."""
    x: dict[int, float] = {}
    for token in (token.decode() for token in tokens):
        id, colon, value = token.partition(":")
        if not colon or not (id.isascii() and id.isdigit()):
            raise ValueError(f"{token!r} is not id:value")
        if int(id) in x:
            raise ValueError(f"feature {id} occurs twice")
        x[int(id)] = _number(value, f"value of feature {id}")
    return x


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # Python alone takes 1_000 for a number.
    if not math.isfinite(number) or "_" in text:
        raise ValueError(f"{what} is {text!r}, not a finite number")
    return number


def _number_label(text: str) -> Label | None:
    try:
        number = float(text)
    except ValueError:
        return label_of(text)
    if not math.isfinite(number):
        raise ValueError(f"label is {text!r}, not a finite number")
    return int(number) if number.is_integer() and abs(number) <= 2**53 else label_of(text)
