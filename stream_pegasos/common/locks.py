"""A lock that estimators can own."""

from __future__ import annotations

from _thread import RLock

__all__ = ["Lock"]


class Lock(RLock):  # type: ignore[misc]
    """A reentrant lock. In a copy or a pickle of its owner stands a new one."""

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()
