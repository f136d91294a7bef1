"""The command `label`: it asks on a page, and goes on where it was."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from commands import reference_of, stream, write_jsonl

from stream_pegasos import AdaptiveClassifier, Category, MultiLabelClassifier, TextClassifier, TextFeatures, load
from stream_pegasos.cli.label import LabelFile
from stream_pegasos.runtime.active_learning import ActiveLearning

pytest.importorskip("msgspec")
pytest.importorskip("httpx")
from serving import PROGRAM, Served, ok, refused

TRUTH = dict(stream)


class Labelling(Served):
    """The command in a process of its own, and a person at its page."""

    def asked(self, **query):
        return ok(self.client.get("/asked", params=query))

    def teach(self, message, label):
        return self.client.post("/teach", json={"number": message["number"], "label": label})

    def give(self, n):
        """Give n labels to whatever is asked for first; their texts."""
        texts = []
        for _ in range(n):
            (message,) = self.asked(limit=1)["messages"]
            ok(self.teach(message, TRUTH[message["text"]]))
            texts.append(message["text"])
        return texts


@pytest.fixture
def label(here):
    (here / "mail.txt").write_text("".join(f"{text}\n" for text, _ in stream), encoding="utf-8")
    started = []

    def start(*arguments, **options):
        started.append(Labelling("label", *arguments, "--port", 0, **options))
        return started[-1]

    yield start
    for labelling in started:
        labelling.kill()


def records(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_the_text_may_be_in_a_field_called_label(label, here):
    """As labels in the file are not read."""
    run = label("mail.jsonl", "--text-field", "label")
    assert {message["text"] for message in run.asked(limit=100)["messages"]} == {"ham", "spam"}


def test_a_message_that_the_model_cannot_read_is_passed_over(label, here):
    TextClassifier(TextFeatures(on="subject") + Category(on="sender")).save("fields.st")
    (here / "fields.jsonl").write_text(
        '{"subject": "win"}\n{"subject": ["list"]}\n{"subject": "lunch"}\n', encoding="utf-8"
    )
    run = label("fields.st", "fields.jsonl")
    assert run.asked()["n_waiting"] == 2
    run.end()
    assert any("line 2 skipped: field 'subject' must be a str, got a list" in line for line in run.lines)


def test_what_would_not_be_written_down_is_refused(label, here):
    run = label("mail.txt")
    said = "labels are for the messages of the file here: give them by POST /teach"
    for path, sent in (("/learn", {"text": "a", "label": "ham"}), ("/describe", {"descriptions": {"ham": "mail"}})):
        response = run.client.post(path, json=sent)
        assert response.status_code == 422 and (said in response.text or path == "/describe")
    assert ok(run.client.get("/monitor"))["n"] == 0
    run.give(1)
    run.end(signal.SIGINT)
    assert len(records(here / "mail.labels.jsonl")) == 1


@pytest.mark.heavy
def test_a_killed_run_goes_on_where_it_was(label, here):
    output = here / "mail.labels.jsonl"
    run = label("mail.txt", "--save", "m.safetensors")
    first = run.give(30)
    run.end(signal.SIGKILL)
    lines = {text: i for i, (text, _) in reversed([*enumerate(stream, 1)])}
    assert records(output) == [{"line": lines[text], "text": text, "label": TRUTH[text]} for text in first]

    run = label("mail.txt", "--save", "m.safetensors")
    assert run.asked()["n_given"] == 30
    second = run.give(20)
    assert not {*first} & {*second}
    number = run.asked()["given"][-1]["number"]  # the oldest that can be taken back
    ok(run.client.post("/teach", json={"number": number, "take_back": True}))
    assert run.end(signal.SIGINT) == 130
    assert "stream-pegasos: mail.labels.jsonl has 49 labels" in run.lines
    del second[-5]
    assert [one["text"] for one in records(output)] == first + second
    saved, model = load("m.safetensors"), reference_of([(text, TRUTH[text]) for text in first + second])
    assert saved.n_learned == 49 and saved.weights == model.weights


@pytest.mark.heavy
def test_in_order_from_a_model_with_labels_that_hold_together(label, here):
    (here / "t.csv").write_text(
        "id,title\n" + "".join(f't{i},"{text}"\n' for i, (text, _) in enumerate(stream[:40])), encoding="utf-8"
    )
    TextClassifier(classifier=MultiLabelClassifier()).save("several.st")
    options = ["--text-field", "title", "--output", "out.jsonl"]
    run = label("several.st", "t.csv", *options)
    view = run.asked(limit=3)
    assert [message["text"] for message in view["messages"]] == [text for text, _ in stream[:3]]
    assert (view["kind"], view["of_file"]) == ("several labels", True)
    for message, labels in zip(view["messages"], (["a", "b"], [], ["b"]), strict=True):
        ok(run.teach(message, labels))
    run.end()
    told = [(one["id"], one["line"], one["label"]) for one in records(here / "out.jsonl")]
    assert told == [("t0", 2, ["a", "b"]), ("t1", 3, []), ("t2", 4, ["b"])]
    run = label("several.st", "t.csv", *options)
    view = run.asked(limit=1, first="oldest")
    assert (view["n_given"], view["labels"], view["messages"][0]["text"]) == (3, ["a", "b"], stream[3][0])


@pytest.mark.heavy
def test_standard_input_is_read_to_its_end(label, here):
    with subprocess.Popen(["cat", "mail.txt"], stdout=subprocess.PIPE) as cat:
        run = label("-", "--format", "text", stdin=cat.stdout)
    assert run.asked()["n_waiting"] == len(TRUTH)
    run.give(3)
    assert run.end(signal.SIGINT) == 130 and len(records(here / "labels.jsonl")) == 3


def test_ctrl_c_while_it_waits_for_messages(here):
    words = [*PROGRAM, "label", "-", "--port", "0"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as waiting:
        assert "labels go to labels.jsonl" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        assert (waiting.stderr.read(), waiting.wait()) == ("", 130)


@pytest.mark.parametrize(
    ("arguments", "word", "code"),
    [
        ("m x.jsonl --save m", "learned twice", 1),
        ("x.jsonl --output x.jsonl", "the command reads it", 1),
        ("x.vw", "nobody can read", 1),
        ("empty.jsonl", "no message to label", 1),
        ("long.jsonl", "2 messages not asked for: blank, or longer than 20,000 characters", 1),
        ("missing.jsonl", "missing.jsonl", 1),
        ("fields x.jsonl", "a field cannot be called 'id' here", 1),
        ("threshold x.jsonl --output labels.jsonl", "labels.jsonl: is label 'ham' the positive one?", 1),
        ("x.jsonl --output notes.csv", "labels are written as JSON lines", 1),
        ("x.jsonl --output notes", "none of its lines is JSON with a text and a label", 1),
    ],
)
def test_what_cannot_be_is_refused(fails, here, arguments, word, code):
    write_jsonl("x.jsonl", stream[:3])
    write_jsonl("long.jsonl", [("a" * 20_001, "x"), ("b" * 30_000, "x")])
    (here / "x.vw").write_text("1 | a\n", encoding="utf-8")
    (here / "empty.jsonl").touch()
    (here / "notes").write_text("{notes", encoding="utf-8")
    write_jsonl("labels.jsonl", stream[:3])
    TextClassifier(features=Category(on="id") + Category(on="text")).save("fields")
    TextClassifier(classifier=AdaptiveClassifier(threshold=0.9)).save("threshold")  # without its positive label
    assert word in fails(f"label {arguments} --port 0", code=code)
    assert (here / "notes").read_text(encoding="utf-8") == "{notes" and not (here / "notes.csv").exists()


def test_labels_that_are_fixed(label, fails):
    """The buttons from the first message on; another one in the file of labels is told and not learned."""
    (text, _), (other, _), *_ = stream
    write_jsonl("mail.labels.jsonl", [(text, "Spam"), (other, "ham")])
    run = label("mail.jsonl", "--labels", "spam,ham,not sure")
    told = "stream-pegasos: line 1 skipped: label must be one of spam, ham, not sure, got Spam"
    assert told in run.lines
    view = run.asked()
    assert (view["labels"], view["are_fixed"]) == (["spam", "ham", "not sure"], True)
    refused(run.teach(view["messages"][0], "Ham"), 422, "label must be one of 'spam', 'ham', 'not sure', got 'Ham'")
    run.give(1)
    assert ok(run.client.get("/monitor?model=true"))["model"]["classes"][0] == "ham"
    assert "another process" in fails("label mail.jsonl --port 0")  # which does not write the same file


LINE = '{"text": "a", "label": "x"}'


@pytest.mark.parametrize("before", [f"{LINE}\n", f"{LINE}\r\n{LINE}\nmy notes"])
def test_what_is_there_stays_and_labels_are_appended(label, here, before):
    path = here / "mail.labels.jsonl"
    path.write_bytes(before.encode())
    run = label("mail.txt")
    assert run.asked()["n_given"] == before.count(LINE)
    (text,) = run.give(1)
    run.end()
    after = before + "\n" * (before[-1:] not in ("", "\n"))
    assert path.read_bytes().decode().startswith(after)
    (last,) = path.read_text(encoding="utf-8")[len(after.replace("\r", "")) :].splitlines()
    assert json.loads(last) | {"line": 0} == {"line": 0, "text": text, "label": TRUTH[text]}


def test_a_model_reads_fields(label, here):
    TextClassifier(features=Category(on="line") + Category(on="text")).save("model")
    messages = [{"line": ["old"], "text": "a"}, {"line": {"b": 1}, "text": "b"}]
    (here / "x.jsonl").write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    for _ in messages:
        run = label("model", "x.jsonl")
        ok(run.teach(run.asked()["messages"][0], "new"))
        run.end()
    assert records("x.labels.jsonl") == [{**message, "label": "new"} for message in messages]


class Full:
    """A file on a disk that takes three more bytes."""

    def __init__(self, file):
        self._file, self.room = file, 3

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        if not self.room:
            raise OSError(28, "No space left on device")
        n = self._file.write(data[: self.room])
        self.room -= n
        return n


def test_a_full_disk_leaves_the_labels_that_were(tmp_path):
    path = tmp_path / "labels.jsonl"
    labels = LabelFile(path)
    active_learning = ActiveLearning(store=labels)
    active_learning.add(["a", "b", "c"])
    active_learning.give(1, "x")
    active_learning.give(2, "y")
    before, labels._file = path.read_bytes(), Full(labels._file)
    with pytest.raises(OSError, match="space"):
        active_learning.give(3, "z")
    assert path.read_bytes() == before and labels.n == 2
    labels._file.room = 1_000
    active_learning.take_back(1)
    assert [(one["text"], one["label"]) for one in records(path)] == [("b", "y")]
    labels.close()
