"""How fast the service answers, on loopback, with one worker.

Prints predictions a second with one text a request and with batches of 1,000, over 32 connections, and the latency of
single predictions alone and while another client learns without pause. Texts have 100 words.

    python tests/benchmarks/service.py [--connections 32] [--seconds 5] [--rounds 5]
"""

import asyncio
import contextlib
import multiprocessing
import re
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import orjson
from report import arguments_of
from timing import percentiles

BATCH = 1_000


def texts(n: int, seed: int) -> list[str]:
    """Texts with words as frequent as in a language: the r-th most frequent word by 1/r."""
    rng = np.random.default_rng(seed)
    ranks = np.exp(rng.uniform(0.0, np.log(50_000), (n, 100))).astype(int)
    return [" ".join(f"w{rank:x}" for rank in row) for row in ranks.tolist()]


def labelled(seed: int) -> list[dict[str, str]]:
    return [{"text": text, "label": "spam" if "w7 " in text else "ham"} for text in texts(BATCH, seed)]


@contextlib.contextmanager
def running(*options: str, port_after: str = "listening on http://[^:]*") -> Iterator[tuple[int, int]]:
    """The port and the process of a service that runs meanwhile; the port stands behind these words."""
    command = [sys.executable, "-m", "stream_pegasos", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr is not None
        port = 0
        for line in process.stderr:
            if found := re.search(rf"{port_after}:(\d+)", line):
                port = int(found[1])
            if "listening on" in line:
                break
        else:
            raise RuntimeError("the service does not start")
        try:
            yield port, process.pid
        finally:
            process.terminate()
            process.stderr.read()


def request(path: str, value: object) -> bytes:
    body = orjson.dumps(value)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def learn(port: int, messages: list[dict[str, str]]) -> None:
    headers = {"Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}/learn"
    with urllib.request.urlopen(urllib.request.Request(url, orjson.dumps(messages), headers)) as answer:
        answer.read()


def learn_without_pause(port: int) -> None:
    batches = [labelled(seed) for seed in range(10)]
    while True:
        for batch in batches:
            learn(port, batch)


async def client(port: int, requests: list[bytes], until: float, seconds: list[float]) -> None:
    """Send one request after another, and note how long each took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    i = 0
    while perf_counter() < until:
        start = perf_counter()
        writer.write(requests[i % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert head.startswith(b"HTTP/1.1 200") and length, head
        await reader.readexactly(int(length[1]))
        seconds.append(perf_counter() - start)
        i += 1
    writer.close()


def load(port: int, requests: list[bytes], connections: int, duration: float) -> tuple[float, list[float]]:
    """Requests a second, and the seconds that each took."""
    import uvloop  # which Windows has not

    seconds: list[float] = []

    async def clients() -> None:
        until = perf_counter() + duration
        shares = [requests[i::connections] or requests for i in range(connections)]
        await asyncio.gather(*(client(port, share, until, seconds) for share in shares))

    start = perf_counter()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(clients())
    return len(seconds) / (perf_counter() - start), seconds


def main() -> None:
    arguments = arguments_of(__doc__, connections=32, seconds=5.0, rounds=5)
    one = [request("/predict", {"text": text}) for text in texts(2_000, 1)]
    many = [request("/predict", [{"text": text} for text in texts(BATCH, seed)]) for seed in range(2, 12)]

    def measure(name: str, port: int, requests: list[bytes], size: int = 1) -> None:
        results = [load(port, requests, arguments.connections, arguments.seconds) for _ in range(arguments.rounds)]
        rate = size * statistics.median(rate for rate, _ in results)
        p50, p99 = percentiles([second for _, each in results for second in each], 1e3)
        print(f"{name}: {rate:,.0f} predictions/s, p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)

    with tempfile.TemporaryDirectory() as folder, running("--checkpoint", str(Path(folder) / "model")) as (port, _):
        for seed in range(20):
            learn(port, labelled(100 + seed))
        measure("one text a request", port, one)
        measure(f"{BATCH:,} texts a request", port, many, BATCH)
        learner = multiprocessing.get_context("spawn").Process(target=learn_without_pause, args=(port,), daemon=True)
        learner.start()
        try:
            measure(f"one text a request, while another client learns batches of {BATCH:,}", port, one)
        finally:
            learner.kill()
            learner.join()


if __name__ == "__main__":
    main()
