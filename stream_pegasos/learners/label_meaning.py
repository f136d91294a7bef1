"""The meaning of labels: as a text, a number or a truth value, alone and beside known labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from stream_pegasos.common.errors import must_be, type_name

Label = bool | int | str
# A prediction: `None` before the first label; for several labels, whether each holds.
Prediction = Label | dict[Label, bool] | None
LONGEST_LABEL = 200  # characters of a new label from a stream or the service
LEAST_TYPED = 3  # letters of labels that may be misspelt forms of each other

# The texts of false and true.
TRUTHS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))
_is_integer = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})").fullmatch
_is_whole_float = re.compile(
    r"([+-]?(?:0|[1-9][0-9]{0,15}))\.0+"
).fullmatch  # 1.0: pandas writes 1 like this beside a missing value
MOST_EXACT = 2**53 - 1  # the largest exact integer of a float: 2**53 + 1 also becomes 2**53


def label_of(text: str) -> Label | None:
    """The label that a text spells by itself; see `label_meant`."""
    text = text.strip()
    if _is_integer(text):
        return int(text)
    whole = _is_whole_float(text) if "." in text else None
    return int(whole[1]) if whole is not None and abs(int(whole[1])) <= MOST_EXACT else text or None


def label_meant(value: object, known_labels: Iterable[Label | None] = ()) -> Label | None:
    """The label that a value means, alone or beside known labels; `None` if it means none.

    | given | alone | beside known labels |
    |---|---|---|
    | a text, as `"spam"` | itself, without blanks around it | the known text that equals it |
    | a text that reads as an integer, as `"8"`, `"+8"`, `"8.0"` | the `int` | that text if it is known, else the \
known label that reads the same; a new one is a text where all known integers are texts |
    | `"true"`, `"True"`, `"TRUE"`, and these of false | the text | that text if it is known, else the known label of \
the same truth value: of `bool`, 0 or 1, or a text; a new one is written as the known one of the other truth value |
    | a blank text, `None` | `None` | `None` |
    | an integer, as 8 or 8.0 | the `int` | the known number, else the known text that reads the same; a new one \
