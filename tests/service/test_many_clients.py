"""Requests that are answered at the same time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import MESSAGES, ok

from stream_pegasos import TextClassifier
from stream_pegasos.service import Limits, Service, create_app

httpx = pytest.importorskip("httpx")


def test_predictions_go_on_between_the_slices_of_a_large_request():
    service = Service(TextClassifier())
    app = create_app(service)
    large = [{**message, "text": message["text"] + " " + "x" * 2_000} for message in MESSAGES]

    async def both():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            learning = asyncio.create_task(client.post("/learn", json=large))
            seen = []
            while not learning.done():
                ok(await client.post("/predict", json={"text": "win a prize"}))
                seen.append(service.monitor.score.n)
                await asyncio.sleep(0)  # as the transport of the test never waits
            assert len(ok(await learning)) == len(large)
            return seen

    seen = asyncio.run(both())
    assert len({n for n in seen if 0 < n < len(large)}) >= 3
    assert service.monitor.score.n == len(large)


def test_requests_to_learn_take_turns():
    """The labels of one are checked when those of the other are known."""
    service = Service(TextClassifier(), limits=Limits(classes=2))
    long = "x" * 30_000

    async def both():
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            bodies = [
                [{"text": long, "label": label} for label in (first, second) * 4] for first, second in ("ab", "cd")
            ]
            return await asyncio.gather(*(client.post("/learn", json=body) for body in bodies))

    one, other = asyncio.run(both())
    assert sorted([one.status_code, other.status_code]) == [200, 422]
    assert service.monitor.score.n == 8


def test_many_clients_at_a_time(serve):
    """Answers belong to their requests, and all is learned once."""
    served = serve()
    ok(served.client.post("/learn", json=MESSAGES[:100]))

    def work(number):
        with httpx.Client(base_url=served.url, timeout=60) as client:
            for i in range(10):
                answers = ok(client.post("/predict", json=[{"text": "a", "id": f"{number}-{i}-{j}"} for j in range(5)]))
                assert [answer["id"] for answer in answers] == [f"{number}-{i}-{j}" for j in range(5)]
                ok(client.post("/learn", json=MESSAGES[100 + i]))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    seen = ok(served.client.get("/monitor"))
    assert (seen["n"], seen["n_predictions"], seen["n_failed"]) == (160, 300, 0)
