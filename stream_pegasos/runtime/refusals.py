"""Refused requests, counted and logged by kind, not one by one."""

from __future__ import annotations

import logging
from collections import Counter

log = logging.getLogger(__name__)

SECONDS = 60.0  # between two log lines of the same kind


class Refusals:
    """Counts refused requests by their status, apart from failures of the service. `tell` logs a line for each kind
    since its last call; the line has no text of a request.
    """

    def __init__(self) -> None:
        self.of_clients = Counter[str]()  # errors of clients, by status
        self._untold = Counter[tuple[str, str]]()

    def add(self, status: str, reason: str, is_failure: bool = False) -> None:
        """Count a request with this status, and a reason that is the same for all requests of its kind."""
        if not is_failure:
            self.of_clients[status] += 1
        self._untold[status, reason] += 1

    def tell(self) -> None:
        for (status, reason), n in self._untold.items():
            log.warning("%s request%s refused within a minute: %s, %s", f"{n:,}", "s" * (n != 1), status, reason)
        self._untold.clear()
