"""Addresses of servers over HTTP, and their keys. A file names, it never acts: only an address that the caller names is
opened. And a key belongs to a host.
"""

from __future__ import annotations

import ipaddress
import os
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from stream_pegasos.common.checks import must_be

__all__ = ["HostAddress", "is_address", "is_loopback", "key_for"]

PORTS = {"http": 80, "https": 443}
# No other sign of a server's, so that nobody can read it as another host than this does.
SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::([0-9]{1,5}))?")


def is_address(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def is_loopback(host: str) -> bool:
    """Whether a host, without a port, is this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class HostAddress(NamedTuple):
    """An address over HTTP: what is asked there, and the server; what stood behind a `#` is apart."""

    url: str
    fragment: str
    scheme: str
    host: str
    port: int

    @classmethod
    def read(cls, text: str, name: str, keys: str) -> HostAddress:
        """The address in a text; a ValueError if it has no host, or a user or password, with the parameter's name and
        the variable where a key belongs.
        """
        parts = urlsplit(text)
        if "@" in parts.netloc:
            way_out = f"put the key into the variable {keys}_KEY"
            raise ValueError(must_be(name, "an address without a user", text, way_out))
        server = _server(parts.netloc)
        if server is None or not text.isprintable() or " " in text:
            raise ValueError(must_be(name, "an address with a host, as http://127.0.0.1:8000/path", text))
        host, port = server
        return cls(
            parts._replace(fragment="").geturl(), parts.fragment, parts.scheme, host, port or PORTS[parts.scheme]
        )

    @property
    def is_read_on_the_way(self) -> bool:
        """Whether others may read what is sent there."""
        return self.scheme == "http" and not is_loopback(self.host)


def key_for(address: HostAddress, keys: str) -> str | None:
    """The key in the environment variable `{keys}_KEY`, if `{keys}_HOST` names the host of the address, or the host and
    its port; `None` if there is no key, or it is for another host.

    Raises
    ------
    ValueError
        If nothing says which host the key is for, or it would go over plain HTTP to another machine.
    """
    key, owner = os.environ.get(f"{keys}_KEY"), os.environ.get(f"{keys}_HOST")
    if not key:
        return None
    if not owner:
        raise ValueError(f"{keys}_KEY is set, but not the host that it is for; set {keys}_HOST, as {address.host!r}")
    server = _server(owner.strip())
    if server is None:
        raise ValueError(must_be(f"{keys}_HOST", "a host, or a host and a port, as 'example.org:8000'", owner))
    host, port = server
    if host != address.host or port not in (None, address.port):
        return None
    if address.is_read_on_the_way:
        raise ValueError(f"{keys}_KEY would go to {host!r} over plain http, where others can read it; use https")
    return key


def _server(text: str) -> tuple[str, int | None] | None:
    """A host in lower case, and its port; `None` if it is none."""
    match = SERVER.fullmatch(text)
    if match is None or int(match[2] or 1) not in range(1, 1 << 16):
        return None
    return match[1].lower(), int(match[2]) if match[2] else None
