"""Mails in a file, one or several. A mail is a `str` of its bytes, decoded as Latin-1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from stream_pegasos.mail_text.mime import KNOWN_FIELD, end_of_headers, find_begin, first_field
from stream_pegasos.streams.encoding import TextEncoding
from stream_pegasos.streams.example import Example, Parsed, StreamError, Truth
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG, Parser, make_examples
from stream_pegasos.streams.mail_marks import is_marked_deleted, why_no_mail
from stream_pegasos.streams.read_options import ReadOptions

FROM = b"From "  # the beginning of an mbox
MMDF = b"\1\1\1\1"  # the line around each mail of an MMDF mailbox
LONGEST_HEAD = 1 << 16  # bytes searched for headers
_PIECE = 1 << 16  # bytes of a line read at a time
_LONGEST_SEPARATOR = 1000  # bytes
_MOST_EMPTY_LINES = 100  # after a mail whose length is known
_MOST_FIELDS = 200  # header lines read after a separator that has no empty line before it
_parts = {
    b"day": rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},?",
    b"month": rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}",
    b"time": rb"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?",
    b"zone": rb" ?(?:[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?)?(?: \([A-Z]+\))?",
}
# An address, which may hold spaces, and a date in one of these forms: that of C's asctime, perhaps with a zone; that of
# mails; either of them without the day of the week; ISO 8601.
# without the day of the week; and of ISO 8601.
_separator = re.compile(
    rb"From \S.*?\s(%(day)b {1,2}%(month)b {1,2}\d{1,2},? {1,2}(?:%(time)b,? .{0,20}?\d{4}\b|\d{4},? %(time)b).*"
    rb"|%(day)b {1,2}\d{1,2}[ -]%(month)b[ -](?:\d{4}|\d\d) %(time)b.*"
    rb"|(?:%(month)b {1,2}\d{1,2},? {1,2}(?:%(time)b(?: [A-Z]{2,5})? \d{4}|\d{4},? %(time)b%(zone)b)"
    rb"|\d{1,2}[ -]%(month)b[ -](?:\d{4}|\d\d) %(time)b%(zone)b"
    rb"|\d{4}([-/])\d\d?\2\d\d?(?:T|,? {1,2})%(time)b%(zone)b)\s*$)" % _parts
).match
_with_address = re.compile(rb"From [^\s@]+@[^\s@]+[ \t].*\d").match
# `git format-patch` writes this line before a patch; many mails contain patches.
_of_git = re.compile(rb"From [0-9a-f]{40,64} Mon Sep 17 00:00:00 2001\s*$").match
_field = re.compile(rb"(?!BEGIN:V)[A-Za-z_][\w.-]{0,100}[ \t]*:(?!//)").match  # of a mail, not of a vCard
_next_field = re.compile(rb"[ \t]|[!-9;-~]+[ \t]*:").match
_mark_of_mmdf = re.compile(rb"\x01{4}\r?\n?").match
_length_of_emlx = re.compile(rb"[ \t]*(\d{1,10})[ \t]*\r?\n").match
_flags_of_emlx = re.compile(rb"<key>flags</key>\s*<integer>(\d{1,20})</integer>").search
_DELETED_IN_EMLX = 2
_digits = re.compile(rb"\s*(\d{1,12})\s*").fullmatch
_digit = re.compile(rb"\d").search
_quoted = re.compile(rb"^>(>*From )", re.MULTILINE)
_fold = re.compile(rb"\r?\n(?=[ \t])")
_in_brackets = re.compile(r"<([^<>]+)>").search
_encoding = TextEncoding()  # for header values that are not ASCII


def separating_date(line: bytes) -> bytes | None:
    """The date in a line that separates two mails of an mbox; `None` for another line."""
    match = _separator(line) if len(line) <= _LONGEST_SEPARATOR else None
    return None if match is None else match[1]


def begins_with_a_mail(head: bytes) -> bool:
    """Whether the bytes begin a file of mails, or a mail with a header field."""
    begin = find_begin(head)
    if not head.startswith(FROM, begin):
        is_quoted = head.startswith(b">" + FROM, begin)
        return is_quoted or head.startswith(MMDF) or is_emlx(head) or _field(head, begin) is not None
    line, _, after = head[begin:].partition(b"\n")
    return separating_date(line) is not None or _field(after) is not None


def begins_a_mailbox(head: bytes) -> bool:
    """Whether the bytes begin a file of several mails: an mbox or MMDF."""
    return head.startswith(MMDF) or head.startswith(FROM, find_begin(head))


def is_emlx(head: bytes) -> bool:
    """Whether the bytes begin a mail of Apple Mail: with a line that has its length."""
    length = _length_of_emlx(head)
    return length is not None and _field(head, length.end()) is not None


def _shape(line: bytes) -> tuple[int, list[bool]]:
    """The look of a separator: the number of its words, and which words after the sender have digits."""
    words = line.split()
    return len(words), [_digit(word) is not None for word in words[2:]]


class _Ahead:
    """A file whose next bytes can be looked at before they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._ahead = file, bytearray()
        self._has_patches = False  # whether the first separator is a line of git
        self._shape: tuple[int, list[bool]] | None = None  # of the first separator, if it has no date

    def note_separator(self, line: bytes) -> None:
        """Note the first separator; its look is a model for the others."""
        self._has_patches = _of_git(line) is not None
        self._shape = None if separating_date(line) else _shape(line)

    def readline(self) -> bytes:
        """A line, or the next piece of a long one."""
        if not self._ahead:
            return self._file.readline(_PIECE)
        end = self._ahead.find(b"\n", 0, _PIECE) + 1
        if not end and len(self._ahead) < _PIECE:
            self._ahead += self._file.readline(_PIECE - len(self._ahead))
        line = bytes(self._ahead[: end or _PIECE])
        del self._ahead[: len(line)]
        return line

    def separates(self, line: bytes, end: int = 0, is_apart: bool = True) -> bool:
        """Whether a line, which ends at `end`, separates two mails. If its date is not understood, the header field
        after it decides. Without an empty line before it (not `is_apart`), both are needed: a date and a well-known
        field, or whole headers. In this case a separator without a date must look like the first separator.
        """
        if not line.startswith(FROM) or len(line) > _LONGEST_SEPARATOR or (_of_git(line) and not self._has_patches):
            return False
        has_date = separating_date(line) is not None
        if has_date and is_apart:
            return True
        after = self._look(end)
        if not is_apart:
            if has_date and KNOWN_FIELD.match(after):
                return True
            is_alike = has_date or self._shape == (1, []) == _shape(line)
            is_alike |= self._shape == _shape(line) and KNOWN_FIELD.match(after) is not None
            return is_alike and _field(after) is not None and self._are_headers(end)
        return KNOWN_FIELD.match(after) is not None or (_with_address(line) is not None and _field(after) is not None)

    def _are_headers(self, begin: int) -> bool:
        """Whether header fields begin at this place, and an empty line ends them."""
        for _ in range(_MOST_FIELDS):
            line = self._look(begin)
            if line in (b"\n", b"\r\n"):
                return True
            if not _next_field(line):
                break
            begin += len(line)
        return False

    def begins_with(self, mark: bytes) -> bool:
        return self._look(0).startswith(mark)

    def may_end(self, end: int) -> bool:
        """Whether a mail may end at this place: a separator follows, perhaps after empty lines, or nothing follows."""
        for _ in range(_MOST_EMPTY_LINES):
            line = self._look(end)
            if line not in (b"\n", b"\r\n"):
                break
            end += len(line)
        return self.separates(line, end + len(line)) if line else len(self._ahead) == end

    def _look(self, begin: int) -> bytes:
        """The line that begins at this place, cut after the longest length of a separator; `b""` at the end."""
        stop = begin + _LONGEST_SEPARATOR + 1
        while len(self._ahead) < stop and (len(self._ahead) <= begin or self._ahead.find(b"\n", begin) < 0):
            piece = self._file.readline(_PIECE)
            if not piece:
                break
            self._ahead += piece
        return bytes(self._ahead[begin : self._ahead.find(b"\n", begin, stop) + 1 or stop])


