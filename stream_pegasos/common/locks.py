"""A lock that estimators can own, and that no fork finds taken."""

from __future__ import annotations

import os
import threading
import weakref
from _thread import RLock
from typing import Any

__all__ = ["Lock", "heed_forks", "new_condition"]

PATIENCE = 0.1  # seconds to wait for a lock while holding others, for which its owner may be waiting

_registry: set[weakref.ref[Any]] = set()  # only atomic operations change it
_forking = threading.local()


class Lock(RLock):  # type: ignore[misc]
    """A reentrant lock. A copy or a pickle of its owner gets a new one."""

    def __init__(self) -> None:
        heed_forks(self)

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


def new_condition() -> threading.Condition:
    """A condition that threads wait for, whose lock no fork finds taken."""
    return threading.Condition(Lock())


def heed_forks(lock: object) -> None:
    """Make a fork wait while another thread holds the lock: in the child no such thread exists to release it."""
    _registry.add(weakref.ref(lock, _registry.discard))


def _take_all() -> None:
    _forking.held = []
    while (busy := next((lock for lock in _alive() if not _take(lock, PATIENCE)), None)) is not None:
        _let_go()
        _take(busy)  # while holding no other, so that its owner may take them


def _alive() -> list[Any]:
    return [lock for reference in list(_registry) if (lock := reference()) is not None]


def _take(lock: Any, patience: float = -1.0) -> bool:
    is_acquired: bool = lock.acquire(timeout=patience)
    if is_acquired:
        _forking.held.append(lock)
    return is_acquired


def _let_go() -> None:
    while _forking.held:
        _forking.held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_let_go, after_in_child=_let_go)
