"""What all targets of the fuzzer share: how input is made hostile, and when a model is sound."""

import math

import numpy as np

SECONDS = 10  # that one input, or one block of texts, may take


def below(random, n):
    """An int from 0 to n - 1; faster than `randrange`."""
    return int(random.random() * n)


def mutated(random, data, others, tokens, unit):
    """Bytes or a text, changed in some places; `unit` gives a random byte or character."""
    for _ in range(1 + below(random, 4)):
        i, size = below(random, len(data) + 1), 1 + below(random, 8)
        kind = below(random, 9)
        if kind < 2:
            data = data[:i] + unit(random) + data[i + 1 :]
        elif kind < 5:
            data = data[:i] + random.choice(tokens) + data[i + (size if kind == 4 else 0) :]
        elif kind == 5:
            data = data[:i] + data[i + size :]
        elif kind == 6:
            other = random.choice(others)
            data = data[:i] + other[below(random, len(other) + 1) :]
        elif kind == 7:
            data = data[:i] + data[i : i + size] * (1 << below(random, 8)) + data[i:]
        elif random.random() < 0.5:
            data = data[:i]
    return data


def one_byte(random):
    return bytes((below(random, 256),))


def one_character(random):
    return chr(below(random, 0x110000 if random.random() < 0.5 else 0x800))


INTEGERS = [0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**60, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, -1.0, 1e-320, 1e-300, 1e30, 1e46, 1e300, -1e308, math.inf, -math.inf, math.nan]
NUMBERS = ["1e400", "-1e-400", "nan", "-inf", "1_000", "0x10", "\u0663", "9" * 400, "9" * 5000, "1e", ".", "-"]


def check_works(model, examples):
    """A model is sound, and so is what it predicts."""
    arrays = model.snapshot().arrays
    for array in arrays.values():
        assert np.isfinite(array).all()
    check_predicts(model, examples)
    probabilities = model.predict_proba_many(examples)
    assert ((probabilities >= 0.0) & (probabilities <= 1.0)).all()
    sums_to_1 = probabilities.size and "several labels" not in model.capabilities
    assert not sums_to_1 or np.allclose(probabilities.sum(axis=1), 1.0)


def check_predicts(model, examples):
    check_size(model)
    for labels in model.predict_many(examples):
        several = "several labels" in model.capabilities
        assert {*labels} <= {*model.classes} if several else labels in (None, False, True, *model.classes)
    model.predict_proba_many(examples)
    for x in examples[:2]:
        model.predict_one(x)
        model.predict_proba_one(x)


def check_size(model):
    classifier = model.parts["classifier"]
    limit = getattr(classifier, "max_features", None)
    assert limit is None or classifier.n_features <= limit


def state_of(model):
    snapshot = model.snapshot()
    arrays, values = snapshot.arrays, snapshot.values
    return {name: (array.dtype, array.tobytes()) for name, array in arrays.items()}, values
