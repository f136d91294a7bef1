"""Standard input as a live source."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

from stream_pegasos.streams.example import StreamError
from stream_pegasos.streams.options import ReadOptions
from stream_pegasos.streams.readers import read_as
from stream_pegasos.streams.sources import Batch, Reporter


class StandardInput:
    """Standard input, one example a batch. No batch has a position: a pipe cannot be read again."""

    name = "standard input"

    def __init__(self, options: ReadOptions, reporter: Reporter) -> None:
        self._closed = False
        if sys.stdin is None:
            raise StreamError("standard input is closed")
        self._examples = read_as(
            cast(Any, sys.stdin).detach(),  # or Python locks it at exit, while a thread may wait for a line
            options,
            lambda line, reason: reporter.bad(self.name, f"{options.record} {line}", reason),
        )

    def batches(self) -> Iterator[Batch]:
        with closing(self._examples):  # type: ignore[type-var]
            for example in self._examples:
                if self._closed:
                    return
                yield Batch([example], None)

    def commit(self, position: Any) -> None:
        pass

    def close(self) -> None:
        """Let `batches` end at the next line: a read that waits cannot be called off."""
        self._closed = True
