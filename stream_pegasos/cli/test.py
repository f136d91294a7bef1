"""The command `test`."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from stream_pegasos.cli import options
from stream_pegasos.cli.command import argument, bundled, command
from stream_pegasos.cli.evaluate import ResultOptions, report
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import model_to_use, tell_of_unknown_labels
from stream_pegasos.cli.stream import labelled_stream


@dataclass(frozen=True)
class TestOptions:
    model: Path = options.model_argument()
    file: str | None = argument("FILE", "The messages with their labels; standard input without it.", default=None)
    mails: options.MailOptions = bundled()
    stream: options.StreamOptions = bundled(without=("labels",))
    decision: options.DecisionOptions = bundled()
    vectors: str | None = options.vectors_field()
    results: ResultOptions = bundled()


@command(TestOptions)
def test(arguments: TestOptions) -> None:
    """Print how well a saved model predicts a file; learn nothing.

    Use it on messages that the model has not learned. It prints the metrics
    that evaluate prints, and the model stays as it is. A label that the model
    does not know counts as one more class, which is never predicted. Lines
    that cannot be read are reported and skipped.

    \b
    Examples:
      stream-pegasos test mail.safetensors held_out.jsonl
      stream-pegasos test m.safetensors new.csv --output answers.csv
      stream-pegasos test mail.safetensors --spam Junk.mbox --ham Inbox.mbox
      stream-pegasos test m.safetensors new.csv --pos-label spam --threshold 0.9
    """
    file = "-" if arguments.file is None and not arguments.mails.given else arguments.file
    arguments.results.check()
    stream = labelled_stream(file, arguments.mails, arguments.stream)
    learner = model_to_use(arguments.model, stream, arguments.decision, arguments.vectors)
    source = Input(stream, learner, unreadable=bool(arguments.results.output))
    with Interrupt() as interrupt, closing(source):
        report(learner, source, interrupt, arguments.results, learn=False, threads=options.n_threads())
    tell_of_unknown_labels(learner, source.labels_met)
    exit_with_code(source, interrupt)
