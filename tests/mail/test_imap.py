"""The command `imap`, against a server that people use."""

import os
import re
import shutil
import signal
import threading
from contextlib import suppress
from email.utils import formatdate

import pytest
import servers
from commands import environment
from imap_box import Box, id_of, imapclient, mail, mails, run, start
from running import bits, wait

from stream_pegasos import MailFeatures, TextClassifier, load
from stream_pegasos.mail.imap_connection import Account, ConnectionFailedError, ImapConnection

pytestmark = pytest.mark.heavy
LAST_YEAR = 1.73e9


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    try:
        with servers.dovecot(tmp_path_factory.mktemp("dovecot")) as running, pytest.MonkeyPatch.context() as patch:
            [patch.setitem(each, "SSL_CERT_FILE", "") for each in (os.environ, environment)]  # as each box sets it
            yield running
    except servers.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    model = TextClassifier(MailFeatures())
    for number in range(60):
        for kind in ("spam", "ham"):
            model.learn_one(mail(f"old{number}", kind), kind)
    path = tmp_path_factory.mktemp("model") / "trained"
    model.save(path)
    return path


@pytest.fixture
def box(server, tmp_path, trained):
    return Box(server, tmp_path, "ann", trained)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"], ids=["move", "copy"])
def test_spam_is_moved_and_what_people_move_is_learned(box, host):
    old, spam, ham = mails("spam", 2, 900), mails("spam", 3), mails("ham", 3)
    box.deliver(old[:1])
    assert box.once(host=host)[-1].startswith("looked at 0 new mails, moved 0, learned 0")
    box.deliver([*spam, *ham])
    box.deliver(old[1:], "INBOX", LAST_YEAR)  # as if it came out of an archive
    out = box.once(host=host)
    assert [line.partition(" 0")[0].partition(" 1")[0] for line in out[:-1]] == ["moved: spam"] * 3
    assert sorted(box.has("Junk")) == sorted(spam) and sorted(box.has()) == sorted([*old, *ham])
    assert not any("S" in file.name.partition(":2,")[2] for file in [*box.files(), *box.files("Junk")])
    box.owner_moves(spam[:1], "Junk", "INBOX")
    box.owner_moves(spam[1:2], "Junk", "Archive")
    box.owner_moves([*ham[:1], *old[:1]], "INBOX", "Junk")
    out = box.once("--ham-folder", "Archive", host=host)
    assert sorted(line.rpartition(" ")[0] for line in out[:-1]) == [
        "learned: ham 'A prize for you",
        "learned: spam 'A prize for you",
        "learned: spam 'Lunch at noon",
    ]
    box.owner_moves(spam[1:2], "Archive", "Junk")
    box.owner_moves(spam[1:2], "Junk", "Archive")
    box.owner_moves(ham[:1], "Junk", "INBOX")
    out = box.once("--ham-folder", "Archive", host=host)
    assert [line.rpartition(" ")[0] for line in out[:-1]] == [
        "learned: ham 'A prize for you",  # which stood in Archive when that was looked at for the first time
        "corrected: ham 'Lunch at noon",
    ]
    assert "learned 2, of which 1 were corrections" in out[-1]
    assert box.once("--ham-folder", "Archive", host=host)[:-1] == []
    assert 120 + 5 + 1 <= box.n_learned <= 120 + 5 + 2  # of the correction one or two steps went back
    assert sorted([*box.has(), *box.has("Junk"), *box.has("Archive")]) == sorted([*old, *spam, *ham])


def test_a_mail_that_is_marked_as_deleted_is_gone(server, tmp_path):
    """From where it was moved by a copy, and from folders that are learned."""
    box = Box(server, tmp_path, "ann", None)
    box.once()
    spam, ham = mails("spam", 4), mails("ham", 3)
    box.deliver(spam, "Junk")
    box.deliver(ham, "Archive")
    with imapclient.IMAPClient("127.0.0.1", server.plain_port, ssl=False, timeout=120) as client:
        client.login("ann", "secret-ann")
        for some, folder in ((spam[:2], "Junk"), (ham[:1], "Archive")):
            client.select_folder(folder)
            client.delete_messages(
                [uid for each in some for uid in client.search(["HEADER", "Message-ID", id_of(each)])]
            )
        out = box.once("--spam", "Junk", "--ham", "Archive")
        assert "learned 4, of which 0" in out[-1]
        client.select_folder("Junk")
        uids = client.search(["HEADER", "Message-ID", id_of(spam[3])])
        client.copy(uids, "INBOX")
        client.delete_messages(uids)
        out = box.once("--spam", "Junk", "--ham", "Archive")
        assert out[0].startswith("corrected: ham") and len(out) == 2


