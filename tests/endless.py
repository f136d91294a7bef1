"""Let `stream-pegasos run` read an endless stream with ever new words, and watch its memory.

    python tests/endless.py --minutes 60

Messages come through a pipe at a steady pace, half of them labelled, half of their words never seen before, some of
them damaged. The number of features is bounded, a checkpoint is written every second, and an unlabelled message waits
for a label that never comes. Memory is flat if its least over the last tenth of the time is at most 5 % above that over
the tenth after a warm-up: what is held for good is held at every moment, too, while what a moment needs depends on how
busy the machine is. (The peak, as when features are forgotten or written, is told beside it.)

By itself glibc keeps freed arrays of some MB for the next ones: 70 to 82 MB over 40 minutes, up and down, where
52 are in use. Here it gives them back, so that growth is what the program holds.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import monotonic, sleep

import orjson

MOST_GROWTH = 1.05
GIVING_BACK = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}


def feed(pipe, per_second: float, until: float, counts: list[int]) -> None:
    rng = random.Random(1)
    known = [f"word{i}" for i in range(5_000)]
    start = monotonic()
    while monotonic() < until:
        due = int((monotonic() - start) * per_second)
        lines = []
        while counts[0] < due:
            counts[0] += 1
            words = [rng.choice(known) if rng.random() < 0.5 else f"{rng.getrandbits(64):x}" for _ in range(20)]
            record = {"id": counts[0], "text": " ".join(words)}
            if rng.random() < 0.5:
                record["label"] = "spam" if words[0] < "word3" else "ham"
            line = orjson.dumps(record)
            lines.append(line if rng.random() > 0.001 else line[: rng.randrange(len(line))])
        pipe.write(b"\n".join([*lines, b""]))
        pipe.flush()
        sleep(0.05)
    pipe.close()


def memory(pid: int) -> float:
    """Resident, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the process is gone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--per-second", type=float, default=2_000.0, help="messages a second")
    parser.add_argument("--max-features", type=int, default=100_000)
    parser.add_argument("--warm-up", type=float, default=0.1, help="the share of the time before memory is compared")
    options = parser.parse_args()
    seconds = 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        labels = Path(folder, "labels.jsonl")
        labels.touch()
        begin, new = [sys.executable, "-m", "stream_pegasos"], str(Path(folder, "new"))
        command = [*begin, "run", new, "--output", "none"]
        command += ["--checkpoint", str(Path(folder, "model")), "--checkpoint-every", "1s"]
        command += ["--label-topic", str(labels), "--label-window", "1000"]
        subprocess.run([*begin, "train", "--max-features", str(options.max_features), "--save", new], check=True)
        environment = {**os.environ, **GIVING_BACK}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
            start = monotonic()
            counts = [0]
            feeder = threading.Thread(
                target=feed, args=(process.stdin, options.per_second, start + seconds, counts), daemon=True
            )
            feeder.start()
            rows: list[tuple[float, float]] = []
            shown = 0
            while feeder.is_alive():
                sleep(min(1.0, seconds / 100))
                rows.append((monotonic() - start, memory(process.pid)))
                if rows[-1][0] >= shown * seconds / 20:
                    shown += 1
                    print(f"{rows[-1][0] / 60:6.1f} min  {counts[0]:>12,} messages  {rows[-1][1]:7.1f} MB", flush=True)
            process.terminate()  # labels may still come
            code = process.wait(60)
    after = [megabytes for second, megabytes in rows if second > options.warm_up * seconds]
    tenth = max(1, len(rows) // 10)
    first, last = min(after[:tenth]), min(after[-tenth:])
    growth = last / first
    print(f"{counts[0]:,} messages; memory went from {first:.1f} MB after {options.warm_up:.0%} of the time ", end="")
    print(f"to {last:.1f} MB, by {growth - 1:+.1%}, with a peak of {max(after):.1f} MB; exit code {code}")
    sys.exit(growth > MOST_GROWTH or code != 143)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
