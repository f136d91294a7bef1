"""An identity of a mail that does not change with delivery and storage."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from hashlib import blake2b

from stream_pegasos.mail_text.decoding import decode_bytes, found_in_ascii
from stream_pegasos.mail_text.markup import strip_markup, strip_tag
from stream_pegasos.mail_text.mime import end_of_headers, from_first_field

__all__ = ["mail_id"]

MAX_BODY = 400_000  # bytes of a body that are used
FIELDS = re.compile(rb"^(message-id|date|from|subject)[ \t]*:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
CHARSET = re.compile(rb"\bcharset\s*=\s*[\"']?([\w:.-]+)", re.ASCII | re.IGNORECASE)
QUOTED = re.compile(rb"^>+(?=From )", re.MULTILINE)  # by an mbox


def mail_id(mail: bytes) -> str:
    """A digest of Message-ID, date, sender, subject and body.

    A copied Message-ID is not enough to give another mail the same id. Changes by delivery, filters and mailboxes do
    not count: other headers, the ends and folds of lines, empty lines at both ends, and a decoding of the mail. The end
    of a large body does not count either, because IMAP does not fetch it. If a mail has none of these headers, all of
    it counts.
    """
    mail = from_first_field(strip_markup(mail))
    mail = in_utf8(mail[: (end_of_headers(mail) or 0) + 2 * MAX_BODY])
    end = end_of_headers(mail)
    end = len(mail) if end is None else end
    fields = sorted((name.lower(), number, value) for number, (name, value) in enumerate(FIELDS.findall(mail, 0, end)))
    body = mail[end if fields else 0 :]
    body = QUOTED.sub(b"", body)[:MAX_BODY].rstrip()
    values = [(name, b" ".join(value.split())) for name, _, value in fields]
    values = [(name, untagged(value) if name == b"subject" else value) for name, value in values]
    lines = [name + b":" + value for name, value in values]
    return "digest:" + blake2b(b"\n".join([*lines, b"", body]), digest_size=16).hexdigest()


def untagged(subject: bytes) -> bytes:
    return strip_tag(subject.decode("latin-1")).encode("latin-1")


def in_utf8(mail: bytes) -> bytes:
    """A mail with raw letters, if any, in UTF-8, like those of its text."""
    if mail.isascii():
        if b"\x1b$" not in mail:
            return mail
    else:
        with suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder("utf-8")().decode(mail)  # its last letter may be cut
            return mail
    match = CHARSET.search(mail)
    charset = found_in_ascii(match[1].decode("ascii")) if match else ""
    return decode_bytes(mail, charset).encode("utf-8", "replace")
