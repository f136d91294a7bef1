"""What balanced weights do on streams of rare classes: macro F1 and balanced accuracy, each message predicted before it
is learned, beside no weights, Vowpal Wabbit with importance weights, and scikit-learn with class weights.

The three largest classes of a stream are thinned at random to 90, 7 and 3 %, two classes to 95 and 5 %. Vowpal Wabbit
gets the weights that the model here gives, N / (K · n) after N messages of K labels, n of them with the label;
scikit-learn those of the whole stream, known in advance.

    python tests/benchmarks/weights.py
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from corpora import Corpus, of_several_classes, of_two_classes
from peers import VOWPAL_WABBIT_OF_CLASSES, WORDS, has_vowpal_wabbit, in_batches, run_vowpal_wabbit, write_vowpal_wabbit
from report import Table, arguments_of
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import balanced_accuracy_score, f1_score

from stream_pegasos import AdaptiveClassifier, TextClassifier
from stream_pegasos.learners.class_weights import balanced_weights

SHARES = {2: (0.95, 0.05), 3: (0.9, 0.07, 0.03)}


def thinned(corpus: Corpus, seed: int = 0) -> Corpus:
    """As many messages of its two or three largest classes, in their order, as give them their shares."""
    counts = Counter(corpus.labels).most_common(3)
    shares = SHARES[len(counts)]
    n = min(count / share for (_, count), share in zip(counts, shares, strict=True))
    generator, rows = np.random.default_rng(seed), []
    for (label, _), share in zip(counts, shares, strict=True):
        there = [i for i, each in enumerate(corpus.labels) if each == label]
        rows += generator.choice(there, int(n * share), replace=False).tolist()
    return corpus.rows(sorted(rows))


def ours(corpus: Corpus, weights: Any) -> list[Any]:
    model = TextClassifier(classifier=AdaptiveClassifier(class_weight=weights))
    return [model.predict_learn_many([x], [y]).labels[0] for x, y in zip(corpus.texts, corpus.labels, strict=True)]


def vowpal_wabbit(corpus: Corpus, options: list[str]) -> list[Any]:
    known = corpus.met
    weights, _ = balanced_weights(corpus.labels, {})
    spelled = [f"{known.index(label) + 1} {weight}" for label, weight in zip(corpus.labels, weights, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        messages, path = Path(folder) / "messages.vw", Path(folder) / "answers.txt"
        write_vowpal_wabbit(messages, corpus.texts, spelled, WORDS)
        run_vowpal_wabbit(messages, [*options, "--oaa", str(len(known)), "-p", str(path)])
        return [known[int(line.split()[0]) - 1] for line in path.read_text().splitlines()]


def scikit_learn(corpus: Corpus, loss: str, weights: Any) -> list[Any]:
    known = corpus.met
    y = np.array([known.index(label) for label in corpus.labels])
    n = np.bincount(y)
    of_classes = dict(enumerate(len(y) / (len(n) * n))) if weights else None
    model = SGDClassifier(loss=loss, class_weight=of_classes, random_state=0)
    vectorizer = HashingVectorizer(n_features=2**18)
    return [known[i] for i in in_batches(model, vectorizer, corpus.texts, y, np.arange(len(known)), "predict", 0)]


def answers_of(corpus: Corpus) -> Iterator[tuple[str, list[Any]]]:
    yield "ours, no weights", ours(corpus, None)
    yield "ours, balanced", ours(corpus, "balanced")
    if has_vowpal_wabbit():
        for name, options in VOWPAL_WABBIT_OF_CLASSES.items():
            yield f"Vowpal Wabbit, {name}, balanced", vowpal_wabbit(corpus, options)
    for loss in ("hinge", "log_loss"):
        yield f"scikit-learn, {loss}, balanced", scikit_learn(corpus, loss, "balanced")


def main() -> None:
    arguments_of(__doc__)
    for corpus in map(thinned, (*of_several_classes(), *of_two_classes("waimai_zh"))):
        print(f"\n{corpus.name}: {len(corpus.texts):,} messages, {Counter(corpus.labels).most_common()}")
        table = Table("model", "balanced accuracy", "macro F1")
        for name, answers in answers_of(corpus):
            said = [str(answer) for answer in answers]
            truths = [str(label) for label in corpus.labels]
            score = partial(f1_score, average="macro", zero_division=0.0)
            labels = sorted(set(truths))
            table.row(name, f"{balanced_accuracy_score(truths, said):.4f}", f"{score(truths, said, labels=labels):.4f}")


if __name__ == "__main__":
    main()
