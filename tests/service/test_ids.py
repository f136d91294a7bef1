"""Messages that come again are known by their ids."""

import pytest
from kinds import several_labels
from outcomes import predictions_of
from running import bits
from serving import GOOD, MESSAGES, learn, learned, ok, predict, refused, resumed, send, serving

from stream_pegasos import TextClassifier
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.durable_learning import DurableLearning
from stream_pegasos.runtime.live_learner import LiveLearner


def outcomes(answers):
    return [(answer["learned"], answer.get("correction")) for answer in answers]


def test_a_message_is_learned_once():
    service, alone = LiveLearner(TextClassifier()), TextClassifier()
    known = [{**message, "id": f"a:{i}"} for i, message in enumerate(MESSAGES[:90])]
    with serving(service) as client:
        for sent, new in ((known[:60], range(60)), (known, range(60, 90)), (known, [])):
            for i, (message, answer) in enumerate(zip(sent, learn(client, sent), strict=True)):
                (expected,) = predictions_of(alone, [message["text"]])
                assert answer == {**expected._asdict(), "id": f"a:{i}", "learned": i in new}
                if i in new:
                    alone.learn_one(message["text"], message["label"])
        assert not learn(client, known[7])["learned"]
        refused(send(client, "/learn", [{**GOOD, "id": "b"}, {**GOOD, "label": ["eggs"], "id": "c"}]), 422, "list")
        ids = [f"a:{i}" for i in range(90)]
        assert ok(client.get("/learned")) == {"ids": ids, "n": 90}
        for skip in (0, 20, 85, 90, 200):  # in pages, the newest first
            page = ok(client.get("/learned", params={"limit": 20, "skip": skip}))
            assert page == {"ids": ids[: max(0, 90 - skip)][-20:], "n": 90}
        assert ok(client.get("/monitor"))["n"] == 90
    assert bits(service.model) == bits(alone)


def test_which_ids_are_the_same(client):
    ids = [1, "1", None, "a", 1.0, "", None, "", " ", " ", 2**63 - 1, 2**63 - 1, "\ud800", "\ud800", -(2**63)]
    answers = learn(client, [{**GOOD, **({} if id is None else {"id": id})} for id in ids])
    blank = (None, "", " ")  # which is the id of no message
    assert [answer["learned"] for answer in answers] == [id in blank or id not in ids[:i] for i, id in enumerate(ids)]
    assert ok(client.get("/learned"))["ids"] == [1, "1", "a", 2**63 - 1, "\ud800", -(2**63)]
    assert "learned" not in predict(client, {"text": "x", "id": 1})


def test_an_id_that_comes_twice_in_a_request_is_known_beyond_the_window():
    with serving(LiveLearner(TextClassifier(), id_window=5)) as client:
        answers = learn(client, [{**GOOD, "id": i} for i in [*range(100, 110), 100]])
        assert [answer["learned"] for answer in answers] == [True] * 10 + [False]


@pytest.mark.parametrize("path", ["/predict", "/learn"])
def test_what_is_no_id_is_refused(client, path):
    for id in ("x" * 201, "\ud800" * 201, True, 1.5, 2.0**53, None, 2**63, -(2**63) - 1, [1]):
        for sent in ({**GOOD, "id": id}, [GOOD, {**GOOD, "id": id}]):
            message = "id: it must be a string of up to 200 characters or an int of 64 bits"
            refused(send(client, path, sent), 422, message)
    ok(client.post(path, json={**GOOD, "id": "x" * 200}))


def test_a_correction_needs_the_text():
    """Also of 10,000 ids, none of which has anything done for it."""
    service = LiveLearner(TextClassifier())
    with serving(service) as client:
        learn(client, [{"text": f"message {i}", "label": "ham", "id": i} for i in range(1_000)])
        before = bits(service.model)
        for id in (7, -7):
            bare = [{"label": "spam", "id": id - i} for i in range(10_000)]
            refused(send(client, "/learn", bare), 422, "0.text: no message with this id is kept")
            refused(send(client, "/learn", bare[0]), 422, "send its text")
    assert bits(service.model) == before


def test_several_labels_in_another_order_are_no_correction():
    with serving(LiveLearner(several_labels())) as client:
        answers = [learn(client, {"text": "x", "label": labels, "id": 1}) for labels in (["a", "b"], ["b", "a"], ["b"])]
        assert outcomes(answers) == [(True, None), (False, None), (True, "taught anew")]


