"""What every estimator of the registry promises. What is special to one is tested beside it."""

import copy
import inspect
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from contract import (
    BAD_LABELS,
    after,
    assert_close,
    bits,
    calls_of,
    close,
    flat,
    for_each,
    for_each_kind,
    learn,
    many_of,
    of_features,
    of_texts,
    through_a_file,
    told,
)
from estimators import CASES, COLUMNS, GROWING, ORDERED, SETS, SEVERAL, TWO, seen
from scipy import sparse
from tables import TABLES, as_dicts

import stream_pegasos
from stream_pegasos import HashedBagOfWords, TextClassifier
from stream_pegasos.learners.capabilities import Capability

# --- many at once -----------------------------------------------------------------------------------------------------


@for_each(CASES)
def test_many_at_once_give_the_same_bits(case):
    """However a stream is cut into calls."""
    X, y = case.columns(90)
    w = [[1.0, 2.0, 0.0, 1.0][i % 4] for i in range(90)]
    one, many, pieces, prequential = (case.make() for _ in range(4))
    before = []
    for x, label, weight in zip(X, y, w, strict=True):
        margins = one.decision_function_one(x)
        if case.classes == GROWING and isinstance(margins, float):  # of two that have the margins −m and m
            margins = {label: margins if label == one.pair[1] else -margins for label in one.classes}
        before.append((case.predicted(one, x), margins, case.probabilities(one, x)))
        one.learn_one(x, label, weight)
    many.learn_many(many_of(case, X), y, w)
    for begin in range(0, 90, 7):
        part = slice(begin, begin + 7)
        pieces.learn_many(iter(X[part]) if case.of != "fields" else many_of(case, X[part]), y[part], np.array(w[part]))
    told = prequential.predict_learn_many(many_of(case, X), pd.Series(y, dtype=object), tuple(w))
    assert bits(case, many) == bits(case, one)
    assert bits(case, pieces) == bits(case, one)
    assert bits(case, prequential) == bits(case, one)
    known = max(y.index(label) for label in case.labels) + 1  # from where on all labels are
    assert told.classes == one.classes
    assert told.labels.tolist()[known:] == [label for label, _, _ in before[known:]]
    expected = [list(probabilities.values()) for _, _, probabilities in before[known:]]
    assert told.probabilities.tolist()[known:] == [close(row) for row in expected]
    assert told.probabilities.shape == (90, len(one.classes))
    if case.classes == TWO:
        assert told.scores.tolist() == close([margin for _, margin, _ in before])
    elif case.classes in (SEVERAL, SETS):
        expected = [list(margins.values()) for _, margins, _ in before]
        assert told.scores.tolist() == [close(row + [-math.inf] * (len(told.classes) - len(row))) for row in expected]
        assert told.labels.tolist()[1:] == [label for label, _, _ in before[1:]]
    else:
        for row, (_, margins, _) in zip(told.scores.tolist(), before, strict=True):
            assert row == [close(margins.get(label, -math.inf)) for label in told.classes]


@for_each(CASES)
def test_predictions_say_it_all(case):
    """The same as the methods for one and for many, for those with every state of the labels."""
    X, _ = case.columns(20, seed=9)
    X = [*X, case.example([]), case.example(["unheard", "of"])]
    for model in after(case, 0, 1, 4, 40):
        told, labels = model.predictions(many_of(case, X)), [case.predicted(model, x) for x in X]
        assert told.labels.tolist() == labels
        if case.classes != SETS or case.of != "fields":
            assert list(model.predict_many(many_of(case, X))) == labels
        margins = [model.decision_function_one(x) for x in X]
        assert told.scores.tolist() == [list(m.values()) if isinstance(m, dict) else m for m in margins]
        classes, probabilities = told.classes, told.probabilities
        if None in classes:  # beside an only label, which has all in River's protocol
            classes, probabilities = classes[:1], np.ones((len(X), 1))
        for x, row in zip(X, probabilities.tolist(), strict=True):
            assert dict(zip(classes, row, strict=True)) == close(case.probabilities(model, x))
        asked = case.option("coverage") or (case.option("classifier") and case.option("classifier").coverage)
        assert told.sets == ([model.predict_set_one(x) for x in X] if asked else None)
        assert np.array_equal(model.decision_function_many(many_of(case, X)), told.scores)
        assert np.array_equal(model.predict_proba_many(many_of(case, X)), probabilities)


