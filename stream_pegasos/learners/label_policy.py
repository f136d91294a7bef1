"""What a label is: the one policy of Python, readers, commands and services.

It needs no NumPy, so commands start fast.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

from stream_pegasos.common.cached import cached_property
from stream_pegasos.common.display import quoted
from stream_pegasos.common.errors import must_be, shown_value, type_name
from stream_pegasos.learners.capabilities import CLASSES, LABELS, ORDERED

Label = bool | int | str
# A prediction: `None` before the first label; for several labels, whether each holds.
Prediction = Label | dict[Label, bool] | None
LONGEST_LABEL = 200  # characters of a new label from a stream or the service
LEAST_LABEL, LARGEST_LABEL = -(2**63), 2**63 - 1  # new integer labels from there
MOST_EXACT = 2**53 - 1  # the largest exact integer of a float: 2**53 + 1 also becomes 2**53

# The texts of false and true.
TRUTHS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))
_is_integer = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})").fullmatch
_is_whole_float = re.compile(
    r"([+-]?(?:0|[1-9][0-9]{0,15}))\.0+"
).fullmatch  # 1.0: pandas writes 1 like this beside a missing value
A_LABEL = "a label", "a bool, an int or a str"


@dataclass(frozen=True)
class Fault:
    """Why a value is no label here: what must be, and what came. Each face puts it into its own frame."""

    must: str
    came: str
    way_out: str = ""
    is_type: bool = False  # whether the value has another type
    is_size: bool = False  # whether the label is too long

    def __str__(self) -> str:
        return f"{self.must}, got {self.came}" + (f"; {self.way_out}" if self.way_out else "")

    @property
    def error(self) -> TypeError | ValueError:
        return TypeError(str(self)) if self.is_type else ValueError(str(self))


class LabelPolicy:
    """Decides what a label is. `read` is for values from outside, `check` for the labels that a program passes.

    What `read` makes of a value, alone or beside known labels:

    | value | alone | beside known labels |
    |---|---|---|
    | a text, as `"spam"` | itself, without blanks around it | the known text that equals it |
    | a text that reads as an integer, as `"8"`, `"+8"`, `"8.0"` | the `int` | that text if it is known, else the \
known label that reads the same; a new one is a text where all known integers are texts |
    | `"true"`, `"True"`, `"TRUE"`, and these of false | the text | that text if it is known, else the known label of \
the same truth value: of `bool`, 0 or 1, or a text; a new one is written as the known one of the other truth value |
    | a blank text, `None`, NaN | `None`: no label | no label |
    | an integer, as 8 or 8.0 | the `int` | the known number, else the known text that reads the same; a new one \
