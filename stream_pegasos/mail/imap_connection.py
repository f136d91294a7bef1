"""A connection to an IMAP server, with the few commands that a filter needs."""

from __future__ import annotations

import imaplib
import logging
import re
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from stream_pegasos.common.display import one_line, shortened
from stream_pegasos.common.extras import missing
from stream_pegasos.features.message import grouped
from stream_pegasos.mail_text.mime import MAX_BODY, MAX_HEADERS
from stream_pegasos.streams.mail_arrival import find_arrival, plausible

__all__ = [
    "Account",
    "ConnectionFailedError",
    "CopiedError",
    "ImapConnection",
    "LoginRefusedError",
    "RefusedError",
    "in_batches",
    "warn_of_undelivered",
]

log = logging.getLogger(__name__)

LARGEST_MAIL = MAX_HEADERS + MAX_BODY  # bytes, the limit of the features
LARGEST_HEADER = 64 * 1024
AS_BYTES = re.compile(r"""\bb(['"])(.*?)(?<!\\)\1""")  # the form in which libraries show a server's answer
KEYS_AT_ONCE, MAILS_AT_ONCE = 500, 50
# IMAPClient misses news that come in one packet with the answer to IDLE, until IDLE ends. Such news came while the
# filter looked at the folder, so the first IDLE is short.
FIRST_IDLE, LONGEST_IDLE = 1.0, 60.0
LONGEST_REASON = 200
NOT_NOW = ("[UNAVAILABLE]", "[INUSE]", "[LIMIT]")  # reasons to refuse a login although the password is right
MANY = 10  # mails; if none of them can be delivered, the fault is not a single mail's
# No two mails have the same values in all of these fields. A stranger can copy a Message-ID, but cannot choose the
# content of Received, which our own server writes.
FIELDS = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID DATE FROM SUBJECT RECEIVED)]"
MESSAGE_ID = re.compile(rb"^message-id:[ \t]*\S", re.IGNORECASE | re.MULTILINE)


class ConnectionFailedError(Exception):
    """The server cannot be reached, has closed the connection, or does not speak IMAP: connect again."""


class BrokenOffError(ConnectionFailedError):
    """The server ended the connection instead of answering."""


class LoginRefusedError(ConnectionFailedError):
    """The server is not the expected one, or does not accept the password."""


class RefusedError(Exception):
    """The server refused a command; it may accept the next one."""


class CopiedError(RefusedError):
    """A mail was copied, but the server refused to remove the original."""


