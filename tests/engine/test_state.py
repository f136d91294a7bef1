"""States as each rule declares them: what a learner reaches is possible, and whatever else is refused."""

import itertools
import math

import numpy as np
import pytest
from engines import both_engines, compiled_engine, needs_compiled, pure_engine, same_state
from rules import LEARNERS, for_each_learner, history, learned, targets_of

from stream_pegasos.common.state import BUFFERED, COLUMNS, FEATURES, TAUGHT, check_field
from stream_pegasos.engine.pure.adaptive_state import PROBLEMS
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.engine.pure.encoders import check_names
from stream_pegasos.engine.pure.weights import DIRECT_LIMIT, FIRST_NAME, INTERCEPT


def check(learner, state, names):
    """What is asked of a file."""
    learner.declaration.check(state, columns=learner.n_columns)
    check_names(names, state)


def sizes_of(learner, state):
    """The size of each dimension, which the fields of a state agree on."""
    sizes = {COLUMNS: learner.n_columns}
    for field in learner.declaration.fields:
        for name, size in zip(field.shape, np.shape(state[field.name]), strict=True):
            assert sizes.setdefault(name, size) == size, field.name
    return sizes


# --- what is reached --------------------------------------------------------------------------------------------------


@for_each_learner
@both_engines
def test_every_state_that_is_reached_is_possible(which, engine_in_test):
    for [(learner, vocabulary)] in history(which, engine_in_test, n=60, extreme=True):
        check(learner, learner.get_state(), vocabulary.names)


@for_each_learner
@both_engines
def test_a_state_is_what_its_rule_declares(which, engine_in_test):
    for n, [(learner, _)] in enumerate(history(which, engine_in_test)):
        state = learner.get_state()
        assert state.keys() == {field.name for field in learner.declaration.fields}
        for field in learner.declaration.fields:
            value = state[field.name]
            if field.shape:
                kinds = (np.int64,) if field.of_type is int else (np.float64, np.float32)
                assert type(value) is np.ndarray and value.dtype in kinds
                assert value.ndim == len(field.shape) and value.flags.c_contiguous
            else:
                assert type(value) is field.of_type
        sizes = sizes_of(learner, state)
        if FEATURES in sizes:
            assert sizes[FEATURES] == len(learner) + (INTERCEPT in state["keys"])
        assert n or not any(size for name, size in sizes.items() if name not in (COLUMNS, "ends", "sizes"))


@for_each_learner
@both_engines
def test_what_is_set_is_what_is_got(which, engine_in_test):
    """Bit for bit, whatever was learned before; and from then on both learn alike."""
    for n, [(learner, vocabulary)] in enumerate(history(which, engine_in_test, n=20)):
        state = learner.get_state()
        *_, [(other, _)] = history(which, engine_in_test, n=(7 * n) % 20, extreme=n % 2 == 0)
        other.set_state(state)
        assert same_state(other, state)
        for of in ("n_iterations", "n_columns", "n_held", "calibrated"):
            assert getattr(other, of) == getattr(learner, of)
        assert len(other) == len(learner)
        for x in ({}, {"a": 1.0, 5: -2.0}, {-5: 0.5, "b": 1.0}):
            assert np.array_equal(other.margins(vocabulary, x), learner.margins(vocabulary, x))
    y = targets_of(learner)[-1]
    for made in (learner, other):
        made.learn(vocabulary, {"a": 1.0, 5: -2.0}, y, 1.0)
        made.flush()
    assert same_state(other, learner)


@for_each_learner
@both_engines
def test_zeros_keep_their_sign(which, engine_in_test):
    """So a learner goes on from its state to the same bits, also once two classes have a column each."""
    learner, names = learned(which, engine_in_test)
    vocabulary = engine_in_test.Vocabulary(names)
    state = learner.get_state()
    for field in learner.declaration.fields:
        if field.signed and field.shape and not field.low:
            state[field.name] = np.where(np.arange(state[field.name].size) % 2, 0.0, -0.0).reshape(
                state[field.name].shape
            )
    for name in {"gradient_squares", "taught_counts"} & state.keys():
        state[name] = state[name] * (np.arange(len(state[name])) % 4 > 1)
    learner.set_state(state)
    other = LEARNERS[which](engine_in_test)
    for x, y in (({}, 0), ({"a": 1.0}, 1), ({5: -2.0}, 2), ({"a": 1e-30, -5: 1.0}, 0), ({"b": 1.0}, 1)):
        other.set_state(learner.get_state())
        assert same_state(other, learner)
        for made in (learner, other):
            made.learn(vocabulary, x, float(y), 1.0)
        assert same_state(other, learner)


@needs_compiled
@for_each_learner
def test_a_state_goes_from_one_engine_to_the_other(which):
    """Each number as it is, or rounded to single precision where the compiled engine keeps features so, whatever the
    order of features, and of what waits for the steps of several columns.
    """
    for made in history(which, pure_engine, compiled_engine):
        for (learner, _), e in zip(made, (compiled_engine, pure_engine), strict=True):
            other, state = LEARNERS[which](e), learner.get_state()
            other.set_state(state)
            if e is compiled_engine:
                state = rounded(state, learner)
            assert same_state(in_order(other.get_state(), learner), in_order(state, learner))
            assert (other.n_iterations, len(other), other.n_columns) == (
                learner.n_iterations,
                len(learner),
                learner.n_columns,
            )


