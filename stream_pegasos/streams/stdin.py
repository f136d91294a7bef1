"""Standard input as a live source."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any, cast

from stream_pegasos.streams.example import Example, StreamError
from stream_pegasos.streams.readers import read
from stream_pegasos.streams.sources import LiveSource, SourceSettings


class StandardInput(LiveSource):
    """Standard input, one example per batch. Batches have no position: a pipe cannot be read again."""

    def __init__(self, settings: SourceSettings) -> None:
        super().__init__("standard input", settings)
        if settings.options.are_labels:
            raise StreamError("labels cannot come from standard input: give a file, a Kafka topic or a Redis stream")
        if sys.stdin is None:
            raise StreamError("standard input is closed")
        self._examples = read(
            cast(Any, sys.stdin).detach(),  # otherwise Python locks it at exit, while a thread may wait for a line
            settings.options,
            on_bad_line=lambda line, reason: self.bad(f"{settings.options.record} {line}", reason),
        )

    def next_batch(self) -> list[Example] | None:
        """The next example. `close` cannot interrupt a read that waits for it."""
        example = next(self._examples, None)
        return None if example is None else [example]

    def snapshot(self) -> None:
        return None

    def release(self) -> None:
        cast(Generator[Example], self._examples).close()
