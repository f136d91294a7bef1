"""No output is written over what is read, whatever it is called, nor a model over what is none."""

import os
import socket
import subprocess
import zlib
from pathlib import Path

import click
import pytest
from commands import command as process_of
from commands import environment, reference_of, stream, write_jsonl

from stream_pegasos import TextClassifier, TextFeatures, load
from stream_pegasos.cli.console import check_outputs, check_read
from stream_pegasos.common.file_lock import FileLock
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.streams.opening import is_same_stream

# Commands that write over what they read: "messages.jsonl" or "model.jsonl", whose other name is "link.jsonl".
WRITERS = (
    "train messages.jsonl --save link.jsonl",
    "evaluate messages.jsonl --save link.jsonl",
    "evaluate messages.jsonl --plot link.svg",
    "evaluate messages.jsonl --output link.jsonl",
    "test m messages.jsonl --output link.jsonl",
    "tune messages.jsonl --save link.jsonl",
    "predict m messages.jsonl --output link.jsonl",
    "label messages.jsonl --output link.jsonl",
    "label messages.jsonl --save link.jsonl",
    "run messages.jsonl --no-follow --save link.jsonl",
    "run messages.jsonl --no-follow --output link.jsonl",
    "run messages.jsonl --no-follow --checkpoint link.jsonl",
    "run mail.jsonl --no-follow --label-topic messages.jsonl --output link.jsonl",
    "run mail.jsonl --no-follow --label-topic messages.jsonl --save link.jsonl",
    "serve --token-file messages.jsonl --checkpoint link.jsonl",
    "predict model.jsonl mail.jsonl --output link.jsonl",
    "test model.jsonl mail.jsonl --output link.jsonl",
    "evaluate mail.jsonl --save model.jsonl --output link.jsonl",
    "run model.jsonl mail.jsonl --no-follow --output link.jsonl",
    "run mail.jsonl --no-follow --checkpoint model.jsonl --save link.jsonl",
    "run mail.jsonl --no-follow --save model.jsonl --output link.jsonl",
    "label model.jsonl mail.jsonl --save link.jsonl",
    "evaluate mail.jsonl --describe messages.jsonl --output link.jsonl",
    "train mail.jsonl --describe messages.jsonl --save link.jsonl",
    "evaluate mail.jsonl --features messages.jsonl --output link.jsonl",
    "evaluate mail.jsonl --compare model.jsonl --output link.jsonl",
    "predict m mail.jsonl --vectors messages.jsonl --output link.jsonl",
    "run mail.jsonl --no-follow --vectors messages.jsonl --output link.jsonl",
    "tune mail.jsonl --vectors messages.jsonl --save link.jsonl",
)


@pytest.fixture
def model(here):
    reference_of(stream[:50]).save("m")
    os.link("m", "model.jsonl")
    write_jsonl("messages.jsonl", stream)


@pytest.mark.parametrize("written", WRITERS)
def test_an_output_that_is_an_input_is_refused(main, model, here, written):
    if written.startswith("label"):
        pytest.importorskip("msgspec")
    source = here / ("model.jsonl" if "model.jsonl" in written else "messages.jsonl")
    data = source.read_bytes()
    for link in ("link.jsonl", "link.svg"):
        (here / link).hardlink_to(source)
    code, _, err = main(written)
    assert code in (1, 2) and any(
        reason in err
        for reason in ("the command reads it", "it is the file of --checkpoint", "the labels would be learned twice")
    )
    assert source.read_bytes() == data


@pytest.mark.parametrize(
    "written", ["predict v mail.jsonl --output", "test v mail.jsonl --output", "run v mail.jsonl --output"]
)
def test_vectors_that_a_model_names_are_read(main, here, written):
    vectors = here / "words.vec"
    vectors.write_text("win 1 0\nlunch 0 1\n", encoding="utf-8")
    reference_of(stream[:50], model=TextClassifier(TextFeatures(vectors="words.vec"))).save("v")
    (here / "link.jsonl").hardlink_to(vectors)
    code, _, err = main(f"{written} link.jsonl --vectors words.vec" + " --no-follow" * written.startswith("run"))
    assert code == 1 and "the command reads it" in err and vectors.read_text(encoding="utf-8").startswith("win")


