"""The part of accuracy.py that learns the first 80 % of a stream in one pass and predicts the last 20 % unlearned.

Beside it stand others that take one pass, and models that see the first part as often as they like. Each is timed from
texts to answers, with what its user does to texts first: Vowpal Wabbit and fastText get theirs from a file, one a line,
through sed, tr and paste; the others get them as they are, from memory.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import several
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from peers import HAN, is_chinese, print_head, print_row, run_vowpal_wabbit, words_by_jieba
from river import feature_extraction, naive_bayes
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from stream_pegasos import TextClassifier

LEARNED = 0.8
SHORT = 5.0  # seconds
# What all get; sklearn's own words of two characters and more are worse. Of Chinese each character is a word.
WORDS_AND_MARKS = rf"[{HAN}]|[^\W{HAN}]+|[^\w\s]"
# The same for tools that read files, as in fastText's tutorial, by bytes, which is fast: spaces go around each mark,
# and around the three bytes of each Chinese character and of most marks that are not of ASCII.
MARKS = r"[[:punct:]]|[\xe2-\xe9\xef][\x80-\xbf]{2}"
UPPER, LOWER = "[:upper:]", "[:lower:]"

Answer = Callable[[list[str], list[Any], list[str]], Sequence[Any]]  # to later texts, given texts and their labels
# Gets the same, and a folder of its own, ready beforehand, and returns the work that is timed.
Model = Callable[[list[str], list[Any], list[str], Path], Callable[[], Sequence[Any]]]


def from_memory(answer: Answer) -> Model:
    return lambda texts, labels, later, folder: partial(answer, texts, labels, later)


def write_lines(folder: Path, texts: Iterable[str], labels: Iterable[str]) -> None:
    """Texts as they are, one a line, and beside them what stands before each of them."""
    lines = {"texts.txt": (" ".join(text.split()) for text in texts), "labels.txt": labels}
    for name, each in lines.items():
        (folder / name).write_text("".join(f"{line}\n" for line in each), encoding="utf-8", errors="replace")


def run_in(folder: Path, command: str) -> None:
    subprocess.run(command, shell=True, cwd=folder, check=True, env={**os.environ, "LC_ALL": "C"})


def write_tokens(folder: Path, upper: str = UPPER, lower: str = LOWER) -> None:
    """What stands before a text, and its words and marks in lower case, one text a line."""
    run_in(
        folder,
        f"sed -E 's/{MARKS}/ & /g' texts.txt | tr '{upper}' '{lower}' | paste -d ' ' labels.txt - > tokens.txt",
    )


def ours(make: Callable[[], TextClassifier]) -> Model:
    @from_memory
    def answer(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
        model = make()
        model.learn_many(texts, labels)
        return model.predict_many(later).tolist()

    return answer


def tfidf(make: Callable[[], Any], **words: Any) -> Model:
    @from_memory
    def answer(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), **(words or {"token_pattern": WORDS_AND_MARKS}))
        model = make().fit(vectorizer.fit_transform(texts), labels)
        return model.predict(vectorizer.transform(later)).tolist()

    return answer


def nbsvm(beta: float) -> Model:
    """Wang and Manning, Baselines and bigrams, ACL 2012: α = 1, C = 1; each class against the rest.

    Published with β = 0.25, for classes of equal size; at β = 1 it is an SVM on features times their log-count ratio.
    """

    @from_memory
    def answer(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
        vectorizer = CountVectorizer(binary=True, ngram_range=(1, 2), token_pattern=WORDS_AND_MARKS)
        X, Z = vectorizer.fit_transform(texts), vectorizer.transform(later)
        classes = list(dict.fromkeys(labels))
        scores = []
        for label in classes:
            is_of = np.array([each == label for each in labels])
            p, q = (1.0 + np.asarray(X[rows].sum(axis=0)).ravel() for rows in (is_of, ~is_of))
            ratio = np.log((p / p.sum()) / (q / q.sum()))
            model = LinearSVC(C=1.0, dual=True, tol=0.01, max_iter=2_000, random_state=0)
            model.fit(X.multiply(ratio).tocsr(), is_of)
            weights = model.coef_[0]
            weights = (1.0 - beta) * np.abs(weights).mean() + beta * weights
            scores.append(Z @ (ratio * weights) + model.intercept_)
        return [classes[best] for best in np.argmax(scores, axis=0)]

    return answer


def fasttext(texts: list[str], labels: list[Any], later: list[str], folder: Path) -> Callable[[], Sequence[Any]]:
    from fasttext import train_supervised

    classes = list(dict.fromkeys(labels))
    numbers = {label: number for number, label in enumerate(classes)}
    write_lines(folder, [*texts, *later], [*(f"__label__{numbers[label]}" for label in labels), *[""] * len(later)])

    def answer() -> Sequence[Any]:
        write_tokens(folder)
        run_in(folder, f"head -n {len(texts)} tokens.txt > learned.txt; tail -n {len(later)} tokens.txt > later.txt")
        # On the whole its default of 0.1 is worse, and the 1 of its tutorial no better.
        options = {"lr": 0.5, "wordNgrams": 2, "epoch": 25, "thread": 1, "seed": 1, "verbose": 0}
        model = train_supervised(str(folder / "learned.txt"), **options)
        found, _ = model.predict((folder / "later.txt").read_text("utf-8").split("\n")[:-1])
        return [classes[int(names[0].removeprefix("__label__"))] if names else None for names in found]

    return answer


def vowpal_wabbit(texts: list[str], labels: list[Any], later: list[str], folder: Path) -> Callable[[], Sequence[Any]]:
    """Two classes by one margin, more by --oaa, as its manual says."""
    import_module("vowpalwabbit")  # so that the work does not have to
    classes = list(dict.fromkeys(labels))
    of_classes = [] if len(classes) == 2 else ["--oaa", str(len(classes))]
    numbers = dict(zip(classes, range(1, len(classes) + 1) if of_classes else (-1, 1), strict=True))
    write_lines(folder, [*texts, *later], [*(f"{numbers[label]} |" for label in labels), *["|"] * len(later)])

    def answer() -> Sequence[Any]:
        write_tokens(folder, f"{UPPER}:|", f"{LOWER}  ")  # but for the two marks that mean something to it
        options = [*of_classes, "--loss_function", "logistic", "--ngram", "2", "-b", "22"]
        said = folder / "said.txt"
        run_vowpal_wabbit(folder / "tokens.txt", [*options, "-p", str(said)])
        given = map(float, said.read_text().split()[len(texts) :])
        return [classes[int(one) - 1 if of_classes else one > 0.0] for one in given]

    return answer


@from_memory
def river_naive_bayes(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
    model = feature_extraction.BagOfWords(tokenizer_pattern=WORDS_AND_MARKS) | naive_bayes.MultinomialNB()
    for text, label in zip(texts, labels, strict=True):
        model.learn_one(text, label)
    return [model.predict_one(text) for text in later]


OURS = "stream_pegasos, one pass"
MODELS: dict[str, Model] = {
    OURS: ours(TextClassifier),
    **{f"{OURS}, {name}": ours(make) for name, make in several.recipe_with_vectors("classes").items()},
    "Vowpal Wabbit, logistic, word pairs, one pass": vowpal_wabbit,
    "River MultinomialNB, one pass": river_naive_bayes,
    "scikit-learn: LinearSVC, tf-idf": tfidf(lambda: LinearSVC(random_state=0)),
    "scikit-learn: LogisticRegression, tf-idf": tfidf(lambda: LogisticRegression(max_iter=1_000)),
    "NBSVM, β = 0.25": nbsvm(0.25),
    "NBSVM, β = 1": nbsvm(1.0),
    "fastText, word pairs, 25 epochs": fasttext,
}
OF_CHINESE: dict[str, Model] = {
    f"{name}, words by jieba": tfidf(make, tokenizer=words_by_jieba, token_pattern=None)
    for name, make in [
        ("scikit-learn: LinearSVC, tf-idf", lambda: LinearSVC(random_state=0)),
        ("scikit-learn: LogisticRegression, tf-idf", lambda: LogisticRegression(max_iter=1_000)),
    ]
}


def print_table(streams: list[tuple[str, list[str], list[Any]]], markdown: bool) -> dict[str, tuple[float, float]]:
    """Accuracy on the last messages of each stream, a column a stream, a row a model; last the messages a second.

    Returns the mean accuracy and the speed of each model that can take all streams.
    """
    found: dict[str, tuple[float, float]] = {}
    if not streams:
        return found
    print(f"\nThe first {LEARNED:.0%} learned, accuracy on the rest; messages learned and predicted a second\n")
    print_head(["", *(name for name, _, _ in streams), "messages/s"], markdown)
    chinese = [is_chinese(texts) for _, texts, _ in streams]
    for name, model in (MODELS | OF_CHINESE if any(chinese) else MODELS).items():
        try:
            done = [
                measured(model, texts, labels) if name in MODELS or of_chinese else None
                for (_, texts, labels), of_chinese in zip(streams, chinese, strict=True)
            ]
        except ImportError as error:
            print(f"{name}: left out, {error.name} is not installed")
            continue
        seconds = sum(each[1] for each in done if each)
        n = sum(len(texts) for (_, texts, _), each in zip(streams, done, strict=True) if each)
        print_row([name, *(f"{each[0]:.4f}" if each else "-" for each in done), f"{n / seconds:,.0f}"], markdown)
        if name in MODELS:
            found[name] = float(np.mean([each[0] for each in done if each])), n / seconds
    return found


def measured(model: Model, texts: list[str], labels: list[Any]) -> tuple[float, float]:
    """Accuracy on the last messages, and the seconds that it took: the least of three times where they are short."""
    n = int(LEARNED * len(texts))
    with tempfile.TemporaryDirectory() as folder:
        answer = model(texts[:n], labels[:n], texts[n:], Path(folder))
        took: list[float] = []
        while len(took) < 3 and sum(took) < SHORT:
            start = time.perf_counter()
            said = answer()
            took.append(time.perf_counter() - start)
    return float(np.mean([one == truth for one, truth in zip(said, labels[n:], strict=True)])), min(took)


def draw(found: dict[str, tuple[float, float]], n_streams: int) -> Figure:
    """Mean accuracy over speed, a point a model; its name stands where it meets no other, the best model's first."""
    figure = Figure(figsize=(8, 3.8), dpi=110, layout="constrained")
    axes = figure.subplots()
    colors = {name: "C3" if name.startswith(OURS) else "C0" if "one pass" in name else "0.5" for name in found}
    for name, (accuracy, speed) in found.items():
        axes.plot(speed, accuracy, "o", color=colors[name], markersize=9)
    axes.set_xscale("log")
    axes.set_xlim(right=2 * max(speed for _, speed in found.values()))
    axes.margins(y=0.15)
    axes.set_xlabel("messages learned and predicted a second, from raw text")
    axes.set_ylabel(f"accuracy, mean of {n_streams} streams")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.draw_without_rendering()  # which settles where the axes are
    taken = [line.get_window_extent() for line in axes.lines]
    for name in sorted(found, key=lambda name: -found[name][0]):
        accuracy, speed = found[name]
        style: dict[str, Any] = {"color": colors[name], "weight": "bold" if name.startswith(OURS) else "normal"}
        text = axes.annotate(name, (speed, accuracy), xytext=(0, 0), textcoords="offset points", **style)
        for y, (x, side) in product((8, -16, -4), ((9, "left"), (-9, "right"))):
            text.set(ha=side)
            text.xyann = x, y
            box = text.get_window_extent()
            if axes.bbox.x0 < box.x0 and box.x1 < axes.bbox.x1 and not box.count_overlaps(taken):
                break
        taken.append(box)
    return figure
