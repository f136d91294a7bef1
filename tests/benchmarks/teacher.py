"""How good a model becomes that a teacher labels a share of the messages for, who is sometimes wrong.

python tests/benchmarks/teacher.py [--limit N] [--seeds N]

No language model is asked: the labels of the stream are the teacher's, but for a share of errors at random. Accuracy is
that of answers before learning, over the second half. teacher_server.py asks a real one.
"""

import random
from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
from corpora import read_records
from report import Table, arguments_of

from stream_pegasos import TextClassifier
from stream_pegasos.runtime.questions import Agreement, Questions

STREAMS = ("sms_spam", "enron_1to3", "rt_polarity", "waimai_zh", "banking77", "tweets_emotion")
ERRORS, SHARES = (0.0, 0.1, 0.2), (0.01, 0.05, 0.2)
MOST = 10_000  # messages of a stream
SURE = 0.98  # of a model against which the teacher may be left out
BY_PEOPLE = 10  # of so many messages a person labels one

Stream = list[tuple[str, str]]
Choice = Callable[[Any], bool]  # whether to ask about a message, by its prediction


def main() -> None:
    arguments = arguments_of(__doc__, limit=MOST, seeds=3)
    streams = {name: stream for name in STREAMS if (stream := read(name, arguments.limit))}
    seeds = range(1, arguments.seeds + 1)
    print_shares(streams, seeds)
    print_ways(streams, seeds)
    print_lessons(streams, seeds)
    print_liars(streams, seeds)


def read(name: str, limit: int) -> Stream:
    return [(record["text"], str(record["label"])) for record in read_records(name)[:limit]]


# --- which to ask -----------------------------------------------------------------------------------------------------


def by_chance(share: float, labels: list[str], rng: random.Random) -> Choice:
    return lambda said: rng.random() < share


class Seeded(Questions):
    """Questions whose random ones differ from seed to seed; without an `rng` there are none."""

    def __init__(self, share: float, labels: list[str], rng: random.Random | None) -> None:
        super().__init__(share, labels=labels)
        self.rng = rng

    def _chance(self) -> float:
        return 1.0 if self.rng is None else self.rng.random()


def ours(share: float, labels: list[str], rng: random.Random | None) -> Choice:
    asker = Seeded(share, labels, rng)
    return lambda said: asker.choose(said)[0]


def no_tenth(share: float, labels: list[str], rng: random.Random) -> Choice:
    return ours(share, labels, None)


def by_class(share: float, labels: list[str], rng: random.Random) -> Choice:
    """As ours, with a threshold for each predicted label."""
    asker, thresholds = Seeded(share, labels, rng), dict[str, float]()

    def choose(said: Any) -> bool:
        label = said.labels[0]
        asker._threshold = thresholds.get(label, asker._threshold)
        asks = asker.choose(said)[0]
        thresholds[label] = asker._threshold
        return asks

    return choose


WAYS = {
    "chance": by_chance,
    "unsure": no_tenth,
    "unsure, by class, a tenth at random": by_class,
    "unsure, a tenth at random: ours": ours,
}


# --- what is taught ---------------------------------------------------------------------------------------------------


def plain(said: Any, label: str, probability: float, n_labels: int) -> float:
    return 1.0


def by_probability(said: Any, label: str, probability: float, n_labels: int) -> float:
    return max(0.0, (probability - 1.0 / n_labels) / (1.0 - 1.0 / n_labels))


def not_against_a_sure_model(said: Any, label: str, probability: float, n_labels: int) -> float:
    chances = dict(zip(said.classes, said.probabilities[0], strict=True))
    best = max(chances, key=chances.__getitem__) if chances else None
    return float(label not in chances or best == label or chances[best] < SURE)


