"""Texts are encoded together, in a thread; and labels are described."""

import asyncio
import threading

import pytest
from running import bits
from serving import asking, learn, ok, predict, refused, send, serving

from stream_pegasos import MultiLabelClassifier, TextClassifier, TextFeatures
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.runtime.micro_batching import EncodingQueue
from stream_pegasos.streams import label_of


class Slow:
    """An encoder that waits with "slow" until it is told; it keeps the texts of its calls."""

    def __init__(self):
        self.calls, self.is_encoding, self.may_end = [], threading.Event(), threading.Event()

    def encode(self, texts):
        self.calls.append(sorted(texts))
        if "slow" in texts:
            self.is_encoding.set()
            assert self.may_end.wait(60)
        return [[len(text), 1.0] for text in texts]


def test_others_are_answered_while_a_text_is_encoded():
    encoder = Slow()
    service = LiveLearner(TextClassifier(TextFeatures(vectors=encoder)))
    encoder.calls.clear()

    async def ask():
        async with asking(service) as client:
            first = asyncio.create_task(client.post("/learn", json={"text": "slow", "label": "a"}))
            await asyncio.to_thread(encoder.is_encoding.wait, 60)
            assert (await client.get("/healthz")).status_code == 200 and not first.done()
            encoder.may_end.set()
            return (await first).status_code

    assert asyncio.run(ask()) == 200 and encoder.calls == [["slow"]] and service.model.n_learned == 1


def test_what_waits_is_encoded_together():
    encoder = Slow()

    async def ask():
        encoding = EncodingQueue(encoder.encode)
        waiting = [asyncio.create_task(encoding.encode(["slow"]))]
        await asyncio.to_thread(encoder.is_encoding.wait, 60)
        waiting += [asyncio.create_task(encoding.encode([text])) for text in "bcd"]
        await asyncio.sleep(0)  # in which all of them begin
        encoder.may_end.set()
        await asyncio.gather(*waiting)

    asyncio.run(ask())
    assert encoder.calls == [["slow"], ["b", "c", "d"]]


def test_a_text_that_cannot_be_encoded_is_refused_alone():
    def encode(texts):
        return [[1.0 / ("wrong" not in text), len(text)] for text in texts]

    with serving(LiveLearner(TextClassifier(TextFeatures(vectors=encode)))) as client:
        refused(send(client, "/learn", {"text": "wrong", "label": 1}), 422, "the encoder failed")
        learn(client, {"text": "right", "label": 1})
        refused(send(client, "/predict", {"text": "wrong"}), 422, "the encoder failed")
        assert predict(client, {"text": "right"})["label"] == 1


def test_labels_are_described():
    descriptions = {"lost_card": None, "refund": ["money back", "Refund"], "7": None, "8": "eight"}
    for make, n in (TextClassifier, 8), (lambda: TextClassifier(classifier=MultiLabelClassifier()), 4):
        alone, service = make(), LiveLearner(make())
        with pytest.warns(UserWarning, match="left out: 7"):
            alone.describe({label_of(name): texts for name, texts in descriptions.items()})
        with serving(service) as client:
            assert ok(send(client, "/describe", descriptions)) == {"n_learned": n, "left_out": [7]}
            assert bits(service.model) == bits(alone)
            refused(send(client, "/describe", {"refund": " "}), 422, "blank")
            refused(send(client, "/describe", {"refund": 3}), 422, "str")
            refused(send(client, "/describe", ["refund"]), 422, "object")


def test_only_labels_that_may_be_learned_are_described():
    with serving(LiveLearner(TextClassifier(), labels=["spam", "ham"])) as client:
        refused(send(client, "/describe", {"refund": None}), 422, "got 'refund'")
        ok(send(client, "/describe", {"spam": "win a prize"}))


def test_those_that_wait_are_woken_whatever_an_encoder_raises():
    begun, go_on = threading.Event(), threading.Event()

    def encode(X):
        begun.set()
        assert go_on.wait(30)
        raise LookupError("wrong")

    async def ask():
        encoding = EncodingQueue(encode)
        first = asyncio.create_task(encoding.encode(["a"]))
        await asyncio.to_thread(begun.wait, 30)
        second = asyncio.create_task(encoding.encode(["b"]))  # which waits for the end of the first one
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait_for(asyncio.gather(first, second), 30)

    asyncio.run(ask())
