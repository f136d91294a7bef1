"""Addresses of HTTP servers, and their keys. An address in a file is never opened: the caller must name it. A key
belongs to one host.
"""

from __future__ import annotations

import ipaddress
import os
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from stream_pegasos.common.errors import must_be

__all__ = ["HostAddress", "is_address", "is_loopback", "key_for"]

PORTS = {"http": 80, "https": 443}
# Only these characters, so that no other parser reads a different host in the text.
SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::([0-9]{1,5}))?")


def is_address(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def is_loopback(host: str) -> bool:
    """Whether a host, given without a port, is this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class HostAddress(NamedTuple):
    """An HTTP address: the URL, and the text behind the `#`, which is kept apart."""

    url: str
    fragment: str
    scheme: str
    host: str
    port: int

    @classmethod
    def read(cls, text: str, name: str, keys: str) -> HostAddress:
        """Read an address from a text. Raise a ValueError if it has no host, or has a user or password; the error has
        the name of the parameter and of the variable for the key.
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
        """Whether others on the network may read the content that is sent there."""
        return self.scheme == "http" and not is_loopback(self.host)


def key_for(address: HostAddress, keys: str) -> str | None:
    """The key in the environment variable `{keys}_KEY`, if `{keys}_HOST` names the host of the address, with or without
    its port. `None` if there is no key, or if it is for another host.

    Raises
    ------
    ValueError
        If there is a key without a host, or if it would go over plain HTTP to another machine.
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
    """A host in lower case, and its port; `None` if the text is no host."""
    match = SERVER.fullmatch(text)
    if match is None or int(match[2] or 1) not in range(1, 1 << 16):
        return None
    return match[1].lower(), int(match[2]) if match[2] else None
