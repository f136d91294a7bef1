"""The command `run`, on what comes in."""

import json
import os
import signal
import time

import pytest
from commands import line_of, process, reference_of, started, stream

from stream_pegasos import TextClassifier, load
from stream_pegasos.learners.loading import load_with_progress


def test_run_answers_each_line_before_it_learns_it(here):
    model = TextClassifier()
    with started("run", "--save", "m") as run:
        for i, (text, label) in enumerate(stream[:40]):
            known = label if i % 3 else None
            run.stdin.write(line_of(text, known))
            run.stdin.flush()
            answer, probability = run.stdout.readline().decode().rstrip("\n").split("\t")
            if model.classes == (None, None):
                assert (answer, probability) == ("", "0.500000")
            else:
                assert answer == model.predict_one(text)
                assert float(probability) == pytest.approx(model.predict_proba_one(text)[answer], abs=1e-6)
            if known:
                model.learn_one(text, known)
        run.stdin.write(b"nonsense\n")
        rest, err = run.communicate()
    assert (run.returncode, rest) == (0, b"\t\n")  # neither a label nor a probability
    assert err.startswith(b"stream-pegasos: line 41 skipped: not JSON")
    assert load("m").weights == model.weights


def test_run_from_nothing_in_each_format(here):
    done = process("run", "--format", "labelled-text", input=b"first\nspam\twin\nspam\twin\nham\thi\n\tlast\n")
    lines = done.stdout.decode().splitlines()
    assert lines[:3] == ["\t0.500000", "\t0.500000", "spam\t0.666667"]
    assert len(lines) == 5
    done = process("run", "--format", "vw", input=b"| a\n1 | a\n-1 | b\n| a b\n")
    assert len(done.stdout.splitlines()) == 4
    assert done.returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_saves_when_it_is_told_to_end(here, number, code):
    with started("run", "--save", "m") as run:
        for text, label in stream[:20]:
            run.stdin.write(line_of(text, label))
            run.stdin.flush()
            run.stdout.readline()
        run.send_signal(number)
        out, err = run.communicate(timeout=20)
    assert (run.returncode, out) == (code, b"")
    assert err == b"stream-pegasos: read 20 messages, learned 20, 0 bad lines\n"
    reference = TextClassifier()
    reference.learn_many(*zip(*stream[:20], strict=True))
    assert load("m").weights == reference.weights


def test_run_continues_with_a_loaded_model(here):
    process("train", "mail.jsonl", "--save", "m")
    model = load("m")
    data = b"".join(line_of(text) for text, _ in stream[:50])
    lines = process("run", "--load", "m", input=data).stdout.decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == [model.predict_one(text) for text, _ in stream[:50]]


def test_run_reads_no_more_than_its_limit(main):
    code, out, err = main("run", "mail.jsonl", "--limit", "30", "--save", "m")
    assert (code, len(out.splitlines()), err) == (0, 30, "")
    assert load("m").weights == reference_of(stream[:30]).weights


def test_run_without_predictions(main):
    code, out, err = main("run", "mail.jsonl", "--no-follow", "--output", "none", "--save", "m")
    assert (code, out, err) == (0, "", "")
    assert load("m").weights == reference_of(stream).weights


def test_a_run_that_does_not_begin_saves_nothing(here, main):
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    code, _, err = main("run", "mail.jsonl", "--save", "m", "--output", "foo://bar")
    assert (code, "give kafka://host/topic or redis://host/stream" in err) == (1, True)
    assert load("m").n_iterations == len(stream)


def test_run_joins_labels_that_come_later(here):
    with open("unlabelled.jsonl", "w") as file:
        file.writelines(json.dumps({"id": i, "text": text}) + "\n" for i, (text, _) in enumerate(stream[:40]))
    labels = ["--label-topic", "labels.jsonl", "--checkpoint", "m"]
    with started("run", "unlabelled.jsonl", *labels, "--checkpoint-every", "1") as run:
        for _ in range(40):
            run.stdout.readline()
        with open("labels.jsonl", "w") as file:
            file.writelines(json.dumps({"id": i, "label": stream[i][1]}) + "\n" for i in range(30, 5, -1))
        deadline = time.monotonic() + 20
        while not (os.path.exists("m") and load_with_progress("m")[1]["n_learned"] == 25):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=20)
    assert b"read 40 messages, learned 25" in err
    assert load("m").weights == reference_of(stream[i] for i in range(30, 5, -1)).weights
    with open("labels.jsonl", "a") as file:
        file.writelines(json.dumps({"id": i, "label": stream[i][1]}) + "\n" for i in range(31, 40))
    again = process("run", "unlabelled.jsonl", *labels, "--no-follow")
    assert again.stdout == b""
    order = [*range(30, 5, -1), *range(31, 40)]
    assert load("m").weights == reference_of(stream[i] for i in order).weights
