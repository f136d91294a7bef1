"""Accuracy with 500 labels that are asked for, beside 500 at random and the first 500 as they come.

Labels are asked for in two ways, as the page does. From a file: 10,000 messages wait at a time. From a stream: it
passes evenly while the labels are given, and only its newest 1,000 messages wait. A label is learned when five others
are given. Two accuracies of the model as it is in the end: on the rest, all messages that might have been asked for and
were not, and on every fifth message of the stream, which nobody could ask for. The rest lacks the hard messages that
were asked for, so that it flatters whoever asks; the held out ones do not. Means over several seeds, which shuffle
equally uncertain messages, and the range of the second.

    python tests/benchmarks/active_learning.py [--labels N] [--seeds N] [--limit N] [--only STREAM,...]
                                        [--vectors NAME_OR_PATH] [--names]
"""

import random
import re
from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from accuracy import recipe
from corpora import Corpus, Floats, of_classes
from figures import share_right
from report import Table, arguments_of
from river import active
from scipy import special

from stream_pegasos import TextClassifier
from stream_pegasos.operation.active_learning import MOST_HELD, MOST_SCORED, uncertainty

STREAMS = ("sms_spam", "enron_1to3", "banking77")
FROM_FILE, FROM_STREAM = 10_000, 1_000  # messages that wait
HELD_OUT = 5  # each so many messages one


class Asking(NamedTuple):
    """What a strategy may look at: the model, all texts, those that wait (the oldest first), and those learned."""

    model: TextClassifier
    texts: list[str]
    waiting: list[int]
    learned: list[int]
    generator: random.Random


# Which place among those that wait is asked for.
Strategy = Callable[[Asking], int]


def main() -> None:
    arguments = arguments_of(__doc__, labels=500, seeds=5, limit=int, only=",".join(STREAMS), vectors=str, names=False)
    for corpus in of_classes(*arguments.only.split(",")):
        corpus = corpus.first(arguments.limit)
        of_words = f" and the vectors of {arguments.vectors}" * bool(arguments.vectors) + " and names" * arguments.names
        print(f"\n{corpus.name}: accuracy with {arguments.labels} labels{of_words}")
        columns = [f"{where}: {which}" for where in ("file", "stream") for which in ("rest", "held out", "range")]
        table = Table("labels asked for", *columns)
        make = partial(recipe, "classes", arguments.vectors, corpus.met if arguments.names else ())
        for strategy in STRATEGIES:
            cells = []
            for passes in (False, True):
                results = [
                    taught(corpus, make(), strategy, seed, passes, arguments.labels) for seed in range(arguments.seeds)
                ]
                rest, held_out = zip(*results, strict=True)
                spread = f"{min(held_out):.4f} to {max(held_out):.4f}"
                cells += [f"{np.mean(rest):.4f}", f"{np.mean(held_out):.4f}", spread]
            table.row(strategy, *cells)


def taught(
    corpus: Corpus, model: TextClassifier, strategy: str, seed: int, passes: bool, n_labels: int
) -> tuple[float, float]:
    """The accuracies of a new model on the rest and on what is held out, once a strategy asked for so many labels."""
    generator = random.Random(seed)
    asks = STRATEGIES[strategy]()
    pool = [i for i in range(len(corpus.texts)) if (i + 1) % HELD_OUT]
    coming = iter(pool)
    waiting: list[int] = []
    learned: list[int] = []
    held: deque[int] = deque()
    for label in range(n_labels):
        if passes:
            due = (label + 1) * len(pool) // n_labels - label * len(pool) // n_labels
            waiting = [*waiting, *islice(coming, due)][-FROM_STREAM:]
        else:
            waiting += islice(coming, FROM_FILE - len(waiting))
        chosen = waiting.pop(asks(Asking(model, corpus.texts, waiting, learned, generator)))
        learned.append(chosen)
        held.append(chosen)
        while len(held) > (MOST_HELD if label < n_labels - 1 else 0):
            message = held.popleft()
            model.learn_one(corpus.texts[message], corpus.labels[message])
    asked_for = {*learned}
    rest, held_out = [i for i in pool if i not in asked_for], range(HELD_OUT - 1, len(corpus.texts), HELD_OUT)
    return accuracy_on(model, corpus.rows(rest)), accuracy_on(model, corpus.rows(held_out))


