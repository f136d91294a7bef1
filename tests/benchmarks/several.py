"""The part of accuracy.py for several classes, ordered ones among them, and for several labels a message."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from peers import (
    WORDLLAMA,
    expected_calibration_error,
    has_vowpal_wabbit,
    has_word_vectors,
    print_head,
    print_row,
    read_records,
    run_vowpal_wabbit,
    streams_of_several_classes,
    write_vowpal_wabbit,
)
from river import feature_extraction, linear_model, multiclass, naive_bayes
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import f1_score
from sklearn.multioutput import MultiOutputClassifier

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
)

Kind = Literal["classes", "ordered", "labels"]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

BATCH = 100  # the messages that scikit-learn's models predict, and then learn, at a time


class Stream(NamedTuple):
    name: str
    texts: list[str]
    labels: list[Any]  # tuples of those that hold, where several may
    kind: Kind

    @property
    def met(self) -> list[Any]:
        """Each label once, in the order in which they come."""
        held = [label for labels in self.labels for label in labels] if self.kind == "labels" else self.labels
        return list(dict.fromkeys(held))


class Answers(NamedTuple):
    """What a model said of the first messages, or of all, before it learned each, and how long that took."""

    labels: list[Any]  # `None` where nothing was known yet
    seconds: float
    classes: list[Any] | None = None  # `None` if the model gives no probabilities
    probabilities: Floats | None = None  # a column a class


CLASSIFIERS: dict[Kind, Callable[[], Any]] = {
    "classes": AdaptiveClassifier,
    "ordered": OrdinalClassifier,
    "labels": MultiLabelClassifier,
}


def recipe(kind: Kind, vectors: Any = None) -> TextClassifier:
    """The default text model for labels of a kind, with word vectors where a table is given."""
    return TextClassifier(TextFeatures(vectors=vectors), CLASSIFIERS[kind]())


def recipe_with_vectors(kind: Kind) -> dict[str, Callable[[], TextClassifier]]:
    """By its name in a table; nothing where the package with the vectors is missing."""
    return {"with word vectors": partial(recipe, kind, WORDLLAMA)} if has_word_vectors() else {}


OURS: dict[Kind, dict[str, Callable[[], TextClassifier]]] = {
    "classes": {
        "TextClassifier()": TextClassifier,
        **recipe_with_vectors("classes"),
        "Pegasos, t0 = 1/l2, one against the rest": lambda: TextClassifier(
            classifier=PegasosClassifier(t0=1e4, multi_class="ovr")
        ),
        "Pegasos, t0 = 1/l2, Crammer and Singer": lambda: TextClassifier(
            classifier=PegasosClassifier(t0=1e4, multi_class="crammer_singer")
        ),
    },
    "ordered": {
        "OrdinalClassifier()": partial(recipe, "ordered"),
        **recipe_with_vectors("ordered"),
        "neighbouring pairs, Pegasos, t0 = 1/l2": lambda: TextClassifier(
            classifier=OrdinalClassifier(PegasosClassifier(t0=1e4))
        ),
        "TextClassifier(), without order": TextClassifier,
    },
    "labels": {"MultiLabelClassifier()": partial(recipe, "labels"), **recipe_with_vectors("labels")},
}
VOWPAL_WABBIT = {  # the first of the losses is its default
    **{loss: ["--loss_function", loss] for loss in ("squared", "hinge", "logistic")},
    **{f"{loss}, --ngram 2": ["--loss_function", loss, "--ngram", "2"] for loss in ("squared", "hinge", "logistic")},
}
RIVER: dict[str, Callable[[], Any]] = {
    "OneVsRestClassifier(TextClassifier())": lambda: multiclass.OneVsRestClassifier(TextClassifier()),
    "OneVsRestClassifier(LogisticRegression())": lambda: (
        feature_extraction.BagOfWords() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    ),
    "MultinomialNB": lambda: feature_extraction.BagOfWords() | naive_bayes.MultinomialNB(),
}
SCIKIT_LEARN: dict[str, Callable[[], Any]] = {
    "SGDClassifier, hinge": partial(SGDClassifier, random_state=0),
    "SGDClassifier, log_loss": partial(SGDClassifier, loss="log_loss", random_state=0),
}


# --- streams ----------------------------------------------------------------------------------------------------------


def known_streams() -> Iterator[Stream]:
    for name, texts, labels in streams_of_several_classes():
        yield Stream(name, texts, labels, "classes")
    sentences: dict[Any, tuple[str, int]] = {}  # the first phrase of each is the whole of it
    for record in read_records("rotten_tomatoes_phrases"):
        sentences.setdefault(record["sentence"], (record["text"], int(record["label"])))
    if sentences:
        texts, stars = zip(*sentences.values(), strict=True)
        yield Stream("stars", list(texts), list(stars), "ordered")
    if stories := [record for record in read_records("reuters21578") if record["topics"]]:
        topics = [tuple(story["topics"]) for story in stories]
        yield Stream("reuters_topics", [story["text"] for story in stories], topics, "labels")


# --- figures ----------------------------------------------------------------------------------------------------------


def evaluate(stream: Stream, parts: list[str], markdown: bool) -> None:
    """Print the table of a stream, each row as soon as it is known."""
    what = "labels, several a message" if stream.kind == "labels" else f"{stream.kind} classes".removeprefix("classes ")
    print(f"\n{stream.name}: {len(stream.labels):,} messages, {len(stream.met)} {what}\n")
    print_head(["", *HEADS[stream.kind], "macro F1", "log loss", "calibration error", "docs/s"], markdown)
    for part in parts:
        if part in PARTS:
            for name, answers in PARTS[part](stream):
                print_row([name, *figures(answers, stream)], markdown)


HEADS: dict[Kind, list[str]] = {
    "classes": ["accuracy"],
    "ordered": ["accuracy", "absolute error"],
    "labels": ["micro F1"],
}


def figures(answers: Answers, stream: Stream) -> list[str]:
    """The cells of a row: of the messages that were answered, which are the first ones."""
    n = len(answers.labels)
    stream = stream._replace(texts=stream.texts[:n], labels=stream.labels[:n])
    of_kind = figures_of_labels if stream.kind == "labels" else figures_of_classes
    cells = of_kind(answers, stream)
    return [*("-" if cell is None else f"{cell:.4f}" for cell in cells), f"{n / answers.seconds:,.0f}"]


def figures_of_classes(answers: Answers, stream: Stream) -> list[float | None]:
    """Log loss and the calibration of the label predicted are about what a model could know: a label that no message
    had before has the probability 1/(K + 1) beside K that were met, and the first one 1/2.
    """
    numbers = {label: number for number, label in enumerate(stream.met)}
    truths = np.array([numbers[label] for label in stream.labels])
    predicted = np.array([numbers.get(label, -1) for label in answers.labels])
    right = truths == predicted
    cells: list[float | None] = [right.mean()]
    if stream.kind == "ordered":
        cells.append(absolute_error(answers.labels, stream.labels))
    cells.append(f1_score(truths, predicted, labels=list(range(len(numbers))), average="macro", zero_division=0.0))
    if answers.probabilities is None or answers.classes is None:
        return [*cells, None, None]
    given = columns_of(answers, stream)
    rows = np.arange(len(truths))
    n_met = np.maximum.accumulate(truths) + 1  # since they are numbered as they come
    is_new = np.append(True, truths[1:] >= n_met[:-1])
    of_truth = np.where(is_new, 1.0 / np.maximum(n_met, 2), given[rows, truths])
    said = predicted >= 0
    of_predicted = given[rows, predicted][said]
    cells.append(-float(np.log(np.clip(of_truth, 1e-6, 1.0)).mean()))
    return [*cells, expected_calibration_error(of_predicted, right[said])]


def absolute_error(predicted: list[Any], truths: list[Any]) -> float:
    """Of the messages that had an answer."""
    known = [(label, truth) for label, truth in zip(predicted, truths, strict=True) if label is not None]
    return float(np.mean([abs(label - truth) for label, truth in known]))


def score(predicted: list[Any], stream: Stream) -> float:
    """How good answers are, by the one figure that says most of labels of this kind."""
    if stream.kind == "ordered":
        return absolute_error(predicted, stream.labels)
    if stream.kind == "labels":
        of = stream.met
        return float(f1_score(held(stream.labels, of), held(predicted, of), average="micro", zero_division=0.0))
    return float(np.mean([label == truth for label, truth in zip(predicted, stream.labels, strict=True)]))


def figures_of_labels(answers: Answers, stream: Stream) -> list[float | None]:
    """Log loss is about each label that was known, and 1/2 for one that was not and holds; the calibration about those
    that were predicted to hold.
    """
    truths, predicted = held(stream.labels, stream.met), held(answers.labels, stream.met)
    cells: list[float | None] = [
        f1_score(truths, predicted, average=average, zero_division=0.0) for average in ("micro", "macro")
    ]
    if answers.probabilities is None or answers.classes is None:
        return [*cells, None, None]
    given = columns_of(answers, stream)
    of_truth = np.where(truths, np.where(given > 0.0, given, 0.5), 1.0 - given)
    counted = truths | (given > 0.0)
    cells.append(-float(np.log(np.clip(of_truth[counted], 1e-6, 1.0)).mean()))
    return [*cells, expected_calibration_error(given[predicted], truths[predicted])]


def columns_of(answers: Answers, stream: Stream) -> Floats:
    """The probabilities with a column for each label of the stream, in the order in which they come."""
    assert answers.classes is not None and answers.probabilities is not None
    wide = np.concatenate([answers.probabilities, np.zeros((len(answers.labels), 1))], axis=1)
    places = {label: place for place, label in enumerate(answers.classes)}
    return wide[:, [places.get(label, -1) for label in stream.met]]


def held(labels: list[Any], of: list[Any]) -> Bools:
    """Which labels hold, a column for each."""
    places = {label: place for place, label in enumerate(of)}
    holds = np.zeros((len(labels), len(of)), bool)
    for row, each in enumerate(labels):
        holds[row, [places[label] for label in each]] = True
    return holds


# --- models -----------------------------------------------------------------------------------------------------------


def ours(stream: Stream) -> Iterator[tuple[str, Answers]]:
    for name, make in OURS[stream.kind].items():
        start = time.perf_counter()
        said = make().predict_learn_many(stream.texts, stream.labels)
        labels = said.labels.tolist()
        seconds = time.perf_counter() - start
        yield f"ours: {name}", Answers(labels, seconds, list(said.classes), said.probabilities)


def vowpal_wabbit(stream: Stream) -> Iterator[tuple[str, Answers]]:
    if not has_vowpal_wabbit():
        return
    known, together = stream.met, stream.kind == "labels"
    option, first = ("--multilabel_oaa", 0) if together else ("--oaa", 1)
    numbers = {label: number for number, label in enumerate(known, start=first)}

    def spelled(label: Any) -> str:
        return ",".join(str(numbers[each]) for each in label) if together else str(numbers[label])

    with tempfile.TemporaryDirectory() as folder:
        messages, answers = Path(folder) / "messages.vw", Path(folder) / "answers.txt"
        write_vowpal_wabbit(messages, stream.texts, map(spelled, stream.labels))
        for name, options in VOWPAL_WABBIT.items():
            options = [option, str(len(known)), *options, "-b", "22", "-p", str(answers)]
            start = time.perf_counter()
            run_vowpal_wabbit(messages, options)
            seconds = time.perf_counter() - start
            lines = [line.strip() for line in answers.read_text().splitlines()]
            if together:
                labels = [tuple(known[int(number)] for number in line.split(",") if number) for line in lines]
                yield f"Vowpal Wabbit: {option}, {name}", Answers(labels, seconds)
                continue
            labels = [known[int(line) - 1] for line in lines]
            probabilities = None
            if "logistic" in options:
                run_vowpal_wabbit(messages, [*options, "--probabilities"])
                probabilities = np.array(
                    [
                        [float(pair.partition(":")[2]) for pair in line.split()]
                        for line in answers.read_text().splitlines()
                    ]
                )
            yield f"Vowpal Wabbit: {option}, {name}", Answers(labels, seconds, known, probabilities)


def river(stream: Stream) -> Iterator[tuple[str, Answers]]:
    if stream.kind == "labels":
        return
    for name, make in RIVER.items():
        model, answers = make(), []
        start = time.perf_counter()
        for text, label in zip(stream.texts, stream.labels, strict=True):
            answers.append(model.predict_proba_one(text))
            model.learn_one(text, label)
        seconds = time.perf_counter() - start
        probabilities = np.array([[answer.get(label, 0.0) for label in stream.met] for answer in answers])
        predicted = [max(answer, key=answer.get) if answer else None for answer in answers]
        yield f"River: {name}", Answers(predicted, seconds, stream.met, probabilities)


def scikit_learn(stream: Stream) -> Iterator[tuple[str, Answers]]:
    known, together = stream.met, stream.kind == "labels"
    vectorizer = HashingVectorizer(n_features=2**18)  # its models have a dense row for each class
    y = held(stream.labels, known) if together else np.array([known.index(label) for label in stream.labels])
    for name, make in SCIKIT_LEARN.items():
        model = MultiOutputClassifier(make()) if together else make()
        classes = [np.array([False, True])] * len(known) if together else np.arange(len(known))
        predicted, probabilities = [np.zeros_like(y[:BATCH])], [np.full((len(y[:BATCH]), len(known)), 1.0 / len(known))]
        start = time.perf_counter()
        for begin in range(0, len(y), BATCH):
            X = vectorizer.transform(stream.texts[begin : begin + BATCH])
            if begin:
                predicted.append(model.predict(X))
                if "log_loss" in name and not together:
                    probabilities.append(model.predict_proba(X))
            model.partial_fit(X, y[begin : begin + BATCH], classes=classes)
        seconds = time.perf_counter() - start
        if together:
            labels = [tuple(known[place] for place in np.flatnonzero(row)) for row in np.concatenate(predicted)]
        else:
            labels = [known[place] for place in np.concatenate(predicted)]
        if len(probabilities) > 1:
            yield f"scikit-learn: {name}", Answers(labels, seconds, known, np.concatenate(probabilities))
        else:
            yield f"scikit-learn: {name}", Answers(labels, seconds)


PARTS: dict[str, Callable[[Stream], Iterator[tuple[str, Answers]]]] = {
    "ours": ours,
    "vw": vowpal_wabbit,
    "river": river,
    "sklearn": scikit_learn,
}
