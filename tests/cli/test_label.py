"""The command `label`: it asks on a page, and goes on where it was."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from commands import environment, stream, write_jsonl

from stream_pegasos import TextClassifier, load
from stream_pegasos.cli.arriving import Arriving
from stream_pegasos.cli.console import Failure
from stream_pegasos.cli.label_file import LabelFile
from stream_pegasos.operation.teaching import Teaching, Waiting

pytest.importorskip("msgspec")
httpx = pytest.importorskip("httpx")

TRUTH = dict(stream)


class Labelling:
    """The command in a process of its own, and a person at its page."""

    def __init__(self, *arguments, folder, **options):
        command = [sys.executable, "-m", "stream_pegasos", "label", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder, **options
        )
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line.removeprefix("stream-pegasos: ").rstrip())
            if "label on http" in line:
                break
        else:
            pytest.fail("".join(self.lines))
        self.client = httpx.Client(base_url=line.split()[-1], timeout=30)

    def asked(self, **query):
        return self.client.get("/asked", params=query).raise_for_status().json()

    def give(self, n):
        """Give n labels to whatever is asked for first; their texts."""
        texts = []
        for _ in range(n):
            (message,) = self.asked(limit=1)["messages"]
            body = {"number": message["number"], "label": TRUTH[message["text"]]}
            self.client.post("/teach", json=body).raise_for_status()
            texts.append(message["text"])
        return texts

    def end(self, number=signal.SIGINT):
        self.client.close()
        self.process.send_signal(number)
        self.lines += [
            line.removeprefix("stream-pegasos: ") for line in self.process.communicate(timeout=30)[1].splitlines()
        ]
        return self.process.returncode


@pytest.fixture
def label(tmp_path):
    started = []

    def start(*arguments, **options):
        started.append(Labelling(*arguments, folder=tmp_path, **options))
        return started[-1]

    yield start
    for labelling in started:
        labelling.client.close()
        labelling.process.kill()
        labelling.process.communicate()


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.heavy
def test_a_killed_run_goes_on_where_it_was(label, tmp_path):
    (tmp_path / "mail.txt").write_text("".join(f"{text}\n" for text, _ in stream))
    output = tmp_path / "mail.labels.jsonl"
    run = label("mail.txt", "--save", "m.safetensors")
    first = run.give(30)
    run.end(signal.SIGKILL)
    assert [(one["text"], one["label"]) for one in records(output)] == [(text, TRUTH[text]) for text in first]
    lines = {text: i for i, (text, _) in reversed([*enumerate(stream, 1)])}
    assert [one["line"] for one in records(output)] == [lines[text] for text in first]

    with output.open("a") as file:
        file.write('{"text": "cut o')  # as where a disk was full
    run = label("mail.txt", "--save", "m.safetensors")
    assert "going on with 30 labels" in run.lines
    assert run.asked()["n_given"] == 30
    second = run.give(20)
    assert not set(first) & set(second)
    number = run.asked()["given"][-1]["number"]  # the oldest that can be taken back
    run.client.post("/take-back", json={"number": number}).raise_for_status()
    assert run.end() == 130
    assert "mail.labels.jsonl has 49 labels" in run.lines
    del second[-5]
    assert [one["text"] for one in records(output)] == first + second
    model = TextClassifier()
    for text in first + second:
        model.learn_one(text, TRUTH[text])
    saved = load(tmp_path / "m.safetensors")
    assert saved.n_learned == 49
    texts = [text for text, _ in stream]
    assert saved.predictions(texts).scores.tolist() == model.predictions(texts).scores.tolist()


@pytest.mark.heavy
def test_in_order_from_a_model_with_labels_that_hold_together(label, tmp_path):
    with (tmp_path / "tickets.csv").open("w") as file:
        csv.writer(file).writerows([["id", "title"], *([f"t{i}", text] for i, (text, _) in enumerate(stream[:40]))])
    run = label("tickets.csv", "--text-field", "title", "--multi-label", "--first", "oldest", "--output", "out.jsonl")
    view = run.asked(limit=3)
    assert [message["text"] for message in view["messages"]] == [text for text, _ in stream[:3]]
    assert (view["kind"], view["reads"]) == ("several labels", True)
    for message, labels in zip(view["messages"], (["a", "b"], [], ["b"]), strict=True):
        run.client.post("/teach", json={"number": message["number"], "label": labels}).raise_for_status()
    run.end(signal.SIGTERM)
    assert [(one["id"], one["line"], one["label"]) for one in records(tmp_path / "out.jsonl")] == [
        ("t0", 2, ["a", "b"]),
        ("t1", 3, []),
        ("t2", 4, ["b"]),
    ]
    run = label("tickets.csv", "--text-field", "title", "--multi-label", "--output", "out.jsonl")
    assert "going on with 3 labels" in run.lines and run.asked()["labels"] == ["a", "b"]


@pytest.mark.heavy
def test_a_pipe_that_stays_open_is_asked_for_as_it_comes(label, tmp_path):
    read, write = os.pipe()
    os.write(write, b'{"text": "a"}\n{"text": "b"}\n')
    run = label("-", stdin=read)
    os.close(read)
    assert [message["text"] for message in run.asked(first="oldest")["messages"]] == ["a", "b"]
    os.write(write, b'{"text": "c"}\n')
    end = time.monotonic() + 10
    while run.asked()["n_waiting"] < 3:
        assert time.monotonic() < end
    assert run.end() == 130  # while it waits for more
    os.close(write)
    assert run.lines[-1] == "labels.jsonl has 0 labels"

    (tmp_path / "mail.txt").write_text("".join(f"{text}\n" for text, _ in stream))
    with subprocess.Popen(["cat", "mail.txt"], stdout=subprocess.PIPE, cwd=tmp_path) as cat:
        run = label("-", "--format", "text", stdin=cat.stdout)
    end = time.monotonic() + 10
    while run.asked()["n_waiting"] < len({*TRUTH}):
        assert time.monotonic() < end
    run.give(3)
    assert run.end() == 130 and len(records(tmp_path / "labels.jsonl")) == 3


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
    "arguments, word",
    [
        (["x.jsonl", "--load", "m", "--save", "m"], "learned twice"),
        (["x.jsonl", "--output", "x.jsonl"], "the command reads it"),
        (["x.vw"], "nobody can read"),
        (["empty.jsonl"], "no message to be labelled"),
        (["missing.jsonl"], "missing.jsonl"),
        (["x.jsonl", "--first", "best"], "best"),
    ],
)
def test_what_cannot_be_is_refused(main, tmp_path, monkeypatch, arguments, word):
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "x.jsonl", stream[:3])
    (tmp_path / "x.vw").write_text("1 | a\n")
    (tmp_path / "empty.jsonl").write_text("")
    code, out, err = main("label", *arguments, "--port", "0")
    assert code in (1, 2) and not out
    assert word in err and "Traceback" not in err


def test_messages_left_out_are_counted(main, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "x.jsonl", [("a" * 20_001, "x"), ("b" * 30_000, "x")])
    code, _, err = main("label", "x.jsonl", "--port", "0")
    assert code == 1 and "2 messages not asked for: longer than 20,000 characters" in err


@pytest.mark.heavy
def test_two_runs_do_not_write_the_same_file(label, main, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "x.jsonl", stream[:3])
    label("x.jsonl")
    code, _, err = main("label", "x.jsonl", "--port", "0")
    assert code == 1 and "another process" in err


def test_labels_that_are_fixed(label, tmp_path):
    """The buttons from the first message on; another one in the file of labels is told and not learned."""
    write_jsonl(tmp_path / "mail.jsonl", stream[:30])
    (text, _), (other, _), *_ = stream
    write_jsonl(tmp_path / "mail.labels.jsonl", [(text, "Spam"), (other, "ham")])
    run = label("mail.jsonl", "--labels", "spam,ham,not sure")
    assert "mail.labels.jsonl: a label is not learned: label Spam is none of spam, ham, not sure" in run.lines
    view = run.asked()
    assert (view["labels"], view["are_fixed"]) == (["spam", "ham", "not sure"], True)
    number = view["messages"][0]["number"]
    refused = run.client.post("/teach", json={"number": number, "label": "Ham"})
    assert refused.status_code == 422 and "'Ham' is none of 'spam', 'ham', 'not sure'" in refused.json()["detail"]
    run.give(1)
    assert run.client.get("/model").json()["classes"][0] == "ham"


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


def test_a_full_disk_leaves_the_labels_that_were(tmp_path, monkeypatch):
    path = tmp_path / "labels.jsonl"
    labels = LabelFile(path, several=False)
    teaching = Teaching(keeper=labels)
    teaching.add(["a", "b", "c"])
    teaching.give(1, "x")
    teaching.give(2, "y")
    before = path.read_bytes()

    def full(file, content, at, write=LabelFile.write_at):
        if len(content) > len(before):
            write(file, content[: len(before) + 3], at)
            raise OSError(28, "No space left on device")
        return write(file, content, at)

    monkeypatch.setattr(LabelFile, "write_at", staticmethod(full))
    with pytest.raises(OSError, match="space"):
        teaching.give(3, "z")
    assert path.read_bytes() == before and labels.n == 2
    teaching.take_back(1)
    assert [(one["text"], one["label"]) for one in records(path)] == [("b", "y")]
    labels.close()
