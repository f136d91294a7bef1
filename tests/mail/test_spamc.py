"""SpamAssassin's own client, spamc, and the command that answers it."""

import os
import re
import shutil
import signal
import socket
import stat
import subprocess

import pytest
from serving import not_served
from spamd_client import HAM, SPAM, request

NEW = b"Message-ID: <new@x>\nSubject: quota\n\nYour quota is full\n"

pytestmark = pytest.mark.skipif(shutil.which("spamc") is None, reason="spamc is not installed")


@pytest.fixture
def spamd(serve):
    def start(address, *options):
        served = serve("--spamd", address, *options)
        served.address = re.search(" at (.+)", "\n".join(served.lines))[1]
        return served

    return start


def spamc(address, *options, mail=SPAM):
    host, _, port = address.rpartition(":")
    at = ["-U", address] if "/" in address else ["-d", host, "-p", port]
    done = subprocess.run(["spamc", *at, "-x", *options], input=mail, capture_output=True, timeout=120)
    return done.returncode, done.stdout


def test_spamc_gets_what_it_asks_for(spamd, saved_mail_model):
    served = spamd("0.0.0.0:0", saved_mail_model)
    assert any("may teach the model" in line for line in served.lines)
    address = f"127.0.0.1:{served.address.rpartition(':')[2]}"
    code, line = spamc(address, "-c")
    assert code == 1
    assert re.fullmatch(rb"[\d.]+/5\.0\n", line)
    assert spamc(address, "-c", mail=HAM)[0] == 0
    assert b"outcome=spam," in spamc(address, "-y")[1]
    assert b"Outcome: ham" in spamc(address, "-R", mail=HAM)[1]
    assert b"Outcome: spam" in spamc(address, "-r")[1]
    assert spamc(address, "-r", mail=HAM)[1].strip() == b""
    assert spamc(address, "-r", "-E")[0] == 1
    code, mail = spamc(address)
    assert code == 0
    assert mail.startswith(b"X-Spam-Flag: YES\n")
    assert mail.endswith(SPAM)
    code, headers = spamc(address, "--headers", "-E")
    assert code == 1
    assert headers == mail  # it puts the headers before the body by itself
    assert spamc(address, "-K") == (0, b"SPAMD/1.5 0\n")
    assert spamc(address, "-s", "20") == (0, SPAM)  # not sent at all, as it is too large


def test_spamc_teaches_and_a_killed_service_knows_it_by_user(spamd, saved_mail_model, tmp_path):
    users = tmp_path / "users"
    for user in ("ann", "bob"):
        (users / user).mkdir(parents=True)
    options = [saved_mail_model, "--user-models", users]
    served = spamd("127.0.0.1:0", *options)
    new, old = b"Message successfully un/learned\n", b"Message was already un/learned\n"
    for user in ("ann", "bob"):
        for expected in (new, old):
            assert spamc(served.address, "-u", user, "-L", "spam", mail=NEW) == (0, expected)
    assert spamc(served.address, "-u", "bob", "-L", "forget", mail=NEW) == (0, new)
    assert spamc(served.address, "-u", "eve", "-L", "spam", mail=NEW) == (0, old)  # she has no folder
    before = [spamc(served.address, "-u", user, "-c", mail=NEW) for user in ("ann", "bob", "eve")]
    served.kill()
    served = spamd("127.0.0.1:0", *options)
    assert [spamc(served.address, "-u", user, "-c", mail=NEW) for user in ("ann", "bob", "eve")] == before
    assert spamc(served.address, "-u", "ann", "-L", "spam", mail=NEW) == (0, old)
    assert spamc(served.address, "-u", "bob", "-L", "ham", mail=NEW) == (0, new)
    assert served.end() == -signal.SIGTERM
    assert {path.name for path in users.iterdir()} == {"ann", "bob"}


def test_a_new_model_reads_mails_and_goes_on(spamd, tmp_path):
    options = ["--checkpoint", tmp_path / "m"]
    for expected in (b"Message successfully un/learned\n", b"Message was already un/learned\n"):
        served = spamd("127.0.0.1:0", *options)
        assert spamc(served.address, "-L", "spam", mail=NEW) == (0, expected)
        served.kill()


def test_a_unix_socket_is_replaced_only_where_nobody_listens(spamd, saved_mail_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as the whole path may be too long for a socket
    path = "./spamd.sock"
    served = spamd(path, saved_mail_model)
    assert spamc(path, "-c")[0] == 1
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    assert "it is in use" in not_served(saved_mail_model, "--spamd", path)[1]
    served.kill()
    assert os.path.exists(path)
    served = spamd(path, saved_mail_model)
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(path)
        waiting.sendall(request("CHECK", SPAM)[:-5])
        assert spamc(path, "-c")[0] == 1
        assert served.end() == -signal.SIGTERM
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--spamd", "localhost:x"], "must be an address"),
        (["--spamd", "127.0.0.1:70000"], "must be an address"),
        (["--user-models", "users"], "it goes with --spamd"),
        (["--spamd", "0", "--spamd-teach", "users"], "users goes with --user-models"),
        (["--spamd-teach", "none"], "it goes with --spamd"),
        (["--spamd", "/dev/null"], "must be a socket"),
        (["--spamd", "./" + "x" * 106], "bytes, got 108"),
    ],
)
def test_what_cannot_be_served_is_told_at_once(saved_mail_model, options, word):
    assert word in not_served(saved_mail_model, *options)[1]
