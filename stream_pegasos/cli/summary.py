"""What `evaluate` prints."""

import math
from typing import TYPE_CHECKING, Any

from stream_pegasos.cli.console import printable, rate
from stream_pegasos.cli.inputs import Input
from stream_pegasos.common.display import shortened

if TYPE_CHECKING:
    from stream_pegasos.evaluation.prequential import Evaluation
    from stream_pegasos.evaluation.tallies import ClassRow, OtherRow, Score

MOST_CLASSES = 20
MOST_PAIRS = 10
LONGEST_LABEL = 50  # characters shown in a table


def summary(source: Input, evaluation: "Evaluation", report: bool = False) -> str:
    """How good the predictions were, in three tables: the metrics; the commonest classes, the rest summed up, or in a
    report all of them, the worst first; the pairs that were confused most often, in a report all.
    """
    score = evaluation.score
    head = f"{source.name}: {score.n:,} messages{rate(score.n, evaluation.seconds)}"
    head += f", {source.bad_lines()}{', interrupted' * evaluation.interrupted}"
    if score.n_unanswered > 1:  # of the first message nothing can be known
        head += f"; {score.n_unanswered:,} came before any label, had no answer and are in no metric"
    metrics = {_name(name, score): f"{value:.4f}" for name, value in score.metrics().items()}
    several = score.kind == "several labels"
    rows: list[ClassRow | OtherRow] = [*score.of_classes(None if report else MOST_CLASSES)]
    if report:
        rows.sort(key=lambda row: row.f1)
    names = [_shown(row[0]) for row in rows]
    others = None if report else score.others(MOST_CLASSES)
    if others is not None:
        rows.append(others)
        names.append(f"{others.n_classes:,} other{'s' * (others.n_classes != 1)}")
    n_classes = len(score.tally)
    title = f"{n_classes:,} {'label' if several else 'class'}{('s' if several else 'es') * (n_classes != 1)}"
    pairs = score.confused(None if report else MOST_PAIRS)
    confused = [(_shown(truth), _shown(other), f"{count:,}") for truth, other, count in pairs]
    truly = "missed" if several else "truly"
    left = max(map(len, [*metrics, title, *names, truly, *(pair[0] for pair in confused)]))
    lines = [head, "", *(f"{name:<{left}}  {value}" for name, value in metrics.items())]
    cells = [[*map(_share, row[1:4]), f"{row[4]:,}"] for row in rows]
    width = max(len("count"), *(len(row[3]) for row in cells)) if cells else 0
    lines += ["", f"{title:<{left}}  precision  recall      F1  {'count':>{width}}"]
    for name, (precision, recall, f1, count) in zip(names, cells, strict=True):
        lines.append(f"{name:<{left}}  {precision:>9}  {recall:>6}  {f1:>6}  {count:>{width}}")
    if confused:
        middle = max(len("predicted"), *(len(pair[1]) for pair in confused))
        width = max(len("count"), *(len(pair[2]) for pair in confused))
        lines += ["", f"{truly:<{left}}  {'predicted':<{middle}}  {'count':>{width}}"]
        lines += [f"{a:<{left}}  {b:<{middle}}  {count:>{width}}" for a, b, count in confused]
    return "\n".join(lines)


def _name(metric: str, score: "Score") -> str:
    from stream_pegasos.evaluation.tallies import spelled

    if metric == "f1":
        return f"F1 of {printable(getattr(score, 'positive', None))}"
    newest = f" of newest {min(score.n_answered, score.window):,}" if metric.startswith("window_") else ""
    return spelled(metric) + newest


def _shown(label: Any) -> str:
    return shortened(printable(label), LONGEST_LABEL)


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
