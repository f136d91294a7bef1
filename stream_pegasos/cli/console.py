"""Messages of commands, checks of their outputs, and failures."""

import logging
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import click

from stream_pegasos.common.display import printable

MOST_LISTED = 10
LONGEST_BEGIN = 1 << 16  # bytes that show the kind of a file
CURVE = re.compile(rb"n,")
FILES = {"FILE", "JSON_OR_FILE", "MODEL", "NAME_OR_PATH", "PATH", "SOURCE", "STREAM"}  # as metavars
WRITTEN = "stream_pegasos.written"  # the files that the command writes, in the context's `meta`


class Failure(Exception):
    """A failure with exit code 1 and one line with the reason."""


def note(message: str) -> None:
    # Standard error may be closed, or be a file on a full disk; the command continues.
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"stream-pegasos: {message}", file=sys.stderr, flush=True)


def print_lines(text: str) -> None:
    try:
        print(text, flush=True)
    except (OSError, KeyboardInterrupt) as error:
        # Buffered output would fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, KeyboardInterrupt | BrokenPipeError):
            raise
        raise Failure(f"cannot write standard output: {error.strerror}") from None


class LogHandler(logging.Handler):
    """Prints the log of the package: results of actions on standard output, all else as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        (print_lines if record.levelno < logging.WARNING else note)(record.getMessage())


def listed(values: Iterable[object]) -> str:
    """Labels or names on one line; a long list is shortened."""
    first = [*islice(values, MOST_LISTED + 1)]
    return ", ".join([*map(printable, first[:MOST_LISTED]), *["…"] * (len(first) > MOST_LISTED)])


def rate(n: int, seconds: float) -> str:
    return f" in {seconds:.2f} s, {n / seconds:,.0f} docs/s" if n and seconds else ""


def check_outputs(
    *paths: Path | None,
    save: Path | None = None,
    checkpoint: Path | None = None,
    load: Path | None = None,
    keeps_progress: bool = False,
) -> None:
    """Fail before the work begins if an output cannot be written, would overwrite a file that the command reads, or
    lies in a folder that it reads; this applies to all options that name files, except the outputs themselves. Files
    beside a model, such as its lock or its journal, cannot be outputs either. A saved model may replace the loaded one,
    because it is written in one step at the end. It may replace another model, but no file of another kind, and no
    checkpoint unless the command keeps the progress of the loaded model. No other process can write a model to be saved
    until the command ends.
    """
    context = click.get_current_context()
    outputs = (*paths, save, checkpoint)
    values = [
        context.params[parameter.name]
        for parameter in context.command.params
        if parameter.name and names_file(parameter)
    ]
    each_given = [path for value in values for path in (value if isinstance(value, tuple) else [value]) if path]
    read_from = [path for path in each_given if not any(path is other for other in (*outputs, load))]
    files = {file_itself(path) for path in read_from} - {None}
    folders = [os.path.realpath(path) for path in read_from if os.path.isdir(path)]
    if file_itself("/dev/stdout") in files:
        raise Failure("cannot write standard output: it is a file that the command reads")
    context.meta[WRITTEN] = {file: path for path in outputs if path and (file := file_itself(path)) is not None}
    for paths_of_kind, read in (((checkpoint, save), None), (paths, load)):
        files |= {file_itself(read)} - {None} if read else set()
        for path in filter(None, paths_of_kind):
            file = file_itself(path)
            if file in files:
                raise Failure(f"cannot write {path}: the command reads it, or writes something else there")
            if any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in folders):
                raise Failure(f"cannot write {path}: it is in a folder that the command reads")
            if not path.absolute().parent.is_dir():
                raise Failure(f"cannot write {path}: {path.parent} is not a directory")
            if path.is_dir():
                raise Failure(f"cannot write {path}: it is a directory")
            files |= {file} - {None}
    _check_companions([path for path in outputs if path], [path for path in (save, checkpoint) if path])
    if checkpoint:
        _check_not_replaced(read_from, checkpoint)
    if save and save.is_file() and save.stat().st_size:
        from stream_pegasos.learners.files import begins_as_model, has_progress

        if not begins_as_model(save):
            raise Failure(f"cannot write {save}: it exists and is not a model; name another file, or remove it")
        is_kept = keeps_progress and load is not None and file_itself(load) == file_itself(save)
        if not is_kept and has_progress(save):
            # Without the position, the whole stream would be learned again.
            reason = (
                "it is a checkpoint, whose progress would be lost; name another file, or see train MODEL FILE --save"
            )
            raise Failure(f"cannot write {save}: {reason}")
    if save:
        from stream_pegasos.common.file_lock import FileLock

        lock = FileLock(save, note)
        lock.claim()
        context.call_on_close(lock.release)


def _check_companions(outputs: list[Path], models: list[Path]) -> None:
    """Fail if an output is a file beside a model: one that the command writes, or an existing one."""
    from stream_pegasos.common.companions import Companions, model_beside
    from stream_pegasos.learners.files import begins_as_model

    for path in outputs:
        file = Path(os.path.realpath(path))
        owner = model_beside(file)
        with suppress(OSError):
            owners = [owner] if owner is not None and owner.is_file() and begins_as_model(owner) else []
        for model in [*models, *owners]:
            beside = Companions(model)
            linked = [beside.previous, *beside.journals().values()] if model is not path and file.exists() else []
            if kind := beside.kind(file) or next((beside.kind(link) for link in linked if _is_same(link, file)), None):
                raise Failure(f"cannot write {path}: it is {kind} {model.name}; name another file")


def _check_not_replaced(read: list[Any], checkpoint: Path) -> None:
    """Fail if the command reads messages or other input from a file that its checkpoint will replace."""
    from stream_pegasos.common.companions import Companions

    for path in read:
        if kind := Companions(checkpoint).kind(Path(os.path.realpath(path))):
            raise Failure(f"cannot read {path}: it is {kind} {checkpoint}, which the command writes")


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and file_itself(path) == file_itself(other)


def names_file(parameter: click.Parameter) -> bool:
    """Whether the value of a parameter is a local file or folder, or may be one."""
    return (parameter.metavar or "").strip("[]") in FILES


def check_read(path: Path | str) -> None:
    """Fail if the command writes this file, which is named in another input."""
    written = click.get_current_context().meta.get(WRITTEN, {})
    if os.path.exists(path) and (output := written.get(file_itself(path))) is not None:
        raise Failure(f"cannot write {output}: the command reads it")


def file_itself(path: Path | str) -> object:
    """An identity of a file, the same for all its names and links; `None` for a pipe or a device."""
    try:
        status = os.stat("/dev/stdin" if str(path) == "-" else path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def check_replaceable(path: Path | None, begins: re.Pattern[bytes], kind: str) -> None:
    """Fail before the work begins if the output would replace a file of another kind, or be appended to it. `begins`
    matches the beginning of files of the right kind.
    """
    if path is not None and path.is_file():
        with path.open("rb") as file:
            begin = file.readline(LONGEST_BEGIN)
        if begin and not begins.match(begin):
            raise Failure(f"cannot write {path}: it exists and is no {kind}; name another file, or remove it")


def check_plot(path: Path | None) -> None:
    """Fail before the work begins if matplotlib is missing or cannot write this kind of file."""
    if path is None:
        return
    if path.suffix.lower() == ".csv":
        check_replaceable(path, CURVE, "curve")
        return
    from stream_pegasos.evaluation.plot import FILE_TYPES

    if path.suffix and path.suffix.lower() not in FILE_TYPES:
        raise click.BadParameter(f"{path} must end in {', '.join(FILE_TYPES)} or .csv", param_hint="--plot")


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Turn an error of the model in this file into a failure that names the file."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise Failure(f"{path}: {error}") from None


def check_choice(value: str | None, choices: Iterable[str], flag: str) -> None:
    """Refuse an option whose value, if given, is not one of the choices."""
    if value is not None and value not in choices:
        raise click.BadParameter(f"must be one of {', '.join(choices)}, got {value!r}", param_hint=flag)


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from None
