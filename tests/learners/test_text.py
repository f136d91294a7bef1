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
from hypothesis import given, settings
from hypothesis import strategies as st
from river import bandit, compose, drift, evaluate, metrics, model_selection, multiclass, optim, stream, utils

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    OrdinalPegasosClassifier,
    PegasosClassifier,
    TextClassifier,
    engine,
    load,
)

pure = engine.NAME == "pure"

WORDS = [
    "cheap",
    "pills",
    "see",
    "you",
    "at",
    "lunch",
    "noon",
    "buy",
    "now",
    "é",
    "漢字",
    "x",
    "İstanbul",
    "ΟΔΟΣ",
    "a!b",
]


def messages(n, seed=0):
    generator = random.Random(seed)
    for _ in range(n):
        words = generator.choices(WORDS, k=generator.randrange(9))
        is_spam = "cheap" in words or "buy" in words
        yield " ".join(words), "spam" if is_spam != (generator.random() < 0.05) else "ham"


FEATURES = {
    "default": {},
    "bigrams": {"ngram_range": (1, 2), "token_pattern": r"\w+|[^\w\s]", "stop_words": ["at", "!"]},
    "counts": {"norm": None, "n_features": 7},
    "characters": {"analyzer": "char", "ngram_range": (1, 3), "norm": "l1"},
    "parts of words": {"analyzer": "char_wb", "ngram_range": (2, 4), "binary": True, "alternate_sign": False},
    "pattern": {"token_pattern": r"[a-z]+", "strip_accents": "unicode"},
    "functions": {"tokenizer": str.split, "preprocessor": str.upper, "ngram_range": (1, 2)},
    "tokenizer": {"tokenizer": lambda text: [*text.split(), "İ" * 20], "lowercase": True},
}
CLASSIFIERS = {  # more stand in the registry
    "default": {},
    "all": {"batch_size": 3, "fit_intercept": True, "class_weight": {"ham": 0.5}, "l2": 1.0},
    "weights": {"class_weight": {"spam": 4.0}, "t0": 100.0, "pos_label": "ham"},
    "violations": {"average": "weighted", "counter": "violations", "l2": 1e-2},
    "first weights": {"initializer": optim.initializers.Normal(seed=2), "t0": 30.0, "l2": 1e-2},
}


def both(features, classifier):
    """The model, and its two parts on their own."""
    model = TextClassifier(HashedBagOfWords(**FEATURES[features]), PegasosClassifier(**CLASSIFIERS[classifier]))
    return model, HashedBagOfWords(**FEATURES[features]), PegasosClassifier(**CLASSIFIERS[classifier])


def assert_alike(model, classifier):
    largest = max(map(abs, classifier.weights.values()), default=0.0)
    expected = {index: w for index, w in classifier.weights.items() if abs(w) > 1e-9 * largest}
    found = {index: w for index, w in model.weights.items() if abs(w) > 1e-9 * largest}
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9 * largest)
    assert model.intercept == pytest.approx(classifier.intercept, rel=1e-7, abs=1e-9 * largest)
    assert (model.classes, model.n_iterations) == (classifier.classes, classifier.n_iterations)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("features", FEATURES)
def test_it_is_the_pipeline_of_its_parts_one_by_one(features, classifier):
    model, bag, expected = both(features, classifier)
    for i, (text, y) in enumerate(messages(120)):
        x = bag.transform_one(text)
        margin = expected.decision_function_one(x)
        assert model.decision_function_one(text) == pytest.approx(margin, rel=1e-7, abs=1e-9)
        assert model.predict_proba_one(text) == pytest.approx(expected.predict_proba_one(x), rel=1e-7)
        if abs(margin) > 1e-9:
            assert model.predict_one(text) == expected.predict_one(x)
        w = [1.0, 2.0, 0.0][i % 3]
        model.learn_one(text, y, w=w)
        expected.learn_one(x, y, w=w)
        if i % 17 == 5:
            model.flush()
            expected.flush()
    assert_alike(model, expected)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("features", FEATURES)
