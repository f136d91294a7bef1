"""What is found in a text for the recipe; each part is justified by tests/benchmarks/accuracy.py."""

from __future__ import annotations

from stream_pegasos.features.hashing import HashedBagOfWords

__all__ = ["recipe"]


def recipe() -> HashedBagOfWords:
    """Words, punctuation marks and their pairs, with digits masked and the beginnings of long words."""
    return HashedBagOfWords(
        n_features=2**30,
        ngram_range=(1, 2),
        token_pattern=r"\w+|[^\w\s]",
        binary=True,
        alternate_sign=False,
        mask_digits=True,
        prefix_length=4,
        boundaries=True,
    )
