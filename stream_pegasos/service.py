"""The service: a model that predicts and learns over HTTP, and a page that shows it at work."""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import monotonic, perf_counter
from typing import Annotated, Any, Literal, NotRequired

import orjson

try:
    import prometheus_client
    import uvicorn
    from fastapi import FastAPI, HTTPException, Request, Response
    from fastapi.exceptions import RequestValidationError
    from fastapi.openapi.utils import get_openapi
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from pydantic import FailFast, Field, TypeAdapter, ValidationError
    from starlette.exceptions import HTTPException as StarletteHTTPException
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import ClientDisconnect
    from typing_extensions import TypedDict  # which pydantic asks for below Python 3.12
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise ImportError(f"{error.name} is missing: pip install 'stream-pegasos[service]'") from None

from stream_pegasos.checkpoints import Checkpoints
from stream_pegasos.monitor import Monitor
from stream_pegasos.persistence import Snapshot, pack_parameters
from stream_pegasos.prequential import Example, Prediction, predict, predict_learn
from stream_pegasos.streams import label_of

__all__ = ["Limits", "Service", "create_app"]

PAGE = Path(__file__).parent / "page"
PAGE_FILES = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js"}
MEDIA_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript"}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
OPEN_PATHS = {*PAGE_FILES, "/healthz"}  # where no token is asked for: they tell nothing of any message
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")  # as they stand in a Host header
# Work on many messages gives way to other requests after about so many characters.
SLICE = 50_000
MOST_CONTRIBUTIONS = 50
LONGEST_EXPLAINED = 20_000  # characters
LONGEST_FAULT = 500  # characters
LARGEST_HEAD = 64 << 10  # bytes

Label = bool | int | str


class Message(TypedDict):
    text: str
    id: NotRequired[str | int]


class LabelledMessage(Message):
    label: Label
    weight: NotRequired[Annotated[float, Field(ge=0.0, le=1e30, allow_inf_nan=False)]]


class Answer(TypedDict):
    """What the model says of a message. `label` is null, and so is `probability`, as long as it cannot say."""

    label: Label | None
    probability: float | None
    margin: float
    id: NotRequired[str | int]


@dataclass(frozen=True)
class Limits:
    """What a stranger may ask for.

    Parameters
    ----------
    body
        The size of a request's body, in bytes. All bodies on the way together may have four times that much.
    text
        The length of a text, in characters.
    batch
        The number of messages in a request.
    concurrency
        The number of connections and requests at a time; beyond it the answer is 503.
    seconds
        How long a request may take to come, its head and then its body.
    """

    body: int = 16 << 20
    text: int = 1_000_000
    batch: int = 10_000
    concurrency: int = 256
    seconds: float = 30.0


class Service:
    """A text model at work, with all that belongs to it: what is seen of it, its checkpoints, its limits.

    Parameters
    ----------
    model
        A `PegasosTextClassifier` of two classes.
    checkpoints
        Where it is kept; `None` for nowhere.
    progress
        What was kept beside the model the last time.
    limits
        What a stranger may ask for.
    token
        The bearer token that requests have to carry; `None` for none.
    """

    def __init__(
        self,
        model: Any,
        checkpoints: Checkpoints | None = None,
        progress: Any = None,
        limits: Limits | None = None,
        token: str | None = None,
    ) -> None:
        self.model = model
        self.checkpoints = checkpoints
        self.limits = limits or Limits()
        self.token = token
        self.monitor = Monitor(model)
        if progress and "monitor" in progress:
            self.monitor.set_state(progress["monitor"])
        self.n_bytes_on_the_way = 0  # of the bodies of all requests that are not answered yet
        self._lock = threading.Lock()  # between the event loop and the thread of the checkpoints
        self._learning = asyncio.Lock()

    def snapshot(self) -> Snapshot:
        with self._lock:
            return self.model.snapshot({"monitor": self.monitor.get_state()})  # type: ignore[no-any-return]

    async def predict(self, texts: list[str]) -> list[Prediction]:
        predictions: list[Prediction] = []
        for part in _slices(texts, len):
            with self._lock:
                answers = predict(self.model, part)
                self.monitor.predicted(part, answers)
            predictions += answers
            if len(predictions) < len(texts):
                await asyncio.sleep(0)
        return predictions

    async def learn(self, examples: list[Example]) -> list[Prediction]:
        """Predict each message, then learn it.

        Raises
        ------
        ValueError
            If a label is a third one; nothing is learned then.
        """
        predictions: list[Prediction] = []
        async with self._learning:  # or labels could become known between the check and the learning
            self.model.classifier._labels.with_labels([example[1] for example in examples])
            for part in _slices(examples, lambda example: len(example[0])):
                with self._lock:
                    done = 0
                    for answers, outcomes in predict_learn(self.model, part):
                        self.monitor.learned(part[done : done + len(answers)], answers, outcomes)
                        predictions += answers
                        done += len(answers)
                if self.checkpoints is not None:
                    self.checkpoints.count(len(part))
                if len(predictions) < len(examples):
                    await asyncio.sleep(0)
        return predictions

    def explain(self, text: str) -> dict[str, Any]:
        with self._lock:
            (prediction,) = predict(self.model, [text])
            contributions = list(self.model.explain_one(text).items())
        others = [value for _, value in contributions[MOST_CONTRIBUTIONS:]]
        return {
            **prediction._asdict(),
            "contributions": contributions[:MOST_CONTRIBUTIONS],
            "n_others": len(others),
            "others": sum(others),
        }

    def view(self) -> dict[str, Any]:
        with self._lock:
            view = self.monitor.view()
        return {**view, "checkpoint": self._checkpoint()}

    def describe(self) -> dict[str, Any]:
        with self._lock:
            described = self.monitor.view()["model"]
        parts = {"features": self.model.features, "classifier": self.model.classifier}
        parameters = {name: pack_parameters(part) for name, part in parts.items()}
        return {**described, "parameters": parameters, "version": version("stream-pegasos")}

    def _checkpoint(self) -> dict[str, Any] | None:
        checkpoints = self.checkpoints
        if checkpoints is None:
            return None
        written = checkpoints.written_at
        return {
            "path": checkpoints.path.name,
            "seconds_ago": None if written is None else monotonic() - written,
            "error": checkpoints.error,
        }


