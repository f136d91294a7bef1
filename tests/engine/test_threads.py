"""Several threads at one call: the same bits as one, whatever happens on the way."""

import os
import random
import signal

import numpy as np
import pytest
from contract import bits, for_each, of_texts
from corpora import read_records
from engines import compiled_engine, needs_compiled, same_state
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, TextClassifier

pytestmark = needs_compiled

WORDS = ["cheap", "pills", "see", "you", "lunch", "é", "漢字", "अनुच्छेद", "İstanbul", "ΟΔΟΣ", "\ud800", "a!b", "🎉", "7"]


def texts_of(case, n, seed=0):
    """Examples, some of them long, of as many characters as several threads are worth."""
    generator = random.Random(seed)
    sizes = [generator.choice([0, 1, 5, 60, 60, 900]) for _ in range(n)]
    words = [*WORDS, *(f"word{i}" for i in range(400))]
    return [case.example(generator.choices(words, k=size)) for size in sizes]


def said(predictions):
    return predictions.scores.tobytes(), predictions.probabilities.tobytes(), predictions.labels.tolist()


@for_each(of_texts, heavy=lambda case: case.name in ("text, kernel", "text, use, two"))
def test_any_number_of_threads_gives_the_same_bits(case):
    n = 80
    X, y = texts_of(case, n), [case.labels[i % 7 % len(case.labels)] for i in range(n)]
    of_one = case.make()
    learned = of_one.predict_learn_many(X, y)
    for threads in (2, 5):
        model = case.make()
        assert said(model.predict_learn_many(X, y, threads=threads)) == said(learned), threads
        assert bits(case, model) == bits(case, of_one)
        assert said(model.predictions(X, threads=threads)) == said(of_one.predictions(X))
        assert bits(case, model) == bits(case, of_one)
        assert model.predict_many(X, threads=threads).tolist() == of_one.predict_many(X).tolist()
        assert model.predict_proba_many(X, threads).tobytes() == of_one.predict_proba_many(X).tobytes()
        assert model.decision_function_many(X, threads).tobytes() == of_one.decision_function_many(X).tobytes()
        model.learn_many(X, y, 0.5, threads)
        again = case.make()
        again.learn_many(X, y)
        again.learn_many(X, y, 0.5)
        assert bits(case, model) == bits(case, again)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=20), st.integers(2, 4))
