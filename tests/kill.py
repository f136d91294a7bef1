"""Kill `stream-pegasos run` at random moments, again and again, and see whether the model is none the worse for it.

    python tests/kill.py --kills 200

One stream of 200,000 messages is read from a file, from Kafka and from Redis, by processes that are killed (SIGKILL): a
quarter of them at a random moment after they start, the others once the file of answers has grown by a random size. The
last one reads to the end. Its checkpoint and its answers have to equal, byte for byte, those of a run nobody disturbed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson
import servers

from stream_pegasos.streams import synthetic

# A checkpoint is due after each batch, so most kills come while one is being written.
OPTIONS = ["--no-follow", "--checkpoint-every", "1", "--max-features", "20000"]
POLL = 0.001  # seconds between two looks at the answers


def records(n: int) -> Iterator[dict[str, object]]:
    for i, (text, label) in enumerate(synthetic(n)):
        yield {"id": str(i), "text": text} | ({"label": label} if i % 10 else {})


def write_file(folder: Path, n: int) -> str:
    path = folder / "stream.jsonl"
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records(n)))
    return str(path)


def fill_kafka(port: int, n: int) -> str:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 50})
    for record in records(n):
        while True:
            try:
                producer.produce("stream", orjson.dumps(record), partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return f"kafka://127.0.0.1:{port}/stream?group={{group}}"


def fill_redis(port: int, n: int) -> str:
    from redis import Redis

    with Redis(port=port) as client, client.pipeline(transaction=False) as pipeline:
        for i, record in enumerate(records(n), 1):
            pipeline.xadd("stream", record)
            if i % 1000 == 0:
                pipeline.execute()
        pipeline.execute()
    return f"redis://127.0.0.1:{port}/stream?group={{group}}"


def start(address: str, checkpoint: Path, answers: Path) -> subprocess.Popen[bytes]:
    files = ["--checkpoint", str(checkpoint), "--output", str(answers)]
    command = [sys.executable, "-m", "stream_pegasos", "run", address, *files, *OPTIONS]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def finish(address: str, checkpoint: Path, answers: Path) -> tuple[bytes, bytes]:
    process = start(address, checkpoint, answers)
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode())
    return checkpoint.read_bytes(), answers.read_bytes()


def kill_one(address: str, checkpoint: Path, answers: Path, rng: random.Random, most: int) -> bool:
    """Whether it was killed before it came to its end."""
    process = start(address, checkpoint, answers)
    end = time.monotonic() + (rng.uniform(0.0, 1.5) if rng.random() < 0.25 else 60.0)
    size = size_of(answers) + rng.randrange(most)
    while process.poll() is None and size_of(answers) < size and time.monotonic() < end:
        time.sleep(POLL)
    time.sleep(rng.uniform(0.0, 0.02))
    process.kill()
    process.communicate()
    return process.returncode != 0


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def disturb(name: str, address: str, folder: Path, kills: int, n: int, seed: int) -> bool:
    # A group of its own, or the second reader would begin where the first one ended.
    answers = folder / f"{name}.csv"  # whose name is in the checkpoint
    reference = finish(address.format(group="undisturbed"), folder / f"{name}-undisturbed", answers)
    answers.unlink()
    address = address.format(group="killed")
    rng = random.Random(seed)
    checkpoint = folder / f"{name}-killed"
    n_killed = 0
    start = time.monotonic()
    while n_killed < kills:
        if not kill_one(address, checkpoint, answers, rng, len(reference[1]) // kills):
            break
        n_killed += 1
    same = finish(address, checkpoint, answers) == reference
    left = sorted(path.name for path in folder.glob("*.tmp"))
    print(
        f"{name}: killed {n_killed} times in {time.monotonic() - start:.0f} s; the final model and the answers "
        f"{'equal those of an undisturbed run, byte for byte' if same else 'DIFFER'}"
        f"{f'; files left: {left}' if left else ''}",
        flush=True,
    )
    return same and n_killed == kills and not left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="for each source")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--source", choices=["file", "kafka", "redis"], action="append")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    fill: dict[str, Callable[[int, int], str]] = {"kafka": fill_kafka, "redis": fill_redis}
    fine = True
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        for source in options.source or ("file", "kafka", "redis"):
            if source == "file":
                address = write_file(folder, options.messages)
            else:
                place = folder / source
                place.mkdir()
                try:
                    server = stack.enter_context(getattr(servers, source)(place))
                except servers.Missing as missing:
                    print(f"{source}: skipped, {missing}")
                    continue
                address = fill[source](server.port, options.messages)
            fine &= disturb(source, address, folder, options.kills, options.messages, options.seed)
    sys.exit(not fine)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
