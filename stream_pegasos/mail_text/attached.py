"""Mails attached to a mail: people forward mails in this way for learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stream_pegasos.mail_text.markup import strip_markup
from stream_pegasos.mail_text.mime import FIELD, MimePart, read_mail

__all__ = ["attached_mails"]


def attached_mails(mail: bytes) -> list[bytes]:
    """The mails attached to a mail (message/rfc822), unchanged and in order; an empty list if there are none.

    >>> attached_mails(b"Subject: look\\nContent-Type: message/rfc822\\n\\nSubject: win\\n\\nA prize")
    [b'Subject: win\\n\\nA prize']
    """
    return [*_in(read_mail(strip_markup(mail), Counter()))]


def _in(part: MimePart) -> Iterator[bytes]:
    if part.kind in ("message/rfc822", "message/global"):
        yield part.body if FIELD.match(part.body.lstrip()[:100]) else part.content
        return
    for inner in part.parts:
        yield from _in(inner)
