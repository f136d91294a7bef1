"""Tests over the combinations of several lists, of which few run by default."""

from itertools import product

import pytest


def crossed(*lists):
    """Parameters of all combinations; without `-m heavy` so few that each case of each list is in one or more."""
    lists = [[*cases] for cases in lists]
    default = {tuple(i % len(cases) for cases in lists) for i in range(max(map(len, lists)))}
    return [
        pytest.param(
            *(cases[i] for cases, i in zip(lists, places, strict=True)),
            marks=[] if places in default else [pytest.mark.heavy],
        )
        for places in product(*(range(len(cases)) for cases in lists))
    ]
