"""Accuracy over the stream beside Vowpal Wabbit, River, scikit-learn and bogofilter.

Each model takes one pass and predicts every message before it learns it; with --split it learns the first 80 % and
predicts the rest, beside models that see the first part many times. Streams of two classes, of several, of ordered ones
and of several labels a message come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data, or are
yours; what is missing of them or of the peers is left out and named. In Chinese peers find words as they do by
themselves, and also get its characters, or the words that jieba cuts.

    python tests/benchmarks/accuracy.py [--stream FILE[:POSITIVE]] [--ordered] [--split [--figure PNG]]
                                        [--only ours,vw,river,sklearn,bogofilter] [--limit N] [--markdown]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import several
import split
from numpy.typing import NDArray
from peers import (
    CHARACTERS,
    WORDS,
    expected_calibration_error,
    has_vowpal_wabbit,
    is_chinese,
    is_installed,
    print_head,
    print_row,
    read_records,
    run_vowpal_wabbit,
    words_by_jieba,
    write_vowpal_wabbit,
)
from river import feature_extraction, linear_model, naive_bayes
from scipy.special import expit
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.naive_bayes import ComplementNB, MultinomialNB

from stream_pegasos import HashedBagOfWords, PegasosClassifier, TextClassifier
from stream_pegasos.streams import StreamError, read


def recipe(features: dict[str, Any], classifier: dict[str, Any]) -> TextClassifier:
    """The default text model with other values for some parameters of its parts."""
    default = TextClassifier()
    return TextClassifier(default.features.clone(features), default.classifier.clone(classifier))


# The recipe, then the same with one part more, left out or changed.
VARIANTS: dict[str, Callable[[], TextClassifier]] = {
    "TextClassifier()": TextClassifier,
    **several.recipe_with_vectors("classes"),
    **{
        name: partial(recipe, features, classifier)
        for name, features, classifier in [
            ("without pairs", {"ngram_range": (1, 1)}, {}),
            ("with triples", {"ngram_range": (1, 3)}, {}),
            (r"words by \w+, not of any language", {"token_pattern": r"\w+|[^\w\s]"}, {}),
            ("without punctuation marks", {"token_pattern": r"\w+"}, {}),
            ("... nor words of one character", {"token_pattern": r"\b\w\w+\b"}, {}),
            ("with upper case", {"lowercase": False}, {}),
            ("without masked digits", {"mask_digits": False}, {}),
            ("without beginnings of words", {"prefix_length": 0}, {}),
            ("without boundaries", {"boundaries": False}, {}),
            ("counts", {"binary": False}, {}),
            ("hinge loss", {}, {"loss": "hinge"}),
            ("without naive Bayes", {}, {"naive_bayes": False}),
            ("without intercept", {}, {"fit_intercept": False}),
            ("no half-life", {}, {"half_life": None}),
            ("half-life 1,000", {}, {"half_life": 1_000}),
            ("learning from every message", {}, {"margin": None}),
            ("learning rate 0.25", {}, {"learning_rate": 0.25}),
            ("learning rate 1", {}, {"learning_rate": 1.0}),
        ]
    },
    "Pegasos, t0 = 1/l2": lambda: TextClassifier(classifier=PegasosClassifier(t0=1e4)),
    "Pegasos, t0 = 1/l2, words": lambda: TextClassifier(HashedBagOfWords(), PegasosClassifier(t0=1e4)),
    "Pegasos as published, words": lambda: TextClassifier(HashedBagOfWords(), PegasosClassifier()),
}
VOWPAL_WABBIT = {
    "hinge": ["--loss_function", "hinge", "-b", "18"],
    "logistic": ["--loss_function", "logistic", "-b", "18"],
    "hinge, --ngram 2": ["--loss_function", "hinge", "--ngram", "2", "-b", "22"],
    "logistic, --ngram 2": ["--loss_function", "logistic", "--ngram", "2", "-b", "22"],
}
VOWPAL_WABBIT_OF_CHINESE = {
    f"characters, {loss}, --ngram {n}": ["--loss_function", loss, "--ngram", str(n), "-b", "22"]
    for n in (2, 3)
    for loss in ("hinge", "logistic")
}
RIVER = {
    "LogisticRegression": linear_model.LogisticRegression,
    "PAClassifier": linear_model.PAClassifier,
    "MultinomialNB": naive_bayes.MultinomialNB,
}
SCIKIT_LEARN: dict[str, Callable[[], Any]] = {
    "SGDClassifier, hinge": lambda: SGDClassifier(random_state=0),
    "SGDClassifier, log_loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "SGDClassifier, passive-aggressive": lambda: SGDClassifier(
        penalty=None, learning_rate="pa1", eta0=1.0, random_state=0
    ),
    "MultinomialNB": MultinomialNB,
    "ComplementNB": ComplementNB,
}
BATCH = 100  # the messages that scikit-learn's models predict, and then learn, at a time

LONGEST_FOR_BOGOFILTER = 20_000  # it takes two processes a message, so of longer streams it reads the beginning
BEGINNING = 5_000
NO_WORD_KNOWN = 0.52  # its score of a message that gives it no evidence

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Answers(NamedTuple):
    """What a model said of each message before it learned it, and how long that took."""

    margins: Floats  # above 0 where the positive class is predicted
    probabilities: Floats | None  # of the positive class; None if the model gives none
    seconds: float


class Stream(NamedTuple):
    name: str
    texts: list[str]
    labels: Bools  # True for the positive class


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stream", action="append", metavar="FILE[:POSITIVE]", help="a stream of yours; repeatable")
    parser.add_argument("--ordered", action="store_true", help="the classes of --stream have an order")
    parser.add_argument("--split", action="store_true", help="learn the first 80 %%, predict the rest")
    parser.add_argument("--figure", metavar="PNG", help="with --split: draw accuracy over speed into this file")
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run, separated by commas")
    parser.add_argument("--limit", type=int, help="take the first so many messages of each stream")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    parts = arguments.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    try:
        given: Iterable[Stream | several.Stream] = chain(known_streams(), several.known_streams())
        if arguments.stream:
            given = [read_stream(name, arguments.ordered) for name in arguments.stream]
        begun = (
            stream._replace(texts=stream.texts[: arguments.limit], labels=stream.labels[: arguments.limit])
            for stream in given
        )
        if arguments.split:
            one_of = [stream for stream in begun if isinstance(stream, Stream) or stream.kind == "classes"]
            streams = [(name, texts, list(labels)) for name, texts, labels, *_ in one_of]
            found = split.print_table(streams, arguments.markdown)
            if arguments.figure:
                split.draw(found, len(streams)).savefig(arguments.figure)
            return
        for stream in begun:
            if isinstance(stream, Stream):
                evaluate(stream, parts, arguments.markdown)
            else:
                several.evaluate(stream, parts, arguments.markdown)
    except (OSError, StreamError) as error:
        sys.exit(f"{error}")


def evaluate(stream: Stream, parts: list[str], markdown: bool) -> None:
    """Print the table of a stream, each row as soon as it is known."""
    if stream.labels.all() or not stream.labels.any():
        raise StreamError(
            f"{stream.name}: {len(stream.labels):,} messages of one class only; take more of them, or name the label "
            "that is positive: --stream FILE:POSITIVE"
        )
    print(f"\n{stream.name}: {len(stream.labels):,} messages, {stream.labels.mean():.1%} positive\n")
    print_head(["", "accuracy", "100 (1 - AUC)", "log loss", "calibration error", "docs/s"], markdown)
    for part in parts:
        for name, answers in PARTS[part](stream.texts, stream.labels):
            print_row([name, *figures(answers, stream.labels)], markdown)


def figures(answers: Answers, labels: Bools) -> list[str]:
    """The cells of a row: of the messages that were answered, which are the first ones."""
    n = len(answers.margins)
    labels, probabilities = labels[:n], answers.probabilities
    accuracy = ((answers.margins > 0.0) == labels).mean()
    area = roc_auc_score(labels, answers.margins)
    loss = calibration = "-"
    if probabilities is not None:
        loss = f"{log_loss(labels, np.clip(probabilities, 1e-6, 1.0 - 1e-6)):.4f}"
        calibration = f"{expected_calibration_error(probabilities, labels):.4f}"
    return [f"{accuracy:.4f}", f"{100.0 * (1.0 - area):.3f}", loss, calibration, f"{n / answers.seconds:,.0f}"]


# --- streams ----------------------------------------------------------------------------------------------------------


def known_streams() -> Iterator[Stream]:
    yield from labelled({"sms_spam": "spam", "enron_1to3": "spam", "rt_polarity": "pos"})
    if records := [record for record in read_records("reuters21578") if record["topics"]]:
        labels = np.array(["acq" in record["topics"] for record in records])
        yield Stream("reuters_acq", [record["text"] for record in records], labels)
    yield from labelled({"waimai_zh": "pos", "hotels_zh": "pos"})


def labelled(positives: dict[str, str]) -> Iterator[Stream]:
    """The streams of these names, each with its label that is positive."""
    for name, positive in positives.items():
        if records := read_records(name):
            labels = np.array([record["label"] == positive for record in records])
            yield Stream(name, [record["text"] for record in records], labels)


def read_stream(given: str, ordered: bool = False) -> Stream | several.Stream:
    """A file of texts in any format that the package reads; of two labels the last to appear is positive, unless named.

    A file with more labels is a stream of several classes unless a positive one is named, one with lists of labels a
    stream of several labels a message.
    """
    path, colon, positive = given.rpartition(":")
    if not colon or Path(given).exists():
        path, positive = given, ""
    examples = list(read(path))
    if not examples:
        raise StreamError(f"{path}: no messages")
    name, texts, labels = Path(path).name, [example.x for example in examples], [example.y for example in examples]
    if any(isinstance(label, tuple) for label in labels):
        return several.Stream(name, texts, labels, "labels")
    if ordered or (not positive and len(set(labels)) > 2):
        return several.Stream(name, texts, labels, "ordered" if ordered else "classes")
    labels = [str(label) for label in labels]
    positive = positive or list(dict.fromkeys(labels))[-1]
    return Stream(name, texts, np.array(labels) == positive)


# --- models -----------------------------------------------------------------------------------------------------------


def ours(texts: list[str], labels: Bools) -> Iterator[tuple[str, Answers]]:
    for name, make in VARIANTS.items():
        start = time.perf_counter()
        margins = make().predict_learn_many(texts, labels).scores
        seconds = time.perf_counter() - start
        probabilities = one_by_one(make(), texts, labels)[:, 1]
        yield f"ours: {name}", Answers(margins, probabilities, seconds)


def river(texts: list[str], labels: Bools) -> Iterator[tuple[str, Answers]]:
    for (name, make), (by, tokenizer) in product(RIVER.items(), tokenizers(texts).items()):
        start = time.perf_counter()
        bag = feature_extraction.BagOfWords(tokenizer=tokenizer)
        probabilities = one_by_one(bag | make(), texts, labels)
        seconds = time.perf_counter() - start
        yield f"River: {name}{by}", Answers(log_odds(probabilities), probabilities[:, 1], seconds)


def tokenizers(texts: list[str]) -> dict[str, Callable[[str], list[str]] | None]:
    """How River's and scikit-learn's models find words, by what their names say of it: as they do, or by jieba."""
    chinese = is_chinese(texts) and is_installed("jieba", "jieba")
    return {"": None, ", words by jieba": words_by_jieba} if chinese else {"": None}


def one_by_one(model: Any, texts: list[str], labels: Bools) -> Floats:
    """The probabilities of both classes, a row a message, from River's protocol."""
    rows = []
    for text, label in zip(texts, labels.tolist(), strict=True):
        known = model.predict_proba_one(text) or {False: 0.5, True: 0.5}
        rows.append((known.get(False, 0.0), known.get(True, 0.0)))
        model.learn_one(text, label)
    return np.array(rows)


