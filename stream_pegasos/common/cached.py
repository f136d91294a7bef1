"""Properties that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property"]

T = TypeVar("T")


class cached_property(Generic[T]):
    """The `cached_property` of `functools` in Python 3.12. The one of Python 3.11 computes under a lock of the class,
    which another thread may hold during a fork.

    >>> class Half:
    ...     @cached_property
    ...     def number(self):
    ...         print("computed")
    ...         return 0.5
    >>> half = Half()
    >>> half.number, half.number
    computed
    (0.5, 0.5)
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
