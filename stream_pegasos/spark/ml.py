"""An estimator and a model of `pyspark.ml`, for pipelines, evaluators and cross-validation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from pyspark.ml import Estimator, Model
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param import Param, TypeConverters
from pyspark.ml.param.shared import HasInputCol, HasLabelCol, HasPredictionCol, HasProbabilityCol, HasWeightCol
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    Identifiable,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.loading import load
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.spark.columns import column, label_type
from stream_pegasos.spark.frame_learning import History, learn
from stream_pegasos.spark.scoring import score

__all__ = ["SparkTextClassifier", "SparkTextClassifierModel"]

LONGEST_VECTOR = 10_000  # of probabilities, whose indexes are the labels
LARGEST_PIECE = 16 << 20  # bytes of a model in a row; a task of Spark takes less than 128 MB
PIECES = "piece int, content binary"


class Undefined(Identifiable):
    """The owner of a class's parameter; `Params` copies the parameter to each object under this name."""

    def __init__(self) -> None:
        self.uid = "undefined"


def text_classifier(value: object) -> TextClassifier:
    if not isinstance(value, TextClassifier):
        raise TypeError(must_be("model", "a TextClassifier", type_name(value)))
    return value


class Columns(HasInputCol, HasPredictionCol, HasProbabilityCol, MLReadable[Any], MLWritable):
    """The common part of the estimator and the model: columns, saving and loading."""

    def setParams(self, **params: Any) -> Self:
        """Set parameters by their names; `None` changes nothing."""
        self._set(**{name: value for name, value in params.items() if value is not None})
        return self

    def saved_model(self) -> TextClassifier | None:
        raise NotImplementedError

    def take_saved(self, metadata: dict[str, Any], model: TextClassifier | None) -> None:
        """Restore the saved state."""
        self._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(self, metadata)

    def write(self) -> MLWriter:
        return Writer(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        return ModelReader(cls)


class SparkTextClassifier(Estimator[Any], Columns, HasLabelCol, HasWeightCol):
    """`learn` as an `Estimator` of `pyspark.ml`, for a `Pipeline` and for tuning by a `CrossValidator`.

    It is saved with its parameters and the initial model. It needs a classic session: Spark Connect has no broadcast,
    which sends models to workers, and `fit` and `transform` raise a TypeError there.

    Parameters
    ----------
    model : TextClassifier or None, default None
        The model to continue with, which is not changed; with `None`, each `fit` begins a new one. It is a parameter
        like others: `addGrid(estimator.model, [...])` compares models.
    inputCol : str, default "text"
        The column of texts, or of structs: `text` of `learn`.
    labelCol : str, default "label"
        The column of labels. Doubles that are integers are labels, too.
    predictionCol : str, default "prediction"
        The name of the model's column of labels; see `SparkTextClassifierModel`.
    probabilityCol : str, default "probability"
        The name of the model's column of probabilities.
    weightCol : str or None, default None
        The column of weights: `weight` of `learn`.
    orderCol : str or None, default None
        The column to sort by: `order` of `learn`.
    parts : int or None, default None
        As in `learn`.
    roundSize : int or None, default None
        `round_size` of `learn`.
    passes : int, default 1
        As in `learn`.

    Examples
    --------

    >>> from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    >>> from stream_pegasos.spark import SparkTextClassifier

    >>> rows = [("cheap pills", 1.0), ("see you at lunch", 0.0)] * 20
    >>> frame = spark.createDataFrame(rows, ["text", "label"])
    >>> fitted = SparkTextClassifier(parts=1).fit(frame)
    >>> MulticlassClassificationEvaluator().evaluate(fitted.transform(frame))
    1.0
    >>> fitted.model.predict_one("pills")
    1

    """

    model: Param[TextClassifier] = Param(Undefined(), "model", "the TextClassifier to continue with", text_classifier)
    orderCol: Param[str] = Param(Undefined(), "orderCol", "column to sort by.", TypeConverters.toString)
    parts: Param[int] = Param(Undefined(), "parts", "how many parts learn at once (>= 1).", TypeConverters.toInt)
    roundSize: Param[int] = Param(Undefined(), "roundSize", "messages of a round (>= 1).", TypeConverters.toInt)
    passes: Param[int] = Param(Undefined(), "passes", "how often all is learned (>= 1).", TypeConverters.toInt)

    def __init__(
        self,
        *,
        model: TextClassifier | None = None,
        inputCol: str = "text",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        weightCol: str | None = None,
        orderCol: str | None = None,
        parts: int | None = None,
        roundSize: int | None = None,
        passes: int = 1,
    ) -> None:
        super().__init__()
        self.setParams(
            model=model,
            inputCol=inputCol,
            labelCol=labelCol,
            predictionCol=predictionCol,
            probabilityCol=probabilityCol,
            weightCol=weightCol,
            orderCol=orderCol,
            parts=parts,
            roundSize=roundSize,
            passes=passes,
        )

    def _fit(self, dataset: DataFrame) -> SparkTextClassifierModel:
        def value(param: Param[Any]) -> Any:
            return self.getOrDefault(param) if self.isDefined(param) else None

        history = learn(
            dataset,
            self.saved_model(),
            text=self.getInputCol(),
            label=self.getLabelCol(),
            weight=value(self.weightCol),
            parts=value(self.parts),
            order=value(self.orderCol) or (),
            round_size=value(self.roundSize),
            passes=value(self.passes),
        )
        fitted = SparkTextClassifierModel(history.model, history)
        return self._copyValues(fitted)

    def saved_model(self) -> TextClassifier | None:
        return self.getOrDefault(self.model) if self.isDefined(self.model) else None

    def take_saved(self, metadata: dict[str, Any], model: TextClassifier | None) -> None:
        super().take_saved(metadata, model)
        self.setParams(model=model)


class SparkTextClassifierModel(Model, Columns):
    """`score` as a `Model` of `pyspark.ml`, made by `SparkTextClassifier.fit` or from a `TextClassifier`.

    If all labels are integers from 0 to 9,999, the column of predictions has doubles and the column of probabilities
    has vectors, in which the index of a probability is its label, as evaluators need them. Otherwise both are as in
    `score`: labels, and maps from label to probability. A message that cannot be read has nulls.

    A loaded model finds word vectors and encoders as `load` does without `vectors`. If it needs those of your own file,
    make it from a model file: `SparkTextClassifierModel(load("model.safetensors", vectors=...))`.

    Parameters
    ----------
    model : TextClassifier or None, default None
        The model; `None` for a new one.
    history : History or None, default None
        The result of `learn`, with its `evaluation`; `None` if the model was loaded.
    """

    def __init__(self, model: TextClassifier | None = None, history: History | None = None) -> None:
        super().__init__()
        self.model = TextClassifier() if model is None else text_classifier(model)
        self.history = history
        self._setDefault(inputCol="text")

    def _transform(self, dataset: DataFrame) -> DataFrame:
        labels = [label for label in self.model.classes if label is not None]
        prediction, probability = self.getPredictionCol(), self.getProbabilityCol()
        answered = score(
            dataset, self.model, text=self.getInputCol(), prediction=prediction, probabilities=probability, error=None
        )
        if Capability.MULTILABEL in self.model.capabilities or not are_places(labels):
            return answered
        vectors = vector(column(probability), labels)
        return answered.withColumns({prediction: column(prediction).cast("double"), probability: vectors})

    def saved_model(self) -> TextClassifier | None:
        return self.model

    def take_saved(self, metadata: dict[str, Any], model: TextClassifier | None) -> None:
        super().take_saved(metadata, model)
        self.model = text_classifier(model)


def are_places(labels: Sequence[Any]) -> bool:
    """Whether labels can be indexes of a vector."""
    return label_type(labels) == t.LongType() and min(labels) >= 0 and max(labels) < LONGEST_VECTOR


def vector(probabilities: Column, labels: Sequence[Any]) -> Column:
    """Vectors of the values of maps, each at the index of its label; the maps have these labels in this order."""
    places = [labels.index(label) if label in labels else -1 for label in range(max(labels) + 1)]
    values = f.map_values(probabilities)
    placed = f.transform(f.lit(places), lambda place: f.coalesce(f.get(values, place), f.lit(0.0)))
    return f.when(probabilities.isNotNull(), array_to_vector(placed))


class Writer(MLWriter):
    """Saves metadata as `pyspark.ml` does, and the bytes of the model as a frame, on any filesystem of Spark."""

    def __init__(self, instance: Columns) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        instance, model = self._instance, self._instance.saved_model()
        named = [param for param in instance.params if instance.isSet(param) and param.name != "model"]
        DefaultParamsWriter.saveMetadata(
            instance,
            path,
            self.sparkSession,
            {"hasModel": model is not None},
            {param.name: instance.getOrDefault(param) for param in named},
        )
        if model is not None:
            rows = [*enumerate(pieces(model))]
            # One partition for each piece, so that no task is too large.
            content = self.sparkSession.sparkContext.parallelize(rows, len(rows))
            self.sparkSession.createDataFrame(content, PIECES).write.parquet(f"{path}/model")


class ModelReader(MLReader[Any]):
    """Loads the files of a `Writer`."""

    def __init__(self, kind: type[Columns]) -> None:
        super().__init__()
        self._kind = kind

    def load(self, path: str) -> Any:
        kind = f"{self._kind.__module__}.{self._kind.__name__}"
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        if metadata["class"] != kind:
            raise ValueError(f"{path} must hold a {kind}, got a {metadata['class']}; load it by that class")
        loaded = self._kind()
        loaded.take_saved(metadata, read_model(self.sparkSession, f"{path}/model") if metadata["hasModel"] else None)
        return loaded


def pieces(model: TextClassifier) -> Iterator[bytearray]:
    """The bytes of a model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        model.save(path)
        with path.open("rb") as file:
            while content := file.read(LARGEST_PIECE):
                yield bytearray(content)


def read_model(spark: SparkSession, path: str) -> TextClassifier:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.safetensors")
        with file.open("wb") as opened:
            for row in spark.read.schema(PIECES).parquet(path).orderBy("piece").toLocalIterator():
                opened.write(row.content)
        return text_classifier(load(file))