@for_each_kind(CASES)
def test_predictions_stay_what_they_were(case):
    """Whatever the model learns before they are looked at: more of the same, labels that are new, or exchanged."""
    X, _ = case.columns(5, seed=9)
    calls = calls_of(case)
    for n in (0, 1, 3, 12):
        model = case.make()
        for call in calls[:n]:
            learn(model, *call)
        now, later, learned = model.predictions(many_of(case, X)), model.predictions(many_of(case, X)), calls[n]
        before = told(now)
        view = copy.deepcopy(model)
        said = told(view.predict_learn_many(many_of(case, learned[0]), learned[1]))
        prequential = model.predict_learn_many(many_of(case, learned[0]), learned[1])
        for call in calls[n + 1 :]:
            learn(model, *call)
        assert told(later) == before
        assert told(prequential) == said


@for_each_kind(CASES)
def test_what_a_model_says_of_itself(case):
    names = ["a", 3, 7, 8]
    for model in (case.make(), case.trained(40)):
        capabilities = model.capabilities
        assert capabilities <= {*Capability}
        assert ("texts" in capabilities) == (case.of != "features") == ("features" in model.parts)
        several = case.has_weights
        assert ("several classes" in capabilities) == several == model._multiclass
        assert ("weights" in capabilities) == case.has_weights
        assert ("ordered" in capabilities) == (case.classes == ORDERED)
        assert ("several labels" in capabilities) == (case.classes == SETS)
        assert ("explain" in capabilities) == (case.has_weights)
        assert model.n_drifts == 0 or case.option("drift_detector")
        assert model != case.make() and model in {model, *model.parts.values()}  # by identity, as River's
        assert model.parts["classifier"] is (model if case.of == "features" else model.classifier)
        assert model.parts.get("features") is getattr(model, "features", None)
        if not case.has_weights:
            assert model.n_features == len(getattr(model, "classifier", model).support_vectors)
            with pytest.raises(AttributeError, match="has no weights"):
                _ = model.weights
            with pytest.raises(AttributeError, match="has no intercept"):
                _ = model.intercept
            continue
        is_flat = case.classes == TWO or case.classes == ORDERED or (case.classes == GROWING and not model.n_iterations)
        weights = {None: model.weights} if is_flat else model.weights
        columns = np.array([name for name in names if isinstance(name, int)] + [1 << 40])
        found = model.get_weights(columns)
        assert found.shape == (len(columns), len(weights))
        for of, row in zip(weights, found.T.tolist(), strict=True):
            assert row == [weights[of].get(column, 0.0) for column in columns.tolist()]
        known = {name for of_column in weights.values() for name in of_column}
        assert model.n_features >= len(known)
        assert not is_flat or model.n_features == len(known)


@for_each_kind([case for case in CASES if case.classes != SETS])
def test_labels_are_checked_as_they_are_learned(case, unchanged):
    known = case.labels
    for model in after(case, 0, 1, 40):
        with unchanged(model):
            model.check_labels(known)
            model.check_labels(iter(np.array(known, dtype=object)))
            model.check_labels([])
            for bad in BAD_LABELS:
                with pytest.raises((TypeError, ValueError), match="label"):
                    model.check_labels([known[0], bad])
            if case.classes == TWO and "several classes" not in model.capabilities:
                with pytest.raises(ValueError, match="third"):
                    model.check_labels([*known, "third"])
                model.check_labels([*known, "third"], [*[1.0] * len(known), 0.0])  # which nothing brings
            elif case.classes == ORDERED:
                with pytest.raises(TypeError, match="an integer"):
                    model.check_labels([*known, "third"])
            else:
                model.check_labels([*known, "third"])