def test_any_texts_do(texts, threads):
    X = texts * (100_000 // sum(len(text) + 1 for text in texts) + 1)
    y = [i % 3 == 0 for i in range(len(X))]
    one, several = TextClassifier(), TextClassifier()
    assert said(one.predict_learn_many(X, y)) == said(several.predict_learn_many(X, y, threads=threads))
    assert said(one.predictions(X)) == said(several.predictions(X, threads=threads))


@pytest.mark.parametrize("name", ["enron_1to3", "banking77", "waimai_zh"])
def test_real_streams(name, data_folder):
    records = read_records(name)[:1_000]
    X, y = [record["text"] for record in records], [record["label"] for record in records]
    one, several = TextClassifier(), TextClassifier()
    assert said(one.predict_learn_many(X, y)) == said(several.predict_learn_many(X, y, threads=2))
    assert said(one.predictions(X)) == said(several.predictions(X, threads=2))


@pytest.mark.parametrize("threads", [2, 3])
def test_learning_that_stops_in_the_middle_of_a_block_goes_on(threads):
    generator = random.Random(1)
    X = [" ".join(f"w{generator.randrange(5_000)}" for _ in range(100)) for _ in range(800)]
    y = [i % 2 == 0 for i in range(len(X))]
    one, several = (TextClassifier(classifier=AdaptiveClassifier(max_features=3_000)) for _ in range(2))
    one.learn_many(X, y)
    several.learn_many(X, y, threads=threads)
    assert one.weights == several.weights and one.n_iterations == several.n_iterations == len(X)


def test_an_error_leaves_no_thread_and_what_was_learned():
    X = [f"word{i} and others " * 50 for i in range(400)]
    y = np.where(np.arange(len(X)) % 2, 1.0, 0.0)
    states = []
    for threads in (1, 3):
        learner = compiled_engine.PegasosLearner(1e-4, 1, 9.0, True, 0.0)
        encoder = compiled_engine.Scanner(*HashedBagOfWords().scanner.arguments).get_threaded(threads)
        learner.predict_learn_many(encoder, X, y)
        states.append(learner.get_state())
        margins, _ = learner.predict_learn_many(encoder, X)
        with pytest.raises(TypeError):
            learner.predict_learn_many(encoder, [*X, 7], np.append(y, 1.0))
        assert margins.any() and same_state(learner, states[-1]) and learner.n_iterations == len(X)
    assert same_state(*states)


LONG = [f"word{i % 50} of a text that is long enough {i}" * 20 for i in range(400)]
LABELS = [i % 3 == 0 for i in range(400)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_goes_on_with_the_model():
    model, expected = TextClassifier(), TextClassifier()
    model.learn_many(LONG, LABELS, threads=3)
    child = os.fork()
    if not child:
        try:
            model.learn_many(LONG, LABELS, threads=3)
            expected.learn_many(LONG + LONG, LABELS + LABELS)
            same = said(model.predictions(LONG, threads=2)) == said(expected.predictions(LONG))
            os._exit(0 if same else 3)
        finally:
            os._exit(4)
    assert os.waitpid(child, 0)[1] == 0
    expected.learn_many(LONG, LABELS)
    assert said(model.predictions(LONG, threads=3)) == said(expected.predictions(LONG))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_interrupted_calls_leave_the_model_between_two_calls():
    """A signal's handler that raises does so before the call or after it, and leaves no thread behind."""

    class Interrupted(Exception):
        pass

    def interrupt(number, frame):
        if at_work:  # on a slow machine the timer may be late, or early
            raise Interrupted

    model, n, at_work = TextClassifier(), 0, False
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i in range(50):
            try:
                at_work = True
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + 1e-4 * i)
                model.learn_many(LONG, LABELS, threads=3)
                model.predict_many(LONG, threads=3)
                at_work = False
            except Interrupted:
                at_work = False
                n += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert n and model.n_iterations % len(LONG) == 0
    expected = TextClassifier()
    for _ in range(model.n_iterations // len(LONG)):
        expected.learn_many(LONG, LABELS)
    assert said(model.predictions(LONG, threads=3)) == said(expected.predictions(LONG))


def test_threads_that_share_a_model_and_its_features(run_threads):
    model = TextClassifier()
    other = TextClassifier(features=model.features, classifier=AdaptiveClassifier(loss="hinge"))
    model.learn_many(LONG[:40], LABELS[:40])
    other.learn_many(LONG[:40], LABELS[:40])
    expected = said(other.predictions(LONG))

    def learn():
        for _ in range(5):
            model.learn_many(LONG, LABELS, threads=2)

    def predict():
        assert np.isfinite(model.decision_function_many(LONG, threads=3)).all()

    def predict_other():
        assert said(other.predictions(LONG, threads=2)) == expected

    run_threads([learn, learn], [predict, predict, predict_other])
    alone = TextClassifier()
    alone.learn_many(LONG[:40], LABELS[:40])
    for _ in range(10):
        alone.learn_many(LONG, LABELS)
    assert said(alone.predictions(LONG)) == said(model.predictions(LONG))


def test_threads_is_an_integer_of_at_least_one():
    model = TextClassifier()
    for threads, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError), (True, TypeError)):
        for call in (model.learn_many, model.predict_learn_many):
            with pytest.raises(error, match=r"threads (is|must be)"):
                call(["a"], [True], threads=threads)
        with pytest.raises(error, match=r"threads (is|must be)"):
            model.predict_many(["a"], threads=threads)
    assert model.n_iterations == 0
