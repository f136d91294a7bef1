"""A sum whose bits depend on the terms alone."""

from collections.abc import Iterable


def sum_in_order(terms: Iterable[float]) -> float:
    """The terms, added from the first to the last, as the compiled engine adds them. The built-in `sum` compensates for
    rounding since Python 3.12, so a model would have other bits there.
    """
    total = 0.0
    for term in terms:
        total += term
    return total
