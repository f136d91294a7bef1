import numpy as np
import pytest
from forging import forge
from river import optim

from stream_pegasos import PegasosClassifier, load
from stream_pegasos.learners.first_weights import FirstWeights


def weights_of(examples, **options):
    model = PegasosClassifier(l2=1e-6, t0=1e6, **options)
    for x in examples:
        model.learn_one(x, True, w=0.0)
    return model.weights


def test_the_order_of_arrival_leaves_no_trace():
    """Weights of 0 for the examples leave nothing but the first weights, as far as the steps have shrunk them."""
    names = ["a", "b", 7, ("c", 1), "ü", -3]
    forwards = weights_of([dict.fromkeys(names, 1.0)] * 2, initializer=optim.initializers.Normal(seed=5))
    backwards = weights_of([{name: 2.0} for name in names[::-1]], initializer=optim.initializers.Normal(seed=5))
    shrunk = {name: w / (1e6 / (1e6 + 2)) for name, w in forwards.items()}
    again = {name: w / (1e6 / (1e6 + 6)) for name, w in backwards.items()}
    assert shrunk == pytest.approx(again, rel=1e-9)
    drawn = FirstWeights(optim.initializers.Normal(seed=5))
    assert shrunk == pytest.approx({name: drawn(name) for name in names}, rel=1e-9)


def test_draws_are_those_of_the_distribution():
    drawn = FirstWeights(optim.initializers.Normal(mu=3.0, sigma=2.0, seed=1))
    sample = np.array([drawn(name) for name in range(4_000)])
    assert sample.mean() == pytest.approx(3.0, abs=0.15)
    assert sample.std() == pytest.approx(2.0, abs=0.1)
    assert drawn("a") == drawn("a") != drawn("b")
    assert FirstWeights(optim.initializers.Normal(seed=2))("a") != FirstWeights(optim.initializers.Normal(seed=3))("a")
    assert FirstWeights(optim.initializers.Constant(0.25))("a") == 0.25
    assert FirstWeights(optim.initializers.Zeros())("a") == 0.0


def test_first_weights_begin_inside_the_ball():
    for project in (True, False):
        model = PegasosClassifier(
            l2=0.04, t0=10.0, project=project, batch_size=100, initializer=optim.initializers.Normal(sigma=50.0, seed=1)
        )
        for i in range(20):
            model.learn_one({f"{i}": 1.0, "shared": 1.0}, bool(i % 2))
            assert np.linalg.norm(list(model.weights.values())) <= 5.0 * (1 + 1e-9)
        assert len(model.weights) == 21


def test_a_step_without_t0_forgets_them():
    model = PegasosClassifier(l2=0.1, initializer=optim.initializers.Constant(1.0))
    model.learn_one({"a": 1.0}, True, w=0.0)
    assert model.decision_function_one({"a": 1.0}) == 0.0
    model.learn_one({"b": 1.0}, True, w=0.0)
    assert model.decision_function_one({"b": 1.0}) == 0.0


def test_without_a_seed_models_differ_but_a_copy_goes_on_alike(tmp_path):
    first, second = (PegasosClassifier(l2=1e-6, t0=10.0, initializer=optim.initializers.Normal()) for _ in range(2))
    for model in (first, second):
        model.learn_one({"a": 1.0}, True, w=0.0)
    assert first.weights != second.weights
    first.save(tmp_path / "model")
    loaded = PegasosClassifier.load(tmp_path / "model")
    for model in (first, loaded):
        model.learn_one({"new": 1.0}, True, w=0.0)
    assert first.weights == loaded.weights


@pytest.mark.parametrize(
    "initializer, error",
    [
        ("zeros", TypeError),
        (0.0, TypeError),
        (optim.initializers.Normal, TypeError),
        (optim.initializers.Constant(float("nan")), ValueError),
        (optim.initializers.Constant(1e60), ValueError),
        (optim.initializers.Normal(sigma=-1.0), ValueError),
    ],
)
def test_other_initializers_are_refused(initializer, error):
    with pytest.raises(error):
        PegasosClassifier(initializer=initializer)


def test_a_file_gives_no_seed_of_thousands_of_digits(tmp_path):
    PegasosClassifier(initializer=optim.initializers.Normal(seed=3)).save(tmp_path / "model")

    def change(arrays, state, header):
        assert "first_weights_seed" in state
        state["first_weights_seed"] = {"int": "f" * 5_000}

    forge(tmp_path / "model", change)
    with pytest.raises(ValueError):
        load(tmp_path / "model")


def test_predictions_come_before_first_weights():
    options = {"l2": 0.1, "t0": 10.0, "initializer": optim.initializers.Normal(seed=1)}
    one, many = PegasosClassifier(**options), PegasosClassifier(**options)
    X, y = [{"a": 1.0}, {"a": 1.0, "b": 2.0}, {"c": 1.0}, {"b": 1.0}], [True, False, True, True]
    margins = []
    for x, label in zip(X, y, strict=True):
        margins.append(one.decision_function_one(x))
        one.learn_one(x, label)
    assert margins[0] == margins[2] == 0.0
    assert many.predict_learn_many(X, y).scores.tolist() == margins
    assert many.predict_proba_one(X[1]) == one.predict_proba_one(X[1])
    assert many.weights == one.weights


def test_labels_that_change_places_in_a_call_take_first_weights_along():
    """A 1 is the positive label until a 2 comes."""
    X, y = [{"a": 1.0}, {"b": 1.0}, {"c": 1.0, "a": 1.0}, {"d": 1.0}], [1, 2, 1, 2]
    one, many = (PegasosClassifier(initializer=optim.initializers.Normal(seed=3)) for _ in range(2))
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    many.learn_many(X, y)
    assert many.weights == one.weights and many.classes == one.classes == (1, 2)