def _slices(items: list[Any], size_of: Callable[[Any], int]) -> Iterator[list[Any]]:
    part: list[Any] = []
    size = 0
    for item in items:
        part.append(item)
        size += 100 + size_of(item)
        if size >= SLICE:
            yield part
            part, size = [], 0
    if part:
        yield part


def create_app(service: Service, hosts: tuple[str, ...] = ("*",)) -> FastAPI:
    """The application that serves a model.

    Parameters
    ----------
    service
        The model at work.
    hosts
        The names under which requests may come; other names are refused, as those that a web page of a stranger lets
        point here.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if service.checkpoints is not None:
            service.checkpoints.start(service.snapshot)
        yield
        if service.checkpoints is not None:
            try:
                await asyncio.to_thread(service.checkpoints.close)
            except OSError as error:
                print(f"stream-pegasos: {error}", file=sys.stderr, flush=True)

    app = FastAPI(
        title="stream_pegasos",
        description="A text classifier that learns from every message as it comes.",
        version=version("stream-pegasos"),
        docs_url=None,  # they load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,  # to an address that the request's own Host header says
        lifespan=lifespan,
    )
    metrics = Metrics(service)
    app.add_middleware(Guard, service=service, metrics=metrics)
    if "*" not in hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)

    # Plain routes, since what FastAPI does before each request would take a third of the time; OpenAPI has them below.

    async def predict_messages(request: Request) -> Response:
        messages, many = await _messages(request, service, _predict_one, _predict_many)
        predictions = await service.predict([message["text"] for message in messages])
        return _answer(messages, predictions, many)

    async def learn_messages(request: Request) -> Response:
        messages, many = await _messages(request, service, _learn_one, _learn_many)
        examples: list[Example] = [
            (message["text"], _label(message["label"], i, many), message.get("weight", 1.0))
            for i, message in enumerate(messages)
        ]
        try:
            predictions = await service.learn(examples)
        except (ValueError, TypeError) as error:
            raise HTTPException(422, str(error)[:LONGEST_FAULT]) from None
        return _answer(messages, predictions, many)

    async def explain_message(request: Request) -> Response:
        messages, many = await _messages(request, service, _predict_one, _predict_many)
        if many:
            raise HTTPException(422, "one message at a time is explained")
        if len(messages[0]["text"]) > LONGEST_EXPLAINED:
            raise HTTPException(413, f"only texts of up to {LONGEST_EXPLAINED:,} characters are explained")
        try:
            return _json(service.explain(messages[0]["text"]))
        except TypeError as error:
            raise HTTPException(422, str(error)) from None

    app.add_route("/predict", predict_messages, ["POST"], include_in_schema=False)
    app.add_route("/learn", learn_messages, ["POST"], include_in_schema=False)
    app.add_route("/explain", explain_message, ["POST"], include_in_schema=False)

    @app.get("/model", summary="What the model is")
    async def model() -> Response:
        return _json(service.describe())

    @app.get("/monitor", summary="All that the page shows")
    async def monitor() -> Response:
        return _json(service.view())

    @app.get("/healthz", summary="Whether it works")
    async def healthz() -> dict[str, str]:
        checkpoints = service.checkpoints
        return {"status": "ok" if checkpoints is None or checkpoints.error is None else "checkpoints fail"}

    @app.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
    async def show_metrics() -> Response:
        return Response(metrics.text(), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    for path, name in PAGE_FILES.items():
        app.add_api_route(path, _page(PAGE / name), include_in_schema=False)

    @app.exception_handler(StarletteHTTPException)
    async def refuse(request: Request, error: StarletteHTTPException) -> Response:
        return _json({"detail": error.detail}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def refuse_parameters(request: Request, error: RequestValidationError) -> Response:
        return _json({"detail": "bad parameters"}, 422)

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            schema["paths"] = {**OPERATIONS, **schema["paths"]}
            if service.token is not None:
                schema.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                schema["security"] = [{"token": []}]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def serve(app: FastAPI, host: str, port: int, limits: Limits, on_listening: Callable[[str], None]) -> None:
    """Serve the application until SIGTERM or Ctrl-C.

    Parameters
    ----------
    app
        What `create_app` made.
    host, port
        Where to listen; port 0 for any that is free.
    limits
        Of which those on connections are kept here.
    on_listening
        Called with the URL, once requests may come.

    Raises
    ------
    OSError
        If it cannot listen there.
    """

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                address, at = listener.getsockname()[:2]
                on_listening(f"http://{f'[{address}]' if ':' in address else address}:{at}/")

    class Connection(HttpToolsProtocol):
        """Hangs up on those who send no end of a head, or none in time."""

        n_bytes = 0  # of a head that has not come to its end
        in_head = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.watch()

        def watch(self) -> None:
            self.timer = self.loop.call_later(limits.seconds, self.transport.close)

        def connection_lost(self, error: Exception | None) -> None:
            self.timer.cancel()
            super().connection_lost(error)

        def data_received(self, data: bytes) -> None:
            if self.in_head:
                if self.n_bytes > LARGEST_HEAD:
                    self.transport.close()
                    return
                if self.n_bytes == 0:
                    self.timer.cancel()
                    self.watch()
                self.n_bytes += len(data)
            super().data_received(data)

        def on_headers_complete(self) -> None:
            self.in_head = False
            self.n_bytes = 0
            self.timer.cancel()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self.in_head = True
            super().on_message_complete()

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Connection,
        ws="none",
        access_log=False,
        log_level="error",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.concurrency,
        timeout_graceful_shutdown=10,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=2048) as listener:
        Server(config).run(sockets=[listener])


# Requests and answers -----------------------------------------------------------------------------

# A list is left at its first fault: each fault takes memory, and a body may have millions.
_predict_one: TypeAdapter[Any] = TypeAdapter(Message)
_predict_many: TypeAdapter[Any] = TypeAdapter(Annotated[list[Message], FailFast()])
_learn_one: TypeAdapter[Any] = TypeAdapter(LabelledMessage)
_learn_many: TypeAdapter[Any] = TypeAdapter(Annotated[list[LabelledMessage], FailFast()])


async def _messages(
    request: Request, service: Service, one: TypeAdapter[Any], many: TypeAdapter[Any]
) -> tuple[list[Any], bool]:
    """The messages in the body, and whether they came as a list."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        # So a browser asks before it lets the page of a stranger send anything.
        raise HTTPException(415, "the content type must be application/json")
    limits = service.limits
    body = await _read(request, service)
    is_list = body.lstrip()[:1] == b"["
    adapter = many if is_list else one
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
    where = ".".join(str(part) for part in first["loc"] if part not in ("bool", "int", "str"))
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def _label(label: Label, i: int, many: bool) -> Label:
    """The label as the readers of streams have it: an int where it reads as one."""
    if isinstance(label, str):
        read = label_of(label)
        if read is None:
            raise HTTPException(422, f"{f'{i}.' if many else ''}label: it is blank")
        return read
    return label