def test_a_mail_that_the_server_cannot_deliver_costs_no_other_one(server, tmp_path, trained):
    """Of a wrong size in the name of its file, or unreadable: Dovecot breaks off."""
    box = Box(server, tmp_path, "ann", trained)
    box.once()
    box.deliver(mails("spam", 4))
    box.deliver(mails("ham", 4), "Archive")
    sorted(box.files())[1].rename(f"{sorted(box.files())[1]},S=9999")
    sorted(box.files("Archive"))[2].chmod(0)
    done = run(*box.arguments("--once", "--ham", "Archive"))
    assert done.returncode == 0 and len(box.has("Junk")) == 3 and box.n_learned == 123
    assert re.findall(r"(\w+): mail \d+ cannot be had", done.stderr) == ["Archive", "INBOX"]
    assert box.once("--ham", "Archive")[-1].startswith("looked at 0 new mails, moved 0, learned 0")
    [wrong] = [file for file in box.files() if "S=9999" in file.name]
    wrong.rename(str(wrong).replace(",S=9999", ""))
    [file.chmod(0o644) for file in box.files("Archive")]
    done = run(*box.arguments("--once", "--ham", "Archive"))
    assert done.stderr == "" and len(box.has("Junk")) == 4 and box.n_learned == 124


def test_two_mailboxes_are_watched_at_once(server, tmp_path, trained):
    both = []
    for account in ("ann", "cleo"):
        (tmp_path / account).mkdir()
        both.append(Box(server, tmp_path / account, account, trained))
    with both[0].watching() as one, both[1].watching() as other:
        for box in both:
            wait(lambda box=box: list(box.folder.glob("*.journal-*")))
            wait(lambda box=box: "INBOX" in journal_of(box))
        for number, box in enumerate(both):
            box.deliver([mail(number, "spam"), mail(number, "ham")])
        for number, box in enumerate(both):
            wait(lambda box=box, number=number: box.has("Junk") == [mail(number, "spam")])
        both[0].owner_moves([mail(0, "ham")], "INBOX", "Junk")
        wait(lambda: '"learned' in journal_of(both[0]) or "Lunch" in journal_of(both[0]))
    for process in (one, other):
        assert process.returncode == 128 + signal.SIGTERM and process.errors == ""
        assert "moved: spam" in process.output
    assert [box.n_learned for box in both] == [121, 120]


def journal_of(box):
    return "".join(path.read_text(encoding="utf-8") for path in box.folder.glob("*.journal-*"))


def test_a_dry_run_changes_nothing(box):
    box.once()
    box.deliver([*mails("spam", 2), *mails("ham", 2)])
    box.deliver(mails("ham", 2, 50), "Junk")
    before = box.has(), box.has("Junk"), contents(box.folder)
    out = box.once("--dry-run")
    assert [line.split(" '")[0].split(" 0.")[0].split(" 1.")[0] for line in out[:-1]] == [
        *["would be learned: spam"] * 2,
        *["would be moved: spam"] * 2,
    ]
    assert out[-1].startswith("would have looked at 4 new mails, moved 2, learned 2")
    assert (box.has(), box.has("Junk"), contents(box.folder)) == before
    with imapclient.IMAPClient("127.0.0.1", box.server.plain_port, ssl=False) as client:
        client.login("ann", "secret-ann")
        for folder in ("INBOX", "Junk"):
            client.select_folder(folder)
            assert not client.search(["KEYWORD", "$Junk"])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_spam_is_flagged_where_it_is(box):
    box.deliver([*mails("spam", 2), *mails("ham", 2)])
    assert "flagged 2" in box.once("--action", "flag", "--backlog")[-1]
    with imapclient.IMAPClient("127.0.0.1", box.server.plain_port, ssl=False) as client:
        client.login("ann", "secret-ann")
        client.select_folder("INBOX")
        flagged = client.fetch(client.search(["KEYWORD", "$Junk"]), ["BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]", "FLAGS"])
        assert len(flagged) == 2 and not any(b"\\Seen" in each[b"FLAGS"] for each in flagged.values())
        client.select_folder("INBOX")
        client.remove_flags([max(flagged)], ["$Junk"])
        client.add_flags(client.search(["HEADER", "Message-ID", id_of(mail(0, "ham"))]), ["$Junk"])
    assert sorted(line[:13] for line in box.once("--action", "flag")[:-1]) == ["learned: ham ", "learned: spam"]
    box.owner_moves(mails("spam", 1), "INBOX", "Junk")
    assert "learned: spam" in box.once("--action", "flag")[0]


