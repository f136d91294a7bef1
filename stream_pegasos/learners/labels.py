"""The labels of a model: which of two is the positive one, or what number each of several has."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.engine import signs_of
from stream_pegasos.learners.probabilities import Floats, of_classes, only_class

Label = bool | int | str


@dataclass
class TwoClasses:
    """The labels of a model of two classes, as the stream brings them; a margin above 0 is for the positive one.

    The positive label is `True`, 1 beside 0 or −1, or "true" beside "false"; with other labels the first one met is the
    negative one. `pos_label` decides otherwise. With `needs_positive` one of the two has to, as a decision rests on it.
    """

    pos_label: Label | None = None
    needs_positive: bool = False
    negative: Label | None = None
    positive: Label | None = None
    met: bool = False  # whether any label has been met
    targets: dict[Any, float] = field(default_factory=dict)  # the sign of each label met
    known: tuple[Label, ...] = ()  # the labels that have a probability, the negative one first
    choices: tuple[Label | None, ...] = ()  # those that can be predicted
    limited: bool = False  # whether the positive one is predicted only once the negative one is known
    only_named: bool = False  # whether the positive one is that of `pos_label`, which has not been met

    def __post_init__(self) -> None:
        if self.pos_label is not None and self.positive is None:
            self.positive = check_label(self.pos_label)
            self.only_named = truth_of(self.positive) is None
            if isinstance(self.positive, bool):
                self.negative = not self.positive
        self._settle()

    def _settle(self) -> None:
        """Bring `targets` and `known` in line with the labels."""
        pairs = ((self.negative, -1.0), (self.positive, 1.0))
        there = {label: sign for label, sign in pairs if label is not None}
        met = {label: sign for label, sign in there.items() if sign < 0.0 or not self.only_named}
        self.targets = met if self.met else {}
        # Two as soon as they are known; before anything is learned, False and True are River's convention.
        if len(there) == 2 or self.met:
            self.known = tuple(there)
        else:
            self.known = (False, True) if self.pos_label is None else ()
        only_positive = self.limited and self.known == (self.positive,)
        self.choices = (None,) if only_positive or not self.known else self.known
        self._choices = label_array(self.choices)

    @property
    def classes(self) -> tuple[Label | None, Label | None]:
        """The negative and the positive label, each `None` as long as it is unknown."""
        return self.negative, self.positive

    def of_target(self, sign: float) -> Label:
        """The positive label for 1, the negative one for −1; of labels that have been met."""
        return self.positive if sign > 0.0 else self.negative  # type: ignore[return-value]

    def as_several(self) -> Classes:
        """Those that are known as the first of any number, the negative one before the positive one; not one that was
        only named.
        """
        there = [self.negative] if self.only_named else [self.negative, self.positive]
        return Classes().with_labels([label for label in there if label is not None])[0]

    def label(self, margin: float) -> Label | None:
        """The label that is predicted, for a margin or for whether the positive one is."""
        return self.choices[-1 if margin > 0.0 else 0]

    def labels_many(self, margins: NDArray[Any]) -> NDArray[Any]:
        """The same of several."""
        positive = margins > 0.0
        numbers = positive.astype(np.intp) if len(self.choices) == 2 else np.zeros_like(positive, np.intp)
        found: NDArray[Any] = self._choices[numbers]
        return found

    def probabilities(self, margin: float, probability: float, n_learned: int) -> dict[Any, float]:
        """The probability of each label, given that of the positive one."""
        if len(self.known) == 2:
            return {self.known[0]: 1.0 - probability, self.known[1]: probability}
        # Before anything is learned pos_label is as probable as what it will stand beside.
        return probabilities_of_only(self.known[0], n_learned) if self.known else {None: 0.5, self.positive: 0.5}

    def probabilities_many(
        self, margins: Floats, probabilities: Floats, n_learned: int
    ) -> tuple[tuple[Label | None, ...], Floats]:
        """The labels, and the probabilities of each example."""
        if len(self.known) == 2:
            return self.known, np.array([1.0 - probabilities, probabilities]).T
        only = self.probabilities(0.0, 0.5, n_learned)
        return tuple(only), np.full((len(margins), len(only)), list(only.values()))

    def get_state(self) -> Any:
        labels = {"negative": pack(self.negative), "positive": pack(self.positive)}
        return {**labels, "met": self.met, "only_named": self.only_named}

    def set_state(self, state: Any) -> None:
        """Take over labels met elsewhere.

        Raises
        ------
        LookupError, TypeError, ValueError
            If they cannot have been met.
        """
        negative, positive, met = unpack(state["negative"]), unpack(state["positive"]), state["met"]
        there = [check_label(label) for label in (negative, positive) if label is not None]
        if len(set(there)) < len(there) or type(met) is not bool or met > len(there):
            raise ValueError(f"the labels cannot be {negative!r} and {positive!r}")
        if self.pos_label is not None and positive != written_like(self.pos_label, positive):
            raise ValueError(f"the positive label is {positive!r}, not {self.positive!r}")
        only_named = state["only_named"]
        if type(only_named) is not bool or only_named > (self.pos_label is not None):
            raise ValueError("the positive label was named by nobody")
        self.negative, self.positive, self.met, self.only_named = negative, positive, met, only_named
        self._settle()

    def with_labels(self, y: Any) -> tuple[TwoClasses, bool]:
        """Labels that know those in `y` too, and whether positive and negative have been exchanged for it.

        Raises
        ------
        TypeError
            If one is no bool, int or str.
        PositiveLabelError
            If nothing says which is the positive one, and `needs_positive`.
        ThirdLabelError
            If one is a third label.
        """
        new, exchanged = copy.copy(self), False
        new.targets = dict(self.targets)
        for given in distinct(y):
            label = check_label(given)
            if label not in new.targets:
                exchanged ^= new._meet(label)
        return new, exchanged

    def _meet(self, label: Label) -> bool:
        exchanged = False
        is_given = self.pos_label is not None and not self.met
        if is_given and not (isinstance(self.pos_label, bool) and truth_of(label) is None and label != -1):
            self.positive = written_like(self.pos_label, label)  # type: ignore[arg-type]
            self.negative = not self.positive if isinstance(self.positive, bool) else None
        if label == self.positive:
            self.only_named = False
        elif label != self.negative:
            if self.negative is not None and self.positive is not None:
                raise ThirdLabelError(label, self.negative, self.positive)
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
                f"is label {label!r} the positive one? A threshold or a limit of false positives needs the positive "
                "label: say which it is by pos_label, on the command line --pos-label"
            )
        self.met = True
        self._settle()
        return exchanged


class ThirdLabelError(ValueError):
    """A third label came, where two are known.

    Attributes
    ----------
    label
        The third one.
    """

    def __init__(self, label: Label, negative: Label, positive: Label) -> None:
        super().__init__(label, negative, positive)
        self.label = label

    def __str__(self) -> str:
        label, negative, positive = self.args
        return (
            f"label {label!r} is a third one beside {negative!r} and {positive!r}, and this model is for two; "
            "AdaptiveClassifier and PegasosClassifier take any number"
        )


class PositiveLabelError(ValueError):
    """A decision rests on which label is the positive one, and nothing says which it is."""


def unknown_label(label: Label | None, classes: Iterable[Label | None]) -> str:
    """What is said where a label is to be decided on that the model does not know."""
    known = ", ".join(repr(each) for each in classes if each is not None)
    return f"{label!r} is none of the model's classes, which are {known}"


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


@dataclass
class AllowedLabels:
    """A fixed set of labels. Those that say true or false, as true, "true" and 1, are one label here, though not to a
    model: all have to be written as the first one that came.
    """

    labels: tuple[Label, ...]
    first: Label | None = None  # that came, of those that are written in several ways

    @property
    def written(self) -> tuple[Label, ...]:
        """The labels as they have to be written."""
        return tuple(written_like(label, self.first) for label in self.labels)

    def takes(self, label: Label) -> bool:
        """Whether it is one of them, for a label that comes."""
        like = label if self.first is None else self.first
        if not any(written_like(known, like) == label for known in self.labels):
            return False
        if truth_of(label) is not None:
            self.first = like
        return True


# The texts of false and true.
TRUTHS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))


def probabilities_of_only(label: Label, n_learned: int) -> dict[Any, float]:
    """Where one label has been met, in all of n examples."""
    probability = only_class(n_learned)
    return {label: probability, None: 1.0 - probability}


@dataclass
class Classes:
    """The labels of a model of any number of classes, in the order in which they came; the largest margin decides."""

    known: tuple[Label, ...] = ()
    targets: dict[Any, float] = field(default_factory=dict)  # the number of each label

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.known

    def of_target(self, number: float) -> Label:
        return self.known[int(number)]

    def with_labels(self, y: Any) -> tuple[Classes, bool]:
        """Classes that know the labels in `y` too; nothing is ever exchanged for that.

        Raises
        ------
        TypeError
            If one is no bool, int or str.
        """
        targets = dict(self.targets)
        for given in distinct(y):
            targets.setdefault(check_label(given), float(len(targets)))
        return (self if len(targets) == len(self.targets) else Classes(tuple(targets), targets)), False

    def without(self, label: Label) -> Classes:
        """The others, of which those after it have a number less."""
        known = tuple(each for each in self.known if each != label)
        return type(self)(known, {each: float(number) for number, each in enumerate(known)})

    def label(self, margins: Floats) -> Label | None:
        """The label that is predicted."""
        return self.known[margins.argmax()] if len(margins) else None

    def labels_many(self, margins: Floats) -> NDArray[Any]:
        """The labels that are predicted, for margins or for their numbers; `None` where every class was yet to come."""
        if margins.ndim == 1:
            return self.of_numbers(margins.astype(np.intp))
        if not margins.shape[1]:
            return self.of_numbers(np.full(len(margins), -1))
        best = margins.argmax(axis=1)
        is_known = np.isfinite(margins[np.arange(len(margins)), best])
        return self.of_numbers(np.where(is_known, best, -1))

    def of_numbers(self, numbers: NDArray[np.intp]) -> NDArray[Any]:
        """The labels of these numbers, `None` for −1."""
        known = self.known
        choices = label_array(known if known and (numbers >= 0).all() else (*known, None))
        found: NDArray[Any] = choices[numbers]
        return found

    def probabilities_many(
        self, margins: Floats, calibrated: Floats, n_learned: int
    ) -> tuple[tuple[Label | None, ...], Floats]:
        """The labels, and the probabilities of each example."""
        if margins.shape[1] == 1:
            only = probabilities_of_only(self.known[0], n_learned)
            return tuple(only), np.full((len(margins), 2), list(only.values()))
        return self.known[: margins.shape[1]], of_classes(margins, calibrated)

    def probabilities(self, margins: Floats, calibrated: Any, n_learned: int) -> dict[Any, float]:
        """The probability of each label."""
        if len(margins) == 1:
            return probabilities_of_only(self.known[0], n_learned)
        # Another thread may just have met a class that has no column yet.
        return dict(zip(self.known, of_classes(margins, np.array(calibrated)).tolist(), strict=False))

    def get_state(self) -> Any:
        return [pack(label) for label in self.known]

    def set_state(self, state: Any) -> None:
        """Take over labels met elsewhere.

        Raises
        ------
        TypeError, ValueError
            If they cannot have been met.
        """
        labels = [unpack(label) for label in state]
        met, _ = Classes().with_labels(labels)
        if list(met.known) != labels:
            raise ValueError("the labels are not as they were written")
        self.known, self.targets = met.known, met.targets


AnyLabels = TwoClasses | Classes


def targets_many(known: AnyLabels, y: Any) -> tuple[AnyLabels, bool, Floats]:
    """The classes with any new labels in `y`, whether that exchanged positive and negative, and the target of each.

    Raises
    ------
    TypeError, ValueError
        As `with_labels` does.
    """
    if isinstance(known, TwoClasses) and isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuf":
        classes, exchanged = known.with_labels(first_labels(y))
        return classes, exchanged, np.where(y == classes.positive, 1.0, -1.0)
    given = label_list(y)
    try:
        targets = signs_of(given, known.targets)
    except TypeError:  # some are not even hashable, which with_labels says of them by name
        targets = None
    if targets is not None:
        return known, False, targets
    new, exchanged = known.with_labels(given)
    targets = signs_of(given, new.targets)
    assert targets is not None
    return new, exchanged, targets


def first_labels(y: NDArray[Any]) -> list[Any]:
    """The distinct labels in the order of their first places, up to a third, which is one too many."""
    labels: list[Any] = []
    while len(y) and len(labels) < 3:
        labels.append(y[0].item())
        y = y[y != y[0]]
    return labels


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
