"""How the records of a stream are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from stream_pegasos.streams.encoding import Encoding
from stream_pegasos.streams.example import LabelFormat


class Layout(NamedTuple):
    """How the records of a stream are written: the options of `read` that say so."""

    format: str
    text_field: str
    label_field: str
    id_field: str
    labels: LabelFormat
    encoding: Encoding
    delimiter: str | None = None
    columns: tuple[str, ...] | None = None
    labelled: bool = False  # whether a record without a label is bad
    fields: tuple[str, ...] = ()  # that a message is made of; it is the text of the text field if there are none

    on_unread_field: Callable[[str], None] | None = None  # told of the others of a record
    on_lines_of_text: Callable[[], None] | None = None  # told where what may be JSON is lines of text; else it is none

    def tell_of_unread(self, names: Iterable[str]) -> None:
        """Tell of those fields of a record that are not read, where messages are made of some."""
        if self.on_unread_field is not None and self.fields:
            read = (*self.fields, self.label_field, self.id_field)
            for name in {*names} - {*read, *(name.partition(".")[0] for name in read)}:
                self.on_unread_field(name)

    @property
    def record(self) -> str:
        """What `Example.line` counts."""
        return "mail" if self.format == "mail" else "line"

    @property
    def message_fields(self) -> tuple[str, ...]:
        """The fields that a message needs one of."""
        return self.fields or (self.text_field,)