def test_a_folder_that_is_read_is_no_device_that_is_written(here):
    with click.Context(click.Command("predict")):
        check_outputs(Path(os.devnull))
        check_read(here)


def test_a_file_is_known_by_any_name(fails, here):
    (here / "symbolic").symlink_to("mail.jsonl")
    for name in ("mail.jsonl", "symbolic", f"../{here.name}/./mail.jsonl", here / "mail.jsonl"):
        assert "the command reads it" in fails("train mail.jsonl --save", name)


@pytest.mark.parametrize("command", ["predict m mail.jsonl", "run m mail.jsonl --no-follow"])
def test_standard_output_that_is_an_input_is_refused(model, here, command):
    data = (here / "mail.jsonl").read_bytes()
    with open("mail.jsonl", "ab") as file:
        done = subprocess.run([*process_of, *command.split()], env=environment, stdout=file, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"cannot write standard output" in done.stderr
    assert (here / "mail.jsonl").read_bytes() == data


@pytest.mark.parametrize(
    "command",
    [
        "train mail.jsonl --save",
        "evaluate mail.jsonl --save",
        "run mail.jsonl --no-follow --output none --save",
        "tune mail.jsonl --limit 50 --save",
        "label mail.jsonl --save",
        "forget-class m ham --save",
    ],
)
def test_a_file_that_is_no_model_is_not_replaced(fails, model, here, command):
    thesis = here / "thesis.txt"
    thesis.write_text("ten years of work", encoding="utf-8")
    assert "or remove it" in fails(command, thesis) and thesis.read_text(encoding="utf-8") == "ten years of work"


ANSWERING = (
    "predict m mail.jsonl --output",
    "test m mail.jsonl --output",
    "evaluate mail.jsonl --output",
    "run m mail.jsonl --no-follow --append --output",
)


@pytest.mark.parametrize("command", ANSWERING)
def test_what_holds_no_answers_is_not_replaced(fails, main, model, here, command):
    others = {"a.csv": "id,name,label\n1,ann,x\n", "b.jsonl": '{"text": "a"}\n', "c.tsv": "ten years\tof work\n"}
    for name, data in others.items():
        (here / name).write_text(data, encoding="utf-8")
        assert f"cannot write {name}: it exists and is no file of answers; name another" in fails(f"{command} {name}")
        assert (here / name).read_text(encoding="utf-8") == data
    for name in "d.csv", "d.tsv", "d.jsonl", "d.txt":
        if "predict" in command or name != "d.txt" or "run" in command:
            for _ in range(2):
                assert main(f"{command} {name} --limit 3")[0] == 0


@pytest.mark.parametrize("command", ANSWERING)
@pytest.mark.parametrize("name", ["a.xlsx", "a.parquet", "a.csv.zip", "a.json", "a.docx", "a.safetensors"])
def test_answers_are_not_written_in_formats_that_are_not_known(fails, model, here, command, name):
    assert f"{name} must end in .tsv, .csv or .jsonl" in fails(f"{command} {name}", code=2)
    assert not (here / name).exists()


def test_a_curve_replaces_only_a_curve(fails, ok, here):
    for _ in range(2):
        ok("evaluate mail.jsonl --plot curve.csv")
    (here / "mine.csv").write_text("name\n", encoding="utf-8")
    assert "it exists and is no curve" in fails("evaluate mail.jsonl --plot mine.csv")


def test_a_model_an_empty_file_and_a_damaged_model_are_replaced(ok, fails, model, here):
    (here / "empty").touch()
    (here / "damaged").write_bytes((here / "m").read_bytes()[:-1])
    for name in ("m", "empty", "damaged"):
        ok("train mail.jsonl --save", name)
        assert load(name).n_learned == len(stream)
    (here / "thesis.txt").write_text("ten years of work", encoding="utf-8")
    err = fails("run mail.jsonl --no-follow --checkpoint thesis.txt")
    assert "must be a model" in err and "name another file" in err
    assert (here / "thesis.txt").read_text(encoding="utf-8") == "ten years of work"


@pytest.mark.parametrize(
    "command",
    [
        "train mail.jsonl --save m",
        "train m mail.jsonl --save m",
        "train m --save m",
        "evaluate mail.jsonl --save m",
        "tune mail.jsonl --save m",
        "label mail.jsonl --save m",
        "forget-class m spam --save m",
        "run mail.jsonl --no-follow --save m",
        "run mail.jsonl --no-follow --checkpoint m",
        "serve --checkpoint m",
    ],
)
def test_a_model_that_another_process_writes_is_left_alone(fails, model, here, command):
    if command.startswith(("label", "serve")):
        pytest.importorskip("msgspec")
    before = (here / "m").read_bytes()
    lock = FileLock("m")
    lock.claim()
    assert "m is in use: another process writes it" in fails(command)
    lock.release()
    assert (here / "m").read_bytes() == before and not (here / ".m.lock").exists()


@pytest.fixture
def checkpoint(model):
    load("m").snapshot({"n_read": 50}).write("c")


@pytest.mark.parametrize("command", ["train c mail.jsonl", "train c", "forget-class c ham"])
@pytest.mark.parametrize("saved", ["c", "new"])
def test_a_loaded_checkpoint_keeps_its_progress(ok, checkpoint, command, saved):
    ok(f"{command} --save {saved}")
    assert load_with_progress(saved)[1] == load_with_progress("c")[1] == {"n_read": 50}


@pytest.mark.parametrize(
    "command",
    [
        "train mail.jsonl",
        "train m mail.jsonl",
        "train m",
        "evaluate mail.jsonl",
        "tune mail.jsonl",
        "label mail.jsonl --host ''",
        "forget-class m spam",
        "run mail.jsonl --no-follow --output none",
        "run c mail.jsonl --no-follow --output none",
    ],
)
def test_a_checkpoint_whose_progress_would_be_lost_is_left_alone(fails, checkpoint, here, command):
    before = (here / "c").read_bytes()
    assert "cannot write c: it is a checkpoint" in fails(f"{command} --save c") and (here / "c").read_bytes() == before


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("redis://h/m?group=a", "redis://user:secret@H:6379/m?maxlen=9"),
        ("redis://localhost/m", "redis://127.0.0.1/m?db=0"),
        ("rediss://[::1]:6379/m?db=0", "redis://localhost/m"),
        ("kafka://a:9092,b:9092/m?group=g", "kafka://b/m"),
        ("mail.jsonl --label-topic redis://h/labels", "redis://h:6379/labels"),
        ("- --label-topic kafka://h/labels", "kafka://h/labels"),
    ],
)
def test_a_stream_does_not_feed_itself(fails, here, read, written):
    reason = fails(f"run {read} --no-follow --output {written}")
    assert "the command reads it, and would read its own answers" in reason and "secret" not in reason


