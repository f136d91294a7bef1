"""The command `imap`."""

import logging
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream_pegasos.cli.command import argument, bundled, command, number
from stream_pegasos.cli.console import Failure, check_outputs, print_lines
from stream_pegasos.cli.interrupts import Interrupt
from stream_pegasos.cli.mail_options import VerdictOptions, mail_field
from stream_pegasos.cli.models import set_decision
from stream_pegasos.cli.options import DecisionOptions, gap_field, n_threads, service_field, vectors_field
from stream_pegasos.common.errors import must_be
from stream_pegasos.common.host_addresses import is_loopback

if TYPE_CHECKING:
    from stream_pegasos.learners.text import TextClassifier
    from stream_pegasos.mail.imap_connection import Account, ImapConnection
    from stream_pegasos.mail.mailbox_filter import MailboxFilter, MailboxPlan
    from stream_pegasos.mail.verdict import Verdicts

SECONDS_FOR_PASSWORD = 120.0  # a person may have to unlock it
MOST_REMEMBERED = 100_000  # mails, by their digests: years of a mailbox, in about 10 MB
VARIABLE = "STREAM_PEGASOS_PASSWORD"


@dataclass(frozen=True)
class ServerOptions:
    """Options of the server and the login."""

    host: str | None = service_field(
        "--host NAME[:PORT]",
        "The server, and its port if that is not 993, or 143 without TLS from the start.",
        brief="The server.",
        required=True,
    )
    user: str | None = service_field("--user NAME", "The name to log in with.", required=True, brief=True)
    password_file: Path | None = service_field(
        "--password-file FILE", "A file whose first line is the password.", brief=True, shown=f"the variable {VARIABLE}"
    )
    password_command: str | None = service_field(
        "--password-command COMMAND",
        "A command that prints the password: 'pass show mail', say. It runs for each connection.",
        brief=True,
    )
    oauth2: bool = service_field("--oauth2", "The password is a token of OAuth 2 (XOAUTH2).", default=False)
    tls: str = service_field(
        "--tls WHEN",
        "always; starttls, to begin in plain text and switch to TLS; never, only for a server on this machine.",
        type=click.Choice(["always", "starttls", "never"]),
        default="always",
    )
    timeout: float = service_field(
        "--timeout SECONDS",
        "Reconnect if the server is silent for this long.",
        type=number(float, 0.1, 3600),
        default=60.0,
    )

    def account(self) -> "Account":
        from stream_pegasos.mail.imap_connection import Account

        assert self.host is not None and self.user is not None
        host, port = self._address()
        is_plain = self.tls == "never"
        if is_plain and not is_loopback(host):
            raise click.BadParameter(
                "the password could be read on the way; never is only for 127.0.0.1", param_hint="--tls"
            )
        trusted = os.environ.get("SSL_CERT_FILE")
        if not is_plain and trusted and not os.path.isfile(trusted):  # OpenSSL would trust no server, without a reason
            raise Failure(must_be("SSL_CERT_FILE", "a file", trusted))
        context = None if is_plain else ssl.create_default_context()
        port = port or (993 if self.tls == "always" else 143)
        starttls = self.tls == "starttls"
        return Account(host, port, self.user, self._secret(), context, starttls, self.oauth2, self.timeout)

    def _address(self) -> tuple[str, int]:
        """The name of the server, and its port; 0 if no port is given."""
        match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^\[\]:\s]+))(?::(\d{1,5}))?", str(self.host))
        if match is None or not 0 < int(match[3] or 993) < 1 << 16:
            raise click.BadParameter(
                f"must be a server such as mail.example.org, mail.example.org:993 or [::1]:993, got {self.host!r}",
                param_hint="--host",
            )
        return match[1] or match[2], int(match[3] or 0)

    def _secret(self) -> Callable[[], str]:
        """A function that returns the password, which is never stored, printed or visible on a command line."""
        from stream_pegasos.mail.imap_connection import LoginRefusedError

        n_given = sum(x is not None for x in (self.password_file, self.password_command))
        if n_given > 1 or (n_given == 0 and VARIABLE not in os.environ):
            raise click.BadParameter(f"give it or --password-command, or set {VARIABLE}", param_hint="--password-file")

        def secret() -> str:
            if self.password_file is not None:
                try:
                    text, source = self.password_file.read_text("utf-8"), str(self.password_file)
                except (OSError, ValueError) as error:
                    reason = (error.strerror if isinstance(error, OSError) else None) or "it must be a text in UTF-8"
                    raise LoginRefusedError(f"cannot read {self.password_file}: {reason}") from None
            elif self.password_command is not None:
                text, source = _run_for_output(self.password_command), "--password-command"
            else:
                text, source = os.environ[VARIABLE], f"${VARIABLE}"
            line = (text.splitlines() or [""])[0]
            if not line:
                raise LoginRefusedError(f"{source} has no password")
            if not line.isprintable():
                raise LoginRefusedError(f"{source}: a password must be printable")
            return line

        return secret


