"""Responses with the answers to requests; large ones are sent in parts."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import orjson
from starlette.responses import Response, StreamingResponse

from stream_pegasos.service.messages import ParsedRequest
from stream_pegasos.streams import Answer

ANSWER_PART = 1 << 20  # bytes of a large answer sent at a time
ANSWERS_AT_A_TIME = 16  # written at a time: labels of a loaded model may be long


def answer_with(answers: list[Answer], batch: ParsedRequest) -> Response:
    """The answers, with the ids of the messages; many large answers are sent as fast as the client reads."""
    records = [answer._replace(id=id).as_json() for answer, id in zip(answers, batch.ids, strict=True)]
    if not batch.is_list:
        return as_json(records[0])
    parts = _parts(records)
    first, second = next(parts), next(parts, None)
    if second is None:
        return Response(first, media_type="application/json")
    return StreamingResponse(_each_in_turn(first, second, parts), media_type="application/json")


def _parts(answers: list[Any]) -> Iterator[bytes]:
    """A list as JSON, in parts."""
    part, between = bytearray(b"["), b""
    for i in range(0, len(answers), ANSWERS_AT_A_TIME):
        part += between + _dumped(answers[i : i + ANSWERS_AT_A_TIME])[1:-1]
        between = b","
        if len(part) >= ANSWER_PART:
            yield bytes(part)
            part.clear()
    yield bytes(part) + b"]"


async def _each_in_turn(first: bytes, second: bytes, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in itertools.chain((first, second), parts):
        yield part
        await asyncio.sleep(0)  # lets others run, even if the client reads all at once


def as_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_dumped(value), status, headers, media_type="application/json")


def _dumped(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, or an int beyond 64 bits
        return json.dumps(value).encode()
