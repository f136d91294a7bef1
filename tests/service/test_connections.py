"""Clients that keep their connections: each gives way, and the others are answered."""

import json
import os
import re
import socket
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
from serving import wait

httpx = pytest.importorskip("httpx")

# What a client sends at first, and then again and again; `None` where it says that nothing more comes.
HOSTILE = {
    "nothing": (b"", b""),
    "a head that does not end": (b"GET /page.js HTTP/1.1\r\nx: ", b"x"),
    "many heads that do not end": (b"GET /page.js HTTP/1.1\r\n\r\n" * 20 + b"GET / HTTP/1.1\r\nx: ", b"x"),
    "half a head": (b"GET / HTTP/1.1\r\n", None),
    "no next request": (b"GET /healthz HTTP/1.1\r\n\r\n", b""),
    "a body where none is read": (b"GET /healthz HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"x"),
    "a body to an unknown path": (b"POST /nothing HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"x"),
    "a body to a page": (b"POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"x"),
    "a slow body": (b"POST /learn HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"x"),
    "a slow body of JSON": (
        b"POST /learn HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n",
        b"x",
    ),
    "endless chunks": (b"POST /learn HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "endless chunks of JSON": (
        b"POST /learn HTTP/1.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        b"1\r\nx\r\n",
    ),
    "endless chunks where none is read": (b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "endless trailers": (b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
    "an answer in parts, not read": (b"GET /large HTTP/1.1\r\n\r\n", b""),
    "answers not read": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, b""),
    "answers not read, and more asked for": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, b"GET / HTTP/1.1\r\n\r\n"),
    "answers not read, half-closed": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, None),
}
FOR_SHORT = """
import sys
from starlette.responses import StreamingResponse
from stream_pegasos import TextClassifier
from stream_pegasos.service import Limits, Service, app, connection, create_app, serve, server


class Impatient(connection.Connection):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.timeout_keep_alive = 0.2  # seconds between two requests


server.Connection = Impatient
connection.LINGER = 0.2
limits = Limits(concurrency=int(sys.argv[3]), seconds=float(sys.argv[2]))
service = create_app(Service(TextClassifier(), limits=limits, token=sys.argv[1] or None))
service.add_route("/large", lambda request: StreamingResponse(iter([b"x" * 1_000_000] * 30)))
app.OPEN_PATHS.add("/large")
serve(service, "127.0.0.1", 0, limits, lambda url: print("listening on", url, file=sys.stderr, flush=True))
"""


@contextmanager
def strangers(port, n, opening, part):
    """Clients that send this, and read nothing."""
    connections, over = [], threading.Event()

    def go_on():
        while not over.wait(0.02):
            for connection in connections:
                with suppress(OSError):
                    connection.send(part)

    thread = threading.Thread(target=go_on)
    try:
        for _ in range(n):
            connections.append(socket.socket())
            connections[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connections[-1].connect(("127.0.0.1", port))
            connections[-1].sendall(opening)
            connections[-1].setblocking(False)
            if part is None:
                connections[-1].shutdown(socket.SHUT_WR)
        if part:
            thread.start()
        yield
    finally:
        over.set()
        if part:
            thread.join()
        for connection in connections:
            connection.close()


@pytest.mark.parametrize("token", ["", "secret"])
def test_no_client_keeps_others_off(serve, token):
    """However long it may wait."""
    served = serve(token, 60.0, 3, command=[sys.executable, "-c", FOR_SHORT])
    headers = {"authorization": f"Bearer {token or 'any'}"}
    for kind, (opening, part) in HOSTILE.items():
        if token or "JSON" not in kind:  # who may learn may keep a connection for the time that a body has
            with strangers(served.port, 4, opening, part):
                wait(lambda: httpx.get(f"{served.url}/model", headers=headers).status_code == 200, 5)


@pytest.mark.skipif(sys.platform != "linux", reason="the files of a process are counted as Linux tells them")
@pytest.mark.parametrize("token", [pytest.param("", marks=pytest.mark.heavy), "secret"])
def test_no_client_keeps_its_connection(serve, token):
    """All kinds at the same time."""
    served = serve(token, 0.5, 100, command=[sys.executable, "-c", FOR_SHORT])

    def n_open():
        return len(os.listdir(f"/proc/{served.process.pid}/fd"))

    before = n_open()
    with ExitStack() as stack:
        for opening, part in HOSTILE.values():
            stack.enter_context(strangers(served.port, 2, opening, part))
        wait(lambda: n_open() > before)
        wait(lambda: n_open() == before)


def answer_to(connection):
    """All that comes up to the end."""
    return b"".join(iter(lambda: connection.recv(10_000), b""))


def test_what_comes_on_one_connection(serve):
    served = serve()

    def connect():
        return socket.create_connection(("127.0.0.1", served.port), 20)

    # Requests are answered in their order.
    bodies = [json.dumps({"text": "x" * 1_000 * i, "id": i}) for i in (0, 200, 1, 0, 90)]
    with connect() as connection:
        for body in bodies:
            head = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        answer = b""
        while answer.count(b'"id":') < len(bodies):
            answer += connection.recv(10_000)
    assert re.findall(rb'"id":(\d+)', answer) == [b"0", b"200", b"1", b"0", b"90"]
    assert b"connection: close" not in answer.lower()
    # Nothing more is read as long as some wait.
    with connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: %b\r\n\r\n" % (b"x" * 16_000) * 200)
        answer = b""
        while answer.count(b"200 OK") < 200:
            answer += (part := connection.recv(10_000))
            assert part
    assert b"connection: close" not in answer.lower()
    # So many wait and the rest is not read: the last answer says that no other comes.
    with connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1_000)
        heads = answer_to(connection).lower().split(b"http/1.1 200 ok\r\n")[1:]
    assert 64 <= len(heads) <= 66
    assert [b"connection: close" in head for head in heads] == [False] * (len(heads) - 1) + [True]
    # A client that is still sending reads its answer.
    for path, length, status in (("/nothing", 40_000_000, 404), ("/learn", 40_000_000, 413), ("/", 2_000_000, 405)):
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        with connect() as connection:
            connection.sendall(f"{head}content-length: {length}\r\n\r\n{' ' * 1_000}".encode())
            time.sleep(0.05)  # in which it is answered
            connection.sendall(b" " * 1_000_000)
            answer = answer_to(connection)  # whose end comes before that of the body
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()) and b"connection: close" in answer.lower()


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read as Linux tells it")
def test_a_client_that_sends_without_end_and_reads_nothing_takes_no_memory(serve):
    served = serve()

    def peak():
        with open(f"/proc/{served.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    httpx.get(f"{served.url}/page.js").raise_for_status()
    before = peak()
    with socket.create_connection(("127.0.0.1", served.port), 2) as connection, suppress(OSError):
        for _ in range(200):
            connection.sendall(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n" * 2_500)
    assert peak() - before < 30 << 10