def rounded(state, learner):
    """A state with all that an adaptive rule knows of features in single precision."""
    if not learner.declaration.evidence:
        return state
    names = [field.name for field in learner.declaration.fields if field.of_type is float]
    return state | {
        name: state[name].astype(np.float32).astype(np.float64)
        for name in set(names) & {*learner.declaration.names(FEATURES), *learner.declaration.names(TAUGHT)}
    }


def in_order(state, learner):
    """A state with its features in the order of their keys, and its buffer in that of the columns."""
    orders = {BUFFERED: np.argsort(state.get("buffer_columns", np.zeros(0)), kind="stable")}
    orders[FEATURES] = np.argsort(state["keys"])
    if "n_taught" in state:
        orders[TAUGHT] = np.argsort(np.repeat(state["keys"], state["n_taught"]), kind="stable")
    dimensions = {field.name: field.shape[0] for field in learner.declaration.fields if field.shape}
    return {
        name: value[orders[of]] if (of := dimensions.get(name)) in orders else value for name, value in state.items()
    }


# --- what is refused --------------------------------------------------------------------------------------------------


def changed(value, bad):
    """The value with `bad` in its last place; with nothing but it, where it is a number."""
    if not np.ndim(value):
        return bad
    forged = value.astype(np.result_type(value, type(bad)) if isinstance(bad, float) else value.dtype)
    forged[(-1,) * forged.ndim] = bad
    return forged


def out_of_limits(field, state):
    """Numbers outside the limits of a field, the nearest ones among them."""
    low, high = (limit(state) if callable(limit) else limit for limit in (field.low, field.high))
    if field.of_type is int:
        return [number for number in (int(low) - 1, int(high) + 1) if -(1 << 63) <= number < 1 << 63]
    beyond = [math.nextafter(high, math.inf), math.inf, math.nan, -math.inf]
    if not field.signed:
        beyond.append(math.nextafter(low, -math.inf))
    elif low > 0.0:
        beyond += [math.nextafter(low, 0.0), -math.nextafter(low, 0.0), 0.0]
    return beyond + ([-math.nextafter(high, math.inf)] if field.signed else [])


def of_other_kinds(field, value):
    """The same numbers in what no state has."""
    if not field.shape:
        return ["1", None, [value], {}, *([1.0, True] if field.of_type is int else [])]
    other = np.float64 if field.of_type is int else np.int64
    with np.errstate(invalid="ignore", over="ignore"):
        kinds = [value.astype(kind) for kind in (np.float16, np.int32, other, object)]
    return [*kinds, value.view(np.uint64), value.astype(value.dtype.newbyteorder())]


def of_other_shapes(field, value):
    if not field.shape:
        return [np.array([value]), [value, value]]
    flat = [value[np.newaxis], value[..., np.newaxis], np.concatenate([value, value[:1]]), value[:-1]]
    if value.ndim == 2:
        flat += [value[:, :-1], np.hstack([value, value[:, :1]]), value[:, 0], value.T]
    return [forged for forged in flat if forged.shape != value.shape]


# One of those whose states have the same fields.
OF_EACH = {tuple(field.name for field in LEARNERS[w](pure_engine).declaration.fields): w for w in reversed(LEARNERS)}
for_one_of_each = pytest.mark.parametrize("which", OF_EACH.values())


@for_one_of_each
def test_no_learner_has_such_a_field(which):
    learner, names = learned(which)
    state = learner.get_state()
    check(learner, state, names)
    for field in learner.declaration.fields:
        name, value = field.name, state[field.name]
        assert np.size(value), f"nothing is tried of {name}"
        for limit in (field.low, field.high):  # which are possible, as far as nothing else in the state is about them
            number = field.of_type(limit(state) if callable(limit) else limit) * (-1 if field.signed else 1)
            check_field(field, {**state, name: changed(value, number)}, {COLUMNS: learner.n_columns})
        for bad in out_of_limits(field, state):
            with pytest.raises(ValueError):
                check(learner, {**state, name: changed(value, bad)}, names)
        for forged in of_other_kinds(field, value) + of_other_shapes(field, value):
            with pytest.raises((AttributeError, TypeError, ValueError)):
                check(learner, {**state, name: forged}, names)
        with pytest.raises(KeyError):
            check(learner, {other: value for other, value in state.items() if other != name}, names)


def with_keys(which):
    return [name for name in ("keys", "buffer_keys") if name in LEARNERS[which](pure_engine).get_state()]


