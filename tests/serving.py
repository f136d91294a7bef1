"""The service in this process and in one of its own, messages for it, and what it answers."""

import asyncio
import json
import math
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager

import pytest
from click.testing import CliRunner

from stream_pegasos import TextClassifier
from stream_pegasos.cli.serve import serve
from stream_pegasos.runtime import monitor
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.streams import synthetic

httpx = pytest.importorskip("httpx")
pytest.importorskip("msgspec")
pytest.importorskip("prometheus_client")
testclient = pytest.importorskip("starlette.testclient")

from stream_pegasos.service import create_app  # noqa: E402 which needs what may be missing

STREAM = list(synthetic(n=300, seed=6))
MESSAGES = [{"text": text, "label": label} for text, label in STREAM]
KNOWN = [{**message, "id": i, "weight": 1.0 + i % 3} for i, message in enumerate(MESSAGES)]
GOOD = {"text": "free", "label": "spam"}
PROGRAM = [sys.executable, "-m", "stream_pegasos"]
COMMAND = [*PROGRAM, "serve", "--port", "0"]


@contextmanager
def serving(service, **options):
    with testclient.TestClient(create_app(service), **options) as client:
        yield client


@asynccontextmanager
async def asking(service):
    """A client in the event loop of the service."""
    transport = httpx.ASGITransport(create_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def begin(app, path, parts, answered):
    """Send a request of which these parts of the body come, then nothing more."""
    method, headers = "POST" if parts else "GET", [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
    came = iter(parts)

    async def receive():
        return next(came, None) or await asyncio.Event().wait()

    async def send(message):
        answered(message)

    await app(scope, receive, send)


def part(body, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


def learned():
    model = TextClassifier()
    model.learn_many(*map(list, zip(*STREAM, strict=True)))
    return model


def ok(response):
    assert response.status_code == 200, response.text
    return response.json()


def send(client, path, body):
    """Send JSON as Python writes it, also of lone surrogates and large integers."""
    return client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})


def learn(client, messages):
    return ok(send(client, "/learn", messages))


def predict(client, messages):
    return ok(send(client, "/predict", messages))


def refused(response, status, word):
    assert response.status_code == status, response.text
    detail = response.json()["detail"]
    assert word in detail
    assert "Traceback" not in response.text
    assert "\n" not in detail


def not_served(*options):
    """The exit code and what the command says at once instead of serving."""
    done = CliRunner().invoke(serve, ["--port", "0", *map(str, options)])
    assert done.exit_code
    return done.exit_code, f"{done.output}{done.exception}"


def resumed(path, **options):
    checkpoints = Checkpoints(path, **options)
    model, progress = checkpoints.resume() or (TextClassifier(), None)
    return LiveLearner(model, checkpoints, progress)


def killed(path, *, model=None, **options):
    """A service that nobody ends: what stands on the disk at some moment is what a kill leaves."""
    checkpoints = Checkpoints(path, seconds=1_000.0)
    model, progress = checkpoints.resume() or (model or TextClassifier(), None)
    service = LiveLearner(model, checkpoints, progress, **options)
    service.checkpoints.close = lambda last: None  # no last checkpoint, nor any but those of `checkpoint`
    service.checkpoints.start = lambda snapshot, on_written: vars(checkpoints).update(on_written=on_written)
    service.start()
    return service


def checkpoint(service):
    snapshot = service._learning.snapshot()
    snapshot.write(service.checkpoints.path, keep=service.checkpoints.previous)
    service.checkpoints.on_written(snapshot.progress)


def health(client):
    response = client.get("/healthz")
    assert response.status_code == (503 if "journal" in response.text else 200)
    return response.json()["status"]


def figures(monitor):
    return {name: monitor[name] for name in ("n", "accuracy", "roc_auc", "log_loss", "curve", "classes", "window")}


class Served:
    """A command that serves a page, on a port that it chooses."""

    def __init__(self, *arguments, command=PROGRAM, **options):
        words = [*command, *map(str, arguments)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, encoding="utf-8", **options)
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if " on http://" in line:
                break
        else:
            pytest.fail("\n".join(self.lines))
        self.url = line.split()[-1].rstrip("/")
        self.port = int(self.url.rpartition(":")[2])
        self.client = httpx.Client(base_url=self.url, timeout=120)

    def end(self, number=signal.SIGTERM):
        self.client.close()
        self.process.send_signal(number)
        self.lines += self.process.communicate(timeout=120)[1].splitlines()
        return self.process.returncode

    def kill(self):
        if self.process.returncode is None:
            self.end(signal.SIGKILL)


def name_all_features(monkeypatch):
    """Names of features, however long it takes: or the time decides which words have names."""
    for limit in ("SHARE_FOR_NAMES", "FOR_NAMES_AT_ONCE"):
        monkeypatch.setattr(monitor, limit, math.inf)
