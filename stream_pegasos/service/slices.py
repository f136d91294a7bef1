"""Work on many messages, which gives way to other requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["A_MESSAGE", "SLICE", "give_way", "slices"]

SLICE = 50_000  # characters, about, after which it gives way
A_MESSAGE = 100  # is what each of them counts beside its text


async def give_way() -> None:
    """Let others work in the midst of learning, which nobody can cancel: a request is learned as a whole."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()


def slices(items: list[Any], size_of: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Messages in parts, after each of which others may work."""
    part: list[Any] = []
    size = 0
    for item in items:
        part.append(item)
        size += A_MESSAGE + size_of(item)
        if size >= SLICE:
            yield part
            part, size = [], 0
    if part:
        yield part
