"""Accuracy where labels come late, and where only a tenth of them is asked for.

python tests/benchmarks/labels.py [--limit N]
"""

import random
from collections.abc import Callable, Iterator

import numpy as np
from corpora import Bools, Corpus, Floats, of_two_classes
from figures import ranking_error
from peers import bag, has_vowpal_wabbit, late_vowpal_wabbit, margins_of, one_by_one
from report import Table, arguments_of
from river import active, naive_bayes

from stream_pegasos import TextClassifier

DELAYS = (0, 100, 1_000)
SETTLED = max(DELAYS)  # before the first label all models guess: they are compared on the messages that follow

TENTH = 0.1
# With these River's sampler asks for about a tenth: the larger, the fewer. None does for all streams, as the sampler
# asks where the model is unsure. They were chosen by that share, not by accuracy.
DISCOUNT_FACTORS = {"sms_spam": 0.51, "enron_1to3": 0.47, "rt_polarity": 133.0}
SEEDS = range(5)


def main() -> None:
    arguments = arguments_of(__doc__, limit=int)
    for corpus in of_two_classes(*DISCOUNT_FACTORS):
        corpus = corpus.first(arguments.limit)
        n = len(corpus.labels) - SETTLED
        print(f"\n{corpus.name}: accuracy, and 100 (1 - AUC), of the {n:,} last messages")
        print_late(corpus)
        print_asked(corpus)


def figures(margins: Floats, labels: list[bool]) -> tuple[float, float]:
    margins, truths = margins[SETTLED:], np.array(labels[SETTLED:])
    return float(((margins > 0.0) == truths).mean()), ranking_error(truths, margins)


# --- late labels ------------------------------------------------------------------------------------------------------


def print_late(corpus: Corpus) -> None:
    table = Table("labels late by", *(f"{delay:,}" for delay in DELAYS))
    for name, answer in models():
        found = [figures(answer(corpus, delay), corpus.labels) for delay in DELAYS]
        table.row(name, *(f"{accuracy:.4f}, {error:.3f}" for accuracy, error in found))


def models() -> Iterator[tuple[str, Callable[[Corpus, int], Floats]]]:
    """What gives the margins of all messages, where labels are late."""
    yield "ours", ours
    if has_vowpal_wabbit():
        yield "Vowpal Wabbit: logistic, --ngram 2", late_vowpal_wabbit
    yield "River: MultinomialNB", river


def ours(corpus: Corpus, delay: int) -> Floats:
    model = TextClassifier()
    return np.array(one_by_one(model, model.decision_function_one, corpus.texts, corpus.labels, delay))


def river(corpus: Corpus, delay: int) -> Floats:
    return margins_of(bag(naive_bayes.MultinomialNB()), corpus, delay)


# --- labels asked for -------------------------------------------------------------------------------------------------

Asks = Callable[[str], bool]


def print_asked(corpus: Corpus) -> None:
    """Which labels are learned is left to chance: means over several seeds, and the range, as the sampler may stall."""
    columns = ["share", "of single runs", "accuracy", "of single runs", "100 (1 - AUC)"]
    table = Table(f"labels learned by ours, mean of {len(SEEDS)} runs", *columns)
    for name, asker in askers(DISCOUNT_FACTORS[corpus.name]):
        rows = []
        for seed in SEEDS:
            model = TextClassifier()
            margins, learned = learn_asked(model, asker(model, seed), corpus)
            rows.append((learned.mean(), *figures(margins, corpus.labels)))
        shares, accuracies, errors = np.transpose(rows)
        table.row(
            name,
            f"{shares.mean():.1%}",
            f"{shares.min():.1%} to {shares.max():.1%}",
            f"{accuracies.mean():.4f}",
            f"{accuracies.min():.4f} to {accuracies.max():.4f}",
            f"{errors.mean():.3f}",
        )


def askers(discount_factor: float) -> Iterator[tuple[str, Callable[[TextClassifier, int], Asks]]]:
    """What makes, of a model and a seed, that which says whether the label of a text is asked for."""

    def at_random(model: TextClassifier, seed: int) -> Asks:
        generator = random.Random(seed)
        return lambda text: generator.random() < TENTH

    def by_entropy(model: TextClassifier, seed: int) -> Asks:
        sampler = active.EntropySampler(model, discount_factor, seed)
        return lambda text: sampler.predict_one(text)[1]

    yield "all", lambda model, seed: lambda text: True
    yield "a tenth at random", at_random
    yield f"River: EntropySampler, discount_factor={discount_factor}", by_entropy


def learn_asked(model: TextClassifier, asks: Asks, corpus: Corpus) -> tuple[Floats, Bools]:
    """The margins of all messages, and which of them were learned."""
    margins, learned = [], []
    for text, label in zip(corpus.texts, corpus.labels, strict=True):
        margins.append(model.decision_function_one(text))
        learned.append(not model.n_learned or asks(text))  # nothing is uncertain before a label is known
        if learned[-1]:
            model.learn_one(text, label)
    return np.array(margins), np.array(learned)


if __name__ == "__main__":
    main()
