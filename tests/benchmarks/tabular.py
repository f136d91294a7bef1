"""Accuracy on numbers as they come: tables whose columns are of very different sizes, and a number beside words.

Each model predicts every example before it learns it. The tables are River's own and made ones; of a message there are
the words and its length. `StandardScaler` is River's, before our classifier and before River's logistic regression;
Vowpal Wabbit scales by itself (its normalized updates).

    python tests/benchmarks/tabular.py [--messages 4000]
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from corpora import read_records
from peers import has_vowpal_wabbit
from report import Table, arguments_of
from river import datasets, linear_model, multiclass, preprocessing
from river.datasets import synth

from stream_pegasos import AdaptiveClassifier

SEPARATORS = str.maketrans(":|", "__")  # of Vowpal Wabbit
Stream = list[tuple[dict[str, float], Any]]


def main() -> None:
    n = arguments_of(__doc__, messages=int).messages or 4_000
    with_wabbit = has_vowpal_wabbit()
    table = Table("accuracy", "as they come", "behind StandardScaler", "River", "Vowpal Wabbit")
    for name, stream in [*tables(n), *messages(n)]:
        figures = [right_share(predictions(model, stream), stream) for model in models_for(stream)]
        figures.append(right_share(of_vowpal_wabbit(stream), stream) if with_wabbit else float("nan"))
        table.row(f"{name}, {len(stream):,}", *(f"{figure:.4f}" for figure in figures))


def models_for(stream: Stream) -> list[Any]:
    river: Any = linear_model.LogisticRegression()
    if len({y for _, y in stream}) > 2:
        river = multiclass.OneVsRestClassifier(river)
    return [
        AdaptiveClassifier(),
        preprocessing.StandardScaler() | AdaptiveClassifier(),
        preprocessing.StandardScaler() | river,
    ]


def tables(n: int) -> Iterator[tuple[str, Stream]]:
    for made in (datasets.ImageSegments(), datasets.Phishing(), datasets.Bananas()):
        yield type(made).__name__, [*islice(made, n)]
    for kind in (synth.SEA, synth.Hyperplane, synth.Waveform, synth.LED):
        yield kind.__name__, [*kind(seed=1).take(n)]
    yield "many sizes, 2 classes", [*of_many_sizes(n, 2)]
    yield "many sizes, 5 classes", [*of_many_sizes(n, 5)]


def of_many_sizes(n: int, n_classes: int) -> Iterator[tuple[dict[str, float], int]]:
    """Eight columns, each of a size from 1e-3 to 1e5 and with a mean of its own; the largest of linear scores wins."""
    generator = np.random.default_rng(0)
    sizes = 10.0 ** generator.uniform(-3.0, 5.0, 8)
    means, weights = sizes * generator.uniform(-3.0, 3.0, 8), generator.normal(size=(n_classes, 8))
    for z, noise in zip(generator.normal(size=(n, 8)), generator.normal(size=(n, n_classes)), strict=True):
        x = dict(zip("abcdefgh", (z * sizes + means).tolist(), strict=True))
        yield x, int((weights @ z + 0.5 * noise).argmax())


def messages(n: int) -> Iterator[tuple[str, Stream]]:
    for name in ("sms_spam", "enron_1to3", "rt_polarity", "banking77"):
        stream: Stream = []
        for record in islice(read_records(name), n):
            words = dict.fromkeys(record["text"].lower().split(), 1.0)
            stream.append((words | {"(length)": float(len(record["text"]))}, record["label"]))
        if name != "banking77":  # River's regression takes truth values alone
            stream = [(x, y == stream[0][1]) for x, y in stream]
        yield f"words and length of {name}", stream


def predictions(model: Any, stream: Stream) -> Iterator[Any]:
    for x, y in stream:
        yield model.predict_one(x)
        model.learn_one(x, y)


def of_vowpal_wabbit(stream: Stream) -> Iterator[Any]:
    from vowpalwabbit import Workspace

    labels: dict[Any, int] = {}
    wabbit = Workspace(f"--oaa {len({y for _, y in stream})} --loss_function logistic --quiet -b 22")
    for x, y in stream:
        number = labels.setdefault(y, len(labels) + 1)
        features = " ".join(f"f{str(name).translate(SEPARATORS)}:{value}" for name, value in x.items())
        predicted = wabbit.predict(f"| {features}")
        yield next((label for label, of in labels.items() if of == predicted), None)
        wabbit.learn(f"{number} | {features}")
    wabbit.finish()


def right_share(answers: Iterable[Any], stream: Stream) -> float:
    return sum(answer == y for answer, (_, y) in zip(answers, stream, strict=True)) / len(stream)


if __name__ == "__main__":
    main()
