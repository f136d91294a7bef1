"""Accuracy over long streams, by the half-life of evidence.

Each model takes one pass and predicts every message before it learns it. Four streams are made: each message is a few
words of a vocabulary that is as uneven as that of a language, and the label is drawn from the sum of their weights.
These weights stand still, are turned round half-way, are others from there on, or move on all the time. The fifth are
the phrases of film reviews, shuffled; then in their own order, where phrases of a sentence follow one another.

    python tests/benchmarks/half_life.py [--messages 500000]
"""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from corpora import Bools, Floats, read_records
from report import Table, arguments_of

from stream_pegasos import AdaptiveClassifier, TextClassifier

N_WORDS, SIGNAL = 60_000, 7.0
TURN = 200_000  # messages in which words that move on have lost half of what they told
HALF_LIVES: tuple[Any, ...] = ("auto", 10_000, 100_000, None)


def main() -> None:
    arguments = arguments_of(__doc__, messages=int)
    n = arguments.messages or 500_000
    table = Table("whole stream, last quarter", *map(repr, HALF_LIVES))
    for name in ("stands still", "turned round half-way", "others half-way", "moves on"):
        print_row(table, f"{name}, {n:,}", *made(name, n))
    records = read_records("rotten_tomatoes_phrases")
    texts, labels = zip(*((record["text"], record["label"]) for record in records), strict=True)
    order = random.Random(1).sample(range(len(texts)), len(texts))
    print_row(table, f"phrases, shuffled, {len(texts):,}", [texts[i] for i in order], [labels[i] for i in order])
    print_row(table, "phrases, in their order", list(texts), list(labels))


def print_row(table: Table, name: str, texts: list[str], labels: list[Any]) -> None:
    figures = []
    for half_life in HALF_LIVES:
        model = TextClassifier(classifier=AdaptiveClassifier(half_life=half_life))
        right = np.concatenate([*answers(model, texts, labels)])
        figures.append(f"{right.mean():.4f}, {right[-(len(right) // 4) :].mean():.4f}")
    table.row(name, *figures)


def answers(model: TextClassifier, texts: list[str], labels: list[Any], size: int = 20_000) -> Iterator[Bools]:
    """Whether predictions were right, for so many messages at a time."""
    for i in range(0, len(texts), size):
        predicted = model.predict_learn_many(texts[i : i + size], labels[i : i + size]).labels
        yield np.array([label == of for label, of in zip(predicted, labels[i : i + size], strict=True)])


def made(name: str, n: int) -> tuple[list[str], list[bool]]:
    generator = np.random.default_rng(0)
    first, second = (generator.normal(size=N_WORDS) * (generator.random(N_WORDS) < 0.5) for _ in range(2))
    shares = 1.0 / np.arange(1, N_WORDS + 1) ** 1.05
    edges = shares.cumsum() / shares.sum()
    texts, labels = [], []
    for i in range(n):
        words = np.searchsorted(edges, generator.random(generator.integers(4, 25)))
        weights = weights_at(name, i, n, first[words], second[words])
        log_odds = SIGNAL * weights.sum() / np.sqrt(len(words))
        texts.append(" ".join(f"w{word}" for word in words.tolist()))
        labels.append(bool(generator.random() < 1.0 / (1.0 + np.exp(-log_odds))))
    return texts, labels


def weights_at(name: str, i: int, n: int, first: Floats, second: Floats) -> Floats:
    if name == "moves on":
        angle = np.pi / 4.0 * i / TURN
        return np.asarray(np.cos(angle) * first + np.sin(angle) * second)
    if i < n // 2 or name == "stands still":
        return first
    return second if name == "others half-way" else -first


if __name__ == "__main__":
    main()
