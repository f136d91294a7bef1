"""Requests, and models to begin with, that are refused; what strangers get."""

import gzip
import re

import pytest
from running import bits
from serving import GOOD, learn, learned, not_served, ok, predict, refused, send, serving, testclient

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MailFeatures,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
)
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.service import AccessLog, create_app
from stream_pegasos.service.app import PAGE_FILES

BAD = {
    "list of labels": [GOOD, {"text": "b", "label": ["eggs"]}],
    "list in the middle": [{"text": "a", "label": "ham"}, {"text": "b", "label": []}, GOOD],
    "no text": [GOOD, {"label": "ham"}],
    "text of another type": [GOOD, {"text": 1, "label": "ham"}],
    "no label": [GOOD, {"text": "a"}],
    "blank label": [GOOD, {"text": "a", "label": " "}],
    "label of another type": [GOOD, {"text": "a", "label": [1]}],
    "label that is no integer": [GOOD, {"text": "a", "label": 1.5}],
    "label that is null": [GOOD, {"text": "a", "label": None}],
    "label of more than 64 bits": [GOOD, {"text": "a", "label": 2**63}],
    "label of very many digits": [GOOD, {"text": "a", "label": int("9" * 4_000)}],
    "negative weight": [GOOD, {"text": "a", "label": "ham", "weight": -1}],
    "weight that is too large": [GOOD, {"text": "a", "label": "ham", "weight": 1e31}],
    "weight of another type": [GOOD, {"text": "a", "label": "ham", "weight": "heavy"}],
    "no message": [GOOD, "text"],
    "no object": "text",
    "id of another type": [GOOD, {"text": "a", "label": "ham", "id": {}}],
}
RAW = [
    b"",
    b"{",
    b"[" * 100_000,
    b'{"text": "a", "label": NaN}',
    b'{"text": "a", "label": "b", "weight": Infinity}',
    b'{"text": "\\ud800", "label": "b", "weight": NaN}',
    b'{"text": "\\ud800"',
    b"\xff\xfe",
    b'{"text": "\xff", "label": "a"}',
    b"null",
    b"1",
    b'{"text": "a", "label": 1e400}',
    b'{"text": "a", "label": ' + b"9" * 5_000 + b"}",
]


def test_a_request_that_fails_learns_nothing():
    service = LiveLearner(learned())
    before = bits(service.model)
    with serving(service) as client:
        for which, body in BAD.items():
            refused(send(client, "/learn", body), 422, "list" if "list" in which else "")
        for content in RAW:
            headers = {"content-type": "application/json"}
            refused(client.post("/learn", content=content, headers=headers), 422, "")
        seen = ok(client.get("/monitor"))
        assert bits(service.model) == before and (seen["n"], seen["n_failed"]) == (0, 0)
        assert seen["n_refused"] == len(BAD) + len(RAW)
        learn(client, GOOD)
    assert bits(service.model) != before


@pytest.mark.parametrize("again", ["a", "\\u0061", " a "])
@pytest.mark.parametrize("text", ["win", "\\ud800"])
def test_a_label_that_is_described_twice_is_refused(client, again, text):
    body = f'{{"b": null, "a": "{text}", "{again}": ["lunch"]}}'
    headers = {"content-type": "application/json"}
    refused(client.post("/describe", content=body, headers=headers), 422, "label 2: it must be described once")
    assert ok(client.post("/describe", content=body.replace(f'"{again}": [', '"c": ['), headers=headers))["n_learned"]


def test_two_third_labels_of_a_model_for_two_that_knows_none_yet():
    service = LiveLearner(TextClassifier(classifier=KernelPegasosClassifier()))
    before = bits(service.model)
    with serving(service) as client:
        messages = [{"text": "x" * 40_000, "label": label} for label in ("a", "b", "a", "c")]  # in several slices
        refused(client.post("/learn", json=messages), 422, "'c' is a third one")
    assert bits(service.model) == before


def test_which_label_is_positive_must_be_said_where_a_decision_rests_on_it():
    model = TextClassifier(classifier=AdaptiveClassifier(max_false_positive_rate=0.1))
    with serving(LiveLearner(model)) as client:
        refused(send(client, "/learn", [GOOD, {"text": "b", "label": "ham"}]), 422, "pos_label")
        assert ok(client.get("/monitor"))["n"] == 0 and model.n_iterations == 0
        learn(client, [{"text": "a", "label": True}, {"text": "b", "label": False}])


