"""Combinations of options, few of which try every two values together."""

from itertools import combinations, product


def pairwise(**options):
    """Dicts with a value for each option, so that any two values of two options stand together in one of them.

    >>> len(pairwise(a=range(3), b=range(3), c=range(3)))
    10
    >>> tried = pairwise(a=range(5), b=range(4), c="xyz", d=(True, False), e=(True, False))
    >>> len(tried) < 30 < 5 * 4 * 3 * 2 * 2
    True
    >>> all(any(it["a"] == a and it["c"] == c for it in tried) for a in range(5) for c in "xyz")
    True
    """
    values = {name: list(given) for name, given in options.items()}
    pairs = [
        frozenset([(one, i), (other, j)])
        for one, other in combinations(values, 2)
        for i, j in product(range(len(values[one])), range(len(values[other])))
    ]
    missing, chosen = dict.fromkeys(pairs), []
    while missing:
        row = dict(next(iter(missing)))
        for name, given in values.items():
            if name not in row:
                n_new = [sum(frozenset([at, (name, i)]) in missing for at in row.items()) for i in range(len(given))]
                row[name] = n_new.index(max(n_new))
        for pair in combinations(row.items(), 2):
            missing.pop(frozenset(pair), None)
        chosen.append({name: values[name][row[name]] for name in values})
    return chosen
