"""What a limit of false positives catches and flags, in the order of each stream and in twenty shuffles.

Each message is predicted before it is learned. Counted are those after the first 2,000, or of mail_raw after the first
500. The last column is a filter that learned the first 80 % and only predicts the rest. The streams come from the
folder that STREAM_PEGASOS_DATA names, or from ../shared/data, or are yours.

    python tests/benchmarks/limits.py [--stream FILE [--text-field NAME] [--pos-label LABEL]] [--shuffles N]
        [--markdown]
"""

from __future__ import annotations

import argparse
import random
from typing import NamedTuple

import numpy as np
from peers import print_head, print_row, read_records
from split import LEARNED

from stream_pegasos import AdaptiveClassifier, TextClassifier
from stream_pegasos.streams import read

STREAMS = {"enron_1to3": ("text", 2_000), "sms_spam": ("text", 2_000), "mail_raw": ("raw", 500)}
RATES = (0.001, 0.01)
HEAD = ["stream", "limit", "caught", "flagged", "caught, shuffled", "flagged, shuffled", "above 1.5 · limit", "alone"]

Messages = list[tuple[str, str]]


class Result(NamedTuple):
    caught: float
    flagged: int
    n_negatives: int

    def __str__(self) -> str:
        return f"{self.caught:.3f}, {self.flagged} of {self.n_negatives:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stream", metavar="FILE", help="a stream of yours")
    parser.add_argument("--text-field", default="text", metavar="NAME", help="its field of the text")
    parser.add_argument("--pos-label", default="spam", metavar="LABEL", help="its positive label")
    parser.add_argument("--shuffles", type=int, default=20, metavar="N", help="how many")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    arguments = parser.parse_args()
    print_head(HEAD, arguments.markdown)
    streams = {arguments.stream: (arguments.text_field, 2_000)} if arguments.stream else STREAMS
    for name, (field, first) in streams.items():
        if arguments.stream:
            messages = [(text, label) for text, label, *_ in read(name, text_field=field)]
        else:
            messages = [(record[field], record["label"]) for record in read_records(name)]
        for rate in RATES:
            if messages:
                row = figures(messages, arguments.pos_label, rate, first, arguments.shuffles)
                print_row([name, f"{rate:g}", *row], arguments.markdown)


def figures(messages: Messages, positive: str, rate: float, first: int, n_shuffles: int) -> list[str]:
    own = learning(messages, positive, rate, first)
    others = [learning(shuffled(messages, seed), positive, rate, first) for seed in range(1, n_shuffles + 1)]
    caught, flagged = ([each[column] for each in others] for column in (0, 1))
    n_above = sum(each.flagged > 1.5 * rate * each.n_negatives for each in others)
    alone = [predicting(shuffled(messages, seed), positive, rate) for seed in range(n_shuffles)]
    return [
        f"{own.caught:.3f}",
        f"{own.flagged} of {own.n_negatives:,}",
        f"{np.mean(caught):.3f}, at least {min(caught):.3f}",
        f"{np.mean(flagged):.1f}, at most {max(flagged)}",
        f"{n_above} of {n_shuffles}",
        f"{np.mean([each.caught for each in alone]):.3f}, at least {min(each.caught for each in alone):.3f}",
    ]


def shuffled(messages: Messages, seed: int) -> Messages:
    """The messages in another order; those of seed 0 in their own."""
    messages = list(messages)
    if seed:
        random.Random(seed).shuffle(messages)
    return messages


def learning(messages: Messages, positive: str, rate: float, first: int) -> Result:
    texts, labels = zip(*messages, strict=True)
    said = model(positive, rate).predict_learn_many(texts, labels).labels
    return result(said[first:], labels[first:], positive)


def predicting(messages: Messages, positive: str, rate: float) -> Result:
    texts, labels = zip(*messages, strict=True)
    n = int(LEARNED * len(texts))
    learned = model(positive, rate)
    learned.learn_many(texts[:n], labels[:n])
    return result(learned.predict_many(texts[n:]), labels[n:], positive)


def model(positive: str, rate: float) -> TextClassifier:
    return TextClassifier(classifier=AdaptiveClassifier(pos_label=positive, max_false_positive_rate=rate))


def result(said: object, labels: tuple[str, ...], positive: str) -> Result:
    flagged, truth = np.asarray(said) == positive, np.array(labels) == positive
    return Result(float(flagged[truth].mean()), int(flagged[~truth].sum()), int((~truth).sum()))


if __name__ == "__main__":
    main()
