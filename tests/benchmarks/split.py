"""The part of accuracy.py that learns the first 80 % of a stream in one pass and predicts the last 20 % unlearned.

Beside it stand models that see the first part as often as they like.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from peers import HAN, is_chinese, print_head, print_row, words_by_jieba
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from stream_pegasos import TextClassifier

LEARNED = 0.8
# What all get; sklearn's own words of two characters and more are worse. Of Chinese each character is a word.
WORDS_AND_MARKS = rf"[{HAN}]|[^\W{HAN}]+|[^\w\s]"
find_words_and_marks: Callable[[str], list[str]] = re.compile(WORDS_AND_MARKS).findall

# What a model answers to later texts, given texts and their labels.
Model = Callable[[list[str], list[Any], list[str]], Sequence[Any]]


def ours(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
    model = TextClassifier()
    model.learn_many(texts, labels)
    return model.predict_many(later).tolist()


def tfidf(make: Callable[[], Any], tokens: Callable[[str], list[str]] = find_words_and_marks) -> Model:
    def answer(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), tokenizer=tokens, token_pattern=None)
        model = make().fit(vectorizer.fit_transform(texts), labels)
        return model.predict(vectorizer.transform(later)).tolist()

    return answer


def nbsvm(beta: float) -> Model:
    """Wang and Manning, Baselines and bigrams, ACL 2012: α = 1, C = 1; each class against the rest.

    Published with β = 0.25, for classes of equal size; at β = 1 it is an SVM on features times their log-count ratio.
    """

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


def fasttext(texts: list[str], labels: list[Any], later: list[str]) -> Sequence[Any]:
    from fasttext import train_supervised

    tokens = CountVectorizer(token_pattern=WORDS_AND_MARKS).build_analyzer()
    classes = list(dict.fromkeys(labels))
    numbers = {label: number for number, label in enumerate(classes)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learned.txt"
        lines = [
            f"__label__{numbers[label]} {' '.join(tokens(text))}" for text, label in zip(texts, labels, strict=True)
        ]
        path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
        # On the whole its default of 0.1 is worse, and the 1 of its tutorial no better.
        model = train_supervised(str(path), lr=0.5, wordNgrams=2, epoch=25, thread=1, seed=1, verbose=0)
    found, _ = model.predict([" ".join(tokens(text)) for text in later])
    return [classes[int(names[0].removeprefix("__label__"))] if names else None for names in found]


MODELS: dict[str, Model] = {
    "ours: TextClassifier(), one pass": ours,
    "scikit-learn: LinearSVC, tf-idf": tfidf(lambda: LinearSVC(random_state=0)),
    "scikit-learn: LogisticRegression, tf-idf": tfidf(lambda: LogisticRegression(max_iter=1_000)),
    "NBSVM, β = 0.25": nbsvm(0.25),
    "NBSVM, β = 1": nbsvm(1.0),
    "fastText, word pairs, 25 epochs": fasttext,
}
OF_CHINESE: dict[str, Model] = {
    f"{name}, words by jieba": tfidf(make, words_by_jieba)
    for name, make in [
        ("scikit-learn: LinearSVC, tf-idf", lambda: LinearSVC(random_state=0)),
        ("scikit-learn: LogisticRegression, tf-idf", lambda: LogisticRegression(max_iter=1_000)),
    ]
}


def print_table(streams: list[tuple[str, list[str], list[Any]]], markdown: bool) -> None:
    """Accuracy on the last messages of each stream, a column a stream, a row a model."""
    if not streams:
        return
    print(f"\nThe first {LEARNED:.0%} learned, accuracy on the rest\n")
    print_head(["", *(name for name, _, _ in streams)], markdown)
    chinese = [is_chinese(texts) for _, texts, _ in streams]
    models = MODELS | OF_CHINESE if any(chinese) else MODELS
    for name, answer in models.items():
        try:
            cells = [
                f"{accuracy(answer, texts, labels):.4f}" if name in MODELS or of_chinese else "-"
                for (_, texts, labels), of_chinese in zip(streams, chinese, strict=True)
            ]
            print_row([name, *cells], markdown)
        except ImportError as error:
            print(f"{name}: left out, {error.name} is not installed")


def accuracy(answer: Model, texts: list[str], labels: list[Any]) -> float:
    n = int(LEARNED * len(texts))
    said = answer(texts[:n], labels[:n], texts[n:])
    return float(np.mean([one == truth for one, truth in zip(said, labels[n:], strict=True)]))
