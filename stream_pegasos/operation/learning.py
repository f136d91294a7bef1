"""Learning messages by their ids, and taking lessons back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stream_pegasos.evaluation.prequential import Labelled, predict_block, predict_learn
from stream_pegasos.features.message import Message
from stream_pegasos.operation.answers import answers_of
from stream_pegasos.operation.learned_ids import CORRECTED, Id, LearnedIds
from stream_pegasos.operation.lessons import Lessons
from stream_pegasos.operation.monitor import Monitor

__all__ = ["ONE_STEP", "TAKEN_BACK", "TAUGHT_ANEW", "UNKNOWN", "Learning"]

TAKEN_BACK, TAUGHT_ANEW, ONE_STEP, UNKNOWN = "taken back", "taught anew", "one step", "unknown"


class Learning:
    """How a model that is followed by a monitor learns messages with ids.

    A message that was learned with another label is corrected: its first lesson is taken back, and it is learned with
    the new label. The first lesson is taken back exactly while it is among the newest ones. Older ones are taken back
    as far as one step towards another label goes.

    Parameters
    ----------
    monitor
        What follows the model. Where a lesson is taken back, its model is another one from then on.
    id_window
        How many ids of learned messages are remembered.
    n_lessons
        How many lessons can be taken back exactly, from 0 to 1,000,000; see `Lessons`.
    on_learned
        Called with how many messages were learned, or asked to be unlearned.
    on_taken_back
        Called when lessons were taken back exactly. Only a model that is saved from then on is without them.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.operation.learning import Learning
    >>> from stream_pegasos.operation.monitor import Monitor

    >>> learning = Learning(Monitor(TextClassifier()))
    >>> first = learning.learn([("lunch", "ham"), ("cheap pills", "ham")], [1, 2])
    >>> (corrected,) = learning.learn([("cheap pills", "spam")], [2])
    >>> corrected["correction"], learning.model.n_learned
    ('taken back', 2)
    >>> learning.unlearn("lunch", 1), learning.model.n_learned
    ('taken back', 1)

    """

    def __init__(
        self,
        monitor: Monitor,
        id_window: int = 100_000,
        n_lessons: int = 1_000,
        on_learned: Callable[[int], None] = lambda n: None,
        on_taken_back: Callable[[], None] = lambda: None,
    ) -> None:
        self.monitor, self.ids = monitor, LearnedIds(id_window)
        self._lessons, self._on_learned, self._on_taken_back = Lessons(n_lessons), on_learned, on_taken_back

    @property
    def model(self) -> Any:
        return self.monitor.model

    def learn(self, examples: Sequence[Labelled], ids: Sequence[Id | None]) -> list[dict[str, Any]]:
        """Predict each message, then learn it, also where its id is known with this label; the answers, as `answers_of`
        has them, with the `correction` where it was one: "taken back" exactly, or "taught anew" by a second step.

        Raises
        ------
        ValueError, TypeError
            If the model refuses a message; those before it are learned.
        """
        answers: list[dict[str, Any]] = []
        outcomes = self.ids.compared(ids, [example[1] for example in examples])
        for is_corrected, begin, end in _runs(outcomes, ids):
            these, those = examples[begin:end], ids[begin:end]
            corrections = self._correct(these, those) if is_corrected else []
            answers += self._learn(these, those)
            for answer, correction in zip(answers[begin:end], corrections, strict=False):
                answer["correction"] = correction
        return answers

    def message(self, id: Id | None) -> Message | None:
        """The message that was learned by an id; `None` if it cannot be taken back exactly."""
        message: Message | None = self._lessons.message(id)
        return message

    def _correct(self, examples: Sequence[Labelled], ids: Sequence[Id | None]) -> list[str]:
        """Take back what was learned with other labels."""
        predict_block(self.model, [example[0] for example in examples], [])  # raises where one would be refused
        exactly = [id for id in ids if self.message(id) is not None]
        if exactly:
            self._take_back(exactly)
        corrections = [TAKEN_BACK if id in exactly else TAUGHT_ANEW for id in ids]
        for example, correction in zip(examples, corrections, strict=True):
            if correction == TAUGHT_ANEW:
                self._step(example)
        return corrections

    def _take_back(self, ids: Sequence[Id | None]) -> None:
        self.monitor.model = self._lessons.without(ids)
        self._on_taken_back()

    def _step(self, example: Labelled) -> None:
        for _ in predict_learn(self.model, [example]):
            self._lessons.add([example], [None])

    def _learn(self, examples: Sequence[Labelled], ids: Sequence[Id | None]) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = []
        self._lessons.begin(self.model, ids)
        before = self.model.n_learned
        try:
            for block in predict_learn(self.model, [*examples]):
                done = len(answers)
                self.monitor.learned([*examples[done : done + len(block)]], block)
                answers += answers_of(block)
        finally:
            # Where learning failed on the way, the model knows how far it came.
            n = max(len(answers), min(self.model.n_learned - before, len(examples)))
            self.ids.add(ids[:n], [example[1] for example in examples[:n]])
            self._lessons.add(examples[:n], ids[:n])
            self._on_learned(n)
        return answers

    def unlearn(self, x: Message, id: Id) -> str:
        """Take back what was learned by an id, which is then as new: "taken back" exactly, or by "one step" towards the
        other label, if the model knows two and the lesson is an old one. Where that cannot be, and nothing is done, the
        answer is "unknown".

        Raises
        ------
        ValueError, TypeError
            If the model refuses the message.
        """
        known = [label for label in self.model.classes if label is not None]
        others = [label for label in known if not self.ids.has(id, label)]
        predict_block(self.model, [x], [])  # which raises where the message would be refused
        outcome = UNKNOWN
        if self.message(id) is not None:
            self._take_back([id])
            outcome = TAKEN_BACK
        elif len(known) == 2 and len(others) == 1:
            self._step((x, others[0]))
            outcome = ONE_STEP
        if outcome != UNKNOWN:
            self.ids.remove(id)
        self._on_learned(1)
        return outcome


def _runs(outcomes: Sequence[str], ids: Sequence[Id | None]) -> Iterator[tuple[bool, int, int]]:
    """Where messages begin and end that are corrections, each of another id, or that are none."""
    begin, met = 0, set[Id | None]()
    for i, (outcome, id) in enumerate(zip(outcomes, ids, strict=True)):
        is_corrected = outcome == CORRECTED
        if i and (is_corrected != (outcomes[begin] == CORRECTED) or (is_corrected and id in met)):
            yield outcomes[begin] == CORRECTED, begin, i
            begin, met = i, set()
        met.add(id)
    if outcomes:
        yield outcomes[begin] == CORRECTED, begin, len(outcomes)
