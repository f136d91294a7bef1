"""Readers of labelled streams, from files and pipes, one example at a time, in several formats."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

from stream_pegasos.learners.label_policy import Label
from stream_pegasos.streams.chunks import PathOrFile, buffered, may_begin, opened, read_chunks
from stream_pegasos.streams.compression import ARCHIVES, decompressed, not_unpacked
from stream_pegasos.streams.compression import EXTENSIONS as COMPRESSIONS
from stream_pegasos.streams.csv_tsv import read_csv
from stream_pegasos.streams.encoding import TextEncoding
from stream_pegasos.streams.example import Example, Parsed, StreamError
from stream_pegasos.streams.json_lines import json_parser, read_json
from stream_pegasos.streams.labelled_text import fasttext_parser, labelled_text_parser, text_parser
from stream_pegasos.streams.lines import Parser, make_examples, numbered_lines, unify_newlines
from stream_pegasos.streams.mail_marks import why_other
from stream_pegasos.streams.read_options import EXTENSIONS, FORMATS, TABLE, ReadOptions
from stream_pegasos.streams.vw_svmlight import svmlight_parser, vw_parser

PARQUET = b"PAR1\x15"  # the magic of Parquet, and the first byte of a page or of the footer
PARSERS: dict[str, Callable[[ReadOptions], Parser]] = {
    "jsonl": json_parser,
    "labelled-text": labelled_text_parser,
    "fasttext": fasttext_parser,
    "vw": vw_parser,
    "svmlight": svmlight_parser,
    "text": text_parser,
}

OnBadLine = Callable[[int, str], None]
OnEvent = Callable[[str], None]


def read(
    source: PathOrFile, options: ReadOptions | None = None, *, on_bad_line: OnBadLine | None = None, **given: Any
) -> Iterator[Example]:
    """Yield the examples of a stream in constant memory, each as soon as its line is complete.

    Any format may be compressed by gzip, bzip2, xz or, with the extra `zstd`, Zstandard. The first bytes show the
    compression, so pipes work, too. The first bytes also show Parquet (which needs the extra `parquet` and, unless it
    comes from a file, is copied to a temporary one), UTF-16 with a byte order mark, and an array of JSON objects
    instead of lines. Lines may end in CR alone. Concatenated files, each with its byte order mark and its header, are
    one stream.

    Empty lines are skipped, except in the format text, where they are empty texts. Labels that read as integers (also
    1.0) become `int`, JSON's `true` and `false` stay `bool`, all others are `str`; `null` is no label. A JSON list of
    labels, several `__label__`, or commas between labels of vw and svmlight become a tuple of labels. An empty list
    becomes an empty tuple; so does a missing label in vw or svmlight, if messages need labels and may have several. A
    vw file may have an initial prediction after the weight; it is not used. Neither format may contain numbers to
    predict, such as 3.5, or costs of actions, such as 0:1:.5.

    | format | one example | extensions |
    |---|---|---|
    | `jsonl` | a JSON object a line, or an element of an array | .jsonl .ndjson .json |
    | `csv`, `tsv` | a record, as a rule under a header, quoted as in RFC 4180 | .csv .tsv .tab |
    | `labelled-text` | `label<TAB>text`; without a tab, or a label before it, unlabelled | .txt |
    | `fasttext` | `__label__x text`, or `__label__x __label__y text` | .ft .fasttext |
    | `vw` | `label,... weight 'tag\\|namespace:weight feature:value ...` | .vw |
    | `svmlight` | `label,... id:value ... # comment` | .svmlight .svm .libsvm |
    | `parquet` | a row; `line` is its number | .parquet |
    | `mail` | a mail, several in a file, or a folder; `line` is the number of the mail | .eml .emlx .mbox .mbx .mmdf |
    | `text` | a line, without label | |

    A mail is a `str`: its bytes, decoded as Latin-1. Its `id` is its Message-ID, without the angle brackets. A file
    that begins with `From ` is an mbox, in any quoting or with Content-Length; a file that begins with four times
    Ctrl-A is an MMDF mailbox; a file that begins with a number on a line is a mail of Apple Mail (.emlx). A folder with
    `cur` or `new` is a Maildir; its subfolders are not read. In another folder, each file, also in subfolders, is one
    mail or several, unless it is hidden or an index of a mail program. A file that does not begin with a header field
    is no mail, and a bad line. A mail that is marked as deleted is left out, unless it is a single mail read by itself.
    The marks are flag T in a Maildir; elsewhere `Status`, `X-Status`, `X-Mozilla-Status` or `X-Evolution`, and names
    such as `,3` and `#3`. The mails of a folder come in order of arrival: by the newest header Received, else by the
    header Date, else by the name of the file in a Maildir, the line before them in an mbox, or the time of the file's
    last change. Impossible times do not count; mails without a time are spread over the others. A mail that cannot be
    read is a bad line.

    Parameters
    ----------
    source : str, os.PathLike or binary file
        A path, `-` for standard input, or a file opened in binary mode, which stays open.
    options : ReadOptions or None, default None
        How the stream is read; `None` means the defaults.
    on_bad_line : callable or None, default None
        Called with the line number and the reason for each line that cannot be parsed or decoded, lacks a field, or has
        more than 256 MB; reading continues after it. Without it, a bad line raises an error.
    **given : dict
        Fields of `ReadOptions`; they replace those of `options`.

    Raises
    ------
    StreamError
        If the format, the encoding or another option is unknown, if options contradict each other, if a CSV header or
        Parquet file lacks a field, if a folder or file has no mail, if compressed data or a Parquet file is truncated
        or damaged, or, without `on_bad_line`, if a line is bad.
    OSError
        If the source cannot be opened or read.
    ImportError
        If the library for Zstandard or Parquet is not installed.

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
    [(2, "no field 'label'; its fields: text")]

    """
    settings = replace(options or ReadOptions(), **given)
    if settings.format is None:
        settings = replace(settings, format=format_of(_path(source), is_open=not isinstance(source, str | os.PathLike)))
    if settings.format == "text" and not settings.unlabelled:
        raise StreamError("lines of text have no labels")
    return _read(source, settings, on_bad_line)


def _read(source: PathOrFile, options: ReadOptions, on_bad_line: OnBadLine | None) -> Iterator[Example]:
    path = _path(source)
    name = "standard input" if path == "-" else path
    is_folder = isinstance(source, str | os.PathLike) and os.path.isdir(source)
    with nullcontext() if is_folder else opened(source) as file:
        examples = _examples_in(path, options) if file is None else _examples(file, name, options)
        no_label = None if options.unlabelled else TABLE[str(options.format)].no_label.format(options.label_field)
        yield from _readable(examples, f"{name}: {options.record}", no_label, options.unreadable, on_bad_line)


def read_mail(
    folders: Mapping[Any, str | os.PathLike[str] | Iterable[str | os.PathLike[str]]],
    *,
    attached: bool = False,
    unreadable: bool = False,
    on_bad_line: OnBadLine | None = None,
    on_event: OnEvent | None = None,
) -> Iterator[Example]:
    """Yield mails whose labels follow from their folders, all in the order in which they arrived.

    Each path is a mail, an mbox, a Maildir or another folder, as in `read`; any file may be compressed. If the labels
    would come one after the other in order of arrival, the folders are interleaved, each in its own order. Memory holds
    the places of the mails, about 300 bytes each, and one mail at a time; a compressed mbox is copied to a temporary
    file.

    Parameters
    ----------
    folders : mapping of label to path or iterable of paths
        One path or several for each label.
    attached : bool, default False
        Whether a mail with attached mails (message/rfc822) is replaced by these, e.g. if people forward the mails to be
        learned.
    unreadable : bool, default False
        As in `ReadOptions`.
    on_bad_line : callable or None, default None
        As in `read`; the line number is the number of the mail.
    on_event : callable or None, default None
        Called with messages for the user: the number of deleted mails left out; that the labels come one after the
        other.

    Raises
    ------
    StreamError
        If no path has a mail; at the end, if a compressed mbox is truncated or damaged; without `on_bad_line`, if a
        mail cannot be read.
    OSError
        If a path does not exist or cannot be read.

    Examples
    --------

    >>> import mailbox, tempfile
    >>> from stream_pegasos.streams import read_mail

    >>> with tempfile.TemporaryDirectory() as mail:
    ...     spam, ham = mailbox.mbox(f"{mail}/spam"), mailbox.Maildir(f"{mail}/ham")
    ...     _ = spam.add("Message-ID: <1@example.com>\\nSubject: win\\n\\nA prize\\n")
    ...     _ = ham.add("Message-ID: <2@example.com>\\nSubject: lunch\\n\\nAt noon?\\n")
    ...     spam.close()
    ...     mails = list(read_mail({"spam": f"{mail}/spam", "ham": f"{mail}/ham"}))
    >>> sorted((example.y, example.id) for example in mails)
    [('ham', '2@example.com'), ('spam', '1@example.com')]

    """
    sources: list[tuple[str, Label | None]] = []
    for label, paths in folders.items():
        path_list = [paths] if isinstance(paths, str | os.PathLike) else paths
        sources += [(os.fspath(path), label) for path in path_list]
    options = ReadOptions(label_field=None, unlabelled=True)
    mails = _mails_at(sources, options, on_event or (lambda event: None), attached)
    return _readable(mails, "mail", None, unreadable, on_bad_line)


def _mails_at(
    sources: Sequence[tuple[str, Label | None]],
    options: ReadOptions,
    on_event: OnEvent = lambda event: None,
    attached: bool = False,
) -> Iterator[Example]:
    from stream_pegasos.streams.mail import mail_parser
    from stream_pegasos.streams.mail_folders import read_mail_folders

    return read_mail_folders(sources, mail_parser(options), on_event, attached)


def _readable(
    examples: Iterable[Example], record: str, no_label: str | None, unreadable: bool, on_bad_line: OnBadLine | None
) -> Iterator[Example]:
    """Yield the good examples, and report the bad ones; with `unreadable` also yield the bad ones with their faults."""
    for example in examples:
        fault = example.fault
        if fault is None:
            if no_label is None or example.y is not None:
                yield example
                continue
            fault = no_label
        if on_bad_line is None:
            raise StreamError(f"{record} {example.line}: {fault}")
        on_bad_line(example.line, fault)
        if unreadable:
            yield Example("", None, 1.0, example.line, example.id, fault)


def _examples_in(folder: str, options: ReadOptions) -> Iterator[Example]:
    """Yield the examples in a folder: its mails, or the rows of its Parquet files, numbered consecutively."""
    if options.format == "mail":
        return _mails_at([(folder, None)], options)
    if options.format != "parquet" or not (parts := _parquet_parts(folder)):
        reason = "a folder, of which only mails and parts *.parquet are read: name a file in it"
        raise IsADirectoryError(errno.EISDIR, reason, folder)
    return _read_rows(parts, options)


def _read_rows(parts: Sequence[str], options: ReadOptions) -> Iterator[Example]:
    before = line = 0
    for part in parts:
        with opened(part) as file:
            for example in _examples(file, part, options):
                line = before + example.line
                yield example._replace(line=line)
        before = line


def _parquet_parts(folder: str) -> list[str]:
    """The files of a folder that holds a Parquet table, in order; none if the folder has other files, too."""
    with suppress(OSError):  # Spark writes hidden files beside its parts
        names = sorted(name for name in os.listdir(folder) if not name.startswith(("_", ".")))
        if all(name.endswith(".parquet") for name in names):
            return [os.path.join(folder, name) for name in names]
    return []


def _examples(file: BinaryIO, name: str, options: ReadOptions) -> Iterator[Example]:
    """Yield all examples, also those without a label or with a fault."""
    chunks = read_chunks(file)
    if options.format == "mail" and (fault := why_other(chunks)) is not None:
        raise StreamError(f"{name} {fault}")
    is_compressed, chunks = decompressed(chunks, name)
    head = chunks.look(partial(may_begin, marks=(PARQUET,)))
    if options.format == "parquet" or head.startswith(PARQUET):
        from stream_pegasos.streams.parquet import read_parquet

        return read_parquet(None if is_compressed else file, chunks, name, options)
    if options.format == "mail":
        from stream_pegasos.streams.mail import mail_parser, read_mails

        path = name if os.path.isfile(name) else None
        return read_mails(buffered(unify_newlines(chunks)), mail_parser(options), path)
    encoding, chunks = options.decoder.find_lines(chunks, name, brackets=options.format == "jsonl")
    chunks = unify_newlines(chunks)
    if options.format == "jsonl" and options.on_lines_of_text is not None and not options.fields:
        begin = _stripped(chunks.look(lambda head: not _stripped(head)))
        if begin and not begin.startswith((b"{", b"[")):
            options.on_lines_of_text()
            options = replace(options, format="text")
    if options.format in ("csv", "tsv"):
        return read_csv(buffered(chunks), options, encoding)
    parse = line_parser(options, encoding)
    if options.format == "jsonl":
        return read_json(chunks, parse)
    return make_examples(numbered_lines(buffered(chunks)), parse)


def _stripped(head: bytes) -> bytes:
    return head.removeprefix(codecs.BOM_UTF8).strip()


def line_parser(options: ReadOptions, encoding: TextEncoding) -> Parser:
    """Make the parser of one line, in a format with one record per line."""
    parse, skips_blank = PARSERS[str(options.format)](options), options.format != "text"

    def parse_line(line: bytes) -> Parsed | None:
        if encoding.is_utf8:  # concatenated files have marks within the stream
            line = line.removeprefix(codecs.BOM_UTF8)
        if not encoding.is_utf8:
            line = encoding.text(line).encode()
        parsed = None
        if not (skips_blank and (not line or line.isspace())):
            try:
                parsed = parse(line.rstrip(b"\r\n"))
            except UnicodeDecodeError:
                parsed = parse(encoding.text(line).rstrip("\r\n").encode())
        if parsed is None and options.on_blank_line is not None:
            options.on_blank_line()
        return parsed

    return parse_line


def format_of(name: str, is_open: bool = False) -> str:
    """The format for a file's extension, without `.gz` and the like; parquet for a folder of Parquet files, mail for
    another folder, and jsonl for a pipe without an extension or the address of a server. A StreamError if the extension
    is unknown.
    """
    if "://" in name:
        return "jsonl"
    if os.path.isdir(name):
        return "parquet" if _parquet_parts(name) else "mail"
    stem, extension = os.path.splitext(name.lower())
    if extension in COMPRESSIONS:
        extension = os.path.splitext(stem)[1]
    if extension in EXTENSIONS:
        return EXTENSIONS[extension]
    if name == "-" or _is_pipe(name):
        return "jsonl"
    if extension in ARCHIVES and (is_open or os.path.exists(name)):
        raise not_unpacked(name)
    missing = "" if is_open or os.path.exists(name) else "no such file or folder, and "
    raise StreamError(
        f"{name}: {missing}no known format has the extension {extension!r}: name the format, one of "
        + ", ".join(FORMATS)
    )


def _is_pipe(name: str) -> bool:
    """Whether this is a named pipe, or one made by a shell, such as /dev/fd/63."""
    try:
        return name.startswith("/dev/") or stat.S_ISFIFO(os.stat(name).st_mode)
    except (OSError, ValueError):
        return False


def _path(source: PathOrFile) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", "stream")
    return "-" if name == "<stdin>" else str(name)