def _answer(messages: list[Any], predictions: list[Prediction], many: bool) -> Response:
    answers = []
    for message, (label, probability, margin) in zip(messages, predictions, strict=True):
        answer: Answer = {"label": label, "probability": probability, "margin": margin}
        if "id" in message:
            answer["id"] = message["id"]
        answers.append(answer)
    return _json(answers if many else answers[0])


def _json(value: Any, status: int = 200, headers: Any = None) -> Response:
    try:
        content = orjson.dumps(value)
    except TypeError:  # a lone surrogate, or an int beyond 64 bits
        content = json.dumps(value).encode()
    return Response(content, status, headers, media_type="application/json")


def _page(path: Path) -> Callable[[], Awaitable[Response]]:
    content = path.read_bytes()

    async def page() -> Response:
        return Response(content, headers=PAGE_HEADERS, media_type=MEDIA_TYPES[path.suffix])

    return page


def _operation(summary: str, kind: Any, many: bool = True) -> dict[str, Any]:
    """What OpenAPI is told of a POST that takes one message or a list, with examples."""
    one = TypeAdapter(kind).json_schema()
    example: dict[str, Any] = {"text": "win a free prize"}
    if kind is LabelledMessage:
        example["label"] = "spam"
    second = {**example, "text": "lunch at noon?"} | ({"label": "ham"} if "label" in example else {})
    answer = TypeAdapter(Answer).json_schema()
    said = {"label": "spam", "probability": 0.97, "margin": 2.1}

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
            "200": {"description": "The predictions.", "content": content(answer, said, [said, said])},
            "401": {"description": "The bearer token is missing or wrong."},
            "413": {"description": "The body, a text or the number of messages is beyond its limit."},
            "422": {"description": "The body is not as it must be, or the label is a third one; nothing is learned."},
        },
    }
    return {"post": post}


