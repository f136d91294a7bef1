"""The fields of a record: of a JSON object or a row of Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stream_pegasos.common.display import one_line
from stream_pegasos.features.message import ABSENT, PLAIN, Fields, Message, check_depth, get_field
from stream_pegasos.streams.encoding import TextEncoding
from stream_pegasos.streams.example import Id, Parsed, RecordError, Truth, id_meant
from stream_pegasos.streams.read_options import ReadOptions

_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
# Limits of the list of fields in the error about a missing field.
MOST_NAMES, LONGEST_NAME = 20, 50


def parsed_fields(record: object, options: ReadOptions) -> Parsed:
    """Read message, label, weight and id; a `RecordError` if the message, or a needed label, cannot be read."""
    if type(record) is not dict:
        raise ValueError(f"it must be a JSON object, got {_kind(record)}")
    id = _id(record, options.id_field)
    try:
        message = "" if options.are_labels else _message(record, options)
    except ValueError as error:
        raise RecordError(str(error), id) from None
    y: Truth | ValueError | None
    try:
        y = _label(record, options)
    except ValueError as error:
        y = options.wrong_label(error, id)
    return message, y, 1.0, id


def _message(record: dict[str, Any], options: ReadOptions) -> Message:
    fields, field = options.fields, options.message_fields[0]
    message = (
        message_of_fields(record, fields) if fields else record[field] if field in record else get_field(record, field)
    )
    if options.on_unread_field is not None:
        options.report_unread(record)
    if message is ABSENT:
        raise ValueError(_no_field(record, field))
    if not fields and type(message) is not str:
        raise ValueError(f"field {field!r} must be a string, got {_kind(message)}")
    return message


def _id(record: dict[str, Any], field: str) -> Id | None:
    return id_meant(record[field] if field in record else get_field(record, field) if "." in field else None)


def decode_fields(record: dict[str, Any], names: Iterable[str], options: ReadOptions) -> None:
    """Decode fields of a record that are bytes; a `RecordError` if they cannot be decoded."""
    for name in sorted(names, key=options.id_field.__ne__):  # the id first: an error contains it
        try:
            record[name] = _decoded(record[name], options.decoder)
        except ValueError as error:
            id = None if name == options.id_field else record.get(options.id_field)
            raise RecordError(f"field {name!r} is {error}", id) from None


def _decoded(value: object, decoder: TextEncoding) -> Any:
    if isinstance(value, bytes):
        return decoder.text(value)
    if isinstance(value, dict):
        return {name: _decoded(item, decoder) for name, item in value.items()}
    return [_decoded(item, decoder) for item in value] if isinstance(value, list) else value


def message_of_fields(record: dict[str, Any], names: Iterable[str]) -> Fields:
    """Make a message of those fields that the record has; a ValueError if it has none, or one is nested too deep."""
    values = {name: get_field(record, name) for name in names}
    message = Fields({name: value for name, value in values.items() if value is not ABSENT})
    if not message:
        raise ValueError(_no_field(record, *names))
    if not PLAIN.issuperset(map(type, message.values())):
        for value in message.values():
            check_depth(value)
    return message


def columns_to_read(options: ReadOptions, has: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """The fields that every record needs, and all fields that are read, if records are rows of columns."""
    message_columns = [name for name in options.fields if has(name)] or [options.message_fields[0]]
    label = options.label_field
    if label is not None and not options.unlabelled:
        message_columns.append(label)
    other_columns = [name for name in (label, options.id_field) if name is not None and has(name)]
    if options.id_field != "id":
        other_columns.append(options.id_field)
    return message_columns, [*dict.fromkeys([*message_columns, *other_columns])]


def _no_field(record: dict[str, Any], *fields: str) -> str:
    missing = f"no field {' or '.join(map(repr, fields))}"
    names = [one_line(name[:LONGEST_NAME]) for name in [*record][:MOST_NAMES]] + ["…"] * (len(record) > MOST_NAMES)
    return f"{missing}; its fields: {', '.join(names)}" if names else missing


def _label(record: dict[str, Any], options: ReadOptions) -> Truth | None:
    field, labels = options.label_field, options.labels
    if field is None:
        return None
    value = record[field] if field in record else get_field(record, field)  # most are direct, and a call takes time
    if value is ABSENT:
        if options.are_labels:
            raise ValueError(f"no field {field!r}")
        if not options.unlabelled:
            raise ValueError(_no_field(record, field))
        return None
    if type(value) is str:
        label = labels.of_text(value)
    else:
        try:
            label = labels.of_list(value) if type(value) is list else labels.of_label(value)
        except ValueError as error:
            raise ValueError(f"field {field!r}: {error}") from None
    if label is None and options.are_labels:
        raise ValueError(f"no label in the field {field!r}")
    return label


def _kind(value: object) -> str:
    return "null" if value is None else _NAMES.get(type(value), f"a value of type {type(value).__name__}")
