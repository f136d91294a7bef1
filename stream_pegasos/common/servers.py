"""Servers that are asked over HTTP in JSON, as OpenAI's protocol is: the key, the connections, and what fails."""

from __future__ import annotations

import os
import weakref
from time import monotonic
from typing import Any

import orjson

from stream_pegasos.common.display import one_line
from stream_pegasos.common.host_addresses import HostAddress, key_for

__all__ = ["AT_ONCE", "JsonServer", "ServerAwayError", "ServerRefusedError", "beginning"]

AT_ONCE = 4  # requests
TO_CONNECT, TO_ANSWER = 5.0, 60.0  # seconds, the latter to begin and then for the whole answer
AWAY = (408, 425, 429, 500, 502, 503, 504)  # statuses of a server that may answer later
SHOWN = 200  # characters of what the server says


class ServerAwayError(ConnectionError):
    """A server cannot be reached, or cannot answer now; it may later. `status` is what it answers, if it does."""

    status: int | None = None


class ServerRefusedError(ValueError):
    """The server does not do what it was asked for."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class JsonServer:
    """A server at an address, with the name of a model behind a `#`. `name` is the parameter that has the address, and
    `keys` how the environment variables begin that have a key, and the host that it is for. An answer has `most` bytes.
    """

    def __init__(self, address: str, name: str, keys: str, most: int) -> None:
        import httpx

        self._address, self._keys = HostAddress.read(address, name, keys), keys
        self.url, self.model, self._most = self._address.url, self._address.fragment, most
        self.shown_url = self.url.partition("?")[0]  # in a query there may be a key
        self._key = key_for(self._address, keys)
        self._httpx = httpx
        self._clients: dict[int, Any] = {}  # by process: a child must not use the connections of its parent

    @property
    def _client(self) -> Any:
        process = os.getpid()
        if process not in self._clients:
            httpx, key = self._httpx, self._key
            client = httpx.Client(
                headers={"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})},
                timeout=httpx.Timeout(TO_ANSWER, connect=TO_CONNECT),
                limits=httpx.Limits(max_connections=AT_ONCE),
                follow_redirects=False,  # to whom the key does not belong
                # A proxy would read what is sent in plain text, and does not know this machine.
                trust_env=self._address.scheme == "https" or self._address.is_read_on_the_way,
            )
            if self._clients.setdefault(process, client) is client:
                weakref.finalize(self, client.close)
        return self._clients[process]

    def post(self, body: dict[str, Any]) -> bytes:
        """What the server answers; a ServerAwayError or a ServerRefusedError where that is no success."""
        content = orjson.dumps({**body, "model": self.model} if self.model else body)
        httpx, url = self._httpx, self.shown_url
        try:
            try:
                status, data = self._exchange(content)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):  # a connection was kept too long
                status, data = self._exchange(content)
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise ServerAwayError(f"{url} does not answer: {error or type(error).__name__}") from None
        if status == 200:
            return data
        reason = beginning(data.replace(self._key.encode(), b"...") if self._key else data)
        if status in AWAY:
            away = ServerAwayError(f"{url} answers {status}: {reason}")
            away.status = status
            raise away
        withheld = status in (401, 403) and self._key is None and os.environ.get(f"{self._keys}_KEY")
        hint = f"; {self._keys}_KEY was not sent, as {self._keys}_HOST names another host" if withheld else ""
        raise ServerRefusedError(f"{url} answers {status}: {reason}{hint}", status)

    def _exchange(self, content: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        data = bytearray()
        with self._client.stream("POST", self.url, content=content) as answer:
            until = monotonic() + TO_ANSWER
            for chunk in answer.iter_bytes():
                data += chunk
                if len(data) > self._most:
                    reason = f"{self.shown_url} answers with more than {self._most:,} bytes"
                    raise ServerRefusedError(reason, answer.status_code)
                if monotonic() > until:
                    raise ServerAwayError(f"{self.shown_url} takes more than {TO_ANSWER:g} s for an answer")
            return answer.status_code, bytes(data)


def beginning(content: bytes) -> str:
    """The beginning of what a server says, on a line."""
    return one_line(content[: 4 * SHOWN].decode("utf-8", "replace")[:SHOWN])
