"""The command `test`."""

from contextlib import closing
from pathlib import Path

import click

from stream_pegasos.cli.command import Command, argument, bundled
from stream_pegasos.cli.evaluate import ResultOptions, report
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import model_to_use
from stream_pegasos.cli.options import (
    DecisionOptions,
    MailOptions,
    StreamOptions,
    model_argument,
    n_threads,
    threads_option,
    vectors_option,
)
from stream_pegasos.cli.stream import labelled_stream


@click.command(cls=Command)
@model_argument
@argument("file", "FILE", "The messages with their labels; standard input without it.", default=None)
@bundled("mails", MailOptions)
@bundled("stream", StreamOptions)
@threads_option
@bundled("decision", DecisionOptions)
@vectors_option
@bundled("results", ResultOptions)
def test(
    model: Path,
    file: str | None,
    mails: MailOptions,
    stream: StreamOptions,
    threads: int | None,
    decision: DecisionOptions,
    vectors: str | None,
    results: ResultOptions,
) -> None:
    """Print how well a saved model predicts the messages of a file, and learn none of them.

    Use it on messages that the model has not learned. It prints the figures
    that evaluate prints, and the model stays as it is. A label that the model
    does not know counts as one more class, which is never predicted. Lines
    that cannot be read are reported and skipped.

    \b
    Examples:
      stream-pegasos test mail.safetensors held_out.jsonl
      stream-pegasos test m.safetensors new.csv --predictions answers.csv
      stream-pegasos test mail.safetensors --spam Junk.mbox --ham Inbox.mbox
      stream-pegasos test m.safetensors new.csv --pos-label spam --threshold 0.9
    """
    file = "-" if file is None and not mails.given else file
    results.check(model, file, *mails.paths)
    asked = labelled_stream(file, mails, stream)
    learner = model_to_use(model, asked, decision, vectors)
    source = Input(asked, learner, unreadable=bool(results.predictions))
    with Interrupt() as interrupt, closing(source):
        report(learner, source, interrupt, results, learn=False, threads=n_threads(threads))
    exit_with_code(source, interrupt)
