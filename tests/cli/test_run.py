"""The command `run`: on what comes in, and from its checkpoints."""

import csv
import io
import json
import os
import signal
import time
from types import SimpleNamespace
from urllib.request import urlopen

import pytest
from commands import append, labels_of, line_of, process, reference_of, started, stream, write_jsonl
from running import bits, wait

from stream_pegasos import AdaptiveClassifier, OrdinalClassifier, TextClassifier, load
from stream_pegasos.cli import watching
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.streams import Lag

CHECKPOINT = "run mail.jsonl --no-follow --output none --checkpoint m"
BEGUN_WITH_NEW = CHECKPOINT.replace("run", "run new")


def test_run_answers_each_line_before_it_learns_it(here):
    model = TextClassifier()
    with started("run", "--save", "m") as run:
        for i, (text, label) in enumerate(stream[:40]):
            known = label if i % 3 else None
            run.stdin.write(line_of(text, known))
            run.stdin.flush()
            answer, probability = run.stdout.readline().decode().rstrip("\n").split("\t")
            if not model.classes:
                assert (answer, probability) == ("", "0.500000")
            else:
                assert answer == model.predict_one(text)
                said = model.predictions([text])  # which leave room for labels to come
                expected = dict(zip(said.classes, said.probabilities[0], strict=True))[answer]
                assert float(probability) == pytest.approx(expected, abs=1e-6)
            if known:
                model.learn_one(text, known)
        run.stdin.write(b"nonsense\n")
        rest, err = run.communicate()
    assert (run.returncode, rest) == (0, b"\t\n")  # neither a label nor a probability
    assert err.startswith(b"stream-pegasos: line 41 skipped: not JSON")
    assert load("m").weights == model.weights


def test_run_from_nothing_in_each_format(ok):
    out = ok("run --format labelled-text", input=b"first\nspam\twin\nspam\twin\nham\thi\n\tlast\n")
    assert out.splitlines()[:3] == ["\t0.500000", "\t0.500000", "spam\t0.666667"] and out.count("\n") == 5
    assert ok("run --format vw", input=b"| a\n1 | a\n-1 | b\n| a b\n").count("\n") == 4


def test_run_without_predictions_goes_on_with_a_loaded_model_and_reads_no_more_than_its_limit(ok, fails):
    assert ok("run mail.jsonl --no-follow --output none --save m --limit 40") == ""
    assert load("m").weights == reference_of(stream[:40]).weights
    data = b"".join(line_of(text) for text, _ in stream[:50])
    assert labels_of(ok("run m", input=data)) == load("m").predict_many([text for text, _ in stream[:50]]).tolist()
    assert "give kafka://host/topic or redis://host/stream" in fails("run mail.jsonl --save m --output foo://bar")
    assert load("m").n_iterations == 40  # a run that does not begin saves nothing


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_run_goes_on_from_its_checkpoint_over_a_growing_file(here, ok, number, code):
    command = "run log.jsonl --checkpoint m --checkpoint-every 20"
    append("log.jsonl", stream[:50])
    with started(*command.split()) as run:
        n = len([run.stdout.readline() for _ in range(50)])
        append("log.jsonl", stream[50:90])
        n += len([run.stdout.readline() for _ in range(40)])
        run.send_signal(number)
        _, err = run.communicate(timeout=120)
    assert run.returncode == code
    is_killed = number == signal.SIGKILL
    assert is_killed or b"read 90 messages, learned 90, 0 bad lines" in err
    assert is_killed or load("m").weights == reference_of(stream[:90]).weights
    append("log.jsonl", stream[90:150])
    n += ok(command, "--no-follow").count("\n")
    assert n >= 150 if is_killed else n == 150
    assert load("m").weights == reference_of(stream[:150]).weights
    assert ok(command, "--no-follow") == ""


def test_half_a_line_is_learned_once_it_is_whole(here, main):
    append("half.jsonl", stream[:20])
    os.truncate("half.jsonl", os.path.getsize("half.jsonl") - 9)
    code, out, err = main("run half.jsonl --checkpoint m --no-follow")
    assert (code, out.count("\n")) == (0, 19) and "half.jsonl has no end yet" in err
    with open("half.jsonl", "ab") as file:
        file.write(line_of(*stream[19])[-9:])
    code, out, _ = main("run half.jsonl --checkpoint m --no-follow")
    assert (code, out.count("\n")) == (0, 1)
    assert load("m").weights == reference_of(stream[:20]).weights


