"""The application: the operations, the page, and the middleware around them."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.runtime.refusals import SECONDS, Refusals
from stream_pegasos.service.access_log import AccessLog
from stream_pegasos.service.connections import REFUSALS
from stream_pegasos.service.docs import docs
from stream_pegasos.service.labelling import learning_as_given
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.service.middleware import RequestMiddleware
from stream_pegasos.service.openapi import openapi
from stream_pegasos.service.operations import make_operations
from stream_pegasos.service.responses import as_json

log = logging.getLogger(__name__)

PAGE = Path(__file__).parent / "page"
PAGE_FILES = {"/": "index.html", **{f"/{file.name}": file.name for file in sorted(PAGE.glob("*.[cj]s*"))}}
OPEN_PATHS = {*PAGE_FILES, "/docs", "/healthz"}  # need no token: they reveal no message
MEDIA_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript"}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")  # in the form of a Host header


def create_app(
    learner: LiveLearner,
    hosts: tuple[str, ...] = ("*",),
    beside: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext,
    access_log: AccessLog | None = None,
) -> Starlette:
    """The application that serves a model. Requests for other hosts are refused, such as those of a web page of another
    site that points here. `beside` is a context that is open in the event loop while the application runs. If there is
    an access log, it gets a line for each request.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        learner.start()
        gc.freeze()  # the garbage collector need not search permanent objects while requests wait
        async with learning_as_given(learner), _telling(learner.refusals), beside():
            yield {REFUSALS: learner.refusals}
            await learner.finish()
        if access_log is not None:
            access_log.close()
        gc.unfreeze()
        try:
            await asyncio.to_thread(learner.close)
        except OSError as error:
            log.error("%s", error)

    metrics = Metrics(learner)
    operations = make_operations(learner, metrics)

    async def describe(request: Request) -> Response:
        return as_json(openapi(operations, learner))

    async def show_docs(request: Request) -> Response:
        return Response(docs(openapi(operations, learner)), headers=PAGE_HEADERS, media_type=MEDIA_TYPES[".html"])

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return as_json({"detail": error.detail}, error.status_code, error.headers)

    app = Starlette(
        routes=[
            *(operation.route(learner) for operation in operations),
            Route("/openapi.json", describe),
            Route("/docs", show_docs),
            *(Route(path, _page(PAGE / name, learner.token is not None)) for path, name in PAGE_FILES.items()),
        ],
        middleware=[
            Middleware(
                RequestMiddleware,
                learner=learner,
                metrics=metrics,
                open_paths=OPEN_PATHS,
                hosts=hosts,
                access_log=access_log,
            )
        ],
        exception_handlers={HTTPException: refuse},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect would go to the address in the request's Host header
    app.state.finish = learner.finish
    return app


@asynccontextmanager
async def _telling(refusals: Refusals) -> AsyncIterator[None]:
    """Log refusals each minute, and at the end."""

    async def tell() -> None:
        while True:
            await asyncio.sleep(SECONDS)
            refusals.tell()

    task = asyncio.create_task(tell())
    try:
        yield
    finally:
        task.cancel()
        refusals.tell()


def _page(path: Path, needs_token: bool) -> Callable[[Request], Awaitable[Response]]:
    content = path.read_bytes()
    if needs_token:  # so that the page asks for nothing before it has a token
        content = content.replace(b"<body>", b"<body data-needs-token>")

    async def page(request: Request) -> Response:
        return Response(content, headers=PAGE_HEADERS, media_type=MEDIA_TYPES[path.suffix])

    return page