def test_odd_mails(box):
    """They are read in part, told apart though they have no Message-ID, and not changed."""
    odd = [b"\n", b"\0\xff" * 99, b"no header", b"Subject: a\n\n", b"Subject: a\nX: b\n\n", b"A: b\n" * 9_000]
    odd += [mail(7, "ham") + b"word " * 600_000, b"Message-ID:\nSubject: " + b"=?utf-8?q?=1b[2J?= " * 99 + b"\n\n"]
    box.once()
    box.deliver(odd)
    out = box.once("--spam-threshold", "0.99999")
    assert out[-1].startswith(f"looked at {len(odd)} new mails, moved 0")
    box.owner_moves([odd[6]], "INBOX", "Junk")
    assert "".join(box.once()).isprintable() and box.n_learned == 121
    assert sorted([*box.has(), *box.has("Junk")]) == sorted(odd)


def test_a_model_that_has_learned_too_little_moves_nothing(server, tmp_path):
    box = Box(server, tmp_path, "dan")
    box.deliver(mails("spam", 20), "Junk")
    box.deliver(mails("ham", 20), "Archive")
    box.deliver(mails("spam", 5, 100))
    out = box.once("--backlog", "--spam", "Junk", "--ham", "Archive")
    assert out == ["looked at 5 new mails, moved 0, learned 40, of which 0 were corrections"]
    assert box.n_learned == 40 and len(box.has()) == 5
    assert box.once("--spam", "Junk", "--ham", "Archive") == [
        "looked at 0 new mails, moved 0, learned 0, of which 0 were corrections"
    ]


