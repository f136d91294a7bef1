"""Threads share estimators: whoever looks while another learns sees a model between two calls, never amid one."""

import copy
import pickle
import random
import sys
import threading

import pytest
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MulticlassPegasosClassifier,
    OrdinalPegasosClassifier,
    PegasosClassifier,
    PegasosTextClassifier,
)
from stream_pegasos.locks import Lock
from stream_pegasos.persistence import checksum
from stream_pegasos.prequential import predict


def test_a_lock_may_be_taken_twice_by_its_thread_and_by_no_other():
    lock = Lock()
    taken = []
    other = threading.Thread(target=lambda: taken.append(lock.acquire(timeout=0.05)))
    with lock, lock:
        other.start()
        other.join()
    assert taken == [False]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))])
def test_a_copy_of_a_locked_lock_is_free(copied):
    lock = Lock()
    taken = []
    with lock:
        new = copied(lock)
        other = threading.Thread(target=lambda: taken.append(new.acquire(timeout=10)))
        other.start()
        other.join()
    assert type(new) is Lock
    assert taken == [True]


def test_the_parts_of_a_text_model_share_a_lock_and_copies_share_none():
    model = PegasosTextClassifier()
    other = copy.deepcopy(model)
    assert model._lock is model.classifier._lock
    assert other._lock is other.classifier._lock
    assert other._lock is not model._lock


# --- stress -----------------------------------------------------------------------------------------------------------

WORDS = [f"word{i}" for i in range(60)]

ESTIMATORS = {
    "pegasos": lambda: PegasosClassifier(l2=1e-2, fit_intercept=True),
    "pegasos, averaged in batches": lambda: PegasosClassifier(l2=1e-2, batch_size=3, average=True),
    "pegasos, balanced and forgetful": lambda: PegasosClassifier(l2=1e-2, class_weight="balanced", max_features=30),
    "adaptive": AdaptiveClassifier,
    "adaptive, careful": lambda: AdaptiveClassifier(max_false_positive_rate=0.3, class_weight="balanced"),
    "adaptive, with a detector": lambda: AdaptiveClassifier(drift_detector=drift.binary.DDM(warm_start=5)),
    "adaptive, forgetful": lambda: AdaptiveClassifier(max_features=30),
    "kernel": lambda: KernelPegasosClassifier(l2=1e-2, budget=20),
    "kernel, in Python": lambda: KernelPegasosClassifier(l2=1e-2, kernel=dot, budget=10),
    "several classes": lambda: MulticlassPegasosClassifier(l2=1e-2),
    "one against the rest": lambda: MulticlassPegasosClassifier("ovr", l2=1e-2, fit_intercept=True),
    "ordered classes": lambda: OrdinalPegasosClassifier(l2=1e-2),
    "text": PegasosTextClassifier,
    "text, forgetful": lambda: PegasosTextClassifier(classifier=AdaptiveClassifier(max_features=100)),
    "text, as published": lambda: PegasosTextClassifier(classifier=PegasosClassifier(l2=1e-2)),
    "text, with a kernel": lambda: PegasosTextClassifier(classifier=KernelPegasosClassifier(l2=1e-2, budget=10)),
}


def dot(x, other):
    return sum(value * other.get(name, 0.0) for name, value in x.items())


def calls_of(model):
    """Examples and labels of 40 calls, some of one example, some of many. The first label is 1, until 2 makes it the
    negative one; half-way the labels swap.
    """
    generator = random.Random(3)
    calls = []
    for i in range(40):
        rows, labels = [], []
        for _ in range(1 if i % 3 else generator.randrange(2, 12)):
            positive = generator.random() < 0.5
            likely = WORDS[:30] if positive else WORDS[30:]
            words = [*generator.choices(likely, k=4), generator.choice(WORDS)]
            rows.append(example_of(model, words))
            labels.append(1 + (positive != (i > 20)) if i > 10 else 1)
        calls.append((rows, labels))
    return calls


def example_of(model, words):
    return " ".join(words) if isinstance(model, PegasosTextClassifier) else dict.fromkeys(words, 1.0)


def learn(model, rows, labels):
    if len(rows) == 1:
        model.learn_one(rows[0], labels[0])
    else:
        model.learn_many(rows, labels)


def looks_of(model):
    """All that can be seen of a model, by name, each as a function that gives values to compare."""
    probes = [example_of(model, WORDS[:20]), example_of(model, WORDS[40:]), example_of(model, ["never met"])]
    looks = {
        "label": lambda: model.predict_one(probes[0]),
        "probabilities": lambda: model.predict_proba_one(probes[1]),
        "margin": lambda: model.decision_function_one(probes[0]),
        "labels": lambda: model.predict_many(probes).tolist(),
        "probabilities of many": lambda: model.predict_proba_many(probes).tolist(),
        "margins": lambda: model.decision_function_many(probes).tolist(),
    }
    classifier = getattr(model, "classifier", model)
    if not callable(getattr(classifier, "kernel", None)):  # which no file can hold
        looks["file"] = lambda: file_of(model)
    if not model._multiclass:
        looks["label, probability and margin"] = lambda: predict(model, probes)
    if isinstance(classifier, KernelPegasosClassifier):
        looks["support vectors"] = lambda: classifier.support_vectors
    else:
        looks["weights"] = lambda: model.weights
        if classifier is not model:
            looks["explanation"] = lambda: model.explain_one(probes[0])
    return looks


def file_of(model):
    snapshot = model.snapshot()
    return checksum(snapshot.arrays, snapshot.values)


@pytest.fixture
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "kernel, in Python"])
def test_a_snapshot_stands_still_while_its_model_learns(name):
    model = ESTIMATORS[name]()
    calls = calls_of(model)
    for n, (rows, labels) in enumerate(calls[:-5]):
        learn(model, rows, labels)
        snapshot = model.snapshot()
        before = checksum(snapshot.arrays, snapshot.values)
        for more in calls[n + 1 : n + 6]:
            learn(model, *more)
        assert checksum(snapshot.arrays, snapshot.values) == before


@pytest.mark.parametrize("name", ESTIMATORS)
def test_threads_see_the_model_between_two_calls(name, run_threads, restless):
    reference, model = ESTIMATORS[name](), ESTIMATORS[name]()
    calls = calls_of(model)
    seen_by = {look: [see()] for look, see in looks_of(reference).items()}
    for rows, labels in calls:
        learn(reference, rows, labels)
        for look, see in looks_of(reference).items():
            seen_by[look].append(see())

    looked = threading.Semaphore(0)

    def learning():
        for rows, labels in calls:
            while looked.acquire(blocking=False):
                pass
            assert looked.acquire(timeout=20)  # so that somebody looks between any two calls, and during them
            learn(model, rows, labels)

    def looking(look, see):
        at_least = 0

        def once():
            nonlocal at_least
            seen = see()
            try:
                at_least = seen_by[look].index(seen, at_least)
            except ValueError:
                pytest.fail(f"{look}: {seen!r} is none of a model after {at_least} calls or more")
            looked.release()

        return once

    run_threads([learning], [looking(look, see) for look, see in looks_of(model).items()])
    for look, see in looks_of(model).items():
        assert see() == seen_by[look][-1]
    assert len({repr(seen) for seen in seen_by["margins"]}) > 20  # there was something to see
