"""Checkpoints of the command `run`."""

import signal

import pytest
from commands import line_of, process, reference_of, started, stream, write_jsonl

from stream_pegasos import TextClassifier, load


def append(path, examples):
    with open(path, "ab") as file:
        file.write(b"".join(line_of(*example) for example in examples))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_run_goes_on_from_its_checkpoint_over_a_growing_file(here, number, code):
    arguments = ["run", "log.jsonl", "--checkpoint", "m", "--checkpoint-every", "20"]
    append("log.jsonl", stream[:50])
    with started(*arguments) as run:
        first = [run.stdout.readline() for _ in range(50)]
        append("log.jsonl", stream[50:90])
        first += [run.stdout.readline() for _ in range(40)]
        run.send_signal(number)
        _, err = run.communicate(timeout=20)
    assert run.returncode == code
    if number != signal.SIGKILL:
        assert load("m").weights == reference_of(stream[:90]).weights
        assert b"read 90 messages, learned 90, 0 bad lines" in err
    append("log.jsonl", stream[90:150])
    done = process(*arguments, "--no-follow")
    assert done.returncode == 0
    if number != signal.SIGKILL:
        assert b"resuming with 90 messages learned" in done.stderr
        assert len(done.stdout.splitlines()) == 60
    assert len(first) + len(done.stdout.splitlines()) >= 150
    assert load("m").weights == reference_of(stream[:150]).weights
    assert process(*arguments, "--no-follow").stdout == b""
    assert load("m").weights == reference_of(stream[:150]).weights


def test_half_a_line_is_learned_once_it_is_whole(here, main):
    arguments = ["run", "half.jsonl", "--checkpoint", "m", "--no-follow"]
    append("half.jsonl", stream[:20])
    with open("half.jsonl", "r+b") as file:
        file.truncate(file.seek(-9, 2))
    code, out, err = main(*arguments)
    assert (code, len(out.splitlines())) == (0, 19) and "half.jsonl has no end yet" in err
    with open("half.jsonl", "ab") as file:
        file.write(line_of(*stream[19])[-9:])
    code, out, _ = main(*arguments)
    assert (code, len(out.splitlines())) == (0, 1)
    assert load("m").weights == reference_of(stream[:20]).weights


@pytest.mark.parametrize("more", [[], ["--multi-label"]])
def test_a_run_says_that_its_drift_detector_begins_anew(main, more):
    arguments = ["run", "mail.jsonl", "--no-follow", "--output", "none", "--checkpoint", "m"]
    assert "anew" not in main(*arguments, *more, "--drift-detector", "ADWIN")[2]
    assert "its drift detector begins anew" in main(*arguments)[2]
    assert "its drift detector begins anew" in main("train", "mail.jsonl", "--load", "m", "--save", "m2")[2]


def test_run_refuses_other_options_than_the_checkpoint_was_begun_with(main):
    options = ["run", "mail.jsonl", "--no-follow", "--output", "none", "--checkpoint", "m", "--half-life", "500"]
    assert main(*options)[:2] == (0, "")
    assert load("m").classifier.half_life == 500
    for others in (["--half-life", "500.001"], ["--half-life", "500", "--ngrams", "1"], ["--classifier", "pegasos"]):
        code, _, err = main(*options[:-2], *others)
        assert code == 1
        assert "m was begun with other options of the model" in err
    assert main(*options)[0] == 0
    assert main(*options[:-2])[0] == 0  # those that it was begun with
    assert load("m").weights == load("m.previous").weights
    code, _, err = main("run", "mail.jsonl", "--checkpoint", "m", "--limit", "5")
    assert code == 2
    assert "--limit" in err


def test_run_takes_a_damaged_checkpoint_for_none(main, here):
    arguments = ["run", "mail.jsonl", "--no-follow", "--output", "none", "--checkpoint", "m"]
    assert main(*arguments)[0] == main(*arguments)[0] == 0  # so that there are two
    with open("m", "r+b") as file:
        file.truncate(1_000)
    code, _, err = main(*arguments)
    assert code == 0
    assert "resuming from" in err
    assert "m.previous, the one before" in err
    assert load("m").weights == reference_of(stream).weights
    for name in ("m", "m.previous"):
        with open(name, "wb") as file:
            file.write(b"damaged")
    code, _, err = main(*arguments)
    assert code == 1
    assert "is damaged" in err
    assert (here / "m").read_bytes() == b"damaged"


def test_serve_and_run_keep_checkpoints_apart(here, main):
    pytest.importorskip("msgspec", reason="the extra 'service' is not installed")
    assert main("run", "mail.jsonl", "--no-follow", "--output", "none", "--checkpoint", "m")[0] == 0
    code, _, err = main("serve", "--port", "0", "--checkpoint", "m")
    assert code == 1
    assert f"m belongs to {here / 'mail.jsonl'}, which run reads; --load takes only the model" in err
    TextClassifier().snapshot({"monitor": {}}).write(here / "web")
    code, _, err = main("run", "mail.jsonl", "--checkpoint", "web")
    assert code == 1
    assert "web is what serve keeps; --load takes only the model" in err
    code, _, err = main("serve", "--checkpoint", "web")
    assert code == 1
    assert "web: this is no state of a Monitor ('score')" in err


def test_a_checkpoint_knows_its_file_from_every_folder(here, main, monkeypatch):
    arguments = ["--no-follow", "--output", "none", "--checkpoint", here / "m"]
    assert main("run", "mail.jsonl", *arguments)[0] == 0
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    write_jsonl("mail.jsonl", stream)
    code, _, err = main("run", "mail.jsonl", *arguments)
    assert code == 1
    assert f"the checkpoint belongs to {here / 'mail.jsonl'}, not to {here / 'other' / 'mail.jsonl'}" in err
    assert main("run", "../mail.jsonl", *arguments)[0] == 0
    assert load(here / "m").n_iterations == len(stream)


def test_a_checkpoint_of_another_kind_of_source(here, main):
    pytest.importorskip("redis", reason="the extra 'redis' is not installed")
    assert main("run", "mail.jsonl", "--no-follow", "--output", "none", "--checkpoint", "m")[0] == 0
    code, _, err = main("run", "redis://localhost/mail", "--checkpoint", "m")
    assert code == 1
    assert f"m belongs to {here / 'mail.jsonl'}: " in err
