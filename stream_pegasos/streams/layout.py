"""How the records of a stream are written."""

from __future__ import annotations

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

    @property
    def message_fields(self) -> tuple[str, ...]:
        """The fields that a message needs one of."""
        return self.fields or (self.text_field,)
