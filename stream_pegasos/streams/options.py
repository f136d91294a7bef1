"""The options of `read` and `open_source`, as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from stream_pegasos.common.display import one_line
from stream_pegasos.streams.encoding import Encoding
from stream_pegasos.streams.example import LabelFormat, StreamError

ENDINGS = {
    "jsonl": ".jsonl .ndjson .json",
    "csv": ".csv",
    "tsv": ".tsv .tab",
    "labelled-text": ".txt",
    "fasttext": ".ft .fasttext",
    "vw": ".vw",
    "svmlight": ".svmlight .svm .libsvm",
    "parquet": ".parquet",
    "mail": ".eml .mbox .mbx",
}
EXTENSIONS = {ending: format for format, endings in ENDINGS.items() for ending in endings.split()}
FORMATS = (*ENDINGS, "text")
WITHOUT_FIELDS = ("labelled-text", "fasttext", "svmlight", "mail", "text")
ONE_LABEL = LabelFormat()


class ReadKeywords(TypedDict, total=False):
    """The keywords that `read` and `open_source` share, for type checkers."""

    format: str | None
    text_field: str
    label_field: str
    id_field: str
    delimiter: str | None
    columns: Sequence[str] | None
    fields: Sequence[str]
    encoding: str
    encoding_errors: str
    unreadable: bool
    on_windows_1252: Callable[[], None] | None
    on_unread_field: Callable[[str], None] | None
    on_lines_of_text: Callable[[], None] | None
    on_blank_line: Callable[[], None] | None


@dataclass(frozen=True)
class ReadOptions:
    """How a stream is read; the docstring of `read` says what each option means.

    Raises
    ------
    StreamError
        If an option is unknown, or if options do not go together. What depends on the format is checked once that is
        not `None`.
    """

    format: str | None = None
    text_field: str = "text"
    label_field: str = "label"
    id_field: str = "id"
    labels: LabelFormat = ONE_LABEL
    delimiter: str | None = None
    columns: Sequence[str] | None = None
    fields: Sequence[str] = ()
    namespace_is_text: bool = False  # whether a message of vw is the text of the namespace `text_field`
    encoding: str = "utf-8"
    encoding_errors: str = "windows-1252"
    unlabelled: bool = False
    unreadable: bool = False
    on_windows_1252: Callable[[], None] | None = None
    on_unread_field: Callable[[str], None] | None = None
    on_lines_of_text: Callable[[], None] | None = None
    on_blank_line: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        assert self.decoder is not None  # made now, so that an unknown encoding is told before the stream is opened
        if self.format is not None:
            self._check()

    def _check(self) -> None:
        names = self.message_fields
        if self.format not in FORMATS:
            raise StreamError(f"unknown format {self.format!r}: choose one of {', '.join(FORMATS)}")
        if self.label_field in names:
            raise StreamError(f"text and label are the same field, {self.label_field!r}")
        if self.fields and self.format in WITHOUT_FIELDS:
            raise StreamError(f"a message of {self.format} has no fields, but {', '.join(self.fields)} are asked for")
        if self.format not in ("csv", "tsv") and not (self.delimiter is None and self.columns is None):
            raise StreamError(f"a delimiter and columns are for csv and tsv, not for {self.format}")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            raise StreamError(f"the delimiter is {self.delimiter!r}, not one character that may stand between fields")
        if self.columns is not None and not {*names} & {*self.columns}:
            missing = " or ".join(map(repr, names))
            raise StreamError(f"the list of columns has no field {missing}: {', '.join(map(one_line, self.columns))}")

    @cached_property
    def decoder(self) -> Encoding:
        return Encoding(self.encoding, self.encoding_errors, self.on_windows_1252)

    @cached_property
    def message_fields(self) -> tuple[str, ...]:
        """The fields of which a message needs at least one."""
        return tuple(self.fields) or (self.text_field,)

    @property
    def record(self) -> str:
        """What `Example.line` counts."""
        return "mail" if self.format == "mail" else "line"

    def report_unread(self, names: Iterable[str]) -> None:
        """Report the fields of a record that are not read, where a message is made of named fields."""
        if self.on_unread_field is not None and self.fields:
            read = (*self.fields, self.label_field, self.id_field)
            for name in {*names} - {*read, *(name.partition(".")[0] for name in read)}:
                self.on_unread_field(name)
