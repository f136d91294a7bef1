"""The options of reading a stream, shared by readers, live sources and the command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stream_pegasos.common.cached import cached_property
from stream_pegasos.common.display import one_line
from stream_pegasos.common.errors import must_be
from stream_pegasos.streams.encoding import TextEncoding
from stream_pegasos.streams.example import Id, LabelFormat, RecordError, StreamError, Truth


class Format(NamedTuple):
    """Properties of a format that are needed before it is read."""

    endings: str = ""  # of file names
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
    """Options of reading a stream, for `read` and `open_source`, as an object or as keywords.

    Parameters
    ----------
    format : str or None, default None
        One of `FORMATS`, as in the table of `read`. The default follows from the extension of the path; it is jsonl for
        standard input and other pipes without an extension, and mail for a folder.
    text_field : str or None, default None
        The field with the text in the formats jsonl, parquet, csv and tsv; `None` means `"text"`. In jsonl and parquet
        `a.b` is the field b of the object a, unless a field is called `a.b`. In vw it is the namespace whose features
        are the words of the text; with `None`, `x` has the features of all namespaces.
    label_field : str or None, default "label"
        The field with the label, named in the same way; in mail a header, such as `"X-Spam-Flag"`, which is removed
        from the mail. With `None` no label is read, in any format, and none is needed.
    id_field : str, default "id"
        The field with the id, a string or an integer, named in the same way. A record may lack it. Columns must have
        it, unless it is `"id"`.
    labels : LabelFormat, default LabelFormat()
        Whether an example may have several labels, and their separator if the format has no lists, as
        `LabelFormat(",")`. In svmlight and vw the default separator is a comma.
    delimiter : str or None, default None
        The character between the fields of csv and tsv; `None` means a comma for csv and a tab for tsv.
    escape : str or None, default None
        The escape character of csv and tsv, such as the backslash that Spark and MySQL write before a quote. A quote
        within quotes may also be doubled. A field that is `\\N` is empty.
    columns : sequence of str or None, default None
        The names of the columns of csv and tsv without a header.
    fields : sequence of str, default ()
        The fields of a message, named like `text_field` and read instead of it: `x` is a dict of those fields that the
        record has. In vw a field is a namespace, whose features are its text, or `a.b`, the value of the feature b of
        the namespace a.
    encoding : str, default "utf-8"
        The encoding of the text, by the name of one of Python's codecs; UTF-8 may have a byte order mark. Mail and
        Parquet declare their own encoding.
    encoding_errors : {"windows-1252", "strict"}, default "windows-1252"
        `"windows-1252"`: a line that is not UTF-8 is read as Windows-1252; `"strict"`: it is a bad line. If `encoding`
        is not UTF-8, a line in another encoding is always bad.
    unlabelled : bool, default False
        Whether to yield examples without a label (`y` is `None`) and examples with an unreadable label (with their
        `label_fault`). Otherwise these are bad lines. A live source always yields them.
    unreadable : bool, default False
        Whether to yield an example also for each record that cannot be read: with its line, its `fault` and, if it
        could be read, its id.
    are_labels : bool, default False
        Whether each record is the id of a message and its label, without the message.
    on_windows_1252 : callable or None, default None
        Called for each line that is not UTF-8 and is read as Windows-1252.
    on_unread_field : callable or None, default None
        Called with the name of each field of a record that is not read, if `fields` is set.
    on_lines_of_text : callable or None, default None
        Called if a stream in jsonl begins with neither `{` nor `[`: it is then read in the format text. Without it,
        such lines are bad. It is not used for files and topics that are followed.
    on_blank_line : callable or None, default None
        Called for each empty line that is skipped, and for each comment line of svmlight.

    Raises
    ------
    StreamError
        If an option is unknown, or if options contradict each other. Options that depend on the format are checked once
        it is known.
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
        assert self.decoder is not None  # made early, to report an unknown encoding before the stream is opened
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
        """The fields of a message; it needs at least one of them."""
        return tuple(self.fields) or (self.text_field or "text",)

    @cached_property
    def known(self) -> frozenset[str]:
        """The fields that are read, and the objects that contain them."""
        read = (*self.fields, *filter(None, [self.label_field]), self.id_field)
        return frozenset([*read, *(name.partition(".")[0] for name in read)])

    @property
    def record(self) -> str:
        """The unit that `Example.line` counts."""
        return "mail" if self.format == "mail" else "line"

    def label(self, read: Callable[[Any], Truth | None], value: object) -> Truth | ValueError | None:
        """The label that `read` makes of the value, or the error of `wrong_label`; `None` if no labels are read."""
        if self.label_field is None:
            return None
        try:
            return read(value)
        except ValueError as error:
            return self.wrong_label(error)

    def wrong_label(self, error: ValueError, id: Id | None = None) -> ValueError:
        """The error, which takes the place of the label: the message can still be answered. If messages need a label,
        it is raised as a RecordError.
        """
        if self.unlabelled and not self.are_labels:
            return error
        raise RecordError(str(error), id) from None

    def report_unread(self, names: Iterable[str]) -> None:
        """Report the fields of a record that are not read, if a message is made of named fields."""
        if self.on_unread_field is not None and self.fields:
            for name in {*names} - self.known:
                self.on_unread_field(name)
