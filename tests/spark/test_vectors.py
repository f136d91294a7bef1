"""Models with vectors on Spark: workers find a table or an encoder by its name, or are sent one that was a mapping."""

import importlib.util

import pytest

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.spark

MESSAGES = list(synthetic(400, seed=2))
TEXTS, LABELS = zip(*MESSAGES, strict=True)
MAPPING = {word: [len(word) / 9, float("a" in word)] for text in TEXTS for word in text.lower().split()}
SCHEMA = "text string, label string"


@pytest.fixture(params=["wordllama", "a mapping"])
def begin(request):
    if request.param == "wordllama" and importlib.util.find_spec("wordllama") is None:
        pytest.skip("the extra 'vectors' is not installed")
    return TextClassifier(TextFeatures(vectors=MAPPING if request.param == "a mapping" else request.param))


def state_of(model):
    arrays, _, values = model.to_state()
    return {name: array.tolist() for name, array in arrays.items()}, values


def test_history_and_scores(spark, tmp_path, begin):
    from stream_pegasos.spark import learn, score

    frame = spark.createDataFrame(MESSAGES, SCHEMA)
    model = learn(frame, begin, parts=2, round_size=200).model
    assert model.n_learned == len(MESSAGES) and model.vector_source == begin.vector_source
    model.predict_many(TEXTS)  # as the workers met the words
    model.save(tmp_path / "model", vectors=True)
    for given in model, tmp_path / "model":
        found = score(frame, given, probabilities=None).collect()
        assert sum(row.prediction == row.label for row in found) > 0.9 * len(found)


def test_in_order_the_model_is_that_of_one_machine(spark, begin):
    from stream_pegasos.spark import learn

    frame = spark.createDataFrame([(i, *message) for i, message in enumerate(MESSAGES)], f"i long, {SCHEMA}")
    model = begin.clone()
    model.learn_many(TEXTS, LABELS)
    assert state_of(learn(frame, begin, parts=1, order="i").model) == state_of(model)


def test_an_encoder_is_found_by_its_name(spark):
    from stream_pegasos.spark import learn, score

    frame = spark.createDataFrame(MESSAGES[:200], SCHEMA)
    model = learn(frame, TextClassifier(TextFeatures(vectors="use")), parts=2).model
    assert model.n_learned == 200 and model.vector_source.name == "use"
    found = score(frame, model, probabilities=None).collect()
    assert sum(row.prediction == row.label for row in found) > 180
