"""Limits on bodies, texts, batches, time and requests at a time; what is answered together."""

import asyncio
import json
import tracemalloc
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from kinds import several_classes, several_labels
from serving import GOOD, begin, learn, ok, part, predict, refused, send, serving

from stream_pegasos import TextClassifier
from stream_pegasos.runtime import label_checks
from stream_pegasos.runtime.limits import Limits
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.runtime.micro_batching import MicroBatching
from stream_pegasos.service import bodies, create_app
from stream_pegasos.service.operations import make_operations

httpx = pytest.importorskip("httpx")
JSON = {"content-type": "application/json"}


def test_limits():
    service = LiveLearner(TextClassifier(), limits=Limits(body=1_000, text=100, batch=5))
    with serving(service) as client:
        predict(client, [{"text": "x" * 100}] * 5)
        refused(send(client, "/predict", [{"text": "x"}] * 6), 413, "messages must be at most 5 a request, got 6")
        refused(
            send(client, "/learn", [GOOD, {**GOOD, "text": "x" * 101}]),
            413,
            "message 1: a text must have at most 100 characters, got 101",
        )
        refused(send(client, "/predict", {"text": "x" * 1_000}), 413, "at most 1,000 bytes")
        in_parts = client.post("/learn", content=iter([b" " * 400] * 3), headers=JSON)  # with no length told
        refused(in_parts, 413, "at most 1,000 bytes")
        assert ok(client.get("/monitor"))["n"] == 0


MOST = Limits(body=200_000, text=20_500, batch=3)
# For each limit of each operation what is as large as may be; one more is refused. `n` is the limit.
AT_LIMITS = {
    "/predict": {
        "items": lambda n: [{"text": "x"}] * n,
        "text": lambda n: [{"text": "x" * n}],
    },
    "/learn": {
        "items": lambda n: [GOOD] * n,
        "text": lambda n: [{**GOOD, "text": "x" * n}],
        "label": lambda n: {**GOOD, "label": "x" * n},
        "labels": lambda n: {**GOOD, "label": [f"{i}" for i in range(n)]},
    },
    "/correct": {
        "label": lambda n: {"number": 1, "label": "x" * n},
        "labels": lambda n: {"number": 1, "label": [f"{i}" for i in range(n)]},
    },
    "/describe": {
        "items": lambda n: {"a": None, "b": ["x"] * (n - 1)},
        "text": lambda n: {"a": ["x", "x" * n]},
        "label": lambda n: {"x" * n: None},
    },
    "/explain": {
        "text": lambda n: {"text": "x" * n},
        "label": lambda n: {"text": "x", "label": "x" * n},
    },
    "/teach": {
        "label": lambda n: {"number": 1, "label": "x" * n},
        "labels": lambda n: {"number": 1, "label": [f"{i}" for i in range(n)]},
    },
}


def test_each_limit_of_each_operation():
    operations = make_operations(LiveLearner(TextClassifier(), limits=MOST), SimpleNamespace())
    assert {one.path for one in operations if one.takes is not None} == {*AT_LIMITS}
    for path in AT_LIMITS:
        limits = MOST.explanation_limits if path == "/explain" else MOST.request_limits
        for name, at_limit in AT_LIMITS[path].items():
            make = several_labels if name == "labels" else TextClassifier
            for more in 0, 1:
                service = LiveLearner(make(), limits=MOST)
                with serving(service) as client:
                    response = send(client, path, at_limit(getattr(limits, name) + more))
                    if more:
                        refused(response, 413, f"at most {getattr(limits, name):,}")
                        assert service.model.n_learned == 0
                    else:  # no message waits for its label, and nothing is known of a label that is explained
                        assert response.status_code in {"/teach": [404], "/correct": [404], "/explain": [200, 422]}.get(
                            path, [200]
                        )
        with serving(LiveLearner(TextClassifier(), limits=MOST)) as client:
            refused(client.post(path, content=b" " * (MOST.body + 1), headers=JSON), 413, "at most 200,000 bytes")
            assert client.post(path, content=b" " * MOST.body, headers=JSON).status_code == 422


def test_the_limits_of_parameters(client):
    for path, schema in ok(client.get("/openapi.json"))["paths"].items():
        for parameter in schema.get("get", {}).get("parameters", []):
            most, name = parameter["schema"], parameter["name"]
            largest = most.get("maximum") or "x" * most.get("maxLength", 0)
            if largest:
                beyond = largest + 1 if "maximum" in most else largest + "x"
                assert client.get(path, params={name: largest}).status_code in (200, 404)
                refused(client.get(path, params={name: beyond}), 422, "")


