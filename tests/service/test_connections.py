"""Clients that keep their connections: each gives way, and the others are answered."""

import json
import os
import re
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress

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
    "answers not read": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, b""),
    "answers not read, and more asked for": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, b"GET / HTTP/1.1\r\n\r\n"),
    "answers not read, half-closed": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, None),
}
FOR_SHORT = """
import sys
from stream_pegasos import TextClassifier
from stream_pegasos.service import Limits, Service, connection, create_app, serve

connection.LINGER = 0.2
limits = Limits(concurrency=3, seconds=float(sys.argv[2]))
service = Service(TextClassifier(), limits=limits, token=sys.argv[1] or None)
serve(create_app(service), "127.0.0.1", 0, limits, lambda url: print("listening on", url, file=sys.stderr, flush=True))
"""


@contextmanager
def strangers(url, n, opening, part):
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
            connections[-1].connect(("127.0.0.1", int(url.rpartition(":")[2])))
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
    served = serve(token, 60.0, command=[sys.executable, "-c", FOR_SHORT])
    headers = {"authorization": f"Bearer {token or 'any'}"}
    for kind, (opening, part) in HOSTILE.items():
        if token or "JSON" not in kind:  # who may learn may keep a connection for the time that a body has
            with strangers(served.url, 4, opening, part):
                wait(lambda: httpx.get(f"{served.url}/model", headers=headers).status_code == 200, 5)


@pytest.mark.skipif(sys.platform != "linux", reason="the files of a process are counted as Linux tells them")
@pytest.mark.parametrize("token", [pytest.param("", marks=pytest.mark.heavy), "secret"])
def test_no_client_keeps_its_connection(serve, token):
    served = serve(token, 0.3, command=[sys.executable, "-c", FOR_SHORT])

    def n_open():
        return len(os.listdir(f"/proc/{served.process.pid}/fd"))

    before, kept = n_open(), []
    for kind, (opening, part) in HOSTILE.items():
        with strangers(served.url, 2, opening, part):
            time.sleep(0.05)  # in which they are accepted
            try:
                wait(lambda: n_open() == before, 7)
            except AssertionError:
                kept.append(kind)
        wait(lambda: n_open() == before)
    assert not kept


@pytest.mark.parametrize(
    ("path", "length", "status"), [("/nothing", 40_000_000, 404), ("/learn", 40_000_000, 413), ("/", 2_000_000, 405)]
)
def test_a_client_that_is_still_sending_reads_its_answer(serve, path, length, status):
    served = serve()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 20) as connection:
        connection.sendall(head.encode() + b" " * 1_000)
        time.sleep(0.1)  # in which it is answered
        connection.sendall(b" " * 1_000_000)
        answer = b""
        while part := connection.recv(10_000):  # up to the end, which comes before that of the body
            answer += part
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"connection: close" in answer.lower()


def test_requests_of_one_connection_are_answered_in_their_order(serve):
    served = serve()
    bodies = [json.dumps({"text": "x" * 1_000 * i, "id": i}) for i in (0, 200, 1, 0, 90)]
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 20) as connection:
        for _ in range(3):
            for body in bodies:
                head = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
            answer = b""
            while answer.count(b'"id":') < len(bodies):
                answer += connection.recv(10_000)
            assert re.findall(rb'"id":(\d+)', answer) == [b"0", b"200", b"1", b"0", b"90"]
            assert b"connection: close" not in answer.lower()


def test_so_many_requests_of_one_connection_wait_and_the_rest_is_not_read(serve):
    """Each that is read is answered, and the last answer says that no other comes."""
    served = serve()
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 20) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1_000)
        answer = b""
        while part := connection.recv(10_000):
            answer += part
    heads = answer.lower().split(b"http/1.1 200 ok\r\n")[1:]
    assert 64 <= len(heads) <= 66
    assert [b"connection: close" in head for head in heads] == [False] * (len(heads) - 1) + [True]


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read as Linux tells it")
def test_a_client_that_sends_without_end_and_reads_nothing_takes_no_memory(serve):
    served = serve()

    def peak():
        with open(f"/proc/{served.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    httpx.get(f"{served.url}/page.js").raise_for_status()
    before = peak()
    with (
        socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 2) as connection,
        suppress(OSError),
    ):
        for _ in range(200):
            connection.sendall(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n" * 2_500)
    assert peak() - before < 30 << 10
