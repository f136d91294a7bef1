"""Models that are saved, and what tests of files ask of them."""

import random

import pytest

import stream_pegasos
from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
)

NAMES = ["a", "", "é", "\ud800", "x\udfffy", "\x00", "漢字😀", (), ("b", -3), (1, ("c", ("",))), True, 0, -1]


NAMES += [2**53, -(2**53), 2**60, 2**60 + 1, -(2**60), 2**64, -(2**70), 10**50, 2**53 - 1, 1 - 2**53]


def stream(n):
    generator = random.Random(0)
    for _ in range(n):
        yield {name: generator.gauss(0, 1) for name in generator.sample(NAMES, 6)}, generator.choice(["neg", "pos"])


CLASSIFIERS = {"default": {}, "batches": {"batch_size": 7, "t0": 0.5, "project": False, "l2": 0.01}}


def classifier(which, n=60):
    model = PegasosClassifier(**CLASSIFIERS[which])
    for x, y in stream(n):
        model.learn_one(x, y)
    return model


def text_model():
    stop_words = frozenset(["the", "\ud800"])
    features = HashedBagOfWords(n_features=1000, ngram_range=(1, 2), stop_words=stop_words, norm=None, binary=True)
    model = TextClassifier(features, PegasosClassifier(batch_size=4, fit_intercept=True, class_weight={1: 2.0}))
    for i in range(60):
        model.learn_one(["cheap pills", "see you at lunch", "é漢字 İ"][i % 3], i % 2)
    return model


def state_of(model):
    """All that a model has learned, and from what, comparable."""
    snapshot = model.snapshot()
    return {name: (array.dtype, array.tolist()) for name, array in snapshot.arrays.items()}, snapshot.values


def fails_in_one_line(path, match=None):
    with pytest.raises(ValueError, match=match) as error:
        stream_pegasos.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


# What the other kinds hold that PegasosClassifier does not.
OTHERS = {
    "joint": lambda: PegasosClassifier(multi_class="crammer_singer", batch_size=7, fit_intercept=True),
    "ovr": lambda: PegasosClassifier(multi_class="ovr", batch_size=7),
    "ordinal": OrdinalClassifier,
    "kernel": lambda: KernelPegasosClassifier(l2=0.1, budget=20),
    "adaptive": lambda: AdaptiveClassifier(half_life=30.0),
    "f1": lambda: AdaptiveClassifier(decide_for="macro_f1"),
    "sets": lambda: AdaptiveClassifier(coverage=0.9),
}


OF_TWO_CLASSES = ("kernel", "adaptive")


def other(kind):
    model = OTHERS[kind]()
    for i, (x, _) in enumerate(stream(60)):
        model.learn_one(x, i % 2 if kind in OF_TWO_CLASSES else [2, 0, 3, 1][i % 4])
    return model
