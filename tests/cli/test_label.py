"""The command `label`: it asks on a page, and goes on where it was."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from commands import reference_of, stream, write_jsonl

from stream_pegasos import Category, MultiLabelClassifier, TextClassifier, load
from stream_pegasos.cli.arriving import Arriving
from stream_pegasos.cli.console import Failure
from stream_pegasos.cli.label_file import LabelFile
from stream_pegasos.features.message import Fields
from stream_pegasos.operation.active_learning import ActiveLearning, Waiting

pytest.importorskip("msgspec")
pytest.importorskip("httpx")
from serving import Served, ok, refused, wait

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
    (here / "mail.txt").write_text("".join(f"{text}\n" for text, _ in stream))
    started = []

    def start(*arguments, **options):
        started.append(Labelling("label", *arguments, "--port", 0, **options))
        return started[-1]

    yield start
    for labelling in started:
        labelling.kill()


def records(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.mark.heavy
def test_a_killed_run_goes_on_where_it_was(label, here):
    output = here / "mail.labels.jsonl"
    run = label("mail.txt", "--save", "m.safetensors")
    first = run.give(30)
    run.end(signal.SIGKILL)
    lines = {text: i for i, (text, _) in reversed([*enumerate(stream, 1)])}
    assert records(output) == [{"line": lines[text], "text": text, "label": TRUTH[text]} for text in first]

    with output.open("a") as file:
        file.write('{"text": "cut o')  # as where a disk was full
    run = label("mail.txt", "--save", "m.safetensors")
    assert "stream-pegasos: going on with 30 labels" in run.lines
    assert run.asked()["n_given"] == 30
    second = run.give(20)
    assert not {*first} & {*second}
    number = run.asked()["given"][-1]["number"]  # the oldest that can be taken back
    ok(run.client.post("/take-back", json={"number": number}))
    assert run.end(signal.SIGINT) == 130
    assert "stream-pegasos: mail.labels.jsonl has 49 labels" in run.lines
    del second[-5]
    assert [one["text"] for one in records(output)] == first + second
    saved, model = load("m.safetensors"), reference_of([(text, TRUTH[text]) for text in first + second])
    assert saved.n_learned == 49 and saved.weights == model.weights


@pytest.mark.heavy
def test_in_order_from_a_model_with_labels_that_hold_together(label, here):
    (here / "t.csv").write_text("id,title\n" + "".join(f't{i},"{text}"\n' for i, (text, _) in enumerate(stream[:40])))
    TextClassifier(classifier=MultiLabelClassifier()).save("several.st")
    options = ["--load", "several.st", "--text-field", "title", "--output", "out.jsonl"]
    run = label("t.csv", *options, "--first", "oldest")
    view = run.asked(limit=3)
    assert [message["text"] for message in view["messages"]] == [text for text, _ in stream[:3]]
    assert (view["kind"], view["reads"]) == ("several labels", True)
    for message, labels in zip(view["messages"], (["a", "b"], [], ["b"]), strict=True):
        ok(run.teach(message, labels))
    run.end()
    told = [(one["id"], one["line"], one["label"]) for one in records(here / "out.jsonl")]
    assert told == [("t0", 2, ["a", "b"]), ("t1", 3, []), ("t2", 4, ["b"])]
    run = label("t.csv", *options)
    assert "stream-pegasos: going on with 3 labels" in run.lines and run.asked()["labels"] == ["a", "b"]


@pytest.mark.heavy
def test_a_pipe_that_stays_open_is_asked_for_as_it_comes(label, here):
    read, write = os.pipe()
    os.write(write, b'{"text": "a"}\n{"text": "b"}\n')
    run = label("-", stdin=read)
    os.close(read)
    assert [message["text"] for message in run.asked(first="oldest")["messages"]] == ["a", "b"]
    os.write(write, b'{"text": "c"}\n')
    wait(lambda: run.asked()["n_waiting"] == 3)
    assert run.end(signal.SIGINT) == 130  # while it waits for more
    os.close(write)
    assert run.lines[-1] == "stream-pegasos: labels.jsonl has 0 labels"

    with subprocess.Popen(["cat", "mail.txt"], stdout=subprocess.PIPE) as cat:
        run = label("-", "--format", "text", stdin=cat.stdout)
    wait(lambda: run.asked()["n_waiting"] == len(TRUTH))
    run.give(3)
    assert run.end(signal.SIGINT) == 130 and len(records(here / "labels.jsonl")) == 3


def test_messages_arrive_from_a_thread():
    def messages():
        yield "a"
        going.wait(10)
        yield "b"
        raise OSError("the line is cut")

    going = threading.Event()
    arriving = Arriving(messages())
    assert arriving.wait() and next(arriving) == "a" and next(arriving) is None
    going.set()
    assert arriving.wait() and next(arriving) == "b"
    assert not arriving.wait()
    with pytest.raises(OSError, match="cut"):
        next(arriving)
    assert list(arriving) == [] and not arriving.wait()


@pytest.mark.parametrize(
    ("arguments", "word", "code"),
    [
        ("x.jsonl --load m --save m", "learned twice", 1),
        ("x.jsonl --output x.jsonl", "the command reads it", 1),
        ("x.vw", "nobody can read", 1),
        ("empty.jsonl", "no message to be labelled", 1),
        ("long.jsonl", "2 messages not asked for: longer than 20,000 characters", 1),
        ("missing.jsonl", "missing.jsonl", 1),
        ("x.jsonl --first best", "best", 2),
    ],
)
def test_what_cannot_be_is_refused(fails, here, arguments, word, code):
    write_jsonl("x.jsonl", stream[:3])
    write_jsonl("long.jsonl", [("a" * 20_001, "x"), ("b" * 30_000, "x")])
    (here / "x.vw").write_text("1 | a\n")
    (here / "empty.jsonl").touch()
    assert word in fails(f"label {arguments} --port 0", code=code)


def test_labels_that_are_fixed(label, fails):
    """The buttons from the first message on; another one in the file of labels is told and not learned."""
    (text, _), (other, _), *_ = stream
    write_jsonl("mail.labels.jsonl", [(text, "Spam"), (other, "ham")])
    run = label("mail.jsonl", "--labels", "spam,ham,not sure")
    told = "stream-pegasos: mail.labels.jsonl: a label is not learned: label Spam is none of spam, ham, not sure"
    assert told in run.lines
    view = run.asked()
    assert (view["labels"], view["are_fixed"]) == (["spam", "ham", "not sure"], True)
    refused(run.teach(view["messages"][0], "Ham"), 422, "'Ham' is none of 'spam', 'ham', 'not sure'")
    run.give(1)
    assert ok(run.client.get("/model"))["classes"][0] == "ham"
    assert "another process" in fails("label mail.jsonl --port 0")  # which does not write the same file


LINE = '{"text": "a", "label": "x"}'


@pytest.mark.parametrize(
    "before, after",
    [
        ("", ""),
        (LINE, f"{LINE}\n"),
        (f"{LINE}\r\n{LINE}", f"{LINE}\r\n{LINE}\n"),
        (f'{LINE}\n{{"line": 7, "te', f"{LINE}\n"),
        ('{"line": 7, "te', ""),
        (f"{LINE}\nmy notes", f"{LINE}\nmy notes\n"),
    ],
)
def test_only_a_label_that_was_never_written_whole_is_cut(tmp_path, before, after):
    path = tmp_path / "labels.jsonl"
    path.write_bytes(before.encode())
    labels = LabelFile(path, several=False)
    assert labels.before() == [("a", "x")] * after.count(LINE)
    labels.given(Waiting(9, "b"), "y")
    labels.close()
    assert path.read_bytes() == f'{after}{{"text": "b", "label": "y"}}\n'.encode()


@pytest.mark.parametrize("content", ["important notes in one line", "text,label\na,x\n", '{"text": "a"}\n', "{notes"])
def test_a_file_of_something_else_stays_as_it_is(tmp_path, content):
    path = tmp_path / "notes"
    path.write_text(content)
    with pytest.raises(Failure, match="no line of it is JSON with a text and a label"):
        LabelFile(path, several=False)
    assert path.read_text() == content


@pytest.mark.parametrize("name", ["notes.txt", "labels.csv", "labels.jsonl.gz", "labels.old"])
def test_labels_have_a_name_by_which_they_are_read(tmp_path, name):
    with pytest.raises(Failure, match="labels are written as JSON lines"):
        LabelFile(tmp_path / name, several=False)
    assert not (tmp_path / name).exists()
    for taken in ("labels", "labels.JSON", "labels.ndjson"):
        LabelFile(tmp_path / taken, several=False).close()


def test_fields_of_any_name_stay_as_they_are(tmp_path, capsys):
    """Also those that are called as what stands beside a message."""
    fields, path = ("label", "id", "line", "text"), tmp_path / "labels.jsonl"
    messages = [
        Fields(label="top", id=["x", 1], line=-1.5, text="a"),
        Fields(label=["old"], id=None, line=2, text="b"),
    ]
    labels = LabelFile(path, False, fields)
    for number, x in enumerate(messages):
        labels.given(Waiting(number, x, origin={"line": number + 7, "id": "m"}), "spam")
    labels.close()
    begun = '{"line_": 9, "id_": "m", "labe'
    path.write_text(path.read_text() + begun)
    again = LabelFile(path, False, fields)
    assert again.before() == [(x, "spam") for x in messages]
    again.close()
    assert "labels stand in the field label_ (--label-field)" in capsys.readouterr().err
    assert records(path)[0] == {**messages[0], "line_": 7, "id_": "m", "label_": "spam"}
    path.write_text(begun)
    LabelFile(path, False, fields).close()
    assert path.read_text() == ""


def test_a_model_reads_fields_of_any_name(label, fails, here):
    """Over HTTP a label has this name; to the page no message is sent."""
    TextClassifier(features=Category(on="label") + Category(on="id")).save("model")
    messages = [{"label": ["old"], "id": "a"}, {"label": {"b": 1}, "id": "b"}, {"label": ["old"], "id": "c"}]
    (here / "x.jsonl").write_text("".join(json.dumps(message) + "\n" for message in messages))
    for _ in messages:
        run = label("x.jsonl", "--load", "model", "--first", "oldest")
        ok(run.teach(run.asked()["messages"][0], "new"))
        run.end()
    written = [({name: each[name] for name in ("label", "id")}, each["label_"]) for each in records("x.labels.jsonl")]
    assert written == [(message, "new") for message in messages]
    assert "a field cannot be called 'id' here" in fails("serve model --port 0")


def test_a_full_disk_leaves_the_labels_that_were(tmp_path, monkeypatch):
    path = tmp_path / "labels.jsonl"
    labels = LabelFile(path, several=False)
    active_learning = ActiveLearning(store=labels)
    active_learning.add(["a", "b", "c"])
    active_learning.give(1, "x")
    active_learning.give(2, "y")
    before = path.read_bytes()

    def full(file, content, at, write=LabelFile.write_at):
        if len(content) > len(before):
            write(file, content[: len(before) + 3], at)
            raise OSError(28, "No space left on device")
        return write(file, content, at)

    monkeypatch.setattr(LabelFile, "write_at", staticmethod(full))
    with pytest.raises(OSError, match="space"):
        active_learning.give(3, "z")
    assert path.read_bytes() == before and labels.n == 2
    active_learning.take_back(1)
    assert [(one["text"], one["label"]) for one in records(path)] == [("b", "y")]
    labels.close()
