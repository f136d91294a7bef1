"""The stream that the options of a command describe."""

import os
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli.console import Failure, check_choice
from stream_pegasos.cli.options import MailOptions, StreamOptions, field_names, read_label

if TYPE_CHECKING:
    from stream_pegasos.learners.label_policy import Label
    from stream_pegasos.learners.model import Model


class Stream:
    """A stream with its address and its checked options; nothing is read yet. The address is a path, that of a live
    source, or `-`; `None` means the synthetic stream. If mails are given, by label, they are read instead.
    """

    def __init__(
        self, address: str | None, options: StreamOptions, mails: MailOptions | None = None, reads_labels: bool = True
    ) -> None:
        from stream_pegasos.streams import FORMATS, format_of

        check_choice(options.format, FORMATS, "--format")
        self.address, self.options = address, options
        self.reads_labels = reads_labels  # of a field that cannot be the field of the text
        self.mails = {} if mails is None else mails.given
        self.attached = mails is not None and mails.attached
        self.text_fields = tuple(field_names(options.text_field or ""))  # empty if no option names any
        if options.text_field is not None and not self.text_fields:
            raise click.BadParameter(f"{options.text_field!r} names no field", param_hint="--text-field")
        if reads_labels and (options.label_field or "label") in (self.text_fields or ("text",)):
            raise click.BadParameter("text and label are the same field", param_hint="--text-field")
        self.separator = _separator(options.label_separator)
        self.listed = listed_labels(options.labels)
        self.written = _written(options.read)
        if self.mails:
            self._check_mails()
            self.name, self.format = ", ".join(path for paths in self.mails.values() for path in paths), "mail"
        elif address is None:
            self.name, self.format = "synthetic stream", "labelled-text"
        else:
            self._check_is_no_model(address)
            self.name = "standard input" if address == "-" else address
            self.format = options.format or format_of(address)

    @property
    def has_features(self) -> bool:
        """Whether a message is a dict of features, if it is not made of fields."""
        from stream_pegasos.streams.read_options import TABLE

        return TABLE[self.format].has_features

    @property
    def is_mail(self) -> bool:
        """Whether a message is a mail, with its headers."""
        return self.format == "mail"

    def text_fields_for(self, model: "Model") -> tuple[str, ...]:
        """The fields of the text: those of the option, or else those from which the model learned."""
        return self.text_fields or (model.field_names.get("text_field", "text"),)

    def _check_mails(self) -> None:
        if self.options.format not in (None, "mail"):
            raise click.BadParameter(
                f"{self.options.format!r} is not mail, as --spam and --ham are", param_hint="--format"
            )
        real = [{os.path.realpath(path) for path in paths} for paths in self.mails.values()]
        if len(real) > 1 and (files_of_both := set.intersection(*real)):
            raise click.BadParameter(f"{min(files_of_both)} is given for both labels", param_hint="--spam, --ham")

    @staticmethod
    def _check_is_no_model(address: str) -> None:
        if os.path.isfile(address):
            from stream_pegasos.learners.files import begins_as_model

            if begins_as_model(address):
                raise Failure(
                    f"{address} is a model, not messages; a model stands before FILE, as in predict MODEL FILE"
                )


def labelled_stream(file: str | None, mails: MailOptions, options: StreamOptions) -> Stream:
    """The stream that a command learns: the file, or mails."""
    if mails.given and file is not None:
        raise click.BadParameter("mails with a label are given in place of FILE", param_hint="--spam, --ham")
    if not mails.given and file is None:
        raise click.MissingParameter(param_hint="'FILE'", param_type="argument")
    if mails.attached and not mails.given:
        raise click.BadParameter("it is for mails of --spam and --ham", param_hint="--attached")
    stream = Stream(file, options, mails)
    if stream.format == "text":
        raise Failure(f"{stream.name} is lines of text, which have no labels to learn; they are for predict and run")
    return stream


def _written(read: tuple[str, ...]) -> dict[str, Any]:
    """The format of a file, by the names of `ReadOptions`."""
    values: dict[str, Any] = {}
    for path in read:
        name, equals, value = path.partition("=")
        if name not in ("encoding", "delimiter", "escape", "columns") or not equals:
            ways = "encoding=…, delimiter=…, escape=… or columns=…"
            raise click.BadParameter(f"must be {ways}, got {path!r}", param_hint="--read-option")
        values[name] = value
    if values.get("delimiter") == r"\t":
        values["delimiter"] = "\t"
    if values.get("escape") == r"\\":  # the form of a backslash if the shell keeps both characters
        values["escape"] = "\\"
    if "columns" in values:
        values["columns"] = [name.strip() for name in values["columns"].split(",")]
    return values


def _separator(text: str | None) -> str | None:
    if text is not None and (not text or text.isspace() or not text.isprintable()):
        raise click.BadParameter(f"{text!r} cannot separate labels, as , or ; can", param_hint="--label-separator")
    return text


def listed_labels(text: str | None) -> "tuple[Label, ...] | None":
    """The labels in --labels."""
    if text is None:
        return None
    labels = tuple(label for part in text.split(",") if (label := read_label(part, "--labels")) is not None)
    if len(set(labels)) != text.count(",") + 1 or len(labels) < 2:
        raise click.BadParameter(f"{text!r} is not two labels or more, as in ham,spam", param_hint="--labels")
    return labels
