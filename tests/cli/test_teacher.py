"""A teacher behind the commands `run` and `serve`."""

import json
import time

import pytest
from chat_server import Chat, chat_server
from commands import started, write_jsonl

pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")

from stream_pegasos import load
from stream_pegasos.runtime import teaching
from stream_pegasos.streams import synthetic

ROWS = [*synthetic(2_000, seed=4)]
TRUTH = dict(ROWS)
FILE = "run texts.jsonl --no-follow --labels ham,spam"


@pytest.fixture
def chat(here):
    with open("texts.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text, "id": i}) + "\n" for i, (text, _) in enumerate(ROWS))
    with chat_server(Chat(lambda text: TRUTH.get(text, "ham"))) as chat:
        yield chat


def test_an_unlabelled_file_becomes_a_filter(chat, ok):
    ok(f"{FILE} --output out.txt --save m --ask-share .1 --teacher", chat.address)
    assert 120 <= len(chat.asked) <= 200  # of 2,000 messages
    model, rows = load("m"), [*synthetic(2_000, seed=4)][1_500:]
    right = sum(model.predict_one(text) == label for text, label in rows)
    assert model.n_learned == len(chat.asked) and right / len(rows) > 0.9


def test_descriptions_go_to_the_teacher_and_to_a_new_model(chat, ok):
    with open("labels.txt", "w", encoding="utf-8") as file:
        file.write("spam\tprizes to be won\nham\tfriends who write\n")
    arguments = f"{FILE} --output none --checkpoint m --describe labels.txt --teacher"
    ok(arguments, chat.address)
    assert '- "spam": prizes to be won' in chat.asked[0]["messages"][0]["content"]
    assert load("m").n_learned == 4 + len(chat.asked)  # each description twice
    ok(arguments, chat.address)
    assert load("m").n_learned == 4 + len(chat.asked)


def test_a_teacher_that_is_away_stops_nobody(chat, main, monkeypatch):
    monkeypatch.setattr(teaching, "LONGEST_PAUSE", 0.1)
    code, out, err = main(f"{FILE} --save m --teacher http://127.0.0.1:9/v1/chat/completions")
    assert code == 0 and out.count("\n") == 2_000 and err.count("does not answer") == 1
    assert "questions to the teacher have no answer" in err


def test_a_file_waits_for_a_teacher_that_is_away_for_a_moment(chat, ok, monkeypatch):
    monkeypatch.setattr(teaching, "FIRST_PAUSE", 0.01)
    refused = iter([True, True, False] * 1_000)
    chat.fails = lambda request: (429, b"slow down") if next(refused) else None
    ok(f"{FILE} --output none --save m --ask-share .05 --teacher", chat.address)
    assert load("m").n_learned > 60  # of 2,000 messages


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("run texts.jsonl --ask-share .1", "it goes with --teacher"),
        ("serve --ask-per-day 9", "it goes with --teacher"),
        ("run texts.jsonl --teacher 127.0.0.1:80", "must be an address"),
        ("run texts.jsonl --teacher http://a.b/", "the labels are not known"),
        ("run texts.jsonl --labels a,b --teacher http://me:secret@a.b/", "STREAM_PEGASOS_TEACHER_KEY"),
        ("run texts.jsonl --labels a,b --teacher http://a.b/ --ask-share 2", "is not a number from 0.001 to 1"),
        ("run texts.jsonl --labels a,b --teacher http://a.b/ --share .", "does not go with --share"),
    ],
)
def test_wrong_options_are_refused(chat, fails, arguments, why):
    assert why in fails(arguments, code=2)


def test_a_model_of_several_labels_or_of_features_has_no_teacher(chat, ok, fails):
    write_jsonl("several.jsonl", [("a", ["x"]), ("b", ["x", "y"])])
    ok("train several.jsonl --save several")
    assert "must have one label a message" in fails("run several texts.jsonl --teacher http://a.b/")


def test_a_service_is_taught_and_tells_of_it(chat, serve):
    httpx = pytest.importorskip("httpx")
    served = serve("--labels", "ham,spam", "--ask-share", "0.1", "--ask-per-day", "5", "--teacher", chat.address)
    for i, (text, _) in enumerate(ROWS[:20]):
        assert httpx.post(f"{served.url}/predict", json={"text": text, "id": i}).status_code == 200
    end = time.monotonic() + 120
    while httpx.get(f"{served.url}/monitor").json()["n"] < 5:
        assert time.monotonic() < end
        time.sleep(0.05)
    text, label = next((text, label) for text, label in ROWS if text in chat.texts())
    httpx.post(f"{served.url}/learn", json={"text": text, "label": label, "id": chat_id(text)}).raise_for_status()
    teaching = httpx.get(f"{served.url}/monitor").json()["teaching"]
    assert (teaching["n_asked"], teaching["n_of_day"], teaching["n_tokens"]) == (5, 5, 5 * 97)
    assert sum(each["n"] for each in teaching["agreement"]) == 1
    metrics = httpx.get(f"{served.url}/metrics").text
    assert "stream_pegasos_teacher_lessons_total 5.0" in metrics
    assert f'stream_pegasos_teacher_agreed_total{{class="{label}"}} 1.0' in metrics
    assert "secret" not in str(served.lines)


def chat_id(text):
    return next(i for i, (each, _) in enumerate(ROWS) if each == text)


def test_metrics_of_a_run_tell_of_the_teacher(chat):
    httpx = pytest.importorskip("httpx")
    words = ["run", "texts.jsonl", "--labels", "ham,spam", "--output", "none", "--metrics", "0", "--teacher"]
    with started(*words, chat.address) as run:
        url = next(line.split()[-1].decode() for line in run.stderr if b"metrics at" in line)
        end = time.monotonic() + 120
        while "stream_pegasos_teacher_lessons_total 0.0" in (found := httpx.get(url).text):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert "stream_pegasos_teacher_questions_total" in found
        run.terminate()
        run.communicate()
