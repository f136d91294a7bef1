"""What scikit-learn's users do with estimators: pipelines, searches, calibration, data frames."""

import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from interpreter import run
from river import drift
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

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
from stream_pegasos.common.packing import get_parameters
from stream_pegasos.features.vectors import word_vectors
from stream_pegasos.learners.predictions import PartlyLearnedError
from stream_pegasos.sklearn import OnlineClassifier, OnlineTextClassifier, TextVectorizer
from stream_pegasos.streams import synthetic

TEXTS, LABELS = (list(column) for column in zip(*synthetic(600, seed=3), strict=True))
NEW = [text for text, _ in synthetic(50, seed=4)]
THREE = ["long" if len(text) > 60 else label for text, label in zip(TEXTS, LABELS, strict=True)]


def of_river(X, y, model=None, w=1.0):
    """The model that learned all in turn by River's protocol."""
    model = TextClassifier() if model is None else model
    model.learn_many(X, y, w)
    return model


def assert_predicts_alike(estimator, model, X):
    """Bit for bit, whatever order classes came in."""
    classes = estimator.classes_.tolist()
    assert set(classes) == set(model.classes)
    assert estimator.predict(X).tolist() == model.predict_many(X).tolist()
    said = model.predictions(X)
    for label, probabilities in zip(said.classes, said.probabilities.T, strict=True):
        np.testing.assert_array_equal(estimator.predict_proba(X)[:, classes.index(label)], probabilities)
    margins = estimator.decision_function(X)
    if margins.ndim == 1:
        np.testing.assert_array_equal(margins, said.scores if model.pair[1] == classes[1] else -said.scores)
        np.testing.assert_array_equal(margins > 0.0, estimator.predict(X) == classes[1])
    else:
        for label, scores in zip(model.classes, said.scores.T, strict=True):
            np.testing.assert_array_equal(margins[:, classes.index(label)], scores)


@pytest.mark.parametrize("labels", [LABELS, [*LABELS[1:], "ham"], THREE], ids=["two", "the other first", "three"])
def test_it_predicts_what_river_s_estimator_does(labels):
    expected = of_river(TEXTS, labels)
    assert_predicts_alike(OnlineTextClassifier(shuffle=False).fit(TEXTS, labels), expected, NEW)
    in_parts = OnlineTextClassifier()
    for begin in range(0, 600, 150):
        in_parts.partial_fit(TEXTS[begin : begin + 150], labels[begin : begin + 150])
    assert_predicts_alike(in_parts, expected, NEW)
    assert in_parts.score(TEXTS, labels) == np.mean(expected.predict_many(TEXTS) == np.array(labels))


CLASSIFIERS = [
    AdaptiveClassifier(),
    PegasosClassifier(l2=0.01, batch_size=7),
    PegasosClassifier(l2=0.01, multi_class="crammer_singer"),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=["adaptive", "pegasos", "columns"])
@pytest.mark.parametrize("kind", [str, bool, int], ids=lambda kind: kind.__name__)
def test_matrices_and_labels_of_any_kind_are_learned_as_river_s_estimator_does(classifier, kind):
    labels = [{str: label, bool: label == "ham", int: -1 if label == "ham" else 7}[kind] for label in LABELS]
    X = TextVectorizer(n_features=50).transform(TEXTS)
    expected = of_river(X, labels, classifier.clone())
    expected.flush()
    for rows in (X, X.toarray()):
        estimator = OnlineClassifier(classifier, shuffle=False).fit(rows, np.array(labels))
        if classifier.capabilities and getattr(classifier, "multi_class", None) is None:
            assert_predicts_alike(estimator, expected, X[:50])
        else:  # a column for each of two classes, of which scikit-learn wants one margin
            scores = expected.decision_function_many(X)[:, [expected.classes.index(of) for of in sorted(set(labels))]]
            np.testing.assert_array_equal(estimator.decision_function(X), scores[:, 1] - scores[:, 0])
        assert [type(label) for label in estimator.predict(X[:2]).tolist()] == [kind, kind]
        assert estimator.n_features_in_ == 50 and classifier.n_learned == 0


