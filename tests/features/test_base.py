"""Features of several fields, added up."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from stream_pegasos import (
    AdaptiveClassifier,
    Category,
    HashedBagOfWords,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    load,
)
from stream_pegasos.engine.pure.scanner import murmur3_32, words_32
from stream_pegasos.features.base import FeatureUnion

SUBJECT_AND_BODY = TextFeatures(on="subject") + TextFeatures(on="body")
MESSAGES = [
    {"subject": "free stuff", "body": "see the prize", "sender": "a@b.c"},
    {"subject": "lunch?", "body": "are you free at noon"},
    {"body": "中文 free"},
    {"subject": None, "body": "ΣΑΣ"},
    {},
]
LABELS = ["spam", "ham", "spam", "ham", "ham"]


def test_columns_of_the_first_field_are_its_own_and_those_of_others_go_by_their_names():
    words = TextFeatures(letters=0, length=0)
    found = (words.clone({"on": "subject"}) + words.clone({"on": "body"})).transform_one(MESSAGES[0])
    value = 1.0 / np.sqrt(len(found))
    columns = {abs(np.int32(np.uint32(words_32(token.encode())))) % 2**30 for token in words.tokens("free stuff")}
    for token in words.tokens("see the prize"):
        columns.add(abs(np.int32(np.uint32(words_32(token.encode()) ^ murmur3_32(b"body")))) % 2**30)
    assert found == dict.fromkeys(columns, pytest.approx(value))
    alone, found = TextFeatures().transform_one("free stuff"), SUBJECT_AND_BODY.transform_one(MESSAGES[0])
    assert alone.keys() == SUBJECT_AND_BODY.transform_one({"subject": "free stuff"}).keys() < found.keys()


def test_one_and_many_and_frames():
    many = SUBJECT_AND_BODY.transform_many(MESSAGES)
    for row, message in zip(many, MESSAGES, strict=True):
        assert dict(zip(row.indices.tolist(), row.data, strict=True)) == SUBJECT_AND_BODY.transform_one(message)
    frame = pd.DataFrame([{"subject": x.get("subject"), "body": x.get("body", "")} for x in MESSAGES])
    frame["subject"] = [x.get("subject") for x in MESSAGES]
    assert (SUBJECT_AND_BODY.transform_many(frame.replace({np.nan: None})) != many).nnz == 0


@pytest.mark.parametrize("classifier", [AdaptiveClassifier(), PegasosClassifier(fit_intercept=True)], ids=str)
def test_a_model_of_fields(classifier, tmp_path):
    model = TextClassifier(SUBJECT_AND_BODY, classifier)
    model.keep_names()
    model.learn_many(MESSAGES * 3, LABELS * 3)
    explanation = model.explain_ngrams_one(MESSAGES[0])
    margin = model.decision_function_one(MESSAGES[0])
    assert sum(explanation.values()) == pytest.approx(margin) and "subject: free" in explanation
    assert {name.partition(": ")[0] for name in explanation} <= {"subject", "body", "(intercept)"}
    model.save(tmp_path / "fields.safetensors")
    loaded = load(tmp_path / "fields.safetensors")
    assert loaded.predict_proba_one(MESSAGES[1]) == model.predict_proba_one(MESSAGES[1])
    assert loaded.names.weights(loaded) == model.names.weights(model)
    assert loaded.features.fields == loaded.clone().features.fields == ("subject", "body")
    with pytest.raises(TypeError, match="a dict with the fields subject, body, got a str"):
        loaded.learn_one("free", "spam")
    with pytest.raises(TypeError, match="field 'subject' must be a str, got an int"):
        loaded.learn_one({"subject": 7}, "spam")
    assert loaded.weights == model.weights


def test_what_cannot_be_added_up():
    for fault, parts in (
        ("two parts or more", [TextFeatures(on="a")]),
        ("reads no field", [TextFeatures(on="a"), TextFeatures()]),
        ("two parts read the same field", [TextFeatures(on="a"), TextFeatures(on="a", prefix_length=0)]),
        ("n_features is 1073741824 of 'a', but 1048576 of 'b'", [TextFeatures(on="a"), HashedBagOfWords(on="b")]),
    ):
        with pytest.raises(ValueError, match=fault):
            FeatureUnion(parts)
    with pytest.raises(TypeError, match="must be features of this package"):
        FeatureUnion([TextFeatures(on="a"), "b"])
    with pytest.raises(ValueError, match="none of the columns"):
        SUBJECT_AND_BODY.transform_many(pd.DataFrame({"text": ["a"]}))
    assert type(TextFeatures() + TextFeatures(on="b")).__module__.startswith("river")


def test_two_fields_that_make_one_name():
    """Each column is explained for itself."""
    model = TextClassifier(TextFeatures(on="a", norm=None) + TextFeatures(on="a: b", norm=None))
    X = [{"a": "b: c", "a: b": "c"}, {"a": "x", "a: b": "y"}]
    model.learn_many(X * 3, [1, 0] * 3)
    assert sum(model.explain_ngrams_one(X[0]).values()) == pytest.approx(model.decision_function_one(X[0]))


def test_no_pattern_is_needed_where_none_is_used():
    for options in ({"tokenizer": str.split}, {"analyzer": "char"}):
        assert HashedBagOfWords(token_pattern=None, **options).transform_one("a b")


def test_an_index_is_right_while_messages_of_fields_are_learned():
    """The loop of the engine lends one table of hashes to each field in turn."""
    model = TextClassifier(TextFeatures(on="text") + Category(on="sender"))
    messages = [{"text": " ".join(f"w{i * k % 97}" for k in range(200)), "sender": f"s{i % 7}"} for i in range(300)]
    index = model.features.scanner.index
    expected = [index("w1", field) for field in (0, 1)]
    with ThreadPoolExecutor(1) as other:
        learned = other.submit(lambda: [model.learn_many(messages, ["spam", "ham"] * 150) for _ in range(20)])
        seen = {(*index("w1", 0), *index("w1", 1)) for _ in iter(learned.done, True)}
    assert seen <= {(*expected[0], *expected[1])} and model.n_learned == 6_000
