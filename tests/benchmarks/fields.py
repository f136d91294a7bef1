"""Fields: beside all of them in one text, and numbers beside bins at quantiles of the stream.

Mails as they came make messages of four fields (subject, text, sender, size). Each is predicted before it is learned.
The speed is that of learning, in bytes of subject, text and sender a second, the median of five runs in alternation.
The numbers are made by chance, and so are their labels, which no model can always know.

    python tests/benchmarks/fields.py
"""

import bisect
import email
import email.policy
import random
from functools import partial
from typing import Any

import numpy as np
from corpora import Corpus, of_two_classes
from figures import expected_calibration_error, ranking_error, share_right
from report import Table
from river import preprocessing
from timing import in_turn

from stream_pegasos import AdaptiveClassifier, Category, Number, TextClassifier, TextFeatures

RUNS = 5
N = 4_000  # numbers of each kind


def main() -> None:
    for corpus in of_two_classes("mail_raw"):
        compare_fields(corpus)
    compare_numbers()


def compare_fields(corpus: Corpus) -> None:
    messages = [fields_of(text.encode("latin-1")) for text in corpus.texts]
    texts = ["\n".join(map(str, message.values())) for message in messages]
    text, subject, words = TextFeatures(on="text"), TextFeatures(on="subject"), TextFeatures(on="sender")
    shared, sender, size = TextFeatures(on="subject", namespace="text"), Category(on="sender"), Number(on="size")
    rows: dict[str, tuple[Any, list[Any]]] = {
        "all in one text": (TextFeatures(), texts),
        "text alone": (TextFeatures(), [message["text"] for message in messages]),
        "subject and text": (text + subject, messages),
        "subject and text, which share words": (text + shared, messages),
        "subject by itself and shared, and text": (text + subject + shared, messages),
        "four fields, the sender as words": (text + subject + shared + words + size, messages),
        "four fields, the sender as a category, too": (text + subject + shared + words + size + sender, messages),
        "four fields, the sender as a category alone": (text + subject + shared + sender + size, messages),
    }
    n_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    found: dict[str, Any] = {}

    def learn(name: str) -> None:
        features, X = rows[name]
        found[name] = TextClassifier(features).predict_learn_many(X, corpus.labels)

    seconds = in_turn({name: partial(learn, name) for name in rows}, RUNS)
    table = Table("", "accuracy", "100 (1 - AUC)", "calibration", "MB/s")
    is_spam = np.array(corpus.labels)
    for name in rows:
        said = found[name].probabilities[:, [*found[name].classes].index(True)]
        figures = [np.mean((said > 0.5) == is_spam), ranking_error(is_spam, said)]
        figures.append(expected_calibration_error(said, is_spam))
        table.row(name, *(f"{figure:.4f}" for figure in figures), f"{n_bytes / seconds[name] / 1e6:.1f}")


def fields_of(mail: bytes) -> dict[str, Any]:
    """The four fields of a mail, as simply as somebody would take them."""
    message = email.message_from_bytes(mail, policy=email.policy.compat32)
    parts = [part for part in message.walk() if part.get_content_maintype() == "text"]
    text = "\n".join((part.get_payload(decode=True) or b"").decode("latin-1") for part in parts)
    sender = email.utils.parseaddr(str(message.get("From", "")))[1].lower()
    return {"text": text, "subject": str(message.get("Subject", "")), "sender": sender, "size": len(mail)}


def compare_numbers() -> None:
    table = Table("numbers: accuracy", "best", "Number", "quantiles", "standardised")
    ours = Number(on="x")
    for name, (numbers, chances) in kinds_of_numbers().items():
        labels = np.random.default_rng(1).random(N) < chances
        found = [np.mean((chances > 0.5) == labels)]
        for encoder in (lambda x: dict.fromkeys(ours.read_value(x).split(), 1.0), Quantiles(), Standardised()):
            predictions = AdaptiveClassifier().predict_learn_many([*map(encoder, numbers.tolist())], labels.tolist())
            found.append(share_right(predictions.labels, labels))
        table.row(name, *(f"{figure:.3f}" for figure in found))


def kinds_of_numbers() -> dict[str, tuple[Any, Any]]:
    """Of each kind the numbers, and how likely each is to be positive."""
    generator = np.random.default_rng(5)

    def above(x: Any, least: float) -> Any:
        return np.where(x > least, 0.9, 0.1)

    powers = 10.0 ** generator.uniform(-5, 5, N)
    fever = generator.normal(37.5, 1.0, N).round(1)
    years = generator.integers(1970, 2027, N).astype(float)
    unit, normal = generator.uniform(0.0, 1.0, N), generator.normal(0.0, 1.0, N)
    far = generator.normal(1e6, 10.0, N).round()
    counts = generator.poisson(3.0, N).astype(float)
    prices = np.exp(generator.normal(3.0, 1.0, N)).round(2)
    return {
        "ten powers, above one": (powers, above(powers, 30.0)),
        "ten powers, a slope": (powers, 1.0 / (1.0 + 1.0 / powers)),
        "fever": (fever, above(fever, 38.0)),
        "years": (years, above(years, 2008.0)),
        "between two": (unit, np.where((unit > 0.3) & (unit < 0.6), 0.9, 0.1)),
        "normal, a slope": (normal, 1.0 / (1.0 + np.exp(-2.0 * normal))),
        "around a million": (far, above(far, 1e6)),
        "counts": (counts, above(counts, 3.0)),
        "prices": (prices, 1.0 / (1.0 + np.exp(-2.0 * (np.log(prices + 0.01) - 3.0)))),
    }


class Quantiles:
    """In which of 2, 4, ... 64 bins, at quantiles of a sample of the stream, a number is."""

    def __init__(self) -> None:
        self._sample: list[float] = []
        self._n, self._random = 0, random.Random(1)

    def __call__(self, x: float) -> dict[str, float]:
        below = bisect.bisect_left(self._sample, x) + bisect.bisect_right(self._sample, x)
        rank = below / 2 / len(self._sample) if self._sample else 0.5
        self._n += 1
        if len(self._sample) < 1_000:
            bisect.insort(self._sample, x)
        elif self._random.randrange(self._n) < 1_000:
            self._sample.pop(self._random.randrange(1_000))
            bisect.insort(self._sample, x)
        return {f"{n}:{min(int(rank * n), n - 1)}": 1.0 for n in (2, 4, 8, 16, 32, 64)}


class Standardised:
    """The number less the mean of those up to it, by their standard deviation, and an intercept."""

    def __init__(self) -> None:
        self._scaler = preprocessing.StandardScaler()

    def __call__(self, x: float) -> dict[str, float]:
        self._scaler.learn_one({"x": x})
        return {**self._scaler.transform_one({"x": x}), "1": 1.0}


if __name__ == "__main__":
    main()
