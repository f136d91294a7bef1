"""The compiled engine against its specification, `pure`, on any stream: one step at a time from a common state.

`pure` is in double precision. The compiled engine keeps the features of adaptive rules in single precision, which
rounds a number that is written by up to 2⁻²⁴ = 6e-8 of its size; a weight is the difference of two. So after one step
from states that are the same their numbers may differ by `ROUNDED` of the largest number of their kind. Whatever is in
double precision in both differs only by the order of summation. Where rounding alone decides if there is a step, no two
programs need agree: such an example is left out of both.
"""

import math

import numpy as np
import pytest
from engines import NAMES, assert_near, compiled_engine, needs_compiled, pure_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from rules import LEARNERS

from stream_pegasos.engine.pure.adaptive_state import KNOWN, SHARE_OF_REST
from stream_pegasos.engine.pure.weights import INTERCEPT

ROUNDED, SUMMED, CLOSE = 4e-7, 1e-9, 1e-7
KEYED = ("log_ratios", "counts", "values", "gradient_squares", "positives", "negatives", "sums")

pytestmark = needs_compiled
values = st.one_of(
    st.integers(-3, 3).map(float), st.sampled_from([1e45, -1e45, 1e-300, 1e-140]), st.floats(-1e3, 1e3, width=32)
)
rows = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)
weights = st.sampled_from([1.0, 1.0, 0.0, 0.5, 100.0, 1e-25, 1e60])


def streams(y):
    """Rows with targets and weights, each of which is learned one or more times; and what may come between."""
    taught = st.tuples(rows, y, weights, st.sampled_from([1, 1, 1, 20]))
    return st.lists(st.one_of(taught, taught, taught, st.sampled_from(["forget", "mirror", "flush"])), max_size=15)


def by_feature(state):
    """A state of which the order of features says nothing: numbers of each feature by key, and by column. A feature of
    which Pegasos has weights of 0 alone is as good as none.
    """
    order = np.argsort(state["keys"])
    if "scale" in state:
        order = order[np.hstack([state[name][order] for name in ("values", "sums") if name in state]).any(axis=1)]
    made = {name: value for name, value in state.items() if name not in ("n_taught", "taught_columns", *KEYED)}
    for name in {*KEYED, "keys"} & state.keys():
        if "n_taught" not in state or name not in KNOWN:
            made[name] = state[name][order]
    if "n_taught" in state:
        places = np.repeat(np.argsort(order), state["n_taught"])
        for name in KNOWN:
            made[name] = np.zeros((len(order), len(state["class_counts"])))
            made[name][places, state["taught_columns"]] = state[name]
    if "buffer_keys" in state:
        waits = np.lexsort([state[name] for name in ("buffer_values", "buffer_keys", "buffer_columns")])
        waits = waits[state["buffer_values"][waits] != 0.0]
        made |= {name: state[name][waits] for name in ("buffer_values", "buffer_keys", "buffer_columns")}
    return made


def assert_alike(pure, compiled, error, before):
    """Errors are relative to the largest numbers of the state now or before, as these may have cancelled out."""
    one, other = by_feature(pure.get_state()), by_feature(compiled.get_state())
    assert one.keys() == other.keys()
    for name, expected in one.items():
        size = max(np.max(np.abs(numbers), initial=0.0) for numbers in (expected, before.get(name, 0.0)))
        if name == "log_ratios" and "n_examples" in one and pure.smoothing:
            # Of differences of counts, which are rounded as the counts are, and then beside the smoothing.
            size += one["n_examples"] / (pure.smoothing * one["evidence"])
        if np.asarray(expected).dtype == np.int64:
            assert np.array_equal(other[name], expected), name
        else:
            assert_near(other[name], expected, error, error * size + 1e-37, name)
    assert (compiled.n_iterations, compiled.n_columns) == (pure.n_iterations, pure.n_columns)


