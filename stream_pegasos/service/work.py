"""A text model at work, with all that belongs to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from time import monotonic
from typing import Any

from stream_pegasos.checkpoints import Checkpoints
from stream_pegasos.monitor import Monitor
from stream_pegasos.persistence import Snapshot, pack_parameters
from stream_pegasos.prequential import Example, Prediction, predict, predict_learn

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
        A `PegasosTextClassifier` of two classes.
    checkpoints
        Where it is kept; `None` for nowhere.
    progress
        What was kept beside the model the last time.
    limits
        What a stranger may ask for.
    token
        The bearer token that requests have to carry; `None` for none.
    """

    def __init__(
        self,
        model: Any,
        checkpoints: Checkpoints | None = None,
        progress: Any = None,
        limits: Limits | None = None,
        token: str | None = None,
    ) -> None:
        self.model = model
        self.checkpoints = checkpoints
        self.limits = limits or Limits()
        self.token = token
        self.monitor = Monitor(model)
        if progress and "monitor" in progress:
            self.monitor.set_state(progress["monitor"])
        self.n_bytes_on_the_way = 0  # of the bodies of all requests that are not answered yet
        self._lock = threading.Lock()  # between the event loop and the thread of the checkpoints
        self._learning = asyncio.Lock()

    def snapshot(self) -> Snapshot:
        with self._lock:
            return self.model.snapshot({"monitor": self.monitor.get_state()})  # type: ignore[no-any-return]

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

    async def learn(self, examples: list[Example]) -> list[Prediction]:
        """Predict each message, then learn it.

        Raises
        ------
        ValueError
            If a label is a third one; nothing is learned then.
        """
        predictions: list[Prediction] = []
        async with self._learning:  # or labels could become known between the check and the learning
            self.model.classifier._labels.with_labels([example[1] for example in examples])
            for part in _slices(examples, lambda example: len(example[0])):
                with self._lock:
                    done = 0
                    for answers, outcomes in predict_learn(self.model, part):
                        self.monitor.learned(part[done : done + len(answers)], answers, outcomes)
                        predictions += answers
                        done += len(answers)
                if self.checkpoints is not None:
                    self.checkpoints.count(len(part))
                if len(predictions) < len(examples):
                    await asyncio.sleep(0)
        return predictions

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
        parts = {"features": self.model.features, "classifier": self.model.classifier}
        parameters = {name: pack_parameters(part) for name, part in parts.items()}
        return {**described, "parameters": parameters, "version": version("stream-pegasos")}

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
