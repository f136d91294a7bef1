"""Checks of the labels that may be learned, and of their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stream_pegasos.learners.capabilities import LABELS
from stream_pegasos.learners.label_policy import Label, LabelPolicy
from stream_pegasos.runtime.monitor import Monitor
from stream_pegasos.streams.example import Truth

__all__ = ["LabelChecks", "each_label"]

MOST_ANSWERED = 2_000_000  # labels in the answers to a request, if a message may have several


class LabelChecks:
    """Refuses labels before any is learned: labels outside `labels`, if that is given, and labels beyond `most`, the
    largest number that the model may learn here.
    """

    def __init__(self, monitor: Monitor, labels: Sequence[Label] | None, most: int) -> None:
        self._monitor, self._labels, self._most = monitor, None if labels is None else tuple(labels), most
        self._known: list[tuple[type, Label]] = []
        self._policy = LabelPolicy(kind=monitor.kind)

    def policy(self, recent_labels: Iterable[Truth]) -> LabelPolicy:
        """The policy beside the labels of the model and `recent_labels`."""
        labels, kind = [*self._monitor.model.classes, *each_label(recent_labels)], self._monitor.kind
        if self._labels is not None:
            return LabelPolicy(labels, kind, allowed=self._labels)
        known_labels = [(type(label), label) for label in labels]
        if known_labels != self._known:
            self._known, self._policy = known_labels, LabelPolicy(labels, kind)
        return self._policy

    def plain(self, label: object) -> Any:
        """A label in its plain form, from any form that the model takes. If a message may have several labels, this is
        a tuple of those that hold, or a dict if some do not hold. It raises the errors of `learn_one`.
        """
        if self._monitor.kind != LABELS:
            return self._policy.check(label)
        holds = self._policy.check_set(label)
        return tuple(holds) if all(holds.values()) else holds

    def check(
        self, labels: Sequence[Truth | dict[Label, bool]], recent_labels: Iterable[Truth], weights: Sequence[float]
    ) -> int:
        """Check that labels may be learned, beside those that people gave; return the number of labels that the model
        then knows. A ValueError or TypeError if one may not be learned, or if there are too many, e.g. if a column of
        ids is used as the label.
        """
        if self._labels is not None:
            policy = self.policy(recent_labels)
            for label in dict.fromkeys(each_label(labels)):
                if fault := policy.refusal(label):
                    raise fault.error
        self._monitor.model.check_labels(labels, weights)
        known_labels = set(self._monitor.model.classes)
        n = len(known_labels.union(each_label(labels)))
        if n > max(len(known_labels), self._most):
            raise ValueError(f"labels must be at most {self._most:,}, got {n:,} with these")
        return n

    def check_size(self, n: int, n_labels: int | None = None) -> None:
        """Check that the answers to `n` messages are not too large if each may have all labels; else a ValueError."""
        n_labels = len(self._monitor.model.classes) if n_labels is None else n_labels
        most = max(1, MOST_ANSWERED // max(1, n_labels))
        if self._monitor.kind == LABELS and n > most:
            raise ValueError(f"messages with up to {n_labels:,} labels must be at most {most:,} a request, got {n:,}")


def each_label(labels: Iterable[Truth | dict[Label, bool]]) -> list[Label]:
    """The single labels of messages that may have several labels."""
    return [single for label in labels for single in (label if isinstance(label, (tuple, dict)) else (label,))]
