"""Slices of large requests, between which other requests are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["A_MESSAGE", "SLICE", "give_way", "slices"]

SLICE = 50_000  # characters of a slice, about
A_MESSAGE = 100  # characters that each message counts beside its text


async def give_way() -> None:
    """Let other requests run, and ignore a cancellation: a request is learned as a whole."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()


def slices(items: list[Any], size_of: Callable[[Any], int]) -> Iterator[list[Any]]:
    """The items in slices of about `SLICE` characters."""
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
