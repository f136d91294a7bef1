"""A mail taken apart: its subject, the text that a reader sees, and tokens for what stands beside them.

A mail may come from anyone, so each bound below is set before the part of the work that it bounds.
"""

from __future__ import annotations

import binascii
import functools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import Parser
from email.policy import Compat32
from typing import Any, cast

from stream_pegasos.features.mail_disguise import compatible, respelled
from stream_pegasos.features.mail_headers import read_headers
from stream_pegasos.features.mail_html import MAX_TAGS, read_html
from stream_pegasos.features.mail_tokens import attachment_tokens, link_tokens, page_tokens, text_tokens

__all__ = ["MailParts", "mail_parts"]

MAX_HEADERS = 64_000  # bytes of a mail's headers
MAX_VALUE = 2_000  # characters of one of them
MAX_BODY = 400_000  # bytes of a mail's body
MAX_LINES = 8_000  # lines of a body of several parts
MAX_PARTS = 100  # parts of a mail
MAX_DEPTH = 16  # parts of a mail that have parts themselves
MAX_BEGIN = 500  # bytes of a body that are taken before it is decoded
MAX_TOKENS = 2_000
MAX_TEXT = 100_000  # characters of the text, and of the markup that it is read from

FIRST, LAST = 2_500, 1_000  # characters of a long text that are kept: its beginning and its end

HAS_PARTS = re.compile(rb"(?:multipart|message)/", re.IGNORECASE)
DELIMITER = re.compile(rb"^--", re.MULTILINE)
NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
# Where no other parameter is quoted, in which there might be another charset.
CHARSET = re.compile(r"[^\"]*?;\s*charset=\"?([\w-]+)\"?\s*(?:;|\Z)", re.ASCII | re.IGNORECASE)
BEGINS_AS_HTML = re.compile(r"\s*<(?:!doctype|html|head|body|table|div|p|center|font)\b", re.IGNORECASE)
# Codecs that are no charset of a mail, or whose time grows with the square of the length.
NO_CHARSETS = ("punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7", "mbcs", "oem")
# Charsets whose name often stands for a larger one.
WIDER = {"us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}

# What the email package raises where a parameter (RFC 2231) names a codec such as idna, or is numbered wrongly.
BAD_PARAMETER = (LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class MailParts:
    """What `mail_parts` finds in a mail.

    Attributes
    ----------
    subject
        The subject, decoded, with its words spelled as usual.
    text
        What a reader sees of the body, likewise, and the subjects of forwarded messages. A long text is cut to its
        first 2,500 and its last 1,000 characters, lest it outweigh everything else.
    headers
        Header fields and the servers' lines on the route, without the names of hosts, addresses and lists.
    route
        The servers' lines on the route, with the names of hosts, which tell by which servers a mailbox gets its mail,
        and by which its spam.
    source
        The beginning of the newest of the servers' lines, without time and number, that of the fields of the sender's
        program (its name, Message-ID, types of content), and that of the body before it is decoded.
    tokens
        Features of what stands beside the text, each of the form `"kind:what"`, in the order of the mail; none twice.
    left_out
        How much was left out because it was beyond a bound: `"bytes"` of the mail, `"characters"` of header fields, of
        text or of markup, `"parts"` and `"tokens"`.
    """

    subject: str
    text: str
    headers: str
    route: str
    source: str
    tokens: list[str]
    left_out: dict[str, int]


class BoundedPolicy(Compat32):
    """Header fields as they stand, unfolded, of at most `MAX_VALUE` characters."""

    left_out: Counter[str] = Counter()  # noqa: RUF012 (a policy takes the options that its class has)

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, _, value = "".join(sourcelines).partition(":")
        if len(value) > MAX_VALUE:
            self.left_out["characters"] += len(value) - MAX_VALUE
            value = value[:MAX_VALUE]
        return name[:MAX_VALUE], value.replace("\r", "").replace("\n", "").strip(" \t")

    def header_fetch_parse(self, name: str, value: str) -> str:
        return value


class Part(Message):
    """A part of a mail, which finds its header fields by their names; the email package looks through all of them."""

    @functools.cached_property
    def fields(self) -> dict[str, str]:
        """The first one of each name."""
        found: dict[str, str] = {}
        for name, value in self.raw_items():
            found.setdefault(name.lower(), value)
        return found

    def get(self, name: str, failobj: Any = None) -> Any:
        return self.fields.get(name.lower(), failobj)


def decode_bytes(data: bytes, charset: str = "") -> str:
    """The text of bytes whose charset may be missing, unknown or wrong."""
    if data.isascii() and not charset.lower().startswith(("iso-2022", "utf-16", "utf-32", "utf16", "hz", "utf-7")):
        return data.decode("ascii")
    charset = charset.strip(" \t\"'").lower()
    wider = WIDER.get(charset, charset)
    if wider in ("", "cp1252", "utf-8", "unknown-8bit", "x-unknown", "default_charset"):
        try:
            return data.decode("utf-8")  # other charsets hardly ever look like it
        except UnicodeDecodeError:
            wider = "utf-8" if wider == "utf-8" else "cp1252"
    if not wider.replace("-", "_").startswith(NO_CHARSETS):
        try:
            return data.decode(wider, "replace")
        except (LookupError, ValueError):
            pass
    return data.decode("cp1252", "replace")


def decode_transfer(data: bytes, encoding: str) -> bytes:
    """The bytes of a part, of which some may be broken."""
    if encoding == "quoted-printable":
        return binascii.a2b_qp(data)
    if encoding == "base64":
        try:
            return binascii.a2b_base64(data)
        except ValueError:
            clean = NOT_BASE64.sub(b"", data)
            if len(clean) % 4 == 1:
                clean = clean[:-1]
            return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4))
    return data


