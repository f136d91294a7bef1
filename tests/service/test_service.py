import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from stream_pegasos import AdaptiveClassifier, KernelPegasosClassifier, PegasosClassifier, TextClassifier, load
from stream_pegasos.evaluation.prequential import evaluate, predict
from stream_pegasos.learners.persistence import load_with_progress
from stream_pegasos.operation.checkpoints import Checkpoints
from stream_pegasos.streams import synthetic

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
parser = pytest.importorskip("prometheus_client.parser")
testclient = pytest.importorskip("fastapi.testclient")

from stream_pegasos.service import Limits, Service, create_app  # noqa: E402 which needs what may be missing

STREAM = list(synthetic(n=300, seed=6))
MESSAGES = [{"text": text, "label": label} for text, label in STREAM]
COMMAND = [sys.executable, "-m", "stream_pegasos", "serve", "--port", "0"]


@contextmanager
def serving(service, **options):
    with testclient.TestClient(create_app(service), **options) as client:
        yield client


@pytest.fixture
def client():
    with serving(Service(TextClassifier())) as client:
        yield client


def bits(model):
    snapshot = model.snapshot()
    return {name: array.tobytes() for name, array in snapshot.arrays.items()}, snapshot.values


def ok(response):
    assert response.status_code == 200, response.text
    return response.json()


def refused(response, status, word):
    assert response.status_code == status, response.text
    detail = response.json()["detail"]
    assert word in detail
    assert "Traceback" not in response.text
    assert "\n" not in detail


def learned():
    model = TextClassifier()
    model.learn_many(*map(list, zip(*STREAM, strict=True)))
    return model


# --- predicting and learning ------------------------------------------------------------------------------------------


def test_it_learns_and_predicts_as_the_model_does(client):
    alone = TextClassifier()
    for i, message in enumerate(MESSAGES[:60]):
        (expected,) = predict(alone, [message["text"]])
        assert ok(client.post("/predict", json={"text": message["text"]})) == expected._asdict()
        assert ok(client.post("/learn", json={**message, "id": i})) == {
            **expected._asdict(),
            "id": i,
            "learned": True,
        }
        alone.learn_one(message["text"], message["label"])
    rest = ok(client.post("/learn", json=MESSAGES[60:]))
    margins = alone.predict_learn_many([text for text, _ in STREAM[60:]], [label for _, label in STREAM[60:]]).scores
    assert [answer["margin"] for answer in rest] == margins.tolist()
    texts = [text for text, _ in synthetic(n=20, seed=9)]
    answers = ok(client.post("/predict", json=[{"text": text} for text in texts]))
    assert answers == [prediction._asdict() for prediction in predict(alone, texts)]
    assert ok(client.get("/monitor"))["accuracy"] == evaluate(TextClassifier(), STREAM).score.accuracy


@pytest.mark.parametrize("make", [TextClassifier, lambda: TextClassifier(classifier=PegasosClassifier())])
def test_the_model_is_that_of_the_same_stream_bit_for_bit(make):
    service = Service(make())
    with serving(service) as client:
        for begin in range(0, 300, 70):
            ok(client.post("/learn", json=MESSAGES[begin : begin + 70]))
            ok(client.post("/predict", json=MESSAGES[:5]))
    alone = make()
    alone.learn_many(*map(list, zip(*STREAM, strict=True)))
    assert bits(service.model) == bits(alone)


def test_before_anything_is_learned(client):
    assert ok(client.post("/predict", json={"text": "win"})) == {"label": None, "probability": None, "margin": 0.0}
    assert ok(client.post("/predict", json=[])) == []
    assert ok(client.post("/learn", json=[])) == []
    monitor = ok(client.get("/monitor"))
    assert monitor["n"] == 0
    assert monitor["accuracy"] is None


def test_ids_come_back_as_they_were(client):
    ids = ["a", 7, "", "é\ud800", 2**63]
    body = json.dumps([{"text": "x", "id": id} for id in ids] + [{"text": "x"}])
    answers = ok(client.post("/predict", content=body, headers={"content-type": "application/json"}))
    assert [answer["id"] for answer in answers[:-1]] == ids
    assert "id" not in answers[-1]


@pytest.mark.parametrize(
    ("sent", "classes"),
    [
        ((0, 1), (0, 1)),
        (("0", "1"), (0, 1)),
        (("+1", "-1"), (-1, 1)),
        ((True, False), (False, True)),
        (("true", "false"), ("false", "true")),
        (("ham", " spam "), ("ham", "spam")),
        (("007", "\u00e9\u0301"), ("007", "\u00e9\u0301")),
        ((-(10**12), 10**12), (-(10**12), 10**12)),
    ],
)
def test_labels_are_those_of_the_readers(client, sent, classes):
    for i, label in enumerate([*sent, *sent]):
        ok(client.post("/learn", json={"text": f"text {i % 2}", "label": label}))
    shown = ok(client.get("/model"))["classes"]
    assert shown == list(classes)
    assert list(map(type, shown)) == list(map(type, classes))


def test_weights_count(client):
    alone = TextClassifier()
    messages = [{**message, "weight": i % 3 + 0.5} for i, message in enumerate(MESSAGES[:50])]
    ok(client.post("/learn", json=messages))
    alone.learn_many(
        [text for text, _ in STREAM[:50]], [label for _, label in STREAM[:50]], [i % 3 + 0.5 for i in range(50)]
    )
    (expected,) = predict(alone, ["win a prize"])
    assert ok(client.post("/predict", json={"text": "win a prize"})) == expected._asdict()


