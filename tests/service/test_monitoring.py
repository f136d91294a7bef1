"""What the service says of itself: OpenAPI, metrics, the model."""

import sys

import pytest
from serving import MESSAGES, ok, serving

from stream_pegasos import AdaptiveClassifier, TextClassifier
from stream_pegasos.service import Service

parser = pytest.importorskip("prometheus_client.parser")


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


def test_watchdogs_may_ask_for_the_head_alone(client):
    for path in ("/", "/healthz", "/metrics"):
        assert client.head(path).status_code == 200
