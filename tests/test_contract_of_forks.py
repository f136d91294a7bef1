"""What is in the middle of a call in one thread works in a child that another thread forks."""

import ast
import copy
import os
import pickle
import signal
import threading

import pytest
from contract import KINDS, is_around_another, many_of
from estimators import ENCODER, VECTORS
from test_house import trees

from stream_pegasos import Category, HashedBagOfWords, MailFeatures, Number, TextFeatures
from stream_pegasos.features.encoders import text_encoder
from stream_pegasos.features.vectors import word_vectors

TEXTS = ["".join(f"w{i * j % 97} " for j in range(200)) for i in range(40)]
RECORDS = [{"text": text, "size": len(text)} for text in TEXTS]
FORKS = 4


def of_features(features, X):
    def calls():
        yield lambda: features.transform_many(X)
        yield lambda: features.transform_one(X[0])
        yield lambda: features.refusals(X)
        yield lambda: features.contents(features.prepare(X[0]))
        yield lambda: pickle.loads(pickle.dumps(features)).transform_one(X[0])

    return calls


def of_model(case):
    model = case.trained()
    X, y = case.columns(300)
    X = many_of(case, X)
    (x, label), *_ = case.stream(1)

    def calls():
        yield lambda: model.learn_many(X, y, threads=2)
        yield lambda: model.predict_learn_many(X, y)
        yield lambda: model.predictions(X, threads=2)
        yield lambda: model.learn_one(x, label)
        yield lambda: (model.predict_one(x), model.predict_proba_one(x), model.decision_function_one(x))
        yield lambda: (model.n_features, model.flush())
        yield model.snapshot if case.can_be_saved else lambda: pickle.dumps(model)
        yield lambda: copy.deepcopy(model)

    return calls


FEATURES = {
    "words": lambda: of_features(HashedBagOfWords(), TEXTS),
    "words of a function": lambda: of_features(HashedBagOfWords(tokenizer=str.split), TEXTS),
    "recipe": lambda: of_features(TextFeatures(), TEXTS),
    "vectors": lambda: of_features(TextFeatures(vectors=VECTORS), TEXTS),
    "encoder": lambda: of_features(TextFeatures(vectors=ENCODER), TEXTS),
    "mails": lambda: of_features(MailFeatures(), TEXTS),
    "fields": lambda: of_features(TextFeatures(on="text") + Category(on="text") + Number(on="size"), RECORDS),
    "table": lambda: lambda: iter([lambda: word_vectors(VECTORS).codes(TEXTS)]),
    "sentences": lambda: lambda: iter([lambda: text_encoder(ENCODER).vectors(TEXTS)]),
}
MODELS = [
    pytest.param(lambda case=case: of_model(case), marks=[pytest.mark.heavy] * is_around_another(case), id=case.name)
    for case in KINDS
]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("make", [*(pytest.param(make, id=name) for name, make in FEATURES.items()), *MODELS])
def test_no_method_blocks_after_a_fork(make):
    calls, begun, done = make(), threading.Event(), threading.Event()
    failures = []

    def work():
        try:
            while not done.is_set():
                for call in calls():
                    call()
                    begun.set()
        except BaseException as error:
            failures.append(error)
            begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(120)
        for _ in range(FORKS):
            child = os.fork()
            if not child:
                signal.alarm(60)  # ends it if it hangs
                try:
                    for call in calls():
                        call()
                    os._exit(0)
                finally:
                    os._exit(4)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        thread.join()
    assert not failures


def test_each_lock_of_the_package_heeds_forks():
    """A lock of `threading` may be taken for ever in a child; `functools.cached_property` has one in Python 3.11."""
    kinds = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "cached_property"}
    homes = {"threading", "_thread", "functools"}

    def takes(node):
        if isinstance(node, ast.ImportFrom) and node.module in homes:
            return any(alias.name in kinds for alias in node.names)
        return isinstance(node, ast.Attribute) and node.attr in kinds and ast.unparse(node.value) in homes

    made = {module for module, tree in trees().items() if any(map(takes, ast.walk(tree)))}
    assert made == {"stream_pegasos.common.locks"}
