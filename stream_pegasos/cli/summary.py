"""What `evaluate` prints."""

import math
from typing import TYPE_CHECKING, Any

from stream_pegasos.cli.console import printable, rate
from stream_pegasos.cli.inputs import Input, bad_lines

if TYPE_CHECKING:
    from stream_pegasos.evaluation.prequential import Evaluation
    from stream_pegasos.evaluation.tallies import ClassRow, OtherRow, Score

MOST_CLASSES = 20
MOST_PAIRS = 10
LONGEST_LABEL = 50  # characters shown in a table


def summary(
    source: Input, evaluation: "Evaluation", classes: tuple[Any, ...], report: bool = False, confusions: bool = False
) -> str:
    """How good the predictions were, in a few tables; in a report all classes, the worst first."""
    score = evaluation.score
    head = f"{source.name}: {score.n:,} messages{rate(score.n, evaluation.seconds)}"
    head += f", {bad_lines(source)}{', interrupted' * evaluation.interrupted}"
    tables = []
    if score.kind == "two classes":
        tables = _of_two(score, classes) + [""] * (report or confusions)
    tables += _of_several(score, report, confusions)
    return "\n".join([head, "", *tables])


def _of_two(score: Any, classes: tuple[Any, ...]) -> list[str]:
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
    lines = [f"{name:<{left}}  {value:.4f}" for name, value in metrics]
    lines.append("")
    for name, row in zip(["predicted", *truly], [names, *cells], strict=True):
        lines.append(f"{name:<{left}}  {row[0]:>{width}}  {row[1]:>{width}}")
    return lines


def _of_several(score: "Score", report: bool, confusions: bool) -> list[str]:
    """The figures; the commonest classes, the rest summed up; the pairs that were confused most often. Of two classes,
    of which all was said, only what is asked for.
    """
    is_said = score.kind == "two classes"
    figures = {} if is_said else {_name(name, score): f"{value:.4f}" for name, value in score.figures().items()}
    several = score.kind == "several labels"
    others = None if report or is_said else score.others(MOST_CLASSES)
    rows: list[ClassRow | OtherRow] = [*score.of_classes(None if report else 0 if is_said else MOST_CLASSES)]
    if report:
        rows.sort(key=lambda row: row.f1)
    names = [_shown(row[0]) for row in rows]
    if others is not None:
        rows.append(others)
        names.append(f"{others.n_classes:,} other{'s' * (others.n_classes != 1)}")
    n_classes = len(score.tally)
    title = f"{n_classes:,} {'label' if several else 'class'}{('s' if several else 'es') * (n_classes != 1)}"
    pairs = score.confused(None if confusions else 0 if is_said else MOST_PAIRS)
    confused = [(_shown(truth), _shown(other), f"{count:,}") for truth, other, count in pairs]
    truly = "missed" if several else "truly"
    left = max(map(len, [*figures, title, *names, truly, *(pair[0] for pair in confused)]))
    tables = [[f"{name:<{left}}  {value}" for name, value in figures.items()]] if figures else []
    if report or not is_said:
        cells = [[*map(_share, row[1:4]), f"{row[4]:,}"] for row in rows]
        width = max(len("count"), *(len(row[3]) for row in cells)) if cells else 0
        lines = [f"{title:<{left}}  precision  recall      F1  {'count':>{width}}"]
        for name, (precision, recall, f1, count) in zip(names, cells, strict=True):
            lines.append(f"{name:<{left}}  {precision:>9}  {recall:>6}  {f1:>6}  {count:>{width}}")
        tables.append(lines)
    if confused:
        middle = max(len("predicted"), *(len(pair[1]) for pair in confused))
        width = max(len("count"), *(len(pair[2]) for pair in confused))
        lines = [f"{truly:<{left}}  {'predicted':<{middle}}  {'count':>{width}}"]
        tables.append(lines + [f"{a:<{left}}  {b:<{middle}}  {count:>{width}}" for a, b, count in confused])
    return [line for i, table in enumerate(tables) for line in [""] * (i > 0) + table]


def _name(figure: str, score: "Score") -> str:
    name = figure.replace("_", " ").replace("f1", "F1").replace("hamming", "Hamming")
    if name.startswith("window "):
        name = f"{name.removeprefix('window ')} of newest {min(score.n, score.window):,}"
    return name


def _shown(label: Any) -> str:
    name = printable(label)
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
