"""Messages of two classes, and text models beside their parts."""

import random

import pytest

from stream_pegasos import HashedBagOfWords, PegasosClassifier, TextClassifier

WORDS = [
    "cheap",
    "pills",
    "see",
    "you",
    "at",
    "lunch",
    "noon",
    "buy",
    "now",
    "é",
    "漢字",
    "x",
    "İstanbul",
    "ΟΔΟΣ",
    "a!b",
]


def messages(n, seed=0):
    generator = random.Random(seed)
    for _ in range(n):
        words = generator.choices(WORDS, k=generator.randrange(9))
        is_spam = "cheap" in words or "buy" in words
        yield " ".join(words), "spam" if is_spam != (generator.random() < 0.05) else "ham"


FEATURES = {
    "default": {},
    "bigrams": {"ngram_range": (1, 2), "token_pattern": r"\w+|[^\w\s]", "stop_words": ["at", "!"]},
    "counts": {"norm": None, "n_features": 7},
    "characters": {"analyzer": "char", "ngram_range": (1, 3), "norm": "l1"},
    "parts of words": {"analyzer": "char_wb", "ngram_range": (2, 4), "binary": True, "alternate_sign": False},
    "pattern": {"token_pattern": r"[a-z]+", "strip_accents": "unicode"},
    "functions": {"tokenizer": str.split, "preprocessor": str.upper, "ngram_range": (1, 2)},
    "tokenizer": {"tokenizer": lambda text: [*text.split(), "İ" * 20], "lowercase": True},
}


OPTIONS = {"batch_size": 3, "fit_intercept": True, "class_weight": {"ham": 0.5}, "l2": 1.0}


def both(features):
    """The model, and its two parts on their own."""
    model = TextClassifier(HashedBagOfWords(**FEATURES[features]), PegasosClassifier(**OPTIONS))
    return model, HashedBagOfWords(**FEATURES[features]), PegasosClassifier(**OPTIONS)


def assert_alike(model, classifier):
    largest = max(map(abs, classifier.weights.values()), default=0.0)
    expected = {index: w for index, w in classifier.weights.items() if abs(w) > 1e-9 * largest}
    found = {index: w for index, w in model.weights.items() if abs(w) > 1e-9 * largest}
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9 * largest)
    assert model.intercept == pytest.approx(classifier.intercept, rel=1e-7, abs=1e-9 * largest)
    assert (model.classes, model.n_iterations) == (classifier.classes, classifier.n_iterations)
