"""Threads share estimators: whoever looks while another learns sees a model between two calls, never amid one."""

import copy
import os
import signal
import threading

import pytest
from interpreter import run

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    PegasosClassifier,
    TextClassifier,
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_finds_the_model_between_two_calls_of_another_thread():
    model, outer, done = TextClassifier(), MultiLabelClassifier(), threading.Event()
    texts, labels = (
        [" ".join(f"w{i * j % 997}" for j in range(60)) for i in range(200)],
        [i % 3 == 0 for i in range(200)],
    )

    def work():
        while not done.is_set():
            model.learn_many(texts, labels)
            copy.deepcopy(outer)  # which takes one lock after another

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while not model.n_iterations:
            pass
        for _ in range(10):
            child = os.fork()
            if not child:
                signal.alarm(20)  # ends it if it hangs
                try:
                    model.predict_many(texts)
                    whole = model.n_iterations % len(texts) == 0
                    copy.deepcopy(outer)
                    model.learn_many(texts, labels)
                    os._exit(0 if whole else 3)
                finally:
                    os._exit(4)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        thread.join()


# --- stress -----------------------------------------------------------------------------------------------------------


SHARED = """
    import json, sys, threading
    from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, KernelPegasosClassifier, PegasosClassifier
    from stream_pegasos import TextClassifier

    sys.setswitchinterval(1e-5)
    bag = HashedBagOfWords()
    texts = [" ".join(f"w{j}" for j in range(i, i + 1 + i * 37 % 100)) for i in range(40)]
    labels = [i % 2 == 0 for i in range(40)]

    def classifiers():
        yield PegasosClassifier(t0=10.0, batch_size=3, average=True)
        yield AdaptiveClassifier()
        yield KernelPegasosClassifier(kernel=lambda x, z: float(len(x.keys() & z.keys())), budget=5)

    def learned(bag):
        models = [TextClassifier(bag, classifier) for classifier in classifiers()]
        for model in models:
            for text, label in zip(texts, labels):
                model.learn_one(text, label)
        return [model.decision_function_many(texts).tolist() for model in models]

    done = threading.Event()

    def use():
        other, i = TextClassifier(bag), 0
        while not done.is_set():
            bag.transform_one(texts[i % 40])
            other.predict_one(texts[-1 - i % 40])
            i += 1

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    shared = learned(bag)
    done.set()
    for thread in threads:
        thread.join()
    print(json.dumps(shared == learned(HashedBagOfWords())))
"""


def test_an_example_is_not_replaced_by_who_shares_the_features():
    """Python runs in the middle of a step where a kernel is a function."""
    assert run(SHARED, timeout=300) is True


class Odd:
    """A number that does something else when it is read."""

    def __init__(self, value, also):
        self.value, self.also = value, also

    def __float__(self):
        self.also()
        return self.value


@pytest.mark.parametrize("make", [PegasosClassifier, AdaptiveClassifier, KernelPegasosClassifier])
def test_a_value_that_uses_the_model_when_it_is_read_hangs_nobody(make):
    """It finds the model as it is before the call, or is told that this is in the middle of one."""
    model, expected, seen = make(), make(), []
    for learner in (model, expected):
        learner.learn_many([{"a": 1.0}, {"b": 1.0}], [True, False])

    def also():
        seen.append(model.predict_one({"a": 1.0}))
        model.learn_one({"c": 1.0}, True)

    work = threading.Thread(target=lambda: model.learn_one({"a": Odd(2.0, also), "new": 1.0}, True), daemon=True)
    work.start()
    work.join(20)
    assert not work.is_alive()
    for _ in seen[: model.n_iterations > expected.n_iterations]:
        expected.learn_one({"c": 1.0}, True)
    try:
        model.learn_many([{"d": 1.0}, {"a": Odd(2.0, also)}], [False, True])
    except RuntimeError as error:
        assert "of this very thread" in str(error)
    model.learn_one({"e": 1.0}, False)
    assert model.predict_one({"b": 1.0}) is False


class Liar(str):
    """A text whose methods say what is not true."""

    def lower(self):
        return 5

    def __contains__(self, other):
        return True

    def __str__(self):
        return "not this"

    def __len__(self):
        return 3


def test_a_text_whose_methods_lie_is_the_text_that_it_is():
    text = "\u03a3\u0399\u03a3 Two WORDS \u0130"
    for options in ({}, {"analyzer": "char"}, {"token_pattern": r"[a-z]+"}, {"strip_accents": "unicode"}):
        bag, other = HashedBagOfWords(**options), HashedBagOfWords(**options)
        assert bag.transform_one(Liar(text)) == other.transform_one(text)
        assert (bag.transform_many([Liar(text)]) != other.transform_many([text])).nnz == 0


def test_a_kernel_that_uses_its_model_is_told():
    def kernel(x, z):
        if inside:
            with pytest.raises(RuntimeError, match="of this very thread"):
                model.learn_one({"other": 1.0}, True)
            told.append(True)
        return float(len(x.keys() & z.keys()))

    inside, told = False, []
    model = KernelPegasosClassifier(kernel=kernel)
    model.learn_many([{"a": 1.0}, {"b": 1.0}], [True, False])
    inside = True
    model.predict_one({"x": 1.0})
    model.learn_one({"y": 1.0}, True)
    model.predict_many([{"x": 1.0}])
    assert told and model.n_iterations == 3 and model.support_vectors == [{"a": 1.0}, {"b": 1.0}, {"y": 1.0}]
