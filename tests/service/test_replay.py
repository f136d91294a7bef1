"""After a kill the journal gives back the very state that was there, for all that any operation has accepted."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds import several_labels
from running import bits
from serving import asking, refused, send, serving

from stream_pegasos import AdaptiveClassifier, Category, Number, TextClassifier, TextFeatures, Time
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.live_learner import LiveLearner

FIELDS = ("text", "size", "tags", "at")


def of_fields():
    return TextClassifier(features=TextFeatures(on="text") + Number("size") + Category("tags") + Time("at"))


VECTORS = {"prize": [1.0, 0.5], "lunch": [-1.0, 0.25], "😀": [0.1, 1e-30]}


def of_vectors():
    features = TextFeatures(vectors=VECTORS)
    return TextClassifier(features=features, classifier=AdaptiveClassifier(max_features=50))


texts = st.text(max_size=12) | st.sampled_from(["free prize", "lunch", "\ud83d\ude00 prize", "\ud800", "a\u2028b"])
numbers = st.integers() | st.floats() | st.sampled_from([-0.0, 5e-324, 2**64, -(2**63) - 1, 1.7976931348623157e308])
values = st.recursive(
    texts | numbers | st.booleans() | st.none(), lambda each: st.lists(each, max_size=3) | st.dictionaries(texts, each)
)
labels = st.sampled_from(["spam", "ham", 1, True, "1", " true", "\ud800", -(2**63)]) | texts | st.integers()
ids = {"id": st.integers(-(2**63), 2**63 - 1) | texts | st.sampled_from([1, "1", "a", "b"])}
weights = {"weight": st.floats(0.0, 1e30) | st.just(0)}
spelled = {"text": texts, "label": labels}
fields = {"text": texts, "size": values | numbers, "tags": values, "at": values | numbers}


def requests(content, label=labels):
    message = st.fixed_dictionaries({"label": label}, optional={**content, **ids, **weights})
    descriptions = st.dictionaries(texts, texts | st.lists(texts, max_size=3) | st.none(), min_size=1, max_size=3)
    learning = st.tuples(st.just("/learn"), message | st.lists(message, max_size=5))
    return st.lists(
        learning | st.tuples(st.just("/describe"), descriptions) | st.just(("checkpoint", None)), max_size=8
    )


MODELS = {
    "text": (TextClassifier, requests({"text": texts})),
    "fields": (of_fields, requests(fields)),
    "vectors": (of_vectors, requests({"text": texts})),
    "labels": (several_labels, requests({"text": texts}, st.lists(labels, max_size=3))),
}


def state_of(service):
    monitor = service.monitor.get_state()
    monitor.pop("names", None)  # how many are found depends on the time that is left
    return (
        bits(service.model),
        monitor,
        service._learning.snapshot().progress["ids"],
        service._learning.snapshot().progress["labels_of_ids"],
    )


async def send_all(service, requests):
    async with asking(service) as client:
        for path, sent in requests:
            if path == "checkpoint":
                snapshot = service._learning.snapshot()
                snapshot.write(service.checkpoints.path)
                service._journal.written(snapshot.progress["journal"])
                continue
            content = json.dumps(sent)
            response = await client.post(path, content=content, headers={"content-type": "application/json"})
            assert response.status_code in (200, 413, 422), response.text


@pytest.mark.parametrize("which", MODELS)
def test_replay_is_the_identity(which):
    make, some_requests = MODELS[which]

    @given(some_requests, st.sampled_from([2, 100_000]))
    def check(requests, window):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            service = LiveLearner(make(), Checkpoints(path), id_window=window)
            asyncio.run(send_all(service, requests))
            vectors = VECTORS if make is of_vectors else None
            model, progress = Checkpoints(path).resume(vectors) or (make(), None)
            again = LiveLearner(model, Checkpoints(path), progress, id_window=window)
            for each in service, again:
                each.monitor.n_failed = 0  # which no journal keeps
            before, after = state_of(service), state_of(again)
            service._journal.close(), again._journal.close()
            assert after == before

    check()


@pytest.mark.parametrize("content", ["Infinity", "NaN", "-1e400", "[[1, NaN]]", '{"a": Infinity}', "[" * 60 + "]" * 60])
@pytest.mark.parametrize("field", ["size", "tags"])
def test_what_json_cannot_give_back_is_refused(field, content):
    service = LiveLearner(of_fields())
    with serving(service) as client:
        for path in ("/predict", "/learn", "/explain"):
            body = f'{{"text": "a", "label": "spam", "{field}": {content}}}'
            refused(client.post(path, content=body, headers={"content-type": "application/json"}), 422, "")
    assert service.model.n_learned == 0


def test_a_description_is_a_message_of_fields():
    service = LiveLearner(of_fields())
    with serving(service) as client:
        assert send(client, "/describe", {"spam": "free prize", "ham": None}).json()["n_learned"] == 4
