"""Encoders behind an address: what they are asked, what they answer, and what happens when they do not."""

import json
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from embedding_server import Embeddings, embedding_server, letters
from scripts import Run, Script

pytest.importorskip("httpx")
pytest.importorskip("msgspec")

from stream_pegasos import TextClassifier, TextFeatures, load, prequential
from stream_pegasos.features import encoders
from stream_pegasos.features.encoder_servers import KEYS, EmbeddingServer, EncoderAwayError
from stream_pegasos.features.encoders import LONGEST, EncoderError, text_encoder
from stream_pegasos.features.vectors import VectorsError
from stream_pegasos.runtime import stream_runner
from stream_pegasos.streams import Example, StreamError

TEXTS = ["win a prize", "lunch at noon", "", "win a prize", "Grüße " * 400]


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """No encoder is kept from another test, whose port this one may have."""
    monkeypatch.setattr(encoders, "_loaded", {})


@pytest.mark.parametrize("knows", [("encoding_format", "dimensions"), ("dimensions",), ("encoding_format",), ()])
@pytest.mark.parametrize("n", [26, 1024, 1500])
def test_vectors_are_those_of_the_server(n, knows):
    with embedding_server(Embeddings(n, knows)) as server:
        encoder = text_encoder(server.address)
        vectors = encoder.vectors(TEXTS)
        expected = np.array([letters(text[:LONGEST], n)[:1024] for text in TEXTS], float)
        expected[2] = 1e-9  # a text without anything has no vector
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        expected[2] = 0.0
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
        assert encoder.n_dimensions == min(n, 1024)
        assert {request["model"] for request in server.asked} == {"letters"}
        assert ("dimensions" in server.asked[-1]) == (n > 1024 and "dimensions" in knows)
        n_asked = len(server.asked)
        assert np.array_equal(encoder.vectors(TEXTS[:2]), vectors[:2]) and len(server.asked) == n_asked  # they are kept


def test_many_texts_go_in_several_requests_at_once():
    with embedding_server(Embeddings()) as server:
        encoder = text_encoder(server.address)
        server.asked.clear()
        barrier = threading.Barrier(4, timeout=60)  # as many requests are there at the same time
        server.fails = lambda request: [barrier.wait(), None][1]
        encoder.vectors([f"text {i}" for i in range(2_048)])
        assert [len(request["input"]) for request in server.asked] == [256] * 8


