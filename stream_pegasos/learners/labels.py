"""The labels of a model, their numbers, and which of two labels is the positive one."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.engine import targets_of
from stream_pegasos.learners.label_meaning import TRUTHS, Label, truth_of, written_like
from stream_pegasos.learners.probabilities import Floats, for_each, of_classes, of_example, of_only

Margins = Any  # of one example by class: a list, or an array where each class has a column


@dataclass
class Labels:
    """The labels of a model, numbered in the order in which they came. The one with the largest margin is predicted."""

    known: tuple[Label | None, ...] = ()
    targets: dict[Any, float] = field(default_factory=dict)  # the number of each label met
    choices: tuple[Label | None, ...] = field(init=False)  # what to predict for each number, the last for −1

    def __post_init__(self) -> None:
        self.choices = (*self.known, None)

    @property
    def classes(self) -> tuple[Label | None, ...]:
        return self.known

    def of_target(self, number: float) -> Label:
        """The label that was met under this number."""
        return self.known[int(number)]  # type: ignore[return-value]

    def with_labels(self, y: Any) -> Labels:
        """Labels that know those in `y` too.

        Raises
        ------
        TypeError
            If one is no bool, int or str.
        """
        targets = dict(self.targets)
        for given in distinct(y):
            targets.setdefault(check_label(given), float(len(targets)))
        return self if len(targets) == len(self.targets) else type(self)(tuple(targets), targets)

    def without(self, label: Label) -> Labels:
        """The other labels; those after this one move up by a number."""
        known = tuple(each for each in self.known if each != label)
        return type(self)(known, {each: float(number) for number, each in enumerate(known)})

    def label(self, margins: Margins) -> Any:
        """The label that is predicted, for the margins of an example."""
        return self.choices[np.argmax(margins) if len(margins) else -1]

    def labels_many(self, margins: Floats, decided: NDArray[Any] | None = None) -> NDArray[Any]:
        """The predicted labels: those with the numbers `decided` or, without these, with the largest margins."""
        numbers = largest(margins) if decided is None else decided
        choices = self.choices[:-1] if len(self.choices) > 1 and (numbers >= 0).all() else self.choices
        found: NDArray[Any] = label_array(choices)[numbers]
        return found

    def probabilities(self, margins: Margins, calibrated: tuple[float, ...], n_learned: Any) -> dict[Any, Any]:
        """The probability of each label."""
        if len(margins) == 1:
            return of_only(self.of_target(0), n_learned)
        # Another thread may just have met a class that has no column yet.
        return dict(zip(self.known, of_example(margins, calibrated), strict=False))

    def probabilities_many(
        self, margins: Floats, calibrated: Floats, n_learned: Any
    ) -> tuple[tuple[Label | None, ...], Floats]:
        """The labels, and the probabilities of each example."""
        if margins.shape[1] == 1:
            return for_each(of_only(self.of_target(0), n_learned), len(margins))
        return self.known[: margins.shape[1]], of_classes(margins, calibrated)

    def get_state(self) -> Any:
        return [pack(label) for label in self.known]

    def set_state(self, state: Any) -> None:
        """Take over labels met elsewhere.

        Raises
        ------
        LookupError, TypeError, ValueError
            If they cannot have been met.
        """
        labels = [unpack(label) for label in state]
        met = Labels().with_labels(labels)
        if list(met.known) != labels:
            raise ValueError("the labels are not as they were written")
        self.known, self.targets, self.choices = met.known, met.targets, met.choices


@dataclass
class SignedLabels(Labels):
    """Two labels with one margin, which is positive for the second label, as in River and scikit-learn.

    The second label, the positive one, is `pos_label`. Without that it is `True`, 1 beside 0 or −1, or "true" beside
    "false"; of other labels the second one that comes, which `needs_positive` refuses, as a decision rests on it. A
    third label turns these into plain `Labels`, unless the model is for two.
    """

    known: tuple[Label | None, ...] = (None, None)
    pos_label: Label | None = None
    needs_positive: bool = False
    limited: bool = False  # whether the positive one is predicted only once the negative one is known
    grows: bool = True  # whether there may be a third label
    met: bool = False  # whether any label has been met
    only_named: bool = False  # whether the positive one comes from `pos_label`, and was not met yet
    n_exchanges: int = field(default=0, compare=False)  # how often the two exchanged their numbers

    def __post_init__(self) -> None:
        if self.pos_label is not None and self.positive is None:
            positive = check_label(self.pos_label)
            self.only_named = truth_of(positive) is None
            self.known = (not positive if isinstance(positive, bool) else None, positive)
        self._settle()

    @property
    def positive(self) -> Label | None:
        return self.known[1]

    def _settle(self) -> None:
        """Set `targets` and `choices` from the known labels."""
        there = [label for label in self.known if label is not None]
        met = self.known[: 1 if self.only_named else 2] if self.met else ()
        self.targets = {label: float(number) for number, label in enumerate(met) if label is not None}
        if len(there) == 2 and (self.met or not self.grows):
            said = self.known
        elif there and self.met:
            is_limited = self.limited and self.known[0] is None
            said = (None, None) if is_limited else (there[0], there[0])
        else:  # before anything is learned; of a model for two alone River expects False and True
            said = (None, None) if self.grows or self.pos_label is not None else (False, True)
        self.choices = (*said, None)

    def labels_many(self, margins: Floats, decided: NDArray[Any] | None = None) -> NDArray[Any]:
        numbers = (margins[:, 1] > 0.0).astype(np.intp) if decided is None else decided
        found: NDArray[Any] = label_array(self.choices[:2])[numbers]
        return found

    def probabilities(self, margins: Margins, calibrated: tuple[float, ...], n_learned: Any) -> dict[Any, Any]:
        first, second, _ = self.choices
        if first != second:
            return {first: 1.0 - calibrated[0], second: calibrated[0]}
        only = next((label for label in self.known if label is not None and self.met), None)
        return {} if only is None else of_only(only, n_learned)

    def probabilities_many(
        self, margins: Floats, calibrated: Floats, n_learned: Any
    ) -> tuple[tuple[Label | None, ...], Floats]:
        if self.choices[0] != self.choices[1]:
            return self.choices[:2], of_classes(margins, calibrated)
        return for_each(self.probabilities(margins, (), n_learned), len(margins))

    def get_state(self) -> Any:
        negative, positive = map(pack, self.known)
        return {"negative": negative, "positive": positive, "met": self.met, "only_named": self.only_named}

    def set_state(self, state: Any) -> None:
        negative, positive, met = unpack(state["negative"]), unpack(state["positive"]), state["met"]
        there = [check_label(label) for label in (negative, positive) if label is not None]
        if len(set(there)) < len(there) or type(met) is not bool or met > len(there):
            raise ValueError(f"the labels cannot be {negative!r} and {positive!r}")
        if self.pos_label is not None and positive != written_like(self.pos_label, positive):
            raise ValueError(f"the positive label is {positive!r}, not {self.positive!r}")
        only_named = state["only_named"]
        if type(only_named) is not bool or only_named > (self.pos_label is not None):
            raise ValueError("the positive label was named by nobody")
        self.known, self.met, self.only_named = (negative, positive), met, only_named
        self._settle()

    def with_labels(self, y: Any) -> Labels:
        """Labels that know those in `y` too; the two may exchange their numbers.

        Raises
        ------
        TypeError
            If one is no bool, int or str.
        PositiveLabelError
            If `needs_positive`, and nothing says which is the positive one.
        ThirdLabelError
            If one is a third label, and the model is for two.
        """
        given = [check_label(label) for label in distinct(y)]
        new = copy.copy(self)
        for label in given:
            if label not in new.targets and not new._meet(label):
                if not self.grows:
                    raise ThirdLabelError(label, *new.known)
                return Labels().with_labels([*new.targets, *given])
        return new

    def _meet(self, label: Label) -> bool:
        """Take in a label unless it is a third one; whether it was taken in."""
        negative, positive = self.known
        is_given = self.pos_label is not None and not self.met
        if is_given and not (isinstance(self.pos_label, bool) and truth_of(label) is None and label != -1):
            positive = written_like(self.pos_label, label)  # type: ignore[arg-type]
            negative = not positive if isinstance(positive, bool) else None
        if label == positive:
            self.only_named = False
        elif label != negative:
            if negative is not None and positive is not None:
                return False
            if isinstance(label, bool) and not self.met and positive is None:
                negative, positive = False, True
            elif positive is not None:
                negative = label
                # A 1 met first was taken to be the positive label, which holds only beside 0 and −1; "true" likewise.
                if self.pos_label is None and not are_clear((positive, label)):
                    negative, positive = positive, label
                    self.n_exchanges += 1
            elif negative is None and (label == 1 or label in [true for _, true in TRUTHS]):
                positive = label
            elif negative is None:
                negative = label
            else:
                positive = label
        there = [each for each in (negative, positive) if each is not None]
        if self.needs_positive and self.pos_label is None and not are_clear(there):
            raise PositiveLabelError(
                f"is label {label!r} the positive one? A threshold or a limit of false positives needs the positive "
                "label: say which it is by pos_label, on the command line --pos-label"
            )
        self.known, self.met = (negative, positive), True
        self._settle()
        return True


class ThirdLabelError(ValueError):
    """A third label came, where two are known.

    Attributes
    ----------
    label
        The third one.
    """

    def __init__(self, label: Label, negative: Label | None, positive: Label | None) -> None:
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


# After so many messages, the share of these that may have brought a new label. Of 300 messages of 251 classes in random
# order some 175 do, of 500 classes some 225.
MANY_MESSAGES, MOST_NEW = 300, 0.8


def told_of_labels(known: Labels, n_learned: int) -> bool:
    """Warn where most of many messages brought a label of their own, as no classes do; return whether it was."""
    n = len(known.classes)
    if n_learned < MANY_MESSAGES or n <= MOST_NEW * n_learned:
        return False
    some = ", ".join(repr(label)[:40] for label in known.classes[:5])
    warnings.warn(
        f"{n_learned:,} messages brought {n:,} labels, such as {some}: these look like numbers to be predicted, ids or "
        "texts, not like classes; is it the right field? Name that of the label, on the command line by --label-field",
        stacklevel=3,
    )
    return True


def unknown_label(label: Label | None, classes: Iterable[Label | None]) -> str:
    """The message of an error about a label that the model does not know."""
    known = ", ".join(repr(each) for each in classes if each is not None)
    return f"{label!r} is none of the model's classes, which are {known}"


def are_clear(labels: Iterable[Label | None]) -> bool:
    """Whether the labels themselves say which is the positive one."""
    there = set(labels)
    return there <= {0, 1} or there <= {-1, 1} or any(there <= {false, true} for false, true in TRUTHS)


FEW_LABELS = 16  # an array with no more is searched for each label in turn


def targets_many(known: Labels, y: Any) -> tuple[Labels, Floats]:
    """The labels with any new ones in `y`, and the target of each.

    Raises
    ------
    TypeError, ValueError
        As `with_labels` does.
    """
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biu" and len(y):
        numbers = range(int(y.min()), int(y.max()) + 1)
        if numbers.stop - numbers.start <= FEW_LABELS:  # which len() cannot say of a range beyond 2**63
            return targets_of_few(known, y, numbers)
    given = label_list(y)
    try:
        targets = targets_of(given, known.targets)
    except TypeError:  # some are not even hashable, which with_labels says of them by name
        targets = None
    if targets is not None:
        return known, targets
    new = known.with_labels(given)
    targets = targets_of(given, new.targets)
    assert targets is not None
    return new, targets


def targets_of_few(known: Labels, y: NDArray[Any], numbers: range) -> tuple[Labels, Floats]:
    """What `targets_many` gives for an array of few numbers, without a Python object for each example."""
    holds = {int(each.argmax()): each for each in (y == number for number in numbers) if each.any()}
    firsts = sorted(holds)  # as they came
    known, of_each = targets_many(known, [y[first].item() for first in firsts])
    targets = np.zeros(len(y))
    for first, target in zip(firsts, of_each, strict=True):
        targets = np.where(holds[first], target, targets)
    return known, targets


def n_of_two(known: Labels, y: list[Any]) -> int:
    """How many labels come before the first third one; `y` must have one."""
    for label in distinct(y):
        known = known.with_labels([label])
        if not isinstance(known, SignedLabels):
            return y.index(label)
    return len(y)


def are_exchanged(before: Labels, after: Labels) -> bool:
    """Whether two labels have exchanged their numbers, so that their classes in the learner must follow."""
    both = isinstance(before, SignedLabels) and isinstance(after, SignedLabels)
    return both and (after.n_exchanges - before.n_exchanges) % 2 == 1  # type: ignore[attr-defined]


def largest(numbers: Floats) -> NDArray[np.intp]:
    """The place of the largest number in each row; −1 where all are −inf."""
    if not numbers.shape[1]:
        return np.full(len(numbers), -1)
    best = numbers.argmax(axis=1)
    return np.where(numbers[np.arange(len(numbers)), best] > -np.inf, best, -1)


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
    """The labels as an array that holds them as they are: texts as objects, as otherwise each took as much room as the
    longest one.
    """
    if any(isinstance(label, str) for label in labels):
        return np.array(labels, object)
    array = np.array(labels)
    # No dtype of NumPy's holds these as they are; float64, for one, rounds large integers.
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
