"""Labels that look wrong: the messages with the least probable labels, and an estimate of the share of wrong labels."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stream_pegasos.blocks.predicted import PredictedBlock
from stream_pegasos.common.display import format_value, shortened
from stream_pegasos.evaluation.tallies import Bools, Integers
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.text import TextClassifier

if TYPE_CHECKING:
    from stream_pegasos.blocks.river_models import AnyModel

__all__ = ["MOST_SUSPECTS", "LabelErrors", "Suspect", "shown_by"]

MOST_SUSPECTS = 10_000
LONGEST_TEXT = 1_000  # characters kept of a message

# Bins for log-odds of the most probable label, a tenth wide; no double below 1 has log-odds above 36.7.
BINS_A_UNIT, N_BINS = 10, 371
SUREST = 0.25  # share of the messages that counts as surest
FEWEST = 250  # number of surest messages that an estimate needs
Z = 1.96  # for an interval of 95 %
WIDEST, FEW_ERRORS = 3.0, 0.05  # an interval is useful from x to at most 3 x, or from 0 to at most this
MOST_ERRORS = 0.3  # with more, the labels are rather a matter of opinion


class Suspect(NamedTuple):
    """A message whose label looks wrong.

    Attributes
    ----------
    number : int
        The line of the file on which it begins; without a file, its place in the stream, from 1.
    id : object
        Its id, or `None`.
    text : str
        Its first 1,000 characters.
    label : bool, int, str or collection of these
        Its label, which may be wrong.
    label_probability : float
        The probability of the label before learning. With several labels: the smallest probability, over all labels,
        that the label holds or not, as given.
    predicted : bool, int, str or tuple of these
        The predicted label.
    probability : float or tuple of float
        Its probability.
    """

    number: int
    id: object
    text: str
    label: Label | tuple[Label, ...]
    label_probability: float
    predicted: Label | tuple[Label, ...]
    probability: float | tuple[float, ...]


class LabelErrors:
    """Labels of a stream that look wrong, and an estimate of their share, in constant memory.

    Suspects are the wrongly predicted messages with the least probable labels before learning; messages with a label
    that the model did not know yet are left out. `shown` gives the text of a message.

    The model is nearly always right about the messages of which it is surest, independent of their labels. If a label
    differs even there, the label is wrong, provided that labels are wrong by chance. So the quarter of the stream with
    the most probable predictions gives the share of wrong labels. The next quarter shows how much of that share may be
    errors of the model, because a less sure model makes more of them.
    """

    def __init__(self, shown: Callable[[Any], str] = str) -> None:
        self._shown = shown
        self._heap: list[tuple[float, int, Suspect]] = []  # the least suspicious first
        self._n = 0
        self._counts = np.zeros((2, N_BINS))  # of messages, and of those with another label than predicted

    def update(self, block: PredictedBlock) -> None:
        """Take the predictions and labels of examples that count."""
        of_label, wrong = block.label_probabilities(), np.array(block.wrong_rows(), int)
        is_known = ~np.isnan(of_label)
        self._count(block, is_known, wrong)
        suspicious = wrong[is_known[wrong]]
        if self._is_full:
            suspicious = suspicious[of_label[suspicious] <= -self._heap[0][0]]
        for row in suspicious.tolist():
            number = self._n + row + 1
            key = -float(of_label[row]), -number
            if not self._is_full:
                heapq.heappush(self._heap, (*key, self._suspect(block, row, number, -key[0])))
            elif key > self._heap[0][:2]:
                heapq.heapreplace(self._heap, (*key, self._suspect(block, row, number, -key[0])))
        self._n += len(block)

    @property
    def _is_full(self) -> bool:
        return len(self._heap) >= MOST_SUSPECTS

    def _suspect(self, block: PredictedBlock, row: int, number: int, of_label: float) -> Suspect:
        example, predictions = block.examples[row], block.predictions
        label = predictions.labels[row]
        labels = label if isinstance(label, tuple) else (label,)
        probabilities = tuple(
            float(predictions.probabilities[row, predictions.classes.index(single_label)]) for single_label in labels
        )
        probability = probabilities if isinstance(label, tuple) else probabilities[0]
        text = shortened(self._shown(example[0]), LONGEST_TEXT)
        line, id = getattr(example, "line", 0), getattr(example, "id", None)
        return Suspect(line or number, id, text, block.y[row], of_label, label, probability)

    def _count(self, block: PredictedBlock, is_known: Bools, wrong: Integers) -> None:
        sureness = block.sureness()[is_known]
        with np.errstate(divide="ignore"):
            log_odds = np.log(sureness) - np.log1p(-sureness)
        bins = np.clip(log_odds * BINS_A_UNIT, 0, N_BINS - 1).astype(int)
        is_wrong = np.isin(np.flatnonzero(is_known), wrong)
        self._counts += np.bincount(bins, minlength=N_BINS), np.bincount(bins, is_wrong, N_BINS)

    def suspects(self, n: int = MOST_SUSPECTS) -> list[Suspect]:
        """The most suspicious messages, at most `n`, the one with the least probable label first."""
        return [suspect for *_, suspect in heapq.nlargest(n, self._heap)]

    def interval(self) -> tuple[float, float] | None:
        """The interval for the share of wrong labels, at 95 %, from Wilson's interval and from the growth of errors
        between the surest quarter and the next. It begins at 0 if it is only known that few are wrong. `None` if there
        is no sound estimate: with too few messages, an unsure model, or more than three in ten labels that look wrong.
        """
        n, n_wrong = (np.concatenate([[0.0], np.cumsum(counts[::-1])]) for counts in self._counts)
        size = SUREST * float(n[-1])
        if size < FEWEST:
            return None
        first, both_quarters = (np.interp([size, 2.0 * size], n, n_wrong) / size).tolist()
        second = both_quarters - first
        low, high = _wilson(first, size)
        if second > first:
            error = math.sqrt((4.0 * first * (1.0 - first) + second * (1.0 - second)) / size)
            low = max(0.0, min(low, 2.0 * first - second - Z * error))
        if low > 0.0 and high <= min(WIDEST * low, MOST_ERRORS):
            return low, high
        return (0.0, high) if high <= FEW_ERRORS else None

    def __str__(self) -> str:
        """The estimate in words; empty without an estimate."""
        match self.interval():
            case None:
                return ""
            case 0.0, high:
                return f"at most {high:.1%} of labels look wrong"
            case low, high:
                return f"{low:.1%} to {high:.1%} of labels look wrong"


def shown_by(model: AnyModel) -> Callable[[Any], str]:
    """The function that shows a model's messages as text."""
    return model.features.shown if isinstance(model, TextClassifier) else format_value


def _wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval (1927) for a share of n."""
    middle, width = share + Z * Z / (2.0 * n), Z * math.sqrt(share * (1.0 - share) / n + (Z / (2.0 * n)) ** 2)
    scale = 1.0 + Z * Z / n
    return max(0.0, (middle - width) / scale), (middle + width) / scale
