"""Other tools: how they learn a whole corpus, and then answer texts that are only predicted."""

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from peers import HAN, bag, options_of, run_vowpal_wabbit, words_by_jieba
from river import naive_bayes
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

# What all get; sklearn's own words of two characters and more are worse. Of Chinese each character is a word.
TOKENS = rf"[{HAN}]|[^\W{HAN}]+|[^\w\s]"
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
        folder, f"sed -E 's/{MARKS}/ & /g' texts.txt | tr '{upper}' '{lower}' | paste -d ' ' labels.txt - > tokens.txt"
    )


def tfidf(make: Callable[[], Any], **words: Any) -> Model:
    @from_memory
    def answer(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), **(words or {"token_pattern": TOKENS}))
        model = make().fit(vectorizer.fit_transform(texts), labels)
        return model.predict(vectorizer.transform(later)).tolist()

    return answer


def nbsvm(beta: float) -> Model:
    """Wang and Manning, Baselines and bigrams, ACL 2012: α = 1, C = 1; each class against the rest.

    Published with β = 0.25, for classes of equal size; at β = 1 it is an SVM on features times their log-count ratio.
    """

    @from_memory
    def answer(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
        vectorizer = CountVectorizer(binary=True, ngram_range=(1, 2), token_pattern=TOKENS)
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


def vowpal_wabbit_of_lines(
    texts: list[str], labels: list[Any], later: list[str], folder: Path
) -> Callable[[], Sequence[Any]]:
    """Two classes by one margin, more by --oaa, as its manual says."""
    import_module("vowpalwabbit")  # so that the work does not have to
    classes = list(dict.fromkeys(labels))
    of_classes = [] if len(classes) == 2 else ["--oaa", str(len(classes))]
    numbers = dict(zip(classes, range(1, len(classes) + 1) if of_classes else (-1, 1), strict=True))
    write_lines(folder, [*texts, *later], [*(f"{numbers[label]} |" for label in labels), *["|"] * len(later)])

    def answer() -> Sequence[Any]:
        write_tokens(folder, f"{UPPER}:|", f"{LOWER}  ")  # but for the two marks that mean something to it
        said = folder / "said.txt"
        run_vowpal_wabbit(folder / "tokens.txt", [*of_classes, *options_of("logistic", 2), "-p", str(said)])
        given = map(float, said.read_text(encoding="utf-8").split()[len(texts) :])
        return [classes[int(one) - 1 if of_classes else one > 0.0] for one in given]

    return answer


@from_memory
def river_naive_bayes(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
    model = bag(naive_bayes.MultinomialNB(), tokenizer_pattern=TOKENS)
    for text, label in zip(texts, labels, strict=True):
        model.learn_one(text, label)
    return [model.predict_one(text) for text in later]


BATCH_MODELS = {
    "scikit-learn: LinearSVC, tf-idf": partial(LinearSVC, random_state=0),
    "scikit-learn: LogisticRegression, tf-idf": partial(LogisticRegression, max_iter=1_000),
}
MODELS: dict[str, Model] = {
    "Vowpal Wabbit, logistic, word pairs, one pass": vowpal_wabbit_of_lines,
    "River MultinomialNB, one pass": river_naive_bayes,
    **{name: tfidf(make) for name, make in BATCH_MODELS.items()},
    "NBSVM, β = 0.25": nbsvm(0.25),
    "NBSVM, β = 1": nbsvm(1.0),
    "fastText, word pairs, 25 epochs": fasttext,
}
MODELS_OF_CHINESE: dict[str, Model] = {
    f"{name}, words by jieba": tfidf(make, tokenizer=words_by_jieba, token_pattern=None)
    for name, make in BATCH_MODELS.items()
}