def split(file: BinaryIO) -> Iterator[tuple[int, int, bytes | None]]:
    """Split an mbox or MMDF, or take a single mail: yield the offset, the length and the bytes of each mail, with its
    separating line. A mail that is too long has no bytes. Internal messages of a mail server are left out.

    If a header Content-Length of an mbox names a place where the mail may end, the mail does not end before it.
    """
    ahead = _Ahead(file)
    for offset, size, mail in _split_mmdf(ahead) if ahead.begins_with(MMDF) else _split(ahead):
        if mail is None or not is_internal(mail):
            yield offset, size, mail


def _split(file: _Ahead) -> Iterator[tuple[int, int, bytes | None]]:
    mail = bytearray()
    offset = size = 0
    is_begin, is_after_empty = True, False
    has_begun = is_mbox = has_body = False
    end = 0  # of the mail, by its headers
    while piece := file.readline():
        if not has_begun and (begin := find_begin(piece)) < len(piece):
            has_begun, is_mbox = True, piece.startswith(FROM, begin)
            if is_mbox:
                file.note_separator(piece[begin:])
                offset += size + begin
                mail, size, piece = bytearray(), 0, piece[begin:]
        elif is_mbox and is_begin and file.separates(piece, is_apart=is_after_empty or size == end):
            n_left = end - size - len(piece)
            is_inside = n_left >= 0 and end <= LONGEST_LINE and file.may_end(n_left)
            if not is_inside:
                yield offset, size, bytes(mail) if size <= LONGEST_LINE else None
                offset += size
                mail, size, has_body, end = bytearray(), 0, False, 0
        size += len(piece)
        if size <= LONGEST_LINE:
            mail += piece
        elif mail:
            mail = bytearray()
        is_after_empty = is_begin and piece in (b"\n", b"\r\n")
        is_begin = piece.endswith(b"\n")
        if is_after_empty and is_mbox and not has_body:
            has_body = True
            length = _content_length.search(mail)
            digits = _digits(length[1]) if length else None
            end = size + int(digits[1]) if digits else 0
    if has_begun:
        yield offset, size, bytes(mail) if size <= LONGEST_LINE else None


