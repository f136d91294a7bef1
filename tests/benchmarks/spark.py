"""What Spark makes of a million messages: two workers beside one, and where the time goes.

The messages are those of all real streams, one after the other, again and again; each stream's first label is told from
its others. They are learned and scored by the library in one process and thread, and by Sparks with workers of one task
at a time, which read the same Parquet files. Printed are seconds, medians of the rounds: of the library; of one worker,
and what it does beside the library; and of one worker that has one processor, its driver included, beside two that have
two.

    python tests/benchmarks/spark.py [--messages 1_000_000] [--rounds 3] [--parts 2]
"""

import itertools
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from corpora import of_classes
from local_spark import local_spark
from report import Table, arguments_of
from timing import median_seconds

from stream_pegasos import TextClassifier

STREAMS = (
    "enron_1to3", "sms_spam", "rt_polarity", "banking77", "tweets_emotion", "waimai_zh", "hotels_zh",
    "rotten_tomatoes_phrases",
)  # fmt: skip


def main() -> None:
    arguments = arguments_of(__doc__, messages=1_000_000, parts=2, round_size=500_000, rounds=3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "messages"
        write(folder, arguments.messages, arguments.parts)
        model, library = by_library(folder, arguments.rounds)
        print(f"{arguments.messages:,} messages, {model.n_features:,} features")
        table = Table("seconds", "library", "1 worker", "beside", "1 of one CPU", "2 of two CPUs", "gain")
        free, one, two = (
            alone(by_spark, folder, model, n, n_cpus, arguments.rounds, arguments.round_size)
            for n, n_cpus in ((1, None), (1, 1), (2, 2))
        )
        for work in one:
            cells = ["", f"{free[work]:.2f}", ""]
            if work in library:
                cells = [f"{library[work]:.2f}", cells[1], f"{library[work] / free[work]:.2f}"]
            table.row(work, *cells, f"{one[work]:.2f}", f"{two[work]:.2f}", f"{one[work] / two[work]:.2f}")


def write(folder: Path, n: int, n_files: int) -> None:
    """Messages in files of one row group each, so that each is a partition."""
    folder.mkdir()
    messages = [
        (text, label == corpus.labels[0])
        for corpus in of_classes(*STREAMS)
        for text, label in zip(corpus.texts, corpus.labels, strict=True)
    ]
    rows = list(itertools.islice(itertools.cycle(messages), n))
    for number in range(n_files):
        texts, labels = zip(*rows[number::n_files], strict=True)
        table = pa.table({"text": texts, "label": labels})
        pq.write_table(table, folder / f"{number:03}.parquet", row_group_size=len(texts))


def timed(rounds: int, work: Callable[[], Any]) -> float:
    work()  # Java is slow at first
    return median_seconds(work, rounds)


def by_library(folder: Path, rounds: int) -> tuple[TextClassifier, dict[str, float]]:
    """The model that has learned all, and how long it took to read, to learn, and to score with all answers."""
    model = TextClassifier()

    def columns() -> Iterator[tuple[list[str], list[bool]]]:
        for path in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(10_000, use_threads=False):
                yield batch["text"].to_pylist(), batch["label"].to_pylist()

    def read() -> None:
        for _ in columns():
            pass

    def learn() -> None:
        nonlocal model
        model = TextClassifier()
        for texts, labels in columns():
            model.learn_many(texts, labels)

    def score() -> None:
        for texts, _ in columns():
            said = model.predictions(texts)
            pa.array(said.labels), pa.array(said.probabilities.ravel())

    seconds = {work.__name__: timed(rounds, work) for work in (read, learn, score)}
    return model, seconds


def by_spark(
    folder: Path, model: TextClassifier, n_workers: int, n_cpus: int | None, rounds: int, round_size: int
) -> dict[str, float]:
    """How long Spark takes to read, to pass texts through Python, to learn, and to score; with that many processors for
    driver and workers together.
    """
    if n_cpus is not None:
        os.sched_setaffinity(0, range(n_cpus))
    from pyspark.sql import functions as f

    from stream_pegasos.spark import learn, score

    with tempfile.TemporaryDirectory() as name, local_spark(Path(name), n_workers, 2048) as spark:
        spark.conf.set("spark.sql.files.openCostInBytes", 1 << 30)  # a file a partition
        frame = spark.read.parquet(str(folder))
        through = f.arrow_udf(lambda texts: texts, "string")(frame["text"])
        work = {
            "read": lambda: write_nowhere(frame),
            "through Python": lambda: write_nowhere(frame.select(through)),
            "learn": lambda: learn(frame, round_size=round_size),
            "score": lambda: write_nowhere(score(frame, model)),
        }
        return {name: timed(rounds, each) for name, each in work.items()}


def alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a process of its own makes of it, as one process can start one Spark only."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def write_nowhere(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
