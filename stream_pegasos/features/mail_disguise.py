"""Words that are spelled so that filters do not know them, as in v i a g r a, fr0m and click with a Cyrillic c."""

from __future__ import annotations

import re
import string
import unicodedata

__all__ = ["undisguised"]

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
# Letters of the Cyrillic and the Greek script that look like Latin ones, in words that also have Latin ones.
LOOK_ALIKES = str.maketrans(
    "аеорсхуіјѕһԁԛԝктАВЕКМНОРСТУХІЈЅαοειρνκτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcxyijshdqwktABEKMHOPCTYXIJSaoeipvktuxABEZHIKMNOPTYX",
)
TWO_SCRIPTS = re.compile(r"(?<![^\W\d_])(?:[A-Za-z]+[\u0370-\u052f]|[\u0370-\u052f]+[A-Za-z])[^\W\d_]*")
# Three letters or more with the same sign between each two, or four with spaces.
LETTER = r"[^\W\d_]"
SPACED = re.compile(rf"(?<![^\W_]){LETTER}(?:([.\-_*|~^+]){LETTER}(?:\1{LETTER})+|(?: {LETTER}){{3,}})(?![^\W_])")
# Digits and signs among the letters of a word, all small or all capitals, that is no part of an address, path or code.
DIGITS = "[013457@$!]{1,8}"
AMONG_LETTERS = re.compile(
    r"(?<![\w.@$!+/=-])(?:"
    rf"[a-z013457@$!]{{0,20}}[a-z]{DIGITS}[a-z][a-z013457@$]{{0,20}}|"
    rf"[A-Z013457@$!]{{0,20}}[A-Z]{DIGITS}[A-Z][A-Z013457@$]{{0,20}}|"
    rf"[A-Z][a-z]{{0,20}}{DIGITS}[a-z][a-z013457@$]{{0,20}}"
    r")(?![\w@$+/=-]|\.\w)"
)
# Without these there is nothing of the kind: searching for them is much faster, bytes above all.
OTHER_SCRIPT = re.compile("[\u0370-\u052f]")
MAYBE_SPACED, MAYBE_DIGITS = (b"a.a.a", b"a a a a"), (b"a0a", b"a00")
AS_KINDS = bytes.maketrans(  # characters that are not ASCII, which are question marks here, may be letters
    b".-_*|~^+" + b"013457@$!" + b"?" + string.ascii_letters.encode(), b"." * 8 + b"0" * 9 + b"a" * 53
)
MAYBE_AMONG_LETTERS = re.compile(r"[013457@$!](?<=[A-Za-z].)[013457@$!]{0,7}[A-Za-z](?![\w-]*\.\w)")
AS_LETTERS = str.maketrans("013457@$!", "oieastasi")


def undisguised(text: str) -> tuple[str, list[str]]:
    """A text with its words spelled as usual, and tokens for what was unusual.

    Characters take their compatible form (NFKC), so that wide and slanted letters are plain; those that nobody sees are
    left out.

    Examples
    --------

    >>> undisguised("V.I.A.G.R.A fr0m us, \uff46\uff52\uff45\uff45: \u0441lick")
    ('VIAGRA from us, free: click', ['text:respelled'])

    """
    tokens = []
    if not text.isascii():
        seen = INVISIBLE.sub("", text)
        if len(text) - len(seen) > 2:
            tokens.append(f"text:invisible:{(len(text) - len(seen)).bit_length()}")
        text = unicodedata.normalize("NFKC", seen)
    usual = text
    if not text.isascii() and OTHER_SCRIPT.search(text):
        usual = TWO_SCRIPTS.sub(lambda word: word[0].translate(LOOK_ALIKES), text)
    kinds = usual.encode("ascii", "replace").translate(AS_KINDS)
    if any(spaced in kinds for spaced in MAYBE_SPACED):
        usual = SPACED.sub(lambda word: word[0].replace(word[1] or " ", ""), usual)
    if any(digits in kinds for digits in MAYBE_DIGITS) and MAYBE_AMONG_LETTERS.search(usual):
        lines = usual.split("\n")
        usual = "\n".join(AMONG_LETTERS.sub(_in_letters, x) if MAYBE_AMONG_LETTERS.search(x) else x for x in lines)
    if usual != text:
        tokens.append("text:respelled")
    return usual, tokens


def _in_letters(found: re.Match[str]) -> str:
    word = found[0]
    return word.translate(AS_LETTERS) if 2 * sum(map(str.isalpha, word)) >= len(word) else word
