"""Features that a stranger chose so that they stand side by side in the tables of the compiled engine."""

import pickle
import random

import pytest
from interpreter import run

from stream_pegasos import (
    AdaptiveClassifier,
    PegasosClassifier,
    engine,
)
from stream_pegasos.engine.pure import Row
from stream_pegasos.engine.pure.weights import MULTIPLIER

# Keys stand in the order of their products with MULTIPLIER, modulo 2⁶⁴, and with a Fibonacci number that is hardly
# anything: its multiples all belong in one place.
CROWDING = 102_334_155

pytestmark = pytest.mark.skipif(engine.NAME == "pure", reason="the pure engine keeps dicts of Python")

LEARNERS = [
    lambda: PegasosClassifier(l2=0.01),
    lambda: PegasosClassifier(l2=0.01, batch_size=3, average=True),
    lambda: AdaptiveClassifier(),
    lambda: PegasosClassifier(multi_class="crammer_singer", l2=0.01),
    lambda: PegasosClassifier(multi_class="ovr", l2=0.01, batch_size=2, average=True),
]


def order(key):
    return key * MULTIPLIER % (1 << 64)


def stream(n, n_features, size):
    draw = random.Random(7)
    for _ in range(n):
        features = draw.sample(range(-n_features, n_features), size)
        yield {i: draw.choice([-1.0, 0.5, 2.0]) for i in features}, draw.random() < 0.5


@pytest.mark.parametrize("make", LEARNERS)
def test_what_features_are_called_makes_no_difference(make):
    crowded, spread = make(), make()
    for n, (x, y) in enumerate(stream(400, 2000, 60)):
        named = {i * CROWDING: value for i, value in x.items()}
        expected = spread.predict_proba_one(x)
        assert crowded.predict_proba_one(named) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        crowded.learn_one(named, y)
        spread.learn_one(x, y)
        if n % 150 == 149:
            crowded = pickle.loads(pickle.dumps(crowded))


@pytest.mark.parametrize("make", LEARNERS)
def test_what_is_saved_does_not_depend_on_the_secret(make):
    model = make()
    for x, y in stream(100, 2000, 60):
        model.learn_one({i * CROWDING: value for i, value in x.items()}, y)
    keys = model._learner.get_state()["keys"].tolist()
    assert len(keys) > 2000
    assert keys == sorted(keys, key=order)
    assert pickle.dumps(pickle.loads(pickle.dumps(model))) == pickle.dumps(model)


@pytest.mark.parametrize("average", [False, True])
def test_sums_do_not_depend_on_the_secret(average):
    draw = random.Random(3)
    w = {key * CROWDING: draw.gauss(0.0, 1.0) for key in draw.sample(range(-4000, 4000), 5000)}
    weights = engine.WeightDict(average)
    for key, value in w.items():
        weights.add(Row([key], [value]), 1.0)
    assert weights.get_state()["keys"].tolist() == sorted(w, key=order)
    weights.scale(2.0**-100)  # so small that the scale goes into the values, whose squares are added up anew
    expected = 0.0
    for key in sorted(w, key=order):
        expected += (w[key] * 2.0**-100) ** 2
    assert weights.squared_norm() == expected


HANGS = """
    import json
    import numpy as np
    from sklearn.utils import murmurhash3_32
    from stream_pegasos import {classifier}, HashedBagOfWords, TextClassifier

    # All words of four letters or digits, and of those one in 32: whose columns agree in the bits that decide.
    letters = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", np.uint8)
    words = np.stack(np.meshgrid(*[letters] * 4), axis=-1).reshape(-1, 4).copy().view("<i4").ravel()
    columns = np.abs(murmurhash3_32(words).astype(np.int64)) % (1 << 30)
    places = columns.astype(np.uint64) * np.uint64({multiplier}) >> np.uint64({shift}) & np.uint64(31)
    words, columns = words[places == 0], columns[places == 0]
    text = " ".join(words.view("S4").astype(str))

    features = HashedBagOfWords(
        1 << 30, lowercase=False, token_pattern=r"\\w+", binary={binary}, norm=None, alternate_sign=False
    )
    found = features.transform_one(text)
    expected = dict(zip(*(array.tolist() for array in np.unique(columns, return_counts=True))))
    model = TextClassifier(features, {classifier}())
    for label in (False, True, False):
        model.learn_one(text, label)
    right = found == (dict.fromkeys(expected, 1.0) if {binary} else expected)
    print(json.dumps([len(words), right, model.predict_one(text)]))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("classifier, binary", [("AdaptiveClassifier", True), ("PegasosClassifier", False)])
@pytest.mark.parametrize("multiplier, shift", [(1, 16), (MULTIPLIER, 59)], ids=["in the text", "in the model"])
def test_a_text_of_words_that_crowd_hangs_nobody(classifier, multiplier, shift, binary):
    """In a process of its own, since it took minutes before."""
    pytest.importorskip("sklearn", reason="its MurmurHash3 finds the words")
    code = HANGS.format(classifier=classifier, multiplier=multiplier, shift=shift, binary=binary)
    n, right, predicted = run(code, timeout=60)
    assert n > 400_000 and right and predicted is False
