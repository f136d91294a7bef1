"""Labels that look wrong: the messages with the least probable ones, and how many labels of a stream are wrong."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stream_pegasos.common.display import format_value, shortened
from stream_pegasos.evaluation.predicted import PredictedBlock
from stream_pegasos.evaluation.tallies import Bools, Integers
from stream_pegasos.learners.label_meaning import Label
from stream_pegasos.learners.text import TextClassifier

if TYPE_CHECKING:
    from stream_pegasos.evaluation.river_models import AnyModel

__all__ = ["MOST_SUSPECTS", "LabelErrors", "Suspect", "shown_by"]

MOST_SUSPECTS = 10_000
LONGEST_TEXT = 1_000  # characters kept of a message

# Log-odds of the likeliest label, in bins of a tenth; a double knows no more than 36.7 below 1.
BINS_A_UNIT, N_BINS = 10, 371
SUREST = 0.25  # share of the messages
FEWEST = 250  # of the surest messages, for an estimate
Z = 1.96  # of an interval of 95 %
WIDEST, FEW_ERRORS = 3.0, 0.05  # an interval from x to at most 3 x, or one from 0 to at most this, tells something
MOST_ERRORS = 0.3  # beyond which labels are rather what people disagree about, as no model can tell apart


class Suspect(NamedTuple):
    """A message whose label looks wrong.

    Attributes
    ----------
    number
        The line of the file on which it begins; without a file its place in the stream, from 1.
    id
        Its id, if it has one.
    text
        Its first 1,000 characters.
    label
        Its label, which may be wrong; several labels as a tuple.
    label_probability
        How probable that was before it was learned. With several labels: the least probability, over all labels, that
        the label holds as is said.
    predicted, probability
        The label that the model predicted, and its probability.
    """

    number: int
    id: object
    text: str
    label: Label | tuple[Label, ...]
    label_probability: float
    predicted: Label | tuple[Label, ...]
    probability: float | tuple[float, ...]


class LabelErrors:
    """Labels of a stream that look wrong, and an estimate of how many are wrong, in constant memory.

    Suspects are the messages whose label was the least probable before it was learned, of those that were predicted
    otherwise; a label that the model did not know yet is none. `shown` gives the text of a message.

    Of the messages of which the model is the surest, whatever their label, it is right in nearly all. Where the label
    says otherwise even there, the label is wrong, if labels are wrong by chance. So the quarter of the stream with the
    likeliest predictions gives the share of wrong labels. The next quarter tells how much of it may be errors of the
    model, which makes the more of them, the less sure it is.
    """

    def __init__(self, shown: Callable[[Any], str] = str) -> None:
        self._shown = shown
        self._heap: list[tuple[float, int, Suspect]] = []  # the least suspicious first
        self._n = 0
        self._counts = np.zeros((2, N_BINS))  # of messages, and of those with another label than was predicted

    def update(self, block: PredictedBlock) -> None:
        """Take what was predicted of examples that are counted, with their labels."""
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
        """The most suspicious messages, at most `n`, the one whose label was the least probable first."""
        return [suspect for *_, suspect in heapq.nlargest(n, self._heap)]

    def interval(self) -> tuple[float, float] | None:
        """Between which shares of the labels are wrong, at 95 %, by Wilson's interval and by how errors grow from the
        surest quarter to the next; from 0 on, if it is only known that few are. `None` where nothing is well founded:
        there are too few messages, the model is not sure enough, or more labels than three in ten look wrong.
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
        """The estimate in words, or nothing where there is none."""
        match self.interval():
            case None:
                return ""
            case 0.0, high:
                return f"at most {high:.1%} of labels look wrong"
            case low, high:
                return f"{low:.1%} to {high:.1%} of labels look wrong"


def shown_by(model: AnyModel) -> Callable[[Any], str]:
    """How a model's messages are shown as text."""
    return model.features.shown if isinstance(model, TextClassifier) else format_value


def _wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval (1927) of a share of n."""
    middle, width = share + Z * Z / (2.0 * n), Z * math.sqrt(share * (1.0 - share) / n + (Z / (2.0 * n)) ** 2)
    scale = 1.0 + Z * Z / n
    return max(0.0, (middle - width) / scale), (middle + width) / scale