def test_it_is_the_pipeline_of_its_parts_many_at_once(features, classifier):
    model, bag, expected = both(features, classifier)
    learned = copy.deepcopy(model) if "tokenizer" not in FEATURES[features] else both(features, classifier)[0]
    X, y = zip(*messages(150), strict=True)
    w = [float(i % 3) for i in range(150)]
    for begin in range(0, 150, 50):
        part = slice(begin, begin + 50)
        matrix = bag.transform_many(X[part])
        margins = expected.predict_learn_many(matrix, y[part], w[part]).scores
        found = model.predict_learn_many(X[part], y[part], w[part]).scores
        assert isinstance(found, np.ndarray) and found.dtype == np.float64
        assert found == pytest.approx(margins, rel=1e-7, abs=1e-9)
        learned.learn_many(iter(X[part]), np.array(y[part]), np.array(w[part]))
        assert_alike(model, expected)
        assert_alike(learned, expected)
        margins = expected.decision_function_many(matrix)
        assert model.decision_function_many(X[part]) == pytest.approx(margins, rel=1e-7, abs=1e-9)
        assert model.predict_proba_many(X[part]) == pytest.approx(expected.predict_proba_many(matrix), rel=1e-7)
        assert (model.predict_many(X[part]) == expected.predict_many(matrix))[np.abs(margins) > 1e-9].all()


def test_river_pipelines_of_the_parts_agree():
    model = TextClassifier(HashedBagOfWords(), PegasosClassifier(fit_intercept=True))
    pipeline = HashedBagOfWords() | PegasosClassifier(fit_intercept=True)
    X, y = zip(*messages(200), strict=True)
    for text, label in zip(X[:100], y, strict=False):
        assert model.predict_proba_one(text) == pytest.approx(pipeline.predict_proba_one(text))
        model.learn_one(text, label)
        pipeline.learn_one(text, label)
    model.learn_many(X[100:], y[100:])
    pipeline.learn_many(list(X[100:]), pd.Series(y[100:]))
    assert_alike(model, pipeline["PegasosClassifier"])
    assert model.predict_many(X).tolist() == pipeline.predict_many(list(X)).tolist()


# --- a text that was seen just before ---------------------------------------------------------------------------------

POOL = ["cheap pills", "see you", "", "x" * 70_000 + " cheap", "é 漢字", "İstanbul ΟΔΟΣ", "a b c"]
calls = st.tuples(
    st.sampled_from(
        ["predict", "predict", "learn", "learn", "learn twice", "transform", "many", "learn many", "tokens"]
    ),
    st.integers(0, len(POOL) - 1),
    st.booleans(),  # on the very object, or on an equal one
    st.integers(0, 1),  # on which of the models
    st.booleans(),
)


@pytest.mark.parametrize(
    "options", [{}, {"token_pattern": "[a-z]+"}, {"analyzer": "char_wb"}, {"on": "text"}], ids=repr
)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(calls, max_size=25))
def test_models_that_share_features_and_see_texts_again(options, sequence):
    """In any order of calls each does what its parts do that share nothing and remember nothing."""
    features = HashedBagOfWords(**options)
    settings_of = [{"l2": 0.1}, {"l2": 0.01, "fit_intercept": True, "batch_size": 2}]
    models = [TextClassifier(features, PegasosClassifier(**it)) for it in settings_of]
    expected = [PegasosClassifier(**it) for it in settings_of]
    transform = HashedBagOfWords(**{name: value for name, value in options.items() if name != "on"}).transform_one
    wrap = (lambda text: {"text": text}) if options.get("on") else (lambda text: text)
    for what, i, same, which, y in sequence:
        text = POOL[i] if same else "".join(list(POOL[i]))
        x, model, other = transform("".join(list(text))), models[which], expected[which]
        if what == "predict":
            assert model.decision_function_one(wrap(text)) == pytest.approx(other.decision_function_one(x), abs=1e-9)
        elif what == "transform":
            assert features.transform_one(wrap(text)) == x
        elif what == "tokens":
            assert sum(abs(v) for v in x.values()) == 0 or features.tokens(wrap(text))
        elif what == "many":
            margins = model.decision_function_many([wrap(text), wrap("other"), wrap(text)])
            assert margins[0] == margins[2] == pytest.approx(other.decision_function_one(x), abs=1e-9)
        elif what == "learn many":
            model.learn_many([wrap(text)] * 2, [y, not y])
            other.learn_many([x] * 2, [y, not y])
        else:
            for _ in range(2 if what == "learn twice" else 1):
                model.learn_one(wrap(text), y)
                other.learn_one(x, y)
        for made, apart in zip(models, expected, strict=True):
            assert_alike(made, apart)


