"""A server with OpenAI's POST /v1/embeddings, whose vectors count letters."""

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


def letters(text, n=26):
    """How often each letter is in a text; further numbers are made of these."""
    counts = [text.lower().count(chr(97 + i)) for i in range(26)]
    return [counts[i % 26] + 0.25 * (i // 26) for i in range(n)]


class Embeddings:
    """What the server does, which a test may change at any time."""

    def __init__(self, n=26, knows=("encoding_format", "dimensions")):
        self.n, self.knows = n, knows
        self.asked, self.keys, self.address = [], [], ""
        self.head = b""  # more lines of the head of each answer
        self.is_gone = False
        self.fails = None  # a function of the request that gives a status and a body, or None

    def answer(self, request):
        if self.fails is not None and (failure := self.fails(request)) is not None:
            return failure
        for unknown in {"encoding_format", "dimensions"} - {*self.knows}:
            if unknown in request:
                return 400, {"error": {"message": f"unknown parameter {unknown}"}}
        n = min(self.n, request.get("dimensions", self.n))
        rows = [letters(text, n) for text in request["input"]]
        if request.get("encoding_format") == "base64":
            rows = [base64.b64encode(np.array(row, "<f4").tobytes()).decode() for row in rows]
        data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
        return 200, {"data": data[::-1], "model": request.get("model")}  # in any order


@contextmanager
def embedding_server(embeddings, port=0):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            if embeddings.is_gone:
                self.close_connection = True
                return
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            embeddings.asked.append(request)
            embeddings.keys.append(self.headers.get("Authorization"))
            status, body = embeddings.answer(request)
            data = json.dumps(body).encode() if not isinstance(body, bytes) else body
            self.wfile.write(
                b"HTTP/1.1 %d x\r\n%bContent-Length: %d\r\n\r\n" % (status, embeddings.head, len(data)) + data
            )

        def log_message(self, *args):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads, allow_reuse_address = True, True

    with Server(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        embeddings.address = f"http://127.0.0.1:{server.server_port}/v1/embeddings#letters"
        try:
            yield embeddings
        finally:
            embeddings.is_gone = True  # also for connections that are open
            server.shutdown()
