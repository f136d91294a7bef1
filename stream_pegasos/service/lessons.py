"""The requests by which people teach: what they are asked, the labels that they give and those that they take back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Literal

from fastapi import FastAPI, HTTPException, Query, Request, Response

from stream_pegasos.service.messages import TakenBack, Taught, as_json, labels_as_read, read_teaching
from stream_pegasos.service.work import Service

LONGEST_FAULT = 500  # characters
SECONDS_BETWEEN = 0.5  # looks for labels that are to be learned


@asynccontextmanager
async def learning_as_given(service: Service) -> AsyncIterator[None]:
    """Learn the labels that people give when they are due, and in the end those that could still be taken back."""
    if not service.teaching.size:
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


def add_teaching(app: FastAPI, service: Service) -> None:
    """Let the application answer those who teach."""

    @app.get("/asked", summary="The messages that the model would most like to know the labels of")
    async def asked(
        limit: Annotated[int, Query(ge=1, le=100, description="How many.")] = 8,
        first: Annotated[
            Literal["uncertain", "newest", "oldest"] | None, Query(description="In another order than usual.")
        ] = None,
        also: Annotated[
            int | None, Query(description="The number of a message to send as well while it waits.")
        ] = None,
    ) -> Response:
        return as_json(await service.asked(limit, first, also))

    async def teach(request: Request) -> Response:
        said = await read_teaching(request, service, Taught)
        label = said["label"]
        if label is not None:
            label = labels_as_read(label, service.kind, 0, many=False, known=service.model.classes)
        try:
            await service.teach(said["number"], label)
        except LookupError as error:
            raise HTTPException(404, str(error.args[0])) from None
        except (ValueError, TypeError) as error:
            raise HTTPException(422, str(error)[:LONGEST_FAULT]) from None
        except OSError as error:
            raise HTTPException(503, f"the label cannot be kept: {error.strerror or error}") from None
        return as_json({"n_given": service.teaching.n_given})

    async def take_back(request: Request) -> Response:
        said = await read_teaching(request, service, TakenBack)
        try:
            await service.take_back(said["number"])
        except LookupError as error:
            raise HTTPException(404, str(error.args[0])) from None
        except OSError as error:
            raise HTTPException(503, f"the label cannot be taken back: {error.strerror or error}") from None
        return as_json({"n_given": service.teaching.n_given})

    app.add_route("/teach", teach, ["POST"], include_in_schema=False)
    app.add_route("/take-back", take_back, ["POST"], include_in_schema=False)
