"""Accuracy where labels come late, and where only a tenth of them is asked for.

Streams come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data; what is missing of them or of the
peers is left out and named.

    python tests/benchmarks/labels.py [--limit N] [--markdown]
"""

from __future__ import annotations

import argparse
import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from accuracy import VOWPAL_WABBIT, Bools, Floats, Stream, known_streams, log_odds, print_row
from peers import has_vowpal_wabbit, late_vowpal_wabbit
from river import active, feature_extraction, naive_bayes
from sklearn.metrics import roc_auc_score

from stream_pegasos import TextClassifier

DELAYS = (0, 100, 1_000)
SETTLED = max(DELAYS)  # before the first label all models guess: they are compared on the messages that follow

TENTH = 0.1
# With these River's sampler asks for about a tenth: the larger, the fewer. None does for all streams, as the sampler
# asks where the model is unsure. They were chosen by that share, not by accuracy.
DISCOUNT_FACTORS = {"sms_spam": 0.51, "enron_1to3": 0.47, "rt_polarity": 133.0}
SEEDS = range(5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=int, help="take the first so many messages of each stream")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    for name, texts, labels in known_streams():
        if name in DISCOUNT_FACTORS:
            stream = Stream(name, texts[: arguments.limit], labels[: arguments.limit])
            print(f"\n{name}: accuracy, and 100 (1 - AUC), of the {len(stream.labels) - SETTLED:,} last messages")
            late(stream, arguments.markdown)
            asked(stream, arguments.markdown)


def print_header(columns: list[str], markdown: bool) -> None:
    print()
    print_row(columns, markdown)
    if markdown:
        print("|---" * len(columns) + "|")


def figures(margins: Floats, labels: Bools) -> tuple[float, float]:
    margins, labels = margins[SETTLED:], labels[SETTLED:]
    return ((margins > 0.0) == labels).mean(), 100.0 * (1.0 - roc_auc_score(labels, margins))


# --- late labels ------------------------------------------------------------------------------------------------------


def late(stream: Stream, markdown: bool) -> None:
    print_header(["labels late by", *(f"{delay:,}" for delay in DELAYS)], markdown)
    for name, answer in models():
        results = [figures(answer(stream.texts, stream.labels, delay), stream.labels) for delay in DELAYS]
        print_row([name, *(f"{accuracy:.4f}, {error:.3f}" for accuracy, error in results)], markdown)


def models() -> Iterator[tuple[str, Callable[[list[str], Bools, int], Floats]]]:
    yield "ours", ours
    if has_vowpal_wabbit():
        yield "Vowpal Wabbit: logistic, --ngram 2", vowpal_wabbit
    yield "River: MultinomialNB", river


def ours(texts: list[str], labels: Bools, delay: int) -> Floats:
    return one_by_one(TextClassifier(), TextClassifier.decision_function_one, texts, labels, delay)


def vowpal_wabbit(texts: list[str], labels: Bools, delay: int) -> Floats:
    return late_vowpal_wabbit(texts, labels, VOWPAL_WABBIT["logistic, --ngram 2"], delay)


def river(texts: list[str], labels: Bools, delay: int) -> Floats:
    def margin(model: Any, text: str) -> float:
        known = model.predict_proba_one(text) or {False: 0.5, True: 0.5}
        return float(log_odds(np.array([[known.get(False, 0.0), known.get(True, 0.0)]]))[0])

    return one_by_one(feature_extraction.BagOfWords() | naive_bayes.MultinomialNB(), margin, texts, labels, delay)


def one_by_one(model: Any, margin: Callable[[Any, str], float], texts: list[str], labels: Bools, delay: int) -> Floats:
    """The margins of all messages; the label of each is learned once `delay` more of them have been predicted."""
    margins = []
    waiting: deque[tuple[str, bool]] = deque()
    for text, label in zip(texts, labels.tolist(), strict=True):
        margins.append(margin(model, text))
        waiting.append((text, label))
        if len(waiting) > delay:
            model.learn_one(*waiting.popleft())
    return np.array(margins)


# --- labels asked for -------------------------------------------------------------------------------------------------


Asks = Callable[[str], bool]


def asked(stream: Stream, markdown: bool) -> None:
    """Which labels are learned is left to chance: means over several seeds, and the range, as the sampler may stall."""
    columns = ["share", "of single runs", "accuracy", "of single runs", "100 (1 - AUC)"]
    print_header([f"labels learned by ours, mean of {len(SEEDS)} runs", *columns], markdown)
    for name, asker in askers(DISCOUNT_FACTORS[stream.name]):
        rows = []
        for seed in SEEDS:
            model = TextClassifier()
            margins, learned = learn_asked(model, asker(model, seed), stream.texts, stream.labels)
            rows.append((learned.mean(), *figures(margins, stream.labels)))
        shares, accuracies, errors = np.transpose(rows)
        cells = [
            f"{shares.mean():.1%}",
            f"{shares.min():.1%} to {shares.max():.1%}",
            f"{accuracies.mean():.4f}",
            f"{accuracies.min():.4f} to {accuracies.max():.4f}",
            f"{errors.mean():.3f}",
        ]
        print_row([name, *cells], markdown)


def askers(discount_factor: float) -> Iterator[tuple[str, Callable[[Any, int], Asks]]]:
    """What makes, of a model and a seed, that which says whether the label of a text is asked for."""

    def at_random(model: Any, seed: int) -> Asks:
        generator = random.Random(seed)
        return lambda text: generator.random() < TENTH

    def by_entropy(model: Any, seed: int) -> Asks:
        sampler = active.EntropySampler(model, discount_factor, seed)
        return lambda text: sampler.predict_one(text)[1]

    yield "all", lambda model, seed: lambda text: True
    yield "a tenth at random", at_random
    yield f"River: EntropySampler, discount_factor={discount_factor}", by_entropy


def learn_asked(model: Any, asks: Asks, texts: list[str], labels: Bools) -> tuple[Floats, Bools]:
    """The margins of all messages, and which of them were learned."""
    margins, learned = [], []
    for text, label in zip(texts, labels.tolist(), strict=True):
        margins.append(model.decision_function_one(text))
        learned.append(asks(text))
        if learned[-1]:
            model.learn_one(text, label)
    return np.array(margins), np.array(learned)


if __name__ == "__main__":
    main()
