"""Checkpoints and the journal: the service goes on where it was, however it ended, and learns all once."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from running import bits, wait
from serving import (
    GOOD,
    KNOWN,
    MESSAGES,
    asking,
    checkpoint,
    figures,
    health,
    killed,
    learn,
    not_served,
    ok,
    predict,
    refused,
    resumed,
    send,
    serving,
)

from stream_pegasos import TextClassifier, TextFeatures, load
from stream_pegasos.cli.explain import explain
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.durable_learning import DurableLearning
from stream_pegasos.runtime.journal import Journal
from stream_pegasos.runtime.live_learner import EndingError, LiveLearner
from stream_pegasos.streams import synthetic

httpx = pytest.importorskip("httpx")


def fail(*_):
    raise OSError(28, "No space left on device")


def view(client):
    return figures(ok(client.get("/monitor"))), ok(client.get("/learned"))


def test_checkpoints_that_fail_are_seen(tmp_path, monkeypatch):
    service = resumed(tmp_path / "model", every=1, seconds=0.02)
    with serving(service) as client:
        assert health(client) == "ok"
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            learn(client, MESSAGES[:5])
            wait(lambda: service.checkpoints.n_failures)
            assert health(client) == "checkpoints fail"
            assert ok(client.get("/monitor"))["checkpoint"]["error"] == "No space left on device"
            assert "stream_pegasos_failing 1.0\n" in client.get("/metrics").text
            assert "stream_pegasos_checkpoint_failures_total" in client.get("/metrics").text
            predict(client, {"text": "a"})
        wait(lambda: service.checkpoints.error is None)
        assert health(client) == "ok"
        assert ok(client.get("/monitor"))["checkpoint"]["seconds_ago"] < 60
    assert load_with_progress(tmp_path / "model")[0].n_iterations == 5


def test_what_was_answered_outlives_a_kill(tmp_path):
    path, alone, before = tmp_path / "model", TextClassifier(), None
    for begin in range(0, 300, 60):
        service = killed(path)
        assert service.n_learned_again == (begin if begin <= 60 else 30)
        assert bits(service.model) == bits(alone)
        with serving(service) as client:
            assert before is None or view(client) == before
            learn(client, KNOWN[begin : begin + 30])
            if begin >= 60:
                checkpoint(service)
            learn(client, KNOWN[begin + 30 : begin + 60])
            assert not any(answer["learned"] for answer in learn(client, KNOWN[begin : begin + 60]))
            before = view(client)
        for message in KNOWN[begin : begin + 60]:
            alone.learn_one(message["text"], message["label"], message["weight"])
    path.write_bytes(b"damaged")  # the one before needs the journal of both
    service = killed(path)
    assert service.n_learned_again == 90 and bits(service.model) == bits(alone)
    service.close()


def test_corrections_and_labels_of_the_page_outlive_a_kill(tmp_path):
    service, alone = killed(tmp_path / "model", active_learning=ActiveLearning(seconds=60.0)), TextClassifier()
    reference = DurableLearning(alone)

    def teach(client, text, label):
        (number,) = (each["number"] for each in ok(client.get("/asked"))["messages"] if each["text"] == text)
        ok(client.post("/teach", json={"number": number, "label": label}))
        return number

    with serving(service) as client:
        for label in ("ham", "spam"):
            learn(client, {"text": "lunch", "label": label, "id": "m"})
            reference.learn([("lunch", label)], ["m"])
        predict(client, [{"text": text, "id": text} for text in "abcd"])
        teach(client, "a", "ham")
        ok(client.post("/teach", json={"number": teach(client, "b", "ham"), "take_back": True}))
        checkpoint(service)
        teach(client, "c", "ham")
        learn(client, {"label": "spam", "id": "c"})
        teach(client, "d", "ham")
        copy = shutil.copytree(tmp_path, tmp_path / "copy")  # of when "a" and "d" can still be taken back
    alone.learn_many(["c", "a", "d"], ["spam", "ham", "ham"])
    for path in (tmp_path, copy, copy):  # as what is learned again is not learned again and again
        again = killed(path / "model")
        assert bits(again.model) == bits(alone)
        assert again.learned_ids() == ["m", "c", "a", "d"]
        again.close()
    with serving(killed(copy / "model")) as client:
        answers = learn(client, [{"text": "lunch", "label": "spam", "id": "m"}, {**GOOD, "id": "a"}])
        assert [answer.get("correction") for answer in answers] == [None, "taught anew"]


def test_a_label_of_the_page_outlives_a_correction_that_fails(tmp_path, monkeypatch, caplog):
    service = killed(tmp_path / "model", active_learning=ActiveLearning(seconds=60.0))
    with serving(service, raise_server_exceptions=False) as client:
        predict(client, {"text": "lunch", "id": "a"})
        (asked,) = ok(client.get("/asked"))["messages"]
        ok(client.post("/teach", json={"number": asked["number"], "label": "ham"}))
        with monkeypatch.context() as patch:
            patch.setattr(DurableLearning, "learn", lambda *_: 1 / 0)
            refused(send(client, "/learn", {"text": "lunch", "label": "spam", "id": "a"}), 500, "internal error")
        copy = shutil.copytree(tmp_path, tmp_path / "copy")
    again = killed(copy / "model")
    assert again.learned_ids() == ["a"] and again.model.classes[0] == "ham"
    again.close()
    assert "ZeroDivisionError" in caplog.text


def test_a_checkpoint_in_the_middle_of_a_request(tmp_path):
    """After a kill at any moment the request is learned as a whole, and once; ids and scores go with the model."""
    service, seen = killed(tmp_path / "model"), []
    large = [{**message, "text": message["text"] + " x" * 1_000} for message in KNOWN[:150]]

    async def both():
        async with asking(service) as client:
            learning = asyncio.create_task(client.post("/learn", json=large))
            while not learning.done():
                if 0 < service.model.n_learned < len(large) and len(seen) < 3:
                    seen.append(service.model.n_learned)
                    checkpoint(service)
                    again = killed(tmp_path / "model")
                    assert (again.model.n_learned, again.n_learned_again) == (len(large), len(large) - seen[-1])
                    assert again.learned_ids() == [*range(150)] and again.monitor.score.n == 150
                    progress = load_with_progress(tmp_path / "model")[1]
                    assert json.loads(progress["ids"]) == [*range(seen[-1])]
                await asyncio.sleep(0)
            ok(await learning)

    asyncio.run(both())
    assert len(seen) == 3
    assert bits(killed(tmp_path / "model").model) == bits(service.model)
    service.close()


def test_nothing_is_learned_that_cannot_be_kept(tmp_path, monkeypatch):
    service = killed(tmp_path / "model", active_learning=ActiveLearning(seconds=60.0))
    with serving(service) as client:
        learn(client, KNOWN[:20])
        predict(client, {"text": "new", "id": "new"})
        before = bits(service.model)
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_write", fail)
            refused(send(client, "/learn", KNOWN[10:40]), 503, "No space left on device")
            (asked,) = ok(client.get("/asked"))["messages"]
            refused(client.post("/teach", json={"number": asked["number"], "label": "ham"}), 503, "No space left")
            assert not learn(client, KNOWN[3])["learned"]  # which is safe
        assert bits(service.model) == before and ok(client.get("/asked"))["given"] == []
        ok(client.post("/teach", json={"number": asked["number"], "label": "ham"}))
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_write", fail)
            client.portal.call(service.learn_given, True)  # which is tried again
        assert bits(service.model) == before
        assert [each["text"] for each in ok(client.get("/asked"))["given"]] == ["new"]
        answers = learn(client, KNOWN[10:40])
        assert [answer["learned"] for answer in answers] == [False] * 10 + [True] * 20
    assert service.model.n_learned == 41
    assert bits(killed(tmp_path / "model").model) == bits(service.model)


@pytest.mark.parametrize("path", ["/learn", "/teach"])
def test_the_answer_waits_for_the_disk_where_that_is_asked_for(tmp_path, monkeypatch, path):
    """Requests that come together share one look at the disk."""
    service = killed(tmp_path / "model", active_learning=ActiveLearning(seconds=60.0), sync=True)
    go_on, n_synced, sync = threading.Event(), [], os.fsync

    def slow(file):
        n_synced.append(file)
        assert go_on.wait(30)
        sync(file)

    async def requests():
        async with asking(service) as client:
            ok(await client.post("/learn", json=GOOD))  # the file is there
            ok(await client.post("/predict", json=[{"text": f"{i}"} for i in range(5)]))
            asked = ok(await client.get("/asked"))["messages"]
            bodies = [{"number": each["number"], "label": "ham"} for each in asked] if path == "/teach" else [GOOD] * 5
            monkeypatch.setattr(os, "fsync", slow)
            sent = [asyncio.create_task(client.post(path, json=body)) for body in bodies]
            while (
                not n_synced
                or sum(len(file.read_text(encoding="utf-8").splitlines()) for file in tmp_path.glob("model.journal*"))
                < 6
            ):
                await asyncio.sleep(0.001)
            assert not any(each.done() for each in sent)
            go_on.set()
            for each in sent:
                ok(await each)

    asyncio.run(requests())
    assert len(n_synced) <= 2  # for the first one, and for all that came meanwhile
    service.close()


@pytest.mark.parametrize(("sync", "owner", "name"), [(False, Journal, "_made"), (True, os, "fsync")])
def test_a_journal_that_fails_is_told(tmp_path, monkeypatch, sync, owner, name):
    service = killed(tmp_path / "model", sync=sync)
    with serving(service) as client:
        if sync:  # once the file is there
            learn(client, KNOWN[0])
        assert health(client) == "ok"
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            refused(send(client, "/learn", KNOWN[1]), 503, "No space left on device")
            assert health(client) == "the journal fails"
        # A look at it tries again, as nothing may be sent to a service that says so.
        assert health(client) == ("the journal fails" if sync else "ok")
        if sync:
            for message in KNOWN[1:3]:  # one that is learned but not safe, and a new one
                refused(send(client, "/learn", message), 503, "after the next checkpoint")
            checkpoint(service)
        assert [learn(client, message)["learned"] for message in KNOWN[1:3]] == [not sync, True]
        assert health(client) == "ok"


def test_whoever_reads_a_checkpoint_is_told_what_its_journal_has(tmp_path):
    service = killed(tmp_path / "model")
    with serving(service) as client:
        learn(client, KNOWN[0])
        checkpoint(service)
        told = [explained(tmp_path / "model")]
        for message in KNOWN[1:3]:
            learn(client, message)
        link = tmp_path / "link"
        link.symlink_to(tmp_path / "model")
        told += [explained(tmp_path / "model"), explained(link)]
        for path in tmp_path.glob("model.journal-*"):
            path.write_bytes(b"unread\n" * 2)
        told += [explained(tmp_path / "model")]
    assert "journal" not in told[0]
    for of_then in told[1:]:
        assert "its journal has messages that came after it, which this model has not learned" in of_then
        assert "damaged" not in of_then


def explained(model):
    return CliRunner().invoke(explain, [str(model)]).stderr


def test_without_a_checkpoint_the_model_is_asked_for_with_which_it_began(serve, tmp_path):
    model, path = tmp_path / "fields.st", tmp_path / "model"
    TextClassifier(features=TextFeatures(on="subject") + TextFeatures(on="body")).save(model)
    served = serve(model, "--checkpoint", path, "--checkpoint-every", "1000s")
    learn(served.client, {"subject": "lunch", "label": "ham"})
    served.end(signal.SIGKILL)
    other = shutil.copy(model, tmp_path / "other.st")
    for arguments, now in (([], "a new model"), ([other], f"the model {other}")):
        code, said = not_served(*arguments, "--checkpoint", path)
        assert code == 1 and f"{path}: its journal was begun with the model {model}, not with {now}, and" in said
    again = serve(model, "--checkpoint", path)
    assert "learned 1 messages again" in "".join(again.lines)
    again.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_command_goes_on_after_any_end(serve, number, tmp_path):
    path = tmp_path / "model"
    served = serve("--checkpoint", path, "--checkpoint-every", 50)
    learn(served.client, KNOWN[:100])
    wait(path.exists)
    for message in KNOWN[100:110]:
        learn(served.client, message)
    before = figures(ok(served.client.get("/monitor")))
    served.end(number)
    again = serve("--checkpoint", path)
    told = "learned 10 messages again that came after the checkpoint"
    assert (told in "".join(again.lines)) == (number == signal.SIGKILL)
    assert "Traceback" not in "".join([*served.lines, *again.lines])
    assert figures(ok(again.client.get("/monitor"))) == before
    assert not any(answer["learned"] for answer in learn(again.client, KNOWN[:110]))
    again.end(signal.SIGINT)
    alone = TextClassifier()
    alone.learn_many(*([message[name] for message in KNOWN[:110]] for name in ("text", "label", "weight")))
    assert bits(load(path)) == bits(alone)


# The end of the service -------------------------------------------------------------------------


def test_a_request_is_never_learned_in_part():
    """Who ends the service waits for the request at work; those that wait for it are refused."""
    service = LiveLearner(TextClassifier())
    large = [(message["text"] + " x" * 1_000, message["label"]) for message in MESSAGES]

    async def end_in_the_middle():
        first, second = (asyncio.create_task(service.learn(large)) for _ in range(2))
        while not service.model.n_learned:
            await asyncio.sleep(0)
        assert service.model.n_learned < len(large)
        first.cancel()  # as a server does that waits no longer
        await asyncio.sleep(0)
        assert not first.done()
        await service.finish()
        assert service.model.n_learned == len(large)
        with pytest.raises(EndingError):
            await second
        await first

    asyncio.run(end_in_the_middle())


def test_sigterm_finishes_the_request_at_work_and_refuses_the_others(serve, tmp_path):
    served = serve("--checkpoint", tmp_path / "model", "--checkpoint-every", "1000s")
    n, answers = 300, []
    large = [{"text": f"{i} " + "word " * 200, "label": i % 20} for i in range(n)]

    def request():
        with suppress(httpx.TransportError):  # one that comes too late
            answers.append(httpx.post(f"{served.url}/learn", json=large, timeout=120))

    clients = [threading.Thread(target=request) for _ in range(3)]
    for client in clients:
        client.start()
    wait(lambda: ok(served.client.get("/monitor"))["n"])
    served.end()
    for client in clients:
        client.join()
    assert {answer.status_code for answer in answers} <= {200, 503}
    n_finished = sum(answer.status_code == 200 for answer in answers)
    assert load(tmp_path / "model").n_iterations == n * n_finished > 0


def test_a_second_interrupt_leaves_out_nothing(serve, tmp_path):
    """It comes while the end still waits for half a request, after which nothing more is let in."""
    served = serve("--checkpoint", tmp_path / "model", "--checkpoint-every", "1000s")
    learn(served.client, KNOWN[:3])
    address = "127.0.0.1", served.port

    def is_refused():
        try:
            socket.create_connection(address).close()
        except ConnectionError:
            return True

    with socket.create_connection(address) as half:
        half.sendall(b"POST /learn HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        ok(served.client.get("/monitor"))
        served.client.close()
        served.process.send_signal(signal.SIGINT)
        wait(is_refused)
        served.process.send_signal(signal.SIGINT)
    served.lines += served.process.communicate(timeout=120)[1].splitlines()
    assert served.process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    (_, said) = served.lines
    assert said.startswith("stream-pegasos: 1 request refused within a minute: 400, ")  # of which half came
    assert load(tmp_path / "model").n_learned == 3


@pytest.mark.heavy
def test_a_sender_goes_on_where_a_killed_service_was(serve, tmp_path):
    """Each message of its stream is learned once, in its order."""
    stream, checkpoint, rows = tmp_path / "stream.jsonl", tmp_path / "model", [*synthetic(n=1_000, seed=8)]
    stream.write_text(
        "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows), encoding="utf-8"
    )
    options = ["--checkpoint", checkpoint, "--checkpoint-every", 100]
    served = serve(*options)
    script = Path(__file__).parents[2] / "examples" / "send_stream.py"
    command = [sys.executable, script, stream, "--url", served.url, "--batch", "7", "--pause", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as sender:
        wait(lambda: ok(served.client.get("/monitor"))["n"] > 400)
        served.end(signal.SIGKILL)
        assert sender.stdout.readline().startswith(f"waiting for {served.url}")
        served = serve(*options, "--port", served.port)
        sender.communicate(timeout=120)
    assert ok(served.client.get("/learned"))["ids"] == [f"stream.jsonl:{i}" for i in range(1, 1_001)]
    served.end()
    alone = TextClassifier()
    alone.learn_many(*map(list, zip(*rows, strict=True)))
    assert bits(load(checkpoint)) == bits(alone)


def test_what_is_forgotten_outlives_a_kill(tmp_path):
    service, alone = killed(tmp_path / "model"), TextClassifier()
    examples = [("lunch", "ham"), ("prize", "spam"), ("noon", "ham")]

    async def learn_and_unlearn():
        await service.learn(examples, [0, 1, 2])
        return await service.unlearn(["lunch", "never seen"], [0, 9])

    assert asyncio.run(learn_and_unlearn()) == ["one step", "unknown"]
    reference = DurableLearning(alone)
    reference.learn(examples, [0, 1, 2])
    assert reference.unlearn("lunch", 0) == "one step"
    again = killed(tmp_path / "model")
    assert bits(service.model) == bits(again.model) == bits(alone)
    assert again.learned_ids() == service.learned_ids() == [1, 2]
    service.close()
    again.close()