def _split_mmdf(file: _Ahead) -> Iterator[tuple[int, int, bytes | None]]:
    mail = bytearray()
    offset = size = 0
    is_begin, is_end = True, False
    while not is_end:
        piece = file.readline()
        is_end = not piece
        if is_end or (is_begin and piece.rstrip(b"\r\n") == MMDF):
            if size > LONGEST_LINE or mail[len(MMDF) :].strip(b"\r\n"):
                yield offset, size, bytes(mail) if size <= LONGEST_LINE else None
            offset += size
            mail, size = bytearray(), 0
        size += len(piece)
        if size <= LONGEST_LINE:
            mail += piece
        elif mail:
            mail = bytearray()
        is_begin = piece.endswith(b"\n")


def unwrapped(mail: bytes) -> bytes:
    """The mail without what surrounds it. In an mbox these are the separating line, the empty line at the end and the
    quoting of `From `; in a file of Apple Mail, the length before the mail and the notes after it.
    """
    if b"\n" not in mail:
        mail = mail.replace(b"\r", b"\n")
    if is_emlx(mail):
        return mail[slice(*_place_in_emlx(mail))]
    mark = _mark_of_mmdf(mail)
    if mark is not None:
        mail = mail[mark.end() :]
    if not mail.startswith(FROM):
        return mail
    mail = mail.partition(b"\n")[2]
    for end in (b"\r\n", b"\n"):
        if mail.endswith(end + end) or mail == end:
            mail = mail[: -len(end)]
            break
    return _quoted.sub(rb"\1", mail) if mark is None and b">From " in mail else mail


def _place_in_emlx(data: bytes) -> tuple[int, int]:
    """The begin and the end of the mail."""
    length = _length_of_emlx(data)
    assert length is not None
    return length.end(), length.end() + int(length[1])


