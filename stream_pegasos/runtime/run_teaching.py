"""A teacher beside a run: its labels are learned once, and corrected if a person disagrees."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from time import sleep
from typing import TYPE_CHECKING, Any

from stream_pegasos.blocks.predicted import has_weight
from stream_pegasos.learners.predictions import Predictions
from stream_pegasos.runtime.durable_learning import DurableLearning
from stream_pegasos.runtime.teaching import Lesson, Teaching
from stream_pegasos.streams import Example
from stream_pegasos.streams.example import Id

if TYPE_CHECKING:
    from stream_pegasos.learners.text import TextClassifier

__all__ = ["RunTeaching"]


class RunTeaching:
    """Lets a teacher teach the model of a run. The ids of taught messages are kept, so that later labels are learned as
    corrections, or not again.

    If `waits` is set, the run reads on only when the teacher has answered, or has failed for a minute. This is for
    files, which are read faster than a teacher answers.
    """

    def __init__(self, teaching: Teaching, model: TextClassifier, waits: bool, on_event: Callable[[str], None]) -> None:
        self.teaching, self.waits, self._on_event = teaching, waits, on_event
        self._learning = DurableLearning(model)

    def lessons(self, is_stopped: Callable[[], bool]) -> list[Lesson]:
        """The teacher's new lessons. If the run waits for the teacher, its answers are awaited first."""
        while self.waits and self.teaching.is_busy and not is_stopped():
            sleep(0.01)
        return self.teaching.lessons()

    def ask(self, examples: Sequence[Example], predictions: Predictions) -> None:
        """Ask about some of the examples, which were only predicted."""
        X: list[Any] = [example.x for example in examples]
        self.teaching.ask(X, [example.id for example in examples], predictions)

    def compare(self, examples: Sequence[Any]) -> None:
        """Compare the labels of people with those of the teacher; an example of weight 0 is left out."""
        some = [example for example in examples if has_weight(example)]
        X, labels = [example.x for example in some], [example.y for example in some]
        self.teaching.compare(X, [example.id for example in some], labels)

    def is_taught(self, example: Example) -> bool:
        """Whether the teacher taught this example, which a person labels now."""
        return not self._learning.ids.are_new([self._read_id(example)])[0]

    def correct(self, example: Example) -> None:
        """Replace the teacher's label by the label of a person, and learn it."""
        self.compare([example])
        x: Any = example.x
        id = self._read_id(example)
        if has_weight(example) and not self._learning.ids.has(id, example.y):
            self._learning.learn([(x, example.y, example.w)], [id])

    def _read_id(self, example: Example) -> Id:
        x: Any = example.x
        return self.teaching.id_for(x, example.id)

    def learn(self, lessons: Sequence[Lesson]) -> int:
        """Learn the teacher's lessons; return the number of new ones."""
        before = self._learning.n_learned
        for x, label, weight, id in lessons:
            if self._learning.ids.are_new([id])[0]:
                try:
                    self._learning.learn([(x, label, weight)], [id])
                except (ValueError, TypeError) as error:
                    self._on_event(f"what the teacher taught is not learned: {error}")
        return self._learning.n_learned - before

    def close(self) -> None:
        self.teaching.close()
        if n := self.teaching.view()["n_waiting"]:
            self._on_event(f"{n:,} questions to the teacher have no answer; with --checkpoint the next run asks again")

    def get_state(self) -> dict[str, Any]:
        ids = self._learning.ids
        taught = {"ids": json.dumps(ids.ids()), "labels_of_ids": json.dumps(ids.digests())}
        return {**self.teaching.get_state(keeps_messages=True), **taught}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `get_state`; a ValueError if it is not valid."""
        if state:
            self.teaching.set_state(state)
            self._learning.ids.set_state(state.get("ids", ""), state.get("labels_of_ids", ""))
