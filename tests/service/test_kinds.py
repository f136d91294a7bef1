"""The service of models of more than two classes: what they learn, answer, explain, and what strangers may send."""

import json
import math
import signal

import pytest
from kinds import ordered, several_classes, several_labels
from serving import MESSAGES, STREAM, bits, ok, refused, serving, wait

from stream_pegasos import KernelPegasosClassifier, TextClassifier
from stream_pegasos.operation import monitor
from stream_pegasos.service import Limits, Service
from stream_pegasos.service.operations import operations_of

msgspec = pytest.importorskip("msgspec")
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
    "several classes": (several_classes, THREE),
    "ordered": (ordered, STARS),
    "several labels": (several_labels, TOPICS),
}


def taught(kind):
    make, messages = KINDS[kind]
    service = Service(make())
    with serving(service) as client:
        answers = ok(client.post("/learn", json=messages))
        yield service, client, answers


@pytest.fixture(params=KINDS)
def of_each_kind(request):
    yield from taught(request.param)


@pytest.fixture
def of_classes():
    yield from taught("several classes")


@pytest.fixture
def of_labels():
    yield from taught("several labels")


def test_answers_have_the_most_probable_labels(of_each_kind):
    service, client, _ = of_each_kind
    text = "lost wheat so good"
    answer = ok(client.post("/predict", json={"text": text, "id": 7}))
    said = service.model.predictions([text])
    probabilities = dict(zip(said.classes, said.probabilities[0].tolist(), strict=True))
    assert answer["id"] == 7
    assert dict(map(tuple, answer["probabilities"])) == probabilities
    assert [p for _, p in answer["probabilities"]] == sorted(probabilities.values(), reverse=True)
    label = said.labels[0]
    if service.kind == "several labels":
        assert (answer["label"], answer["probability"]) == ([*label], [probabilities[each] for each in label])
    else:
        assert (answer["label"], answer["probability"]) == (label, probabilities[label])


def test_the_examples_of_openapi_work(of_each_kind):
    service, client, _ = of_each_kind
    schema = ok(client.get("/openapi.json"))
    types = {one.path: one.answers for one in operations_of(service, metrics=None)}
    for path in ("/predict", "/learn", "/explain"):
        content = schema["paths"][path]["post"]
        said = content["responses"]["200"]["content"]["application/json"]["examples"]["one message"]["value"]
        for name, example in content["requestBody"]["content"]["application/json"]["examples"].items():
            answer = ok(client.post(path, json=example["value"]))
            msgspec.convert(answer, types[path])
            first = answer if name == "one message" else answer[0]
            assert said.keys() == first.keys()
            assert isinstance(said["label"], list) == (service.kind == "several labels")
    seen = ok(client.get("/monitor"))
    assert seen["kind"] == service.kind
    assert seen["n"] == len(KINDS[service.kind][1]) + 3


def test_metrics_count_each_class(of_each_kind):
    service, client, _ = of_each_kind
    samples = {
        (sample.name.removeprefix("stream_pegasos_"), sample.labels.get("class")): sample.value
        for family in parser.text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }
    seen = ok(client.get("/monitor"))
    for row in seen["classes"]:
        label = str(row["label"])
        assert samples["class_messages_total", label] == row["n"]
        right = samples["class_right_total", label]
        assert (right / row["n"]) == pytest.approx(row["recall"])
        if row["precision"] is not None:
            assert right / samples["class_predicted_total", label] == pytest.approx(row["precision"])
    assert samples["classes", None] == len(service.model.classes)
    assert samples["macro_f1", None] == seen["macro_f1"]


def test_an_explanation_is_of_the_first_against_the_second(of_classes):
    service, client, _ = of_classes
    text = "lost pin"
    answer = ok(client.post("/explain", json={"text": text}))
    (first, _), (second, _), (third, _) = answer["probabilities"]
    assert (answer["label"], answer["explained"], answer["against"]) == (first, first, second)
    scores = dict(zip(service.model.classes, service.model.predictions([text]).scores[0].tolist(), strict=True))
    assert answer["margin"] == pytest.approx(scores[first] - scores[second])
    assert answer["margin"] == pytest.approx(sum(size for _, size in answer["contributions"]))
    answer = ok(client.post("/explain", json={"text": text, "label": third}))
    assert (answer["label"], answer["explained"], answer["against"]) == (first, third, None)
    assert answer["margin"] == pytest.approx(scores[third])
    refused(client.post("/explain", json={"text": text, "label": "eggs"}), 422, "does not know 'eggs'")


