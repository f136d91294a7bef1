"""The labels of a model, their numbers, and the positive one of two labels."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import compress, takewhile
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT, check_number
from stream_pegasos.common.display import quoted
from stream_pegasos.common.errors import must_be
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.common.state import State
from stream_pegasos.engine import Learner, probabilities_many, probabilities_one, target_array
from stream_pegasos.engine.pure.driver import LARGEST_LOG_ODDS, PLAIN, Margins
from stream_pegasos.learners.explanations import Columns, first_against_second
from stream_pegasos.learners.label_policy import Label, LabelPolicy, check_label, label_list, written_like
from stream_pegasos.learners.label_typos import label_shape
from stream_pegasos.learners.predictions import Predictions, RawScores, largest, settled
from stream_pegasos.learners.probabilities import (
    Floats,
    NumberLearned,
    bounded_by_laplace,
    fill_single_class,
    for_each,
    know_two,
    laplace_single_class,
    probabilities_with_labels,
)

LabelColumn = Sequence[Any] | NDArray[Any]  # the labels of examples


@dataclass
class Labels:
    """The labels of a model, numbered in order of arrival. The label with the largest margin is predicted.

    One of two labels is the positive one: a single score above 0 stands for it. It is `pos_label`; or `True`, 1 beside
    0 or −1, "true" beside "false"; or else the second label. With `needs_positive` the second label is not enough,
    because a decision depends on it.
    """

    takes_targets: ClassVar[bool] = True  # whether an example has one label, whose number is its target
    has_intercepts: ClassVar[bool] = True  # whether a margin has an intercept of its own

    known: tuple[Label, ...] = ()
    pos_label: Label | None = None  # the positive label, if named or clear from the labels
    needs_positive: bool = False
    by_label: bool = False  # whether each of two classes has its own score
    most: int | None = None  # the largest number of labels
    names_opposite: bool = True  # whether a truth value as the first label makes its opposite known
    # The number of examples of a truth value before any other label, infinite until another comes. If it is counted, no
    # probability before is surer than by Laplace's rule.
    n_alone: float = 0.0
    counts_alone: bool = False
    positive: int = field(init=False)  # number of the positive class, or of the next class if it has not come
    # The negative and the positive label if an example has a single score, `None` for a label that has not come; else
    # empty.
    pair: tuple[Label | None, ...] = field(init=False)
    targets: dict[Any, float] = field(init=False)  # the number of each label
    choices: tuple[Label | None, ...] = field(init=False)  # the prediction for each number, the last for −1

    def __post_init__(self) -> None:
        if self.pos_label is not None:
            self.pos_label = check_label(self.pos_label)
        self.targets = {label: float(number) for number, label in enumerate(self.known)}
        self.positive = LabelPolicy(self.known[:2], pos_label=self.pos_label).positive(self.targets)
        self.pair = self._find_pair()
        # River expects False of an untrained binary model.
        nothing = False if self.most == 2 and self.pos_label is None and not self.known else None
        self.choices = (*self.known, nothing)

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.known

    def _find_pair(self) -> tuple[Label | None, ...]:
        if self.by_label or len(self.known) > 2 or (len(self.known) == 2 and self.positive > 1):
            return ()
        pair = [*self.known, None, None][:2]
        return (pair[1], pair[0]) if self.positive == 0 else (pair[0], pair[1])

    @property
    def is_new(self) -> bool:
        return not self.known

    # Labels of examples.

    def find_target(self, y: object) -> float | None:
        """The number of a known label."""
        return self.targets.get(y) if type(y) in PLAIN else None

    def label_from_target(self, number: float) -> Label:
        return self.known[int(number)]

    def read_column(self, y: object) -> LabelColumn:
        """The labels of examples as a list, or as a plain array; a masked array would hide its missing labels."""
        return y if isinstance(y, list) or (type(y) is np.ndarray and y.ndim == 1) else label_list(y)

    def count_distinct(self, y: LabelColumn) -> int:
        """The number of distinct labels; 0 if some are not hashable, and will be refused."""
        if isinstance(y, np.ndarray) and y.dtype.kind == "i" and y.ndim == 1 and len(y):
            low = int(y.min())
            if int(y.max()) - low < len(y):  # counted without a Python object for each label
                return int(np.count_nonzero(np.bincount(y.astype(np.int64) - low)))
        with suppress(TypeError, ValueError):
            return len({*label_list(y)})
        return 0

    def check_column(self, y: LabelColumn, teaches: Sequence[bool] | None = None) -> None:
        """Raise a TypeError or a ValueError if the labels cannot be learned; those that do not teach must be labels."""
        self.number(y, teaches)

    def number(self, y: LabelColumn, teaches: Sequence[bool] | None = None) -> tuple[Self, Floats]:
        """The labels with any new ones, and the target of each example. Examples that do not teach add no label."""
        if teaches is None:
            return self._number_list(y) if type(y) is list else targets_many(self, y)
        values = label_list(y)
        for label in distinct(values):
            self.check_label(label)
        stand_in = next(iter([*self.targets, *compress(values, teaches)]), None)
        if stand_in is None:
            return self, np.zeros(len(values))
        return targets_many(self, [label if of else stand_in for label, of in zip(values, teaches, strict=True)])

    def _number_list(self, y: list[Any]) -> tuple[Self, Floats]:
        labels = self
        try:
            targets = target_array(y, self.targets)
        except (TypeError, ValueError):  # some are not hashable; add_labels names them in its error
            targets = None
        if targets is None:
            labels = self.add_labels(y)
            targets = target_array(y, labels.targets)
        if targets is None:  # some have another type, such as an Enum
            targets = target_array([*map(check_label, y)], labels.targets)
            assert targets is not None
        return labels, targets

    def check_label(self, label: object) -> None:
        check_label(label)

    def count_alike(self, y: list[Any]) -> int:
        """The number of first examples that can be predicted and learned in one call; 0 if the first one must be alone.
        `None` is the label of an example that is only predicted.

        While a single class is known, its probability depends on the number of examples, and a shared margin says
        nothing. With a third class the single score of two classes ends, so that only a first example may bring it.
        """
        begins = None in self.pair or not self.has_two
        if not begins and (not self.pair or len(y) == 1):
            return len(y)
        known_labels = {*map(typed_label, [*self.classes, None])}
        with suppress(TypeError):  # from lists, which are no labels
            if known_labels.issuperset(zip(map(type, y), y, strict=True)):
                return len(y)
        n = sum(1 for _ in takewhile(lambda label: typed_label(label) in known_labels, y))
        return n if begins else n or len(y)

    @property
    def poles(self) -> tuple[Label | None, ...]:
        """The labels that the negative and the positive weights support, if all share one weight."""
        return self.pair

    def add_targets(self, labels: Self, targets: Floats) -> Self:
        """These labels, with those of some targets among `labels`, which continued from them."""
        return self.add_labels([labels.label_from_target(target) for target in targets.tolist()])

    def prepare(self, learner: Learner, before: Labels) -> None:
        """Tell a learner what it must know of the labels before it learns their targets. `before` has those that have
        come.
        """
        learner.n_known = min(len(before.known), 2)
        if not before.known:
            learner.names_opposite = len(before.add_labels(self.known[:1]).known) > 1

    def settled(self) -> Self:
        """The labels without what only the call that learned them needed."""
        return self

    @property
    def has_two(self) -> bool:
        return len(self.known) > 1

    def begin_alone(self, targets: Iterable[float], n_before: int) -> Self:
        """The labels, with a note of when a label other than the first truth value came among learned examples."""
        n = next((n for n, target in enumerate(targets) if target), None)
        return self if n is None else replace(self, n_alone=float(n_before + n))

    def add_labels(self, y: Sequence[Any]) -> Self:
        """The labels, with the new labels in `y` added."""
        new_labels, distinct_labels = self, [*dict.fromkeys(map(check_label, distinct(y)))]
        for label in distinct_labels:
            if (
                new_labels.most is None and len(new_labels.known) > 1
            ):  # only the first two labels change more than `known`
                return new_labels._extend(distinct_labels)
            if label not in new_labels.targets:
                new_labels = new_labels._with(label)
        return new_labels

    def _extend(self, distinct_labels: Iterable[Label]) -> Self:
        """The labels with the new ones among these, beyond the first two, so that only the positive one may change."""
        targets = dict(self.targets)
        for label in distinct_labels:
            targets.setdefault(label, float(len(targets)))
        if len(targets) == len(self.known):
            return self
        extended = copy.copy(self)
        extended.known, extended.targets, extended.pair = (*targets,), targets, ()
        extended.choices = (*targets, self.choices[-1])
        if self.positive >= len(self.known):
            extended.positive = LabelPolicy(extended.known[:2], pos_label=self.pos_label).positive(targets)
        return extended

    def _with(self, label: Label) -> Self:
        names_opposite = isinstance(label, bool) and self.names_opposite and not self.known and not self.by_label
        new_labels = replace(self, known=(*self.known, label, *([not label] if names_opposite else [])))
        new_labels.n_alone = math.inf if names_opposite and self.counts_alone else self.n_alone
        if (
            self.most is not None
            and len(new_labels.known) + (new_labels.positive == len(new_labels.known) > 1) > self.most
        ):
            raise ThirdLabelError(label, *[*self.known, self.pos_label][:2])
        if self.needs_positive and self.pos_label is None and not LabelPolicy(new_labels.known).shows_positive:
            raise PositiveLabelError(
                f"is label {quoted(label)} the positive one? A threshold or a limit of false positives needs the "
                "positive label: say which it is by pos_label, on the command line --pos-label"
            )
        is_settled = len(new_labels.known) == 2 and new_labels.pair
        return (
            replace(new_labels, pos_label=new_labels.pair[1]) if is_settled else new_labels
        )  # another class does not change this

    def joined(self, other_labels: Sequence[Labels]) -> Self:
        """The labels of this model and of all models that continued from it."""
        all_labels: list[Labels] = [self, *other_labels]
        named = next((labels.pos_label for labels in all_labels if labels.pos_label is not None), None)
        known_labels = [
            label for labels in all_labels for label in labels.known
        ]  # with the opposite, unless a model forgot it
        new_labels = replace(self, pos_label=named, names_opposite=False).add_labels(known_labels)
        n_alone = math.inf if all(labels.n_alone == math.inf for labels in all_labels) else 0.0
        return replace(new_labels, n_alone=n_alone, names_opposite=all(labels.names_opposite for labels in all_labels))

    def without(self, label: Label) -> Self:
        """The labels without this one. The later labels get the next lower number."""
        remaining = tuple(other for other in self.known if other != label)
        return replace(self, known=remaining, n_alone=0.0, names_opposite=False)

    def label(self, margins: Margins) -> Any:
        return self.choices[np.argmax(margins) if len(margins) else -1]

    def labels_many(self, margins: Floats, decided: NDArray[Any] | None = None) -> NDArray[Any]:
        """The predicted labels: by the numbers in `decided` or, without these, by the largest margins."""
        numbers = largest(margins) if decided is None else decided
        choices = self.choices[:-1] if self.known and (numbers >= 0).all() else self.choices
        labels: NDArray[Any] = label_array(choices)[numbers]
        return labels

    def probabilities(
        self, margins: Margins, calibrated: tuple[float, ...], n_learned: NumberLearned
    ) -> dict[Any, Any]:
        if len(self.known) < 2:
            return probabilities_with_labels(self._few_probabilities(n_learned))
        result = probabilities_one(margins, calibrated)
        if self.n_alone == math.inf and len(self.known) == 2:
            result = bounded_by_laplace(np.array([result]), n_learned)[0].tolist()
        # Another thread may have met a class that has no column yet.
        return dict(zip(self.known, result, strict=False))

    def probabilities_many(
        self, margins: Floats, calibrated: Floats, n_learned: NumberLearned
    ) -> tuple[tuple[Label | None, ...], Floats]:
        """The labels, and the probabilities of each example. Newer labels share the rest that was left for others."""
        if len(self.known) < 2:
            return for_each(self._few_probabilities(n_learned), len(margins))
        result = fill_single_class(probabilities_many(margins, calibrated), margins, n_learned)
        if self.n_alone:
            n_learned = np.broadcast_to(n_learned, len(result))[:, np.newaxis]
            is_bounded = (n_learned <= self.n_alone) & np.isfinite(margins)
            result = np.where(is_bounded, bounded_by_laplace(result, n_learned), result)
        return self.known[: margins.shape[1]], result

    def _few_probabilities(self, n_learned: NumberLearned) -> dict[Any, Any]:
        """The probabilities while fewer than two labels are known. River expects the one of `True` from a
        binary model.
        """
        if not self.known:
            return {} if self.choices[-1] is None else {False: 0.5, True: 0.5}
        (only,) = self.known
        if self.most == 2 and self.pos_label is None and only == 0:
            return laplace_single_class(only, n_learned, 1)
        other = None if self.pos_label is None or not self.positive else written_like(self.pos_label, only)
        return laplace_single_class(only, n_learned, other)

    def scores_many(self, margins: Floats) -> Floats:
        """With two classes, half the difference between the positive margin and the other; else the margin of each
        class.
        """
        if not self.pair:
            return margins
        pair_margins = margins
        if not know_two(margins):
            pair_margins = np.full((len(margins), 2), -np.inf)
            pair_margins[:, : margins.shape[1]] = margins
            pair_margins = np.where(
                np.isfinite(pair_margins), pair_margins, -pair_margins[:, ::-1]
            )  # the margin of a class that has not come mirrors the other
            pair_margins[np.isinf(pair_margins)] = 0.0
        positive = min(self.positive, 1)
        scores: Floats = (pair_margins[:, positive] - pair_margins[:, 1 - positive]) / 2.0
        return scores

    def score(self, margins: Margins) -> float | dict[Label, float]:
        """The result of `scores_many` for one example; a dict by label if each class has a score."""
        if not self.pair:
            return dict(zip(self.known, map(float, margins), strict=False))
        lead = (margins[1] - margins[0]) / 2.0 if len(margins) == 2 else -margins[0] if len(margins) else 0.0
        return float(lead) if self.positive else 0.0 - float(lead)

    def positive_margins(self, predictions: Predictions) -> tuple[tuple[Label | None, ...], Floats]:
        """The negative and the positive of two labels as they are now, and the margins of the positive one in earlier
        predictions; none if there are more labels.
        """
        if not self.pair or not predictions.pair:
            return (), np.zeros(0)
        (negative, positive), margins = predictions.class_margins
        is_exchanged = (negative is not None and negative == self.pair[1]) or (
            positive is not None and positive == self.pair[0]
        )
        return self.pair, margins[:, 0 if is_exchanged else 1]

    def foreign_predictions(self, labels: NDArray[Any], probabilities: Floats) -> Predictions:
        """The predictions of another model: its labels, and a column of probabilities for each class, NaN if it has
        none. Two classes have one score: the log-odds of the positive one, or else 1 or −1 by the label.
        """
        scores = probabilities
        if self.pair and self.positive >= len(self.known):
            scores = np.zeros(len(labels))
        elif self.pair:
            p = probabilities[:, self.positive]
            with np.errstate(divide="ignore"):
                log_odds = np.log(p / (1.0 - p)).clip(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
            scores = np.where(np.isnan(p), np.where(labels == self.pair[1], 1.0, -1.0), log_odds)
        return settled(scores, labels, (self.classes, probabilities), pair=self.pair)

    def make_predictions(self, raw: RawScores, n_learned: NumberLearned, limited: Mapping[Label, float]) -> Predictions:
        return Predictions(
            self.scores_many(raw.margins),
            lambda: self.labels_many(raw.margins, raw.decided),
            lambda: self.probabilities_many(raw.margins, raw.calibrated, n_learned),
            limited,
            self.pair,
            self.show_sets(raw.members, raw.margins),
        )

    # Numbers of classes as the user sees them.

    def show_weights(self, numbers: Floats) -> Floats:
        """Numbers of classes, a row each: for two classes in a pair, the number of the positive one."""
        return self.scores_many(numbers) + 0.0  # no −0

    def show_intercepts(self, intercepts: Floats) -> Any:
        (values,) = self.show_weights(intercepts[np.newaxis]).tolist()
        return dict(zip(self.classes, values, strict=False)) if isinstance(values, list) else values

    def show_sets(self, members: NDArray[np.bool_] | None, margins: Floats) -> NDArray[np.bool_] | None:
        """Whether each class, in the order of scores, is in the set of each example."""
        return members

    def label_columns(self, label: Label, against: Label | None, n_columns: int) -> Columns:
        """The columns, of those that a learner has, whose sum is the margin of a label, each with its factor; with
        `against`, the margin over that of another one. Two classes have one margin for both.
        """
        for option, of in (("label", label), ("against", against)):
            if of is not None and of not in self.known:
                raise ValueError(must_be(option, f"one of the classes {self.classes}", of))
        if against == label:
            raise ValueError(must_be("against", "another label", against))
        number = int(self.targets[label])
        if self.pair and n_columns == 2:
            return pair_columns(number)
        return [(number, 1.0), *([] if against is None else [(int(self.targets[against]), -1.0)])]

    def predicted_columns(self, n_columns: int, margins: Margins, predicted: Label | None) -> Columns:
        """The columns, as for `label_columns`, whose sum explains a prediction."""
        if self.pair and n_columns == 2:
            return pair_columns(min(self.positive, 1))
        if self.pair and self.classes:  # the other class was forgotten
            return [(0, 1.0 if self.positive == 0 else -1.0)]
        return [] if predicted is None else first_against_second(margins, int(self.targets[predicted]))

    def get_state(self) -> Any:
        state = {"known": [pack(label) for label in self.known], "positive": pack(self.pos_label)}
        return state | ({"n_alone": None if self.n_alone == math.inf else self.n_alone} if self.n_alone else {})

    def restore(self, state: Mapping[str, Any], learner_state: State, learner: Learner) -> int:
        """Restore from a file, and give a learner the columns that its state needs. Return their number."""
        has_columns = learner.has_columns_in(learner_state)
        if has_columns:
            learner.grow()
            self.names_opposite = False
        self.set_state(state)
        if len(self.known) > 2 and not has_columns:
            raise ValueError("more than two classes cannot share a column")
        return len(self.known) if has_columns else 1

    def set_state(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state["known"], list):
            raise ValueError("the labels must be a list")
        labels, named = [unpack(label) for label in state["known"]], unpack(state["positive"])
        new_labels = replace(self, needs_positive=False, names_opposite=False).add_labels(labels)
        if list(new_labels.known) != labels:
            raise ValueError("the labels must be as they were saved")
        if named is not None:
            if self.pos_label is not None and written_like(self.pos_label, named) != named:
                raise ValueError(must_be("the positive label", repr(self.pos_label), named))
            new_labels = replace(new_labels, pos_label=named)
        n_alone = state.get("n_alone", 0.0)
        if n_alone is None:
            n_alone = math.inf
        else:
            check_number("n_alone", n_alone, 0.0, LARGEST_COUNT)
        new_labels = replace(
            new_labels, needs_positive=self.needs_positive, names_opposite=self.names_opposite, n_alone=float(n_alone)
        )
        self.__dict__.update(new_labels.__dict__)


class ThirdLabelError(ValueError):
    """A third label came for a model of two labels."""

    def __init__(self, label: Label, negative: Label | None, positive: Label | None) -> None:
        super().__init__(label, negative, positive)
        self.label = label

    def __str__(self) -> str:
        label, negative, positive = self.args
        return (
            f"label {quoted(label)} is a third one beside {quoted(negative)} and {quoted(positive)}, and this model is "
            "for two; AdaptiveClassifier and PegasosClassifier take any number"
        )


class PositiveLabelError(ValueError):
    """A decision needs the positive label, but it is unknown."""


# The number of messages after which a warning is possible, and the share of them that may have a new label. Of 300
# messages of 251 classes in random order, about 175 have one; of 500 classes, about 225.
MANY_MESSAGES, MOST_NEW = 300, 0.8


def told_of_labels(labels: Labels, n_learned: int) -> bool:
    """Warn if most of many messages have a label of their own, unlike classes. Return whether there was a warning."""
    n = len(labels.known)
    if n_learned < MANY_MESSAGES or n <= MOST_NEW * n_learned:
        return False
    shown = ", ".join(quoted(label)[:40] for label in labels.known[:5])
    warnings.warn(
        f"{n_learned:,} messages brought {n:,} labels, such as {shown}: these look like numbers to be predicted, "
        "ids or texts, not like classes; is it the right field? Name that of the label, on the command line by "
        "--label-field",
        stacklevel=3,
    )
    return True


def tell_of_look_alikes(labels: Labels, before: Labels) -> None:
    """Warn of each new label that differs from a known one only by case, white space and invisible characters."""
    shapes = {label_shape(label): label for label in reversed(before.known) if isinstance(label, str)}
    for label in labels.known[len(before.known) :]:
        alike = shapes.setdefault(label_shape(label), label) if isinstance(label, str) else label
        if alike != label:
            warnings.warn(
                f"label {quoted(label)} is new, and looks like {quoted(alike)}; if it is that one, correct the stream "
                "and remove the new label by forget_class",
                stacklevel=4,
            )


@dataclass(frozen=True)
class LabelParameters:
    """The options of an estimator that name labels."""

    class_weight: object = None
    pos_label: Label | None = None
    threshold: object = None
    max_false_positive_rate: object = None


def unmet_labels(options: LabelParameters, labels: Labels) -> dict[Label, str]:
    """The labels in options of an estimator that have not come, each with its option."""
    unmet: dict[Label, str] = {}
    for option in ("class_weight", "threshold", "max_false_positive_rate"):
        label_options = vars(options)[option]
        if isinstance(label_options, Mapping):  # a label of weight 0 never comes
            unmet |= {
                label: option for label, number in label_options.items() if number and label not in labels.targets
            }
    if options.pos_label is not None and labels.positive >= len(labels.known):
        unmet[options.pos_label] = "pos_label"
    return unmet


def unknown_label(label: Label | None, classes: Iterable[Label | None]) -> str:
    shown = ", ".join(quoted(single) for single in classes if single is not None)
    return f"unknown label {quoted(label)}; known labels: {shown}"


L = TypeVar("L", bound=Labels)

FEW_LABELS = 16  # an array with at most this many labels is searched for each of them


def targets_many(labels: L, y: object) -> tuple[L, Floats]:
    """The labels with any new ones in `y`, and the target of each example."""
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biu" and len(y):
        numbers = range(int(y.min()), int(y.max()) + 1)
        if numbers.stop - numbers.start <= FEW_LABELS:  # len() fails for a range beyond 2**63
            return targets_of_few(labels, y, numbers)
    return labels._number_list(label_list(y))


def targets_of_few(labels: L, y: NDArray[Any], numbers: range) -> tuple[L, Floats]:
    """The result of `targets_many` for an array with few numbers, without a Python object for each example."""
    holds = {int(is_label.argmax()): is_label for is_label in (y == number for number in numbers) if is_label.any()}
    firsts = sorted(holds)  # in order of arrival
    labels, first_targets = targets_many(labels, [y[first].item() for first in firsts])
    targets = np.zeros(len(y))
    for first, target in zip(firsts, first_targets, strict=True):
        targets = np.where(holds[first], target, targets)
    return labels, targets


def pair_columns(number: int) -> Columns:
    """The columns whose sum is the single margin of two classes, on the side of the one with this number."""
    return [(number, 0.5), (1 - number, -0.5)]


def typed_label(y: object) -> tuple[type, Any] | None:
    """A label with its type, which distinguishes 1 from True, also for NumPy scalars and whole floats; `None` if it is
    no label.
    """
    if y is None:
        return type(None), None
    try:
        label = check_label(y)
    except (TypeError, ValueError):
        return None
    return type(label), label


def distinct(y: Sequence[Any]) -> Iterable[Any]:
    """Each label once; all labels if some have other types, for `check_label` to examine."""
    return dict.fromkeys(y) if PLAIN.issuperset(map(type, y)) else y


def label_array(labels: Sequence[Label | None]) -> NDArray[Any]:
    """The labels as an array without conversion. Texts are objects; otherwise each would take the room of the
    longest.
    """
    if any(isinstance(label, str) for label in labels):
        return np.array(labels, object)
    array = np.array(labels)
    # No NumPy dtype holds these labels unchanged; float64, for example, rounds large integers.
    if array.tolist() != list(labels) or [*map(type, array.tolist())] != [*map(type, labels)]:
        return np.array(labels, object)
    return array
