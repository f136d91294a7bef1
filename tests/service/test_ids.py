"""Messages that come again are known by their ids."""

import asyncio
import json

import pytest
from serving import GOOD, MESSAGES, bits, learned, ok, refused, resumed, serving

from stream_pegasos import MultiLabelClassifier, TextClassifier
from stream_pegasos.evaluation.prequential import predict
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.operation.teaching import Teaching
from stream_pegasos.service import Service, create_app

httpx = pytest.importorskip("httpx")


def test_a_message_is_learned_once():
    service = Service(TextClassifier())
    alone = TextClassifier()
    with serving(service) as client:
        first = [{**message, "id": f"a:{i}"} for i, message in enumerate(MESSAGES[:60])]
        again = [{**message, "id": f"a:{i}"} for i, message in enumerate(MESSAGES[:90])]
        for sent, new in ((first, range(60)), (again, range(60, 90)), (again, [])):
            answers = ok(client.post("/learn", json=sent))
            for i, (message, answer) in enumerate(zip(sent, answers, strict=True)):
                (expected,) = predict(alone, [message["text"]])
                assert answer == {**expected._asdict(), "id": f"a:{i}", "learned": i in new}
                if i in new:
                    alone.learn_one(message["text"], message["label"])
        assert ok(client.post("/learn", json=first[7]))["learned"] is False
        assert ok(client.get("/monitor"))["n"] == 90
        assert ok(client.get("/learned")) == {"ids": [f"a:{i}" for i in range(90)]}
    assert bits(service.model) == bits(alone)


def test_which_ids_are_the_same(client):
    ids = [1, "1", None, "a", 1, "", None, "", 2**63 - 1, 2**63 - 1, "\ud800", "\ud800", -(2**63)]
    body = json.dumps([{**GOOD, **({} if id is None else {"id": id})} for id in ids])
    answers = ok(client.post("/learn", content=body, headers={"content-type": "application/json"}))
    assert [answer["learned"] for answer in answers] == [
        id is None or id not in ids[:i] for i, id in enumerate(ids)
    ]  # which holds no True
    assert ok(client.get("/learned"))["ids"] == [1, "1", "a", "", 2**63 - 1, "\ud800", -(2**63)]
    assert "learned" not in ok(client.post("/predict", json={"text": "x", "id": 1}))


def test_the_newest_ids_are_remembered():
    service = Service(TextClassifier(), id_window=5)
    with serving(service) as client:
        for i in range(12):
            ok(client.post("/learn", json={**GOOD, "id": i}))
        assert ok(client.get("/learned"))["ids"] == [7, 8, 9, 10, 11]
        assert ok(client.post("/learn", json={**GOOD, "id": 7}))["learned"] is False
        assert ok(client.post("/learn", json={**GOOD, "id": 6}))["learned"] is True
        answers = ok(client.post("/learn", json=[{**GOOD, "id": i} for i in [*range(100, 110), 100]]))
        assert [answer["learned"] for answer in answers] == [True] * 10 + [False]


@pytest.mark.parametrize("id", ["x" * 201, "\ud800" * 201, True, 1.0, None, 2**63, -(2**63) - 1, [1]])
@pytest.mark.parametrize("path", ["/predict", "/learn"])
def test_what_is_no_id_is_refused(client, path, id):
    for sent in ({**GOOD, "id": id}, [GOOD, {**GOOD, "id": id}]):
        response = client.post(path, content=json.dumps(sent), headers={"content-type": "application/json"})
        refused(response, 422, "id: it must be a string of up to 200 characters or an int of 64 bits")
    ok(client.post(path, json={**GOOD, "id": "x" * 200}))


def test_the_same_id_with_another_label_is_a_correction():
    """What the model has learned it cannot unlearn: it is taught again, and only once."""
    service, alone = Service(TextClassifier()), TextClassifier()
    with serving(service) as client:
        for label, said in (
            ("ham", None),
            ("ham", None),
            ("spam", "taught anew"),
            ("spam", None),
            (" ham", "taught anew"),
        ):
            answer = ok(client.post("/learn", json={"text": "win a prize", "label": label, "id": 7}))
            assert answer.get("correction") == said
            if said or not alone.n_learned:
                alone.learn_one("win a prize", label.strip())
            assert service.model.n_learned == alone.n_learned
        both = [{"text": "lunch", "label": label, "id": 8} for label in ("spam", "ham", "ham")]
        answers = ok(client.post("/learn", json=both))
        assert [(answer["learned"], answer.get("correction")) for answer in answers] == [
            (True, None),
            (True, "taught anew"),
            (False, None),
        ]
        alone.learn_many(["lunch", "lunch"], ["spam", "ham"])
        assert ok(client.get("/learned")) == {"ids": [7, 8]}
    assert bits(service.model) == bits(alone)


def test_several_labels_in_another_order_are_no_correction():
    service = Service(TextClassifier(classifier=MultiLabelClassifier()))
    with serving(service) as client:
        for labels, said in ((["a", "b"], None), (["b", "a"], None), (["b"], "taught anew")):
            answer = ok(client.post("/learn", json={"text": "x", "label": labels, "id": 1}))
            assert answer.get("correction") == said


