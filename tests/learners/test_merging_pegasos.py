"""One Pegasos of several parts: the mean of the changes, by steps."""

import copy

import numpy as np
import pytest
from parts import CLASSES, examples, flat, learned

from stream_pegasos import PegasosClassifier, merge


@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": True, "t0": 7.0}, {"batch_size": 8}, {"multi_class": "crammer_singer"}]
)
@pytest.mark.parametrize("classes", ["two", "several"])
def test_pegasos_takes_the_mean_of_the_changes_by_steps(classes, options):
    labels = CLASSES[classes]
    base = learned(PegasosClassifier(l2=0.01, **options), 80, labels, 0)
    base.flush()
    parts = [learned(base, 11 * seed, labels, seed) for seed in (1, 2, 3, 4)]
    merged = merge(base, parts)
    for each in parts:
        each.flush()
    steps = np.array([each.n_iterations for each in parts]) - base.n_iterations
    assert merged.n_iterations == base.n_iterations + steps.sum()
    before, after = flat(base), [flat(each) for each in parts]
    names = {*before}.union(*after)
    expected = {
        name: before.get(name, 0.0)
        + sum(n * (each.get(name, 0.0) - before.get(name, 0.0)) for n, each in zip(steps, after, strict=True))
        / steps.sum()
        for name in names
    }
    weights = flat(merged)
    assert {name: weights.get(name, 0.0) for name in names} == pytest.approx(expected, rel=1e-9, abs=1e-12)
    X, y = examples(400, labels, 9)
    right = [np.mean(model.predict_many(X) == np.array(y)) for model in (merged, *parts)]
    assert right[0] > np.mean(right[1:])
    learned(merged, 30, labels, 4)


def test_averages_of_pegasos_add_up_and_w_stays_in_the_ball():
    base = learned(PegasosClassifier(l2=10.0, average=True), 50, CLASSES["two"], 0)
    parts = [learned(base, 20 * seed, CLASSES["two"], seed) for seed in (1, 2)]
    merged = merge(base, parts)
    before, *after = (flat(each) for each in (base, *parts))
    for name, weight in flat(merged).items():  # the mean of all w that there were
        sums = [70 * after[0].get(name, 0.0), 90 * after[1].get(name, 0.0), -50 * before.get(name, 0.0)]
        assert weight == pytest.approx(sum(sums) / 110, rel=1e-9, abs=1e-12)
    assert (merged.to_state()[0]["values"] ** 2).sum() <= 0.1 * (1 + 1e-9)


@pytest.mark.parametrize("options", [{}, {"average": True}, {"fit_intercept": True}, {"batch_size": 4}])
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_parts_of_pegasos_that_learned_nothing_leave_classes_that_came_late_as_they_are(options, multi_class):
    base = learned(PegasosClassifier(l2=0.01, multi_class=multi_class, **options), 200, ["a", "b"], 0)
    base = learned(base, 30, ["a", "b", "c"], 1)
    base.flush()
    merged = merge(base, [copy.deepcopy(base), copy.deepcopy(base)])
    for x in examples(20, ["a", "b", "c"], 2)[0]:
        assert merged.decision_function_one(x) == pytest.approx(base.decision_function_one(x), rel=1e-9, abs=1e-12)
        assert merged.predict_proba_one(x) == pytest.approx(base.predict_proba_one(x), rel=1e-9)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_w_stays_in_the_ball_where_each_part_meets_a_class_of_its_own(multi_class):
    base = PegasosClassifier(l2=1.0, multi_class=multi_class)
    parts = [copy.deepcopy(base) for _ in range(3)]
    for part, label in zip(parts, "abc", strict=True):
        part.learn_many([{"of all": 9.0}, {f"of {label}": 9.0}, {"of all": 9.0}], ["d", label, "d"])
    merged = merge(base, parts)
    arrays = merged.to_state()[0]
    squares = (arrays["values"] ** 2).sum(axis=0) * np.asarray(arrays["scale"]) ** 2
    largest = squares.sum() if multi_class == "crammer_singer" else squares.max()
    assert 0.3 < largest <= 1.0 + 1e-9
    assert merged.predict_many([{"of a": 1.0}, {"of b": 1.0}, {"of c": 1.0}]).tolist() == ["a", "b", "c"]