as above |
    | `True`, `False` | the `bool` | the known `bool` or number that equals it, else as `"true"` |

    If several known labels read the same and none of them equals the value, the first is meant. Labels that a user
    lists, for example by --labels, are written like the known labels; if none of these has a truth value, like the
    first label with one that comes.

    The known labels are those of the model when a stream begins. So in a stream for a new model, `true` and `"true"`
    are two labels; only JSON and Parquet distinguish them. Labels that a program passes to an estimator are not read
    like this: there 7 and `"7"` are two labels, and a NumPy scalar is the Python label that equals it.

    Raises
    ------
    ValueError
        If the value is a float that is no integer below 2**53, or no label at all.

    Examples
    --------
    >>> label_meant("8"), label_meant("8", ["7", "8"]), label_meant(8, ["7", "8"]), label_meant("9", ["7", "8"])
    (8, '8', '8', '9')
    >>> label_meant("true"), label_meant("true", [False, True]), label_meant(True, ["false"])
    ('true', True, 'true')
    """
    return LabelsMeant(known_labels)(value) if known_labels else ALONE(value)


def look_alike(label: Label, known_labels: Iterable[Label | None]) -> Label | None:
    """The known label that differs from a text only by case, white space and invisible characters; `None` without one.

    Examples
    --------
    >>> look_alike("Spam ", ["ham", "spam"]), look_alike("spam", ["ham", "spam"]), look_alike("scam", ["spam"])
    ('spam', None, None)
    """
    texts = [text for text in known_labels if isinstance(text, str)]
    if not isinstance(label, str) or label in texts:
        return None
    shape = label_shape(label)
    return next((text for text in texts if label_shape(text) == shape), None)


def one_slip_away(label: Label, known_labels: Iterable[Label | None]) -> Label | None:
    """The known label that differs from a text by one typing error: a letter that is added, missing or wrong, or two
    that are swapped; `None` without one. Labels of fewer than three letters, and digits, never count as errors.

    Examples
    --------
    >>> one_slip_away("sapm", ["ham", "spam"]), one_slip_away("topic 2", ["topic 1"]), one_slip_away("no", ["on"])
    ('spam', None, None)
    """
    if not isinstance(label, str):
        return None
    typed = label_shape(label)
    return next((text for text in known_labels if isinstance(text, str) and _is_slip(typed, label_shape(text))), None)


def _is_slip(typed: str, known_text: str) -> bool:
    first, second = sorted((typed, known_text), key=len)
    if len(first) < LEAST_TYPED or first == second:
        return False
    same = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
    first, second = first[same:], second[same:]
    is_swap = first[:2] == second[1::-1] and first[2:] == second[2:]
    changed = first[:2] if is_swap else second[:1] if first == second[1:] else first[:1] + second[:1]
    return (is_swap or first == second[1:] or first[1:] == second[1:]) and not any(map(str.isdigit, changed))


def label_shape(text: str) -> str:
    """A text in lower case, without white space and invisible characters."""
    if text.isascii() and text.isprintable():
        return text.replace(" ", "").lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf"))


def known_label(value: object, known_labels: Iterable[Label | None]) -> Label | None:
    label_reader = LabelsMeant(known_labels)
    label = label_reader(value)
    return label if label is not None and label_reader.knows(label) else None


class LabelsMeant:
    """`label_meant` beside a fixed set of known labels. Only `listed` labels are accepted, `None` for any."""

    def __init__(self, known_labels: Iterable[Label | None] = (), listed: Iterable[Label] | None = None) -> None:
        labels = [label for label in known_labels if label is not None]
        self._equal = {(isinstance(label, str), label): label for label in labels}
        self._alike = {_reading(label): label for label in reversed(labels)}
        self._are_truths = all(read_truth(label) is not None for label in labels)
        self._truth = next((label for label in labels if read_truth(label) is not None), None)
        self._listed = None if listed is None else tuple(listed)
        integers = [label for label in labels if type(_reading(label)) is int]
        self._has_texts = bool(integers) and all(isinstance(label, str) for label in integers)
        self._has_plain_texts = self._has_texts and all(label == str(_reading(label)) for label in integers)

    def knows(self, label: Label) -> bool:
        return (isinstance(label, str), label) in self._equal

    def too_long(self, label: Label | None, most: int = LONGEST_LABEL) -> str | None:
        """The fault of a new label that is too long; `None` if there is none."""
        if not isinstance(label, str) or len(label) <= most or self.knows(label):
            return None
        return f"a label must have at most {most:,} characters, got {len(label):,}"

    @property
    def listed(self) -> tuple[Label, ...] | None:
        """The accepted labels, as they are to be written; `None` for any."""
        return None if self._listed is None else tuple(written_like(label, self._truth) for label in self._listed)

    def not_taken(self, label: Label, show: Callable[[Label], str] = repr) -> str | None:
        """The fault of a label that is not listed; `None` if it is accepted."""
        if self.takes(label):
            return None
        return f"label must be one of {', '.join(map(show, self.listed or ()))}, got {show(label)}"

    def takes(self, label: Label) -> bool:
        """Whether a label is accepted. All labels with a truth value are written like the known one or the first one
        checked.
        """
        if self._listed is None:
            return True
        if not any(_reading(listed_label) == _reading(label) for listed_label in self._listed):
            return False
        if read_truth(label) is not None:
            like = label if self._truth is None else self._truth
            if written_like(label, like) != label:
                return False
            self._truth = like
        return True

    def __call__(self, value: object) -> Label | None:
        if not self._equal and isinstance(value, str):
            return label_of(value)
        if isinstance(value, float):
            if not value.is_integer() or abs(value) > MOST_EXACT:
                raise ValueError(must_be("label", "an integer below 2**53", value))
            value = int(value)
        if value is None:
            return None
        if not isinstance(value, (bool, int, str)):
            raise ValueError(must_be("a label", "a bool, an int or a str", type_name(value)))
        if not self._equal:
            return value
        is_text = isinstance(value, str)
        equal = self._equal.get((is_text, value))
        if equal is None and isinstance(value, str):
            value = value.strip()
            equal = self._equal.get((True, value))
        if equal is not None:
            return equal
        if value == "":
            return None
        reading = _reading(value)
        if reading in self._alike:
            return self._alike[reading]
        if self._are_truths and read_truth(reading) is not None:
            return written_like(value, self._truth)
        if type(reading) is int and self._has_texts:
            return value if is_text and not self._has_plain_texts else str(reading)
        return label_of(value) if isinstance(value, str) else value


ALONE = LabelsMeant()


def _reading(label: Label) -> Label | None:
    """The common value of labels that read the same: a text gives the integer or the truth value that it spells."""
    if isinstance(label, str):
        return next((bool(pair.index(label)) for pair in TRUTHS if label in pair), label_of(label))
    return label


def read_truth(label: Label | None) -> bool | None:
    """The truth value of a bool, of 0 or 1, or of the text of one of these; `None` for any other label."""
    if isinstance(label, int):
        return bool(label) if label in (0, 1) else None  # its text may be longer than Python writes
    text = str(label).lower()
    return None if text not in ("true", "1", "false", "0") else text in ("true", "1")


def all_ways_of_writing(label: Label) -> set[Label]:
    """The labels that can be meant by this one: itself and, for a truth value, all forms of `written_like`."""
    truth = read_truth(label)
    return {label} if truth is None else {label, truth, *(pair[truth] for pair in (*TRUTHS, ("0", "1")))}


def written_like(label: Label, other: Label | None) -> Label:
    """A label with a truth value, in the form of `other`: a bool, a number or a text; any other label unchanged."""
    truth = read_truth(label)
    if truth is None or isinstance(other, bool):
        return label if truth is None else truth
    if isinstance(other, int):
        return int(truth)
    return next((pair[truth] for pair in (*TRUTHS, ("0", "1")) if other in pair), label)
