"""A model's answer about a message, and its forms: a line, a record or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stream_pegasos.common.display import printable
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.streams.example import Id, Truth

COLUMNS = ("id", "label", "probability", "probabilities", "margin", "error")  # of a record
SET = "set"  # one more column, if a coverage is asked for


class Answer(NamedTuple):
    """A model's answer about one message, and the result of learning it.

    Parameters
    ----------
    id : int or str or None
        The message's id, `None` where it has none.
    label : bool, int, str, tuple of labels or None
        The predicted label, `None` while the model knows too little; a tuple if a message may have several.
    probability : float, tuple of float or None
        The probability of that label, from 0 to 1; a tuple if there may be several.
    probabilities : mapping of label to float, or None, default None
        The probability of every known label, or of the most probable ones, by label; `None` if nobody asked for them.
    margin : float, tuple of float or None, default None
        With two classes, the margin of the positive one. With more, how far the margin of the predicted label is above
        the next best one; below 0 if a threshold decided for a label that is not the best. If a message may have
        several labels, the margin of each that is predicted. With ordered classes, how far the logarithm of the
        probability is above that of the most probable other label. `None` if there is none.
    error : str or None, default None
        Why the message could not be read, predicted or learned; `None` if all went well. A message that was predicted
        but could not be learned has both a prediction and an error.
    withheld : sequence of labels, default ()
        The labels that a limit of false positives withheld.
    correction : str or None, default None
        "taught anew" or "taken back", if the message was learned before with another label.
    learned : bool or None, default None
        Whether the message was learned; `None` if it was only predicted.
    set : sequence of labels or None, default None
        The labels in the set of the coverage asked for, the likeliest first; `None` if none was asked for.

    Examples
    --------

    >>> from stream_pegasos.streams import Answer
    >>> answer = Answer(7, "spam", 0.75, {"ham": 0.25, "spam": 0.75}, 1.5)
    >>> answer.line()
    'spam\\t0.750000'
    >>> answer.record()["probabilities"]
    {'ham': 0.25, 'spam': 0.75}
    >>> answer._replace(learned=True).as_json()["learned"]
    True

    """

    id: Id | None
    label: Truth | None
    probability: float | tuple[float, ...] | None
    probabilities: Mapping[Label, float] | None = None
    margin: float | tuple[float, ...] | None = None
    error: str | None = None
    withheld: Sequence[Label] = ()
    correction: str | None = None
    learned: bool | None = None
    set: Sequence[Label] | None = None

    def line(self, separator: str = ",") -> str:
        """The label or labels, a tab and the probability of each label; both are empty if there is an error."""
        label, probability = self.label, self.probability
        if isinstance(label, (tuple, list)) and isinstance(probability, (tuple, list)):
            return f"{separator.join(map(printable, label))}\t{separator.join(f'{p:.6f}' for p in probability)}"
        if label is None or probability is None:
            return "\t" if self.error is not None else "\t0.500000"
        return f"{printable(label)}\t{probability:.6f}"

    def record(self) -> dict[str, Any]:
        """The columns by name, for files and sinks. The keys of probabilities are different texts in JSON: a label that
        is a text and reads like a label of another type, such as `"true"` beside `True`, is in quotes.
        """
        record = dict(zip(COLUMNS, self, strict=False))
        if self.probabilities is not None:
            record["probabilities"] = _name_keys(self.probabilities)
        return record if self.set is None else {**record, SET: [*self.set]}

    def as_json(self) -> dict[str, Any]:
        """The answer as an object for JSON, without unknown values; probabilities are pairs."""
        record: dict[str, Any] = {"label": self.label, "probability": self.probability, "margin": self.margin}
        if self.probabilities is not None:
            record["probabilities"] = [*self.probabilities.items()]
        if self.withheld:
            record["withheld"] = self.withheld
        of_message = ("correction", self.correction), ("learned", self.learned), ("id", self.id)
        for name, value in ((SET, self.set), *of_message):
            if value is not None:
                record[name] = value
        return record


def _name_keys(probabilities: Mapping[Any, float]) -> Mapping[Any, float]:
    if len({type(label) is str for label in probabilities}) < 2:
        return probabilities  # JSON spells different labels of one type differently
    names: dict[str, Any] = {json.dumps(label): label for label in probabilities if type(label) is not str}
    for label in probabilities:
        if type(label) is str:
            name = label
            while name in names:
                name = json.dumps(name)
            names[name] = label
    spelled = {label: name for name, label in names.items()}
    return {spelled[label]: probability for label, probability in probabilities.items()}