@pytest.mark.parametrize("most", [1, 7, 32])
def test_a_server_that_takes_few_texts_gets_few(most):
    with embedding_server(Embeddings()) as server:
        encoder = text_encoder(server.address) if most > 9 else None
        server.fails = lambda request: (413, b"batch too large") if len(request["input"]) > most else None
        texts = [f"text {i} {chr(97 + i % 26)}" for i in range(150)]
        vectors = (encoder or text_encoder(server.address)).vectors(texts)
        expected = np.array([letters(text) for text in texts], float)
        np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_a_key_goes_to_its_host_alone(monkeypatch):
    monkeypatch.setenv(f"{KEYS}_KEY", "secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # which nobody serves, and which would read the key
    monkeypatch.delenv(f"{KEYS}_HOST", raising=False)
    with embedding_server(Embeddings()) as server:
        port = server.address.split(":")[2].split("/")[0]
        with pytest.raises(ValueError, match=f"set {KEYS}_HOST, as '127.0.0.1'"):
            text_encoder(server.address)
        with pytest.raises(ValueError, match=f"{KEYS}_KEY"):
            text_encoder(server.address.replace("//", "//me:secret@"))
        assert not server.asked
        for owner, is_sent in ("127.0.0.1", True), (f"127.0.0.1:{port}", True), ("127.0.0.1:9", False), ("a.b", False):
            encoders._loaded.clear()
            server.keys.clear()
            monkeypatch.setenv(f"{KEYS}_HOST", owner)
            text_encoder(server.address)
            assert {*server.keys} == {"Bearer secret" if is_sent else None}, owner
        server.fails = lambda request: (401, b"who are you?")
        encoders._loaded.clear()
        with pytest.raises(EncoderError, match=f"answers 401: who are you\\?; {KEYS}_KEY was not sent, as {KEYS}_HOST"):
            text_encoder(server.address)


def test_a_redirect_is_no_answer(monkeypatch):
    monkeypatch.setenv(f"{KEYS}_KEY", "secret")
    monkeypatch.setenv(f"{KEYS}_HOST", "127.0.0.1")
    with embedding_server(Embeddings()) as other, embedding_server(Embeddings()) as server:
        server.fails = lambda request: (307, b"")
        server.head = f"Location: {other.address}\r\n".encode()
        with pytest.raises(EncoderError, match="answers 307"):
            text_encoder(server.address)
        assert server.asked and not other.asked


@pytest.mark.parametrize(
    ("status", "body", "match"),
    [
        (200, {"data": []}, "gave 0 vectors for 1 texts"),
        (200, {"data": [{"embedding": [1.0]}]}, r"array of the shape \(1, 1\)"),
        (200, {"data": [{"embedding": [float("nan")] * 26}]}, "no embeddings: .*NaN"),
        (200, {"data": [{"embedding": [1e39] * 26}]}, "infinite ones or NaN"),
        (200, {"data": [{"embedding": "no base64!"}]}, "no embeddings: .*no base64"),
        (200, {"error": "model not loaded"}, "no embeddings: .*model not loaded"),
        (200, b"<html>busy", "no embeddings: <html>busy"),
        (401, {"error": "bad key"}, "answers 401: .*bad key"),
        (404, b"no such model", "answers 404: no such model"),
    ],
)
def test_a_wrong_answer_is_an_error_with_the_servers_words(status, body, match):
    with embedding_server(Embeddings()) as server:
        encoder = text_encoder(server.address)
        server.fails = lambda request: (status, body)
        with pytest.raises(EncoderError, match=match):
            encoder.vectors(["new"])


def test_a_server_that_is_away_is_told_at_once_and_nothing_is_learned():
    with embedding_server(Embeddings()) as server:
        model = TextClassifier(TextFeatures(vectors=server.address))
        model.learn_many(["win a prize", "lunch at noon"], ["spam", "ham"])
        server.fails = lambda request: (503, b"loading")
        with pytest.raises(EncoderAwayError, match="answers 503: loading"):
            model.learn_one("cheap pills", "spam")
        server.fails = None
        model.learn_one("cheap pills", "spam")
        assert model.n_learned == 3
    with pytest.raises(EncoderAwayError, match="does not answer"):
        model.predict_one("something else")
    assert model.n_learned == 3


def test_a_model_file_names_the_server_and_knows_another_model(tmp_path):
    with embedding_server(Embeddings()) as server:
        model = TextClassifier(TextFeatures(vectors=server.address))
        model.learn_many(["win a prize", "lunch at noon"] * 5, ["spam", "ham"] * 5)
        model.save(tmp_path / "m")
        assert load(tmp_path / "m", server.address).predict_one("win") == "spam"
        encoders._loaded.clear()
        server.n = 25
        server.asked.clear()
        with pytest.raises(VectorsError, match=r"it needs the encoder .* or --vectors 'http://127\.0\.0\.1"):
            load(tmp_path / "m")
        assert not server.asked
        with pytest.raises(VectorsError, match="another encoder"):
            load(tmp_path / "m", server.address)
    encoders._loaded.clear()
    with pytest.raises(EncoderAwayError, match=r"does not answer"):
        load(tmp_path / "m", server.address)


@pytest.mark.parametrize("end", [StopIteration, StreamError, KeyboardInterrupt])
def test_the_next_texts_are_encoded_while_some_are_learned(end):
    def stream():
        for i in range(25):
            yield f"text {i}", "ab"[i % 2]
        if end is not StopIteration:
            raise end("gone")

    asked, learned = threading.Event(), []

    def on_predicted(block):
        assert asked.wait(60)
        learned.extend(block.y)

    with embedding_server(Embeddings()) as server:
        model = TextClassifier(TextFeatures(vectors=server.address))
        server.fails = lambda request: asked.set() if "text 12" in request["input"] else None
        with pytest.raises(StreamError) if end is StreamError else nullcontext():
            evaluation = prequential(stream(), model, batch=10, on_predicted=on_predicted)
            assert evaluation.interrupted == (end is KeyboardInterrupt)
    n = 20 if end is StreamError else 25  # after a fault of the stream, a chunk that is not full is not learned
    assert (len(learned), model.n_learned) == (n, n)


def test_a_run_waits_for_its_encoder(monkeypatch):
    monkeypatch.setattr(stream_runner, "FIRST_PAUSE", 0.01)
    examples = [
        Example(f"{i} {text}", y, 1.0, i, i) for i, (text, y) in enumerate([("win", "spam"), ("lunch", "ham")] * 20)
    ]
    with embedding_server(Embeddings()) as server:
        model = TextClassifier(TextFeatures(vectors=server.address))
        run = Run(Script(examples, [10]), model)
        server.fails = lambda request: (503, b"loading") if len(run.events) < 3 else None
        run.run()
        assert (run.runner.n_read, run.runner.n_learned, len(run.answers)) == (40, 40, 40)
        assert [event.partition(";")[0] for event in run.events] == [run.events[0].partition(";")[0]] * 3
        assert "answers 503: loading; trying again in" in run.events[0]


def test_a_run_that_is_stopped_while_it_waits_has_read_nothing(monkeypatch):
    monkeypatch.setattr(stream_runner, "FIRST_PAUSE", 1_000.0)
    with embedding_server(Embeddings()) as server:
        model = TextClassifier(TextFeatures(vectors=server.address))
        server.fails = lambda request: (503, b"loading")
        run = Run(Script([Example("win", "spam", 1.0, i, i) for i in range(20)], [10]), model)
        run.runner._on_event = lambda event: run.runner.stop()
        run.run()
        assert (run.runner.n_read, run.runner.n_learned, model.n_learned, run.answers) == (0, 0, 0, [])


def test_the_service_answers_503_and_learns_nothing():
    from serving import serving

    from stream_pegasos.runtime.live_learner import LiveLearner

    with embedding_server(Embeddings()) as server:
        model = TextClassifier(TextFeatures(vectors=server.address))
        with serving(LiveLearner(model)) as client:
            assert client.post("/learn", json={"text": "win a prize", "label": "spam"}).status_code == 200
            server.fails = lambda request: (429, b"slow down")
            for operation, sent in [("predict", {}), ("learn", {"label": "ham"}), ("explain", {})]:
                answer = client.post(f"/{operation}", json={"text": f"new {operation}", **sent})
                assert answer.status_code == 503 and "slow down" in json.dumps(answer.json())
            assert model.n_learned == 1
            server.fails = None
            assert client.post("/learn", json={"text": "lunch", "label": "ham"}).status_code == 200


def test_an_encoder_on_a_hub_goes_to_its_package(monkeypatch):
    named = []
    monkeypatch.setattr(encoders.importlib, "import_module", lambda name: named.append(name) or FakePackage)
    assert text_encoder("sentence-transformers/all-MiniLM-L6-v2").name == "sentence-transformers/all-MiniLM-L6-v2"
    assert named == ["sentence_transformers"]


class FakePackage:
    class SentenceTransformer:
        def __init__(self, name):
            assert name == "sentence-transformers/all-MiniLM-L6-v2"

        def encode(self, texts):
            return [letters(text) for text in texts]


def test_an_address_without_a_host_is_refused():
    with pytest.raises(ValueError, match="an address with a host"):
        EmbeddingServer("http://#model")
