"""Kill `stream-pegasos run`, `serve` and `imap` at random moments, again and again, and see whether the model is none
the worse for it.

    python tests/kill.py --kills 200

One stream of 200,000 messages is read from a file, from Kafka and from Redis, by processes that are killed (SIGKILL): a
quarter of them at a random moment after they start, the others once the file of answers has grown by a random size. The
first fifth is killed in the first moments of its checkpoint, long before the next one is due. The last one reads to the
end. Its checkpoint and its answers have to equal, byte for byte, those of a run nobody disturbed.

The service is killed a tenth as often, while three clients send it messages by POST /learn, each again until it is
answered. What was answered has to be there each time, and the final model has to equal one that learned each message
once, in the order of the service.

The filter of a mailbox is killed as often as the service, while it learns the mails of two folders and moves spam out
of a third. In the end each mail is there once, all spam is moved and no other mail, and the final model has to equal
one that learned each mail of the two folders once, in the order of their arrival.

With --share alone, three runs that share a topic are disturbed: see kill_shared.py.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import kill_shared
import orjson
import servers

from stream_pegasos import AdaptiveClassifier, MailFeatures, TextClassifier, load
from stream_pegasos.streams import synthetic

# A checkpoint is due after each batch, so most kills come while one is being written.
OPTIONS = ["--no-follow"]
OFTEN = ["--checkpoint-every", "1"]
SERVERS = {"kafka": "kafka", "redis": "redis", "mailbox": "dovecot"}
SOURCES = ("file", "kafka", "redis", "service", "mailbox")
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


def start(address: str, checkpoint: Path, answers: Path, *options: str) -> subprocess.Popen[bytes]:
    new = answers.with_name("new")  # the same each time
    TextClassifier(classifier=AdaptiveClassifier(max_features=20_000)).save(new)
    files = ["--checkpoint", str(checkpoint), "--output", str(answers)]
    command = [sys.executable, "-m", "stream_pegasos", "run", str(new), address, *files, *OPTIONS, *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def finish(address: str, checkpoint: Path, answers: Path) -> tuple[bytes, bytes]:
    process = start(address, checkpoint, answers, *OFTEN)
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode())
    return checkpoint.read_bytes(), answers.read_bytes()


def kill_one(address: str, checkpoint: Path, answers: Path, rng: random.Random, most: int, *options: str) -> bool:
    """Whether it was killed before it came to its end."""
    process = start(address, checkpoint, answers, *options)
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
        options = [] if n_killed < kills // 5 else OFTEN
        if not kill_one(address, checkpoint, answers, rng, len(reference[1]) // kills, *options):
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


class Clients:
    """Three clients of the service; each sends its share of the messages, in requests of 1 to 30, wherever it is."""

    def __init__(self, messages: list[dict[str, object]], seed: int) -> None:
        self.port: int | None = None
        self.answered: list[object] = []
        self._threads = [
            threading.Thread(target=self._send, args=(messages[i::3], random.Random(seed + i)), daemon=True)
            for i in range(3)
        ]
        for thread in self._threads:
            thread.start()

    def are_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def _send(self, messages: list[dict[str, object]], rng: random.Random) -> None:
        while messages:
            n = rng.randint(1, 30)
            try:
                ask(self.port, "/learn", messages[:n])
            except HTTPError:
                raise
            except (OSError, HTTPException):  # no service, or none any more
                time.sleep(0.01)
                continue
            self.answered += [message["id"] for message in messages[:n]]
            messages = messages[n:]


def ask(port: int | None, path: str, value: object = None) -> Any:
    request = Request(f"http://127.0.0.1:{port}{path}", value and orjson.dumps(value))
    request.add_header("content-type", "application/json")
    with urlopen(request, timeout=120) as answer:
        return orjson.loads(answer.read())


def serve(checkpoint: Path) -> tuple[subprocess.Popen[bytes], int]:
    options = ["--port", "0", "--checkpoint", str(checkpoint), "--checkpoint-every", "500"]
    command = [sys.executable, "-m", "stream_pegasos", "serve", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    for line in process.stderr:
        if b"listening on " in line:
            return process, int(line.rsplit(b":", 1)[1].strip(b"/\n"))
    raise RuntimeError("the service does not start")


def disturb_service(folder: Path, kills: int, n: int, seed: int) -> bool:
    messages = {
        record["id"]: {"label": "ham", **record} for record in records(min(n, 100_000))
    }  # ids are kept of so many
    checkpoint, rng = folder / "service", random.Random(seed)
    clients, begin = Clients([*messages.values()], seed), time.monotonic()
    n_lost = n_killed = 0
    while True:
        process, port = serve(checkpoint)
        told = [*clients.answered]
        ids = ask(port, "/learned?limit=100000")["ids"]
        n_lost += len({*told} - {*ids})
        clients.port = port
        if n_killed == kills:
            break
        due = len(clients.answered) + rng.randrange(1, max(2, n // (kills + 1)))
        while len(clients.answered) < due and not clients.are_done():
            time.sleep(0.001)
        if clients.are_done():
            break
        time.sleep(rng.uniform(0.0, 0.01))
        process.kill()
        process.communicate()
        n_killed += 1
    while not clients.are_done():
        time.sleep(0.01)
    ids = ask(port, "/learned?limit=100000")["ids"]
    process.terminate()
    process.communicate()
    model, alone = load(checkpoint), TextClassifier()
    alone.learn_many([messages[id]["text"] for id in ids], [messages[id]["label"] for id in ids])
    model.save(folder / "found")
    alone.save(folder / "wanted")
    same = (folder / "found").read_bytes() == (folder / "wanted").read_bytes() and sorted(ids) == sorted(messages)
    print(
        f"service: killed {n_killed} times in {time.monotonic() - begin:.0f} s; {n_lost} messages that were answered "
        f"were lost; the final model {'has learned each message once' if same else 'DIFFERS'}",
        flush=True,
    )
    return same and not n_lost and n_killed == kills


def mail(number: int, kind: str) -> bytes:
    head = f"Message-ID: <{number}@example.org>\nFrom: {kind}@example.org\nSubject: {SUBJECTS[kind]} {number}"
    return f"{head}\n\nText of {kind}.\n".encode()


SUBJECTS = {"spam": "A prize for you", "ham": "Lunch at noon"}


def disturb_mailbox(server: Any, folder: Path, kills: int, n: int, seed: int) -> bool:
    rng, n, begin = random.Random(seed), min(n, 10_000), time.monotonic()
    alone = TextClassifier(MailFeatures())
    for number in range(60):
        for kind in SUBJECTS:
            alone.learn_one(mail(-1 - number, kind), kind)
    path = folder / "filter"
    alone.save(path)
    for offset, (kind, name) in enumerate((("spam", "Junk"), ("ham", "Archive"))):
        mails = [mail(2 * i + offset, kind) for i in range(n // 2)]
        server.deliver("eve", mails, name, seconds=1.6e9 + 0.5 * offset)  # so that they came in turn
    for i in range(n):
        alone.learn_one(mail(i, ("spam", "ham")[i % 2]), ("spam", "ham")[i % 2])
    new = [mail(n + i, ("spam", "ham")[i % 3 > 0]) for i in range(n // 10)]
    (folder / "password").write_text("secret-eve\n", encoding="utf-8")
    options = ["--host", f"127.0.0.1:{server.port}", "--user", "eve", str(path)]
    options += ["--password-file", str(folder / "password")]
    os.environ["SSL_CERT_FILE"] = str(server.folder / "cert.pem")
    command = [sys.executable, "-m", "stream_pegasos", "imap", *options, "--junk", "Caught"]
    subprocess.run([*command, "--once"], check=True, stdout=subprocess.DEVNULL)  # mails that come from now on are new
    command += ["--spam", "Junk", "--ham", "Archive"]
    n_killed = 0
    while n_killed < kills:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        server.deliver("eve", new[n_killed * len(new) // kills : (n_killed + 1) * len(new) // kills])
        time.sleep(rng.uniform(0.3, 3.0))
        process.kill()
        process.communicate()
        n_killed += 1
    subprocess.run([*command, "--once"], check=True, stdout=subprocess.DEVNULL)
    left, caught = server.mails("eve"), server.mails("eve", "Caught")
    once = sorted([*left, *caught]) == sorted(new) and all(b"Lunch" in each for each in left)
    once &= all(b"A prize" in each for each in caught)
    load(path).save(folder / "found")
    alone.save(folder / "wanted")
    same = (folder / "found").read_bytes() == (folder / "wanted").read_bytes()
    print(
        f"mailbox: killed {n_killed} times in {time.monotonic() - begin:.0f} s; {len(caught)} mails were moved, "
        f"{'each once' if once else 'NOT EACH ONCE'}; the final model "
        f"{f'has learned each of {n:,} mails once' if same else 'DIFFERS'}",
        flush=True,
    )
    return same and once


def share(folder: Path, kills: int, n: int, seed: int) -> bool:
    fine = True
    place = folder / "kafka"
    place.mkdir()
    try:
        with servers.kafka(place) as server:
            fine = kill_shared.compare(server.port, folder, records(3 * n))
    except servers.Missing as missing:
        print(f"share: not beside a single run, {missing}")
    return kill_shared.disturb_shared(folder, records(n), kills, seed) and fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="for each source")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--source", choices=SOURCES, action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", action="store_true", help="three runs that share a topic, killed a tenth as often")
    options = parser.parse_args()
    fill: dict[str, Callable[[int, int], str]] = {"kafka": fill_kafka, "redis": fill_redis}
    fine = True
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        if options.share:
            sys.exit(not share(folder, -(-options.kills // 10), options.messages, options.seed))
        for source in options.source or SOURCES:
            if source == "service":
                fine &= disturb_service(folder, -(-options.kills // 10), options.messages, options.seed)
                continue
            if source == "file":
                address = write_file(folder, options.messages)
            else:
                place = folder / source
                place.mkdir()
                try:
                    server = stack.enter_context(getattr(servers, SERVERS[source])(place))
                except servers.Missing as missing:
                    print(f"{source}: skipped, {missing}")
                    continue
                if source == "mailbox":
                    fine &= disturb_mailbox(server, folder, -(-options.kills // 10), options.messages, options.seed)
                    continue
                address = fill[source](server.port, options.messages)
            fine &= disturb(source, address, folder, options.kills, options.messages, options.seed)
    sys.exit(not fine)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
