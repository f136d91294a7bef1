"""What weights of classes and decisions for F1 do on streams of rare classes: accuracy, macro F1 and balanced accuracy,
each message predicted before it is learned, beside Vowpal Wabbit with importance weights and scikit-learn with class
weights. Then micro and macro F1 of several labels a message, by what is decided for.

The three largest classes of a stream are thinned at random to 90, 7 and 3 %, two classes to 95 and 5 %; ours alone also
learns whole streams. Vowpal Wabbit gets the weights of "balanced", N / (K · n) after N messages of K labels,
n of them with the label; scikit-learn those of the whole stream, known in advance. Of messages with a label each, two
in a row make one with both labels.

    python tests/benchmarks/weights.py
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from corpora import Corpus, known, of_several_classes, of_two_classes
from peers import VOWPAL_WABBIT_OF_CLASSES, WORDS, has_vowpal_wabbit, in_batches, run_vowpal_wabbit, write_vowpal_wabbit
from report import Table, arguments_of
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, f1_score, recall_score
from sklearn.preprocessing import MultiLabelBinarizer

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, TextClassifier
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


OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    'ours, class_weight="balanced"': {"class_weight": "balanced"},
    'ours, class_weight="sqrt"': {"class_weight": "sqrt"},
    'ours, decide_for="macro_f1"': {"decide_for": "macro_f1"},
}


def ours(corpus: Corpus, options: dict[str, Any]) -> list[Any]:
    classifier: Any = AdaptiveClassifier(**options)
    model = TextClassifier(classifier=MultiLabelClassifier(classifier) if corpus.kind == "labels" else classifier)
    return [model.predict_learn_many([x], [y]).labels[0] for x, y in zip(corpus.texts, corpus.labels, strict=True)]


def in_pairs(corpus: Corpus) -> Corpus:
    texts = [f"{first} . {second}" for first, second in zip(corpus.texts[::2], corpus.texts[1::2], strict=False)]
    labels = [tuple(dict.fromkeys(pair)) for pair in zip(corpus.labels[::2], corpus.labels[1::2], strict=False)]
    return Corpus(f"{corpus.name}, in pairs", texts, labels, "labels")


def vowpal_wabbit(corpus: Corpus, options: list[str]) -> list[Any]:
    met = corpus.met
    weights, _ = balanced_weights(corpus.labels, {})
    spelled = [f"{met.index(label) + 1} {weight}" for label, weight in zip(corpus.labels, weights, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        messages, path = Path(folder) / "messages.vw", Path(folder) / "answers.txt"
        write_vowpal_wabbit(messages, corpus.texts, spelled, WORDS)
        run_vowpal_wabbit(messages, [*options, "--oaa", str(len(met)), "-p", str(path)])
        return [met[int(line.split()[0]) - 1] for line in path.read_text(encoding="utf-8").splitlines()]


def scikit_learn(corpus: Corpus, loss: str, weights: Any) -> list[Any]:
    met = corpus.met
    y = np.array([met.index(label) for label in corpus.labels])
    n = np.bincount(y)
    of_classes = dict(enumerate(len(y) / (len(n) * n))) if weights else None
    model = SGDClassifier(loss=loss, class_weight=of_classes, random_state=0)
    vectorizer = HashingVectorizer(n_features=2**18)
    return [met[i] for i in in_batches(model, vectorizer, corpus.texts, y, np.arange(len(met)), "predict", 0)]


def answers_of(corpus: Corpus, is_thinned: bool) -> Iterator[tuple[str, list[Any]]]:
    for name, options in OURS.items():
        yield name, ours(corpus, options)
    if not is_thinned:
        return
    if has_vowpal_wabbit():
        for name, options in VOWPAL_WABBIT_OF_CLASSES.items():
            yield f"Vowpal Wabbit, {name}, balanced", vowpal_wabbit(corpus, options)
    for loss in ("hinge", "log_loss"):
        yield f"scikit-learn, {loss}, balanced", scikit_learn(corpus, loss, "balanced")


def show(corpus: Corpus, is_thinned: bool) -> None:
    print(f"\n{corpus.name}: {len(corpus.texts):,} messages, {Counter(corpus.labels).most_common(5)}")
    table = Table("model", "accuracy", "macro F1", "balanced accuracy")
    for name, answers in answers_of(corpus, is_thinned):
        said = [str(answer) for answer in answers]
        truths = [str(label) for label in corpus.labels]
        over_classes: Any = {"average": "macro", "zero_division": 0.0, "labels": sorted(set(truths))}
        macro_f1 = f1_score(truths, said, **over_classes)
        shares = accuracy_score(truths, said), macro_f1, recall_score(truths, said, **over_classes)
        table.row(name, *(f"{share:.4f}" for share in shares))


def show_labels(corpus: Corpus) -> None:
    print(f"\n{corpus.name}: {len(corpus.texts):,} messages, {len(corpus.met)} labels")
    table = Table("model", "micro F1", "macro F1")
    columns = MultiLabelBinarizer(classes=corpus.met)
    truths = columns.fit_transform(corpus.labels)
    for name in ("accuracy", "micro_f1", "macro_f1"):
        said = columns.transform(ours(corpus, {"decide_for": name}))
        scores = (f1_score(truths, said, average=average, zero_division=0.0) for average in ("micro", "macro"))
        table.row(f'ours, decide_for="{name}"', *(f"{score:.4f}" for score in scores))


def main() -> None:
    arguments_of(__doc__)
    of_classes, of_two = [*of_several_classes()], [*of_two_classes("waimai_zh")]
    for corpus in map(thinned, (*of_classes, *of_two)):
        show(corpus, is_thinned=True)
    others = [corpus for corpus in known() if corpus.name in ("sms_spam", "stars", "reuters_topics")]
    for corpus in (*of_classes, *others):
        if corpus.kind != "labels":
            show(corpus, is_thinned=False)
    for corpus in (*(each for each in others if each.kind == "labels"), *map(in_pairs, of_classes[:2])):
        show_labels(corpus)


if __name__ == "__main__":
    main()
