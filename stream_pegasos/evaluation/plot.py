"""Draw a prequential evaluation; needs the extra `plot`."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stream_pegasos.common.display import one_line, shortened
from stream_pegasos.common.extras import missing
from stream_pegasos.evaluation.label_scores import LabelScoreRow
from stream_pegasos.evaluation.scores import OrderedScoreRow, ScoreRow
from stream_pegasos.evaluation.tallies import LABELS, Score, spelled

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter
except ModuleNotFoundError as error:
    raise missing("drawing", "plot", error) from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILE_TYPES = (".png", ".svg", ".pdf")


def draw(curve: Sequence[Any], title: str, score: Score | None = None) -> Figure:
    """Draw how good predictions were against the number of examples.

    It draws accuracy, accuracy over the newest examples, macro F1 and, of two classes, ROC AUC. With ordered classes,
    quadratic kappa replaces the last two. With several labels an example it draws micro F1, micro F1 over the newest
    examples, macro F1 and exact matches.

    Parameters
    ----------
    curve
        The rows that `evaluate` returns.
    title
        The name of the stream.
    score
        The score that `evaluate` returns, to add three more drawings. A reliability diagram: the share of positive
        examples against their predicted probability, in tenths; a calibrated model is on the diagonal. With more than
        two classes it is for the predicted class, with several labels for each label. Precision, recall and F1 of the
        commonest classes. The pairs that were confused most often.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.evaluation.plot import draw
    >>> from stream_pegasos.evaluation.prequential import evaluate
    >>> from stream_pegasos.streams import synthetic

    >>> evaluation = evaluate(TextClassifier(), synthetic(n=2_000))
    >>> figure = draw(evaluation.curve, "synthetic", evaluation.score)
    >>> figure.savefig("curve.png")  # doctest: +SKIP

    """
    if score is None:
        figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
        _draw_curve(figure.subplots(), curve, title, 1_000)
    else:
        n_classes, n_pairs = len(score.of_classes(MOST_CLASSES + 1)), len(score.confused(MOST_PAIRS))
        below = 1.2 + 0.22 * max(n_classes, n_pairs, FEWEST_ROWS)
        figure = Figure(figsize=(12, 4.5 + below), dpi=150, layout="constrained")
        # A row each: names of classes need room of their own, and would squeeze what stands above them.
        above, low = figure.subfigures(2, 1, height_ratios=[4.5, below])  # type: ignore[misc]
        left, right = above.subplots(1, 2, width_ratios=[8, 4])
        _draw_curve(left, curve, title, score.window)
        _draw_reliability(right, score)
        left, right = low.subplots(1, 2, width_ratios=[7, 5])
        _draw_classes(left, score)
        _draw_confused(right, score)
    return figure


# What is drawn of each type of row, those that are known; the first one thicker.
LINES = {
    ScoreRow: ("accuracy", "window_accuracy", "macro_f1", "roc_auc"),
    OrderedScoreRow: ("accuracy", "window_accuracy", "quadratic_kappa"),
    LabelScoreRow: ("micro_f1", "window_micro_f1", "macro_f1", "exact_matches"),
}
MAIN, SECOND = "#1f5fa8", "#e08214"
COLOURS = (MAIN, SECOND, "#4d9a52", "#8a5fa8")
MOST_CLASSES = 20
MOST_PAIRS = 15
FEWEST_ROWS = 3  # that there is room for


def _draw_curve(axes: Axes, curve: Sequence[Any], title: str, window: int) -> None:
    n = [row.n for row in curve]
    last_row = curve[-1] if curve else None
    drawn = [(name, [getattr(row, name) for row in curve]) for name in (LINES[type(last_row)] if curve else ())]
    for i, (name, values) in enumerate(drawn):
        if not all(map(math.isnan, values)):
            called = f"newest {window:,}" if name.startswith("window_") else spelled(name)
            last = "" if math.isnan(values[-1]) else f" {values[-1]:.1%}"
            axes.plot(n, values, color=COLOURS[i], linewidth=1.3 if i else 2.2, label=called + last)
    # The first predictions are guesses: they must not squeeze all that follows.
    settled = [value for _, values in drawn for value in values[len(values) // 20 :] if not math.isnan(value)]
    low = max(0.0, min(settled, default=0.0) - 0.02)
    axes.set_ylim(low, 1.0 + (1.0 - low) * 0.03)
    axes.set_xlim(0, n[-1] if n else 1)
    axes.set_title(title, loc="left", fontweight="bold", parse_math=False)
    if last_row is not None and hasattr(last_row, "mean_absolute_error"):
        axes.set_title(f"mean absolute error {last_row.mean_absolute_error:.3f}", loc="right")
    axes.set_xlabel("examples, each predicted before it was learned")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    # Lines may run low: their names stand on a ground of their own.
    if curve:
        axes.legend(loc="lower right", framealpha=0.85, edgecolor="none")


def _draw_reliability(axes: Axes, score: Score) -> None:
    n, probability, share = score.reliability.T
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle="--")
    axes.plot(probability, share, color=MAIN, linewidth=1.3)
    # Areas as the numbers of examples, but none too small to be seen.
    sizes = 8 + 300 * n / max(n.sum(), 1)
    axes.scatter(probability, share, sizes, color=MAIN)
    has_positive = getattr(score, "positive", None) is not None
    came_true = "labels that hold" if score.kind == LABELS else "right predictions"
    axes.set_title(f"calibration error {score.calibration_error:.4f}", loc="left")
    axes.set_xlabel("predicted probability, mean of each tenth")
    axes.set_ylabel(f"share of {'positive examples' if has_positive else came_true}")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_classes(axes: Axes, score: Score) -> None:
    """F1 of the commonest classes as bars, precision and recall as points on them."""
    rows: list[Any] = [*score.of_classes(MOST_CLASSES)]
    names = [_shown(row.label) for row in rows]
    others = score.others(MOST_CLASSES)
    if others is not None:
        rows.append(others)
        names.append(f"{others.n_classes:,} other{'s' * (others.n_classes != 1)}")
    places = range(len(rows))
    what = "labels" if score.kind == LABELS else "classes"
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
    axes.set_title(f"the commonest {what}, and how many", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, borderaxespad=0.0, fontsize=8)


def _draw_confused(axes: Axes, score: Score) -> None:
    pairs = score.confused(MOST_PAIRS)
    places = range(len(pairs))
    axes.barh(places, [pair.count for pair in pairs], height=0.35, color="#e9b9a0")
    # Names stand above the bars, which leaves these the whole width.
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


def _shown(label: Any, longest: int = 34) -> str:
    return shortened(one_line(str(label), "\N{REPLACEMENT CHARACTER}"), longest)


def save(curve: Sequence[Any], path: str | os.PathLike[str], title: str, score: Score | None = None) -> None:
    """Draw the curve, and with a score what `draw` puts beside it, into a .png, .svg or .pdf file; by default a PNG.

    Raises
    ------
    ValueError
        If the file ends in something else.
    OSError
        If the file cannot be written.

    """
    extension = os.path.splitext(path)[1].lower()
    if extension and extension not in FILE_TYPES:
        raise ValueError(f"{os.fspath(path)} ends in none of {', '.join(FILE_TYPES)}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a label in a script that the font has not is drawn as boxes
        draw(curve, title, score).savefig(path, format=extension[1:] or "png")