def log_odds(probabilities: Floats) -> Floats:
    """Margins that still differ where probabilities of the positive class have been rounded to 1."""
    negative, positive = np.log(np.maximum(probabilities, sys.float_info.min)).T
    return positive - negative


def vowpal_wabbit(texts: list[str], labels: Bools) -> Iterator[tuple[str, Answers]]:
    if not has_vowpal_wabbit():
        return
    with tempfile.TemporaryDirectory() as folder:
        messages, raw = Path(folder) / "messages.vw", Path(folder) / "raw.txt"
        given = [(WORDS, VOWPAL_WABBIT), (CHARACTERS, VOWPAL_WABBIT_OF_CHINESE)]
        for tokens, models in given if is_chinese(texts) else given[:1]:
            write_vowpal_wabbit(messages, texts, np.where(labels, 1, -1), tokens)
            for name, options in models.items():
                start = time.perf_counter()
                run_vowpal_wabbit(messages, [*options, "-r", str(raw)])  # -p would cut margins of the hinge loss at ±1
                seconds = time.perf_counter() - start
                margins = np.loadtxt(raw, ndmin=1)
                probabilities = expit(margins) if "logistic" in options else None
                yield f"Vowpal Wabbit: {name}", Answers(margins, probabilities, seconds)


def scikit_learn(texts: list[str], labels: Bools) -> Iterator[tuple[str, Answers]]:
    for (name, make), (by, tokenizer) in product(SCIKIT_LEARN.items(), tokenizers(texts).items()):
        model = make()
        is_bayes = isinstance(model, MultinomialNB | ComplementNB)
        as_counts: dict[str, Any] = {"alternate_sign": False, "norm": None} if is_bayes else {}
        vectorizer = HashingVectorizer(analyzer=tokenizer or "word", **as_counts)
        start = time.perf_counter()
        answers = in_batches(model, vectorizer, texts, labels)
        seconds = time.perf_counter() - start
        if answers.ndim == 2:
            yield f"scikit-learn: {name}{by}", Answers(log_odds(answers), answers[:, 1], seconds)
        else:
            yield f"scikit-learn: {name}{by}", Answers(answers, None, seconds)