OPERATIONS = {
    "/predict": _operation("Predict the label of a message, or of many", Message),
    "/learn": _operation("Predict a message, or many, then learn them", LabelledMessage),
    "/explain": _operation("Why a text is predicted as it is", Message, many=False),
}


# Around each request ------------------------------------------------------------------------------


class Guard:
    """Asks for the token, counts, and lets no traceback out."""

    def __init__(self, app: Any, service: Service, metrics: Metrics) -> None:
        self._app = app
        self._service = service
        self._metrics = metrics
        self._token = None if service.token is None else b"Bearer " + service.token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = perf_counter()
        status = 500
        begun = False

        async def watch(message: Any) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
            await send(message)

        try:
            if self._may(scope):
                await self._app(scope, receive, watch)
            else:
                refusal = _json({"detail": "the bearer token is missing or wrong"}, 401, {"www-authenticate": "Bearer"})
                await refusal(scope, receive, watch)
        except Exception as error:
            print(f"stream-pegasos: {scope['path']!a}: {error!r}", file=sys.stderr, flush=True)
            if not begun:
                await _json({"detail": "internal error"}, 500)(scope, receive, watch)
        finally:
            self._service.n_bytes_on_the_way -= scope.get("n_bytes", 0)
            if status >= 400:
                self._service.monitor.n_failed += 1
            self._metrics.observe(scope["path"], status, perf_counter() - start)

    def _may(self, scope: Any) -> bool:
        if self._token is None or scope["path"] in OPEN_PATHS:
            return True
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        return hmac.compare_digest(given, self._token)


class Metrics:
    """What Prometheus is told."""

    PATHS: tuple[Literal["/predict", "/learn", "/explain"], ...] = ("/predict", "/learn", "/explain")

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        prometheus_client.PlatformCollector(registry=self._registry)
        self._requests = prometheus_client.Counter(
            "stream_pegasos_requests", "Requests answered.", ["path", "status"], registry=self._registry
        )
        seconds = prometheus_client.Histogram(
            "stream_pegasos_request_seconds", "Time to answer a request.", ["path"], registry=self._registry
        )
        self._seconds = {path: seconds.labels(path) for path in (*self.PATHS, "other")}
        self._counters: dict[tuple[str, int], Any] = {}
        self._registry.register(self)

    def observe(self, path: str, status: int, seconds: float) -> None:
        path = path if path in self.PATHS else "other"
        counter = self._counters.get((path, status))
        if counter is None:
            counter = self._counters[path, status] = self._requests.labels(path, str(status))
        counter.inc()
        self._seconds[path].observe(seconds)

    def text(self) -> bytes:
        return prometheus_client.generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """The metrics of the model, as they are now."""
        service, score = self._service, self._service.monitor.score
        classifier = service.model.classifier
        counts = {
            "messages_learned": ("Messages predicted, then learned.", score.n),
            "predictions": ("Messages only predicted.", service.monitor.n_predictions),
            "drifts": ("Drifts detected.", getattr(classifier, "n_drifts", 0)),
        }
        if service.checkpoints is not None:
            counts["checkpoint_failures"] = ("Checkpoints that failed.", service.checkpoints.n_failures)
        gauges = {
            "features": ("Features that the model knows.", len(classifier._learner)),
            "accuracy": ("Prequential accuracy.", score.accuracy),
            "roc_auc": ("Prequential ROC AUC.", score.roc_auc),
            "log_loss": ("Prequential log loss.", score.log_loss),
            "window_accuracy": (f"Accuracy of the newest {score.window} messages.", score.window_accuracy),
            "window_roc_auc": (f"ROC AUC of the newest {score.window} messages.", score.window_roc_auc),
        }
        if service.checkpoints is not None and service.checkpoints.written_at is not None:
            age = monotonic() - service.checkpoints.written_at
            gauges["checkpoint_age_seconds"] = ("Time since the last checkpoint.", age)
        for name, (text, value) in counts.items():
            yield CounterMetricFamily(f"stream_pegasos_{name}", text, value)
        for name, (text, gauge) in gauges.items():
            yield GaugeMetricFamily(f"stream_pegasos_{name}", text, gauge)