as above |
    | `True`, `False` | the `bool` | the known `bool` or number that equals it, else as `"true"` |

    If several known labels read the same and none of them equals the value, the first is meant. A new text has at most
    200 characters, a new integer at most 64 bits. Any other value is no label: `read` returns its `Fault`.

    The known labels are those of the model when a stream begins. So in a stream for a new model, `true` and `"true"`
    are two labels; only JSON and Parquet distinguish them. `check` reads no text: there 7 and `"7"` are two labels, of
    any length. NumPy scalars, members of an `Enum` that are texts or integers, and whole floats are the Python label
    that equals them, for both.

    Parameters
    ----------
    known : iterable of labels, default ()
        The known labels, in the order of their numbers; `None` among them is ignored.
    kind : str, default "classes"
        The kind of the model: an example has one label; an `"ordered"` label is an integer; or an example has
        `"several labels"`.
    pos_label : label or None, default None
        The positive label, if it is named.
    allowed : iterable of labels or None, default None
        The only labels that may be learned, `None` for any. They are written like the known labels; if none of these
        has a truth value, like the first label with one that comes.

    Examples
    --------
    >>> alone, texts = LabelPolicy(), LabelPolicy(["7", "8"])
    >>> alone.read("8"), texts.read("8"), texts.read(8), texts.read("9")
    (8, '8', '8', '9')
    >>> alone.read("true"), LabelPolicy([False, True]).read("true"), LabelPolicy(["false"]).read(True)
    ('true', True, 'true')
    >>> print(alone.read(0.5))
    label must be an integer below 2**53, got 0.5
    """

    def __init__(
        self,
        known: Iterable[Label | None] = (),
        kind: str = CLASSES,
        pos_label: Label | None = None,
        allowed: Iterable[Label] | None = None,
    ) -> None:
        self.known = tuple(label for label in known if label is not None)
        self.kind, self.pos_label = kind, pos_label
        self._allowed = None if allowed is None else tuple(allowed)
        self._first_truth: Label | None = None  # the first label with a truth value that came, if none was known

    # A value from outside.

    def read(self, value: object, longest: int = LONGEST_LABEL) -> Label | Fault | None:
        """The label that a text or another value means, `None` for no label, or why it is no label. A new label has at
        most `longest` characters.
        """
        label: Label | None
        if type(value) is str:
            label = self._read_beside(value) if self.known else label_of(value)
        else:
            plain = _plain(value, most=MOST_EXACT)
            if plain is None or isinstance(plain, Fault):
                return plain
            label = self._read_beside(plain) if self.known else label_of(plain) if isinstance(plain, str) else plain
        if isinstance(label, str):
            if len(label) > longest and not self.knows(label):
                return Fault(f"a label must have at most {longest:,} characters", f"{len(label):,}", is_size=True)
        elif label is not None and not LEAST_LABEL <= label <= LARGEST_LABEL and not self.knows(label):
            return Fault("an integer must have at most 64 bits", shown_value(label))
        return label

    def _read_beside(self, value: Label) -> Label | None:
        """The label that a plain value means beside known labels."""
        is_text = isinstance(value, str)
        equal = self._equal.get((is_text, value))
        if equal is None and isinstance(value, str):
            value = value.strip()
            equal = self._equal.get((True, value))
        if equal is not None:
            return equal
        if value == "":
            return None
        reading = common_value(value)
        if reading in self._alike:
            return self._alike[reading]
        if self._are_truths and truth(reading) is not None:
            return written_like(value, self._truth)
        if type(reading) is int and self._integers[0]:
            return value if is_text and not self._integers[1] else str(reading)
        return label_of(value) if isinstance(value, str) else value

    def read_number(self, text: str) -> Label | Fault | None:
        """`read` for formats whose labels are classes or else numbers to be predicted, which are no labels. There 1e3
        and 007 are integers, and `null` is no label.
        """
        try:
            number = float(text)
        except ValueError:
            return None if text == "null" else self.read(text)
        if not math.isfinite(number):
            return Fault("label must be a finite number", shown_value(text))
        if not (number.is_integer() or self.knows(text) or text in (self.allowed or ())):
            return Fault(
                "label must be a class, as an integer or a name",
                repr(text),
                "no numbers are predicted: name classes, as low and high, or list the labels",
            )
        is_exact = number.is_integer() and abs(number) <= MOST_EXACT
        return self.read(int(number) if is_exact and label_of(text) == text else text)

    def read_several(
        self, values: Iterable[Any], read: Callable[[Any], Label | Fault | None] | None = None
    ) -> tuple[Label, ...] | Fault:
        """The labels of one example, each once; `read_number` may read each."""
        labels: dict[Label, None] = {}
        for value in values:
            label = (read or self.read)(value)
            if isinstance(label, Fault):
                return label
            if label is None:
                return Fault("each label of a list must be written", "a blank one")
            labels[label] = None
        return tuple(labels)

    def read_example(self, value: object, longest: int = LONGEST_LABEL) -> Label | tuple[Label, ...] | Fault | None:
        """The label of an example or, if it may have several, the labels in a list."""
        if self.kind != LABELS:
            if isinstance(value, list):
                return Fault("it must be one label", "a list", "this model tells classes apart", is_type=True)
            return self.read(value, longest)
        if not isinstance(value, list):
            must = "it must be a list of the labels that hold, maybe an empty one"
            return Fault(must, shown_value(value), is_type=True)
        return self.read_several(value, lambda single: self.read(single, longest))

    # Known and allowed labels.

    def knows(self, label: Label) -> bool:
        return (isinstance(label, str), label) in self._equal

    def candidates(self, value: object, show: Callable[[Label], object] | None = None) -> list[Label]:
        """The known labels that a value may mean: those that are shown as it, or else the one that it reads as."""
        shown_alike = [] if show is None else [label for label in self.known if show(label) == value != label]
        if shown_alike:
            return [*shown_alike, *(label for label in self.known if label == value)]
        label = self.read(value)
        is_known = label is not None and not isinstance(label, Fault) and self.knows(label)
        return [label] if is_known else []  # type: ignore[list-item]

    @property
    def allowed(self) -> tuple[Label, ...] | None:
        """The labels that may be learned, as they are to be written; `None` for any."""
        return None if self._allowed is None else tuple(written_like(label, self._truth) for label in self._allowed)

    def refusal(self, label: Label, show: Callable[[Label], str] = quoted) -> Fault | None:
        """Why a label may not be learned; `None` if it may. All labels with a truth value must be written like the
        known one or the first one that is asked about.
        """
        if self._allowed is None:
            return None
        reading = common_value(label)
        is_allowed = any(common_value(single) == reading for single in self._allowed)
        if is_allowed and truth(label) is not None:
            like = label if self._truth is None else self._truth
            is_allowed = written_like(label, like) == label
            self._first_truth = like if is_allowed else self._first_truth
        if is_allowed:
            return None
        return Fault(f"label must be one of {', '.join(map(show, self.allowed or ()))}", show(label))

    @cached_property
    def _equal(self) -> dict[tuple[bool, object], Label]:
        return {(isinstance(label, str), label): label for label in self.known}

    @cached_property
    def _alike(self) -> dict[object, Label]:
        return {common_value(label): label for label in reversed(self.known)}

    @cached_property
    def _are_truths(self) -> bool:
        return all(truth(label) is not None for label in self.known)

    @cached_property
    def _known_truth(self) -> Label | None:
        return next((label for label in self.known if truth(label) is not None), None)

    @property
    def _truth(self) -> Label | None:
        return self._first_truth if self._known_truth is None else self._known_truth

    @cached_property
    def _integers(self) -> tuple[bool, bool]:
        """Whether all known integers are texts, and whether these are written plainly, as "8" and not as "8.0"."""
        integers = [label for label in self.known if type(common_value(label)) is int]
        are_texts = bool(integers) and all(isinstance(label, str) for label in integers)
        return are_texts, are_texts and all(label == str(common_value(label)) for label in integers)

    # The positive label.

    @property
    def shows_positive(self) -> bool:
        """Whether the known labels themselves show which one is positive."""
        labels = set(self.known)
        return labels <= {0, 1} or labels <= {-1, 1} or any(labels <= {false, true} for false, true in TRUTHS)

    def positive(self, numbers: Mapping[Any, float]) -> int:
        """The number of the positive label in `numbers`; that of the next label if it has not come."""
        n = len(numbers)
        if self.pos_label is not None:
            return int(min(numbers.get(label, n) for label in all_ways_of_writing(self.pos_label)))
        if LabelPolicy(self.known[:2]).shows_positive:
            return next((number for number, label in enumerate(self.known[:2]) if truth(label)), n)
        return 1

    # Labels that a program passes.

    def check(self, value: object) -> Label:
        """The label as a plain bool, int or str; a TypeError or ValueError if it is none."""
        label = _plain(value)
        if isinstance(label, Fault):
            raise label.error
        if label is None:
            raise Fault(f"{A_LABEL[0]} must be {A_LABEL[1]}", shown_value(value), is_type=True).error
        if self.kind == ORDERED and isinstance(label, str):
            expected = "an integer, such as 0 to 4 for one to five stars"
            raise TypeError(must_be("an ordered label", expected, value))
        return label

    def check_set(self, y: object) -> dict[Label, bool]:
        """Whether each label of an example holds, from a set, list or tuple of those that hold, or from a dict."""
        if isinstance(y, Mapping):
            return {self.check(label): _holds(label, value) for label, value in y.items()}
        y = y.tolist() if _is_numpy(y) else y  # type: ignore[attr-defined]
        if not isinstance(y, (set, frozenset, list, tuple)):
            raise TypeError(must_be("y", "a set or list of the labels that hold, or a dict of label to bool", y))
        labels = [self.check(label) for label in y]
        if isinstance(y, (set, frozenset)):  # sets have no order
            labels.sort(key=lambda label: (type(label).__name__, label))
        return dict.fromkeys(labels, True)

    def check_column(self, y: object) -> list[Any]:
        """The labels of examples as a list, or several labels of each, which are not checked yet."""
        if type(y) is list:
            return [*y]
        from stream_pegasos.common.checks import check_sequence
        from stream_pegasos.features.frames import check_column, column_names, frame_rows, is_frame, listed

        if self.kind != LABELS:
            expected = "a sequence of labels"
            values = y.tolist() if hasattr(y, "tolist") and not _is_time(y) else listed(y)
            check_column("y", values, "labels")
        else:
            expected = "a sequence with a set or list of labels for each example"
            if _is_numpy(y) and y.ndim > 1:  # type: ignore[attr-defined]
                raise TypeError(f"y must be {expected}, or a data frame, got a matrix")
            if is_frame(y):
                return frame_rows(y, column_names(y))
            check_sequence("y", y, "labels")
            values = listed(y)
        if not isinstance(values, Iterable):
            raise TypeError(must_be("y", expected, type_name(y)))
        return [*values]


def _is_numpy(value: object) -> bool:
    """Whether a value is an array or a scalar of NumPy."""
    return hasattr(value, "dtype") and any(kind.__module__ == "numpy" for kind in type(value).__mro__)


def _is_scalar(value: object) -> bool:
    return _is_numpy(value) and not hasattr(value, "__len__")


def _is_time(y: object) -> bool:
    """Whether a value is a NumPy time or duration, or an array of these; NumPy may convert them to integers."""
    return _is_numpy(y) and y.dtype.kind in "mM"  # type: ignore[attr-defined]


def _holds(label: object, value: object) -> bool:
    """Whether a label holds, from a truth value or a number that is 0 or 1."""
    if (isinstance(value, Number) or _is_scalar(value)) and bool(value) == value:
        return bool(value)
    raise TypeError(must_be(f"label {label!r} of an example", "True or False, or 1 or 0", value))


def _plain(value: object, most: float = math.inf) -> Label | Fault | None:
    """A value as a plain bool, int or str; `None` for `None` and, with a limit of exact floats, NaN."""
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        return value  # type: ignore[return-value]
    plain = value.item() if _is_scalar(value) and not _is_time(value) else value  # type: ignore[attr-defined]
    if isinstance(plain, float):
        if most < math.inf and math.isnan(plain):  # pandas writes a missing label as NaN
            return None
        if not math.isfinite(plain) or plain != int(plain) or abs(plain) > most:
            expected = A_LABEL if most == math.inf else ("label", "an integer below 2**53")
            return Fault(f"{expected[0]} must be {expected[1]}", shown_value(value))
        return int(plain)
    if plain is None or isinstance(plain, bool):
        return plain
    if isinstance(plain, (int, str)):  # also an Enum of one of these types
        return int(plain) if isinstance(plain, int) else str.__str__(plain)
    return Fault(f"{A_LABEL[0]} must be {A_LABEL[1]}", shown_value(value), is_type=True)


def label_of(text: str) -> Label | None:
    """The label that a text spells by itself; see `LabelPolicy`."""
    text = text.strip()
    if _is_integer(text):
        return int(text)
    whole = _is_whole_float(text) if "." in text else None
    return int(whole[1]) if whole is not None and abs(int(whole[1])) <= MOST_EXACT else text or None


def common_value(label: Label) -> Label | None:
    """The common value of labels that read the same: a text gives the integer or the truth value that it spells."""
    if isinstance(label, str):
        return next((bool(pair.index(label)) for pair in TRUTHS if label in pair), label_of(label))
    return label


def truth(label: Label | None) -> bool | None:
    """The truth value of a bool, of 0 or 1, or of the text of one of these; `None` for any other label."""
    if isinstance(label, int):
        return bool(label) if label in (0, 1) else None  # its text may be longer than Python writes
    text = str(label).lower()
    return None if text not in ("true", "1", "false", "0") else text in ("true", "1")


def all_ways_of_writing(label: Label) -> set[Label]:
    """The labels that can be meant by this one: itself and, for a truth value, all forms of `written_like`."""
    value = truth(label)
    return {label} if value is None else {label, value, *(pair[value] for pair in (*TRUTHS, ("0", "1")))}


def written_like(label: Label, other: Label | None) -> Label:
    """A label with a truth value, in the form of `other`: a bool, a number or a text; any other label unchanged."""
    value = truth(label)
    if value is None or isinstance(other, bool):
        return label if value is None else value
    if isinstance(other, int):
        return int(value)
    return next((pair[value] for pair in (*TRUTHS, ("0", "1")) if other in pair), label)


def labels_that_hold(y: Mapping[Any, bool] | Iterable[Any]) -> tuple[Any, ...]:
    """The labels that hold, from a tuple, list or set of them, or from a dict with `True` for each."""
    return tuple(label for label, holds in y.items() if holds) if isinstance(y, Mapping) else tuple(dict.fromkeys(y))


# The policies for labels that a program passes to a model of each kind.
ONE_LABEL, ORDERED_LABEL, LABEL_SET = (LabelPolicy(kind=kind) for kind in (CLASSES, ORDERED, LABELS))
check_label, label_list = ONE_LABEL.check, ONE_LABEL.check_column
