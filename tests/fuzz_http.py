"""A target of the fuzzer: requests, to the service."""

import asyncio
import json
import os

from fuzz_readers import STREAM_TOKENS
from fuzz_shared import below, mutated, one_byte, one_character, state_of
from kinds import several_classes

import stream_pegasos
from stream_pegasos import AdaptiveClassifier, TextClassifier

BODIES = [
    b'{"text": "win a free prize"}',
    b'{"text": "win a free prize", "label": "spam", "weight": 2.0, "id": "m1"}',
    b'[{"text": "lunch at noon?", "label": "ham"}, {"text": "cheap pills", "label": "spam", "id": 7}]',
    b'[{"text": "\\ud83d lone"}, {"text": "caf\xc3\xa9"}]',
    b'{"text": "\\ud83d", "label": "\\udc00"}',
    b'[{"text": "my card", "label": "lost"}, {"text": "a fee", "label": true}, {"text": "pin", "label": 3}]',
    b'{"text": "wheat", "label": ["grain", "wheat"]}',
    b"[]",
]
BODY_TOKENS = [*STREAM_TOKENS, b'"label":', b'"weight":', b'"text":', b'"id":', b'{"text":"x"},' * 20, b"a" * 2000]
BODY_TOKENS += [
    b'"label":["a"]',
    b'"label":"c"',
    b"NaN",
    b"Infinity",
    b'{"text":"x","label":"ham"}',
    b'"\\ud800"',
    b"9" * 5000,
]
PATHS = [
    "/predict",
    "/learn",
    "/explain",
    "/model",
    "/monitor",
    "/classes",
    "/words",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/",
    "/page.js",
]
PATH_TOKENS = ["/", "//", "..", "%00", "\x00", "é", "?", ";", " ", "\n"]
HEADERS = [
    (b"content-type", b"application/json"),
    (b"content-type", b"text/plain"),
    (b"content-length", b"5"),
    (b"content-length", b"-1"),
    (b"content-length", b"9" * 30),
    (b"content-length", b"9" * 5000),
    (b"content-length", b"\xb2"),
    (b"transfer-encoding", b"chunked"),
    (b"authorization", b"Bearer wrong"),
    (b"authorization", b"\xff\x00"),
    (b"host", b"evil.example:99999"),
    (b"host", b"\xff[:"),
    (b"host", b""),
    (b"cookie", b"a=b" * 100),
    (b"accept-encoding", b"gzip;q=nan"),
    (b"range", b"bytes=0-1,5-"),
]
METHODS = ["POST"] * 12 + ["GET"] * 4 + ["HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "post", "X\x00"]
TOKEN = "let me in"


def request(random):
    """Method, path, query, headers, the parts of the body, and how it ends."""
    body = random.choice(BODIES)
    if random.random() < 0.8:
        body = mutated(random, body, BODIES, BODY_TOKENS, one_byte)
    path = random.choice(PATHS[:3]) if random.random() < 0.8 else random.choice(PATHS)
    if random.random() < 0.05:
        path = "/" + mutated(random, path, PATHS, PATH_TOKENS, one_character)
    headers = [] if random.random() < 0.05 else [HEADERS[0]]
    if random.random() < 0.9:
        headers.append((b"authorization", b"Bearer " + TOKEN.encode()))
    if random.random() < 0.5:
        headers.append((b"host", b"localhost"))
    for _ in range(below(random, 3) if random.random() < 0.3 else 0):
        name, value = random.choice(HEADERS)
        if random.random() < 0.3:
            value = mutated(random, value, [value], STREAM_TOKENS, one_byte)
        headers.insert(below(random, len(headers) + 1), (name, value))
    parts = [body]
    while len(parts) < 5 and random.random() < 0.3:
        i = below(random, len(parts[-1]) + 1)
        parts[-1:] = [parts[-1][:i], parts[-1][i:]]
    end = random.choices(["whole", "disconnect", "stall"], [0.95, 0.045, 0.005])[0]
    queries = [
        b"a=b",
        b"label=ham",
        b'label="ham"',
        b"search=a&limit=5",
        b"limit=9999999999999999999999",
        b"label=%ff%00",
    ]
    query = mutated(random, random.choice(queries), queries, STREAM_TOKENS, one_byte) if random.random() < 0.2 else b""
    return random.choice(METHODS), path, query, headers, parts, end


async def answer_to(app, one):
    """What the application answers: status, headers and body; no status where the client is gone."""
    method, path, query, headers, parts, end = one
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 4321),
        "server": ("127.0.0.1", 8000),
    }
    events = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if end == "whole":
        events[-1]["more_body"] = False
    else:
        del events[-1]
    events.reverse()
    sent = []

    async def receive():
        if events:
            return events.pop()
        if end == "stall":
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    assert sent and sent[0]["type"] == "http.response.start"
    assert all(message["type"] == "http.response.body" for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


async def check_request(app, service, one):
    """The answer is a success or names the client's fault, in one line of JSON; then the model is as it was before."""
    before = state_of(service.model)
    status, headers, body = await answer_to(app, one)
    assert 200 <= status < 300 or 400 <= status < 500 or status == 503, (status, body)
    is_json = headers.get(b"content-type") == b"application/json"
    content = json.loads(body, parse_constant=refuse_constant) if is_json else None
    if status >= 400:
        assert body == b"Invalid host header" or type(content["detail"]) is str
        assert b"\n" not in body
        for secret in (b"Traceback", b'File "', os.path.dirname(stream_pegasos.__file__).encode(), TOKEN.encode()):
            assert secret not in body
    if status >= 400 or one[1] != "/learn":
        assert state_of(service.model) == before


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


class HttpTarget:
    """Requests to the service, over ASGI."""

    share, size = 2, 200

    def block(self, random):
        return [request(random) for _ in range(self.size)]

    def check(self, inputs, random, at):
        from stream_pegasos.service import Limits, Service, create_app

        limits = Limits(body=4000, text=1000, batch=20, seconds=0.01)
        two = TextClassifier(classifier=AdaptiveClassifier(max_features=200))
        model = random.choice([two, several_classes()])
        service = Service(model, limits=limits, token=random.choice([None, TOKEN]))
        app = create_app(service, random.choice([("*",), ("localhost", "127.0.0.1")]))

        async def check_all():
            for i, one in enumerate(inputs):
                at(i)
                await check_request(app, service, one)

        asyncio.run(check_all())
