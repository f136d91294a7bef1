"""Plots of prequential evaluations; they need the extra `plot`."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stream_pegasos.common.display import printable
from stream_pegasos.common.extras import missing
from stream_pegasos.evaluation.metric_names import drawn, spelled
from stream_pegasos.evaluation.report import MOST_CLASSES, commonest
from stream_pegasos.evaluation.tallies import FEWEST_IN_TENTH, Score
from stream_pegasos.learners.capabilities import LABELS

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter
except ModuleNotFoundError as error:
    raise missing("drawing", "plot", error) from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

FILE_TYPES = (".png", ".svg", ".pdf")


def draw(
    curve: Sequence[Any], title: str, score: Score | None = None, marks: Mapping[int, str] | None = None
) -> Figure:
    """Draw the quality of predictions over the number of examples.

    It draws accuracy, accuracy over the newest examples, macro F1 and, for two classes, ROC AUC. With ordered classes,
    quadratic kappa replaces the last two. With several labels per example, it draws micro F1, micro F1 over the newest
    examples, macro F1 and exact matches. With a coverage, it also draws the coverage of the newest sets. `marks` has
    texts for numbers of examples, to be marked in the plot.

    With a score, it adds a reliability diagram: the share of positive examples against their predicted probability, in
    tenths; a calibrated model is on the diagonal. Tenths with fewer than 30 examples are left out. With more than two
    classes, the diagram is for the predicted class; with several labels, for each label. With more than two classes,
    there are also precision, recall and F1 of the most frequent classes, and the most frequent confusions.
    """
    if score is None:
        figure = Figure(figsize=(8, 4.8), dpi=150, layout="constrained")
        draw_curve(figure.subplots(), curve, title, 1_000, marks)
        return figure
    n_classes, n_pairs = len(score.class_rows(MOST_CLASSES + 1)), len(score.confused(MOST_PAIRS))
    has_more = n_classes > 2 or score.kind == LABELS  # with two classes the curve is enough
    below = 1.5 + 0.22 * max(n_classes, n_pairs, FEWEST_ROWS) if has_more else 0.0
    figure = Figure(figsize=(12, 4.8 + below), dpi=150, layout="constrained")
    # A row for each: names of classes need room, and would squeeze the plots above them.
    parts: list[FigureBase] = [figure]
    if has_more:
        parts = [*figure.subfigures(2, 1, squeeze=False, height_ratios=[4.8, below]).ravel()]
    above, *low = parts
    left, right = above.subplots(1, 2, width_ratios=[8, 4])
    draw_curve(left, curve, title, score.window, marks)
    _draw_reliability(right, score)
    for part in low:
        left, right = part.subplots(1, 2, width_ratios=[7, 5])
        _draw_classes(left, score)
        _draw_confused(right, score)
    return figure


def draw_comparison(comparison: Mapping[str, Any], to: Any = None) -> Any:
    """Draw the first metric of several models on one stream: on axes, into a file, or on a new figure."""
    figure = None if hasattr(to, "plot") else Figure(figsize=(8, 4.8), dpi=150, layout="constrained")
    axes = to if figure is None else figure.subplots()
    first = next(iter(comparison.values()))
    name = next(iter(first.score.metrics()))
    curves = [(_shown(model_name), evaluation.curve) for model_name, evaluation in comparison.items()]
    _draw_lines(axes, [(called, curve, _column(curve, name)) for called, curve in curves])
    axes.set_title(os.path.basename(first.name), loc="left", fontweight="bold", parse_math=False)
    axes.set_ylabel(spelled(name))
    _mark(axes, first.marks)
    if figure is None or to is None:
        return axes if figure is None else figure
    write(figure, to)
    return None


MAIN, SECOND = "#1f5fa8", "#e08214"
COLOURS = (MAIN, SECOND, "#4d9a52", "#8a5fa8", "#777777")
MOST_PAIRS = 15
FEWEST_ROWS = 3  # number of rows with room in any case


def draw_curve(
    axes: Axes, curve: Sequence[Any], title: str, window: int, marks: Mapping[int, str] | None = None
) -> None:
    """Draw the quality of predictions over the number of examples on axes of matplotlib; see `draw`."""
    last_row = curve[-1] if curve else None
    lines: list[tuple[str, Sequence[Any], list[float]]] = []
    for name in drawn(last_row) if curve else ():
        called = spelled(name)
        if name.startswith("window_"):
            called = f"newest {window:,}" if len(lines) == 1 else f"{called}, newest {window:,}"
        lines.append((called, curve, _column(curve, name)))
    _draw_lines(axes, lines)
    axes.set_title(title, loc="left", fontweight="bold", parse_math=False)
    if last_row is not None and hasattr(last_row, "mean_absolute_error"):
        axes.set_title(f"mean absolute error {last_row.mean_absolute_error:.3f}", loc="right")
    _mark(axes, marks)


def _column(curve: Sequence[Any], name: str) -> list[float]:
    return [getattr(row, name) for row in curve]


def _draw_lines(axes: Axes, lines: Sequence[tuple[str, Sequence[Any], list[float]]]) -> None:
    """Draw lines, each with its name, rows and values; the first one thicker."""
    for i, (called, curve, values) in enumerate(lines):
        if not all(map(math.isnan, values)):
            last = "" if math.isnan(values[-1]) else f" {values[-1]:.1%}"
            colour, width = COLOURS[i % len(COLOURS)], 1.3 if i else 2.2
            axes.plot([row.n for row in curve], values, color=colour, linewidth=width, label=called + last)
    # The first predictions are guesses and must not squeeze the rest.
    settled = [value for _, _, values in lines for value in values[len(values) // 20 :] if not math.isnan(value)]
    low = max(0.0, min(settled, default=0.0) - 0.02)
    axes.set_ylim(low, 1.0 + (1.0 - low) * 0.03)
    axes.set_xlim(0, max((curve[-1].n for _, curve, _ in lines if curve), default=1))
    axes.set_xlabel("examples, each predicted before it was learned")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:  # below the plot, where it covers neither lines nor titles
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4, frameon=False)


def _mark(axes: Axes, marks: Mapping[int, str] | None) -> None:
    """Mark the numbers of examples that have a text."""
    for n, text in (marks or {}).items():
        axes.axvline(n, color="#777777", linewidth=1, linestyle=":")
        axes.annotate(
            text, (n, 0.02), (5, 0), ("data", "axes fraction"), "offset points", fontsize=9, color="#555555"
        ).set_parse_math(False)


def _draw_reliability(axes: Axes, score: Score) -> None:
    n, probability, share = score.reliability.T
    share = np.where(n < FEWEST_IN_TENTH, math.nan, share)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle="--")
    axes.plot(probability, share, color=MAIN, linewidth=1.3)
    # The areas show the numbers of examples, with a minimum so that all are visible.
    sizes = np.maximum(20, 300 * n / max(n.max(), 1))
    axes.scatter(probability, share, sizes, color=MAIN)
    has_positive = score.positive is not None
    came_true = "labels that hold" if score.kind == LABELS else "right predictions"
    axes.set_title(f"calibration error {score.calibration_error:.4f}", loc="left")
    axes.set_xlabel("predicted probability, mean of each tenth")
    axes.set_ylabel(f"share of {'positive examples' if has_positive else came_true}")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_classes(axes: Axes, score: Score) -> None:
    """F1 of the most frequent classes as bars, with precision and recall as points."""
    commonest_rows = commonest(score, _shown)
    names, rows = [name for name, _ in commonest_rows], [row for _, row in commonest_rows]
    places = range(len(rows))
    noun = "labels" if score.kind == LABELS else "classes"
    axes.barh(places, [row.f1 for row in rows], height=0.7, color="#c9d8ea", label="F1")
    axes.scatter([row.precision for row in rows], places, 20, color=MAIN, marker="o", label="precision")
    axes.scatter([row.recall for row in rows], places, 20, color=SECOND, marker="D", label="recall")
    for place, row in zip(places, rows, strict=True):
        axes.annotate(
            f"{row.count:,}", (1.0, place), (6, 0), ("axes fraction", "data"), "offset points", va="center", fontsize=8
        )
    axes.set_yticks(places, names, fontsize=8, parse_math=False)
    axes.set_ylim(max(len(rows), FEWEST_ROWS) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(f"the commonest {noun}, and how many", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    # Below, because titles and names take the room above and beside.
    below = 1.0, -0.3 / max(len(rows), FEWEST_ROWS) - 0.02
    axes.legend(loc="upper right", bbox_to_anchor=below, ncols=3, frameon=False, fontsize=8)


def _draw_confused(axes: Axes, score: Score) -> None:
    pairs = score.confused(MOST_PAIRS)
    places = range(len(pairs))
    axes.barh(places, [pair.count for pair in pairs], height=0.35, color="#e9b9a0")
    # The names are above the bars, so that the bars have the whole width.
    for place, pair in zip(places, pairs, strict=True):
        text = f"{pair.count:,}  {_shown(pair.truth, 27)} → {_shown(pair.predicted, 27)}"
        axes.annotate(
            text, (0, place - 0.22), (1, 0), textcoords="offset points", va="bottom", fontsize=8
        ).set_parse_math(False)
    axes.set_yticks([])
    axes.set_ylim(max(len(pairs), FEWEST_ROWS) - 0.4, -0.9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title("missed → predicted" if score.kind == LABELS else "truly → predicted", loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def _shown(label: object, longest: int = 34) -> str:
    return printable(label, longest, "\N{REPLACEMENT CHARACTER}")  # a character that every font has


def write(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a .png, .svg or .pdf file, by default PNG. Another ending is a ValueError."""
    extension = os.path.splitext(path)[1].lower()
    if extension and extension not in FILE_TYPES:
        raise ValueError(f"{os.fspath(path)} must end in one of {', '.join(FILE_TYPES)}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # characters that the font lacks are drawn as boxes
        figure.savefig(path, format=extension[1:] or "png")
