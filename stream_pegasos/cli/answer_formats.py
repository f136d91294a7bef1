"""Formats of answers, one line each, to standard output or to a file."""

import csv
import functools
import io
import itertools
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, cast

import click

from stream_pegasos.cli.console import check_choice, note, writing
from stream_pegasos.cli.options import result_field

if TYPE_CHECKING:
    from stream_pegasos.blocks.predicted import PredictedBlock
    from stream_pegasos.streams import Answer, Example

FORMATS = ("tsv", "csv", "jsonl")
TEXTS = ("", "txt", "text", "log", "out", "dat")  # extensions of plain text
TRUTH = "truth"
# The beginning of a file with answers: the header of tsv and csv, an object of jsonl, or a label and a probability.
ANSWERS = re.compile(
    rb'id([\t,])label\1probability\1|\{"id": .*"label": |[^\t]*\t(?:[01]\.\d+(?:[^\t]{1,9}?[01]\.\d+)*)?\r?\n'
)
# JSON with unescaped characters; lone surrogates are escaped when the text is encoded.
to_json = json.JSONEncoder(ensure_ascii=False).encode

format_field = functools.partial(
    result_field,
    "--output-format NAME",
    "tsv, csv or jsonl: id, label, probability, probabilities of all labels, margin, error and, with a coverage, set.",
    shown="what the extension of the file says",
)


@dataclass(frozen=True)
class AnswerFormat:
    """The format of answers: one of `FORMATS` by its name, or without a name the label, a tab and its probability. The
    true label can be written beside an answer only in a named format.
    """

    name: str | None = None
    separator: str = ","
    has_truth: bool = False
    has_sets: bool = False

    @property
    def in_full(self) -> bool:
        return self.name is not None

    @property
    def head(self) -> str:
        """The line before the first answer, or an empty text."""
        return "" if self.name in (None, "jsonl") else self._rows([self._columns])

    @property
    def _columns(self) -> tuple[str, ...]:
        from stream_pegasos.streams.answer import COLUMNS, SET

        return (*COLUMNS, *([SET] if self.has_sets else []), *([TRUTH] if self.has_truth else []))

    def lines(self, answers: "Sequence[Answer]", truths: Iterable[Any] = ()) -> str:
        """Make a line for each answer; in tsv and csv, a line break inside quotes does not end it."""
        if self.name is None:
            return "".join(f"{answer.line(self.separator)}\n" for answer in answers)
        records: Iterable[dict[str, Any]] = (answer.record() for answer in answers)
        if self.has_truth:
            records = ({**record, TRUTH: truth} for record, truth in zip(records, truths, strict=True))
        if self.name == "jsonl":
            return "".join(f"{to_json(record)}\n" for record in records)
        columns = self._columns
        return self._rows([_cell(record.get(name)) for name in columns] for record in records)

    def _rows(self, rows: Iterable[Iterable[str]]) -> str:
        lines: list[str] = []
        # With these line ends it quotes both "\r" and "\n"; it calls `write` once for each row.
        writer = csv.writer(
            SimpleNamespace(write=lines.append), delimiter="\t" if self.name == "tsv" else ",", lineterminator="\r\n"
        )
        writer.writerows(rows)
        return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def _cell(value: object) -> str:
    """The text of a cell: texts stay as they are, labels and probabilities become JSON, `None` an empty text."""
    if value is None or isinstance(value, str):
        return value or ""
    return to_json(value)


def chosen_format(
    name: str | None, path: Path | None, separator: str | None = None, has_truth: bool = False, has_sets: bool = False
) -> AnswerFormat:
    """The format of an option, or else of the file extension; by default the label and its probability."""
    check_choice(name, FORMATS, "--output-format")
    extension = path.suffix.lower().removeprefix(".") if path is not None else ""
    extension = "jsonl" if extension == "ndjson" else extension
    if name is None and extension in FORMATS:
        name = extension
    if (name is None and has_truth) or extension not in (*FORMATS, *TEXTS):
        plain = "" if has_truth else ", or plain .txt"
        raise click.BadParameter(f"{path} must end in .tsv, .csv or .jsonl{plain}", param_hint="--output")
    return AnswerFormat(name, separator or ",", has_truth, has_sets)