def test_a_matrix_is_the_same_with_and_without_its_zeros():
    X = TextVectorizer(n_features=50, alternate_sign=True).transform(TEXTS)
    with_zeros = X.copy()
    with_zeros.data[::3] = 0.0
    before = with_zeros.copy()
    estimators = [OnlineClassifier().fit(matrix, LABELS) for matrix in (with_zeros, with_zeros.toarray())]
    np.testing.assert_array_equal(*(estimator.predict_proba(X) for estimator in estimators))
    assert (with_zeros.data == before.data).all()


def test_fit_shuffles_anew_in_each_pass_and_partial_fit_never():
    chance, expected = np.random.RandomState(5), TextClassifier()
    for _ in range(2):
        order = chance.permutation(600)
        expected.learn_many([TEXTS[i] for i in order], [LABELS[i] for i in order])
    estimator = OnlineTextClassifier(passes=2, random_state=5)
    assert_predicts_alike(estimator.fit(["lunch", *TEXTS[1:]], LABELS).fit(TEXTS, LABELS), expected, NEW)
    by_class = sorted(range(600), key=LABELS.__getitem__)
    sorted_texts, sorted_labels = [TEXTS[i] for i in by_class], sorted(LABELS)
    assert OnlineTextClassifier().fit(sorted_texts, sorted_labels).score(TEXTS, LABELS) > 0.95


def test_weights_are_those_of_river_s_estimator_and_zero_leaves_an_example_out():
    weights = np.arange(600) % 3
    there = np.flatnonzero(weights)
    chosen, labels = [TEXTS[i] for i in there], [LABELS[i] for i in there]
    expected = of_river(chosen, labels, w=weights[there].astype(float))
    estimator = OnlineTextClassifier(shuffle=False).fit(TEXTS, LABELS, sample_weight=weights)
    assert_predicts_alike(estimator, expected, NEW)
    estimator.partial_fit(["idle", "pills", "lunch"], ["spam", "ham", "spam"], sample_weight=[0.0, 2.0, 0.0])
    expected.learn_one("pills", "ham", 2.0)
    assert_predicts_alike(estimator, expected, [*NEW, "idle", "lunch"])
    for class_weight in ({"spam": 3.0}, "balanced", "sqrt"):
        expected = of_river(TEXTS, LABELS, TextClassifier(classifier=AdaptiveClassifier(class_weight=class_weight)))
        estimator = OnlineTextClassifier(class_weight=class_weight, shuffle=False).fit(TEXTS, LABELS)
        assert_predicts_alike(estimator, expected, NEW)


def frames_of(library):
    return pytest.importorskip(library, reason=f"{library} is not installed")


FORMS = {
    "tuple": tuple,
    "array": np.array,
    "array of objects": lambda texts: np.array(texts, object),
    "array of one column": lambda texts: np.array(texts, object)[:, np.newaxis],
    "pandas series": lambda texts: pd.Series(texts, index=range(7, 607)),
    "pandas frame": lambda texts: pd.DataFrame({"text": texts}),
    "polars series": lambda texts: frames_of("polars").Series(texts),
    "polars frame": lambda texts: frames_of("polars").DataFrame({"text": texts}),
}


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.heavy if "polars" in form else ()) for form in FORMS]
)
def test_texts_come_in_any_form(form):
    X = FORMS[form](TEXTS)
    y = FORMS[form](LABELS) if form.endswith("series") else LABELS
    np.testing.assert_array_equal(
        OnlineTextClassifier().fit(X, y).predict_proba(X),
        OnlineTextClassifier().fit(TEXTS, LABELS).predict_proba(TEXTS),
    )
    assert (TextVectorizer().transform(X) != TextVectorizer().fit_transform(TEXTS)).nnz == 0


