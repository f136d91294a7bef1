"""HTTP servers with JSON, as in OpenAI's protocol: the key, the connections, and the failures."""

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
TO_CONNECT, TO_ANSWER = 5.0, 60.0  # seconds; the second is the limit for the start of an answer, and then for the rest
AWAY = (408, 425, 429, 500, 502, 503, 504)  # statuses after which the server may answer later
SHOWN = 200  # characters of a server's answer in an error


class ServerAwayError(ConnectionError):
    """The server cannot be reached, or cannot answer now; it may later. `status` is the HTTP status, if it answered."""

    status: int | None = None


class ServerRefusedError(ValueError):
    """The server refused the request."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class JsonServer:
    """A server at an address; behind a `#` stands the name of a model. `name` is the parameter with the address, for
    errors. `keys` is the prefix of the environment variables with the key and its host. An answer has at most `most`
    bytes.
    """

    def __init__(self, address: str, name: str, keys: str, most: int) -> None:
        import httpx

        self._address, self._keys = HostAddress.read(address, name, keys), keys
        self.url, self.model, self._most = self._address.url, self._address.fragment, most
        self.shown_url = self.url.partition("?")[0]  # without the query, which may hold a key
        self._key = key_for(self._address, keys)
        self._httpx = httpx
        self._clients: dict[int, Any] = {}  # by process: a child process must not use its parent's connections

    @property
    def _client(self) -> Any:
        process = os.getpid()
        if process not in self._clients:
            httpx, key = self._httpx, self._key
            client = httpx.Client(
                headers={"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})},
                timeout=httpx.Timeout(TO_ANSWER, connect=TO_CONNECT),
                limits=httpx.Limits(max_connections=AT_ONCE),
                follow_redirects=False,  # the key does not belong to another host
                # A proxy could read plain text, and cannot reach this machine.
                trust_env=self._address.scheme == "https" or self._address.is_read_on_the_way,
            )
            if self._clients.setdefault(process, client) is client:
                weakref.finalize(self, client.close)
        return self._clients[process]

    def post(self, body: dict[str, Any]) -> bytes:
        """The body of the server's answer. Raise a ServerAwayError or a ServerRefusedError if the server reports no
        success.
        """
        content = orjson.dumps({**body, "model": self.model} if self.model else body)
        httpx, url = self._httpx, self.shown_url
        try:
            try:
                status, data = self._exchange(content)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):  # the kept connection was closed
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
    """The beginning of a server's answer, on one line."""
    return one_line(content[: 4 * SHOWN].decode("utf-8", "replace")[:SHOWN])
