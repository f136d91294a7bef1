"""Typing errors: the known label that a new one may be a misspelt form of. What a label is, `label_policy` decides."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from stream_pegasos.learners.label_policy import Label

LEAST_TYPED = 3  # letters of labels that may be misspelt forms of each other


def look_alike(label: Label, known_labels: Iterable[Label | None]) -> Label | None:
    """The known label that differs from a text only by case, white space and invisible characters; `None` without one.

    Examples
    --------
    >>> look_alike("Spam ", ["ham", "spam"]), look_alike("spam", ["ham", "spam"]), look_alike("scam", ["spam"])
    ('spam', None, None)
    """
    texts = [text for text in known_labels if isinstance(text, str)]
    if not isinstance(label, str) or label in texts:
        return None
    shape = label_shape(label)
    return next((text for text in texts if label_shape(text) == shape), None)


def one_slip_away(label: Label, known_labels: Iterable[Label | None]) -> Label | None:
    """The known label that differs from a text by one typing error: a letter that is added, missing or wrong, or two
    that are swapped; `None` without one. Labels of fewer than three letters, and digits, never count as errors.

    Examples
    --------
    >>> one_slip_away("sapm", ["ham", "spam"]), one_slip_away("topic 2", ["topic 1"]), one_slip_away("no", ["on"])
    ('spam', None, None)
    """
    if not isinstance(label, str):
        return None
    typed = label_shape(label)
    return next((text for text in known_labels if isinstance(text, str) and _is_slip(typed, label_shape(text))), None)


def _is_slip(typed: str, known_text: str) -> bool:
    first, second = sorted((typed, known_text), key=len)
    if len(first) < LEAST_TYPED or first == second:
        return False
    same = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
    first, second = first[same:], second[same:]
    is_swap = first[:2] == second[1::-1] and first[2:] == second[2:]
    changed = first[:2] if is_swap else second[:1] if first == second[1:] else first[:1] + second[:1]
    return (is_swap or first == second[1:] or first[1:] == second[1:]) and not any(map(str.isdigit, changed))


def label_shape(text: str) -> str:
    """A text in lower case, without white space and invisible characters."""
    if text.isascii() and text.isprintable():
        return text.replace(" ", "").lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf"))