def in_batches(model: Any, vectorizer: Any, texts: list[str], labels: Bools) -> Floats:
    """Probabilities of both classes, or margins where there are none; of the first batch 0.5 or 0."""
    has_probabilities = hasattr(model, "predict_proba")
    answers = []
    for begin in range(0, len(texts), BATCH):
        X = vectorizer.transform(texts[begin : begin + BATCH])
        if begin == 0:
            answers.append(np.full((X.shape[0], 2), 0.5) if has_probabilities else np.zeros(X.shape[0]))
        else:
            answers.append(model.predict_proba(X) if has_probabilities else model.decision_function(X))
        model.partial_fit(X, labels[begin : begin + BATCH], classes=[False, True])
    return np.concatenate(answers)


def bogofilter(texts: list[str], labels: Bools) -> Iterator[tuple[str, Answers]]:
    """Positive above a score of 0.5, but for messages in which it knows no word; a text is a body without headers."""
    if shutil.which("bogofilter") is None:
        print("bogofilter: left out, it is not installed")
        return
    name = "bogofilter"
    if len(texts) > LONGEST_FOR_BOGOFILTER:
        texts, labels = texts[:BEGINNING], labels[:BEGINNING]
        name += f", the first {BEGINNING:,} messages"
    scores = np.full(len(texts), NO_WORD_KNOWN)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:

        def run(option: str, message: bytes) -> bytes:
            # It exits with 0, 1 or 2 for spam, ham and unsure, and with 3 for an error.
            done = subprocess.run(["bogofilter", "-C", "-d", folder, option], input=message, capture_output=True)
            if done.returncode == 3:
                raise OSError(f"bogofilter: {done.stderr.decode().strip()}")
            return done.stdout

        for i, (text, label) in enumerate(zip(texts, labels, strict=True)):
            message = b"\n" + text.encode(errors="replace")
            if i > 0:  # without a list of words it refuses
                scores[i] = float(run("-TT", message))
            run("-s" if label else "-n", message)
    margins = np.where(scores == NO_WORD_KNOWN, 0.0, scores - 0.5)
    yield name, Answers(margins, scores, time.perf_counter() - start)


PARTS: dict[str, Callable[[list[str], Bools], Iterator[tuple[str, Answers]]]] = {
    "ours": ours,
    "vw": vowpal_wabbit,
    "river": river,
    "sklearn": scikit_learn,
    "bogofilter": bogofilter,
}


if __name__ == "__main__":
    main()
