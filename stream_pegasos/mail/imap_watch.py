"""A watch of an IMAP mailbox for months: broken connections are replaced."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import sleep
from typing import Any

from stream_pegasos.mail.imap_connection import (
    Account,
    ConnectionFailedError,
    ImapConnection,
    LoginRefusedError,
    RefusedError,
)

__all__ = ["watch"]

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds before a new connection


def watch(
    account: Account,
    begin: Callable[[ImapConnection], None],
    look: Callable[[ImapConnection], int],
    *,
    only_once: bool = False,
    poll: float = 60.0,
    wait: Callable[..., Any] = lambda function, *args: function(*args),
) -> None:
    """Look at a mailbox whenever something changes in it, or without IDLE after each `poll` seconds.

    `begin` is called with each new connection. `look` looks once, and returns the number of new mails; it may fail at
    any point, and is then called again. `wait` calls a function that waits, and may raise KeyboardInterrupt during the
    wait.

    A connection that fails is replaced, after pauses that grow up to 5 minutes. Each kind of error is logged once, and
    the end of the failure is logged, too. With `only_once` an error is raised; a LoginRefusedError is also raised if no
    login has succeeded yet.
    """
    pause, has_worked, logged = FIRST_PAUSE, False, set[type]()
    while True:
        box = None
        try:
            box = ImapConnection(account, wait)
            begin(box)
            while True:
                while look(box):
                    pass
                if logged:
                    log.warning("%s: the mailbox is watched again", account.host)
                pause, has_worked, logged = FIRST_PAUSE, True, set()
                if only_once:
                    return
                _wait_for_news(box, poll, wait)
        except (ConnectionFailedError, RefusedError, OSError) as error:
            if only_once or (isinstance(error, LoginRefusedError) and not has_worked):
                raise
            if type(error) not in logged:
                place = "" if isinstance(error, OSError) else f"{account.host}: "
                log.warning("%s%s; trying again", place, error)
            logged.add(type(error))
        finally:
            if box is not None:
                box.close()
        wait(sleep, pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _wait_for_news(box: ImapConnection, seconds: float, wait: Callable[..., Any]) -> None:
    if box.has_idle:
        try:
            box.wait(seconds)
            return
        except RefusedError:
            box.has_idle = False
    wait(sleep, seconds)
