"""Texts of any language as words, marks and runs of characters, and the n-grams of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from stream_pegasos.engine.pure.characters import MARK, character_class

# What stands before the first and after the last token of a text.
BEGIN, END = "<s>", "</s>"
# What stands before letters within words, and before the length of a text, and before no other n-gram.
LETTERS_PREFIX, LENGTH_PREFIX = "  ", "    "
# A run counts by its n-grams up to this length, and up to that one also as a whole.
LONGEST_OF_RUN, LONGEST_RUN = 3, 16

# The classes of characters, in their order, a letter each; and what a joiner may join, a mark beyond ASCII. A token is
# a pattern over these.
LETTERS, SYMBOL = "mwhc ekijbr", "s"
# What may stand behind a mark: what belongs to it, and symbols that are joined to it.
BEHIND_MARK = "[ekib]*+(?:j[ekijb]*+s[ekib]*+)*+[ekijb]*+"
TOKEN = re.compile(
    "w[wekijb]*+"
    "|h[hekijb]*+"
    "|c[cekij]*+"  # a run, which the space of no width ends
    f"|[msek]{BEHIND_MARK}"
    f"|r[ijb]*+(?:[rek]{BEHIND_MARK})?+"  # two are a flag
)
CHARACTER_OF_TOKEN = re.compile("[hc](?:k[ij]*+c|[ekijb])*+")
NOT_THERE = re.compile("[ijb]")


class Kinds(dict[int, str]):
    """The letter of each character, by its code point, as it is first met."""

    def __missing__(self, c: int) -> str:
        kind = character_class(chr(c))
        self[c] = SYMBOL if kind == MARK and c > 0x7F else LETTERS[kind]
        return self[c]


KINDS = Kinds()


class Run(str):
    """A run, or a word of Hangul: its characters count, too, each with what belongs to it."""

    characters: list[str]
    is_word: bool


def tokenize(text: str) -> list[str]:
    """The words, marks and runs of a text.

    Words are those of Unicode Standard Annex #29, without its rules for apostrophes, points and commas; words of Hangul
    end where other letters or digits begin. A run is of letters of scripts that set no spaces. A mark is any other
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
    """The words and marks of a text, and the characters of its runs, each with its begin and its end."""
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
    """Words, marks, and n-grams of them, which a long run ends; the beginnings of words; the n-grams of runs."""
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
            yield " " + token[:prefix_length]  # which no token is


def ngrams_of_run(run: Run, prefix_length: int) -> Iterator[str]:
    """Its characters and their n-grams; of what is no word, a short run as a whole, or the beginning and end of a long
    one.
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
    """The sequences of so many letters within words, each word between two spaces."""
    for word in words:
        padded = f" {word} "
        for i in range(len(padded) - size + 1):
            yield LETTERS_PREFIX + padded[i : i + size]


def words_of_tokens(tokens: Iterable[str], stop_words: frozenset[str]) -> Iterator[str]:
    """The words and marks; of runs, and of words of Hangul, the characters."""
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
