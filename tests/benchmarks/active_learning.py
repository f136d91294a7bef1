"""Accuracy with 500 labels that are asked for, beside 500 at random and the first 500 as they come.

Labels are asked for in two ways, as the page does. From a file: 10,000 messages wait at a time. From a stream: it
passes evenly while the labels are given, and only its newest 1,000 messages wait. A label is learned when five others
are given. Two accuracies of the model as it is in the end: on the rest, all messages that might have been asked for and
were not, and on every fifth message of the stream, which nobody could ask for. The rest lacks the hard messages that
were asked for, so that it flatters whoever asks; the held out ones do not. Means over several seeds, which shuffle
equally uncertain messages, and the range of the second.

Streams come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data; what is missing is left out.

    python tests/benchmarks/active_learning.py [--labels N] [--seeds N] [--limit N] [--only STREAM,...]
                                        [--vectors NAME_OR_PATH] [--markdown]
"""

from __future__ import annotations

import argparse
import random
import re
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from peers import print_head, print_row, read_records
from river import active

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.operation.active_learning import MOST_HELD, MOST_SCORED, uncertainty

STREAMS = ("sms_spam", "enron_1to3", "banking77")
FROM_FILE, FROM_STREAM = 10_000, 1_000  # messages that wait
HELD_OUT = 5  # each so many messages one


class Stream(NamedTuple):
    texts: list[str]
    labels: list[Any]


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
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--labels", type=int, default=500, help="how many are asked for")
    parser.add_argument("--seeds", type=int, default=5, help="how many runs")
    parser.add_argument("--limit", type=int, help="take the first so many messages of each stream")
    parser.add_argument("--only", default=",".join(STREAMS), help="the streams")
    parser.add_argument("--vectors", help="the model also has these word vectors: a name, a file or a folder")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        records = read_records(name)[: arguments.limit]
        if not records:
            continue
        stream = Stream([record["text"] for record in records], [record["label"] for record in records])
        of_words = f" and the word vectors of {arguments.vectors}" if arguments.vectors else ""
        print(f"\n{name}: accuracy with {arguments.labels} labels{of_words}\n")
        columns = [f"{where}: {which}" for where in ("file", "stream") for which in ("rest", "held out", "range")]
        print_head(["labels asked for", *columns], arguments.markdown)
        for strategy in STRATEGIES:
            cells = []
            for passes in (False, True):
                results = [
                    taught(stream, strategy, seed, passes, arguments.labels, arguments.vectors)
                    for seed in range(arguments.seeds)
                ]
                rest, held_out = zip(*results, strict=True)
                spread = f"{min(held_out):.4f} to {max(held_out):.4f}"
                cells += [f"{np.mean(rest):.4f}", f"{np.mean(held_out):.4f}", spread]
            print_row([strategy, *cells], arguments.markdown)


def taught(
    stream: Stream, strategy: str, seed: int, passes: bool, n_labels: int, vectors: str | None = None
) -> tuple[float, float]:
    """The accuracies on the rest and on what is held out, where so many labels were asked for by a strategy."""
    generator = random.Random(seed)
    asks = STRATEGIES[strategy]()
    model = TextClassifier(TextFeatures(vectors=vectors))
    pool = [i for i in range(len(stream.texts)) if (i + 1) % HELD_OUT]
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
        chosen = waiting.pop(asks(Asking(model, stream.texts, waiting, learned, generator)))
        learned.append(chosen)
        held.append(chosen)
        while len(held) > MOST_HELD:
            learn(model, stream, held.popleft())
    for message in held:
        learn(model, stream, message)
    asked_for = {*learned}
    rest = [i for i in pool if i not in asked_for]
    return accuracy_on(model, stream, rest), accuracy_on(
        model, stream, range(HELD_OUT - 1, len(stream.texts), HELD_OUT)
    )


def accuracy_on(model: TextClassifier, stream: Stream, messages: Sequence[int]) -> float:
    said = model.predictions([stream.texts[i] for i in messages]).labels.tolist()
    return float(np.mean([label == stream.labels[i] for label, i in zip(said, messages, strict=True)]))


def learn(model: TextClassifier, stream: Stream, message: int) -> None:
    model.learn_one(stream.texts[message], stream.labels[message])


# --- which message is asked for ---------------------------------------------------------------------------------------


def at_random() -> Strategy:
    return lambda asking: asking.generator.randrange(len(asking.waiting))


def first_come() -> Strategy:
    return lambda asking: 0


def by_score(score: Callable[[Asking, list[int]], NDArray[np.float64]]) -> Callable[[], Strategy]:
    """That with the largest score, of as many as are scored at a time; chance decides between equal ones."""

    def ask(asking: Asking) -> int:
        places = range(len(asking.waiting))
        some = asking.generator.sample(places, min(MOST_SCORED, len(places)))
        scores = score(asking, [asking.waiting[place] for place in some])
        return some[int(np.argmax(scores))]

    return lambda: ask


def margin(asking: Asking, messages: list[int]) -> NDArray[np.float64]:
    return uncertainty(asking.model.predictions([asking.texts[i] for i in messages]))


def entropy(asking: Asking, messages: list[int]) -> NDArray[np.float64]:
    probabilities = asking.model.predictions([asking.texts[i] for i in messages]).probabilities
    logarithms = np.log(probabilities, where=probabilities > 0.0, out=np.zeros_like(probabilities))
    return -(probabilities * logarithms).sum(axis=1)


def least_confident(asking: Asking, messages: list[int]) -> NDArray[np.float64]:
    probabilities = asking.model.predictions([asking.texts[i] for i in messages]).probabilities
    return 1.0 - probabilities.max(axis=1, initial=0.0)


@lru_cache(20_000)
def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def margin_and_new_words(asking: Asking, messages: list[int]) -> NDArray[np.float64]:
    """The margin times the share of words that no message learned has."""
    known = {word for i in asking.learned for word in words(asking.texts[i])}
    shares = []
    for i in messages:
        own = words(asking.texts[i])
        shares.append(len(own - known) / len(own) if own else 0.0)
    return margin(asking, messages) * np.array(shares)


def margin_and_unlike_the_newest(asking: Asking, messages: list[int]) -> NDArray[np.float64]:
    """The margin times how little a message is like any of the newest ten that were asked for, by Jaccard's measure."""
    newest = [words(asking.texts[i]) for i in asking.learned[-10:]]
    unlike = []
    for i in messages:
        own = words(asking.texts[i])
        unlike.append(1.0 - max((len(own & other) / max(1, len(own | other)) for other in newest), default=0.0))
    return margin(asking, messages) * np.array(unlike)


def one_in_five_at_random() -> Strategy:
    uncertain, chance = by_score(margin)(), at_random()
    return lambda asking: (uncertain if len(asking.learned) % 5 else chance)(asking)


def river_entropy_sampler() -> Strategy:
    """River's sampler goes through those that wait in an order by chance, and takes the first that it asks for."""
    samplers: list[active.EntropySampler] = []

    def ask(asking: Asking) -> int:
        if not samplers:
            samplers.append(active.EntropySampler(asking.model, seed=asking.generator.randrange(1 << 30)))
        places = shuffled(range(len(asking.waiting)), asking.generator)
        return next(
            (place for place in places if samplers[0].predict_one(asking.texts[asking.waiting[place]])[1]), places[0]
        )

    return ask


def shuffled(items: Sequence[int], generator: random.Random) -> list[int]:
    return generator.sample(items, min(MOST_SCORED, len(items)))


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
