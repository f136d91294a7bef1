"""The answers of any kind of model, for files, sinks and JSON. Labels come from strangers and may be anything."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from stream_pegasos.evaluation.prequential import REFUSALS, PredictedBlock, predict_block
from stream_pegasos.learners.labels import Label
from stream_pegasos.streams import Answer, Example

__all__ = [
    "answer",
    "answers_of",
    "answers_to",
    "label_named",
    "most_probable",
    "shown",
    "shown_answer",
]

# Of so many labels at most the probability is told.
MOST_PROBABLE = 10
LONGEST_LABEL = 200  # characters shown of a label
LARGEST_OF_BROWSERS = (1 << 53) - 1


def answer(
    model: Any,
    examples: Sequence[Example],
    on_refused: Callable[[Example, str], None] = lambda example, reason: None,
    in_full: bool = True,
    threads: int = 1,
) -> list[Answer]:
    """The answer to each example, in order, including those that could not be read.

    Parameters
    ----------
    model
        The model; it learns nothing.
    examples
        The examples, including those that could not be read.
    on_refused
        Called with each example that the model refuses, and the reason.
    in_full
        Whether answers have the probability of every label, and margins.
    threads
        How many threads the model may use.
    """
    readable = [example for example in examples if example.fault is None]
    said = iter(_accepted(model, readable, on_refused, in_full, threads) if readable else ())
    return [_nothing(example, example.fault) if example.fault is not None else next(said) for example in examples]


def _accepted(
    model: Any, examples: Sequence[Example], on_refused: Callable[[Example, str], None], in_full: bool, threads: int
) -> list[Answer]:
    try:
        block = predict_block(model, [example.x for example in examples], [], threads=threads)
        return answers_to(examples, block, in_full)
    except REFUSALS as error:
        if len(examples) == 1:
            on_refused(examples[0], str(error))
            return [_nothing(examples[0], str(error))]
        return [said for example in examples for said in _accepted(model, [example], on_refused, in_full, threads)]


def _nothing(example: Example, fault: str | None) -> Answer:
    return Answer(example.id, None, None, error=fault)


def answers_to(examples: Sequence[Example], block: PredictedBlock, in_full: bool = True) -> list[Answer]:
    """The answers that a block says to its examples."""
    each = block.each()
    if not in_full:
        pairs = zip(examples, each, strict=True)
        return [Answer(example.id, said.label, said.probability) for example, said in pairs]
    rows = zip(examples, each, _by_label(block), _margins(block), strict=True)
    return [
        Answer(example.id, said.label, said.probability, probabilities, margin)
        for example, said, probabilities, margin in rows
    ]


def _by_label(block: PredictedBlock) -> list[dict[Label, float]]:
    """The probability of every label that was known when an example was predicted, by label."""
    said, before = block.predictions, set(block.classes) - {None}
    known = [(column, label) for column, label in enumerate(said.classes) if label is not None and label in before]
    if said.scores.ndim == 2 and said.scores.shape[1] == len(said.classes):
        there = np.isfinite(said.scores)  # not where a label came later in the block
    else:
        there = said.probabilities > 0.0
    return [
        {label: row[column] for column, label in known if is_there[column]}
        for row, is_there in zip(said.probabilities.tolist(), there.tolist(), strict=True)
    ]


def _margins(block: PredictedBlock) -> list[Any]:
    """The margin of each answer, as `Answer` has it."""
    said, each = block.predictions, block.each()
    if said.scores.ndim == 1:
        return [None if one.label is None else _finite(one.margin) for one in each]
    if said.scores.shape[1] != len(said.classes):
        return [None] * len(each)
    if each and isinstance(each[0].label, tuple):
        return [tuple(map(_finite, one.margin)) for one in each]
    columns = {label: column for column, label in enumerate(said.classes)}
    place = np.array([columns.get(one.label, -1) for one in each], np.intp)
    rivals, rows = said.scores.copy(), np.arange(len(each))
    if len(columns):
        rivals[rows, place] = -np.inf
    best = rivals.max(axis=1, initial=-np.inf).tolist()
    margins = [
        None if one.label is None or not math.isfinite(rival) else _finite(one.margin - rival)
        for one, rival in zip(each, best, strict=True)
    ]
    # Before a third class came in the middle of a block there was one margin, which stands in two columns.
    for row in np.flatnonzero(np.isfinite(said.scores).sum(axis=1) == 2).tolist():
        negative, positive = said.scores[row][np.isfinite(said.scores[row])].tolist()
        if margins[row] is not None and negative == -positive:
            margins[row] = positive
    return margins


def _finite(margin: float) -> float | None:
    return margin if math.isfinite(margin) else None


def answers_of(block: PredictedBlock, in_full: bool = False) -> list[dict[str, Any]]:
    """The answer to each example: the label and its probability; the margin where one tells two classes apart, and
    otherwise or `in_full` the most probable labels. If a message may have several labels, `label` and `probability` are
    those of all predicted ones. Where a limit of false positives withheld labels, `withheld` lists them.
    """
    said, each = block.predictions, block.each()
    has_one_margin = said.scores.ndim == 1
    answers: list[dict[str, Any]] = [{"label": one.label, "probability": one.probability} for one in each]
    if has_one_margin:
        for answer, one in zip(answers, each, strict=True):
            answer["margin"] = one.margin
    if in_full or not has_one_margin:
        for answer, probabilities in zip(answers, most_probable(block), strict=True):
            answer["probabilities"] = probabilities
    for answer, withheld in zip(answers, said.withheld, strict=True):
        if withheld:
            answer["withheld"] = withheld
    return answers


def most_probable(
    block: PredictedBlock, limit: int = MOST_PROBABLE, begin: int = 0
) -> list[list[tuple[Label | None, float]]]:
    """The most probable labels of each row from there on and their probabilities, the largest first; not those yet to
    come.
    """
    said, known = block.predictions, set(block.classes)
    classes, probabilities = [label if label in known else None for label in said.classes], said.probabilities[begin:]
    n = min(limit, len(classes))
    columns: Any = itertools.repeat(range(n))
    if n < len(classes):  # those of the largest
        best = np.sort(np.argpartition(-probabilities, n - 1, axis=1)[:, :n], axis=1)
        columns, probabilities = best.tolist(), np.take_along_axis(probabilities, best, axis=1)
    found = []
    for places, row in zip(columns, probabilities.tolist(), strict=False):
        pairs = [(classes[at], p) for at, p in zip(places, row, strict=True) if p > 0.0 and classes[at] is not None]
        pairs.sort(key=itemgetter(1), reverse=True)  # the first one stays first of those that are as probable
        found.append(pairs)
    return found


def shown(label: Any) -> Any:
    """A label as it is shown, or several: a long text cut off, and an integer that browsers would round as a text."""
    if isinstance(label, tuple):
        return [shown(each) for each in label]
    if isinstance(label, str) and len(label) > LONGEST_LABEL:
        return label[: LONGEST_LABEL - 1] + "…"
    if isinstance(label, int) and abs(label) > LARGEST_OF_BROWSERS:
        return shown(f"{label:#x}" if label.bit_length() > 4 * LONGEST_LABEL else str(label))
    return label


def shown_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer of `answers_of` in full, or an explanation, with its labels as they are shown."""
    labels: dict[str, Any] = {n: shown(answer[n]) for n in ("label", "explained", "against") if n in answer}
    answer = {**answer, **labels, "probabilities": [(shown(label), value) for label, value in answer["probabilities"]]}
    if "withheld" in answer:
        answer["withheld"] = [shown(label) for label in answer["withheld"]]
    return answer


def label_named(classes: Iterable[Any], given: Any) -> Any:
    """The label that is meant by itself or by how it is shown, or else by its text; `None` if there is none.

    Raises
    ------
    LookupError
        If more than one may be meant, as of labels that begin with the same 199 characters.
    """
    known = [label for label in classes if label is not None]
    for spellings in (lambda label: (label, shown(label)), lambda label: (str(shown(label)),)):
        meant = [
            label for label in known if any(type(each) is type(given) and each == given for each in spellings(label))
        ]
        if len(meant) > 1:
            raise LookupError(f"{given!r} may be any of {len(meant)} labels, which are shown alike")
        if meant:
            return meant[0]
    return label_named(known, str(given)) if not isinstance(given, str) else None
