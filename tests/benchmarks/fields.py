"""Fields: beside all of them in one text, and numbers beside bins at quantiles of the stream.

Mails as they came make messages of four fields (subject, text, sender, size). Each is predicted before it is learned.
The speed is that of learning, in bytes of subject, text and sender a second, the median of five runs in alternation.
They come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data. The numbers are made by chance, and so
are their labels, which no model can always know.

    python tests/benchmarks/fields.py [--markdown]
"""

from __future__ import annotations

import argparse
import bisect
import email
import email.policy
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from peers import expected_calibration_error, print_head, print_row, read_records
from sklearn.metrics import roc_auc_score

from stream_pegasos import AdaptiveClassifier, Category, Number, TextClassifier, TextFeatures

RUNS = 5
N = 4_000  # numbers of each kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    markdown = parser.parse_args().markdown
    try:
        records = read_records("mail_raw")
    except OSError as error:
        sys.exit(f"{error}")
    compare_fields(records, markdown)
    compare_numbers(markdown)


def compare_fields(records: list[dict[str, Any]], markdown: bool) -> None:
    messages = [fields_of(record["raw"].encode("latin-1")) for record in records]
    labels = [record["label"] for record in records]
    texts = ["\n".join(map(str, message.values())) for message in messages]
    text, four = TextFeatures(), TextFeatures(on="text") + TextFeatures(on="subject")
    four = four + TextFeatures(on="subject", namespace="text") + TextFeatures(on="sender") + Number(on="size")
    rows: dict[str, tuple[Any, list[Any]]] = {
        "all in one text": (text, texts),
        "text alone": (text, [message["text"] for message in messages]),
        "subject and text": (TextFeatures(on="text") + TextFeatures(on="subject"), messages),
        "subject and text, which share words": (
            TextFeatures(on="text") + TextFeatures(on="subject", namespace="text"),
            messages,
        ),
        "subject by itself and shared, and text": (
            TextFeatures(on="text") + TextFeatures(on="subject") + TextFeatures(on="subject", namespace="text"),
            messages,
        ),
        "four fields, the sender as words": (four, messages),
        "four fields, the sender as a category, too": (four + Category(on="sender"), messages),
        "four fields, the sender as a category alone": (
            TextFeatures(on="text")
            + TextFeatures(on="subject")
            + TextFeatures(on="subject", namespace="text")
            + Category(on="sender")
            + Number(on="size"),
            messages,
        ),
    }
    n_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    found = {}
    for _ in range(RUNS):
        for name, (features, X) in rows.items():
            model = TextClassifier(features)
            start = time.perf_counter()
            found[name] = model.predict_learn_many(X, labels)
            seconds[name].append(time.perf_counter() - start)
    print_head(["", "accuracy", "100 (1 − AUC)", "calibration", "MB/s"], markdown)
    is_spam = np.array([label == "spam" for label in labels])
    for name in rows:
        said = found[name].probabilities[:, [*found[name].classes].index("spam")]
        figures = [np.mean((said > 0.5) == is_spam), 100.0 * (1.0 - roc_auc_score(is_spam, said))]
        figures += [expected_calibration_error(said, is_spam)]
        speed = n_bytes / statistics.median(seconds[name]) / 1e6
        print_row([name, *(f"{figure:.4f}" for figure in figures), f"{speed:.1f}"], markdown)


def fields_of(mail: bytes) -> dict[str, Any]:
    """The four fields of a mail, as simply as somebody would take them."""
    message = email.message_from_bytes(mail, policy=email.policy.compat32)
    parts = [part for part in message.walk() if part.get_content_maintype() == "text"]
    text = "\n".join((part.get_payload(decode=True) or b"").decode("latin-1") for part in parts)
    sender = email.utils.parseaddr(str(message.get("From", "")))[1].lower()
    return {"text": text, "subject": str(message.get("Subject", "")), "sender": sender, "size": len(mail)}


def compare_numbers(markdown: bool) -> None:
    print_head(["numbers: accuracy", "best", "Number", "quantiles", "standardised"], markdown, 26)
    for name, (numbers, chances) in kinds_of_numbers().items():
        generator = np.random.default_rng(1)
        labels = (generator.random(N) < chances).tolist()
        best = np.mean((chances > 0.5) == np.array(labels))
        ours = Number(on="x")
        encoders: list[Callable[[float], dict[str, float]]] = [
            lambda x, ours=ours: dict.fromkeys(ours.prepare_value(x).split(), 1.0),  # type: ignore[misc]
            Quantiles(),
            Standardised(),
        ]
        figures = []
        for encoder in encoders:
            predictions = AdaptiveClassifier().predict_learn_many([encoder(x) for x in numbers.tolist()], labels)
            figures.append(np.mean(np.array(predictions.labels.tolist()) == np.array(labels)))
        print_row([name, *(f"{figure:.3f}" for figure in (best, *figures))], markdown, 26)


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
    """The number less the mean of those before it, by their standard deviation, and an intercept."""

    def __init__(self) -> None:
        self._n, self._mean, self._squares = 0, 0.0, 0.0

    def __call__(self, x: float) -> dict[str, float]:
        self._n += 1
        difference = x - self._mean
        self._mean += difference / self._n
        self._squares += difference * (x - self._mean)
        deviation = (self._squares / self._n) ** 0.5
        return {"x": (x - self._mean) / deviation if deviation else 0.0, "1": 1.0}


if __name__ == "__main__":
    main()
