"""Encoders that are servers with OpenAI's `POST /v1/embeddings`, as vLLM, Ollama, llama.cpp and others are."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from stream_pegasos.common.addresses import Address, key_for
from stream_pegasos.common.display import one_line
from stream_pegasos.common.extras import missing
from stream_pegasos.common.locks import Lock
from stream_pegasos.features.tables import MOST

__all__ = ["KEYS", "EmbeddingServer", "EncoderAwayError"]

KEYS = "STREAM_PEGASOS_EMBEDDINGS"  # how the environment variables begin that have a key, and the host that it is for
MOST_TEXTS = 256  # of a request; of a server that takes fewer, what it takes
AT_ONCE = 4  # requests
TOO_MANY = (400, 413, 422)  # statuses of a server that takes fewer texts in a request
TO_CONNECT, TO_ANSWER = 5.0, 60.0  # seconds
AWAY = (408, 425, 429, 500, 502, 503, 504)  # statuses of a server that may answer later
SHOWN = 200  # characters of what the server says


class EncoderAwayError(ConnectionError):
    """The server of an encoder cannot be reached, or cannot answer now; it may later."""


class EmbeddingServer:
    """Called with texts, has them encoded by a server at an address with the model behind a `#`; a row each.

    Vectors of more than 1,024 numbers are asked for with `dimensions=1024`; of a server that does not know that, the
    first 1,024 numbers are taken.
    """

    def __init__(self, address: str) -> None:
        try:
            import httpx
            import msgspec  # noqa: F401
        except ImportError as error:
            raise missing(f"vectors={address!r}", "encoders", error) from error
        self._address = Address.read(address, "vectors", KEYS)
        self.url, self.model = self._address.url, self._address.fragment
        self._key = key_for(self._address, KEYS)
        self._httpx = httpx
        self._clients: dict[int, Any] = {}  # by process: a child must not use the connections of its parent
        self._asks: dict[str, Any] = {"encoding_format": "base64"}  # as far as the server knows it
        self._is_probed = False
        self._most = MOST_TEXTS
        self._lock = Lock()
        self._read = reader()

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        with self._lock:
            if not self._is_probed:
                self._probe(texts[0])
        return self._vectors(texts)

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

    def _probe(self, text: str) -> None:
        try:
            n = len(self._rows([text])[0])
        except RefusedError:
            self._asks.clear()
            n = len(self._rows([text])[0])
        if n > MOST:
            try:
                self._rows([text], dimensions=MOST)
                self._asks["dimensions"] = MOST
            except RefusedError:
                pass
        self._is_probed = True

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        if len(texts) > self._most:
            halves = texts[: self._most], texts[self._most :]
            return np.concatenate([*map(self._vectors, halves)])
        try:
            rows = self._rows(texts)
        except RefusedError as error:
            if len(texts) == 1 or error.status not in TOO_MANY:
                raise
            self._most = min(self._most, (len(texts) + 1) // 2)
            return self._vectors(texts)
        if len({*map(len, rows)}) > 1:
            raise ValueError("the server gave vectors of several lengths")
        return np.stack(rows)[:, :MOST]

    def _rows(self, texts: list[str], **more: Any) -> list[NDArray[np.float32]]:
        named = {"model": self.model} if self.model else {}
        asked = orjson.dumps({"input": texts, **named, **self._asks, **more})
        httpx = self._httpx
        try:
            try:
                answer = self._client.post(self.url, content=asked)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):  # a connection was kept too long
                answer = self._client.post(self.url, content=asked)
        except httpx.TransportError as error:
            raise EncoderAwayError(f"{self.url} does not answer: {error or type(error).__name__}") from None
        said = one_line(answer.content[: 4 * SHOWN].decode("utf-8", "replace")[:SHOWN])
        if answer.status_code in AWAY:
            raise EncoderAwayError(f"{self.url} answers {answer.status_code}: {said}")
        if answer.status_code != 200:
            withheld = answer.status_code in (401, 403) and self._key is None and os.environ.get(f"{KEYS}_KEY")
            hint = f"; {KEYS}_KEY was not sent, as {KEYS}_HOST names another host" if withheld else ""
            raise RefusedError(f"{self.url} answers {answer.status_code}: {said}{hint}", answer.status_code)
        try:
            data = sorted(self._read(answer.content), key=lambda item: item.index or 0)
            rows = [row_of(item.embedding) for item in data]
        except (RecursionError, ValueError) as error:
            raise ValueError(f"{self.url} answers with no embeddings: {said}") from error
        if len(rows) != len(texts):
            raise ValueError(f"{self.url} gave {len(rows)} vectors for {len(texts)} texts: {said}")
        return rows


class RefusedError(ValueError):
    """The server does not do what it was asked for."""

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


def reader() -> Callable[[bytes], list[Any]]:
    """What reads the embeddings in an answer; bytes stand there in base64."""
    import msgspec

    embedding = msgspec.defstruct("Embedding", [("embedding", bytes | list[float]), ("index", int | None, None)])
    decoder: Any = msgspec.json.Decoder(msgspec.defstruct("Answer", [("data", list[embedding])]))  # type: ignore[valid-type]
    return lambda content: decoder.decode(content).data


def row_of(embedding: bytes | list[float]) -> NDArray[np.float32]:
    """A vector of its numbers, or of their bytes, the lowest byte first."""
    if isinstance(embedding, bytes):
        return np.frombuffer(embedding, "<f4")
    with np.errstate(over="ignore"):
        return np.array(embedding, np.float32)
