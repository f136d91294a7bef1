"""The text model copied, in River, in threads, and made of other parts."""

import copy
import gzip
import math
import pickle
import random

import numpy as np
import orjson
import pandas as pd
import pytest
from contract import bits_of
from estimators import seen
from messages import FEATURES, WORDS, assert_alike, both, messages
from river import bandit, compose, drift, evaluate, metrics, model_selection, multiclass, stream, utils

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    PegasosClassifier,
    TextClassifier,
    engine,
    load,
)

pure = engine.NAME == "pure"


# --- copies -----------------------------------------------------------------------------------------------------------


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "clone": lambda model: model.clone(include_attributes=True),
    "file": lambda model: model,
}


@pytest.mark.parametrize("copied", ["pickle", "deepcopy", "file"])
@pytest.mark.parametrize("features", [name for name in FEATURES if name not in ("functions", "tokenizer")])
def test_copies_find_the_same_features(features, copied, tmp_path):
    model = both(features, "all")[0]
    for text, y in messages(50):
        model.learn_one(text, y)
    if copied == "file":
        model.save(tmp_path / "model")
        other = TextClassifier.load(tmp_path / "model")
    else:
        other = COPIES[copied](model)
    assert other.features._get_params() == model.features._get_params()
    for text, y in messages(20, seed=1):
        assert other.features.transform_one(text) == model.features.transform_one(text)
        assert other.predict_proba_one(text) == model.predict_proba_one(text)
        other.learn_one(text, y)
        model.learn_one(text, y)
    assert other.weights == model.weights


def test_clones_know_nothing():
    for features in FEATURES:
        model = both(features, "all")[0]
        for text, y in messages(10):
            model.learn_one(text, y)
        clone = model.clone()
        assert clone.features is not model.features and clone.classifier is not model.classifier
        assert clone.n_iterations == 0 and clone.weights == {}
        assert clone.features._get_params() == model.features._get_params()
        assert clone.classifier._get_params() == model.classifier._get_params()
        assert clone.features.transform_one("cheap x") == model.features.transform_one("cheap x")
    changed = model.clone(
        {"classifier": (PegasosClassifier, {"l2": 0.125}), "features": (HashedBagOfWords, {"n_features": 10})}
    )
    assert changed.classifier.l2 == 0.125 and changed.features.n_features == 10


def test_clones_with_attributes_know_all():
    """As River defines it for a model whose parts are parameters: what the parts know is theirs to give."""
    model = both("default", "all")[0]
    for text, y in messages(20):
        model.learn_one(text, y)
    part = model.classifier.clone(include_attributes=True)
    assert bits_of(part.snapshot()) == bits_of(model.classifier.snapshot())
    assert repr(part) == repr(model.classifier) and seen(part) == seen(model.classifier)
    assert TextClassifier(model.features.clone(), part).weights == model.weights


