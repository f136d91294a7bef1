"""Encoders on servers with OpenAI's `POST /v1/embeddings`, such as vLLM, Ollama and llama.cpp."""

from __future__ import annotations

from collections.abc import Callable
from types import GenericAlias
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.extras import missing
from stream_pegasos.common.locks import Lock
from stream_pegasos.common.servers import AT_ONCE, JsonServer, ServerAwayError, ServerRefusedError, beginning
from stream_pegasos.features.tables import MOST

__all__ = ["AT_ONCE", "KEYS", "EmbeddingServer", "EncoderAwayError"]

KEYS = "STREAM_PEGASOS_EMBEDDINGS"  # prefix of the environment variables with the key and its host
MOST_BYTES = 1 << 28  # in an answer
MOST_TEXTS = 256  # in a request; fewer if the server refuses so many
TOO_MANY = (400, 413, 422)  # statuses of a refusal because of too many texts


class EncoderAwayError(ServerAwayError):
    """The server of an encoder cannot be reached, or cannot answer now; it may later."""


class EmbeddingServer:
    """A function from texts to an array with a row each. A server at an address encodes them; the model stands behind a
    `#`.

    If vectors have more than 1,024 numbers, the request has `dimensions=1024`; if the server does not know that option,
    the first 1,024 numbers are used.
    """

    def __init__(self, address: str) -> None:
        try:
            import httpx  # noqa: F401
            import msgspec  # noqa: F401
        except ImportError as error:
            raise missing(f"vectors={address!r}", "encoders", error) from error
        self._server = JsonServer(address, "vectors", KEYS, MOST_BYTES)
        self.url, self.model = self._server.url, self._server.model
        self._asks: dict[str, Any] = {"encoding_format": "base64"}  # the options that the server accepts
        self._is_probed = False
        self._most = MOST_TEXTS
        self._lock = Lock()
        self._read = reader()

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        with self._lock:
            if not self._is_probed:
                self._probe(texts[0])
        return self._vectors(texts)

    def _probe(self, text: str) -> None:
        try:
            n = len(self._rows([text])[0])
        except ServerRefusedError:
            self._asks.clear()
            n = len(self._rows([text])[0])
        if n > MOST:
            try:
                self._rows([text], dimensions=MOST)
                self._asks["dimensions"] = MOST
            except ServerRefusedError:
                pass
        self._is_probed = True

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        if len(texts) > self._most:
            halves = texts[: self._most], texts[self._most :]
            return np.concatenate([*map(self._vectors, halves)])
        try:
            rows = self._rows(texts)
        except ServerRefusedError as error:
            if len(texts) == 1 or error.status not in TOO_MANY:
                raise
            self._most = min(self._most, (len(texts) + 1) // 2)
            return self._vectors(texts)
        if len({*map(len, rows)}) > 1:
            raise ValueError("the server gave vectors of several lengths")
        return np.stack(rows)[:, :MOST]

    def _rows(self, texts: list[str], **more: Any) -> list[NDArray[np.float32]]:
        try:
            content = self._server.post({"input": texts, **self._asks, **more})
        except ServerAwayError as error:
            raise EncoderAwayError(*error.args) from None
        try:
            data = sorted(self._read(content), key=lambda item: item.index or 0)
            rows = [row_of(item.embedding) for item in data]
        except (RecursionError, ValueError) as error:
            raise ValueError(f"{self.url} answers with no embeddings: {beginning(content)}") from error
        if len(rows) != len(texts):
            raise ValueError(f"{self.url} gave {len(rows)} vectors for {len(texts)} texts: {beginning(content)}")
        return rows


def reader() -> Callable[[bytes], list[Any]]:
    """A decoder of the embeddings in an answer. Bytes are in base64 there."""
    import msgspec

    embedding = msgspec.defstruct("Embedding", [("embedding", bytes | list[float]), ("index", int | None, None)])
    answer = msgspec.defstruct("Answer", [("data", GenericAlias(list, embedding))])
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(answer)
    return lambda content: decoder.decode(content).data


def row_of(embedding: bytes | list[float]) -> NDArray[np.float32]:
    """A vector from its numbers, or from their bytes in little-endian order."""
    if isinstance(embedding, bytes):
        return np.frombuffer(embedding, "<f4")
    with np.errstate(over="ignore"):
        return np.array(embedding, np.float32)
