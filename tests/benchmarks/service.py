"""How fast the service answers, on loopback, with one worker.

    python tests/benchmarks/service.py

Prints predictions a second with one text a request and with batches of 1,000, over 32 connections, and the latency of
single predictions alone and while another client learns without pause. Texts have 100 words.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
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

WORDS_A_TEXT = 100


def texts(n: int, seed: int) -> list[str]:
    """Texts with words as frequent as in a language: the r-th most frequent word by 1/r."""
    rng = np.random.default_rng(seed)
    ranks = np.exp(rng.uniform(0.0, np.log(50_000), (n, WORDS_A_TEXT))).astype(int)
    return [" ".join(f"w{rank:x}" for rank in row) for row in ranks.tolist()]


def labelled(n: int, seed: int) -> list[dict[str, str]]:
    return [{"text": text, "label": "spam" if "w7 " in text else "ham"} for text in texts(n, seed)]


@contextlib.contextmanager
def running(*options: str) -> Iterator[int]:
    """The port of a service that runs meanwhile."""
    command = [sys.executable, "-m", "stream_pegasos", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"listening on http://[^:]*:(\d+)/", line):
                break
        else:
            raise RuntimeError("the service does not start")
        try:
            yield int(found[1])
        finally:
            process.terminate()
            process.stderr.read()


def request(path: str, value: object) -> bytes:
    body = orjson.dumps(value)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def post(port: int, path: str, value: object) -> None:
    headers = {"Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}{path}"
    with urllib.request.urlopen(urllib.request.Request(url, orjson.dumps(value), headers)) as answer:
        answer.read()


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
    seconds: list[float] = []

    async def clients() -> None:
        until = perf_counter() + duration
        shares = [requests[i::connections] or requests for i in range(connections)]
        await asyncio.gather(*(client(port, share, until, seconds) for share in shares))

    start = perf_counter()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(clients())
    return len(seconds) / (perf_counter() - start), seconds


def loop_factory():
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None


def learn_without_pause(port: int, batch: int) -> None:
    bodies = [labelled(batch, seed) for seed in range(10)]
    while True:
        for body in bodies:
            post(port, "/learn", body)


def percentile(seconds: list[float], share: float) -> float:
    return float(np.quantile(seconds, share)) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each measurement lasts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--learn-batch", type=int, default=1_000)
    options = parser.parse_args()
    one = [request("/predict", {"text": text}) for text in texts(2_000, 1)]
    many = [request("/predict", [{"text": text} for text in texts(1_000, seed)]) for seed in range(2, 12)]

    def rounds(port: int, requests: list[bytes]) -> tuple[float, list[float]]:
        results = [load(port, requests, options.connections, options.seconds) for _ in range(options.rounds)]
        return statistics.median(rate for rate, _ in results), [second for _, each in results for second in each]

    with tempfile.TemporaryDirectory() as folder, running("--checkpoint", str(Path(folder) / "model")) as port:
        for seed in range(20):
            post(port, "/learn", labelled(1_000, 100 + seed))
        rate, seconds = rounds(port, one)
        print(f"one text a request: {rate:,.0f} predictions/s, p50 {percentile(seconds, 0.5):.1f} ms, ", end="")
        print(f"p99 {percentile(seconds, 0.99):.1f} ms", flush=True)
        rate, _ = rounds(port, many)
        print(f"1,000 texts a request: {1_000 * rate:,.0f} predictions/s", flush=True)
        learner = multiprocessing.get_context("spawn").Process(
            target=learn_without_pause, args=(port, options.learn_batch), daemon=True
        )
        learner.start()
        try:
            rate, seconds = rounds(port, one)
        finally:
            learner.kill()
            learner.join()
        print(f"one text a request, while another client learns batches of {options.learn_batch:,}: ", end="")
        print(
            f"{rate:,.0f} predictions/s, p50 {percentile(seconds, 0.5):.1f} ms, p99 {percentile(seconds, 0.99):.1f} ms"
        )


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
