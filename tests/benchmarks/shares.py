"""How long work takes, and which parts of it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from stream_pegasos import TextClassifier
from stream_pegasos.learners.labels import targets_many


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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