@pytest.mark.parametrize("text", ["", "\ud800", "\udfff\ud800x", "\x00", "😀 e\u0301 \u202e", "a\nb", "x" * 100_000])
def test_any_text_is_a_text(client, text):
    alone = TextClassifier()
    for y, word in (("ham", "lunch"), ("spam", "pills")):
        body = json.dumps({"text": f"{text} {word}", "label": y, "id": text[:10] + y})
        answer = ok(client.post("/learn", content=body, headers={"content-type": "application/json"}))
        assert answer["id"] == text[:10] + y
        alone.learn_one(f"{text} {word}", y)
    body = json.dumps({"text": text})
    answer = ok(client.post("/predict", content=body, headers={"content-type": "application/json"}))
    assert answer == predict(alone, [text])[0]._asdict()
    monitor = client.get("/monitor").json()
    assert monitor["newest"][0]["text"] == (text[:299] + "…" if len(text) > 300 else text)


def test_explanations_add_up():
    model = learned()
    with serving(Service(model)) as client:
        text = " ".join(text for text, _ in STREAM[:20])
        explained = ok(client.post("/explain", json={"text": text}))
        expected = model.explain_one(text)
    assert explained["margin"] == model.decision_function_one(text)
    assert dict(explained["contributions"]) == dict(list(expected.items())[:50])
    assert explained["n_others"] == len(expected) - 50 > 0
    total = sum(value for _, value in explained["contributions"]) + explained["others"] + 0.0
    assert total == pytest.approx(explained["margin"], rel=1e-9)


# --- messages that come again -----------------------------------------------------------------------------------------


def test_a_message_is_learned_once():
    service = Service(TextClassifier())
    alone = TextClassifier()
    with serving(service) as client:
        first = [{**message, "id": f"a:{i}"} for i, message in enumerate(MESSAGES[:60])]
        again = [{**message, "id": f"a:{i}", "label": "ham"} for i, message in enumerate(MESSAGES[:90])]
        for sent, new in ((first, range(60)), (again, range(60, 90)), (again, [])):
            answers = ok(client.post("/learn", json=sent))
            for i, (message, answer) in enumerate(zip(sent, answers, strict=True)):
                (expected,) = predict(alone, [message["text"]])
                assert answer == {**expected._asdict(), "id": f"a:{i}", "learned": i in new}
                if i in new:
                    alone.learn_one(message["text"], message["label"])
        assert ok(client.post("/learn", json=first[7]))["learned"] is False
        assert ok(client.get("/monitor"))["n"] == 90
        assert ok(client.get("/learned")) == {"ids": [f"a:{i}" for i in range(90)]}
    assert bits(service.model) == bits(alone)


def test_which_ids_are_the_same(client):
    ids = [1, "1", None, "a", 1, "", None, "", 2**70, 2**70, "\ud800", "\ud800", -1]
    body = json.dumps([{**GOOD, **({} if id is None else {"id": id})} for id in ids])
    answers = ok(client.post("/learn", content=body, headers={"content-type": "application/json"}))
    assert [answer["learned"] for answer in answers] == [
        id is None or id not in ids[:i] for i, id in enumerate(ids)
    ]  # which holds no True
    assert ok(client.get("/learned"))["ids"] == [1, "1", "a", "", 2**70, "\ud800", -1]
    assert "learned" not in ok(client.post("/predict", json={"text": "x", "id": 1}))


def test_the_newest_ids_are_remembered():
    service = Service(TextClassifier(), id_window=5)
    with serving(service) as client:
        for i in range(12):
            ok(client.post("/learn", json={**GOOD, "id": i}))
        assert ok(client.get("/learned"))["ids"] == [7, 8, 9, 10, 11]
        assert ok(client.post("/learn", json={**GOOD, "id": 7}))["learned"] is False
        assert ok(client.post("/learn", json={**GOOD, "id": 6}))["learned"] is True
        answers = ok(client.post("/learn", json=[{**GOOD, "id": i} for i in [*range(100, 110), 100]]))
        assert [answer["learned"] for answer in answers] == [True] * 10 + [False]
        ok(client.post("/learn", json={**GOOD, "id": "x" * 100_000}))  # so long that nothing else is remembered
        assert ok(client.get("/learned"))["ids"] == ["x" * 100_000]
        assert ok(client.post("/learn", json={**GOOD, "id": "x" * 100_000}))["learned"] is False


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, MemoryError])
def test_learning_that_fails_on_the_way(kind, monkeypatch, capsys):
    """What was learned by then is known by its ids, and not learned again."""
    service = Service(TextClassifier())
    known = [{**message, "id": i} for i, message in enumerate(MESSAGES)]
    learn = TextClassifier.predict_learn_many

    def fail_on_the_way(model, x, y, w):
        learn(model, x[:17], y[:17], w)
        raise kind("the detector broke")

    def fail(*_):
        raise kind("the detector broke")

    with serving(service, raise_server_exceptions=False) as client:
        ok(client.post("/learn", json=known[:20]))
        with monkeypatch.context() as patch:
            patch.setattr(TextClassifier, "predict_learn_many", fail_on_the_way)
            patch.setattr(TextClassifier, "learn_one", fail)
            refused(client.post("/learn", json=known[20:50]), 500, "internal error")
        assert "the detector broke" in capsys.readouterr().err
        assert ok(client.get("/learned"))["ids"] == [*range(37)]
        answers = ok(client.post("/learn", json=known[20:60]))
        assert [answer["learned"] for answer in answers] == [i >= 37 for i in range(20, 60)]
    assert service.model.n_iterations == 60


