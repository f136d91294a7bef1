"""What every estimator of the registry promises to River."""

import random

import numpy as np
import pytest
from contract import for_each, for_each_kind, one_of_each
from estimators import CASES, NAMES, ORDERED, SETS, TWO, seen
from river import checks, compose, preprocessing

# Those drop fields of an example, or take them for numbers. The features of a text are its words.
ABOUT_FIELDS = {
    "check_emerging_features",
    "check_disappearing_features",
    "check_radically_disappearing_features",
    "check_learn_many_matches_learn_one",
}
# And these want examples to be dicts, or data frames of them.
ABOUT_DICTS = {
    "check_shuffle_features_no_impact",
    "check_no_state_aliasing_with_input",
    "check_predict_many_matches_predict_one",
    "check_predict_proba_many_matches_predict_proba_one",
}


def texts_for(case):
    """Streams for River's checks: its own have no text."""

    def rows_for(model, scale=1):
        for as_numpy in (False, True):
            rows = []
            for i, (x, y) in enumerate(case.stream(200 * scale)):
                label = y == "spam" if case.classes == TWO else case.labels.index(y)
                x = {**x, "a": float(i), "b": "b", "c": True} if case.of == "fields" else x
                rows.append((x, np.bool_(label) if as_numpy and case.classes == TWO else label))
            yield rows

    return rows_for


def labels_of(check):
    try:
        return {type(y) for _, y in getattr(check, "keywords", {}).get("dataset", [])}
    except TypeError:
        return set()


@pytest.mark.filterwarnings("ignore:no message had the label 'spam' of")  # whose labels are its own
@for_each([case for case in one_of_each(CASES) if case.classes != SETS and "," not in case.name])
def test_rivers_checks(case, monkeypatch):
    model, passed_over = case.make(), set()
    assert not model._unit_test_skips()  # as River calls it
    if case.of != "features":
        monkeypatch.setattr(checks, "_yield_datasets", texts_for(case))
        passed_over = ABOUT_FIELDS | (ABOUT_DICTS if case.of == "texts" else set())
    if case.option("max_features"):
        passed_over = passed_over | {"check_shuffle_features_no_impact"}  # of equal features the last are forgotten
    random.seed(0)  # which River shuffles with
    n_passed = 0
    for check in checks.yield_checks(model):
        if check.__name__ in passed_over or (case.classes == ORDERED and str in labels_of(check)):
            continue
        try:
            check(model.clone({"pos_label": True}) if case.pos_label else case.make())
        except BaseException as error:
            error.add_note(f"in {check.__name__}")
            raise
        n_passed += 1
    assert n_passed >= 10


@for_each_kind(CASES)
def test_in_a_pipeline(case):
    """What River's scaler gives is learned, one by one; of texts what a function gives."""
    kind = preprocessing.StandardScaler if case.of == "features" else lambda: compose.FuncTransformer(lambda x: x)
    model, before, alone = kind() | case.make(), kind(), case.make()
    for x, y in case.stream(60, names=NAMES[:2]):
        x = {"a": 0.0, "b": 1.0, **x} if case.of == "features" else x
        assert model.predict_one(x) == alone.predict_one(before.transform_one(x))
        model.learn_one(x, y)
        before.learn_one(x)
        alone.learn_one(before.transform_one(x), y)
    assert seen(list(model.steps.values())[-1]) == seen(alone)
    assert type(alone).__name__ in repr(model)