@for_each_kind([case for case in of_features if case.classes != SETS])
def test_any_table_is_learned_as_its_rows(case, unchanged):
    dicts, y = case.columns(40, names=COLUMNS)
    X = np.array([[x.get(j, 0.0) for j in COLUMNS] for x in dicts])
    w = np.array([[1.0, 0.0, 3.0][i % 3] for i in range(40)])
    one, before = case.make(), []
    for x, label, weight in zip(as_dicts(X), y, w.tolist(), strict=True):
        before.append(one.decision_function_one(x))
        one.learn_one(x, label, weight)
    for kind, given_as in TABLES.items():
        many, given, labels = case.make(), given_as(X), np.array(y, dtype=object)
        keeps = unchanged(labels, w, *([given] if kind != "generator" else []))
        with keeps:
            told = many.predict_learn_many(given, labels, w)
        if case.classes == TWO:
            assert told.scores.tolist() == close(before), kind
        assert_close(many, one)
        answers = many.predict_many(given_as(X))
        assert list(answers) == [case.predicted(many, x) for x in as_dicts(X)], kind
        probabilities = many.predict_proba_many(given_as(X))
        expected = [list(case.probabilities(many, x).values()) for x in as_dicts(X)]
        assert np.asarray(probabilities).tolist() == [close(row) for row in expected], kind
        if "frame" in kind:
            assert list(answers.index) == list(probabilities.index) == list(given.index)
            assert list(probabilities.columns) == list(case.probabilities(many, {}))
        margins = [many.decision_function_one(x) for x in as_dicts(X)]
        rows = [list(margin.values()) if isinstance(margin, dict) else margin for margin in margins]
        assert many.decision_function_many(given_as(X)).tolist() == [close(row) for row in rows], kind


@for_each_kind(of_texts)
def test_any_sequence_of_texts_is_learned_as_its_texts(case):
    X, y = case.columns(40)
    one = case.trained(40)
    frame = pd.DataFrame(X if case.of == "fields" else {"text": X}, index=[f"row {i % 7}" for i in range(40)])
    given = frame if case.of == "fields" else frame["text"]
    for kind in (lambda: given, lambda: iter(X), lambda: tuple(X), lambda: np.array(X, dtype=object)):
        many = case.make()
        many.learn_many(kind(), pd.Series(y, dtype=object).to_numpy())
        assert bits(case, many) == bits(case, one)
        assert list(many.predict_many(kind())) == [case.predicted(many, x) for x in X]
        expected = [list(case.probabilities(many, x).values()) for x in X]
        assert np.asarray(many.predict_proba_many(kind())).tolist() == [close(row) for row in expected]
    assert list(one.predict_many(given).index) == list(one.predict_proba_many(given).index) == list(frame.index)


@for_each_kind(CASES)
def test_nothing_at_once_is_nothing(case, unchanged):
    for model in after(case, 0, 20):
        n = len(case.probabilities(model, case.example([])))
        with unchanged(model):
            empty = [[], (), {}.keys()]
            empty += [sparse.csr_matrix((0, 5)), pd.DataFrame({"a": []})] if case.of == "features" else []
            for nothing in empty:
                for told in (model.predict_learn_many(nothing, []), model.predictions(nothing)):
                    assert [len(part) for part in (told.labels, told.probabilities, told.scores)] == [0, 0, 0]
            assert model.predict_many([]).tolist() == []
            assert model.predict_proba_many([]).shape == (0, n)
            assert len(model.decision_function_many([])) == 0


@for_each_kind([case for case in of_features if case.classes != SETS])
def test_frames_without_columns(case):
    for model in after(case, 0, 20):
        frame = pd.DataFrame(index=[5, 6])
        assert list(model.predict_many(frame).index) == list(model.predict_proba_many(frame).index) == [5, 6]
        assert model.predict_many(frame).tolist() == [case.predicted(model, {})] * 2
        view = copy.deepcopy(model)
        model.learn_many(frame, case.labels[:2])
        view.learn_many([{}, {}], case.labels[:2])
        assert bits(case, model) == bits(case, view)


@for_each_kind(CASES)
def test_before_anything_is_learned(case):
    model, x = case.make(), case.example(["a"])
    one = case.predicted(model, x)
    assert one in (None, False, ())
    assert model.predict_many(many_of(case, [x, x])).tolist() == [one, one]
    probabilities = case.probabilities(model, x)
    assert set(probabilities.values()) <= {0.5}
    assert model.predict_proba_many(many_of(case, [x, x])).shape == (2, len(probabilities))
    assert model.decision_function_one(x) in ([0.0] if case.classes == TWO else [0.0, {}])
    assert model.n_iterations == 0 and not flat(seen(model)[-1])
    assert model.classes == ()
    if case.of != "features" and "explain" in model.capabilities:
        assert math.fsum(model.explain_ngrams_one(x).values()) == 0.0
        model.learn_one(x, case.labels[0])
        assert all(map(math.isfinite, model.explain_ngrams_one(x).values()))


