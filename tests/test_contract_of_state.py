"""After any public calls, in any order, a model keeps its bounds; saved, loaded or copied it goes on to the same bits.

State machines with random calls, other ones in each run: a failure prints the calls, and a line that repeats them.
"""

import copy
import pickle
import random
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from contract import bits, pure
from engines import on_pure
from estimators import CASES, SETS
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import stream_pegasos

# A file does not have what a detector has seen.
WITHOUT_DETECTORS = [case for case in CASES if case.option("drift_detector") is None]
GROUPS = {
    "forgetful": [case for case in WITHOUT_DETECTORS if case.make().max_features is not None],
    "features": [case for case in WITHOUT_DETECTORS if case.of == "features"],
    "texts": [case for case in WITHOUT_DETECTORS if case.of != "features"],
}
SETTINGS = settings(
    max_examples=8,
    stateful_step_count=10,
    deadline=None,
    derandomize=False,
    database=None,
    print_blob=True,
    suppress_health_check=[*HealthCheck],
)
seeds = st.integers(0, 1 << 16)
weights = st.sampled_from([1.0, 1.0, 1.0, 0.0, 0.3, 1e-30, 1e30])


def through_a_file(model):
    """What is loaded is, saved again, the same file."""
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "model", Path(folder) / "again"
        model.save(path)
        loaded = stream_pegasos.load(path, model.vector_source)
        loaded.save(again)
        assert again.read_bytes() == path.read_bytes()
        return loaded


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda model: pickle.loads(pickle.dumps(model)), "file": through_a_file}


class Calls(RuleBasedStateMachine):
    """Two models get the same calls; one is a copy of itself now and then."""

    cases = CASES

    @initialize(data=st.data())
    def make(self, data):
        self.case = data.draw(st.sampled_from(self.cases), label="case")
        self.models = [self.case.make(), self.case.make()]

    def call(self, call):
        """Both take it, or refuse it in the same words and stay as they were."""
        outcomes = []
        for model in self.models:
            before = bits(self.case, model)
            try:
                outcomes.append(call(model))
            except (TypeError, ValueError) as error:
                assert bits(self.case, model) == before, error
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]

    @rule(n=st.integers(0, 12), seed=seeds, weight=weights)
    def learn_many(self, n, seed, weight):
        X, y = self.case.columns(n, seed)
        w = [random.Random(seed).choice([1.0, 1.0, weight]) for _ in X]
        self.call(lambda model: model.learn_many(X, y, w))

    @rule(seed=seeds, weight=weights)
    def learn_one(self, seed, weight):
        for x, y in self.case.stream(3, seed):
            self.call(lambda model, x=x, y=y: model.learn_one(x, y, weight))

    @rule(n=st.integers(0, 6), seed=seeds)
    def predict_learn_many(self, n, seed):
        X, y = self.case.columns(n, seed)
        self.call(lambda model: model.predict_learn_many(X, y).labels.tolist())

    @rule(seed=seeds)
    def predict(self, seed):
        X, _ = self.case.columns(4, seed)
        one, other = (model.predict_proba_many(X) for model in self.models)
        assert np.array_equal(one, other) and ((one >= 0.0) & (one <= 1.0)).all()
        self.call(lambda model: [str(model.predict_one(x)) for x in X])

    @rule()
    def flush(self):
        self.call(lambda model: model.flush())

    @rule(number=st.integers(0, 2))
    def forget_class(self, number):
        classes = self.models[0].classes
        if classes:
            self.call(lambda model: model.forget_class(classes[number % len(classes)]))

    @rule(
        number=st.integers(0, 3),
        threshold=st.sampled_from([None, None, 0.2, 0.5]),
        rate=st.sampled_from([None, None, 0.3, 1.0]),
        decide_for=st.sampled_from([None, None, "accuracy", "micro_f1", "macro_f1"]),
        coverage=st.sampled_from([None, None, 0.8, 0.95, 0]),
    )
    def set_decision(self, number, threshold, rate, decide_for, coverage):
        pos_label = None if self.case.classes == SETS else self.case.labels[number % len(self.case.labels)]
        self.call(lambda model: model.set_decision(threshold, rate, pos_label, decide_for, coverage))

    @rule(seed=seeds, n=st.integers(0, 5), others=st.integers(1, 2))
    def merge(self, seed, n, others):
        """With parts that went on from here; what cannot be merged says so."""
        X, y = self.case.columns(n * others, seed)

        def merged(model):
            parts = [copy.deepcopy(model) for _ in range(others)]
            for i, part in enumerate(parts):
                part.learn_many(X[i::others], y[i::others])
            return stream_pegasos.merge(model, parts)

        with suppress(TypeError, ValueError):
            self.models = [*map(merged, self.models)]

    @rule(how=st.sampled_from([*COPIES]))
    def copy(self, how):
        if self.case.can_be_saved or how == "deepcopy":
            self.models[1] = COPIES[how](self.models[1])

    @invariant()
    def bounds_hold(self):
        if hasattr(self, "models"):
            one, other = self.models
            assert bits(self.case, one) == bits(self.case, other)
            assert one.max_features is None or one.n_features <= one.max_features


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("scale", [1, pytest.param(15, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("engine", ["pure"] if pure else ["compiled", "pure"])
@pytest.mark.parametrize("group", GROUPS)
def test_any_calls_in_any_order(group, engine, scale):
    machine = type("Calls", (Calls,), {"cases": GROUPS[group]})
    with on_pure() if engine == "pure" and not pure else nullcontext():
        run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=SETTINGS.max_examples * scale))
