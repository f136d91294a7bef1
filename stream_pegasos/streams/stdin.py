"""Standard input as a live source."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

from stream_pegasos.streams.example import StreamError
from stream_pegasos.streams.layout import Layout
from stream_pegasos.streams.readers import read_layout
from stream_pegasos.streams.sources import Batch, Reporter


class StandardInput:
    """Standard input, one example a batch. No batch has a position: a pipe cannot be read again."""

    name = "standard input"

    def __init__(self, layout: Layout, reporter: Reporter) -> None:
        self._closed = False
        if sys.stdin is None:
            raise StreamError("standard input is closed")
        self._examples = read_layout(
            cast(Any, sys.stdin).detach(),  # or Python locks it at exit, while a thread may wait for a line
            layout,
            unlabelled=True,
            unreadable=reporter.unreadable,
            on_bad_line=lambda line, reason: reporter.bad(self.name, f"{layout.record} {line}", reason),
        )

    def batches(self) -> Iterator[Batch]:
        with closing(self._examples):  # type: ignore[type-var]
            for example in self._examples:
                if self._closed:
                    return
                yield Batch([example], None)

    def done(self, position: Any) -> None:
        pass

    def close(self) -> None:
        """Let `batches` end at the next line: a read that waits cannot be called off."""
        self._closed = True
