"""Values that are given, as in svmlight files: each example predicted before it is learned, beside Vowpal Wabbit and
scikit-learn on the same numbers.

RCV1 comes as tf-idf; the first texts of other streams are made into tf-idf and into counts of words, whose document
frequencies are those of all of them.

    python tests/benchmarks/given_values.py
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from corpora import DATA, of_two_classes
from figures import share_right
from peers import SGD, VOWPAL_WABBIT, has_vowpal_wabbit, run_vowpal_wabbit
from report import Table, arguments_of
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from stream_pegasos import AdaptiveClassifier

N_TEXTS = 2_000
TEXTS = "rt_polarity", "sms_spam", "enron_1to3", "waimai_zh"

Answer = Callable[[Any, list[bool]], list[Any]]


def examples() -> Iterator[tuple[str, Any, list[bool]]]:
    for name in ("rcv1_ccat_train", "rcv1_ccat_test"):
        X, y = load_svmlight_file(str(DATA / f"{name}.svmlight.gz"))
        yield name, X, (y > 0).tolist()
    for corpus in of_two_classes(*TEXTS):
        of_characters = {"analyzer": "char", "ngram_range": (1, 2)} if corpus.name.endswith("_zh") else {}
        for made in (TfidfVectorizer(sublinear_tf=True, **of_characters), CountVectorizer(**of_characters)):
            X = made.fit_transform(corpus.texts[:N_TEXTS])
            kind = "tf-idf" if isinstance(made, TfidfVectorizer) else "counts"
            yield f"{corpus.name}, {kind}", sparse.csr_matrix(X, dtype=float), list(corpus.labels[:N_TEXTS])


def ours(X: Any, y: list[bool], **options: Any) -> list[Any]:
    return list(AdaptiveClassifier(**options).predict_learn_many(X, y).labels)


def vowpal_wabbit(options: list[str], X: Any, y: list[bool]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path, raw = Path(folder) / "examples.vw", Path(folder) / "raw.txt"
        with path.open("w", encoding="utf-8") as file:
            for row, label in zip(X, y, strict=True):
                features = " ".join(f"{i}:{value:g}" for i, value in zip(row.indices, row.data, strict=True))
                file.write(f"{2 * label - 1} | {features}\n")
        run_vowpal_wabbit(path, [*options, "-r", str(raw)])
        return [margin > 0.0 for margin in np.loadtxt(raw)]


def scikit_learn(make: Callable[[], Any], X: Any, y: list[bool]) -> list[Any]:
    model, answers = make(), []
    for row, label in zip(X, y, strict=True):
        answers.append(bool(model.predict(row)[0]) if answers else False)
        model.partial_fit(row, [label], classes=[False, True])
    return answers


def main() -> None:
    arguments_of(__doc__)
    models: dict[str, Answer] = {"ours": ours, "ours, naive_bayes=False": partial(ours, naive_bayes=False)}
    if has_vowpal_wabbit():
        models |= {f"Vowpal Wabbit: {name}": partial(vowpal_wabbit, each) for name, each in VOWPAL_WABBIT.items()}
    models |= {f"scikit-learn: {name}": partial(scikit_learn, make) for name, make in SGD.items()}
    table = Table("examples", *models)
    for name, X, y in examples():
        table.row(name, *(f"{share_right(answer(X, y), y):.4f}" for answer in models.values()))


if __name__ == "__main__":
    main()
