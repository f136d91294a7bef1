"""Draw a prequential evaluation; needs the extra `plot`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stream_pegasos.common.extras import missing

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter, StrMethodFormatter
except ModuleNotFoundError as error:
    raise missing("drawing", "plot", error) from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from stream_pegasos.evaluation.scores import ScoreRow

FILE_TYPES = (".png", ".svg", ".pdf")


def draw(curve: Sequence[ScoreRow], title: str, score: Any = None) -> Figure:
    """Draw accuracy, accuracy over the newest examples and ROC AUC against the number of examples.

    Parameters
    ----------
    curve
        The rows that `evaluate` returns.
    title
        The name of the stream.
    score
        The score that `evaluate` returns, for a reliability diagram beside: the share of positive examples against the
        probability that was predicted for them, in tenths; on the diagonal for a model that is calibrated.

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
        figure = Figure(figsize=(12, 4.5), dpi=150, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[8, 4])
        _draw_curve(left, curve, title, score.window)
        _draw_reliability(right, score)
    return figure


def _draw_curve(axes: Axes, curve: Sequence[ScoreRow], title: str, window: int) -> None:
    n = [row.n for row in curve]
    lines = [
        ("accuracy", [row.accuracy for row in curve], "#1f5fa8", 2.2),
        (f"newest {window:,}", [row.window_accuracy for row in curve], "#e08214", 1.3),
        ("ROC AUC", [row.roc_auc for row in curve], "#4d9a52", 1.3),
    ]
    for name, values, colour, width in lines:
        last = f" {values[-1]:.1%}" if values and not math.isnan(values[-1]) else ""
        axes.plot(n, values, color=colour, linewidth=width, label=name + last)
    # The first predictions are guesses: they must not squeeze all that follows.
    settled = [value for _, values, _, _ in lines for value in values[len(values) // 20 :] if not math.isnan(value)]
    low = max(0.0, min(settled, default=0.0) - 0.02)
    axes.set_ylim(low, 1.0 + (1.0 - low) * 0.03)
    axes.set_xlim(0, n[-1] if n else 1)
    axes.set_title(title, loc="left", fontweight="bold", parse_math=False)
    axes.set_xlabel("examples, each predicted before it was learned")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)


def _draw_reliability(axes: Axes, score: Any) -> None:
    n, probability, share = score.reliability.T
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle="--")
    axes.plot(probability, share, color="#1f5fa8", linewidth=1.3)
    # Areas as the numbers of examples, but none too small to be seen.
    sizes = 8 + 300 * n / max(score.n, 1)
    axes.scatter(probability, share, sizes, color="#1f5fa8")
    axes.set_title(f"calibration error {score.expected_calibration_error:.4f}", loc="left")
    axes.set_xlabel("predicted probability, mean of each tenth")
    axes.set_ylabel("share of positive examples")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def save(curve: Sequence[ScoreRow], path: str | os.PathLike[str], title: str, score: Any = None) -> None:
    """Draw the curve, and with a score the reliability diagram, into a .png, .svg or .pdf file; by default a PNG.

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
    draw(curve, title, score).savefig(path, format=extension[1:] or "png")
