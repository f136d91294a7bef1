"""Reading a mail or an mbox. A mail is a `str` of its bytes, decoded as Latin-1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from stream_pegasos.streams.encoding import Encoding
from stream_pegasos.streams.example import Example, LabelFormat, Parsed, unreadable
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG

FROM = b"From "  # what an mbox begins with
_PIECE = 1 << 16  # bytes of a line read at a time
_LONGEST_SEPARATOR = 1000  # bytes
_DAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# An address, which may hold spaces, and a date: as C's asctime writes it, perhaps with a zone, or as mails have it.
_separator = re.compile(
    rb"From \S.*?\s(%b(?:,? {1,2}%b {1,2}\d{1,2} {1,2}\d{1,2}:\d\d(?::\d\d)?,? .{0,20}?\d{4}\b"
    rb"|, {1,2}\d{1,2} %b \d{4} \d{1,2}:\d\d).*)" % (_DAY, _MONTH, _MONTH)
).match
_quoted = re.compile(rb"^>(>*From )", re.MULTILINE)
_empty_line = re.compile(rb"^\r?\n", re.MULTILINE).search
_fold = re.compile(rb"\r?\n(?=[ \t])")
_in_brackets = re.compile(r"<([^<>]+)>").search
_encoding = Encoding()  # of what headers hold beside ASCII


def separating_date(line: bytes) -> bytes | None:
    """The date in a line that stands between two mails of an mbox; `None` where it is another line."""
    match = _separator(line) if len(line) <= _LONGEST_SEPARATOR else None
    return None if match is None else match[1]


def split(file: BinaryIO) -> Iterator[tuple[int, int, bytes | None]]:
    """Split an mbox, or take a single mail: yield the offset, the length and the bytes of each mail, with its
    separating line. A mail that is too long has no bytes.
    """
    mail = bytearray()
    offset = size = 0
    is_begin, is_after_empty = True, False
    is_mbox = False
    while piece := file.readline(_PIECE):
        if is_after_empty and is_mbox and piece.startswith(FROM) and separating_date(piece) is not None:
            yield offset, size, bytes(mail) if size <= LONGEST_LINE else None
            offset += size
            mail, size = bytearray(), 0
        elif not size:
            is_mbox = piece.startswith(FROM)
        size += len(piece)
        if size <= LONGEST_LINE:
            mail += piece
        elif mail:
            mail = bytearray()
        is_after_empty = is_begin and piece in (b"\n", b"\r\n")
        is_begin = piece.endswith(b"\n")
    if size:
        yield offset, size, bytes(mail) if size <= LONGEST_LINE else None


def unwrapped(mail: bytes) -> bytes:
    """Remove what an mbox adds to a mail: the separating line, the empty line behind, and the quoting of `From `."""
    if not mail.startswith(FROM):
        return mail
    mail = mail.partition(b"\n")[2]
    for end in (b"\r\n", b"\n"):
        if mail.endswith(end + end) or mail == end:
            mail = mail[: -len(end)]
            break
    return _quoted.sub(rb"\1", mail) if b">From " in mail else mail


def header(name: str) -> re.Pattern[bytes]:
    """A pattern of a header, to be searched up to `end_of_headers`; group 1 is the value."""
    written = re.escape(name.encode("utf-8", "backslashreplace"))
    return re.compile(rb"^%b[ \t]*:(.*(?:\n[ \t].*)*)\n?" % written, re.IGNORECASE | re.MULTILINE)


def end_of_headers(mail: bytes) -> int | None:
    """Where the first empty line begins; `None` where there is none."""
    match = _empty_line(mail)
    return None if match is None else match.start()


def value(found: re.Match[bytes]) -> str:
    """The value of a header, on one line."""
    return _encoding.text(_fold.sub(b"", found[1])).strip()


_message_id = header("Message-ID")


def mail_parser(label_header: str | None, labels: LabelFormat) -> Callable[[bytes], Parsed]:
    """Make the parser of a mail. It takes out the header with the label, so that this is not learned, and reads the
    Message-ID as the id.
    """
    label = None if label_header is None else header(label_header)

    def parse(mail: bytes) -> Parsed:
        end, y = end_of_headers(mail), None
        end = len(mail) if end is None else end
        id = id_of(mail, end)
        if label is not None and (found := label.search(mail, 0, end)):
            y = labels.of_text(value(found))
            mail = label.sub(b"", mail[:end]) + mail[end:]
        return mail.decode("latin-1"), y, 1.0, id

    return parse


def id_of(mail: bytes, end: int) -> str | None:
    """The Message-ID in the headers of a mail, which end at `end`; `None` if there is none."""
    found = _message_id.search(mail, 0, end)
    return None if found is None else _id(value(found))


def _id(text: str) -> str | None:
    found = _in_brackets(text)
    return (found[1].strip() if found else text) or None


def read_mails(file: BinaryIO, parse: Callable[[bytes], Parsed]) -> Iterator[Example]:
    """Yield the mails of a file, each as soon as it is there."""
    for number, (_, _, mail) in enumerate(split(file), 1):
        if mail is None:
            yield unreadable(ValueError(f"the mail is {TOO_LONG}"), number)
            continue
        try:
            x, y, w, id = parse(unwrapped(mail))
        except ValueError as error:
            yield unreadable(error, number)
        else:
            yield Example(x, y, w, number, id)
