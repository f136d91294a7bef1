"""Three runs that share a topic, and one that reads all of it: `python tests/kill.py --share`.

First they read the same 600,000 messages undisturbed, which says what three of them take of processor time, beside one,
and how accurate they are: the share of right answers, each given before its label was learned. Then three read messages
as they come, and are killed (SIGKILL) and started again, at once or after others took over their partitions, or they
are stopped (SIGSTOP) for so long that others take these over, and go on. In the end the model of all must have learned
as many messages as there are labels, and the files of answers must have one answer to each message between them.
"""

from __future__ import annotations

import csv
import itertools
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from stream_pegasos import AdaptiveClassifier, TextClassifier
from stream_pegasos.learners.loading import load_with_progress

N_RUNS, N_PARTITIONS = 3, 6
SETTINGS = "session.timeout.ms=6000&heartbeat.interval.ms=1000"  # a dead member is missed soon
LONG = 12.0  # seconds in which partitions change hands
PATIENCE = 300.0  # seconds for the rest
MOST = 150_000  # messages that the broker of the client library keeps


class Topic:
    """A topic, filled with messages in partitions at random; their labels by id."""

    def __init__(self, server: str, n_partitions: int) -> None:
        from confluent_kafka import Producer

        self.server, self.n_partitions = server, n_partitions
        self.labels: dict[str, Any] = {}
        self._rng = random.Random(1)
        self._producer = Producer({"bootstrap.servers": server, "linger.ms": 20, "log_level": 0})

    def put(self, records: Iterable[dict[str, Any]]) -> None:
        for record in records:
            self.labels[record["id"]] = record.get("label")
            while True:
                try:
                    partition = self._rng.randrange(self.n_partitions)
                    self._producer.produce("shared", orjson.dumps(record), partition=partition)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.flush()


@contextmanager
def broker_of_client() -> Iterator[Topic]:
    """A topic of a broker inside the client library. Tansu would wait for ever for a member killed as it joined."""
    from confluent_kafka import Producer

    broker = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    metadata = broker.list_topics("shared", timeout=60)  # which makes it
    [at] = metadata.brokers.values()
    yield Topic(f"{at.host}:{at.port}", len(metadata.topics["shared"].partitions))
    broker.flush()


class Runs:
    """Runs of one group in a folder, each with an output of its own; a single one does not share the topic."""

    def __init__(self, topic: Topic, folder: Path, every: str, n: int = N_RUNS, follow: bool = False) -> None:
        folder.mkdir()
        self.folder, self.topic = folder, topic
        self.outputs = [folder / f"answers{i}.csv" for i in range(n)]
        self.checkpoint = folder / "model.safetensors"
        TextClassifier(classifier=AdaptiveClassifier(max_features=20_000)).save(folder / "new")
        address = f"kafka://{topic.server}/shared?group={folder.name}&{SETTINGS}"
        kept = ["--share", str(folder), "--merge-every", every]
        if n == 1:
            kept = ["--checkpoint", str(self.checkpoint), "--checkpoint-every", every]
        run = [sys.executable, "-m", "stream_pegasos", "run", str(folder / "new"), address, *kept]
        self._commands = [[*run, "--output", str(output)] for output in self.outputs]
        self.processes = [self.start(i, follow) for i in range(n)]

    def start(self, i: int, follow: bool = True) -> subprocess.Popen[bytes]:
        with (self.folder / f"log{i}").open("ab") as log:
            return subprocess.Popen([*self._commands[i], "--follow" if follow else "--no-follow"], stderr=log)

    def disturb(self, i: int, rng: random.Random, put: Any) -> None:
        """Kill or stop a run; messages are `put` for some seconds meanwhile."""
        process = self.processes[i]
        if rng.random() < 0.25:
            process.send_signal(signal.SIGSTOP)
            put(LONG)
            process.send_signal(signal.SIGCONT)
            return
        process.kill()
        process.wait()
        if rng.random() < 0.25:
            put(LONG)
        self.processes[i] = self.start(i)

    def wait(self) -> None:
        for i, process in enumerate(self.processes):
            if process.wait(PATIENCE):
                raise RuntimeError((self.folder / f"log{i}").read_text("utf-8"))

    def finish(self) -> None:
        """Start each once more, to read what is left; those that were killed last cut off their answers."""
        for process in self.processes:
            process.terminate()
        for i, process in enumerate(self.processes):
            process.wait(PATIENCE)
            self.processes[i] = self.start(i, follow=False)
        self.wait()

    def faults(self) -> list[str]:
        labels, found = self.topic.labels, []
        model, progress = load_with_progress(self.checkpoint)
        n = sum(label is not None for label in labels.values())
        if (model.n_learned, progress["n_learned"], progress["n_read"]) != (n, n, len(labels)):
            found.append(f"{model.n_learned:,} of {n:,} messages are learned, {progress['n_read']:,} read")
        answered = Counter(id for id, _ in self.answers())
        if answered != Counter(labels.keys()):
            n_twice = sum(n > 1 for n in answered.values())
            found.append(f"{len(labels.keys() - answered.keys()):,} messages have no answer, {n_twice:,} have several")
        return [f"{self.folder.name}: {fault}" for fault in found]

    def answers(self) -> Iterator[tuple[str, str]]:
        for output in self.outputs:
            with output.open(encoding="utf-8", newline="") as file:
                yield from ((row["id"], row["label"]) for row in csv.DictReader(file))

    def accuracy(self) -> float:
        labels = self.topic.labels
        right = [label == str(labels[id]) for id, label in self.answers() if labels[id] is not None]
        return sum(right) / len(right)


def processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(port: int, folder: Path, records: Iterable[dict[str, Any]]) -> bool:
    """Three undisturbed runs beside one."""
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = Topic(f"127.0.0.1:{port}", N_PARTITIONS)
    admin = AdminClient({"bootstrap.servers": topic.server})
    admin.create_topics([NewTopic("shared", N_PARTITIONS, 1)])["shared"].result(10)
    topic.put(records)
    figures, faults = [], []
    for name, n in (("one", 1), ("three", N_RUNS)):
        before, begin = processor_time(), time.monotonic()
        runs = Runs(topic, folder / name, "10s", n)
        runs.wait()
        figures.append((runs.accuracy(), processor_time() - before, time.monotonic() - begin))
        faults += runs.faults()
    (one, time_of_one, seconds_of_one), (three, time_of_three, seconds_of_three) = figures
    print(
        f"share: of {len(topic.labels):,} messages one run answers {one:.4f} right, three {three:.4f}; processor time "
        f"{time_of_one:.1f} s and {time_of_three:.1f} s, so that three cores are worth "
        f"{3 * time_of_one / time_of_three:.2f}; {seconds_of_one:.1f} s and {seconds_of_three:.1f} s here; "
        f"{'; '.join(faults) or 'each message is learned and answered once'}",
        flush=True,
    )
    return not faults


def disturb_shared(folder: Path, records: Iterable[dict[str, Any]], kills: int, seed: int) -> bool:
    rng, begin = random.Random(seed), time.monotonic()
    rest = [*itertools.islice(records, MOST)]
    a_second = max(1, len(rest) // (8 * kills))
    with broker_of_client() as topic:

        def put(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                n = a_second // 20
                topic.put(rest[:n])
                del rest[:n]
                time.sleep(0.05)

        runs = Runs(topic, folder / "killed", "1s", follow=True)
        put(8.0)  # in which they join
        for _ in range(kills):
            put(rng.uniform(0.5, 6.0))
            runs.disturb(rng.randrange(N_RUNS), rng, put)
        topic.put(rest)
        runs.finish()
        faults = runs.faults()
        print(
            f"share: three runs killed or stopped {kills} times in {time.monotonic() - begin:.0f} s answer "
            f"{runs.accuracy():.4f} of {len(topic.labels):,} messages right; "
            f"{'; '.join(faults) or 'each message is learned and answered once'}",
            flush=True,
        )
    return not faults
