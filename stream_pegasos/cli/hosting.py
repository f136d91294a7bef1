"""Where a command that serves a page listens, and who may come."""

import ipaddress
from pathlib import Path

import click

from stream_pegasos.cli.console import Failure, note


def token_of(path: Path | None) -> str | None:
    """The token that stands in a file."""
    token = None if path is None else path.read_text("ascii", "replace").strip()
    if token == "":
        raise Failure(f"{path} is empty")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise Failure(f"{path} must hold one line of ASCII, the token")
    return token


def hosts_of(host: str, token: str | None) -> tuple[str, ...]:
    """The names under which requests may come to an address; a note where anyone may come who reaches it."""
    from stream_pegasos.service import LOOPBACK

    if not host:
        raise click.BadParameter("it is empty; 0.0.0.0 is every address of this machine", param_hint="--host")
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local and token is None:
        note(f"anyone who reaches {host} may teach the model; see --token-file")
    return (*LOOPBACK, f"[{host}]" if ":" in host else host) if local else ("*",)
