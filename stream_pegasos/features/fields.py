"""What is found in fields of a message that hold no text: categories, numbers, times."""

from __future__ import annotations

import datetime as dt
import email.utils
import json
import math
from collections.abc import Iterable
from typing import Any

from stream_pegasos.engine import Scanner
from stream_pegasos.features.base import Features

__all__ = ["Category", "Number", "Time"]


class FieldFeatures(Features):
    """Features of a field that each are there or not, and are called by what they say of its value.

    Their columns are those of the text features that they are added to, or else those of `TextFeatures`.
    """

    def __init__(self, on: str) -> None:
        self.on = on
        try:
            hash(on)
        except TypeError:
            raise TypeError(f"on is {on!r}, which cannot be the name of a field") from None
        self.scanner = Scanner(
            "ngrams", r"\w+", False, frozenset(), (1, 1), 2**30, False, True, "l2", False, 0, False, "words"
        )

    def prepare_value(self, value: Any) -> Any:
        if value is None or value == "" or value != value:  # a NaN is what data frames have for nothing
            return ()
        return tuple(self.tokens(value))

    def tokens(self, value: Any) -> Iterable[str]:
        """What is found in a value of the field."""
        raise NotImplementedError


class Category(FieldFeatures):
    """A field with one of several values, or with several of them: each is a feature.

    A value is a text, a number, a bool or, as one value, an object. In a text nothing is changed, so that case counts.
    A number is the same as its text: the 7 of JSON is the "7" of CSV. An empty text and `None` count nothing.

    Parameters
    ----------
    on
        The name of the field.

    Raises
    ------
    TypeError
        If a value is something that JSON does not have.

    Examples
    --------

    >>> from stream_pegasos import Category, TextClassifier, TextFeatures

    >>> model = TextClassifier(features=TextFeatures(on="body") + Category(on="sender") + Category(on="tags"))
    >>> model.learn_one({"body": "see the prize", "sender": "shop@example.com", "tags": ["ad", 7]}, "spam")
    >>> model.learn_one({"body": "see you at noon", "sender": "ann@example.org"}, "ham")
    >>> model.predict_one({"sender": "shop@example.com"})
    'spam'
    >>> model.explain_one({"sender": "shop@example.com", "tags": "7"}, "spam").keys() - {"(intercept)"} == {
    ...     "sender=shop@example.com", "tags=7"
    ... }
    True

    """

    def tokens(self, value: Any) -> Iterable[str]:
        values = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        return dict.fromkeys(self._written(each) for each in values if each is not None and each != "")

    def _written(self, value: Any) -> str:
        if isinstance(value, str):
            return str.__str__(value)
        if hasattr(value, "item"):
            value = value.item()  # of NumPy
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        try:
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
        except (TypeError, ValueError):
            raise TypeError(f"field {self.on!r} is of type {type(value).__name__}, which no category has") from None

    def name_of(self, token: str) -> str:
        return f"{self.on}={token}"


