"""Operations of the service, and their description in OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from stream_pegasos import __version__
from stream_pegasos.learners.capabilities import CLASSES, LABELS, ORDERED
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.service.bodies import receive_body
from stream_pegasos.service.messages import decoded, message_of_mail, parameters

JSON, MAIL = "application/json", "message/rfc822"
BYTES = {"type": "string", "format": "binary"}
Examples = dict[str, tuple[Any, Any]]  # a request and its answer, by name


@dataclass(frozen=True)
class Operation:
    """One operation of the service; its route and its description are made from it."""

    method: str  # GET or POST
    path: str
    handler: Callable[..., Awaitable[Response]]  # of the decoded input, if there is any
    summary: str
    query: type[msgspec.Struct] | None = None  # the type of its parameters
    takes: Any = None  # the type of its body
    takes_mail: bool = False  # whether the body may also be a mail
    answers: Any = None  # the type of its answer
    examples: Callable[[str], Examples] = lambda kind: {}  # working examples, for a kind of model
    refusals: dict[str, str] = field(default_factory=dict)  # meanings of statuses

    def route(self, learner: LiveLearner) -> Route:
        return Route(self.path, Endpoint(self, learner), methods=[self.method])


class Endpoint:
    """An operation as an ASGI application, which the router calls directly."""

    def __init__(self, operation: Operation, learner: LiveLearner) -> None:
        self._operation, self._learner = operation, learner
        self._decoder = None if operation.takes is None else msgspec.json.Decoder(operation.takes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope, receive)
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        operation = self._operation
        if self._decoder is not None:
            field = self._learner.mail_field if operation.takes_mail else None
            types = (JSON,) if field is None else (JSON, MAIL)
            limits = self._learner.limits
            type, body = await receive_body(scope, receive, types, limits.body, limits.seconds)
            if field is not None and type == MAIL:
                query = QueryParams(scope["query_string"])
                return await operation.handler(message_of_mail(body, query, field, operation.takes))
            return await operation.handler(decoded(body, self._decoder))
        if operation.query is not None:
            return await operation.handler(parameters(QueryParams(scope["query_string"]), operation.query))
        return await operation.handler()


def openapi(operations: Sequence[Operation], learner: LiveLearner) -> dict[str, Any]:
    """All operations, with examples for the kind of model that is served."""
    types = [
        kind
        for operation in operations
        for kind in (operation.query, operation.takes, operation.answers)
        if kind is not None
    ]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {}
    for operation in operations:
        examples = operation.examples(learner.monitor.kind)
        if learner.model.coverage is not None:
            examples = {name: (sent, with_sets(answer)) for name, (sent, answer) in examples.items()}
        described: dict[str, Any] = {"summary": operation.summary}
        if operation.query is not None:
            properties_of_query = components.pop(operation.query.__name__)["properties"]
            described["parameters"] = [
                {"name": name, "in": "query", "description": schema.pop("description"), "schema": schema}
                for name, schema in properties_of_query.items()
            ]
        if operation.takes is not None:
            sent = _content(schema_of[operation.takes], {name: sent for name, (sent, _) in examples.items()})
            if operation.takes_mail and learner.mail_field is not None:
                sent["content"][MAIL] = {"schema": BYTES}
            described["requestBody"] = {"required": True, **sent}
        answer = _content(schema_of.get(operation.answers), {name: answer for name, (_, answer) in examples.items()})
        refusals = {status: {"description": meaning} for status, meaning in operation.refusals.items()}
        described["responses"] = {"200": {"description": "The answer.", **answer}, **refusals}
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    whole: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "stream_pegasos",
            "description": "A text classifier that learns from every message as it comes.",
            "version": __version__,
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    if learner.token is not None:
        whole["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        whole["security"] = [{"token": []}]
    return whole


def _content(schema: object, examples: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {} if schema is None else {"schema": schema}
    if examples:
        content["examples"] = {name: {"value": value} for name, value in examples.items()}
    return {"content": {JSON: content}} if content else {}


# Messages, their labels, and the answer to them, by the kind of model.
EXAMPLES: dict[str, tuple[list[str], list[Any], dict[str, Any]]] = {
    CLASSES: (
        ["win a free prize", "lunch at noon?"],
        ["spam", "ham"],
        {"label": "spam", "probability": 0.97, "margin": 2.1},
    ),
    ORDERED: (
        ["a good film", "a bore"],
        [4, 1],
        {"label": 4, "probability": 0.6, "margin": 0.7, "probabilities": [(4, 0.6), (3, 0.3), (1, 0.1)]},
    ),
    LABELS: (
        ["wheat and corn exports rose", "nothing new"],
        [["grain", "wheat"], []],
        {
            "label": ["grain", "wheat"],
            "probability": [0.9, 0.7],
            "margin": [2.2, 0.8],
            "probabilities": [("grain", 0.9), ("wheat", 0.7), ("corn", 0.4)],
        },
    ),
}


def one_and_many(sent: list[Any], answer: dict[str, Any]) -> Examples:
    return {"one message": (sent[0], answer), "many messages": (sent, [answer] * len(sent))}


def with_sets(answer: Any) -> Any:
    """An example of an answer by a model with a coverage."""
    if isinstance(answer, list):
        return [with_sets(each) for each in answer]
    if "probability" not in answer:
        return answer
    label = answer["label"]
    return {**answer, "set": label if isinstance(label, list) else [label]}


def predicting(kind: str) -> Examples:
    texts, _, answer = EXAMPLES[kind]
    return one_and_many([{"text": text} for text in texts], answer)


def learning(kind: str) -> Examples:
    texts, labels, answer = EXAMPLES[kind]
    sent = [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]
    return one_and_many(sent, {**answer, "learned": True})


def explaining(kind: str) -> Examples:
    texts, _, answer = EXAMPLES[kind]
    answer = {"probabilities": [("spam", 0.97), ("ham", 0.03)], **answer}
    (first, _), (other, _) = answer["probabilities"][:2]
    labels = {"explained": None if kind == ORDERED else first, "against": other if kind == CLASSES else None}
    words = [*zip(texts[0].split(), (1.5, 0.9), strict=False), ("(intercept)", -0.3)]
    answer = {**answer, **labels, "margin": 2.1, "contributions": words, "n_others": 0, "others": 0.0}
    pieces = [piece for word in words[:-1] for piece in (word, (" ", 0.0))][:-1]
    answer |= {"words": [[word] for word in words], "pieces": [("", pieces)]}
    return {"one message": ({"text": texts[0]}, answer)}


def describing(kind: str) -> Examples:
    sent = {"lost_card": None, "refund": ["give me my money back", "Refund not showing up"]}
    return {"two labels": (sent, {"n_learned": 6, "left_out": []})}


def correcting(kind: str) -> Examples:
    _, labels, answer = EXAMPLES[kind]
    return {"one message": ({"number": 17, "label": labels[0]}, {**answer, "learned": True})}


def teaching(kind: str) -> Examples:
    labelled, take_back = {"number": 17, "label": EXAMPLES[kind][1][0]}, {"number": 17, "take_back": True}
    texts, labels, _ = EXAMPLES[kind]
    sent = {"message": {"text": texts[1]}, "label": labels[1]}
    return {
        "one message": (labelled, {"n_given": 3}),
        "taken back": (take_back, {"n_given": 2}),
        "a message of one's own": (sent, {"n_given": 4, "number": 18, "seconds": 10.0}),
    }
