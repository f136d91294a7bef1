"""A log of requests, in the common format of web servers."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path

from starlette.types import Scope

__all__ = ["LONGEST_PATH", "AccessLog"]

log = logging.getLogger(__name__)

LONGEST_PATH = 200  # characters
ESCAPED = {34: '\\"', 92: r"\\"} | {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 256))}


class AccessLog:
    """Writes a line for each request to a file, or to standard output for `-`: the common log format, and the seconds
    until the answer. Programs such as logrotate may move the file. The part of a path after `?` is left out: it may
    name a message or a label.
    """

    def __init__(self, path: Path) -> None:
        is_stdout = str(path) == "-"
        self._handler = logging.StreamHandler(sys.stdout) if is_stdout else WatchedFileHandler(path, encoding="utf-8")
        self._handler.handleError = self._fail  # type: ignore[method-assign]
        self._has_failed = False

    def write(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        client = (scope.get("client") or ["-"])[0] or "-"
        path = scope.get("raw_path", scope["path"].encode()).partition(b"?")[0].decode("latin-1")
        request = f"{scope['method']} {path[:LONGEST_PATH]}".translate(ESCAPED)
        moment = datetime.now(UTC).strftime("%d/%b/%Y:%H:%M:%S %z")
        line = (
            f'{client} - - [{moment}] "{request} HTTP/{scope.get("http_version", "1.1")}" {status} {size} {seconds:.6f}'
        )
        self._handler.emit(logging.makeLogRecord({"msg": line}))

    def close(self) -> None:
        self._handler.close()

    def _fail(self, record: logging.LogRecord) -> None:
        if not self._has_failed:  # a failure of the log does not stop the service
            self._has_failed = True
            log.error("the access log cannot be written: %s", sys.exc_info()[1])
