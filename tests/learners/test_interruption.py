"""After an exception at any moment of learning a model is as if exactly the first messages had been learned."""

import copy
import pathlib
import pickle
import sys

import numpy as np
import pytest
from engines import on_pure
from families import crossed
from river import drift

import stream_pegasos
from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    load,
)
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.learners.predictions import PartlyLearnedError

FOLDER = str(pathlib.Path(stream_pegasos.__file__).parent / "learners")
STEP = [getattr(AdaptiveLearner, name).__code__ for name in ("_find_margins", "_learn", "_take_step", "_keep")]
N = 18
MOMENTS = 8  # of each call


def examples(labels):
    rng = np.random.default_rng(7)
    y = [labels[i % len(labels)] if i < 12 else labels[int(rng.integers(len(labels)))] for i in range(N)]
    x = [{f"of {label}": 1.0, f"word {i * i % 11}": 1.0 + i % 3} for i, label in enumerate(y)]
    return x, y


def two():
    return ["spam"] * 3 + ["ham"] + ["spam", "ham"] * 3


CASES = {
    "two labels": (AdaptiveClassifier, two()),
    "labels exchanged": (AdaptiveClassifier, [1] * 4 + [2, 1]),
    "a third label": (AdaptiveClassifier, ["a", "a", "b", "a", "b", "c"]),
    "named, and a third label": (lambda: AdaptiveClassifier(pos_label="c"), ["a", "a", "b", "a", "c", "d"]),
    "max_features": (lambda: AdaptiveClassifier(max_features=6), ["a", "b", "c"]),
    "balanced": (lambda: AdaptiveClassifier(class_weight="balanced"), ["a", "a", "b", "c"]),
    "weights of classes": (lambda: AdaptiveClassifier(class_weight={"a": 0.5}, max_features=6), ["a", "b"]),
    "a limit": (lambda: AdaptiveClassifier(pos_label="a", max_false_positive_rate=0.2), ["a", "b"]),
    "limits by label": (lambda: AdaptiveClassifier(max_false_positive_rate={"a": 0.2, "b": 0.3}), ["a", "b", "c"]),
    "a limit and a third label": (lambda: AdaptiveClassifier(pos_label="a", max_false_positive_rate=0.2), list("abac")),
    "drift": (lambda: AdaptiveClassifier(drift_detector=drift.DummyDriftDetector(t_0=5)), ["a", "b", "c"]),
    "for F1": (lambda: AdaptiveClassifier(decide_for="macro_f1", class_weight="sqrt"), ["a", "a", "b", "c"]),
    "several labels, for F1": (
        lambda: MultiLabelClassifier(AdaptiveClassifier(decide_for="macro_f1")),
        [{"a"}, {"a", "b"}, set(), {"c"}],
    ),
    "several labels": (MultiLabelClassifier, [{"a"}, {"a", "b"}, set(), {"c"}]),
    "several labels, a limit": (
        lambda: MultiLabelClassifier(AdaptiveClassifier(max_false_positive_rate=0.2, max_features=6)),
        [{"a"}, {"a", "b"}, set(), {"c"}],
    ),
    "sets": (lambda: AdaptiveClassifier(coverage=0.8), ["a", "a", "b", "c"]),
    "several labels, sets": (
        lambda: MultiLabelClassifier(AdaptiveClassifier(coverage=0.8)),
        [{"a"}, {"a", "b"}, set(), {"c"}],
    ),
    "ordered": (OrdinalClassifier, [2, 1, 3, 5, 4]),
    "ordered, max_features": (lambda: OrdinalClassifier(AdaptiveClassifier(max_features=6)), [2, 1, 3]),
    "pegasos": (lambda: PegasosClassifier(max_features=6), ["a", "b", "c"]),
    "pegasos, batches": (lambda: PegasosClassifier(batch_size=4, fit_intercept=True), ["a", "b", "c"]),
    "crammer_singer": (lambda: PegasosClassifier(multi_class="crammer_singer"), ["a", "b", "c"]),
    "kernel": (lambda: KernelPegasosClassifier(l2=0.1), ["a", "b"]),
}


class Interruption(BaseException):
    pass


class Interrupting:
    """Raises before the k-th line of a learner's file, or of some functions, is run; without k it counts all lines."""

    def __init__(self, k=None, error=Interruption, functions=()):
        self.k, self.n, self.error, self.functions = k, 0, error, functions

    def _line(self, frame, event, argument):
        if event == "line":
            self.n += 1
            if self.n == self.k:
                raise self.error
        return self._line

    def _call(self, frame, event, argument):
        code = frame.f_code
        is_counted = code in self.functions if self.functions else code.co_filename.startswith(FOLDER)
        return self._line if is_counted else None

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error):
        sys.settrace(self._before)


def state_of(model):
    arrays, names, values = model.to_state()
    return {name: array.tolist() for name, array in arrays.items()}, list(names), values


def learned(make, x, y, w, n, one):
    model = make()
    if one:
        for each in range(n):
            model.learn_one(x[each], y[each], w)
    elif n:
        model.learn_many(x[:n], y[:n], w)
    return model


def check(model, make, x, y, w, one, path, goes_on):
    """Whether it is as if exactly the first examples had been learned, and goes on as such a model does; not where a
    detector was told of the one that was interrupted.
    """
    as_if = learned(make, x, y, w, model.n_learned, one)
    assert state_of(model) == state_of(as_if)
    assert model.classes == as_if.classes
    model.save(path)
    for each in (load(path), pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model):
        assert each.predict_many(x).tolist() == as_if.predict_many(x).tolist()
        each.predict_one(x[0])
        each.learn_many(x, y)
        each.learn_one(x[0], y[0])
        each.predict_proba_one(x[1])
    after = copy.deepcopy(as_if)
    after.learn_many(x, y)
    after.learn_one(x[0], y[0])
    assert not goes_on or model.predict_many(x).tolist() == after.predict_many(x).tolist()


