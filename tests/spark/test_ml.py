"""The estimator and the model of `pyspark.ml`."""

import gc

import numpy as np
import pytest
from parts import assert_same

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, TextClassifier
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.spark

MESSAGES = list(synthetic(400, seed=3))
TEXTS, LABELS = zip(*MESSAGES, strict=True)


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(i, text, float(label == "spam"), 1 + i % 2) for i, (text, label) in enumerate(MESSAGES)]
    return spark.createDataFrame(rows, "id long, text string, target double, w int").cache()


def test_a_pipeline_fits_transforms_and_is_evaluated_saved_and_loaded(spark, frame, tmp_path, monkeypatch):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.feature import SQLTransformer

    from stream_pegasos.spark import SparkTextClassifier, learn, ml

    monkeypatch.setattr(ml, "LARGEST_PIECE", 100_000)
    begin = TextClassifier()
    begin.learn_many(TEXTS[:50], [int(label == "spam") for label in LABELS[:50]])
    estimator = SparkTextClassifier(model=begin, inputCol="body", labelCol="target", weightCol="w", orderCol="id")
    estimator.setParams(parts=1, passes=2, probabilityCol="p")
    renaming = SQLTransformer(statement="SELECT *, text AS body FROM __THIS__")
    Pipeline(stages=[renaming, estimator]).save(str(tmp_path / "pipeline"))
    fitted = Pipeline.load(str(tmp_path / "pipeline")).fit(frame)
    expected = learn(frame, begin, label="target", weight="w", order="id", parts=1, passes=2)
    assert_same(fitted.stages[1].model, expected.model)
    assert fitted.stages[1].history.score.n == 800
    fitted.write().overwrite().save(str(tmp_path / "fitted"))
    loaded = PipelineModel.load(str(tmp_path / "fitted"))
    assert_same(loaded.stages[1].model, expected.model)
    answered = loaded.transform(frame)
    assert dict(answered.dtypes)["prediction"] == "double" and dict(answered.dtypes)["p"] == "vector"
    rows = answered.orderBy("id").collect()
    said = expected.model.predictions(TEXTS)
    assert [row.prediction for row in rows] == said.labels.tolist()
    assert np.array([row.p.toArray() for row in rows]) == pytest.approx(said.probabilities[:, np.argsort(said.classes)])
    accuracy, loss = (
        MulticlassClassificationEvaluator(labelCol="target", probabilityCol="p", metricName=name).evaluate(answered)
        for name in ("accuracy", "logLoss")
    )
    right = said.labels == np.array([label == "spam" for label in LABELS])
    assert accuracy == pytest.approx(right.mean()) and 0.0 < loss < 0.2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Spark leaves its threads open
def test_models_are_compared_by_cross_validation(frame):
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    from stream_pegasos.spark import SparkTextClassifier

    estimator = SparkTextClassifier(labelCol="target", parts=1)
    slow = TextClassifier(classifier=AdaptiveClassifier(learning_rate=1e-6, naive_bayes=False))
    grid = ParamGridBuilder().addGrid(estimator.model, [slow, TextClassifier()]).build()
    evaluator = MulticlassClassificationEvaluator(labelCol="target", metricName="accuracy")
    validator = CrossValidator(estimator=estimator, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, seed=1)
    found = validator.fit(frame)
    assert found.avgMetrics[0] < found.avgMetrics[1] and found.avgMetrics[1] > 0.9
    assert found.bestModel.model.n_learned == 400 and slow.n_learned == 0
    gc.collect()


def test_labels_that_are_no_places_in_a_vector_stay_as_they_are(spark, tmp_path):
    from stream_pegasos.spark import SparkTextClassifier, SparkTextClassifierModel

    rows = [(text, label, [label], -1.0 if label == "ham" else 1.0, 3.0) for text, label in MESSAGES[:100]]
    frame = spark.createDataFrame(rows, "text string, name string, names array<string>, sign double, three double")
    several = TextClassifier(classifier=MultiLabelClassifier())
    for label, model, kind, key in (
        ("name", None, "string", "string"),
        ("names", several, "array<string>", "string"),
        ("sign", None, "bigint", "bigint"),
    ):
        fitted = SparkTextClassifier(model=model, labelCol=label, parts=1).fit(frame)
        types = dict(fitted.copy().transform(frame).dtypes)
        assert (types["prediction"], types["probability"]) == (kind, f"map<{key},double>")
    fitted = SparkTextClassifier(labelCol="three", parts=1).fit(frame)
    fitted.save(str(tmp_path / "model"))
    loaded = SparkTextClassifierModel.load(str(tmp_path / "model"))
    answered = loaded.transform(spark.createDataFrame([("lunch",), (None,)], "text string")).collect()
    assert answered[0].prediction == 3.0
    assert answered[0].probability.toArray().tolist() == [0.0, 0.0, 0.0, pytest.approx(0.99, abs=0.01)]
    assert answered[1].prediction is answered[1].probability is None
    with pytest.raises(TypeError, match="model must be a TextClassifier, got an AdaptiveClassifier"):
        SparkTextClassifier(model=AdaptiveClassifier())
    with pytest.raises(ValueError, match=r"must hold a stream_pegasos.spark.ml.SparkTextClassifier, got a"):
        SparkTextClassifier.load(str(tmp_path / "model"))
