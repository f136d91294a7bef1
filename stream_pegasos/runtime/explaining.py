"""Explanations of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_pegasos.blocks.blockwise import predict_block
from stream_pegasos.features.message import Message
from stream_pegasos.learners.capabilities import LABELS, ORDERED, model_kind
from stream_pegasos.learners.explanations import phrases, pieces
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.runtime.answers import label_named, shown

if TYPE_CHECKING:
    from stream_pegasos.learners.text import TextClassifier

__all__ = ["explained"]


def explained(model: TextClassifier, x: Message, label: object = None, limit: int = 50) -> dict[str, Any]:
    """The answer of a model to a message, and the contribution of each phrase to the margin of the predicted label
    above the next one. With `label` it is the margin of that label; ordered classes have one margin. Overlapping
    n-grams are one phrase; `words` has the share of each word in it. The contributions of phrases beyond the limit are
    added up. `pieces` are the texts of the message, by field, in pieces with the contribution of each.

    A LookupError if the model does not know the label, a TypeError if the model cannot explain predictions.
    """
    kind, block = model_kind(model.capabilities), predict_block(model, [x], [])
    answer = block.answers(probabilities=block.most_probable())[0].as_json()
    named = None if label is None else label_named(model.classes, label)
    if label is not None and named is None:
        raise LookupError(f"label: the model does not know {shown(label)!r}")
    if label is not None and kind == ORDERED:
        raise LookupError("label: ordered classes have one margin, which is explained as a whole")
    against = None
    if named is None and kind != ORDERED:
        named, against = _first_and_second(answer, kind)
    contributions = _contributions(model, kind, x, named, against)
    texts = model.features.texts(x)
    largest, other_phrases = phrases(contributions, limit, texts)
    return {
        **answer,
        "explained": named,
        "against": against,
        "margin": sum(value for _, value in contributions),
        "contributions": [(phrase.name, phrase.value) for phrase in largest],
        "words": [phrase.words for phrase in largest],
        "pieces": list(pieces(contributions, texts).items()),
        "n_others": len(other_phrases),
        "others": sum(other_phrases),
    }


def _first_and_second(answer: dict[str, Any], kind: str) -> tuple[Label | None, Label | None]:
    """The predicted label and the most probable other one; only the most probable one if a message may have several."""
    best = [label for label, _ in answer["probabilities"]]
    if kind == LABELS:
        return (best[0] if best else None), None
    first = answer["label"]
    return first, next((label for label in best if label != first), None)


def _contributions(
    model: TextClassifier, kind: str, x: Message, named: Label | None, against: Label | None
) -> list[tuple[str, float]]:
    """The contribution of each word, the largest size first."""
    if kind == ORDERED:
        return [*model.explain_ngrams_one(x).items()]
    if named is None:
        return []
    if against not in model.classes:  # it has not come
        against = None
    return [*model.explain_ngrams_one(x, label=named, against=against).items()]
