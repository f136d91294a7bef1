"""The options of a page: its address, the hosts that may use it, and its token."""

import errno
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli.command import number
from stream_pegasos.cli.console import Failure, check_replaceable, note
from stream_pegasos.cli.models import takes_several
from stream_pegasos.cli.options import service_field
from stream_pegasos.common.host_addresses import is_loopback

if TYPE_CHECKING:
    from stream_pegasos.learners.label_policy import Label
    from stream_pegasos.learners.model import Model
    from stream_pegasos.runtime.live_learner import LiveLearner


ACCESS_LOG = re.compile(rb"\S+ - - \[")


@dataclass(frozen=True)
class HostingOptions:
    """Options of a page: its address and the hosts that may use it."""

    host: str = service_field("--host ADDRESS", "Where to listen.", default="127.0.0.1", brief=True)
    port: int = service_field(
        "--port N", "Where to listen; 0 for any free port.", type=number(int, 0, 65535), default=8000, brief=True
    )
    token_file: Path | None = service_field(
        "--token-file FILE",
        "Requests must carry the bearer token in this file.",
        brief="File of the token that requests must carry.",
    )
    allowed_host: tuple[str, ...] = service_field(
        "--allowed-host NAME",
        "Accept requests for this host name, as from a proxy that passes Host on; may be given several times.",
        default=(),
        shown="those of this machine; with another --host any",
    )
    access_log: Path | None = service_field(
        "--access-log FILE",
        "Write a line for each request here, - for standard output: the common log format, and the seconds it took.",
        shown="no such log",
    )
    idle_seconds: int = service_field(
        "--idle-seconds S",
        "How long a connection stays open between two requests; it must be longer than in a proxy in front, or the "
        "proxy answers some requests with 502.",
        type=number(int, 1, 3600),
        default=75,
    )
    take_back_seconds: float = service_field(
        "--take-back-seconds S",
        "How long a label given on the page can be taken back; then it is learned.",
        type=number(float, 0, 3600),
        default=10.0,
    )

    def written(self) -> Path | None:
        """The file of the access log; a Failure if an existing file is of another kind."""
        path = None if self.access_log == Path("-") else self.access_log
        check_replaceable(path, ACCESS_LOG, "access log")
        return path

    def token(self) -> str | None:
        """The token in the file."""
        token = None if self.token_file is None else self.token_file.read_text("ascii", "replace").strip()
        if token == "":
            raise Failure(f"{self.token_file} is empty")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise Failure(f"{self.token_file} must hold one line of ASCII, the token")
        return token

    def hosts(self, token: str | None) -> tuple[str, ...]:
        """The host names allowed in requests; a note warns if anyone who reaches the address has access."""
        from stream_pegasos.service import LOOPBACK

        host, allowed = self.host, self.allowed_host
        if not host:
            raise click.BadParameter("it is empty; 0.0.0.0 is every address of this machine", param_hint="--host")
        for name in allowed:
            if not re.fullmatch(r"(\*\.)?[\w.-]+|\[[0-9a-fA-F:]+\]", name):
                raise click.BadParameter(
                    f"{name!r} is not a host name without a port, such as mail.example.org or *.example.org",
                    param_hint="--allowed-host",
                )
        local = is_loopback(host)
        reached = [*([] if local else [host]), *allowed]
        if reached and token is None:
            note(f"anyone who reaches {' or '.join(reached)} may teach the model; see --token-file")
        return (*LOOPBACK, f"[{host}]" if ":" in host else host, *allowed) if local or allowed else ("*",)


def labels_for(learner: "Model", listed: "tuple[Label, ...] | None") -> "tuple[Label, ...] | None":
    """The labels that may be learned; raise a click.BadParameter if the model cannot take them."""
    from stream_pegasos.learners.label_policy import LabelPolicy
    from stream_pegasos.streams.example import good_label

    if listed is None:
        return None
    try:
        learner.check_labels([listed] if takes_several(learner) else listed)
    except (TypeError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--labels") from None
    policy = LabelPolicy(learner.classes)
    return tuple(label for single in listed if (label := good_label(policy.read(single))) is not None)


def serve_page(
    service: "LiveLearner",
    hosts: tuple[str, ...],
    hosting: HostingOptions,
    doing: str,
    beside: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext,
) -> None:
    """Serve the application until SIGTERM or Ctrl-C; a note has its URL, once requests are accepted."""
    from stream_pegasos.service import AccessLog, create_app, serve

    host, port = hosting.host, hosting.port
    try:
        access_log = None if hosting.access_log is None else AccessLog(hosting.access_log)
        app = create_app(service, hosts, beside, access_log)
    except ValueError as error:  # a field has the name of another key of requests
        raise Failure(str(error)) from None
    try:
        limits = replace(service.limits, idle_seconds=hosting.idle_seconds)
        serve(app, host, port, limits, lambda url: note(f"{doing} {url}"))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise Failure(f"port {port} of {host} is in use; choose another by --port, or 0 for any free one") from None
