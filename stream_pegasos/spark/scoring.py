"""Predictions of a model for a frame of texts."""

from __future__ import annotations

import os
import pickle
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from stream_pegasos.blocks.blockwise import REFUSALS
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.loading import load
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.spark.columns import arrow_of_answers, check_frame, check_messages, check_new, column, label_type
from stream_pegasos.spark.model_parts import NO_TEXT, TEXT_NOT_UTF8, column_values, unread_messages
from stream_pegasos.spark.shared_files import ModelFile, find_context

__all__ = ["score"]

ANSWER = "_answer"


def score(
    frame: DataFrame,
    model: TextClassifier | str | os.PathLike[str],
    *,
    text: str = "text",
    prediction: str = "prediction",
    probabilities: str | None = "probabilities",
    error: str | None = "error",
    vectors: object = None,
) -> DataFrame:
    """Add the predictions of a model for each text: the label, and the probability of each label.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The texts, of a batch or of a stream.
    model : TextClassifier, str or os.PathLike
        A `TextClassifier`, which is sent once to each process of each worker; or the path of a model file that all
        workers can read, which each process loads once.
    text : str, default "text"
        The column of texts; or of structs with the fields, if the features of the model read several. The answers are
        null if it is null or the message cannot be read, e.g. if a text is not UTF-8, or a number or a time is not
        valid.
    prediction : str, default "prediction"
        The name of the new column of labels: strings, or booleans or integers if all labels of the model are; arrays of
        these if a text may have several.
    probabilities : str or None, default "probabilities"
        The name of the new column of probabilities, maps from label to double; `None` for no such column, which is
        faster if there are many labels.
    error : str or None, default "error"
        The name of the new column with the reason why a message could not be read, null if it could; `None` for no such
        column. `frame.groupBy("error").count()` counts these messages.
    vectors : str, os.PathLike, mapping, encoder or None, default None
        The word vectors or the encoder of a model in a file, as for `load`.

    Raises
    ------
    ValueError, TypeError
        If a column is missing or of another type, a new one exists already, or the model is no text model.
    OSError
        If the model file cannot be read.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.spark import score

    >>> model = TextClassifier()
    >>> model.learn_many(["see you at lunch", "cheap pills for you"], ["ham", "spam"])
    >>> frame = spark.createDataFrame([("cheap pills",), ("lunch?",)], ["text"])
    >>> score(frame, model).select("text", "prediction").show()
    +-----------+----------+
    |       text|prediction|
    +-----------+----------+
    |cheap pills|      spam|
    |     lunch?|       ham|
    +-----------+----------+
    <BLANKLINE>

    """
    check_frame(frame)
    if prediction is None:
        raise TypeError("prediction must be the name of the new column of labels, got None")
    check_new(frame, [prediction, probabilities, error, ANSWER])
    names = [name for name in (prediction, probabilities, error) if name is not None]
    if len({*names}) < len(names):
        raise ValueError(f"new columns must have different names, got {', '.join(map(repr, names))}")
    path = os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
    loaded = cast(TextClassifier, model if path is None else load(path, vectors))
    check_messages(frame, text, loaded)
    label_texts = [str(label) for label in loaded.classes]
    if len(set(label_texts)) < len(label_texts):
        raise ValueError("the model has labels that differ only in type, such as 1 and '1'; a column cannot hold both")
    of_label, has_several = label_type(loaded.classes), Capability.MULTILABEL in loaded.capabilities
    fields = {prediction: t.ArrayType(of_label, False) if has_several else of_label}
    if probabilities is not None:
        fields[probabilities] = t.MapType(of_label, t.DoubleType(), False)
    if error is not None:
        fields[error] = t.StringType()
    try:
        shared: Broadcast[Any] = find_context(frame).broadcast(loaded if path is None else ModelFile(path, vectors))
    except pickle.PicklingError as error:
        raise TypeError(
            f"the model cannot be sent to workers; its functions must be a module's, no lambda: {error}"
        ) from None

    def said(texts: pa.Array) -> pa.Array:
        model = shared.value if path is None else shared.value.model
        messages, unread = column_values(texts)
        faults = [NO_TEXT if message is None else None for message in messages]
        try:
            predictions = model.predictions([x for x in messages if x is not None] if any(faults) else messages)
        except REFUSALS:
            faults = unread_messages(model, messages)
            predictions = model.predictions([x for x, fault in zip(messages, faults, strict=True) if fault is None])
        for row in unread:
            faults[row] = TEXT_NOT_UTF8
        whole = predictions.probabilities if probabilities is not None else predictions.probabilities[:, :0]
        classes = predictions.classes[: whole.shape[1]]
        answers = arrow_of_answers(predictions.labels.tolist(), classes, whole, of_label, has_several)
        columns, errors = [*answers[: 1 if probabilities is None else 2]], pa.array(faults, pa.string())
        if errors.null_count < len(errors):
            place = pc.subtract(pc.cumulative_sum(pc.cast(errors.is_null(), pa.int64())), 1)
            columns = [column.take(pc.if_else(errors.is_null(), place, None)) for column in columns]
        return pa.StructArray.from_arrays([*columns, *([errors] if error is not None else [])], [*fields])

    kind = t.StructType([t.StructField(name, of) for name, of in fields.items()])
    # Otherwise a filter on the answer would make Spark score the rows again.
    answer = f.arrow_udf(said, kind).asNondeterministic()(column(text))  # type: ignore[attr-defined]
    answered = frame.select("*", answer.alias(ANSWER))
    return answered.select(*map(column, frame.columns), *(f.col(ANSWER)[name].alias(name) for name in fields))
