"""What a command reads."""

import os
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, islice
from time import perf_counter
from typing import IO, TYPE_CHECKING, Any, cast

import click

from stream_pegasos.cli.console import Failure, note, printable
from stream_pegasos.cli.options import MailOptions, StreamOptions, field_names

if TYPE_CHECKING:
    from stream_pegasos.learners.labels import AllowedLabels, Label
    from stream_pegasos.streams import Example, LabelFormat, Truth

DICT_FORMATS = ("vw", "svmlight")
REPORTED_BAD_LINES = 10
MOST_UNREAD = 1_000  # names of fields that are told; a stream may bring new ones without end


class Input:
    """What a command reads. Bad records are reported and counted."""

    name = "synthetic stream"
    format = "labelled-text"
    strict = False
    n_bad = 0  # records that could not be read or learned
    n_good = 0  # records read
    broken_off = ""  # why the rest of it was not read, where that failed
    n_windows_1252 = 0  # lines read as Windows-1252, since they are not UTF-8
    separator: str | None = None  # what stands between several labels
    several = False  # whether a message may have several labels
    fields: tuple[str, ...] = ()  # that a message is made of; none where it is a text
    text_fields: Sequence[str] = ("text",)
    label_field = "label"
    takes_lines = False  # whether the model reads lines of text
    labels_met: "Collection[Label]" = ("ham", "spam")  # and taken
    _n_told = 0  # of bad records
    _fault = ""  # of the newest one
    _next_note = 10 * REPORTED_BAD_LINES

    @property
    def is_mail(self) -> bool:
        """Whether a message is a mail, with its headers."""
        return self.format == "mail"

    @property
    def record(self) -> str:
        """What the lines of examples count."""
        return "mail" if self.is_mail else "line"

    def join_field_names(self, model: Any) -> None:
        """Read the fields that the model was taught from, where a stream has fields."""

    def look_ahead(self) -> None:
        """See from the first message with a label whether messages may have several, where that can be done."""

    def close(self) -> None:
        """Close what is open."""

    def report(self, where: str, reason: str) -> None:
        self.n_bad += 1
        # Where an option is wrong, all have the same fault, which is told once.
        fault, before = reason.partition(";")[0], self._fault
        self._fault = fault
        if self._n_told < REPORTED_BAD_LINES and (self.n_good or fault != before):
            self._n_told += 1
            note(f"{where} skipped: {reason}")
        elif self.n_bad == self._next_note:
            note(f"{self.n_bad:,} {self.record}s skipped, the newest of them {where}: {fault}")
            self._next_note *= 10

    def refuse(self, example: Any, reason: str) -> None:
        """Report an example that the model refuses to learn."""
        self.report(f"{self.record} {example.line}", reason)

    def report_rest(self) -> None:
        if rest := self.n_bad - self._n_told:
            note(f"{rest:,} more bad {self.record}{'s' * (rest != 1)} skipped")
        if self.n_windows_1252:
            lines, were = ("line", "was") if self.n_windows_1252 == 1 else ("lines", "were")
            note(f"{self.n_windows_1252:,} {lines} {were} not UTF-8 and {were} read as Windows-1252")

    def nothing(self, done: str) -> Failure:
        """The end of a command that has done nothing."""
        options = (
            "--label-field, --spam and --ham"
            if self.is_mail
            else "--format, --encoding, --text-field and --label-field"
        )
        hint = f"; see {options}" if self.n_bad and not self.n_good else ""
        return Failure(f"no message of {self.name} was {done}{hint}")


class SyntheticInput(Input):
    """The built-in stream."""

    def __init__(self, options: StreamOptions) -> None:
        self._limit = options.limit

    def __iter__(self) -> "Iterator[Example]":
        from stream_pegasos.streams import Example, synthetic

        for line, (text, label) in enumerate(islice(synthetic(), self._limit), 1):
            yield Example(text, label, 1.0, line)

    def done(self) -> float | None:
        return None


