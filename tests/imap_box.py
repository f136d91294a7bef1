"""A mailbox on a server that people use, its owner, and the command that filters it."""

import io
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest
from commands import command, environment

from stream_pegasos import cli, load

imapclient = pytest.importorskip("imapclient")


def mail(number, kind):
    """A mail that the model knows as spam or ham, with a number that makes it unlike all others."""
    subject = "A prize for you" if kind == "spam" else "Lunch at noon"
    head = f"Message-ID: <{number}@{kind}.example>\nFrom: {kind}@example.org\nSubject: {subject} {number}"
    return f"{head}\n\nText of {kind}.\n".encode()


def mails(kind, n, first=0):
    return [mail(number, kind) for number in range(first, first + n)]


class Box:
    """A mailbox, its owner, and the command that filters it."""

    def __init__(self, server, folder, account, model=None):
        self.server, self.account, self.folder = server, account, folder
        self.model = folder / f"{account}.safetensors"
        if model is not None:
            shutil.copy(model, self.model)
        (folder / "password").write_text(f"secret-{account}\n", encoding="utf-8")
        os.environ["SSL_CERT_FILE"] = environment["SSL_CERT_FILE"] = str(server.folder / "cert.pem")
        for file in (file for name in ("INBOX", "Junk", "Archive") for file in self.files(name)):
            file.unlink()

    def files(self, name="INBOX"):
        return [path for part in ("new", "cur") for path in (self.server.maildir(self.account, name) / part).iterdir()]

    def arguments(self, *options, host="127.0.0.1"):
        at = ["--host", f"{host}:{self.server.port}", "--user", self.account, self.model]
        return [str(each) for each in ("imap", *at, "--password-file", self.folder / "password", "--verbose", *options)]

    def once(self, *options, **given):
        """Look once: what is printed, of which the last line is the summary."""
        done = run(*self.arguments("--once", *options, **given))
        assert done.returncode == 0 and done.stderr.count("Traceback") == 0, done.stderr
        return done.stdout.splitlines()

    @contextmanager
    def watching(self, *options, end=signal.SIGTERM, **given):
        started = start(*self.arguments(*options, **given))
        try:
            yield started
            started.send_signal(end)
            started.output, started.errors = started.communicate(timeout=120)
        finally:
            started.kill()
            started.wait()
            for pipe in (started.stdout, started.stderr):
                pipe.close()

    def deliver(self, mails, *where):
        self.server.deliver(self.account, mails, *where)

    def has(self, name="INBOX"):
        return self.server.mails(self.account, name)

    def owner_moves(self, some, source, target):
        """What a person does in a mail program."""
        with imapclient.IMAPClient("127.0.0.1", self.server.plain_port, ssl=False, timeout=120) as client:
            client.login(self.account, f"secret-{self.account}")
            client.select_folder(source)
            found = {uid for each in some for uid in client.search(["HEADER", "Message-ID", id_of(each)])}
            assert len(found) == len(some)
            client.move(sorted(found), target)

    @property
    def n_learned(self):
        return load(self.model).n_learned


def id_of(mail):
    return mail.partition(b"\n")[0].partition(b" ")[2].decode()


def run(*arguments):
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["stream-pegasos", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
    return SimpleNamespace(returncode=end.value.code or 0, stdout=out.getvalue(), stderr=err.getvalue())


def start(*arguments):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *arguments], env=environment, **pipes)
