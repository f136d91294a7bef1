"""The command `serve`."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli import options
from stream_pegasos.cli.command import bundled, command, number
from stream_pegasos.cli.console import Failure, check_outputs, note
from stream_pegasos.cli.hosting import HostingOptions, labels_for, serve_page
from stream_pegasos.cli.mail_options import VerdictOptions, mail_field
from stream_pegasos.cli.models import ask_for_coverage, resuming, text_model
from stream_pegasos.cli.stream import listed_labels
from stream_pegasos.cli.teacher_options import TeacherOptions

if TYPE_CHECKING:
    from stream_pegasos.learners.model import Model
    from stream_pegasos.mail.users import Make
    from stream_pegasos.runtime.live_learner import LiveLearner


@dataclass(frozen=True)
class SpamdOptions:
    """Options of SpamAssassin's protocol: its address and the users."""

    spamd: str | None = mail_field(
        "--spamd ADDRESS",
        "Also speak SpamAssassin's protocol, in place of its spamd: at 127.0.0.1:783, [::1]:783, 783 for this machine "
        "only, or the path, with a /, of a Unix socket; port 0 is any free one.",
        brief="Where to speak SpamAssassin's protocol.",
        shown="nowhere",
    )
    spamd_teach: str | None = mail_field(
        "--spamd-teach WHO",
        "With --spamd: who may teach by this protocol. all: also users without their own models, who teach MODEL; "
        "users: only those of --user-models; none: nobody.",
        type=click.Choice(["all", "users", "none"]),
        shown="users with --user-models, else all",
    )
    user_models: Path | None = mail_field(
        "--user-models FOLDER",
        "With --spamd: a user with a folder of his name in this folder has his own model there. It begins as a copy "
        "of MODEL when he first teaches. Other users ask MODEL, and teach nothing.",
        shown="one model for all",
    )


@dataclass(frozen=True)
class ServeOptions:
    begin: Path | None = options.begin_argument()
    kept: options.CheckpointOptions = bundled()
    sync: bool = options.result_field(
        "--sync",
        "With --checkpoint, answer POST /learn only once no power cut can lose it. Otherwise "
        "answers survive only a killed process.",
        default=False,
    )
    allow_gap: bool = options.gap_field()
    hosting: HostingOptions = bundled()
    queue: int = options.service_field(
        "--queue N",
        "How many messages wait in memory for people to label them on the page; 0 for none. 1000 take up to 8 MB.",
        type=number(int, 0, 1_000_000),
        default=1000,
    )
    labels: str | None = options.service_field(
        "--labels A,B,…",
        "The only labels that may be learned. Others are refused; these are the buttons of the page.",
        brief=True,
        shown="any label",
    )
    teaching: TeacherOptions = bundled()
    spamd: SpamdOptions = bundled()
    verdicts: VerdictOptions = bundled()
    coverage: float | None = options.coverage_field()
    vectors: str | None = options.vectors_field()


