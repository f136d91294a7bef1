"""Mails beside HTTP: SpamAssassin's protocol, and models of users."""

import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli.console import Failure, note
from stream_pegasos.cli.mail_options import VerdictOptions, mail_field
from stream_pegasos.cli.options import CheckpointOptions

if TYPE_CHECKING:
    from stream_pegasos.mail.users import Make
    from stream_pegasos.operation.live_learner import LiveLearner

MOST_USER_MODELS = 100  # in memory at a time: one of a small mail system takes some 2 MB, a large one 20 MB
Beside = Callable[[], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True)
class SpamdOptions:
    """Where SpamAssassin's protocol is spoken, and for whom."""

    spamd: str | None = mail_field(
        "--spamd ADDRESS",
        "Also speak SpamAssassin's protocol, in place of its spamd: at 127.0.0.1:783, [::1]:783, 783 for this machine "
        "only, or the path, with a /, of a Unix socket; port 0 is any free one.",
        brief="Where to speak SpamAssassin's protocol.",
        shown="nowhere",
    )
    spamd_teach: str | None = mail_field(
        "--spamd-teach WHO",
        "With --spamd: who may teach by this protocol. all: who has no model of his own teaches MODEL; users: only "
        "those of --user-models; none: nobody.",
        type=click.Choice(["all", "users", "none"]),
        shown="users with --user-models, else all",
    )
    user_models: Path | None = mail_field(
        "--user-models FOLDER",
        "With --spamd: a user with a folder of his name in this one has his own model there, begun as a copy of "
        "MODEL when he first teaches. Others ask MODEL, and teach nothing.",
        shown="one model for all",
    )


def check_mails(options: SpamdOptions, verdicts: VerdictOptions, learner: Any) -> None:
    """Fail before anything is served if the options or the model do not fit."""
    from stream_pegasos.mail.verdict import MailModelError

    if options.spamd_teach == "users" and options.user_models is None:
        raise click.BadParameter("users goes with --user-models, which says who they are", param_hint="--spamd-teach")
    if options.spamd is None:
        if options.user_models is not None:
            raise click.BadParameter("it goes with --spamd, which says who asks", param_hint="--user-models")
        if options.spamd_teach is not None:
            raise click.BadParameter("it goes with --spamd", param_hint="--spamd-teach")
        return
    try:
        verdicts.verdicts().check(learner)
    except MailModelError as error:
        raise Failure(f"--spamd: {error}") from None


@contextmanager
def spamd_beside(
    options: SpamdOptions, verdicts: VerdictOptions, kept: CheckpointOptions, service: "LiveLearner", make: "Make"
) -> Iterator[Beside]:
    """Yield the server of mails beside HTTP. It listens at once, so that a wrong address fails before all else."""
    if options.spamd is None:
        yield nullcontext
        return
    from stream_pegasos.mail.listening import is_local, listen, remove_path, shown_address
    from stream_pegasos.mail.spamd import Spamd
    from stream_pegasos.mail.users import UserModels
    from stream_pegasos.operation.checkpoints import Checkpoints

    if options.user_models is not None:
        if options.user_models.exists() and not options.user_models.is_dir():
            raise Failure(f"--user-models: {options.user_models} is not a folder")
        options.user_models.mkdir(mode=0o700, exist_ok=True)
    checkpoints = partial(Checkpoints, every=kept.every, seconds=kept.seconds)

    teach, may_teach = options.spamd_teach, options.spamd_teach != "none"
    users = UserModels(service, options.user_models, make, MOST_USER_MODELS, checkpoints, teach == "all")
    try:
        listener = listen(options.spamd)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--spamd") from None
    except OSError as error:
        reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror or error
        raise Failure(f"--spamd: cannot listen at {options.spamd}: {reason}") from None
    try:
        address = shown_address(listener)
        note(f"spamd's protocol is spoken at {address}")
        if not is_local(listener) and may_teach:
            note(f"anyone who reaches {address} may teach the model; see --spamd-teach")
        yield partial(Spamd(users, verdicts.verdicts(), may_teach).listening, listener)
    finally:
        remove_path(listener)
        listener.close()
