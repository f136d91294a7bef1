import math

import numpy as np
import pytest

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    OrdinalPegasosClassifier,
    PegasosClassifier,
    checks,
)


@pytest.mark.parametrize("value", [0.0, 1, 5.0, np.float32(2.5), np.int8(5), True])
def test_numbers_in_the_range(value):
    checks.check_number("x", value, 0.0, 5.0)


@pytest.mark.parametrize("value", [-1e-300, 5.000001, math.nan, math.inf, -math.inf, np.float64("nan")])
def test_numbers_out_of_the_range_are_named(value):
    with pytest.raises(ValueError, match=r"^x is .*from 0 to 5$") as error:
        checks.check_number("x", value, 0.0, 5.0)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize("value", ["1", b"1", None, [1.0], 1j, np.str_("1")])
def test_what_is_no_number_is_named(value):
    with pytest.raises(TypeError, match=r"^x is .*no number$") as error:
        checks.check_number("x", value, 0.0, 5.0)
    assert repr(value) in str(error.value)


def test_integers():
    for value in (1, 7, np.int64(7), np.uint8(3)):
        checks.check_integer("k", value, 1, 7)
    for value in (0, 8, -(10**30)):
        with pytest.raises(ValueError, match=r"^k is"):
            checks.check_integer("k", value, 1, 7)
    for value in (True, 1.0, "1", None, np.bool_(True), math.nan):
        with pytest.raises(TypeError, match=r"^k is"):
            checks.check_integer("k", value, 1, 7)


def test_choices_and_lengths():
    checks.check_bool("b", np.bool_(False))
    checks.check_one_of("norm", None, ("l1", None))
    checks.check_lengths("labels", 3, 3)
    with pytest.raises(TypeError, match=r"^b is 1"):
        checks.check_bool("b", 1)
    with pytest.raises(ValueError, match=r"^norm is 'l3'; it must be one of 'l1', None$"):
        checks.check_one_of("norm", "l3", ("l1", None))
    with pytest.raises(ValueError, match=r"^there are 2 labels for 3 examples$"):
        checks.check_lengths("labels", 2, 3)


@pytest.mark.parametrize(
    "options", [{}, {"batch_size": 4}, {"fit_intercept": True, "t0": 0.5}, {"l2": 1e-30}, {"l2": 1e30}]
)
def test_every_state_that_is_reached_is_possible(options):
    """Those that are not are tested with the files that may hold them."""
    model = PegasosClassifier(**options)
    generator = np.random.default_rng(0)
    for i in range(60):
        state = model._learner.get_state()
        checks.check_state(state, model._vocabulary.names, model.batch_size)
        size = 10.0 ** generator.integers(-200, 45)
        x = {name: size * generator.normal() for name in ("a", 5, -5, 2**70) if generator.random() < 0.7}
        model.learn_one(x, bool(generator.random() < 0.5), w=float(generator.choice([0.0, 1.0, 1e30])))
        if i % 7 == 3:
            model.flush()


@pytest.mark.parametrize(
    "options",
    [{}, {"batch_size": 4}, {"fit_intercept": True, "t0": 0.5}, {"l2": 1e-30, "project": False}, {"l2": 1e30}],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["crammer_singer", "ovr", "ordinal"])
def test_every_state_of_several_columns_that_is_reached_is_possible(kind, options):
    model = OrdinalPegasosClassifier(**options) if kind == "ordinal" else PegasosClassifier(multi_class=kind, **options)
    generator = np.random.default_rng(0)
    for i in range(60):
        state = model._learner.get_state()
        checks.check_multi_state(state, model._vocabulary.names, model.batch_size, model._learner.n_columns)
        size = 10.0 ** generator.integers(-200, 45)
        x = {name: size * generator.normal() for name in ("a", 5, -5, 2**70) if generator.random() < 0.7}
        model.learn_one(x, int(generator.integers(5)), w=float(generator.choice([0.0, 1.0, 1e30])))
        if i % 7 == 3:
            model.flush()