@command(ServeOptions)
def serve(arguments: ServeOptions) -> None:
    """Predict and learn over HTTP, with a live page.

    Make MODEL by train --save, with any options; without one, a new model
    begins with the defaults.

    POST /predict takes {"text": …} or a list of such messages. POST /learn
    takes them with a "label"; for a model of several labels, with a list. A
    message is learned once: the same "id" with the same label is not learned
    again. GET / is the page, /openapi.json lists the rest. Messages sent to
    POST /predict appear on the page, where people can label them.

    With --checkpoint, nothing that was answered is lost: after a kill it is
    learned again from a journal beside MODEL.

    Without --token-file anyone who reaches the address may read and teach the
    model. So it listens on this machine only. To open it to other machines,
    give it a token and put a proxy with TLS in front of it.

    With --teacher a language model labels some of the messages sent to POST
    /predict: those of which the model is unsure. No answer waits for it.

    With --spamd this service answers clients of SpamAssassin's spamd, such as
    spamc. MODEL must read mails, as one from train --spam … --ham … does. A
    new model reads them, too, and learns from reports (spamc -L).

    \b
    Examples:
      stream-pegasos serve mail.safetensors
      stream-pegasos serve --checkpoint mail.safetensors
      curl 127.0.0.1:8000/predict --json '{"text": "win a prize"}'
      stream-pegasos serve --checkpoint mail.safetensors --spamd 127.0.0.1:783
    """
    from stream_pegasos.runtime.active_learning import ActiveLearning
    from stream_pegasos.runtime.live_learner import LiveLearner

    spamd, users = arguments.spamd.spamd, arguments.spamd.user_models
    socket = Path(spamd) if spamd and "/" in spamd else None
    check_outputs(socket, arguments.hosting.written(), checkpoint=arguments.kept.path)
    if (
        users
        and arguments.kept.path
        and Path(os.path.realpath(arguments.kept.path)).is_relative_to(os.path.realpath(users))
    ):
        raise Failure(f"cannot write {arguments.kept.path}: it is in the folder of --user-models")
    token = arguments.hosting.token()
    listed = listed_labels(arguments.labels)
    hosts = arguments.hosting.hosts(token)
    with resuming(
        arguments.kept, arguments.begin, arguments.vectors, None, is_mail=arguments.spamd.spamd is not None
    ) as (
        checkpoints,
        learner,
        progress,
    ):
        learner = text_model(learner, arguments.begin or arguments.kept.path)
        if progress and "sources" in progress:
            raise Failure(
                f"{arguments.kept.path} belongs to {progress['sources'][0]}, which run reads; "
                "MODEL takes only the model"
            )
        _check_mails(arguments, learner)
        ask_for_coverage(learner, arguments.coverage)
        active_learning = ActiveLearning(arguments.queue, arguments.hosting.take_back_seconds)
        allowed = labels_for(learner, listed)
        make = partial(LiveLearner, sync=arguments.sync, allow_gap=arguments.allow_gap, labels=allowed)
        teaching = arguments.teaching.teaching(
            learner, allowed, str(arguments.begin or arguments.kept.path or "the model")
        )
        new = "a new model of mails (--spamd)" if arguments.spamd.spamd else "a new model"
        begun_with = f"the model {arguments.begin.resolve()}" if arguments.begin else new
        try:
            service = make(
                learner,
                checkpoints,
                progress,
                token=token,
                active_learning=active_learning,
                begun_with=begun_with,
                teaching=teaching,
            )
        except ValueError as error:
            raise Failure(f"{arguments.kept.path}: {error}") from None
        if service.n_learned_again:
            note(f"learned {service.n_learned_again:,} messages again that came after the checkpoint")
        with _spamd_beside(arguments, service, make) as beside:
            serve_page(service, hosts, arguments.hosting, "listening on", beside)


def _check_mails(arguments: ServeOptions, learner: "Model") -> None:
    """Fail before the start if the options or the model are not suitable."""
    from stream_pegasos.mail.verdict import MailModelError

    spamd = arguments.spamd
    if spamd.spamd_teach == "users" and spamd.user_models is None:
        raise click.BadParameter("users goes with --user-models, which says who they are", param_hint="--spamd-teach")
    if spamd.spamd is None:
        if spamd.user_models is not None:
            raise click.BadParameter("it goes with --spamd, which says who asks", param_hint="--user-models")
        if spamd.spamd_teach is not None:
            raise click.BadParameter("it goes with --spamd", param_hint="--spamd-teach")
        return
    try:
        arguments.verdicts.verdicts().check(learner)
    except MailModelError as error:
        raise Failure(f"--spamd: {error}") from None


@contextmanager
def _spamd_beside(
    arguments: ServeOptions, service: "LiveLearner", make: "Make"
) -> Iterator[Callable[[], AbstractAsyncContextManager[Any]]]:
    """Yield the server of mails beside HTTP. It listens at once, so that a wrong address fails first."""
    spamd = arguments.spamd
    if spamd.spamd is None:
        yield nullcontext
        return
    from stream_pegasos.mail.listening import is_local, listen, remove_path, shown_address
    from stream_pegasos.mail.spamd import Spamd
    from stream_pegasos.mail.users import UserModels
    from stream_pegasos.runtime.checkpoints import Checkpoints

    if spamd.user_models is not None:
        if spamd.user_models.exists() and not spamd.user_models.is_dir():
            raise Failure(f"--user-models: {spamd.user_models} is not a folder")
        spamd.user_models.mkdir(mode=0o700, exist_ok=True)
    n_messages, seconds, share = arguments.kept.interval
    checkpoints = partial(Checkpoints, every=n_messages, seconds=seconds, share=share)
    teach, may_teach = spamd.spamd_teach, spamd.spamd_teach != "none"
    users = UserModels(service, spamd.user_models, make, checkpoints=checkpoints, learns_common=teach == "all")
    try:
        listener = listen(spamd.spamd)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--spamd") from None
    except OSError as error:
        reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror or error
        raise Failure(f"--spamd: cannot listen at {spamd.spamd}: {reason}") from None
    try:
        address = shown_address(listener)
        note(f"spamd's protocol is spoken at {address}")
        if not is_local(listener) and may_teach:
            note(f"anyone who reaches {address} may teach the model; see --spamd-teach")
        yield partial(Spamd(users, arguments.verdicts.verdicts(), may_teach).listening, listener)
    finally:
        remove_path(listener)
        listener.close()