def test_a_label_that_waits_is_corrected_exactly():
    """The model never learns the one that was given on the page, whatever text comes with the id."""
    service, alone = LiveLearner(TextClassifier(), active_learning=ActiveLearning(seconds=60.0)), TextClassifier()
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
            predict(client, {"text": text, "id": id})
            if first is not None:
                (number,) = (each["number"] for each in ok(client.get("/asked"))["messages"] if each["text"] == text)
                ok(client.post("/teach", json={"number": number, "label": first}))
            assert outcomes([learn(client, {**sent, "label": second, "id": id})]) == [(True, said)]
            assert ok(client.get("/asked"))["given"] == []
            alone.learn_one(sent.get("text", text), second)
        for sent, word in (
            ({"id": 3}, "no message with this id"),
            ({"id": 99}, "no message with this id"),
            ({}, "there is none"),
        ):
            refused(send(client, "/learn", {**sent, "label": "ham"}), 422, word)
            refused(send(client, "/learn", [GOOD, {**sent, "label": "ham"}]), 422, f"1.text: {word}")
    assert bits(service.model) == bits(alone)


def test_a_message_of_weight_0_takes_no_id_and_supersedes_no_label():
    service, alone = LiveLearner(TextClassifier(), active_learning=ActiveLearning(seconds=60.0)), TextClassifier()
    with serving(service) as client:
        for label, weight, said in (
            ("spam", 0, (False, None)),
            ("spam", 1, (True, None)),
            ("ham", 0, (False, None)),
            ("spam", 1, (False, None)),
            ("ham", 1, (True, "taught anew")),
        ):
            assert outcomes([learn(client, {"text": "pills", "label": label, "weight": weight, "id": "m"})]) == [said]
        reference = DurableLearning(alone)
        for label in ("spam", "ham"):
            reference.learn([("pills", label)], ["m"])
        assert bits(service.model) == bits(alone)
        predict(client, {"text": "lunch", "id": "k"})
        (asked,) = ok(client.get("/asked"))["messages"]
        ok(client.post("/teach", json={"number": asked["number"], "label": "ham"}))
        assert outcomes([learn(client, {"text": "lunch", "label": "spam", "weight": 0, "id": "k"})]) == [(False, None)]
        assert [given["label"] for given in ok(client.get("/asked"))["given"]] == ["ham"]


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, KeyError, MemoryError])
def test_learning_that_fails_on_the_way(kind, monkeypatch, caplog, tmp_path):
    """What was learned by then is known by its ids, also after a kill, and not learned again."""
    service = resumed(tmp_path / "model", seconds=1_000.0)
    service.checkpoints.close = lambda last: None  # no last checkpoint
    known = [{**message, "id": i} for i, message in enumerate(MESSAGES)]
    learn_many = TextClassifier.predict_learn_many

    def fail_on_the_way(model, x, y, w, threads=1):
        learn_many(model, x[:17], y[:17], w)
        fail()

    def fail(*_, **__):
        raise kind("the detector broke")

    with serving(service, raise_server_exceptions=False) as client:
        learn(client, known[:20])
        with monkeypatch.context() as patch:
            patch.setattr(TextClassifier, "predict_learn_many", fail_on_the_way)
            patch.setattr(TextClassifier, "learn_one", fail)
            refused(send(client, "/learn", known[20:50]), 500, "internal error")
        assert "the detector broke" in caplog.text
        assert ok(client.get("/learned"))["ids"] == [*range(37)]
        assert [answer["learned"] for answer in learn(client, known[20:60])] == [i >= 37 for i in range(20, 60)]
    again = resumed(tmp_path / "model")
    assert again.model.n_learned == 60 and bits(again.model) == bits(service.model)
    assert again.learned_ids() == [*range(60)]
    again.close()


@pytest.mark.parametrize("name", ["ids", "labels_of_ids"])
def test_ids_that_are_none(name):
    progress = LiveLearner(learned())._learning.snapshot().progress
    wrong = [progress | {name: ids} for ids in (3, None, "", "[", "{}", "[1.5]", "[true]", "[null]", "[[1]]")]
    for each in [*wrong, {key: value for key, value in progress.items() if key != name}]:
        with pytest.raises(ValueError, match="ids must be a list"):
            LiveLearner(learned(), progress=each)
