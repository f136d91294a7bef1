"""Wrong answers over HTTP, and why requests failed."""

from datetime import UTC, datetime, timedelta

import pytest
from kinds import several_labels
from serving import MESSAGES, killed, learn, ok, predict, refused, send, serving

from stream_pegasos import TextClassifier
from stream_pegasos.operation.live_learner import LiveLearner
from stream_pegasos.streams import read


def test_wrong_answers_are_searched_and_read_again_as_a_stream(client, tmp_path):
    strange = [("a, b", "ham"), ('"free"\nprize', "spam"), ("=1+1", "ham")]
    learn(client, [{"text": text, "label": label} for text, label in strange])
    learn(client, MESSAGES[:100])
    seen = ok(client.get("/wrong"))
    assert seen["n"] == len(seen["messages"]) > 5 and not any(message["right"] for message in seen["messages"])
    found = ok(client.get("/wrong", params={"search": "PRIZE", "limit": 2}))
    with_it = [each for each in seen["messages"] if "prize" in each["text"].casefold()]
    assert (found["n"], found["messages"]) == (len(with_it), with_it[:2]) and with_it
    answer = client.get("/wrong", params={"format": "csv"})
    assert (
        answer.headers["content-type"].startswith("text/csv") and "attachment" in answer.headers["content-disposition"]
    )
    (tmp_path / "wrong.csv").write_bytes(answer.content)
    again = [(example.x, example.y) for example in read(tmp_path / "wrong.csv")]
    neutral = [f"'{each['text']}" if each["text"][0] == "=" else each["text"] for each in seen["messages"]]
    assert again == [*zip(neutral, (each["label"] for each in seen["messages"]), strict=True)]
    refused(client.get("/wrong", params={"limit": 0}), 422, "parameters")


def test_messages_tell_when_they_came(client):
    before = datetime.now(UTC)
    predict(client, {"text": "free prize"})
    learn(client, MESSAGES[:50])
    shown = [*ok(client.get("/monitor"))["newest"], *ok(client.get("/wrong"))["messages"]]
    times = [datetime.fromisoformat(message["time"]) for message in shown]
    # To the millisecond, before which it may be said to have come.
    assert min(times) > before - timedelta(milliseconds=1) and max(times) <= datetime.now(UTC)


def test_nobody_knows_when_messages_came_that_are_learned_again(tmp_path):
    service = killed(tmp_path / "model")
    with serving(service) as client:
        learn(client, MESSAGES[:50])
    with serving(killed(tmp_path / "model")) as client:
        assert {message["time"] for message in ok(client.get("/monitor"))["newest"]} == {None}
        learn(client, MESSAGES[50])
        assert ok(client.get("/monitor"))["newest"][0]["time"] is not None


def test_the_reasons_for_which_requests_failed_are_told(client):
    bad = {"text": "a"}, {"text": "a", "label": " "}, {"text": "a", "label": "ham", "colour": 1}
    answers = [send(client, "/learn", each) for each in (*bad, *bad[:1])]
    answers += [client.get("/nothing"), client.post("/teach", json={"number": 7, "label": "x"})]
    expected = {}
    for answer in answers:
        request = f"{answer.request.method} {answer.request.url.path}"
        key = request, str(answer.status_code), answer.json()["detail"]
        expected[key] = expected.pop(key, 0) + 1
    view = ok(client.get("/monitor"))
    seen = [((each["request"], each["status"], each["reason"]), each["n"]) for each in view["failures"]]
    assert seen == [*expected.items()][::-1] and (view["n_failed"], view["n_refused"]) == (0, len(answers))
    for i in range(100):  # in constant memory, whatever is asked for
        client.get(f"/{i}" + "x" * 5_000)
    failures = ok(client.get("/monitor"))["failures"]
    assert len(failures) == 20 and max(len(each["request"]) for each in failures) <= 100


@pytest.mark.parametrize("make", [TextClassifier, several_labels])
def test_several_labels_are_lists(make):
    several = make is several_labels
    with serving(LiveLearner(make())) as client:
        for label in ("a", "b") * 5:
            learn(client, {"text": "the same", "label": [label] if several else label})
        (*_, first) = ok(client.get("/wrong"))["messages"]
        assert isinstance(first["label"], list) == isinstance(first["predicted"], list) == several
