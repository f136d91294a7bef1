"""Read labelled streams from files and pipes, one example at a time, in the format that they are in."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from stream_pegasos.streams.csv_tsv import read_csv
from stream_pegasos.streams.example import Example, LabelFormat, Parsed, StreamError
from stream_pegasos.streams.json_lines import json_label_parser, json_parser
from stream_pegasos.streams.labelled_text import fasttext_parser, labelled_text_parser
from stream_pegasos.streams.lines import OnBadLine, PathOrFile, opened, read_lines, utf8_fault
from stream_pegasos.streams.vw_svmlight import parse_svmlight, parse_vw

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
ONE_LABEL = LabelFormat()
FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))


def read(
    source: PathOrFile,
    *,
    format: str | None = None,
    text_field: str = "text",
    label_field: str = "label",
    labels: LabelFormat = ONE_LABEL,
    unlabelled: bool = False,
    unreadable: bool = False,
    on_bad_line: OnBadLine | None = None,
) -> Iterator[Example]:
    """Yield the examples of a stream in constant memory, each as soon as its line is there.

    Any format may be gzip-compressed: that is seen from the first bytes, so it works on pipes too.
    Empty lines are skipped. Labels that read as integers become `int`, JSON's `true` and `false`
    stay `bool`, all others are `str`. A JSON list of labels, or several `__label__`, make a tuple of those
    that hold together; of an empty list none does.

    | format | one example | extensions |
    |---|---|---|
    | `jsonl` | a JSON object a line | .jsonl .ndjson .json |
    | `csv`, `tsv` | a record under a header, quoted as in RFC 4180 | .csv .tsv .tab |
    | `labelled-text` | `label<TAB>text`; without a tab, or a label before it, unlabelled | .txt |
    | `fasttext` | `__label__x text`, or `__label__x __label__y text` | .ft .fasttext |
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
    labels
        Whether labels may hold together, and what stands between them where the format has no
        lists, as `LabelFormat(",")`; not for svmlight and vw, which have one.
    unlabelled
        Whether an example without a label is yielded, its `y` being `None`. Otherwise it is a
        bad line.
    unreadable
        Whether what cannot be read is yielded, too: in its place, an example with its line, its
        `fault` and, where that could be read, its id.
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
            return read_csv(file, delimiter, text_field, label_field, unlabelled, labels)
    else:
        parse = line_parser(format, text_field, label_field, labels)

        def examples(file: BinaryIO) -> Iterator[Example]:
            return read_lines(file, parse)

    no_label = {
        "labelled-text": "no label and tab before the text",
        "fasttext": "no __label__ before the text",
        "vw": "no label",
        "svmlight": "no label",
    }.get(format, f"no label in the field {label_field!r}")
    return _read(source, name, examples, None if unlabelled else no_label, unreadable, bad)


def check_format(format: str, text_field: str, label_field: str) -> None:
    if format not in FORMATS:
        raise StreamError(f"unknown format {format!r}: choose one of {', '.join(FORMATS)}")
    if text_field == label_field:
        raise StreamError(f"text and label are the same field, {text_field!r}")


def line_parser(
    format: str, text_field: str, label_field: str, labels: LabelFormat = ONE_LABEL
) -> Callable[[bytes], Parsed | None]:
    """The parser of one line in a format that has a record a line.

    It gives `None` for a line without a record; a bad line raises a ValueError with the reason.
    """
    parse: Callable[[bytes], Parsed | None] = {
        "jsonl": json_parser(text_field, label_field, labels),
        "labelled-text": labelled_text_parser(labels),
        "fasttext": fasttext_parser(labels),
        "vw": parse_vw,
        "svmlight": parse_svmlight,
    }[format]
    return _line_parser(parse, labels if format in ("vw", "svmlight") else ONE_LABEL)


def label_parser(label_field: str, labels: LabelFormat = ONE_LABEL) -> Callable[[bytes], Parsed | None]:
    """The parser of one line of JSON that holds no text but the label of the message with its `id`."""
    return _line_parser(json_label_parser(label_field, labels))


def _line_parser(
    parse: Callable[[bytes], Parsed | None], labels: LabelFormat = ONE_LABEL
) -> Callable[[bytes], Parsed | None]:
    def parse_line(line: bytes) -> Parsed | None:
        if not line or line.isspace():
            return None
        try:
            parsed = parse(line.rstrip(b"\r\n"))
        except UnicodeDecodeError as error:
            raise ValueError(utf8_fault(error)) from None
        if labels == ONE_LABEL or parsed is None:
            return parsed
        x, y, w, id = parsed
        return x, y if isinstance(y, tuple) else labels.of_label(y), w, id

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


def _name(source: PathOrFile) -> str:
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    name = getattr(source, "name", "stream")
    return "standard input" if name == "<stdin>" else str(name)


def _read(
    source: PathOrFile,
    name: str,
    examples: Callable[[BinaryIO], Iterator[Example]],
    no_label: str | None,
    unreadable: bool,
    bad: OnBadLine,
) -> Iterator[Example]:
    try:
        with opened(source) as file:
            for example in examples(file):
                if example.y is None and no_label is not None and example.fault is None:
                    example = Example("", None, 1.0, example.line, example.id, no_label)
                if example.fault is not None:
                    bad(example.line, example.fault)
                if unreadable or example.fault is None:
                    yield example
    except EOFError:
        raise StreamError(f"{name}: the gzip data is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise StreamError(f"{name}: the gzip data is damaged ({error})") from None
