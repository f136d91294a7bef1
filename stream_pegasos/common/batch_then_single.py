"""Work on many items at once and, if that fails, on each item alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self, TypeVar


class Sliceable(Protocol):
    """Items whose slices are of the same kind, such as a list."""

    def __len__(self) -> int: ...
    def __getitem__(self, places: slice, /) -> Self: ...


Items = TypeVar("Items", bound=Sliceable)


def batch_then_single(
    items: Items,
    work: Callable[[Items], Any],
    failures: type[Exception] | tuple[type[Exception], ...],
    single: Callable[[Items], Any] | None = None,
) -> Iterator[tuple[Items, Any]]:
    """Yield all items with the result of the work on them. If the work fails, it must have done nothing; then yield
    each item alone, with its result or with its exception, if that is one of `failures`. Any other exception is raised.
    """
    try:
        result = work(items)
    except failures as error:
        if len(items) > 1 or single is not None:
            for i in range(len(items)):
                yield from batch_then_single(items[i : i + 1], single or work, failures)
            return
        result = error
    yield items, result
