"""The service of each kind of model: what it answers, explains and tells of itself."""

import json
import re
import sys

import msgspec
import pytest
from kinds import ordered, several_labels
from serving import MESSAGES, learn, name_all_features, ok, predict, refused, send, serving

import stream_pegasos
from stream_pegasos import AdaptiveClassifier, KernelPegasosClassifier, TextClassifier
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.service.operations import make_operations

parser = pytest.importorskip("prometheus_client.parser")

WORDS = {"card": "lost my card", "fee": "a fee was charged", "pin": "the pin is blocked"}
THREE = [{"text": f"{WORDS[label]} {i % 7}", "label": label} for i in range(40) for label in WORDS]
TOPICS = [
    {"text": text, "label": labels}
    for _ in range(30)
    for text, labels in (("wheat exports rose", ["grain", "wheat"]), ("oil fell", ["oil"]), ("no news", []))
]
STARS = [{"text": ("bad bad", "so so", "good", "great great")[i % 4], "label": i % 4} for i in range(120)]
KINDS = {
    "two classes": (TextClassifier, MESSAGES),
    "three classes": (TextClassifier, THREE),
    "ordered": (ordered, STARS),
    "several labels": (several_labels, TOPICS),
}


def taught(kind):
    make, messages = KINDS[kind]
    service = LiveLearner(make())
    with serving(service) as client:
        learn(client, messages)
        yield service, client


@pytest.fixture(params=KINDS)
def case(request):
    return request.param


@pytest.fixture
def of_each_kind(case):
    yield from taught(case)


@pytest.fixture
def of_classes():
    yield from taught("three classes")


@pytest.fixture
def of_labels():
    yield from taught("several labels")