def test_memory_grows_with_the_table():
    model = TextClassifier()
    empty = model._raw_memory_usage
    n = 20_000 if pure else 200_000
    model.learn_many(
        [" ".join(f"word{i}" for i in range(begin, begin + 100)) for begin in range(0, n, 100)], [True] * (n // 100)
    )
    k = len(model.weights)
    grown = model._raw_memory_usage - empty
    assert grown >= 16 * k
    if not pure:
        assert grown <= 33 * k + 100_000


# --- River ------------------------------------------------------------------------------------------------------------


RIVER_MODELS = [
    TextClassifier(),
    TextClassifier(HashedBagOfWords(on="text")),
    TextClassifier(
        HashedBagOfWords(on="text", ngram_range=(1, 2), n_features=1000, stop_words=("at",)),
        PegasosClassifier(l2=0.01, batch_size=3, fit_intercept=True, class_weight={True: 2.0}, t0=1.0),
    ),
]


@pytest.mark.parametrize("model", RIVER_MODELS)
def test_words_come_and_go(model):
    """What River's checks ask of features, asked of words."""
    generator = random.Random(0)
    wrap = (lambda text: {"text": text}) if model.features.on else (lambda text: text)
    model, shuffled, many = model.clone(), model.clone(), model.clone()
    X, y = [], []
    for text, label in messages(200):
        words = text.split()
        some = generator.sample(words, max(len(words) - 3, 0))
        new = [f"new{generator.randrange(10**6)}"]
        for met, learned in ((some, words), (words, some), (new, words + new), (words[:1], words[:1])):
            probabilities = model.predict_proba_one(wrap(" ".join(met)))
            assert sum(probabilities.values()) == 1.0 and all(0.0 < p < 1.0 for p in probabilities.values())
            model.learn_one(wrap(" ".join(learned)), label == "spam")
            X.append(wrap(" ".join(learned)))
            y.append(label == "spam")
            if model.features.ngram_range == (1, 1):  # the order of words does not matter
                generator.shuffle(learned)
                shuffled.learn_one(wrap(" ".join(learned)), label == "spam")
    for begin in range(0, len(X), 100):
        many.learn_many(X[begin : begin + 100], pd.Series(y[begin : begin + 100]))
    assert pickle.dumps(many) == pickle.dumps(model)
    if model.features.ngram_range == (1, 1):
        assert_alike(shuffled, model.classifier)


def accuracy(model, rows, **options):
    return evaluate.progressive_val_score(rows, model, metrics.Accuracy(), **options).get()


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
    assert accuracy(model.clone(), rows) == hits / len(rows)
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
    assert accuracy(pipeline, rows) == hits / len(rows)


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
    for x, y in stream.iter_csv(path, target="label"):
        model.learn_one(x, y)
    expected.learn_many(*zip(*rows, strict=True))
    assert model.weights == expected.weights


def test_a_real_stream(data_folder):
    """Better than guessing the commoner class by far, and the same by all ways."""
    with gzip.open(data_folder / "sms_spam.jsonl.gz") as file:
        rows = [orjson.loads(line) for line in file]
    X, y = [row["text"] for row in rows], [row["label"] for row in rows]
    model = TextClassifier(HashedBagOfWords(), PegasosClassifier(pos_label="spam"))
    margins = model.predict_learn_many(X, y).scores
    assert ((margins > 0) == (np.array(y) == "spam")).mean() > 0.92
    parts = PegasosClassifier(pos_label="spam")
    assert parts.predict_learn_many(HashedBagOfWords().transform_many(X), y).scores == pytest.approx(
        margins, rel=1e-6, abs=1e-6
    )
    assert_alike(model, parts)


# --- threads ----------------------------------------------------------------------------------------------------------


def test_threads_share_a_model(tmp_path, run_threads):
    generator = random.Random(0)
    texts = [" ".join(f"w{generator.randrange(10**6)}" for _ in range(100)) for _ in range(1000)]
    y = [i % 2 == 0 for i in range(1000)]
    features = HashedBagOfWords()
    model = TextClassifier(features, PegasosClassifier(batch_size=2))
    other = TextClassifier(features)  # shares the features
    bulks, singles = (1, 50) if pure else (3, 50)
    expected = HashedBagOfWords().transform_one("see you at lunch")

    def learn_singly(made):
        for i in range(singles):
            made.predict_one(texts[i % 1000])
            made.learn_one(texts[i % 1000], i % 2 == 0)

    def save():
        model.save(tmp_path / "model")
        assert load(tmp_path / "model").classes == (False, True)

    def transform():
        assert features.transform_one("see you at lunch") == expected
        assert features.transform_many(["see you at lunch"] * 3).nnz == 3 * len(expected)

    model.learn_many(texts[:2], y[:2])
    learners = [
        lambda: [model.learn_many(texts, y) for _ in range(bulks)],
        lambda: [model.predict_learn_many(texts, y) for _ in range(bulks)],
        lambda: learn_singly(model),
        lambda: learn_singly(other),
        lambda: [other.learn_many(texts, y) for _ in range(bulks)],
    ]
    readers = [
        lambda: model.predict_proba_one("see you"),
        lambda: model.predict_many(texts[:20]),
        lambda: (len(model.weights), model.intercept, model._memory_usage),
        save,
        transform,
        lambda: copy.deepcopy(model).predict_one("see you"),
        model.flush,
    ]
    run_threads(learners, readers)
    assert other.n_iterations == singles + bulks * 1000
    total = 2 + 2 * bulks * 1000 + singles
    assert total // 2 <= model.n_iterations <= total
    assert all(map(math.isfinite, model.weights.values()))


@pytest.mark.parametrize("classifier", [AdaptiveClassifier, PegasosClassifier])
@pytest.mark.parametrize("max_features", [1, 2, 10])
def test_few_features_and_many_texts_in_one_call(classifier, max_features):
    """Nearly every text brings more than there may be, many more times than Python nests calls."""
    texts = [f"word{i} and {i % 7}" for i in range(300 if pure else 2_500)]
    labels = [i % 2 for i in range(len(texts))]
    model, twin = (TextClassifier(classifier=classifier(max_features=max_features)) for _ in range(2))
    model.learn_many(texts, labels)
    for text, label in zip(texts, labels, strict=True):
        twin.learn_one(text, label)
        assert len(twin.weights) <= max_features
    assert model.weights == twin.weights and len(model.weights) <= max_features


# --- parts and parameters ---------------------------------------------------------------------------------------------


def test_parameters_of_a_part_are_changed_in_a_clone():
    model = TextClassifier()
    model.learn_one("cheap pills", "spam")
    clone = model.clone({"classifier": {"learning_rate": 2.0}, "features": {"on": "body"}})
    assert (clone.classifier.learning_rate, clone.classifier.margin) == (2.0, 5.0)
    assert (clone.features.on, clone.features.prefix_length) == ("body", 4)
    assert clone.n_iterations == 0 and model.classifier.learning_rate == 0.5 and model.features.on is None
    assert type(model.clone({"classifier": PegasosClassifier(l2=0.5)}).classifier) is PegasosClassifier
    grid = {"classifier": {"learning_rate": [0.1, 1.0], "half_life": [None, 100]}, "features": {"binary": [False]}}
    models = utils.expand_param_grid(model, grid)
    options = [(each.classifier.learning_rate, each.classifier.half_life) for each in models]
    assert options == [(0.1, None), (0.1, 100), (1.0, None), (1.0, 100)]
    assert all((each.features.binary, each.features.prefix_length) == (False, 4) for each in models)
    chosen = model_selection.BanditClassifier(
        models, metric=metrics.Accuracy(), policy=bandit.EpsilonGreedy(0.1, seed=1)
    )
    for text, label in messages(60):
        chosen.predict_one(text)
        chosen.learn_one(text, label)
    assert max(each.n_iterations for each in chosen) > 0


def test_a_series_of_texts_gives_a_series_of_labels():
    model = TextClassifier()
    texts, y = map(list, zip(*messages(40), strict=True))
    series = pd.Series(texts, index=[f"row {i}" for i in range(40)])
    model.learn_many(series, pd.Series(y))
    labels, probabilities = model.predict_many(series), model.predict_proba_many(series)
    assert isinstance(labels, pd.Series) and labels.to_list() == model.predict_many(texts).tolist()
    assert probabilities.to_numpy().tolist() == model.predict_proba_many(texts).tolist()
    assert list(labels.index) == list(probabilities.index) == list(series.index)


@pytest.mark.parametrize("X", [pd.DataFrame({"text": ["a"]}), {"text": "a"}, [{"text": "a"}]], ids=range(3))
def test_what_has_its_text_in_a_field_says_how_to_name_the_field(X):
    model = TextClassifier()
    for call in (model.predict_many, lambda X: model.learn_many(X, ["ham"])):
        with pytest.raises(TypeError, match=r"on=|a sequence of texts, not a single dict"):
            call(X)
    with pytest.raises(TypeError, match="on='NAME'"):
        model.learn_one({"text": "a"}, "ham")