@dataclass(frozen=True)
class Account:
    """A mailbox: its server, and the data of the login."""

    host: str
    port: int
    user: str
    secret: Callable[[], str]  # the password or token, for each connection; a LoginRefusedError if there is none
    tls: ssl.SSLContext | None  # with the trusted certificates; `None`: others can read the connection
    starttls: bool = False  # whether a command starts TLS on the connection, as on port 143
    oauth2: bool = False  # whether the secret is a token
    timeout: float = 60.0  # seconds that the server may be silent

    @property
    def name(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


class ImapConnection:
    """A connection to an IMAP server, logged in.

    Every method raises ConnectionFailedError if the connection is no longer usable, and RefusedError if the server
    refuses a command. Neither error contains the password. `wait` calls a function that waits for the server; it may
    raise KeyboardInterrupt during the wait.

    A mail that the server cannot deliver is left out of the result; `undelivered` has the reason, by its folder and
    UID. Some servers close the connection instead; the other mails are then requested by a new connection.
    """

    def __init__(self, account: Account, wait: Callable[..., Any] = lambda function, *args: function(*args)) -> None:
        self._account, self._wait = account, wait
        self._client: Any = None
        self._folder, self._is_to_write, self._uidvalidity = "", False, 0  # of the open folder
        self.undelivered: dict[tuple[str, int], str] = {}
        self._connect()

    def _connect(self) -> None:
        account = self._account
        self._secret = self._wait(account.secret)
        try:
            from imapclient import IMAPClient
        except ModuleNotFoundError as error:
            raise missing("An IMAP mailbox", "mail", error) from error
        context = None if account.starttls else account.tls

        def connect() -> Any:
            ssl = context is not None
            return IMAPClient(account.host, account.port, ssl=ssl, ssl_context=context, timeout=account.timeout)

        try:
            self._client = self._call(connect)
            if account.starttls:
                self._call(self._client.starttls, account.tls)
            self._login(account)
            self._client.normalise_times = False
            capabilities = {bytes(capability).upper() for capability in self._call(self._client.capabilities)}
        except RefusedError as error:
            self.close()
            raise ConnectionFailedError(str(error)) from None
        except BaseException:
            self.close()
            raise
        self.has_idle, self._has_move = b"IDLE" in capabilities, b"MOVE" in capabilities
        self._has_uidplus = b"UIDPLUS" in capabilities

    def _login(self, account: Account) -> None:
        try:
            if account.oauth2:
                self._call(self._client.oauth2_login, account.user, self._secret)
            elif account.user.isascii() and self._secret.isascii():
                self._call(self._client.login, account.user, self._secret)
            else:
                self._call(self._client.plain_login, account.user, self._secret)
        except RefusedError as error:
            kind = ConnectionFailedError if any(code in str(error).upper() for code in NOT_NOW) else LoginRefusedError
            raise kind(f"{account.user} cannot log in: {error}") from None

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that talks to the server."""
        try:
            return self._wait(function, *arguments)
        except ssl.SSLCertVerificationError as error:
            raise LoginRefusedError(f"its certificate is not trusted: {error.verify_message}") from None
        except imaplib.IMAP4.abort as error:
            raise BrokenOffError(self._reason(error)) from None
        except imaplib.IMAP4.error as error:
            # If the connection broke during the login, the login was not refused.
            kind = ConnectionFailedError if isinstance(error.__context__, imaplib.IMAP4.abort) else RefusedError
            raise kind(self._reason(error)) from None
        except TimeoutError:
            raise ConnectionFailedError("it does not answer") from None
        except OSError as error:
            raise ConnectionFailedError(self._reason(error.strerror or error)) from None
        except Exception as error:  # a library may raise any error at invalid data
            reason = f"its answer cannot be read ({type(error).__name__}: {error})"
            raise ConnectionFailedError(self._reason(reason)) from None

    def _reason(self, error: object) -> str:
        text = AS_BYTES.sub(lambda match: match[2], str(error))
        if self._secret:
            text = text.replace(self._secret, "…")
        text = " ".join(one_line(text[: 4 * LONGEST_REASON], " ").split())
        return shortened(text, LONGEST_REASON)

    def close(self) -> None:
        """Close the connection without LOGOUT, because the server might not answer."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.shutdown()

    def find_junk(self) -> str | None:
        """The folder for spam: the one with the mark for it, or else one with a usual name."""
        name = self._call(self._client.find_special_folder, b"\\Junk")
        return None if name is None else str(name)

    def has_folder(self, name: str) -> bool:
        return bool(self._call(self._client.folder_exists, name))

    def create_folder(self, name: str) -> None:
        self._call(self._client.create_folder, name)

    def status(self, folder: str) -> tuple[int, int]:
        """The UIDVALIDITY of a folder that is not open, and its next UID."""
        return _numbers(self._call(self._client.folder_status, folder, ["UIDVALIDITY", "UIDNEXT"]))

    def open(self, folder: str, to_write: bool = False) -> tuple[int, int]:
        """Open a folder, and return its UIDVALIDITY and its next UID, or 0 if the server does not report one."""
        uidvalidity, uidnext = _numbers(self._call(self._client.select_folder, folder, not to_write))
        self._folder, self._is_to_write, self._uidvalidity = folder, to_write, uidvalidity
        return uidvalidity, uidnext

    def uids(self, first: int = 1, since: datetime | None = None) -> list[int]:
        """The mails of the open folder from this UID on, and, with `since`, from this day of arrival on. In all
        methods, a mail with the flag \\Deleted counts as removed.
        """
        criteria: list[Any] = ["UNDELETED", "UID", f"{first}:*"]
        if since is not None:
            criteria += ["SINCE", since.date()]
        uids = self._call(self._client.search, criteria)
        # A range that ends in * always includes the last mail.
        return sorted({int(uid) for uid in uids if int(uid) >= first})

    def search_keywords(self, keyword: str, other_keyword: str) -> set[int]:
        """The mails of the open folder that have one of two keywords."""
        uids = self._call(self._client.search, ["UNDELETED", "OR", "KEYWORD", keyword, "KEYWORD", other_keyword])
        return {int(uid) for uid in uids}

    def there(self, uids: Iterable[int]) -> set[int]:
        """The mails among these that are in the open folder."""
        present_uids: set[int] = set()
        for batch in in_batches([*uids], KEYS_AT_ONCE):
            numbers = ",".join(map(str, batch))
            present_uids |= {int(uid) for uid in self._call(self._client.search, ["UNDELETED", "UID", numbers])}
        return present_uids

    def keys(self, uids: Sequence[int]) -> Iterator[dict[int, str]]:
        """Yield keys of mails of the open folder, some at a time; vanished mails have none. A mail has the same key in
        all folders.

        A key is made from headers, which a move on the server does not change. A `mail_id` would need the whole mail.
        """
        for batch in in_batches(uids, KEYS_AT_ONCE):
            headers = self._headers(batch, FIELDS)
            bare = [uid for uid, header in headers.items() if not MESSAGE_ID.search(header)]
            headers |= self._headers(bare, f"BODY.PEEK[HEADER]<0.{LARGEST_HEADER}>")
            yield {uid: _header_key(headers[uid]) for uid in batch if uid in headers}

    def _headers(self, uids: Sequence[int], subject: str) -> dict[int, bytes]:
        return self._fetched(uids, subject, b"BODY[HEADER") if uids else {}

    def mails(self, uids: Sequence[int]) -> Iterator[dict[int, bytes]]:
        """Yield mails of the open folder, some at a time and each up to `LARGEST_MAIL`, without vanished ones."""
        for batch in in_batches(uids, MAILS_AT_ONCE):
            yield self._fetched(batch, f"BODY.PEEK[]<0.{LARGEST_MAIL}>", b"BODY[]")

    def _fetched(self, uids: Sequence[int], subject: str, begin: bytes) -> dict[int, bytes]:
        """One part of each mail; its name in the answer starts with `begin`, and servers differ in the rest of the
        name.
        """
        contents = {}
        for uid, parts in self._answers(uids, subject).items():
            for name, value in parts.items():
                if name.startswith(begin) and isinstance(value, bytes):
                    contents[uid] = value
        return contents

    def _answers(self, uids: Sequence[int], subject: str) -> dict[int, dict[bytes, Any]]:
        """The server's data about mails of the open folder."""
        answers = self._delivered(uids, subject)
        refused = [reason for uid in uids if (reason := self.undelivered.get((self._folder, uid)))]
        if len(refused) == len(uids) >= MANY:
            raise RefusedError(refused[0])
        return answers

    def _delivered(self, uids: Sequence[int], subject: str, is_again: bool = False) -> dict[int, dict[bytes, Any]]:
        try:
            answers: dict[int, dict[bytes, Any]] = self._call(self._client.fetch, uids, [subject])
            return answers
        except (BrokenOffError, RefusedError) as error:
            is_broken_off = isinstance(error, BrokenOffError)
            if is_broken_off:
                self._connect_anew()
            if len(uids) > 1:
                middle = len(uids) // 2
                return {**self._delivered(uids[:middle], subject), **self._delivered(uids[middle:], subject)}
            if is_broken_off and not is_again:
                return self._delivered(uids, subject, True)
            self.undelivered[self._folder, uids[0]] = str(error)
            return {}

    def _connect_anew(self) -> None:
        before = self._uidvalidity
        self.close()
        self._connect()
        if self.open(self._folder, self._is_to_write)[0] != before:
            raise ConnectionFailedError(f"{self._folder} was numbered again meanwhile")

    def arrivals(self, uids: Sequence[int]) -> dict[int, float | None]:
        """The arrival times of mails of the open folder, in seconds since 1970; `None` if unknown. Their headers come
        first, because the server's time may be that of a download.
        """
        arrivals: dict[int, float | None] = {}
        for batch in in_batches(uids, KEYS_AT_ONCE):
            headers = self._headers(batch, "BODY.PEEK[HEADER.FIELDS (RECEIVED DATE)]")
            for uid, parts in self._answers(batch, "INTERNALDATE").items():
                date, time = parts.get(b"INTERNALDATE"), find_arrival(headers.get(uid, b""))
                if time is None and isinstance(date, datetime):
                    time = plausible(date.timestamp())
                arrivals[uid] = time
        return arrivals

    def move(self, uid: int, folder: str) -> None:
        """Move a mail of the open folder; raise a CopiedError if it was copied, but not removed."""
        if self._has_move:
            self._call(self._client.move, [uid], folder)
            return
        self._call(self._client.copy, [uid], folder)
        try:
            self.remove(uid)
        except RefusedError as error:
            raise CopiedError(str(error)) from None

    def remove(self, uid: int) -> None:
        """Remove a mail from the open folder, or only mark it as deleted if the server cannot remove a single mail."""
        self._call(self._client.delete_messages, [uid], True)
        if self._has_uidplus:
            self._call(self._client.uid_expunge, [uid])

    def flag(self, uid: int) -> None:
        """Mark a mail of the open folder as spam."""
        self._call(self._client.add_flags, [uid], [b"$Junk"], True)

    def wait(self, seconds: float) -> None:
        """Wait for news of the open folder."""
        for longest in (FIRST_IDLE, LONGEST_IDLE):
            self._call(self._client.idle)
            news = self._call(self._client.idle_check, min(seconds, longest))
            if self._call(self._client.idle_done)[1] or news:
                return


def warn_of_undelivered(box: ImapConnection, folder: str, uid: int) -> None:
    log.warning("%s: mail %d cannot be had, and is left out: %s", folder, uid, box.undelivered[folder, uid])


def _numbers(answer: dict[bytes, Any]) -> tuple[int, int]:
    try:
        return int(answer[b"UIDVALIDITY"]), int(answer.get(b"UIDNEXT", 0))
    except (KeyError, TypeError, ValueError):
        raise ConnectionFailedError("it does not number its mails") from None


def _header_key(header: bytes) -> str:
    """A digest of a header, which is the same in all folders."""
    return urlsafe_b64encode(blake2b(b" ".join(header.split()), digest_size=12).digest()).decode()


def in_batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    return grouped(items, lambda item: 0, 1, size)
