"""The command `predict`."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_pegasos.cli import options
from stream_pegasos.cli.answer_formats import ANSWERS, Output, chosen_format, format_field
from stream_pegasos.cli.command import argument, bundled, command
from stream_pegasos.cli.console import check_outputs, check_replaceable, note
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import model_to_use, tell_of_unknown_labels
from stream_pegasos.cli.stream import Stream

if TYPE_CHECKING:
    from stream_pegasos.learners.model import Model

MOST_WAITING = 10_000  # answers, until a message could be read


@dataclass(frozen=True)
class PredictOptions:
    model: Path = options.model_argument()
    file: str = argument("FILE", "The messages; standard input without it.", default="-")
    output: Path | None = options.result_field(
        "--output FILE",
        "Write the answers here.",
        brief="Write the answers here: .tsv, .csv or .jsonl.",
        shown="standard output",
    )
    output_format: str | None = format_field()
    stream: options.StreamOptions = bundled(without=("labels",))
    decision: options.DecisionOptions = bundled()
    vectors: str | None = options.vectors_field()


@command(PredictOptions)
def predict(arguments: PredictOptions) -> None:
    """Predict each message: print its label, a tab and the label's probability.

    Line n answers message n of FILE. Blank lines are not messages, except in
    the format text; they are counted at the end. A message that cannot be read
    has an empty label and probability. Labels in FILE are not used, but a note
    says if the model knows none of them. Several labels of a message are
    separated by commas (or --label-separator), and so are their probabilities. A
    model that has learned nothing yet predicts an empty label with probability 0.5.

    With --output-format an answer has more columns: the id of its message (see
    --id-field), the probabilities of all labels (a JSON object), the margin,
    and the error if there is one; with --coverage, also the set of labels (a
    JSON list). The margin is that of the positive class; with more than two
    classes, how far the label is above the next best. tsv and csv have a
    header, and several labels are a JSON list. To answer each line as it comes,
    use run.

    \b
    Examples:
      stream-pegasos predict mail.safetensors new.jsonl
      stream-pegasos predict mail.safetensors new.csv --output answers.csv
      stream-pegasos predict m.safetensors new.csv --pos-label spam --threshold 0.9
      cut -f 2 x.tsv | stream-pegasos predict m.safetensors --format text
    """
    from stream_pegasos.blocks.blockwise import chunks, encoded_ahead

    output = None if arguments.output == Path("-") else arguments.output
    check_outputs(output)
    check_replaceable(output, ANSWERS, "file of answers")
    stream = Stream(arguments.file, arguments.stream)
    learner = model_to_use(arguments.model, stream, arguments.decision, arguments.vectors)
    source = Input(stream, learner, unlabelled=True, unreadable=True)
    format = chosen_format(arguments.output_format, output, stream.separator, has_sets=learner.coverage is not None)
    with Interrupt() as interrupt, closing(Output(format, output)) as out:
        answers = _Answers(learner, source, out, options.n_threads())
        try:
            for chunk in encoded_ahead([learner], chunks(interrupt.until_signal(source))):
                interrupt.wait(answers.give, chunk)
            source.report_rest()
            source.report_blank()
            if source.n_bad and not answers.n:
                raise source.nothing("read")
            source.tell_of_nothing()
            interrupt.wait(answers.write)
            tell_of_unknown_labels(learner, source.labels_met, only_all=True)
        except KeyboardInterrupt:
            note(f"interrupted after {answers.n:,} messages, {source.bad_lines()}")
            source.report_rest()
            source.report_blank()
    exit_with_code(source, interrupt)


class _Answers:
    """Writes answers. They wait until a message could be read, or until there are 10,000. If none can be read, e.g.
    because an option is wrong, nothing is written, and an old file stays unchanged.
    """

    def __init__(self, model: "Model", source: Input, output: Output, threads: int) -> None:
        self.n = 0  # number of messages that could be read
        self._model, self._source, self._output, self._threads = model, source, output, threads
        self._waiting: list[Any] = []

    def give(self, chunk: list[Any]) -> None:
        from stream_pegasos.runtime.answers import answer

        answers = answer(self._model, chunk, self._source.refuse, self._output.format.in_full, self._threads)
        self._waiting += answers
        n = sum(single_answer.error is None for single_answer in answers)
        if self.n or n or len(self._waiting) > MOST_WAITING:
            self.write()
        self.n += n

    def write(self) -> None:
        """Write the waiting answers."""
        waiting, self._waiting = self._waiting, []
        self._output.open()
        self._output.write(waiting)
