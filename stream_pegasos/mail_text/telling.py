"""Header fields that almost reveal the label alone: probably a filter wrote them, and new mails will not have them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from stream_pegasos.mail_text.headers import COMMON, FIELD, OF_RESULTS, OF_SENDER, is_of_others
from stream_pegasos.mail_text.mime import MAX_HEADERS
from stream_pegasos.mail_text.parts import MailParts, leave_out_fields

__all__ = ["TellingFields", "deciding_fields"]

NAME = re.compile(r"^([!-9;-~]{1,100})[ \t]*:", re.MULTILINE)
BODY = re.compile(r"\r?\n\r?\n|\r\r")
# The least share of the mails with a field that have one label; the least share of the mails of that label that have
# the field; the least number of these mails, and of mails with other labels.
PURITY, COVERAGE, FEWEST = 0.98, 0.3, 20
MOST_NAMES = 10_000
USUAL = COMMON | OF_SENDER | OF_RESULTS | {"received"}


class TellingFields:
    """Counts the learned header fields of mails that come with a label.

    Examples
    --------
    >>> from stream_pegasos.mail_text.telling import TellingFields
    >>> fields = TellingFields()
    >>> for i in range(50):
    ...     fields.meet("X-Acme-Gateway: 1\\nSubject: prize\\n\\n", "spam")
    ...     fields.meet("Subject: lunch\\n\\n", "ham")
    >>> fields.found()
    [('x-acme-gateway', 'spam', 50, 50)]
    """

    def __init__(self) -> None:
        self._n_of = Counter[Any]()
        self._labels: dict[str, Counter[Any]] = defaultdict(Counter)

    def meet(self, mail: str, label: object) -> None:
        self._n_of[label] += 1
        end = BODY.search(mail, 0, MAX_HEADERS)
        names = [name.lower() for name in NAME.findall(mail, 0, end.start() if end else MAX_HEADERS)]
        newest_hop = names.index("received") if "received" in names else 0
        for place, name in enumerate(names):
            is_met = name in self._labels or len(self._labels) < MOST_NAMES
            if is_met and name not in USUAL and not is_of_others(name, place < newest_hop):
                self._labels[name][label] += name not in names[:place]

    def found(self) -> list[tuple[str, Any, int, int]]:
        """The fields that almost reveal a label; for each: its label, the mails with this label, and all its mails."""
        telling = []
        for name, labels in self._labels.items():
            (label, n), total = labels.most_common(1)[0], labels.total()
            n_others = self._n_of.total() - self._n_of[label]
            if n >= max(PURITY * total, COVERAGE * self._n_of[label], FEWEST) and n_others >= FEWEST:
                telling.append((name, label, n, total))
        return sorted(telling, key=lambda of: -of[2])


Prediction = tuple[Any, float]  # a label and its probability


def deciding_fields(
    parts: MailParts, predict: Callable[[Sequence[MailParts]], Sequence[Prediction]]
) -> tuple[list[str], Prediction]:
    """The header fields each of which alone decides the label of a mail, and the prediction without them.

    Only fields that others than the sender may have written are tested. A field decides if the mail with this field
    alone of them gets its label, which must have a probability of .98, and the mail without all of them gets another
    label.
    """
    names = [token.removeprefix(FIELD) for token in parts.tokens if token.startswith(FIELD)]
    names = [name for name in names if name not in USUAL]
    bare = leave_out_fields(parts, set(names).__contains__)
    single = [leave_out_fields(parts, (set(names) - {name}).__contains__) for name in names]
    (label, probability), without, *single_probabilities = predict([parts, bare, *single])
    if probability < PURITY or without[0] == label:
        return [], without
    return [name for name, (other, _) in zip(names, single_probabilities, strict=True) if other == label], without
