"""A server with OpenAI's POST /v1/chat/completions, which labels by a function of the message."""

import json
import math
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Chat:
    """What the server does, which a test may change at any time. `says` is a function of a message that gives its
    label; `spelt` gives the text of the answer; `tokens` are its tokens, where it tells their probabilities.
    """

    def __init__(
        self, says=lambda text: "spam" if "prize" in text else "ham", knows=("response_format", "json", "logprobs")
    ):
        self.says, self.knows = says, knows
        self.spelt = lambda label: json.dumps({"label": label})
        self.tokens = None  # a function of the label that gives triples of a token, its probability, and the others'
        self.fails = None  # a function of the request that gives a status and a body, or None
        self.asked, self.keys, self.address, self.head = [], [], "", b""
        self.free = threading.Event()  # while it is not set, no answer is given
        self.free.set()

    def texts(self):
        """The messages that were asked about."""
        return [json.loads(request["messages"][-1]["content"])["message"] for request in self.asked]

    def answer(self, request):
        if self.fails is not None and (failure := self.fails(request)) is not None:
            return failure
        if "json" not in self.knows and request.get("response_format", {}).get("type") == "json_schema":
            return 500, {"error": {"message": "response_format.type should be 'text' or 'json_object'"}}
        for unknown in {"response_format", "logprobs", "temperature"} - {*self.knows, "temperature"}:
            if unknown in request:
                return 400, {"error": {"message": f"unknown parameter {unknown}"}}
        label = self.says(json.loads(request["messages"][-1]["content"])["message"])
        choice = {"message": {"role": "assistant", "content": self.spelt(label)}, "finish_reason": "stop"}
        if self.tokens is not None and "logprobs" in request:
            choice["logprobs"] = {
                "content": [
                    {
                        "token": token,
                        "logprob": math.log(p),
                        "top_logprobs": [{"token": t, "logprob": math.log(q)} for t, q in others.items()],
                    }
                    for token, p, others in self.tokens(label)
                ]
            }
        return 200, {"choices": [choice], "usage": {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97}}


@contextmanager
def chat_server(chat, port=0):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chat.asked.append(request)
            chat.keys.append(self.headers.get("Authorization"))
            chat.free.wait(60)
            status, body = chat.answer(request)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.wfile.write(b"HTTP/1.1 %d x\r\n%bContent-Length: %d\r\n\r\n" % (status, chat.head, len(data)) + data)

        def log_message(self, *args):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads, allow_reuse_address = True, True

    with Server(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        chat.address = f"http://127.0.0.1:{server.server_port}/v1/chat/completions#judge"
        try:
            yield chat
        finally:
            chat.free.set()
            server.shutdown()