class Output:
    """The destination of answers: a file, which `open` opens, or standard output if there is no path. If a disk was
    full in the middle of a line, the rest is written when the same answers are sent again.
    """

    def __init__(self, format: AnswerFormat, path: Path | None = None) -> None:
        self.format, self.path = format, path
        self._head = format.head
        self._n_answers, self._has_ids = 0, False
        self._rest = b""  # the unwritten rest of answers, which are sent again until all is written
        self._file: IO[bytes] | None = None

    def open(self, append: bool = False, written: object = None) -> None:
        """Open the file. With `append` its content stays, up to the length in `written` if given; else it is erased."""
        if self.path is None or self._file is not None:
            return
        with writing(self.path):
            if append and self.path.is_file() and self._truncate(written):
                self._head = ""
            self._file = self.path.open("ab" if append else "wb", buffering=0)

    def _truncate(self, written: object) -> int:
        """Remove later content, and an unfinished last line; return the remaining size."""
        assert self.path is not None
        with self.path.open("r+b") as file:
            end = begin_of_last_line(file)
            match written:
                case (str(name), int(length)) if name == os.path.abspath(self.path) and length >= 0:
                    if length > end:
                        note(f"{self.path} is shorter than it was: {length - end:,} bytes of answers are missing")
                    end = min(length, end)
            return file.truncate(end)

    def written(self) -> tuple[str, int] | None:
        """The path and the length of the file; `None` for a pipe or a terminal."""
        if self._file is None or not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            return None
        return os.path.abspath(self._file.name), self._file.tell()

    def sync(self) -> None:
        """Flush the file to the disk."""
        if self._file is not None and self.written() is not None:
            os.fsync(self._file.fileno())

    def cut(self, written: tuple[str, int] | None) -> None:
        """Truncate the file to the length in `written`."""
        if self._file is not None and written is not None:
            self._file.seek(self._file.truncate(written[1]))
            self._head, self._rest = "" if written[1] else self.format.head, b""

    def send(self, answers: "Sequence[Answer]", truths: Iterable[Any] = ()) -> None:
        """Write answers; an OSError if not all of them could be written."""
        if not self._rest:
            self._n_answers += len(answers)
            self._has_ids = self._has_ids or any(answer.id is not None for answer in answers)
            lines = self._head + self.format.lines(answers, truths)
            if self.path is None and sys.stdout is not None:
                self._rest = lines.encode(sys.stdout.encoding, sys.stdout.errors or "strict")
            else:
                self._rest = lines.encode("utf-8", "backslashreplace")
            self._head = ""
        raw: IO[bytes] | io.RawIOBase | None = self._file
        if self.path is None:
            if sys.stdout is None:  # standard output is closed
                self._rest = b""
                return
            buffer = sys.stdout.buffer
            raw = buffer.raw if isinstance(buffer, io.BufferedWriter) else buffer
        assert raw is not None  # the file was opened
        while self._rest:
            n = raw.write(self._rest)
            if n is None:
                raise BlockingIOError("standard output takes no more for now")
            self._rest = self._rest[n:]

    def write(self, answers: "Sequence[Answer]", truths: Iterable[Any] = ()) -> None:
        """Write answers; if this fails, end the command."""
        try:
            self.send(answers, truths)
        except BrokenPipeError:
            raise
        except OSError:
            with writing(self.path or "standard output"):
                raise

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        if self.format.in_full and self._n_answers and not self._has_ids:
            note("no message had an id; --id-field names the field that has it")


def begin_of_last_line(file: IO[bytes]) -> int:
    """The offset of an unfinished last line, or else the size of the file."""
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - (1 << 16))
        file.seek(begin)
        newline = file.read(end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return end


class EvaluatedAnswers:
    """Writes an answer to each record of an evaluation, in the order of the records; answers may come in any order."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._waiting: dict[int, Example] = {}  # by their identity, in order
        self._answers: dict[int, Answer] = {}  # to waiting examples

    def readable(self, examples: "Iterable[Example]") -> "Iterator[Example]":
        """Yield the good examples, and answer the others with their faults."""
        for example in examples:
            self._waiting[id(example)] = example
            if example.fault is None:
                yield example
            else:
                self.refused(example, example.fault)

    def refused(self, example: "Example", reason: str) -> None:
        from stream_pegasos.streams import Answer

        if id(example) in self._waiting:  # false if a second model refuses an example that the first has answered
            self._answers[id(example)] = Answer(example.id, None, None, error=reason)

    def predicted(self, block: "PredictedBlock") -> None:
        """Take the answers to a block, and write those that can be written."""
        examples = cast("Sequence[Example]", block.examples)
        answers = block.answers([example.id for example in examples], block.probabilities_by_label())
        self._answers |= zip(map(id, examples), answers, strict=True)
        self.write()

    def write(self) -> None:
        """Write the answers up to the first one that is not known yet."""
        answers, truths = [], []
        for key in [*itertools.takewhile(self._answers.__contains__, self._waiting)]:
            answers.append(self._answers.pop(key))
            truths.append(self._waiting.pop(key).y)
        self._output.open()
        self._output.write(answers, truths)
