"""Wrong answers over HTTP, and why requests failed."""

from datetime import UTC, datetime, timedelta

import pytest
from kinds import several_labels
from serving import MESSAGES, killed, learn, ok, predict, refused, send, serving

from stream_pegasos import TextClassifier
from stream_pegasos.runtime.live_learner import LiveLearner
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


def test_suspicious_ones_come_first(client):
    learn(client, MESSAGES[:100])
    newest, suspicious = (ok(client.get("/wrong", params={"first": first})) for first in ("newest", "suspicious"))
    chances = [each["label_probability"] for each in suspicious["messages"]]
    known = [p for p in chances if p is not None]
    assert known == sorted(known) and chances == [*known, *[None] * (len(chances) - len(known))]
    by_number = {each["number"]: each for each in newest["messages"]}
    assert by_number == {each["number"]: each for each in suspicious["messages"]} and len(known) > 5


@pytest.mark.parametrize("with_ids", [True, False])
def test_a_wrong_answer_is_corrected_once_and_kept_through_a_kill(tmp_path, with_ids):
    messages = [{**each, "id": f"m{i}"} if with_ids else each for i, each in enumerate(MESSAGES[:100])]
    reference = LiveLearner(TextClassifier())
    with serving(killed(tmp_path / "model")) as client, serving(reference) as other:
        for each in (client, other):
            learn(each, messages)
        (wrong, *_) = ok(client.get("/wrong", params={"first": "suspicious"}))["messages"]
        right = {"number": wrong["number"], "label": wrong["predicted"]}
        answer = ok(send(client, "/correct", right))
        (sent,) = [each for each in messages if each["text"] == wrong["text"]]
        expected = (
            {**sent, "label": wrong["predicted"]} if with_ids else {**sent, "label": wrong["predicted"], "weight": 2}
        )
        assert answer | {"id": sent.get("id")} == learn(other, expected) | {"id": sent.get("id")}
        assert (answer.get("correction") == "taught anew") == with_ids
        assert wrong["number"] not in [each["number"] for each in ok(client.get("/wrong"))["messages"]]
        refused(send(client, "/correct", right), 404, "is kept among the wrong answers")
    with serving(killed(tmp_path / "model")) as client:
        assert predict(client, {"text": wrong["text"]}) == predict_by(reference, wrong["text"])


def predict_by(service, text):
    with serving(service) as client:
        return predict(client, {"text": text})


def test_what_cannot_be_corrected_is_told_and_stays(client):
    learn(client, [*MESSAGES[:50], {"text": "lunch " * 5_000, "label": "spam"}])
    messages = ok(client.get("/wrong"))["messages"]
    (large,) = [each for each in messages if not each["can_be_corrected"]]
    refused(send(client, "/correct", {"number": large["number"], "label": "ham"}), 404, "is kept among")
    (first, *_) = [each for each in messages if each["can_be_corrected"]]
    refused(send(client, "/correct", {"number": first["number"], "label": " "}), 422, "label")
    refused(send(client, "/correct", {"number": first["number"]}), 422, "label")
    assert len(ok(client.get("/wrong"))["messages"]) == len(messages)
