"""Features of fields without text: categories, numbers, times."""

from __future__ import annotations

import contextlib
import datetime as dt
import email.utils
import json
import math
import re
from typing import Any

import numpy as np

from stream_pegasos.common.display import format_value
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.engine import Scanner
from stream_pegasos.features.base import Features
from stream_pegasos.features.message import check_depth, check_field, is_nothing

__all__ = ["Category", "Number", "Time"]

SPACE = "\u2423"  # replaces white space in a name, because white space separates names


class FieldFeatures(Features, is_kind=False):
    """The base class of features of a field. Each is present or absent, and its name describes the value of the field.

    They share the columns of the text features to which they are added; alone, they have the columns of `TextFeatures`.
    """

    def __init__(self, on: str) -> None:
        self.on = on
        check_field(on)
        if on is None:
            raise TypeError(f"{type(self).__name__} reads a field: say on='NAME'")
        self.namespace = f"{on}="  # not the namespace of the words of the same field
        self.scanner = Scanner(
            "word", r"\S+", False, frozenset(), (1, 1), 2**30, False, True, "l2", False, 0, False, "words"
        )

    def read_value(self, value: object) -> Any:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if is_nothing(value) or (isinstance(value, str) and not value.strip()):
            return ""
        return self.written(value)

    def tokens(self, x: object) -> list[str]:
        """The names of the features of a message.

        Parameters
        ----------
        x : dict
            A message with the field.
        """
        return [self.token_name(token) for token in self.specification.ngrams(self.prepare(x))]

    def written(self, value: object) -> str:
        """The features of a value, separated by white space."""
        raise NotImplementedError


class Category(FieldFeatures):
    """A field with one or several values; each value is a feature.

    A value is a text, a number, a bool, or an object as a single value. In a text, case matters, but the amount of
    white space does not. A number is the same as its text: the 7 of JSON is the "7" of CSV. An empty text and `None`
    give no feature.

    Parameters
    ----------
    on : str
        The name of the field.

    Raises
    ------
    TypeError
        If a value has a type that JSON does not have.

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

    def written(self, value: Any) -> str:
        if type(value) is str:
            return SPACE.join(value.split())
        try:
            check_depth(value)
        except ValueError as error:
            raise ValueError(f"field {self.on!r}: {error}") from None
        is_set = isinstance(value, (set, frozenset))
        values = value if is_set or isinstance(value, (list, tuple)) else [value]
        texts = [SPACE.join(self._text(item).split()) for item in values if not is_nothing(item)]
        return " ".join(sorted(texts) if is_set else texts)  # the order of a set differs from process to process

    def _text(self, value: object) -> str:
        if isinstance(value, str):
            return str.__str__(value)
        if hasattr(value, "item"):
            value = value.item()  # a NumPy scalar
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        try:
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
        except (TypeError, ValueError):
            raise TypeError(must_be(f"field {self.on!r}", "a value that JSON can write", type_name(value))) from None

    def token_name(self, token: str) -> str:
        return f"{self.on}={token.replace(SPACE, ' ')}"


class Number(FieldFeatures):
    """A field with a number. Its features are the intervals that contain it, from all positive numbers down to a width
    of a millionth of the number.

    An interval contains the numbers with the same first bits, so powers of two make up its ends. The distribution of
    the numbers need not be known or stored, numbers may span many powers of ten, and the weight of a wide interval
    helps in the narrow intervals within it. Bins at quantiles of the stream are no more accurate.

    Parameters
    ----------
    on : str
        The name of the field. Its value is a number, or a text that spells one; an empty text, NaN and `None` give no
        feature.

    Raises
    ------
    TypeError, ValueError
        If a value is no number.

    Examples
    --------
    >>> from stream_pegasos import Number
    >>> Number(on="size").tokens({"size": 1500})[:5]
    ['size > 0', 'size: 2^-1 to 2^31', 'size: 2^7 to 2^15', 'size: 2^9 to 2^11', 'size: 1024 to 2048']
    >>> Number(on="size").tokens({"size": "-2.75"})[4:8]
    ['size: -4 to -2', 'size: -3 to -2', 'size: -3 to -2.5', 'size: -2.875 to -2.75']
    """

    def written(self, value: object) -> str:
        number = self._number(value)
        if number == 0.0 or math.isinf(number):
            return f"={abs(number) and number:g}"
        sign = "+" if number > 0 else "-"
        significand, e = math.frexp(abs(number))
        bits, within = int(significand * 2.0**21), f"{sign}{e}:"
        # Wide intervals end at powers of 2³², 2⁸ and 2²; within a power of two, more and more of the first bits count.
        return (
            f"{sign} {sign}32*{e // 32} {sign}8*{e // 8} {sign}2*{e // 2} {within}0:1 {within}1:{bits >> 19} "
            f"{within}2:{bits >> 18} {within}4:{bits >> 16} {within}6:{bits >> 14} {within}8:{bits >> 12} "
            f"{within}11:{bits >> 9} {within}14:{bits >> 6} {within}17:{bits >> 3} {within}20:{bits}"
        )

    def token_name(self, token: str) -> str:
        sign, digits = token[0], token[1:]
        if sign == "=" or not digits:
            return f"{self.on} = {digits}" if digits else f"{self.on} {'>' if sign == '+' else '<'} 0"
        if "*" in digits:
            n, times = map(int, digits.split("*"))
            low, high = f"2^{n * times - 1}", f"2^{n * times + n - 1}"
        else:
            e, n, bits = map(int, digits.split(":"))
            low, high = (f"{_times_power(first, e - n - 1):.12g}" for first in (bits, bits + 1))
        return f"{self.on}: {low} to {high}" if sign == "+" else f"{self.on}: -{high} to -{low}"

    def _number(self, value: Any) -> float:
        if type(value) in (int, float) and abs(value) < 1e300:
            return float(value)
        is_text = isinstance(value, str)
        if isinstance(value, (bytes, bytearray)) or not (is_text or hasattr(value, "__float__")):
            raise TypeError(must_be(f"field {self.on!r}", "a number", type_name(value)))
        try:
            number = math.nan if is_text and "_" in value else float(value)  # 1_000 is a number only in Python
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        except (ValueError, TypeError):  # TypeError from NumPy's times
            number = math.nan
        if math.isnan(number):
            raise ValueError(must_be(f"field {self.on!r}", "a number", format_value(value)))
        return number


def _times_power(number: int, exponent: int) -> float:
    """number · 2^exponent."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.inf


