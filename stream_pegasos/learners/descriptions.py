"""Descriptions of labels: lessons before the first message."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.learners.label_policy import truth

__all__ = ["Descriptions", "Lessons", "make_lessons", "name_as_text"]

# For each label several texts, one, or `None` if its name is enough.
Descriptions = Mapping[Any, str | Iterable[str] | None]

# How often each text is learned, and with which weight. Once is slightly worse; four times is no better. If a message
# may have several labels, a text says little about the others, so it counts little.
TIMES, WEIGHT = 2, 1.0
TIMES_OF_SEVERAL, WEIGHT_OF_SEVERAL = 1, 0.1
# Separators of the words of a name: underscores, hyphens and spaces; and the place before a capital, as in lostCard and
# HTTPError.
BETWEEN_WORDS = re.compile(r"[_\-\s]+|(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][^\W\d_A-Z])")


DIGITS = re.compile(r"\d+")


def name_as_text(label: object) -> str:
    """The words of a label's name, without numbers.

    >>> [name_as_text(label) for label in ("lost_card", "LostCard", "HTTPError-found", "class_17", 7)]
    ['lost card', 'Lost Card', 'HTTP Error found', 'class', '']
    """
    return " ".join(BETWEEN_WORDS.sub(" ", DIGITS.sub(" ", str(label))).split())


class Lessons(NamedTuple):
    """Messages to learn, with their labels and their weight; and the labels whose names are no use."""

    X: list[Any]
    y: list[Any]
    w: float
    left_out: list[Any]

    @property
    def warning(self) -> str | None:
        """The warning about the labels that are left out, if there are any."""
        if not self.left_out:
            return None
        first_labels = ", ".join(map(str, self.left_out[:10])) + (", ..." if len(self.left_out) > 10 else "")
        return f"these names of labels describe nothing, so they are left out: {first_labels}"


def make_lessons(descriptions: Descriptions, has_several: bool, make_message: Callable[[str], Any]) -> Lessons:
    """The lessons from descriptions, round by round. Names that are no use are left out."""
    if not isinstance(descriptions, Mapping):
        raise TypeError(must_be("descriptions", "a mapping of labels to texts", type_name(descriptions)))
    names = {label: name_as_text(label) for label, description in descriptions.items() if description is None}
    counts = Counter(name.lower() for name in names.values())
    left_out = [
        label
        for label, name in names.items()
        if not any(map(str.isalpha, name)) or counts[name.lower()] > 1 or truth(label) is not None
    ]
    lessons: list[tuple[str, Any]] = []
    for label, description in descriptions.items():
        if label in left_out:
            continue
        if isinstance(description, str) or description is None:
            description = [names[label] if description is None else description]
        if not isinstance(description, Iterable) or isinstance(description, Mapping):
            raise TypeError(must_be(f"the description of {label!r}", "a text", description))
        texts = [*description]
        for text in texts or [""]:
            if not isinstance(text, str):
                raise TypeError(must_be(f"a description of {label!r}", "a text", text))
            if not text.strip():
                raise ValueError(f"a description of {label!r} is blank; None stands for the name of the label")
        lessons += [(text, label) for text in texts]
    lessons *= TIMES_OF_SEVERAL if has_several else TIMES
    X, y = [make_message(text) for text, _ in lessons], [(label,) if has_several else label for _, label in lessons]
    return Lessons(X, y, WEIGHT_OF_SEVERAL if has_several else WEIGHT, left_out)
