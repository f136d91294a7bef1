"""JSON lines: the text, the label and the id of one record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

import orjson

from stream_pegasos.learners.labels import Label
from stream_pegasos.streams.example import LabelFormat, Parsed, RecordError, Truth, label_of, together


def json_parser(text_field: str, label_field: str, labels: LabelFormat) -> Callable[[bytes], Parsed]:
    def parse(line: bytes) -> Parsed:
        record = _json_record(line)
        id = _json_id(record)
        try:
            return _json_text(record, text_field), _json_label(record, label_field, labels), 1.0, id
        except ValueError as error:
            raise RecordError(str(error), id) from None

    return parse


def json_label_parser(label_field: str, labels: LabelFormat) -> Callable[[bytes], Parsed]:
    """The parser of a line that holds no text but the label of the message with its `id`."""

    def parse(line: bytes) -> Parsed:
        record = _json_record(line)
        label = _json_label(record, label_field, labels)
        if label is None:
            raise ValueError(f"no field {label_field!r}")
        return "", label, 1.0, _json_id(record)

    return parse


def _json_record(line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        record = _lenient_json(line, error)
    if type(record) is not dict:
        raise ValueError(f"not a JSON object but {_json_type(record)}")
    return record


def _json_text(record: dict[str, Any], text_field: str) -> str:
    text = record.get(text_field)
    if type(text) is str:
        return text
    if text_field not in record:
        raise ValueError(f"no field {text_field!r}")
    raise ValueError(f"field {text_field!r} is {_json_type(text)}, not a string")


def _json_label(record: dict[str, Any], label_field: str, labels: LabelFormat) -> Truth | None:
    label = record.get(label_field)
    if type(label) is str:
        return labels.of_text(label)
    if type(label) is list:
        several = [_one_label(each, label_field) for each in label]
        if None in several:
            raise ValueError(f"field {label_field!r} is a list with an empty label")
        return together(each for each in several if each is not None)
    return labels.of_label(_one_label(label, label_field))


def _one_label(label: Any, label_field: str) -> Label | None:
    if type(label) is str:
        return label_of(label)
    if type(label) is float:
        # Beyond 2**53 the integer that was written is lost.
        if not label.is_integer() or abs(label) > 2**53:
            raise ValueError(f"label {label} is not an integer")
        return int(label)
    if type(label) is list or type(label) is dict:
        raise ValueError(f"field {label_field!r} is {_json_type(label)}, not a label")
    return label  # type: ignore[no-any-return]


def _json_id(record: dict[str, Any]) -> Any:
    """The id, where it is one: a string or an integer. Others may not come back as they were from a checkpoint, and an
    integer beyond 64 bits has become a float, as have its neighbours.
    """
    id = record.get("id")
    return id if type(id) is str or type(id) is int else None


def _lenient_json(line: bytes, error: orjson.JSONDecodeError) -> Any:
    """What orjson refuses: a lone surrogate is legal in a text. Other errors get their reason."""
    line.decode()
    if b"\\ud" in line or b"\\uD" in line:
        try:
            return json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            pass
    raise ValueError(f"not JSON ({error.msg}, column {error.colno})")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _json_type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")
