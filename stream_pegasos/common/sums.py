"""A sum that rounds in the same way in every version of Python."""

from collections.abc import Iterable


def sum_in_order(terms: Iterable[float]) -> float:
    """Add the terms from first to last, as the compiled engine does. Since Python 3.12, `sum` compensates for
    rounding.
    """
    total = 0.0
    for term in terms:
        total += term
    return total
