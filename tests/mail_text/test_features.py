"""Mails as messages of a model."""

import email
import email.policy
import sys

import pytest

from stream_pegasos import AdaptiveClassifier, Category, MailFeatures, TextClassifier, TextFeatures, load
from stream_pegasos.features.base import FeatureUnion
from stream_pegasos.features.message import Fields
from stream_pegasos.mail_text.parts import mail_parts

SPAM = (
    b"Received: from evil.example (evil.example [1.2.3.4]) by mx.our.example; Mon, 2 Sep 2002 13:12:45 +0100\n"
    b"From: shop@x.example\nSubject: =?utf-8?q?Fr=65e?=\nContent-Type: text/html\n\n"
    b"F<b>re</b>e <a href='http://1.2.3.4/prize'>bank.example</a>"
)
HAM = "From: Ann <ann@y.example>\nSubject: lunch\n\nSee you at noon, naïve café".encode("latin-1")
MAILS, LABELS = [SPAM, HAM, b"", b"no mail at all", HAM + b"x" * 500_000] * 4, ["spam", "ham", "ham", "spam", "ham"] * 4


def test_the_parts_of_a_mail_are_fields():
    """What a sum of features of the parts would find."""
    parts = mail_parts(SPAM)
    record = {"text": parts.text, "subject": parts.subject, "headers": parts.headers, "route": parts.route}
    record["source"] = parts.source
    record["marks"] = [token.replace("\n", " ") for token in parts.tokens]
    words = TextFeatures(letters=0, length=0)
    by_hand = words.clone({"on": "text"}) + words.clone({"on": "subject"}) + words.clone({"on": "headers"})
    by_hand = by_hand + words.clone({"on": "route", "namespace": "headers", "ngram_range": (1, 3)})
    by_hand = by_hand + TextFeatures(on="source", analyzer="char", ngram_range=(5, 5)) + Category(on="marks")
    by_hand.parts[-1].namespace = "marks"
    by_hand = FeatureUnion(by_hand.parts)
    assert MailFeatures().transform_one(SPAM) == by_hand.transform_one(record)
    less = MailFeatures(route=False).transform_one(SPAM)
    assert less.keys() < MailFeatures().transform_one(SPAM).keys()
    assert MailFeatures().parts(SPAM) == parts and parts.subject == "Free" and "Free" in parts.text


def test_what_other_filters_said_is_not_learned():
    said = b"X-Spam-Flag: YES\nX-Bogosity: Spam, tests=bogofilter\nX-Rspamd-Score: 9\nX-Spam-Report:\n\tlong\n"
    assert mail_parts(said + SPAM) == mail_parts(SPAM)


def test_the_source_is_what_servers_and_the_program_wrote():
    hop = (
        "from a.example (b.example [1.2.3.4]) by mx.example id 1B2 for <ann@y.example>; Mon, 2 Sep 2002 13:12:45 +0100"
    )
    fields = ["From: shop", "message-ID: <1@x>", "Date: Mon", "Subject: Free", "X-Mailer: The Bat!", "X-Spam-Flag: YES"]
    parts = mail_parts("\n".join([f"Received: {hop}"] * 4 + [*fields, "", "<b>caf\xe9</b>" + "x" * 600]).encode())
    newest = "from a.example (b.example [1.2.3.4]) by mx.example for <ann@y.example>"
    assert parts.source.split("\n")[:4] == [newest] * 4
    assert parts.source.split("\n")[4:] == ["message-ID: <1@x>", "X-Mailer: The Bat!", "<b>caf\xe9</b>" + "x" * 489]
    long = mail_parts(b"Received: " + b"x" * 400 + b"\nX-Mailer: " + b"a" * 600 + b"\nUser-Agent: b\n\n")
    assert long.source == "x" * 300 + "\nX-Mailer: " + "a" * 290 + "\n"
    lines = b"X-Mailer: a\n\n" + b"short\n" * 200
    assert mail_parts(lines.replace(b"\n", b"\r\n")).source == mail_parts(lines).source
    assert not any(part.on == "source" for part in MailFeatures(route=False).each)


def test_bytes_texts_and_messages_are_the_same():
    features = MailFeatures()
    expected = features.prepare(SPAM)
    parsed = email.message_from_bytes(SPAM, policy=email.policy.default)
    for mail in (SPAM.decode("latin-1"), bytearray(SPAM), memoryview(SPAM), email.message_from_bytes(SPAM), parsed):
        assert features.prepare(mail) == expected
    assert features.prepare("Subject: 漢字\n\nか \ud800")[:2] == ("か ?", "漢字")
    for wrong in (None, 5, ["Subject: x"], {"mail": "x"}):
        with pytest.raises(TypeError, match="a mail must be the text or bytes of one"):
            features.prepare(wrong)


def test_a_model_of_mails(tmp_path):
    model, many, threads = (TextClassifier(MailFeatures()) for _ in range(3))
    for mail, label in zip(MAILS, LABELS, strict=True):
        model.learn_one(mail, label)
    many.learn_many([mail.decode("latin-1") for mail in MAILS], LABELS)
    threads.learn_many(MAILS, LABELS, threads=2)
    assert model.weights == many.weights == threads.weights
    explanation = model.explain_ngrams_one(SPAM)
    assert sum(explanation.values()) == pytest.approx(model.decision_function_one(SPAM))
    assert {"subject: free", "text: free", "from:x.example"} <= explanation.keys()
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.features.route and loaded.predict_proba_one(SPAM) == model.predict_proba_one(SPAM)


def test_a_mail_in_a_field_beside_others(tmp_path):
    features = TextFeatures(on="subject") + MailFeatures(on="raw", route=False) + Category(on="queue")
    model = TextClassifier(features, AdaptiveClassifier())
    X = [{"raw": SPAM.decode("latin-1"), "queue": 7}, {"raw": HAM.decode("latin-1"), "subject": "Free"}, {"queue": 8}]
    model.learn_many(X, ["spam", "ham", "ham"])
    assert model.features.fields == ("subject", "raw", "queue") and model.features.mail_field == "raw"
    assert sum(model.explain_ngrams_one(X[0]).values()) == pytest.approx(model.decision_function_one(X[0]))
    # The words of a field and those of a mail's subject are not the same.
    alone = features.transform_one({"subject": "Free"})
    assert not alone.keys() & features.transform_one({"raw": b"Subject: Free\n\n"}).keys()
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict_proba_one(X[0]) == model.predict_proba_one(X[0])
    for nothing in (None, float("nan")):
        assert features.transform_one({"raw": nothing, "queue": 7}) == features.transform_one({"queue": 7})
        assert features.shown(Fields({"raw": nothing, "queue": 7})).endswith("queue: 7")
    with pytest.raises(ValueError, match="none of the fields subject, raw, queue"):
        model.learn_one({"text": "x"}, "ham")


def test_subject_and_text_have_one_vector():
    vectors = {"free": [1.0, 0.0], "lunch": [0.0, 1.0], "list": [1.0, 1.0]}
    features = MailFeatures(vectors=vectors)
    found = features.transform_one(b"Subject: free\nX-Mailer: list\n\nlunch")
    assert [found[2**30 + i] for i in range(2)] == pytest.approx([0.5**0.5, 0.5**0.5])
    assert features.clone().vector_source == features.vector_source


@pytest.mark.parametrize("package", ["lxml", "tinycss2"])
def test_it_says_which_package_is_missing(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"MailFeatures needs {package}: .* pip install"):
        MailFeatures()
