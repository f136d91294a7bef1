"""The newest lessons of a model, which can be taken back."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from stream_pegasos.common.checks import check_integer
from stream_pegasos.evaluation.prequential import Labelled, predict_learn
from stream_pegasos.features.message import size_of

__all__ = ["Lessons"]

MOST_CHARACTERS = 1 << 25  # that are kept


class Lessons:
    """Takes lessons back exactly: a model is then, bit for bit, as if it had never learned them.

    Beside the model stands its twin, the model as it was before the newest lessons, and these lessons. To take one back
    the others are learned again by a copy of the twin. So there are two models in memory, and each lesson is learned
    twice, from the first one on that has an id.

    Parameters
    ----------
    size
        How many lessons can be taken back, from 0 to 1,000,000; fewer where their messages have more than 32 million
        characters together.

    Raises
    ------
    TypeError, ValueError
        If there cannot be so many.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.operation.lessons import Lessons

    >>> model, lessons = TextClassifier(), Lessons(size=100)
    >>> for id, x, y in [(1, "cheap pills", "spam"), (2, "lunch at noon", "ham"), (3, "cheap lunch", "spam")]:
    ...     lessons.begin(model, [id])
    ...     model.learn_one(x, y)
    ...     lessons.add([(x, y)], [id])
    >>> corrected = lessons.without([3])
    >>> corrected.n_learned, corrected.predict_one("cheap lunch") == model.predict_one("cheap lunch")
    (2, True)

    """

    def __init__(self, size: int = 1_000) -> None:
        check_integer("size", size, 0, 1_000_000)
        self._size = size
        self._twin: Any = None
        self._lessons: deque[tuple[Labelled, Any]] = deque()  # each with its id
        self._n_characters = 0  # of their messages

    def begin(self, model: Any, ids: Sequence[Any]) -> None:
        """Take note of a model that is going to learn messages with these ids."""
        if self._twin is None and self._size and any(id is not None for id in ids):
            self._twin = copy.deepcopy(model)

    def add(self, examples: Sequence[Labelled], ids: Sequence[Any]) -> None:
        """The model has learned these."""
        if self._twin is None:
            return
        self._lessons.extend(zip(examples, ids, strict=True))
        self._n_characters += sum(size_of(example[0]) for example in examples)
        old = []
        while len(self._lessons) > self._size or self._n_characters > MOST_CHARACTERS:
            old.append(self._lessons.popleft()[0])
            self._n_characters -= size_of(old[-1][0])
        _learn(self._twin, old)

    def message(self, id: Any) -> Any:
        """The message that was learned by an id; `None` if it cannot be taken back."""
        found = (example[0] for example, other in reversed(self._lessons) if _is_same(other, id))
        return None if id is None else next(found, None)

    def without(self, ids: Iterable[Any]) -> Any:
        """The model as if it had not learned what has these ids, which are forgotten here."""
        gone = {(type(id), id) for id in ids}
        kept = [each for each in self._lessons if (type(each[1]), each[1]) not in gone]
        model = copy.deepcopy(self._twin)
        _learn(model, [example for example, _ in kept])
        self._lessons = deque(kept)
        self._n_characters = sum(size_of(example[0]) for example, _ in kept)
        return model


def _is_same(id: Any, other: Any) -> bool:
    return id == other and type(id) is type(other)


def _learn(model: Any, examples: list[Labelled]) -> None:
    # As the model itself has learned them: predicting first, since calibration is learned from what was predicted.
    for _ in predict_learn(model, examples):
        pass