def test_a_label_that_waits_is_corrected_exactly():
    """The model never learns the one that was given on the page, whatever text comes with the id."""
    service, alone = Service(TextClassifier(), teaching=Teaching(seconds=60.0)), TextClassifier()
    with serving(service) as client:
        for id, (first, second, sent, said) in enumerate(
            [
                ("ham", "spam", {"text": "as it was sent"}, "taken back"),
                ("ham", "spam", {}, "taken back"),  # by its id alone
                ("ham", "ham", {}, None),
                (None, "spam", {}, None),  # whose text waits
            ]
        ):
            text = f"message {id}"
            ok(client.post("/predict", json={"text": text, "id": id}))
            if first is not None:
                (number,) = (each["number"] for each in ok(client.get("/asked"))["messages"] if each["text"] == text)
                ok(client.post("/teach", json={"number": number, "label": first}))
            answer = ok(client.post("/learn", json={**sent, "label": second, "id": id}))
            assert (answer["learned"], answer.get("correction")) == (True, said)
            assert ok(client.get("/asked"))["given"] == []
            alone.learn_one(sent.get("text", text), second)
        for sent, word in (({"id": 3}, "nothing is kept"), ({"id": 99}, "nothing is kept"), ({}, "there is none")):
            refused(client.post("/learn", json={**sent, "label": "ham"}), 422, word)
            refused(client.post("/learn", json=[GOOD, {**sent, "label": "ham"}]), 422, f"1.text: {word}")
    assert bits(service.model) == bits(alone)


def test_a_correction_is_known_after_a_restart(tmp_path):
    with serving(resumed(tmp_path / "model")) as client:
        ok(client.post("/learn", json=[{**GOOD, "id": 1}, {**GOOD, "label": "ham", "id": 2}]))
    with serving(resumed(tmp_path / "model")) as client:
        answers = ok(client.post("/learn", json=[{**GOOD, "id": 1}, {**GOOD, "id": 2}]))
        assert [(answer["learned"], answer.get("correction")) for answer in answers] == [
            (False, None),
            (True, "taught anew"),
        ]


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, MemoryError])
def test_learning_that_fails_on_the_way(kind, monkeypatch, capsys):
    """What was learned by then is known by its ids, and not learned again."""
    service = Service(TextClassifier())
    known = [{**message, "id": i} for i, message in enumerate(MESSAGES)]
    learn = TextClassifier.predict_learn_many

    def fail_on_the_way(model, x, y, w, threads=1):
        learn(model, x[:17], y[:17], w)
        raise kind("the detector broke")

    def fail(*_, **__):
        raise kind("the detector broke")

    with serving(service, raise_server_exceptions=False) as client:
        ok(client.post("/learn", json=known[:20]))
        with monkeypatch.context() as patch:
            patch.setattr(TextClassifier, "predict_learn_many", fail_on_the_way)
            patch.setattr(TextClassifier, "learn_one", fail)
            refused(client.post("/learn", json=known[20:50]), 500, "internal error")
        assert "the detector broke" in capsys.readouterr().err
        assert ok(client.get("/learned"))["ids"] == [*range(37)]
        answers = ok(client.post("/learn", json=known[20:60]))
        assert [answer["learned"] for answer in answers] == [i >= 37 for i in range(20, 60)]
    assert service.model.n_iterations == 60


def test_a_request_that_fails_leaves_the_ids_as_they_were(client):
    ok(client.post("/learn", json=[{**GOOD, "id": 1}, {"text": "lunch", "label": "ham", "id": 2}]))
    refused(client.post("/learn", json=[{**GOOD, "id": 3}, {**GOOD, "label": ["eggs"], "id": 4}]), 422, "list")
    assert ok(client.get("/learned"))["ids"] == [1, 2]


def test_ids_are_those_of_the_model_beside_them(tmp_path):
    """Whenever a checkpoint is taken, also in the middle of a request."""
    service = resumed(tmp_path / "model")
    ids = [i if i % 2 else str(i) for i in range(300)]
    large = [
        {**message, "text": message["text"] + " x" * 1_000, "id": id} for message, id in zip(MESSAGES, ids, strict=True)
    ]
    app, snapshots = create_app(service), []

    async def both():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            learning = asyncio.create_task(client.post("/learn", json=large))
            while not learning.done():
                snapshots.append(service.snapshot())
                await asyncio.sleep(0)
            ok(await learning)

    asyncio.run(both())
    seen = set()
    for i, snapshot in enumerate([snapshots[0], *snapshots[5:-1:3], service.snapshot()]):
        snapshot.write(tmp_path / f"{i}")
        model, progress = load_with_progress(tmp_path / f"{i}")
        again = Service(model, progress=progress)
        assert again.learned_ids() == ids[: model.n_iterations]
        assert again.monitor.score.n == model.n_iterations
        seen.add(model.n_iterations)
    assert len(seen) > 3
    with serving(again) as client:
        assert not any(answer["learned"] for answer in ok(client.post("/learn", json=large)))


@pytest.mark.parametrize("ids", [3, None, "", "[", "{}", "[1.5]", "[true]", "[null]", "[[1]]"])
@pytest.mark.parametrize("name", ["ids", "labels_of_ids"])
def test_ids_that_are_none(name, ids):
    progress = Service(learned()).snapshot().progress
    with pytest.raises(ValueError, match="no list of ids"):
        Service(learned(), progress=progress | {name: ids})
    del progress[name]
    with pytest.raises(ValueError, match="no list of ids"):
        Service(learned(), progress=progress)