def test_classes_that_are_yet_to_come():
    texts = ["cheap pills", "see you"]
    estimator = OnlineTextClassifier()
    estimator.partial_fit(texts, ["spam", "spam"], classes=["work", "ham", "spam"])
    assert estimator.classes_.tolist() == ["ham", "spam", "work"]
    # Laplace's rule of succession, and what it leaves shared by the others.
    np.testing.assert_allclose(estimator.predict_proba(["pills"]), [[1 / 8, 3 / 4, 1 / 8]])
    estimator.partial_fit(["lunch"], ["ham"])
    margins = estimator.decision_function(["pills"])
    assert margins[0, 0] == -margins[0, 1] and margins[0, 2] == -np.inf
    assert estimator.predict_proba(["pills"])[0, 2] == 0.0
    estimator.partial_fit(["noon"], ["work"])
    assert_predicts_alike(estimator, of_river([*texts, "lunch", "noon"], ["spam", "spam", "ham", "work"]), NEW)
    growing = OnlineTextClassifier().partial_fit(texts, ["spam", "spam"])
    assert growing.predict_proba(texts).tolist() == [[1.0], [1.0]] and growing.predict(texts).tolist() == ["spam"] * 2
    assert growing.partial_fit(["lunch"], ["ham"]).classes_.tolist() == ["ham", "spam"]


def test_what_cannot_be_learned_is_refused_and_changes_nothing():
    estimator = OnlineTextClassifier().partial_fit(TEXTS, LABELS, classes=["ham", "spam"])
    matrices = OnlineClassifier().fit(pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]}), [0, 1])
    before = pickle.dumps([estimator, matrices])
    for wrong, reason in [
        (lambda: estimator.partial_fit(["noon"], ["work"]), "a label must be one of the classes"),
        (lambda: estimator.partial_fit(["noon"], ["ham"], classes=["ham", "work"]), "'spam'] as in the first call"),
        (lambda: estimator.fit("lunch", ["ham"]), "a sequence of texts, got a str"),
        (lambda: estimator.fit(["lunch", None], ["ham", "spam"]), "must be a str, got a NoneType"),
        (lambda: estimator.fit(["lunch", "noon"], ["ham", None]), "a label must be a bool, an int or a str, got None"),
        (lambda: estimator.fit(["lunch"], ["ham", "spam"]), "2 labels for 1 examples"),
        (lambda: estimator.fit(["lunch"], ["ham"], [1.0, 2.0]), "2 weights for 1 examples"),
        (lambda: estimator.fit(["lunch"], ["ham"], [-1.0]), "must be from 0"),
        (lambda: estimator.fit([], []), "y must have an example"),
        (lambda: estimator.fit(pd.DataFrame({"a": ["x"], "b": ["y"]}), ["ham"]), "texts stand in one column"),
        (lambda: estimator.fit(TextVectorizer().transform(TEXTS), LABELS), "OnlineClassifier learns from matrices"),
        (lambda: estimator.set_params(classifier__rate=1), "Invalid parameter 'rate' for AdaptiveClassifier"),
        (lambda: estimator.set_params(classifier__learning_rate=-1), "learning_rate must be from"),
        (lambda: estimator.set_params(passes=3, classifier__rate=1), "Invalid parameter 'rate'"),
        (
            lambda: estimator.set_params(passes=3, features__binary=False, classifier__learning_rate=-1),
            "rate must be from",
        ),
        (lambda: estimator.set_params(passes=3, rate=1), "Invalid parameter 'rate' for estimator"),
        (lambda: clone(estimator).set_params(passes=0).fit(TEXTS, LABELS), "passes must be from 1"),
        (
            lambda: OnlineTextClassifier(features="words").fit(TEXTS, LABELS),
            "features must be features of this package",
        ),
        (
            lambda: OnlineTextClassifier(classifier="svm").fit(TEXTS, LABELS),
            "classifier must be a classifier over feature dicts",
        ),
        (lambda: OnlineTextClassifier(classifier=MultiLabelClassifier()).fit(TEXTS, LABELS), "several labels"),
        (lambda: matrices.fit(pd.DataFrame({"c": [1.0]}), [0], sample_weight=[-1.0]), "must be from 0"),
        (lambda: TextVectorizer(norm="l3").fit(), "norm must be"),
    ]:
        with pytest.raises((TypeError, ValueError), match=reason):
            wrong()
        assert pickle.dumps([estimator, matrices]) == before


