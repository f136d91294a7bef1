"""Texts of strangers, as they may be shown: on one line, and without characters that a terminal obeys."""

from __future__ import annotations


def one_line(text: str, instead: str | None = None) -> str:
    """A text whose unprintable characters are escaped, as `\\n`, or replaced by `instead`.

    Examples
    --------

    >>> from stream_pegasos.common.display import one_line
    >>> one_line("a\\nb"), one_line("a\\nb", " ")
    ('a\\\\nb', 'a b')

    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] if instead is None else instead for c in text)


def shortened(text: str, longest: int) -> str:
    """At most so many characters of a text, the last of them an ellipsis where it has more."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
