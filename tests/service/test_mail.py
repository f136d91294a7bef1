"""Mails over HTTP, as they came."""

import pytest
from serving import learn, ok, predict, refused, serving

from stream_pegasos import Category, MailFeatures, TextClassifier
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.runtime.live_learner import LiveLearner

SPAM = b"From: shop@x.example\nSubject: =?utf-8?q?Fr=65e?=\n\nSee http://1.2.3.4/prize \xff"
HAM = b"From: Ann <ann@y.example>\nSubject: lunch\n\nAre you free at noon?"


def post(client, path, mail, **query):
    return client.post(path, content=mail, params=query, headers={"content-type": "Message/RFC822; charset=x"})


@pytest.mark.parametrize(
    "features", [MailFeatures(), MailFeatures(on="mail") + Category(on="queue")], ids=["alone", "field"]
)
def test_mails_are_bodies(features):
    field, alone = features.mail_field, TextClassifier(features)
    with serving(LiveLearner(TextClassifier(features))) as client:
        for i, (mail, label) in enumerate([(SPAM, "spam"), (HAM, "ham")] * 3):
            assert ok(post(client, "/learn", mail, label=label, id=f"m{i}", weight="0.5"))["learned"]
            text = mail.decode("latin-1")
            alone.learn_one(text if field == "text" else {field: text}, label, 0.5)
        message = {field: SPAM.decode("latin-1")}
        answer = ok(post(client, "/predict", SPAM, id="m9"))
        assert answer == {**predict(client, message), "id": "m9"} and answer["label"] == "spam"
        assert answer["margin"] == alone.decision_function_one(message if field == "mail" else message["text"])
        explanation = dict(ok(post(client, "/explain", SPAM))["contributions"])
        assert "subject: Free" in explanation and "from:x.example" in explanation
        assert learn(client, {**message, "label": "spam", "id": "m0"})["learned"] is False  # the same mail
        newest = ok(client.get("/monitor"))["newest"][0]["text"]
        assert newest.startswith("Free\nSee http" if field == "text" else "mail: Free\nSee http")
        big = SPAM + b"x" * 2_000_000  # of an attachment, say
        assert ok(post(client, "/predict", big))["label"] == "spam"
        refused(post(client, "/learn", SPAM), 422, "label")
        refused(post(client, "/learn", b"\r\n", label="ham"), 422, "empty")
        refused(post(client, "/learn", SPAM, label="ham", weight="x"), 422, "weight")
        described = ok(client.get("/openapi.json"))["paths"]
        assert "message/rfc822" in described["/predict"]["post"]["requestBody"]["content"]
        assert "message/rfc822" not in described["/teach"]["post"]["requestBody"]["content"]


@pytest.mark.parametrize(
    "features", [MailFeatures(), MailFeatures(on="mail") + Category(on="queue")], ids=["alone", "field"]
)
def test_a_mail_without_an_id_is_known_by_what_it_is(features):
    """As a mail server retries what it did not hear the answer to, and adds a line."""
    with serving(LiveLearner(TextClassifier(features))) as client:
        assert ok(post(client, "/learn", HAM, label="ham"))["id"] == mail_id(HAM)
        again = ok(post(client, "/learn", b"Received: by mx\r\n" + HAM, label="ham"))
        assert again["learned"] is False and again["id"] == mail_id(HAM)
        assert learn(client, {features.mail_field: HAM.decode("latin-1"), "label": "spam"})["correction"]
        assert predict(client, [{features.mail_field: SPAM.decode("latin-1")}])[0]["id"] == mail_id(SPAM)


def test_other_models_take_no_mails():
    with serving(LiveLearner(TextClassifier())) as client:
        refused(post(client, "/predict", SPAM), 415, "the content type must be application/json")