def test_predicting_others_before_learning_one():
    model, bag, expected = both("default", "all")
    a, b = "cheap pills", "see you at lunch"
    for _ in range(5):
        for text in (a, b):
            model.predict_one(text)
        model.learn_one(a, "spam")
        expected.learn_one(bag.transform_one(a), "spam")
        model.predict_proba_one(a)
        model.features.transform_one(b)
        model.learn_one(a, "spam")
        expected.learn_one(bag.transform_one(a), "spam")
        model.learn_one(b, "ham")
        expected.learn_one(bag.transform_one(b), "ham")
    assert_alike(model, expected)


# --- any text ---------------------------------------------------------------------------------------------------------


def test_texts_without_words_are_legal():
    model, _, expected = both("default", "all")
    for text in ("", " ", "!", "\x00", "a", "\ud800"):
        model.predict_one(text)
        model.learn_one(text, "spam")
        expected.learn_one({}, "spam")
    assert_alike(model, expected)
    model.learn_many(["", "!"], ["ham", "spam"])
    assert model.predict_many([""]).shape == (1,)


def test_lone_surrogates_and_nul():
    model = TextClassifier(HashedBagOfWords(analyzer="char"))
    model.learn_many(["\ud800", "\x00", "\udfff"], ["a", "b", "a"])
    model.learn_one("\ud800", "a")
    assert model.predict_many(["\ud800", "\x00", "\udfff"]).tolist() == ["a", "b", "a"]


@pytest.mark.skipif(pure, reason="the pure engine takes a minute for it")
def test_a_line_of_100_megabytes(unchanged):
    line = "cheap pills for you, " * (100_000_000 // 21)
    model = TextClassifier()
    assert (
        model.predict_learn_many([line, "see you", line], ["spam", "ham", "spam"]).scores[2] < 0
    )  # for spam, the first label
    model.learn_one(line, "spam")
    with unchanged(model):
        assert model.predict_one(line) == "spam"


# --- explanations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier", [AdaptiveClassifier(), PegasosClassifier(**CLASSIFIERS["all"])], ids=["adaptive", "pegasos"]
)
@pytest.mark.parametrize("features", [None, *FEATURES])
def test_contributions_of_ngrams_add_up_to_the_margin(features, classifier):
    bag = None if features is None else HashedBagOfWords(**FEATURES[features])
    model = TextClassifier(bag, classifier.clone())
    assert model.explain_one("cheap") == {}
    model.learn_many(*zip(*messages(100), strict=True))
    for text in (
        "",
        "cheap pills at noon, cheap!",
        "a!b é 漢字 İstanbul never-seen",
        *(x for x, _ in messages(20, seed=3)),
    ):
        explanation = model.explain_one(text)
        assert sum(explanation.values()) == pytest.approx(model.decision_function_one(text), rel=1e-9, abs=1e-9)
        assert explanation.get("(intercept)", 0.0) == model.intercept
        assert explanation.keys() - {"(intercept)"} <= set(model.features.tokens(text))
        sizes = [abs(contribution) for contribution in explanation.values()]
        assert sizes == sorted(sizes, reverse=True) and 0.0 not in sizes


def test_what_an_ngram_adds_is_what_the_margin_loses_without_it():
    """Where the values are not divided by a norm."""
    model = TextClassifier(HashedBagOfWords(norm=None), PegasosClassifier(l2=0.1))
    model.learn_many(*zip(*messages(100), strict=True))
    without = model.decision_function_one("pills at lunch")
    assert model.explain_one("cheap pills at lunch")["cheap"] == pytest.approx(
        model.decision_function_one("cheap pills at lunch") - without
    )


@pytest.mark.parametrize(
    "classifier",
    [PegasosClassifier(multi_class="crammer_singer"), OrdinalPegasosClassifier(), KernelPegasosClassifier()],
)
def test_only_linear_models_of_two_classes_explain(classifier):
    with pytest.raises(TypeError, match=type(classifier).__name__):
        TextClassifier(classifier=classifier).explain_one("text")


