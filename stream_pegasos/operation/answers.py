"""What a model says of texts, as values for JSON, of any kind of model; labels are strangers' and may be anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.evaluation.class_scores import ClassScore, OrderedScore
from stream_pegasos.evaluation.label_scores import LabelScore
from stream_pegasos.evaluation.prequential import PredictedBlock
from stream_pegasos.evaluation.scores import PrequentialScore
from stream_pegasos.learners.labels import Label

__all__ = ["LABELS", "ORDERED", "SEVERAL", "TWO", "answers_of", "label_named", "most_probable", "shown"]

# The kinds of scores, and so of models.
TWO, SEVERAL, ORDERED, LABELS = PrequentialScore.kind, ClassScore.kind, OrderedScore.kind, LabelScore.kind

# Of so many labels at most the probability is told.
MOST_PROBABLE = 10
LONGEST_LABEL = 200  # characters shown of a label
LARGEST_OF_BROWSERS = (1 << 53) - 1


def answers_of(block: PredictedBlock, kind: str) -> list[dict[str, Any]]:
    """The answer to each example: the label and its probability; with two classes the margin, with more the most
    probable labels. Of labels that may hold together `label` and `probability` are those of all that hold.
    """
    if kind == TWO:
        return [
            {"label": label, "probability": probability, "margin": margin}
            for label, probability, margin in block.each()
        ]
    best = most_probable(block.predictions.classes, block.predictions.probabilities)
    return [
        {"label": said.label, "probability": said.probability, "probabilities": probabilities}
        for said, probabilities in zip(block.each(), best, strict=True)
    ]


def most_probable(
    classes: Sequence[Label | None], probabilities: NDArray[np.float64], limit: int = MOST_PROBABLE
) -> list[list[tuple[Label | None, float]]]:
    """The most probable labels of each row and their probabilities, the largest first; not those yet to come."""
    if not classes:
        return [[] for _ in probabilities]
    # Of as many columns as can be, those of the largest; a stable sort of these alone.
    n = min(limit, len(classes))
    best = np.argpartition(-probabilities, n - 1, axis=1)[:, :n] if n < len(classes) else None
    columns = np.tile(np.arange(n), (len(probabilities), 1)) if best is None else np.sort(best, axis=1)
    values = np.take_along_axis(probabilities, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    columns, values = (np.take_along_axis(each, order, axis=1).tolist() for each in (columns, values))
    return [
        [
            (classes[column], value)
            for column, value in zip(*row, strict=True)
            if value > 0.0 and classes[column] is not None
        ]
        for row in zip(columns, values, strict=True)
    ]


def shown(label: Any) -> Any:
    """A label as it is shown: a long text cut off, and an integer that browsers would round as a text."""
    if isinstance(label, str) and len(label) > LONGEST_LABEL:
        return label[: LONGEST_LABEL - 1] + "…"
    if isinstance(label, int) and abs(label) > LARGEST_OF_BROWSERS:
        return shown(f"{label:#x}" if label.bit_length() > 4 * LONGEST_LABEL else str(label))
    return label


def label_named(classes: Iterable[Any], given: Any) -> Any:
    """The label that is meant by itself, by how it is shown, or by its text; `None` if there is none."""
    known = [label for label in classes if label is not None]
    spellings = (lambda label: label, shown, lambda label: str(shown(label)))
    for spell in spellings:
        for label in known:
            spelled = spell(label)
            if type(spelled) is type(given) and spelled == given:
                return label
    return label_named(known, str(given)) if not isinstance(given, str) else None
