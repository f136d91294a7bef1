"""The table of metrics. The report, the curve and Prometheus have all those of a kind of model. A new metric is a row
here and a property of the score.

River's metrics take one prediction at a time; these count blocks of them at once.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

__all__ = [
    "CLASSES",
    "LABELS",
    "ORDERED",
    "ROWS",
    "LabelScoreRow",
    "OrderedScoreRow",
    "ScoreRow",
    "drawn",
    "metrics_of",
    "over_time",
    "spelled",
]

# The kinds of scores and of models, by what these predict: one of several classes, one of ordered classes, or several
# labels.
CLASSES, ORDERED, LABELS = "classes", "ordered", "several labels"


class Metric(NamedTuple):
    """A metric of some kinds of models."""

    name: str  # of the property of the score
    kinds: tuple[str, ...]
    line: int = 0  # which line of a plot it is, the first one thicker; 0 if it is none
    over_time: bool = False  # whether the page draws it
    of_positive: bool = False  # whether only a positive class has it
    in_rows: bool = True  # whether the curve has it


# For each kind, the one to look at first comes first.
METRICS = (
    Metric("accuracy", (CLASSES, ORDERED), line=1, over_time=True),
    Metric("micro_f1", (LABELS,), line=1, over_time=True),
    Metric("mean_absolute_error", (ORDERED,), over_time=True),
    Metric("quadratic_kappa", (ORDERED,), line=3),
    Metric("balanced_accuracy", (CLASSES, ORDERED)),
    Metric("macro_f1", (CLASSES, LABELS), line=3, over_time=True),
    Metric("macro_f1", (ORDERED,)),
    Metric("micro_f1", (CLASSES, ORDERED)),
    Metric("f1", (CLASSES,), of_positive=True),
    Metric("roc_auc", (CLASSES,), line=4, over_time=True, of_positive=True),
    Metric("exact_matches", (LABELS,), line=4),
    Metric("hamming_loss", (LABELS,)),
    Metric("log_loss", (CLASSES, ORDERED, LABELS)),
    Metric("calibration_error", (CLASSES, ORDERED, LABELS)),
    Metric("window_accuracy", (CLASSES, ORDERED), line=2, over_time=True),
    Metric("window_roc_auc", (CLASSES,), over_time=True, of_positive=True, in_rows=False),
    Metric("window_micro_f1", (LABELS,), line=2, over_time=True),
)


def metrics_of(kind: str) -> list[Metric]:
    return [metric for metric in METRICS if kind in metric.kinds]


def _fields(kind: str) -> list[str]:
    return ["n", *(metric.name for metric in metrics_of(kind) if metric.in_rows), "seconds"]


# A row of a curve: the metrics after the first `n` examples, `nan` where one is undefined.
ScoreRow = namedtuple("ScoreRow", _fields(CLASSES))  # type: ignore[misc]
OrderedScoreRow = namedtuple("OrderedScoreRow", _fields(ORDERED))  # type: ignore[misc]
LabelScoreRow = namedtuple("LabelScoreRow", _fields(LABELS))  # type: ignore[misc]
ROWS: dict[str, Any] = {CLASSES: ScoreRow, ORDERED: OrderedScoreRow, LABELS: LabelScoreRow}


def drawn(row: Any) -> list[str]:
    """The metrics of a row that a plot has as lines, in their order."""
    (kind,) = (kind for kind, type in ROWS.items() if isinstance(row, type))
    return [metric.name for metric in sorted(metrics_of(kind), key=lambda metric: metric.line) if metric.line]


def over_time(kind: str) -> list[str]:
    """The metrics that the page draws: those of all messages, then those of the window."""
    return [metric.name for metric in metrics_of(kind) if metric.over_time]


def spelled(figure: str) -> str:
    """The name of a figure as people read it."""
    name = figure.removeprefix("window_").replace("_", " ")
    return name.replace("f1", "F1").replace("roc auc", "ROC AUC").replace("hamming", "Hamming")
