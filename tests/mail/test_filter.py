"""The command mail-filter, by itself and behind Debian's procmail and maildrop."""

import shlex
import shutil
import subprocess
import sys

import pytest
from commands import environment

FILTER = [sys.executable, "-m", "stream_pegasos", "mail-filter"]
SPAM = b"Subject: prize\r\nTo: b@example.org\r\n\r\nClaim your free prize now\r\n"
HAM = b"Subject: lunch\n\nShall we have lunch at noon?\n\xff\0"


@pytest.fixture(scope="module")
def model(mail_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "mails.safetensors"
    mail_model.save(path)
    return path


def filtered(mail, *arguments):
    """The exit code, the mail and standard error."""
    done = subprocess.run(
        [*FILTER, *map(str, arguments)], input=mail, capture_output=True, env=environment, timeout=120
    )
    return done.returncode, done.stdout, done.stderr.decode()


def test_headers_are_added_and_the_exit_code_is_bogofilters(model):
    for mail, says, code in ((SPAM, b"YES\r\n", 0), (HAM, b"NO\n", 1)):
        for options, expected in ((["--exit-code"], code), ([], 0)):
            found, said, error = filtered(mail, "--model", model, *options)
            assert (found, error) == (expected, "")
            assert said.startswith(b"X-Spam-Flag: " + says) and said.endswith(b"\n" + mail)
    _, said, _ = filtered(SPAM, "--model", model, "--header-prefix", "X-Pegasos")
    assert said.startswith(b"X-Pegasos-Flag: YES\r\nX-Pegasos-Status: Yes") and b"X-Spam" not in said
    band = ["--spam-threshold", "0.999999", "--ham-threshold", "0.000001"]
    assert filtered(SPAM, "--model", model, "--exit-code", *band)[0] == 2


def test_a_large_mail_passes_as_it_comes(model):
    large = SPAM + b"x" * 3_000_000
    found, said, _ = filtered(large, "--model", model)
    assert found == 0 and said.endswith(large) and said.startswith(b"X-Spam-Flag: ")


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["--model", "nowhere"], "nowhere"),
        (["--model", "mail"], "mail"),
        ([], "give the model by --model"),
        (["--model", "nowhere", "--header-prefix", "X Y"], "is not a header name"),
        (["--model", "nowhere", "--ham-threshold", "0.99"], "nowhere"),
    ],
)
def test_whatever_fails_the_mail_passes(tmp_path, monkeypatch, arguments, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail").write_bytes(SPAM)
    assert filtered(HAM, *arguments)[:2] == (0, HAM)
    code, said, error = filtered(HAM, *arguments, "--exit-code")
    assert (code, said) == (3, HAM) and error.startswith("stream-pegasos: the mail passes unfiltered: ")
    assert why in error and "Traceback" not in error


def test_wrong_options_lose_no_mail():
    code, said, error = filtered(HAM, "--modle", "m")
    assert (code, said) == (2, HAM) and "No such option" in error
    assert filtered(HAM, "--modle", "m", "--exit-code")[:2] == (3, HAM)  # as 2 is for unsure


@pytest.mark.parametrize("streams", ["<&-", ">&-", ">/dev/full"])
def test_a_mail_that_cannot_pass_is_no_ham(model, streams):
    for options, code in (["--exit-code"], 3), ([], 1):
        command = shlex.join([*FILTER, "--model", str(model), *options])
        done = subprocess.run(
            ["sh", "-c", f"{command} {streams}"], input=HAM, capture_output=True, env=environment, timeout=120
        )
        error = done.stderr.decode()
        assert done.returncode == code and error.startswith("stream-pegasos: error: ") and error.count("\n") == 1


PROCMAIL = """
MAILDIR={folder}
DEFAULT={folder}/inbox
:0fw
| {filter}
:0
* ^X-Spam-Flag: YES
junk
"""
MAILDROP = """
xfilter "{filter}"
if (/^X-Spam-Flag: YES/)
{{
  to "{folder}/junk"
}}
to "{folder}/inbox"
"""


@pytest.mark.parametrize("program, rules", [("procmail", PROCMAIL), ("maildrop", MAILDROP)])
def test_behind_a_delivery_agent(tmp_path, model, program, rules):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    rules_file = tmp_path / "rules"
    rules_file.write_text(rules.format(folder=tmp_path, filter=shlex.join([*FILTER, "--model", str(model)])))
    rules_file.chmod(0o600)
    unix = SPAM.replace(b"\r", b"")
    for mail in (unix, HAM.rstrip(b"\0")):
        subprocess.run(
            [program, "./rules"], input=b"From a@b Mon Nov 23 10:00:00 2026\n" * (program == "procmail") + mail,
            check=True, env=environment, cwd=tmp_path, timeout=120,
        )  # fmt: skip
    junk, inbox = ((tmp_path / name).read_bytes() for name in ("junk", "inbox"))
    assert b"X-Spam-Flag: YES\n" in junk and unix in junk
    assert b"X-Spam-Flag: NO\n" in inbox and HAM.rstrip(b"\0") in inbox