@pytest.mark.parametrize("kernel", ["linear", "rbf", "cosine", "polynomial"])
@pytest.mark.parametrize("options", [{}, {"budget": 3}, {"l2": 1e-30}, {"class_weight": {0: 1e30}}], ids=repr)
def test_every_state_with_a_kernel_that_is_reached_is_possible(kernel, options):
    model = KernelPegasosClassifier(kernel=kernel, **options)
    generator = np.random.default_rng(0)
    for _ in range(60):
        checks.check_kernel_state(model._learner.get_state(), model._vocabulary.names, model.budget)
        size = 10.0 ** generator.integers(-200, 30)
        x = {name: size * generator.normal() for name in ("a", 5, -5, 2**70) if generator.random() < 0.7}
        model.learn_one(x, int(generator.integers(2)), w=float(generator.choice([0.0, 1.0, 1e30, 1e-300])))
        assert np.isfinite(model.decision_function_one(x))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "hinge", "margin": None, "fit_intercept": False},
        {"naive_bayes": False, "half_life": None},
        {"half_life": 1.0, "smoothing": 1e-30, "learning_rate": 1e30},
        {"class_weight": {0: 1e30, 1: 1e30}, "smoothing": 1e30, "intercept_scaling": 1e30, "half_life": 1.0},
    ],
    ids=repr,
)
def test_every_state_of_an_adaptive_learner_that_is_reached_is_possible(options):
    model = AdaptiveClassifier(**options)
    generator = np.random.default_rng(0)
    for i in range(500):
        checks.check_adaptive_state(model._learner.get_state(), model._vocabulary.names)
        size = 10.0 ** generator.integers(-300, 45)
        x = {name: size * generator.normal() for name in ("a", 5, -5, 2**70) if generator.random() < 0.7}
        model.learn_one(x, int(generator.integers(2)), w=float(generator.choice([0.0, 1.0, 1e30, 1e-300])))
        if i % 50 == 20:
            model._learner.forget(float(generator.choice([1.0, 0.5, 1e-6])))
        if i % 70 == 30:
            model._learner.negate()
    assert len(model._learner) == 4


def adaptive_state():
    """A state, and the names in it, that are possible."""
    model = AdaptiveClassifier(half_life=30.0)
    for i in range(20):
        model.learn_one({"a": 1.0, i % 3: -2.0}, i % 2)
    return model._learner.get_state(), model._vocabulary.names


ARRAYS = ("keys", "values", "log_ratios", "gradient_squares", "positives", "negatives")


@pytest.mark.parametrize(
    "name, place, bad",
    [
        *((name, 0, bad) for name in ARRAYS[1:] for bad in (math.nan, math.inf, -math.inf, 1e308)),
        *((name, 1, -1e-300) for name in ("gradient_squares", "positives", "negatives")),
        ("values", 0, -1e61),
        ("log_ratios", 0, -301.0),
        ("positives", 0, 13.0),  # more than there are
        ("negatives", 0, 13.0),
        *(("keys", 0, bad) for bad in (2**53, -(2**53), 2**60 + 1, -(2**60), -(2**63))),
    ],
)
def test_no_adaptive_learner_has_such_a_feature(name, place, bad):
    state, names = adaptive_state()
    checks.check_adaptive_state(state, names)
    state[name][place] = bad
    with pytest.raises(ValueError):
        checks.check_adaptive_state(state, names)


@pytest.mark.parametrize("name", ARRAYS)
def test_no_adaptive_learner_has_such_arrays(name):
    state, names = adaptive_state()
    for forged in (
        state[name][:-1],
        np.append(state[name], state[name][:1]),
        state[name].reshape(1, -1),
        state[name].astype(np.float32),
        state[name].astype(object),
    ):
        with pytest.raises(ValueError):
            checks.check_adaptive_state({**state, name: forged}, names)


def test_no_adaptive_learner_has_a_feature_twice_or_one_without_a_name():
    state, names = adaptive_state()
    state["keys"][0] = state["keys"][1]
    with pytest.raises(ValueError, match="two weights"):
        checks.check_adaptive_state(state, names)
    state, names = adaptive_state()
    for forged in ([], [5], ["a", "a"], [1.5], [("a", None)]):
        with pytest.raises((TypeError, ValueError)):
            checks.check_adaptive_state(state, forged)


@pytest.mark.parametrize(
    "name, bad",
    [
        *((name, bad) for name in ("intercept", "intercept_log_ratio") for bad in (1e61, -1e61)),
        *((name, -1e-300) for name in ("intercept_squares", "n_positives", "n_negatives", "calibration_squares")),
        *((name, bad) for name in ("n_positives", "n_negatives") for bad in (0.0, 1e80)),
        *(("evidence", bad) for bad in (0.0, 1.0 - 2.0**-53, 2.0**400 * 1.000001)),
        *(("n_iterations", bad) for bad in (-1, 1 << 63)),
        *(("slope", bad) for bad in (0.0, -1.0, 1e201)),
    ],
)
def test_no_adaptive_learner_has_such_a_number(name, bad):
    state, names = adaptive_state()
    with pytest.raises(ValueError):
        checks.check_adaptive_state({**state, name: bad}, names)


def test_the_numbers_of_an_adaptive_learner_are_numbers():
    state, names = adaptive_state()
    for name in state.keys() - set(ARRAYS):
        for bad in ("1", None, [1.0], {}):
            with pytest.raises(TypeError):
                checks.check_adaptive_state({**state, name: bad}, names)
        for bad in (math.nan, math.inf, -math.inf):
            with pytest.raises((TypeError, ValueError)):  # a count is an int
                checks.check_adaptive_state({**state, name: bad}, names)
