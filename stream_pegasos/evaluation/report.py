"""Reports of evaluations, as text and as HTML tables."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from stream_pegasos.common.display import printable
from stream_pegasos.evaluation.tallies import Score
from stream_pegasos.learners.capabilities import LABELS

__all__ = ["MOST_CLASSES", "as_html", "as_text", "commonest", "comparison_tables", "headline", "score_tables"]

MOST_CLASSES = 20
MOST_PAIRS = 10
LONGEST_LABEL, LONGEST_BESIDE = 50, 18  # characters of a label in a table, and beside the columns of several models
_shown = partial(printable, longest=LONGEST_LABEL)

Table = tuple[Sequence[str], list[Sequence[str]]]  # names of columns, and rows


class ReportSubject(Protocol):
    """The subject of a headline, such as an `Evaluation`."""

    score: Score
    seconds: float
    name: str
    interrupted: bool


def headline(evaluation: ReportSubject, notes: Iterable[str] = ()) -> str:
    """The first line of a report: the number of messages, the speed, and notes."""
    score, seconds = evaluation.score, evaluation.seconds
    speed = f" in {seconds:.2f} s, {score.n / seconds:,.0f} docs/s" if score.n and seconds else ""
    ended = ["interrupted"] * evaluation.interrupted
    text = ", ".join([f"{evaluation.name}: {score.n:,} messages{speed}", *notes, *ended])
    if score.n_unanswered > 1:  # the first message cannot have an answer
        text += f"; {score.n_unanswered:,} came before any label, had no answer and are in no metric"
    return text


def score_tables(score: Score, in_full: bool = False) -> list[Table]:
    """The quality of the predictions in three tables: the metrics; the most frequent classes and the sum of the others
    or, in full, all classes with the worst first; the most frequent confusions or, in full, all.
    """
    metrics = [(_name(name, score), f"{value:.4f}") for name, value in score.metrics().items()]
    has_several = score.kind == LABELS
    rows = commonest(score, _shown)
    if in_full:
        rows = [(_shown(row.label), row) for row in sorted(score.class_rows(), key=lambda row: row.f1)]
    n_classes = len(score.tally)
    title = f"{n_classes:,} {'label' if has_several else 'class'}{('s' if has_several else 'es') * (n_classes != 1)}"
    class_cells = [(name, *map(_share, row[1:4]), f"{row[4]:,}") for name, row in rows]
    confused = [(_shown(a), _shown(b), f"{n:,}") for a, b, n in score.confused(None if in_full else MOST_PAIRS)]
    tables: list[Table] = [(("", ""), [*metrics]), ((title, "precision", "recall", "F1", "count"), [*class_cells])]
    return (
        [*tables, (("missed" if has_several else "truly", "predicted", "count"), [*confused])] if confused else tables
    )


def commonest(score: Score, shown: Callable[[Any], str]) -> list[tuple[str, Any]]:
    """The most frequent classes, each with its name, then the sum of the others."""
    rows: list[tuple[str, Any]] = [(shown(row.label), row) for row in score.class_rows(MOST_CLASSES)]
    other_classes = score.others(MOST_CLASSES)
    if other_classes is not None:
        rows.append((f"{other_classes.n_classes:,} other{'s' * (other_classes.n_classes != 1)}", other_classes))
    return rows


def comparison_tables(scores: Mapping[str, Score], pairs: Sequence[Any], longest: int | None = None) -> list[Table]:
    """The common metrics of all models, and the differences of each two, with a column for each. Lines have at most
    `longest` characters: if names are too long for that, models have numbers; if there are too many columns, they
    continue below.
    """
    shown = _shown if longest is None else printable
    tables = _compared({name: shown(name) for name in scores}, scores, pairs)
    if longest is None or _width(tables) <= longest:
        return tables
    numbers = {name: str(number) for number, name in enumerate(scores, 1)}
    named = [(f"{number}  {printable(name, longest - len(number) - 2)}",) for name, number in numbers.items()]
    tables = _compared(numbers, scores, pairs)
    room = longest - _width_of_first(tables)
    return [(("model",), [*named]), *(part for table in tables for part in _split(table, room))]


def _compared(names: Mapping[str, str], scores: Mapping[str, Score], pairs: Sequence[Any]) -> list[Table]:
    metrics, first = [score.metrics() for score in scores.values()], next(iter(scores.values()))
    shared = [name for name in metrics[0] if all(name in of and not math.isnan(of[name]) for of in metrics)]
    if first.kind != LABELS:  # with one label per example, micro F1 is the accuracy
        shared = [name for name in shared if name != "micro_f1"]
    values = [(_name(metric, first, LONGEST_BESIDE), *(f"{of[metric]:.4f}" for of in metrics)) for metric in shared]
    rows = {
        "difference": [f"{pair.difference:+.4f}" for pair in pairs],
        "standard error": [f"{pair.standard_error:.4f}" for pair in pairs],
        "only the first": [f"{pair.n_first:,}" for pair in pairs],
        "only the second": [f"{pair.n_second:,}" for pair in pairs],
        "McNemar's p": [f"{pair.p_value:.3g}" for pair in pairs],
    }
    differences = [f"{names[pair.first]} - {names[pair.second]}" for pair in pairs]
    return [
        (("model", *names.values()), [*values]),
        (("right more often", *differences), [(row_name, *cells) for row_name, cells in rows.items()]),
    ]


def _split(table: Table, room: int) -> list[Table]:
    """A table as several tables, one below the other, each with the first column and as many others as fit."""
    columns, rows = table
    parts: list[list[int]] = [[0]]
    left = room
    for i in range(1, len(columns)):
        width = 2 + max(len(row[i]) for row in (columns, *rows))
        if width > left and len(parts[-1]) > 1:
            parts.append([0])
            left = room
        parts[-1].append(i)
        left -= width
    return [([columns[i] for i in part], [[row[i] for i in part] for row in rows]) for part in parts]


def _width(tables: Sequence[Table]) -> int:
    return max(map(len, as_text("", tables).splitlines()))


def _width_of_first(tables: Sequence[Table]) -> int:
    """The common width of the first columns; tables with a single column do not count."""
    return max((len(row[0]) for columns, rows in tables for row in (columns, *rows) if len(columns) > 1), default=0)


def as_text(head: str, tables: Sequence[Table]) -> str:
    """Tables as lines. Their first columns have the same width, except in tables with a single column."""
    left = _width_of_first(tables)
    lines = [head]
    for columns, rows in tables:
        lines.append("")
        widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(1, len(columns))]
        texts = [i for i in range(1, len(columns)) if columns[i] == "predicted"]  # texts among numbers
        for row in [columns, *rows] if any(columns) else rows:
            cells = [f"{row[i]:<{w}}" if i in texts else f"{row[i]:>{w}}" for i, w in enumerate(widths, 1)]
            lines.append("  ".join([f"{row[0]:<{left}}", *cells]).rstrip())
    return "\n".join(lines)


def as_html(head: str, tables: Sequence[Table]) -> str:
    """The tables as HTML."""

    def row_of(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    parts = [f"<p>{html.escape(head)}</p>"]
    for columns, rows in tables:
        first = row_of(columns, "th") if any(columns) else ""
        parts.append(f"<table>{first}{''.join(row_of(row, 'td') for row in rows)}</table>")
    return "".join(parts)


def _name(metric: str, score: Score, longest: int = LONGEST_LABEL) -> str:
    if metric == "f1":
        return f"f1 of {printable(score.positive, longest)}"
    newest = f" of newest {min(score.n_answered, score.window):,}" if metric.startswith("window_") else ""
    return metric.removeprefix("window_") + newest


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
