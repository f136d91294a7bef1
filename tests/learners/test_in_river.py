"""Models in what River has: pipelines, wrappers, evaluation, selection."""

import copy
import inspect
import pickle
import random
from functools import partial

import numpy as np
import pandas as pd
import pytest
from messages import WORDS, messages
from river import (
    bandit,
    base,
    checks,
    compat,
    compose,
    datasets,
    drift,
    evaluate,
    feature_extraction,
    imblearn,
    linear_model,
    metrics,
    model_selection,
    multiclass,
    multioutput,
    preprocessing,
    stream,
    utils,
)
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score
from tables import rows_and_labels

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


@pytest.mark.parametrize("kind", [AdaptiveClassifier, KernelPegasosClassifier, PegasosClassifier])
def test_rivers_checks_of_a_pipeline(kind):
    names = []
    for first in (partial(compose.Discard, "nothing"), preprocessing.StandardScaler):
        for check in checks.yield_checks(first() | kind()):
            names.append(check.__name__)
            if first is not preprocessing.StandardScaler or names[-1] != "check_learn_many_matches_learn_one":
                check(first() | kind())
    # River's scaler learns a whole batch before it scales the first row of it, for any model.
    for model in (kind(), linear_model.LogisticRegression()):
        with pytest.raises(AssertionError):
            checks.common.check_learn_many_matches_learn_one(
                preprocessing.StandardScaler() | model, datasets.Phishing()
            )
    assert "check_debug_one" in names


KEYS = {"bools": [False, True], "numbers": [0, 1], "the other way": [1, 0], "texts": ["ham", "spam"]}


