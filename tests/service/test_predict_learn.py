"""What the service predicts, learns and explains is what the model does."""

import asyncio

import pytest
from outcomes import predictions_of
from running import bits
from serving import (
    MESSAGES,
    STREAM,
    asking,
    learn,
    learned,
    name_all_features,
    not_served,
    ok,
    predict,
    refused,
    send,
    serving,
)

from stream_pegasos import AdaptiveClassifier, PegasosClassifier, TextClassifier
from stream_pegasos.learners.explanations import phrases
from stream_pegasos.runtime.limits import Limits
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.streams import synthetic


def said(model, texts):
    return [prediction._asdict() for prediction in predictions_of(model, texts)]


@pytest.mark.parametrize("make", [TextClassifier, lambda: TextClassifier(classifier=PegasosClassifier())])
def test_it_learns_and_predicts_as_the_model_does(make):
    """Bit for bit: one by one, many at a time, with weights."""
    alone, service = make(), LiveLearner(make())
    with serving(service) as client:
        for i, message in enumerate(MESSAGES[:60]):
            (expected,) = said(alone, [message["text"]])
            assert predict(client, {"text": message["text"]}) == expected
            assert learn(client, {**message, "id": i}) == {**expected, "id": i, "learned": True}
            alone.learn_one(message["text"], message["label"])
        rest = [{**message, "weight": i % 3 + 0.5} for i, message in enumerate(MESSAGES[60:])]
        answers = [answer for begin in range(0, 240, 70) for answer in learn(client, rest[begin : begin + 70])]
        X, y = map(list, zip(*STREAM[60:], strict=True))
        margins = alone.predict_learn_many(X, y, [message["weight"] for message in rest]).scores
        assert [answer["margin"] for answer in answers] == margins.tolist()
        assert bits(service.model) == bits(alone)
        texts = [text for text, _ in synthetic(n=20, seed=9)]
        assert predict(client, [{"text": text} for text in texts]) == said(alone, texts)


def test_it_says_where_a_limit_decides():
    model = TextClassifier(classifier=AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.005))
    with serving(LiveLearner(model)) as client:
        learn(client, MESSAGES)
        texts = [text for text, _ in synthetic(n=1_000, seed=9)]
        answers = predict(client, [{"text": text} for text in texts])
        probable = [model.predict_proba_one(text)["spam"] > 0.5 for text in texts]
        held = [answer.get("withheld") == ["spam"] for answer in answers]
        assert held == [p and answer["label"] == "ham" for p, answer in zip(probable, answers, strict=True)]
        assert any(held) and not all(held)
        text = texts[held.index(True)]
        assert ok(client.post("/explain", json={"text": text}))["withheld"] == ["spam"]
        predict(client, {"text": text})
        assert ok(client.get("/monitor"))["newest"][0]["withheld"] == ["spam"]


def test_it_says_the_set_of_a_coverage():
    alone, service = TextClassifier(), LiveLearner(TextClassifier())
    for model in (alone, service.model):
        model.set_decision(coverage=0.99)
    with serving(service) as client:
        for i, message in enumerate(MESSAGES[:60]):
            expected = alone.predict_set_one(message["text"])
            assert predict(client, {"text": message["text"]})["set"] == expected
            assert learn(client, {**message, "id": i})["set"] == expected
            alone.learn_one(message["text"], message["label"])
        before = service.model.trainer.policy.conformal
        assert before == alone.trainer.policy.conformal
        text = MESSAGES[0]["text"]
        assert ok(client.post("/explain", json={"text": text}))["set"] == alone.predict_set_one(text)
        learn(client, {**MESSAGES[0], "id": 0})  # once by its id
        assert service.model.trainer.policy.conformal == before
        other = {"ham": "spam", "spam": "ham"}[MESSAGES[0]["label"]]
        assert learn(client, {**MESSAGES[0], "id": 0, "label": other})["correction"] == "taught anew"
        assert service.model.trainer.policy.conformal != before  # a correction moves the level when it comes
        assert {"coverage", "sets_of_one"} <= ok(client.get("/monitor")).keys()
        assert "stream_pegasos_window_coverage" in client.get("/metrics").text


def test_before_anything_is_learned_and_with_one_label(client):
    assert predict(client, {"text": "win"}) == {"label": None, "probability": None, "margin": None}
    assert predict(client, []) == learn(client, []) == []
    seen = ok(client.get("/monitor"))
    assert (seen["n"], seen["accuracy"]) == (0, None)
    (answer,) = learn(client, [{"text": "win a prize", "label": "spam"}])
    assert (answer["label"], answer["probability"]) == (None, None)
    answer = predict(client, {"text": "lunch at noon?"})
    assert (answer["label"], answer["probability"]) == ("spam", pytest.approx(2 / 3))


def test_a_float_that_is_an_integer_is_that_label():
    """As gaps beside them make of integers in data frames; the same label as in a text, or as the integer."""
    service = LiveLearner(TextClassifier())
    with serving(service) as client:
        assert all(learn(client, {"text": "win a prize", "label": label})["learned"] for label in (1.0, 1, "1.0"))
    assert [*map(type, service.model.classes)] == [int] and service.model.classes == (1,)