class _ChosenInput(Input):
    """What the options say of a stream that is no synthetic one."""

    def __init__(self, address: str, options: StreamOptions) -> None:
        from stream_pegasos.streams import FORMATS, format_of

        if options.format is not None and options.format not in FORMATS:
            raise click.BadParameter(f"{options.format!r} is none of {', '.join(FORMATS)}", param_hint="--format")
        if options.text_field is not None:
            self.text_fields = tuple(field_names(options.text_field))
        if not self.text_fields:
            raise click.BadParameter(f"{options.text_field!r} names no field", param_hint="--text-field")
        self.label_field = options.label_field or "label"
        if self.label_field in self.text_fields:
            raise click.BadParameter("text and label are the same field", param_hint="--text-field")
        self.name = "standard input" if address == "-" else address
        if os.path.isfile(address):
            from stream_pegasos.learners.files import begins_as_model

            if begins_as_model(address):
                raise Failure(f"{address} is a model, not messages; a model is given before FILE, or by --load")
        self.format = options.format or ("jsonl" if "://" in address else format_of(address))
        self.strict = options.strict
        self.separator = _separator(options.label_separator)
        self.several = self.separator is not None
        self.allowed = allowed_labels(options.labels)
        self.labels_met: dict[Label, None] = {}  # in the order in which they came
        self._unread: set[str] = set()  # fields that were told of
        self._address = address
        self._options = options
        self._columns = None if options.columns is None else [name.strip() for name in options.columns.split(",")]
        self._delimiter = "\t" if options.delimiter == r"\t" else options.delimiter

    def _count_windows_1252(self) -> None:
        self.n_windows_1252 += 1

    def _tell_of_unread_field(self, name: str) -> None:
        if name not in self._unread and len(self._unread) < MOST_UNREAD:
            self._unread.add(name)
            note(f"the field {printable(name)} is none that the model reads")

    def tell_of_keyboard(self) -> None:
        if self._address == "-" and sys.stdin is not None and sys.stdin.isatty():
            end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
            note(f"reading {self.format} from the keyboard; {end} it")

    def _tell_of_lines_of_text(self) -> None:
        note(f"{self.name} begins with neither {{ nor [ and is read as lines of text; --format says otherwise")

    @property
    def _on_lines_of_text(self) -> Callable[[], None] | None:
        """What is told where standard input is lines of text, if it may be: a person types no JSON."""
        may_be = self._address == "-" and self._options.format is None and self.takes_lines
        return self._tell_of_lines_of_text if may_be else None

    @property
    def how_written(self) -> dict[str, Any]:
        """The options of readers that say how the records are written."""
        return {
            "text_field": self.text_fields[0],
            "label_field": self.label_field,
            "id_field": self._options.id_field,
            "fields": self.fields,
            "on_unread_field": self._tell_of_unread_field if self.strict else None,
            "encoding": self._options.encoding,
            "on_windows_1252": self._count_windows_1252,
        }

    def join_field_names(self, model: Any) -> None:
        """Read the fields that the model was taught from, where no option says otherwise; the model keeps the names."""
        names = {**model.field_names}
        if self._options.text_field is not None and len(self.text_fields) == 1:
            names["text_field"] = self.text_fields[0]
        if self._options.label_field is not None:
            names["label_field"] = self.label_field
        if self._options.text_field is None and "text_field" in names:
            self.text_fields = (names["text_field"],)
        self.label_field = names.get("label_field", self.label_field)
        model.field_names = names

    @property
    def written(self) -> "LabelFormat":
        """How labels are written."""
        from stream_pegasos.streams import LabelFormat

        return LabelFormat(self.separator, self.several)

    def meet_label(self, label: "Truth | None") -> str | None:
        """Take note of a label; what is wrong with it, if anything."""
        fault = self.label_fault(label)
        if fault is None and label is not None:
            self.labels_met.update(dict.fromkeys(label if isinstance(label, tuple) else (label,)))
        return fault

    def label_fault(self, label: "Truth | None") -> str | None:
        """What is wrong with a label, if anything."""
        if isinstance(label, tuple) and not self.several:
            some = ", ".join(map(printable, label))
            return f"its label is a list, [{some}], and the model takes one label; for several see --multi-label"
        if label is None or self.allowed is None:
            return None
        for each in label if isinstance(label, tuple) else (label,):
            if not self.allowed.takes(each):
                return f"label {printable(each)} is none of {', '.join(map(printable, self.allowed.labels))}"
        return None


