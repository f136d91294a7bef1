"""The command `stream-pegasos`.

Each command's module is imported only when the command is run, and imports its own dependencies then, so that --help is
fast.
"""

import io
import logging
import platform
import sys
import warnings
from importlib import import_module

import click

from stream_pegasos import __version__
from stream_pegasos.cli.console import Failure, LogHandler, note

COMMANDS = {
    "evaluate": "Predict each message, then learn it; print the metrics.",
    "train": "Learn a stream in one pass and save the model.",
    "test": "Print how well a saved model predicts a file; learn nothing.",
    "predict": "Predict each message of a file with a saved model.",
    "run": "Predict and learn the messages of a live source.",
    "serve": "Predict and learn over HTTP, with a live page.",
    "mail-filter": "Mark a mail as spam or ham by headers.",
    "imap": "Filter an IMAP mailbox; learn when people move mails.",
    "label": "Ask on a page for the labels of a file; save them.",
    "explain": "Print the heaviest features, or explain a prediction.",
    "tune": "Find the features and options that predict a stream best.",
    "forget-class": "Remove a class from a model, such as a typo.",
}


class _Commands(click.Group):
    """The commands, each in the module of its name, which is imported when the command is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"{__name__}.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from stream_pegasos.cli.suggestions import command_meant

            name = command_meant(args[0], COMMANDS)
            advice = f" Did you mean {name!r}?" if name else ""
            raise click.UsageError(f"{error.message}{advice}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


def _show_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Print the versions that a bug report needs, on one line."""
    if not is_asked or ctx.resilient_parsing:
        return
    from stream_pegasos.engine import NAME

    python, system = platform.python_version(), f"{platform.system()} {platform.machine()}"
    click.echo(f"stream-pegasos {__version__}, {NAME} engine, Python {python}, {system}")
    ctx.exit()


@click.group(cls=_Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    *("-V", "--version"),
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, the engine, Python and the system.",
)
def _app() -> None:
    """Learn to classify a stream of messages, one message at a time.

    \b
    stream-pegasos evaluate mail.jsonl.gz
    """


def main() -> None:
    """The entry point: every failure is one line on standard error."""
    log = logging.getLogger("stream_pegasos")
    if not log.handlers:
        log.addHandler(LogHandler())
    warnings.formatwarning = lambda message, *_, **__: f"stream-pegasos: {message}\n"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Output outside a terminal is UTF-8 in any locale, as files are.
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    try:
        _app(prog_name="stream-pegasos")
    except (Failure, ImportError) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except ValueError as error:
        from stream_pegasos.blocks.blockwise import ExampleError
        from stream_pegasos.streams import StreamError

        if isinstance(error, ExampleError):
            line = error.example[3:4]  # the line, if the example comes from a file
            message = f"line {line[0]}: {error}" if line else str(error)
        elif isinstance(error, StreamError):
            message = str(error)
        else:
            raise
    note("error: " + " ".join(message.splitlines()))
    sys.exit(1)
