"""How the recipe does as a stream grows: speed, memory, and the file of a model of some twenty million features.

A synthetic stream of messages of twelve words each, drawn by Zipf's law, whose pairs go on being new. Each message is
predicted, then learned. Printed is, for each stage, how many messages a second were learned in the last tenth of it,
and how many features there are; then how long one message waits at most as the model grows, how long the model takes to
be saved and loaded, and the longest time that a message waits while a checkpoint of it is written.

    python tests/benchmarks/scale.py [--messages 10_000_000] [--rounds 1]

With --classes it prints the memory of a model of 150 classes instead; with --forgetting the accuracy of limited models
over the last 50,000 of 250,000 messages whose words turn over, beside that of a new model over these alone.
"""

import gc
import itertools
import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from corpora import of_classes, read_records
from report import Table, arguments_of
from timing import median_seconds, megabytes, seconds, waits

from stream_pegasos import AdaptiveClassifier, TextClassifier, load
from stream_pegasos.runtime.checkpoints import Checkpoints

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
    arguments = arguments_of(__doc__, messages=STAGES[-1], rounds=1, classes=False, forgetting=False)
    if arguments.classes:
        print_memory_of_classes()
        return
    if arguments.forgetting:
        print_forgetting()
        return
    before, model = megabytes("VmRSS"), TextClassifier()
    learn(model, arguments.messages)
    print_memory_of_saving(model, megabytes("VmRSS") - before)
    print(f"\nresident memory, at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")
    print_growth(model)
    with tempfile.TemporaryDirectory() as folder:
        print_files(model, Path(folder, "model"), arguments.rounds)