@for_one_of_each
def test_every_key_is_that_of_a_feature(which):
    learner, names = learned(which)
    state = learner.get_state()
    for name in with_keys(which):
        for bad in (DIRECT_LIMIT, -DIRECT_LIMIT, FIRST_NAME + len(names), FIRST_NAME - 1, INTERCEPT + 1):
            with pytest.raises(ValueError, match="must be those of features"):
                check(learner, {**state, name: changed(state[name], bad)}, names)
    for forged in (names[:-1], [*names, 5], [*names, names[0]], [*names[:-1], 1.5], [*names[:-1], ("a", None)]):
        with pytest.raises((TypeError, ValueError)):
            check(learner, state, forged)
    check(learner, state, [*names, "one more"])  # which may be idle


@for_one_of_each
def test_there_are_as_many_columns_as_there_should_be(which):
    learner, _ = learned(which)
    for columns in (learner.n_columns - 1, learner.n_columns + 1, 1, 0) if learner.has_class_columns else ():
        with pytest.raises(ValueError):
            learner.declaration.check(learner.get_state(), columns=columns)
    state, last = learner.get_state(), learner.n_columns - 1
    for name in {"taught_columns", "buffer_columns", "order"} & state.keys():
        with pytest.raises(ValueError, match=f"{name} must be from 0 to {last}$"):
            learner.declaration.check({**state, name: changed(state[name], last + 1)})


# --- what else is true of a state -------------------------------------------------------------------------------------


def buffer_of_nobody(state):
    state["n_buffered"][state["buffer_columns"][0]] = 0


def of_other_vectors(state):
    several = "class_counts" in state
    block = DenseBlock.of("ovr" if several else "two", 3, len(state["class_counts"]) if several else 2).get_state()
    state.update(block, vector_covariance=block["vector_covariance"][:-1])


FAULTS = {
    "the covariance is none of the vectors": (("adaptive", "ovr columns"), of_other_vectors),
    "the buffer holds features of no example": (("two", "ovr", "crammer_singer"), buffer_of_nobody),
    "a feature has two weights": (
        ("two", "ovr", "crammer_singer", "adaptive", "ovr columns", "ordinal columns"),
        lambda state: state.update(keys=changed(state["keys"], state["keys"][0])),
    ),
    "the classes have not taken the same steps": (
        ("crammer_singer", "crammer_singer, average"),
        lambda state: state["n_iterations"].__setitem__(1, state["n_iterations"][0] + 1),
    ),
    "the intercept stands among the features": (
        ("adaptive", "adaptive, hinge", "multilabel columns"),
        lambda state: state.update(keys=changed(state["keys"], INTERCEPT)),
    ),
    "columns are of no feature": (
        ("ovr columns", "multilabel columns", "ordinal columns"),
        lambda state: state.update(n_taught=np.maximum(state["n_taught"] - 1, 0)),
    ),
    "a feature has a column twice": (
        ("ovr columns", "multilabel columns", "ordinal columns"),
        lambda state: state.update(taught_columns=np.zeros_like(state["taught_columns"])),
    ),
    "the classes have no order": (
        ("ordinal columns",),
        lambda state: state.update(order=np.zeros_like(state["order"])),
    ),
    "there are not as many thresholds as classes": (
        ("ordinal columns",),
        lambda state: state.update({name: state[name][:-1] for name in PROBLEMS}),
    ),
}


def test_every_condition_is_tried():
    declared = {fault for make in LEARNERS.values() for fault, _ in make(pure_engine).declaration.conditions}
    assert declared == FAULTS.keys()


@pytest.mark.parametrize("which, fault", [(which, fault) for fault in FAULTS for which in FAULTS[fault][0]])
def test_no_learner_is_in_such_a_state(which, fault):
    learner, names = learned(which)
    state = {name: np.copy(value) if np.ndim(value) else value for name, value in learner.get_state().items()}
    check(learner, state, names)
    FAULTS[fault][1](state)
    with pytest.raises(ValueError, match=fault):
        check(learner, state, names)


# --- what follows from a declaration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [which for which in LEARNERS if "keys" in with_keys(which)])
def test_some_features_are_selected(which):
    learner, names = learned(which)
    state = learner.get_state()
    if ("keys", (FEATURES,)) not in [(field.name, field.shape) for field in learner.declaration.fields]:
        return
    kept = np.arange(len(state["keys"])) % 2 == 0
    selected = learner.declaration.selected(state, kept)
    check(learner, selected, names)
    other = LEARNERS[which](pure_engine)
    other.set_state(selected)
    assert np.array_equal(other.get_weights(state["keys"][kept]), learner.get_weights(state["keys"][kept]))
    assert not other.get_weights(state["keys"][~kept]).any()
    assert selected.keys() == state.keys()
    for field in learner.declaration.fields:
        if field.shape[:1] not in ((FEATURES,), (TAUGHT,)) and field.derived is None:
            assert selected[field.name] is state[field.name]


def test_names_are_as_they_were_written():
    check_names(["a", 1 << 53, -(1 << 53), ("b", 1), ""], {})
    for names in itertools.chain(([bad] for bad in (5, 1.5, None, b"a", ("a", None), ["a"])), [["a", "a"]]):
        with pytest.raises((TypeError, ValueError)):
            check_names(names, {})
