"""What a connection makes of answers that servers seldom give."""

import imaplib

import pytest

from stream_pegasos.mail.imap_connection import (
    Account,
    ConnectionFailedError,
    ImapConnection,
    LoginRefusedError,
    RefusedError,
)

imapclient = pytest.importorskip("imapclient")
BAD = {7, 40, 41}
ERRORS = {"NO": imaplib.IMAP4.error("FETCH failed: NO [SERVERBUG] 7"), "BYE": imaplib.IMAP4.abort("FETCH => BYE")}


class Server:
    """A client whose server cannot deliver some mails."""

    def __init__(self, *_, **__):
        self.opened = None

    def login(self, *_):
        pass

    def shutdown(self):
        self.opened = None

    def capabilities(self):
        return [b"IDLE"]

    def select_folder(self, name, _):
        self.opened = name
        return {b"UIDVALIDITY": Server.validity, b"UIDNEXT": 100}

    def fetch(self, uids, _):
        assert self.opened == "INBOX"
        if Server.bad & {*uids}:
            raise ERRORS[Server.answer]
        return {uid: {b"BODY[]": b"%d" % uid} for uid in uids}


@pytest.fixture(params=ERRORS)
def box(monkeypatch, request):
    monkeypatch.setattr(imapclient, "IMAPClient", Server)
    Server.bad, Server.answer, Server.validity = BAD, request.param, 1
    connection = ImapConnection(Account("127.0.0.1", 1, "ann", lambda: "secret", tls=None))
    connection.open("INBOX")
    return connection


def test_mails_that_are_not_delivered_are_left_out_and_noted(box):
    found = {uid: mail for mails in box.mails(range(1, 61)) for uid, mail in mails.items()}
    assert found == {uid: b"%d" % uid for uid in range(1, 61) if uid not in BAD}
    assert box.undelivered.keys() == {("INBOX", uid) for uid in BAD}


def test_a_server_that_delivers_nothing_is_at_fault_itself(box):
    Server.bad = {*range(100)}
    with pytest.raises(RefusedError):
        list(box.mails(range(1, 61)))


def test_a_folder_that_is_numbered_anew_meanwhile_is_looked_at_anew(box):
    Server.validity = 2
    if Server.answer == "BYE":
        with pytest.raises(ConnectionFailedError, match="INBOX was numbered again"):
            list(box.mails([7, 8]))


@pytest.mark.parametrize(
    "answer", [b"[AUTHENTICATIONFAILED] Authentication failed.", "LOGIN: BAD [b'no such user']", "it cannot now"]
)
def test_an_answer_to_a_login_is_told_as_text(monkeypatch, answer):
    """Libraries show its bytes as Python writes them."""

    def refuse(*_):
        raise imaplib.IMAP4.error(answer)

    monkeypatch.setattr(imapclient, "IMAPClient", Server)
    monkeypatch.setattr(Server, "login", refuse)
    with pytest.raises(LoginRefusedError, match="ann cannot log in: ") as caught:
        ImapConnection(Account("127.0.0.1", 1, "ann", lambda: "secret", tls=None))
    said = answer.decode() if isinstance(answer, bytes) else answer.replace("b'", "").replace("'", "")
    assert str(caught.value).endswith(f": {said}")