def test_of_two_classes_the_explanation_is_of_the_one_that_is_named(client):
    ok(client.post("/learn", json=MESSAGES))
    text = STREAM[0][0]
    plain = ok(client.post("/explain", json={"text": text}))
    assert ok(client.post("/explain", json={"text": text, "label": "spam"})) == plain
    other = ok(client.post("/explain", json={"text": text, "label": "ham"}))
    assert other["contributions"] == [[word, -size] for word, size in plain["contributions"]]


def test_every_class_can_be_asked_for(monkeypatch):
    monkeypatch.setattr(monitor, "SHARE_FOR_NAMES", math.inf)
    labels = [f"class {i}" for i in range(1_000)]
    with serving(Service(several_classes())) as client:
        ok(
            client.post(
                "/learn", json=[{"text": f"{label.replace(' ', '')}x word", "label": label} for label in labels]
            )
        )
        ok(client.post("/learn", json=[{"text": "word", "label": "class 5"}] * 2))
        seen = ok(client.get("/monitor"))
        assert len(seen["classes"]) == 20
        assert (seen["others"]["n_classes"], seen["others"]["n"]) == (980, 980)
        assert seen["classes"][0]["label"] == "class 5"
        assert len(json.dumps(seen)) < 50_000
        found = ok(client.get("/classes", params={"search": "CLASS 99", "limit": 5}))
        assert found["n"] == 11
        assert [row["label"] for row in found["classes"]] == ["class 99", *(f"class {i}" for i in range(990, 994))]
        assert len(ok(client.get("/classes", params={"limit": 10_000}))["classes"]) == 1_000
        words = ok(client.get("/words", params={"label": "class 5"}))
        assert "<s> word" in dict(map(tuple, words["positive"]))
        assert ok(client.get("/words", params={"label": '"class 5"'})) == words
        refused(client.get("/words", params={"label": "eggs"}), 404, "does not know")
        assert client.get("/classes", params={"limit": 0}).status_code == 422
        lines = client.get("/metrics").text.splitlines()
        counts = [line for line in lines if line.startswith("stream_pegasos_class_messages_total")]
        assert len(counts) == 21
        assert 'stream_pegasos_class_messages_total{class="other"} 980.0' in counts


def test_counters_never_go_back(of_classes):
    _, client, _ = of_classes

    def counts():
        lines = client.get("/metrics").text.splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line.startswith("stream_pegasos_class"))

    before = counts()
    late = [{"text": "another", "label": f"late {i}"} for i in range(30)]
    ok(client.post("/learn", json=late * 50))  # each of them is now commoner than the first ones
    after = counts()
    assert len(after) > len(before)
    assert all(float(after[name]) >= float(count) for name, count in before.items())
    ok(client.post("/learn", json=late[20:] * 50))
    assert all(float(count) >= float(after[name]) for name, count in counts().items())


STRANGE = ["a\u202eb", '"\\\n{}', "\ud800", "😀", "א", "x" * 200, True, 0, -(2**63), "<script>", "other"]


def test_labels_may_be_anything():
    service = Service(several_classes())
    with serving(service) as client:
        body = json.dumps([{"text": f"word{i}", "label": label} for i, label in enumerate(STRANGE * 3)])
        ok(client.post("/learn", content=body, headers={"content-type": "application/json"}))
        assert service.model.classes == tuple(STRANGE)
        families = [*parser.text_string_to_metric_families(client.get("/metrics").text)]
        messages = next(family for family in families if family.name == "stream_pegasos_class_messages")
        assert sum(sample.value for sample in messages.samples) == 3 * len(STRANGE)
        seen = client.get("/monitor").json()
        shown = [row["label"] for row in seen["classes"]]
        assert shown == [*STRANGE[:8], str(-(2**63)), *STRANGE[9:]]
        for label in shown:
            asked = json.dumps(label)
            assert client.get("/words", params={"label": asked}).status_code == 200, asked
            explained = json.dumps({"text": "word0", "label": label})
            response = client.post("/explain", content=explained, headers={"content-type": "application/json"})
            assert response.status_code == 200, asked


