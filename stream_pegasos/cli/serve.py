"""The command `serve`."""

from pathlib import Path
from typing import Annotated

import click

from stream_pegasos.cli.command import Argument
from stream_pegasos.cli.console import Failure, check_outputs, note
from stream_pegasos.cli.hosting import AllowedHosts, hosts_of, labels_for, serve_page, token_of
from stream_pegasos.cli.inputs import allowed_labels
from stream_pegasos.cli.models import resuming, takes_text
from stream_pegasos.cli.options import (
    CheckpointEvery,
    CheckpointOption,
    CheckpointSeconds,
    HostOption,
    LoadOption,
    ModelOptions,
    PortOption,
    TakeBackSeconds,
    TokenFileOption,
    result_option,
    service_option,
)


def serve(
    begin: Annotated[
        Path | None, Argument(metavar="MODEL", help="A saved model to continue with, as by --load.")
    ] = None,
    *,
    checkpoint: CheckpointOption = None,
    every: CheckpointEvery = 10_000,
    seconds: CheckpointSeconds = 10.0,
    sync: Annotated[
        bool,
        result_option(
            "--sync",
            help="With --checkpoint, answer POST /learn only once no power cut can lose it. Without this, what was "
            "answered survives a killed process alone.",
            default="off",
        ),
    ] = False,
    load: LoadOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    token_file: TokenFileOption = None,
    allowed_host: AllowedHosts = None,
    queue: Annotated[
        int,
        service_option(
            "--queue",
            min=0,
            max=1_000_000,
            metavar="N",
            help="How many messages wait in memory for people to label them on the page; 0 for none. "
            "1000 take up to 8 MB.",
            default="1000",
        ),
    ] = 1_000,
    take_back_seconds: TakeBackSeconds = 10.0,
    labels: Annotated[
        str | None,
        service_option(
            "--labels",
            brief="The labels that alone may be learned.",
            metavar="A,B,…",
            help="The labels that alone may be learned. Others are refused; these are the buttons of the page.",
            default="any label",
        ),
    ] = None,
    max_body: Annotated[
        int, service_option("--max-body", min=1, metavar="BYTES", help="Largest body.", default="8388608")
    ] = 8 << 20,
    max_text: Annotated[
        int,
        service_option("--max-text", min=1, metavar="N", help="Longest text, in characters.", default="1000000"),
    ] = 1_000_000,
    max_batch: Annotated[
        int, service_option("--max-batch", min=1, metavar="N", help="Most messages in a request.", default="10000")
    ] = 10_000,
    max_classes: Annotated[
        int,
        service_option("--max-classes", min=1, metavar="N", help="Most labels that are learned.", default="10000"),
    ] = 10_000,
    max_concurrency: Annotated[
        int,
        service_option("--max-concurrency", min=1, metavar="N", help="Most connections at a time.", default="256"),
    ] = 256,
    id_window: Annotated[
        int,
        service_option(
            "--id-window",
            min=0,
            max=100_000_000,
            metavar="N",
            help="How many ids of learned messages are remembered.",
            default="100000",
        ),
    ] = 100_000,
    model: ModelOptions,
) -> None:
    """Predict and learn over HTTP, and show it on a page.

    POST /predict takes {"text": …} or a list of such messages. POST /learn
    takes them with a "label"; with --multi-label this is a list. A message is
    learned once: the same "id" with the same label is not learned again. GET /
    is the page, /openapi.json lists the rest. Messages sent to POST /predict
    appear on the page, where people can label them.

    With --checkpoint, nothing that was answered is lost. A journal beside
    MODEL has it, and after a kill it is learned again from there.

    Without --token-file whoever reaches the address may read and teach the
    model. So it listens on this machine only. To open it to other machines,
    give it a token and put a proxy with TLS in front of it.

    \b
    Examples:
      stream-pegasos serve mail.safetensors
      stream-pegasos serve --checkpoint mail.safetensors
      curl 127.0.0.1:8000/predict --json '{"text": "win a prize"}'
    """
    from stream_pegasos.operation.teaching import Teaching
    from stream_pegasos.service import Limits, Service

    if begin is not None and load is not None:
        raise click.BadParameter(f"{begin} is the model to continue with", param_hint="--load")
    load = begin or load
    check_outputs(models=[checkpoint], inputs=[token_file])
    token = token_of(token_file)
    limits = Limits(max_body, max_text, max_batch, max_concurrency, classes=max_classes)
    allowed = allowed_labels(labels)
    hosts = hosts_of(host, allowed_host or (), token)
    with resuming(checkpoint, every, seconds, load, model, None) as (checkpoints, learner, progress):
        if not takes_text(learner):
            raise Failure(f"{load or checkpoint} is a model of features, not of texts")
        if progress and "sources" in progress:
            raise Failure(
                f"{checkpoint} belongs to {progress['sources'][0]}, which run reads; --load takes only the model"
            )
        teaching, fixed = Teaching(queue, take_back_seconds), labels_for(learner, allowed)
        try:
            service = Service(
                learner, checkpoints, progress, limits, token, id_window, teaching=teaching, sync=sync, labels=fixed
            )
        except ValueError as error:
            raise Failure(f"{checkpoint}: {error}") from None
        if service.n_learned_again:
            note(f"learned {service.n_learned_again:,} messages again that came after the checkpoint")
        serve_page(service, hosts, host, port, "listening on")
