"""The command `evaluate`."""

import csv
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stream_pegasos.cli import options
from stream_pegasos.cli.answer_formats import ANSWERS, EvaluatedAnswers, Output, chosen_format
from stream_pegasos.cli.command import argument, bundled, command, number
from stream_pegasos.cli.console import Failure, check_outputs, check_plot, check_replaceable, print_lines, writing
from stream_pegasos.cli.description_options import DescriptionOptions
from stream_pegasos.cli.inputs import Input, model_for_first_message, progress_bar
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import (
    load_model,
    message_fields,
    new_model,
    save_model,
    takes_several,
    takes_text,
    tell_of_labels,
)
from stream_pegasos.cli.stream import Stream, labelled_stream
from stream_pegasos.cli.suspect_files import check_suspects, write_suspects

if TYPE_CHECKING:
    from stream_pegasos.blocks.predicted import Labelled
    from stream_pegasos.evaluation.results import Comparison, Evaluation
    from stream_pegasos.learners.label_policy import Label
    from stream_pegasos.learners.model import Model
    from stream_pegasos.streams import Example


@dataclass(frozen=True)
class ResultOptions:
    """Outputs of an evaluation, beside the summary."""

    plot: Path | None = options.result_field(
        "--plot FILE",
        "Draw the curve here, a .png, .svg or .pdf, which needs matplotlib; or write its numbers, to a .csv.",
        brief="Draw accuracy over the stream: .png, .svg or .pdf.",
        shown="nowhere",
    )
    output: Path | None = options.result_field(
        "--output FILE",
        "Write the prediction of each message here, beside its true label: a .tsv, .csv or .jsonl.",
        brief="Write each prediction beside its true label.",
        shown="nowhere",
        earlier=("--predictions",),
    )
    suspects: Path | None = options.result_field(
        "--suspects FILE",
        "Write the messages whose label looks wrong here, the most suspicious first, at most 10,000: a .csv or .jsonl.",
        shown="nowhere",
    )
    report: bool = options.result_field(
        "--report", "Print all classes, worst F1 first, and all confused pairs.", default=False
    )

    def check(self, save: Path | None = None) -> None:
        """Fail before the work begins if an output cannot be written."""
        check_outputs(self.plot, self.output, self.suspects, save=save)
        check_suspects(self.suspects)
        check_replaceable(self.output, ANSWERS, "file of answers")
        check_plot(self.plot)


@dataclass(frozen=True)
class EvaluateOptions:
    file: str | None = argument(
        "FILE", "The stream, - for standard input; 20,000 synthetic messages without it.", default=None
    )
    mails: options.MailOptions = bundled()
    stream: options.StreamOptions = bundled()
    model: options.ModelOptions = bundled()
    descriptions: DescriptionOptions = bundled()
    compare: tuple[str, ...] = options.result_field(
        "--compare MODEL",
        "Give each message to this saved model, too, and print how much better one is; may be repeated.",
        default=(),
        shown="nothing is compared",
    )
    delay: int = options.stream_field(
        "--delay N", "Each label arrives N messages late.", type=number(int, 0), default=0, shown="0"
    )
    results: ResultOptions = bundled()
    save: Path | None = options.save_field()


@command(EvaluateOptions)
def evaluate(arguments: EvaluateOptions) -> None:
    """Predict each message of a stream, then learn it; print the metrics.

    Every prediction is made before its label is learned, so the metrics are
    those of live use. New classes are learned when they first appear. If the
    first message has a list of labels, each message may have several. Lines
    that cannot be read or learned are reported and skipped; --output
    writes their error. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 Ctrl-C
    (the summary is still printed).

    \b
    Examples:
      stream-pegasos evaluate
      stream-pegasos evaluate sms.jsonl.gz --plot curve.png
      stream-pegasos evaluate sms.jsonl.gz --compare yesterday.safetensors
      stream-pegasos evaluate sms.jsonl.gz --suspects suspects.csv
      stream-pegasos evaluate stars.csv --ordered
      stream-pegasos evaluate news.csv --label-field topics --label-separator ';'
      stream-pegasos evaluate --spam spam.mbox --ham ham/
      stream-pegasos evaluate tweets.csv --text-field tweet --half-life 1000
      zcat mail.vw.gz | stream-pegasos evaluate - --format vw --delay 100
    """
    arguments.results.check(arguments.save)
    is_synthetic = arguments.file is None and not arguments.mails.given
    stream = (
        Stream(None, arguments.stream)
        if is_synthetic
        else labelled_stream(arguments.file, arguments.mails, arguments.stream)
    )
    learner = new_model(arguments.model, stream)
    compared = {path: load_model(Path(path), stream) for path in arguments.compare}
    known_labels = _known_labels(compared)
    descriptions = arguments.descriptions.read(learner, stream.listed, known_labels)
    source = Input(
        stream, learner, unreadable=bool(arguments.results.output), known_labels=[*known_labels, *descriptions]
    )
    with Interrupt() as interrupt, closing(source):
        learner = model_for_first_message(learner, arguments.model, source, interrupt.wait)
        for path, other in compared.items():
            _check_alike(learner, other, path)
        arguments.descriptions.learn(learner, descriptions)
        models = {"this model": learner, **compared}
        report(
            models if arguments.compare else learner,
            source,
            interrupt,
            arguments.results,
            arguments.save,
            delay=arguments.delay,
            threads=options.n_threads(),
            marks={10_000: "words change"} if is_synthetic else None,
        )
    tell_of_labels(learner, (), source.labels_met)
    exit_with_code(source, interrupt)


