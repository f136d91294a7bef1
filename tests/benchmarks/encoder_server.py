"""What it costs that an encoder is behind a URL: messages a second beside the same encoder in the process.

The server is a stand-in that knows the vector of each text beforehand and answers at once, so that all that is measured
is the way to it and back. Each message is predicted, then learned.

    python tests/benchmarks/encoder_server.py [--dimensions N] [--runs N] [--stream FILE] [--ordered] [--limit N]
"""

import asyncio
import base64
import multiprocessing
import zlib
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from typing import Any

import corpora
import numpy as np
import orjson
import uvicorn
from corpora import Corpus
from report import Table, arguments_of
from timing import in_turn

from stream_pegasos import TextClassifier, TextFeatures, prequential
from stream_pegasos.features.encoder_servers import EmbeddingServer
from stream_pegasos.features.encoders import LONGEST, TextEncoder


def main() -> None:
    arguments = arguments_of(__doc__, dimensions=384, runs=7, **corpora.OPTIONS)
    table = Table("messages/s", "in the process", "behind a URL", "ratio")
    for corpus in corpora.chosen(arguments):
        if corpus.kind != "labels" and isinstance(corpus.texts[0], str):
            table.row(corpus.name, *cells(corpus, arguments.dimensions, arguments.runs))


def cells(corpus: Corpus, n: int, runs: int) -> list[str]:
    known = {text: vector(text, n) for text in {text[:LONGEST] for text in corpus.texts}}

    def encode(texts: list[str]) -> Any:
        return np.stack([known[text] if text in known else vector(text, n) for text in texts])

    with server(corpus.texts, n) as url:
        client = EmbeddingServer(url)
        works = {
            "here": lambda: learn(corpus, TextEncoder("here", encode)),
            "there": lambda: learn(corpus, TextEncoder("there", client, is_remote=True)),
        }
        took = in_turn(works, runs)
    here, there = (len(corpus.texts) / took[name] for name in works)
    return [f"{here:,.0f}", f"{there:,.0f}", f"{there / here:.2f}"]


def learn(corpus: Corpus, encoder: TextEncoder) -> None:
    prequential(zip(corpus.texts, corpus.labels, strict=True), TextClassifier(TextFeatures(vectors=encoder)))


def vector(text: str, n: int) -> Any:
    return np.random.default_rng(zlib.crc32(text.encode("utf-8", "replace"))).standard_normal(n, np.float32)


@contextmanager
def server(texts: list[str], n: int) -> Any:
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=serve, args=(texts, n, its), daemon=True)
    process.start()
    yield ours.recv()
    process.kill()
    process.join()


def serve(texts: list[str], n: int, tell: Any) -> None:
    known: dict[str, bytes] = {}

    def embedding(text: str) -> bytes:
        if text not in known:
            known[text] = b'"' + base64.b64encode(vector(text, n).tobytes()) + b'"'
        return known[text]

    for text in texts:
        embedding(text[:LONGEST])

    async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part["body"], part["more_body"]
        rows = [
            b'{"object":"embedding","index":%d,"embedding":%b}' % (i, embedding(text))
            for i, text in enumerate(orjson.loads(body)["input"])
        ]
        answer = b'{"object":"list","data":[%b]}' % b",".join(rows)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            port = self.servers[0].sockets[0].getsockname()[1]
            tell.send(f"http://127.0.0.1:{port}/v1/embeddings")

    asyncio.run(Server(uvicorn.Config(app, port=0, lifespan="off", log_level="error", http="httptools")).serve())


if __name__ == "__main__":
    main()
