"""The command `stream-pegasos`.

What only some commands need is imported by them when they run, so that --help is there at once.
"""

import io
import sys
import warnings
from typing import Annotated

import typer

from stream_pegasos.cli.console import Failure, note
from stream_pegasos.cli.evaluate import evaluate
from stream_pegasos.cli.explain import explain
from stream_pegasos.cli.options import Command, with_options
from stream_pegasos.cli.predict import predict
from stream_pegasos.cli.run import run
from stream_pegasos.cli.serve import serve
from stream_pegasos.cli.test import test
from stream_pegasos.cli.train import train

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # which cuts no name of an option
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from stream_pegasos import __version__

        print(f"stream-pegasos {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn to classify a stream of messages, one message at a time.

    \b
    stream-pegasos evaluate
    stream-pegasos evaluate mail.jsonl.gz
    stream-pegasos evaluate stars.csv --ordered
    stream-pegasos train mail.csv --save m.safetensors
    stream-pegasos test m.safetensors held_out.csv
    stream-pegasos predict m.safetensors new.csv
    tail -f mail.jsonl | stream-pegasos run --save m.safetensors
    """


for _command in (evaluate, train, test, predict, run, serve, explain):
    app.command(cls=Command)(with_options(_command))


def main() -> None:
    """The entry point: every failure is one line on standard error."""
    warnings.formatwarning = lambda message, *_, **__: f"stream-pegasos: {message}\n"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="stream-pegasos")
    except (Failure, ImportError) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except ValueError as error:
        from stream_pegasos.evaluation.prequential import ExampleError
        from stream_pegasos.streams import StreamError

        if isinstance(error, ExampleError):
            message = f"line {error.example[3]}: {error}"
        elif isinstance(error, StreamError):
            message = str(error)
        else:
            raise
    note("error: " + " ".join(message.splitlines()))
    sys.exit(1)
