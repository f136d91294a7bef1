"""Marks of mail programs: deleted mails, and files that are no mails."""

from __future__ import annotations

import re
from functools import partial

from stream_pegasos.mail_text.mime import end_of_headers
from stream_pegasos.streams.chunks import Chunks, may_begin

NO_FIELD = "it begins with no header field"
# Header fields in which a mail program marks a mail as deleted: UW-IMAP, mutt, Pine, Dovecot; Thunderbird (expunged, or
# deleted on the server); Evolution.
_is_deleted = re.compile(
    rb"^(?:(?i:(?:X-)?Status)[ \t]*:[ \t]*[ROAFTN]*D[ROADFTN]*"
    rb"|(?i:X-Mozilla-Status[ \t]*:[ \t]*[0-9a-f]{3}[89a-f])"
    rb"|(?i:X-Mozilla-Status2[ \t]*:[ \t]*[0-9a-f]{2}[2367abef][0-9a-f]{5})"
    rb"|(?i:X-Evolution[ \t]*:[ \t]*[0-9a-f]{8}-[0-9a-f]{3}[2367abef]))[ \t]*\r?$",
    re.MULTILINE,
).search
_flags_of_maildir = re.compile(r"[:;!]2,([A-Za-z]*)").search
_is_deleted_name = re.compile(r"[,#]\d+").fullmatch  # of MH
# Mailboxes and mails of other programs, by their first bytes, and a way to convert them.
_OTHERS = {
    b"!BDN": "it is a mailbox of Outlook, which readpst turns into an mbox",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "it is a file of Outlook or Office; msgconvert turns a .msg into an .eml",
    b"\xcf\xad\x12\xfe": "it is a mailbox of Outlook Express, which undbx turns into .eml files",
    b"*mbx*": "it is a mailbox of UW-IMAP, which mailutil copies into an mbox",
    b"CRYPTED\x03\x07": "Dovecot has encrypted it; read it over IMAP: see stream-pegasos imap",
    b"Dovecot-LZ4": "Dovecot has compressed it by LZ4; read it over IMAP: see stream-pegasos imap",
    b"\x04\x22\x4d\x18": "it is compressed by LZ4: unpack it, as by lz4 -d",
    **dict.fromkeys(
        (b"PK\x03\x04", b"PK\x05\x06", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"), "it is an archive: unpack it"
    ),
}


def why_no_mail(head: bytes) -> str:
    """The reason why a file with this beginning is no mail."""
    return "is not a mail: " + next((why for mark, why in _OTHERS.items() if head.startswith(mark)), NO_FIELD)


def why_other(chunks: Chunks) -> str | None:
    """The reason if a stream is an archive or another program's mailbox; `None` if it is neither."""
    head = chunks.look(partial(may_begin, marks=(*_OTHERS,)))
    return why_no_mail(head) if head.startswith((*_OTHERS,)) else None


def is_marked_deleted(head: bytes) -> bool:
    """Whether one of the headers of the program that keeps the mail marks it as deleted."""
    end = end_of_headers(head)
    return _is_deleted(head, 0, len(head) if end is None else end) is not None


def maildir_flags(name: str) -> str | None:
    """The flags in the name of a file in a Maildir (T for a deleted mail); `None` if it has none."""
    match = _flags_of_maildir(name)
    return None if match is None else match[1]


def is_deleted_in_mh(name: str) -> bool:
    return _is_deleted_name(name) is not None
