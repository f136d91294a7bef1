"""Models with vectors on Spark: workers find a table or an encoder by its name, or are sent one that was a mapping."""

import importlib.util
import json

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
    model = learn(frame, begin, parts=2, round_size=100).model
    assert model.n_learned == len(MESSAGES) and model.vector_source == begin.vector_source
    assert state_of(learn(frame, begin, parts=2, round_size=100).model) == state_of(model)
    model.predict_many(TEXTS)  # as the workers met the words
    model.save(tmp_path / "model", vectors=True)
    for given in model, tmp_path / "model":
        found = score(frame, given, probabilities=None).collect()
        assert sum(row.prediction == row.label for row in found) > 0.9 * len(found)


def test_a_stream(spark, tmp_path, begin):
    """It is learned in order, and gone on with."""
    from stream_pegasos.spark import learn_stream

    (tmp_path / "in").mkdir()
    for number in range(2):
        lines = [json.dumps({"text": text, "label": label}) for text, label in MESSAGES[number::2]]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines))
        stream = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
        learning = learn_stream(stream, tmp_path / "out", begin, trigger={"availableNow": True})
        learning.query.awaitTermination()
    model = begin.clone()
    for number in range(2):
        model.learn_many(TEXTS[number::2], LABELS[number::2])
    assert state_of(learning.model) == state_of(model)


def test_an_encoder_is_found_by_its_name(spark):
    from stream_pegasos.spark import learn, score

    frame = spark.createDataFrame(MESSAGES[:200], SCHEMA)
    model = learn(frame, TextClassifier(TextFeatures(vectors="use")), parts=2).model
    assert model.n_learned == 200 and model.vector_source.name == "use"
    found = score(frame, model, probabilities=None).collect()
    assert sum(row.prediction == row.label for row in found) > 180
