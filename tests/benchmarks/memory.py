"""Memory of a model of 150 classes that learned 24,000 short texts, in a process of its own.

The texts are those of banking77 (77 classes) and tweets_emotion (4), and beginnings of Reuters' stories, by the first
of their topics (69). The second row has the same texts with labels drawn at random, of which there is most to learn.

    python tests/benchmarks/memory.py [--limit N]
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from peers import read_records
from scipy import sparse

CLASSES = 150
MESSAGES = 24_000
WORDS = 15  # of a story
CHUNK = 512  # the messages that the command learns at a time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=int, default=MESSAGES, help="take the first so many messages")
    arguments = parser.parse_args()
    texts, labels = composed()
    texts, labels = texts[: arguments.limit], labels[: arguments.limit]
    if not texts:
        return
    drawn = random.Random(1).choices(sorted(set(labels)), k=len(labels))
    for name, given in (("labels of their own", labels), ("labels drawn at random", drawn)):
        right, before, after, most = in_a_process_of_its_own(texts, given)
        print(
            f"{len(texts):,} texts, {len(set(given))} classes, {name}: accuracy {right:.3f}; resident {before:.0f} MB "
            f"before, {after:.0f} MB after, {most:.0f} MB at most"
        )


def composed() -> tuple[list[str], list[str]]:
    """24,000 texts and 150 labels, shuffled once; nothing where a stream is missing."""
    short = [
        (record["text"], record["label"]) for name in ("banking77", "tweets_emotion") for record in read_records(name)
    ]
    stories = [(record["text"], record["topics"][0]) for record in read_records("reuters21578") if record["topics"]]
    if not short or not stories:
        return [], []
    n_topics = CLASSES - len({label for _, label in short})
    commonest = {topic for topic, _ in Counter(topic for _, topic in stories).most_common(n_topics)}
    random.Random(0).shuffle(stories)
    # One story of each topic, so that none is missing, then as many as are needed.
    first = {topic: text for text, topic in stories if topic in commonest}
    rest = [(text, topic) for text, topic in stories if topic in commonest and first[topic] is not text]
    chosen = [(text, topic) for topic, text in first.items()]
    chosen += rest[: MESSAGES - len(short) - len(chosen)]
    messages = short + [(" ".join(text.split()[:WORDS]), topic) for text, topic in chosen]
    random.Random(0).shuffle(messages)
    return [text for text, _ in messages], [label for _, label in messages]


def in_a_process_of_its_own(texts: list[str], labels: list[str]) -> tuple[float, float, float, float]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(learn, texts, labels).result()


def learn(texts: list[str], labels: list[str]) -> tuple[float, float, float, float]:
    """Share of right predictions; megabytes that the process has before it learns, after, and at most."""
    from stream_pegasos import TextClassifier

    before, n_right = megabytes("VmRSS"), 0
    model = TextClassifier()
    for begin in range(0, len(texts), CHUNK):
        truths = labels[begin : begin + CHUNK]
        said = model.predict_learn_many(texts[begin : begin + CHUNK], truths).labels.tolist()
        n_right += sum(one == truth for one, truth in zip(said, truths, strict=True))
    return n_right / len(texts), before, megabytes("VmRSS"), megabytes("VmHWM")


def bytes_a_feature(model: Any) -> list[float]:
    """Bytes a distinct hashed feature of a model that grows to two million features, at each of a hundred sizes."""
    found = []
    for n in range(20_000, 2_000_001, 20_000):
        columns = np.arange(n - 20_000, n, dtype=np.int64) * 2_654_435_761 % 2**31
        model.learn_many(sparse.csr_matrix((np.ones(20_000), columns, [0, 20_000]), (1, 2**31)), [n % 40_000 == 0])
        if model.n_features:
            found.append(sys.getsizeof(getattr(model._learner, "weights", model._learner)) / model.n_features)
    return found


def megabytes(name: str) -> float:
    """A figure of the process that runs, as Linux tells it."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


if __name__ == "__main__":
    main()