def test_labels_do_not_become_too_many():
    """As where a field of ids is taken for the label."""
    for make, wrap in ((several_classes, lambda label: label), (several_labels, lambda label: [label])):
        service = LiveLearner(make(), limits=Limits(classes=5))
        with serving(service) as client:
            learn(client, [{"text": "a", "label": wrap(i)} for i in range(5)] * 2)
            refused(send(client, "/learn", {"text": "a", "label": wrap(5)}), 422, "labels must be at most 5, got 6")
            learn(client, {"text": "a", "label": wrap(4)})
            assert service.model.n_learned == 11


def test_a_model_of_very_many_labels_a_message_answers_fewer_messages_at_a_time(monkeypatch):
    monkeypatch.setattr(label_checks, "MOST_ANSWERED", 30)
    service = LiveLearner(several_labels())
    with serving(service) as client:
        learn(client, [{"text": "x", "label": ["a", "b", "c"]}] * 10)
        too_many = [{"text": "x", "label": ["d"]}] * 10
        refused(send(client, "/learn", too_many), 422, "messages with up to 4")
        refused(send(client, "/predict", [{"text": "x"}] * 11), 422, "at most 10 a request")
        predict(client, [{"text": "x"}] * 10)
    assert service.model.n_learned == 10


def test_a_body_that_does_not_come():
    sent = []
    app = create_app(LiveLearner(TextClassifier(), limits=Limits(seconds=0.05)))
    asyncio.run(begin(app, "/learn", [part(b"", more=True)], sent.append))
    assert sent[0]["status"] == 408


def test_a_client_that_closes_the_connection_sees_that_its_body_is_too_large(serve):
    """urllib sends all of it before it reads."""
    served = serve()
    for n in 1, 2, 3:
        asked = urllib.request.Request(f"{served.url}/predict", b" " * (n * (8 << 20) + 1), JSON)
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(asked, timeout=60)
        assert refusal.value.code == 413
        refusal.value.close()


def test_a_body_that_is_too_large_is_not_read_for_ever(monkeypatch):
    monkeypatch.setattr(bodies, "MOST_PASSED_OVER", 1_000)
    for head in ([part(b" " * 100, more=True)], [part(b" " * 11, more=True)]):
        sent, rest = [], [*head, *[part(b" " * 100, more=True)] * 30]
        app = create_app(LiveLearner(TextClassifier(), limits=Limits(body=10)))
        asyncio.run(begin(app, "/learn", rest, sent.append))
        assert sent[0]["status"] == 413


@pytest.mark.parametrize("path", ["/predict", "/learn"])
def test_a_large_answer_is_made_as_the_client_takes_it(path):
    """Others are answered meanwhile, and it never stands in memory as a whole."""
    model = TextClassifier()
    labels = [f"{i}" + "x" * 4_000 for i in range(12)]  # of a model that was trained elsewhere
    model.learn_many([f"word{i}" for i in range(12)], labels)
    app = create_app(LiveLearner(model))
    messages = [{"text": f"word{i % 12}", **({} if path == "/predict" else {"label": "new"})} for i in range(1_500)]
    sizes, beside = [], set()

    async def both():
        answered = lambda message: sizes.append(len(message.get("body", b"")))  # noqa: E731
        large = asyncio.create_task(begin(app, path, [part(json.dumps(messages).encode())], answered))
        while not large.done():
            await begin(app, "/healthz", [], lambda message: beside.add(len(sizes)))
            await asyncio.sleep(0)
        await large

    tracemalloc.start()
    try:
        asyncio.run(both())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 1_500 * 9 * 4_000
    assert max(sizes) < 4 << 20 and peak < 40 << 20
    assert len(beside) > 20


def test_each_request_gets_its_own_answers_and_one_that_fails_fails_alone():
    calls = []

    def answer(items):
        calls.append(items)
        if "bad" in items:
            raise ValueError("it is bad")
        return [item.upper() for item in items]

    async def ask():
        batching = MicroBatching(answer, most=10)
        asked = [["a", "b"], ["c"], [], ["bad"], ["d"] * 6, ["e"]]
        given_up = asyncio.ensure_future(batching.answers(["x"], 1))
        await asyncio.sleep(0)
        given_up.cancel()  # nobody waits for its answer
        all_of_them = asyncio.gather(*(batching.answers(each, len(each)) for each in asked), return_exceptions=True)
        return await asyncio.wait_for(all_of_them, 10)

    *right, last = asyncio.run(ask())
    failed = right.pop(3)
    assert right == [["A", "B"], ["C"], [], ["D"] * 6] and last == ["E"]
    with pytest.raises(ValueError, match="it is bad"):
        raise failed
    first, together, *alone, rest = calls
    assert together == ["a", "b", "c", "bad", *["d"] * 6]  # as many as go together, and no more
    assert alone == [["a", "b"], ["c"], [], ["bad"], ["d"] * 6] and (first, rest) == (["x"], ["e"])
