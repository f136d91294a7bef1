"""Colours in styles and attributes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from stream_pegasos.common.extras import missing

__all__ = ["CLEAR", "Color", "color", "color_of_attribute", "has_picture", "tinycss2"]

Color = tuple[float, float, float, float]  # red, green, blue and alpha, each from 0 to 1

CLEAR = (0.0, 0.0, 0.0, 0.0)
HEX = frozenset("0123456789abcdef")
MAX_COLOR = 128  # characters of a colour in an attribute


@functools.cache
def tinycss2() -> Any:
    """The parser of styles, imported at the first style."""
    try:
        import tinycss2.color4
    except ImportError as error:
        raise missing("a mail in HTML", "mail", error) from error
    return tinycss2


def color(parts: Sequence[Any]) -> Color | None:
    if len(parts) > 1:
        return None
    if parts[0].type in ("number", "dimension", "ident"):
        return color_named(parts[0].serialize())
    return read_color(parts[0])


@functools.lru_cache(1_000)
def color_named(value: str) -> Color | None:
    """A colour by its name, or by digits with or without `#`."""
    value = value.strip().lower()
    is_hex = len(value) in (3, 6) and all(digit in HEX for digit in value)
    return read_color(f"#{value}" if is_hex else value)


def color_of_attribute(value: str) -> Color | None:
    """A colour in an attribute, where any letters count as digits
    (https://html.spec.whatwg.org/#rules-for-parsing-a-legacy-colour-value).
    """
    value = value[:MAX_COLOR].strip().lower()
    if not value or value == "transparent":
        return None
    if value[0] != "#" and (named := color_named(value)) is not None and value.isalpha():
        return named
    if len(value) == 4 and value[0] == "#" and HEX.issuperset(value[1:]):
        return color_named(value)
    digits = "".join(digit if digit in HEX else "0" for digit in value.removeprefix("#")) or "0"
    n = (len(digits) + 2) // 3
    digits = digits.ljust(3 * n, "0")
    parts = [digits[begin : begin + n][-8:] for begin in (0, n, 2 * n)]
    while len(parts[0]) > 2 and all(part[0] == "0" for part in parts):
        parts = [part[1:] for part in parts]
    red, green, blue = (int(part[:2], 16) / 255 for part in parts)
    return red, green, blue, 1.0


def read_color(value: object) -> Color | None:
    try:
        color = tinycss2().color4.parse_color(value)
        if color is None or isinstance(color, str):
            return None
        red, green, blue, alpha = color.to("srgb")
    except (ArithmeticError, NotImplementedError, TypeError, ValueError):  # of an unsupported space
        return None
    return red or 0.0, green or 0.0, blue or 0.0, 1.0 if alpha is None else alpha


def has_picture(parts: Sequence[Any]) -> bool:
    return any(part.type == "url" or (part.type == "function" and read_color(part) is None) for part in parts)
