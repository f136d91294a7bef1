"""Texts of any language as words, marks and runs of characters, and the n-grams of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stream_pegasos.engine.pure.characters import (
    BREAK,
    CHARACTER,
    EXTEND,
    IGNORED,
    JOINER,
    MARK,
    REGIONAL,
    SPACE,
    STACKER,
    SYLLABLE,
    WORD,
    class_of,
)

# What stands before the first and after the last token of a text.
BEGIN, END = "<s>", "</s>"
# A run counts by its n-grams up to this length, and up to that one also as a whole.
LONGEST_OF_RUN, LONGEST_RUN = 3, 16


@dataclass
class Segment:
    """A word, a mark or a run: what it is, and its characters, each with what belongs to it."""

    kind: int  # WORD, SYLLABLE, CHARACTER or MARK
    characters: list[str]

    @property
    def text(self) -> str:
        return "".join(self.characters)


def segments(text: str) -> list[Segment]:
    """The words, marks and runs of a text.

    Words are those of Unicode Standard Annex #29, without its rules for apostrophes, points and commas between letters
    and digits. A run is what that standard finds no words in: letters of scripts that set no spaces. Words of Hangul
    end where other letters or digits begin. A mark is any other character, a sequence of emoji being one.
    """
    found: list[Segment] = []
    before = SPACE  # what stands before, but for what belongs to it
    joins = stacks = False  # whether the next symbol, or the next character of a run, belongs to the one before
    for c in text:
        kind = class_of(c)
        if kind in (IGNORED, JOINER, BREAK):
            joins = joins or (kind == JOINER and before == MARK)
            if kind == BREAK and before == CHARACTER:
                before = SPACE
            continue
        if kind in (EXTEND, STACKER) and before != SPACE:
            if before == REGIONAL:
                before = MARK
            found[-1].characters[-1] += c
            stacks = kind == STACKER
            continue
        if kind in (WORD, SYLLABLE, CHARACTER) and kind == before:
            if stacks and kind == CHARACTER:
                found[-1].characters[-1] += c
            else:
                found[-1].characters.append(c)
        elif (joins and kind == MARK and c > "\x7f") or (kind == before == REGIONAL):
            found[-1].characters[-1] += c
            kind = MARK
        elif kind != SPACE:
            found.append(Segment(kind if kind in (WORD, SYLLABLE, CHARACTER) else MARK, [c]))
            kind = MARK if kind in (EXTEND, STACKER) else kind
        before = kind
        joins = stacks = False
    return found


def ngrams_of_segments(
    found: Iterable[Segment],
    stop_words: frozenset[str],
    ngram_range: tuple[int, int],
    prefix_length: int,
    boundaries: bool,
) -> Iterator[str]:
    """The words and marks; their n-grams, where a short run is a word, and which a longer one ends; the beginnings of
    words; the n-grams of runs.
    """
    kept = [segment for segment in found if segment.text not in stop_words]
    if not kept:
        return
    if ngram_range[0] == 1:
        yield from (segment.text for segment in kept if segment.kind != CHARACTER)
    line = [None if segment.kind == CHARACTER and not is_short(segment) else segment.text for segment in kept]
    bounded = [BEGIN, *line, END] if boundaries else line
    for n in range(max(ngram_range[0], 2), ngram_range[1] + 1):
        for i in range(len(bounded) - n + 1):
            words = [word for word in bounded[i : i + n] if word is not None]
            if len(words) == n:
                yield " ".join(words)
    if boundaries and ngram_range[1] > 1:
        if kept[0].kind == CHARACTER:
            yield f"{BEGIN} {kept[0].characters[0]}"
        if kept[-1].kind == CHARACTER:
            yield f"{kept[-1].characters[-1]} {END}"
    for segment in kept:
        if segment.kind in (SYLLABLE, CHARACTER):
            yield from ngrams_of_run(segment.characters)
        if segment.kind == CHARACTER:
            yield from parts_of_run(segment, prefix_length)
        elif 0 < prefix_length < len(segment.text):
            yield " " + segment.text[:prefix_length]  # which no token is


def ngrams_of_run(characters: list[str]) -> Iterator[str]:
    """Its characters, and the n-grams of these between two spaces."""
    yield from characters
    padded = [" ", *characters, " "]
    for n in range(2, LONGEST_OF_RUN + 1):
        for i in range(len(padded) - n + 1):
            yield "".join(padded[i : i + n])


def is_short(run: Segment) -> bool:
    return len(run.characters) <= LONGEST_RUN


def parts_of_run(run: Segment, prefix_length: int) -> Iterator[str]:
    """A short run as a whole; the beginning and the end of one that is longer than these."""
    n = len(run.characters)
    if n > 1 and is_short(run):
        yield f" {run.text} "
    if 0 < prefix_length < n:
        yield " " + "".join(run.characters[:prefix_length])
        yield "".join(run.characters[-prefix_length:]) + " "
