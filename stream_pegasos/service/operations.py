"""The table of all that can be asked for over HTTP, and what answers it."""

from __future__ import annotations

import prometheus_client
from msgspec import UNSET
from starlette.exceptions import HTTPException
from starlette.responses import Response

from stream_pegasos.evaluation.prequential import Labelled
from stream_pegasos.service.messages import (
    LONGEST_EXPLAINED,
    ClassesAsked,
    Explanation,
    LabelledMessage,
    Learned,
    Message,
    MessagesAsked,
    Prediction,
    QuestionedMessage,
    TakenBack,
    Taught,
    WordsAsked,
    answer_with,
    as_json,
    batch_of,
    label_as_read,
    label_of_query,
    labels_as_read,
)
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.service.openapi import Operation, explaining, learning, predicting, teaching
from stream_pegasos.service.work import EndingError, Service

LONGEST_FAULT = 500  # characters

OF_BODIES = {
    "401": "The bearer token is missing or wrong.",
    "413": "The body, a text, a label or the number of messages is beyond its limit.",
    "415": "The content type is not application/json.",
    "422": "The body is not as it must be, the model does not take a label, or there are too many messages for a model "
    "of many labels a message.",
    "503": "Nothing was learned or it cannot be kept, as where a disk is full; or it is ending.",
}
OF_TEACHING = {**OF_BODIES, "404": "The message does not wait, or its label is learned already."}
OF_PARAMETERS = {"422": "A parameter is not as it must be."}


def operations_of(service: Service, metrics: Metrics) -> list[Operation]:
    """All that can be asked of a service, that which is asked for most often first."""

    async def predict(sent: Message | list[Message]) -> Response:
        batch = batch_of(sent, service)
        try:
            service.check_size(len(batch.texts))
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        return answer_with(await service.predict(batch.texts, batch.ids), batch)

    async def learn(sent: LabelledMessage | list[LabelledMessage]) -> Response:
        batch = batch_of(sent, service)
        examples: list[Labelled] = [
            (text, labels_as_read(message.label, service.kind, i, batch.is_list), message.weight)
            for i, (text, message) in enumerate(zip(batch.texts, batch.messages, strict=True))
        ]
        try:
            answers = await service.learn(examples, batch.ids)
        except (ValueError, TypeError) as error:
            raise HTTPException(422, str(error)[:LONGEST_FAULT]) from None
        except OSError as error:
            raise HTTPException(503, f"what is learned cannot be kept: {error.strerror or error}") from None
        except EndingError as error:
            raise HTTPException(503, str(error)) from None
        return answer_with(answers, batch)

    async def explain(message: QuestionedMessage) -> Response:
        batch_of(message, service)
        if len(message.text) > LONGEST_EXPLAINED:
            raise HTTPException(413, f"only texts of up to {LONGEST_EXPLAINED:,} characters are explained")
        label = None if message.label is UNSET else label_as_read(message.label, known=service.model.classes)
        try:
            return as_json(service.explain(message.text, label))
        except (TypeError, LookupError) as error:
            raise HTTPException(422, str(error.args[0])[:LONGEST_FAULT]) from None

    async def asked(about: MessagesAsked) -> Response:
        return as_json(await service.asked(about.limit, about.first, about.also))

    async def teach(sent: Taught) -> Response:
        label = sent.label
        if label is not None:
            label = labels_as_read(label, service.kind, 0, many=False, known=service.model.classes)
        try:
            await service.teach(sent.number, label)
        except LookupError as error:
            raise HTTPException(404, str(error.args[0])) from None
        except (ValueError, TypeError) as error:
            raise HTTPException(422, str(error)[:LONGEST_FAULT]) from None
        except OSError as error:
            raise HTTPException(503, f"the label cannot be kept: {error.strerror or error}") from None
        return as_json({"n_given": service.teaching.n_given})

    async def take_back(sent: TakenBack) -> Response:
        try:
            await service.take_back(sent.number)
        except LookupError as error:
            raise HTTPException(404, str(error.args[0])) from None
        except OSError as error:
            raise HTTPException(503, f"the label cannot be taken back: {error.strerror or error}") from None
        return as_json({"n_given": service.teaching.n_given})

    async def learned() -> Response:
        return as_json({"ids": service.learned_ids()})

    async def model() -> Response:
        return as_json(service.describe())

    async def monitor() -> Response:
        return as_json(service.view())

    async def classes(about: ClassesAsked) -> Response:
        return as_json(service.classes(about.search, about.limit))

    async def words(about: WordsAsked) -> Response:
        try:
            return as_json(service.words(label_of_query(about.label)))
        except LookupError as error:
            raise HTTPException(404, str(error.args[0])) from None

    async def healthz() -> Response:
        return as_json({"status": service.health()})

    async def show_metrics() -> Response:
        return Response(metrics.text(), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    return [
        Operation(
            "POST",
            "/predict",
            predict,
            "Predict the label of a message, or of many",
            takes=Message | list[Message],
            answers=Prediction | list[Prediction],
            examples=predicting,
            refusals=OF_BODIES,
        ),
        Operation(
            "POST",
            "/learn",
            learn,
            "Predict a message, or many, then learn them; the same id with another label is a correction",
            takes=LabelledMessage | list[LabelledMessage],
            answers=Learned | list[Learned],
            examples=learning,
            refusals=OF_BODIES,
        ),
        Operation(
            "POST",
            "/explain",
            explain,
            "Why a text is predicted as it is",
            takes=QuestionedMessage,
            answers=Explanation,
            examples=explaining,
            refusals=OF_BODIES,
        ),
        Operation(
            "GET",
            "/asked",
            asked,
            "The messages that the model would most like to know the labels of",
            query=MessagesAsked,
            refusals=OF_PARAMETERS,
        ),
        Operation(
            "POST",
            "/teach",
            teach,
            "Give a message its label, which is learned after some seconds",
            takes=Taught,
            answers=dict[str, int],
            examples=teaching,
            refusals=OF_TEACHING,
        ),
        Operation(
            "POST",
            "/take-back",
            take_back,
            "Take a label back that is not learned yet",
            takes=TakenBack,
            answers=dict[str, int],
            examples=lambda kind: {"one message": ({"number": 17}, {"n_given": 3})},
            refusals=OF_TEACHING,
        ),
        Operation(
            "GET",
            "/learned",
            learned,
            "The ids of the newest messages learned, the oldest first",
            answers=dict[str, list[str | int]],
            examples=lambda kind: {"ids": (None, {"ids": ["mail:1", "mail:2", 17]})},
        ),
        Operation("GET", "/model", model, "What the model is"),
        Operation("GET", "/monitor", monitor, "All that the page shows"),
        Operation(
            "GET",
            "/classes",
            classes,
            "How well each class is predicted, the commonest first",
            query=ClassesAsked,
            examples=lambda kind: {"one of 77": (None, {"n": 77, "classes": [A_CLASS]})},
            refusals=OF_PARAMETERS,
        ),
        Operation(
            "GET",
            "/words",
            words,
            "The words that weigh most for and against a label",
            query=WordsAsked,
            examples=lambda kind: {"a label": (None, {"positive": [("arrive", 1.5)], "negative": [("top up", -0.9)]})},
            refusals={"404": "The model does not know the label.", **OF_PARAMETERS},
        ),
        Operation("GET", "/healthz", healthz, "Whether it works", answers=dict[str, str]),
        Operation("GET", "/metrics", show_metrics, "Metrics for Prometheus"),
    ]


A_CLASS = {"label": "card_arrival", "n": 227, "share": 0.017, "precision": 0.8, "recall": 0.9, "f1": 0.847}