def _check_alike(learner: "Model", other: "Model", path: str) -> None:
    """Raise a Failure if a compared model does not take the messages and labels of the new one."""
    if takes_several(other) != takes_several(learner):
        multiple, single = (path, "the new model") if takes_several(other) else ("the new model", path)
        way_out = "see --multi-label" if takes_several(other) else "compare models of several labels"
        raise Failure(f"{multiple} takes several labels a message, and {single} one label; {way_out}")
    own_fields, other_fields = message_fields(learner), message_fields(other)
    if (
        takes_text(other) != takes_text(learner)
        or bool(other_fields) != bool(own_fields)
        or not {*other_fields} <= {*own_fields}
    ):
        raise Failure(
            f"{path} reads {_read_by(other)}, and the new model {_read_by(learner)}; see --text-field, --fields"
        )


def _read_by(model: "Model") -> str:
    fields = message_fields(model)
    return f"the fields {', '.join(fields)}" if fields else "a text" if takes_text(model) else "features"


def _known_labels(models: dict[str, Any]) -> "list[Label]":
    """The labels of the compared models; all models read the labels of the stream by them."""
    from stream_pegasos.learners.label_policy import LabelPolicy

    for (path, model), (other_path, other_model) in combinations(models.items(), 2):
        policy = LabelPolicy(other_model.classes)
        for label in model.classes:
            for same in policy.candidates(label):
                if same == label:
                    continue
                same_as = f"the label {label!r} of one is {same!r} of the other"
                raise Failure(f"{path} and {other_path} cannot be compared: {same_as}")
    return [label for model in models.values() for label in model.classes]


def report(
    model: "Model | dict[str, Model]",
    source: Input,
    interrupt: Interrupt,
    results: ResultOptions,
    save: Path | None = None,
    **parameters: Any,
) -> None:
    """Evaluate a model, print the summary and write the outputs; `parameters` are for `prequential`."""
    from stream_pegasos.evaluation.prequential import prequential
    from stream_pegasos.evaluation.results import Comparison

    path = results.output
    first = next(iter(model.values())) if isinstance(model, dict) else model
    format = None if path is None else chosen_format(None, path, has_truth=True, has_sets=first.coverage is not None)
    output = None if format is None else Output(format, path)
    examples, refuse = interrupt.until_signal(source), source.refuse
    with ExitStack() as end:
        if output is not None:
            answers = EvaluatedAnswers(end.enter_context(closing(output)))
            parameters["on_predicted"] = answers.predicted
            examples = answers.readable(examples)

            def refuse(example: "Labelled", reason: str) -> None:
                answers.refused(cast("Example", example), reason)
                source.refuse(example, reason)

        with progress_bar(source) as progress:
            evaluation = prequential(
                examples,
                model,
                name=source.name,
                on_row=lambda row: progress(row.n, _headline(row)),
                on_refused=refuse,
                **parameters,
            )
        source.report_rest()
        single = next(iter(evaluation.values())) if isinstance(evaluation, Comparison) else evaluation
        if not single.score.n and interrupt.signal is None:
            raise source.nothing("learned" if parameters.get("learn", True) else "scored")
        # Each output is written even if another fails; callbacks run in reverse order.
        if save:
            end.callback(save_model, next(iter(model.values())) if isinstance(model, dict) else model, save)
        if results.plot:
            end.callback(_save_curve, evaluation, single, results.plot)
        if results.suspects:
            end.callback(write_suspects, single.label_errors, results.suspects)
        if output is not None:
            end.callback(answers.write)
        notes = [source.bad_lines()]
        report = (
            evaluation.report(notes) if isinstance(evaluation, Comparison) else evaluation.report(results.report, notes)
        )
        end.callback(print_lines, report)


def _headline(row: Any) -> str:
    """The most important figure, for all and for the newest messages."""
    name = row._fields[1]
    return f"{name} {row[1]:.4f}, newest 1,000 {row._asdict()[f'window_{name}']:.4f}"


def _save_curve(evaluation: "Evaluation | Comparison", first: "Evaluation", path: Path) -> None:
    """Draw the curves of all models, or write the numbers of the first one."""
    if path.suffix.lower() != ".csv":
        with writing(path):
            evaluation.plot(path)
        return
    with writing(path), open(path, "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(first.score.row()._fields)
        for row in first.curve:
            writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in row)
