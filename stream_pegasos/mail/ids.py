"""By what a mail is known again."""

from __future__ import annotations

import re
from hashlib import blake2b

from stream_pegasos.streams.mail import end_of_headers, id_of

__all__ = ["mail_id"]

LONGEST_ID = 200  # characters of a Message-ID that is kept as it is
# Lines that servers and filters add on the way, which are not the same in every copy.
ADDED = re.compile(rb"^(?:From |X-Spam|Received|Return-Path|Delivered-To)[^\n]*\n(?:[ \t][^\n]*\n)*", re.I | re.M)


def mail_id(mail: bytes) -> str:
    """The Message-ID of a mail; where it has none, or one beyond 200 characters, a digest of what it was sent with.

    Examples
    --------

    >>> from stream_pegasos.mail.ids import mail_id
    >>> mail_id(b"Message-ID: <17@mail.example>\\n\\nSee you!")
    '17@mail.example'
    >>> mail_id(b"From a\\r\\nReceived: b\\r\\nSubject: lunch\\r\\n\\r\\n") == mail_id(b"Subject: lunch\\n\\n")
    True

    """
    end = end_of_headers(mail)
    end = len(mail) if end is None else end
    id = id_of(mail, end)
    if id is not None and len(id) <= LONGEST_ID:
        return id
    sent = ADDED.sub(b"", mail[:end]) + mail[end:]
    return "digest:" + blake2b(sent.replace(b"\r\n", b"\n").strip(), digest_size=16).hexdigest()