def test_a_request_that_fails_leaves_the_ids_as_they_were(client):
    ok(client.post("/learn", json=[{**GOOD, "id": 1}, {"text": "lunch", "label": "ham", "id": 2}]))
    refused(client.post("/learn", json=[{**GOOD, "id": 3}, {**GOOD, "label": "eggs", "id": 4}]), 422, "eggs")
    assert ok(client.get("/learned"))["ids"] == [1, 2]


# --- what is refused --------------------------------------------------------------------------------------------------


GOOD = {"text": "free", "label": "spam"}

BAD = {
    "third label": [GOOD, {"text": "b", "label": "eggs"}],
    "third label in the middle": [{"text": "a", "label": "ham"}, {"text": "b", "label": "eggs"}, GOOD],
    "two new labels": [{"text": "a", "label": 1}, GOOD],
    "no text": [GOOD, {"label": "ham"}],
    "text of another type": [GOOD, {"text": 1, "label": "ham"}],
    "no label": [GOOD, {"text": "a"}],
    "blank label": [GOOD, {"text": "a", "label": " "}],
    "label of another type": [GOOD, {"text": "a", "label": [1]}],
    "label that is null": [GOOD, {"text": "a", "label": None}],
    "negative weight": [GOOD, {"text": "a", "label": "ham", "weight": -1}],
    "weight that is too large": [GOOD, {"text": "a", "label": "ham", "weight": 1e31}],
    "weight of another type": [GOOD, {"text": "a", "label": "ham", "weight": "heavy"}],
    "no message": [GOOD, "text"],
    "no object": "text",
    "id of another type": [GOOD, {"text": "a", "label": "ham", "id": {}}],
}


@pytest.mark.parametrize("which", BAD)
def test_a_request_that_fails_learns_nothing(which):
    service = Service(learned())
    before = bits(service.model)
    with serving(service) as client:
        response = client.post("/learn", json=BAD[which])
        refused(response, 422, "eggs" if "third" in which else "")
        assert bits(service.model) == before
        seen = ok(client.get("/monitor"))
        assert (seen["n"], seen["n_failed"]) == (0, 1)
        ok(client.post("/learn", json=GOOD))
    assert bits(service.model) != before


def test_two_third_labels_of_a_model_that_knows_none_yet():
    service = Service(TextClassifier())
    before = bits(service.model)
    with serving(service) as client:
        messages = [{"text": "x" * 40_000, "label": label} for label in ("a", "b", "a", "c")]  # in several slices
        refused(client.post("/learn", json=messages), 422, "'c' is a third one")
    assert bits(service.model) == before


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", ""),
        (b"{", ""),
        (b"[" * 100_000, ""),
        (b'{"text": "a", "label": NaN}', ""),
        (b'{"text": "a", "label": "b", "weight": Infinity}', ""),
        (b'{"text": "\\ud800", "label": "b", "weight": NaN}', ""),
        (b'{"text": "\\ud800"', ""),
        (b"\xff\xfe", ""),
        (b'{"text": "\xff", "label": "a"}', ""),
        (b"null", ""),
        (b"1", ""),
        (b'{"text": "a", "label": 1e400}', ""),
        (b'{"text": "a", "label": ' + b"9" * 5_000 + b"}", ""),
    ],
)
def test_a_body_that_is_no_message(content, word):
    service = Service(TextClassifier())
    before = bits(service.model)
    with serving(service) as client:
        response = client.post("/learn", content=content, headers={"content-type": "application/json"})
        refused(response, 422, word)
    assert bits(service.model) == before


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@pytest.mark.parametrize("path", ["/predict", "/learn", "/explain"])
def test_other_types_of_content_are_refused(client, path, kind):
    response = client.post(path, content=json.dumps(GOOD), headers={"content-type": kind})
    refused(response, 415, "application/json")


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_is_json(client, kind):
    ok(client.post("/predict", content=json.dumps(GOOD), headers={"content-type": kind}))


def test_limits():
    service = Service(TextClassifier(), limits=Limits(body=1_000, text=100, batch=5))
    with serving(service) as client:
        ok(client.post("/predict", json=[{"text": "x" * 100}] * 5))
        refused(client.post("/predict", json=[{"text": "x"}] * 6), 413, "6 messages; a request may have 5")
        refused(client.post("/learn", json=[GOOD, {**GOOD, "text": "x" * 101}]), 413, "message 1: a text of 101")
        refused(client.post("/predict", json={"text": "x" * 1_000}), 413, "it may have 1,000 bytes")
        in_parts = client.post(
            "/learn", content=iter([b" " * 400] * 3), headers={"content-type": "application/json"}
        )  # with no length told
        refused(in_parts, 413, "too large")
        assert ok(client.get("/monitor"))["n"] == 0


def test_bodies_are_counted_until_they_are_answered():
    service = Service(TextClassifier(), limits=Limits(body=1_000))
    with serving(service) as client:
        ok(client.post("/predict", json={"text": "x" * 900}))
        refused(client.post("/predict", json={"text": 3}), 422, "text")
        in_parts = client.post("/predict", content=iter([b" " * 400] * 3), headers={"content-type": "application/json"})
        refused(in_parts, 413, "too large")
        assert service.n_bytes_on_the_way == 0
        service.n_bytes_on_the_way = 3_500
        refused(client.post("/predict", json={"text": "x" * 900}), 503, "too many")
        assert service.n_bytes_on_the_way == 3_500