def test_folders_are_learned_once_in_order_of_arrival_whatever_kills_the_process(server, tmp_path):
    box = Box(server, tmp_path, "eve")
    n, kinds = 1_000, ("spam", "ham")

    def dated(number, kind):
        return b"Date: %b\n" % formatdate(LAST_YEAR + 2 * number + (kind == "ham")).encode() + mail(number, kind)

    for offset, (kind, name) in enumerate(zip(kinds, ("Junk", "Archive"), strict=True)):  # downloaded one by one
        server.deliver("eve", [dated(number, kind) for number in range(n // 2)], name, LAST_YEAR + 9e5 * offset)
    options = ["--spam", "Junk", "--ham", "Archive"]
    for size in (1, 50_000, 100_000):
        with box.watching(*options, end=signal.SIGKILL):
            wait(lambda size=size: size_of_journal(box) >= size)
    box.once(*options)
    model = TextClassifier(MailFeatures())
    for number in range(n // 2):
        for kind in kinds:
            model.learn_one(dated(number, kind), kind)
    assert bits(load(box.model)) == bits(model)


def size_of_journal(box):
    return sum(path.stat().st_size for path in box.folder.glob("*.journal-*"))


def test_a_mailbox_that_is_numbered_anew(box):
    spam, ham = mails("spam", 3), mails("ham", 3)
    box.deliver(mails("spam", 2, 50))
    box.once()
    box.deliver([*spam, *ham])
    box.once()
    box.owner_moves(ham[:1], "INBOX", "Junk")
    box.deliver(mails("spam", 1, 10))  # looked at with new numbers alone
    for part in (box.server.maildir("ann", name) for name in ("INBOX", "Junk")):
        [file.unlink() for file in part.glob("dovecot*")]
    out = box.once()
    assert [line[:13] for line in out[:-1]] == ["learned: spam", "moved: spam 0"] and "'Lunch at noon" in out[0]
    assert len(box.has()) == 4 and len(box.has("Junk")) == 5
    box.owner_moves(spam[:1], "Junk", "INBOX")
    assert [line.rpartition(" ")[0] for line in box.once()[:-1]] == ["learned: ham 'A prize for you"]


def test_a_junk_that_is_deleted_is_made_anew(box):
    box.once("--junk", "Müll & mehr")
    with imapclient.IMAPClient("127.0.0.1", box.server.plain_port, ssl=False) as client:
        client.login("ann", "secret-ann")
        client.delete_folder("Müll & mehr")
        box.deliver(mails("spam", 2))
        assert "moved 2" in box.once("--junk", "Müll & mehr")[-1]
        client.select_folder("Müll & mehr")
        assert len(client.search()) == 2
        client.close_folder()
        client.delete_folder("Müll & mehr")


def test_a_full_quota_leaves_mails_where_they_are(server, tmp_path, trained):
    box = Box(server, tmp_path, "bob", trained)
    box.once(host="127.0.0.2")
    big = mail(0, "spam") + b"A prize for you. " * 4_000
    box.deliver([big, mail(1, "spam")])
    done = run(*box.arguments("--once", host="127.0.0.2"))
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("stream-pegasos: a mail cannot be moved, and stays: ") and "uota" in line
    assert done.stdout.splitlines()[-1].endswith("; 1 could not be moved")
    assert box.has() == [big] and box.has("Junk") == [mail(1, "spam")]
    assert box.once(host="127.0.0.2")[-1].startswith("looked at 0 new mails, moved 0, learned 0")


def test_a_server_that_is_restarted(tmp_path, trained):
    try:
        with servers.dovecot(tmp_path) as own:
            box = Box(own, tmp_path, "ann", trained)
            with box.watching() as process:
                wait(lambda: "INBOX" in journal_of(box))
                own.kill()
                assert "trying again" in process.stderr.readline()
                box.deliver(mails("spam", 2))
                box.deliver(mails("ham", 1), "Junk")
                own.start()
                assert "the mailbox is watched again" in process.stderr.readline()
                wait(lambda: len(box.has("Junk")) == 3)
            assert process.errors == ""
    except servers.Missing as missing:
        pytest.skip(str(missing))
    assert box.n_learned == 121


ANSWERS = {
    "silence": [],
    "nonsense": [b"\x00\xff nonsense\r\n" * 100],
    "an end": [b""],
    "no greeting": [b"* BYE no\r\n"],
    "silence after the greeting": [b"* OK hello\r\n"],
    "nonsense after the login": [
        b"* OK [CAPABILITY IMAP4rev1 IDLE] hello\r\n",
        b"* CAPABILITY IMAP4rev1 IDLE\r\n%(tag)s OK done\r\n",
        b"%(tag)s OK welcome\r\n",
        b"* LIST (((\r\n* 1 FETCH {99999999999999999}\r\n%(tag)s OK done\r\n",
    ],
}


@pytest.mark.parametrize("answers", ANSWERS)
def test_a_server_that_is_odd(tmp_path, trained, answers):
    (tmp_path / "password").write_text("secret-ann", encoding="utf-8")
    shutil.copy(trained, tmp_path / "m")
    with servers.scripted(ANSWERS[answers]) as (port, connections):
        at = ["imap", "--host", f"127.0.0.1:{port}", "--tls", "never", "--user", "ann", "--timeout", "0.3"]
        arguments = [*at, "--password-file", str(tmp_path / "password"), str(tmp_path / "m")]
        done = run(*arguments, "--once")
        assert done.returncode == 1 and "Traceback" not in done.stderr and "secret" not in done.stderr
        assert done.stderr.splitlines()[-1].startswith("stream-pegasos: error: 127.0.0.1: ")
        if "login" not in answers and answers != "silence":
            return
        process = start(*arguments)
        assert process.stderr.readline().endswith("trying again\n")
        wait(lambda: len(connections) > 3)
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=120)
        assert (process.returncode, rest) == (128 + signal.SIGINT, "")
        assert out.startswith("looked at 0 new mails")
    assert (tmp_path / "m").read_bytes() == trained.read_bytes()


def test_news_that_come_together_with_the_answer_to_idle(monkeypatch):
    monkeypatch.setattr("stream_pegasos.mail.imap_connection.FIRST_IDLE", 0.1)  # at its end they are seen
    done = b"* CAPABILITY IMAP4rev1 IDLE\r\n%(tag)s OK done\r\n"
    answers = [b"* OK hello\r\n", done, done, b"+ idling\r\n* 1 EXISTS\r\n", b"%(tag)s OK\r\n"]
    with servers.scripted(answers) as (port, _):
        connection = ImapConnection(Account("127.0.0.1", port, "ann", lambda: "secret", tls=None, timeout=1.0))

        def wait_long():
            with suppress(ConnectionFailedError):  # it does not understand DONE
                connection.wait(1_000.0)

        waiting = threading.Thread(target=wait_long, daemon=True)
        waiting.start()
        waiting.join(120)
        assert not waiting.is_alive()
        connection.close()


def test_who_is_not_trusted(box, monkeypatch):
    def fails(*options):
        arguments = box.arguments("--once")
        for name, value in zip(options[::2], options[1::2], strict=True):
            if name not in arguments:
                arguments += [name, ""]
            arguments[arguments.index(name) + 1] = value
        done = run(*filter(None, arguments))
        assert done.returncode in (1, 2) and not re.search("Traceback|wrong-word|secret", done.stderr + done.stdout)
        return " ".join(done.stderr.split())

    for name, written in (("wrong", "wrong-word\n"), ("empty", "")):
        (box.folder / name).write_text(written, encoding="utf-8")
    for name, fault in (("wrong", "ann cannot log in"), ("empty", "has no password"), ("missing", "No such file")):
        assert fault in fails("--password-file", str(box.folder / name))
    assert "its certificate is not trusted" in fails("--host", f"localhost:{box.server.port}")  # but for 127.0.0.1
    assert "the server has no folder Nowhere" in fails("--ham-folder", "Nowhere")
    monkeypatch.setenv("SSL_CERT_FILE", str(box.folder / "missing.pem"))
    assert "SSL_CERT_FILE must be a file" in fails()
    assert box.n_learned == 120 and not list(box.folder.glob("*.previous"))


def test_ways_to_give_the_password(box, monkeypatch):
    monkeypatch.setenv("STREAM_PEGASOS_PASSWORD", "secret-ann")
    file = box.arguments("--once").index("--password-file")
    for options in (["--password-command", "echo secret-ann"], []):
        arguments = box.arguments("--once")
        arguments[file : file + 2] = options
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
    arguments[file : file + 2] = ["--password-command", "echo secret-ann; exit 3"]
    done = run(*arguments)
    assert done.returncode == 1 and "ended with code 3" in done.stderr and "secret-ann" not in done.stdout


def test_starttls(box):
    arguments = box.arguments("--once", "--tls", "starttls")
    arguments[arguments.index("--host") + 1] = f"127.0.0.1:{box.server.plain_port}"
    assert run(*arguments).returncode == 0
    arguments[arguments.index("--host") + 1] = f"localhost:{box.server.plain_port}"
    assert "certificate is not trusted" in run(*arguments, "--allow-moved").stderr


def test_a_mailbox_has_a_model_of_its_own(box):
    box.once()
    box.deliver(mails("spam", 1))
    with box.watching():
        wait(lambda: box.has("Junk"))
        done = run(*box.arguments("--once"))
        assert done.returncode == 1 and "is in use" in done.stderr
    done = run(*["cleo" if each == box.account else each for each in box.arguments("--once")])
    assert done.returncode == 1 and "belongs to ann@127.0.0.1" in done.stderr
    assert box.once("--allow-moved", host="127.0.0.2")[-1].startswith("looked at 0 new mails")
