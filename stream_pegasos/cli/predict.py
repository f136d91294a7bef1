"""The command `predict`."""

from typing import Annotated, Any

import typer

from stream_pegasos.cli.console import answer_line, note, print_lines
from stream_pegasos.cli.inputs import FileInput, bad_lines
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import load_model
from stream_pegasos.cli.options import ModelArgument, StreamOptions


def predict(
    model: ModelArgument,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The messages; standard input without it."),
    ] = "-",
    *,
    stream: StreamOptions,
) -> None:
    """Print a line for each message: the predicted label, a tab and the probability of that label.

    Labels in FILE are not needed and not used. Where labels hold together,
    commas (or --label-separator) stand between them, and between their
    probabilities. Lines that cannot be read give no line. A model that has
    learned nothing yet predicts an empty label with probability 0.5. For an
    answer to each line as it comes, use run.

    \b
    Examples:
      stream-pegasos predict mail.safetensors new.jsonl
      cut -f 2 x.tsv | stream-pegasos predict m.safetensors --format text
    """
    from stream_pegasos.evaluation.prequential import chunks

    source = FileInput(file, stream, unlabelled=True)
    learner = load_model(model, source)
    n = 0
    with Interrupt() as interrupt:
        try:
            for chunk in chunks(interrupt.until_signal(source)):
                n += interrupt.wait(_print_answers, learner, chunk, source)
        except KeyboardInterrupt:
            note(f"interrupted after {n:,} messages, {bad_lines(source)}")
    source.report_rest()
    if source.n_bad and not n:
        raise source.nothing("read")
    exit_with_code(source, interrupt)


def _print_answers(model: Any, chunk: list[Any], source: FileInput) -> int:
    """How many there were."""
    from stream_pegasos.evaluation.prequential import predict_accepted

    def refuse(number: int, reason: str) -> None:
        source.refuse(chunk[number], reason)

    predictions = predict_accepted(model, [example.x for example in chunk], refuse)
    separator = source.separator or ","
    lines = [answer_line(said.label, said.probability, separator) for said in predictions if said is not None]
    if lines:
        print_lines("\n".join(lines))
    return len(lines)
