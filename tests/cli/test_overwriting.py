"""No output is written over what is read, whatever it is called, nor a model over what is none."""

import os
import subprocess

import pytest
from commands import command as process_of
from commands import environment, error_line, stream, write_jsonl

from stream_pegasos import TextClassifier, load

# Commands that write, each with "IN" for what it reads and "OUT" for what it writes.
WRITERS = (
    "train IN --save OUT",
    "evaluate IN --save OUT",
    "evaluate IN --curve OUT",
    "evaluate IN --plot OUT.png",
    "evaluate IN --predictions OUT.jsonl",
    "test m IN --predictions OUT.jsonl",
    "tune IN --save OUT",
    "tune IN --plot OUT.png",
    "predict m IN --output OUT",
    "label IN --output OUT.jsonl",
    "label IN --save OUT",
    "run IN --no-follow --save OUT",
    "run IN --no-follow --output OUT",
    "run IN --no-follow --checkpoint OUT",
    "run other.jsonl --no-follow --label-topic IN --output OUT",
    "run other.jsonl --no-follow --label-topic IN --save OUT",
    "serve --token-file IN --checkpoint OUT",
)
OF_MODELS = (
    "freeze IN OUT",
    "predict IN mail.jsonl --output OUT",
    "test IN mail.jsonl --predictions OUT.jsonl",
    "evaluate mail.jsonl --save IN --curve OUT",
    "tune mail.jsonl --save IN --plot OUT.png",
    "run mail.jsonl --no-follow --load IN --output OUT",
    "run mail.jsonl --no-follow --checkpoint IN --save OUT",
    "run mail.jsonl --no-follow --save IN --output OUT",
    "label mail.jsonl --load IN --save OUT",
)


@pytest.fixture
def model(here):
    made = TextClassifier()
    made.learn_many(*zip(*stream[:100], strict=True))
    made.save("m")
    write_jsonl("other.jsonl", stream[:2])


@pytest.mark.parametrize("name", ["same", "symbolic", "hard", "spelled"])
@pytest.mark.parametrize("written", [*WRITERS, *OF_MODELS])
def test_an_output_that_is_an_input_is_refused(main, model, here, written, name):
    if written.startswith("label"):
        pytest.importorskip("msgspec")
    source = here / ("m" if written in OF_MODELS else "mail.jsonl")
    (extension,) = [os.path.splitext(word)[1] for word in written.split() if word.startswith("OUT")]
    there = here / f"in{extension or '.jsonl'}"
    os.replace(source, there)
    for each in ("m", "mail.jsonl"):
        if not (here / each).exists():
            os.symlink(there, each)
    data = there.read_bytes()
    out = here / f"link{there.suffix}"
    if name == "symbolic":
        out.symlink_to(there)
    elif name == "hard":
        out.hardlink_to(there)
    else:
        out = there if name == "same" else f"../{here.name}/./{there.name}"
    format = ["--format", "jsonl"] if "mail.jsonl" not in written and source.name == "mail.jsonl" else []
    words = [str(there) if word == "IN" else str(out) if word.startswith("OUT") else word for word in written.split()]
    code, _, err = main(*words, *(format if words[0] != "serve" else []))
    assert code in (1, 2)
    assert "the command reads it" in err or "it is the file of --checkpoint" in err or "learned twice" in err
    assert there.read_bytes() == data


@pytest.mark.parametrize("command", ["predict m mail.jsonl", "run mail.jsonl --load m --no-follow"])
def test_standard_output_that_is_an_input_is_refused(model, here, command):
    data = (here / "mail.jsonl").read_bytes()
    with open("mail.jsonl", "ab") as file:
        done = subprocess.run([*process_of, *command.split()], env=environment, stdout=file, stderr=subprocess.PIPE)
    assert done.returncode == 1 and "cannot write standard output" in error_line(done.stderr.decode())
    assert (here / "mail.jsonl").read_bytes() == data


@pytest.mark.parametrize("command", ["train", "evaluate", "run --no-follow --output none", "tune", "label", "freeze"])
def test_a_file_that_is_no_model_is_replaced_only_by_force(main, model, here, command):
    thesis = here / "thesis.txt"
    thesis.write_text("ten years of work")
    words = [*command.split(), "mail.jsonl", "--save"] if command != "freeze" else ["freeze", "m"]
    code, _, err = main(*words, thesis)
    assert code == 1 and "give --force" in error_line(err)
    assert thesis.read_text() == "ten years of work"
    if command != "label":  # which waits for people
        assert main(*words, thesis, "--force")[0] == 0
        load(thesis)


def test_a_model_an_empty_file_and_a_damaged_model_are_replaced(main, model, here):
    (here / "empty").touch()
    (here / "damaged").write_bytes((here / "m").read_bytes()[:-1])
    for name in ("m", "empty", "damaged"):
        assert main("train", "mail.jsonl", "--save", name)[0] == 0
        assert load(name).n_learned == len(stream)


def test_a_checkpoint_is_not_written_over_what_is_none(main, model, here):
    (here / "thesis.txt").write_text("ten years of work")
    code, _, err = main("run", "mail.jsonl", "--no-follow", "--checkpoint", "thesis.txt")
    assert code == 1 and "is no model" in err and "name another file" in error_line(err)
    assert (here / "thesis.txt").read_text() == "ten years of work"
