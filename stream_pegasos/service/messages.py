"""What comes in the body of a request, and what goes out."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, Literal, NotRequired

import orjson
from fastapi import HTTPException, Request, Response
from pydantic import FailFast, Field, TypeAdapter, ValidationError
from starlette.responses import StreamingResponse
from typing_extensions import TypedDict  # which pydantic asks for below Python 3.12

from stream_pegasos.learners.labels import Label
from stream_pegasos.operation.answers import LABELS, ORDERED, SEVERAL, TWO
from stream_pegasos.service.work import Service
from stream_pegasos.streams import label_of

LONGEST_EXPLAINED = 20_000  # characters
LONGEST_LABEL = LONGEST_ID = 200  # characters
LARGEST = (1 << 63) - 1  # integer that is a label or an id; the smallest is -LARGEST - 1
ID_FAULT = f"it must be a string of up to {LONGEST_ID} characters or an int of 64 bits"
MOST_LABELS = 1_000  # of a message
ANSWER_PART = 1 << 20  # bytes of a larger answer that are sent at a time
ANSWERS_AT_A_TIME = 16  # that are written, as labels of a loaded model may be long

Id = str | Annotated[int, Field(strict=True, ge=-LARGEST - 1, le=LARGEST)]


class Message(TypedDict):
    text: str
    id: NotRequired[Id]


class QuestionedMessage(Message):
    label: NotRequired[Label]


class LabelledMessage(TypedDict):
    """A message and its label. With an `id` whose message waits for its label, or has one that can still be taken back,
    the `text` may be left out.
    """

    text: NotRequired[str]
    id: NotRequired[Id]
    label: Label | list[Label]
    weight: NotRequired[Annotated[float, Field(ge=0.0, le=1e30, allow_inf_nan=False)]]


class TakenBack(TypedDict):
    """A message whose label is taken back, by the number that GET /asked has."""

    number: int


class Taught(TakenBack):
    """A message that a person labels; null skips it."""

    label: Label | list[Label] | None


class PredictResponse(TypedDict):
    """What the model says of a message. `label` and `probability` are null as long as it knows no answer. If a message
    may have several labels, both are lists, of all predicted ones. With two classes there is the `margin`, above 0 for
    the positive one; with more, the ten most probable labels with their `probabilities`. Where a limit of false
    positives withheld labels, `withheld` lists them.
    """

    label: Label | list[Label] | None
    probability: float | list[float] | None
    margin: NotRequired[float]
    withheld: NotRequired[list[Label]]
    probabilities: NotRequired[list[tuple[Label, float]]]
    id: NotRequired[str | int]


class LearnResponse(PredictResponse):
    """What the model said of a message before learning it. `learned` is false if its `id` was learned before with this
    label. With another label it is a correction: "taken back" where the model had not learned the other one yet, as one
    given on the page, and "taught anew" where it had, so that it has now learned both.
    """

    learned: bool
    correction: NotRequired[Literal["taken back", "taught anew"]]


class ExplainResponse(PredictResponse):
    """What each word, or part of a word, adds to the margin: the largest ones, then the number and the sum of the
    others. With two classes it is the margin of the positive one. With more, it is the margin of the label `explained`
    less that of the label `against`, if that is not null. These are the predicted label and the next one, or the label
    that the request names. As browsers round integers beyond 2**53, labels that are such integers are strings here.
    """

    explained: NotRequired[Label | None]
    against: NotRequired[Label | None]
    contributions: list[tuple[str, float]]
    n_others: int
    others: float


# A list is left at its first fault: each fault takes memory, and a body may have millions.
ADAPTERS: dict[Any, tuple[TypeAdapter[Any], TypeAdapter[Any]]] = {
    Message: (TypeAdapter(Message), TypeAdapter(Annotated[list[Message], FailFast()])),
    QuestionedMessage: (TypeAdapter(QuestionedMessage), TypeAdapter(Annotated[list[QuestionedMessage], FailFast()])),
    LabelledMessage: (TypeAdapter(LabelledMessage), TypeAdapter(Annotated[list[LabelledMessage], FailFast()])),
}

TEACHING: dict[Any, TypeAdapter[Any]] = {Taught: TypeAdapter(Taught), TakenBack: TypeAdapter(TakenBack)}


async def read_messages(request: Request, service: Service, kind: Any) -> tuple[list[Any], bool]:
    """The messages in the body, and whether they came as a list."""
    limits = service.limits
    body = await _read(request, service)
    is_list = body.lstrip()[:1] == b"["
    messages = _validated(body, ADAPTERS[kind][is_list])
    messages = messages if is_list else [messages]
    if len(messages) > limits.batch:
        raise HTTPException(413, f"{len(messages):,} messages; a request may have {limits.batch:,}")
    if kind is LabelledMessage:
        _find_texts(messages, service, is_list)
    for i, message in enumerate(messages):
        id = message.get("id")
        if isinstance(id, str) and len(id) > LONGEST_ID:  # where pydantic measures, it refuses lone surrogates
            raise HTTPException(422, f"{f'{i}.' if is_list else ''}id: {ID_FAULT}")
        if len(message["text"]) > limits.text:
            raise HTTPException(
                413, f"message {i}: a text of {len(message['text']):,} characters; it may have {limits.text:,}"
            )
    return messages, is_list


def _find_texts(messages: list[Any], service: Service, is_list: bool) -> None:
    """Put in the texts that are known by their ids."""
    bare = [(i, message) for i, message in enumerate(messages) if "text" not in message]
    texts = service.teaching.texts_from(message.get("id") for _, message in bare) if bare else []
    for (i, message), text in zip(bare, texts, strict=True):
        if text is None:
            where = f"{i}.text" if is_list else "text"
            reason = "nothing is kept of a message with this id" if "id" in message else "Field required"
            raise HTTPException(422, f"{where}: {reason}")
        message["text"] = text


async def read_teaching(request: Request, service: Service, kind: Any) -> Any:
    """What a person says of a message that waits for its label."""
    return _validated(await _read(request, service), TEACHING[kind])


def _validated(body: bytes, adapter: TypeAdapter[Any]) -> Any:
    try:
        try:
            return adapter.validate_json(body)
        except ValidationError as error:
            # A lone surrogate is legal in a text, but only Python's parser takes it.
            if b"\\ud" not in body.lower() or error.errors()[0]["type"] != "json_invalid":
                raise
            return adapter.validate_python(json.loads(body))
    except ValidationError as error:
        raise HTTPException(422, _fault(error)) from None
    except (ValueError, RecursionError):
        raise HTTPException(422, "the body is no JSON") from None


async def _read(request: Request, service: Service) -> bytes:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        # So a browser asks before it lets the page of a stranger send anything.
        raise HTTPException(415, "the content type must be application/json")
    return await service.bodies.receive(request)


def _fault(error: ValidationError) -> str:
    """What is wrong, on one line, with nothing of the input but where."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if "label" in first["loc"] and first["type"] != "missing":
        place = first["loc"][: first["loc"].index("label") + 1]
        return f"{'.'.join(map(str, place))}: it must be a string, an int or a bool, or a list of these"
    if "id" in first["loc"]:
        place = first["loc"][: first["loc"].index("id") + 1]
        return f"{'.'.join(map(str, place))}: {ID_FAULT}"
    where = ".".join(str(part) for part in first["loc"] if part not in ("bool", "int", "str"))
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def labels_as_read(label: Any, kind: str, i: int, many: bool, known: Sequence[Any] = ()) -> Any:
    """What a message is to be learned with: one label or, if it may have several, a tuple of them. Those that are known
    stay as they are.
    """
    where = f"{i}.label" if many else "label"
    if kind != LABELS:
        if isinstance(label, list):
            raise HTTPException(422, f"{where}: it must be one label, not a list; this model tells classes apart")
        return _learnable(label, where, known)
    if not isinstance(label, list):
        raise HTTPException(422, f"{where}: it must be a list of the labels that hold, maybe an empty one")
    if len(label) > MOST_LABELS:
        raise HTTPException(413, f"{where}: {len(label):,} labels; a message may have {MOST_LABELS:,}")
    return tuple(_learnable(each, where, known) for each in label)