def _run_for_output(command: str) -> str:
    from stream_pegasos.mail.imap_connection import LoginRefusedError

    try:
        # Its errors go to standard error, and it may ask on the terminal.
        process = subprocess.run(command, shell=True, stdout=subprocess.PIPE, timeout=SECONDS_FOR_PASSWORD)
        text = process.stdout.decode()
    except subprocess.TimeoutExpired:
        raise LoginRefusedError("--password-command does not end") from None
    except (OSError, ValueError):
        raise LoginRefusedError("--password-command cannot be run, or prints no text") from None
    if process.returncode:
        raise LoginRefusedError(f"--password-command ended with code {process.returncode}")
    return text


@dataclass(frozen=True)
class FolderOptions:
    """Options of the folders, and of actions on their mails."""

    junk: str | None = mail_field(
        "--junk FOLDER",
        "The folder of spam; it is made if it does not exist.",
        brief=True,
        shown="the one that the server marks as such",
    )
    ham_folder: tuple[str, ...] = mail_field(
        "--ham-folder FOLDER",
        "A mail that is moved from Junk to this folder is learned as ham, as if moved to the inbox; may be given "
        "several times.",
        default=(),
    )
    spam: tuple[str, ...] = mail_field(
        "--spam FOLDER",
        "First learn the mails in this folder as spam; may be given several times. Those of --spam and --ham are "
        "learned in order of arrival, and only once, even if the command starts again.",
        brief="First learn the mails in this folder as spam.",
        default=(),
    )
    ham: tuple[str, ...] = mail_field("--ham FOLDER", "The same with ham.", brief=True, default=())
    action: str = mail_field(
        "--action NAME",
        "What is done with spam: move it to Junk, or flag it with the keyword $Junk.",
        type=click.Choice(["move", "flag"]),
        default="move",
        brief="move or flag spam [default: move]",
    )
    backlog: bool = mail_field("--backlog", "Also check the mails already in the inbox at the start.", default=False)
    dry_run: bool = mail_field(
        "--dry-run", "Print what would be done; change nothing on the server or here.", default=False, brief=True
    )

    def training_folders(self) -> dict[str, str]:
        """The folders to learn first, each with the label of its mails."""
        folders_of_both = sorted({*self.spam} & {*self.ham})
        if folders_of_both:
            raise click.BadParameter(f"{folders_of_both[0]} is also given as --ham", param_hint="--spam")
        return dict.fromkeys(self.spam, "spam") | dict.fromkeys(self.ham, "ham")

    def plan(self, box: "ImapConnection") -> "MailboxPlan":
        from stream_pegasos.mail.mailbox_filter import NEW_MAILS, MailboxPlan

        junk = self.junk or box.find_junk()
        if junk is None:
            raise Failure(
                "the server marks no folder as that of spam; name one by --junk; it is made if it does not exist"
            )
        if junk in (NEW_MAILS, *self.ham_folder) or NEW_MAILS in self.ham_folder:
            raise Failure(f"inbox, Junk and --ham-folder must be different folders; Junk is {junk}")
        for name in (NEW_MAILS, *self.ham_folder, *self.training_folders()):
            if not box.has_folder(name):
                raise Failure(f"the server has no folder {name}")
        return MailboxPlan(junk, self.ham_folder, self.action == "move", not self.dry_run, self.backlog)


@dataclass(frozen=True)
class ImapOptions:
    path: Path = argument("MODEL", "The model; it need not exist.", earlier=("--model",))
    server: ServerOptions = bundled()
    folders: FolderOptions = bundled()
    once: bool = mail_field("--once", "Look once, then end.", default=False, brief=True)
    moved: bool = mail_field(
        "--allow-moved",
        "Continue although the mailbox has another name or server now.",
        default=False,
        earlier=("--moved",),
    )
    verbose: bool = mail_field(
        "--verbose", "Print a line for each mail that is moved or learned, also into a pipe.", default=False
    )
    allow_gap: bool = gap_field()
    verdict: VerdictOptions = bundled()
    max_false_positive_rate: float | None = mail_field(
        "--max-false-positive-rate R",
        "Share of ham that may be called spam; 1 for no limit.",
        type=number(float, 0, 1),
        default=None,
        shown="that of the model",
    )
    vectors: str | None = vectors_field()


