"""A client of SpamAssassin's protocol (SPAMC/1.5), as the service speaks it."""

from __future__ import annotations

import re
import socket
from time import monotonic

__all__ = ["ServiceError", "connected", "headers_for"]

LARGEST_ANSWER = 1 << 24  # bytes
N_ADDED = 3
ADDED = re.compile(rb"X-Spam-[^\n]*\n(?:[ \t][^\n]*\n)*")
LENGTH = re.compile(rb"^Content-length: *(\d{1,10})\r?$", re.MULTILINE | re.IGNORECASE)
OUTCOME = re.compile(rb"\btests=PEGASOS_(SPAM|HAM|UNSURE)\b")


class ServiceError(OSError):
    """The service does not answer as it should."""


def connected(address: str, seconds: float) -> socket.socket:
    """A connection to a service.

    Parameters
    ----------
    address
        As `127.0.0.1:783`, `[::1]:783`, or the path of a Unix socket, which has a `/`.
    seconds
        How long each step may take.

    Raises
    ------
    OSError
        If nobody listens there.
    ValueError
        If it is no address.
    """
    if "/" in address:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(seconds)
        connection.connect(address)
        return connection
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ValueError(f"{address!r} is no address, as 127.0.0.1:783 or the path of a socket")
    return socket.create_connection((host.strip("[]") or "127.0.0.1", int(port)), seconds)


def headers_for(mail: bytes, address: str, user: str | None = None, seconds: float = 30.0) -> tuple[str, bytes]:
    """What a service says of a mail, `"spam"`, `"ham"` or `"unsure"`, and the headers that it adds.

    Raises
    ------
    OSError
        If the service cannot be reached, or does not answer as it should, or not in so many seconds.
    ValueError
        If it is no address, or no name of a user.
    """
    if user is not None and not user.isprintable():
        raise ValueError(f"{user!r} is no name of a user")
    asked = f"HEADERS SPAMC/1.5\r\nContent-length: {len(mail)}\r\n" + (f"User: {user}\r\n" if user else "") + "\r\n"
    answer, end = bytearray(), monotonic() + seconds
    with connected(address, seconds) as connection:
        connection.sendall(asked.encode("utf-8", "surrogateescape") + mail)
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(1 << 16):
            answer += part
            if len(answer) > LARGEST_ANSWER or monotonic() > end:
                raise ServiceError(f"{address} does not come to an end")
    status, _, rest = bytes(answer).partition(b"\r\n")
    if not re.match(rb"SPAMD/[\d.]+ 0\b", status):
        raise ServiceError(f"{address} says {status[:100].decode('ascii', 'replace')!r}")
    headers = b""
    about, _, body = rest.partition(b"\r\n\r\n")
    length = LENGTH.search(about)
    if length is not None and int(length[1]) != len(body):
        raise ServiceError(f"{address} ended in the middle of its answer")
    if body.startswith(b"From "):
        body = body.partition(b"\n")[2]
    for _ in range(N_ADDED):  # and none that the sender wrote below them
        found = ADDED.match(body, len(headers))
        headers += found[0] if found else b""
    outcome = OUTCOME.search(headers)
    if outcome is None:
        raise ServiceError(f"{address} added no headers")
    return outcome[1].decode().lower(), headers
