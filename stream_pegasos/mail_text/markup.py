"""The removal of SpamAssassin's marks in and around a mail, because they reveal the label.

It works like `spamassassin --remove-markup`, but keeps all that the sender may have written: otherwise spam could hide
behind a forged mark. So a report is opened only after servers of the receiver, and only texts in the form of a tag are
cut off.
"""

from __future__ import annotations

import ipaddress
import re

from stream_pegasos.mail_text.mime import MAX_HEADERS, end_of_headers, first_field

__all__ = ["strip_markup", "strip_tag"]

MARKED = re.compile(rb"^x-spam-", re.IGNORECASE | re.MULTILINE)
FIELD = re.compile(rb"^([!-9;-~]+)([ \t]*:[ \t]*)((?:[^\n]|\n[ \t])*)(?:\n|\Z)", re.MULTILINE)
BY_SPAMASSASSIN = re.compile(rb"from localhost by \S+\s+with SpamAssassin \(")
BOUNDARY = re.compile(rb"multipart/mixed;\s*boundary\s*=\s*[\"']?([^\s\"';]{1,200})", re.IGNORECASE)
ORIGINAL = re.compile(rb"^content-type:[ \t]*(?:message/rfc822|text/plain);\s*x-spam-type=original", re.I | re.M)
ADDRESS = re.compile(rb"\d{1,3}(?:\.\d{1,3}){3}|(?<=\[)(?:ipv6:)?[0-9a-f:]{2,45}(?=\])", re.IGNORECASE)
BLANK = re.compile(rb"\r?\n\r?\n")
OF_PREVIOUS = b"x-spam-prev-"
# A few words of a verdict, and perhaps a score, between signs; or such a word in capitals, before a colon.
TAG = re.compile(
    r"\s*(?:[^\w\s]{1,12}\s?(?:(?:possibl[ey]|probabl[ey]|suspect(?:ed)?|suspicious|likely|bulk|mail|score|hits|detected|spam"
    r"|junk|virus|phish(?:ing)?|scam|\d{1,4})[\s_?!=:.,/-]{0,3}){1,6}[^\w\s]{1,12}|(?-i:SPAM|JUNK)(?:\s?\([\d.,/]{1,12}\))?:)\s*",
    re.IGNORECASE,
)
FOUND = re.compile("spam|junk|virus|phish|scam", re.IGNORECASE)


def strip_tag(text: str) -> str:
    """A subject without the tags that filters put before it, such as `[SPAM]` and `*****SPAM*****`."""
    while (tag := TAG.match(text)) and FOUND.search(tag[0]) and is_balanced(tag[0]):
        text = text[tag.end() :]
    return text


def is_balanced(tag: str) -> bool:
    return all(tag.count(left) == tag.count(right) for left, right in ("()", "[]", "{}", "<>"))


def is_tag(text: bytes) -> bool:
    return not strip_tag(text.decode("latin-1").strip()).strip()


def strip_markup(mail: bytes) -> bytes:
    """A mail as it was before SpamAssassin marked it; any other mail unchanged."""
    start = first_field(mail[:MAX_HEADERS])
    length = end_of_headers(mail[start : start + MAX_HEADERS])
    end = start + MAX_HEADERS if length is None else start + length
    head = mail[start:end]
    if MARKED.search(head) is None:
        return mail
    fields = [(content[1].lower(), content) for content in FIELD.finditer(head)]
    if is_marked_here(fields) and (original := wrapped_original(fields, mail[end:])) is not None:
        return mail[:start] + original
    previous = {name[len(OF_PREVIOUS) :]: content[3] for name, content in fields if name.startswith(OF_PREVIOUS)}
    restored_fields = [
        restored(content, previous.get(name)) for name, content in fields if not name.startswith(b"x-spam-")
    ]
    return mail[:start] + b"".join(restored_fields) + mail[end:]


def is_marked_here(fields: list[tuple[bytes, re.Match[bytes]]]) -> bool:
    """Whether only servers of the receiver passed a mail on after SpamAssassin wrote its line."""
    for name, content in fields:
        if name == b"received":
            if BY_SPAMASSASSIN.match(content[3]):
                return True
            if not all(map(is_of_receiver, ADDRESS.findall(content[3]))):
                return False
    return False


def is_of_receiver(address: bytes) -> bool:
    try:
        return ipaddress.ip_address(address.decode().lower().removeprefix("ipv6:")).is_private
    except ValueError:
        return False


def wrapped_original(fields: list[tuple[bytes, re.Match[bytes]]], body: bytes) -> bytes | None:
    """The mail within the report; `None` if this is not a report."""
    content = b" ".join(next((match[3] for name, match in fields if name == b"content-type"), b"").split())
    boundary = BOUNDARY.match(content)
    if boundary is None:
        return None
    delimiter = re.compile(rb"^--%b[^\n]*\n?" % re.escape(boundary[1]), re.MULTILINE)
    delimiters = [*delimiter.finditer(body)]
    for begin, end in zip(delimiters, [*delimiters[1:], None], strict=True):
        part = body[begin.end() : len(body) if end is None else end.start()]
        if (blank := BLANK.search(part)) and ORIGINAL.search(part, 0, blank.start() + 1):
            original = part[blank.end() :]
            for line in (b"\r\n", b"\n"):
                if original.endswith((b"\n" + line, b"\r" + line)):
                    return original[: -len(line)]
            return original
    return None


def restored(match: re.Match[bytes], previous: bytes | None) -> bytes:
    """A field as it was before a tag was inserted; SpamAssassin keeps the old first line."""
    value = match[3].rstrip(b"\r")
    if previous is None or not (original := previous.strip(b"\r\n")):
        return match[0]
    if original == b"(nonexistent)" and is_tag(value.replace(original, b"")):
        return b""
    before, is_there, after = value.partition(original)
    if not is_there or not is_tag(before):
        return match[0]
    written = original if is_tag(after) else original + after
    return match[1] + match[2] + written + match[0][len(match[0].rstrip(b"\r\n")) :]
