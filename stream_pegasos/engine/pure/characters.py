"""The roles of characters in the words of any language, by Unicode's categories and by script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Literal

# The class of a character says what it does to the token before it. After white space there is no token.
MARK = 0  # is a token of its own: punctuation, symbols, emoji
WORD = 1  # continues a word
SYLLABLE = 2  # continues a word of Hangul; its syllables count, too
CHARACTER = 3  # continues a run of a script without spaces
SPACE = 4
EXTEND = 5  # belongs to the character before: accents, vowel signs, skin tones
STACKER = 6  # as EXTEND; in a run, the next character is placed below
IGNORED = 7  # is ignored: soft hyphens, directions, variants
JOINER = 8  # ignored, but joins two symbols to one
BREAK = 9  # ignored, but ends a run: the zero-width space
REGIONAL = 10  # a mark; two of them are a flag

Ranges = tuple[tuple[int, int], ...]  # of code points, the last one included

# Letters whose words Unicode Standard Annex #29 cannot find without a dictionary, and katakana.
WITHOUT_SPACES: Ranges = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19FF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x2E80, 0x30FF),  # Han radicals and numerals, kana
    (0x31F0, 0x31FF),  # katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),  # Myanmar
    (0xAA60, 0xAADF),  # Myanmar, Tai Viet
    (0xF900, 0xFAFF),  # Han
    (0xFF66, 0xFF9F),  # katakana
    (0x11700, 0x1174F),  # Ahom
    (0x16FE0, 0x18DFF),  # Tangut, Khitan
    (0x1AFF0, 0x1B2FF),  # kana, Nushu
    (0x20000, 0x3FFFF),  # Han
)
HANGUL: Ranges = ((0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97C), (0xAC00, 0xD7FB))
VARIANTS: Ranges = ((0x034F, 0x034F), (0x180B, 0x180F), (0xFE00, 0xFE0F))  # no accents
SKIN_TONES: Ranges = ((0x1F3FB, 0x1F3FF),)
REGIONAL_LETTERS: Ranges = ((0x1F1E6, 0x1F1FF),)
# Vowels and voice marks that are letters but never stand without the letter before.
EXTENDING_LETTERS: Ranges = ((0x0E33, 0x0E33), (0x0EB3, 0x0EB3), (0xFF9E, 0xFF9F))
STACKERS: Ranges = ((0x1039, 0x1039), (0x17D2, 0x17D2), (0x1A60, 0x1A60))
WHITE_CONTROLS: Ranges = ((0x09, 0x0D), (0x1C, 0x1F), (0x85, 0x85))

# By the first letter of the category, or by the whole category if it is listed.
BY_CATEGORY = {"L": WORD, "N": WORD, "M": EXTEND, "Z": SPACE, "P": MARK, "S": MARK, "C": MARK, "Cf": IGNORED}
# Later entries replace earlier ones.
BY_RANGE: tuple[tuple[int, Ranges], ...] = (
    (WORD, ((0x5F, 0x5F),)),
    (SPACE, WHITE_CONTROLS),
    (EXTEND, SKIN_TONES),
    (EXTEND, EXTENDING_LETTERS),
    (STACKER, STACKERS),
    (IGNORED, VARIANTS),
    (BREAK, ((0x200B, 0x200B),)),
    (JOINER, ((0x200D, 0x200D),)),
    (REGIONAL, REGIONAL_LETTERS),
)
# Added to the class of a character in `letter_parts`.
PART = 0x10
# The end of the table of classes; beyond it, the code point alone decides.
END_OF_TABLE = 0x20000
PAGE = 0x100  # number of characters whose classes are looked up together


def character_classes(begin: int, end: int) -> bytes:
    """The class of each character of the table from `begin` to before `end`, with `PART` added for parts of letters."""
    table = bytearray(_classes(begin, end))
    for c in letter_parts():
        if begin <= c < end:
            table[c - begin] += PART
    return bytes(table)


def _classes(begin: int, end: int) -> bytearray:
    categories = [*map(unicodedata.category, map(chr, range(begin, end)))]
    kinds = {category: BY_CATEGORY.get(category, BY_CATEGORY[category[0]]) for category in set(categories)}
    table = bytearray(map(kinds.__getitem__, categories))
    for kind, ranges in ((CHARACTER, WITHOUT_SPACES), (SYLLABLE, HANGUL)):
        from_words = bytes.maketrans(bytes([WORD]), bytes([kind]))
        for part in parts(ranges, begin, end):
            table[part] = table[part].translate(from_words)
    for place, category in enumerate(categories):
        if category == "Nd":
            table[place] = WORD
    for kind, ranges in BY_RANGE:
        for part in parts(ranges, begin, end):
            table[part] = bytes([kind]) * len(table[part])
    return table


def parts(ranges: Ranges, begin: int, end: int) -> Iterator[slice]:
    """The places of ranges of characters in a table that holds the characters from `begin` to before `end`."""
    for first, last in ranges:
        if first < end and last >= begin:
            yield slice(max(first, begin) - begin, min(last + 1, end) - begin)


@cache
def _page(number: int) -> bytearray:
    return _classes(number * PAGE, (number + 1) * PAGE)


def character_class(character: str) -> int:
    """The class of a character: one of the constants above."""
    c = ord(character)
    if c < END_OF_TABLE:
        return _page(c // PAGE)[c % PAGE]
    return CHARACTER if character.isalnum() else IGNORED if 0xE0000 <= c < 0xE1000 else MARK


# The ranges of composed characters, without Hangul.
COMPOSITIONS: Ranges = ((0xC0, 0x33FF), (0xF900, 0x11FFF), (0x1D100, 0x1D1FF), (0x2F800, 0x2FA1F))
HANGUL_PARTS: Ranges = ((0x1161, 0x1175), (0x11A8, 0x11C2))
# A letter is normalized with at most this many marks at once: with endless accents, Unicode's algorithm takes quadratic
# time.
MOST_PARTS = 64
FIRST_PART = "\u0300"  # no character before this one is part of a letter
AT_ONCE = 1 << 16  # characters; so a long text is not split into many small ones


@cache
def letter_parts() -> frozenset[int]:
    """Characters that can combine with the letter before, or that form C replaces by another character."""
    letters = {c for first, last in HANGUL_PARTS for c in range(first, last + 1)}
    for first, last in COMPOSITIONS:
        for c in range(first, last + 1):
            decomposition = unicodedata.decomposition(chr(c)).split()
            if decomposition and decomposition[0][0] != "<":
                is_composed = unicodedata.normalize("NFC", chr(c)) == chr(c)
                letters.add(int(decomposition[-1], 16) if is_composed else c)
    return frozenset(letters)


@cache
def patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Two patterns: one character that can belong to the letter before in some normal form; and as many of them as are
    normalized at once.
    """
    marks = (c for c in range(0x10000) if unicodedata.combining(unicodedata.normalize("NFKD", chr(c))[0]))
    behind = "".join(chr(c) for c in sorted({*letter_parts(), *marks}) if c < 0x10000)
    behind += "\U00010000-\U0001ffff\U0002f800-\U0002fa1f"  # few ranges, since each takes time
    return re.compile(f"[{behind}]"), re.compile(f"[{behind}]{{{MOST_PARTS}}}")


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """The text in one of Unicode's normalization forms, in linear time."""
    behind, pattern = patterns()
    pieces, begin = [], 0
    while begin < len(text):
        end = begin + AT_ONCE
        while end < min(len(text), begin + AT_ONCE + MOST_PARTS) and behind.match(text, end):
            end += 1
        for match in pattern.finditer(text, begin, end):
            pieces.append(unicodedata.normalize(form, text[begin : match.end()]))
            begin = match.end()
        pieces.append(unicodedata.normalize(form, text[begin:end]))
        begin = end
    return "".join(pieces)


def composed(text: str) -> str:
    """The text in Unicode's normalization form C: a letter that is written in parts becomes one character."""
    characters = set(text)
    if max(characters, default="") < FIRST_PART or letter_parts().isdisjoint(map(ord, characters)):
        return text
    return normalized("NFC", text)