@pytest.mark.parametrize("text", ["", "\ud800", "\udfff\ud800x", "\x00", "😀 e\u0301 \u202e", "a\nb", "x" * 100_000])
def test_any_text_is_a_text(client, text):
    alone = TextClassifier()
    for label, word in (("ham", "lunch"), ("spam", "pills")):
        answer = learn(client, {"text": f"{text} {word}", "label": label, "id": text[:10] + label})
        assert answer["id"] == text[:10] + label
        alone.learn_one(f"{text} {word}", label)
    assert [predict(client, {"text": text})] == said(alone, [text])
    newest = ok(client.get("/monitor"))["newest"][0]
    assert newest["text"] == (text[:299] + "…" if len(text) > 300 else text)


def test_explanations_add_up():
    model = learned()
    with serving(LiveLearner(model)) as client:
        text = " ".join(text for text, _ in STREAM[:20])
        explained = ok(client.post("/explain", json={"text": text}))
        expected = model.explain_ngrams_one(text)
        sign = 1.0 if explained["label"] == "spam" else -1.0
        assert explained["margin"] == pytest.approx(sign * model.decision_function_one(text))
        expected = {word: sign * size for word, size in expected.items()}
        found, others = phrases(expected.items(), 50, {"": text})
        assert explained["contributions"] == [[phrase.name, phrase.value] for phrase in found]
        assert explained["words"] == [[[*share] for share in phrase.words] for phrase in found]
        assert "".join(piece for piece, _ in explained["pieces"][0][1]) == text
        assert explained["n_others"] == len(others)
        total = sum(value for _, value in explained["contributions"]) + explained["others"]
        assert total == pytest.approx(explained["margin"], rel=1e-9)
        label, against = explained["explained"], explained["against"]
        assert ok(client.post("/explain", json={"text": text, "label": label})) == {**explained, "against": None}
        other = ok(client.post("/explain", json={"text": text, "label": against}))
        assert other["contributions"] == [[word, -size] for word, size in explained["contributions"]]


def test_a_model_whose_texts_stand_in_a_field_takes_them_as_they_are(monkeypatch):
    name_all_features(monkeypatch)
    answers = []
    for on in ("body", None):
        with serving(LiveLearner(TextClassifier().clone({"features": {"on": on}}))) as client:
            text = {"text": MESSAGES[0]["text"]}
            explained = [learn(client, MESSAGES[:40]), predict(client, text), ok(client.post("/explain", json=text))]
            answers.append([*explained, ok(client.get("/monitor", params={"label": "spam"}))["words"]])
    assert answers[0] == answers[1]


def test_the_command_serves_a_saved_model_and_fixes_the_labels(serve, tmp_path):
    """Beside it: how many messages wait, and that answers wait for the disk."""
    learned().save(tmp_path / "m")
    served = serve(tmp_path / "m", "--labels", "spam,ham", "--queue", 2, "--sync", "--checkpoint", tmp_path / "c")
    predict(served.client, [{"text": f"message {i}"} for i in range(3)])
    assert {each["text"] for each in ok(served.client.get("/asked"))["messages"]} == {"message 1", "message 2"}
    assert ok(served.client.get("/monitor?model=true"))["model"]["classes"] == ["ham", "spam"]
    wrong = [MESSAGES[0], {"text": "a", "label": "Spam"}]
    refused(send(served.client, "/learn", wrong), 422, "must be one of 'spam', 'ham'")
    assert ok(served.client.get("/asked"))["labels"] == ["spam", "ham"]
    code, said = not_served("--port", served.port)
    assert code == 1 and f"port {served.port} of 127.0.0.1 is in use; choose another by --port" in said


# Requests that are answered at the same time ----------------------------------------------------


def test_predictions_go_on_between_the_slices_of_a_large_request():
    service = LiveLearner(TextClassifier())
    large = [{**message, "text": message["text"] + " " + "x" * 2_000} for message in MESSAGES]

    async def both():
        async with asking(service) as client:
            learning, seen = asyncio.create_task(client.post("/learn", json=large)), set()
            while not learning.done():
                ok(await client.post("/predict", json={"text": "win a prize"}))
                seen.add(service.monitor.score.n)
                await asyncio.sleep(0)  # as the transport of the test never waits
            assert len(ok(await learning)) == len(large)
            return seen

    assert len(asyncio.run(both()) - {0, len(large)}) >= 3
    assert service.monitor.score.n == len(large)


def test_requests_to_learn_take_turns():
    """The labels of one are checked when those of the other are known."""
    service = LiveLearner(TextClassifier(), limits=Limits(classes=2))

    async def both():
        async with asking(service) as client:
            bodies = [[{"text": "x" * 30_000, "label": label} for label in pair * 4] for pair in ("ab", "cd")]
            return await asyncio.gather(*(client.post("/learn", json=body) for body in bodies))

    assert sorted(response.status_code for response in asyncio.run(both())) == [200, 422]
    assert service.monitor.score.n == 8
