"""Models that are saved, and what tests of files ask of them."""

import random

import pytest
from river import optim

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


def stream(seed, n=60):
    generator = random.Random(seed)
    for _ in range(n):
        yield {name: generator.gauss(0, 1) for name in generator.sample(NAMES, 6)}, generator.choice(["neg", "pos"])


def texts(seed, n=60):
    generator = random.Random(seed)
    for _ in range(n):
        yield (
            " ".join(generator.choices(["the", "cheap", "pills", "see", "you", "at", "lunch", "é漢字", "İ"], k=5)),
            generator.choice([0, 1]),
        )


CLASSIFIERS = {
    "default": {},
    "batches": {"batch_size": 7, "t0": 0.5, "project": False, "l2": 0.01},
    "intercept": {"fit_intercept": True, "intercept_scaling": 2.5, "l2": 0.1},
    "weights": {"class_weight": {"pos": 3.0, "neg": 0.25}, "pos_label": "neg", "batch_size": 2},
    "average": {"average": 5, "l2": 0.01},
    "weighted average": {"average": "weighted", "batch_size": 7, "fit_intercept": True},
    "violations": {"counter": "violations", "l2": 0.1, "batch_size": 3},
    "first weights": {"initializer": optim.initializers.Normal(sigma=2.0, seed=3), "t0": 20.0, "average": True},
    "first weights without a seed": {"initializer": optim.initializers.Normal(), "t0": 20.0},
}


TEXT_MODELS = {
    "default": {},
    "options": {
        "features": {
            "n_features": 1000,
            "ngram_range": (1, 2),
            "stop_words": frozenset(["the", "\ud800"]),
            "norm": None,
            "binary": True,
            "strip_accents": "unicode",
            "token_pattern": r"(?u)\b\w+\b",
        },
        "classifier": {"batch_size": 4, "fit_intercept": True, "class_weight": {1: 2.0}},
    },
    "list of stop words": {"features": {"stop_words": ["the", "at"], "analyzer": "word", "lowercase": False}},
    "characters": {"features": {"analyzer": "char_wb", "ngram_range": [2, 4], "alternate_sign": False, "norm": "l1"}},
}


def classifier(which, seed=0, n=60):
    model = PegasosClassifier(**CLASSIFIERS[which])
    for x, y in stream(seed, n):
        model.learn_one(x, y)
    return model


def text_model(which, seed=0, n=60):
    parts = TEXT_MODELS[which]
    model = TextClassifier(
        HashedBagOfWords(**parts.get("features", {})), PegasosClassifier(**parts.get("classifier", {}))
    )
    for x, y in texts(seed, n):
        model.learn_one(x, y)
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
    "ordinal": lambda: OrdinalClassifier(PegasosClassifier(batch_size=7)),
    "kernel": lambda: KernelPegasosClassifier(l2=0.1, budget=20),
    "adaptive": lambda: AdaptiveClassifier(half_life=30.0),
}


OF_TWO_CLASSES = ("kernel", "adaptive")


def other(kind, n=60):
    model = OTHERS[kind]()
    for i, (x, _) in enumerate(stream(0, n)):
        model.learn_one(x, i % 2 if kind in OF_TWO_CLASSES else [2, 0, 3, 1][i % 4])
    return model
