"""A task that learns the labels of people when they are due."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from stream_pegasos.service.work import Service

SECONDS_BETWEEN = 0.5  # two looks for labels that are due


@asynccontextmanager
async def learning_as_given(service: Service) -> AsyncIterator[None]:
    """Learn the labels of people when they are due; at the end, also those that could still be taken back."""
    if not service.active_learning.size:
        yield
        return
    closing = asyncio.Event()
    task = asyncio.create_task(_learn_as_given(service, closing))
    try:
        yield
    finally:
        closing.set()
        await task
        await service.learn_given(at_once=True)


async def _learn_as_given(service: Service, closing: asyncio.Event) -> None:
    while not closing.is_set():
        try:
            await service.learn_given()
        except Exception as error:
            print(f"stream-pegasos: labels cannot be learned: {error!r}", file=sys.stderr, flush=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(closing.wait(), SECONDS_BETWEEN)
