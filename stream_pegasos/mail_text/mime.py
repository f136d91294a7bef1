"""A mail's header fields and its nested parts (RFC 5322, MIME), even if they are damaged.

The email package finds no text in parts with a missing or wrong boundary, and its time grows with the square of the
depth. Therefore parts are split here. A part that cannot be split is one text.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from email.message import Message
from itertools import islice

from stream_pegasos.common.cached import cached_property
from stream_pegasos.mail_text.decoding import decode_field, decode_transfer
from stream_pegasos.mail_text.smime import signed_content
from stream_pegasos.mail_text.tnef import read_tnef
from stream_pegasos.mail_text.work import Work

__all__ = [
    "KNOWN_FIELD",
    "WINMAIL",
    "MailSplitter",
    "MimePart",
    "end_of_headers",
    "find_begin",
    "first_field",
    "from_first_field",
    "looks_like_mail",
    "read_mail",
]

MAX_HEADERS = 64_000  # bytes of the headers of a mail, or of a mail in it
MAX_VALUE = 2_000  # characters of a header value
MAX_BODY = 1_000_000  # bytes of a mail's body
MAX_PARTS = 100  # parts of a mail
MAX_DEPTH = 16  # nested parts around a part

EMPTY_LINE = re.compile(rb"^\r?\n", re.MULTILINE)
NAME = re.compile(r"([!-9;-~]+)[ \t]*:")
FIELD = re.compile(rb"[!-9;-~]+[ \t]*:")
KNOWN_FIELD = re.compile(
    rb"(?:received|return-path|delivered-to|from|to|cc|date|subject|message-id|mime-version|reply-to|sender|list-[\w-]+|"
    rb"content-[\w-]+|x-[\w-]+|dkim-signature|authentication-results|arc-[\w-]+|status)[ \t]*:",
    re.IGNORECASE,
)
LINE_FEED = ord("\n")
MAX_SPACE = 100  # characters after a delimiter on its line
# Characters that mailbox programs write before a mail.
BEGIN = re.compile(rb"(?:%b)?[\r\n]*" % codecs.BOM_UTF8)
BEFORE = re.compile(rb"(?:>?From [^\r\n]*\r?\n)+")
BLANK = re.compile(rb"[ \t\r\n]+")
KIND = re.compile(r"[\s\"]*([\w.+-]+/[\w.+-]+)")
WORD = re.compile(r"[\s\"]*([\w-]+)")
BOUNDARY = re.compile(r"\bboundary\s*=\s*(?:\"([^\"]{1,300})|([^\s;\"]{1,300}))", re.IGNORECASE)
# Lines that look like delimiters: fields of a part follow, or the line ends the last part.
BEFORE_PART = re.compile(rb"^--([^\r\n]{1,300}+)\r?\ncontent-[a-z-]+[ \t]*:", re.IGNORECASE | re.MULTILINE)
AFTER_PARTS = re.compile(rb"^--([^\r\n]{1,300}+)(?<=[-\t ])\r?$", re.MULTILINE)
MAX_TRIED = 5  # boundaries of each kind
# Message types that are not messages: parts of reports.
REPORTS = ("message/delivery-status", "message/disposition-notification", "message/feedback-report")
# Parts that may hold another part within their signature.
SIGNED = ("application/pkcs7-mime", "application/x-pkcs7-mime")
# Outlook's file of a mail in rich text, by type or by name.
WINMAIL = "application/ms-tnef"
WINMAILS = (WINMAIL, "application/vnd.ms-tnef")
WINMAIL_NAME = "winmail.dat"
# Errors of the email package if a parameter (RFC 2231) names a codec such as idna, or is numbered wrongly.
BAD_PARAMETER = (LookupError, TypeError, ValueError)


def looks_like_mail(text: str) -> bool:
    """Whether a text begins like a whole mail: with header fields, two of which are well known."""
    lines = text[:MAX_HEADERS].lstrip("\ufeff").split("\n", 40)
    if lines[0].startswith(("From ", ">From ")):
        del lines[0]
    n_known = 0
    for line in lines:
        if not line.strip():
            break
        n_known += KNOWN_FIELD.match(line.encode("utf-8", "replace")) is not None
        if not line.startswith((" ", "\t")) and not NAME.match(line):
            return False
    return n_known > 1


class MimePart:
    """A part of a mail, or the whole mail."""

    def __init__(self, fields: list[tuple[str, str]], body: bytes, kind: str) -> None:
        self.fields = fields  # in order; each character of a value stands for a byte (Latin-1)
        self.body, self.kind = body, kind  # as it was sent; such as "text/plain"
        self.parts: list[MimePart] = []  # of a multipart, or the mail within this part

    @cached_property
    def _first(self) -> dict[str, str]:
        first_values: dict[str, str] = {}
        for name, value in self.fields:
            first_values.setdefault(name.lower(), value)
        return first_values

    def get(self, name: str) -> str:
        """The first field of this name, which is in lower case; `""` if there is none."""
        return self._first.get(name, "")

    @property
    def encoding(self) -> str:
        """The transfer encoding of the body, in lower case."""
        match = WORD.match(self.get("content-transfer-encoding"))
        return match[1].lower() if match else ""

    @cached_property
    def content(self) -> bytes:
        """The decoded body."""
        return decode_transfer(self.body, self.encoding)

    def parameter(self, field: str, name: str) -> str:
        """A parameter of a field (RFC 2231); `""` if there is none."""
        if name not in self.get(field).lower():
            return ""
        message = Message()
        message[field] = self.get(field)
        try:
            value = message.get_param(name, header=field)
        except BAD_PARAMETER:
            return ""
        return value if isinstance(value, str) else value[2] if value else ""

    @property
    def file_name(self) -> str:
        named = self.parameter("content-disposition", "filename") or self.parameter("content-type", "name")
        return decode_field(named)


def read_mail(message: bytes, left_out: Counter[str]) -> MimePart:
    """Split a mail into its parts. `left_out` counts the rest beyond limits: `"bytes"`, `"characters"`, `"parts"`."""
    return MailSplitter(left_out, Work()).read_mail(message)


def from_first_field(mail: bytes) -> bytes:
    """A mail without the characters that programs write before it, and with the line ends of a file."""
    ends = b"\r\n" if b"\n" in mail else b"\r"
    if ends in mail:
        mail = mail.replace(ends, b"\n")
    start = first_field(mail)
    return mail[start:] if start else mail


def find_begin(data: bytes) -> int:
    """The offset of the first line that is not empty, after a byte order mark."""
    match = BEGIN.match(data)
    return match.end() if match else 0


def first_field(mail: bytes) -> int:
    """The offset of the header fields of a mail, after the characters that programs write before it."""
    match = BEFORE.match(mail, find_begin(mail))
    start = match.end() if match else len(codecs.BOM_UTF8) * mail.startswith(codecs.BOM_UTF8)
    if (blank := BLANK.match(mail, start)) and KNOWN_FIELD.match(mail, blank.end()):
        start = blank.end()
    return start


def end_of_headers(mail: bytes) -> int | None:
    """The offset of the first empty line; `None` if there is none."""
    match = EMPTY_LINE.search(mail)
    return None if match is None else match.start()


def is_before_field(lines: Sequence[str], i: int) -> bool:
    """Whether a line is followed by a well-known field."""
    return KNOWN_FIELD.match("".join(lines[i + 1 : i + 2]).encode("latin-1")) is not None


class MailSplitter:
    """Splits a mail, and the content of its texts."""

    def __init__(self, left_out: Counter[str], work: Work) -> None:
        self.left_out, self.work = left_out, work
        self.n_left = MAX_PARTS

    def read_mail(self, message: bytes, depth: int = 0) -> MimePart:
        return self._read_part(from_first_field(message), "text/plain", depth)

    def _read_part(self, data: bytes, default: str, depth: int) -> MimePart:
        fields, body = self._read_fields(data)
        if len(body) > MAX_BODY:
            self.left_out["bytes"] += len(body) - MAX_BODY
            body = body[:MAX_BODY]
        contents = [value for name, value in fields if name.lower() == "content-type"]
        kinds = [match[1].lower() if (match := KIND.match(content)) else default for content in contents] or [default]
        multiparts = [kind for kind in kinds if kind.startswith("multipart/")]
        single = next((kind for kind in kinds if kind not in multiparts), "")
        part = MimePart(fields, body, single or kinds[0])
        is_mail = single.startswith("message/") and single not in REPORTS
        if (multiparts or is_mail) and depth == MAX_DEPTH:
            self.left_out["parts"] += 1
            part.body = b""
        elif pieces := self._pieces(part, contents) if multiparts else []:
            part.kind = multiparts[0]
            inner = "message/rfc822" if part.kind == "multipart/digest" else "text/plain"
            part.parts = [self._read_part(piece, inner, depth + 1) for piece in pieces]
        elif is_mail:
            is_plain = FIELD.match(body.lstrip()[:100]) is not None
            part.parts = [self.read_mail(body if is_plain else part.content, depth + 1)]
        elif single in SIGNED and depth < MAX_DEPTH and (content := signed_content(part.content)) is not None:
            part.parts = [self._read_part(content, "text/plain", depth + 1)]
        elif depth < MAX_DEPTH and (single in WINMAILS or self._is_named_winmail(part)):
            return self.read_winmail(part, depth) or part
        return part

    def _is_named_winmail(self, part: MimePart) -> bool:
        named = part.get("content-disposition") + part.get("content-type")
        return WINMAIL_NAME in named.lower()

    def read_winmail(self, part: MimePart, depth: int = 0) -> MimePart | None:
        """A winmail.dat with its content; the subject becomes a field if there is none. `None` if it is not valid."""
        content = read_tnef(part.content, self.work, self.left_out)
        if content is None:
            return None
        fields = part.fields
        if not any(name.lower() == "subject" for name, _ in fields):
            fields = [*fields, ("Subject", content.subject.encode("utf-8", "replace").decode("latin-1"))]
        winmail = MimePart(fields, part.body, WINMAIL)
        if content.forms:
            forms = MimePart([], b"", "multipart/alternative")
            forms.parts = [self._read_part(form, "text/plain", depth + 2) for form in content.forms]
            winmail.parts.append(forms)
        attachments = content.attachments[: self.n_left]
        self.n_left -= len(attachments)
        self.left_out["parts"] += len(content.attachments) - len(attachments)
        winmail.parts += [self._read_part(attachment, "text/plain", depth + 1) for attachment in attachments]
        return winmail

    def _read_fields(self, data: bytes) -> tuple[list[tuple[str, str]], bytes]:
        """The fields at the beginning of a part, and its body."""
        end, length = len(data), 0
        for blank in (b"\n\n", b"\n\r\n", b"\r\r"):
            if (at := data.find(blank, 0, end + 2)) >= 0:
                end, length = at, len(blank)
        for blank in (b"\n", b"\r\n"):
            if data.startswith(blank):
                end, length = 0, len(blank)
        head, body, is_ended = data[:end].removesuffix(b"\r"), data[end + length :], length > 0
        if len(head) > MAX_HEADERS:
            self.left_out["bytes"] += len(head) - MAX_HEADERS
            head = head[:MAX_HEADERS]
        head = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = head.replace(b"\n ", b" ").replace(b"\n\t", b"\t").decode("latin-1").split("\n")
        fields: list[tuple[str, list[str]]] = []
        for i, line in enumerate(lines):
            if name := NAME.match(line):
                fields.append((name[1], [line[name.end() :]]))
            elif not line or line.startswith((">From ", "From ")):
                continue
            elif fields and (is_before_field(lines, i) or fields[-1][1][-1].rstrip().endswith((";", ","))):
                fields[-1][1].append(line)  # its indentation was lost
            elif not is_before_field(lines, i):
                body = b"\n\n".join(["\n".join(lines[i:]).encode("latin-1"), *([body] if is_ended else [])])
                break
        return [(name[:MAX_VALUE], self._value(name, " ".join(values))) for name, values in fields], body

    def _value(self, name: str, value: str) -> str:
        if len(value) > MAX_VALUE:
            self.left_out["characters"] += len(value) - MAX_VALUE
            if name.lower() != "content-type":  # a boundary may come after many other parameters
                value = value[:MAX_VALUE]
        return value.strip(" \t")

    def _pieces(self, part: MimePart, contents: list[str]) -> list[bytes]:
        """The pieces of a multipart; empty if it cannot be split."""
        named = [match[1] or match[2] for content in contents for match in BOUNDARY.finditer(content)]
        named.append(part.parameter("content-type", "boundary"))
        boundaries = dict.fromkeys([name.strip().encode("latin-1", "replace") for name in named if name.strip()])
        for body in dict.fromkeys((part.body, part.content)):
            for boundary in islice(boundaries, MAX_TRIED):
                if pieces := self._split(body, boundary):
                    return pieces
            openings = (match[1].rstrip() for match in BEFORE_PART.finditer(body))
            closings = (match[1].rstrip() for match in AFTER_PARTS.finditer(body))
            for likely in (openings, (line[:-2] for line in closings if line[:-2] and line.endswith(b"--"))):
                for boundary in islice(likely, MAX_TRIED):
                    if pieces := self._split(body, boundary):
                        return pieces
        return []

    def _split(self, body: bytes, boundary: bytes) -> list[bytes]:
        """The pieces between the lines of a boundary."""
        mark = b"--" + boundary
        pieces: list[bytes] = []
        begin = -1  # the offset of the piece, after the first delimiter
        at = body.find(mark)
        while at >= 0:
            end = at + len(mark)
            stop = body.find(b"\n", end, end + MAX_SPACE)
            if stop < 0 and len(body) - end < MAX_SPACE:
                stop = len(body)
            tail = body[end:stop].strip() if stop >= 0 else b"no delimiter"
            if tail in (b"", b"--") and (at == 0 or body[at - 1] == LINE_FEED):
                if begin >= 0:
                    pieces.append(body[begin : max(begin, at - 1)].removesuffix(b"\r"))
                begin = stop + 1
                if tail:
                    begin = -1
                    break
                if len(pieces) == self.n_left:
                    self.left_out["parts"] += body.count(mark, end)
                    begin = -1
                    break
            at = body.find(mark, end)
        if 0 <= begin < len(body):  # the last delimiter is missing
            pieces.append(body[begin:])
        self.n_left -= len(pieces)
        return pieces
