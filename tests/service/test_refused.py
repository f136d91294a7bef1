"""Requests, and models to begin with, that are refused."""

import subprocess

import pytest
from serving import COMMAND, GOOD, bits, learned, ok, refused, serving

from stream_pegasos import AdaptiveClassifier, KernelPegasosClassifier, PegasosClassifier, TextClassifier
from stream_pegasos.service import Service

BAD = {
    "list of labels": [GOOD, {"text": "b", "label": ["eggs"]}],
    "list in the middle": [{"text": "a", "label": "ham"}, {"text": "b", "label": []}, GOOD],
    "no text": [GOOD, {"label": "ham"}],
    "text of another type": [GOOD, {"text": 1, "label": "ham"}],
    "no label": [GOOD, {"text": "a"}],
    "blank label": [GOOD, {"text": "a", "label": " "}],
    "label of another type": [GOOD, {"text": "a", "label": [1]}],
    "label that is a float": [GOOD, {"text": "a", "label": 1.0}],
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
        refused(response, 422, "list" if "list" in which else "")
        assert bits(service.model) == before
        seen = ok(client.get("/monitor"))
        assert (seen["n"], seen["n_failed"]) == (0, 1)
        ok(client.post("/learn", json=GOOD))
    assert bits(service.model) != before


def test_two_third_labels_of_a_model_for_two_that_knows_none_yet():
    service = Service(TextClassifier(classifier=KernelPegasosClassifier()))
    before = bits(service.model)
    with serving(service) as client:
        messages = [{"text": "x" * 40_000, "label": label} for label in ("a", "b", "a", "c")]  # in several slices
        refused(client.post("/learn", json=messages), 422, "'c' is a third one")
    assert bits(service.model) == before


def test_which_label_is_positive_must_be_said_where_a_decision_rests_on_it():
    model = TextClassifier(classifier=AdaptiveClassifier(max_false_positive_rate=0.1))
    with serving(Service(model)) as client:
        response = client.post("/learn", json=[{"text": "a", "label": "spam"}, {"text": "b", "label": "ham"}])
        assert response.status_code == 422 and "pos_label" in response.json()["detail"]
        assert ok(client.get("/monitor"))["n"] == 0 and model.n_iterations == 0
        ok(client.post("/learn", json=[{"text": "a", "label": True}, {"text": "b", "label": False}]))


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


@pytest.mark.parametrize("field", ["NaN", '"\\ud800"', "1e400", '{"text": 3}'])
def test_a_field_that_nobody_reads_may_be_anything(client, field):
    ok(client.post("/predict", content=f'{{"text": "a", "x": {field}}}', headers={"content-type": "application/json"}))


def test_paths_that_are_none(client):
    assert client.get("/nothing").status_code == 404
    assert client.get("/learn").status_code == 405
    assert client.head("/learn").status_code == 405
    assert client.get("/docs").status_code == 404
    assert client.get("/redoc").status_code == 404


def fails(*options):
    done = subprocess.run([*COMMAND, *map(str, options)], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_what_the_command_refuses(tmp_path):
    path = tmp_path / "model"
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