@pytest.mark.skipif(pure, reason="the pure engine takes a minute for it")
def test_a_text_of_a_million_distinct_words():
    model, long = TextClassifier(), " ".join(f"w{chr(97 + i % 26)}{i:x}z" for i in range(1_000_000))
    for text, y in (*messages(20), (long, "spam"), (long[::-1], "ham"), *messages(20, seed=1)):
        assert math.isfinite(model.decision_function_one(text))
        model.learn_one(text, y)
    assert model.predict_one(long) == "spam"
    assert sum(model.explain_one(long).values()) == pytest.approx(model.decision_function_one(long))


# --- bad input --------------------------------------------------------------------------------------------------------


class Failing(Exception):
    pass


def fail_on_bad(text):
    if "bad" in text:
        raise Failing
    return text.split()


def test_functions_that_fail_leave_everything_as_it_was(unchanged):
    for options in ({"tokenizer": fail_on_bad}, {"preprocessor": lambda text: " ".join(fail_on_bad(text))}):
        model = TextClassifier(HashedBagOfWords(**options), PegasosClassifier(batch_size=2))
        for text, y in messages(5):
            model.learn_one(text, y)
        with unchanged(model.classifier):
            for y in ("spam", "ham", "third"):
                with pytest.raises(Failing):
                    model.learn_one("bad words", y)
            for X in (["bad", "a", "b"], ["a", "bad", "b"], ["a", "b", "bad"]):
                with pytest.raises(Failing):
                    model.learn_many(X, ["spam"] * 3)
            with pytest.raises(Failing):
                model.predict_one("bad")
        model.learn_one("good words", "ham")


def test_parts_of_another_class_are_refused():
    for arguments in (
        {"features": PegasosClassifier()},
        {"classifier": HashedBagOfWords()},
        {"features": HashedBagOfWords},
        {"classifier": PegasosClassifier},
        {"features": "words"},
        {"classifier": {"l2": 1.0}},
        {"features": PegasosClassifier(), "classifier": HashedBagOfWords()},
    ):
        with pytest.raises(TypeError, match="not a "):
            TextClassifier(**arguments)


# --- examples in fields -----------------------------------------------------------------------------------------------


def test_on_takes_one_field():
    model, plain = TextClassifier(HashedBagOfWords(on="text")), TextClassifier(HashedBagOfWords())
    rows = [({"text": text, "n": i}, y) for i, (text, y) in enumerate(messages(60))]
    for x, y in rows[:30]:
        before = dict(x)
        assert model.predict_proba_one(x) == plain.predict_proba_one(x["text"])
        model.learn_one(x, y)
        plain.learn_one(x["text"], y)
        assert x == before
    frame = pd.DataFrame([x for x, _ in rows[30:]], index=[f"row {i}" for i in range(30)])
    model.learn_many(frame, pd.Series([y for _, y in rows[30:]]))
    plain.learn_many(frame["text"], [y for _, y in rows[30:]])
    assert model.weights == plain.weights
    predicted, probabilities = model.predict_many(frame), model.predict_proba_many(frame)
    assert isinstance(predicted, pd.Series) and isinstance(probabilities, pd.DataFrame)
    assert list(predicted.index) == list(probabilities.index) == list(frame.index)
    assert predicted.tolist() == plain.predict_many(list(frame["text"])).tolist()
    of_series = plain.predict_proba_many(frame["text"])
    assert list(of_series.index) == list(plain.predict_many(frame["text"]).index) == list(frame.index)
    assert probabilities[list(plain.classes)].to_numpy().tolist() == of_series.to_numpy().tolist()
    for bad in ({"n": 1}, {}, {"text": None}, {"text": 5}, ["text"], None):
        before = pickle.dumps(model)
        with pytest.raises((TypeError, ValueError)):
            model.learn_one(bad, "spam")
        with pytest.raises((TypeError, ValueError)):
            model.learn_many([rows[0][0], bad], ["spam", "ham"])
        with pytest.raises((TypeError, ValueError)):
            model.predict_one(bad)
        assert pickle.dumps(model) == before


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
