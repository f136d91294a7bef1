"""The table of metrics. The report, the curve and Prometheus have all metrics of a kind of model; the web page has
those marked in the table. A new metric is a row here and a property of the score.

River's metrics take one prediction at a time; these count blocks of predictions at once.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

from stream_pegasos.learners.capabilities import CLASSES, LABELS, ORDERED

__all__ = [
    "ROWS",
    "LabelScoreRow",
    "OrderedScoreRow",
    "ScoreRow",
    "drawn",
    "list_metrics",
    "on_page",
    "over_time",
    "smaller_is_better",
    "spelled",
]

EVERY = (CLASSES, ORDERED, LABELS)
SMALLER = "smaller is better"


class Metric(NamedTuple):
    """A metric of some kinds of models."""

    name: str  # name of the score's property
    kinds: tuple[str, ...]
    tile: int = 0  # number of its tile on the page, 0 without a tile
    line: int = 0  # number of its line in a plot (the first is thicker), 0 without a line
    over_time: bool = False  # whether the page draws it
    about: str = ""  # its meaning, if the name does not say it
    of_positive: bool = False  # whether only a positive class has it
    in_rows: bool = True  # whether the curve has it
    of_sets: bool = False  # whether only a model with a coverage has it


# For each kind, the most important metric comes first.
METRICS = (
    Metric("accuracy", (CLASSES, ORDERED), tile=1, line=1, over_time=True),
    Metric("micro_f1", (LABELS,), tile=1, line=1, over_time=True),
    Metric("mean_absolute_error", (ORDERED,), tile=2, over_time=True, about=SMALLER),
    Metric("quadratic_kappa", (ORDERED,), tile=3, line=3, about="1 is best"),
    Metric("balanced_accuracy", (CLASSES, ORDERED)),
    Metric("macro_f1", (CLASSES, LABELS), tile=2, line=3, over_time=True, about="mean over the classes"),
    Metric("macro_f1", (ORDERED,)),
    Metric("micro_f1", (CLASSES, ORDERED)),
    Metric("f1", (CLASSES,), of_positive=True),
    Metric("roc_auc", (CLASSES,), tile=3, line=4, over_time=True, of_positive=True),
    Metric("exact_matches", (LABELS,), tile=3, line=4, about="all labels right"),
    Metric("hamming_loss", (LABELS,), tile=4, about=SMALLER),
    Metric("log_loss", (CLASSES,), tile=4, about=SMALLER),
    Metric("log_loss", (ORDERED, LABELS), about=SMALLER),
    Metric("calibration_error", (CLASSES, ORDERED), tile=5, about=SMALLER),
    Metric("calibration_error", (LABELS,), about=SMALLER),
    Metric("window_accuracy", (CLASSES, ORDERED), line=2, over_time=True),
    Metric("window_roc_auc", (CLASSES,), over_time=True, of_positive=True, in_rows=False),
    Metric("window_micro_f1", (LABELS,), line=2, over_time=True),
    Metric("coverage", EVERY, tile=6, over_time=True, about="sets that hold the label", of_sets=True),
    Metric("set_size", EVERY, about="labels in a set, mean", of_sets=True),
    Metric("sets_of_one", EVERY, tile=7, about="share of the sets", of_sets=True),
    Metric("window_coverage", EVERY, line=5, over_time=True, of_sets=True),
)


def list_metrics(kind: str) -> list[Metric]:
    return [metric for metric in METRICS if kind in metric.kinds]


def _fields(kind: str) -> list[str]:
    return ["n", *(metric.name for metric in list_metrics(kind) if metric.in_rows), "seconds"]


# A row of a curve: the metrics after the first `n` examples, `nan` if undefined.
ScoreRow = namedtuple("ScoreRow", _fields(CLASSES))  # type: ignore[misc]
OrderedScoreRow = namedtuple("OrderedScoreRow", _fields(ORDERED))  # type: ignore[misc]
LabelScoreRow = namedtuple("LabelScoreRow", _fields(LABELS))  # type: ignore[misc]
ROWS: dict[str, Any] = {CLASSES: ScoreRow, ORDERED: OrderedScoreRow, LABELS: LabelScoreRow}


def drawn(row: object) -> list[str]:
    """The metrics of a row that are lines of a plot, in order."""
    (kind,) = (kind for kind, type in ROWS.items() if isinstance(row, type))
    return [metric.name for metric in sorted(list_metrics(kind), key=lambda metric: metric.line) if metric.line]


def over_time(kind: str) -> list[str]:
    """The metrics that the page draws: over all messages, then over the window."""
    return [metric.name for metric in list_metrics(kind) if metric.over_time]


def on_page(kind: str, has_sets: bool = False) -> list[dict[str, Any]]:
    """The descriptions of metrics for the page: of its tiles, in order, then of those that it only draws."""
    metrics = [metric for metric in list_metrics(kind) if has_sets or not metric.of_sets]
    shown = sorted((metric for metric in metrics if metric.tile), key=lambda metric: metric.tile)
    shown += [metric for metric in metrics if metric.over_time and not metric.tile]
    return [
        {"name": of.name, "title": title[0].upper() + title[1:], "about": of.about, "is_tile": bool(of.tile)}
        for of in shown
        if not of.name.startswith("window_") and (title := spelled(of.name))
    ]


def smaller_is_better(figure: str) -> bool:
    return any(metric.about == SMALLER for metric in METRICS if metric.name == figure)


def spelled(figure: str) -> str:
    """The name of a metric in plots and on the page."""
    name = figure.removeprefix("window_").replace("_", " ")
    return name.replace("f1", "F1").replace("roc auc", "ROC AUC").replace("hamming", "Hamming")
