"""How a stream is read, described once: readers, live sources and the command take it as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stream_pegasos.common.cached import cached_property
from stream_pegasos.common.checks import must_be
from stream_pegasos.common.display import one_line
from stream_pegasos.streams.encoding import TextEncoding
from stream_pegasos.streams.example import Id, LabelFormat, RecordError, StreamError, Truth


class Format(NamedTuple):
    """What is to be known of a format before it is read."""

    endings: str = ""  # of the names of files
    has_fields: bool = False  # whether a message may be made of named fields
    has_lines: bool = True  # whether each record is a line
    has_features: bool = False  # whether a message is a dict of features, if it is not made of fields
    no_label: str = "no label in the field {!r}"


TABLE = {
    "jsonl": Format(".jsonl .ndjson .json", has_fields=True),
    "csv": Format(".csv", has_fields=True, has_lines=False),
    "tsv": Format(".tsv .tab", has_fields=True, has_lines=False),
    "labelled-text": Format(".txt", no_label="no label and tab before the text"),
    "fasttext": Format(".ft .fasttext", no_label="no __label__ before the text"),
    "vw": Format(".vw", has_fields=True, has_features=True, no_label="no label"),
    "svmlight": Format(".svmlight .svm .libsvm", has_features=True, no_label="no label"),
    "parquet": Format(".parquet", has_fields=True, has_lines=False),
    "mail": Format(".eml .emlx .mbox .mbx .mmdf", has_lines=False, no_label="no label in a header {!r}"),
    "text": Format(),
}
FORMATS = (*TABLE,)
EXTENSIONS = {ending: name for name, format in TABLE.items() for ending in format.endings.split()}


@dataclass(frozen=True)
class ReadOptions:
    """How a stream is read. `read` and `open_source` take it, or its fields as keywords.

    Parameters
    ----------
    format
        One of `FORMATS`, as in the table of `read`; by default that of the path's extension, or jsonl for standard
        input and other pipes without an extension; a folder is mail.
    text_field
        The field with the text in the formats jsonl, parquet, csv and tsv; `"text"` by default. In the first two `a.b`
        is the field b of the object a, unless a field is called `a.b`. In vw the namespace whose features are the words
        of the text; where none is named, `x` is the features of all.
    label_field
        The field with the label, named in the same way; in mail a header, such as `"X-Spam-Flag"`, which is taken
        out of the mail. `None` where messages need no label, and none is to be read, in any format.
    id_field
        The field with the id, a string or an integer, named in the same way. A record may lack it; columns that
        lack it are an error, unless it is `"id"`.
    labels
        Whether an example may have several labels, and what separates them if the format has no lists,
        as `LabelFormat(",")`; in svmlight and vw that is a comma unless it is named.
    delimiter
        The character between the fields of csv and tsv, if it is neither comma nor tab.
    escape
        The character that takes the special meaning from the next one in csv and tsv, as Spark and MySQL write a
        backslash before a quote; a quote within quotes may be doubled all the same. A field that is `\\N` is empty.
    columns
        The names of the columns of csv and tsv without a header.
    fields
        The fields that a message is made of, named as `text_field` is and read in its place: `x` is then a dict of
        those that the record has. In vw a field is a namespace, whose features are its text, or `a.b`, the value of the
        feature b of the namespace a.
    encoding
        The encoding of the text, by the name of one of Python's codecs; UTF-8 may have a byte order mark. Mail and
        Parquet say themselves how they are encoded.
    encoding_errors
        `"windows-1252"`: a line that is not UTF-8 is read as Windows-1252; `"strict"`: it is a bad line.
        With another encoding than UTF-8, a line that is not in it is always bad.
    unlabelled
        Whether to yield examples without a label, with `y` as `None`, and those whose label cannot be read, with their
        `label_fault`. Otherwise these are bad lines. A live source always yields them.
    unreadable
        Whether to yield an example for each record that cannot be read, too: with its line, its `fault`
        and, if that could be read, its id.
    are_labels
        Whether each record is the id of a message and its label, and nothing more.
    on_windows_1252
        Called for each line that is not UTF-8 and is read as Windows-1252.
    on_unread_field
        Called with the name of each field of a record that is not read, where a message is made of `fields`.
    on_lines_of_text
        Called where a stream in jsonl begins with neither `{` nor `[`: it is then read as the format text. Without it
        such lines are bad. Not for files and topics that are followed.
    on_blank_line
        Called for each empty line that is skipped, and for each comment of svmlight.

    Raises
    ------
    StreamError
        If an option is unknown, or if options do not go together. What depends on the format is checked once that is
        not `None`.
    """

    format: str | None = None
    text_field: str | None = None
    label_field: str | None = "label"
    id_field: str = "id"
    labels: LabelFormat = field(default=LabelFormat())
    delimiter: str | None = None
    escape: str | None = None
    columns: Sequence[str] | None = None
    fields: Sequence[str] = ()
    encoding: str = "utf-8"
    encoding_errors: str = "windows-1252"
    unlabelled: bool = False
    unreadable: bool = False
    are_labels: bool = False
    on_windows_1252: Callable[[], None] | None = None
    on_unread_field: Callable[[str], None] | None = None
    on_lines_of_text: Callable[[], None] | None = None
    on_blank_line: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        assert self.decoder is not None  # made now, so that an unknown encoding is told before the stream is opened
        if self.format is not None:
            self._check(self.format)

    def _check(self, format: str) -> None:
        names = self.message_fields
        if format not in FORMATS:
            raise StreamError(must_be("format", f"one of {', '.join(FORMATS)}", format))
        if self.label_field is None and not self.unlabelled:
            raise StreamError("no field has the label, which each message needs")
        if self.label_field in names:
            raise StreamError(f"text and label are the same field, {self.label_field!r}")
        if self.fields and not TABLE[format].has_fields:
            raise StreamError(f"a message of {format} has no fields, but {', '.join(self.fields)} are asked for")
        if format not in ("csv", "tsv") and (self.delimiter, self.escape, self.columns) != (None,) * 3:
            raise StreamError(f"a delimiter, an escape and columns are for csv and tsv, not for {format}")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            raise StreamError(must_be("the delimiter", "one character, no quote and no line end", self.delimiter))
        if self.escape is not None and (len(self.escape) != 1 or self.escape in '"\r\n\0 ' + (self.delimiter or ",")):
            raise StreamError(f"the escape must be one character, as \\, got {self.escape!r}")
        if self.columns is not None and not {*names} & {*self.columns}:
            missing = " or ".join(map(repr, names))
            raise StreamError(f"the list of columns has no field {missing}: {', '.join(map(one_line, self.columns))}")

    @cached_property
    def decoder(self) -> TextEncoding:
        return TextEncoding(self.encoding, self.encoding_errors, self.on_windows_1252)

    @cached_property
    def message_fields(self) -> tuple[str, ...]:
        """The fields of which a message needs at least one."""
        return tuple(self.fields) or (self.text_field or "text",)

    @cached_property
    def known(self) -> frozenset[str]:
        """The fields that are read, and the objects that hold them."""
        read = (*self.fields, *filter(None, [self.label_field]), self.id_field)
        return frozenset([*read, *(name.partition(".")[0] for name in read)])

    @property
    def record(self) -> str:
        """What `Example.line` counts."""
        return "mail" if self.format == "mail" else "line"

    def label(self, read: Callable[[Any], Truth | None], value: object) -> Truth | ValueError | None:
        """The label as `read` reads it, or in its place why that cannot be done: see `wrong_label`; `None` where labels
        are not read.
        """
        if self.label_field is None:
            return None
        try:
            return read(value)
        except ValueError as error:
            return self.wrong_label(error)

    def wrong_label(self, error: ValueError, id: Id | None = None) -> ValueError:
        """The error in the place of a label, as its message can be answered all the same; raised as a RecordError if
        messages need a label.
        """
        if self.unlabelled and not self.are_labels:
            return error
        raise RecordError(str(error), id) from None

    def report_unread(self, names: Iterable[str]) -> None:
        """Report the fields of a record that are not read, where a message is made of named fields."""
        if self.on_unread_field is not None and self.fields:
            for name in {*names} - self.known:
                self.on_unread_field(name)
