"""What the service has answered is learned again after a kill, and only once."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import threading

import pytest
from kinds import several_labels
from serving import COMMAND, GOOD, MESSAGES, bits, figures, ok, refused, serving, wait

from stream_pegasos import TextClassifier, load
from stream_pegasos.operation.checkpoints import Checkpoints
from stream_pegasos.operation.journal import Journal
from stream_pegasos.operation.teaching import Teaching
from stream_pegasos.service import Service, create_app

httpx = pytest.importorskip("httpx")
KNOWN = [{**message, "id": i, "weight": 1.0 + i % 3} for i, message in enumerate(MESSAGES)]


def killed(path, *, model=None, teaching=None):
    """A service that nobody ends: what stands on the disk at some moment is what a kill leaves."""
    checkpoints = Checkpoints(path, seconds=1_000.0)
    model, progress = checkpoints.resume() or (model or TextClassifier(), None)
    service = Service(model, checkpoints, progress, teaching=teaching)
    service.checkpoints.close = lambda: None  # no last checkpoint
    return service


def checkpoint(service):
    snapshot = service.snapshot()
    snapshot.write(service.checkpoints.path, keep=service.checkpoints.previous)
    service._journal.written(snapshot.progress["journal"])


def view(client):
    return figures(ok(client.get("/monitor"))), ok(client.get("/learned"))


def test_what_was_answered_outlives_a_kill(tmp_path):
    path = tmp_path / "model"
    alone = TextClassifier()
    before = None
    for begin in range(0, 300, 60):
        service = killed(path)
        assert service.n_learned_again == (begin if begin <= 60 else 30)
        assert bits(service.model) == bits(alone)
        with serving(service) as client:
            assert before is None or view(client) == before
            ok(client.post("/learn", json=KNOWN[begin : begin + 30]))
            if begin >= 60:
                checkpoint(service)
            ok(client.post("/learn", json=KNOWN[begin + 30 : begin + 60]))
            again = ok(
                client.post("/learn", json=[*KNOWN[begin : begin + 60], {**KNOWN[begin], "label": "third"}][:-1])
            )
            assert not any(answer["learned"] for answer in again)
            before = view(client)
        for message in KNOWN[begin : begin + 60]:
            alone.learn_one(message["text"], message["label"], message["weight"])
    path.write_bytes(b"damaged")  # the one before needs the journal of both
    service = killed(path)
    assert service.n_learned_again == 90 and bits(service.model) == bits(alone)
    service.close()


def test_corrections_and_labels_of_the_page_outlive_a_kill(tmp_path):
    service, alone = killed(tmp_path / "model", teaching=Teaching(seconds=60.0)), TextClassifier()

    def teach(client, text, label):
        (number,) = (each["number"] for each in ok(client.get("/asked"))["messages"] if each["text"] == text)
        ok(client.post("/teach", json={"number": number, "label": label}))
        return number

    with serving(service) as client:
        for label in ("ham", "spam"):
            ok(client.post("/learn", json={"text": "lunch", "label": label, "id": "m"}))
            alone.learn_one("lunch", label)
        ok(client.post("/predict", json=[{"text": text, "id": text} for text in ("a", "b", "c", "d")]))
        teach(client, "a", "ham")
        ok(client.post("/take-back", json={"number": teach(client, "b", "ham")}))
        checkpoint(service)
        teach(client, "c", "ham")
        ok(client.post("/learn", json={"label": "spam", "id": "c"}))
        alone.learn_one("c", "spam")
        teach(client, "d", "ham")
        copy = shutil.copytree(tmp_path, tmp_path / "copy")  # of when "a" and "d" can still be taken back
    for text in ("a", "d"):
        alone.learn_one(text, "ham")
    for path in (tmp_path, copy, copy):  # as what is learned again is not learned again and again
        again = killed(path / "model")
        assert bits(again.model) == bits(alone)
        assert again.learned_ids() == ["m", "c", "a", "d"]
        again.close()


def test_several_labels_and_strange_ones_outlive_a_kill(tmp_path):
    service = killed(tmp_path / "model", model=several_labels())
    sent = [
        {"text": "\ud800x", "label": [True, "\ud800", "b"], "id": "\ud800"},
        {"text": "y", "label": [-(2**63), []][:1]},
    ]
    with serving(service) as client:
        ok(client.post("/learn", content=json.dumps(sent), headers={"content-type": "application/json"}))
    again = killed(tmp_path / "model", model=several_labels())
    assert bits(again.model) == bits(service.model)


def test_a_checkpoint_in_the_middle_of_a_request(tmp_path):
    """After a kill at any moment the request is learned as a whole, and once."""
    service = killed(tmp_path / "model")
    large = [{**message, "text": message["text"] + " x" * 1_000} for message in MESSAGES[:150]]
    app, seen = create_app(service), []

    async def both():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            learning = asyncio.create_task(client.post("/learn", json=large))
            while not learning.done():
                if 0 < service.model.n_learned < len(large) and len(seen) < 3:
                    seen.append(service.model.n_learned)
                    checkpoint(service)
                    again = killed(tmp_path / "model")
                    assert (again.model.n_learned, again.n_learned_again) == (len(large), len(large) - seen[-1])
                await asyncio.sleep(0)
            ok(await learning)

    asyncio.run(both())
    assert len(seen) == 3
    again = killed(tmp_path / "model")
    assert bits(again.model) == bits(service.model)
    service.close()


def test_nothing_is_learned_that_cannot_be_kept(tmp_path, monkeypatch):
    service = killed(tmp_path / "model", teaching=Teaching(seconds=60.0))
    with serving(service) as client:
        ok(client.post("/learn", json=KNOWN[:20]))
        ok(client.post("/predict", json={"text": "new", "id": "new"}))
        before = bits(service.model)

        def fail(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_write", fail)
            refused(client.post("/learn", json=KNOWN[10:40]), 503, "No space left on device")
            (asked,) = ok(client.get("/asked"))["messages"]
            refused(client.post("/teach", json={"number": asked["number"], "label": "ham"}), 503, "No space left")
            assert not ok(client.post("/learn", json=KNOWN[3]))["learned"]  # which is safe
        assert bits(service.model) == before and ok(client.get("/asked"))["given"] == []
        ok(client.post("/teach", json={"number": asked["number"], "label": "ham"}))
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_write", fail)
            client.portal.call(service.learn_given, True)  # which is tried again
        assert bits(service.model) == before
        assert [each["text"] for each in ok(client.get("/asked"))["given"]] == ["new"]
        answers = ok(client.post("/learn", json=KNOWN[10:40]))
        assert [answer["learned"] for answer in answers] == [False] * 10 + [True] * 20
    assert service.model.n_learned == 41
    again = killed(tmp_path / "model")
    assert bits(again.model) == bits(service.model)


def test_what_failed_on_the_way_is_learned_again_as_far_as_it_came(tmp_path, monkeypatch):
    service = killed(tmp_path / "model")
    learn = TextClassifier.predict_learn_many

    def fail_on_the_way(model, x, y, w, threads=1):
        learn(model, x[:17], y[:17], w)
        raise RuntimeError("the detector broke")

    with serving(service, raise_server_exceptions=False) as client:
        ok(client.post("/learn", json=MESSAGES[:20]))
        with monkeypatch.context() as patch:
            patch.setattr(TextClassifier, "predict_learn_many", fail_on_the_way)
            refused(client.post("/learn", json=MESSAGES[20:50]), 500, "internal error")
        ok(client.post("/learn", json=MESSAGES[50:60]))
    again = killed(tmp_path / "model")
    assert again.model.n_learned == 20 + 17 + 10
    assert bits(again.model) == bits(service.model)


@pytest.mark.parametrize("path", ["/learn", "/teach"])
def test_the_answer_waits_for_the_disk_where_that_is_asked_for(tmp_path, monkeypatch, path):
    """Requests that come together share one look at the disk."""
    checkpoints = Checkpoints(tmp_path / "model", seconds=1_000.0)
    service = Service(TextClassifier(), checkpoints, teaching=Teaching(seconds=60.0), sync=True)
    go_on, n_synced = threading.Event(), []
    sync = os.fsync

    def slow(file):
        n_synced.append(file)
        assert go_on.wait(30)
        sync(file)

    async def requests():
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app(service)), base_url="http://localhost"
        ) as client:
            ok(await client.post("/learn", json=GOOD))  # the file is there
            ok(await client.post("/predict", json=[{"text": f"{i}"} for i in range(5)]))
            asked = ok(await client.get("/asked"))["messages"]
            bodies = [{"number": each["number"], "label": "ham"} for each in asked] if path == "/teach" else [GOOD] * 5
            monkeypatch.setattr(os, "fsync", slow)
            sent = [asyncio.create_task(client.post(path, json=body)) for body in bodies]
            while len(n_synced) < 1 or service._journal.n_written < 6:
                await asyncio.sleep(0.001)
            assert not any(each.done() for each in sent)
            go_on.set()
            for each in sent:
                ok(await each)

    asyncio.run(requests())
    assert len(n_synced) <= 2  # for the first one, and for all that came meanwhile
    service.close()


def test_a_disk_that_fails_is_told(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path / "model", seconds=1_000.0)
    service = Service(TextClassifier(), checkpoints, sync=True)
    with serving(service) as client:
        ok(client.post("/learn", json=KNOWN[0]))

        def fail(*_):
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            refused(client.post("/learn", json=KNOWN[1]), 503, "Input/output error")
        for message in KNOWN[1:3]:  # one that is learned but not safe, and a new one
            refused(client.post("/learn", json=message), 503, "after the next checkpoint")
        checkpoint(service)
        assert [ok(client.post("/learn", json=message))["learned"] for message in KNOWN[:3]] == [False, False, True]


def test_a_watchdog_is_told_of_a_journal_that_fails(tmp_path, monkeypatch):
    def health():
        return ok(client.get("/healthz"))["status"]

    def fail(*_):
        raise OSError(28, "No space left on device")

    for sync, owner, name in ((False, Journal, "_made"), (True, os, "fsync")):
        checkpoints = Checkpoints(tmp_path / name, seconds=1_000.0)
        service = Service(TextClassifier(), checkpoints, sync=sync)
        with serving(service) as client:
            assert health() == "ok"
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, fail)
                refused(client.post("/learn", json=KNOWN[0]), 503, "No space left on device")
            assert health() == "the journal fails"
            if sync:
                checkpoint(service)
            else:
                ok(client.post("/learn", json=KNOWN[0]))
            assert health() == "ok"


def test_a_journal_of_another_checkpoint_is_refused(tmp_path):
    service = killed(tmp_path / "model")
    with serving(service) as client:
        checkpoint(service)
        ok(client.post("/learn", json=GOOD))
    (tmp_path / "model").unlink()
    with pytest.raises(ValueError, match="of another checkpoint"):
        killed(tmp_path / "model")
    done = subprocess.run([*COMMAND, "--checkpoint", tmp_path / "model"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "of another checkpoint" in done.stderr and "Traceback" not in done.stderr


def test_kill_loses_nothing(serve, tmp_path):
    path = tmp_path / "model"
    served = serve("--checkpoint", path, "--checkpoint-every", 50, "--checkpoint-seconds", 1_000)
    ok(served.client.post("/learn", json=KNOWN[:100]))
    wait(path.exists)
    for message in KNOWN[100:110]:
        ok(served.client.post("/learn", json=message))
    before = figures(ok(served.client.get("/monitor")))
    served.end(signal.SIGKILL)
    again = serve("--checkpoint", path)
    assert "learned 10 messages again that came after the checkpoint" in "".join(again.lines)
    assert figures(ok(again.client.get("/monitor"))) == before
    assert not any(answer["learned"] for answer in ok(again.client.post("/learn", json=KNOWN[:110])))
    again.end()
    assert load(path).n_iterations == 110