def test_what_was_learned_before_a_detector_failed_stays():
    class Failing(drift.NoDrift):
        def update(self, x):
            if estimator.model_.n_learned == 5:
                raise OSError("no more")

    model = AdaptiveClassifier(drift_detector=Failing())
    estimator = OnlineTextClassifier(classifier=model).partial_fit(
        ["see you", "lunch", "pills"], ["ham", "ham", "spam"]
    )
    with pytest.raises(PartlyLearnedError, match="though 2 before it"):
        estimator.partial_fit(["agenda", "minutes", "agenda"], ["work"] * 3)
    assert estimator.classes_.tolist() == ["ham", "spam", "work"] and estimator.model_.n_learned == 5
    assert estimator.predict_proba(["agenda"]).shape == (1, 3)


def test_classifiers_that_may_do_less():
    stars = [int(label == "spam") + int(len(text) > 60) for text, label in zip(TEXTS, LABELS, strict=True)]
    ordinal = OnlineTextClassifier(classifier=OrdinalClassifier()).fit(TEXTS, stars)
    assert ordinal.predict_proba(NEW).shape == (50, 3) and not hasattr(ordinal, "decision_function")
    kernel = OnlineTextClassifier(HashedBagOfWords(), KernelPegasosClassifier()).fit(TEXTS, LABELS)
    assert kernel.score(TEXTS, LABELS) > 0.9
    before = pickle.dumps(kernel)
    for wrong in (
        lambda: kernel.fit(TEXTS, THREE),
        lambda: kernel.partial_fit(["noon"], ["work"]),
        lambda: clone(kernel).partial_fit(["noon"], ["work"], classes=["ham", "spam", "work"]),
    ):
        with pytest.raises(ValueError, match="There are 3 classes, and this classifier is for two"):
            wrong()
        assert pickle.dumps(kernel) == before


def test_where_no_label_is_allowed_the_most_probable_class_is_the_answer():
    for labels in (LABELS, THREE):
        classifier = AdaptiveClassifier(threshold=dict.fromkeys(labels, 1.0 - 1e-15))
        estimator = OnlineTextClassifier(classifier=classifier).fit(TEXTS, labels)
        assert estimator.model_.predict_many(NEW).tolist() == [None] * len(NEW)
        best = estimator.classes_[estimator.predict_proba(NEW).argmax(axis=1)]
        assert estimator.predict(NEW).tolist() == best.tolist() and len({*best}) > 1


def test_before_any_class_is_known_all_are_alike():
    estimator = OnlineTextClassifier(class_weight={"other": 0.0})
    estimator.partial_fit(["a b"], ["other"], classes=["ham", "other", "spam"])
    assert estimator.predict_proba(["a"]).tolist() == [[1 / 3] * 3] and estimator.predict(["a"]).tolist() == ["ham"]


def test_weights_of_ordered_classes_are_those_of_the_classifier_within():
    stars = [int(label == "spam") + int(len(text) > 60) for text, label in zip(TEXTS, LABELS, strict=True)]
    weights = {0: 5.0, 2: 0.5}
    here = OnlineTextClassifier(classifier=OrdinalClassifier(), class_weight=weights).fit(TEXTS, stars)
    there = OnlineTextClassifier(classifier=OrdinalClassifier(AdaptiveClassifier(class_weight=weights))).fit(
        TEXTS, stars
    )
    assert (here.predict_proba(NEW) == there.predict_proba(NEW)).all()


def test_parameters_of_parts_are_parameters():
    estimator = OnlineTextClassifier(HashedBagOfWords(n_features=64), random_state=3)
    assert estimator.get_params()["features__n_features"] == 64
    assert estimator.get_params()["classifier__learning_rate"] == AdaptiveClassifier().learning_rate
    given = estimator.features
    estimator.set_params(classifier=PegasosClassifier(l2=0.1), classifier__t0=2.0, features__binary=True, passes=2)
    assert (estimator.classifier.l2, estimator.classifier.t0, estimator.features.binary) == (0.1, 2.0, True)
    assert not given.binary and estimator.features.n_features == 64
    again = clone(estimator.fit(TEXTS, LABELS))
    assert not hasattr(again, "model_") and again.get_params()["classifier__t0"] == 2.0
    assert_predicts_alike(again.fit(TEXTS, LABELS), estimator.model_, NEW)


