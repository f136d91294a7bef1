"""Accuracy over streams that drift, beside Vowpal Wabbit and River's drift wrapper.

Each model takes one pass and predicts every message before it learns it. The streams are made of enron_1to3: its labels
swapped half-way, its words replaced one after another, its messages in order of their date.

    python tests/benchmarks/drift.py [--limit N]
"""

import random
import re
import string
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from corpora import Bools, Corpus, Floats, read_records
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter, StrMethodFormatter
from peers import bag, has_vowpal_wabbit, late_vowpal_wabbit, margins_of
from report import Table, arguments_of
from river import drift, naive_bayes

from stream_pegasos import AdaptiveClassifier, TextClassifier

NEWEST = 500  # the messages that tell how a model does now
AS_BEFORE = 0.02  # a model has recovered where its accuracy is at most this far below what it was


class Drift(NamedTuple):
    corpus: Corpus
    swap: int | None = None  # the first message that has its label swapped


def main() -> None:
    measured(arguments_of(__doc__, limit=int).limit)


def measured(limit: int | None = None) -> tuple[list[Drift], list[dict[str, Bools]]]:
    """The streams, and whether each prediction was right, by model."""
    records = read_records("enron_1to3")[:limit]
    if len(records) < 4 * NEWEST:
        sys.exit(f"{len(records)} messages: a quarter of the stream must hold {NEWEST}, so {4 * NEWEST:,} are needed")
    streams = [swapped(records), replaced(records), by_date(records)]
    return streams, [print_table(*stream) for stream in streams]


def print_table(corpus: Corpus, swap: int | None) -> dict[str, Bools]:
    """Whether each prediction was right, by model."""
    print(f"\n{corpus.name}: {len(corpus.labels):,} messages")
    table = Table("", "whole stream", "last quarter", "recovered after")
    results = {}
    for name, margins in models():
        results[name] = right = (margins(corpus) > 0.0) == np.array(corpus.labels)
        table.row(name, *figures(right, swap))
    return results


def figures(right: Bools, swap: int | None) -> list[str]:
    recovered = "-"
    if swap is not None:
        needed = messages_to_recover(right, swap)
        recovered = "never" if needed is None else f"{needed:,}"
    return [f"{right.mean():.4f}", f"{right[-(len(right) // 4) :].mean():.4f}", recovered]


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


def swapped(records: list[dict[str, Any]]) -> Drift:
    corpus = in_order("labels swapped half-way", records)
    half = len(records) // 2
    return Drift(corpus._replace(labels=corpus.labels[:half] + [not label for label in corpus.labels[half:]]), half)


def replaced(records: list[dict[str, Any]]) -> Drift:
    """Each word gives way, at a random message of the middle half, to eight random letters.

    Random letters, as a suffix or a prefix would let a model that looks at parts of words know the new word.
    """
    corpus = in_order("words replaced one after another", records)
    n, generator = len(records), random.Random(0)
    replacements: dict[str, tuple[int, str]] = {}

    def replace(i: int, match: re.Match[str]) -> str:
        word = match[0].lower()
        if word not in replacements:
            begin = generator.randrange(n // 4, 3 * n // 4)
            replacements[word] = begin, "".join(generator.choices(string.ascii_lowercase, k=8))
        begin, new = replacements[word]
        return new if i >= begin else match[0]

    texts = [re.sub(r"\w\w+", partial(replace, i), text) for i, text in enumerate(corpus.texts)]
    return Drift(corpus._replace(texts=texts))


def by_date(records: list[dict[str, Any]]) -> Drift:
    return Drift(in_order("in order of date", sorted(records, key=lambda record: record["date"])))


def in_order(name: str, records: list[dict[str, Any]]) -> Corpus:
    return Corpus(name, [record["text"] for record in records], [record["label"] == "spam" for record in records])


# --- models -----------------------------------------------------------------------------------------------------------

OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours, half_life=None": {"half_life": None},
    "ours, half_life=1_000": {"half_life": 1_000},
    "ours, drift_detector=HDDMW()": {"drift_detector": drift.binary.HDDMW()},
    "ours, drift_detector=ADWIN()": {"drift_detector": drift.ADWIN()},
}
RIVER = "River: MultinomialNB"
WRAPPER = ", DriftRetrainingClassifier"


def models() -> Iterator[tuple[str, Callable[[Corpus], Floats]]]:
    """What gives the margin of each message before it is learned, above 0 for spam."""
    yield "the label of the message before", lambda corpus: np.array([False, *corpus.labels[:-1]], float)
    for name, options in OURS.items():
        yield name, partial(ours, options)
    if has_vowpal_wabbit():
        yield "Vowpal Wabbit", late_vowpal_wabbit
    model = bag(naive_bayes.MultinomialNB())
    wrapped = drift.DriftRetrainingClassifier(model, drift.binary.DDM())
    yield RIVER, lambda corpus: margins_of(model.clone(), corpus)
    yield RIVER + WRAPPER, lambda corpus: margins_of(wrapped.clone(), corpus)


def ours(options: dict[str, Any], corpus: Corpus) -> Floats:
    model = TextClassifier(classifier=AdaptiveClassifier(**options))
    return model.predict_learn_many(corpus.texts, corpus.labels).scores


# --- picture ----------------------------------------------------------------------------------------------------------

# What is drawn, later ones above: its name in the picture, its colour and its width.
LINES = {
    RIVER: (RIVER, "#b2182b", 1.4),
    RIVER + WRAPPER: ("River: MultinomialNB in DriftRetrainingClassifier", "#ee9fb0", 1.4),
    "Vowpal Wabbit": ("Vowpal Wabbit", "#e08214", 1.4),
    "ours": ("TextClassifier()", "#1f5fa8", 2.2),
    "ours, half_life=1_000": ("TextClassifier(), half_life=1_000", "#74b3e8", 1.4),
    "ours, drift_detector=HDDMW()": ("TextClassifier(), drift_detector=HDDMW()", "#3f8f45", 1.4),
}
STRIDE = 25  # messages between points: finer lines only look rough


def draw(streams: list[Drift], results: list[dict[str, Bools]]) -> Figure:
    """Accuracy over the newest messages, a panel a stream."""
    figure = Figure(figsize=(11, 4.2), dpi=100, layout="constrained")
    panels = figure.subplots(1, len(streams))
    for axes, (stream, swap), right in zip(panels, streams, results, strict=True):
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
        axes.set_title(stream.name, loc="left", fontweight="bold", fontsize=11)
        if swap is not None:
            axes.axvline(swap, color="#777777", linewidth=1, linestyle=":")
        axes.set_xticks(range(0, len(stream.labels), 5_000))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"accuracy, newest {NEWEST} messages")
    panels[len(panels) // 2].set_xlabel("messages, each predicted before it was learned")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


if __name__ == "__main__":
    main()
