"""What a limit of false positives catches and flags, in the order of each stream and in twenty shuffles.

Each message is predicted before it is learned. Counted are those after the first 2,000, or of mail_raw after the first
500. The last column is a filter that learned the first 80 % and only predicts the rest.

    python tests/benchmarks/limits.py [--shuffles N]
"""

import random
from typing import NamedTuple

import numpy as np
from accuracy import LEARNED
from corpora import Corpus, of_two_classes
from report import Table, arguments_of

from stream_pegasos import AdaptiveClassifier, TextClassifier

RATES = (0.001, 0.01)
HEAD = ["stream", "limit", "caught", "flagged", "caught, shuffled", "flagged, shuffled", "above 1.5 · limit", "alone"]


class Result(NamedTuple):
    caught: float
    flagged: int
    n_negatives: int


def main() -> None:
    arguments = arguments_of(__doc__, shuffles=20)
    table = Table(*HEAD)
    for corpus in of_two_classes("enron_1to3", "sms_spam", "mail_raw"):
        for rate in RATES:
            table.row(corpus.name, f"{rate:g}", *cells(corpus, rate, arguments.shuffles))


def cells(corpus: Corpus, rate: float, n_shuffles: int) -> list[str]:
    own = learning(corpus, rate)
    shuffles = [shuffled(corpus, seed) for seed in range(n_shuffles + 1)]
    others = [learning(each, rate) for each in shuffles[1:]]
    caught, flagged, _ = zip(*others, strict=True)
    n_above = sum(each.flagged > 1.5 * rate * each.n_negatives for each in others)
    alone = [predicting(each, rate).caught for each in shuffles[:-1]]
    return [
        f"{own.caught:.3f}",
        f"{own.flagged} of {own.n_negatives:,}",
        f"{np.mean(caught):.3f}, at least {min(caught):.3f}",
        f"{np.mean(flagged):.1f}, at most {max(flagged)}",
        f"{n_above} of {n_shuffles}",
        f"{np.mean(alone):.3f}, at least {min(alone):.3f}",
    ]


def shuffled(corpus: Corpus, seed: int) -> Corpus:
    """The messages in another order; those of seed 0 in their own."""
    order = list(range(len(corpus.texts)))
    if seed:
        random.Random(seed).shuffle(order)
    return corpus.rows(order)


def learning(corpus: Corpus, rate: float) -> Result:
    first = 500 if corpus.name == "mail_raw" else 2_000
    said = model(rate).predict_learn_many(corpus.texts, corpus.labels).labels
    return result(said[first:], corpus.labels[first:])


def predicting(corpus: Corpus, rate: float) -> Result:
    n = int(LEARNED * len(corpus.texts))
    learned = model(rate)
    learned.learn_many(corpus.texts[:n], corpus.labels[:n])
    return result(learned.predict_many(corpus.texts[n:]), corpus.labels[n:])


def model(rate: float) -> TextClassifier:
    return TextClassifier(classifier=AdaptiveClassifier(pos_label=True, max_false_positive_rate=rate))


def result(said: object, labels: list[bool]) -> Result:
    flagged, truth = np.asarray(said, bool), np.array(labels)
    return Result(float(flagged[truth].mean()), int(flagged[~truth].sum()), int((~truth).sum()))


if __name__ == "__main__":
    main()
