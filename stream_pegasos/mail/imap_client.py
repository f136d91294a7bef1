"""IMAPClient, with an IDLE that overlooks nothing."""

from __future__ import annotations

import functools
from typing import Any

from stream_pegasos.common.extras import missing

__all__ = ["client_class"]


@functools.cache
def client_class() -> Any:
    """IMAPClient, whose first `idle_check` after IDLE does not wait. News that came in one packet with the answer to
    IDLE has been read from the socket already, so that IMAPClient would wait there for more.

    Raises
    ------
    ImportError
        If it is missing.
    """
    try:
        from imapclient import IMAPClient  # type: ignore[import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        raise missing("An IMAP mailbox", "mail", error) from error

    class Client(IMAPClient):  # type: ignore[misc, unused-ignore]
        _is_fresh = False

        def idle(self) -> None:
            super().idle()
            self._is_fresh = True

        def _poll_socket(self, sock: Any, timeout: float | None = None) -> Any:
            return self._at_once() or super()._poll_socket(sock, timeout)

        def _select_poll_socket(self, sock: Any, timeout: float | None = None) -> Any:
            return self._at_once() or super()._select_poll_socket(sock, timeout)

        def _at_once(self) -> bool:
            is_fresh, self._is_fresh = self._is_fresh, False
            return is_fresh

    return Client
