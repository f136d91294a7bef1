"""The input stream of a command, and reports of its bad records."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, replace
from difflib import get_close_matches
from itertools import chain
from time import perf_counter
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from stream_pegasos.cli.console import Failure, note
from stream_pegasos.cli.models import message_fields, new_model, takes_lines, takes_several, takes_text
from stream_pegasos.cli.options import ModelOptions
from stream_pegasos.cli.stream import Stream
from stream_pegasos.common.display import printable

if TYPE_CHECKING:
    from stream_pegasos.blocks.predicted import Labelled
    from stream_pegasos.learners.label_policy import Label
    from stream_pegasos.learners.model import Model
    from stream_pegasos.streams import Example, Source, Truth

REPORTED_BAD_LINES = 10
MOST_UNUSED = 1_000  # labels that are noted where labels are not used
MOST_LOOKED_AT = 10  # messages
MOST_UNREAD = 1_000  # names of unread fields that are reported; a stream may have any number


class Input:
    """A stream as input of a command, read for a model: the model decides the fields, and whether a message may have
    several labels. Bad records are reported and counted; with `unreadable` they are also yielded, with their faults.
    `known_labels` are labels beside those of the model, e.g. of other models that read the same stream.
    """

    def __init__(
        self,
        stream: Stream,
        model: "Model",
        *,
        unlabelled: bool = False,
        unreadable: bool = False,
        known_labels: "Iterable[Label]" = (),
    ) -> None:
        from stream_pegasos.learners.label_policy import LabelPolicy
        from stream_pegasos.streams import LabelFormat, ReadOptions

        self.stream, self.model, self.name, self.strict = stream, model, stream.name, stream.options.strict
        self.record = "mail" if stream.is_mail else "line"
        self.fields = message_fields(model)
        self.several = takes_several(model)
        self._known = dict.fromkeys([*model.classes, *known_labels])
        self._policy = LabelPolicy(self._known, allowed=stream.listed)
        self.n_bad = 0  # records that could not be read or learned
        self.n_good = 0  # records read
        self.n_blank = 0  # blank lines that were skipped
        self.n_windows_1252 = 0  # lines read as Windows-1252, because they are not UTF-8
        self.broken_off = ""  # the reason, if reading ended early
        self.labels_met: dict[Label, None] = {}  # in order of appearance
        self._refused: Counter[Label] = Counter()  # labels that are not among the listed ones
        self._n_reported = 0  # bad records reported individually
        self._fault = ""  # of the newest bad record
        self._next_note = 10 * REPORTED_BAD_LINES
        self._unread: set[str] = set()  # reported fields
        self._file: IO[bytes] | None = None
        self._ahead: Iterator[Example] | None = None  # all examples, once the first one was read
        self._n_looked_at = self._n_mails = 0  # the first messages, and how many of them look like whole mails
        self._is_open = False  # whether the first message decides if messages may have several labels
        options = stream.options
        # People do not type JSON into a terminal.
        may_be_text = stream.address == "-" and options.format is None and unlabelled and takes_lines(model)
        reads_features = stream.format == "vw" and not takes_text(model)
        # Each option of the command has the same name here.
        parameters = (
            vars(options)
            | stream.written
            | {
                "text_field": None if reads_features else stream.text_fields_for(model)[0],
                "label_field": self._label_field(),
                "labels": LabelFormat(stream.separator, self.several, self._policy),
                "fields": self.fields,
                "unlabelled": unlabelled,
                "unreadable": unreadable,
                "on_windows_1252": self._count_windows_1252,
                "on_unread_field": self._report_unread_field if self.strict else None,
                "on_lines_of_text": self._report_lines_of_text if may_be_text else None,
                "on_blank_line": self._count_blank,
            }
        )
        names = {field.name for field in fields(ReadOptions)}
        self._options = ReadOptions(**{name: value for name, value in parameters.items() if name in names})

    def _label_field(self) -> str | None:
        """The field with the label; `None` if no label is read. A mail's header with the label is always removed."""
        if not (self.stream.reads_labels or self.stream.is_mail):
            return None
        return self.stream.options.label_field or self.model.field_names.get("label_field", "label")

    # Examples

    def __iter__(self) -> "Iterator[Example]":
        examples, self._ahead = self._ahead or self._read(), None
        return examples

    def look_ahead(self) -> None:
        """Read up to the first good message, which shows whether messages have several labels."""
        self._is_open = True
        examples = self._read()
        first: list[Example] = []
        for example in examples:
            first.append(example)
            if example.fault is None:
                break
        self._ahead = chain(first, examples)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def done(self) -> float | None:
        """The share that was read, from 0 to 1; `None` if the length is unknown."""
        if self._file is None or not os.path.isfile(str(self.stream.address)):
            return None
        if self._file.closed:
            return 1.0
        return self._file.tell() / max(1, os.fstat(self._file.fileno()).st_size)

    def _read(self) -> "Iterator[Example]":
        from stream_pegasos.streams.example import StreamError, Truncated

        self._tell_of_keyboard()
        try:
            yield from _first(self._map_labels(self._examples()), self.stream.options.limit)
        except StreamError as error:
            if not self.n_good:
                raise
            self.report("the rest", str(error))
            truncated = "the input ended within a compressed block"
            self.broken_off = truncated if isinstance(error, Truncated) else "the rest could not be read"

    def _examples(self) -> "Iterator[Example]":
        from stream_pegasos.streams import Example, read, read_mail, synthetic

        stream, address = self.stream, self.stream.address
        if stream.mails:
            unreadable = self._options.unreadable
            parameters: dict[str, Any] = {"unreadable": unreadable, "on_bad_line": self._report_line, "on_event": note}
            yield from read_mail(stream.mails, attached=stream.attached, **parameters)
        elif address is None:
            for line, (text, label) in enumerate(synthetic(), 1):
                yield Example(text, label, 1.0, line)
        else:
            with ExitStack() as stack:
                source: str | BinaryIO = address
                if address != "-" and not os.path.isdir(address):
                    source = self._file = stack.enter_context(open(address, "rb"))
                yield from read(source, self._options, format=stream.format, on_bad_line=self._report_line)

    def _map_labels(self, examples: "Iterable[Example]") -> "Iterator[Example]":
        for example in examples:
            self.n_good += example.fault is None
            if self._n_looked_at < MOST_LOOKED_AT and example.fault is None:
                self._look_for_mail(example.x)
            if self._options.unlabelled or example.fault is not None:
                if len(self.labels_met) < MOST_UNUSED:
                    self.meet_label(example.y)
                yield example
                continue
            if self._is_open:
                self._is_open, self.several = False, isinstance(example.y, tuple)
            if self.several and not isinstance(example.y, tuple) and example.y is not None:
                example = example._replace(y=(example.y,))  # read before several labels were expected
            fault = self.meet_label(example.y)
            if fault is not None:
                self._report_line(example.line, fault)
                example = example._replace(fault=fault)
            if fault is None or self._options.unreadable:
                yield example

    # Live sources

    def open(
        self, position: object, follow: bool, whole_lines: bool, labels: str | None = None, share: bool = False
    ) -> "Source":
        """Open the stream to follow it from a position; or the `labels` at an address, each with the id of its message.
        With `share` other runs read the same stream.
        """
        from stream_pegasos.streams import open_source

        options, address = self._options, str(self.stream.address)
        if labels is not None:
            address = labels
            options = replace(
                options, format=None, delimiter=None, escape=None, columns=None, unreadable=False, are_labels=True
            )
        else:
            self._tell_of_keyboard()
            if self.stream.listed is not None:
                options = replace(options, on_lines_of_text=None)
        return open_source(
            address,
            position,
            options,
            follow=follow,
            whole_lines=whole_lines,
            on_bad=self.report,
            on_event=note,
            share=share,
        )

    # Labels

    def meet_label(self, label: "Truth | None") -> str | None:
        """Note a label. If it has a fault, do not note it, but return the fault."""
        fault = self.label_fault(label)
        if fault is None and label is not None:
            self.labels_met.update(dict.fromkeys(label if isinstance(label, tuple) else (label,)))
        return fault

    def label_fault(self, label: "Truth | None") -> str | None:
        """The fault of a label; `None` if it is valid."""
        if isinstance(label, tuple) and not self.several:
            shown = ", ".join(map(printable, label))
            return f"its label is a list, [{shown}], and the model takes one label; for several see train --multi-label"
        if label is None or (self.stream.listed is None and not self.strict):
            return None
        for single in label if isinstance(label, tuple) else (label,):
            if self.stream.listed is not None:
                if fault := self._policy.refusal(single, printable):
                    if single in self._refused or len(self._refused) < MOST_UNUSED:
                        self._refused[single] += 1
                    return str(fault)
            elif (alike := self._look_alike(single)) is not None:
                return f"label {printable(single)} is new, and looks like {printable(alike)}"
        return None

    def _look_alike(self, label: "Label") -> "Label | None":
        """The known label that a new one resembles, if any."""
        from stream_pegasos.learners.label_typos import look_alike

        is_known = label in self.labels_met or label in self._known
        return None if is_known else look_alike(label, [*self._known, *self.labels_met])

    def is_misspelt(self) -> bool:
        """Whether a listed label never came, but one that differs in a letter or in case; if so, this is reported."""
        from stream_pegasos.learners.label_policy import truth

        listed = self.stream.listed or ()
        for label in [
            candidate for candidate in listed if candidate not in self.labels_met and truth(candidate) is None
        ]:
            similar = {
                printable(candidate).casefold(): candidate
                for candidate in self._refused
                if printable(candidate) != printable(label)
            }
            for near in get_close_matches(printable(label).casefold(), similar, 1):
                other = similar[near]
                corrected = ",".join(printable(other if candidate == label else candidate) for candidate in listed)
                n = self._refused[other]
                reason = f"{n:,} skipped message{'s have' if n > 1 else ' has'} {printable(other)}"
                note(f"no message has the label {printable(label)} of --labels, and {reason}; see --labels {corrected}")
                return True
        return False

    # Reports

    def report(self, place: str, reason: str) -> None:
        """Report a bad record, and count it."""
        self.n_bad += 1
        # If an option is wrong, all records have the same fault, which is reported once.
        fault, before = reason.partition(";")[0], self._fault
        self._fault = fault
        if self._n_reported < REPORTED_BAD_LINES and (self.n_good or fault != before):
            self._n_reported += 1
            note(f"{place} skipped: {reason}")
        elif self.n_bad == self._next_note:
            note(f"{self.n_bad:,} {self.record}s skipped, the newest of them {place}: {fault}")
            self._next_note *= 10

    def refuse(self, example: "Labelled", reason: str) -> None:
        """Report an example that the model refuses to learn."""
        self._report_line(cast("Example", example).line, reason)

    def report_rest(self) -> None:
        """Report at the end the number of other bad records, and the fields that no message had."""
        if takes_text(self.model):
            self.model.fields_met.tell()
        if n_unreported := self.n_bad - self._n_reported:
            note(f"{n_unreported:,} more bad {self.record}{'s' * (n_unreported != 1)} skipped")
        if self.n_windows_1252:
            lines, were = ("line", "was") if self.n_windows_1252 == 1 else ("lines", "were")
            note(f"{self.n_windows_1252:,} {lines} {were} not UTF-8 and {were} read as Windows-1252")

    def report_blank(self) -> None:
        """Report the number of blank lines, which have no answer."""
        if self.n_blank and self.n_good:
            lines, pronoun = ("line was", "it") if self.n_blank == 1 else ("lines were", "them")
            note(f"{self.n_blank:,} {lines} blank, and there is no answer for {pronoun}")

    def bad_lines(self) -> str:
        bad = f"{self.n_bad:,} bad {self.record}{'s' * (self.n_bad != 1)}"
        return f"{bad}, {self.broken_off}" if self.broken_off else bad

    def nothing(self, verb: str) -> Failure:
        """The failure of a command that found no message."""
        options = "--format, --read-option, --text-field and --label-field"
        options = "--label-field, --spam and --ham" if self.stream.is_mail else options
        hint = f"; see {options}" if self.n_bad and not self.n_good else ""
        if not (self.n_bad or self.n_good):
            is_csv = self.stream.format in ("csv", "tsv") and "columns" not in self.stream.written
            hint = "; it is empty" + ", or a header alone; without a header, see --read-option columns=…" * is_csv
            hint = "; its group has read all that is there" if self._has_group() else hint
        if not self.n_good and self.stream.is_mail and os.path.isdir(str(self.stream.address or "")):
            hint = "; a folder is read as mail, and there is none in it"
        if not self.n_good and self.stream.is_mail and (other := self._other_file()) is not None:
            hint = f"; a folder is read as mail: name a file, as {other}"
        return Failure(f"no message of {self.name} was {verb}{hint}")

    def tell_of_nothing(self) -> None:
        """Report why there was no message; this may be no failure."""
        if not (self.n_good or self.n_bad or self.n_blank):
            note(str(self.nothing("read")))

    def _has_group(self) -> bool:
        from stream_pegasos.streams.schemes import parse_address

        address = str(self.stream.address or "")
        return "://" in address and "group" in parse_address(address).options

    def _other_file(self) -> str | None:
        """A file of another format in a folder that is read as mail."""
        from stream_pegasos.streams import format_of

        paths = [path for group in self.stream.mails.values() for path in group] or [str(self.stream.address)]
        for folder in filter(os.path.isdir, paths):
            for name in sorted(os.listdir(folder)):
                with suppress(ValueError):
                    if format_of(path := os.path.join(folder, name)) != "mail":
                        return path
        return None

    def _report_line(self, line: int, reason: str) -> None:
        if self.several and self.stream.has_features and reason == "no label":  # read too early
            reason += "; --multi-label takes it as a line that has none of them"
        self.report(f"{self.record} {line}", reason)

    def _count_blank(self) -> None:
        self.n_blank += 1

    def _count_windows_1252(self) -> None:
        self.n_windows_1252 += 1

    def _report_unread_field(self, name: str) -> None:
        if name not in self._unread and len(self._unread) < MOST_UNREAD:
            self._unread.add(name)
            note(f"the model does not read the field {printable(name) or 'without a name'}")

    def _look_for_mail(self, x: object) -> None:
        """Report once if the first texts look like whole mails, but are not read as mails."""
        from stream_pegasos.mail_text.mime import looks_like_mail

        text = x if isinstance(x, str) else next(iter(x.values()), None) if isinstance(x, dict) else None
        self._n_looked_at += 1
        self._n_mails += isinstance(text, str) and looks_like_mail(text)
        if self._n_looked_at < MOST_LOOKED_AT or self._n_mails + 1 < MOST_LOOKED_AT:
            return
        if not self.stream.is_mail and takes_text(self.model) and self.model.features.mail_field is None:
            note("the texts look like whole mails, headers and all; --mail reads them as mails")

    def _report_lines_of_text(self) -> None:
        note(f"{self.name} begins with neither {{ nor [ and is read as lines of text; --format says otherwise")

    def _tell_of_keyboard(self) -> None:
        if self.stream.address == "-" and sys.stdin is not None and sys.stdin.isatty():
            end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
            note(f"reading {self.stream.format} from the keyboard; {end} it")


def _first(examples: "Iterator[Example]", limit: int | None) -> "Iterator[Example]":
    """Yield examples up to the last of `limit` good ones."""
    n_left = limit
    while n_left != 0 and (example := next(examples, None)) is not None:
        yield example
        if n_left is not None:
            n_left -= example.fault is None


def model_for_first_message(model: "Model", options: ModelOptions, source: Input, wait: Callable[..., Any]) -> "Model":
    """The new model; if no option decides and the first message has a list of labels, a model of several labels."""
    if not (source.several or options.ordered or options.classifier == "pegasos"):
        with suppress(KeyboardInterrupt):  # the next wait for a message handles the interrupt
            wait(source.look_ahead)
        if source.several:
            source.model = new_model(options, source.stream, has_several=True)
            return source.model
    return model


@contextmanager
def progress_bar(source: Input) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on a terminal; none in a pipe."""
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
            share, speed = source.done(), n / (perf_counter() - start)
            bar.update(task, total=None if share is None else 1.0, completed=share or 0.0, n=n, rate=speed, text=text)

        yield progress
