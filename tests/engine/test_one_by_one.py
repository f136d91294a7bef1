"""One example at a time: the short way does what the specification does, and keeps to the lock."""

import copy
import inspect
import pickle
import random
import threading
import time

import pytest
from engines import compiled_engine, same_state

from stream_pegasos import AdaptiveClassifier, PegasosClassifier, engine
from stream_pegasos.engine import pure

CLASSES = {
    "pegasos": PegasosClassifier,
    "average": lambda: PegasosClassifier(average=True, fit_intercept=True),
    "batches": lambda: PegasosClassifier(batch_size=3),
    "balanced": lambda: PegasosClassifier(class_weight="balanced"),
    "few features": lambda: PegasosClassifier(max_features=8),
    "positive label": lambda: PegasosClassifier(pos_label=True),
    "several classes": lambda: PegasosClassifier(multi_class="ovr"),
    "adaptive": AdaptiveClassifier,
    "threshold": lambda: AdaptiveClassifier(threshold=0.8, pos_label="spam"),
}


class Odd(str):
    """A name or a label that is a str to Python alone."""


NAMES = ["a", "b", "c", 3, -7, 1 << 61, 1 << 80, True, ("a", 1), ("a", Odd("b")), Odd("d")]
VALUES = [1, 0, -2.5, 1e-3, True, 1e40]
BAD = [{"a": float("nan")}, {"a": float("inf")}, {"a": "x"}, {1.5: 1.0}, ["a"], {"new": 1.0, "a": None}]
LABELS = ["spam", "ham", Odd("ham")]


def steps(seed, n=150):
    """What is done to a model, good and bad, in turn."""
    rng = random.Random(seed)
    for i in range(n):
        x = {rng.choice(NAMES + list(range(i))): rng.choice(VALUES) for _ in range(rng.randrange(6))}
        x = rng.choice(BAD) if rng.random() < 0.1 else x
        y = None if rng.random() < 0.05 else [] if rng.random() < 0.02 else rng.choice(LABELS)
        if i > n - 30 and rng.random() < 0.2:
            y = "a third one"
        yield x, y, rng.choice([1.0, 1.0, 1.0, 1, True, 0.5, -1.0, "heavy"])


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("seed", range(3))
def test_the_short_way_does_what_the_specification_does(kind, seed):
    short, long = CLASSES[kind](), CLASSES[kind]()
    for x, y, w in steps(seed):
        arguments = (x, y) if w is True else (x, y, w)
        slow = pure.OneByOne
        assert outcome(short.predict_one, x) == outcome(slow.predict_prepared, long, long.trainer.vocabulary, x)
        learned = outcome(slow.learn_prepared, long, long.trainer.vocabulary, *arguments)
        assert outcome(short.learn_one, *arguments) == learned
        assert short.classes == long.classes
    assert same_state(short.trainer.learner.get_state(), long.trainer.learner.get_state())
    assert short.trainer.vocabulary.names == long.trainer.vocabulary.names


@pytest.mark.parametrize("call", [lambda m: m.predict_one({"a": 1.0}), lambda m: m.learn_one({"a": 1.0}, "spam")])
def test_who_holds_the_lock_finds_the_model_between_two_steps(call):
    model = PegasosClassifier()
    for y in ("spam", "ham"):
        model.learn_one({"a": 1.0}, y)
    done = threading.Event()
    other = threading.Thread(target=lambda: (call(model), done.set()))
    with model.lock:
        call(model)  # whoever holds it may go on
        other.start()
        assert not done.wait(0.05)
    assert done.wait(10)
    other.join()


def test_a_subclass_may_have_its_own():
    class Louder(PegasosClassifier):
        def learn_one(self, x, y, w=1.0):
            super().learn_one(x, y.lower(), w)

        def predict_one(self, x):
            return super().predict_one(x).upper()

    model = Louder()
    for y in ("SPAM", "HAM", "SPAM"):
        model.learn_one(x={y: 1.0}, y=y)
    assert (model.classes, model.predict_one({"SPAM": 1.0})) == (("spam", "ham"), "SPAM")


@pytest.mark.parametrize("name", ["learn_one", "predict_one"])
def test_what_is_said_of_it_is_what_the_specification_says(name):
    ours, specified = getattr(PegasosClassifier, name), getattr(pure.OneByOne, name)
    assert inspect.signature(ours) == inspect.signature(specified)
    assert inspect.getdoc(ours) == inspect.getdoc(specified) != ""


LOCKS = [pure.Lock, *([compiled_engine.Lock] if compiled_engine is not None else [])]


@pytest.mark.parametrize("kind", LOCKS)
def test_a_lock_may_be_taken_twice_by_its_thread_and_by_no_other(kind):
    lock = kind()
    taken = []
    other = threading.Thread(target=lambda: taken.append(lock.acquire(timeout=0.05)))
    with lock, lock:
        other.start()
        other.join()
    assert taken == [False]
    with pytest.raises(RuntimeError):
        lock.release()


@pytest.mark.parametrize("kind", LOCKS)
def test_a_lock_lets_one_thread_in_at_a_time_and_every_thread_in_the_end(kind):
    lock, inside, most, n_done = kind(), [], [], []

    def work():
        for i in range(300):
            with lock:
                inside.append(1)
                time.sleep(0.0 if i % 10 else 1e-5)
                most.append(len(inside))
                inside.pop()
            n_done.append(lock.acquire(timeout=1e-6) and (lock.release() or 1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (max(most), len(most), len(n_done)) == (1, 1200, 1200)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))])
@pytest.mark.parametrize("kind", {engine.Lock, pure.Lock})
def test_a_copy_of_a_locked_lock_is_free(copied, kind):
    lock = kind()
    taken = []
    with lock:
        new = copied(lock)
        other = threading.Thread(target=lambda: taken.append(new.acquire(timeout=10)))
        other.start()
        other.join()
    assert type(new) is kind
    assert taken == [True]
