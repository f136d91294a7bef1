"""What a command prints and writes, and how it fails."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click


class Failure(Exception):
    """An end with exit code 1 and one line that says why."""


def note(message: str) -> None:
    # Standard error may be closed, or a file on the disk that is full; that must not stop what goes on.
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"stream-pegasos: {message}", file=sys.stderr, flush=True)


def print_lines(text: str) -> None:
    try:
        print(text, flush=True)
    except (OSError, KeyboardInterrupt) as error:
        # What is still buffered would fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, KeyboardInterrupt | BrokenPipeError):
            raise
        raise Failure(f"cannot write standard output: {error.strerror}") from None


def printable(value: object) -> str:
    """A label or a feature on one line and in one column."""
    if value is None:
        return "?"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def rate(n: int, seconds: float) -> str:
    return f" in {seconds:.2f} s, {n / seconds:,.0f} docs/s" if n and seconds else ""


def check_outputs(*paths: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Fail before the work rather than after it, and where an output would be written over what is read."""
    read = (Path("/dev/stdin") if path == Path("-") else path for path in inputs if path)
    taken = {path.resolve() for path in read if path.is_file()}
    for path in paths:
        if path and path.resolve() in taken:
            raise Failure(f"cannot write {path}: the command reads it, or writes something else there")
        if path and not path.absolute().parent.is_dir():
            raise Failure(f"cannot write {path}: {path.parent} is no directory")
        if path and path.is_dir():
            raise Failure(f"cannot write {path}: it is a directory")
        if path:
            taken.add(path.resolve())


def check_plot(path: Path | None) -> None:
    """Fail before the work where matplotlib is missing, or cannot write such a file."""
    if path is None:
        return
    from stream_pegasos.evaluation.plot import FILE_TYPES

    if path.suffix and path.suffix.lower() not in FILE_TYPES:
        raise click.BadParameter(f"{path} is none of {', '.join(FILE_TYPES)}", param_hint="--plot")


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from None