@for_each([case for case in CASES if case.classes == TWO and not case.pos_label])
def test_labels_that_exchange(case):
    """1 is taken for the positive one until 2 comes; a model that knew it from the start is the same, to rounding."""
    X, y = case.columns(60)
    y = [1] * 9 + [1 + (label == "spam") for label in y[9:]]
    assert y[9:].count(2) > 9
    model, many, expected = case.make(), case.make(), case.make()
    expected.learn_many(many_of(case, X), ["ham" if label == 1 else "spam" for label in y])
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
    many.learn_many(many_of(case, X), y)
    for made in (model, many):
        assert made.classes == (1, 2)
        if not isinstance(case.option("class_weight"), dict):  # which knows the labels by name
            assert flat(seen(made)[-1]) == pytest.approx(flat(seen(expected)[-1]), rel=1e-9, abs=1e-12)


weighting = [case for case in of_features if "class_weight" in inspect.signature(type(case.make())).parameters]


@for_each([case for case in weighting if case.option("drift_detector") is None])
@pytest.mark.parametrize("name, power", [("balanced", 1.0), ("sqrt", 0.5)])
def test_balanced(case, name, power, tmp_path):
    """N / (K · n) for each label, or its root, with all counted anew for each example, times the example's weight."""
    X, y = case.columns(90)
    w = [1.0 + (i % 3) for i in range(90)]
    balanced = [((i + 1) / (len(set(y[: i + 1])) * y[: i + 1].count(label))) ** power for i, label in enumerate(y)]
    expected = case.make().clone({"class_weight": None})
    expected.learn_many(X, y, [a * b for a, b in zip(balanced, w, strict=True)])
    one, many = (case.make().clone({"class_weight": name}) for _ in range(2))
    for example in zip(X[:50], y[:50], w[:50], strict=True):
        one.learn_one(*example)
    many.learn_many(X[:50], y[:50], w[:50])
    copies = [one, many, pickle.loads(pickle.dumps(many)), copy.deepcopy(many)]
    if case.can_be_saved:
        many.save(tmp_path / "model")
        copies.append(stream_pegasos.load(tmp_path / "model"))
    for model in copies:
        model.learn_many(X[50:], y[50:], w[50:])
        assert seen(model) == seen(expected)


@for_each([case for case in weighting if isinstance(case.option("class_weight"), dict)])
def test_a_class_weight_is_a_weight_of_its_examples(case):
    weight_of, (X, y) = case.option("class_weight"), case.columns(60)
    model, many, expected = case.make(), case.make(), case.make().clone({"class_weight": None})
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label, 2.0)
        expected.learn_one(x, label, 2.0 * weight_of.get(label, 1.0))
    many.learn_many(X, y, 2.0)
    assert seen(model) == seen(many) == seen(expected)


# --- probabilities ----------------------------------------------------------------------------------------------------


@for_each(CASES)
def test_probabilities_and_predictions_agree(case):
    model = case.trained(60)
    decides = case.option("threshold") in (None, 0.5) and case.option("max_false_positive_rate") is None
    decides = decides and case.classes != SETS and case.classes != ORDERED
    decides = decides and case.option("decide_for") in (None, "accuracy")
    for x, _ in case.stream(40, seed=3):
        probabilities, label = case.probabilities(model, x), case.predicted(model, x)
        margins = model.decision_function_one(x)
        assert list(probabilities) == list(model.classes)
        assert all(0.0 <= p <= 1.0 for p in probabilities.values())
        assert case.classes == SETS or sum(probabilities.values()) == pytest.approx(1.0, rel=1e-12)
        if decides:
            assert probabilities[label] == max(probabilities.values())
            if case.classes == TWO:
                assert label == model.pair[margins > 0.0]
                assert (probabilities[model.pair[1]] > 0.5) == (margins > 0.0)
        if decides and case.classes in (SEVERAL, GROWING):
            assert margins[label] == max(margins.values())


@for_each_kind(of_features)
@pytest.mark.parametrize("size", [1e45, 1e-200, 5e-324])
def test_values_of_any_size_leave_everything_finite(case, size, tmp_path):
    if "polynomial" in case.name or case.name == "kernel, in Python":
        size = min(size, 1e10)  # its powers must be numbers too
    model = case.make()
    labels = case.labels
    for i in range(30):
        x = {"x": size, "y": -size, i % 5: size, "z": -1.0}
        probabilities = case.probabilities(model, x)
        assert all(0.0 <= p <= 1.0 for p in probabilities.values())
        assert not probabilities or case.classes == SETS or sum(probabilities.values()) == pytest.approx(1.0)
        margins = model.decision_function_one(x)
        assert np.isfinite(list(margins.values()) if isinstance(margins, dict) else margins).all()
        model.learn_one(x, labels[i % len(labels)], w=1e30 if i % 3 else 1e-300)
    assert all(map(math.isfinite, flat(seen(model)[-1]).values()))
    if case.can_be_saved:
        model.save(tmp_path / "model")
        assert seen(stream_pegasos.load(tmp_path / "model")) == seen(model)