def _separator(text: str | None) -> str | None:
    if text is not None and (not text or text.isspace() or not text.isprintable()):
        raise click.BadParameter(f"{text!r} cannot separate labels, as , or ; can", param_hint="--label-separator")
    return text


def allowed_labels(text: str | None) -> "AllowedLabels | None":
    """The labels that --labels names."""
    from stream_pegasos.learners.labels import AllowedLabels
    from stream_pegasos.streams import label_of

    if text is None:
        return None
    labels = tuple(label for part in text.split(",") if (label := label_of(part)) is not None)
    if len(set(labels)) != text.count(",") + 1 or len(labels) < 2:
        raise click.BadParameter(f"{text!r} is not two labels or more, as in ham,spam", param_hint="--labels")
    return AllowedLabels(labels)


class LiveInput(_ChosenInput):
    """A stream that is followed."""

    def meet_label(self, label: "Truth | None") -> str | None:
        self.n_good += 1  # as far as is known before the end
        return super().meet_label(label)

    def open(self, position: Any, follow: bool, whole_lines: bool) -> Any:
        self.tell_of_keyboard()
        form: dict[str, Any] = {"format": self._options.format, "delimiter": self._delimiter, "columns": self._columns}
        if self.allowed is None:
            form["on_lines_of_text"] = self._on_lines_of_text
        return self._open(self._address, position, follow, whole_lines, **form, unreadable=True)

    def open_labels(self, address: str, position: Any, follow: bool, whole_lines: bool) -> Any:
        return self._open(address, position, follow, whole_lines, labels=True)

    def _open(self, address: str, position: Any, follow: bool, whole_lines: bool, **options: Any) -> Any:
        from stream_pegasos.streams import open_source

        return open_source(
            address,
            position,
            written=self.written,
            **self.how_written,
            follow=follow,
            whole_lines=whole_lines,
            on_bad=self.report,
            on_event=note,
            **options,
        )


class FileInput(_ChosenInput):
    """A stream from a file or standard input, read to its end.

    With `unreadable` what cannot be read has its place in it, too.
    """

    def __init__(self, source: str, options: StreamOptions, unlabelled: bool = False, unreadable: bool = False) -> None:
        super().__init__(source, options)
        if self.format == "text" and not unlabelled:
            raise Failure(f"{self.name} is lines of text, which have no labels to learn; they are for predict and run")
        self._unlabelled, self._unreadable = unlabelled, unreadable
        self._file: IO[bytes] | None = None
        self._pipe: IO[bytes] | None = None  # which a thread reads
        self._ahead: Iterator[Example] | None = None  # what is read, once some was
        self._is_open = False  # whether the first message is to tell if messages may have several labels

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def is_pipe(self) -> bool:
        """Whether a read may wait for others to write."""
        try:
            status = os.fstat(sys.stdin.fileno()) if self._address == "-" else os.stat(self._address)
        except (OSError, ValueError, AttributeError):
            return False
        return not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode))

    def in_thread(self) -> "Iterator[Example]":
        """The stream for a thread to read, which holds nothing up where it waits at the end of the process."""
        # It is never closed, which would wait for the thread; nor does Python lock what it does not know at exit.
        is_standard = self._address == "-"
        self._pipe = cast(Any, sys.stdin).detach() if is_standard else open(self._address, "rb")  # noqa: SIM115
        yield from self._read()

    def look_ahead(self) -> None:
        self._is_open = True
        examples = self._read()
        first: list[Example] = []
        for example in examples:
            first.append(example)
            if example.fault is None:
                break
        self._ahead = chain(first, examples)

    def __iter__(self) -> "Iterator[Example]":
        examples, self._ahead = self._ahead or self._read(), None
        return examples

    def _read(self) -> "Iterator[Example]":
        from stream_pegasos.streams.example import StreamError, Truncated

        if self._pipe is None:
            self.tell_of_keyboard()
        try:
            yield from _first(self._with_known_labels(self._examples()), self._options.limit)
        except StreamError as error:
            if not self.n_good:
                raise
            self.report("the rest", str(error))
            self.broken_off = (
                "the input ended within a compressed block"
                if isinstance(error, Truncated)
                else "the rest could not be read"
            )

    def _examples(self) -> "Iterator[Example]":
        from stream_pegasos.streams import read

        with ExitStack() as stack:
            source: Any = self._address
            if self._pipe is not None:
                source = self._pipe
            elif self._address != "-" and not (self.is_mail and os.path.isdir(self._address)):
                source = self._file = stack.enter_context(open(self._address, "rb"))
            yield from read(
                source,
                format=self.format,
                labels=self.written,
                delimiter=self._delimiter,
                columns=self._columns,
                **self.how_written,
                unlabelled=self._unlabelled,
                unreadable=self._unreadable,
                on_bad_line=self._report_bad_line,
                on_lines_of_text=self._on_lines_of_text if self._unlabelled else None,
            )

    def _report_bad_line(self, line: int, reason: str) -> None:
        self.report(f"{self.record} {line}", reason)

    def _with_known_labels(self, examples: "Iterable[Example]") -> "Iterator[Example]":
        for example in examples:
            self.n_good += example.fault is None
            if self._unlabelled or example.fault is not None:
                yield example
                continue
            if self._is_open:
                self._is_open, self.several = False, isinstance(example.y, tuple)
            if self.several and not isinstance(example.y, tuple) and example.y is not None:
                example = example._replace(y=(example.y,))  # it was read before that was known
            fault = self.meet_label(example.y)
            if fault is not None:
                self.report(f"{self.record} {example.line}", fault)
                example = example._replace(fault=fault)
            if fault is None or self._unreadable:
                yield example

    def done(self) -> float | None:
        """The part that is read, between 0 and 1, where the length is known."""
        if self._file is None or not os.path.isfile(self._address):
            return None
        if self._file.closed:
            return 1.0
        return self._file.tell() / max(1, os.fstat(self._file.fileno()).st_size)


