"""The operations of the service over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import prometheus_client
from msgspec import UNSET
from starlette.exceptions import HTTPException
from starlette.responses import Response

from stream_pegasos import __version__, engine
from stream_pegasos.blocks.predicted import Labelled
from stream_pegasos.features.encoders import EncoderAwayError
from stream_pegasos.runtime.answers import shown
from stream_pegasos.runtime.live_learner import EndingError, LiveLearner
from stream_pegasos.runtime.wrong_answers import as_csv
from stream_pegasos.service.labelling import Labelling, LookAlikeError
from stream_pegasos.service.messages import (
    Corrected,
    Described,
    Descriptions,
    Explanation,
    LabelledMessage,
    Learned,
    LearnedAsked,
    LearnedIds,
    Message,
    MessagesAsked,
    MonitorAsked,
    Prediction,
    QuestionedMessage,
    TeachingAnswer,
    WrongAsked,
    define_content,
    label_as_read,
    label_of_query,
    labels_as_read,
    read_batch,
    read_descriptions_sent,
    teaching_with,
)
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.service.openapi import Operation, correcting, describing, explaining, learning, predicting, teaching
from stream_pegasos.service.responses import answer_with, as_json

LONGEST_FAULT = 500  # characters

OF_BODIES = {
    "401": "The bearer token is missing or wrong.",
    "413": "The body, a text, a label or the number of messages, of texts or of labels is beyond its limit.",
    "415": "The content type is not application/json.",
    "422": "The body is not valid, the model does not take a label, or there are too many messages for a model "
    "of many labels a message.",
    "503": "Nothing was learned or it cannot be kept, as where a disk is full; or it is ending.",
}
OF_LABELLING = {**OF_BODIES, "404": "The message does not wait, or its label is learned already."}
OF_PARAMETERS = {"422": "A parameter is not valid."}
OF_WORDS = {"404": "The model does not know the label.", **OF_PARAMETERS}

Handler = Callable[..., Awaitable[Response]]


def one_or_many(kind: Any) -> Any:
    return kind | list[kind]


@contextmanager
def refusing(unknown: int | None = None, reason: str = "") -> Iterator[None]:
    """Turn exceptions of the service into those of HTTP. A LookupError gets the status `unknown`, or is an internal
    error; if the disk fails, the message begins with `reason`.
    """
    try:
        yield
    except LookupError as error:
        if unknown is None:
            raise
        raise HTTPException(unknown, str(error.args[0])[:LONGEST_FAULT]) from None
    except (ValueError, TypeError) as error:
        raise HTTPException(422, str(error)[:LONGEST_FAULT]) from None
    except EncoderAwayError as error:
        raise HTTPException(503, str(error)[:LONGEST_FAULT]) from None
    except OSError as error:
        raise HTTPException(503, f"{reason}: {error.strerror or error}") from None
    except EndingError as error:
        raise HTTPException(503, str(error)) from None


def make_operations(learner: LiveLearner, metrics: Metrics) -> list[Operation]:
    """All operations of a service, the most frequent one first."""
    operations, labelling, limits = list[Operation](), Labelling(learner), learner.limits

    message, labelled = (define_content(kind, learner.fields) for kind in (Message, LabelledMessage))

    def operation(name: str, summary: str, **described: Any) -> Callable[[Handler], Handler]:
        method, path = name.split()

        def add(handler: Handler) -> Handler:
            operations.append(Operation(method, path, handler, summary, **described))
            return handler

        return add

    @operation(
        "POST /predict",
        "Predict the label of a message, or of many",
        takes=one_or_many(message),
        takes_mail=True,
        answers=Prediction | list[Prediction],
        examples=predicting,
        refusals=OF_BODIES,
    )
    async def predict(sent: object) -> Response:
        batch = read_batch(sent, learner, limits.request_limits)
        try:  # not by `refusing`, which takes a hundredth of the time of this most frequent operation
            learner.labels.check_size(len(batch.X))
            answers = await learner.predict(batch.X, batch.ids)
        except ValueError as error:
            raise HTTPException(422, str(error)[:LONGEST_FAULT]) from None
        except EncoderAwayError as error:
            raise HTTPException(503, str(error)[:LONGEST_FAULT]) from None
        return answer_with(answers, batch)

    @operation(
        "POST /learn",
        "Predict a message, or many, then learn them; the same id with another label is a correction",
        takes=one_or_many(labelled),
        takes_mail=True,
        answers=Learned | list[Learned],
        examples=learning,
        refusals=OF_BODIES,
    )
    async def learn(sent: object) -> Response:
        allowed = limits.request_limits
        batch = read_batch(sent, learner, allowed)
        policy = learner.label_policy
        examples: list[Labelled] = []
        for i, (x, message) in enumerate(zip(batch.X, batch.messages, strict=True)):
            label = labels_as_read(message.label, f"{i}.label" if batch.is_list else "label", policy, allowed)
            examples.append((x, label, message.weight))
        with refusing(reason="what is learned cannot be kept"):
            answers = await learner.learn(examples, batch.ids)
        return answer_with(answers, batch)

    @operation(
        "POST /explain",
        "Explain the prediction of a message",
        takes=define_content(QuestionedMessage, learner.fields),
        takes_mail=True,
        answers=Explanation,
        examples=explaining,
        refusals=OF_BODIES,
    )
    async def explain(message: QuestionedMessage) -> Response:
        allowed = limits.explanation_limits
        (x,) = read_batch(message, learner, allowed).X
        policy = learner.label_policy
        label = None if message.label is UNSET else label_as_read(message.label, "label", policy, allowed)
        with refusing(unknown=422):
            return as_json(await learner.explain(x, label))

    @operation(
        "POST /describe",
        "Say what labels mean: a text for each, or several, or null for its name; each text is learned twice",
        takes=Descriptions,
        answers=Described,
        examples=describing,
        refusals=OF_BODIES,
    )
    async def describe(sent: list[tuple[str, Any]]) -> Response:
        descriptions = read_descriptions_sent(sent, learner.label_policy, limits.request_limits)
        with refusing(reason="what is learned cannot be kept"):
            return as_json(await learner.describe_labels(descriptions))

    @operation(
        "GET /asked",
        "The messages whose labels would help the model most",
        query=MessagesAsked,
        refusals=OF_PARAMETERS,
    )
    async def asked(about: MessagesAsked) -> Response:
        return as_json(await labelling.asked(about.limit, about.first, about.also))

    @operation(
        "POST /teach",
        "Give a message its label, which is learned after some seconds, or take it back until then",
        takes=teaching_with(message),
        answers=TeachingAnswer,
        examples=teaching,
        refusals=OF_LABELLING,
    )
    async def teach(sent: Any) -> Response:
        label, is_sent = sent.label, sent.message is not UNSET
        if (sent.number is UNSET) is not is_sent:
            raise HTTPException(422, "number: name a message that waits, or else send the message")
        if sent.take_back is not (label is UNSET):
            raise HTTPException(422, "label: give the message one, or null to skip it, or take_back")
        if is_sent and (label is None or sent.take_back):
            raise HTTPException(422, "label: a message that is sent needs one")
        if label is not None and label is not UNSET:
            label = labels_as_read(label, "label", learner.label_policy, limits.request_limits)
        answer: dict[str, Any] = {}
        with refusing(unknown=404, reason="the label cannot be kept"):
            try:
                if sent.take_back:
                    await labelling.take_back(sent.number)
                elif is_sent:
                    batch = read_batch(sent.message, learner, limits.request_limits)
                    number = await labelling.teach_message(batch.X[0], batch.ids[0], label, sent.new_label)
                    answer = {"number": number, "seconds": learner.active_learning.seconds}
                else:
                    await labelling.teach(sent.number, label, sent.new_label)
            except LookAlikeError as error:
                if sent.new_label is UNSET:
                    raise
                answer = {"label": shown(error.label), "alike": shown(error.alike)}
        return as_json({"n_given": learner.active_learning.n_given, **answer})

    @operation(
        "GET /learned",
        "The ids of the newest messages learned, the oldest first, and how many are remembered",
        query=LearnedAsked,
        answers=LearnedIds,
        examples=lambda kind: {"ids": (None, {"ids": ["mail:1", "mail:2", 17], "n": 3})},
        refusals=OF_PARAMETERS,
    )
    async def learned(about: LearnedAsked) -> Response:
        ids = learner.learned_ids()
        end = max(0, len(ids) - about.skip)
        return as_json({"ids": ids[max(0, end - about.limit) : end], "n": len(ids)})

    @operation(
        "GET /monitor",
        "The quality of the model: all that the page shows, and the parts asked for",
        query=MonitorAsked,
        refusals=OF_WORDS,
    )
    async def monitor(about: MonitorAsked) -> Response:
        view = learner.view()
        if about.model:
            view["model"] |= {**learner.describe(), "version": __version__}
        if about.search is not None:
            view["found"] = learner.classes(about.search, about.limit)
        if about.label is not None:
            with refusing(unknown=404):
                view["words"] = learner.words(label_of_query(about.label))
        return as_json(view)

    @operation(
        "GET /wrong",
        "The newest messages whose answer was wrong; as CSV for a spreadsheet",
        query=WrongAsked,
        refusals=OF_PARAMETERS,
    )
    async def wrong(about: WrongAsked) -> Response:
        messages = learner.wrong(about.search, about.first)
        newest = messages[: about.limit]
        if about.format == "json":
            return as_json({"n": len(messages), "messages": newest})
        headers = {"content-disposition": 'attachment; filename="wrong.csv"'}
        # Excel needs the mark at the beginning to recognise UTF-8.
        return Response(as_csv(newest).encode("utf-8-sig", "replace"), 200, headers, "text/csv")

    @operation(
        "POST /correct",
        "Learn one of the wrong answers with the label that is right",
        takes=Corrected,
        answers=Learned,
        examples=correcting,
        refusals={**OF_BODIES, "404": "The message is not kept among the wrong answers, or was too long to be."},
    )
    async def correct(sent: Corrected) -> Response:
        label = labels_as_read(sent.label, "label", learner.label_policy, limits.request_limits)
        with refusing(unknown=404, reason="what is learned cannot be kept"):
            return as_json((await learner.correct(sent.number, label)).as_json())

    @operation(
        "GET /healthz",
        "Whether it works",
        answers=dict[str, str],
        refusals={"503": "The journal fails, so nothing can be learned."},
    )
    async def healthz() -> Response:
        status = learner.health()
        return as_json({"status": status}, 200 if learner.can_learn else 503)

    @operation("GET /version", "The version that runs, and its engine", answers=dict[str, str])
    async def version() -> Response:
        return as_json({"version": __version__, "engine": engine.NAME})

    @operation("GET /metrics", "Metrics for Prometheus")
    async def show_metrics() -> Response:
        return Response(metrics.text(), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    return operations
