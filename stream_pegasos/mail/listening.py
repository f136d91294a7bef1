"""Addresses of servers of the mail system: a port, or the path of a Unix socket."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
import stat
import sys
from pathlib import Path

__all__ = ["is_local", "listen", "remove_path", "shown_address"]

LOOPBACK = "127.0.0.1"
LONGEST_PATH = 103 if sys.platform == "darwin" else 107  # bytes of a socket's path, a limit of the systems
WAITING = 2048  # connections that wait to be accepted


def listen(address: str) -> socket.socket:
    """A socket that listens on an address such as `127.0.0.1:783`, `[::1]:783`, or `783` for this machine only; or on a
    path, which contains a `/`. The group of the owner may write to a socket with a path. An old socket is replaced if
    no process listens on it any more. A ValueError if the address is not valid, or the path is too long.
    """
    if "/" in address:
        return _at_path(address)
    match = re.fullmatch(r"(?:(\[[0-9a-fA-F:.]+\]|[^\[\]:\s]+):)?(\d{1,5})", address)
    if match is None or int(match[2]) > 65535:
        raise ValueError(
            f"must be an address such as 127.0.0.1:783, 783 or the path of a socket with a /, got {address!r}"
        )
    host, port = (match[1] or LOOPBACK).strip("[]"), int(match[2])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=WAITING)


def _at_path(path: str) -> socket.socket:
    size = len(os.fsencode(path))
    if size > LONGEST_PATH:
        raise ValueError(
            f"the path of a socket must have at most {LONGEST_PATH} bytes, got {size}: {path}; give a shorter one, "
            "which may begin where the command is started"
        )
    try:
        is_socket = stat.S_ISSOCK(os.stat(path).st_mode)
    except FileNotFoundError:
        pass
    else:
        if not is_socket:
            raise FileExistsError(errno.EEXIST, "the address must be a socket, got another file", path)
        with socket.socket(socket.AF_UNIX) as other:
            other.settimeout(1.0)
            try:
                other.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), path)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
        os.chmod(path, 0o660)  # before the first client can connect
        listener.listen(WAITING)
    except BaseException:
        listener.close()
        raise
    return listener


def remove_path(listener: socket.socket) -> None:
    """Remove the path of a Unix socket that is not closed yet."""
    if listener.family == socket.AF_UNIX and listener.fileno() >= 0:
        Path(os.fsdecode(listener.getsockname())).unlink(missing_ok=True)


def is_local(listener: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return listener.family == socket.AF_UNIX or ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def shown_address(listener: socket.socket) -> str:
    """The address of a listener, with its port."""
    name = listener.getsockname()
    if isinstance(name, (str, bytes)):
        return os.fsdecode(name)
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