def test_labels_that_are_refused(of_each_kind):
    service, client, _ = of_each_kind
    n = service.model.n_learned
    several = service.kind == "several labels"
    for label in ("x" * 201, "x" * 1_000_000):
        refused(client.post("/learn", json={"text": "a", "label": [label] if several else label}), 413, "characters")
    refused(client.post("/learn", json={"text": "a", "label": "card" if several else ["card"]}), 422, "list")
    refused(client.post("/learn", json={"text": "a", "label": [" "] if several else " "}), 422, "blank")
    refused(client.post("/learn", json={"text": "a", "label": [["a"]]}), 422, "label")
    refused(client.post("/learn", json={"text": "a", "label": None}), 422, "label")
    if several:
        refused(client.post("/learn", json={"text": "a", "label": ["a"] * 1_001}), 413, "1,001 labels")
    assert service.model.n_learned == n


def test_labels_do_not_become_too_many():
    """As where a field of ids is taken for the label."""
    limits = Limits(classes=5)
    for make, wrap in ((several_classes, lambda label: label), (several_labels, lambda label: [label])):
        service = Service(make(), limits=limits)
        with serving(service) as client:
            ok(client.post("/learn", json=[{"text": "a", "label": wrap(i)} for i in range(5)] * 2))
            refused(client.post("/learn", json={"text": "a", "label": wrap(5)}), 422, "6 labels; there may be 5")
            ok(client.post("/learn", json={"text": "a", "label": wrap(4)}))
            assert service.model.n_learned == 11


def test_labels_are_lists_where_they_hold_together(of_labels):
    service, client, _ = of_labels
    answer = ok(client.post("/learn", json={"text": "wheat exports rose", "label": ["wheat", "grain", "wheat", "7"]}))
    assert answer["learned"]
    assert sorted(answer["label"]) == ["grain", "wheat"]
    assert 7 in service.model.classes  # as the readers of streams have it
    assert ok(client.post("/predict", json={"text": "no news"}))["label"] == []
    newest = ok(client.get("/monitor"))["newest"]
    assert newest[0]["label"] is newest[0]["right"] is None
    assert (newest[1]["label"], newest[1]["right"]) == (["wheat", "grain", 7], False)


def test_a_model_is_described(of_each_kind):
    service, client, _ = of_each_kind
    described = ok(client.get("/model"))
    assert described["classes"] == list(service.model.classes)
    assert described["classifier"] == type(service.model.classifier).__name__
    parameters = described["parameters"]["classifier"]
    if service.kind != "several classes":
        parameters = parameters["classifier"]
        assert parameters["kind"] == "AdaptiveClassifier"
    assert parameters["half_life"] == 10_000


def test_a_model_without_weights_is_served():
    service = Service(TextClassifier(classifier=KernelPegasosClassifier()))
    with serving(service) as client:
        ok(client.post("/learn", json=MESSAGES[:20]))
        assert ok(client.get("/monitor"))["words"] is None
        refused(client.get("/words"), 404, "no weights")
        refused(client.post("/explain", json={"text": "win"}), 422, "linear")
        assert ok(client.post("/predict", json={"text": "win"}))["label"] in ("ham", "spam")


def test_a_checkpoint_of_several_classes_goes_on(of_classes):
    service, *_ = of_classes
    snapshot = service.snapshot()
    model = several_classes()
    model.learn_many([message["text"] for message in THREE], [message["label"] for message in THREE])
    assert bits(model) == bits(service.model)
    resumed = Service(model, progress=json.loads(json.dumps(snapshot.progress)))
    of_time = ("uptime_seconds", "docs_per_second", "newest", "n_failed", "checkpoint")
    before, after = service.view(), resumed.view()
    assert {name: after[name] for name in after if name not in of_time} == {
        name: before[name] for name in before if name not in of_time
    }


OPTIONS = {"several classes": [], "ordered": ["--ordered"], "several labels": ["--multi-label", "--half-life", 500]}


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_command_goes_on_after_a_kill(kind, serve, tmp_path):
    _, messages = KINDS[kind]
    options = [*OPTIONS[kind], "--checkpoint", tmp_path / "model", "--checkpoint-seconds", 0.1]
    served = serve(*options)
    ok(served.client.post("/learn", json=messages))
    wait(lambda: ok(served.client.get("/monitor"))["checkpoint"]["seconds_ago"] is not None)
    before = ok(served.client.get("/monitor"))
    served.end(signal.SIGKILL)
    served = serve(*options)
    after = ok(served.client.get("/monitor"))
    assert after["kind"] == kind
    assert after["n"] == len(messages)
    for name in ("accuracy", "classes", "confused", "curve", "macro_f1", "reliability"):
        assert after.get(name) == before.get(name)
    ok(served.client.post("/learn", json=messages[:3]))
    served.end()
