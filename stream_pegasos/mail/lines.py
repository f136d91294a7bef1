"""Putting lines before the headers of a mail without changing a byte of it."""

__all__ = ["newline_of", "with_lines"]


def newline_of(mail: bytes) -> bytes:
    """How a line of the mail ends."""
    return b"\r\n" if mail[: mail.find(b"\n") + 1].endswith(b"\r\n") else b"\n"


def with_lines(mail: bytes, lines: bytes) -> bytes:
    """The mail with these lines before its headers. A first line `From …`, which an mbox and many servers put there,
    stays first.

    Examples
    --------

    >>> from stream_pegasos.mail.lines import with_lines
    >>> with_lines(b"From ann@example.org Mon Nov 23 10:00:00 2026\\nSubject: lunch\\n\\n", b"X-Spam-Flag: NO\\n")
    b'From ann@example.org Mon Nov 23 10:00:00 2026\\nX-Spam-Flag: NO\\nSubject: lunch\\n\\n'

    """
    begin = mail.find(b"\n") + 1 if mail.startswith(b"From ") else 0
    return mail[:begin] + lines + mail[begin:]
