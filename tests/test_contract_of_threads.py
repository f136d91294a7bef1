"""What every estimator promises in every process, on both engines and in many threads."""

import copy
import hashlib
import math
import os
import pickle
import sys
import threading

import numpy as np
import pytest
from contract import (
    KINDS,
    assert_close,
    bits_of,
    calls_of,
    flat,
    for_each_kind,
    is_around_another,
    learn,
    many_of,
    pure,
    told,
)
from estimators import CASES, TWO, seen
from interpreter import run

import stream_pegasos


def digests_of_kinds(path):
    digests = {}
    for case in KINDS:
        model = case.trained(30)
        if case.can_be_saved:
            model.save(path)
        made = path.read_bytes() if case.can_be_saved else pickle.dumps(model)
        digests[case.name] = hashlib.sha256(made).hexdigest()
    return digests


def test_the_same_stream_gives_the_same_file_in_every_process(tmp_path):
    """In one whose order of sets and strings is another than here."""
    code = f"""
        import json, pathlib
        from test_contract_of_threads import digests_of_kinds
        print(json.dumps(digests_of_kinds(pathlib.Path({str(tmp_path / "other")!r}))))
    """
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "31337" else "31337"
    assert run(code, PYTHONHASHSEED=seed) == digests_of_kinds(tmp_path / "model")


ON_THE_OTHER_ENGINE = """
    import pathlib, pickle
    import stream_pegasos
    from contract import KINDS
    from estimators import seen
    from stream_pegasos import engine

    folder, results = pathlib.Path(FOLDER), {"engine": engine.NAME}
    for i, case in enumerate(KINDS):
        alone, path = case.trained(30), folder / f"{i}.pickle"
        models = [alone, pickle.loads(path.read_bytes())]
        if case.can_be_saved:
            models.append(stream_pegasos.load(folder / f"{i}.file", alone.vector_source))
        for model in models[1:]:
            for x, y in list(case.stream(30))[20:]:
                model.learn_one(x, y)
        results[case.name] = [
            (seen(model), [model.predict_proba_one(x) for x, _ in case.stream(20, seed=1)]) for model in models
        ]
        path.write_bytes(pickle.dumps(models[1]))
        if case.can_be_saved:
            models[-1].save(folder / f"{i}.file")
    (folder / "results").write_bytes(pickle.dumps(results))
    print("true")
"""


def has_compiled():
    try:
        import stream_pegasos.engine.compiled  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.skipif(not has_compiled(), reason="the compiled engine was not built")
def test_the_engines_are_alike_and_models_move_between_them(tmp_path):
    """To the rounding of single precision, in which the compiled one keeps features of adaptive rules: 6e-8 of a number
    at each of 30 steps.
    """
    rounded = {"rel": 1e-4, "abs": 1e-4}
    for i, case in enumerate(KINDS):
        model = case.trained(20)
        (tmp_path / f"{i}.pickle").write_bytes(pickle.dumps(model))
        if case.can_be_saved:
            model.save(tmp_path / f"{i}.file")
    other = "compiled" if pure else "pure"
    run(ON_THE_OTHER_ENGINE.replace("FOLDER", repr(str(tmp_path))), STREAM_PEGASOS_ENGINE=other)
    results = pickle.loads((tmp_path / "results").read_bytes())
    assert results["engine"] == other
    for i, case in enumerate(KINDS):
        model = case.trained(30)
        classes, types, n, learned = seen(model)
        probabilities = [model.predict_proba_one(x) for x, _ in case.stream(20, seed=1)]
        for (classes_there, types_there, n_there, learned_there), probabilities_there in results[case.name]:
            assert (classes_there, types_there, n_there) == (classes, types, n), case.name
            assert flat(learned_there) == pytest.approx(flat(learned), **rounded), case.name
            assert flat(probabilities_there) == pytest.approx(flat(probabilities), **rounded), case.name
        assert_close(pickle.loads((tmp_path / f"{i}.pickle").read_bytes()), model, **rounded)
        if case.can_be_saved:
            assert_close(stream_pegasos.load(tmp_path / f"{i}.file", model.vector_source), model, **rounded)


