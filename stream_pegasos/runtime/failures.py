"""The newest reasons of failed requests, in constant memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from stream_pegasos.common.display import shortened
from stream_pegasos.runtime.answers import now
from stream_pegasos.runtime.recent import Recent

__all__ = ["Failures"]

MOST_REASONS = 20
LONGEST_REQUEST, LONGEST_REASON = 100, 500  # characters


class _Failure(NamedTuple):
    request: str
    status: str
    reason: str


class Failures:
    """The newest reasons of refused requests, each with its count and its last time.

    Examples
    --------
    >>> from stream_pegasos.runtime.failures import Failures
    >>> failures = Failures()
    >>> for text in ("a", "b"):
    ...     failures.add("POST /learn", "422", "label: it is blank")
    >>> [(failure["reason"], failure["n"]) for failure in failures.newest()]
    [('label: it is blank', 2)]
    """

    def __init__(self) -> None:
        self._reasons: Recent[_Failure, tuple[int, str]] = Recent(MOST_REASONS)  # the count and the last time

    def add(self, request: str, status: str, reason: str) -> None:
        """Record a request that was refused with a status of its protocol, and the reason."""
        failure = _Failure(shortened(request, LONGEST_REQUEST), status, shortened(reason, LONGEST_REASON))
        n, _ = self._reasons.get(failure, (0, ""))
        self._reasons[failure] = n + 1, now()
        self._reasons.move_to_end(failure)

    def newest(self) -> list[dict[str, Any]]:
        """The reasons as values for JSON, the newest first."""
        return [
            {**failure._asdict(), "n": n, "time": time} for failure, (n, time) in reversed([*self._reasons.items()])
        ]
