"""Addresses of topics and streams."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from stream_pegasos.streams.example import StreamError

PORTS = {"kafka": "9092", "redis": "6379", "rediss": "6379"}


class Address(NamedTuple):
    """A topic or stream of a server."""

    scheme: str
    server: str
    path: str
    options: dict[str, str]

    def settings(self, pattern: str, *names: str) -> dict[str, str]:
        """The options that are not `known`, whose names must match the pattern."""
        unknown = {name: value for name, value in self.options.items() if name not in names}
        for name in unknown:
            if not re.fullmatch(pattern, name):
                raise StreamError(f"unknown option {name!r} in the address; known are {', '.join(names) or 'none'}")
        return unknown

    def integer(self, name: str, default: int, least: int = 0) -> int:
        value = self.options.get(name, str(default))
        if not (value.isascii() and value.isdigit() and least <= int(value) < 1 << 63):
            raise StreamError(f"{name} is {value!r}; it must be an integer of at least {least}")
        return int(value)

    def servers(self) -> list[tuple[str, str]]:
        """The host and the port of each server, without user and password."""
        addresses = []
        for server in self.server.rpartition("@")[2].lower().split(","):
            host, _, port = server.rpartition(":") if re.search(r":\d*$", server) else (server, "", "")
            addresses.append((host, port or PORTS[self.scheme]))
        return addresses


def parse_address(address: str) -> Address:
    # Error messages leave out what may be a password.
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise StreamError(f"the address cannot be read ({error})") from None
    if not parts.scheme:
        raise StreamError("an address without a server: give kafka://host/topic or redis://host/stream")
    if parts.scheme.startswith("redis+"):
        raise StreamError(
            f"unknown address {parts.scheme}://: give that of the server which has it: redis://host/stream"
        )
    if parts.scheme not in PORTS:
        raise StreamError(f"unknown address {parts.scheme}://: give kafka://host/topic or redis://host/stream")
    path = unquote(parts.path.strip("/"))
    if not parts.netloc.rpartition("@")[2] or not path or parts.fragment:
        raise StreamError(f"{parts.scheme}:// needs a host and a name: {parts.scheme}://host/name")
    try:
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise StreamError(f"the options after ? cannot be read ({error})") from None
    return Address(parts.scheme, parts.netloc, path, dict(options))