def samples_of(client):
    """What Prometheus reads, by name and class."""
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    return {
        (sample.name.removeprefix("stream_pegasos_"), *sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def test_answers_have_the_most_probable_labels(of_each_kind, case):
    service, client = of_each_kind
    text = "lost wheat so good"
    answer = predict(client, {"text": text, "id": 7})
    said = service.model.predictions([text])
    label = said.labels[0]
    probabilities = dict(zip(said.classes, said.probabilities[0].tolist(), strict=True))
    assert answer["id"] == 7
    if service.monitor.kind == "several labels":
        assert (answer["label"], answer["probability"]) == ([*label], [probabilities[each] for each in label])
    else:
        assert (answer["label"], answer["probability"]) == (label, probabilities[label])
    if case == "three classes":
        next_best, best = sorted(service.model.decision_function_one(text).values())[-2:]
        assert answer["margin"] == best - next_best
    if case == "two classes":
        assert answer["margin"] == service.model.decision_function_one(text)
        answer = ok(client.post("/explain", json={"text": text}))
    assert dict(map(tuple, answer["probabilities"])) == probabilities
    assert [p for _, p in answer["probabilities"]] == sorted(probabilities.values(), reverse=True)


def test_the_examples_of_openapi_work(of_each_kind, case):
    service, client = of_each_kind
    schema = ok(client.get("/openapi.json"))
    types, tried = {one.path: one.answers for one in make_operations(service, metrics=None)}, 0
    for path in ("/predict", "/learn", "/explain"):
        content = schema["paths"][path]["post"]
        examples = content["responses"]["200"]["content"]["application/json"]["examples"]
        said = examples["one message"]["value"]
        sent = content["requestBody"]["content"]["application/json"]["examples"]
        assert examples.keys() == sent.keys()
        for name, example in sent.items():
            answer = ok(client.post(path, json=example["value"]))
            msgspec.convert(answer, types[path])
            first = answer if name == "one message" else answer[0]
            assert said.keys() - {"margin", "probabilities"} == first.keys() - {"margin", "probabilities"}
            assert "margin" in first and (path == "/explain" or (case == "two classes") != ("probabilities" in first))
            assert isinstance(said["label"], list) == (service.monitor.kind == "several labels")
            tried += 1
    seen = ok(client.get("/monitor"))
    assert (seen["n"], tried) == (len(KINDS[case][1]) + 3, 5)
    for path, methods in schema["paths"].items():
        assert "post" in methods or client.get(path).status_code == 200, path
    service.model.set_decision(coverage=0.9)
    for path in ("/predict", "/explain"):
        content = ok(client.get("/openapi.json"))["paths"][path]["post"]
        said = content["responses"]["200"]["content"]["application/json"]["examples"]["one message"]["value"]
        sent = content["requestBody"]["content"]["application/json"]["examples"]["one message"]["value"]
        assert [*said["set"]] and "set" in ok(client.post(path, json=sent))


def test_docs_say_what_openapi_says_without_scripts(of_each_kind):
    _, client = of_each_kind
    response, schema = client.get("/docs"), ok(client.get("/openapi.json"))
    page = response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert not re.search(r"<script|<style|style=|https?://|//", page.replace("message/rfc822", ""))
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert f"<code>{method.upper()} {path}</code>" in page and operation["summary"].split("'")[0] in page
    assert (
        {*re.findall('href="#(.+?)"', page)} <= {*re.findall('id="(.+?)"', page)} == {*schema["components"]["schemas"]}
    )


def test_metrics_are_those_of_the_monitor(client):
    learn(client, MESSAGES[:100])
    for _ in range(3):
        predict(client, MESSAGES[:5])
    client.post("/learn", json={"text": "a"})
    client.get("/nothing")
    seen, samples = ok(client.get("/monitor")), samples_of(client)
    for name, value in {
        "messages_learned_total": seen["n"],
        "messages_unanswered_total": seen["n_unanswered"],
        "predictions_total": seen["n_predictions"],
        "drifts_total": len(seen["drifts"]),
        "features": seen["model"]["n_features"],
    }.items():
        assert samples[(name,)] == value, name
    assert (seen["n"], seen["n_unanswered"], seen["n_predictions"], seen["n_refused"]) == (100, 1, 15, 2)
    assert samples[("failed_requests_total",)] == seen["n_failed"] == 0
    assert samples["refused_requests_total", "422"] == samples["refused_requests_total", "404"] == 1
    assert samples["build_info", stream_pegasos.engine.NAME, stream_pegasos.__version__] == 1
    for path, status, n in (("/predict", 200, 3), ("/learn", 200, 1), ("/learn", 422, 1), ("other", 404, 1)):
        assert samples["requests_total", path, str(status)] == n
    assert samples["request_seconds_count", "/predict"] == 3
    assert ("process_resident_memory_bytes",) in samples or sys.platform != "linux"


def test_metrics_have_all_figures_and_count_each_class(of_each_kind):
    service, client = of_each_kind
    samples, seen = samples_of(client), ok(client.get("/monitor"))
    for row in seen["classes"]:
        label = str(row["label"])
        assert samples["class_messages_total", label] == row["n"]
        right = samples["class_right_total", label]
        assert right / row["n"] == pytest.approx(row["recall"])
        if row["precision"] is not None:
            assert right / samples["class_predicted_total", label] == pytest.approx(row["precision"])
    assert samples[("classes",)] == len(service.model.classes)
    for name, value in service.monitor.score.metrics().items():
        place = seen["window"] if name.startswith("window_") else seen
        assert samples[(name,)] == value == place[name.removeprefix("window_")]


def test_counters_never_go_back(of_classes):
    _, client = of_classes
    late, before = [{"text": "another", "label": f"late {i}"} for i in range(30)], samples_of(client)
    for more in (late * 50, late[20:] * 50):  # each of them is now commoner than the first ones
        learn(client, more)
        after = samples_of(client)
        assert all(after[name] >= count for name, count in before.items() if name[0].startswith("class_"))
        before = after
    assert len([name for name in after if name[0] == "class_messages_total"]) == 21  # with the others together


@pytest.mark.parametrize("case", ["two classes", "three classes"])
def test_an_explanation_is_of_the_first_against_the_second(of_each_kind, case):
    service, client = of_each_kind
    text = "lost pin" if case == "three classes" else "win lunch"
    answer = ok(client.post("/explain", json={"text": text}))
    labels = [label for label, _ in answer["probabilities"]]
    margins = service.model.decision_function_one(text)
    if case == "two classes":  # whose one margin is that of spam against ham
        margins = {labels[0]: abs(margins), labels[1]: 0.0}
    assert (answer["label"], answer["explained"], answer["against"]) == (labels[0], *labels[:2])
    assert answer["margin"] == pytest.approx(margins[labels[0]] - margins[labels[1]])
    assert answer["margin"] == pytest.approx(sum(size for _, size in answer["contributions"]))
    named = ok(client.post("/explain", json={"text": text, "label": labels[-1]}))
    assert (named["label"], named["explained"], named["against"]) == (labels[0], labels[-1], None)
    assert named["margin"] == pytest.approx(-answer["margin"] if case == "two classes" else margins[labels[-1]])
    refused(client.post("/explain", json={"text": text, "label": "eggs"}), 422, "does not know 'eggs'")


@pytest.mark.filterwarnings("ignore:.* these look like numbers to be predicted")
def test_every_class_can_be_asked_for(monkeypatch):
    name_all_features(monkeypatch)
    labels = [f"class {i}" for i in range(1_000)]
    with serving(LiveLearner(TextClassifier())) as client:
        learn(client, [{"text": f"{label.replace(' ', '')}x word", "label": label} for label in labels])
        learn(client, [{"text": "word", "label": "class 5"}] * 2)
        seen = ok(client.get("/monitor"))
        assert len(seen["classes"]) == 20 and seen["classes"][0]["label"] == "class 5"
        assert (seen["others"]["n_classes"], seen["others"]["n"]) == (980, 979)  # the first had no answer
        assert len(json.dumps(seen)) < 50_000
        found = ok(client.get("/monitor", params={"search": "CLASS 99", "limit": 5}))["found"]
        assert found["n"] == 11
        assert [row["label"] for row in found["classes"]] == ["class 99", *(f"class {i}" for i in range(990, 994))]
        assert len(ok(client.get("/monitor", params={"search": "", "limit": 10_000}))["found"]["classes"]) == 1_000
        assert len(ok(client.get("/monitor?search=class"))["found"]["classes"]) == 20 and "found" not in seen
        words = ok(client.get("/monitor", params={"label": "class 5"}))["words"]
        assert "<s> word" in dict(map(tuple, words["positive"]))
        assert ok(client.get("/monitor", params={"label": '"class 5"'}))["words"] == words
        refused(client.get("/monitor", params={"label": "eggs"}), 404, "does not know")
        assert client.get("/monitor", params={"limit": 0}).status_code == 422
        assert samples_of(client)["class_messages_total", "other"] == 979


STRANGE = ["a\u202eb", '"\\\n{}', "\ud800", "😀", "א", "x" * 200, True, 0, -(2**63), "<script>", "other"]


def test_labels_may_be_anything():
    service = LiveLearner(TextClassifier())
    with serving(service) as client:
        learn(client, [{"text": f"word{i}", "label": label} for i, label in enumerate(STRANGE * 3)])
        assert service.model.classes == tuple(STRANGE)
        counts = [n for name, n in samples_of(client).items() if name[0] == "class_messages_total"]
        assert sum(counts) == 3 * len(STRANGE) - 1  # the first had no answer
        shown = [row["label"] for row in client.get("/monitor").json()["classes"]]
        assert shown == [*STRANGE[1:8], str(-(2**63)), *STRANGE[9:], STRANGE[0]]  # the commonest first
        for label in shown:
            ok(client.get("/monitor", params={"label": json.dumps(label)}))
            ok(send(client, "/explain", {"text": "word0", "label": label}))


def test_labels_that_are_refused(of_each_kind):
    service, client = of_each_kind
    n, several = service.model.n_learned, service.monitor.kind == "several labels"
    for label in ("x" * 201, "x" * 1_000_000):
        sent = {"text": "a", "label": [label] if several else label}
        refused(send(client, "/learn", sent), 413, "characters")
    for label, word in (
        ("card" if several else ["card"], "list"),
        ([" "] if several else " ", "blank"),
        ([["a"]], "label"),
        (None, "label"),
    ):
        refused(send(client, "/learn", {"text": "a", "label": label}), 422, word)
    if several:
        refused(send(client, "/learn", {"text": "a", "label": ["a"] * 1_001}), 413, "got 1,001")
    assert service.model.n_learned == n


def test_labels_are_lists_where_they_hold_together(of_labels):
    service, client = of_labels
    answer = learn(client, {"text": "wheat exports rose", "label": ["wheat", "grain", "wheat", "7"]})
    assert answer["learned"] and sorted(answer["label"]) == ["grain", "wheat"]
    assert 7 in service.model.classes  # as the readers of streams have it
    assert predict(client, {"text": "no news"})["label"] == []
    newest = ok(client.get("/monitor"))["newest"]
    assert newest[0]["label"] is newest[0]["right"] is None
    assert (newest[1]["label"], newest[1]["right"]) == (["wheat", "grain", 7], False)


def test_a_model_is_described(of_each_kind):
    service, client = of_each_kind
    assert "parameters" not in ok(client.get("/monitor"))["model"]
    described = ok(client.get("/monitor?model=true"))["model"]
    assert (described["kind"], described["classes"]) == ("TextClassifier", [*service.model.classes])
    assert described["classifier"] == type(service.model.classifier).__name__
    parameters = described["parameters"]["classifier"]
    if service.monitor.kind in ("ordered", "several labels"):
        parameters = parameters["classifier"]
        assert parameters["kind"] == "AdaptiveClassifier"
    assert parameters["half_life"] == "auto"


def test_a_third_label_of_two_is_taken_where_it_has_no_weight():
    service = LiveLearner(TextClassifier(classifier=KernelPegasosClassifier()))
    with serving(service) as client:
        learn(client, [{"text": text, "label": text} for text in ("spam", "ham")])
        refused(client.post("/learn", json={"text": "eggs", "label": "eggs"}), 422, "a third one")
        assert not learn(client, {"text": "eggs", "label": "eggs", "weight": 0})["learned"]
    assert service.model.classes == ("spam", "ham") and service.model.n_learned == 2


def test_a_model_without_weights_and_one_of_few_features():
    with serving(LiveLearner(TextClassifier(classifier=KernelPegasosClassifier()))) as client:
        learn(client, MESSAGES[:20])
        assert not ok(client.get("/monitor"))["model"]["has_weights"]
        refused(client.get("/monitor?label="), 404, "no weights")
        refused(client.post("/explain", json={"text": "win"}), 422, "linear")
        assert predict(client, {"text": "win"})["label"] in ("ham", "spam")
    model = TextClassifier(classifier=AdaptiveClassifier(max_features=50, drift_detector=None))
    with serving(LiveLearner(model)) as client:
        learn(client, MESSAGES[:50])
        assert ok(client.get("/monitor"))["model"]["n_features"] == len(model.weights) <= 50
