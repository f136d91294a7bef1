"""The streams that the scripts beside it take: from the folder that STREAM_PEGASOS_DATA names, or ../shared/data, or
from a file of yours. What is missing is left out and named.
"""

import gzip
import os
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from stream_pegasos.streams import StreamError, read

DATA = Path(os.environ.get("STREAM_PEGASOS_DATA", Path(__file__).parents[3] / "shared" / "data"))
SPAM, REVIEWS = ("sms_spam", "enron_1to3", "mail_raw"), ("rt_polarity", "waimai_zh", "hotels_zh")
POSITIVE = dict.fromkeys(SPAM, "spam") | dict.fromkeys(REVIEWS, "pos")

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
OPTIONS = {"stream": [str], "ordered": False, "limit": int}  # which `chosen` reads
Kind = Literal["two classes", "classes", "ordered", "labels"]


class Corpus(NamedTuple):
    name: str
    texts: list[Any]
    labels: list[Any]  # of two classes True for the positive one; where several may hold, a tuple of those that do
    kind: Kind = "two classes"

    @property
    def met(self) -> list[Any]:
        """Each label once, in the order in which they come; of two classes the positive one last."""
        if self.kind == "two classes":
            return [False, True]
        held = [label for labels in self.labels for label in labels] if self.kind == "labels" else self.labels
        return list(dict.fromkeys(held))

    def first(self, n: int | None) -> Self:
        return self._replace(texts=self.texts[:n], labels=self.labels[:n])

    def rows(self, rows: Iterable[int]) -> Self:
        """These messages, in this order."""
        rows = list(rows)
        return self._replace(texts=[self.texts[i] for i in rows], labels=[self.labels[i] for i in rows])


def read_records(name: str) -> list[dict[str, Any]]:
    """The records of one of the streams; none, saying so, where its file is missing."""
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        print(f"{name}: left out, {path.name} is not there")
        return []
    with gzip.open(path) as file:
        return [orjson.loads(line) for line in file]


def of_classes(*names: str) -> Iterator[Corpus]:
    """Streams with a label a message, as it stands there; mails as they came, read as latin-1."""
    for name in names:
        if records := read_records(name):
            field = "raw" if name == "mail_raw" else "text"
            yield Corpus(name, [each[field] for each in records], [each["label"] for each in records], "classes")


def of_two_classes(*names: str) -> Iterator[Corpus]:
    for corpus in of_classes(*names):
        labels = [label == POSITIVE[corpus.name] for label in corpus.labels]
        yield Corpus(corpus.name, corpus.texts, labels)


def of_several_classes() -> Iterator[Corpus]:
    """Of Reuters the stories with a single topic, one of the ten commonest of these."""
    yield from of_classes("banking77", "tweets_emotion")
    if stories := [(record["text"], *record["topics"]) for record in read_records("reuters21578")]:
        stories = [story for story in stories if len(story) == 2]
        commonest = {topic for topic, _ in Counter(topic for _, topic in stories).most_common(10)}
        texts, topics = zip(*(story for story in stories if story[1] in commonest), strict=True)
        yield Corpus("reuters_10", list(texts), list(topics), "classes")


def known() -> Iterator[Corpus]:
    """All of them: of two classes, of several, of ordered ones, of several labels a message."""
    yield from of_two_classes("sms_spam", "enron_1to3", "rt_polarity")
    stories = [record for record in read_records("reuters21578") if record["topics"]]
    texts, topics = [story["text"] for story in stories], [tuple(story["topics"]) for story in stories]
    if stories:
        yield Corpus("reuters_acq", texts, ["acq" in each for each in topics])
    yield from of_two_classes("waimai_zh", "hotels_zh")
    yield from of_several_classes()
    sentences: dict[Any, tuple[str, int]] = {}  # the first phrase of each is the whole of it
    for record in read_records("rotten_tomatoes_phrases"):
        sentences.setdefault(record["sentence"], (record["text"], int(record["label"])))
    if sentences:
        yield Corpus("stars", *map(list, zip(*sentences.values(), strict=True)), "ordered")
    if stories:
        yield Corpus("reuters_topics", texts, topics, "labels")


def read_file(given: str, ordered: bool = False) -> Corpus:
    """A file of texts, FILE or FILE:POSITIVE. Of two labels the last to appear is positive, unless one is named."""
    path, colon, positive = given.rpartition(":")
    if not colon or Path(given).exists():
        path, positive = given, ""
    examples = list(read(path))
    if not examples:
        raise StreamError(f"{path}: no messages")
    name, texts, labels = Path(path).name, [example.x for example in examples], [example.y for example in examples]
    if any(isinstance(label, tuple) for label in labels):
        return Corpus(name, texts, labels, "labels")
    if ordered or (not positive and len(set(labels)) > 2):
        return Corpus(name, texts, labels, "ordered" if ordered else "classes")
    positive = positive or str(list(dict.fromkeys(labels))[-1])
    labels = [str(label) == positive for label in labels]
    if all(labels) or not any(labels):
        raise StreamError(
            f"{name}: {len(labels):,} messages of one class only; take more of them, or name the label that is "
            "positive: --stream FILE:POSITIVE"
        )
    return Corpus(name, texts, labels)


def chosen(arguments: Namespace) -> Iterator[Corpus]:
    """What these options say: the streams given, or all that are known."""
    given = arguments.stream
    for corpus in (read_file(name, arguments.ordered) for name in given) if given else known():
        yield corpus.first(arguments.limit)