HOSTS = {"h": "192.0.2.1", "alias": "192.0.2.1", "g": "192.0.2.2", "here": "127.0.1.1", "localhost": "127.0.0.1"}


@pytest.fixture
def hosts(monkeypatch):
    def look_up(host, port, type):
        if host not in HOSTS:
            raise socket.gaierror("no such host")
        return [(socket.AF_INET, type, 17, "", (HOSTS[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def test_other_streams_are_others(hosts):
    for other in ("redis://h/n", "redis://h/m?db=1", "redis://h:6380/m", "redis://g/m", "redis://x/m", "kafka://h/m"):
        assert not is_same_stream("redis://h/m", other)
    assert not is_same_stream("redis://localhost/m", "redis://h/m")


def test_a_server_has_several_names(hosts):
    assert is_same_stream("redis://h/m", "redis://alias/m") and is_same_stream("redis://192.0.2.1/m", "redis://h/m")
    assert is_same_stream("redis://here/m", "redis://127.0.0.1:6379/m")
    assert is_same_stream("kafka://x,here/m", "kafka://localhost/m")


def test_a_cluster_has_several_brokers(hosts, monkeypatch):
    kafka = pytest.importorskip("stream_pegasos.streams.kafka", exc_type=ImportError)
    clusters = {"h": "one", "g": "one", "here": "two", "x": None, "y": None}
    monkeypatch.setattr(kafka, "find_cluster", lambda address: clusters[address.server])
    assert is_same_stream("kafka://h/m", "kafka://g/m")
    assert not is_same_stream("kafka://h/m", "kafka://here/m") and not is_same_stream("kafka://x/m", "kafka://y/m")


KINDS = ("the lock of", "the checkpoint before", "the journal of", "a temporary file of")
BESIDE = (".c.lock", "c.previous", "c.journal-0123abcd-0", f".{zlib.crc32(b'c'):08x}-{'0' * 32}.tmp")


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize(
    "command",
    [
        "run mail.jsonl --no-follow --checkpoint c --output {}",
        "run mail.jsonl --no-follow --checkpoint c --output none --save {}",
        "run mail.jsonl --no-follow --output none --checkpoint {} --save c",
        "serve --checkpoint c --spamd ./{}",
        "label mail.jsonl --output {} --save c",
        "evaluate mail.jsonl --save c --output {}",
        "evaluate mail.jsonl --save c --plot {}",
        "tune mail.jsonl --save {}",
        "predict c mail.jsonl --output {}",
        "test c mail.jsonl --output {}",
        "train mail.jsonl --save {}",
        "forget-class m spam --save {}",
        "imap --host h --user u --password-file p {}",
    ],
)
def test_what_stands_beside_a_model_is_no_output(fails, checkpoint, here, command, name):
    """Whether the command writes that model, or it is there."""
    if command.startswith(("label", "serve")):
        pytest.importorskip("msgspec")
    if name.endswith(".tmp") and ("--save c" not in command and "--checkpoint c" not in command):
        pytest.skip("its name does not tell of which model it is")
    assert any(f"it is {kind} c; name another file" in fails(command.format(name)) for kind in KINDS)
    assert not (here / name).exists()
    (here / "link").symlink_to(name)
    assert "name another file" in fails(command.format("link"))


def test_what_stands_beside_a_checkpoint_is_known_by_any_name_and_not_read(fails, checkpoint, here):
    os.link("c", "c.previous")
    os.link("c", "hard")
    os.unlink("c")
    load("m").snapshot({"n_read": 50}).write("c")
    before = (here / "hard").read_bytes()
    reason = fails("run mail.jsonl --no-follow --checkpoint c --append --output hard")
    assert "it is the checkpoint before c" in reason and (here / "hard").read_bytes() == before
    (here / "c.journal-0123abcd-0").write_bytes((here / "mail.jsonl").read_bytes())
    reason = fails("run c.journal-0123abcd-0 --no-follow --checkpoint c --output none")
    assert "cannot read c.journal-0123abcd-0: it is the journal of c" in reason


@pytest.mark.parametrize("command", ["run mail.jsonl --no-follow --output none --checkpoint c", "serve --checkpoint c"])
@pytest.mark.parametrize("name", ["c.previous", ".c.lock"])
def test_what_is_no_file_of_a_checkpoint_is_not_replaced(fails, model, here, command, name):
    if command.startswith("serve"):
        pytest.importorskip("msgspec")
    (here / name).write_text("ten years of work", "utf-8")
    for is_there in (False, True):
        if is_there:
            load("m").snapshot({"n_read": 50} if command.startswith("run") else None).write("c")
        assert name in fails(command) and (here / name).read_text("utf-8") == "ten years of work"


def test_what_is_no_journal_is_not_removed(fails, model, here):
    pytest.importorskip("msgspec")
    path = here / "c.journal-20240101-0"
    path.write_text("Dear diary", "utf-8")
    assert (
        "must be a journal, got another file; move it away" in fails("serve --checkpoint c")
        and path.read_text("utf-8") == "Dear diary"
    )


def test_models_of_users_are_no_checkpoint(fails, model, here):
    pytest.importorskip("msgspec")
    (here / "users/ann").mkdir(parents=True)
    command = "serve --spamd 127.0.0.1:0 --user-models users --checkpoint users/ann/mail.safetensors"
    assert "it is in the folder of --user-models" in fails(command)