@pytest.mark.parametrize(
    ("path", "key", "nearest"),
    [
        ("/predict", "ID", "id"),
        ("/learn", "wieght", "weight"),
        ("/learn", "Label", "label"),
        ("/explain", "txt", "text"),
        ("/teach", "nubmer", "number"),
        ("/teach", "take-back", "take_back"),
        ("/learn", "x" * 1_000, "text"),
    ],
)
def test_a_key_that_is_misspelt_is_refused(client, path, key, nearest):
    sent = {"number": 1, "label": "a"} if path == "/teach" else GOOD
    told = f"unknown key {key[:50]!r}; the nearest one is {nearest!r}"
    for value in (1, float("nan"), "\ud800"):
        refused(send(client, path, {**sent, key: value}), 422, told)
    if path in ("/predict", "/learn"):
        refused(send(client, path, [sent, {**sent, key: 1}]), 422, told)


def test_a_parameter_that_is_misspelt_is_refused(client):
    refused(client.get("/monitor", params={"serach": "a"}), 422, "'serach'; the nearest one is 'search'")


def test_paths_that_are_none(client):
    for path, status in (("/nothing", 404), ("/learn/", 404), ("/learn", 405), ("/redoc", 404)):
        assert client.get(path).status_code == status
    assert client.head("/learn").status_code == 405
    for path in ("/", "/healthz", "/metrics"):  # watchdogs may ask for the head alone
        assert client.head(path).status_code == 200


def test_what_the_command_refuses(tmp_path):
    PegasosClassifier().save(tmp_path / "model")
    TextClassifier(classifier=OrdinalClassifier()).save(tmp_path / "ordered")
    (tmp_path / "token").write_text("\n", encoding="utf-8")
    for options, code, reason in (
        (["--checkpoint", tmp_path / "model"], 1, "is a model of features, not of texts"),
        (["--token-file", tmp_path / "token"], 1, "is empty"),
        ([tmp_path / "ordered", "--labels", "good,bad"], 2, "must be an integer"),
    ):
        found, said = not_served(*options)
        assert found == code and reason in said


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", None])
@pytest.mark.parametrize("features", [TextFeatures(), MailFeatures()], ids=["texts", "mails"])
def test_what_any_web_page_can_send_without_asking_is_refused(features, kind):
    """A browser sends these types to any address (a form, or fetch without CORS); others it asks for first."""
    service = LiveLearner(TextClassifier(features), active_learning=ActiveLearning(10))
    app = create_app(service)
    with testclient.TestClient(app) as client:
        paths = [each.path for each in app.routes if "POST" in (each.methods or {"POST"})]
        assert {"/predict", "/learn", "/describe", "/explain", "/teach"} <= {*paths}
        for path in paths:
            for body in (b'{"text": "a", "label": "b", "number": 1}', b"Subject: a\n\nb", b""):
                headers = {} if kind is None else {"content-type": kind}
                refused(
                    client.post(path, content=body, params={"label": "b"}, headers=headers), 415, "application/json"
                )
            for json in ("application/json", "Application/JSON; charset=utf-8"):
                assert client.post(path, content=b"{}", headers={"content-type": json}).status_code == 422
        assert (len(service.active_learning), service.model.n_learned) == (0, 0)


def test_an_encoded_body_is_refused_by_the_name_of_its_encoding():
    with serving(LiveLearner(TextClassifier())) as client:
        for encoding in ("gzip", "br", "GZIP, deflate"):
            headers = {"content-type": "application/json", "content-encoding": encoding}
            answer = client.post("/learn", content=gzip.compress(b"{}"), headers=headers)
            refused(answer, 415, f"the content encoding must be none, got {encoding.lower()}")
        headers = {"content-type": "application/json", "content-encoding": "identity"}
        assert client.post("/learn", content=b"{}", headers=headers).status_code == 422


def test_foreign_names_are_refused():
    app = create_app(LiveLearner(TextClassifier()), ("localhost", "127.0.0.1"))
    with testclient.TestClient(app, base_url="http://localhost") as client:
        predict(client, {"text": "a"})
        ok(client.post("/predict", json={"text": "a"}, headers={"host": "127.0.0.1:8000"}))
        for host in ("evil.example", "localhost.evil.example"):
            for path, status in (("/", 400), ("/monitor", 400), ("/healthz", 200)):  # which tells nothing
                assert client.get(path, headers={"host": host}).status_code == status
            assert client.post("/learn", json=GOOD, headers={"host": host}).status_code == 400
        assert ok(client.get("/monitor"))["n"] == 0


