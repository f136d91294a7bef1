"""A sum whose bits depend on the terms alone."""

from collections.abc import Iterable


def sum_in_order(terms: Iterable[float]) -> float:
    """The terms added from first to last, as the compiled engine does; `sum` compensates for rounding since Python
    3.12.
    """
    total = 0.0
    for term in terms:
        total += term
    return total
