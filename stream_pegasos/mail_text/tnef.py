"""The content of Outlook's winmail.dat: the text of a mail in several forms, and attachments (MS-OXTNEF)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from stream_pegasos.mail_text.decoding import charset_in_page, decode_bytes
from stream_pegasos.mail_text.rtf import code_page_charset, decompress_rtf, read_rtf
from stream_pegasos.mail_text.work import Work

__all__ = ["Tnef", "read_tnef"]

SIGNATURE = bytes.fromhex("789f3e22")
HEAD = 6  # bytes before the first attribute: the signature and a key
# Attributes, of the mail or of an attachment; two of them hold properties.
SUBJECT, BODY, CODE_PAGE, PROPERTIES = 0x8004, 0x800C, 0x9007, 0x9003
ATTACHMENT_BEGINS, TITLE, DATA, ATTACHMENT_PROPERTIES = 0x9002, 0x8010, 0x800F, 0x9005
# Properties of the mail, and of an attachment.
OWN_SUBJECT, PLAIN, HTML, RTF, CODE_PAGE_OF_TEXT, CODE_PAGE_OF_PAGE = 0x0037, 0x1000, 0x1013, 0x1009, 0x3FFD, 0x3FDE
SHORT_NAME, LONG_NAME, SHOWN_NAME, KIND, CONTENT = 0x3704, 0x3707, 0x3001, 0x370E, 0x3701
NAMES = (LONG_NAME, SHORT_NAME, SHOWN_NAME)
# Types of properties with the number of bytes of a value; values of other types come with their length.
SIZES = {0: 0, 1: 0, 2: 2, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 0x0A: 4, 0x0B: 2, 0x14: 8, 0x40: 8, 0x48: 16}
STRING, UNICODE, OBJECT, BINARY = 0x1E, 0x1F, 0x0D, 0x102
MULTIPLE = 0x1000  # added to a type
FIRST_NAMED = 0x8000  # the first property with a name
INTERFACE = 16  # bytes before an object
KINDS = {"txt": "text/plain", "text": "text/plain", "asc": "text/plain", "htm": "text/html", "html": "text/html"}
KINDS |= {"eml": "message/rfc822"}


class Tnef(NamedTuple):
    """The content of a winmail.dat; each part has header fields, as in a mail."""

    subject: str
    forms: list[bytes]  # of the same text
    attachments: list[bytes]


class Value(NamedTuple):
    """A property."""

    kind: int
    data: bytes


Values = dict[int, Value]  # of properties, by id


def read_tnef(data: bytes, work: Work, left_out: Counter[str]) -> Tnef | None:
    """The content of a winmail.dat, as far as it can be read; `None` if it is not valid. Each attribute and property
    takes a step, and so does each word of RTF; `left_out` counts the `"bytes"` of RTF that are not read because of
    that.
    """
    if not data.startswith(SIGNATURE):
        return None
    mail: Values = {}
    attachments: list[Values] = []
    for attribute, content in attributes(data, work):
        last = attachments[-1] if attachments else {}
        if attribute == SUBJECT:
            mail.setdefault(OWN_SUBJECT, Value(STRING, content))
        elif attribute == BODY:
            mail.setdefault(PLAIN, Value(STRING, content))
        elif attribute == CODE_PAGE:
            mail.setdefault(CODE_PAGE_OF_TEXT, Value(STRING, content[:4]))
        elif attribute == PROPERTIES:
            mail |= properties(content, work)
        elif attribute == ATTACHMENT_BEGINS:
            attachments.append({})
        elif attribute == TITLE:
            last.setdefault(SHORT_NAME, Value(STRING, content))
        elif attribute == DATA:
            last[CONTENT] = Value(BINARY, content)
        elif attribute == ATTACHMENT_PROPERTIES:
            last |= {id: value for id, value in properties(content, work).items() if id != CONTENT or id not in last}
    charset = find_charset(mail, CODE_PAGE_OF_TEXT) or find_charset(mail, CODE_PAGE_OF_PAGE)
    subject = find_text(mail, OWN_SUBJECT, charset)
    forms = [*text_forms(mail, charset, work, left_out)]
    return Tnef(subject, forms, [attachment_part(values, charset) for values in attachments])


def integer(data: bytes, at: int, size: int = 4) -> int:
    return int.from_bytes(data[at : at + size], "little")


def attributes(data: bytes, work: Work) -> Iterator[tuple[int, bytes]]:
    """The number and the content of each attribute; the last may be cut."""
    at = HEAD
    while at + 9 <= len(data) and data[at] in (1, 2) and work.take(1):
        length = integer(data, at + 5)
        at += 9
        yield integer(data, at - 8, 2), data[at : at + length]
        at += length + 2  # and a checksum


def properties(data: bytes, work: Work) -> Values:
    """Properties by their ids, with the first of several values; the last may be cut."""
    values: Values = {}
    at = 4  # after the number of properties
    while at + 8 <= len(data) and work.take(1):
        kind, id = integer(data, at, 2), integer(data, at + 2, 2)
        at += 4
        if id >= FIRST_NAMED:
            is_text = integer(data, at + INTERFACE)
            at += INTERFACE + 4
            at += 4 + (padded_size(integer(data, at)) if is_text else 0)
        size = SIZES.get(kind & ~MULTIPLE)
        n = 1
        if kind & MULTIPLE or size is None:
            n = integer(data, at)
            at += 4
        if size is not None:
            values.setdefault(id, Value(kind, data[at : at + size]))
            at += padded_size(n * size)
            continue
        for _ in range(n):
            if at >= len(data) or not work.take(1):
                break
            length = integer(data, at)
            values.setdefault(id, Value(kind, data[at + 4 : at + 4 + length]))
            at += 4 + padded_size(length)
    return values


def padded_size(size: int) -> int:
    return -(-size // 4) * 4


def find_charset(values: Values, id: int) -> str:
    return code_page_charset(integer(values[id].data, 0)) if id in values else ""


def find_text(values: Values, id: int, charset: str) -> str:
    if id not in values:
        return ""
    kind, data = values[id]
    return decode_bytes(data, "utf-16le" if kind == UNICODE else charset).rstrip("\0")


def text_forms(mail: Values, charset: str, work: Work, left_out: Counter[str]) -> Iterator[bytes]:
    """The text of a mail, in each of its forms. RTF that Outlook made from a page is not read if the page is there."""
    if text := find_text(mail, PLAIN, charset):
        yield text_part("text/plain", text)
    if HTML in mail:
        page_charset = find_charset(mail, CODE_PAGE_OF_PAGE) or charset_in_page(mail[HTML].data) or charset
        yield text_part("text/html", find_text(mail, HTML, page_charset))
    elif RTF in mail:
        text, is_page = read_rtf(decompress_rtf(mail[RTF].data), work, left_out, charset)
        yield text_part("text/html" if is_page else "text/plain", text)


def text_part(kind: str, text: str) -> bytes:
    return f"Content-Type: {kind}; charset=utf-8\n\n{text}".encode("utf-8", "replace")


def attachment_part(values: Values, charset: str) -> bytes:
    name = next(filter(None, (find_text(values, id, charset) for id in NAMES)), "")
    name = "".join([letter for letter in name if letter.isprintable() and letter not in '\\"'])[:200]
    kind = find_text(values, KIND, charset) or KINDS.get(name.lower().rpartition(".")[2], "application/octet-stream")
    kind = "".join(kind.split())[:100]
    value_kind, data = values.get(CONTENT, Value(BINARY, b""))
    if value_kind == OBJECT:  # a mail in its own winmail.dat
        data = data[INTERFACE:]
        if data.startswith(SIGNATURE):
            kind, data = "message/rfc822", b"Content-Type: application/ms-tnef\n\n" + data
    how = "inline" if kind in KINDS.values() else "attachment"  # texts are read
    head = f'Content-Type: {kind}\nContent-Disposition: {how}; filename="{name}"\n\n'
    return head.encode("utf-8", "replace") + data
