"""The answers of all kinds of models, for files, sinks and JSON. Labels may be any text, from unknown senders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stream_pegasos.blocks.blockwise import REFUSALS, predict_block
from stream_pegasos.blocks.predicted import NOTHING
from stream_pegasos.common.batch_then_single import batch_then_single
from stream_pegasos.common.display import shortened
from stream_pegasos.learners.label_policy import LabelPolicy
from stream_pegasos.learners.predictions import Predictions
from stream_pegasos.streams import Answer, Example

if TYPE_CHECKING:
    from stream_pegasos.learners.model import Model

__all__ = ["answer", "label_named", "now", "shown", "shown_answer"]

LONGEST_LABEL = 200  # characters shown of a label
LARGEST_OF_BROWSERS = (1 << 53) - 1


def answer(
    model: Model,
    examples: Sequence[Example],
    on_refused: Callable[[Example, str], None] = lambda example, reason: None,
    in_full: bool = True,
    threads: int = 1,
    on_predicted: Callable[[Sequence[Example], Predictions], None] | None = None,
) -> list[Answer]:
    """The answers to examples, in order, by a model that does not learn. If an example could not be read, or the model
    refuses it, its answer has the fault. `on_refused` is called for refused examples, `on_predicted` for predicted
    ones. Answers `in_full` have the probability of every label.
    """

    def answered(examples: Sequence[Example]) -> list[Answer]:
        block = predict_block(model, [example.x for example in examples], [], threads=threads)
        if on_predicted is not None:
            on_predicted(examples, block.predictions)
        return block.answers(
            [example.id for example in examples], block.probabilities_by_label() if in_full else NOTHING
        )

    readable, answers = [example for example in examples if example.fault is None], list[Answer]()
    for group, outcome in batch_then_single(readable, answered, REFUSALS) if readable else ():
        if isinstance(outcome, Exception):
            on_refused(group[0], str(outcome))
            outcome = [_nothing(group[0], str(outcome))]
        answers += outcome
    remaining = iter(answers)
    return [_nothing(example, example.fault) if example.fault is not None else next(remaining) for example in examples]


def _nothing(example: Example, fault: str | None) -> Answer:
    return Answer(example.id, None, None, error=fault)


def now() -> str:
    """The current time in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def shown(label: object) -> Any:
    """A label, or several, for display: a long text is cut, and an integer that browsers would round becomes a text."""
    if isinstance(label, tuple):
        return [shown(single) for single in label]
    if isinstance(label, str):
        return shortened(label, LONGEST_LABEL)
    if isinstance(label, int) and abs(label) > LARGEST_OF_BROWSERS:
        return shown(f"{label:#x}" if label.bit_length() > 4 * LONGEST_LABEL else str(label))
    return label


def shown_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer in full as JSON, or an explanation, with its labels in the form for display."""
    labels: dict[str, Any] = {n: shown(answer[n]) for n in ("label", "explained", "against") if n in answer}
    answer = {**answer, **labels, "probabilities": [(shown(label), value) for label, value in answer["probabilities"]]}
    for name in ("withheld", "set"):
        if name in answer:
            answer[name] = [shown(label) for label in answer[name]]
    return answer


def label_named(classes: Iterable[Any], value: object) -> Any:
    """The class whose display equals the value, or else the class that the value means; `None` if there is none. A
    LookupError if several classes have the same display, such as labels that begin with the same 199 characters.
    """
    labels = LabelPolicy(classes).candidates(value, shown)
    if len(labels) > 1:
        raise LookupError(f"{value!r} may be any of {len(labels)} labels, which are shown alike")
    return labels[0] if labels else None