def test_a_body_that_does_not_come():
    service = Service(TextClassifier(), limits=Limits(seconds=0.05))

    sent = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/learn",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    asyncio.run(create_app(service)(scope, receive, send))
    assert sent[0]["status"] == 408


def test_paths_that_are_none(client):
    assert client.get("/nothing").status_code == 404
    assert client.get("/learn").status_code == 405
    assert client.head("/learn").status_code == 405
    assert client.get("/docs").status_code == 404
    assert client.get("/redoc").status_code == 404


def test_foreign_names_are_refused():
    app = create_app(Service(TextClassifier()), ("localhost", "127.0.0.1"))
    with testclient.TestClient(app, base_url="http://localhost") as client:
        ok(client.post("/predict", json={"text": "a"}))
        ok(client.post("/predict", json={"text": "a"}, headers={"host": "127.0.0.1:8000"}))
        for path in ("/", "/healthz", "/monitor"):
            assert client.get(path, headers={"host": "evil.example"}).status_code == 400
        assert client.post("/learn", json=GOOD, headers={"host": "localhost.evil.example"}).status_code == 400
        assert ok(client.get("/monitor"))["n"] == 0


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "é"]
)
def test_a_wrong_token(given):
    with serving(Service(TextClassifier(), token="secret")) as client:
        headers = {} if given is None else {"authorization": given.encode()}
        for method, path in (
            ("POST", "/learn"),
            ("POST", "/predict"),
            ("POST", "/explain"),
            ("GET", "/learned"),
            ("GET", "/monitor"),
            ("GET", "/model"),
            ("GET", "/metrics"),
            ("GET", "/openapi.json"),
            ("GET", "/nothing"),
        ):
            response = client.request(method, path, json=GOOD, headers=headers)
            refused(response, 401, "token")
            assert response.headers["www-authenticate"] == "Bearer"
        for path in ("/", "/page.css", "/charts.css", "/tables.css", "/page.js", "/healthz"):
            assert client.get(path, headers=headers).status_code == 200
        right = {"authorization": "Bearer secret"}
        for scheme in ("Bearer", "bearer"):  # in any case, as HTTP has it
            assert ok(client.get("/monitor", headers={"authorization": f"{scheme} secret"}))["n"] == 0
        assert ok(client.post("/learn", json=GOOD, headers=right))["label"] is None
        assert "token" in ok(client.get("/openapi.json", headers=right))["components"]["securitySchemes"]


def test_a_fault_of_ours_tells_strangers_nothing(monkeypatch, capsys):
    service = Service(TextClassifier())

    def fail(*_):
        raise RuntimeError("private words")

    with serving(service, raise_server_exceptions=False) as client:
        monkeypatch.setattr("stream_pegasos.service.work.predict", fail)
        response = client.post("/predict", json={"text": "a"})
        refused(response, 500, "internal error")
        assert "private" not in response.text
        monkeypatch.undo()
        ok(client.post("/predict", json={"text": "a"}))
    assert "private words" in capsys.readouterr().err


def test_watchdogs_may_ask_for_the_head_alone(client):
    for path in ("/", "/healthz", "/metrics"):
        assert client.head(path).status_code == 200


# --- what it says of itself -------------------------------------------------------------------------------------------


