"""The memory of a connection is bounded, whatever is sent on it, and whether the answers are read or not."""

import itertools
import re
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import COMMAND

from stream_pegasos.runtime.limits import LARGEST_HEAD

GET = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
CHUNK = b'e\r\n{"text":"win"}\r\n'
STREAM = b"\r\n" + CHUNK + b"0\r\n"
MB = 1 << 20
# What comes first, and then again and again.
ENDLESS = {
    "header": (GET + b"x: ", b"y" * 8191),
    "headers": (GET, b"x: y\r\n" * 1000),
    "empty headers": (GET, b"a:\r\n" * 2000),
    "name of a header": (GET, b"y" * 8191),
    "address": (b"GET /", b"y" * 8191),
    "method": (b"", b"GET" * 1000),
    "lines before a request": (b"", b"\r\n" * 4096),
    "trailers": (CHUNKED + CHUNK + b"0\r\n", b"x: y\r\n" * 1000),
    "trailer": (CHUNKED + CHUNK + b"0\r\nx: ", b"y" * 8191),
    "extension of a chunk": (CHUNKED + b"e;x=", b"y" * 8191),
    "head behind another request": (GET + b"\r\n" + GET + b"x: ", b"y" * 8191),
    "trailers behind an early answer": (
        CHUNKED.replace(b"/predict", b"/nowhere") + CHUNK + b"0\r\n",
        b"x: y\r\n" * 1000,
    ),
}
# The statuses of the answers, if they are not this one.
STATUSES = {
    "method": [b"400"],
    "head behind another request": [b"200", b"431"],
    "lines before a request": [],
}
UNREAD = {
    "requests": (b"", (GET + b"\r\n") * 300),
    "small requests": (b"", b"GET / HTTP/1.1\r\n\r\n" * 300),
    "large answers": (b"", (GET.replace(b"healthz", b"openapi.json") + b"\r\n") * 300),
    "bodies": (b"", (POST + b'content-length: 14\r\n\r\n{"text":"win"}') * 300),
    "chunked bodies": (b"", (CHUNKED + CHUNK + b"0\r\nx: y\r\n\r\n") * 300),
    "upgrades": (b"", (GET + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n") * 300),
}
REQUESTS = {
    GET + b"\r\n": 200,
    GET.replace(b"healthz", b"nowhere") + b"\r\n": 404,
    POST + b'content-length: 14\r\n\r\n{"text":"win"}': 200,
    POST + b'content-length: 9011\r\n\r\n{"text":"' + b"win" * 3000 + b'"}': 200,
    CHUNKED + CHUNK + b"0\r\nx: y\r\n\r\n": 200,
    CHUNKED + CHUNK.replace(b"win", b"w\xffn") + b"0\r\n\r\n": 422,
}


def resident(process):
    """The memory of a process, in bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8"))[1]) << 10


def send(port, first, again, most, reads):
    """Send so many bytes, or what is taken until it stalls; what was answered, if the client `reads`."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.settimeout(0.5 if not reads else 20)
        n = 0
        with suppress(OSError):
            for part in itertools.chain([first], itertools.repeat(again)):
                if n >= most:
                    break
                connection.sendall(part)
                n += len(part)
        answer = b""
        with suppress(OSError):
            while reads and (part := connection.recv(MB)):
                answer += part
        return answer


@pytest.fixture(scope="module")
def served():
    from serving import Served

    served = Served(command=COMMAND)
    yield served
    served.kill()


def check(served, first, again, most, reads):
    before = resident(served.process)
    answer = send(served.port, first, again, most, reads)
    assert resident(served.process) - before < 12 * MB
    assert served.client.get("/healthz").status_code == 200
    return answer


sized = pytest.mark.parametrize("most", [12 * MB, pytest.param(200 * MB, marks=pytest.mark.heavy)])
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is not told here")


@sized
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_head_that_does_not_end_is_refused(served, kind, most):
    answer = check(served, *ENDLESS[kind], most, reads=kind != "lines before a request")  # which are kept nowhere
    found = re.findall(rb"HTTP/1.1 (\d+)", answer)
    assert found == STATUSES.get(kind, [b"431"]) or (kind == "trailers behind an early answer" and found == [b"404"])


@sized
@pytest.mark.parametrize("kind", UNREAD)
def test_requests_whose_answers_are_not_read_wait(served, kind, most):
    check(served, *UNREAD[kind], most, reads=False)


def statuses(port, parts):
    """Those of the answers to what is sent in these parts; the last request closes the connection."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        for part in parts:
            connection.sendall(part)
        answer = b"".join(iter(lambda: connection.recv(MB), b""))
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", answer)]


@settings(max_examples=20)
@given(st.lists(st.sampled_from([*REQUESTS]), max_size=40), st.lists(st.integers(0, 20_000), max_size=8), st.booleans())
def test_each_request_is_answered_in_order_however_it_comes(served, requests, cuts, ends_badly):
    last = b"x" * 99 if ends_badly else GET + b"connection: close\r\n\r\n"
    sent = b"".join(requests) + last
    ends = sorted({0, *(cut for cut in cuts if cut < len(sent)), len(sent)})
    found = statuses(served.port, [sent[begin:end] for begin, end in itertools.pairwise(ends)])
    expected = [*(REQUESTS[request] for request in requests), 400 if ends_badly else 200]
    # What is no request ends the connection at once, as the server has it, whether earlier ones are answered or not.
    assert found == expected or (ends_badly and found[-1] == 400 and found[:-1] == expected[: len(found) - 1])


@pytest.mark.parametrize(("size", "status"), [(LARGEST_HEAD, 200), (LARGEST_HEAD + 1, 431)])
def test_a_head_has_so_many_bytes(served, size, status):
    end = b"\r\nconnection: close\r\n\r\n"
    head = GET + b"x: "
    assert statuses(served.port, [head + b"y" * (size - len(head) - len(end)) + end]) == [status]
    assert status == 200 or 'refused_requests_total{status="431"}' in served.client.get("/metrics").text