def label_as_read(label: Label, where: str = "label", known: Sequence[Any] = ()) -> Label:
    """The label as the readers of streams have it: an int where it reads as one, unless it is known as it is."""
    if isinstance(label, str) and label in known:  # as "7" beside 7, in a model that was trained elsewhere
        return label
    if isinstance(label, str):
        if len(label) > LONGEST_LABEL:
            raise HTTPException(413, f"{where}: a label of {len(label):,} characters; it may have {LONGEST_LABEL:,}")
        read = label_of(label)
        if read is None:
            raise HTTPException(422, f"{where}: it is blank")
        return read
    return label


def _learnable(label: Label, where: str, known: Sequence[Any]) -> Label:
    label = label_as_read(label, where, known)
    if isinstance(label, int) and not -LARGEST - 1 <= label <= LARGEST:
        raise HTTPException(422, f"{where}: an integer may have 64 bits")
    return label


def label_of_query(text: str) -> Any:
    """The label that a query names: a JSON string, integer or bool, or else the text itself."""
    try:
        label = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return label if isinstance(label, (bool, int, str)) else text


def answer_with(messages: list[Any], answers: list[dict[str, Any]], many: bool) -> Response:
    """The answers, with the ids of the messages; many large ones are sent as the client takes them."""
    for message, answer in zip(messages, answers, strict=True):
        if "id" in message:
            answer["id"] = message["id"]
    if not many:
        return as_json(answers[0])
    parts = _parts(answers)
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


