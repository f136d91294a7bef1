"""A stream with noise, what is done with it, and detectors that are told of it."""

import random

from river import base, drift


class ScriptedDetector(base.DriftDetector):
    """Detects a drift at the updates with those numbers, and keeps what it was told."""

    def __init__(self, at=(0,)):
        super().__init__()
        self.at = at
        self.told = []

    def update(self, x):
        self.told.append(x)
        self._drift_detected = len(self.told) in self.at


class Raises(drift.binary.DDM):
    """It fails at the n-th prediction that it is told of."""

    def __init__(self, n=5):
        super().__init__()
        self.n = n

    def update(self, x):
        self.n -= 1
        if not self.n:
            raise ValueError("enough")
        super().update(x)


def noisy_stream(n, seed=0, noise=0.1, labels=("ham", "spam")):
    """Dicts of which one feature gives the label away, but for some noise."""
    rng = random.Random(seed)
    for _ in range(n):
        positive = rng.random() < 0.3
        told = positive != (rng.random() < noise)
        yield {f"word{rng.randrange(20)}": 1.0, "pills" if told else "lunch": 1.0}, labels[positive]


def columns(stream):
    return [list(column) for column in zip(*stream, strict=True)]


def prequential(model, X, y):
    """The label predicted for each example, and then the example learned, one at a time."""
    predicted = []
    for x, label in zip(X, y, strict=True):
        predicted.append(model.predict_one(x))
        model.learn_one(x, label)
    return predicted
