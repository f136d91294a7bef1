"""Signals, pipes that are full or closed, and disks that are full."""

import contextlib
import errno
import fcntl
import io
import os
import re
import resource
import select
import signal
import subprocess
import sys
import termios
import time
from array import array

import pytest
from commands import command, environment, error_line, line_of, process, started, stream, write_jsonl

from stream_pegasos import TextClassifier, cli, load
from stream_pegasos.learners.loading import load_with_progress


def wait_until_read(pipe):
    """Wait until the other process has taken everything, and a little for it to work on that."""
    unread = array("i", [1])
    while unread[0]:
        time.sleep(0.05)
        fcntl.ioctl(pipe, termios.FIONREAD, unread)
    time.sleep(0.3)


def test_predict_into_a_closed_pipe_ends_quietly(here):
    process("train", "mail.jsonl", "--save", "m")
    write_jsonl("long.jsonl", stream * 20)
    with started("predict", "m", "long.jsonl") as predict:
        predict.stdout.readline()
        predict.stdout.close()
        assert predict.stderr.read() == b""
        assert predict.wait(20) == 0


def test_run_ends_quietly_and_saves_when_nobody_reads(here):
    data = b"".join(line_of(text, label) for text, label in stream)
    with started("run", "--save", "m") as run:
        run.stdout.close()
        run.stdin.write(data)
        run.stdin.close()
        assert run.stderr.read() == b""
        assert run.wait(20) == 0
    load("m")


def test_sigterm_ends_run_while_nobody_takes_its_answers(here):
    """The pipe of the answers is full: the command waits until somebody reads them."""
    data = b"".join(line_of(text, label) for text, label in stream)
    with started("run", "--save", "m") as run:
        os.set_blocking(run.stdin.fileno(), False)
        unchanged = 0
        while unchanged < 10:
            try:
                unchanged = 0 if run.stdin.raw.write(data) else unchanged + 1
            except BlockingIOError:
                unchanged += 1
            if not select.select([run.stdout], [], [], 0.05)[0]:  # it has not begun
                unchanged = 0
            time.sleep(0.05)
        for _ in range(20):  # an impatient operator does not prolong it
            run.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(0.5)
                break
        assert run.returncode in (143, -signal.SIGTERM)  # this one if all is done when the last one comes
        run.stdin.raw.close()
    load("m")


@pytest.mark.parametrize("arguments", [["evaluate", "-", "--save", "m"], ["train", "-", "--save", "m"]])
def test_ctrl_c_ends_with_what_was_done(here, arguments):
    with started(*arguments) as running:
        running.stdin.write(b"".join(line_of(text, label) for text, label in stream[:200]))
        running.stdin.flush()
        wait_until_read(running.stdin)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, err) == (130, b"")
    assert b"200 messages in " in out
    assert b", interrupted" in out
    reference = TextClassifier()
    reference.learn_many(*zip(*stream[:200], strict=True))
    assert load("m").weights == pytest.approx(reference.weights)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk(main):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*command, "evaluate"], env=environment, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert error_line(done.stderr.decode()).endswith("cannot write standard output: No space left on device")
    for option in ("--curve", "--plot"):
        code, out, err = main("evaluate", "mail.jsonl", option, "/dev/full", "--save", option[2:])
        assert code == 1
        assert "accuracy" in out
        load(option[2:])
        assert error_line(err).endswith("cannot write /dev/full: No space left on device")


def test_model_that_does_not_fit_on_the_disk(here):
    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))

    (here / "m").write_text("as it was")
    done = process("train", "mail.jsonl", "--save", "m", "--force", preexec_fn=small_disk)
    assert done.returncode == 1
    assert error_line(done.stderr.decode()).startswith("stream-pegasos: error: cannot write m: ")
    assert (here / "m").read_text() == "as it was"
    assert sorted(path.name for path in here.iterdir()) == ["m", "mail.jsonl"]


def test_output_that_cannot_be_written_fails_before_the_work(main, here):
    for option in ("--curve", "--plot", "--save"):
        for path in ("none/x.png", here):
            code, out, err = main("evaluate", option, path)
            assert (code, out) == (1, "")
            assert "cannot write" in error_line(err)


def test_answers_go_on_where_the_disk_was_full(here, monkeypatch):
    class Disk(io.RawIOBase):
        room, taken = 0, b""

        def writable(self):
            return True

        def write(self, data):
            n = min(self.room, len(data), 7)
            if n == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.room -= n
            self.taken += bytes(data[:n])
            return n

    disk = Disk()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(disk), "utf-8"))
    monkeypatch.setattr(sys, "argv", ["stream-pegasos", "run", "mail.jsonl", "--no-follow", "--limit", "60"])

    def make_room(seconds):
        disk.room += 100

    monkeypatch.setattr("stream_pegasos.operation.live.sleep", make_room)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    lines = disk.taken.decode().splitlines()
    assert len(lines) == 60
    assert all(re.fullmatch(r"(ham|spam)?\t[01]\.[0-9]{6}", line) for line in lines)


@pytest.mark.parametrize("errors", ["full", "closed"])
def test_messages_that_nobody_can_take_stop_nothing(errors, tmp_path):
    """A log often stands on the disk that is full, and daemons close standard error."""
    mail, folder = tmp_path / "mail.jsonl", tmp_path / "away"
    mail.write_text('{"text": "win", "label": "spam"}\n')
    folder.mkdir()
    arguments = [str(mail), "--checkpoint", str(folder / "model"), "--checkpoint-seconds", "0.1"]
    command = [sys.executable, "-m", "stream_pegasos", "run", *arguments]
    redirect = "2>/dev/full" if errors == "full" else "2>&-"
    process = subprocess.Popen(["sh", "-c", f'exec "$@" {redirect}', "sh", *command], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"\t0.500000\n"
        os.rename(folder, tmp_path / "gone")
        with mail.open("a") as file:
            file.write('{"text": "lunch", "label": "ham"}\nno JSON\n')
        assert process.stdout.readline().startswith(b"spam\t")
        time.sleep(0.5)  # some checkpoints are due, and fail
        folder.mkdir()
        end = time.monotonic() + 20
        while not (folder / "model").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        assert load_with_progress(folder / "model")[1]["n_learned"] == 2
    finally:
        process.terminate()
        rest, _ = process.communicate(timeout=20)
    assert rest == b""
