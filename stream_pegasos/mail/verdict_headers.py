"""Headers with a verdict, in SpamAssassin's form."""

from __future__ import annotations

import math
import re
from email.header import Header

from stream_pegasos.common.display import printable
from stream_pegasos.mail.verdict import REQUIRED, Verdict

__all__ = ["certain", "find_newline", "insert_headers", "insert_lines", "shown_word", "spam_headers"]

LONGEST_WORD = 40  # characters shown of a word
LONGEST_LINE = 76
MOST_STARS = 50


def spam_headers(verdict: Verdict, newline: bytes = b"\n") -> bytes:
    """The headers X-Spam-Flag, X-Spam-Status and X-Spam-Level, each with the line end of the mail."""
    status = Header(format_status(verdict), "us-ascii", LONGEST_LINE, "X-Spam-Status")
    if verdict.words:
        words = "; ".join(
            [f"{shown_word(word)} {abs(value):.2f} {verdict_side(value)}" for word, value in verdict.words]
        )
        status.append(f'words="{words}"', "us-ascii" if words.isascii() else "utf-8")
    level = "*" * min(max(int(verdict.score), 0), MOST_STARS)
    lines = [
        f"X-Spam-Flag: {'YES' if verdict.is_spam else 'NO'}",
        *f"X-Spam-Status: {status.encode(splitchars=' ')}".split("\n"),
        f"X-Spam-Level: {level}",
    ]
    return b"".join(line.rstrip().encode("ascii") + newline for line in lines)


def format_status(verdict: Verdict) -> str:
    """A verdict on one line, without the words."""
    is_spam = "Yes" if verdict.is_spam else "No"
    # Programs that read SpamAssassin's headers look for `tests` and `autolearn`.
    line = f"{is_spam}, score={verdict.score:.1f} required={REQUIRED:.1f}"
    line += f" tests=PEGASOS_{verdict.outcome.upper()} autolearn=no"
    if verdict.probability is not None:
        line += f" probability={certain(verdict.probability)}"
    return f'{line} because="{verdict.reason}"' if verdict.reason else line


def certain(probability: float) -> str:
    """A probability as a text that is never rounded to 0 or 1."""
    return f"{math.floor(probability * 1e4) / 1e4:.4f}"


def verdict_side(value: float) -> str:
    """The label that a word supports if it adds this value to the margin of spam."""
    return "for spam" if value > 0 else "against spam"


def shown_word(word: str) -> str:
    """A word in a form that is safe in a header."""
    return " ".join(re.sub('[";]', "?", printable(word, LONGEST_WORD, "?")).split())


def insert_headers(mail: bytes, verdict: Verdict) -> bytes:
    """The mail with these headers before its own. All other bytes stay the same, so that signatures remain valid."""
    return insert_lines(mail, spam_headers(verdict, find_newline(mail)))


def find_newline(mail: bytes) -> bytes:
    """The line end of the mail."""
    return b"\r\n" if mail[: mail.find(b"\n") + 1].endswith(b"\r\n") else b"\n"


def insert_lines(mail: bytes, lines: bytes) -> bytes:
    """The mail with these lines before its headers. A first line `From …`, which mboxes and many servers have, stays
    first.
    """
    begin = mail.find(b"\n") + 1 if mail.startswith(b"From ") else 0
    return mail[:begin] + lines + mail[begin:]
