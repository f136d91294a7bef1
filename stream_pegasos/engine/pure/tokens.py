"""Tokens of texts in any language (words, marks, runs of characters), and n-grams of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from stream_pegasos.engine.pure.characters import MARK, character_class

# The boundary tokens before the first and after the last token of a text.
BEGIN, END = "<s>", "</s>"
# The prefixes of letters within words, and of the length of a text. No other n-gram begins like this.
LETTERS_PREFIX, LENGTH_PREFIX = "  ", "    "
# The features of a run are its n-grams up to this length and, for short runs, the whole run.
LONGEST_OF_RUN, LONGEST_RUN = 3, 16

# One letter for each class of characters, in order; and one for a symbol that a joiner may join, a mark beyond ASCII. A
# token is a pattern over these letters.
LETTERS, SYMBOL = "mwhc ekijbr", "s"
# The characters that may follow a mark: those that belong to it, and symbols joined to it.
BEHIND_MARK = "[ekib]*+(?:j[ekijb]*+s[ekib]*+)*+[ekijb]*+"
TOKEN = re.compile(
    "w[wekijb]*+"
    "|h[hekijb]*+"
    "|c[cekij]*+"  # a run; the zero-width space ends it
    f"|[msek]{BEHIND_MARK}"
    f"|r[ijb]*+(?:[rek]{BEHIND_MARK})?+"  # two letters are a flag
)
CHARACTER_OF_TOKEN = re.compile("[hc](?:k[ij]*+c|[ekijb])*+")
NOT_THERE = re.compile("[ijb]")


class Kinds(dict[int, str]):
    """The letter of each character's class, by code point; computed on first use."""

    def __missing__(self, c: int) -> str:
        kind = character_class(chr(c))
        self[c] = SYMBOL if kind == MARK and c > 0x7F else LETTERS[kind]
        return self[c]


KINDS = Kinds()


class Run(str):
    """A run, or a word of Hangul. Its characters count, too, each with the marks that belong to it."""

    characters: list[str]
    is_word: bool


def tokenize(text: str) -> list[str]:
    """The words, marks and runs of a text.

    Words are those of Unicode Standard Annex #29, without its rules for apostrophes, points and commas. Words of Hangul
    end where other letters or digits begin. A run consists of letters of scripts without spaces. A mark is any other
    character, or a sequence of emoji.
    """
    kinds = text.translate(KINDS)

    def there(begin: int, end: int) -> str:
        if not NOT_THERE.search(kinds, begin, end):
            return text[begin:end]
        return "".join(text[i] for i in range(begin, end) if kinds[i] not in "ijb")

    tokens = []
    for match in TOKEN.finditer(kinds):
        token = there(*match.span())
        if match[0][0] in "hc":
            token = Run(token)
            token.characters = [
                there(*character_match.span()) for character_match in CHARACTER_OF_TOKEN.finditer(kinds, *match.span())
            ]
            token.is_word = match[0][0] == "h"
        tokens.append(token)
    return tokens


def split_units(text: str) -> list[tuple[str, int, int]]:
    """The words and marks of a text, and the characters of its runs, each with its begin and end."""
    kinds = text.translate(KINDS)
    units = []
    for token in TOKEN.finditer(kinds):
        is_word = token[0][0] not in "hc"
        for unit in [token] if is_word else CHARACTER_OF_TOKEN.finditer(kinds, *token.span()):
            begin, end = unit.span()
            units.append(("".join(text[i] for i in range(begin, end) if kinds[i] not in "ijb"), begin, end))
    return units


def ngrams_of_tokens(
    tokens: Iterable[str],
    stop_words: frozenset[str],
    ngram_range: tuple[int, int],
    prefix_length: int = 0,
    boundaries: bool = False,
) -> Iterator[str]:
    """Words, marks, and their n-grams, which a long run interrupts; the first characters of words; the n-grams
    of runs.
    """
    kept_tokens = [token for token in tokens if token not in stop_words]
    if not kept_tokens:
        return
    if ngram_range[0] == 1:
        yield from (str(token) for token in kept_tokens if not is_run(token))
    lines: list[list[str]] = [[]]
    for token in [BEGIN, *kept_tokens, END] if boundaries else kept_tokens:
        if is_run(token) and not is_short(token):
            lines.append([])
        else:
            lines[-1].append(token)
    for n in range(max(ngram_range[0], 2), ngram_range[1] + 1):
        for line in lines:
            for i in range(len(line) - n + 1):
                yield " ".join(line[i : i + n])
    if boundaries and ngram_range[1] > 1:
        if is_run(kept_tokens[0]):
            yield f"{BEGIN} {kept_tokens[0].characters[0]}"
        if is_run(kept_tokens[-1]):
            yield f"{kept_tokens[-1].characters[-1]} {END}"
    for token in kept_tokens:
        if isinstance(token, Run):
            yield from ngrams_of_run(token, prefix_length)
        if 0 < prefix_length < len(token) and not is_run(token):
            yield " " + token[:prefix_length]  # no token looks like this


def ngrams_of_run(run: Run, prefix_length: int) -> Iterator[str]:
    """The characters of a run and their n-grams. A run that is no word also gives itself if it is short, or its
    beginning and its end if it is long.
    """
    characters, n = run.characters, len(run.characters)
    yield from characters
    padded = [" ", *characters, " "]
    for size in range(2, LONGEST_OF_RUN + 1):
        for i in range(len(padded) - size + 1):
            yield "".join(padded[i : i + size])
    if run.is_word:
        return
    if n > 1 and is_short(run):
        yield f" {run} "
    if 0 < prefix_length < n:
        yield " " + "".join(characters[:prefix_length])
        yield "".join(characters[-prefix_length:]) + " "


def letters_of_words(words: Iterable[str], size: int) -> Iterator[str]:
    """The sequences of `size` letters within words, each word between two spaces."""
    for word in words:
        padded = f" {word} "
        for i in range(len(padded) - size + 1):
            yield LETTERS_PREFIX + padded[i : i + size]


def words_of_tokens(tokens: Iterable[str], stop_words: frozenset[str]) -> Iterator[str]:
    """The words and marks; for runs and for words of Hangul, their characters."""
    for token in tokens:
        if token in stop_words:
            continue
        if not is_run(token):
            yield token
        if isinstance(token, Run):
            yield from token.characters


def is_run(token: str) -> TypeGuard[Run]:
    return isinstance(token, Run) and not token.is_word


def is_short(run: Run) -> bool:
    return len(run.characters) <= LONGEST_RUN