def looks_of(case, model):
    """All that can be seen of a model, by name, each as a function that gives values to compare."""
    words = [f"word{i}" for i in range(60)]
    probes = [case.example(words[:20]), case.example(words[40:]), case.example(["never", "met"])]
    looks = {
        "label": lambda: model.predict_one(probes[0]),
        "probabilities": lambda: model.predict_proba_one(probes[1]),
        "margin": lambda: model.decision_function_one(probes[0]),
        "labels": lambda: model.predict_many(probes).tolist(),
        "probabilities of many": lambda: model.predict_proba_many(probes).tolist(),
        "margins": lambda: model.decision_function_many(probes).tolist(),
    }
    if case.can_be_saved:
        looks["state"] = lambda: bits_of(model.snapshot())
    looks["all that is predicted"] = lambda: told(model.predictions(many_of(case, probes)))
    if case.has_weights:
        looks["weights"] = lambda: model.weights
        looks["weights of columns"] = lambda: model.get_weights(np.arange(40)).tolist()
        if case.of != "features" and case.classes == TWO:
            looks["explanation"] = lambda: model.explain_ngrams_one(probes[0])
    else:
        looks["support vectors"] = lambda: getattr(model, "classifier", model).support_vectors
    return looks


@pytest.fixture
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@for_each_kind(CASES, heavy=is_around_another)
def test_threads_see_the_model_between_two_calls(case, run_threads, restless):
    reference, model = case.make(), case.make()
    calls = calls_of(case)
    seen_by = {look: [see()] for look, see in looks_of(case, reference).items()}
    for X, y in calls:
        learn(reference, X, y)
        for look, see in looks_of(case, reference).items():
            seen_by[look].append(see())

    looked = threading.Event()

    def learning():
        for X, y in calls:
            looked.clear()
            assert looked.wait(20)  # so that somebody looks between any two calls, and during them
            learn(model, X, y)

    def looking(look, see):
        at_least = 0

        def once():
            nonlocal at_least
            found = see()
            try:
                at_least = seen_by[look].index(found, at_least)
            except ValueError:
                pytest.fail(f"{look}: {found!r} is none of a model after {at_least} calls or more")
            looked.set()

        return once

    run_threads([learning], [looking(look, see) for look, see in looks_of(case, model).items()])
    for look, see in looks_of(case, model).items():
        assert see() == seen_by[look][-1]
    assert len({repr(found) for found in seen_by["margins"]}) > 5  # there was something to see


@for_each_kind(CASES)
def test_threads_that_learn_lose_nothing(case, run_threads, tmp_path):
    X, y = case.columns(60)
    model, expected = case.make(), case.make()
    for made in (model, expected):
        made.learn_many(many_of(case, X), y)
    bulks, singles = (1, 50) if pure else (5, 150)

    def learn_bulks():
        for _ in range(bulks):
            model.learn_many(many_of(case, X), y)

    def learn_singly():
        for i in range(singles):
            model.predict_one(X[i % 60])
            model.learn_one(case.example([f"name{i}", "name"]), y[i % 60])

    def save():
        model.save(tmp_path / "model")
        assert stream_pegasos.load(tmp_path / "model", model.vector_source).n_iterations <= model.n_iterations

    readers = [
        lambda: model.predict_one(X[0]),
        lambda: np.isfinite(model.decision_function_many(many_of(case, X[:20]))).all() or pytest.fail("not finite"),
        lambda: (looks_of(case, model)["weights" if case.has_weights else "support vectors"](), model._memory_usage),
        lambda: copy.deepcopy(model).predict_proba_one(X[1]),
        *([save] if case.can_be_saved else []),
    ]
    run_threads([learn_bulks, learn_bulks, learn_singly], readers)
    for _ in range(2 * bulks):
        expected.learn_many(many_of(case, X), y)
    for i in range(singles):
        expected.learn_one(case.example([f"name{i}", "name"]), y[i % 60])
    for made in (model, expected):
        made.flush()
    assert model.n_iterations == expected.n_iterations
    assert model.classes == expected.classes
    assert all(map(math.isfinite, flat(seen(model)[-1]).values()))
