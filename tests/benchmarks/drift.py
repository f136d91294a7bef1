"""Accuracy over streams that drift, beside Vowpal Wabbit and River's drift wrapper.

Each model takes one pass and predicts every message before it learns it. The streams are made of enron_1to3, from the
folder that STREAM_PEGASOS_DATA names or from ../shared/data: its labels swapped half-way, its words replaced one after
another, its messages in order of their date.

    python tests/benchmarks/drift.py [--figure PNG] [--limit N] [--markdown]
"""

from __future__ import annotations

import argparse
import random
import re
import string
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from accuracy import VOWPAL_WABBIT, Bools, Floats, log_odds, one_by_one, print_row
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter
from peers import has_vowpal_wabbit, late_vowpal_wabbit, read_records
from river import drift, feature_extraction, linear_model, naive_bayes

from stream_pegasos import AdaptiveClassifier, TextClassifier

NEWEST = 500  # the messages that tell how a model does now
AS_BEFORE = 0.02  # a model has recovered where its accuracy is at most this far below what it was


class Stream(NamedTuple):
    title: str
    texts: list[str]
    labels: Bools  # True for spam
    swap: int | None = None  # the first message that has its label swapped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--figure", metavar="PNG", help="draw accuracy over time into this file")
    parser.add_argument("--limit", type=int, help="take the first so many messages")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    records = read_records("enron_1to3")[: arguments.limit]
    if len(records) < 4 * NEWEST:
        sys.exit(f"{len(records)} messages: a quarter of the stream must hold {NEWEST}, so {4 * NEWEST:,} are needed")
    streams = [swapped(records), replaced(records), by_date(records)]
    results = [evaluate(stream, arguments.markdown) for stream in streams]
    if arguments.figure:
        draw(streams, results).savefig(arguments.figure, dpi=72)


def evaluate(stream: Stream, markdown: bool) -> dict[str, Bools]:
    """Print the table of a stream; whether each prediction was right, by model."""
    print(f"\n{stream.title}: {len(stream.labels):,} messages\n")
    print_row(["", "whole stream", "last quarter", f"lowest of {NEWEST}", "recovered after"], markdown)
    if markdown:
        print("|---|---|---|---|---|")
    results = {}
    for name, predict in models():
        results[name] = right = predict(stream.texts, stream.labels) == stream.labels
        print_row([name, *figures(right, stream.swap)], markdown)
    return results


def figures(right: Bools, swap: int | None) -> list[str]:
    """The cells of a row; the lowest accuracy leaves out the first quarter, in which models begin."""
    quarter = len(right) // 4
    lowest = newest_accuracy(right)[quarter:].min()
    recovered = "-"
    if swap is not None:
        needed = messages_to_recover(right, swap)
        recovered = "never" if needed is None else f"{needed:,}"
    return [f"{right.mean():.4f}", f"{right[-quarter:].mean():.4f}", f"{lowest:.4f}", recovered]


def newest_accuracy(right: Bools) -> Floats:
    """Element i is the accuracy over the messages i to i + NEWEST - 1."""
    total = np.concatenate([[0], right.cumsum()])
    return (total[NEWEST:] - total[:-NEWEST]) / NEWEST


def messages_to_recover(right: Bools, swap: int) -> int | None:
    """How many messages after the swap the newest are as right as before it; at least NEWEST, all from after it."""
    accuracy = newest_accuracy(right)
    # Whole messages are compared, as differences of shares are rounded.
    lost = np.rint(NEWEST * (accuracy[swap - NEWEST] - accuracy[swap:]))
    recovered = lost <= NEWEST * AS_BEFORE
    return NEWEST + int(recovered.argmax()) if recovered.any() else None


# --- streams ----------------------------------------------------------------------------------------------------------


def swapped(records: list[dict[str, Any]]) -> Stream:
    texts, labels = texts_and_labels(records)
    half = len(labels) // 2
    labels[half:] = ~labels[half:]
    return Stream("labels swapped half-way", texts, labels, half)


