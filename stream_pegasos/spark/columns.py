"""Columns of frames: checks of the input columns, and the columns of answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.features.message import ABSENT, get_field, select_fields, without
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.label_policy import common_value
from stream_pegasos.learners.probabilities import Floats
from stream_pegasos.learners.text import TextClassifier

__all__ = [
    "arranged",
    "arrow_of_answers",
    "check_apart",
    "check_column",
    "check_frame",
    "check_labels",
    "check_messages",
    "check_new",
    "check_order",
    "column",
    "hashed_columns",
    "label_type",
]

LONGEST = 1 << 63  # bound of the integers in a column
HASH, PLACE = "_hash", "_place"
TEXTS = (t.StringType,)
MAILS = (t.StringType, t.BinaryType)
FIELDS = (t.StructType,)
INTEGERS, FLOATS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType), (t.FloatType, t.DoubleType)
LABELS = (t.StringType, t.BooleanType, *INTEGERS, *FLOATS)
NUMBERS = (*INTEGERS, *FLOATS, t.DecimalType)
KINDS: dict[tuple[type[t.DataType], ...], str] = {
    TEXTS: "strings",
    MAILS: "strings or binary",
    FIELDS: "structs",
    LABELS: "strings, booleans or whole numbers",
    NUMBERS: "numbers",
}


def check_column(
    frame: DataFrame, purpose: str, name: str, types: tuple[type[t.DataType], ...], has_several: bool = False
) -> t.DataType:
    """The type of the column, or of the elements of its arrays if `has_several`. A ValueError if the column is missing,
    a TypeError if it has another type.
    """
    check_there(frame, purpose, name)
    found = frame.schema[name].dataType
    kind: t.DataType | None = found
    if has_several:
        kind = kind.elementType if isinstance(kind, t.ArrayType) else None
    if not isinstance(kind, types):
        expected = f"arrays of {KINDS[types]}" if has_several else KINDS[types]
        raise TypeError(f"column {name!r} is of type {found.simpleString()}; the {purpose} must be {expected}")
    return kind


def check_frame(frame: object) -> None:
    """Raise a TypeError if this is no Spark frame."""
    if not isinstance(frame, DataFrame):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        raise TypeError(f"frame must be one of Spark, got a {kind}; spark.createDataFrame(frame) makes one")


def check_apart(**columns: str | None) -> None:
    """Raise a ValueError if one column has two purposes."""
    names = [name for name in columns.values() if name is not None]
    for name in names:
        if names.count(name) > 1:
            purposes = " and ".join(purpose for purpose, other in columns.items() if other == name)
            raise ValueError(f"column {name!r} cannot be {purposes} at once")


def check_there(frame: DataFrame, purpose: str, name: str) -> None:
    """Raise a ValueError if a frame does not have this column."""
    if name not in frame.columns:
        raise ValueError(
            f"the frame has no column {name!r} for the {purpose}; it has {', '.join(map(repr, frame.columns))}"
        )


def check_new(frame: DataFrame, names: Iterable[str | None]) -> None:
    """Raise a ValueError if a frame already has one of these columns, or if two have the same name."""
    cased = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    there = [name if cased else name.casefold() for name in frame.columns]
    for name in names:
        if name is not None and not isinstance(name, str):
            raise TypeError(must_be("the name of a column", "a str", name))
        if name is not None and (name if cased else name.casefold()) in there:
            raise ValueError(f"the frame already has a column {name!r}, the name of a new one; rename it")
    for name, plain in zip(frame.columns, there, strict=True):
        if there.count(plain) > 1:
            raise ValueError(f"the frame has two columns {name!r}; rename one")


def check_order(frame: DataFrame, order: str | Sequence[str]) -> list[str]:
    """The columns to sort by, as a list; a single column may be a string. A ValueError if one is missing, a TypeError
    if its type has no order.
    """
    names = [order] if isinstance(order, str) else [*order]
    for name in names:
        check_there(frame, "order", name)
        kind = frame.schema[name].dataType
        if not is_ordered(kind):
            raise TypeError(f"column {name!r} is of type {kind.simpleString()}, which has no order")
    return names


def is_ordered(kind: t.DataType) -> bool:
    """Whether columns of this type can be sorted by."""
    if isinstance(kind, t.ArrayType):
        return is_ordered(kind.elementType)
    if isinstance(kind, t.StructType):
        return all(is_ordered(field.dataType) for field in kind.fields)
    return not isinstance(kind, (t.MapType, t.VariantType))


def check_labels(frame: DataFrame, name: str, model: TextClassifier) -> None:
    """Check a column of labels for learning: strings, booleans or integers. It raises the errors of `check_column`;
    also a TypeError if the column cannot hold any of the labels that the model knows, or if classes are ordered and the
    column cannot hold integers.
    """
    kind = check_column(frame, "labels", name, LABELS, Capability.MULTILABEL in model.capabilities)
    if isinstance(kind, t.StringType):
        return
    classes = model.classes
    if classes and all(isinstance(common_value(label), str) for label in classes if label is not None):
        raise TypeError(
            f"column {name!r} is of type {kind.simpleString()}, and the model has labels of type "
            f"{label_type(classes).simpleString()}"
        )
    if Capability.ORDINAL in model.capabilities and isinstance(kind, t.BooleanType):
        raise TypeError(f"column {name!r} is of type {kind.simpleString()}; ordered classes must be integers")


def label_type(labels: Iterable[Any]) -> t.DataType:
    """The type of a column that holds these labels: strings, unless all are booleans or all are integers."""
    labels = list(labels)
    kinds = {type(label) for label in labels if label is not None}
    if kinds == {bool}:
        return t.BooleanType()
    is_long = kinds == {int} and all(-LONGEST <= label < LONGEST for label in labels if label is not None)
    return t.LongType() if is_long else t.StringType()


def arranged(frame: DataFrame, order: Sequence[str], n_parts: int, spread_equal: bool = False) -> DataFrame:
    """A frame with this number of partitions, each sorted by these columns, then by a hash, so that the order is the
    same whenever it is computed, and equal rows are far apart. Equal rows are in one partition, unless `spread_equal`
    is true.
    """
    names, columns = frame.columns, hashed_columns(frame)
    frame = frame.withColumn(HASH, f.xxhash64(*columns))
    if not spread_equal:
        frame = frame.repartition(n_parts, f.col(HASH))
    # The rank among equal rows; their order does not matter.
    rank = f.row_number().over(Window.partitionBy(HASH).orderBy(*columns))
    frame = frame.withColumn(PLACE, f.xxhash64(f.col(HASH), rank))
    if spread_equal:
        frame = frame.repartition(n_parts, f.col(PLACE))
    return frame.sortWithinPartitions(*map(column, order), PLACE, *columns).select(*map(column, names))


def hashed_columns(frame: DataFrame) -> list[Column]:
    """The columns that distinguish rows: all columns that can be sorted by."""
    return [column(field.name) for field in frame.schema.fields if is_ordered(field.dataType)]


def column(name: str) -> Column:
    """The column of this name, even if the name contains dots."""
    return f.col(f"`{name.replace('`', '``')}`")


def arrow_of_answers(
    labels: Sequence[Any], classes: Sequence[Any], probabilities: Floats, of_label: t.DataType, has_several: bool
) -> tuple[pa.Array, pa.Array]:
    """Labels, or arrays of labels if `has_several`, and maps from each class to its probability."""
    kind = to_arrow_type(of_label)
    if isinstance(of_label, t.StringType):
        is_plain = all(isinstance(label, str) for label in classes)
        if not is_plain:  # the model may have labels of several types
            text = {label: None if label is None else str(label) for label in (None, *classes)}
            labels = [[text[single] for single in each] if has_several else text[each] for each in labels]
            classes = [text[label] for label in classes]
    known_columns = [column for column, label in enumerate(classes) if label is not None]
    n, width = len(labels), len(known_columns)
    names = pa.array([classes[column] for column in known_columns], kind)
    keys = names.take(pa.array(np.tile(np.arange(width), n)))
    offsets = pa.array(np.arange(n + 1, dtype=np.int32) * width)
    values = pa.array(np.ascontiguousarray(probabilities[:, known_columns], float).ravel())
    arrow_labels = pa.array(labels, pa.list_(kind) if has_several else kind)
    return arrow_labels, pa.MapArray.from_arrays(offsets, keys, values)


def check_messages(frame: DataFrame, name: str, model: TextClassifier) -> None:
    """Check that a column has the messages of a model: texts or, if the model reads several fields, structs with these.
    A ValueError or TypeError if it has not, or if the model is no text model.
    """
    if not isinstance(model, TextClassifier):
        raise TypeError(must_be("model", "a TextClassifier, which reads columns of messages", type_name(model)))
    if model.features.takes_text:
        is_mail = model.features.mail_field is not None
        check_column(frame, "mails" if is_mail else "texts", name, MAILS if is_mail else TEXTS)
        return
    schema, fields = check_column(frame, "messages", name, FIELDS), model.features.fields
    try:
        message = select_fields(make_example_value(schema), fields)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None
    lacking = [field for field in fields if get_field(message, field) is ABSENT]
    if lacking:
        warnings.warn(f"none of the messages in column {name!r} {without(lacking)}", stacklevel=3)


class AnyFields(dict[str, Any]):
    """An example of a map; the schema does not have the keys of maps."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> AnyFields:
        return self


def make_example_value(kind: t.DataType) -> Any:
    """An example of a message of this type, with all possible fields, to test which fields it has."""
    if isinstance(kind, t.StructType):
        return {field.name: make_example_value(field.dataType) for field in kind.fields}
    return AnyFields() if isinstance(kind, t.MapType) else None
