"""How the recipe does as a stream grows: speed, memory, and the file of a model of some twenty million features.

A synthetic stream of messages of twelve words each, drawn by Zipf's law, whose pairs go on being new. Each message is
predicted, then learned. Printed is, for each stage, how many messages a second were learned in the last tenth of it,
how many features there are, and the bytes of each; then how long one message waits at most as the model grows, how
long the model takes to be saved and loaded, and the longest time that a message waits while a checkpoint of it is
written.

    python tests/benchmarks/scale.py [--messages 10_000_000] [--threads 1] [--picture scale.png]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from checkpoints import longest_wait

from stream_pegasos import TextClassifier, load
from stream_pegasos.operation.checkpoints import Checkpoints

STAGES = (10_000, 100_000, 1_000_000, 5_000_000, 10_000_000)
BLOCK, N_WORDS = 10_000, 12


def vocabulary(n: int, rng: np.random.Generator) -> np.ndarray:
    """Words of three to seven letters, each with a space behind, all eight bytes wide."""
    letters = rng.integers(ord("a"), ord("z") + 1, (n, 8)).astype(np.uint8)
    letters[np.arange(8) >= rng.integers(3, 8, n)[:, None]] = ord(" ")
    return np.ascontiguousarray(letters).view("S8")[:, 0]


def blocks(n_messages: int, n_words: int = 100_000, seed: int = 1) -> Iterator[tuple[list[str], list[bool]]]:
    """Messages whose labels the weights of their words decide, with some noise."""
    rng = np.random.default_rng(seed)
    words, weights = vocabulary(n_words, rng), rng.normal(size=n_words)
    for _ in range(0, n_messages, BLOCK):
        # Zipf's law: the rank is the exponential of a uniform number, nearly.
        ranks = np.exp(rng.random((BLOCK, N_WORDS)) * np.log(n_words)).astype(int) - 1
        labels = weights[ranks].sum(1) + rng.normal(size=BLOCK) > 0.0
        rows = np.ascontiguousarray(words[ranks]).view(f"S{8 * N_WORDS}")[:, 0]
        yield [row.decode() for row in rows.tolist()], labels.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=STAGES[-1])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--picture", type=Path, help="where to draw the speeds")
    options = parser.parse_args()
    model, done, n_right, newest, waits = TextClassifier(), 0, 0, [], []
    points = []
    print(
        f"{'messages':>12} {'docs/s':>10} {'features':>12} {'bytes each':>10} {'accuracy':>9} {'longest block of':>17}"
    )
    for texts, labels in blocks(options.messages):
        start = perf_counter()
        said = model.predict_learn_many(texts, labels, threads=options.threads)
        seconds = perf_counter() - start
        done += len(texts)
        n_right += int((np.asarray(said.labels) == labels).sum())
        newest.append(seconds)
        waits.append(seconds)
        if done in STAGES or done == options.messages:
            last = newest[-max(done // BLOCK // 10, 1) :]
            speed, n = BLOCK * len(last) / sum(last), model.n_features
            size = sys.getsizeof(model.classifier._learner) / n
            points.append((done, speed))
            print(
                f"{done:12,} {speed:10,.0f} {n:12,} {size:10.1f} {n_right / done:9.4f} {max(waits):14.3f} s", flush=True
            )
            waits = []
    print(f"resident memory, at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")
    if options.picture is not None:
        draw(points, options.picture)
    growth(model)
    with tempfile.TemporaryDirectory() as folder:
        files(model, Path(folder, "model"))


def growth(model: TextClassifier) -> None:
    """How long messages wait that bring new features, one at a time, beside the same ones again, which bring none."""
    messages = [message for block in blocks(10 * BLOCK, seed=2) for message in zip(*block, strict=True)]
    n_before, took = model.n_features, []
    gc.disable()  # which would be waited for, too
    for _ in range(2):
        took.append([])
        for text, label in messages:
            start = perf_counter()
            model.learn_one(text, label)
            took[-1].append(1e3 * (perf_counter() - start))
    gc.enable()
    told = ["; ".join(f"{f(each):.2f} ms" for f in (max, lambda each: np.percentile(each, 99.9))) for each in took]
    print(
        f"wait of {len(messages):,} messages with {model.n_features - n_before:,} new features, at most, and of 999 in"
        f" 1,000: {told[0]}; of the same again: {told[1]}"
    )


def files(model: TextClassifier, path: Path) -> None:
    texts, labels = next(blocks(BLOCK))

    messages = itertools.cycle(zip(texts, labels, strict=True))

    def learn() -> None:
        model.learn_one(*next(messages))

    start = perf_counter()
    model.save(path)
    saved = perf_counter() - start
    start = perf_counter()
    load(path)
    print(f"{path.stat().st_size / 1e6:,.0f} MB: saved in {saved:.1f} s, loaded in {perf_counter() - start:.1f} s")
    end = perf_counter() + 3.0
    alone = longest_wait(learn, lambda: perf_counter() > end)
    checkpoints = Checkpoints(path, every=1)
    checkpoints.start(model.snapshot)
    checkpoints.count(1)
    during = longest_wait(learn, lambda: checkpoints.written_at is not None)
    checkpoints.close(last=False)
    print(
        f"longest wait of a message while a checkpoint is written: {1e3 * during:.1f} ms; {1e3 * alone:.1f} ms without"
    )


def draw(points: list[tuple[int, float]], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    axes.plot(*zip(*points, strict=True), marker="o")
    axes.set(xscale="log", ylim=(0, None), xlabel="messages learned", ylabel="messages a second")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
