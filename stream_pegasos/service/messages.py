"""What comes in the body of a request, and what goes out."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, NotRequired

import orjson
from fastapi import HTTPException, Request, Response
from pydantic import FailFast, Field, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from typing_extensions import TypedDict  # which pydantic asks for below Python 3.12

from stream_pegasos.evaluation.prequential import Prediction
from stream_pegasos.learners.labels import Label
from stream_pegasos.service.work import Service
from stream_pegasos.streams import label_of

LONGEST_EXPLAINED = 20_000  # characters


class Message(TypedDict):
    text: str
    id: NotRequired[str | int]


class LabelledMessage(Message):
    label: Label
    weight: NotRequired[Annotated[float, Field(ge=0.0, le=1e30, allow_inf_nan=False)]]


class PredictResponse(TypedDict):
    """What the model says of a message. `label` is null, and so is `probability`, as long as it cannot say."""

    label: Label | None
    probability: float | None
    margin: float
    id: NotRequired[str | int]


class LearnResponse(PredictResponse):
    """What the model said of a message before it was learned; not `learned` is one whose `id` was learned before."""

    learned: bool


class ExplainResponse(PredictResponse):
    """What each word, or part of a word, adds to the margin: the largest ones, then how many others and their sum."""

    contributions: list[tuple[str, float]]
    n_others: int
    others: float


# A list is left at its first fault: each fault takes memory, and a body may have millions.
ADAPTERS: dict[Any, tuple[TypeAdapter[Any], TypeAdapter[Any]]] = {
    Message: (TypeAdapter(Message), TypeAdapter(Annotated[list[Message], FailFast()])),
    LabelledMessage: (TypeAdapter(LabelledMessage), TypeAdapter(Annotated[list[LabelledMessage], FailFast()])),
}


async def read_messages(request: Request, service: Service, kind: Any) -> tuple[list[Any], bool]:
    """The messages in the body, and whether they came as a list."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        # So a browser asks before it lets the page of a stranger send anything.
        raise HTTPException(415, "the content type must be application/json")
    limits = service.limits
    body = await _read(request, service)
    is_list = body.lstrip()[:1] == b"["
    adapter = ADAPTERS[kind][is_list]
    try:
        try:
            messages = adapter.validate_json(body)
        except ValidationError as error:
            # A lone surrogate is legal in a text, but only Python's parser takes it.
            if b"\\ud" not in body.lower() or error.errors()[0]["type"] != "json_invalid":
                raise
            messages = adapter.validate_python(json.loads(body))
    except ValidationError as error:
        raise HTTPException(422, _fault(error)) from None
    except (ValueError, RecursionError):
        raise HTTPException(422, "the body is no JSON") from None
    messages = messages if is_list else [messages]
    if len(messages) > limits.batch:
        raise HTTPException(413, f"{len(messages):,} messages; a request may have {limits.batch:,}")
    for i, message in enumerate(messages):
        if len(message["text"]) > limits.text:
            raise HTTPException(
                413, f"message {i}: a text of {len(message['text']):,} characters; it may have {limits.text:,}"
            )
    return messages, is_list


async def _read(request: Request, service: Service) -> bytes:
    limits = service.limits
    length = request.headers.get("content-length")
    # Python refuses to read an int of very many digits.
    if length is not None and length.isdecimal() and (len(length) > 18 or int(length) > limits.body):
        raise HTTPException(413, f"the body is too large; it may have {limits.body:,} bytes")
    parts = []
    size = 0
    try:
        async with asyncio.timeout(limits.seconds):
            async for part in request.stream():
                size += len(part)
                if size > limits.body:
                    raise HTTPException(413, f"the body is too large; it may have {limits.body:,} bytes")
                parts.append(part)
                service.n_bytes_on_the_way += len(part)
                request.scope["n_bytes"] = size
                if service.n_bytes_on_the_way > 4 * limits.body:
                    raise HTTPException(503, "too many large bodies at a time", {"retry-after": "1"})
    except ClientDisconnect:
        raise HTTPException(400, "the body did not come to its end") from None
    except TimeoutError:
        raise HTTPException(408, f"the body did not come within {limits.seconds:g} seconds") from None
    return b"".join(parts)