class LabelledMail(FileInput):
    """Mails that are labelled by the folders that they are in."""

    def __init__(self, mails: MailOptions, options: StreamOptions, unreadable: bool = False) -> None:
        if options.format not in (None, "mail"):
            raise click.BadParameter(f"{options.format!r} is not mail, as --spam and --ham are", param_hint="--format")
        real = [{os.path.realpath(path) for path in paths} for paths in mails.given.values()]
        if len(real) > 1 and (both := set.intersection(*real)):
            raise click.BadParameter(f"{min(both)} is given for both labels", param_hint="--spam, --ham")
        super().__init__(mails.paths[0], replace(options, format="mail"), unreadable=unreadable)
        self.name = ", ".join(mails.paths)
        self._mails = mails

    def _examples(self) -> "Iterator[Example]":
        from stream_pegasos.streams import read_mail

        return read_mail(self._mails.given, unreadable=self._unreadable, on_bad_line=self._report_bad_line)


def labelled_input(file: str | None, mails: MailOptions, options: StreamOptions, unreadable: bool = False) -> FileInput:
    """What a command learns: the file, or mails."""
    if mails.given:
        if file is not None:
            raise click.BadParameter("mails with a label are given in place of FILE", param_hint="--spam, --ham")
        return LabelledMail(mails, options, unreadable)
    if file is None:
        raise click.MissingParameter(param_hint="'FILE'", param_type="argument")
    return FileInput(file, options, unreadable=unreadable)


def _first(examples: "Iterator[Example]", limit: int | None) -> "Iterator[Example]":
    """The first ones, up to a number of those that could be read."""
    rest = limit
    while rest != 0 and (example := next(examples, None)) is not None:
        yield example
        if rest is not None:
            rest -= example.fault is None


def bad_lines(source: Input) -> str:
    bad = f"{source.n_bad:,} bad {source.record}{'s' * (source.n_bad != 1)}"
    return f"{bad}, {source.broken_off}" if source.broken_off else bad


@contextmanager
def progress_bar(source: SyntheticInput | FileInput) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda n, text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    start = perf_counter()
    with Progress(
        BarColumn(bar_width=24),
        TextColumn("{task.fields[n]:,} docs, {task.fields[rate]:,.0f} docs/s"),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None, n=0, rate=0.0, text="")

        def progress(n: int, text: str) -> None:
            done = source.done()
            bar.update(
                task,
                total=None if done is None else 1.0,
                completed=done or 0.0,
                n=n,
                rate=n / (perf_counter() - start),
                text=text,
            )

        yield progress