def taught(stream: Stream, share: float, error: float, seed: int, way: Any = ours, weight: Any = plain) -> float:
    """The accuracy over the second half. The teacher's probability is right: its mean is 1 - error, and as often as it
    says so is the label right.
    """
    rng, labels = random.Random(seed), sorted({label for _, label in stream})
    model, asks, right = TextClassifier(), way(share, labels, random.Random(seed)), []
    for text, truth in stream:
        said = model.predictions([text])
        right.append(said.labels[0] == truth)
        if asks(said):
            probability = 1.0 - 2.0 * error * rng.random()
            label = truth if rng.random() < probability else other(truth, labels, rng)
            if w := weight(said, label, probability, len(labels)):
                model.learn_one(text, label, w)
    return fmean(right[len(right) // 2 :])


def other(label: str, labels: list[str], rng: random.Random) -> str:
    return rng.choice([each for each in labels if each != label])


def always(share: float, labels: list[str], rng: random.Random) -> Choice:
    return lambda said: True


def print_shares(streams: dict[str, Stream], seeds: range) -> None:
    for error in ERRORS:
        shares = (f"{share:.0%} {way}" for share in SHARES for way in ("chance", "unsure"))
        table = Table(f"a teacher that is wrong in {error:.0%}: all labels, and a share", "all", *shares)
        for name, stream in streams.items():
            found = [taught(stream, 1.0, error, 1, always)]
            for share in SHARES:
                found += [fmean(taught(stream, share, error, seed, way) for seed in seeds) for way in (by_chance, ours)]
            table.row(name, *(f"{accuracy:.4f}" for accuracy in found))


def print_ways(streams: dict[str, Stream], seeds: range) -> None:
    table = Table("which to ask: mean of all streams and errors", *(f"{share:.0%}" for share in SHARES))
    for name, way in WAYS.items():
        table.row(name, *(f"{mean_of(streams, seeds, share, ERRORS, way=way):.4f}" for share in SHARES))


def print_lessons(streams: dict[str, Stream], seeds: range) -> None:
    table = Table("what is learned: mean of all streams, 10% and 20% errors", *(f"{share:.0%}" for share in SHARES))
    weights = {
        "all alike": plain,
        "weighted by the teacher's probability": by_probability,
        f"none against a model that is sure ({SURE})": not_against_a_sure_model,
    }
    for name, weight in weights.items():
        table.row(name, *(f"{mean_of(streams, seeds, share, ERRORS[1:], weight=weight):.4f}" for share in SHARES))


def mean_of(streams: dict[str, Stream], seeds: range, share: float, errors: Any, **how: Any) -> float:
    runs = ((stream, error, seed) for stream in streams.values() for error in errors for seed in seeds)
    return fmean(taught(stream, share, error, seed, **how) for stream, error, seed in runs)


# --- beside people ----------------------------------------------------------------------------------------------------


def beside_people(stream: Stream, share: float, error: float, seed: int, trusts: bool = False) -> float:
    """The accuracy over the second half where a person labels one message in ten, and a teacher answers for a share."""
    rng, labels = random.Random(seed), sorted({label for _, label in stream})
    model, asker, agreement, right = TextClassifier(), Questions(share or 1.0, labels=labels), Agreement(labels), []
    people = random.Random(seed)
    for text, truth in stream:
        said = model.predictions([text])
        right.append(said.labels[0] == truth)
        is_labelled = people.random() < 1.0 / BY_PEOPLE
        lie = rng.random() < error
        label = other(truth, labels, rng) if lie else truth
        if is_labelled:
            if share and asker.choose_check():
                agreement.add(label, truth)
            model.learn_one(text, truth)
        elif share and asker.choose(said)[0]:
            weight = 1.0 if trusts else agreement.weight(label)
            if weight:
                model.learn_one(text, label, weight)
    return fmean(right[len(right) // 2 :])


def print_liars(streams: dict[str, Stream], seeds: range) -> None:
    head = [f"{share:.0%} {what}" for share in SHARES[1:] for what in ("10% wrong", "liar", "trusted")]
    table = Table("a person labels one in ten: accuracy alone, and with a teacher", "alone", *head, width=13)
    for name, stream in streams.items():
        runs: list[Callable[[int], float]] = [partial(beside_people, stream, 0.0, 0.0)]
        for share in SHARES[1:]:
            runs += [partial(beside_people, stream, share, error) for error in (0.1, 1.0)]
            runs.append(partial(beside_people, stream, share, 1.0, trusts=True))
        table.row(name, *(f"{np.mean([run(seed) for seed in seeds]):.4f}" for run in runs))


if __name__ == "__main__":
    main()
