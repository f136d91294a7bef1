"""Addresses of topics and streams."""

from __future__ import annotations

import re
from typing import NamedTuple

from stream_pegasos.common.errors import must_be
from stream_pegasos.streams.example import StreamError


class Address(NamedTuple):
    """A topic or stream of a server."""

    scheme: str
    server: str
    path: str
    options: dict[str, str]
    port: str = ""  # of a server that names none

    def settings(self, pattern: str, *names: str) -> dict[str, str]:
        """The options that are not in `names`; their names must match the pattern."""
        unknown = {name: value for name, value in self.options.items() if name not in names}
        for name in unknown:
            if not re.fullmatch(pattern, name):
                raise StreamError(f"unknown option {name!r} in the address; known are {', '.join(names) or 'none'}")
        return unknown

    def integer(self, name: str, default: int, least: int = 0) -> int:
        value = self.options.get(name, str(default))
        if not (value.isascii() and value.isdigit() and least <= int(value) < 1 << 63):
            raise StreamError(must_be(name, f"an integer of at least {least}", value))
        return int(value)

    def servers(self) -> list[tuple[str, str]]:
        """The host and the port of each server, without user and password."""
        addresses = []
        for server in self.server.rpartition("@")[2].lower().split(","):
            host, _, port = server.rpartition(":") if re.search(r":\d*$", server) else (server, "", "")
            addresses.append((host, port or self.port))
        return addresses