def _fault(error: ValidationError) -> str:
    """What is wrong, on one line, with nothing of the input but where."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if "label" in first["loc"] and first["type"] != "missing":
        place = first["loc"][: first["loc"].index("label") + 1]
        return f"{'.'.join(map(str, place))}: it must be a string, an int or a bool"
    if "id" in first["loc"]:
        place = first["loc"][: first["loc"].index("id") + 1]
        return f"{'.'.join(map(str, place))}: it must be a string or an int"
    where = ".".join(str(part) for part in first["loc"] if part not in ("bool", "int", "str"))
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def label_as_read(label: Label, i: int, many: bool) -> Label:
    """The label as the readers of streams have it: an int where it reads as one."""
    if isinstance(label, str):
        read = label_of(label)
        if read is None:
            raise HTTPException(422, f"{f'{i}.' if many else ''}label: it is blank")
        return read
    return label


def answer_with(
    messages: list[Any], predictions: list[Prediction], many: bool, learned: list[bool] | None = None
) -> Response:
    answers: list[Any] = []
    for message, (label, probability, margin) in zip(messages, predictions, strict=True):
        answer: PredictResponse = {"label": label, "probability": probability, "margin": margin}
        if "id" in message:
            answer["id"] = message["id"]
        answers.append(answer)
    if learned is not None:
        for said, is_learned in zip(answers, learned, strict=True):
            said["learned"] = is_learned
    return as_json(answers if many else answers[0])


def as_json(value: Any, status: int = 200, headers: Any = None) -> Response:
    try:
        content = orjson.dumps(value)
    except TypeError:  # a lone surrogate, or an int beyond 64 bits
        content = json.dumps(value).encode()
    return Response(content, status, headers, media_type="application/json")


def _operation(summary: str, kind: Any, response_kind: Any = PredictResponse, many: bool = True) -> dict[str, Any]:
    """What OpenAPI is told of a POST that takes one message, or a list too, with examples."""
    one = TypeAdapter(kind).json_schema()
    example: dict[str, Any] = {"text": "win a free prize"}
    if kind is LabelledMessage:
        example["label"] = "spam"
    second = {**example, "text": "lunch at noon?"} | ({"label": "ham"} if "label" in example else {})
    answer = TypeAdapter(response_kind).json_schema()
    said: dict[str, Any] = {"label": "spam", "probability": 0.97, "margin": 2.1}
    if response_kind is LearnResponse:
        said["learned"] = True
    if response_kind is ExplainResponse:
        said |= {"contributions": [("prize", 1.5), ("free", 0.9), ("(intercept)", -0.3)], "n_others": 0, "others": 0.0}

    def content(schema: Any, first: Any, both: Any) -> dict[str, Any]:
        examples = {"one message": {"value": first}}
        if many:
            examples["many messages"] = {"value": both}
            schema = {"anyOf": [schema, {"type": "array", "items": schema}]}
        return {"application/json": {"schema": schema, "examples": examples}}

    post = {
        "summary": summary,
        "requestBody": {"required": True, "content": content(one, example, [example, second])},
        "responses": {
            "200": {"description": "What the model says.", "content": content(answer, said, [said, said])},
            "401": {"description": "The bearer token is missing or wrong."},
            "413": {"description": "The body, a text or the number of messages is beyond its limit."},
            "415": {"description": "The content type is not application/json."},
            "422": {"description": "The body is not as it must be, or the label is a third one; nothing is learned."},
        },
    }
    return {"post": post}


OPERATIONS = {
    "/predict": _operation("Predict the label of a message, or of many", Message),
    "/learn": _operation(
        "Predict a message, or many, then learn them, those with an id once", LabelledMessage, LearnResponse
    ),
    "/explain": _operation("Why a text is predicted as it is", Message, ExplainResponse, many=False),
}

LEARNED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "ids": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
                    },
                    "required": ["ids"],
                },
                "example": {"ids": ["mail:1", "mail:2", 17]},
            }
        }
    }
}
