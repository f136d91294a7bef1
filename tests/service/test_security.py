"""Types of content, foreign names, tokens and faults: what strangers get."""

import json

import pytest
from serving import GOOD, ok, refused, serving

from stream_pegasos import TextClassifier
from stream_pegasos.service import Service, create_app
from stream_pegasos.service.app import PAGE_FILES

testclient = pytest.importorskip("starlette.testclient")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@pytest.mark.parametrize("path", ["/predict", "/learn", "/explain", "/teach", "/take-back"])
def test_other_types_of_content_are_refused(client, path, kind):
    response = client.post(path, content=json.dumps(GOOD), headers={"content-type": kind})
    refused(response, 415, "application/json")


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_is_json(client, kind):
    ok(client.post("/predict", content=json.dumps(GOOD), headers={"content-type": kind}))


def test_foreign_names_are_refused():
    app = create_app(Service(TextClassifier()), ("localhost", "127.0.0.1"))
    with testclient.TestClient(app, base_url="http://localhost") as client:
        ok(client.post("/predict", json={"text": "a"}))
        ok(client.post("/predict", json={"text": "a"}, headers={"host": "127.0.0.1:8000"}))
        for path in ("/", "/healthz", "/monitor"):
            assert client.get(path, headers={"host": "evil.example"}).status_code == 400
        assert client.post("/learn", json=GOOD, headers={"host": "localhost.evil.example"}).status_code == 400
        assert ok(client.get("/monitor"))["n"] == 0


def test_a_proxy_may_pass_the_name_on_that_it_has(serve):
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
            ("POST", "/teach"),
            ("POST", "/take-back"),
            ("GET", "/asked"),
            ("GET", "/learned"),
            ("GET", "/monitor"),
            ("GET", "/model"),
            ("GET", "/metrics"),
            ("GET", "/classes"),
            ("GET", "/words"),
            ("GET", "/openapi.json"),
            ("GET", "/nothing"),
        ):
            response = client.request(method, path, json=GOOD, headers=headers)
            refused(response, 401, "token")
            assert response.headers["www-authenticate"] == "Bearer"
        for path in (*PAGE_FILES, "/healthz"):
            assert client.get(path, headers=headers).status_code == 200
        right = {"authorization": "Bearer secret"}
        for scheme in ("Bearer", "bearer"):  # in any case, as HTTP has it
            assert ok(client.get("/monitor", headers={"authorization": f"{scheme} secret"}))["n"] == 0
        assert ok(client.post("/learn", json=GOOD, headers=right))["label"] is None
        assert "token" in ok(client.get("/openapi.json", headers=right))["components"]["securitySchemes"]


def test_a_token_from_a_file(serve, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    served = serve("--token-file", tmp_path / "token")
    refused(served.client.post("/learn", json=GOOD), 401, "token")
    ok(served.client.post("/learn", json=GOOD, headers={"authorization": "Bearer secret"}))


def test_a_fault_of_ours_tells_strangers_nothing(monkeypatch, capsys):
    service = Service(TextClassifier())

    def fail(*_):
        raise RuntimeError("private words")

    with serving(service, raise_server_exceptions=False) as client:
        monkeypatch.setattr("stream_pegasos.service.work.predict_block", fail)
        response = client.post("/predict", json={"text": "a"})
        refused(response, 500, "internal error")
        assert "private" not in response.text
        monkeypatch.undo()
        ok(client.post("/predict", json={"text": "a"}))
    assert "private words" in capsys.readouterr().err