async def _each_in_turn(first: bytes, second: bytes, rest: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in itertools.chain((first, second), rest):
        yield part
        await asyncio.sleep(0)  # to others, also where the client takes all at once


def as_json(value: Any, status: int = 200, headers: Any = None) -> Response:
    return Response(_dumped(value), status, headers, media_type="application/json")


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate, or an int beyond 64 bits
        return json.dumps(value).encode()


# A message, what it is labelled with, and what is said of it, by the kind of model.
EXAMPLES: dict[str, tuple[list[str], list[Any], dict[str, Any]]] = {
    TWO: (
        ["win a free prize", "lunch at noon?"],
        ["spam", "ham"],
        {"label": "spam", "probability": 0.97, "margin": 2.1},
    ),
    SEVERAL: (
        ["where is my card?", "top up failed"],
        ["card_arrival", "top_up_failed"],
        {
            "label": "card_arrival",
            "probability": 0.9,
            "probabilities": [("card_arrival", 0.9), ("lost_or_stolen_card", 0.06), ("top_up_failed", 0.04)],
        },
    ),
    ORDERED: (
        ["a good film", "a bore"],
        [4, 1],
        {"label": 4, "probability": 0.6, "probabilities": [(4, 0.6), (3, 0.3), (1, 0.1)]},
    ),
    LABELS: (
        ["wheat and corn exports rose", "nothing new"],
        [["grain", "wheat"], []],
        {
            "label": ["grain", "wheat"],
            "probability": [0.9, 0.7],
            "probabilities": [("grain", 0.9), ("wheat", 0.7), ("corn", 0.4)],
        },
    ),
}


def operations(kind: str) -> dict[str, Any]:
    """What OpenAPI is told of each POST, with examples for that kind of model."""
    return {
        "/predict": _operation(kind, "Predict the label of a message, or of many", Message),
        "/learn": _operation(
            kind,
            "Predict a message, or many, then learn them; the same id with another label is a correction",
            LabelledMessage,
            LearnResponse,
        ),
        "/explain": _operation(
            kind, "Why a text is predicted as it is", QuestionedMessage, ExplainResponse, many=False
        ),
    }


def _operation(
    kind: str, summary: str, taken: Any, response_kind: Any = PredictResponse, many: bool = True
) -> dict[str, Any]:
    """What OpenAPI is told of a POST that takes one message, or a list too, with examples."""
    one = TypeAdapter(taken).json_schema()
    texts, labels, said = EXAMPLES[kind]
    example, second = ({"text": text} for text in texts)
    if taken is LabelledMessage:
        example, second = ({**each, "label": label} for each, label in zip((example, second), labels, strict=True))
    answer = TypeAdapter(response_kind).json_schema()
    if response_kind is LearnResponse:
        said = {**said, "learned": True}
    if response_kind is ExplainResponse:
        if kind != TWO:
            first, other = (label for label, _ in said["probabilities"][:2])
            one_margin = kind == ORDERED
            against = None if kind == LABELS else other
            said = {**said, "explained": None if one_margin else first, "against": None if one_margin else against}
        words = [(word, value) for word, value in zip(texts[0].split(), (1.5, 0.9), strict=False)]
        said = {**said, "margin": 2.1, "contributions": [*words, ("(intercept)", -0.3)], "n_others": 0, "others": 0.0}

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
            "413": {"description": "The body, a text, a label or the number of messages is beyond its limit."},
            "415": {"description": "The content type is not application/json."},
            "422": {
                "description": "The body is not as it must be, the model does not take a label, or of a model of many "
                "labels a message there are too many messages in a request."
            },
            "503": {
                "description": "Nothing was learned or it cannot be kept, as where a disk is full; or it is ending."
            },
        },
    }
    return {"post": post}


def operations_of_teaching(kind: str) -> dict[str, Any]:
    """What OpenAPI is told of each POST by which people teach."""
    label = EXAMPLES[kind][1][0]
    return {
        "/teach": _operation_of_teaching(
            "Give a message its label, which is learned after some seconds", Taught, {"number": 17, "label": label}
        ),
        "/take-back": _operation_of_teaching("Take a label back that is not learned yet", TakenBack, {"number": 17}),
    }


def _operation_of_teaching(summary: str, taken: Any, example: dict[str, Any]) -> dict[str, Any]:
    schema = TypeAdapter(taken).json_schema()
    post = {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}},
        "responses": {
            "200": {"description": "It is done.", "content": {"application/json": {"example": {"n_given": 3}}}},
            "401": {"description": "The bearer token is missing or wrong."},
            "404": {"description": "The message does not wait, or its label is learned already."},
            "415": {"description": "The content type is not application/json."},
            "422": {"description": "The body is not as it must be, or the model does not take the label."},
            "503": {"description": "The label cannot be kept, as where a disk is full."},
        },
    }
    return {"post": post}


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
CLASSES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/json": {
                "example": {
                    "n": 77,
                    "classes": [
                        {
                            "label": "card_arrival",
                            "n": 227,
                            "share": 0.017,
                            "precision": 0.8,
                            "recall": 0.9,
                            "f1": 0.847,
                        }
                    ],
                }
            }
        }
    }
}

WORDS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/json": {"example": {"positive": [("arrive", 1.5)], "negative": [("top up", -0.9)]}}}
    },
    404: {"description": "The model does not know the label."},
}