def replaced(records: list[dict[str, Any]]) -> Stream:
    """Each word gives way, at a random message of the middle half, to eight random letters.

    Random letters, as a suffix or a prefix would let a model that looks at parts of words know the new word.
    """
    texts, labels = texts_and_labels(records)
    generator = random.Random(0)
    replacements: dict[str, tuple[int, str]] = {}

    def replace(i: int, match: re.Match[str]) -> str:
        word = match[0].lower()
        if word not in replacements:
            begin = generator.randrange(len(texts) // 4, 3 * len(texts) // 4)
            replacements[word] = begin, "".join(generator.choices(string.ascii_lowercase, k=8))
        begin, new = replacements[word]
        return new if i >= begin else match[0]

    texts = [re.sub(r"\w\w+", partial(replace, i), text) for i, text in enumerate(texts)]
    return Stream("words replaced one after another", texts, labels)


def by_date(records: list[dict[str, Any]]) -> Stream:
    return Stream("in order of date", *texts_and_labels(sorted(records, key=lambda record: record["date"])))


def texts_and_labels(records: list[dict[str, Any]]) -> tuple[list[str], Bools]:
    return [record["text"] for record in records], np.array([record["label"] == "spam" for record in records])


# --- models -----------------------------------------------------------------------------------------------------------

OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours, half_life=None": {"half_life": None},
    "ours, half_life=1_000": {"half_life": 1_000},
    "ours, drift_detector=HDDMW()": {"drift_detector": drift.binary.HDDMW()},
    "ours, drift_detector=ADWIN()": {"drift_detector": drift.ADWIN()},
}
RIVER = {
    "River: MultinomialNB": naive_bayes.MultinomialNB,
    "River: LogisticRegression": linear_model.LogisticRegression,
}
WRAPPER = ", DriftRetrainingClassifier"

Predict = Callable[[list[str], Bools], Bools]


def models() -> Iterator[tuple[str, Predict]]:
    """What predicts every message of a stream, True for spam, before it learns it."""
    yield "the label of the message before", lambda texts, labels: np.concatenate([[False], labels[:-1]])
    for name, options in OURS.items():
        yield name, partial(ours, options)
    if has_vowpal_wabbit():
        yield "Vowpal Wabbit", vowpal_wabbit
    for name, classifier in RIVER.items():
        model = feature_extraction.BagOfWords() | classifier()
        yield name, partial(river, model)
        yield name + WRAPPER, partial(river, drift.DriftRetrainingClassifier(model, drift.binary.DDM()))


def ours(options: dict[str, Any], texts: list[str], labels: Bools) -> Bools:
    model = TextClassifier(classifier=AdaptiveClassifier(**options))
    return model.predict_learn_many(texts, labels).scores > 0.0


def vowpal_wabbit(texts: list[str], labels: Bools) -> Bools:
    return late_vowpal_wabbit(texts, labels, VOWPAL_WABBIT["logistic, --ngram 2"]) > 0.0


def river(model: Any, texts: list[str], labels: Bools) -> Bools:
    return log_odds(one_by_one(model.clone(), texts, labels)) > 0.0


# --- picture ----------------------------------------------------------------------------------------------------------

# What is drawn, later ones above: its name in the picture, its colour and its width.
LINES = {
    "River: MultinomialNB": ("River: MultinomialNB", "#b2182b", 1.4),
    f"River: MultinomialNB{WRAPPER}": ("the same in DriftRetrainingClassifier", "#ee9fb0", 1.4),
    "Vowpal Wabbit": ("Vowpal Wabbit", "#e08214", 1.4),
    "ours": ("ours", "#1f5fa8", 2.2),
    "ours, half_life=1_000": ("ours, half_life=1_000", "#74b3e8", 1.4),
    "ours, drift_detector=HDDMW()": ("ours, drift_detector=HDDMW()", "#3f8f45", 1.4),
}
STRIDE = 25  # messages between points: finer lines only look rough


def draw(streams: list[Stream], results: list[dict[str, Bools]]) -> Figure:
    """Accuracy over the newest messages, a panel a stream."""
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    panels = figure.subplots(1, len(streams))
    for axes, stream, right in zip(panels, streams, results, strict=True):
        settled = []
        for name, (label, colour, width) in LINES.items():
            if name not in right:
                continue
            accuracy = newest_accuracy(right[name])[::STRIDE]
            axes.plot(NEWEST + STRIDE * np.arange(len(accuracy)), accuracy, color=colour, linewidth=width, label=label)
            settled.append(accuracy[NEWEST // STRIDE :].min())
        # The first predictions are guesses: they must not squeeze all that follows.
        low = np.floor(20.0 * min(settled)) / 20.0
        axes.set_ylim(low, 1.0 + 0.02 * (1.0 - low))
        axes.set_xlim(0, len(stream.labels))
        axes.set_title(stream.title, loc="left", fontweight="bold")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"accuracy over the newest {NEWEST}")
    panels[len(panels) // 2].set_xlabel("messages, each predicted before it was learned")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


if __name__ == "__main__":
    main()
