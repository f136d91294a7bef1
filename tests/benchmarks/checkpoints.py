"""How long a model of a million features takes to be read, and how long a checkpoint of it keeps learning waiting.

    python tests/benchmarks/checkpoints.py

While a checkpoint is written, messages are learned one at a time; printed is the longest time that one of them took,
and the longest without a checkpoint.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from stream_pegasos import TextClassifier, load
from stream_pegasos.operation.checkpoints import Checkpoints


def model_with(n_features: int, rng: random.Random) -> TextClassifier:
    model = TextClassifier()
    while model.n_features < n_features:
        model.learn_many([text(rng) for _ in range(100)], [rng.choice(["ham", "spam"]) for _ in range(100)])
    return model


def text(rng: random.Random) -> str:
    return " ".join(f"{rng.getrandbits(24):x}" for _ in range(100))


def longest_wait(learn: Callable[[], None], until: Callable[[], bool]) -> float:
    worst, last = 0.0, perf_counter()
    while not until():
        learn()
        now = perf_counter()
        worst, last = max(worst, now - last), now
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rng = random.Random(1)
    model = model_with(options.features, rng)
    texts = [text(rng) for _ in range(1_000)]
    model.learn_many(texts, ["spam", "ham"] * 500)  # so that learning them again brings no new features

    def learn() -> None:
        model.learn_one(rng.choice(texts), rng.choice(["ham", "spam"]))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        seconds = []
        for _ in range(options.rounds):
            start = perf_counter()
            load(path)
            seconds.append(perf_counter() - start)
        size = path.stat().st_size / 1e6
        print(f"{model.n_features:,} features, {size:.0f} MB: ", end="")
        print(f"read in {statistics.median(seconds):.3f} s, at most {max(seconds):.3f} s")
        without, during = [], []
        for _ in range(options.rounds):
            end = perf_counter() + 0.5
            without.append(longest_wait(learn, lambda end=end: perf_counter() > end))
            checkpoints = Checkpoints(path, every=1)
            checkpoints.start(model.snapshot)
            checkpoints.count(1)
            during.append(longest_wait(learn, lambda it=checkpoints: it.written_at is not None))
            checkpoints.close()
        print(
            f"longest wait of a message: {1e3 * statistics.median(during):.1f} ms while a checkpoint is written, ",
            end="",
        )
        print(f"at most {1e3 * max(during):.1f} ms; {1e3 * statistics.median(without):.1f} ms without one")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
