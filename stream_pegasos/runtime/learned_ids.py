"""The ids of learned messages."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from stream_pegasos.learners.label_policy import labels_that_hold
from stream_pegasos.runtime.recent import Recent
from stream_pegasos.streams.example import Id

NEW, KNOWN, CORRECTED = "new", "known", "corrected"


# The surprise is stored in the bits above the digest of the label: 1 + 16 · log2(1 / surprise); 0 if it is unknown; the
# largest value if it was 0.
OF_DIGEST, NO_SURPRISE, IN_HALF = 48, 255, 16
UNKNOWN = itertools.repeat(None)


class IdMemory:
    """The ids of the newest learned messages, each with its label and its surprise, in constant memory; 1 and `"1"` are
    different ids.
    """

    def __init__(self, window: int = 100_000) -> None:
        # The digest of each label, with the surprise.
        self._ids: Recent[Id, int] = Recent(window, name="the window of ids")

    def are_new(self, ids: Iterable[Id | None]) -> list[bool]:
        """Whether each id is unknown; a message without an id is new."""
        return [id is None or id not in self._ids for id in ids]

    def has(self, id: Id, label: object) -> bool:
        """Whether the message with this id was learned with this label."""
        return id in self._ids and _decode_label(self._ids[id]) == _digest(label)

    def surprise(self, id: Id) -> float | None:
        """The surprise of a message: 1 minus the probability of its label when it was learned; 0 if nothing was
        learned; `None` if unknown.
        """
        number = self._ids.get(id, 0) >> OF_DIGEST
        return 0.0 if number == NO_SURPRISE else 2.0 ** ((1 - number) / IN_HALF) if number else None

    def remove(self, id: Id) -> None:
        self._ids.pop(id, None)

    def compared(self, ids: Iterable[Id | None], labels: Iterable[Any]) -> list[str]:
        """For each message: "new", "known" with this label, or "corrected" if it is known with another label."""
        labels_met: dict[Id, int] = {}
        outcomes = []
        for id, label in zip(ids, labels, strict=True):
            outcome = NEW
            if id is not None:
                digest = _digest(label)
                if id in labels_met or id in self._ids:
                    before = labels_met[id] if id in labels_met else _decode_label(self._ids[id])
                    outcome = KNOWN if before == digest else CORRECTED
                labels_met[id] = digest
            outcomes.append(outcome)
        return outcomes

    def add(self, ids: Iterable[Id | None], labels: Iterable[Any], surprises: Iterable[float | None] = UNKNOWN) -> None:
        for id, label, surprise in zip(ids, labels, surprises, strict=False):
            if id is not None:
                self._ids[id] = _digest(label) | _encode_surprise(surprise) << OF_DIGEST

    def ids(self) -> list[Id]:
        """The ids, the oldest first."""
        return list(self._ids)

    def digests(self) -> list[int]:
        """The digests of the labels, with their surprises, in the same order."""
        return list(self._ids.values())

    def set_state(self, ids: str, digests: str) -> None:
        """Replace all ids and digests by those of two JSON lists; a ValueError if they are not valid."""
        known_ids, labels = _list(ids, int, str), _list(digests, int)
        if len(labels) != len(known_ids):
            raise ValueError("the ids must be a list")
        self._ids = Recent(self._ids.window, zip(known_ids, labels, strict=True))


def _list(text: str, *kinds: type) -> list[Any]:
    try:
        values = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        values = None
    if type(values) is not list or not all(type(value) in kinds for value in values):
        raise ValueError("the ids must be a list")
    return values


def is_same(label: object, other: object) -> bool:
    """Whether two labels, or two tuples of labels in any order, are the same."""
    return _digest(label) == _digest(other)


def _encode_surprise(surprise: float | None) -> int:
    if surprise is None:
        return 0
    return min(1 + round(-IN_HALF * math.log2(surprise)), NO_SURPRISE - 1) if surprise else NO_SURPRISE


def _decode_label(number: int) -> int:
    return number & ((1 << OF_DIGEST) - 1)


def _digest(label: object) -> int:
    """A number for a label, or for several labels in any order; `True` is equal to 1, as in a model."""
    label = labels_that_hold(label) if isinstance(label, dict) else label
    parts: Sequence[Any] = sorted({*map(_spelled, label)}) if isinstance(label, tuple) else _spelled(label)
    return _hash_text(repr(parts))


def _spelled(label: Any) -> str:
    return label if isinstance(label, str) else f"{int(label)}"


@functools.lru_cache(1_000)
def _hash_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest())
