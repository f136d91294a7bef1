"""Signals, pipes that are full or closed, and disks that are full."""

import contextlib
import errno
import fcntl
import io
import os
import re
import resource
import signal
import subprocess
import sys
import termios
import time
from array import array
from pathlib import Path

import pytest
from commands import append, command, environment, line_of, process, reference_of, started, stream, write_jsonl

from stream_pegasos import cli, load
from stream_pegasos.cli.interrupts import Interrupt
from stream_pegasos.learners.loading import load_with_progress

LINES = b"".join(line_of(*example) for example in stream)


def wait_until_done(process):
    """Wait until a process has taken all that its pipe holds, and each of its threads waits for more."""
    unread, idle = array("i", [1]), 0
    while idle < 5:
        time.sleep(0.02)
        fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
        states = [
            path.read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            for path in Path(f"/proc/{process.pid}/task").glob("*/stat")
        ]
        idle = idle + 1 if not unread[0] and {*states} == {"S"} else 0


def test_answers_that_nobody_reads_end_the_command_quietly(here):
    reference_of(stream).save("m")
    write_jsonl("long.jsonl", stream * 20)
    with started("predict", "m", "long.jsonl") as predict:
        predict.stdout.readline()
        predict.stdout.close()
        assert predict.stderr.read() == b"" and predict.wait(20) == 0
    with started("run", "--save", "live") as run:
        run.stdout.close()
        run.stdin.write(LINES)
        run.stdin.close()
        assert run.stderr.read() == b"" and run.wait(20) == 0
    load("live")


WITHOUT_TIMERS = """
import signal
for name in ("SIGALRM", "setitimer", "ITIMER_REAL"):
    delattr(signal, name)
from stream_pegasos.cli import main
main()
"""


def test_sigterm_ends_run_while_nobody_takes_its_answers(here):
    """The pipe of the answers is full: the command waits until somebody reads them. No timer of the system is needed,
    as there is none on Windows.
    """
    write_jsonl("long.jsonl", stream * 20)
    words = [sys.executable, "-c", WITHOUT_TIMERS, "run", "long.jsonl", "--save", "m"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as run:
        before, unread = 0, array("i", [0])
        while not before or unread[0] != before:  # it has not begun, or goes on
            before = unread[0]
            time.sleep(0.05)
            fcntl.ioctl(run.stdout, termios.FIONREAD, unread)
        for _ in range(20):  # an impatient operator does not prolong it
            run.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(0.5)
                break
        assert run.returncode in (143, -signal.SIGTERM)  # this one if all is done when the last one comes
    load("m")


def test_a_signal_cuts_no_example_in_half():
    """It is heeded where the command waits for others."""
    with Interrupt() as interrupt:
        assert interrupt.wait(lambda: 7) == 7
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            pytest.fail("it was heeded at once")
        assert interrupt.signal == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            interrupt.wait(lambda: 7)


@pytest.mark.parametrize("name", ["evaluate", "train"])
def test_ctrl_c_ends_with_what_was_done(here, name):
    with started(name, "-", "--save", "m") as running:
        running.stdin.write(b"".join(line_of(*example) for example in stream[:200]))
        running.stdin.flush()
        wait_until_done(running)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (130, b"")
    assert b"200 messages in " in out and b", interrupted" in out
    assert load("m").weights == reference_of(stream[:200]).weights


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk(main):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*command, "evaluate", "mail.jsonl"], env=environment, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert done.stderr == b"stream-pegasos: error: cannot write standard output: No space left on device\n"
    code, out, err = main("evaluate mail.jsonl --plot /dev/full --save m")
    assert code == 1 and "accuracy" in out
    assert err == "stream-pegasos: error: cannot write /dev/full: No space left on device\n"
    load("m")


def test_model_that_does_not_fit_on_the_disk(here):
    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))

    (here / "m").write_text("as it was", encoding="utf-8")
    done = process("train", "mail.jsonl", "--save", "m", preexec_fn=small_disk)
    assert done.returncode == 1 and done.stderr.startswith(b"stream-pegasos: error: cannot write m: ")
    assert (here / "m").read_text(encoding="utf-8") == "as it was"
    assert sorted(path.name for path in here.iterdir()) == ["m", "mail.jsonl"]


@pytest.mark.parametrize("option", ["--plot", "--save"])
def test_output_that_cannot_be_written_fails_before_the_work(fails, here, option):
    for path in ("none/x.png", here):
        assert "cannot write" in fails("evaluate", option, path)


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

    def make_room(seconds):
        disk.room += 100

    disk = Disk()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(disk), "utf-8"))
    monkeypatch.setattr(sys, "argv", ["stream-pegasos", "run", "mail.jsonl", "--no-follow", "--limit", "60"])
    monkeypatch.setattr("stream_pegasos.runtime.stream_runner.sleep", make_room)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    lines = disk.taken.decode().splitlines()
    assert len(lines) == 60 and all(re.fullmatch(r"(ham|spam)?\t[01]\.[0-9]{6}", line) for line in lines)


@pytest.mark.parametrize("redirect", ["2>/dev/full", "2>&-"])
def test_messages_that_nobody_can_take_stop_nothing(redirect, here):
    """A log often stands on the disk that is full, and daemons close standard error."""
    folder = here / "away"
    folder.mkdir()
    write_jsonl("log.jsonl", [("win", "spam")])
    run = [*command, "run", "log.jsonl", "--checkpoint", "away/model", "--checkpoint-every", "0.1s"]
    shell = ["sh", "-c", f'exec "$@" {redirect}', "sh", *run]
    with subprocess.Popen(shell, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\t0.500000\n"
        os.rename(folder, here / "gone")
        append("log.jsonl", [("lunch", "ham")])
        with open("log.jsonl", "a", encoding="utf-8") as file:
            file.write("no JSON\n")
        assert process.stdout.readline().startswith(b"spam\t")
        time.sleep(0.3)  # some checkpoints are due, and fail
        folder.mkdir()
        end = time.monotonic() + 120
        while not (folder / "model").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        assert load_with_progress(folder / "model")[1]["n_learned"] == 2
        process.terminate()
        process.communicate(timeout=120)