class Time(FieldFeatures):
    """A field with a time. Its features are the hour and the weekday, as written; the time zone is ignored.

    Parameters
    ----------
    on : str
        The name of the field. Its value is a `datetime` or a `date`, a text in ISO 8601 or as mails have it (RFC 5322),
        or a number of seconds since 1970 in UTC, also as a text; a number of eight digits is a date, such as 20261123.
        An empty text and `None` give no feature.

    Raises
    ------
    TypeError, ValueError
        If a value is no time.

    Examples
    --------
    >>> from stream_pegasos import Time
    >>> time = Time(on="date")
    >>> time.tokens({"date": "2026-11-23T19:54:58Z"})
    ['date: hour=19', 'date: Monday']
    >>> time.tokens({"date": "Mon, 23 Nov 2026 20:54:58 +0100"})
    ['date: hour=20', 'date: Monday']
    >>> time.tokens({"date": 0})
    ['date: hour=0', 'date: Thursday']
    """

    def written(self, value: object) -> str:
        time = self._time(value)
        weekday = WEEKDAYS[time.weekday()]
        return f"hour={time.hour} {weekday}" if isinstance(time, dt.datetime) else weekday

    def _time(self, value: Any) -> dt.date:
        if hasattr(value, "item") and not isinstance(value, dt.date):
            is_fine = value.dtype.kind == "M" and not isinstance(value.item(), dt.date)  # finer than Python's times
            value = value.astype("datetime64[us]").item() if is_fine else value.item()
        if isinstance(value, dt.date):
            return value
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise TypeError(must_be(f"field {self.on!r}", "a time", type_name(value)))
        try:
            return _written_time(value.strip() if isinstance(value, str) else as_written(float(value)))
        except (ValueError, OverflowError, OSError, TypeError, IndexError):
            raise ValueError(must_be(f"field {self.on!r}", "a time", format_value(value))) from None


WEEKDAYS = "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"


def as_written(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() else str(number)


def _written_time(text: str) -> dt.date:
    if re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", text, re.IGNORECASE):
        text = as_written(float(text))
        if not re.fullmatch("[0-9]{8}", text):
            return dt.datetime.fromtimestamp(float(text), dt.UTC)
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        with contextlib.suppress(ValueError):
            return read(text)
    return email.utils.parsedate_to_datetime(text)
