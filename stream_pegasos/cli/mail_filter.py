"""The command `mail-filter`."""

import gc
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from stream_pegasos.cli.command import Command, argument, bundled, command
from stream_pegasos.cli.console import Failure, note
from stream_pegasos.cli.mail_options import VerdictOptions, mail_field, vectors_field

READ = 1_064_000  # bytes of a mail that are read: headers and body, as far as features use them
EXIT_CODES = {"spam": 0, "ham": 1, "unsure": 2}
FAILED = 3


class _FilterCommand(Command):
    """A command that passes its input through even if its options are wrong, so that no mail is lost."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            if sys.stdin is not None and sys.stdout is not None and not sys.stdin.isatty():
                _write(b"")
            if "--exit-code" in sys.argv:
                error.show()
                raise click.exceptions.Exit(FAILED) from None  # 2 means unsure
            raise


@dataclass(frozen=True)
class MailFilterOptions:
    model: Path | None = argument("MODEL", "The model.", default=None, earlier=("--model",))
    exit_code: bool = mail_field(
        "--exit-code",
        "Exit with 0 for spam, 1 for ham, 2 for unsure and 3 after a failure, as bogofilter does.",
        default=False,
        brief="Exit with 0 for spam, 1 for ham, 2 unsure, 3 failed.",
    )
    header_prefix: str = mail_field(
        "--header-prefix NAME",
        "How the header names begin; use X-Pegasos if SpamAssassin comes next, which removes X-Spam. "
        "Headers that begin with either are not learned.",
        default="X-Spam",
    )
    thresholds: VerdictOptions = bundled()
    vectors: str | None = vectors_field()


@command(MailFilterOptions, cls=_FilterCommand)
def mail_filter(arguments: MailFilterOptions) -> None:
    """Say in the headers of a mail whether it is spam.

    The mail comes on standard input and goes to standard output, with the
    headers X-Spam-Flag, X-Spam-Status and X-Spam-Level before its own. Every
    other byte stays as it was, so that signatures hold. Nothing is learned.
    If anything fails, the mail passes through, and standard error says why.

    No mail is called spam beyond the model's limit of false positives, or
    before the model has learned 100 mails.

    \b
    Examples:
      stream-pegasos mail-filter m.safetensors < mail.eml
      stream-pegasos mail-filter m.safetensors --exit-code < mail.eml
    """
    # One mail needs neither; both would take a sixth of the time.
    gc.disable()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.stdin is None or sys.stdout is None:
        _end("standard input or output is closed", arguments.exit_code)
    mail = sys.stdin.buffer.read(READ)
    outcome, lines = None, b""
    try:
        if arguments.model is None:
            raise Failure("give the model, as in stream-pegasos mail-filter mail.safetensors")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", arguments.header_prefix):
            raise Failure(f"{arguments.header_prefix!r} is not a header name")
        outcome, lines = _filter_by_model(mail, arguments.model, arguments.thresholds, arguments.vectors)
        lines = re.sub(rb"^X-Spam\b", arguments.header_prefix.encode(), lines, flags=re.MULTILINE)
    except Exception as error:  # after any error, the mail must be delivered
        note(f"the mail passes unfiltered: {error or repr(error)}")
    from stream_pegasos.mail.verdict_headers import insert_lines

    try:
        _write(insert_lines(mail, lines))
    except Failure as error:
        _end(str(error), arguments.exit_code)
    if arguments.exit_code:
        raise click.exceptions.Exit(FAILED if outcome is None else EXIT_CODES[outcome])


def _end(reason: str, exit_code: bool) -> NoReturn:
    """Fail after the mail could not be passed through. With --exit-code the code is 3, because 1 means ham."""
    if not exit_code:
        raise Failure(reason)
    note(f"error: {reason}")
    raise click.exceptions.Exit(FAILED)


def _filter_by_model(mail: bytes, path: Path, thresholds: VerdictOptions, vectors: str | None) -> tuple[str, bytes]:
    """A model's verdict on a mail, and the mail with verdict headers."""
    from stream_pegasos import load
    from stream_pegasos.mail.verdict_headers import find_newline, spam_headers

    model, verdicts = load(path, vectors), thresholds.verdicts()
    verdict = verdicts.on(verdicts.check(model), mail)
    return verdict.outcome, spam_headers(verdict, find_newline(mail))


def _write(begin: bytes) -> None:
    """Write the new beginning of a mail, and the rest as it comes."""
    output = sys.stdout.buffer
    try:
        output.write(begin)
        shutil.copyfileobj(sys.stdin.buffer, output)
        output.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # otherwise it would fail again at the end
        raise Failure(f"cannot write the mail: {error.strerror}") from None
