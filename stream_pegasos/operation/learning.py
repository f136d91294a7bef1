"""Learning messages by their ids, and correcting those that were learned with another label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stream_pegasos.evaluation.chunks import predict_learn
from stream_pegasos.evaluation.predicted import Labelled
from stream_pegasos.features.message import Message
from stream_pegasos.operation.answers import answers_of
from stream_pegasos.operation.learned_ids import CORRECTED, Id, LearnedIds
from stream_pegasos.operation.monitor import Monitor

__all__ = ["ONE_STEP", "TAUGHT_ANEW", "UNKNOWN", "Learning"]

TAUGHT_ANEW, ONE_STEP, UNKNOWN = "taught anew", "one step", "unknown"


class Learning:
    """Learns messages with ids, by a model that a monitor follows.

    A message that was learned with another label is corrected by two steps: the model learns it twice with the new
    label, once to undo the old label and once for the new one. An exact correction would need a second model.

    Parameters
    ----------
    monitor
        The monitor of the model.
    id_window
        How many ids of learned messages are remembered.
    on_learned
        Called with the number of messages learned or unlearned.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.operation.learning import Learning
    >>> from stream_pegasos.operation.monitor import Monitor

    >>> learning = Learning(Monitor(TextClassifier()))
    >>> first = learning.learn([("lunch", "ham"), ("cheap pills", "ham")], [1, 2])
    >>> (corrected,) = learning.learn([("cheap pills", "spam")], [2])
    >>> corrected["correction"], learning.model.n_learned
    ('taught anew', 4)
    >>> learning.unlearn("lunch", 1), learning.model.n_learned
    ('one step', 5)

    """

    def __init__(
        self, monitor: Monitor, id_window: int = 100_000, on_learned: Callable[[int], None] = lambda n: None
    ) -> None:
        self.monitor, self.ids, self._on_learned = monitor, LearnedIds(id_window), on_learned

    @property
    def model(self) -> Any:
        return self.monitor.model

    def learn(self, examples: Sequence[Labelled], ids: Sequence[Id | None]) -> list[dict[str, Any]]:
        """Predict each message, then learn it, even if its id is known with this label. The answers are those of
        `answers_of`; those of corrections have the `correction` "taught anew".

        Raises
        ------
        ValueError, TypeError
            If the model refuses a message; those before it are learned.
        """
        answers: list[dict[str, Any]] = []
        outcomes = self.ids.compared(ids, [example[1] for example in examples])
        corrected = [i for i, outcome in enumerate(outcomes) if outcome == CORRECTED]
        begin = 0
        for end in (*corrected, len(examples)):
            answers += self._learn(examples[begin:end], ids[begin:end])
            if end < len(examples):
                self._step(examples[end])
            begin = end
        for i in corrected:
            answers[i]["correction"] = TAUGHT_ANEW
        return answers

    def _step(self, example: Labelled) -> None:
        for _ in predict_learn(self.model, [example]):
            pass

    def _learn(self, examples: Sequence[Labelled], ids: Sequence[Id | None]) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = []
        before = self.model.n_learned
        try:
            for block in predict_learn(self.model, [*examples]):
                done = len(answers)
                self.monitor.learned([*examples[done : done + len(block)]], block)
                answers += answers_of(block)
        finally:
            # If learning failed on the way, the model's `n_learned` says after how many messages.
            n = max(len(answers), min(self.model.n_learned - before, len(examples)))
            self.ids.add(ids[:n], [example[1] for example in examples[:n]])
            self._on_learned(n)
        return answers

    def unlearn(self, x: Message, id: Id) -> str:
        """Forget the label of a message: a model of two labels learns it once with the other label, and its id is new
        again. Returns "one step", or "unknown" if the id or the other label is not known and nothing is done.

        Raises
        ------
        ValueError, TypeError
            If the model refuses the message.
        """
        known = list(self.model.classes)
        others = [label for label in known if not self.ids.has(id, label)]
        is_known = len(known) == 2 and len(others) == 1
        if is_known:
            self._step((x, others[0]))
            self.ids.remove(id)
        self._on_learned(1)
        return ONE_STEP if is_known else UNKNOWN
