"""Checkpoints of the service: it goes on where it was, however it ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from serving import MESSAGES, STREAM, bits, figures, learned, ok, resumed, serving, wait

from stream_pegasos import TextClassifier, load
from stream_pegasos.evaluation.prequential import evaluate
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.streams import synthetic

httpx = pytest.importorskip("httpx")


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


@pytest.mark.heavy
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
    quiet = threading.Lock()

    def teach():
        while not over.wait(0.01):
            for i in range(0, len(others), 20):
                with suppress(httpx.HTTPError), quiet:
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
        lost = 0
        while not lost:
            with quiet:  # nobody sends, and what is on its way comes in, before one counts and kills
                sender.send_signal(signal.SIGSTOP)
                time.sleep(0.2)
                lost = ok(httpx.get(f"{served.url}/monitor"))["n"] - load(checkpoint).n_iterations
                if lost:
                    served.end(signal.SIGKILL)
            sender.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        served = serve(*options)
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
