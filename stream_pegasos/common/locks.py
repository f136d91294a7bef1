"""A lock for estimators that no fork leaves locked in the child."""

from __future__ import annotations

import os
import threading
import weakref
from _thread import RLock
from typing import Any

__all__ = ["Lock", "heed_forks", "new_condition"]

PATIENCE = 0.1  # seconds to wait for a lock while holding others; its owner may wait for one of those

_registry: set[weakref.ref[Any]] = set()  # only atomic operations change it
_forking = threading.local()


class Lock(RLock):  # type: ignore[misc]
    """A reentrant lock. A copy or a pickle of its owner gets a new lock."""

    def __init__(self) -> None:
        heed_forks(self)

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


def new_condition() -> threading.Condition:
    """A condition for threads to wait on; no fork leaves its lock locked in the child."""
    return threading.Condition(Lock())


def heed_forks(lock: object) -> None:
    """Make a fork wait while another thread holds the lock: that thread does not exist in the child and could not
    release it.
    """
    _registry.add(weakref.ref(lock, _registry.discard))


def _take_all() -> None:
    _forking.held = []
    while (busy := next((lock for lock in _alive() if not _take(lock, PATIENCE)), None)) is not None:
        _let_go()
        _take(busy)  # holding no other lock, which its owner may need


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