def agree(make, stream, is_clear, error, looked_at):
    """Compare all that can be seen of both engines' learners at each step of a stream, learned from a common state."""
    made = [(make(engine), engine.Vocabulary()) for engine in (pure_engine, compiled_engine)]
    (pure, names), (compiled, other_names) = made
    for step in stream:
        before = pure.get_state()
        if isinstance(step, str):
            for learner in (pure, compiled):
                if step == "forget" and hasattr(learner, "forget"):
                    learner.forget(0.01)
                elif step == "mirror" and not learner.has_class_columns:
                    learner.set_state(learner.declaration.mirrored(learner.get_state()))
                elif step == "flush":
                    learner.flush()
            assert_alike(pure, compiled, error, before)
            pure.set_state(compiled.get_state())
            continue
        x, y, weight, n = step
        for _ in range(n):
            if not all(is_clear(learner, vocabulary, x, y) for learner, vocabulary in made):
                break
            outputs = [
                learner.predict_learn_many(vocabulary, [x], np.array([y]), np.array([weight]))
                for learner, vocabulary in made
            ]
            for expected, found in zip(*outputs, strict=True):
                assert_near(found, expected, 1e-9, 1e-9 * largest_weight(pure))
            assert_alike(pure, compiled, error, before)
            pure.set_state(compiled.get_state())
            before = pure.get_state()
    assert names.names == other_names.names
    close = {"rel": 1e-9, "abs": 1e-9 * largest_weight(pure)}
    x = {**looked_at, "never met": 1.0}
    assert_near(compiled.margins(other_names, x), pure.margins(names, x), **close)
    assert compiled.intercept == pytest.approx(pure.intercept, **close)
    keys = np.unique(np.concatenate([learner.items()[0] for learner, _ in made]))
    assert_near(compiled.get_weights(keys), pure.get_weights(keys), **close)
    for column in range(pure.n_columns):
        expected, found = pure.contributions(names, x, column), compiled.contributions(other_names, x, column)
        assert {key: value for key, value in found.items() if value} == pytest.approx(
            {key: value for key, value in expected.items() if value}, **close
        )


def largest_weight(learner):
    return 1.0 + np.abs(learner.items()[1]).max(initial=0.0)


# --- the rules --------------------------------------------------------------------------------------------------------

numbers = st.sampled_from([0.0, 1.0])
OPTIONS = st.tuples(
    st.booleans(),
    st.sampled_from([0.5, 1.0, 5.0, math.inf]),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from([0.0, 1.0, 30.0]),
    st.sampled_from([0.0, 0.1, 1.0]),
)


def is_far(sizes, thresholds):
    """Whether numbers are the thresholds to the last bit, or not near."""
    return all(np.min(np.abs(np.asarray(sizes) - threshold), initial=1.0) > CLOSE for threshold in thresholds)


def is_nothing_or_large(margins):
    """Whether no rounding decides which way the slope of probabilities begins to go."""
    return all(margin == 0.0 or abs(margin) > CLOSE for margin in margins)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(OPTIONS, streams(numbers), rows)
def test_two_classes_of_the_adaptive_rule(options, stream, looked_at):
    def is_clear(learner, vocabulary, x, y):
        margin = learner.margins(vocabulary, x)[1]
        return is_far(margin if y else -margin, [options[1], 1.0]) and is_nothing_or_large([margin])

    agree(lambda engine: engine.AdaptiveLearner(0.5, *options), stream, is_clear, ROUNDED, looked_at)


def weighed_margins(learner, vocabulary, x):
    """The margins of the problems without what is learned to add to them."""
    known = learner.get_state()
    total = sum(learner.contributions(vocabulary, x).values()) if "order" in known else 0.0
    return (
        total + known["intercepts"]
        if "order" in known
        else learner.margins(vocabulary, x) - known["offsets"] / known["slope"]
    )


