"""What the contract tests share: the cases of the registry, and how models are compared."""

import math
import pickle
import random

import numpy as np
import pandas as pd
import pytest
from estimators import CASES, SETS, seen

import stream_pegasos
from stream_pegasos import engine
from stream_pegasos.common.packing import pack_names
from stream_pegasos.learners.files import checksum

pure = engine.NAME == "pure"
of_features = [case for case in CASES if case.of == "features"]
of_texts = [case for case in CASES if case.of != "features"]
saveable = [case for case in CASES if case.can_be_saved]


BAD_LABELS = [None, math.nan, 0.5, b"spam", [1], {}, (1,), np.datetime64("now")]


def bad_labels(case):
    if case.classes == SETS:
        return [None, math.nan, 0.5, b"spam", "spam", 7, [None], {1.5}, [[1]], ((1,),), {"spam": 2}, {None: True}]
    return BAD_LABELS


def for_each(cases, heavy=lambda case: False):
    """Run a test over cases; those that take long and tell little more, on demand. On the pure engine one of each kind
    has to do, as options are compared between the engines.
    """
    cases = one_of_each(cases) if pure else cases
    params = [pytest.param(case, marks=[pytest.mark.heavy] * heavy(case), id=case.name) for case in cases]
    return pytest.mark.parametrize("case", params)


def for_each_kind(cases, heavy=lambda case: False):
    """Run a test over one case of each kind, as for what does not rest on options."""
    return for_each(one_of_each(cases), heavy)


def one_of_each(cases):
    """The first case of each kind of model, classes, examples and vectors."""
    first = {}
    for case in cases:
        model = case.make()
        has_vectors = model.vector_source is not None
        first.setdefault((type(model), type(model.parts["classifier"]), case.classes, case.of, has_vectors), case)
    return [*first.values()]


KINDS = one_of_each(CASES)


def is_around_another(case):
    """Whether the case is a model of texts whose classifier is a case of its own."""
    return case.of != "features" and case.name != "text"


def after(case, *numbers):
    """Models that have learned so many examples."""
    return [case.trained(n) for n in numbers]


def many_of(case, X):
    """Examples as a model takes many of them."""
    return pd.DataFrame(X) if case.of == "fields" and len(X) else X


def bits(case, model):
    """The state that a model is saved with; all of it, where no file can hold it."""
    if not case.can_be_saved:
        return pickle.dumps(model)
    return bits_of(model.snapshot())


def bits_of(snapshot):
    return checksum({**snapshot.arrays, **pack_names(snapshot.names)}, snapshot.values)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def assert_close(model, expected, rel=1e-7, abs=1e-9):
    """What both have learned is the same, to rounding."""
    (classes, types, n, learned), (classes_too, types_too, n_too, learned_too) = seen(model), seen(expected)
    assert (classes, types, n) == (classes_too, types_too, n_too)
    assert flat(learned) == pytest.approx(flat(learned_too), rel=rel, abs=abs)


def flat(learned, at=()):
    """The numbers in nested dicts, lists and tuples, by where they stand; those of 0 are left out."""
    if isinstance(learned, (dict, list, tuple)):
        items = learned.items() if isinstance(learned, dict) else enumerate(learned)
        return {place: v for name, inner in items for place, v in flat(inner, (*at, name)).items()}
    return {at: learned} if learned else {}


def calls_of(case):
    """Examples and labels of 24 calls, some of one example, some of many. The first label is 1, until 2 makes it the
    negative one; half-way the labels swap.
    """
    numbers = ((1,), (2,)) if case.classes == SETS else (1, 2)
    first, second = (case.labels[0], case.pos_label) if case.pos_label else numbers
    words = [f"word{i}" for i in range(60)]
    generator = random.Random(3)
    calls = []
    for i in range(24):
        X, y = [], []
        for _ in range(1 if i % 3 else generator.randrange(2, 12)):
            positive = generator.random() < 0.5
            likely = words[:30] if positive else words[30:]
            X.append(case.example([*generator.choices(likely, k=4), generator.choice(words)]))
            y.append(second if i > 7 and positive != (i > 15) else first)
        calls.append((X, y))
    return calls


def learn(model, X, y):
    if len(X) == 1:
        model.learn_one(X[0], y[0])
    else:
        model.learn_many(X, y)


def told(predictions):
    """All that predictions say, as values to compare."""
    arrays = predictions.labels, predictions.probabilities, predictions.scores
    return predictions.classes, *(array.tolist() for array in arrays)


def through_a_file(model, path):
    model.save(path)
    return stream_pegasos.load(path, model.vector_source)
