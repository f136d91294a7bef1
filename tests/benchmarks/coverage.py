"""Sets of labels that hold the right one as often as asked: coverage, least coverage of the newest, size of sets.

Each message gets its set before it is learned; no message is left out. A label that is new can be in no set, so that
figures "but new" are of the other messages.

    python tests/benchmarks/coverage.py [--limit N]
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from corpora import Bools, Corpus, Floats, known, of_classes, of_several_classes
from report import Table, arguments_of

from stream_pegasos import AdaptiveClassifier, MailFeatures, MultiLabelClassifier, OrdinalClassifier, TextClassifier
from stream_pegasos.streams import synthetic

COVERAGES = (0.9, 0.95, 0.99)
NEWEST = 500
AROUND = {"ordered": OrdinalClassifier, "labels": MultiLabelClassifier}


def main() -> None:
    arguments = arguments_of(__doc__, limit=int)
    for coverage in COVERAGES:
        least_of = f"least of {NEWEST}"
        head = "accuracy", "seen", "but new", least_of, f"{least_of}, but new", "labels in a set", "sets of one"
        table = Table(f"coverage {coverage}", *head)
        for corpus in streams():
            corpus = corpus.first(arguments.limit)
            right, held, sizes = seen(corpus, coverage)
            rest = held[~new(corpus)]
            shares = (right.mean(), held.mean(), rest.mean(), least(held), least(rest))
            table.row(
                corpus.name, *(f"{each:.3f}" for each in shares), f"{sizes.mean():.2f}", f"{np.mean(sizes == 1):.0%}"
            )


def streams() -> Iterator[Corpus]:
    yield from of_classes("sms_spam", "enron_1to3", "mail_raw", "rt_polarity", "waimai_zh", "hotels_zh")
    yield from of_several_classes()
    yield from (corpus for corpus in known() if corpus.kind in AROUND)
    texts, labels = map(list, zip(*synthetic(seed=1), strict=True))
    yield swapped(Corpus("synthetic", texts, labels, "classes"))
    for corpus in of_classes("banking77", "enron_1to3"):
        yield swapped(corpus)


def swapped(corpus: Corpus) -> Corpus:
    """From the middle on each label stands for another one."""
    half, met = len(corpus.labels) // 2, corpus.met
    other = dict(zip(met, [*met[1:], met[0]], strict=True))
    labels = [*corpus.labels[:half], *(other[label] for label in corpus.labels[half:])]
    return corpus._replace(name=f"{corpus.name}, labels exchanged half-way", labels=labels)


def seen(corpus: Corpus, coverage: float) -> tuple[Bools, Bools, Floats]:
    """Whether each message was predicted right, whether its set held what is right, and the size of the set."""
    classifier = AdaptiveClassifier(coverage=coverage)
    features = MailFeatures() if corpus.name == "mail_raw" else None
    model = TextClassifier(features, AROUND.get(corpus.kind, lambda of: of)(classifier))
    texts = [text.encode("latin-1") for text in corpus.texts] if features else corpus.texts
    said = model.predict_learn_many(texts, corpus.labels)
    truths = [{*label} if corpus.kind == "labels" else {label} for label in corpus.labels]
    predicted = [{*label} if corpus.kind == "labels" else {label} for label in said.labels]
    pairs = zip(truths, predicted, said.sets, strict=True)
    right, held, sizes = zip(*((one == other, one <= {*of}, len(of)) for one, other, of in pairs), strict=True)
    return np.array(right), np.array(held), np.array(sizes, float)


def new(corpus: Corpus) -> Bools:
    """Whether each message has a label that no message before it had."""
    met: set[Any] = set()
    found = []
    for label in corpus.labels:
        labels = {*label} if corpus.kind == "labels" else {label}
        found.append(not labels <= met)
        met |= labels
    return np.array(found)


def least(held: Bools) -> float:
    """The least share over that many messages in a row."""
    return float(np.convolve(held, np.ones(NEWEST) / NEWEST, "valid").min())


if __name__ == "__main__":
    main()
