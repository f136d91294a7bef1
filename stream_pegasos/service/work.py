"""A text model at work, with all that belongs to it."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from stream_pegasos import __version__
from stream_pegasos.evaluation.prequential import Labelled, Prediction, predict, predict_learn
from stream_pegasos.learners.persistence import Snapshot, pack_parameters
from stream_pegasos.operation.checkpoints import Checkpoints
from stream_pegasos.operation.monitor import Monitor
from stream_pegasos.service.learned import Id, LearnedIds

# Work on many messages gives way to other requests after about so many characters.
SLICE = 50_000
MOST_CONTRIBUTIONS = 50


@dataclass(frozen=True)
class Limits:
    """What a stranger may ask for.

    Parameters
    ----------
    body
        The size of a request's body, in bytes. All bodies on the way together may have four times that much.
    text
        The length of a text, in characters.
    batch
        The number of messages in a request.
    concurrency
        The number of connections at a time. Beyond it the one that waited longest for its client gives way; where all
        are at work on a request, the answer is 503.
    seconds
        How long a request may take to come, its head and then its body, and an answer to be taken.
    """

    body: int = 8 << 20
    text: int = 1_000_000
    batch: int = 10_000
    concurrency: int = 256
    seconds: float = 30.0


class Service:
    """A text model at work, with all that belongs to it: what is seen of it, its checkpoints, its limits.

    Parameters
    ----------
    model
        A `TextClassifier` of two classes.
    checkpoints
        Where it is kept; `None` for nowhere.
    progress
        What was kept beside the model the last time.
    limits
        What a stranger may ask for.
    token
        The bearer token that requests have to carry; `None` for none.
    id_window
        Of how many messages learned the ids are remembered, so that none of them is learned again.
    """

    def __init__(
        self,
        model: Any,
        checkpoints: Checkpoints | None = None,
        progress: Any = None,
        limits: Limits | None = None,
        token: str | None = None,
        id_window: int = 100_000,
    ) -> None:
        self.model = model
        self.checkpoints = checkpoints
        self.limits = limits or Limits()
        self.token = token
        self.monitor = Monitor(model)
        self._learned = LearnedIds(id_window)
        if progress and "monitor" in progress:
            self.monitor.set_state(progress["monitor"])
        if progress and "ids" in progress:  # those of before know none
            self._learned.set_state(progress["ids"])
        self.n_bytes_on_the_way = 0  # of the bodies of all requests that are not answered yet
        self._lock = threading.Lock()  # between the event loop and the thread of the checkpoints
        self._learning = asyncio.Lock()

    def snapshot(self) -> Snapshot:
        with self._lock:
            ids = self._learned.ids()
            snapshot: Snapshot = self.model.snapshot({"monitor": self.monitor.get_state()})
        snapshot.progress["ids"] = json.dumps(ids)  # as one string, which is fast, and while others go on
        return snapshot

    async def predict(self, texts: list[str]) -> list[Prediction]:
        predictions: list[Prediction] = []
        for part in _slices(texts, len):
            with self._lock:
                answers = predict(self.model, part)
                self.monitor.predicted(part, answers)
            predictions += answers
            if len(predictions) < len(texts):
                await asyncio.sleep(0)
        return predictions

    async def learn(
        self, examples: list[Labelled], ids: Sequence[Id | None] | None = None
    ) -> tuple[list[Prediction], list[bool]]:
        """Predict each message, then learn it, unless one with its id was learned before; and which were learned.

        Raises
        ------
        ValueError
            If a label is a third one; nothing is learned then.
        RuntimeError
            If learning failed on the way; `learned_ids` tells how far it came.
        """
        predictions: list[Prediction] = []
        async with self._learning:  # or labels could become known between the check and the learning
            self.model.check_labels([example[1] for example in examples])
            ids = [None] * len(examples) if ids is None else ids
            are_new = self._learned.are_new(ids)
            before = self.model.n_learned
            try:
                for part in _slices(examples, lambda example: len(example[0])):
                    end = len(predictions) + len(part)
                    with self._lock:
                        for is_new, group in itertools.groupby(are_new[len(predictions) : end]):
                            these = slice(len(predictions), len(predictions) + len(list(group)))
                            if is_new:
                                predictions += self._learn(examples[these], ids[these])
                            else:
                                predictions += predict(self.model, [example[0] for example in examples[these]])
                    if len(predictions) < len(examples):
                        await asyncio.sleep(0)
            except (TypeError, ValueError) as error:
                if self.model.n_learned == before:
                    raise
                raise RuntimeError(f"learned in part: {error}") from error
        return predictions, are_new

    def _learn(self, examples: list[Labelled], ids: Sequence[Id | None]) -> list[Prediction]:
        predictions: list[Prediction] = []
        before = self.model.n_learned
        try:
            for block in predict_learn(self.model, examples):
                done = len(predictions)
                self.monitor.learned(examples[done : done + len(block)], block)
                predictions += block.each()
        finally:
            # Where learning failed on the way, the model knows how far it came.
            n = max(len(predictions), min(self.model.n_learned - before, len(examples)))
            self._learned.add(ids[:n])
            if self.checkpoints is not None:
                self.checkpoints.count(n)
        return predictions

    def learned_ids(self) -> list[Id]:
        """The ids of the newest messages learned, the oldest first."""
        with self._lock:
            return self._learned.ids()

    def explain(self, text: str) -> dict[str, Any]:
        with self._lock:
            (prediction,) = predict(self.model, [text])
            contributions = list(self.model.explain_one(text).items())
        others = [value for _, value in contributions[MOST_CONTRIBUTIONS:]]
        return {
            **prediction._asdict(),
            "contributions": contributions[:MOST_CONTRIBUTIONS],
            "n_others": len(others),
            "others": sum(others),
        }

    def view(self) -> dict[str, Any]:
        with self._lock:
            view = self.monitor.view()
        return {**view, "checkpoint": self._checkpoint()}

    def describe(self) -> dict[str, Any]:
        with self._lock:
            described = self.monitor.view()["model"]
        parameters = {name: pack_parameters(part) for name, part in self.model.parts.items()}
        return {**described, "parameters": parameters, "version": __version__}

    def _checkpoint(self) -> dict[str, Any] | None:
        checkpoints = self.checkpoints
        if checkpoints is None:
            return None
        written = checkpoints.written_at
        return {
            "path": checkpoints.path.name,
            "seconds_ago": None if written is None else monotonic() - written,
            "error": checkpoints.error,
        }


def _slices(items: list[Any], size_of: Callable[[Any], int]) -> Iterator[list[Any]]:
    part: list[Any] = []
    size = 0
    for item in items:
        part.append(item)
        size += 100 + size_of(item)
        if size >= SLICE:
            yield part
            part, size = [], 0
    if part:
        yield part
