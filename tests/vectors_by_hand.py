"""Vectors of words by hand."""

import numpy as np

ROWS = {"good": [1.0, -0.5, 0.003], "Rome": [0.25, 0.0, 0.125], "USA": [0.004, 0.002, -0.001]}


def by_hand(numbers, largest):
    """Codes and shift of one vector, as they are defined."""
    whole = np.rint(np.asarray(numbers, float) / largest * 127 * 2**7)
    shift = next((s for s in range(8) if np.abs(np.rint(whole / 2**s)).max() <= 127), 7)
    return np.clip(np.rint(whole / 2**shift), -127, 127), shift


def check(vectors, words, numbers, largest):
    codes, shifts = vectors.codes(words)
    assert codes.dtype == np.int8 and shifts.dtype == np.uint8 and codes.shape == (len(words), vectors.n_dimensions)
    for word, row, code, shift in zip(words, numbers, codes, shifts, strict=True):
        expected, by = by_hand(row, largest)
        assert (code.tolist(), shift) == (expected.tolist(), by), word
        assert vectors.vector(word).tolist() == (expected * 2.0**by).tolist()


def text_of(rows, header=True):
    lines = [f"{len(rows)} {len(rows['good'])}"] if header else []
    return "".join(f"{line}\n" for line in [*lines, *(f"{w} {' '.join(map(str, row))} " for w, row in rows.items())])
