"""Messages of several fields over HTTP: predicted, learned, explained, asked for, and learned again after a kill."""

import pytest
from serving import learn, ok, predict, refused, send, serving

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.learners.explanations import shown_ngram
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.live_learner import LiveLearner

SPAM = {"subject": "free", "body": "win a prize \ud800"}
HAM = {"subject": "lunch?", "body": "are you free at noon"}


def model():
    return TextClassifier(features=TextFeatures(on="subject") + TextFeatures(on="body"))


def test_fields_come_by_their_names():
    alone, service = model(), LiveLearner(model(), active_learning=ActiveLearning(seconds=0))
    alone.learn_many([SPAM, HAM] * 5, ["spam", "ham"] * 5)
    with serving(service) as client:
        learn(client, [{**SPAM, "label": "spam"}, {**HAM, "label": "ham"}] * 5)
        question = {"subject": "free prize", "id": 7}
        answer = predict(client, question)
        assert answer["margin"] == alone.decision_function_one({"subject": "free prize"}) and answer["id"] == 7
        explanation = dict(ok(send(client, "/explain", question))["contributions"])
        expected = alone.explain_ngrams_one({"subject": "free prize"}, label=answer["label"])
        # What letters add is that of their words.
        assert explanation.keys() <= {*map(shown_ngram, expected), "subject: free", "subject: prize"}
        assert sum(explanation.values()) == pytest.approx(sum(expected.values()))
        (asked,) = ok(client.get("/asked"))["messages"]
        assert asked["text"] == "subject: free prize"
        assert learn(client, {"id": 7, "label": "spam"})["learned"]
        alone.learn_one({"subject": "free prize"}, "spam")
        assert service.model.weights == alone.weights
        newest = ok(client.get("/monitor"))["newest"][0]
        assert newest["text"] == "subject: free prize"
        schemas = ok(client.get("/openapi.json"))["components"]["schemas"]
        assert {"subject", "body", "id", "label", "weight"} == schemas["Message"]["properties"].keys()


def test_what_is_refused():
    with serving(LiveLearner(model())) as client:
        refused(send(client, "/predict", {"id": 7}), 422, "subject, body: no message with this id is kept")
        refused(send(client, "/predict", {}), 422, "subject, body: there is none, and no id")
        refused(send(client, "/predict", [SPAM, {**SPAM, "Body": ""}]), 422, "'Body'; the nearest one is 'body'")
        fault = "message 1: field 'subject' must be a str, got an int"
        refused(send(client, "/predict", [SPAM, {"subject": 7}]), 422, fault)
        refused(send(client, "/learn", [{**SPAM, "label": "x"}, {"body": [], "label": "x"}]), 422, "message 1")
        refused(send(client, "/predict", {**SPAM, "body": "x" * 1_000_001}), 413, "message 0")
    with (
        pytest.raises(ValueError, match="a field cannot be called 'label' here"),
        serving(LiveLearner(TextClassifier(features=TextFeatures(on="label") + TextFeatures(on="body")))),
    ):
        pass
