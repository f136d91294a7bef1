"""What corrections win back of the loss by wrong labels.

In the first half of a stream 2 % of the labels are wrong; each is corrected 500 messages later. The figures are
those of the other half, with right labels, predicted before learning.

Streams come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data; what is missing is left out.

    python tests/benchmarks/corrections.py [--limit N] [--markdown]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence

import numpy as np
from accuracy import Floats, known_streams, print_row
from sklearn.metrics import log_loss, roc_auc_score

from stream_pegasos import TextClassifier
from stream_pegasos.operation.learning import Learning
from stream_pegasos.operation.monitor import Monitor

STREAMS = ("sms_spam", "enron_1to3")
SHARE = 0.02
LATER = 500  # messages until a wrong label is corrected
SEEDS = range(3)
COLUMNS = ["wrong labels", "accuracy", "100 (1 − AUC)", "log loss", "won back: accuracy", "AUC", "log loss"]
NONE, NEVER, CORRECTED = HOW = ("none", "never corrected", "corrected by two steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=int, help="take the first so many messages of each stream")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    for name, texts, labels in known_streams():
        if name in STREAMS:
            texts, labels = texts[: arguments.limit], [int(label) for label in labels[: arguments.limit]]
            print(f"\n{name}: {len(texts):,} messages, median of {len(SEEDS)} draws of wrong labels\n")
            print_row(COLUMNS, arguments.markdown)
            if arguments.markdown:
                print("|---" * len(COLUMNS) + "|")
            runs = [[figures(texts, labels, how, seed) for how in HOW] for seed in SEEDS]
            found = np.median(np.array(runs), axis=0)
            for how, row in zip(HOW, found, strict=True):
                won = (row - found[1]) / (found[0] - found[1])
                print_row(
                    [how, f"{row[0]:.4f}", f"{row[1]:.3f}", f"{row[2]:.4f}", *(f"{share:.2f}" for share in won)],
                    arguments.markdown,
                )


def figures(texts: Sequence[str], labels: Sequence[int], how: str, seed: int) -> list[float]:
    """Accuracy, 100 (1 − AUC) and log loss."""
    generator = random.Random(seed)
    half = len(texts) // 2
    wrong = {*generator.sample(range(half - LATER), round(SHARE * half))} if how != NONE else set()
    corrected = {i + LATER: i for i in wrong} if how == CORRECTED else {}
    probabilities = followed(texts, labels, wrong, corrected)[half:]
    truth = np.array(labels[half:]) == 1
    return [
        float(((probabilities > 0.5) == truth).mean()),
        100.0 * (1.0 - roc_auc_score(truth, probabilities)),
        log_loss(truth, np.clip(probabilities, 1e-6, 1.0 - 1e-6)),
    ]


def followed(texts: Sequence[str], labels: Sequence[int], wrong: set[int], corrected: Mapping[int, int]) -> Floats:
    """The probability of each message's being positive before it is learned."""
    learning = Learning(Monitor(TextClassifier()))
    probabilities = np.zeros(len(texts))
    for i, (text, label) in enumerate(zip(texts, labels, strict=True)):
        probabilities[i] = learning.model.predict_proba_one(text).get(1, 0.5)
        learning.learn([(text, 1 - label if i in wrong else label)], [i])
        if i in corrected:
            j = corrected[i]
            learning.learn([(texts[j], labels[j])], [j])
    return probabilities


if __name__ == "__main__":
    main()
