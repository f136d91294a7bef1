"""Work on many items at once and, where that fails, on each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def together_or_alone(
    items: Any,
    work: Callable[[Any], Any],
    failures: type[Exception] | tuple[type[Exception], ...],
    alone: Callable[[Any], Any] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield all items with the result of the work on them. Where that fails, yield each by itself, as a sequence of
    one, with its own result, or with the exception that says why there is none.

    Parameters
    ----------
    items
        A sequence.
    work
        What is done with items; where it fails, it has done nothing.
    failures
        The exceptions by which it fails. Any other ends the whole.
    alone
        What is done with a single item in place of `work`, if that is another function.

    Examples
    --------

    >>> from stream_pegasos.common.together import together_or_alone
    >>> [*together_or_alone(["1", "2"], lambda some: sum(map(int, some)), ValueError)]
    [(['1', '2'], 3)]
    >>> for some, found in together_or_alone(["1", "x"], lambda some: sum(map(int, some)), ValueError):
    ...     print(some, repr(found))
    ['1'] 1
    ['x'] ValueError("invalid literal for int() with base 10: 'x'")

    """
    try:
        result = work(items)
    except failures as error:
        if len(items) > 1 or alone is not None:
            for i in range(len(items)):
                yield from together_or_alone(items[i : i + 1], alone or work, failures)
            return
        result = error
    yield items, result