def is_deleted(mail: bytes) -> bool:
    """Whether a stored mail, with what surrounds it, is marked as deleted."""
    if is_emlx(mail):
        flags = _flags_of_emlx(mail, _place_in_emlx(mail)[1])
        return flags is not None and bool(int(flags[1]) & _DELETED_IN_EMLX)
    return is_marked_deleted(mail[find_begin(mail[:LONGEST_HEAD]) : LONGEST_HEAD])


def header(name: str) -> re.Pattern[bytes]:
    """A pattern of a header, for a search up to `end_of_headers`; group 1 is the value."""
    written = re.escape(name.encode("utf-8", "backslashreplace"))
    return re.compile(rb"^%b[ \t]*:(.*(?:\n[ \t].*)*)\n?" % written, re.IGNORECASE | re.MULTILINE)


def value(match: re.Match[bytes]) -> str:
    """The value of a header, on one line."""
    return _encoding.text(_fold.sub(b"", match[1])).strip()


_message_id, _content_length = header("Message-ID"), header("Content-Length")
_subject, _sender = header("Subject"), header("From")
_of_uw_imap = re.compile(rb"^X-IMAP(?:base)?[ \t]*:", re.IGNORECASE | re.MULTILINE).search


def is_internal(mail: bytes) -> bool:
    """Whether this is the first message of a folder of UW-IMAP, which holds internal notes."""
    if b"FOLDER INTERNAL DATA" not in mail[:LONGEST_HEAD].upper():
        return False
    head = mail[find_begin(mail[:LONGEST_HEAD]) : LONGEST_HEAD]
    head = head[: end_of_headers(head)]
    subject = _subject.search(head)
    if subject is None or value(subject).upper() != "DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA":
        return False
    sender = _sender.search(head)
    senders = head.partition(b"\n")[0] if head.startswith(FROM) else b""
    senders += b" " + sender[1] if sender else b""
    return _of_uw_imap(head) is not None and b"MAILER-DAEMON" in senders.upper()


def mail_parser(options: ReadOptions) -> Parser:
    """Make the parser of a mail. It removes the header with the label, so that the label is not learned, and reads the
    Message-ID as the id.
    """
    label = None if options.label_field is None else header(options.label_field)

    def parse(mail: bytes) -> Parsed:
        before, mail = mail[: (begin := first_field(mail))], mail[begin:]
        end = end_of_headers(mail)
        y: Truth | ValueError | None = None
        end = len(mail) if end is None else end
        id = id_of(mail, end)
        if label is not None and (match := label.search(mail, 0, end)):
            y = options.label(options.labels.of_text, value(match))
            mail = label.sub(b"", mail[:end]) + mail[end:]
        return (before + mail).decode("latin-1"), y, 1.0, id

    return parse


def id_of(mail: bytes, end: int) -> str | None:
    """The Message-ID in the headers of a mail, which end at `end`; `None` if there is none."""
    match = _message_id.search(mail, 0, end)
    return None if match is None else _id(value(match))


def _id(text: str) -> str | None:
    bracketed = _in_brackets(text)
    return (bracketed[1].strip() if bracketed else text) or None


def read_mails(file: BinaryIO, parse: Parser, path: str | None = None) -> Iterator[Example]:
    """Yield the mails of a file, each as soon as it is complete; a StreamError if a file with a path has none."""
    number = 0
    for _, _, mail in split(file):
        record: bytes | ValueError
        if mail is None:
            record = ValueError(f"the mail is {TOO_LONG}")
        elif begins_a_mailbox(mail) and is_deleted(mail):
            continue
        elif begins_with_a_mail(mail[(begin := find_begin(mail)) : begin + LONGEST_HEAD]):
            record = unwrapped(mail)
        else:
            record = ValueError(f"this {why_no_mail(mail)}")
        number += 1
        yield from make_examples([(number, record)], parse)
    if not number and path is not None:
        raise StreamError(f"{path} must have at least one mail, got none")