class Number(FieldFeatures):
    """A field with a number: which intervals it is in, from all positive ones down to a millionth of its size.

    The ends of the intervals are made of powers of two: an interval holds the numbers with the same first bits. So
    nothing has to be known of the numbers of the stream, the size of a number may span many powers of ten, and what a
    classifier learns of a wide interval helps in the narrow ones within it. Beside bins at quantiles of the stream this
    is as accurate, and there is nothing to keep; tests/benchmarks/fields.py compares them.

    Parameters
    ----------
    on
        The name of the field. Its value is a number, or a text that spells one; an empty text, NaN and `None` count
        nothing.

    Raises
    ------
    TypeError, ValueError
        If a value is no number.

    Examples
    --------

    >>> from stream_pegasos import Number

    >>> Number(on="size").tokens(1500)[:6]
    ['> 0', '0.0078125..2147483648.0', '128.0..32768.0', '512.0..2048.0', '1024.0..2048.0', '1024.0..1536.0']
    >>> Number(on="size").tokens("-3")[2:5]
    ['-8.0..-0.5', '-4.0..-2.0', '-4.0..-3.0']

    """

    bits = 1, 2, 4, 6, 8, 11, 14, 17, 20  # behind the first, which is 1; those of all are of an interval's numbers

    def tokens(self, value: Any) -> list[str]:
        number = self._number(value)
        if number == 0.0:
            return ["= 0"]
        if math.isinf(number):
            return ["> 0" if number > 0 else "< 0", str(number)]
        significand, exponent = math.frexp(abs(number))
        # Of the wide intervals the size is from one power of two to another.
        powers = [(width * (exponent // width) - 1, width) for width in (32, 8, 2, 1)]
        ends = [(_power(1, at), _power(1, at + width)) for at, width in powers]
        for n in self.bits:
            first = int(math.ldexp(significand, n + 1))
            ends.append((_power(first, exponent - n - 1), _power(first + 1, exponent - n - 1)))
        if number > 0:
            return ["> 0", *(f"{low!r}..{high!r}" for low, high in ends)]
        return ["< 0", *(f"-{high!r}..-{low!r}" for low, high in ends)]

    def _number(self, value: Any) -> float:
        if isinstance(value, str):
            if "_" in value:  # which Python alone takes
                raise ValueError(f"field {self.on!r} is {value[:50]!r}, which is no number")
        elif isinstance(value, (bytes, bytearray)) or not hasattr(value, "__float__"):
            raise TypeError(f"field {self.on!r} is of type {type(value).__name__}, which is no number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        except ValueError:
            raise ValueError(f"field {self.on!r} is {str(value)[:50]!r}, which is no number") from None
        if math.isnan(number):
            raise ValueError(f"field {self.on!r} is {str(value)[:50]!r}, which is no number")
        return number


def _power(number: int, exponent: int) -> float:
    """number · 2^exponent."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.inf


class Time(FieldFeatures):
    """A field with a time: its hour and its weekday, as they are written there, whatever the zone.

    Parameters
    ----------
    on
        The name of the field. Its value is a `datetime` or a `date`, a text in ISO 8601 or as mails have it (RFC 5322),
        or a number of seconds since 1970 in UTC; an empty text and `None` count nothing.

    Raises
    ------
    TypeError, ValueError
        If a value is no time.

    Examples
    --------

    >>> from stream_pegasos import Time

    >>> time = Time(on="date")
    >>> [time.tokens(value) for value in ("2026-11-23T19:54:58Z", "Mon, 23 Nov 2026 20:54:58 +0100", 0)]
    [['hour 19', 'Monday'], ['hour 20', 'Monday'], ['hour 0', 'Thursday']]
    >>> time.tokens("2026-11-23")
    ['Monday']

    """

    def tokens(self, value: Any) -> list[str]:
        time = self._time(value)
        weekday = WEEKDAYS[time.weekday()]
        return [f"hour {time.hour}", weekday] if isinstance(time, dt.datetime) else [weekday]

    def _time(self, value: Any) -> dt.date:
        if hasattr(value, "item") and not isinstance(value, dt.date):
            value = value.astype("datetime64[us]").item() if value.dtype.kind == "M" else value.item()  # of NumPy
        if isinstance(value, dt.date):
            return value
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise TypeError(f"field {self.on!r} is of type {type(value).__name__}, which is no time")
        try:
            if not isinstance(value, str):
                return dt.datetime.fromtimestamp(value, dt.UTC)
            return _written_time(value.strip())
        except (ValueError, OverflowError, OSError, TypeError, IndexError):
            raise ValueError(f"field {self.on!r} is {str(value)[:50]!r}, which is no time") from None


WEEKDAYS = "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"


def _written_time(text: str) -> dt.date:
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    try:
        return dt.datetime.fromtimestamp(float(text), dt.UTC)
    except ValueError:
        return email.utils.parsedate_to_datetime(text)
