"""Kill a driver of Spark at random moments, again and again, and see whether model and answers are none the worse.

    python tests/kill_spark.py --kills 20

A stream of files is learned by a Spark with two workers, in order and in parts. The driver and all its processes are
killed (SIGKILL), most of them at a random moment after the first micro-batch of the run, a quarter at any moment. Then
a last run reads to the end; after that the newest entry of Spark's commit log is deleted, so that the last micro-batch
comes again. Model and answers have to equal, byte for byte, those of a run nobody disturbed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

from stream_pegasos.streams import synthetic

SECONDS_TO_START = 15.0
SECONDS_OF_RUN = 300.0
WAYS = {"in order": None, "merged": 3}


def write_stream(folder: Path, n_files: int, n: int) -> None:
    """Files in order of their times, some of whose messages cannot be learned or have no label."""
    folder.mkdir()
    messages = list(synthetic(n_files * n))
    for number in range(n_files):
        rows = []
        for i, (text, label) in enumerate(messages[number * n : (number + 1) * n]):
            row = {"id": number * n + i, "text": text, "label": label}
            if i % 10 == 0:
                del row["label"]
            rows.append(b'{"text": ' if i % 97 == 0 else orjson.dumps(row))
        path = folder / f"{number:03}.json"
        path.write_bytes(b"\n".join(rows))
        os.utime(path, (number, number))


def learn(source: str, checkpoint: str, answers: str, parts: int | None) -> None:
    """What is killed."""
    from local_spark import local_spark

    from stream_pegasos.spark import learn_stream

    def write(frame: Any, number: int) -> None:  # as JSON: what stands in Parquet differs from one Java to the next
        frame.write.mode("overwrite").json(f"{answers}/batch={number:03}")

    with local_spark(Path(checkpoint).parent) as spark:
        stream = spark.readStream.schema("id long, text string, label string").option("maxFilesPerTrigger", 1)
        learning = learn_stream(
            stream.json(source), checkpoint, answers=write, parts=parts, trigger={"availableNow": True}
        )
        learning.query.awaitTermination()


def start(folder: Path, way: str, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--learn", str(folder / "stream"), str(folder / name), way]
    log = (folder / "log").open("ab")
    return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)


def finish(process: subprocess.Popen[bytes], folder: Path) -> None:
    if process.wait(SECONDS_OF_RUN):
        raise SystemExit(f"a run failed:\n{(folder / 'log').read_text()[-5000:]}")


def kill(process: subprocess.Popen[bytes], checkpoint: Path, chance: random.Random) -> bool:
    """Kill the process and its children at a random moment; whether it was still at work."""
    batches, begin = set((checkpoint / "spark" / "offsets").glob("[0-9]*")), time.monotonic()
    if chance.random() < 0.25:
        time.sleep(chance.uniform(0.0, SECONDS_TO_START))
    else:
        while set((checkpoint / "spark" / "offsets").glob("[0-9]*")) == batches and process.poll() is None:
            time.sleep(0.01)
            assert time.monotonic() < begin + SECONDS_OF_RUN
        time.sleep(chance.uniform(0.0, 3.0))
    at_work = process.poll() is None
    with suppress(ProcessLookupError):  # it has just ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return at_work


def outcome(checkpoint: Path) -> dict[str, bytes]:
    """The model and the answers; the files of answers by their places, as Spark gives each a random name."""
    found = {"model": (checkpoint / "model.safetensors").read_bytes()}
    for folder in sorted((checkpoint / "answers").glob("batch=*")):
        assert (folder / "_SUCCESS").exists()
        for number, path in enumerate(sorted(folder.glob("*.json"))):
            found[f"{folder.name}/{number}"] = path.read_bytes()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="for each way")
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--messages", type=int, default=1_000, help="in each file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--learn", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.learn:
        source, checkpoint, way = options.learn
        learn(source, checkpoint, f"{checkpoint}/answers", WAYS[way])
        return
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        print("there is no Java, which Spark needs")
        return
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_stream(folder / "stream", options.files, options.messages)
        for way in WAYS:
            finish(start(folder, way, f"{way} undisturbed"), folder)
            wanted, checkpoint = outcome(folder / f"{way} undisturbed"), folder / way
            at_work = sum(kill(start(folder, way, way), checkpoint, chance) for _ in range(options.kills))
            finish(start(folder, way, way), folder)
            first = outcome(checkpoint)
            newest = max((checkpoint / "spark" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
            newest.unlink()
            newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
            finish(start(folder, way, way), folder)
            for what, found in (("kills", first), ("a lost commit", outcome(checkpoint))):
                wrong = [name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)]
                if wrong:
                    raise SystemExit(f"{way}: after {what} there is another {', '.join(sorted(wrong))}")
            print(
                f"{way}: {at_work} of {options.kills} runs killed at work; {len(wanted)} files as they were", flush=True
            )


if __name__ == "__main__":
    main()
