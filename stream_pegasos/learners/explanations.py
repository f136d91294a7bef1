"""Explanations: the parts of margins that the features of an example add."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_pegasos.engine import Encoder, Learner
from stream_pegasos.engine.pure.characters import composed
from stream_pegasos.engine.pure.driver import Margins
from stream_pegasos.engine.pure.scanner import masked_digits
from stream_pegasos.engine.pure.tokens import BEGIN, END, LENGTH_PREFIX, LETTERS_PREFIX, Run, split_units, tokenize
from stream_pegasos.features.base import SENTENCE
from stream_pegasos.learners.probabilities import Floats

__all__ = [
    "INTERCEPT",
    "Columns",
    "Contributions",
    "Phrase",
    "explain",
    "first_against_second",
    "phrases",
    "pieces",
    "shown_ngram",
    "words",
]

INTERCEPT = "(intercept)"  # its name among those of features
MAX_TEXT = 20_000  # characters of a text that are searched for words
Columns = list[tuple[int, float]]  # columns of margins, with their factors in a sum


class Contributions(NamedTuple):
    """The parts of a margin: by feature key; a weight for each number of the vector; the intercept's part."""

    features: dict[int, float]
    vector: Floats
    intercept: float


def explain(
    learner: Learner, encoder: Encoder, x: object, columns: Columns, add_intercept: bool = True
) -> Contributions:
    """The parts of a sum of margins that the features, the vector and the intercept of an example add."""
    features: dict[int, float] = {}
    vector: Any = 0.0
    intercept = 0.0
    for column, sign in columns:
        share, vector_score, others_score = learner.vector_score(encoder, x, column)
        own = (
            share * float(learner.intercept[column]) if add_intercept else 0.0
        )  # ordered classes may have no intercept yet
        intercept += sign * (own + others_score)
        vector = vector + sign * vector_score
        for key, value in learner.contributions(encoder, x, column).items():
            features[key] = features.get(key, 0.0) + sign * share * value
    return Contributions(features, vector, intercept)


def first_against_second(margins: Margins, first: int) -> Columns:
    """The columns whose sum is the difference between the first margin and the largest other one."""
    if len(margins) < 2:
        return [(first, 1.0)]
    return [(first, 1.0), (int(np.where(np.arange(len(margins)) == first, -np.inf, margins).argmax()), -1.0)]


# The field, and the n-gram if it stands for letters or for the length.
_spaced = re.compile(rf"(?:(.*?: )?({LETTERS_PREFIX}.*))?", re.DOTALL).match


def shown_ngram(name: str) -> str:
    """The readable name of letters within words, or of a length; any other name as it is.

    >>> shown_ngram("  tin"), shown_ngram("   ti"), shown_ngram("    5 words"), shown_ngram("tin can")
    ('…tin… within words', 'ti… within words', '31 to 62 words', 'tin can')
    """
    match = _spaced(name)
    assert match is not None  # the pattern matches any text
    field, ngram = match.groups("")
    if ngram.startswith(LENGTH_PREFIX):
        power, of = ngram.split()
        return f"{field}{2 ** int(power) - 1} to {2 ** (int(power) + 1) - 2} {of}"
    if not ngram:
        return name
    letters = ngram.removeprefix(LETTERS_PREFIX)
    begin, end = "" if letters.startswith(" ") else "…", "" if letters.endswith(" ") else "…"
    return f"{field}{begin}{letters.strip()}{end} within words"


class Phrase(NamedTuple):
    """Words of a message after the name of their field, their part of the margin, and the part of each word."""

    name: str
    value: float
    words: list[tuple[str, float]]


