"""The service ends with no request learned in part."""

import asyncio
import signal
import threading
from contextlib import suppress

import pytest
from serving import MESSAGES, ok, wait

from stream_pegasos import TextClassifier, load
from stream_pegasos.service import Service
from stream_pegasos.service.work import EndingError

httpx = pytest.importorskip("httpx")


def test_a_request_is_never_learned_in_part():
    """Who ends the service waits for the request at work; those that wait for it are refused."""
    service = Service(TextClassifier())
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
    served = serve("--checkpoint", tmp_path / "model", "--checkpoint-seconds", 1_000)
    n, answers = 300, []
    large = [{"text": f"{i} " + "word " * 200, "label": i % 20, "id": i} for i in range(n)]

    def send(begin):
        body = [{**message, "id": message["id"] + begin} for message in large]
        with suppress(httpx.TransportError):  # one that comes too late
            answers.append(httpx.post(f"{served.url}/learn", json=body, timeout=60))

    clients = [threading.Thread(target=send, args=[i * n]) for i in range(3)]
    for client in clients:
        client.start()
    wait(lambda: ok(served.client.get("/monitor"))["n"])
    served.end(signal.SIGTERM)
    for client in clients:
        client.join()
    finished = [answer for answer in answers if answer.status_code == 200]
    assert all(answer.status_code in (200, 503) for answer in answers)
    assert load(tmp_path / "model").n_iterations == n * len(finished) > 0