def learn(model: TextClassifier, n_messages: int) -> None:
    """Learn, and print how many messages a second were learned in the last tenth of each stage."""
    took: list[float] = []
    table = Table("messages", "docs/s", "features")
    for texts, labels in blocks(n_messages):
        took.append(seconds(partial(model.predict_learn_many, texts, labels)))
        done = BLOCK * len(took)
        if done in STAGES or done == n_messages:
            last = took[-max(len(took) // 10, 1) :]
            table.row(f"{done:,}", f"{BLOCK * len(last) / sum(last):,.0f}", f"{model.n_features:,}")


def print_memory_of_saving(model: TextClassifier, size: float) -> None:
    """How much memory the model takes while it is saved, and what its checkpoints write a day by default."""
    now = megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM begins again
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        checkpoints = Checkpoints(path, share=0.02)
        took = seconds(lambda: model.save(path))
        pause = max(checkpoints.seconds, checkpoints.pause(took))
        print(
            f"model of {size:,.0f} MB; while it is saved {1.0 + (megabytes('VmHWM') - now) / size:.2f} times as much; "
            f"{path.stat().st_size * 86_400 / (pause + took) / 1e9:,.0f} GB a day in checkpoints"
        )


def print_forgetting(n: int = 250_000, n_last: int = 50_000, n_words: int = 20_000) -> None:
    """A word is replaced by another after so many messages; a new one tells another label."""
    table = Table("words live for", "half-life", "no limit", "20,000", "5,000", "a new one of 5,000")
    for life in (10_000, 60_000, None):
        texts, labels = turning_over(n, n_words, life)
        fresh = accuracy(limited(5_000, "auto"), texts[-n_last:], labels[-n_last:], n_last)
        for half_life in ("auto", None):
            models = (limited(most, half_life) for most in (None, 20_000, 5_000))
            shares = [accuracy(model, texts, labels, n_last) for model in models]
            name = "ever" if life is None else f"{life:,} messages"
            table.row(name, repr(half_life), *(f"{share:.4f}" for share in (*shares, fresh)))


def limited(max_features: int | None, half_life: Any) -> TextClassifier:
    return TextClassifier(classifier=AdaptiveClassifier(max_features=max_features, half_life=half_life))


def accuracy(model: TextClassifier, texts: list[str], labels: list[bool], n_last: int) -> float:
    """Over the last messages; each is predicted before it is learned."""
    right: list[bool] = []
    for i in range(0, len(texts), BLOCK):
        said = model.predict_learn_many(texts[i : i + BLOCK], labels[i : i + BLOCK]).labels
        right += (said == np.array(labels[i : i + BLOCK], object)).tolist()
    return float(np.mean(right[-n_last:]))


def turning_over(n: int, n_words: int, life: int | None) -> tuple[list[str], list[bool]]:
    """Messages of twelve words by Zipf's law, half of which tell the label."""
    generator = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, n_words + 1) ** 1.05
    ranks = np.searchsorted((shares / shares.sum()).cumsum(), generator.random((n, N_WORDS))).clip(max=n_words - 1)
    ages = np.arange(n)[:, None] + generator.integers(life or 1, size=n_words)[ranks]
    words = ranks * 1_000 + (ages // life if life else 0)
    weights = generator.normal(size=1_000_003) * (generator.random(1_000_003) < 0.5)
    labels = weights[words * 2_654_435_761 % 1_000_003].sum(1) * 2.0 + generator.logistic(size=n) > 0.0
    texts = [
        " ".join(f"{chr(0x4E00 + word // 1_000)}{chr(0x4E00 + word % 1_000)}" for word in row) for row in words.tolist()
    ]
    return texts, labels.tolist()


def print_growth(model: TextClassifier) -> None:
    """How long messages wait that bring new features, one at a time, beside the same ones again, which bring none."""
    messages = [message for block in blocks(10 * BLOCK, seed=2) for message in zip(*block, strict=True)]
    n_before, told = model.n_features, []
    gc.disable()  # which would be waited for, too
    for _ in range(2):
        took = [1e3 * seconds(lambda text=text, label=label: model.learn_one(text, label)) for text, label in messages]
        told.append(f"{max(took):.2f} ms; {np.percentile(took, 99.9):.2f} ms")
    gc.enable()
    print(
        f"wait of {len(messages):,} messages with {model.n_features - n_before:,} new features, at most, and of 999 in"
        f" 1,000: {told[0]}; of the same again: {told[1]}"
    )


def print_files(model: TextClassifier, path: Path, rounds: int) -> None:
    """Medians of the rounds, and the longest wait of all."""
    messages = itertools.cycle(zip(*next(blocks(BLOCK)), strict=True))

    def learn() -> None:
        model.learn_one(*next(messages))

    saved = median_seconds(lambda: model.save(path), rounds)
    loaded = median_seconds(lambda: load(path), rounds)
    print(f"{path.stat().st_size / 1e6:,.0f} MB: saved in {saved:.3f} s, loaded in {loaded:.3f} s")
    alone, during = [], []
    for _ in range(rounds):
        end = time.perf_counter() + 3.0 / rounds
        alone.append(1e3 * max(waits(learn, lambda end=end: time.perf_counter() > end)))
        checkpoints = Checkpoints(path, every=1)
        checkpoints.start(partial(model.snapshot, None))
        checkpoints.count(1)
        during.append(1e3 * max(waits(learn, lambda it=checkpoints: it.written_at is not None)))
        checkpoints.close(last=False)
    print(f"longest wait of a message while a checkpoint is written: {statistics.median(during):.1f} ms, ", end="")
    print(f"at most {max(during):.1f} ms; {statistics.median(alone):.1f} ms without one")


def print_memory_of_classes() -> None:
    """Of a model of 150 classes that learned 24,000 short texts, in a process of its own: those of banking77 (77
    classes) and tweets_emotion (4), and beginnings of Reuters' stories, by the first of their topics (69); then the
    same with labels drawn at random, of which there is most to learn.
    """
    messages = of_many_classes()
    texts, labels = [text for text, _ in messages], [label for _, label in messages]
    drawn = random.Random(1).choices(sorted(set(labels)), k=len(labels))
    for name, given in (("labels of their own", labels), ("labels drawn at random", drawn)):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            right, before, after, most = pool.submit(memory_of_learning, texts, given).result()
        print(
            f"{len(texts):,} texts, {len(set(given))} classes, {name}: accuracy {right:.3f}; resident {before:.0f} MB "
            f"before, {after:.0f} MB after, {most:.0f} MB at most"
        )


def of_many_classes(n: int = 24_000, n_classes: int = 150, n_words: int = 15) -> list[tuple[str, str]]:
    """Texts and labels, shuffled once."""
    short = [
        pair for each in of_classes("banking77", "tweets_emotion") for pair in zip(each.texts, each.labels, strict=True)
    ]
    stories = [(record["text"], record["topics"][0]) for record in read_records("reuters21578") if record["topics"]]
    n_topics = n_classes - len({label for _, label in short})
    commonest = {topic for topic, _ in Counter(topic for _, topic in stories).most_common(n_topics)}
    random.Random(0).shuffle(stories)
    # One story of each topic, so that none is missing, then as many as are needed.
    first = {topic: text for text, topic in stories if topic in commonest}
    rest = [(text, topic) for text, topic in stories if topic in commonest and first[topic] is not text]
    chosen = [(text, topic) for topic, text in first.items()]
    chosen += rest[: n - len(short) - len(chosen)]
    messages = short + [(" ".join(text.split()[:n_words]), topic) for text, topic in chosen]
    random.Random(0).shuffle(messages)
    return messages


def memory_of_learning(texts: list[str], labels: list[str]) -> tuple[float, float, float, float]:
    """Share of right predictions; megabytes that the process has before it learns, after, and at most."""
    before, n_right = megabytes("VmRSS"), 0
    model = TextClassifier()
    for begin in range(0, len(texts), 512):  # as many as the command learns at a time
        truths = labels[begin : begin + 512]
        said = model.predict_learn_many(texts[begin : begin + 512], truths).labels.tolist()
        n_right += sum(one == truth for one, truth in zip(said, truths, strict=True))
    return n_right / len(texts), before, megabytes("VmRSS"), megabytes("VmHWM")


if __name__ == "__main__":
    main()
