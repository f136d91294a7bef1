"""Words in disguise, spelled so that filters do not know them: v i a g r a, fr0m, or click with a Cyrillic c."""

from __future__ import annotations

import re
import string

from stream_pegasos.engine.pure.characters import normalized

__all__ = ["compatible", "respelled"]

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
# Variation selectors and tag characters, which belong to emoji in other texts.
VARIANT = re.compile("[\ufe00-\ufe0f\U000e0000-\U000e01ef]")
WITHIN_WORD = re.compile(r"(?<=[^\W\d_])[\ufe00-\ufe0f\U000e0000-\U000e01ef]++(?=[^\W\d_])")
# Letters of the Cyrillic and the Greek script that look like Latin ones, in words that also have Latin ones.
LOOK_ALIKES = str.maketrans(
    "аеорсхуіјѕһԁԛԝктАВЕКМНОРСТУХІЈЅαοειρνκτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcxyijshdqwktABEKMHOPCTYXIJSaoeipvktuxABEZHIKMNOPTYX",
)
TWO_SCRIPTS = re.compile(r"(?<![^\W\d_])(?:[A-Za-z]+[\u0370-\u052f]|[\u0370-\u052f]+[A-Za-z])[^\W\d_]*")
# Three or more letters with the same sign between each two, or four Latin letters with spaces; not a path.
LETTER = r"[^\W\d_]"
SPACED = re.compile(
    rf"(?<![^\W_])(?<!/)(?:{LETTER}([.\-_*|~^+]){LETTER}(?:\1{LETTER})+|[A-Za-z](?: [A-Za-z]){{3,}})(?![^\W_])(?!/)"
)
# Digits and signs among the letters of a word, all in lower or all in upper case, that is not part of an address or a
# path.
DIGITS = "[013457@$!]{1,8}"
AMONG_LETTERS = re.compile(
    r"(?<![\w.@$!+/=-])(?![A-Za-z]{2,40}@[A-Za-z]{2})(?:"
    rf"[a-z013457@$!]{{0,20}}[a-z]{DIGITS}[a-z][a-z013457@$]{{0,20}}|"
    rf"[A-Z013457@$!]{{0,20}}[A-Z]{DIGITS}[A-Z][A-Z013457@$]{{0,20}}|"
    rf"[A-Z][a-z]{{0,20}}{DIGITS}[a-z][a-z013457@$]{{0,20}}"
    r")(?![\w@$+/=-]|\.\w)"
)
# Without these characters there is no disguise. The search for them is much faster, most of all in bytes.
OTHER_SCRIPT = re.compile("[\u0370-\u052f]")
MAYBE_SPACED, MAYBE_DIGITS = (b"a.a.a", b"a a a a"), (b"a0a", b"a00")
AS_KINDS = bytes.maketrans(  # characters beyond ASCII are question marks here, and may be letters
    b".-_*|~^+" + b"013457@$!" + b"?" + string.ascii_letters.encode(), b"." * 8 + b"0" * 9 + b"a" * 53
)
MAYBE_AMONG_LETTERS = re.compile(r"[013457@$!](?<=[A-Za-z].)[013457@$!]{0,7}[A-Za-z](?![\w-]{0,60}\.\w)")
SPACING_ACCENTS = {"\u00b4": "'", "\u00a8": '"', "\u00af": "-", "\u00b8": ","}  # NFKC turns these into spaces
AS_LETTERS = str.maketrans("013457@$!", "oieastasi")


def compatible(text: str) -> tuple[str, int]:
    """A text with plain characters in place of wide, slanted and other compatible ones (NFKC), and without invisible
    characters; and the number of invisible characters.
    """
    if text.isascii():
        return text, 0
    plain = INVISIBLE.sub("", text)
    if VARIANT.search(plain):
        plain = WITHIN_WORD.sub("", plain)
    n_invisible = len(text) - len(plain)
    for accent, sign in SPACING_ACCENTS.items():
        plain = plain.replace(accent, sign)
    return normalized("NFKC", plain), n_invisible


def respelled(text: str) -> str:
    """A text of compatible characters with its words in usual spelling: `V.I.A.G.R.A fr0m us` is `VIAGRA from us`."""
    if not text.isascii() and OTHER_SCRIPT.search(text):
        text = TWO_SCRIPTS.sub(_in_latin, text)
    kinds = text.encode("ascii", "replace").translate(AS_KINDS)
    if any(spaced in kinds for spaced in MAYBE_SPACED):
        text = SPACED.sub(lambda word: word[0].replace(word[1] or " ", ""), text)
    if any(digits in kinds for digits in MAYBE_DIGITS) and MAYBE_AMONG_LETTERS.search(text):
        lines = text.split("\n")
        text = "\n".join(AMONG_LETTERS.sub(_in_letters, x) if MAYBE_AMONG_LETTERS.search(x) else x for x in lines)
    return text


def _in_latin(match: re.Match[str]) -> str:
    word = match[0].translate(LOOK_ALIKES)
    return word if word.isascii() else match[0]


def _in_letters(match: re.Match[str]) -> str:
    word = match[0]
    least = 2 if word.islower() else 3  # W3C and H1N1 are names
    return word.translate(AS_LETTERS) if sum(map(str.isalpha, word)) >= max(least, len(word) / 2) else word