def accuracy_on(model: TextClassifier, corpus: Corpus) -> float:
    return share_right(model.predictions(corpus.texts).labels.tolist(), corpus.labels)


# --- which message is asked for ---------------------------------------------------------------------------------------


def at_random() -> Strategy:
    return lambda asking: asking.generator.randrange(len(asking.waiting))


def first_come() -> Strategy:
    return lambda asking: 0


def by_score(score: Callable[[Asking, list[int]], Floats]) -> Callable[[], Strategy]:
    """That with the largest score, of as many as are scored at a time; chance decides between equal ones."""

    def ask(asking: Asking) -> int:
        places = range(len(asking.waiting))
        some = asking.generator.sample(places, min(MOST_SCORED, len(places)))
        scores = score(asking, [asking.waiting[place] for place in some])
        return some[int(np.argmax(scores))]

    return lambda: ask


def margin(asking: Asking, messages: list[int]) -> Floats:
    return uncertainty(asking.model.predictions([asking.texts[i] for i in messages]))


def entropy(asking: Asking, messages: list[int]) -> Floats:
    return special.entr(asking.model.predictions([asking.texts[i] for i in messages]).probabilities).sum(axis=1)


def least_confident(asking: Asking, messages: list[int]) -> Floats:
    return 1.0 - asking.model.predictions([asking.texts[i] for i in messages]).probabilities.max(axis=1, initial=0.0)


@lru_cache(20_000)
def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def margin_and_new_words(asking: Asking, messages: list[int]) -> Floats:
    """The margin times the share of words that no message learned has."""
    known = {word for i in asking.learned for word in words(asking.texts[i])}
    own = [words(asking.texts[i]) for i in messages]
    return margin(asking, messages) * np.array([len(each - known) / max(1, len(each)) for each in own])


def margin_and_unlike_the_newest(asking: Asking, messages: list[int]) -> Floats:
    """The margin times how little a message is like any of the newest ten that were asked for, by Jaccard's measure."""
    newest = [words(asking.texts[i]) for i in asking.learned[-10:]]

    def likeness(own: frozenset[str]) -> float:
        return max((len(own & other) / max(1, len(own | other)) for other in newest), default=0.0)

    return margin(asking, messages) * np.array([1.0 - likeness(words(asking.texts[i])) for i in messages])


def one_in_five_at_random() -> Strategy:
    uncertain, chance = by_score(margin)(), at_random()
    return lambda asking: (uncertain if len(asking.learned) % 5 else chance)(asking)


def river_entropy_sampler() -> Strategy:
    """River's sampler goes through those that wait in an order by chance, and takes the first that it asks for."""
    samplers: list[active.EntropySampler] = []

    def ask(asking: Asking) -> int:
        if not samplers:
            samplers.append(active.EntropySampler(asking.model, seed=asking.generator.randrange(1 << 30)))
        n = len(asking.waiting)
        places = asking.generator.sample(range(n), min(MOST_SCORED, n))
        return next((i for i in places if samplers[0].predict_one(asking.texts[asking.waiting[i]])[1]), places[0])

    return ask


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "at random": at_random,
    "as they come": first_come,
    "margin: what the page does": by_score(margin),
    "entropy": by_score(entropy),
    "least confident": by_score(least_confident),
    "margin x share of new words": by_score(margin_and_new_words),
    "margin x unlike the newest ten": by_score(margin_and_unlike_the_newest),
    "margin, and one in five at random": one_in_five_at_random,
    "River: EntropySampler": river_entropy_sampler,
}


if __name__ == "__main__":
    main()