@command(ImapOptions)
def imap(arguments: ImapOptions) -> None:
    """Watch an IMAP mailbox: move spam to Junk; learn when people move mails.

    A mail that someone moves to Junk is learned as spam. One that someone moves
    from Junk back to the inbox, or to a --ham-folder, is learned as ham. With
    --action flag someone may also set the keyword $Junk, or take it away, or set
    $NotJunk. Mails that stay as they are teach nothing.

    Nothing is called spam before the model has learned enough mails of both
    kinds: see --spam and --ham. Mails already in the inbox at the first start
    are left alone. No mail is marked as read, and none is deleted.

    MODEL also records what was done and learned. So each mail is learned once,
    even after a kill. Each mailbox needs its own MODEL and process.

    \b
    Examples:
      stream-pegasos imap m.st --host H --user U --password-file P
      stream-pegasos imap m.st … --spam Junk --ham Archive --dry-run --once
    """
    from stream_pegasos.mail.imap_connection import ConnectionFailedError, RefusedError
    from stream_pegasos.mail.verdict import SPAM

    verdicts, account = arguments.verdict.verdicts(), arguments.server.account()
    arguments.folders.training_folders()
    check_outputs(checkpoint=arguments.path)
    chatty = arguments.verbose or arguments.folders.dry_run or (sys.stdout is not None and sys.stdout.isatty())
    limit = DecisionOptions(
        None, arguments.max_false_positive_rate, None if arguments.max_false_positive_rate is None else SPAM
    )
    run = _Run(arguments.folders, verdicts, arguments.path, limit, arguments.vectors, arguments.allow_gap)
    logging.getLogger("stream_pegasos.mail.mailbox_filter").setLevel(logging.INFO if chatty else logging.WARNING)
    with Interrupt() as interrupt:
        try:
            with closing(run.ledger), suppress(KeyboardInterrupt):
                run.watch(account, arguments.once, arguments.moved, interrupt)
        except (ConnectionFailedError, RefusedError) as error:
            raise Failure(f"{account.host}: {error}") from None
    print_lines(run.summary())
    if interrupt.signal is not None:
        raise click.exceptions.Exit(128 + interrupt.signal)


class _Run:
    """One run of the command; the first connection makes its filter."""

    def __init__(
        self,
        folders: FolderOptions,
        verdicts: "Verdicts",
        path: Path,
        decision: DecisionOptions,
        vectors: str | None,
        allow_gap: bool,
    ) -> None:
        from stream_pegasos.mail.imap_ledger import Ledger

        self.folders, self.path, self.verdicts = folders, path, verdicts
        try:
            keeps = not folders.dry_run
            self.ledger = Ledger(path, _new_model, verdicts, MOST_REMEMBERED, keeps, n_threads(), vectors, allow_gap)
        except ValueError as error:
            raise Failure(str(error)) from None
        set_decision(self.ledger.model, path, decision)
        self.filter: MailboxFilter | None = None

    def watch(self, account: "Account", only_once: bool, moved: bool, interrupt: Interrupt) -> None:
        from stream_pegasos.mail.imap_watch import watch

        owner = self.ledger.memory.owner
        if owner not in (None, account.name) and not moved:
            raise Failure(
                f"{self.path} belongs to {owner}, not to {account.name}; if it has moved there: --allow-moved"
            )

        begin = partial(self.begin, owner=account.name)
        watch(account, begin, self.look, only_once=only_once, wait=interrupt.wait)

    def look(self, box: "ImapConnection") -> int:
        assert self.filter is not None
        return self.filter.look(box)

    def begin(self, box: "ImapConnection", owner: str) -> None:
        from stream_pegasos.mail.imap_training import learn_folders
        from stream_pegasos.mail.mailbox_filter import MailboxFilter

        if self.filter is None:
            plan = self.folders.plan(box)
            if self.ledger.memory.owner != owner:
                self.ledger.record([["owned", owner]])
            self.filter = MailboxFilter(self.ledger, self.verdicts, plan)
        self.filter.begin(box)
        folders = self.folders.training_folders()
        if folders:
            with _progress_bar() as progress:
                learn_folders(box, self.ledger, folders, self.filter.plan.junk, progress)

    def summary(self) -> str:
        counts = {} if self.filter is None else self.filter.counts
        would = "would have " * self.folders.dry_run
        verb = "moved" if self.folders.action == "move" else "flagged"
        refused, learning = counts.get("refused", 0), self.ledger.learning
        return (
            f"{would}looked at {counts.get('judged', 0):,} new mails, {verb} {counts.get(verb, 0):,}, "
            f"learned {learning.n_learned:,}, of which {learning.n_corrected:,} were corrections"
            + (f"; {refused:,} could not be {verb}" if refused else "")
        )


def _new_model() -> "TextClassifier":
    from stream_pegasos import MailFeatures, TextClassifier

    return TextClassifier(MailFeatures())


@contextmanager
def _progress_bar() -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda n, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("learning folders")
        yield lambda n, total: bar.update(task, completed=n, total=total)
