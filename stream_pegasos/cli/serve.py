"""The command `serve`."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stream_pegasos.cli import options
from stream_pegasos.cli.command import argument, bundled, command, number
from stream_pegasos.cli.console import Failure, check_outputs, note
from stream_pegasos.cli.hosting import HostingOptions, labels_for, serve_page
from stream_pegasos.cli.mail_options import VerdictOptions
from stream_pegasos.cli.models import check_takes_text, resuming
from stream_pegasos.cli.spamd import SpamdOptions, check_mails, spamd_beside
from stream_pegasos.cli.stream import listed_labels


@dataclass(frozen=True)
class ServeOptions:
    begin: Path | None = argument("MODEL", "A saved model to continue with.", default=None)
    kept: options.CheckpointOptions = bundled()
    sync: bool = options.result_field(
        "--sync",
        "With --checkpoint, answer POST /learn only once no power cut can lose it. Otherwise "
        "answers survive only a killed process.",
        default=False,
    )
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
    spamd: SpamdOptions = bundled()
    verdicts: VerdictOptions = bundled()
    vectors: str | None = options.vectors_field()


@command(ServeOptions)
def serve(given: ServeOptions) -> None:
    """Predict and learn over HTTP, and show it on a page.

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
    from stream_pegasos.operation.active_learning import ActiveLearning
    from stream_pegasos.operation.live_learner import LiveLearner

    check_outputs(checkpoint=given.kept.path)
    token = given.hosting.token()
    listed = listed_labels(given.labels)
    hosts = given.hosting.hosts(token)
    with resuming(given.kept, given.begin, given.vectors, None, is_mail=given.spamd.spamd is not None) as (
        checkpoints,
        learner,
        progress,
    ):
        check_takes_text(learner, given.begin or given.kept.path)
        if progress and "sources" in progress:
            raise Failure(
                f"{given.kept.path} belongs to {progress['sources'][0]}, which run reads; MODEL takes only the model"
            )
        check_mails(given.spamd, given.verdicts, learner)
        active_learning = ActiveLearning(given.queue, given.hosting.take_back_seconds)
        make = partial(LiveLearner, sync=given.sync, labels=labels_for(learner, listed))
        new = "a new model of mails (--spamd)" if given.spamd.spamd else "a new model"
        begun_with = f"the model {given.begin.resolve()}" if given.begin else new
        try:
            service = make(
                learner, checkpoints, progress, token=token, active_learning=active_learning, begun_with=begun_with
            )
        except ValueError as error:
            raise Failure(f"{given.kept.path}: {error}") from None
        if service.n_learned_again:
            note(f"learned {service.n_learned_again:,} messages again that came after the checkpoint")
        with spamd_beside(given.spamd, given.verdicts, given.kept, service, make) as beside:
            serve_page(service, hosts, given.hosting, "listening on", beside)
