"""A model over a stream whose labels come late: it predicts a message, and learns it when its label comes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from typing import TYPE_CHECKING, Any, cast

from stream_pegasos.blocks.blockwise import (
    REFUSALS,
    ExampleError,
    OnRefused,
    chunks,
    encode_ahead,
    get_weight,
    goes_in_turn,
    learn_one,
    pass_over,
    predict_one,
    refused,
    unzip_examples,
)
from stream_pegasos.blocks.predicted import Labelled, PredictedBlock
from stream_pegasos.common.batch_then_single import batch_then_single
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions, joined_predictions

if TYPE_CHECKING:
    from stream_pegasos.blocks.river_models import AnyModel

__all__ = ["Events", "LateLearner", "events_after", "events_at"]


# The delay of a label: a number of examples or, with a moment, a time, the name of a field or a function of x and y.
# The moment of an example: the name of a field of x, or a function of x.
Delay = float | str | dt.timedelta | Callable[[Any, Any], dt.timedelta]
Moment = str | Callable[[Any], dt.datetime] | None


@dataclass(slots=True)
class Events:
    """Questions and answers, in order. A question is a message to predict; an answer is its label, to learn."""

    examples: list[Labelled]
    numbers: list[int]  # numbers of the messages
    are_answers: list[bool]

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, rows: slice) -> Events:
        return Events(self.examples[rows], self.numbers[rows], self.are_answers[rows])

    def __add__(self, other: Events) -> Events:
        return Events(
            self.examples + other.examples, self.numbers + other.numbers, self.are_answers + other.are_answers
        )

    @property
    def answers(self) -> list[Labelled]:
        return [*compress(self.examples, self.are_answers)]


def events_after(examples: Iterable[Labelled], delay: int, batch: int) -> Iterator[Events]:
    """Each answer comes after `delay` more questions. The events of a chunk are yielded together."""
    waiting: list[Labelled] = []
    n_asked = n_answered = 0
    for chunk in chunks(examples, batch):
        waiting += chunk
        n = max(0, len(waiting) - delay)  # answers; each follows one of the last questions
        lone = len(chunk) - n
        question_numbers, answer_numbers = range(n_asked, n_asked + len(chunk)), range(n_answered, n_answered + n)
        yield Events(
            [*chunk[:lone], *alternating(chunk[lone:], waiting[:n])],
            [*question_numbers[:lone], *alternating(question_numbers[lone:], answer_numbers)],
            [False] * lone + [False, True] * n,
        )
        n_asked, n_answered, waiting = n_asked + len(chunk), n_answered + n, waiting[n:]
    for chunk in chunks(waiting, batch):
        yield Events(chunk, [*range(n_answered, n_answered + len(chunk))], [True] * len(chunk))
        n_answered += len(chunk)


def alternating(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [item for pair in zip(first, second, strict=True) for item in pair]


def events_at(examples: Iterable[Labelled], delay: Delay, moment: Moment, batch: int) -> Iterator[Events]:
    """Each answer comes after a time, as River simulates it."""
    from river.stream import simulate_qa

    any_delay = cast(Any, delay)  # River's type lacks float
    waiting: dict[int, Labelled] = {}
    newest: Labelled = ()

    def pairs() -> Iterator[tuple[Any, Any]]:
        nonlocal newest
        for newest in examples:
            yield newest[0], newest[1]

    def events() -> Iterator[tuple[Any, Labelled, int, bool]]:
        for number, x, *_ in simulate_qa(pairs(), moment, any_delay, copy=False):
            is_answer = number in waiting
            if not is_answer:
                waiting[number] = newest
            yield x, waiting.pop(number) if is_answer else newest, number, is_answer

    chunk: list[Any]
    for chunk in chunks(events(), batch):
        yield Events([event[1] for event in chunk], [event[2] for event in chunk], [event[3] for event in chunk])


class LateLearner:
    """A learner of questions and answers. Consecutive events that go together are one call of the model; a question is
    an example of weight 0 there: it is predicted in its place, and changes nothing.
    """

    def __init__(self, model: AnyModel, on_refused: OnRefused | None, threads: int) -> None:
        self.model, self._on_refused, self._threads = model, on_refused, threads
        self._predicted: dict[int, tuple[PredictedBlock, int]] = {}  # by number of a waiting message
        self._refused: set[int] = set()  # numbers of messages that could not be predicted

    def take(self, events: Events) -> Iterator[PredictedBlock]:
        """Predict and learn. Yield the predictions of the learned messages, made when they were asked."""
        encode_ahead(self.model, [example[0] for example in events.examples], self._threads)
        while len(events := self._drop_refused(events)):
            n = self._count_alike(events)
            batch, events = events[: n or 1], events[n or 1 :]
            try:
                for learned, error in batch_then_single(
                    batch, self._together if n else self._alone, REFUSALS, self._alone if n else None
                ):
                    if error is None:
                        yield from self._learned(learned)
                    else:
                        self._pass_over(learned, error)
            except PartlyLearnedError as error:
                n, reason = error.n_learned, error.__cause__
                learned, failed, events = batch[:n], batch[n : n + 1], batch[n + 1 :] + events
                if error.predictions is not None:
                    self._note(learned, error.predictions)
                yield from self._learned(learned)
                if not isinstance(reason, REFUSALS):
                    raise
                self._pass_over(failed, ExampleError(str(reason), failed.examples[0]))

    def _drop_refused(self, events: Events) -> Events:
        """The events without answers to refused questions."""
        if self._refused.isdisjoint(events.numbers):
            return events
        mask = [number not in self._refused for number in events.numbers]
        return Events(
            [*compress(events.examples, mask)],
            [*compress(events.numbers, mask)],
            [*compress(events.are_answers, mask)],
        )

    def _count_alike(self, events: Events) -> int:
        """The number of first events that go together; 0 if the first one must be alone."""
        if not isinstance(self.model, Model) and not goes_in_turn(self.model):
            return 0
        labels = [example[1] if of else None for example, of in zip(events.examples, events.are_answers, strict=True)]
        return self.model.labels.count_alike(labels)

    def _together(self, events: Events) -> None:
        model, answers, threads = self.model, events.answers, self._threads
        if goes_in_turn(model):
            self._note(events, model.predict_or_learn_many(events.examples, events.numbers, events.are_answers))
        elif len(answers) == len(events):
            model.learn_many(*unzip_examples(answers), threads=threads)
        else:
            X = [example[0] for example in events.examples]
            if not answers:
                self._note(events, model.predictions(X, threads=threads))
                return
            pairs, label = [*zip(events.examples, events.are_answers, strict=True)], answers[0][1]
            y = [example[1] if of else label for example, of in pairs]
            w = [get_weight(example) if of else 0.0 for example, of in pairs]
            self._note(events, model.predict_learn_many(X, y, w, threads=threads))

    def _alone(self, events: Events) -> None:
        (example,) = events.examples
        if events.numbers[0] in self._refused:
            return
        if goes_in_turn(self.model):
            with refused(example):
                self._together(events)
        elif events.are_answers[0]:
            learn_one(self.model, example)
        else:
            self._note(events, predict_one(self.model, example).predictions)

    def _note(self, events: Events, predictions: Predictions) -> None:
        """Keep the predictions of questions. `predictions` has a row for each event."""
        block = PredictedBlock(predictions, self.model.classes, [])
        for row, (number, is_answer) in enumerate(zip(events.numbers, events.are_answers, strict=True)):
            if not is_answer:
                self._predicted[number] = block, row

    def _learned(self, events: Events) -> Iterator[PredictedBlock]:
        """The predictions of answers, joined if they have the same known labels."""
        answers: list[Labelled] = []
        runs = list[tuple[PredictedBlock, list[int]]]()
        for example, number in compress(zip(events.examples, events.numbers, strict=True), events.are_answers):
            if number in self._predicted:
                answers.append(example)
                block, row = self._predicted.pop(number)
                if not runs or runs[-1][0] is not block:
                    runs.append((block, []))
                runs[-1][1].append(row)
        begin = 0
        for (classes, *_), group in groupby(runs, lambda run: known_labels(run[0])):
            predictions = joined_predictions([block.predictions.rows(rows) for block, rows in group])
            examples = answers[begin : begin + len(predictions)]
            begin += len(examples)
            yield PredictedBlock(predictions, classes, [example[1] for example in examples], examples)

    def _pass_over(self, events: Events, error: ExampleError) -> None:
        (number,), (is_answer,) = events.numbers, events.are_answers
        if not is_answer:
            self._refused.add(number)
        self._predicted.pop(number, None)
        pass_over(error, self._on_refused)


def known_labels(block: PredictedBlock) -> tuple[Any, ...]:
    """The properties that joined predictions must share; the known labels of the model come first."""
    return block.classes, *block.predictions.layout