@pytest.mark.parametrize("reduction", ["ovr", "multilabel", "ordinal"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(OPTIONS, streams(st.integers(0, 4)), rows)
def test_any_number_of_classes_of_the_adaptive_rule(reduction, options, stream, looked_at):
    """Numbers of classes as they come; of several labels the sets of these."""
    numbers, sets = {}, (np.array([0, 0, 1, 3, 5, 6]), np.array([0, 1, 2, 0, 3, 4]))

    def number_of(step):
        return step if isinstance(step, str) else (step[0], float(numbers.setdefault(step[1], len(numbers))), *step[2:])

    def make(engine):
        learner = engine.AdaptiveLearner(0.5, *options, reduction=reduction)
        learner.order, learner.sets = np.array([3, 1, 4, 0, 2]), sets
        return learner

    def is_clear(learner, vocabulary, x, y):
        if reduction != "multilabel" and y > learner.n_columns:
            return False  # as the class before was left out
        margins = weighed_margins(learner, vocabulary, x)
        limits = [options[1], SHARE_OF_REST * options[1], 1.0]
        return is_far(np.abs(margins), limits) and is_nothing_or_large(margins)

    agree(make, map(number_of, stream), is_clear, ROUNDED, looked_at)


@pytest.mark.parametrize("reduction", ["two", "ovr", "crammer_singer"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.tuples(
        st.sampled_from([1e-4, 0.05, 1.0]),
        st.sampled_from([1, 3]),
        st.sampled_from([0.0, 0.5, 2.0]),
        st.booleans(),
        st.sampled_from([0.0, 0.5]),
        st.sampled_from([0, 1, 7]),
        st.booleans(),
        st.booleans(),
    ),
    streams(st.integers(0, 4)),
    rows,
)
def test_pegasos(reduction, options, stream, looked_at):
    numbers = {}

    def target_of(step):
        if isinstance(step, str):
            return step
        x, y, weight, n = step
        y = numbers.setdefault(y, len(numbers))
        x = {name: value for name, value in x.items() if 1e-150 < abs(value) < 1e40}  # products are in range
        return x, float(y % 3), min(weight, 100.0), n

    def make(engine):
        return engine.PegasosLearner(*options, reduction=reduction)

    def is_clear(learner, vocabulary, x, y):
        if y > max(learner.n_columns, 0 if learner.has_class_columns else 2):
            return False  # as the class before was left out
        row, state = vocabulary.row(x, False), learner.get_state()
        row = {**dict(zip(row.keys, row.values, strict=True)), INTERCEPT: options[4]}
        values = np.array([row.get(key, 0.0) for key in state["keys"].tolist()])
        margins = values @ (state["scale"] * state["values"])
        differences = margins[:, np.newaxis] - margins if reduction == "crammer_singer" else margins
        error = SUMMED * (1.0 + np.abs(values).sum() * largest_weight(learner))
        apart = np.abs(margins[:, np.newaxis] - margins)
        if reduction == "crammer_singer" and ((apart > 0.0) & (apart < error)).any():
            return False
        return bool((np.abs(np.abs(differences) - 1.0) > error).all())

    agree(make, map(target_of, stream), is_clear, SUMMED, looked_at)


@pytest.mark.parametrize("which", [which for which in LEARNERS if "large l2" not in which])
def test_each_rule_of_the_registry(which):
    """On a random stream to which classes come by and by. (With a large l2 it is rounding that makes a weight 0.)"""
    generator, several = np.random.default_rng(5), LEARNERS[which](pure_engine).has_class_columns
    error = ROUNDED if which.startswith("adaptive") or "columns" in which else SUMMED

    def stream():
        for i in range(60):
            x = {name: float(generator.normal(0.0, 3.0)) for name in NAMES if generator.random() < 0.5}
            x |= {1_000 + i: 0.0}
            number = int(min(i // 8, generator.integers(3)))
            y = float(number if several or i > 30 else number % 2)
            yield x, y, float(generator.choice([1.0, 1.0, 0.0, 7.0])), 1
            if i % 10 == 9:
                yield str(generator.choice(["forget", "mirror", "flush"]))

    agree(LEARNERS[which], stream(), lambda *_: True, error, {"a": 1.0})


@pytest.mark.parametrize("reduction", ["two", "ovr", "multilabel", "ordinal"])
@pytest.mark.parametrize("half_life", [0.0, 30.0])
def test_a_whole_stream(reduction, half_life):
    """Learned by each engine alone, with features of few classes and of many, and classes that come by and by. The
    roundings of some hundred steps are within 1e-4 of the margins, which are about 1.
    """
    generator = np.random.default_rng(2)
    arguments, learners = (0.5, False, 5.0, 0.5, half_life, 0.1), []
    for engine in (pure_engine, compiled_engine):
        learners.append(engine.AdaptiveLearner(*arguments, reduction=reduction))
        learners[-1].order = np.arange(60)
    vocabularies = [pure_engine.Vocabulary(), compiled_engine.Vocabulary()]
    for i in range(300):
        last = i // 20 if i < 200 or reduction != "multilabel" else 59
        label = int(generator.integers(last + 1))
        row = {int(name): 1.0 + label % 3 for name in (80.0 * generator.random(12) ** 4).astype(int)}
        y = {"two": float(label % 2), "multilabel": 0.0}.get(reduction, float(label))
        margins = []
        for learner, vocabulary in zip(learners, vocabularies, strict=True):
            if reduction == "multilabel":
                learner.sets = np.array([0, 2]), np.array([0, label] if label else [0, 1], np.int64)
            margins.append(learner.margins(vocabulary, row))
            learner.learn(vocabulary, row, y, 1.0)
            if i in (150, 250):
                learner.forget(0.3)
        assert margins[1] == pytest.approx(margins[0], rel=1e-4, abs=1e-4)
    assert_alike(*learners, 1e-4, learners[0].get_state())
    assert len(learners[0]) > 70
