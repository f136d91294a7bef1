import copy
import gzip
import math

import numpy as np
import orjson
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages import FEATURES, OPTIONS, assert_alike, both, messages

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    PegasosClassifier,
    TextClassifier,
    engine,
)

pure = engine.NAME == "pure"


@pytest.mark.parametrize("features", FEATURES)
def test_with_any_features_it_is_the_pipeline_of_its_parts(features):
    """As the contract has it of any classifier."""
    model, bag, expected = both(features)
    many, *_ = both(features)
    rows = [*messages(100)]
    for text, y in rows:
        x = bag.transform_one(text)
        assert model.decision_function_one(text) == pytest.approx(expected.decision_function_one(x), rel=1e-7, abs=1e-9)
        model.learn_one(text, y)
        expected.learn_one(x, y)
    many.learn_many(*zip(*rows, strict=True))
    assert_alike(model, expected)
    assert_alike(many, expected)


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


# --- any text ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(pure, reason="the pure engine takes a minute for it")
@pytest.mark.parametrize("n", [10_000_000, pytest.param(100_000_000, marks=pytest.mark.heavy)])
def test_a_line_of_many_megabytes(n, unchanged):
    line = "cheap pills for you, " * (n // 21)
    model = TextClassifier()
    scores = model.predict_learn_many([line, "see you", "cheap pills"], ["spam", "ham", "spam"]).scores
    assert scores[2] < 0  # for spam, the first label
    with unchanged(model):
        assert model.predict_one(line) == "spam"


# --- explanations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier", [AdaptiveClassifier(), PegasosClassifier(**OPTIONS)], ids=["adaptive", "pegasos"]
)
@pytest.mark.parametrize("features", [None, *FEATURES])
def test_contributions_of_ngrams_add_up_to_the_margin(features, classifier):
    bag = None if features is None else HashedBagOfWords(**FEATURES[features])
    model = TextClassifier(bag, classifier.clone())
    assert model.explain_ngrams_one("cheap") == {}
    model.learn_many(*zip(*messages(100), strict=True))
    for text in (
        "",
        "cheap pills at noon, cheap!",
        "a!b é 漢字 한국어 İstanbul never-seen",
        *(x for x, _ in messages(20, seed=3)),
    ):
        explanation = model.explain_ngrams_one(text)
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
    assert model.explain_ngrams_one("cheap pills at lunch")["cheap"] == pytest.approx(
        model.decision_function_one("cheap pills at lunch") - without
    )


def test_only_linear_models_explain():
    with pytest.raises(TypeError, match="KernelPegasosClassifier"):
        TextClassifier(classifier=KernelPegasosClassifier()).explain_ngrams_one("text")


@pytest.mark.heavy
@pytest.mark.skipif(pure, reason="the pure engine takes a minute for it")
def test_a_text_of_very_many_distinct_words():
    model, long = TextClassifier(), " ".join(f"w{chr(97 + i % 26)}{i:x}z" for i in range(200_000))
    for text, y in (*messages(20), (long, "spam"), (long[::-1], "ham"), *messages(20, seed=1)):
        assert math.isfinite(model.decision_function_one(text))
        model.learn_one(text, y)
    assert model.predict_one(long) == "spam"
    assert sum(model.explain_ngrams_one(long).values()) == pytest.approx(model.decision_function_one(long))


# --- bad input --------------------------------------------------------------------------------------------------------


# --- examples in fields -----------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("X", [pd.DataFrame({"text": ["a"]}), {"text": "a"}, [{"text": "a"}]], ids=range(3))
def test_what_has_its_text_in_a_field_says_how_to_name_the_field(X):
    model = TextClassifier()
    for call in (model.predict_many, lambda X: model.learn_many(X, ["ham"])):
        with pytest.raises(TypeError, match=r"on=|a sequence of texts, got a dict"):
            call(X)
    with pytest.raises(TypeError, match="on='NAME'"):
        model.learn_one({"text": "a"}, "ham")


def test_views_of_a_dict_are_in_order():
    labels = {"a b": "ham", "b c": "spam", "c a": "ham"}
    listed, viewed = TextClassifier(), TextClassifier()
    listed.learn_many([*labels], [*labels.values()], [1.0, 2.0, 3.0])
    viewed.learn_many(labels.keys(), labels.values(), {1.0: 0, 2.0: 0, 3.0: 0}.keys())
    assert_alike(listed, viewed)


def test_a_clone_with_attributes_keeps_what_was_learned_and_has_one_lock():
    model = TextClassifier()
    model.learn_many(["cheap pills", "lunch at noon"] * 5, ["spam", "ham"] * 5)
    copied, other = model.clone(include_attributes=True), copy.deepcopy(model)
    assert model.lock is model.classifier.lock and other.lock is other.classifier.lock is not model.lock
    assert copied.n_learned == 10 and copied.predict_one("pills") == "spam"
    assert copied.lock is copied.classifier.lock is not model.lock
    copied.learn_one("new", "ham")
    assert model.n_learned == 10
    changed = {"classifier": {"learning_rate": 0.25}}
    assert model.clone().n_learned == 0 and model.clone(changed).classifier.learning_rate == 0.25
    for each, new in ((model, changed), (model.classifier, {"threshold": 0.9})):
        with pytest.raises(ValueError, match="a copy with include_attributes keeps its parameters"):
            each.clone(new, include_attributes=True)
