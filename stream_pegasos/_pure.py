"""The engine in plain Python: the readable specification of `_compiled`, and the fallback where that is missing.

Three *encoders* turn what comes in (texts, feature dicts, sparse rows) into rows of 64-bit keys and float values; the
`Learner` takes Pegasos steps on such rows; the `WeightDict` holds the weights. `_compiled` has the same names, the same
arguments and, to rounding, the same results.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Integers below this size are their own keys; any other feature name gets the next key from FIRST_NAME on.
DIRECT_LIMIT = 1 << 53
FIRST_NAME = 1 << 60
INTERCEPT = -(1 << 60)

# With values, example weights and l2 inside their limits no sum in the engine can overflow.
VALUE_LIMIT = 1e45
# Below this scale the weights are folded, so that neither they nor the scale leave the range of a float64.
FOLD_BELOW = 1e-9

State = dict[str, Any]


class Row(NamedTuple):
    """One example: x = factor · {key: value}; a key may stand more than once, its values then add up."""

    keys: Sequence[int]
    values: Sequence[float]
    factor: float = 1.0


# --- weights ----------------------------------------------------------------------------------------------------------


class WeightDict:
    """A lazily scaled weight dictionary: w = a·v, so that scaling all weights costs one multiplication."""

    def __init__(self) -> None:
        self._v: dict[int, float] = {}
        self._a = 1.0
        self._squares = 0.0  # ‖v‖²

    def __len__(self) -> int:
        return len(self._v)

    def get(self, key: int) -> float:
        return self._a * self._v.get(key, 0.0)

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        v = np.fromiter(self._v.values(), np.float64, len(self._v))
        return np.fromiter(self._v, np.int64, len(self._v)), self._a * v

    @property
    def squared_norm(self) -> float:
        return self._a * self._a * self._squares

    def dot(self, row: Row) -> float:
        v = self._v
        total = sum(v.get(key, 0.0) * x for key, x in zip(row.keys, row.values, strict=True))
        return self._a * row.factor * total

    def add(self, row: Row, factor: float) -> None:
        """w ← w + factor · x"""
        v, step = self._v, factor * row.factor / self._a
        for key, x in zip(row.keys, row.values, strict=True):
            if x != 0.0:
                old = v.get(key, 0.0)
                new = old + step * x
                v[key] = new
                self._squares += (new - old) * (new + old)

    def scale(self, factor: float) -> None:
        """w ← factor · w"""
        if factor == 0.0:
            self._v.clear()
            self._a, self._squares = 1.0, 0.0
            return
        self._a *= factor
        if abs(self._a) < FOLD_BELOW:
            for key in self._v:
                self._v[key] *= self._a
            self._a = 1.0
            self._squares = sum(x * x for x in self._v.values())

    def get_state(self) -> State:
        keys = np.fromiter(self._v, np.int64, len(self._v))
        values = np.fromiter(self._v.values(), np.float64, len(self._v))
        return {"keys": keys, "values": values, "scale": self._a, "squares": self._squares}

    def set_state(self, state: State) -> None:
        self._v = dict(zip(state["keys"].tolist(), state["values"].tolist(), strict=True))
        self._a, self._squares = state["scale"], state["squares"]


# --- encoders ---------------------------------------------------------------------------------------------------------


class Encoder:
    """Turns one kind of input into rows. All inputs of a call are checked before the first row is handed out."""

    def row(self, x: Any, learning: bool) -> Row:
        raise NotImplementedError

    def rows(self, X: Any, learning: bool) -> list[Row]:
        return [self.row(x, learning) for x in X]


class Vocabulary(Encoder):
    """Feature dicts to rows. Integers stand for themselves; other names are numbered as they are first learned."""

    def __init__(self, names: Iterable[Any] = ()) -> None:
        self._keys = {name: FIRST_NAME + i for i, name in enumerate(names)}

    @property
    def names(self) -> list[Any]:
        """The names that are not their own keys, in the order of their keys."""
        return list(self._keys)

    def row(self, x: dict[Any, Any], learning: bool) -> Row:
        before = len(self._keys)
        try:
            return self._row(x, learning)
        except BaseException:
            self._forget(before)
            raise

    def rows(self, X: Iterable[dict[Any, Any]], learning: bool) -> list[Row]:
        before = len(self._keys)
        try:
            return [self._row(x, learning) for x in X]
        except BaseException:
            self._forget(before)
            raise

    def _row(self, x: dict[Any, Any], learning: bool) -> Row:
        if not isinstance(x, dict):
            raise TypeError(f"features must be a dict, not {type(x).__name__}")
        keys, values = [], []
        for given_name, given in x.items():
            name, value = plain_name(given_name), check_value(given_name, given)
            if isinstance(name, int) and -DIRECT_LIMIT < name < DIRECT_LIMIT:
                key: int | None = name
            elif learning and value != 0.0:
                key = self._keys.setdefault(name, FIRST_NAME + len(self._keys))
            else:
                key = self._keys.get(name)
            if key is not None:
                keys.append(key)
                values.append(value)
        return Row(keys, values)

    def _forget(self, size: int) -> None:
        while len(self._keys) > size:
            self._keys.popitem()


def check_value(name: Any, value: Any) -> float:
    """The value of a feature as a float.

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If it is NaN, infinite or larger in size than `VALUE_LIMIT`.
    """
    try:
        if isinstance(value, (str, bytes, np.complexfloating)):
            raise TypeError
        number = float(value)
    except OverflowError:
        number = math.inf
    except TypeError:
        raise TypeError(
            f"feature {name!r} has the value {value!r}, which is no number; encode it as one first"
        ) from None
    if not abs(number) <= VALUE_LIMIT:
        raise ValueError(
            f"feature {name!r} has the value {value!r}; values must be finite and at most {VALUE_LIMIT:g} in size"
        )
    return number


def plain_name(name: Any) -> int | str | tuple[Any, ...]:
    """A feature name as an int, a str or a tuple of those; what compares equal is the same feature.

    Raises
    ------
    TypeError
        If it is none of these, nor a bool.
    """
    if isinstance(name, (int, np.bool_, np.integer)):
        return int(name)
    if isinstance(name, str):
        return str(name)
    if isinstance(name, tuple):
        return tuple(plain_name(part) for part in name)
    raise TypeError(
        f"feature name {name!r} is a {type(name).__name__}; names must be int, str, bool or tuples of those"
    )


class Rows(Encoder):
    """The rows of a CSR matrix, given as (indptr, indices, data); their columns are the keys."""

    def rows(self, X: Any, learning: bool) -> list[Row]:
        indptr, indices, data = (array.tolist() for array in X)
        if indices and not 0 <= min(indices) <= max(indices) < FIRST_NAME:
            raise ValueError("a column of the matrix is negative or beyond 2**60")
        for position, value in enumerate(data):
            if not abs(value) <= VALUE_LIMIT:
                raise ValueError(
                    f"column {indices[position]} holds the value {value!r}; "
                    f"values must be finite and at most {VALUE_LIMIT:g} in size"
                )
        return [Row(indices[begin:end], data[begin:end]) for begin, end in pairwise(indptr)]


class Scanner(Encoder):
    """Texts to rows of hashed n-grams.

    `analyzer` is "word", "char", "char_wb", or "ngrams" where each text comes as the list of its n-grams;
    `token_pattern` is one of `TOKEN_PATTERNS`.
    """

    def __init__(
        self,
        analyzer: str,
        token_pattern: str,
        lowercase: bool,
        stop_words: frozenset[str],
        ngram_range: tuple[int, int],
        n_features: int,
        alternate_sign: bool,
        binary: bool,
        norm: str | None,
    ) -> None:
        self.arguments = (
            analyzer,
            token_pattern,
            lowercase,
            stop_words,
            ngram_range,
            n_features,
            alternate_sign,
            binary,
            norm,
        )
        self._find_tokens = re.compile(token_pattern).findall
        self._analyzer = analyzer
        self._lowercase = lowercase
        self._stop_words = stop_words
        self._ngram_range = ngram_range
        self._n_features = n_features
        self._alternate_sign = alternate_sign
        self._binary = binary
        self._norm = norm

    def transform_one(self, text: Any) -> dict[int, float]:
        counts = self._counts(text)
        length = self._length(counts.values())
        return {index: count / length for index, count in counts.items()}

    def transform_many(self, texts: Sequence[Any]) -> tuple[Any, Any, Any]:
        dicts = [self.transform_one(text) for text in texts]
        indptr = np.cumsum([0, *map(len, dicts)], dtype=np.int64)
        indices = np.fromiter((i for x in dicts for i in x), np.int32, indptr[-1])
        data = np.fromiter((v for x in dicts for v in x.values()), np.float64, indptr[-1])
        return indptr, indices, data

    def index(self, ngram: str) -> tuple[int, float]:
        """The column of an n-gram and its sign there."""
        h = murmur3_32(ngram.encode("utf-8", "surrogatepass"))
        signed = h - (1 << 32) if h >> 31 else h
        sign = -1.0 if self._alternate_sign and signed < 0 else 1.0
        return abs(signed) % self._n_features, sign

    def row(self, x: Any, learning: bool) -> Row:
        counts = self._counts(x)
        return Row(list(counts), list(counts.values()), 1.0 / self._length(counts.values()))

    def _counts(self, text: Any) -> dict[int, float]:
        counts: dict[int, float] = {}
        for ngram in self._ngrams(text):
            index, sign = self.index(ngram)
            counts[index] = counts.get(index, 0.0) + sign
        return dict.fromkeys(counts, 1.0) if self._binary else counts

    def _length(self, counts: Iterable[float]) -> float:
        if self._norm == "l2":
            return math.sqrt(sum(c * c for c in counts)) or 1.0
        if self._norm == "l1":
            return sum(abs(c) for c in counts) or 1.0
        return 1.0

    def _ngrams(self, text: Any) -> Iterable[str]:
        if self._analyzer == "ngrams":
            ngrams: list[str] = text
            return ngrams
        if not isinstance(text, str):
            raise TypeError(f"a text must be a str, not {type(text).__name__}")
        if self._lowercase:
            text = text.lower()
        if self._analyzer == "word":
            return word_ngrams(self._find_tokens(text), self._stop_words, self._ngram_range)
        return CHAR_NGRAMS[self._analyzer](text, self._ngram_range)


# The patterns that the scanner knows without `re`: runs of two or more word characters, of one or more, words and
# punctuation marks, and whatever stands between white space.
TOKEN_PATTERNS = (r"\b\w\w+\b", r"\w+", r"\w+|[^\w\s]", r"\S+")


def word_ngrams(tokens: Iterable[str], stop_words: frozenset[str], ngram_range: tuple[int, int]) -> Iterator[str]:
    kept = [token for token in tokens if token not in stop_words]
    for n in range(ngram_range[0], ngram_range[1] + 1):
        for i in range(len(kept) - n + 1):
            yield " ".join(kept[i : i + n])


def char_ngrams(text: str, ngram_range: tuple[int, int]) -> Iterator[str]:
    text = re.sub(r"\s\s+", " ", text)
    for n in range(ngram_range[0], ngram_range[1] + 1):
        for i in range(len(text) - n + 1):
            yield text[i : i + n]


def char_wb_ngrams(text: str, ngram_range: tuple[int, int]) -> Iterator[str]:
    for word in text.split():
        padded = f" {word} "
        for n in range(ngram_range[0], ngram_range[1] + 1):
            if n >= len(padded):  # a word no longer than n counts once, whatever else n may be
                yield padded
                break
            for i in range(len(padded) - n + 1):
                yield padded[i : i + n]


CHAR_NGRAMS: dict[str, Callable[[str, tuple[int, int]], Iterator[str]]] = {
    "char": char_ngrams,
    "char_wb": char_wb_ngrams,
}


def murmur3_32(data: bytes) -> int:
    """MurmurHash3_x86_32 with seed 0 (Appleby, 2011, public domain)."""
    mask = 0xFFFFFFFF
    h = 0
    for i in range(0, len(data), 4):
        k = int.from_bytes(data[i : i + 4], "little") * 0xCC9E2D51 & mask
        k = (k << 15 | k >> 17) * 0x1B873593 & mask
        h ^= k
        if i + 4 <= len(data):
            h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & mask
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return h ^ h >> 16


# --- learning ---------------------------------------------------------------------------------------------------------


def signs_of(y: list[Any], signs: dict[Any, float]) -> NDArray[np.float64] | None:
    """The value in `signs` of each label of a list, or None if one is not there."""
    found = [signs.get(label) for label in y]
    return None if None in found else np.array(found, np.float64)


class Learner:
    """Pegasos steps on rows, with a mini-batch buffer, and a probability for each margin.

    The probability of the positive class is 1/(1 + exp(−s·margin)), with the slope of Platt (1999) and without his
    intercept, so that probability and decision always agree. The slope s > 0 follows the margins seen before learning
    by stochastic descent on the log loss over log s, with the step size of AdaGrad (Duchi, Hazan and Singer 2011) over
    the newest thousand gradients or so, since the first margins of Pegasos are far larger than those to come.
    """

    def __init__(self, l2: float, batch_size: int, t0: float, project: bool, intercept_scaling: float) -> None:
        self.arguments = (l2, batch_size, t0, project, intercept_scaling)
        self.weights = WeightDict()
        self.n_iterations = 0
        self._l2 = l2
        self._batch_size = batch_size
        self._t0 = t0
        self._project = project
        self._intercept_scaling = intercept_scaling  # 0: no intercept
        self._n_buffered = 0
        self._buffer: list[tuple[int, float]] = []  # of the violating examples: key, c·y·x
        self._slope = 1.0
        self._calibration_squares = 0.0

    @property
    def n_buffered(self) -> int:
        return self._n_buffered

    def margin(self, encoder: Encoder, x: Any) -> float:
        """⟨w, x⟩"""
        return self.weights.dot(self._with_intercept(encoder.row(x, False)))

    def probability(self, margin: float) -> float:
        """The probability of the positive class; above one half exactly where the margin is above 0."""
        probability = logistic(self._slope * margin)
        return max(probability, 0.5 + 2.0**-53) if margin > 0.0 else probability

    def learn(self, encoder: Encoder, x: Any, y: float, weight: float) -> None:
        """Take in one example with label y = ±1, and the step if it fills the batch."""
        self._learn_row(self._with_intercept(encoder.row(x, True)), y, weight)

    def predict_learn_many(
        self,
        encoder: Encoder,
        X: Any,
        y: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Margin and probability of each example, in turn, before it is learned; without y nothing is learned."""
        rows = encoder.rows(X, y is not None)
        margins, probabilities = np.empty(len(rows)), np.empty(len(rows))
        for i, row in enumerate(map(self._with_intercept, rows)):
            margins[i] = self.weights.dot(row)
            probabilities[i] = self.probability(margins[i])
            if y is not None:
                self._learn_row(row, float(y[i]), 1.0 if weights is None else float(weights[i]))
        return margins, probabilities

    def flush(self) -> None:
        """Take the step with the examples that the buffer holds."""
        if self._n_buffered:
            self._step()

    def negate(self) -> None:
        """Exchange the two classes: what has been learned stays, with the opposite sign."""
        self.weights.scale(-1.0)
        self._buffer = [(key, -value) for key, value in self._buffer]

    def _with_intercept(self, row: Row) -> Row:
        if not self._intercept_scaling:
            return row
        constant = self._intercept_scaling / row.factor
        return Row([*row.keys, INTERCEPT], [*row.values, constant], row.factor)

    def _learn_row(self, row: Row, y: float, weight: float) -> None:
        margin = self.weights.dot(row)
        probability = self.probability(margin)
        self._calibrate(y * margin, 1.0 - probability if y > 0.0 else probability)
        if y * margin < 1.0:
            coefficient = weight * y * row.factor
            self._buffer += [(key, coefficient * x) for key, x in zip(row.keys, row.values, strict=True)]
        self._n_buffered += 1
        if self._n_buffered == self._batch_size:
            self._step()

    def _step(self) -> None:
        self.n_iterations += 1
        n = self.n_iterations + self._t0
        self.weights.scale((n - 1.0) / n)
        if self._buffer:
            keys, values = zip(*self._buffer, strict=True)
            self.weights.add(Row(keys, values), 1.0 / (self._l2 * n * self._n_buffered))
        self._n_buffered, self._buffer = 0, []
        if self._project:
            ratio = self._l2 * self.weights.squared_norm
            if ratio > 1.0:
                self.weights.scale(1.0 / math.sqrt(ratio))

    def _calibrate(self, signed_margin: float, wrong: float) -> None:
        """One step on the log loss of the label; `wrong` is the probability that was given to the other one."""
        gradient = -self._slope * signed_margin * wrong
        gradient = min(max(gradient, -LARGEST_GRADIENT), LARGEST_GRADIENT)
        if abs(gradient) >= SMALLEST_GRADIENT:
            self._calibration_squares = CALIBRATION_MEMORY * self._calibration_squares + gradient * gradient
            # A step of log s is at most the rate, so 1 − step is near exp(−step), and stays above 0.
            slope = self._slope * (1.0 - CALIBRATION_RATE * gradient / math.sqrt(self._calibration_squares))
            self._slope = min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)

    def get_state(self) -> State:
        return {
            **self.weights.get_state(),
            "n_iterations": self.n_iterations,
            "n_buffered": self._n_buffered,
            "buffer_keys": np.array([key for key, _ in self._buffer], np.int64),
            "buffer_values": np.array([value for _, value in self._buffer], np.float64),
            "slope": self._slope,
            "calibration_squares": self._calibration_squares,
        }

    def set_state(self, state: State) -> None:
        self.weights.set_state(state)
        self.n_iterations = state["n_iterations"]
        self._n_buffered = state["n_buffered"]
        keys, values = state["buffer_keys"].tolist(), state["buffer_values"].tolist()
        self._buffer = list(zip(keys, values, strict=True))
        self._slope = state["slope"]
        self._calibration_squares = state["calibration_squares"]


# The size of the first steps of the logarithm of the slope.
CALIBRATION_RATE = 0.5
# How much of the sum of their squares is left at each new one.
CALIBRATION_MEMORY = 1.0 - 1.0 / 1000.0
# Inside these limits squares of gradients and slopes stay in the range of a float64.
SMALLEST_GRADIENT, LARGEST_GRADIENT = 1e-100, 1e100
SMALLEST_SLOPE, LARGEST_SLOPE = 1e-200, 1e200


def logistic(z: float) -> float:
    """1/(1 + exp(−z)), kept inside (0, 1)."""
    return 1.0 / (1.0 + math.exp(-min(max(z, -34.0), 34.0)))
