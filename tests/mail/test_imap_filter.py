"""What a filter of a mailbox does and learns, on a mailbox in memory, and killed wherever it waits for the server."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("lxml", reason="lxml is not installed")

from memory_mailbox import FOLDERS, Killed, Mailbox, Process

from stream_pegasos import TextClassifier
from stream_pegasos.mail.imap_connection import CopiedError, RefusedError
from stream_pegasos.mail.mailbox_filter import shown_subject
from stream_pegasos.runtime.journal import Journal

actions = st.sampled_from(["spam", "ham", "to Junk", "to INBOX", "to Archive", "number INBOX", "number Junk", "look"])


def look_until_killed(process, box, kill_at):
    """Look, and be killed at that call of the server, if there are so many."""
    box.kill_at = kill_at
    with suppress(Killed):
        process.look()
        box.kill_at = None


@given(
    st.booleans(),
    st.lists(
        st.tuples(actions, st.integers(0, 5), st.none() | st.integers(0, 60), st.booleans(), st.booleans()), max_size=12
    ),
)
def test_each_move_is_learned_once_wherever_the_process_is_killed(has_move, steps):
    box, labels, n_labels, n = Mailbox(has_move), {}, 0, 0
    mails, old = {}, [b"Message-ID: old1\nSubject: spam\n\n", b"Message-ID: old2\nSubject: spam\n\n"]
    for mail in old:
        box.put("INBOX", mail)
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), box)
        process.look()
        for action, which, kill_at, with_checkpoint, is_numbered_anew in steps:
            if action in ("spam", "ham"):
                mail = b"Message-ID: m%d\nSubject: %s\n\n" % (n, action.encode())
                n += 1
                box.put("INBOX", mail)
                mails[mail] = "Junk" if action == "spam" else "INBOX"
            elif action.startswith("to ") and mails:
                mail, target = [*mails][which % len(mails)], action[3:]
                if mails[mail] != target:
                    was_junk = mails[mail] == "Junk"
                    mails[mail] = target
                    box.owner_moves(mail, target)
                    label = "spam" if target == "Junk" else "ham" if was_junk else None
                    if label is not None and labels.get(mail) != label:
                        labels[mail] = label
                        n_labels += 1
            elif action.startswith("number "):
                box.number_anew(action[7:])
            if kill_at is not None:
                look_until_killed(process, box, kill_at)
                process.end(with_checkpoint)
                process = Process(Path(folder), box)
                if is_numbered_anew:
                    box.number_anew("INBOX")
            process.look()
            assert {mail: box.where(mail) for mail in mails} == {mail: [where] for mail, where in mails.items()}
            assert [box.where(mail) for mail in old] == [["INBOX"]] * 2
        process.end(True)
        process = Process(Path(folder), box)
        # Each once, but for corrections, which take up to two steps back and one forward.
        n_corrections = n_labels - len(labels)
        assert len(labels) <= process.ledger.model.n_learned <= n_labels + 2 * n_corrections
        assert {mail: process.label_of(mail) for mail in labels} == labels
        process.end(False)


@pytest.fixture
def box():
    return Mailbox(has_move=True)


@pytest.fixture
def process(tmp_path, box):
    process = Process(tmp_path, box)
    process.look()
    yield process
    process.end(False)


def test_a_copy_of_a_mail_in_junk_teaches_nothing(box, process):
    mail = b"Message-ID: a\nSubject: spam\n\n"
    box.put("INBOX", mail)
    process.look()
    box.put("INBOX", mail)
    process.look()
    assert box.where(mail) == ["INBOX", "Junk"] and process.ledger.model.n_learned == 0


@pytest.mark.parametrize("target", ["INBOX", "Archive"])
@pytest.mark.parametrize("end", ["marked", "expunged"])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_move_by_a_copy_is_learned_once_the_mail_has_gone_from_junk(tmp_path, target, end, is_restarted):
    box = Mailbox(True)
    process = Process(tmp_path, box)
    process.look()
    mail, other = b"Message-ID: a\nSubject: spam\n\n", b"Message-ID: b\nSubject: spam\n\n"
    for each in (mail, other):
        box.put("INBOX", each)
    process.look()
    for each in (mail, other):
        box.put(target, each)
        process.look()  # between the copy and its mark
    assert process.ledger.model.n_learned == 0
    if is_restarted:
        process.end(True)
        process = Process(tmp_path, box)
    (uid,) = (uid for uid, each in box.folders["Junk"].items() if each == mail)
    box.deleted.add(("Junk", uid))
    if end == "expunged":
        del box.folders["Junk"][uid]
    for _ in range(2):
        process.look()
    assert process.label_of(mail) == "ham" and process.ledger.model.n_learned == 1
    process.end(False)


def test_a_mail_that_cannot_be_moved_stays_and_can_be_taught(box, process):
    def refuse(uid, target):
        raise RefusedError("no room")

    box.move = refuse
    mail = b"Message-ID: a\nSubject: spam\n\n"
    box.put("INBOX", mail)
    process.look()
    process.look()
    assert box.where(mail) == ["INBOX"] and process.filter.counts == {"judged": 1, "refused": 1}
    box.owner_moves(mail, "Junk")
    process.look()
    assert process.ledger.model.n_learned == 1


def test_a_mail_that_is_copied_and_cannot_be_removed_teaches_nothing(tmp_path):
    box = Mailbox(False)
    process = Process(tmp_path, box)
    process.look()

    def copy_alone(uid, target):
        box.put(target, box.here[uid])
        raise CopiedError("no right to delete")

    box.move = copy_alone
    mail = b"Message-ID: a\nSubject: spam\n\n"
    box.put("INBOX", mail)
    for _ in range(3):
        process.look()
    assert box.where(mail) == ["INBOX", "Junk"] and process.ledger.model.n_learned == 0
    process.end(False)


def test_mails_that_came_while_nobody_looked_are_judged(tmp_path, monkeypatch):
    """They came after the first start, however long the process was down."""
    box, asked = Mailbox(True), []
    process = Process(tmp_path, box)
    process.look()
    first = process.ledger.memory.training["since"]
    process.end(True)
    process = Process(tmp_path, box)
    uids = box.uids
    monkeypatch.setattr(box, "uids", lambda first=1, since=None: (asked.append(since), uids(first))[1])
    box.put("INBOX", b"Message-ID: a\nSubject: spam\n\n")
    process.look()
    assert [since.timestamp() for since in asked if since is not None] == [first]
    process.end(False)


def test_a_mail_that_somebody_deletes_before_it_is_moved_stays(tmp_path):
    box = Mailbox(True)
    process = Process(tmp_path, box)
    process.look()
    mail = b"Message-ID: a\nSubject: spam\n\n"
    box.put("INBOX", mail)
    judge = process.filter._judge
    process.filter._judge = lambda mails: (box.deleted.add(("INBOX", 1)), judge(mails))[1]
    process.look()
    assert box.where(mail) == ["INBOX"] and process.ledger.memory.pending == {}
    process.end(False)


words = st.sampled_from(["$Junk", "Junk", "$NotJunk", "NonJunk"])


@given(st.lists(st.tuples(words, st.integers(1, 4), st.none() | st.integers(0, 20)), max_size=8))
def test_keywords_teach_as_moves_do(steps):
    """Where spam is flagged; however often the process is killed, each change teaches once."""
    mails = [b"Message-ID: m%d\nSubject: %s\n\n" % (n, kind) for n, kind in enumerate((b"spam", b"ham") * 2)]
    box, labels = Mailbox(True), {}
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), box, moves=False)
        process.look()
        for mail in mails:
            box.put("INBOX", mail)
        process.look()
        assert box.keywords == {"$Junk": {1, 3}}  # which teaches nothing
        for name, uid, kill_at in steps:
            of_spam = {"$Junk", "Junk"}
            uids = box.keywords.setdefault(name, set())
            was_spam = any(uid in box.keywords.get(word, ()) for word in of_spam)
            was_ham = any(uid in box.keywords.get(word, ()) for word in {"$NotJunk", "NonJunk"})
            uids ^= {uid}
            if name in of_spam:
                is_spam = any(uid in box.keywords.get(word, ()) for word in of_spam)
                if is_spam != was_spam:
                    labels[mails[uid - 1]] = "spam" if is_spam else "ham"
            elif uid in uids and not was_ham:
                labels[mails[uid - 1]] = "ham"
            if kill_at is not None:
                look_until_killed(process, box, kill_at)
                process.end(False)
                process = Process(Path(folder), box, moves=False)
            process.look()
            assert {mail: process.label_of(mail) for mail in mails if process.label_of(mail)} == labels
        assert all(box.where(mail) == ["INBOX"] for mail in mails)
        box.number_anew("INBOX")
        n_learned = process.ledger.model.n_learned
        process.look()
        assert process.ledger.model.n_learned == n_learned
        process.end(False)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_mail_that_is_not_delivered_costs_no_other_one(tmp_path, monkeypatch, caplog, is_restarted):
    def warnings():
        return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]

    monkeypatch.setattr("stream_pegasos.mail.mailbox_filter.SECONDS_TO_RETRY", 0.0)
    box = Mailbox(True)
    process = Process(tmp_path, box)
    process.look()
    spam, ham, bad, moved = (b"Message-ID: %s\nSubject: %b\n\n" % (b, b) for b in (b"spam", b"ham", b"spam2", b"ham2"))
    box.broken = {bad, moved}
    for name, mail in (("INBOX", bad), ("INBOX", spam), ("INBOX", ham), ("Junk", moved)):
        box.put(name, mail)
    for _ in range(3):
        process.look()
    assert [box.where(mail) for mail in (spam, ham, bad)] == [["Junk"], ["INBOX"], ["INBOX"]]
    if is_restarted:
        process.end(True)
        process = Process(tmp_path, box)
        process.look()
    said = [f"{name}: mail 1 cannot be had, and is left out: damaged" for name in FOLDERS[:2]]
    assert sorted(warnings()) == said
    box.broken = set()
    for _ in range(2):
        process.look()
    assert box.where(bad) == ["Junk"] and process.label_of(moved) == "spam" and process.ledger.model.n_learned == 1
    assert process.ledger.memory.training["undelivered"] == [] and sorted(warnings()) == said
    process.end(False)


def full(journal, record):
    raise OSError(28, "no space")


def test_nothing_is_done_that_cannot_be_written_down(box, process, monkeypatch):
    spam, ham = b"Message-ID: a\nSubject: spam\n\n", b"Message-ID: b\nSubject: ham\n\n"
    box.put("INBOX", spam)
    box.put("Junk", ham)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_write", full)
        for _ in range(3):
            with pytest.raises(OSError, match="cannot write the journal of "):
                process.look()
    assert box.where(spam) == ["INBOX"] and process.ledger.model.n_learned == 0 and not process.filter.counts
    process.look()
    assert box.where(spam) == ["Junk"] and process.ledger.model.n_learned == 1


def test_a_mail_that_the_model_fails_at_is_learned_once(tmp_path, box, monkeypatch):
    """It and those after it are learned at the next look, and never from the journal, too."""
    process = Process(tmp_path, box)
    process.look()
    mails = [b"Message-ID: %d\nSubject: spam\n\n" % number for number in range(4)]
    for mail in mails:
        box.put("Junk", mail)

    learn_many = TextClassifier.predict_learn_many

    def learn_in_part(model, x, y, w, threads=1):
        learn_many(model, x[:1], y[:1], w)  # after the first, which is learned alone
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(TextClassifier, "predict_learn_many", learn_in_part)
        with pytest.raises(MemoryError):
            process.look()
    ledger = process.ledger
    assert ledger.learning.n_learned == ledger.model.n_learned == 2
    assert [process.label_of(mail) for mail in mails] == ["spam", "spam", None, None]
    for _ in range(2):
        process.end(with_checkpoint=False)
        process = Process(tmp_path, box)
        process.look()
        assert process.ledger.model.n_learned == 4
    assert [process.label_of(mail) for mail in mails] == ["spam"] * 4
    process.end(False)


def test_labels_are_remembered_by_the_mail_and_not_by_the_headers(box, process):
    """A mail that came twice, by two ways, is learned once; another one with its Message-ID is another label."""
    head = b"Message-ID: <a@x>\nReceived: by %b\nSubject: sale\n\n%b"
    mails = [head % each for each in ((b"one", b"A"), (b"two", b"A"), (b"three", b"B"))]
    for mail in mails[:2]:
        box.put("Junk", mail)
    process.look()
    assert process.ledger.model.n_learned == 1
    box.put("Junk", mails[2])
    process.look()
    box.owner_moves(mails[2], "INBOX")
    process.look()
    assert [process.label_of(mail) for mail in mails] == ["spam", "spam", "ham"]


def test_a_subject_cannot_act_on_a_terminal():
    shown = shown_subject(b"Subject: =?utf-8?q?a=1b[2J=0a=e2=80=ae?= b\n\n")
    assert shown.isprintable() and "a" in shown
    assert len(shown_subject(b"Subject: " + b"long " * 999 + b"\n\n")) < 70


def numbered(n, kind, first=0):
    return [b"Message-ID: %s%d\nSubject: %s\n\n" % (kind, number, kind) for number in range(first, first + n)]


def put(box, **mails):
    for name, some in mails.items():
        for mail in some:
            box.put(name, mail)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_what_came_before_a_folder_was_numbered_anew_is_looked_at(tmp_path, is_killed, has_checkpoint):
    """Each once; what was there at the first look stays, as do mails that were judged."""
    box = Mailbox(True)
    old, before, since = numbered(3, b"spam"), numbered(2, b"ham") + numbered(2, b"spam", 10), numbered(3, b"spam", 20)
    taught = numbered(2, b"ham", 30)
    old_junk = numbered(2, b"ham", 40)
    put(box, INBOX=old, Junk=old_junk)
    process = Process(tmp_path, box)
    process.look()
    put(box, INBOX=before)
    process.look()
    assert process.filter.counts["judged"] == len(before) and process.ledger.model.n_learned == 0
    if is_killed:
        process.end(has_checkpoint)
        process = Process(tmp_path, box)
    put(box, INBOX=since, Junk=taught)
    judged = process.filter.counts["judged"]
    for name in ("INBOX", "Junk"):
        box.number_anew(name)
    process.look()
    assert process.filter.counts["judged"] == judged + len(since)
    for _ in range(3):
        box.number_anew("INBOX")
        box.number_anew("Junk")
        process.look()
    assert process.filter.counts["judged"] == judged + len(since) and process.ledger.model.n_learned == len(taught)
    assert [*box.folders["INBOX"].values()] == old + before[:2]
    assert sorted(box.folders["Junk"].values()) == sorted(old_junk + before[2:] + since + taught)
    process.end(False)


def test_pending_mails_are_not_confused_when_the_inbox_is_numbered_anew(tmp_path, monkeypatch):
    """The number of one is then that of another; and one is gone."""
    box = Mailbox(True)
    box.put("INBOX", b"Message-ID: old\nSubject: ham\n\n")
    process = Process(tmp_path, box)
    process.look()
    mails = numbered(4, b"spam")
    put(box, INBOX=mails)
    monkeypatch.setattr(process.filter, "_settle", lambda box: None)  # as if it were killed before
    process.look()
    assert [*process.ledger.memory.pending] == [2, 3, 4, 5]
    process.end(False)
    box.folders["INBOX"] = {2: numbered(1, b"spam", 9)[0], 3: mails[3], 4: mails[0], 5: mails[1]}
    box.number_anew("INBOX")
    process = Process(tmp_path, box)
    process.look()
    assert box.folders["INBOX"] == {} and process.ledger.memory.pending == {}
    assert len(box.folders["Junk"]) == 4 and process.ledger.model.n_learned == 0
    process.end(False)


def test_a_memory_that_may_have_forgotten_takes_what_it_does_not_know_as_old(tmp_path):
    box = Mailbox(True)
    process = Process(tmp_path, box)
    process.ledger.memory.mails.window = 8
    process.look()
    put(box, INBOX=numbered(6, b"ham"))
    process.look()
    box.put("INBOX", numbered(1, b"spam")[0])
    box.number_anew("INBOX")
    process.look()
    assert process.filter.counts["judged"] == 6 and len(box.folders["INBOX"]) == 7
    process.end(False)


def test_old_mails_are_judged_once_with_a_backlog_after_a_first_look(tmp_path):
    box = Mailbox(True)
    put(box, INBOX=numbered(1, b"spam"))
    process = Process(tmp_path, box)
    process.look()
    process.filter._backlog = True
    process.look()
    assert process.filter.counts == {"judged": 1, "moved": 1}
    process.end(False)
