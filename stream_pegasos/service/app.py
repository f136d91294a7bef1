"""The application: which request does what."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import prometheus_client
from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from stream_pegasos import __version__
from stream_pegasos.evaluation.prequential import Labelled
from stream_pegasos.service.lessons import LONGEST_FAULT, add_teaching, learning_as_given
from stream_pegasos.service.messages import (
    CLASSES,
    LEARNED,
    LONGEST_EXPLAINED,
    WORDS,
    LabelledMessage,
    Message,
    QuestionedMessage,
    answer_with,
    as_json,
    label_as_read,
    label_of_query,
    labels_as_read,
    operations,
    operations_of_teaching,
    read_messages,
)
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.service.middleware import RequestMiddleware
from stream_pegasos.service.work import EndingError, Service

PAGE = Path(__file__).parent / "page"
PAGE_FILES = {
    "/": "index.html",
    "/page.css": "page.css",
    "/charts.css": "charts.css",
    "/tables.css": "tables.css",
    "/classes.css": "classes.css",
    "/page.js": "page.js",
    "/charts.js": "charts.js",
    "/classes.js": "classes.js",
    "/teaching.css": "teaching.css",
    "/trial.js": "trial.js",
    "/teaching.js": "teaching.js",
}
OPEN_PATHS = {*PAGE_FILES, "/healthz"}  # where no token is asked for: they tell nothing of any message
MEDIA_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript"}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")  # as they stand in a Host header


def create_app(service: Service, hosts: tuple[str, ...] = ("*",)) -> FastAPI:
    """The application that serves a model.

    Parameters
    ----------
    service
        The model at work.
    hosts
        The host names that requests may use. Other names are refused, such as one that a stranger's web page points
        here.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        gc.freeze()  # what is there by now stays, and need not be looked through while requests wait
        async with learning_as_given(service):
            yield
            await service.finish()
        gc.unfreeze()
        try:
            await asyncio.to_thread(service.close)
        except OSError as error:
            print(f"stream-pegasos: {error}", file=sys.stderr, flush=True)

    app = FastAPI(
        title="stream_pegasos",
        description="A text classifier that learns from every message as it comes.",
        version=__version__,
        docs_url=None,  # they load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,  # to an address that the request's own Host header says
        lifespan=lifespan,
    )
    app.state.finish = service.finish
    metrics = Metrics(service)
    app.add_middleware(RequestMiddleware, service=service, metrics=metrics, open_paths=OPEN_PATHS)
    if "*" not in hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)

    # Plain routes, since what FastAPI does before each request would take a third of the time; OpenAPI has them below.

    async def predict_messages(request: Request) -> Response:
        messages, many = await read_messages(request, service, Message)
        ids = [message.get("id") for message in messages]
        try:
            service.check_size(len(messages))
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        answers = await service.predict([message["text"] for message in messages], ids)
        return answer_with(messages, answers, many)

    async def learn_messages(request: Request) -> Response:
        messages, many = await read_messages(request, service, LabelledMessage)
        examples: list[Labelled] = [
            (message["text"], labels_as_read(message["label"], service.kind, i, many), message.get("weight", 1.0))
            for i, message in enumerate(messages)
        ]
        try:
            answers = await service.learn(examples, [message.get("id") for message in messages])
        except (ValueError, TypeError) as error:
            raise HTTPException(422, str(error)[:LONGEST_FAULT]) from None
        except OSError as error:
            raise HTTPException(503, f"what is learned cannot be kept: {error.strerror or error}") from None
        except EndingError as error:
            raise HTTPException(503, str(error)) from None
        return answer_with(messages, answers, many)

    async def explain_message(request: Request) -> Response:
        messages, many = await read_messages(request, service, QuestionedMessage)
        if many:
            raise HTTPException(422, "one message at a time is explained")
        if len(messages[0]["text"]) > LONGEST_EXPLAINED:
            raise HTTPException(413, f"only texts of up to {LONGEST_EXPLAINED:,} characters are explained")
        known = service.model.classes
        label = label_as_read(messages[0]["label"], known=known) if "label" in messages[0] else None
        try:
            return as_json(service.explain(messages[0]["text"], label))
        except (TypeError, LookupError) as error:
            raise HTTPException(422, str(error.args[0])[:LONGEST_FAULT]) from None

    app.add_route("/predict", predict_messages, ["POST"], include_in_schema=False)
    app.add_route("/learn", learn_messages, ["POST"], include_in_schema=False)
    app.add_route("/explain", explain_message, ["POST"], include_in_schema=False)

    add_teaching(app, service)

    @app.get("/learned", summary="The ids of the newest messages learned, the oldest first", responses=LEARNED)
    async def learned() -> Response:
        return as_json({"ids": service.learned_ids()})

    @app.get("/model", summary="What the model is")
    async def model() -> Response:
        return as_json(service.describe())

    @app.get("/monitor", summary="All that the page shows")
    async def monitor() -> Response:
        return as_json(service.view())

    @app.get("/classes", summary="How well each class is predicted, the commonest first", responses=CLASSES)
    async def classes(
        search: Annotated[str, Query(max_length=1_000, description="What their labels have in them.")] = "",
        limit: Annotated[int, Query(ge=1, le=10_000, description="How many to tell of.")] = 20,
    ) -> Response:
        return as_json(service.classes(search, limit))

    @app.get("/words", summary="The words that weigh most for and against a label", responses=WORDS)
    async def words(
        label: Annotated[
            str,
            Query(max_length=10_000, description='As text or, where that would not tell 1 from "1", as JSON.'),
        ] = "",
    ) -> Response:
        try:
            return as_json(service.words(label_of_query(label)))
        except LookupError as error:
            raise HTTPException(404, str(error.args[0])) from None

    @app.get("/healthz", summary="Whether it works")
    async def healthz() -> dict[str, str]:
        return {"status": service.health()}

    @app.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
    async def show_metrics() -> Response:
        return Response(metrics.text(), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    for path, name in PAGE_FILES.items():
        app.add_api_route(path, _page(PAGE / name), include_in_schema=False)

    @app.exception_handler(StarletteHTTPException)
    async def refuse(request: Request, error: StarletteHTTPException) -> Response:
        return as_json({"detail": error.detail}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def refuse_parameters(request: Request, error: RequestValidationError) -> Response:
        return as_json({"detail": "bad parameters"}, 422)

    kind = ""

    def openapi() -> dict[str, Any]:
        nonlocal kind  # of the model, which the examples are of; a third class may have come
        if app.openapi_schema is None or kind != service.kind:
            kind = service.kind
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            schema["paths"] = {**operations(kind), **operations_of_teaching(kind), **schema["paths"]}
            if service.token is not None:
                schema.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                schema["security"] = [{"token": []}]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def _page(path: Path) -> Callable[[], Awaitable[Response]]:
    content = path.read_bytes()

    async def page() -> Response:
        return Response(content, headers=PAGE_HEADERS, media_type=MEDIA_TYPES[path.suffix])

    return page