def test_a_proxy_may_pass_the_name_on_that_it_has_and_a_token_stands_in_a_file(serve, tmp_path):
    served = serve("--allowed-host", "mail.example.org", "--allowed-host", "*.example.net")
    for host, status in (
        ("127.0.0.1", 200),
        ("mail.example.org", 200),
        ("Mail.Example.Org:8443", 200),
        ("a.example.net", 200),
        ("example.org", 400),
        ("evil.example", 400),
    ):
        assert served.client.get("/monitor", headers={"host": host}).status_code == status
    assert any("anyone who reaches mail.example.org or *.example.net" in line for line in served.lines)
    (tmp_path / "token").write_text("secret\n", encoding="utf-8")
    served = serve("--token-file", tmp_path / "token")
    refused(send(served.client, "/learn", GOOD), 401, "token")
    ok(served.client.post("/learn", json=GOOD, headers={"authorization": "Bearer secret"}))


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "é"]
)
def test_a_wrong_token(given):
    with serving(LiveLearner(TextClassifier(), token="secret")) as client:
        headers = {} if given is None else {"authorization": given.encode()}
        for method, path in (
            *(("POST", path) for path in ("/learn", "/predict", "/describe", "/explain", "/teach")),
            *(("GET", path) for path in ("/asked", "/learned", "/monitor", "/metrics")),
            *(("GET", path) for path in ("/openapi.json", "/nothing")),
        ):
            response = client.request(method, path, json=GOOD, headers=headers)
            refused(response, 401, "token")
            assert response.headers["www-authenticate"] == "Bearer"
        for path in (*PAGE_FILES, "/docs", "/healthz"):
            assert client.get(path, headers=headers).status_code == 200
        for scheme in ("Bearer", "bearer"):  # in any case, as HTTP has it
            right = {"authorization": f"{scheme} secret"}
            assert ok(client.get("/monitor", headers=right))["n"] == 0
        assert "token" in ok(client.get("/openapi.json", headers=right))["components"]["securitySchemes"]


def test_a_kind_of_refusal_is_one_line_without_a_word_of_strangers(caplog):
    service = LiveLearner(TextClassifier(), token="secret")
    right = {"authorization": "Bearer secret"}
    with serving(service, raise_server_exceptions=False) as client:
        for i in range(5):
            client.get(f"/stranger{i}")
            client.get(f"/stranger{i}", headers=right)
        client.get("/learn", headers=right)
        client.post("/learn", headers=right | {"content-type": "text/stranger"}, content=b"stranger")
        client.post("/learn", headers=right, json={"stranger": 1})
        assert caplog.text == ""
        seen = ok(client.get("/monitor", headers=right))
        assert (seen["n_failed"], seen["n_refused"]) == (0, 13)
    lines = sorted(record.getMessage() for record in caplog.records)
    assert [line.partition(",")[0] for line in lines] == [
        *(f"1 request refused within a minute: {status}" for status in (405, 415, 422)),
        *(f"5 requests refused within a minute: {status}" for status in (401, 404)),
    ]
    assert "stranger" not in caplog.text and "401, the bearer token is missing or wrong" in caplog.text


def test_what_the_service_cannot_do_is_a_failure(caplog):
    service = LiveLearner(TextClassifier())
    with serving(service) as client:
        service._ending = True
        refused(send(client, "/learn", GOOD), 503, "ending")
        seen = ok(client.get("/monitor"))
        assert (seen["n_failed"], seen["n_refused"]) == (1, 0)
        assert 'status="503"' not in client.get("/metrics").text.partition("refused_requests")[2].partition("#")[0]
    assert "1 request refused within a minute: 503, nothing can be learned" in caplog.text


LINE = re.compile(r'testclient - - \[\d\d/\w{3}/\d{4}(?::\d\d){3} \+0000\] "(.*)" (\d+) (\d+) \d+\.\d{6}')


def test_an_access_log_has_a_line_for_each_request(tmp_path):
    path = tmp_path / "access.log"
    service = LiveLearner(TextClassifier())
    with testclient.TestClient(create_app(service, access_log=AccessLog(path))) as client:
        answer = client.post("/learn?label=secret", json=GOOD)
        client.get('/"a"\\%0Ab/' + 300 * "c")
        path.rename(tmp_path / "older")
        client.get("/healthz")
    (learned, size), (odd, *_) = [
        (found[1], int(found[3]))
        for line in (tmp_path / "older").read_text("utf-8").splitlines()
        if (found := LINE.fullmatch(line))
    ]
    assert (learned, size) == ("POST /learn HTTP/1.1", len(answer.content))
    assert len(odd) < 250 and "\n" not in odd
    assert [LINE.fullmatch(line)[2] for line in path.read_text("utf-8").splitlines()] == ["200"]
    (tmp_path / "diary").write_text("Dear diary\n", "utf-8")
    code, said = not_served("--access-log", tmp_path / "diary")
    assert code == 1 and "it exists and is no access log" in said
    code, said = not_served("--access-log", tmp_path / "nowhere" / "log")
    assert code == 1 and "cannot write" in said


def test_a_fault_of_ours_tells_strangers_nothing(monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("private words")

    with serving(LiveLearner(TextClassifier()), raise_server_exceptions=False) as client:
        monkeypatch.setattr("stream_pegasos.runtime.live_learner.predict_block", fail)
        response = client.post("/predict", json={"text": "a"})
        refused(response, 500, "internal error")
        assert "private" not in response.text
        monkeypatch.undo()
        predict(client, {"text": "a"})
    assert "private words" in caplog.text