def test_pickles_and_files_of_what_has_learned(tmp_path):
    estimator = OnlineTextClassifier().fit(TEXTS, LABELS)
    copied = pickle.loads(pickle.dumps(estimator))
    estimator.model_.save(tmp_path / "model")
    for each in (estimator, copied):
        each.partial_fit(NEW, ["ham"] * 50)
    assert_predicts_alike(copied, estimator.model_, TEXTS)
    assert_predicts_alike(OnlineTextClassifier().fit(TEXTS, LABELS), load(tmp_path / "model"), NEW)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.heavy)])  # processes start slowly
def test_cross_validation_and_search(n_jobs):
    folds = [(np.arange(600) % 3 != k, np.arange(600) % 3 == k) for k in range(3)]
    folds = [tuple(map(np.flatnonzero, fold)) for fold in folds]
    X, y = np.array(TEXTS, object), np.array(LABELS)
    expected = [np.mean(of_river(X[a], y[a]).predict_many(X[b]) == y[b]) for a, b in folds]
    estimator = OnlineTextClassifier(shuffle=False)
    np.testing.assert_array_equal(cross_val_score(estimator, TEXTS, LABELS, cv=folds, n_jobs=n_jobs), expected)
    grid = {
        "onlinetextclassifier__features__ngram_range": [(1, 1), (1, 2)],
        "onlinetextclassifier__classifier__learning_rate": [1e-9, 0.5],
    }
    search = GridSearchCV(make_pipeline(estimator), grid, cv=folds, n_jobs=n_jobs).fit(TEXTS, LABELS)
    assert search.best_params_["onlinetextclassifier__classifier__learning_rate"] == 0.5
    tried = search.cv_results_["params"].index({name: values[1] for name, values in grid.items()})
    assert search.cv_results_["mean_test_score"][tried] == pytest.approx(np.mean(expected))
    assert isinstance(search.predict(NEW), np.ndarray)


def test_a_search_over_the_analyzer_takes_the_options_that_each_needs():
    grid = {"features__analyzer": ["word", "char_wb"]}
    search = GridSearchCV(OnlineTextClassifier(), grid, cv=2, error_score="raise").fit(TEXTS[:200], LABELS[:200])
    assert search.cv_results_["param_features__analyzer"].tolist() == ["word", "char_wb"]
    of_characters = OnlineTextClassifier().set_params(features__analyzer="char_wb", features__ngram_range=(3, 3))
    expected = TextClassifier(TextFeatures(ngram_range=(3, 3), analyzer="char_wb"))
    assert_predicts_alike(
        of_characters.set_params(shuffle=False).fit(TEXTS, LABELS), of_river(TEXTS, LABELS, expected), NEW
    )
    with pytest.raises(ValueError, match="prefix_length"):
        OnlineTextClassifier().set_params(features__analyzer="char", features__prefix_length=4)


def test_calibration_takes_what_it_needs():
    estimator = CalibratedClassifierCV(OnlineTextClassifier(), cv=3).fit(TEXTS, LABELS)
    assert estimator.predict_proba(NEW).shape == (50, 2) and estimator.score(TEXTS, LABELS) > 0.95


@pytest.mark.parametrize("library", ["pandas", pytest.param("polars", marks=pytest.mark.heavy)])
def test_columns_of_frames(library):
    hours = [i % 24 + (12.0 if label == "spam" else 0.0) for i, label in enumerate(LABELS)]
    X = frames_of(library).DataFrame({"text": TEXTS, "from": [text[0] for text in TEXTS], "hour": hours})
    words = FeatureUnion(
        [
            ("words", TextVectorizer(2**30)),
            ("characters", TextVectorizer(2**16, analyzer="char_wb", ngram_range=(3, 3))),
        ]
    )
    columns = ColumnTransformer(
        [
            ("text", words, "text"),
            ("from", OneHotEncoder(handle_unknown="ignore"), ["from"]),
            ("hour", StandardScaler(), ["hour"]),
        ]
    )
    pipeline = make_pipeline(columns, OnlineClassifier())
    pipeline.fit(X[:400], LABELS[:400])
    assert pipeline[-1].n_features_in_ > 2**30 + 2**16
    assert pipeline.score(X[400:], LABELS[400:]) > 0.95
    one_column = ColumnTransformer([("text", TextVectorizer(), ["text"])])
    assert (one_column.fit_transform(X) != TextVectorizer().transform(TEXTS)).nnz == 0