def phrases(
    contributions: Iterable[tuple[str, float]], limit: int, texts: Mapping[str, str]
) -> tuple[list[Phrase], list[float]]:
    """The heaviest phrases, largest size first, and the parts of all other n-grams, in the order of `contributions`.

    A phrase consists of the heaviest n-gram, the n-grams that overlap it, and those that overlap the longest of these.
    Its part is the sum of theirs; its name is the words of the longest n-gram. The part of an n-gram is divided equally
    among its words, or among its marks if it has no words. Prefixes of a word, and letters within it, belong to the
    word. `texts` are by field; the field is `""` if the message is a text.

    >>> added = [("000 </s>", 0.5), ("call 000", 0.25), ("000", 0.25), ("call", -0.0625)]
    >>> phrases(added, 1, {"": "Please CALL 800"})
    ([Phrase(name='CALL 800', value=0.9375, words=[('800', 0.875), ('CALL', 0.0625)])], [])
    """
    located = {field: Located(text) for field, text in texts.items()}
    by_words = sorted(letters_to_words(contributions, located).items(), key=lambda item: -abs(item[1]))
    left = {name: (value, _units(name, texts)) for name, value in by_words}
    result: list[Phrase] = []
    while left and len(result) < limit:
        first, (_, heaviest) = next(iter(left.items()))
        overlapping = {name: units for name, (_, units) in left.items() if name == first or units.overlaps(heaviest)}
        longest = max(overlapping, key=lambda name: overlapping[name].size)
        units = overlapping[longest]
        parts = overlapping.keys() | {
            name for name, (_, units_of_name) in left.items() if units_of_name.overlaps(units)
        }
        parts_of_phrase = [left.pop(name) for name in parts]
        value = math.fsum(value_of_part for value_of_part, _ in parts_of_phrase)
        if units.field == INTERCEPT or units.field not in texts:  # no words of a text
            shown = shown_ngram(longest)
            result.append(Phrase(shown, value, [(shown, value)]))
            continue
        at = located.get(units.field, NOWHERE)
        words = sorted(share_to_words(parts_of_phrase, located).items(), key=lambda item: (-abs(item[1]), item[0]))
        shown = at.shown([at.word_with(units.words[0])] if units.is_prefix else units.carriers)
        name = f"{units.field}: {shown}" if units.field else shown
        result.append(Phrase(name, value, [(at.shown([word]), share) for (_, word), share in words]))
    return sorted(result, key=lambda phrase: -abs(phrase.value)), [value for value, _ in left.values()]


def words(contributions: Iterable[tuple[str, float]], texts: Mapping[str, str]) -> dict[str, float]:
    """The part of each word, largest size first. A word is written as at its first place in the text, after the name of
    its field.
    """
    located = {field: Located(text) for field, text in texts.items()}
    by_words = letters_to_words(contributions, located)
    shares: dict[str, float] = {}
    for (field, word), value in share_to_words(
        [(label_words, _units(name, texts)) for name, label_words in by_words.items()], located
    ).items():
        name = located[field].shown([word]) if field in located else shown_ngram(word)
        name = f"{field}: {name}" if field in located and field else name
        shares[name] = shares.get(name, 0.0) + value
    return dict(
        sorted(((word, value) for word, value in shares.items() if value), key=lambda item: (-abs(item[1]), item[0]))
    )


def pieces(contributions: Iterable[tuple[str, float]], texts: Mapping[str, str]) -> dict[str, list[tuple[str, float]]]:
    """The texts of a message in pieces, which together are the whole text, each with its part of the margin."""
    located = {field: Located(text) for field, text in texts.items()}
    by_words = letters_to_words(contributions, located)
    shares = share_to_words([(value, _units(name, texts)) for name, value in by_words.items()], located)
    return {field: at.pieces(field, shares) for field, at in located.items()}


def letters_to_words(contributions: Iterable[tuple[str, float]], located: Mapping[str, Located]) -> dict[str, float]:
    """The part of each n-gram. The parts of letters within words are divided among the words that contain them."""
    shares: dict[str, float] = {}
    for name, value in contributions:
        field, ngram = _split_field(name, located)
        words = [name]
        if ngram.startswith(LETTERS_PREFIX) and not ngram.startswith(LENGTH_PREFIX) and field in located:
            letters, at = ngram.removeprefix(LETTERS_PREFIX), located[field]
            words = [word for word in dict.fromkeys(at.masked) if letters in f" {word} "] or words
            words = [f"{field}: {word}" if field else word for word in words]
        for word in words:
            shares[word] = shares.get(word, 0.0) + value / len(words)
    return shares


Shares = dict[tuple[str, str], float]  # by field and word


def share_to_words(ngrams: Iterable[tuple[float, _Units]], located: Mapping[str, Located]) -> Shares:
    """The part of each word, if the part of each n-gram is divided among its words."""
    shares: Shares = {}
    beginnings = []
    for value, units in ngrams:
        if units.is_prefix:
            beginnings.append((value, units))
            continue
        for word in units.carriers:
            key = units.field, word
            shares[key] = shares.get(key, 0.0) + value / len(units.carriers)
    for value, units in beginnings:  # add to the first word with this prefix
        begin, at = units.words[0], located.get(units.field, NOWHERE)
        learned = next((word for field, word in shares if field == units.field and word.startswith(begin)), None)
        key = units.field, learned or at.word_with(begin)
        shares[key] = shares.get(key, 0.0) + value
    return shares


