"""Display of untrusted texts: on one line, and without control characters for the terminal."""

from __future__ import annotations


def one_line(text: str, instead: str | None = None) -> str:
    """A text whose unprintable characters are escaped, as `\\n`, or replaced by `instead`.

    >>> one_line("a\\nb"), one_line("a\\nb", " ")
    ('a\\\\nb', 'a b')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] if instead is None else instead for c in text)


def format_value(value: object) -> str:
    """A value as text. An integer with more digits than Python writes is shown in hexadecimal."""
    try:
        return str(value)
    except ValueError:
        return f"{value:#x}"


def quoted(value: object) -> str:
    """A label as `repr` writes it. An integer with more digits than Python writes is shown in hexadecimal."""
    try:
        return repr(value)
    except ValueError:
        return format_value(value)


def printable(value: object, longest: int | None = None, instead: str | None = None) -> str:
    """A label or a feature as a text on one line, of at most `longest` characters.

    >>> printable("a\\tlong label", 7), printable(True), printable(None)
    ('a\\\\tlon…', 'true', '?')
    """
    if value is None:
        return "?"
    text = format_value(value)
    text = one_line(text.lower() if isinstance(value, bool) else text, instead)
    return text if longest is None else shortened(text, longest)


def shortened(text: str, longest: int) -> str:
    """The text, cut to at most `longest` characters; the last is an ellipsis if something was cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