@for_each_kind(CASES)
@pytest.mark.parametrize("w", [1.0, 0.0, 1e30])
def test_streams_without_news_leave_everything_finite(case, w):
    """One class alone, the same example with every label, examples of nothing."""
    a, nothing = case.example(["a"]), case.example([])
    for X, labels in (([a], case.labels[:1]), *((X, case.labels) for X in ([a], [nothing], [a, nothing]))):
        model, n = case.make(), 20 * len(labels)
        model.learn_many(many_of(case, (X * n)[:n]), list(labels) * 20, w)
        probabilities = model.predict_proba_many(many_of(case, X))
        assert ((np.asarray(probabilities) >= 0.0) & (np.asarray(probabilities) <= 1.0)).all()
        assert np.isfinite(model.decision_function_many(many_of(case, X))).all()
        assert all(map(math.isfinite, flat(seen(model)[-1]).values()))


# --- in the text model ------------------------------------------------------------------------------------------------


@for_each_kind(of_features)
@pytest.mark.parametrize("features", [{}, {"n_features": 5, "norm": None}], ids=repr)
def test_in_the_text_model_it_is_the_pipeline_of_the_parts(case, features, tmp_path):
    texts = next(other for other in CASES if (other.of, other.classes) == ("texts", case.classes))
    model, bag = TextClassifier(HashedBagOfWords(**features), case.make()), HashedBagOfWords(**features)
    expected = case.make()
    near = {"rel": 1e-7, "abs": 1e-7}
    for i, (text, y) in enumerate(texts.stream(60)):
        x = bag.transform_one("".join(list(text)))  # another string, which nothing has kept
        assert flat(model.decision_function_one(text)) == pytest.approx(flat(expected.decision_function_one(x)), **near)
        assert flat(case.probabilities(model, text)) == pytest.approx(flat(case.probabilities(expected, x)), **near)
        model.learn_one(text, y, float(i % 3))
        expected.learn_one(x, y, float(i % 3))
        assert model.features.transform_one(text) == x
    X, y = texts.columns(40, seed=1)
    made = [model, through_a_file(model, tmp_path / "model")] if case.can_be_saved else [model]
    made = made[:1] if case.option("drift_detector") else made
    matrix = bag.transform_many(X)
    told = expected.predict_learn_many(matrix, y)
    for each in made:
        found = each.predict_learn_many(X, y)
        assert found.labels.tolist() == told.labels.tolist() and found.classes == told.classes
        assert found.scores == pytest.approx(told.scores, **near)
        assert found.probabilities == pytest.approx(told.probabilities, **near)
        assert type(each.classifier) is type(expected)
        assert (each.classes, each.n_iterations) == (expected.classes, expected.n_iterations)
        assert each.decision_function_many(X) == pytest.approx(expected.decision_function_many(matrix), **near)
        assert each.predict_proba_many(X) == pytest.approx(expected.predict_proba_many(matrix), **near)
        if case.has_weights:
            assert flat(each.weights) == pytest.approx(flat(expected.weights), rel=1e-6, abs=1e-7)


@for_each([case for case in of_features if case.classes == TWO])
def test_a_name_that_comes_again_with_nothing_is_no_feature(case):
    """Each example but the first few is right by far, so that names come and go."""
    known, another = case.labels
    rows = [{"a": 1.0, "w": 0.01}, {"a": 1.0, "b": 1.0, "w": 0.0}, {"b": 1.0, "v": 0.0, "u": 1e-9}] * 3
    labels = [known, another, another] * 3
    one, many = case.make(), case.make()
    for model in (one, many):
        for _ in range(30):
            model.learn_one({"a": 1.0}, known)
            model.learn_one({"b": 1.0}, another)
    for x, y in zip(rows, labels, strict=True):
        one.learn_one(x, y)
    many.learn_many(rows, labels)
    if case.can_be_saved:
        assert bits(case, one) == bits(case, many)
