"""How long work takes, which parts of it, and what it could not be faster than."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import cache

import numpy as np

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.learners.labels import targets_many


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def microseconds(model: TextClassifier, texts: list[str], labels: list[str]) -> dict[str, list[float]]:
    """The median and the 99th percentile of the time of a call; predicting looks up the new words of a message."""
    took: dict[str, list[float]] = {"predict_one": [], "learn_one": []}
    for text, label in zip(texts, labels, strict=True):
        took["predict_one"].append(seconds(lambda text=text: model.predict_one(text)))
        took["learn_one"].append(seconds(lambda text=text, label=label: model.learn_one(text, label)))
    return {work: (1e6 * np.percentile(each, [50, 99])).tolist() for work, each in took.items()}


def microseconds_of_words(n: int, texts: list[str], labels: list[str]) -> dict[str, list[float]]:
    """The same of 6,000 messages of n words with labels drawn at random, to a model that has learned 3,000 texts."""
    model = TextClassifier()
    model.learn_many(texts[:3_000], labels[:3_000])
    words = [word for text in texts[3_000:] for word in text.split()]
    messages = [" ".join(words[begin : begin + n]) for begin in range(0, len(words) - n, n)][:6_000]
    return microseconds(model, messages, random.Random(1).choices(sorted(set(labels)), k=len(messages)))


@cache
def seconds_a_line() -> float:
    """To read a random line of 64 bytes, of many that no cache holds: the least of several times."""
    memory = np.ones(8 * 2**23)
    places = 8 * np.random.default_rng(0).integers(2**23, size=2**22)
    read = np.empty(len(places))
    return min(seconds(lambda: memory.take(places, out=read, mode="clip")) for _ in range(7)) / len(places)


def limits(texts: list[str], runs: int, threads: int = 1) -> tuple[float, float]:
    """Texts a second that the memory allows, at a line for each distinct feature of a text, and that scanning allows.

    A model without weights does little but scan when it predicts: its table is empty.
    """
    features, untrained = TextFeatures(), TextClassifier()
    n_lines = sum(len(features.transform_one(text)) for text in texts)
    scan = statistics.median(seconds(lambda: untrained.predict_many(texts, threads=threads)) for _ in range(runs))
    return len(texts) / (n_lines * seconds_a_line()), len(texts) / scan


def time_shares(
    make: Callable[[], TextClassifier], texts: list[str], labels: list[bool], runs: int
) -> dict[str, float]:
    """The parts of the time, from what is left when parts of the work are left out."""
    trained = make()
    trained.learn_many(texts, labels)
    untrained = make()

    def median(work: Callable[[], object]) -> float:
        return statistics.median(seconds(work) for _ in range(runs))

    whole = median(lambda: make().predict_learn_many(texts, labels))
    encode = median(lambda: targets_many(trained.classifier._labels, labels))
    scan = median(lambda: untrained.decision_function_many(texts))
    predict = median(lambda: trained.decision_function_many(texts))
    return {
        "labels": encode / whole,
        "scanning and hashing": scan / whole,
        "looking weights up": (predict - scan) / whole,
        "steps": (whole - predict - encode) / whole,
    }