def test_the_examples_of_openapi_work(client):
    schema = ok(client.get("/openapi.json"))
    tried = 0
    for path, method in (("/predict", "post"), ("/learn", "post"), ("/explain", "post")):
        content = schema["paths"][path][method]["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            answer = ok(client.post(path, json=example["value"]))
            assert isinstance(answer, list) == isinstance(example["value"], list)
            tried += 1
        said = schema["paths"][path][method]["responses"]["200"]["content"]["application/json"]["examples"]
        assert said.keys() == content["examples"].keys()
        first = answer[0] if isinstance(answer, list) else answer
        assert said["one message"]["value"].keys() == first.keys()
    assert tried == 5
    for path in ("/learned", "/model", "/monitor", "/healthz", "/metrics"):
        assert client.get(path).status_code == 200
        assert "get" in schema["paths"][path]


def test_metrics_are_those_of_the_monitor(client):
    ok(client.post("/learn", json=MESSAGES[:100]))
    for _ in range(3):
        ok(client.post("/predict", json=MESSAGES[:5]))
    client.post("/learn", json={"text": "a"})
    client.get("/nothing")
    monitor, response = ok(client.get("/monitor")), client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    samples = {
        (sample.name.removeprefix("stream_pegasos_"), *sorted(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(response.text)
        for sample in family.samples
    }
    for name, value in {
        "messages_learned_total": monitor["n"],
        "predictions_total": monitor["n_predictions"],
        "drifts_total": len(monitor["drifts"]),
        "features": monitor["model"]["n_features"],
        "accuracy": monitor["accuracy"],
        "roc_auc": monitor["roc_auc"],
        "log_loss": monitor["log_loss"],
        "window_accuracy": monitor["window"]["accuracy"],
        "window_roc_auc": monitor["window"]["roc_auc"],
    }.items():
        assert samples[(name,)] == value, name
    assert monitor["n"] == 100
    assert monitor["n_predictions"] == 15
    assert monitor["n_failed"] == 2
    assert samples["requests_total", ("path", "/predict"), ("status", "200")] == 3
    assert samples["requests_total", ("path", "/learn"), ("status", "200")] == 1
    assert samples["requests_total", ("path", "/learn"), ("status", "422")] == 1
    assert samples["requests_total", ("path", "other"), ("status", "404")] == 1
    assert samples["request_seconds_count", ("path", "/predict")] == 3
    assert ("process_resident_memory_bytes",) in samples or sys.platform != "linux"


def test_a_model_is_described():
    model = TextClassifier(classifier=AdaptiveClassifier(max_features=50, drift_detector=None))
    with serving(Service(model)) as client:
        ok(client.post("/learn", json=MESSAGES[:50]))
        described = ok(client.get("/model"))
    assert described["kind"] == "TextClassifier"
    assert described["classifier"] == "AdaptiveClassifier"
    assert described["n_features"] == len(model.weights) <= 50
    assert described["parameters"]["classifier"]["max_features"] == 50
    assert described["classes"] == list(model.classes)


# --- at the same time -------------------------------------------------------------------------------------------------


def test_predictions_go_on_between_the_slices_of_a_large_request():
    service = Service(TextClassifier())
    app = create_app(service)
    large = [{**message, "text": message["text"] + " " + "x" * 2_000} for message in MESSAGES]

    async def both():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            learning = asyncio.create_task(client.post("/learn", json=large))
            seen = []
            while not learning.done():
                ok(await client.post("/predict", json={"text": "win a prize"}))
                seen.append(service.monitor.score.n)
                await asyncio.sleep(0)  # as the transport of the test never waits
            assert len(ok(await learning)) == len(large)
            return seen

    seen = asyncio.run(both())
    assert len({n for n in seen if 0 < n < len(large)}) >= 3
    assert service.monitor.score.n == len(large)


def test_requests_to_learn_take_turns():
    """The labels of one are checked when those of the other are known."""
    service = Service(TextClassifier())
    long = "x" * 30_000

    async def both():
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            bodies = [
                [{"text": long, "label": label} for label in (first, second) * 4] for first, second in ("ab", "cd")
            ]
            return await asyncio.gather(*(client.post("/learn", json=body) for body in bodies))

    one, other = asyncio.run(both())
    assert sorted([one.status_code, other.status_code]) == [200, 422]
    assert service.monitor.score.n == 8


# --- checkpoints ------------------------------------------------------------------------------------------------------


def resumed(path, **options):
    checkpoints = Checkpoints(path, **options)
    model, progress = checkpoints.resume() or (TextClassifier(), None)
    return Service(model, checkpoints, progress)


def figures(monitor):
    return {
        name: monitor[name] for name in ("n", "accuracy", "roc_auc", "log_loss", "curve", "confusion_matrix", "window")
    }


def test_it_goes_on_where_it_was(tmp_path):
    path = tmp_path / "model"
    for begin in (0, 100, 200):
        with serving(resumed(path)) as client:
            ok(client.post("/learn", json=MESSAGES[begin : begin + 100]))
            before = ok(client.get("/monitor"))
            assert before["checkpoint"]["path"] == path.name
        with serving(resumed(path)) as client:
            assert figures(ok(client.get("/monitor"))) == figures(before)
    assert before["n"] == 300
    assert before["accuracy"] == evaluate(TextClassifier(), STREAM).score.accuracy
    assert bits(load(path)) == bits(learned())


def test_ids_are_those_of_the_model_beside_them(tmp_path):
    """Whenever a checkpoint is taken, also in the middle of a request."""
    service = resumed(tmp_path / "model")
    ids = [i if i % 2 else str(i) for i in range(300)]
    large = [
        {**message, "text": message["text"] + " x" * 1_000, "id": id} for message, id in zip(MESSAGES, ids, strict=True)
    ]
    app, snapshots = create_app(service), []

    async def both():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            learning = asyncio.create_task(client.post("/learn", json=large))
            while not learning.done():
                snapshots.append(service.snapshot())
                await asyncio.sleep(0)
            ok(await learning)

    asyncio.run(both())
    seen = set()
    for i, snapshot in enumerate([snapshots[0], *snapshots[5:-1:3], service.snapshot()]):
        snapshot.write(tmp_path / f"{i}")
        model, progress = load_with_progress(tmp_path / f"{i}")
        again = Service(model, progress=progress)
        assert again.learned_ids() == ids[: model.n_iterations]
        assert again.monitor.score.n == model.n_iterations
        seen.add(model.n_iterations)
    assert len(seen) > 3
    with serving(again) as client:
        assert not any(answer["learned"] for answer in ok(client.post("/learn", json=large)))


def test_a_checkpoint_that_knows_no_ids(tmp_path):
    service = Service(learned())
    snapshot = service.snapshot()
    assert snapshot.progress.pop("ids") == "[]"
    snapshot.write(tmp_path / "model")
    assert resumed(tmp_path / "model").learned_ids() == []


@pytest.mark.parametrize("ids", [3, None, "", "[", "{}", "[1.5]", "[true]", "[null]", "[[1]]"])
def test_ids_that_are_none(ids):
    with pytest.raises(ValueError, match="no list of ids"):
        Service(TextClassifier(), progress={"ids": ids})


def test_checkpoints_that_fail_are_seen(tmp_path, monkeypatch):
    service = resumed(tmp_path / "model", every=1, seconds=0.02)
    with serving(service) as client:
        assert ok(client.get("/healthz")) == {"status": "ok"}

        def fail(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            ok(client.post("/learn", json=MESSAGES[:5]))
            wait(lambda: service.checkpoints.n_failures)
            response = client.get("/healthz")
            assert response.json() == {"status": "checkpoints fail"}
            assert ok(client.get("/monitor"))["checkpoint"]["error"] == "No space left on device"
            assert "stream_pegasos_checkpoint_failures_total" in client.get("/metrics").text
            ok(client.post("/predict", json={"text": "a"}))
        wait(lambda: service.checkpoints.error is None)
        assert ok(client.get("/healthz")) == {"status": "ok"}
        assert ok(client.get("/monitor"))["checkpoint"]["seconds_ago"] < 60
    assert load_with_progress(tmp_path / "model")[0].n_iterations == 5


# --- the command, over sockets ----------------------------------------------------------------------------------------


def wait(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return result


class Served:
    """The command, on a port that it chooses."""

    def __init__(self, *options, command=COMMAND):
        self.process = subprocess.Popen([*command, *map(str, options)], stderr=subprocess.PIPE, text=True)
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            if "listening on " in line:
                break
        else:
            pytest.fail("".join(self.lines))
        self.url = line.split()[-1].rstrip("/")
        self.client = httpx.Client(base_url=self.url, timeout=30)

    def end(self, number=signal.SIGTERM):
        self.client.close()
        self.process.send_signal(number)
        self.lines += self.process.communicate(timeout=30)[1].splitlines()
        return self.process.returncode


@pytest.fixture
def serve():
    started = []

    def start(*options, **command):
        started.append(Served(*options, **command))
        return started[-1]

    yield start
    for served in started:
        served.client.close()
        served.process.kill()
        served.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_a_last_checkpoint(serve, number, tmp_path):
    path = tmp_path / "model"
    served = serve("--checkpoint", path, "--checkpoint-seconds", 1_000)
    ok(served.client.post("/learn", json=MESSAGES[:200]))
    before = ok(served.client.get("/monitor"))
    assert not path.exists()
    served.end(number)
    assert "Traceback" not in "".join(served.lines)
    again = serve("--checkpoint", path)
    assert figures(ok(again.client.get("/monitor"))) == figures(before)
    ok(again.client.post("/learn", json=MESSAGES[200:]))
    assert ok(again.client.get("/monitor"))["accuracy"] == evaluate(TextClassifier(), STREAM).score.accuracy
    again.end()
    assert bits(load(path)) == bits(learned())


def test_kill_loses_no_more_than_what_came_after_the_last_checkpoint(serve, tmp_path):
    path = tmp_path / "model"
    served = serve("--checkpoint", path, "--checkpoint-every", 50, "--checkpoint-seconds", 1_000)
    ok(served.client.post("/learn", json=MESSAGES[:100]))
    wait(lambda: ok(served.client.get("/monitor"))["checkpoint"]["seconds_ago"] is not None)
    wait(lambda: load(path).n_iterations == 100)
    ok(served.client.post("/learn", json=MESSAGES[100:110]))
    served.end(signal.SIGKILL)
    again = serve("--checkpoint", path)
    seen = ok(again.client.get("/monitor"))
    assert seen["n"] == 100
    assert seen["accuracy"] == evaluate(TextClassifier(), STREAM[:100]).score.accuracy


def test_too_many_at_a_time(serve):
    """Heads that do not come give way to others; requests at work keep their connections."""
    served = serve("--max-concurrency", 3)
    host, port = served.url.removeprefix("http://").split(":")
    head = b"POST /learn HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n"

    def ask():
        return httpx.get(f"{served.url}/healthz").status_code

    connections = []
    try:
        for _ in range(4):
            connections.append(socket.create_connection((host, int(port)), 20))
            connections[-1].sendall(head)
        assert connections[0].recv(1_000).startswith(b"HTTP/1.1 503")
        assert ask() == 200
        assert connections[1].recv(1_000).startswith(b"HTTP/1.1 503")
        connections.append(socket.create_connection((host, int(port)), 20))
        connections[-1].sendall(head)
        for connection in connections[2:]:
            connection.sendall(b"\r\n")
        wait(lambda: ask() == 503)
        for connection in connections[2:]:
            connection.sendall(b" " * 10)
            assert connection.recv(1_000).startswith(b"HTTP/1.1 422")
        assert ask() == 200
    finally:
        for connection in connections:
            connection.close()


def test_bodies_that_come_slowly_give_way(serve):
    served = serve("--max-concurrency", 3)
    host, port = served.url.removeprefix("http://").split(":")
    head = b"POST /learn HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n"
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((host, int(port)), 20)) for _ in range(3)]
        for connection in slow:
            connection.sendall(head)

        def ask():
            for connection in slow:
                with suppress(OSError):
                    connection.sendall(b" ")
            return httpx.get(f"{served.url}/healthz").status_code

        start = time.monotonic()
        wait(lambda: ask() == 200)
        assert time.monotonic() - start < 10  # of the 30 seconds that a body may take


# What a client sends at first, and then again and again; `None` where it says that nothing more comes.
HOSTILE = {
    "nothing": (b"", b""),
    "a head that does not end": (b"GET /page.js HTTP/1.1\r\nx: ", b"x"),
    "many heads that do not end": (b"GET /page.js HTTP/1.1\r\n\r\n" * 20 + b"GET / HTTP/1.1\r\nx: ", b"x"),
    "half a head": (b"GET / HTTP/1.1\r\n", None),
    "no next request": (b"GET /healthz HTTP/1.1\r\n\r\n", b""),
    "a body where none is read": (b"GET /healthz HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"x"),
    "a body to an unknown path": (b"POST /nothing HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"x"),
    "a body to a page": (b"POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"x"),
    "a slow body": (b"POST /learn HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"x"),
    "a slow body of JSON": (
        b"POST /learn HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n",
        b"x",
    ),
    "endless chunks": (b"POST /learn HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "endless chunks of JSON": (
        b"POST /learn HTTP/1.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        b"1\r\nx\r\n",
    ),
    "endless chunks where none is read": (b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "endless trailers": (b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
    "answers not read": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, b""),
    "answers not read, and more asked for": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, b"GET / HTTP/1.1\r\n\r\n"),
    "answers not read, half-closed": (b"GET /page.js HTTP/1.1\r\n\r\n" * 2_000, None),
}
FOR_SHORT = """
import sys
from stream_pegasos import TextClassifier
from stream_pegasos.service import Limits, Service, connection, create_app, serve

connection.LINGER = 0.2
limits = Limits(concurrency=3, seconds=float(sys.argv[2]))
service = Service(TextClassifier(), limits=limits, token=sys.argv[1] or None)
serve(create_app(service), "127.0.0.1", 0, limits, lambda url: print("listening on", url, file=sys.stderr, flush=True))
"""


@contextmanager
def strangers(url, n, opening, part):
    """Clients that send this, and read nothing."""
    connections, over = [], threading.Event()

    def go_on():
        while not over.wait(0.02):
            for connection in connections:
                with suppress(OSError):
                    connection.send(part)

    thread = threading.Thread(target=go_on)
    try:
        for _ in range(n):
            connections.append(socket.socket())
            connections[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connections[-1].connect(("127.0.0.1", int(url.rpartition(":")[2])))
            connections[-1].sendall(opening)
            connections[-1].setblocking(False)
            if part is None:
                connections[-1].shutdown(socket.SHUT_WR)
        if part:
            thread.start()
        yield
    finally:
        over.set()
        if part:
            thread.join()
        for connection in connections:
            connection.close()


@pytest.mark.parametrize("token", ["", "secret"])
def test_no_client_keeps_others_off(serve, token):
    """However long it may wait."""
    served = serve(token, 60.0, command=[sys.executable, "-c", FOR_SHORT])
    headers = {"authorization": f"Bearer {token or 'any'}"}
    for kind, (opening, part) in HOSTILE.items():
        if token or "JSON" not in kind:  # who may learn may keep a connection for the time that a body has
            with strangers(served.url, 4, opening, part):
                wait(lambda: httpx.get(f"{served.url}/model", headers=headers).status_code == 200, 5)


@pytest.mark.skipif(sys.platform != "linux", reason="the files of a process are counted as Linux tells them")
@pytest.mark.parametrize("token", ["", "secret"])
def test_no_client_keeps_its_connection(serve, token):
    served = serve(token, 0.3, command=[sys.executable, "-c", FOR_SHORT])

    def n_open():
        return len(os.listdir(f"/proc/{served.process.pid}/fd"))

    before, kept = n_open(), []
    for kind, (opening, part) in HOSTILE.items():
        with strangers(served.url, 2, opening, part):
            time.sleep(0.05)  # in which they are accepted
            try:
                wait(lambda: n_open() == before, 7)
            except AssertionError:
                kept.append(kind)
        wait(lambda: n_open() == before)
    assert not kept


@pytest.mark.parametrize(
    ("path", "length", "status"), [("/nothing", 40_000_000, 404), ("/learn", 40_000_000, 413), ("/", 2_000_000, 405)]
)
def test_a_client_that_is_still_sending_reads_its_answer(serve, path, length, status):
    served = serve()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 20) as connection:
        connection.sendall(head.encode() + b" " * 1_000)
        time.sleep(0.1)  # in which it is answered
        connection.sendall(b" " * 1_000_000)
        answer = b""
        while part := connection.recv(10_000):  # up to the end, which comes before that of the body
            answer += part
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"connection: close" in answer.lower()


def test_requests_of_one_connection_are_answered_in_their_order(serve):
    served = serve()
    bodies = [json.dumps({"text": "x" * 1_000 * i, "id": i}) for i in (0, 200, 1, 0, 90)]
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 20) as connection:
        for _ in range(3):
            for body in bodies:
                head = "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
            answer = b""
            while answer.count(b'"id":') < len(bodies):
                answer += connection.recv(10_000)
            assert re.findall(rb'"id":(\d+)', answer) == [b"0", b"200", b"1", b"0", b"90"]
            assert b"connection: close" not in answer.lower()


def test_many_clients_at_a_time(serve):
    """Answers belong to their requests, and all is learned once."""
    served = serve()
    ok(served.client.post("/learn", json=MESSAGES[:100]))

    def work(number):
        with httpx.Client(base_url=served.url, timeout=60) as client:
            for i in range(10):
                answers = ok(client.post("/predict", json=[{"text": "a", "id": f"{number}-{i}-{j}"} for j in range(5)]))
                assert [answer["id"] for answer in answers] == [f"{number}-{i}-{j}" for j in range(5)]
                ok(client.post("/learn", json=MESSAGES[100 + i]))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    seen = ok(served.client.get("/monitor"))
    assert (seen["n"], seen["n_predictions"], seen["n_failed"]) == (160, 300, 0)


def test_a_sender_beside_another_client_and_a_service_that_is_killed(serve, tmp_path):
    """Each message of its stream is learned once, and so is each of the other's."""
    stream, checkpoint = tmp_path / "stream.jsonl", tmp_path / "model"
    rows = list(synthetic(n=1_000, seed=8))
    stream.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", port, "--checkpoint", checkpoint, "--checkpoint-every", 100, "--checkpoint-seconds", 1_000]
    served = serve(*options)
    script = Path(__file__).parents[2] / "examples" / "send_stream.py"
    command = [sys.executable, script, stream, "--url", served.url, "--batch", "7"]
    others, over = [{**message, "id": f"other:{i}"} for i, message in enumerate(MESSAGES)], threading.Event()

    def teach():
        while not over.wait(0.01):
            for i in range(0, len(others), 20):
                with suppress(httpx.HTTPError):
                    httpx.post(f"{served.url}/learn", json=others[i : i + 20])

    def known():
        return {id for id in ok(httpx.get(f"{served.url}/learned"))["ids"] if id.startswith("stream")}

    teacher = threading.Thread(target=teach)
    teacher.start()
    try:
        sender = subprocess.Popen([*command, "--pause", "0.02"])  # which is killed, too, and started again
        wait(lambda: checkpoint.exists() and len(known()) > 150)
        sender.kill()
        sender.wait()
        sender = subprocess.Popen([*command, "--pause", "0.01"], stdout=subprocess.PIPE, text=True)
        wait(lambda: len(known()) > 400)
        wait(lambda: ok(httpx.get(f"{served.url}/monitor"))["n"] > load(checkpoint).n_iterations + 20)
        before = known()
        served.end(signal.SIGKILL)
        time.sleep(0.3)
        served = serve(*options)
        assert known() < before
        out, _ = sender.communicate(timeout=60)
    finally:
        over.set()
        sender.kill()
        teacher.join()
    assert f"waiting for {served.url}" in out
    ok(httpx.post(f"{served.url}/learn", json=others))  # what was lost of them
    ids = ok(httpx.get(f"{served.url}/learned"))["ids"]
    served.end()
    messages = {f"stream.jsonl:{i}": row for i, row in enumerate(rows, 1)} | {
        message["id"]: (message["text"], message["label"]) for message in others
    }
    assert sorted(ids) == sorted(messages)
    assert [id for id in ids if id.startswith("stream")] == [f"stream.jsonl:{i}" for i in range(1, 1_001)]
    model = load(checkpoint)
    assert model.n_iterations == len(messages)
    alone = TextClassifier()
    alone.learn_many(*map(list, zip(*(messages[id] for id in ids), strict=True)))
    assert bits(model) == bits(alone)


def fails(*options):
    done = subprocess.run([*COMMAND, *map(str, options)], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_what_the_command_refuses(tmp_path):
    path = tmp_path / "model"
    TextClassifier(classifier=KernelPegasosClassifier()).save(path)
    code, err = fails("--load", path)
    assert code == 1
    assert f"{path} has a kernel" in err
    PegasosClassifier().save(path)
    code, err = fails("--checkpoint", path)
    assert code == 1
    assert "is a model of features, not of texts" in err
    (tmp_path / "token").write_text("\n")
    code, err = fails("--token-file", tmp_path / "token")
    assert code == 1
    assert "is empty" in err
    path.write_bytes(b"nothing")
    code, err = fails("--checkpoint", path)
    assert code == 1
    assert path.read_bytes() == b"nothing"


def test_a_token_from_a_file(serve, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    served = serve("--token-file", tmp_path / "token")
    refused(served.client.post("/learn", json=GOOD), 401, "token")
    ok(served.client.post("/learn", json=GOOD, headers={"authorization": "Bearer secret"}))


def test_a_model_whose_texts_stand_in_a_field_takes_them_as_they_are():
    model = TextClassifier().clone({"features": {"on": "body"}})
    plain = TextClassifier()
    with serving(Service(model)) as client, serving(Service(plain)) as other:
        for path in ("/learn", "/predict"):
            body = MESSAGES[:40] if path == "/learn" else [{"text": message["text"]} for message in MESSAGES[:40]]
            assert ok(client.post(path, json=body)) == ok(other.post(path, json=body))
        text = {"text": MESSAGES[0]["text"]}
        assert ok(client.post("/explain", json=text)) == ok(other.post("/explain", json=text))
        assert ok(client.get("/monitor"))["words"] == ok(other.get("/monitor"))["words"]


def test_one_label_leaves_room_for_others(client):
    (answer,) = ok(client.post("/learn", json=[{"text": "win a prize", "label": "spam"}]))
    assert (answer["label"], answer["probability"]) == (None, None)
    answer = ok(client.post("/predict", json={"text": "lunch at noon?"}))
    assert (answer["label"], answer["probability"]) == ("spam", pytest.approx(2 / 3))


def test_which_label_is_positive_must_be_said_where_a_decision_rests_on_it():
    model = TextClassifier(classifier=AdaptiveClassifier(max_false_positive_rate=0.1))
    with serving(Service(model)) as client:
        response = client.post("/learn", json=[{"text": "a", "label": "spam"}, {"text": "b", "label": "ham"}])
        assert response.status_code == 422 and "pos_label" in response.json()["detail"]
        assert ok(client.get("/monitor"))["n"] == 0 and model.n_iterations == 0
        ok(client.post("/learn", json=[{"text": "a", "label": True}, {"text": "b", "label": False}]))