def test_csv_that_grows_is_learned_as_one_file(here, ok):
    """Whose records have several lines, and end wherever the writer is."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("text", "label"), *((text.replace(" ", "\n"), label) for text, label in stream[:60])])
    data, answers = file.getvalue().encode(), ""
    for end in (100, 1_000, 1_001, len(data)):
        (here / "grows.csv").write_bytes(data[:end])
        answers += ok("run grows.csv --no-follow --checkpoint m")
    ok("train grows.csv --save whole")
    assert load("m").weights == load("whole").weights and answers == ok("run --format csv", input=data)


@pytest.mark.parametrize("more", ["", "--multi-label"])
def test_a_run_says_that_its_drift_detector_begins_anew(main, ok, more):
    ok(f"train {more} --drift-detector ADWIN --save new")
    for again in (BEGUN_WITH_NEW, CHECKPOINT, "train m mail.jsonl --save m2"):
        assert "its drift detector begins again" in main(again)[2]


def test_run_begins_with_a_model_that_was_taught_nothing(ok, fails):
    said = ok("train --half-life 500 --save new")
    assert said == "saved new, a model that has learned 0 messages\n"
    ok(BEGUN_WITH_NEW)
    expected = TextClassifier(classifier=AdaptiveClassifier(half_life=500))
    expected.learn_many(*zip(*stream, strict=True))
    assert load("m").weights == expected.weights
    for wrong, rest in (("--limit", "5 --checkpoint m"), ("--allow-moved", ""), ("--save", "m --checkpoint m")):
        assert wrong in fails(f"run mail.jsonl {wrong} {rest}", code=2)
    assert "it goes with a saved model" in fails("run mail.jsonl --vectors wordllama", code=2)


def test_a_checkpoint_takes_another_decision_and_goes_on(ok):
    append("mail.jsonl", [("win", "spam")])
    ok(f"{CHECKPOINT}")
    learned = load("m")
    ok("train m --pos-label spam --threshold 0.9 --save m")
    assert load("m").classifier.threshold == 0.9 and load("m").weights == learned.weights
    append("mail.jsonl", [("lunch", "ham")])
    ok(CHECKPOINT)
    learned.set_decision(threshold=0.9, pos_label="spam")
    learned.learn_one("lunch", "ham")
    assert load("m").to_state()[2] == learned.to_state()[2]


def test_a_checkpoint_belongs_to_its_source(here, ok, fails, monkeypatch):
    pytest.importorskip("redis", reason="the extra 'redis' is not installed")
    ok(CHECKPOINT)
    assert f"m belongs to {here / 'mail.jsonl'}: " in fails("run redis://localhost/mail --checkpoint m")
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    write_jsonl("mail.jsonl", stream)
    arguments = "--no-follow --output none --checkpoint ../m"
    message = f"the checkpoint belongs to {here / 'mail.jsonl'}, not to {here / 'other' / 'mail.jsonl'}"
    assert message in fails(f"run mail.jsonl {arguments}")
    ok(f"run ../mail.jsonl {arguments}")
    assert load("../m").n_iterations == len(stream)


def test_serve_and_run_keep_checkpoints_apart(here, ok, fails):
    pytest.importorskip("msgspec", reason="the extra 'service' is not installed")
    ok(CHECKPOINT)
    message = f"m belongs to {here / 'mail.jsonl'}, which run reads; MODEL takes only the model"
    assert message in fails("serve --port 0 --checkpoint m")
    TextClassifier().snapshot({"monitor": {}}).write(here / "web")
    assert "web is a checkpoint of serve; MODEL takes only the model" in fails("run mail.jsonl --checkpoint web")
    assert "web: the state must be one of a Monitor ('score')" in fails("serve --checkpoint web")


def test_run_joins_labels_that_come_later(here):
    with open("unlabelled.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": i, "text": text}) + "\n" for i, (text, _) in enumerate(stream[:40]))
    labels = ["--label-topic", "labels.jsonl", "--checkpoint", "m"]
    order = [*range(30, 5, -1), *range(31, 40)]

    def label(some):
        with open("labels.jsonl", "a", encoding="utf-8") as file:
            file.writelines(json.dumps({"id": i, "label": stream[i][1]}) + "\n" for i in some)

    with started("run", "unlabelled.jsonl", *labels, "--checkpoint-every", "1") as run:
        for _ in range(40):
            run.stdout.readline()
        label(order[:25])
        deadline = time.monotonic() + 120
        while not (os.path.exists("m") and load_with_progress("m")[1]["n_learned"] == 25):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=120)
    assert b"read 40 messages, learned 25" in err
    assert load("m").weights == reference_of([stream[i] for i in order[:25]]).weights
    label(order[25:])
    assert process("run", "unlabelled.jsonl", *labels, "--no-follow").stdout == b""
    assert load("m").weights == reference_of([stream[i] for i in order]).weights


def test_a_label_that_is_refused_leaves_its_message_to_another(here, main):
    messages = [{"id": i, "text": text} for i, text in enumerate(["win a prize", "lunch at noon"])]
    (here / "m.jsonl").write_text("".join(json.dumps(each) + "\n" for each in messages), encoding="utf-8")
    for wrong, right, options in (("Spam", "spam", "m.jsonl --labels ham,spam"), ("good", 5, "ordered m.jsonl")):
        TextClassifier(classifier=OrdinalClassifier()).save("ordered")
        labels = [{"id": 0, "label": wrong}, {"id": 0, "label": right}]
        (here / "l.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels), encoding="utf-8")
        code, _, err = main(f"run {options} --label-topic l.jsonl --no-follow --save x --output none")
        assert code == 0 and err.count("skipped") == 1 and str(wrong) in err
        assert load("x").classes == (right,) and load("x").n_learned == 1


@pytest.mark.parametrize("moment", ["checkpoint", "answers", "later"])
def test_run_killed_in_its_first_moments_loses_nothing(here, moment):
    """Long before a checkpoint is due, and although the file is rotated meanwhile."""
    append("log.jsonl", stream[:300])
    command = ["run", "log.jsonl", "--checkpoint", "m", "--output", "answers.csv"]
    looked_at = here / ("m" if moment == "checkpoint" else "answers.csv")
    with started(*command) as run:
        end = time.monotonic() + 120
        while not (looked_at.exists() and looked_at.stat().st_size):
            assert run.poll() is None and time.monotonic() < end
            time.sleep(0.001)
        if moment == "later":
            append("log.jsonl", stream[300:400])
            while (here / "answers.csv").read_bytes().count(b"\n") < 401:
                assert run.poll() is None and time.monotonic() < end
                time.sleep(0.001)
        run.kill()
        run.communicate()
    assert (here / "m").exists() and not (here / "m.previous").exists()
    begin = 400 if moment == "later" else 300
    os.rename("log.jsonl", "log.jsonl.1")
    append("log.jsonl", stream[begin:])
    done = process(*command, "--no-follow")
    assert done.returncode == 0, done.stderr
    model, rows = TextClassifier(), [*csv.DictReader((here / "answers.csv").read_text("utf-8").splitlines())]
    assert len(rows) == len(stream)
    for (text, label), row in zip(stream, rows, strict=True):
        assert row["label"] == (model.predict_one(text) or "")
        model.learn_one(text, label)
    assert bits(load("m")) == bits(model)


def test_run_adds_to_an_output_only_if_it_is_told(here, ok, fails):
    command, answers = "run mail.jsonl --no-follow --limit 20 --output a.jsonl", here / "a.jsonl"
    ok(command)
    first = answers.read_bytes()
    assert "a.jsonl is not empty: add to it by --append" in fails(command) and answers.read_bytes() == first
    ok(command, "--append")
    assert answers.read_bytes() == first + first
    answers.write_bytes(b"")
    ok(command)
    assert answers.read_bytes() == first
    keeping = "run mail.jsonl --no-follow --checkpoint c --output"
    assert "is not empty" in fails(keeping, "a.jsonl") and not (here / "c").exists()
    ok(keeping, "a.jsonl", "--append")
    assert answers.read_bytes().startswith(first + first.splitlines(keepends=True)[0])
    n = answers.read_bytes().count(b"\n")
    append("mail.jsonl", stream[:5])
    ok(keeping, "a.jsonl")  # whose own it is
    assert answers.read_bytes().count(b"\n") == n + 5 == 20 + len(stream) + 5
    (here / "thesis.txt").write_text("ten years of work", "utf-8")
    assert (
        "is not empty" in fails(keeping, "thesis.txt")
        and (here / "thesis.txt").read_text("utf-8") == "ten years of work"
    )


@pytest.mark.parametrize("is_sent", [False, True])
def test_answers_to_what_a_pipe_gave_stay(here, ok, is_sent):
    """Its messages do not come again."""
    lines = [line_of(*example) for example in stream[:30]]
    ok("run --checkpoint m --output a.jsonl", input=b"".join(lines[:20]))
    model, progress = load_with_progress("m")
    answers = (here / "a.jsonl").read_bytes()
    # As a kill leaves it right after the first checkpoint, or a little later.
    records = [json.loads(line) for line in answers.splitlines()]
    unsent = [[record["id"], record["label"], record["probability"]] for record in records]
    model.snapshot(progress | {"output": [progress["output"][0], 0], "unsent": unsent}).write("m")
    (here / "a.jsonl").write_bytes(answers if is_sent else b"")
    ok("run --checkpoint m --output a.jsonl", input=b"".join(lines[20:]))
    assert (here / "a.jsonl").read_bytes().count(b"\n") == 30 and load("m").n_learned == 30


def test_a_run_tells_how_far_it_is_behind(capsys, monkeypatch):
    prometheus = pytest.importorskip("prometheus_client")
    from stream_pegasos.service.runner_metrics import RunnerMetrics

    lags = {"Kafka topic mail": Lag("messages", {"partition 0": 12_345, "partition 1": 0}), "a": Lag("bytes", {"": 7})}
    runner = SimpleNamespace(n_read=1_000, n_learned=900, lags=lambda: lags, teaching=None)
    monkeypatch.setattr(watching, "LOG_INTERVAL", 0.001)
    said = (
        "stream-pegasos: read 1,000 messages, learned 900; "
        "Kafka topic mail: partition 0: 12,345, partition 1: 0 messages behind; a: 7 bytes behind\n"
    )
    parts = []
    with watching.telling(runner):
        wait(lambda: parts.append(capsys.readouterr().err) or any(parts))
        time.sleep(0.02)  # as nothing changes, nothing is told
    assert "".join(parts) + capsys.readouterr().err == said
    registry = prometheus.CollectorRegistry()
    registry.register(RunnerMetrics(runner, None, lambda: 3))
    samples = {(of.name, *of.labels.values()): of.value for each in registry.collect() for of in each.samples}
    for key, value in {
        ("messages_read_total",): 1_000,
        ("messages_learned_total",): 900,
        ("bad_records_total",): 3,
        ("lag_messages", "Kafka topic mail", "partition 0"): 12_345,
        ("lag_bytes", "a", ""): 7,
    }.items():
        assert samples[f"stream_pegasos_{key[0]}", *key[1:]] == value


def test_metrics_of_a_run_are_served_on_this_machine(here, fails):
    pytest.importorskip("prometheus_client")
    with started("run", "mail.jsonl", "--metrics", "0", "--output", "none") as run:
        url = run.stderr.readline().decode().split()[-1]
        assert url.startswith("http://127.0.0.1:") and url.endswith("/metrics")
        wanted = f'stream_pegasos_lag_bytes{{part="",source="{here}/mail.jsonl"}} 0.0\n'
        while wanted not in (text := urlopen(url).read().decode()):
            time.sleep(0.01)
        assert f"stream_pegasos_messages_learned_total {len(stream):.1f}\n" in text and "build_info" in text
        port = url.split(":")[2].partition("/")[0]
        said = fails(f"run mail.jsonl --no-follow --output none --metrics {port}")
        assert f"--metrics: cannot listen at port {port} of 127.0.0.1: " in said
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=120)
    assert "'x' is not a whole number from 0 to 65535" in fails("run mail.jsonl --metrics localhost:x", code=2)
