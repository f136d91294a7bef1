"""Draw a prequential curve; needs the extra `plot`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter, StrMethodFormatter
except ModuleNotFoundError as error:
    raise ImportError("drawing needs matplotlib: pip install 'stream_pegasos[plot]'", name=error.name) from error

if TYPE_CHECKING:
    from stream_pegasos.prequential import Checkpoint

FILE_TYPES = (".png", ".svg", ".pdf")


def draw(curve: Sequence[Checkpoint], title: str, window: int = 1_000) -> Figure:
    """Draw accuracy, accuracy over the newest examples and ROC AUC against the number of examples.

    Parameters
    ----------
    curve
        The rows that `evaluate` returns.
    title
        The name of the stream.
    window
        The number of newest examples that `window_accuracy` is about.

    Examples
    --------

    >>> from stream_pegasos import PegasosTextClassifier
    >>> from stream_pegasos.plot import draw
    >>> from stream_pegasos.prequential import evaluate
    >>> from stream_pegasos.streams import synthetic

    >>> curve = evaluate(PegasosTextClassifier(), synthetic(n=2_000)).curve
    >>> figure = draw(curve, title="synthetic")
    >>> figure.savefig("curve.png")  # doctest: +SKIP

    """
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes = figure.subplots()
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
    return figure


def save(curve: Sequence[Checkpoint], path: str | os.PathLike[str], title: str) -> None:
    """Draw the curve into a file, a PNG unless the path ends in .svg or .pdf.

    Raises
    ------
    OSError
        If the file cannot be written.

    """
    extension = os.path.splitext(path)[1].lower()
    draw(curve, title).savefig(path, format=extension[1:] if extension in FILE_TYPES else "png")