def decode_field(value: str) -> str:
    """A header field with its encoded words, and any raw bytes, decoded."""
    if "=?" in value:
        try:
            pieces = decode_header(value)
        except (HeaderParseError, ValueError):
            pieces = [(value, None)]
        decoded = [piece if isinstance(piece, str) else decode_bytes(piece, charset or "") for piece, charset in pieces]
        value = "".join(decoded)
    elif not value.isascii():
        value = decode_bytes(value.encode("latin-1", "replace"))
    return " ".join(value.split())


def file_name(part: Message) -> str:
    try:
        return decode_field(part.get_filename() or "")
    except BAD_PARAMETER:
        return ""


def charset_of(part: Message, content: str) -> str:
    """The charset that a type of content names."""
    if "charset" not in content.lower():
        return ""
    if found := CHARSET.match(content):
        return found[1]
    try:
        given = part.get_param("charset")
    except BAD_PARAMETER:
        return ""
    return given if isinstance(given, str) else given[2] if given else ""


class MailReader:
    """What is found in a mail, part by part."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.begin = ""  # of the body before it is decoded
        self.texts: list[str] = []
        self.tokens: dict[str, None] = {}  # in order, none twice
        self.n_tags, self.n_characters = MAX_TAGS, MAX_TEXT

    def read(self, message: bytes) -> MailParts:
        mail = self._parse(message)
        subject = respelled(compatible(decode_field(mail.get("Subject", "")))[0][:MAX_VALUE])
        headers = read_headers(mail, subject, decode_field)
        self._add(headers.tokens)
        self._add([f"tree:{self._read_part(mail)[:200]}"])
        text = "\n".join(filter(None, map(str.strip, "\n".join(self.texts).split("\n"))))
        if len(text) > FIRST + LAST:
            self.left_out["characters"] += len(text) - FIRST - LAST
            text = f"{text[:FIRST]}\n{text[-LAST:]}"
        usual = respelled(text)
        if usual != text:
            self._add(["text:respelled"])
        self._add(text_tokens(usual))
        self._add(f"left-out:{what}" for what in self.left_out)
        found = list(self.tokens)
        if len(found) > MAX_TOKENS:
            self.left_out["tokens"] += len(found) - MAX_TOKENS
        return MailParts(
            subject=subject,
            text=usual,
            headers=headers.text,
            route=headers.route,
            source=f"{headers.source}\n{self.begin}",
            tokens=found[:MAX_TOKENS],
            left_out=dict(self.left_out),
        )

    def _add(self, tokens: Iterable[str]) -> None:
        self.tokens.update(dict.fromkeys(tokens))

    def _parse(self, message: bytes) -> Part:
        """The mail as the email package reads it, cut to the bounds."""
        parser = Parser(Part, policy=BoundedPolicy(left_out=self.left_out))  # type: ignore[call-arg]
        end, length = len(message), 0
        for blank in (b"\n\n", b"\n\r\n", b"\r\r"):
            if (at := message.find(blank, 0, end + 2)) >= 0:
                end, length = at, len(blank)
        headers = self._cut(message, 0, end, MAX_HEADERS) + b"\n\n"
        body = self._cut(message, end + length, len(message), MAX_BODY)
        begin = body[: 2 * MAX_BEGIN].replace(b"\r\n", b"\n")[:MAX_BEGIN]  # the same from a file as over IMAP
        self.begin = respelled(compatible(begin.decode("utf-8", "ignore"))[0][:MAX_BEGIN])
        # Each character stands for a byte, so that nothing is lost before charsets are known.
        mail = cast(Part, parser.parsestr(headers.decode("latin-1"), headersonly=True))
        if mail.get_content_maintype() in ("multipart", "message"):
            try:
                return cast(Part, parser.parsestr((headers + self._few_parts(body)).decode("latin-1")))
            except BAD_PARAMETER:  # no mail program finds its parts, either
                mail.replace_header("Content-Type", "text/plain")
                del mail.fields  # read anew
        rest = mail.get_payload()  # lines after the headers, if no blank line ended these
        mail.set_payload((rest if isinstance(rest, str) else "") + body.decode("latin-1"))
        return mail

    def _cut(self, message: bytes, start: int, stop: int, most: int) -> bytes:
        if stop - start > most:
            self.left_out["bytes"] += stop - start - most
        return message[start : min(stop, start + most)]

    def _few_parts(self, body: bytes) -> bytes:
        """A body of several parts, cut where it exceeds the bound of lines, parts, or parts within parts."""
        stop = len(body)
        for i, found in enumerate(HAS_PARTS.finditer(body)):
            if i == MAX_DEPTH:
                stop = found.start()
                break
        for i, found in enumerate(DELIMITER.finditer(body, 0, stop)):
            if i == 3 * MAX_PARTS:  # lines of text may begin like this, too
                stop = found.start()
                break
        if body.count(b"\n", 0, stop) + body.count(b"\r", 0, stop) > MAX_LINES:
            stop = sum(map(len, body[:stop].splitlines(keepends=True)[:MAX_LINES]))
        return self._cut(body, 0, len(body), stop)

    def _read_part(self, part: Message) -> str:
        """Read a part and the parts within it, and return its type, with theirs in brackets."""
        kind, payload = part.get_content_type()[:60], part.get_payload()
        if isinstance(payload, list):
            kinds = self._read_parts(kind, [each for each in payload if isinstance(each, Message)])
            return f"{kind}({','.join(kinds)})"
        if isinstance(payload, str):
            disposition = part.get("Content-Disposition", "")
            name = file_name(part) if "name" in f"{disposition};{part.get('Content-Type', '')}".lower() else ""
            disposition = disposition.partition(";")[0].strip().lower()
            is_text = kind.startswith("text/") and disposition != "attachment" and kind != "text/calendar"
            if is_text:
                self._read_text(part, kind, payload)
            if name or not is_text:
                self._add(attachment_tokens(name, kind, disposition, len(payload)))
        return kind

    def _read_parts(self, kind: str, parts: list[Message]) -> list[str]:
        if len(parts) > MAX_PARTS:
            self.left_out["parts"] += len(parts) - MAX_PARTS
        kinds = []
        texts: list[list[str]] = []
        before = self.texts
        for part in parts[:MAX_PARTS]:
            self.texts = []
            if kind == "message/rfc822":
                self.texts.append(decode_field(part.get("Subject", "")))
            kinds.append(self._read_part(part))
            texts.append(self.texts)
        if kind == "multipart/alternative" and len(texts) > 1:
            # Mail programs show the last one that is not empty.
            full = [joined for part_texts in texts if (joined := "\n".join(part_texts)).strip()]
            if len(full) > 1:
                first, last = set(full[0][:5_000].split()), set(full[-1][:5_000].split())
                overlap = len(first & last) / max(1, min(len(first), len(last)))
                self._add([f"alternatives:alike:{int(4 * overlap)}"])
            elif len(texts) > len(full):
                self._add(["alternatives:one-is-empty"])
            texts = [full[-1:]]
        self.texts = before
        for part_texts in texts:
            self.texts.extend(part_texts)
        return kinds[:10]

    def _read_text(self, part: Message, kind: str, payload: str) -> None:
        content = part.get("Content-Type", "")
        charset = charset_of(part, content)
        encoding = part.get("Content-Transfer-Encoding", "").strip().lower()
        text = decode_bytes(decode_transfer(payload.encode("latin-1", "replace"), encoding), charset)
        if len(text) > self.n_characters:
            self.left_out["characters"] += len(text) - self.n_characters
            text = text[: self.n_characters]
        self.n_characters -= len(text)
        if kind == "text/html" or (not content and BEGINS_AS_HTML.match(text)):
            page, left_out = read_html(text, self.n_tags)
            if left_out:
                self.left_out["characters"] += left_out
            self.n_tags = max(0, self.n_tags - sum(page.tags.values()))
            self._add(page_tokens(page, len(text)))
            text = "".join(page.seen)
        else:
            if BEGINS_AS_HTML.match(text):
                self._add(["text:is-html"])
            self._add(link_tokens(text))
        text, n_invisible = compatible(text)
        if n_invisible > 2:
            self._add([f"text:invisible:{n_invisible.bit_length()}"])
        self.texts.append(text)
        self._add(
            [f"part:{kind}", f"charset:{charset.lower()[:30]}" if charset else "charset:", f"encoding:{encoding[:20]}"]
        )


def mail_parts(message: bytes) -> MailParts:
    """Take a mail apart.

    Nothing in it is opened, run or fetched. A mail may be broken, or made to do harm: no bytes raise, and time and
    memory are bounded; what is beyond a bound is left out and counted.

    Parameters
    ----------
    message
        The mail as it was received, headers first (RFC 5322).

    Raises
    ------
    ImportError
        If the mail has HTML and lxml, which the extra `mail` installs, is missing.

    Examples
    --------

    >>> from stream_pegasos.features.mail_parts import mail_parts

    >>> parts = mail_parts(b"From: Ann <ann@bank.example>\\nSubject: =?utf-8?q?Caf=C3=A9?=\\n\\nSee you!")
    >>> parts.subject, parts.text
    ('Café', 'See you!')
    >>> [token for token in parts.tokens if token.startswith("from:")]
    ['from:bank.example', 'from:.example', 'from:local:a', 'from:name:Aa', 'from:quoted:False']

    """
    return MailReader().read(message)
