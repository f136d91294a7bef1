"""Numbers in texts: messages that differ in a number alone, and what numbers as they stand do to streams.

Of two numbers, ten messages each are learned, the number somewhere among one to eight other words, and a hundred each
are predicted: the mean of twenty draws. Then every stream, each message predicted before it is learned.

    python tests/benchmarks/digits.py
"""

import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import CLASSIFIERS
from corpora import Corpus, known
from figures import share_right
from peers import SGD, VOWPAL_WABBIT, has_vowpal_wabbit, run_vowpal_wabbit, write_vowpal_wabbit
from report import Table, arguments_of
from sklearn.feature_extraction.text import HashingVectorizer

from stream_pegasos import TextClassifier, TextFeatures

PAIRS = [("error 404", "error 500"), ("room 101", "room 202"), ("m4", "m5")]
OTHERS = ["the", "page", "of", "our", "server", "fails", "again", "when", "I", "log", "in,", "please", "help", "today"]
CHOICES = True, "both", False
N_DRAWS, N_LEARNED, N_ASKED = 20, 20, 200

Answer = Callable[[list[str], list[bool], list[str]], list[Any]]


def messages(pair: tuple[str, str], n: int, generator: random.Random) -> tuple[list[str], list[bool]]:
    texts, labels = [], [False, True] * (n // 2)
    for label in labels:
        words = generator.choices(OTHERS, k=generator.randint(1, 8))
        words.insert(generator.randint(0, len(words)), pair[label])
        texts.append(" ".join(words))
    return texts, labels


def ours(mask_digits: Any, texts: list[str], labels: list[bool], later: list[str]) -> list[Any]:
    model = TextClassifier(TextFeatures(mask_digits=mask_digits))
    model.learn_many(texts, labels)
    return model.predict_many(later).tolist()  # type: ignore[no-any-return]


def vowpal_wabbit(options: list[str], texts: list[str], labels: list[bool], later: list[str]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path, raw = Path(folder) / "messages.vw", Path(folder) / "raw.txt"
        write_vowpal_wabbit(path, texts + later, [*(2 * label - 1 for label in labels), *[""] * len(later)], r"\w+")
        run_vowpal_wabbit(path, [*options, "-r", str(raw)])
        return [margin > 0.0 for margin in np.loadtxt(raw)[len(texts) :]]


def scikit_learn(make: Callable[[], Any], texts: list[str], labels: list[bool], later: list[str]) -> list[Any]:
    vectorizer, model = HashingVectorizer(token_pattern=r"\w+"), make()
    model.partial_fit(vectorizer.transform(texts), labels, classes=[False, True])
    return list(model.predict(vectorizer.transform(later)))


def right(answer: Answer, pair: tuple[str, str]) -> float:
    shares = []
    for generator in map(random.Random, range(N_DRAWS)):
        learned, (later, truths) = messages(pair, N_LEARNED, generator), messages(pair, N_ASKED, generator)
        shares.append(share_right(answer(*learned, later), truths))
    return float(np.mean(shares))


def of_stream(corpus: Corpus, mask_digits: Any) -> float:
    model = TextClassifier(TextFeatures(mask_digits=mask_digits), CLASSIFIERS[corpus.kind]())
    return share_right(model.predict_learn_many(corpus.texts, corpus.labels).labels.tolist(), corpus.labels)


def main() -> None:
    arguments_of(__doc__)
    models: dict[str, Answer] = {f"ours, mask_digits={how!r}": partial(ours, how) for how in CHOICES}
    if has_vowpal_wabbit():
        models |= {f"Vowpal Wabbit: {name}": partial(vowpal_wabbit, each) for name, each in VOWPAL_WABBIT.items()}
    models |= {f"scikit-learn: {name}": partial(scikit_learn, make) for name, make in SGD.items()}
    table = Table("ten messages each", *(" / ".join(pair) for pair in PAIRS))
    for name, answer in models.items():
        table.row(name, *(f"{right(answer, pair):.3f}" for pair in PAIRS))
    table = Table("stream", *(f"mask_digits={how!r}" for how in CHOICES))
    for corpus in known():
        table.row(corpus.name, *(f"{of_stream(corpus, how):.4f}" for how in CHOICES))


if __name__ == "__main__":
    main()
