"""How many messages a second Spark learns by the models of their keys, what is kept of a key, and where the time goes.

    python tests/benchmarks/spark_by_key.py [--keys 10_000] [--messages 10_000] [--batches 5] [--stream FILE]

Each micro-batch has so many messages, of keys drawn at random; the common model has learned as many first. In turn, the
same messages are learned by `learn_by_key`, and go through Spark's state operator alone, which keeps as many bytes of
each key. Then the same models learn them here, in one process and without Spark.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from local_spark import local_spark
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from stream_pegasos import TextClassifier
from stream_pegasos.learners.branches import CommonModel
from stream_pegasos.spark import learn_by_key
from stream_pegasos.streams import read, synthetic

SCHEMA = "key string, text string, label string"


class PassedOn(StatefulProcessor):
    """Spark's own part: rows come and go, and bytes are kept of each key."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("bytes", "kept binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        answers = [Row(key=row.key, text=row.text, label=row.label) for row in rows]
        self.state.get()
        self.state.update((os.urandom(self.n_bytes),))
        return iter(answers)

    def close(self) -> None:
        pass


def seconds_of_batches(answers: DataFrame, folder: Path) -> list[float]:
    """How long each micro-batch took."""
    writer = answers.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress.batchDuration / 1e3 for progress in query.recentProgress]


def alone(common: CommonModel, batches: list[list[tuple[str, str, str]]]) -> tuple[float, list[float]]:
    """The seconds that these models take here, and the mean bytes of a key after each batch."""
    kept: dict[str, bytes] = {}
    seconds, sizes = 0.0, []
    for batch in batches:
        of_key: dict[str, list[tuple[str, str]]] = {}
        for key, text, label in batch:
            of_key.setdefault(key, []).append((text, label))
        start = perf_counter()
        for key, messages in of_key.items():
            branch = common.branch([text for text, _ in messages], kept.get(key))
            for text, label in messages:
                branch.model.predict_one(text)
                branch.model.predict_proba_one(text)
                branch.learn_one(text, label)
            kept[key] = branch.kept()
        seconds += perf_counter() - start
        sizes.append(statistics.mean(map(len, kept.values())))
    return seconds, sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stream", help="a file of messages, instead of synthetic ones; read again when it ends")
    options = parser.parse_args()
    examples = (
        [(str(example.x), str(example.y)) for example in read(options.stream)]
        if options.stream
        else [*synthetic(n=50_000)]
    )
    first, rest = examples[: options.messages], examples[options.messages :] or examples
    model, rng = TextClassifier(), random.Random(1)
    model.learn_many([text for text, _ in first], [label for _, label in first])
    common = CommonModel(model)
    drawn = [rng.choice(rest) for _ in range(options.messages * options.batches)]
    rows = [(f"key {rng.randrange(options.keys)}", text, str(label)) for text, label in drawn]
    batches = [rows[i : i + options.messages] for i in range(0, len(rows), options.messages)]
    seconds, sizes = alone(common, batches)
    print(
        f"{options.keys:,} keys, {options.messages:,} messages a micro-batch; {model.n_features:,} features in common"
    )
    print("bytes kept of a key, after each: " + ", ".join(f"{size:,.0f}" for size in sizes))
    print(f"the models alone, in one process: {len(rows) / seconds:,.0f} messages/s")
    with tempfile.TemporaryDirectory() as name, local_spark(Path(name)) as spark:
        for i, batch in enumerate(batches):
            spark.createDataFrame(batch, SCHEMA).coalesce(1).write.parquet(f"{name}/in/{i}")
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{name}/in/*")
        passed_on = PassedOn(round(statistics.mean(sizes)))
        ways: dict[str, Callable[[], DataFrame]] = {
            "learn_by_key": lambda: learn_by_key(stream, model, key="key"),
            "Spark's state operator alone": lambda: stream.groupBy("key").transformWithState(
                passed_on, SCHEMA, "append", "none"
            ),
        }
        speeds: dict[str, list[float]] = {way: [] for way in ways}
        for i in range(options.rounds):
            for way, frame in ways.items():
                durations = seconds_of_batches(frame(), Path(name, f"{i} {way}"))
                speeds[way].append(options.messages / statistics.median(durations[1:] or durations))
        for way, found in speeds.items():
            print(f"{way}, by two workers: {statistics.median(found):,.0f} messages/s")


if __name__ == "__main__":
    main()