@pytest.mark.parametrize(("case", "one"), crossed(CASES, [False, True]))
def test_interruption(case, one, tmp_path):
    make, labels = CASES[case]
    x, y = examples(labels)
    w = 1.0

    def learn(model):
        if one:
            for each, label in zip(x, y, strict=True):
                model.learn_one(each, label, w)
        else:
            model.learn_many(x, y, w)

    model = make()
    with Interrupting() as lines:
        learn(model)
    for k in np.unique(np.linspace(1, lines.n, MOMENTS // 2 if one else MOMENTS, dtype=int)).tolist():
        model = make()
        with pytest.raises((Interruption, PartlyLearnedError)), Interrupting(k):
            learn(model)
        check(model, make, x, y, w, one, tmp_path / "model", goes_on="drift" not in case)


def test_a_limit_and_names_know_what_the_pure_engine_has_learned():
    """Wherever it was interrupted, in the middle of a step, too."""

    def make():
        careful = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.3)
        model = TextClassifier(HashedBagOfWords(), careful)
        model.keep_names()
        return model

    x, y = [f"of {label} w{i % 5}" for i, label in enumerate(["ham", "spam", "ham"] * 4)], ["ham", "spam", "ham"] * 4
    w = [1.0, 0.0, 2.0] + [1.0] * 9
    with on_pure():
        model = make()
        with Interrupting(functions=STEP) as lines:
            model.learn_many(x, y, w)
        for k in np.unique(np.linspace(1, lines.n, 40, dtype=int)).tolist():
            model, as_if = make(), make()
            with pytest.raises(Interruption), Interrupting(k, functions=STEP):
                model.learn_many(x, y, w)
            n_rows = model.n_learned + (model.n_learned > 1)  # with the one of weight 0
            for each in zip(x[:n_rows], y, w, strict=False):
                as_if.learn_one(*each)
            assert as_if.n_learned == model.n_learned
            assert model.trainer.policy.decisions.get_state() == as_if.trainer.policy.decisions.get_state()
            assert model.names.get_state() == as_if.names.get_state()


def test_names_are_kept_of_what_was_learned_before_an_exception():
    class Fails(drift.NoDrift):
        def update(self, x):
            self.n = getattr(self, "n", 0) + 1
            if self.n == 7:
                raise RuntimeError

    model, as_if = (TextClassifier(classifier=AdaptiveClassifier(drift_detector=Fails())) for _ in range(2))
    x, y = examples(["spam", "ham"])
    x = [" ".join(each) for each in x]
    for each in (model, as_if):
        each.keep_names()
    with pytest.raises(PartlyLearnedError):
        model.learn_many(x, y)
    as_if.learn_many(x[: model.n_learned], y[: model.n_learned])
    assert 0 < model.n_learned < N and model.names.get_state() == as_if.names.get_state()


@pytest.mark.parametrize("n", [4, 6, 7, 9])
def test_a_call_that_brings_a_class_among_batches(n, tmp_path):
    """Columns have begun at different times, so that each waits for another number of examples."""
    y = [*"ababccacb"[:n], "d", "a"]
    x = [{f"of {label}": 1.0} for label in y]

    def make():
        return PegasosClassifier(multi_class="ovr", batch_size=4)

    model = learned(make, x, y, 1.0, n, False)
    with Interrupting() as lines:
        model.learn_many(x[n:], y[n:])
    for k in np.unique(np.linspace(1, lines.n, 25, dtype=int)).tolist():
        model = learned(make, x, y, 1.0, n, False)
        with pytest.raises(Interruption), Interrupting(k):
            model.learn_many(x[n:], y[n:])
        check(model, make, x, y, 1.0, False, tmp_path / "model", goes_on=True)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
@pytest.mark.parametrize("case", ["a third label", "drift", "several labels"])
def test_errors_of_other_kinds(case, error, tmp_path):
    make, labels = CASES[case]
    x, y = examples(labels)
    model = make()
    with Interrupting() as lines:
        model.learn_many(x, y)
    for k in np.linspace(1, lines.n, 5, dtype=int).tolist():
        model = make()
        with pytest.raises((error, PartlyLearnedError)), Interrupting(k, error):
            model.learn_many(x, y)
        check(model, make, x, y, 1.0, False, tmp_path / "model", goes_on="drift" not in case)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
@pytest.mark.parametrize("function", ["tokenizer", "preprocessor"])
@pytest.mark.parametrize("case", ["balanced", "pegasos, batches"])
def test_functions_of_features(case, function, error):
    def fails(text):
        if "bad" in text:
            raise error
        return text.split() if function == "tokenizer" else text

    model = TextClassifier(TextFeatures(**{function: fails}), CASES[case][0]())
    model.learn_many(["a b", "b c"], ["x", "y"])
    before = pickle.dumps(model.classifier)
    for learn in (
        lambda: model.predict_one("bad"),
        lambda: model.learn_many(["a", "bad"], ["x", "z"]),
        lambda: model.learn_many(["bad", "a", "b"], ["x", "y", "z"]),
        lambda: model.learn_one("bad", "z"),
        lambda: model.predict_learn_many(["a", "bad"], ["x", "z"]),
    ):
        with pytest.raises(error):
            learn()
        assert pickle.dumps(model.classifier) == before
    model.learn_many(["a", "c"], ["x", "z"])
    assert model.classes == ("x", "y", "z")
