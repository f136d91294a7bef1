"""The guide for administrators, followed as it is written on a machine of its own: real servers, real mails."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import machine
import pytest
from machine import wait

from stream_pegasos import engine

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "examples" / "guides" / "run_for_years.md").read_text("utf-8")
# A block for the shell, or a file that the line before it names.
STEP = re.compile(r"(?:`(/[^`\n]+)`[^`]*:\n\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
N_SORTED, N_NEW = 100, 15  # mails of each label that ann and bob have, and that come after that
UNITS = ("stream-pegasos.service", "stream-pegasos-imap@.service")


def steps(heading):
    """The steps of a section: the path of a file and its content, or "" and commands."""
    section = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = STEP.findall(section)
    found = [("" if kind == "sh" else path, content) for path, kind, content in found if path or kind == "sh"]
    assert found
    return found


def follow(server, heading, first=0, last=None):
    for path, content in islice(steps(heading), first, last):
        if path:
            file = server.root / path[1:]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        else:
            server.run(content, is_online="apt-get" in content or "pip install" in content)


def a_wheel(folder):
    """A wheel of the package, with the engine that is built already."""
    leave = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "stream_pegasos", folder / "source/stream_pegasos", ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, folder / "source"]
    subprocess.run(build, check=True, env={**os.environ, "CC": "false"})
    (wheel,) = folder.glob("*.whl")
    if engine.NAME == "compiled":
        from stream_pegasos.engine import compiled

        with zipfile.ZipFile(wheel, "a") as archive:
            archive.write(compiled.__file__, f"stream_pegasos/engine/{Path(compiled.__file__).name}")
    return wheel


@contextmanager
def a_server(folder, sorted_mails):
    """A machine without a mail server. Its ann and bob have mails that are sorted."""
    with machine.running(folder) as server:
        if server.run("apt-get update --error-on=any", is_online=True, check=False).returncode:
            pytest.skip("no packages can be had")
        server.run(
            """
            { dpkg-query --show --showformat '${Package}\n' 'dovecot-*' postfix spamc spamd bogofilter || true; } |
                xargs --no-run-if-empty dpkg --purge --no-triggers
            rm -f /var/lib/man-db/auto-update
            ! command -v make-ssl-cert || make-ssl-cert generate-default-snakeoil --force-overwrite
            useradd --create-home ann
            useradd --create-home bob
            printf '%s\n' ann:secret bob:secret | chpasswd
            """
        )
        for user, folders in (("ann", {"spam": ".Junk", "ham": ""}), ("bob", {"spam": ".Junk", "ham": ".Archive"})):
            for label, name in folders.items():
                box = server.root / "home" / user / "Maildir" / name
                for part in ("cur", "new", "tmp"):
                    (box / part).mkdir(parents=True)
                for number, mail in enumerate(sorted_mails[label]):
                    (box / "cur" / f"{number}.{label}.test:2,S").write_text(mail, "utf-8", "surrogateescape")
            server.run(f"chown -R {user}: /home/{user}")
        yield server


def boxes(server, user):
    """The mails that came to a user, from the inbox and from Junk."""
    maildir = server.root / "home" / user / "Maildir"
    found = [[*(maildir / box / "new").iterdir(), *(maildir / box / "cur").iterdir()] for box in ("", ".Junk")]
    return [[path for path in paths if ".test:" not in path.name] for paths in found]


def deliver(server, mails):
    """Send mails to ann; how many of them are in the inbox and in Junk."""
    before = [len(box) for box in boxes(server, "ann")]
    for mail in mails:
        server.run("sendmail ann", input=mail)

    def come():
        now = [len(box) for box in boxes(server, "ann")]
        return sum(now) == sum(before) + len(mails) and [n - m for n, m in zip(now, before, strict=True)]

    return wait(come)


def move_first_new(server, user, box, target):
    """Move the first mail that came after those that are sorted, as a mail program does."""
    command = f"MOVE {N_SORTED + 1} {target}"
    server.run(f"curl -sS --user {user}:secret imap://127.0.0.1/{box} --request '{command}'")


def metrics(server):
    text = server.run(
        'curl -sS -H "Authorization: Bearer $(cat /etc/stream-pegasos/token)" 127.0.0.1:8000/metrics'
    ).stdout
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("stream_pegasos_"))
    return {name.removeprefix("stream_pegasos_"): float(value) for name, value in pairs}


def is_up(server):
    return wait(lambda: server.run("curl -sS 127.0.0.1:8000/healthz", check=False).stdout == '{"status":"ok"}')


def is_new(server, mail):
    """Report a mail as spam; whether it was not learned before."""
    answer = server.run("spamc -L spam", input=mail).stdout
    assert "un/learned" in answer
    return "already" not in answer


def score(server, mail):
    return server.run("spamc -c", input=mail, check=False).stdout


@pytest.mark.heavy
def test_the_guide_leads_from_a_fresh_debian_to_a_filter_that_lasts(tmp_path, data_folder):
    if reason := machine.why_none():
        pytest.skip(reason)
    with gzip.open(data_folder / "mail_raw.jsonl.gz", "rt", encoding="utf-8") as lines:
        mails = {"spam": [], "ham": []}
        for each in map(json.loads, lines):
            mails[each["label"]].append(each["raw"])
    new = {label: those[N_SORTED : N_SORTED + N_NEW] for label, those in mails.items()}
    later = mails["spam"][N_SORTED + N_NEW :]
    with a_server(tmp_path, {label: those[:N_SORTED] for label, those in mails.items()}) as server:
        shutil.copy(a_wheel(tmp_path), server.root / "root")
        server.environment |= {"PIP_NO_COMPILE": "1"}
        follow(server, "From nothing to a filtered mailbox")
        is_up(server)
        assert deliver(server, new["spam"])[1] > N_NEW / 2
        assert deliver(server, new["ham"])[0] > N_NEW - 3
        is_taught_by_moves(server)
        a_mailbox_is_watched_from_outside(server, new)
        the_units_are_sound(server)
        logs_are_rotated(server)
        a_killed_service_and_a_lost_disk_come_back(server, later)
        the_version_is_changed_and_changed_back(server, later[0])
        the_model_is_retrained(server, new)
        bogofilter_is_back(server, new["spam"])


def is_taught_by_moves(server):
    move_first_new(server, "ann", "Junk", "INBOX")
    move_first_new(server, "ann", "INBOX", "Junk")
    wait(lambda: metrics(server)["messages_learned_total"] == 2)
    seen = metrics(server)
    assert seen['class_messages_total{class="spam"}'] == seen['class_messages_total{class="ham"}'] == 1
    assert seen['mails_total{verdict="spam"}'] > N_NEW / 2
    assert seen["failing"] == seen["failed_requests_total"] == 0
    ((_, rules),) = steps("What to watch")
    assert {*re.findall(r"stream_pegasos_(\w+)", rules)} <= {name.partition("{")[0] for name in seen}


def a_mailbox_is_watched_from_outside(server, new):
    certificate = "/etc/ssl/certs/ssl-cert-snakeoil.pem"  # which a link by its hash makes trusted
    server.run(f"ln -sf {certificate} /etc/ssl/certs/$(openssl x509 -hash -noout -in {certificate}).0")
    (server.root / "etc/stream-pegasos/bob.password").write_text("secret\n", encoding="utf-8")
    follow(server, "A mailbox on another server")
    state = server.root / "var/lib/stream-pegasos"

    def n_ham():
        return sum(path.read_bytes().count(b',"ham",1.0,') for path in state.glob("imap-bob.safetensors.journal-*"))

    wait(lambda: n_ham() == N_SORTED)
    for mail in new["spam"]:
        server.run("cat > mail; curl -sS --user bob:secret imap://127.0.0.1/INBOX --upload-file mail", input=mail)
    wait(lambda: len(boxes(server, "bob")[1]) > N_NEW / 2)
    server.run("systemctl stop stream-pegasos-imap@bob")  # which may be about to move more
    assert server.run("systemctl is-active stream-pegasos-imap@bob", check=False).stdout == "inactive\n"
    move_first_new(server, "bob", "Junk", "INBOX")
    server.run("systemctl start stream-pegasos-imap@bob")
    wait(lambda: n_ham() == N_SORTED + 1)


def the_units_are_sound(server):
    for unit in UNITS:
        path = f"/etc/systemd/system/{unit}"
        verified = server.run(f"systemd-analyze verify {path}")
        assert verified.stdout + verified.stderr == ""
        server.run(f"systemd-analyze security --offline=true --threshold=20 {path}")


def logs_are_rotated(server):
    follow(server, "Logs")
    server.run("apt-get install -y logrotate", is_online=True)
    server.run("touch /var/log/stream-pegasos.log; logrotate --force /etc/logrotate.d/stream-pegasos")


def a_killed_service_and_a_lost_disk_come_back(server, mails):
    assert [is_new(server, mails[0]) for _ in range(2)] == [True, False]
    server.run("systemctl kill --signal KILL stream-pegasos")
    wait(lambda: server.run("systemctl show --value --property NRestarts stream-pegasos").stdout == "1\n")
    is_up(server)
    assert not is_new(server, mails[0])
    before = score(server, mails[2])
    follow(server, "Back up and restore", 0, 1)
    assert is_new(server, mails[1])
    server.run("systemctl kill --signal KILL stream-pegasos stream-pegasos-imap@bob; rm -r /var/lib/stream-pegasos")
    follow(server, "Back up and restore", 1)
    is_up(server)
    assert score(server, mails[2]) == before
    assert [is_new(server, mail) for mail in mails[:2]] == [False, True]
    server.run("systemctl start stream-pegasos-imap@bob")


def the_version_is_changed_and_changed_back(server, mail):
    before = score(server, mail)
    for first, version in ((0, 2), (1, 1)):
        follow(server, "Upgrade, and go back", first, first + 1)
        is_up(server)
        assert os.readlink(server.root / "opt/stream-pegasos") == f"stream-pegasos-{version}"
        assert score(server, mail) == before
        assert not is_new(server, mail)


def the_model_is_retrained(server, new):
    for label, mails in new.items():
        folder = server.root / "root/newest" / label
        folder.mkdir(parents=True)
        for number, mail in enumerate(mails):
            (folder / f"{number}.eml").write_text(mail, "utf-8", "surrogateescape")
    follow(server, "Retrain a model that went wrong")
    is_up(server)
    assert metrics(server)["messages_learned_total"] == 0
    assert [is_new(server, new["spam"][0]) for _ in range(2)] == [True, False]


def bogofilter_is_back(server, spam):
    follow(server, "Back to bogofilter")
    for unit in ("stream-pegasos", "stream-pegasos-imap@bob"):
        assert server.run(f"systemctl is-active {unit}", check=False).stdout == "inactive\n"
    assert deliver(server, spam)[1] > 0
    assert any("X-Bogosity: Spam, " in path.read_text("utf-8", "replace") for path in boxes(server, "ann")[1])
    counted = "runuser -u ann -- bogoutil -w ~ann/.bogofilter .MSG_COUNT"
    before = server.run(counted).stdout
    move_first_new(server, "ann", "INBOX", "Junk")
    wait(lambda: server.run(counted).stdout != before)


# What a service tells every five minutes of a week: well, until it is down, refuses, and calls nearly all mails spam.
SERIES = {
    'up{job="stream-pegasos"}': "1x1998 0x9",
    'stream_pegasos_failed_requests_total{job="stream-pegasos"}': "0x2000 10+10x7",
    'stream_pegasos_mails_total{verdict="spam"}': "0+3x1900 5700+9x108",
    'stream_pegasos_mails_total{verdict="ham"}': "0+7x1900 13300+1x108",
}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_takes_the_rules_and_alarms(tmp_path):
    ((path, rules),) = steps("What to watch")
    (tmp_path / Path(path).name).write_text(rules, encoding="utf-8")
    alerts = re.findall(r"alert: (\w+).*?summary: ([^\n]+)", rules, re.DOTALL)
    assert len(alerts) == 3
    cases = []
    for alert, summary in alerts:
        labels = {} if alert == "SpamShareUnusual" else {"job": "stream-pegasos"}
        alarm = {"exp_labels": labels, "exp_annotations": {"summary": summary}}
        for number, alarms in ((1_890, []), (2_004, [alarm])):
            cases.append({"eval_time": f"{5 * number}m", "alertname": alert, "exp_alerts": alarms})
    series = [{"series": name, "values": values} for name, values in SERIES.items()]
    test = {"interval": "5m", "input_series": series, "alert_rule_test": cases}
    files = {"rule_files": [Path(path).name], "evaluation_interval": "5m"}
    (tmp_path / "tests.yml").write_text(json.dumps({**files, "tests": [test]}), encoding="utf-8")
    for what in (["check", "rules", Path(path).name], ["test", "rules", "tests.yml"]):
        done = subprocess.run(["promtool", *what], cwd=tmp_path, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stdout + done.stderr