@pytest.mark.parametrize("library", ["pandas", pytest.param("polars", marks=pytest.mark.heavy)])
def test_names_of_columns_are_kept(library):
    X = np.random.default_rng(0).normal(size=(90, 3))
    scaler = StandardScaler().set_output(transform=library)
    frame = frames_of(library).DataFrame({name: X[:, j] for j, name in enumerate("abc")})
    pipeline = make_pipeline(scaler, OnlineClassifier()).fit(frame, X[:, 0] > 0)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        pipeline[-1].predict(frame.rename(columns={"a": "d"}) if library == "pandas" else frame.rename({"a": "d"}))


def test_the_vectorizer_gives_the_recipe_s_features():
    X = TextVectorizer(2**30, norm=None).transform(TEXTS)
    assert (TextFeatures(norm=None).transform_many(TEXTS) != X).nnz == 0
    characters = TextFeatures(2**10, (2, 3), "char_wb")
    X = TextVectorizer(2**10, ngram_range=(2, 3), analyzer="char_wb").transform(TEXTS)
    assert (characters.transform_many(TEXTS) != X).nnz == 0
    assert (
        TextVectorizer(prefix_length=0).transform(TEXTS) != TextFeatures(2**20, prefix_length=0).transform_many(TEXTS)
    ).nnz == 0
    with pytest.raises(ValueError, match="prefix_length"):
        TextVectorizer(analyzer="char", prefix_length=4).fit()
    model = make_pipeline(TextVectorizer(2**10), LogisticRegression()).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) > 0.95
    assert set(TextVectorizer().get_params()) == set(get_parameters(TextFeatures())) - {"on", "namespace"}


def test_without_scikit_learn_the_error_says_what_to_install():
    said = run(
        """
        import json, sys
        sys.modules["sklearn"] = None
        try:
            import stream_pegasos.sklearn
        except ImportError as error:
            print(json.dumps(str(error)))
        """
    )
    assert said.startswith("stream_pegasos.sklearn needs sklearn: ") and "'scikit-learn>=1.6'" in said
    assert "pip install '.[sklearn]'" in said


def test_columns_of_a_frame_are_fields():
    frame = pd.DataFrame({"subject": [text[:9] for text in TEXTS], "body": [text[9:] for text in TEXTS], "n": 7})
    features = TextFeatures(on="subject") + TextFeatures(on="body")
    model = clone(OnlineTextClassifier(features)).partial_fit(frame, LABELS)
    alone = TextClassifier(features)
    alone.learn_many(frame.to_dict("records"), LABELS)
    assert model.predict(frame[["body", "subject"]]).tolist() == alone.predict_many(frame.to_dict("records")).tolist()
    assert model.model_.weights == alone.weights


def test_word_vectors():
    """They are an option like any other; what is cloned or pickled does not read a table anew."""
    table = word_vectors({word: [float(len(word)), float("a" in word)] for text in TEXTS for word in text.split()})
    grid = {"features__vectors": [None, table], "features__n_features": [2**10]}
    search = GridSearchCV(OnlineTextClassifier(), grid, cv=2).fit(TEXTS, LABELS)
    assert {each["features__vectors"] for each in search.cv_results_["params"]} == {None, table}
    estimator = OnlineTextClassifier(TextFeatures(vectors=table))
    for made in (clone(estimator), estimator.set_params(features__prefix_length=3)):
        assert made.fit(TEXTS, LABELS).model_.vector_source is table
        again = pickle.loads(pickle.dumps(made))
        assert again.model_.vector_source == table
        assert (again.predict_proba(TEXTS) == made.predict_proba(TEXTS)).all()
    vectorizer = clone(TextVectorizer(2**10, vectors=table))
    assert vectorizer.vectors is table
    found = vectorizer.transform(TEXTS)
    assert found.shape == (len(TEXTS), 2**10 + 2)
    assert (found != TextFeatures(2**10, vectors=table).transform_many(TEXTS)).nnz == 0
    with pytest.raises(ValueError, match="need an AdaptiveClassifier"):
        OnlineTextClassifier(TextFeatures(vectors=table), PegasosClassifier()).fit(TEXTS, LABELS)