@pytest.mark.parametrize("labels", KEYS)
@pytest.mark.parametrize("kind", [AdaptiveClassifier, KernelPegasosClassifier, OrdinalClassifier, PegasosClassifier])
def test_labels_alone_are_keys_of_probabilities(kind, labels):
    """So that wrappers of River's, which sort them, look for `True` or make columns of them, never meet another."""
    if labels == "texts" and kind in (KernelPegasosClassifier, OrdinalClassifier):
        return  # River's wrappers ask models of two classes for `True`; ordered ones are numbers
    rows = [({"a": float(i % 3), "b": 1.0}, KEYS[labels][i // 6 % 2]) for i in range(24)]
    alone = kind()
    pipeline = preprocessing.StandardScaler() | kind()
    sampler = imblearn.HardSamplingClassifier(kind(), size=5, p=0.5, seed=1)
    chains = (
        []
        if labels == "texts"
        else [  # which make features of what was predicted
            multioutput.ClassifierChain(kind()),
            multioutput.ProbabilisticClassifierChain(kind()),
            multioutput.MonteCarloClassifierChain(kind(), m=3, seed=1),
        ]
    )
    for n, (x, y) in enumerate(rows):
        known = set(alone.classes)
        assert set(alone.predict_proba_one(x)) <= {
            *known,
            *([] if kind is not KernelPegasosClassifier else KEYS[labels]),
        }
        assert None not in alone.predict_proba_many([x, x]).tolist()
        assert sum(alone.predict_proba_one(x).values()) == pytest.approx(1.0) or not n
        assert pipeline.debug_one(x)
        alone.learn_one(x, y)
        pipeline.learn_one(x, y)
        sampler.learn_one(x, y)
        for chain in chains:
            chain.learn_one(x, {"first": y, "second": not y})
            chain.predict_one(x)
            chain.predict_proba_one(x)
    X, y = np.array([[*x.values()] for x, _ in rows]), [y for _, y in rows]
    for n in (3, 24):
        made = compat.convert_river_to_sklearn(kind()).partial_fit(X[:n], y[:n], classes=sorted(KEYS[labels]))
        assert made.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(24))


def accuracy(model, rows, **options):
    return evaluate.progressive_val_score(rows, model, metrics.Accuracy(), **options).get()


def test_in_a_pipeline_it_learns():
    rows = [*datasets.Phishing().take(600)]
    model = preprocessing.StandardScaler() | PegasosClassifier(l2=1e-2, fit_intercept=True)
    assert accuracy(model, rows) > 0.8
    assert accuracy(model.clone(), rows, delay=20) > 0.75
    union = (preprocessing.StandardScaler() + preprocessing.MinMaxScaler()) | PegasosClassifier(l2=1e-2)
    assert accuracy(union, rows) > 0.75
    report = model.debug_one(rows[0][0])
    assert "PegasosClassifier" in report


def test_learning_many_through_pipelines():
    X, y = rows_and_labels(100, 4)
    frame, labels = pd.DataFrame(X, columns=list("abcd")), pd.Series(y)
    model = preprocessing.StandardScaler() | PegasosClassifier(l2=1e-2)
    expected, scaler = PegasosClassifier(l2=1e-2), preprocessing.StandardScaler()
    for begin in range(0, 100, 25):
        chunk = frame.iloc[begin : begin + 25]
        model.learn_many(chunk, labels.iloc[begin : begin + 25])
        scaler.learn_many(chunk)
        expected.learn_many(scaler.transform_many(chunk).to_dict("records"), y[begin : begin + 25])
    assert model["PegasosClassifier"].weights == pytest.approx(expected.weights)
    assert model.predict_many(frame).tolist() == list(
        expected.predict_many(scaler.transform_many(frame).to_dict("records"))
    )
    assert list(model.predict_proba_many(frame).columns) == [False, True]


def test_word_counts_of_rivers_own():
    model = feature_extraction.BagOfWords() | PegasosClassifier(l2=1e-2)
    rows = [("cheap pills", True), ("see you at lunch", False), ("pills for you", True), ("at noon", False)] * 5
    for text, y in rows:
        model.learn_one(text, y)
    assert [model.predict_one(text) for text, _ in rows] == [y for _, y in rows]
    series = pd.Series([text for text, _ in rows])
    many = feature_extraction.BagOfWords() | PegasosClassifier(l2=1e-2)
    many.learn_many(series, pd.Series([y for _, y in rows]))
    assert many["PegasosClassifier"].weights == pytest.approx(model["PegasosClassifier"].weights)
    assert many.predict_many(series).tolist() == [y for _, y in rows]


def test_in_evaluation_with_and_without_delay():
    rows = list(messages(1000))
    model = TextClassifier(classifier=PegasosClassifier(l2=1e-2, t0=100.0, fit_intercept=True))
    assert accuracy(model, rows) > 0.8
    assert accuracy(model.clone(), rows, delay=20) > 0.8
    by_hand, hits = model.clone(), 0
    for text, y in rows:
        predicted = by_hand.predict_one(text)
        hits += predicted == y
        by_hand.learn_one(text, y)
    assert accuracy(model.clone(), rows) == hits / (len(rows) - 1)  # River leaves out the first, which has no answer
    # Prequential evaluation in one call gives the same decisions once both labels are known.
    X, y = zip(*rows, strict=True)
    margins = model.clone().predict_learn_many(X, y).scores
    both_known = max(y.index("ham"), y.index("spam")) + 1
    late = model.clone()
    for text, label in rows[:both_known]:
        late.learn_one(text, label)
    for (text, label), margin in zip(rows[both_known:], margins[both_known:], strict=True):
        assert late.predict_one(text) == late.classes[int(margin > 0)]
        late.learn_one(text, label)
    pipeline = compose.FuncTransformer(str.strip) | model.clone()
    assert accuracy(pipeline, rows) == hits / (len(rows) - 1)


@pytest.mark.parametrize("wrapper", [multiclass.OneVsRestClassifier, multiclass.OneVsOneClassifier])
def test_several_classes_through_river(wrapper):
    generator = random.Random(0)
    rows = []
    for _ in range(600):
        y = generator.choice(["sport", "food", "music"])
        own = {"sport": ["goal", "team"], "food": ["salt", "oven"], "music": ["song", "band"]}[y]
        rows.append((" ".join([generator.choice(own), *generator.choices(WORDS, k=4)]), y))
    model = wrapper(TextClassifier())
    assert accuracy(model, rows) > 0.8
    assert pickle.loads(pickle.dumps(model)).predict_one("goal") == "sport"


def test_drift_and_model_selection():
    def turning(n):
        for i, (text, y) in enumerate(messages(n)):
            yield text, (y == "spam") == (i < n // 2)

    wrapped = drift.DriftRetrainingClassifier(TextClassifier(), drift.binary.DDM())
    late = metrics.Accuracy()
    for i, (text, y) in enumerate(turning(3000)):
        if i > 2200:
            late.update(y, wrapped.predict_one(text))
        wrapped.learn_one(text, y)
    assert late.get() > 0.75
    candidates = [TextClassifier(classifier=PegasosClassifier(l2=l2)) for l2 in (1e3, 1e-3)]
    rows = list(messages(800))
    for selector in (
        model_selection.BanditClassifier(candidates, metrics.Accuracy(), bandit.EpsilonGreedy(0.1, 0.01, seed=1)),
        model_selection.SuccessiveHalvingClassifier(
            [model.clone() for model in candidates], metrics.Accuracy(), budget=800, eta=2
        ),
    ):
        assert accuracy(selector, rows) > 0.7


def test_files_through_river(tmp_path):
    path = tmp_path / "stream.csv"
    rows = list(messages(50))
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(path, index=False)
    model, expected = TextClassifier(HashedBagOfWords(on="text")), TextClassifier(HashedBagOfWords())
    with path.open(encoding="utf-8") as file:
        for x, y in stream.iter_csv(file, target="label"):
            model.learn_one(x, y)
    expected.learn_many(*zip(*rows, strict=True))
    assert model.weights == expected.weights


def test_parameters_of_a_part_are_changed_in_a_clone():
    model = TextClassifier(TextFeatures(prefix_length=3))
    model.learn_one("cheap pills", "spam")
    clone = model.clone({"classifier": {"learning_rate": 2.0}, "features": {"on": "body"}})
    assert (clone.classifier.learning_rate, clone.classifier.margin) == (2.0, 5.0)
    assert (clone.features.on, clone.features.prefix_length) == ("body", 3)
    assert clone.n_iterations == 0 and model.classifier.learning_rate == 0.5 and model.features.on is None
    assert type(model.clone({"classifier": PegasosClassifier(l2=0.5)}).classifier) is PegasosClassifier
    grid = {"classifier": {"learning_rate": [0.1, 1.0], "half_life": [None, 100]}, "features": {"binary": [False]}}
    models = utils.expand_param_grid(model, grid)
    options = [(each.classifier.learning_rate, each.classifier.half_life) for each in models]
    assert options == [(0.1, None), (0.1, 100), (1.0, None), (1.0, 100)]
    assert all((each.features.binary, each.features.prefix_length) == (False, 3) for each in models)
    chosen = model_selection.BanditClassifier(
        models, metric=metrics.Accuracy(), policy=bandit.EpsilonGreedy(0.1, seed=1)
    )
    for text, label in messages(60):
        chosen.predict_one(text)
        chosen.learn_one(text, label)
    assert max(each.n_iterations for each in chosen) > 0


def test_a_text_model_is_of_the_kind_of_its_classifier(tmp_path):
    model = TextClassifier(classifier=MultiLabelClassifier())
    model.learn_one("pills", {"ad"})
    model.save(tmp_path / "m")
    copies = pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone(), load(tmp_path / "m")
    for each in (model, *copies, compose.FuncTransformer(str.strip) | model):
        assert isinstance(each, base.MultiLabelClassifier) and not isinstance(each, base.Classifier)
    other = model.clone({"classifier": OrdinalClassifier()})
    assert isinstance(other, base.Classifier) and not isinstance(other, base.MultiLabelClassifier)
    # Its kind alone; it does not stand in for its classifier.
    for make in (MultiLabelClassifier, OrdinalClassifier, lambda part: TextClassifier(classifier=part)):
        for part in (TextClassifier(), preprocessing.StandardScaler() | AdaptiveClassifier()):
            with pytest.raises(TypeError, match=r"got a (TextClassifier|Pipeline)"):
                make(part)
    with pytest.raises(ValueError, match="must be a MultiLabelClassifier, got a TextClassifier"):
        MultiLabelClassifier.load(tmp_path / "m")


STREAMS = {
    "bool": (TextClassifier, [False, True]),
    "int": (TextClassifier, [0, 1]),
    "str": (TextClassifier, ["ham", "spam"]),
    "many": (TextClassifier, ["a", "b", "c"]),
    "ordered": (lambda: TextClassifier(classifier=OrdinalClassifier()), [1, 2, 3]),
    "labels": (lambda: feature_extraction.BagOfWords() | MultiLabelClassifier(), ["a", "b", "c"]),
    "labels of texts": (lambda: TextClassifier(classifier=MultiLabelClassifier()), ["a", "b", "c"]),
}


def of_river(module):
    """All of its metrics, with a number or a metric where they need one."""
    given = {"beta": 0.5, "metric": metrics.F1()}
    for name, make in inspect.getmembers(module, inspect.isclass):
        if not inspect.isabstract(make) and issubclass(make, metrics.base.Metric) and name != "MultiFBeta":
            needed = [p for p, of in inspect.signature(make).parameters.items() if of.default is of.empty]
            yield make(**{p: given[p] for p in needed if p in given})


@pytest.mark.parametrize("kind", STREAMS)
def test_every_metric_of_river_takes_what_is_answered(kind):
    make, labels = STREAMS[kind]
    generator = np.random.default_rng(0)
    numbers = generator.integers(len(labels), size=150).tolist()
    rows = [(f"word{n} thing{generator.integers(9)} item{generator.integers(3)}", labels[n]) for n in numbers]
    has_sets = kind.startswith("labels")
    if has_sets:  # one of which never holds
        rows = [(x, {each: each == y for each in labels} | {"never": False}) for x, y in rows]
    ours, others = (metrics.multioutput, metrics) if has_sets else (metrics, metrics.multioutput)
    assert not any(metric.works_with(make()) for metric in of_river(others))
    ours = [metric for metric in of_river(ours) if metric.works_with(make())]
    if not isinstance(labels[0], int):  # which these two turn labels into
        ours = [metric for metric in ours if not isinstance(metric, (metrics.RollingROCAUC, metrics.RollingPRAUC))]
    for metric in ours:
        assert str(evaluate.progressive_val_score(rows, make(), metric))
    assert len(ours) >= (5 if has_sets else 39)
    if has_sets:
        return
    model, said = make(), []
    for x, y in rows:
        said.append(model.predict_one(x))
        model.learn_one(x, y)
    truths = [y for _, y in rows]
    assert said[0] is None and None not in said[1:]
    for metric, expected in [
        (metrics.Accuracy(), accuracy_score),
        (metrics.MacroF1(), partial(f1_score, average="macro")),
        (metrics.CohenKappa(), cohen_kappa_score),
    ]:
        found = evaluate.progressive_val_score(rows, make(), metric).get()
        assert found == pytest.approx(expected(truths[1:], said[1:]))
