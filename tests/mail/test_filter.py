"""The command mail-filter, by itself and behind Debian's procmail and maildrop."""

import gc
import io
import shlex
import shutil
import subprocess
import sys

import pytest
from commands import environment

from stream_pegasos import cli

FILTER = [sys.executable, "-m", "stream_pegasos", "mail-filter"]
SPAM = b"Subject: prize\r\nTo: b@example.org\r\n\r\nClaim your free prize now\r\n"
HAM = b"Subject: lunch\n\nShall we have lunch at noon?\n\xff\0"


@pytest.fixture
def filtered(monkeypatch, capfd):
    """Filter a mail in this process: the exit code, the mail and standard error."""
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")

    def run(mail, *arguments):
        output = io.BytesIO()
        monkeypatch.setattr(sys, "argv", ["stream-pegasos", "mail-filter", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(mail), "utf-8"))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, "utf-8", write_through=True))
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, output.getvalue(), capfd.readouterr().err

    return run


def test_headers_are_added_and_the_exit_code_is_bogofilters(filtered, saved_mail_model):
    for mail, says, code in ((SPAM, b"YES\r\n", 0), (HAM, b"NO\n", 1)):
        for options, expected in ((["--exit-code"], code), ([], 0)):
            found, said, error = filtered(mail, saved_mail_model, *options)
            assert (found, error) == (expected, "")
            assert said.startswith(b"X-Spam-Flag: " + says) and said.endswith(b"\n" + mail)
    _, said, _ = filtered(SPAM, saved_mail_model, "--header-prefix", "X-Pegasos")
    assert said.startswith(b"X-Pegasos-Flag: YES\r\nX-Pegasos-Status: Yes") and b"X-Spam" not in said
    band = ["--spam-threshold", "0.999999", "--ham-threshold", "0.000001"]
    assert filtered(SPAM, saved_mail_model, "--exit-code", *band)[0] == 2


def test_a_large_mail_passes_as_it_comes(filtered, saved_mail_model):
    large = SPAM + b"x" * 3_000_000
    found, said, _ = filtered(large, saved_mail_model)
    assert found == 0 and said.endswith(large) and said.startswith(b"X-Spam-Flag: ")


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["nowhere"], "nowhere"),
        (["mail"], "mail"),
        ([], "give the model, as in"),
        (["nowhere", "--header-prefix", "X Y"], "is not a header name"),
        (["nowhere", "--ham-threshold", "0.99"], "nowhere"),
    ],
)
def test_whatever_fails_the_mail_passes(filtered, tmp_path, monkeypatch, arguments, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail").write_bytes(SPAM)
    assert filtered(HAM, *arguments)[:2] == (0, HAM)
    code, said, error = filtered(HAM, *arguments, "--exit-code")
    assert (code, said) == (3, HAM) and error.startswith("stream-pegasos: the mail passes unfiltered: ")
    assert why in error and "Traceback" not in error


def test_wrong_options_lose_no_mail(filtered):
    code, said, error = filtered(HAM, "--modle", "m")
    assert (code, said) == (2, HAM) and "No such option" in error
    assert filtered(HAM, "--modle", "m", "--exit-code")[:2] == (3, HAM)  # as 2 is for unsure


@pytest.mark.parametrize(
    ("streams", "option", "code"),
    [("<&-", "--exit-code", 3), (">&-", "", 1), (">/dev/full", "--exit-code", 3), (">/dev/full", "", 1)],
)
def test_a_mail_that_cannot_pass_is_no_ham(saved_mail_model, streams, option, code):
    command = f"{shlex.join([*FILTER, str(saved_mail_model)])} {option} {streams}"
    done = subprocess.run(["sh", "-c", command], input=HAM, capture_output=True, env=environment, timeout=120)
    error = done.stderr.decode()
    assert done.returncode == code and error.startswith("stream-pegasos: error: ") and error.count("\n") == 1


PROCMAIL = """
MAILDIR="{folder}"
DEFAULT="{folder}/inbox/"
:0fw
| {filter}
:0
* ^X-Spam-Flag: YES
junk/
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
def test_behind_a_delivery_agent(tmp_path, saved_mail_model, program, rules):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    rules_file = tmp_path / "rules"
    rules_file.write_text(
        rules.format(folder=tmp_path, filter=shlex.join([*FILTER, str(saved_mail_model)])), encoding="utf-8"
    )
    rules_file.chmod(0o600)
    for name in ("junk", "inbox"):  # folders, as procmail sleeps after it has written to a file
        for part in ("cur", "new", "tmp"):
            (tmp_path / name / part).mkdir(parents=True)
    unix = SPAM.replace(b"\r", b"")
    for mail in (unix, HAM.rstrip(b"\0")):
        subprocess.run(
            [program, "./rules"], input=b"From a@b Mon Nov 23 10:00:00 2026\n" * (program == "procmail") + mail,
            check=True, env=environment, cwd=tmp_path, timeout=120,
        )  # fmt: skip
    (junk,), (inbox,) = (
        [path.read_bytes() for path in (tmp_path / name / "new").iterdir()] for name in ("junk", "inbox")
    )
    assert b"X-Spam-Flag: YES\n" in junk and unix in junk
    assert b"X-Spam-Flag: NO\n" in inbox and HAM.rstrip(b"\0") in inbox
