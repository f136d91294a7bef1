"""Limits on bodies, texts, batches, time and requests at a time."""

import asyncio
import json
import socket
import time
import tracemalloc
from contextlib import ExitStack, suppress

import pytest
from kinds import several_labels
from serving import GOOD, ok, refused, serving, wait

from stream_pegasos import TextClassifier
from stream_pegasos.service import Limits, Service, bodies, create_app, work

httpx = pytest.importorskip("httpx")


def test_limits():
    service = Service(TextClassifier(), limits=Limits(body=1_000, text=100, batch=5))
    with serving(service) as client:
        ok(client.post("/predict", json=[{"text": "x" * 100}] * 5))
        refused(client.post("/predict", json=[{"text": "x"}] * 6), 413, "6 messages; a request may have 5")
        refused(client.post("/learn", json=[GOOD, {**GOOD, "text": "x" * 101}]), 413, "message 1: a text of 101")
        refused(client.post("/predict", json={"text": "x" * 1_000}), 413, "it may have 1,000 bytes")
        in_parts = client.post(
            "/learn", content=iter([b" " * 400] * 3), headers={"content-type": "application/json"}
        )  # with no length told
        refused(in_parts, 413, "too large")
        assert ok(client.get("/monitor"))["n"] == 0


def test_bodies_are_counted_until_they_are_answered():
    service = Service(TextClassifier(), limits=Limits(body=1_000))
    with serving(service) as client:
        ok(client.post("/predict", json={"text": "x" * 900}))
        refused(client.post("/predict", json={"text": 3}), 422, "text")
        in_parts = client.post("/predict", content=iter([b" " * 400] * 3), headers={"content-type": "application/json"})
        refused(in_parts, 413, "too large")
        assert service.bodies.n_bytes == 0
        service.bodies.n_bytes = 3_500
        refused(client.post("/predict", json={"text": "x" * 900}), 503, "too many")
        assert service.bodies.n_bytes == 3_500


def test_a_body_that_does_not_come():
    service = Service(TextClassifier(), limits=Limits(seconds=0.05))

    sent = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/learn",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    asyncio.run(create_app(service)(scope, receive, send))
    assert sent[0]["status"] == 408


def test_too_many_at_a_time(serve):
    """Heads that do not come give way to others; requests at work keep their connections."""
    served = serve("--max-concurrency", 3)
    host, port = served.url.removeprefix("http://").split(":")
    head = b"POST /learn HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n"

    def ask():
        return httpx.get(f"{served.url}/healthz").status_code

    connections = []
    try:
        for _ in range(4):
            connections.append(socket.create_connection((host, int(port)), 20))
            connections[-1].sendall(head)
        assert connections[0].recv(1_000).startswith(b"HTTP/1.1 503")
        assert ask() == 200
        assert connections[1].recv(1_000).startswith(b"HTTP/1.1 503")
        connections.append(socket.create_connection((host, int(port)), 20))
        connections[-1].sendall(head)
        for connection in connections[2:]:
            connection.sendall(b"\r\n")
        wait(lambda: ask() == 503)
        for connection in connections[2:]:
            connection.sendall(b" " * 10)
            assert connection.recv(1_000).startswith(b"HTTP/1.1 422")
        assert ask() == 200
    finally:
        for connection in connections:
            connection.close()


def test_bodies_that_come_slowly_give_way(serve):
    served = serve("--max-concurrency", 3)
    host, port = served.url.removeprefix("http://").split(":")
    head = b"POST /learn HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n"
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((host, int(port)), 20)) for _ in range(3)]
        for connection in slow:
            connection.sendall(head)

        def ask():
            for connection in slow:
                with suppress(OSError):
                    connection.sendall(b" ")
            return httpx.get(f"{served.url}/healthz").status_code

        start = time.monotonic()
        wait(lambda: ask() == 200)
        assert time.monotonic() - start < 10  # of the 30 seconds that a body may take


def test_bodies_that_stop_short_give_way_to_others(monkeypatch):
    """The first that began, once it had its time; nobody else is kept off."""
    monkeypatch.setattr(bodies, "PATIENCE", 0.0)
    service = Service(TextClassifier(), limits=Limits(body=1_000))
    app = create_app(service)
    whole = json.dumps({"text": "x" * 900}).encode()

    async def send(body, statuses):
        """Send this much of a body, and no more."""
        came = iter([{"type": "http.request", "body": body, "more_body": body != whole}])

        async def receive():
            return next(came, None) or await asyncio.Event().wait()

        async def answer(message):
            statuses.append(message.get("status"))

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/predict",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        }
        await app(scope, receive, answer)

    async def all_of_them():
        statuses = [[] for _ in range(6)]
        short = [asyncio.create_task(send(whole[:-1].ljust(999), each)) for each in statuses[:4]]
        while service.bodies.n_bytes < 4 * 999:
            await asyncio.sleep(0)
        for each in statuses[4:]:
            await asyncio.wait_for(send(whole, each), 10)
            assert each[0] == 200
        await short[0]
        assert [each[:1] for each in statuses[:4]] == [[503], [], [], []]
        assert service.bodies.n_bytes == 3 * 999
        for task in short[1:]:
            task.cancel()
        await asyncio.wait(short)

    asyncio.run(all_of_them())
    assert service.bodies.n_bytes == 0


@pytest.mark.parametrize("path", ["/predict", "/learn"])
def test_a_large_answer_is_made_as_the_client_takes_it(path):
    """Others are answered meanwhile, and it never stands in memory as a whole."""
    model = TextClassifier()
    labels = [f"{i}" + "x" * 4_000 for i in range(12)]  # of a model that was trained elsewhere
    model.learn_many([f"word{i}" for i in range(12)], labels)
    app = create_app(Service(model))
    messages = [{"text": f"word{i % 12}", **({} if path == "/predict" else {"label": "new"})} for i in range(2_500)]
    sizes, beside = [], []

    async def answer(path, body, sent):
        scope = {
            "type": "http",
            "method": "POST" if body else "GET",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        }
        asked = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive():
            return next(asked, None) or await asyncio.sleep(60, {"type": "http.disconnect"})

        async def send(message):
            sent(len(message.get("body", b"")))

        await app(scope, receive, send)

    async def both():
        large = asyncio.create_task(answer(path, json.dumps(messages).encode(), sizes.append))
        while not large.done():
            await answer("/healthz", b"", lambda n: beside.append(len(sizes)))
            await asyncio.sleep(0)
        await large

    tracemalloc.start()
    try:
        asyncio.run(both())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 2_500 * 9 * 4_000
    assert max(sizes) < 4 << 20 and peak < 50 << 20
    assert len(set(beside)) > 20


def test_a_model_of_very_many_labels_a_message_answers_fewer_messages_at_a_time(monkeypatch):
    monkeypatch.setattr(work, "MOST_ANSWERED", 30)
    service = Service(several_labels())
    with serving(service) as client:
        ok(client.post("/learn", json=[{"text": "x", "label": ["a", "b", "c"]}] * 10))
        refused(client.post("/learn", json=[{"text": "x", "label": ["d"]}] * 10), 422, "10 messages, each with up to 4")
        refused(client.post("/predict", json=[{"text": "x"}] * 11), 422, "a request may have 10 of these")
        ok(client.post("/predict", json=[{"text": "x"}] * 10))
    assert service.model.n_learned == 10


@pytest.mark.parametrize("label", [2**63, -(2**63) - 1, int("9" * 4_000)])
def test_integers_of_labels_have_64_bits(client, label):
    refused(client.post("/learn", json=[GOOD, {**GOOD, "label": label}]), 422, "1.label: an integer may have 64 bits")