class Located:
    """The places of the words in a text."""

    def __init__(self, text: str) -> None:
        self.text = composed(text[:MAX_TEXT])
        # Letter by letter, so that the places do not move.
        small = "".join([low if len(low := letter.lower()) == 1 else letter for letter in self.text])
        self.units = split_units(small)
        self.names = [unit for unit, *_ in self.units]
        self.masked = [masked_digits(unit) for unit in self.names]

    def word_with(self, begin: str) -> str:
        """The first word of the text with this prefix; the prefix itself if there is none."""
        pairs = zip(self.names, self.masked, strict=True)
        return next((name for name, masked in pairs if name.startswith(begin) or masked.startswith(begin)), begin)

    def shown(self, words: Sequence[str]) -> str:
        """Words as in the text, at the first place where they are in sequence; else each at its own first place."""
        n = len(words)
        for names in (self.names, self.masked):
            for i in range(len(names) - n + 1):
                if names[i] == words[0] and names[i : i + n] == [*words]:
                    return " ".join(self.text[self.units[i][1] : self.units[i + n - 1][2]].split())
        if n == 1:
            return words[0]
        joined = "" if all(len(word) == 1 and not word.isascii() for word in words) else " "
        return joined.join([self.shown([word]) for word in words])

    def pieces(self, field: str, shares: Shares) -> list[tuple[str, float]]:
        pieces: list[tuple[str, float]] = []
        end = 0
        for (_, begin, stop), *names in zip(self.units, self.names, self.masked, strict=True):
            value = math.fsum(shares.get((field, name), 0.0) for name in dict.fromkeys(names))
            if value:
                if begin > end:
                    pieces.append((self.text[end:begin], 0.0))
                pieces.append((self.text[begin:stop], value))
                end = stop
        if tail := self.text[end:]:
            pieces.append((tail, 0.0))
        return pieces


NOWHERE = Located("")


class _Units(NamedTuple):
    """The units of an n-gram."""

    field: str
    words: Sequence[str]  # also marks, or characters of a run
    is_prefix: bool  # whether it is a prefix of a word

    @property
    def carriers(self) -> Sequence[str]:
        """The words, or the marks if there are no words. The boundaries of the text are left out, unless there is
        nothing else.
        """
        within = [word for word in self.words if word not in (BEGIN, END) and word.strip()]
        return [word for word in within if any(map(str.isalnum, word))] or within or self.words

    @property
    def size(self) -> tuple[int, int, bool]:
        return len(self.carriers), len(self.words), not self.is_prefix

    def overlaps(self, other: _Units) -> bool:
        """Whether one contains the other, or begins with the last words of the other; marks alone do not count."""
        if self.field != other.field:
            return False
        if self.is_prefix or other.is_prefix:
            prefix, of = (self, other) if self.is_prefix else (other, self)
            return any(word.startswith(prefix.words[0]) for word in of.words)
        a, b = self.words, other.words
        for at in range(1 - len(a), len(b)):  # the place of one in the other
            shared = b[max(at, 0) : at + len(a)]
            whole = len(shared) == min(len(a), len(b))
            if a[max(-at, 0) :][: len(shared)] == shared and (whole or any(map(str.isalnum, shared))):
                return True
        return False


def _split_field(name: str, texts: Collection[str]) -> tuple[str, str]:
    """The field of an n-gram, and the n-gram, which may contain a colon. The field of a plain text is `""`."""
    field = max((field for field in texts if field and name.startswith(f"{field}: ")), key=len, default="")
    return field, name.removeprefix(f"{field}: ") if field else name


def _units(name: str, texts: Mapping[str, str]) -> _Units:
    if name in (INTERCEPT, SENTENCE):
        return _Units(name, [name], False)
    field, ngram = _split_field(name, texts)
    if field not in texts or ngram.startswith(LENGTH_PREFIX):  # no text with words, or no words
        return _Units(INTERCEPT if field in texts else name, [name], False)
    within = ngram.removeprefix(f"{BEGIN} ").removesuffix(f" {END}")
    tokens = tokenize(within)
    if within != ngram:
        tokens = [*[BEGIN][: ngram.startswith(f"{BEGIN} ")], *tokens, *[END][: ngram.endswith(f" {END}")]]
    words = [part for token in tokens for part in (token.characters if isinstance(token, Run) else [token])]
    return _Units(field, words, words == tokens and len(words) == 1 and ngram.startswith(" "))
