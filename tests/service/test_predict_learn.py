"""What the service predicts, learns and explains is what the model does."""

import json
import math
import subprocess

import pytest
from serving import COMMAND, MESSAGES, STREAM, bits, learned, ok, refused, serving

from stream_pegasos import AdaptiveClassifier, PegasosClassifier, TextClassifier
from stream_pegasos.evaluation.prequential import evaluate, predict
from stream_pegasos.operation import monitor
from stream_pegasos.service import Service
from stream_pegasos.streams import synthetic


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


def test_it_says_where_a_limit_decides():
    options = {"pos_label": "spam", "max_false_positive_rate": 0.005}
    model = TextClassifier(classifier=AdaptiveClassifier(**options))
    with serving(Service(model)) as client:
        ok(client.post("/learn", json=MESSAGES))
        texts = [text for text, _ in synthetic(n=1_000, seed=9)]
        answers = ok(client.post("/predict", json=[{"text": text} for text in texts]))
        probable = [model.predict_proba_one(text)["spam"] > 0.5 for text in texts]
        held = [answer.get("withheld") == ["spam"] for answer in answers]
        assert held == [p and answer["label"] == "ham" for p, answer in zip(probable, answers, strict=True)]
        assert any(held) and not all(held)
        text = texts[held.index(True)]
        assert ok(client.post("/explain", json={"text": text}))["withheld"] == ["spam"]
        ok(client.post("/predict", json={"text": text}))
        assert ok(client.get("/monitor"))["newest"][0]["withheld"] == ["spam"]


def test_before_anything_is_learned(client):
    assert ok(client.post("/predict", json={"text": "win"})) == {"label": None, "probability": None, "margin": 0.0}
    assert ok(client.post("/predict", json=[])) == []
    assert ok(client.post("/learn", json=[])) == []
    monitor = ok(client.get("/monitor"))
    assert monitor["n"] == 0
    assert monitor["accuracy"] is None


def test_ids_come_back_as_they_were(client):
    ids = ["a", 7, "", "é\ud800", 2**63 - 1]
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


def test_a_model_whose_texts_stand_in_a_field_takes_them_as_they_are(monkeypatch):
    for name in ("SHARE_FOR_NAMES", "FOR_NAMES_AT_ONCE"):  # or the time decides which words have names
        monkeypatch.setattr(monitor, name, math.inf)
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


def test_a_model_to_begin_with_and_a_port_in_use(serve, tmp_path):
    learned().save(tmp_path / "m.safetensors")
    served = serve(tmp_path / "m.safetensors")
    assert ok(served.client.get("/model"))["classes"] == ["ham", "spam"]
    port = served.url.rpartition(":")[2]
    again = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True, timeout=60)
    assert again.returncode == 1 and f"port {port} of 127.0.0.1 is in use; name another one by --port" in again.stderr


def test_the_command_fixes_the_labels(serve):
    served = serve("--labels", "spam,ham")
    refused(
        served.client.post("/learn", json=[MESSAGES[0], {"text": "a", "label": "Spam"}]), 422, "none of 'spam', 'ham'"
    )
    assert ok(served.client.get("/asked"))["labels"] == ["spam", "ham"]
    for options in (["--labels", "spam"], ["--labels", "good,bad", "--ordered"]):
        wrong = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=60)
        assert wrong.returncode == 2 and "--labels" in wrong.stderr
