"""What corrections win back of the loss by wrong labels.

In the first half of a stream 2 % of the labels are wrong; each is corrected 500 messages later. The figures are
those of the other half, with right labels, predicted before learning.

    python tests/benchmarks/corrections.py [--limit N]
"""

import random
from collections.abc import Mapping

import numpy as np
from corpora import Corpus, Floats, of_two_classes
from figures import loss_of, ranking_error
from report import Table, arguments_of

from stream_pegasos import TextClassifier
from stream_pegasos.operation.learning import Learning
from stream_pegasos.operation.monitor import Monitor

SHARE = 0.02
LATER = 500  # messages until a wrong label is corrected
SEEDS = range(3)
COLUMNS = ["wrong labels", "accuracy", "100 (1 - AUC)", "log loss", "won back: accuracy", "AUC", "log loss"]
NONE, NEVER, CORRECTED = HOW = ("none", "never corrected", "corrected by two steps")


def main() -> None:
    arguments = arguments_of(__doc__, limit=int)
    for corpus in of_two_classes("sms_spam", "enron_1to3"):
        corpus = corpus.first(arguments.limit)
        print(f"\n{corpus.name}: {len(corpus.texts):,} messages, median of {len(SEEDS)} draws of wrong labels")
        table = Table(*COLUMNS)
        found = np.median([[figures(corpus, how, seed) for how in HOW] for seed in SEEDS], axis=0)
        for how, row in zip(HOW, found, strict=True):
            won = (row - found[1]) / (found[0] - found[1])
            table.row(how, f"{row[0]:.4f}", f"{row[1]:.3f}", f"{row[2]:.4f}", *(f"{share:.2f}" for share in won))


def figures(corpus: Corpus, how: str, seed: int) -> list[float]:
    """Accuracy, 100 (1 - AUC) and log loss."""
    half = len(corpus.texts) // 2
    drawn = random.Random(seed).sample(range(half - LATER), round(SHARE * half))
    wrong = {*drawn} if how != NONE else set()
    corrected = {i + LATER: i for i in wrong} if how == CORRECTED else {}
    probabilities, truth = followed(corpus, wrong, corrected)[half:], np.array(corpus.labels[half:])
    right = float(((probabilities > 0.5) == truth).mean())
    return [right, ranking_error(truth, probabilities), loss_of(truth, probabilities)]


def followed(corpus: Corpus, wrong: set[int], corrected: Mapping[int, int]) -> Floats:
    """The probability of each message's being positive before it is learned."""
    learning = Learning(Monitor(TextClassifier()))
    texts, labels = corpus.texts, list(map(int, corpus.labels))
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
