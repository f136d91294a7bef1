"""The command `serve`."""

from pathlib import Path
from typing import Annotated

import click

from stream_pegasos.cli.console import Failure, check_outputs, note
from stream_pegasos.cli.models import resuming, takes_text
from stream_pegasos.cli.options import (
    CheckpointEvery,
    CheckpointOption,
    CheckpointSeconds,
    LoadOption,
    ModelOptions,
    service_option,
)


def serve(
    *,
    checkpoint: CheckpointOption = None,
    every: CheckpointEvery = 10_000,
    seconds: CheckpointSeconds = 10.0,
    load: LoadOption = None,
    host: Annotated[
        str,
        service_option(
            "--host",
            brief="Where to listen [default: 127.0.0.1]",
            metavar="ADDRESS",
            help="Where to listen.",
            default="127.0.0.1",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        service_option(
            "--port",
            brief="Where to listen [default: 8000]",
            min=0,
            max=65535,
            metavar="N",
            help="Where to listen; 0 for any port that is free.",
            default="8000",
        ),
    ] = 8000,
    token_file: Annotated[
        Path | None,
        service_option(
            "--token-file",
            brief="File of the token that requests must carry.",
            metavar="FILE",
            help="Requests must carry the bearer token that stands here.",
            default="none",
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
            help="How many ids are remembered of messages learned.",
            default="100000",
        ),
    ] = 100_000,
    model: ModelOptions,
) -> None:
    """Predict and learn over HTTP, and show it on a page.

    POST /predict takes {"text": …} or a list of such messages; POST /learn
    takes the same with a "label", which is a list with --multi-label. A
    message whose "id" was learned before is not learned again. GET / is the
    page, /openapi.json lists the rest. Without --token-file whoever reaches
    the address may read and teach the model. Therefore it listens on this
    machine only. For others, give it a token and put a proxy with TLS before
    it.

    \b
    Examples:
      stream-pegasos serve --checkpoint mail.safetensors
      curl 127.0.0.1:8000/predict --json '{"text": "win a prize"}'
    """
    import ipaddress

    from stream_pegasos.service import LOOPBACK, Limits, Service, create_app
    from stream_pegasos.service import serve as serve_app

    check_outputs(checkpoint)
    if not host:
        raise click.BadParameter("it is empty; 0.0.0.0 is every address of this machine", param_hint="--host")
    token = None if token_file is None else token_file.read_text("ascii", "replace").strip()
    if token == "":
        raise Failure(f"{token_file} is empty")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise Failure(f"{token_file} must hold one line of ASCII, the token")
    limits = Limits(max_body, max_text, max_batch, max_concurrency, classes=max_classes)
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    hosts = (*LOOPBACK, f"[{host}]" if ":" in host else host) if local else ("*",)
    with resuming(checkpoint, every, seconds, load, model, None) as (checkpoints, learner, progress):
        if not takes_text(learner):
            raise Failure(f"{load or checkpoint} is a model of features, not of texts")
        if progress and "sources" in progress:
            raise Failure(
                f"{checkpoint} is about {progress['sources'][0]}, which run reads; --load takes the model alone"
            )
        try:
            service = Service(learner, checkpoints, progress, limits, token, id_window)
        except ValueError as error:
            raise Failure(f"{checkpoint}: {error}") from None
        if not local and token is None:
            note(f"anyone who reaches {host} may teach the model; see --token-file")
        app = create_app(service, hosts)
        serve_app(app, host, port, limits, lambda url: note(f"listening on {url}"))
