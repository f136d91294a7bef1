"""The command `evaluate`."""

import csv
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_pegasos.cli.console import check_outputs, print_lines, printable, rate, writing
from stream_pegasos.cli.inputs import FileInput, Input, SyntheticInput, bad_lines, progress_bar
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import new_model, save_model
from stream_pegasos.cli.options import ModelOptions, SaveOption, StreamOptions, result_option, stream_option

if TYPE_CHECKING:
    from stream_pegasos.evaluation.prequential import Evaluation


def evaluate(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The stream, - for standard input; 20,000 synthetic messages without it.",
            show_default=False,
        ),
    ] = None,
    *,
    stream: StreamOptions,
    model: ModelOptions,
    delay: Annotated[
        int,
        stream_option("--delay", min=0, metavar="N", help="Each label arrives N messages late.", default="0"),
    ] = 0,
    curve: Annotated[
        Path | None,
        result_option("--curve", metavar="CSV", help="Write the prequential curve here.", default="nowhere"),
    ] = None,
    plot: Annotated[
        Path | None,
        result_option(
            "--plot",
            metavar="FILE",
            help="Draw the curve here, a .png, .svg or .pdf; needs matplotlib.",
            default="nowhere",
        ),
    ] = None,
    save: SaveOption = None,
) -> None:
    """Predict every message of a stream, then learn it, and print how good the predictions were.

    Every prediction is made before its label is learned: the figures are
    those of live use. Lines that cannot be read or learned are reported and
    skipped.
    Exit codes: 0; 1 it failed; 2 usage; 130 Ctrl-C, after the summary.

    \b
    Examples:
      stream-pegasos evaluate
      stream-pegasos evaluate sms.jsonl.gz --plot curve.png
      stream-pegasos evaluate tweets.csv --text-field tweet --ngrams 1,2
      zcat mail.vw.gz | stream-pegasos evaluate - --format vw --delay 100
    """
    check_outputs(curve, plot, save)
    if plot:
        from stream_pegasos.evaluation.plot import FILE_TYPES  # fail before the work if matplotlib is missing

        if plot.suffix and plot.suffix.lower() not in FILE_TYPES:
            raise typer.BadParameter(f"{plot} is none of {', '.join(FILE_TYPES)}", param_hint="--plot")

    from stream_pegasos.evaluation.prequential import evaluate as evaluate_model

    source = SyntheticInput(stream) if file is None else FileInput(file, stream)
    learner = new_model(model, source)
    with Interrupt() as interrupt, ExitStack() as end:
        with progress_bar(source) as progress:
            evaluation = evaluate_model(
                learner,
                interrupt.until_signal(source),
                delay=delay,
                on_row=lambda row: progress(
                    row.n, f"accuracy {row.accuracy:.4f}, newest 1,000 {row.window_accuracy:.4f}"
                ),
                on_refused=source.refuse,
            )
        source.report_rest()
        if not evaluation.score.n and interrupt.signal is None:
            raise source.nothing("learned")
        # Each is written even where another fails; the last one put in comes first.
        if save:
            end.callback(save_model, learner, save)
        if plot:
            end.callback(_save_plot, evaluation, plot, source.name)
        if curve:
            end.callback(_save_curve, evaluation, curve)
        end.callback(print_lines, _summary(source, evaluation, learner.classes))
    exit_with_code(source, interrupt)


def _summary(source: Input, evaluation: "Evaluation", classes: tuple[Any, Any]) -> str:
    score: Any = evaluation.score
    names = [printable(label) for label in classes]
    truly = [f"truly {name}" for name in names]
    metrics = [
        ("accuracy", score.accuracy),
        ("balanced accuracy", score.balanced_accuracy),
        (f"F1 of {names[1]}", score.f1),
        ("ROC AUC", score.roc_auc),
        ("log loss", score.log_loss),
        ("calibration error", score.expected_calibration_error),
        (f"accuracy of newest {min(score.n, score.window):,}", score.window_accuracy),
    ]
    cells = [[f"{count:,}" for count in row] for row in score.confusion_matrix]
    left = max(map(len, [*truly, *(name for name, _ in metrics)]))
    width = max(map(len, [*names, *cells[0], *cells[1]]))
    head = f"{source.name}: {score.n:,} messages{rate(score.n, evaluation.seconds)}"
    head += f", {bad_lines(source)}{', interrupted' * evaluation.interrupted}"
    lines = [head, ""]
    lines += [f"{name:<{left}}  {value:.4f}" for name, value in metrics]
    lines.append("")
    for name, row in zip(["predicted", *truly], [names, *cells], strict=True):
        lines.append(f"{name:<{left}}  {row[0]:>{width}}  {row[1]:>{width}}")
    return "\n".join(lines)


def _save_curve(evaluation: "Evaluation", path: Path) -> None:
    with writing(path), open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(evaluation.score.row()._fields)
        for row in evaluation.curve:
            writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in row)


def _save_plot(evaluation: "Evaluation", path: Path, name: str) -> None:
    from stream_pegasos.evaluation.plot import save

    with writing(path):
        save(evaluation.curve, path, os.path.basename(name), evaluation.score)
