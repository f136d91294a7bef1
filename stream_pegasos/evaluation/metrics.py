"""Metrics by which models are compared: the rows kept of predictions, the figure, and how far two models differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.evaluation.predicted import Labelled, PredictedBlock
from stream_pegasos.evaluation.prequential import ExampleError
from stream_pegasos.evaluation.ranking import Ranking
from stream_pegasos.evaluation.tallies import LABELS, ORDERED, mean_f1

__all__ = ["METRICS", "Metric", "metric_named"]

Floats = NDArray[np.float64]

METRICS = ("accuracy", "macro-f1", "log-loss", "auc", "recall@R")
BLOCKS = 20  # of messages, each left out once to see how much a figure varies that is no mean
POINTS = 100  # of a plot, each of which is computed anew


@dataclass(frozen=True)
class Metric:
    """A metric by which models are compared.

    Parameters
    ----------
    name
        One of `METRICS`, with a share of negatives for R.
    rows
        Makes a number, or a row of numbers, of each prediction of a block, given the model.
    figure
        Makes one number of all rows.
    sign
        1 if a larger figure is better, −1 if a smaller one is.
    is_mean
        Whether the figure is the mean over messages.
    """

    name: str
    rows: Callable[[PredictedBlock, Any], Floats]
    figure: Callable[[Floats], float]
    sign: float
    is_mean: bool

    def gain(self, first: Floats, other: Floats) -> tuple[float, float]:
        """How much better another model is than the first, by their rows, and the standard error of this gain.

        The rows are of the same messages. The error of a mean comes from the differences message by message; the error
        of any other figure is the jackknife's, which leaves out one of 20 blocks of messages at a time (Quenouille
        1949, Tukey 1958).
        """
        n = len(first)
        if n < 2:
            return 0.0, 0.0
        if self.is_mean:
            gained = self.sign * (other - first)
            return float(gained.mean()), float(gained.std(ddof=1) / math.sqrt(n))
        block = np.arange(n) * BLOCKS // n
        whole = self._difference(first, other)
        without = np.array([self._difference(first[block != b], other[block != b]) for b in np.unique(block)])
        error = math.sqrt((len(without) - 1) * without.var())
        return (whole, error) if math.isfinite(whole + error) else (0.0, math.inf)  # as where one class is missing

    def course(self, first: Floats, other: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Numbers of messages, and the gain by then: summed up if the figure is a mean, else as a difference."""
        if self.is_mean:
            return np.arange(1, len(first) + 1), np.cumsum(self.sign * (other - first))
        n = np.unique(np.linspace(1, len(first), POINTS).astype(np.int64)) if len(first) else np.zeros(0, np.int64)
        return n, np.array([self._difference(first[:end], other[:end]) for end in n.tolist()])

    def _difference(self, first: Floats, other: Floats) -> float:
        return self.sign * (self.figure(other) - self.figure(first))


def metric_named(name: str, kind: str) -> Metric:
    """The metric with this name, for models of a kind, as `kind_of` gives it.

    "accuracy" counts wrong labels; with ordered labels it measures how far off these are; with several labels a
    message, it counts the wrong ones. "macro-f1" is the mean F1 of all classes that came or were predicted, "log-loss"
    the mean of −log P(what came true). "auc" and "recall@R" are for two classes: the area under the ROC curve, and the
    share of positives above the lowest margin that at most the share R of the negatives exceeds.

    Raises
    ------
    ValueError
        If there is no such metric, or it is not for this kind.
    """
    if name == "accuracy":
        return Metric(name, _costs(kind), _mean, -1.0, True)
    if kind == LABELS:
        raise ValueError(
            f"{name!r} is for one label a message; for several labels there is accuracy, which counts wrong ones"
        )
    if name == "macro-f1":
        return Metric(name, _numbered(), _macro_f1, 1.0, False)
    if name == "log-loss":
        return Metric(name, _losses, _mean, -1.0, True)
    if kind == ORDERED and (name == "auc" or name.startswith("recall@")):
        raise ValueError(f"{name!r} is for two classes, not for labels that have an order")
    if name == "auc":
        return Metric(name, _margins, _auc, 1.0, False)
    if name.startswith("recall@"):
        try:
            rate = float(name.removeprefix("recall@"))
        except ValueError:
            rate = math.nan
        if 0.0 <= rate < 1.0:
            return Metric(name, _margins, lambda rows: _recall(rows, rate), 1.0, False)
    raise ValueError(f"{name!r} is none of {', '.join(METRICS)}, as recall@0.01")


def _mean(rows: Floats) -> float:
    return float(rows.mean()) if len(rows) else math.nan


def _costs(kind: str) -> Callable[[PredictedBlock, Any], Floats]:
    def cost_of(predicted: Any, truth: Any) -> float:
        if kind == LABELS:
            return len(set(predicted or ()) ^ set(truth))
        if kind == ORDERED:
            return 1.0 if predicted is None else abs(predicted - truth)
        return float(predicted != truth)

    def rows(block: PredictedBlock, model: Any) -> Floats:
        return np.array([cost_of(each.label, truth) for each, truth in zip(block.each(), block.y, strict=True)], float)

    return rows


def _losses(block: PredictedBlock, model: Any) -> Floats:
    outcomes: Any = block.outcomes(model)
    losses: Floats = -np.log(np.clip(outcomes.of_truth, 1e-15, 1.0))
    return losses


def _numbered() -> Callable[[PredictedBlock, Any], Floats]:
    numbers: dict[Any, int] = {None: -1}  # of labels, the same for all models

    def rows(block: PredictedBlock, model: Any) -> Floats:
        pairs = zip(block.y, (each.label for each in block.each()), strict=True)
        found = [[numbers.setdefault(label, len(numbers) - 1) for label in pair] for pair in pairs]
        return np.array(found, float).reshape(-1, 2)

    return rows


def _macro_f1(rows: Floats) -> float:
    truth, predicted = rows.astype(np.int64).T
    n, made, right = int(rows.max(initial=-1.0)) + 1, predicted[predicted >= 0], truth[truth == predicted]
    return mean_f1(*(np.bincount(numbers, minlength=n) for numbers in (truth, made, right)))


def _margins(block: PredictedBlock, model: Any) -> Floats:
    """Whether each example is positive, and the margin."""
    outcomes: Any = block.outcomes(model)
    if not outcomes.classes:
        raise ExampleError("a third label came, and this metric is for two classes", _third(block.examples, model))
    return np.column_stack([[y == outcomes.classes[1] for y in block.y], outcomes.margins])


def _third(examples: Sequence[Labelled], model: Any) -> Labelled:
    return next((example for example in examples if example[1] not in model.classes[:2]), examples[-1])


def _auc(rows: Floats) -> float:
    ranking = Ranking()
    ranking.update(rows[:, 0] == 1.0, rows[:, 1])
    return ranking.roc_auc


def _recall(rows: Floats, rate: float) -> float:
    is_positive = rows[:, 0] == 1.0
    positive, negative = rows[is_positive, 1], np.sort(rows[~is_positive, 1])
    if not len(positive) or not len(negative):
        return math.nan
    cut = negative[len(negative) - 1 - math.floor(rate * len(negative))]
    return float((positive > cut).mean())
