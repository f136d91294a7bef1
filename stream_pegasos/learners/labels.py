"""Which of two labels is the positive one."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Label = bool | int | str


@dataclass
class Labels:
    """The labels of a binary model, as the stream brings them.

    The positive label is `True`, 1 beside 0 or −1, or "true" beside "false"; with other labels the first one met is the
    negative one. `pos_label` decides otherwise. With `needs_positive` one of the two has to, as a decision rests on it.
    """

    pos_label: Label | None = None
    needs_positive: bool = False
    negative: Label | None = None
    positive: Label | None = None
    met: bool = False  # whether any label has been met
    signs: dict[Any, float] = field(default_factory=dict)  # of the labels met
    known: tuple[Label, ...] = ()  # the labels that can be predicted, the negative one first

    def __post_init__(self) -> None:
        if self.pos_label is not None and self.positive is None:
            self.positive = check_label(self.pos_label)
            if isinstance(self.positive, bool):
                self.negative = not self.positive
        self._settle()

    def _settle(self) -> None:
        """Bring `signs` and `known` in line with the labels."""
        pairs = ((self.negative, -1.0), (self.positive, 1.0))
        there = {label: sign for label, sign in pairs if label is not None}
        self.signs = there if self.met else {}
        # Two as soon as they are known; before anything is learned, False and True are River's convention.
        if len(there) == 2 or self.met:
            self.known = tuple(there)
        else:
            self.known = (False, True) if self.pos_label is None else ()

    def of_sign(self, sign: float) -> Label:
        """The positive label for 1, the negative one for −1; of labels that have been met."""
        return self.positive if sign > 0.0 else self.negative  # type: ignore[return-value]

    def restore(self, negative: Label | None, positive: Label | None, met: bool) -> None:
        """Take over labels met elsewhere.

        Raises
        ------
        TypeError, ValueError
            If they cannot have been met.
        """
        there = [check_label(label) for label in (negative, positive) if label is not None]
        if len(set(there)) < len(there) or type(met) is not bool or met > len(there):
            raise ValueError(f"the labels cannot be {negative!r} and {positive!r}")
        if self.pos_label is not None and positive != written_like(self.pos_label, positive):
            raise ValueError(f"the positive label is {positive!r}, not {self.positive!r}")
        self.negative, self.positive, self.met = negative, positive, met
        self._settle()

    def with_labels(self, y: Any) -> tuple[Labels, bool]:
        """Labels that know those in `y` too, and whether positive and negative have been exchanged for it.

        Raises
        ------
        TypeError
            If one is no bool, int or str.
        PositiveLabelError
            If nothing says which is the positive one, and `needs_positive`.
        ValueError
            If one is a third label.
        """
        new, exchanged = copy.copy(self), False
        new.signs = dict(self.signs)
        for given in distinct(y):
            label = check_label(given)
            if label not in new.signs:
                exchanged ^= new._meet(label)
        return new, exchanged

    def _meet(self, label: Label) -> bool:
        exchanged = False
        is_given = self.pos_label is not None and not self.met
        if is_given and not (isinstance(self.pos_label, bool) and truth_of(label) is None and label != -1):
            self.positive = written_like(self.pos_label, label)  # type: ignore[arg-type]
            self.negative = not self.positive if isinstance(self.positive, bool) else None
        if label not in (self.negative, self.positive):
            if self.negative is not None and self.positive is not None:
                raise ValueError(
                    f"label {label!r} is a third one beside {self.negative!r} and {self.positive!r}; this model is "
                    "binary: for several classes use MulticlassPegasosClassifier, for ordered ones "
                    "OrdinalPegasosClassifier"
                )
            if isinstance(label, bool) and not self.met and self.positive is None:
                self.negative, self.positive = False, True
            elif self.positive is not None:
                self.negative = label
                # A 1 met first was taken to be the positive label, which holds only beside 0 and −1; "true" likewise.
                if self.pos_label is None and not are_clear((self.positive, label)):
                    self.negative, self.positive, exchanged = self.positive, label, True
            elif self.negative is None and (label == 1 or label in [true for _, true in TRUTHS]):
                self.positive = label
            elif self.negative is None:
                self.negative = label
            else:
                self.positive = label
        there = [label for label in (self.negative, self.positive) if label is not None]
        if self.needs_positive and self.pos_label is None and not are_clear(there):
            raise PositiveLabelError(
                f"is label {label!r} the positive one? A threshold or a limit of false positives is about the positive "
                "label: say which it is by pos_label, on the command line --pos-label"
            )
        self.met = True
        self._settle()
        return exchanged


class PositiveLabelError(ValueError):
    """A decision rests on which label is the positive one, and nothing says which it is."""


def are_clear(labels: Iterable[Label | None]) -> bool:
    """Whether the labels themselves say which is the positive one."""
    there = set(labels)
    return there <= {0, 1} or there <= {-1, 1} or any(there <= {false, true} for false, true in TRUTHS)


def truth_of(label: Label | None) -> bool | None:
    """What a label says that is a bool, 0 or 1, or the text of one of these; `None` for any other."""
    text = str(label).lower()
    return None if text not in ("true", "1", "false", "0") else text in ("true", "1")


def written_like(label: Label, other: Label | None) -> Label:
    """A bool, 0 or 1, or the text of one of these, as it is written where others are written like `other`; any other
    label as it is.
    """
    truth = truth_of(label)
    if truth is None or isinstance(other, bool):
        return label if truth is None else truth
    if isinstance(other, int):
        return int(truth)
    return next((pair[truth] for pair in (*TRUTHS, ("0", "1")) if other in pair), label)


# The texts of false and true.
TRUTHS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))


def rule_of_succession(n: int) -> float:
    """The probability of a label that all of n examples had; it leaves room for one that has not come (Laplace)."""
    return (n + 1) / (n + 2)


@dataclass
class Classes:
    """The labels of a model of any number of classes, in the order in which they came."""

    known: tuple[Label, ...] = ()
    numbers: dict[Any, int] = field(default_factory=dict)

    def number(self, y: Any) -> int | None:
        """The number of a label, `None` if it is not known."""
        try:
            return self.numbers.get(y)
        except TypeError:  # not even hashable
            return None

    def with_labels(self, y: list[Any]) -> Classes:
        """Classes that know the labels in `y` too.

        Raises
        ------
        TypeError
            If one is no bool, int or str.
        """
        numbers = dict(self.numbers)
        for given in distinct(y):
            numbers.setdefault(check_label(given), len(numbers))
        return self if len(numbers) == len(self.numbers) else Classes(tuple(numbers), numbers)


def distinct(y: Iterable[Any]) -> Iterable[Any]:
    """Each label once, in the order in which they come."""
    try:
        return dict.fromkeys(y)
    except TypeError:  # some are not even hashable, which check_label says of them by name
        return y


def label_list(y: Any) -> list[Any]:
    """The labels of several examples.

    Raises
    ------
    TypeError
        If they are not several.
    """
    given = y.tolist() if hasattr(y, "tolist") else y
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"y must be a sequence of labels, not a single {type(y).__name__}")
    return list(given)


def label_array(labels: Sequence[Label | None]) -> NDArray[Any]:
    """The labels as an array that holds them as they are."""
    array = np.array(labels)
    # Where no dtype of NumPy's does; a float64 may stand for large integers.
    if array.tolist() != list(labels) or [*map(type, array.tolist())] != [*map(type, labels)]:
        return np.array(labels, object)
    return array


def check_label(y: Any) -> Label:
    """The label as a plain bool, int or str; NumPy's scalars and whole floats are taken too.

    Raises
    ------
    TypeError
        If it is none of these.
    ValueError
        If it is a float with a fraction, NaN or infinite.
    """
    label = y.item() if isinstance(y, np.generic) else y
    if isinstance(label, float):
        if not math.isfinite(label) or label != int(label):
            raise ValueError(f"label {y!r} is no class; labels must be bool, int or str")
        return int(label)
    if isinstance(label, (bool, int, str)):
        return label
    raise TypeError(f"label {y!r} is a {type(y).__name__}; labels must be bool, int or str")
