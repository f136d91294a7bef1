"""Prequential evaluation: predict every example of a stream, then learn it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stream_pegasos.learners.classifier import PartlyLearnedError
from stream_pegasos.learners.labels import PositiveLabelError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# (x, y), (x, y, w) or a longer tuple that begins so.
Example = Sequence[Any]
# What is told of an example that a model refuses: the example and the reason.
OnRefused = Callable[[Example, str], None]
# For a block of examples: whether positive, the margins, P(positive), whether predicted positive.
Outcomes = tuple[Bools, Floats, Floats, Bools]

# How a model refuses an example; what else it raises is a failure of its own.
REFUSALS = (ValueError, TypeError)

_FIRST_STEP = 50
_MOST_ROWS = 200
# Of margins of either sign; 200 · asinh(64 · margin) is beyond them for margins beyond 3.8 million.
_BINS = 4_000
# Long texts make a chunk shorter, so that memory stays constant.
_CHUNK_SIZE = 1 << 22


class Checkpoint(NamedTuple):
    """The scores after the first `n` examples, a row of the prequential curve."""

    n: int
    accuracy: float
    balanced_accuracy: float
    f1: float
    roc_auc: float
    log_loss: float
    window_accuracy: float
    seconds: float


class PrequentialScore:
    """Binary classification metrics over a growing stream, updated in bulk.

    A metric is `nan` where it is undefined: all of them before the first example, balanced accuracy
    and ROC AUC while the stream has one class, F1 while nothing is positive nor predicted so.

    Parameters
    ----------
    window
        The number of newest examples that `window_accuracy` and `window_roc_auc` are about.
    exact
        Whether `roc_auc` is exact, which takes 8 bytes an example. If not, margins are counted in 8,001 bins, in memory
        that stays constant; a bin is as wide as 1/200 of the margin, near 0 as 1/12,800.

    Attributes
    ----------
    n
        The number of examples.
    confusion_matrix
        The counts, as `confusion_matrix[truth, prediction]` with 0 for negative, 1 for positive.
    reliability
        For each tenth of the probabilities of the positive label from 0 to 1: the number of examples, the mean
        probability and the share that is positive, as rows of an array.

    Examples
    --------

    >>> from stream_pegasos.evaluation.prequential import PrequentialScore

    >>> score = PrequentialScore()
    >>> score.update(
    ...     [True, False, True], margins=[0.4, -1.2, -0.1], probabilities=[0.6, 0.2, 0.45]
    ... )
    >>> score.confusion_matrix
    array([[1, 0],
           [1, 1]])
    >>> round(score.accuracy, 3), round(score.f1, 3), score.roc_auc
    (0.667, 0.667, 1.0)

    """

    def __init__(self, window: int = 1_000, exact: bool = True) -> None:
        if window < 1:
            raise ValueError(f"window is {window}: it must hold at least 1 example")
        self.window = window
        self.confusion_matrix: NDArray[np.int64] = np.zeros((2, 2), np.int64)
        self._log_loss = 0.0
        self._tenths: Floats = np.zeros((10, 3))  # number, sum of probabilities, number of positives
        self._newest: Floats = np.zeros((0, 3))  # whether positive, whether right, margin
        self._ranking: _Margins | _MarginCounts = _Margins() if exact else _MarginCounts()

    def update(
        self,
        y: ArrayLike,
        margins: ArrayLike,
        probabilities: ArrayLike,
        predicted: ArrayLike | None = None,
    ) -> None:
        """Add examples.

        Parameters
        ----------
        y
            Whether each example is positive.
        margins
            The margins that were predicted.
        probabilities
            The probabilities of the positive label that were predicted.
        predicted
            Whether the positive label was predicted; by default, whether the margin is above 0.

        """
        y, margins = np.asarray(y, bool), np.asarray(margins, float)
        probabilities = np.asarray(probabilities, float)
        predicted = margins > 0 if predicted is None else np.asarray(predicted, bool)
        counts = np.bincount(2 * y + predicted, minlength=4)
        of_truth = np.clip(np.where(y, probabilities, 1 - probabilities), 1e-15, 1.0)
        self.confusion_matrix += counts.reshape(2, 2)
        self._log_loss -= float(np.log(of_truth).sum())
        tenth = np.minimum((10 * probabilities).astype(int), 9)
        for column, weights in enumerate((None, probabilities, y)):
            self._tenths[:, column] += np.bincount(tenth, weights, minlength=10)
        newest = np.column_stack([y, y == predicted, margins])
        self._newest = np.concatenate([self._newest, newest])[-self.window :]
        self._ranking.update(y, margins)

    @property
    def n(self) -> int:
        return int(self.confusion_matrix.sum())

    @property
    def accuracy(self) -> float:
        """The share of right predictions."""
        return _ratio(self.confusion_matrix.trace(), self.n)

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the two classes' shares of right predictions."""
        (tn, fp), (fn, tp) = self.confusion_matrix
        return (_ratio(tp, tp + fn) + _ratio(tn, tn + fp)) / 2

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of the positive label."""
        (_, fp), (fn, tp) = self.confusion_matrix
        return _ratio(2 * tp, 2 * tp + fp + fn)

    @property
    def log_loss(self) -> float:
        """The mean of -log P(true label)."""
        return _ratio(self._log_loss, self.n)

    @property
    def reliability(self) -> Floats:
        n = self._tenths[:, :1]
        return np.hstack([n, np.divide(self._tenths[:, 1:], n, out=np.full((10, 2), math.nan), where=n > 0)])

    @property
    def expected_calibration_error(self) -> float:
        """How far the mean probability of a tenth is from its share of positives, on average over examples."""
        return _ratio(float(np.abs(self._tenths[:, 1] - self._tenths[:, 2]).sum()), self.n)

    @property
    def window_accuracy(self) -> float:
        """The accuracy over the newest examples."""
        return _ratio(self._newest[:, 1].sum(), len(self._newest))

    @property
    def roc_auc(self) -> float:
        """The share of pairs in which the positive example has the higher margin; a tie is half."""
        return self._ranking.roc_auc

    @property
    def window_roc_auc(self) -> float:
        """The same over the newest examples."""
        newest = _Margins()
        newest.update(self._newest[:, 0] == 1.0, self._newest[:, 2])
        return newest.roc_auc

    def swap(self) -> None:
        """Exchange the two classes, as a model does whose second label shows the first positive."""
        self.confusion_matrix = self.confusion_matrix[::-1, ::-1].copy()
        self._ranking.swap()
        self._newest = self._newest * [-1, 1, -1] + [1, 0, 0]
        self._tenths = self._tenths[::-1] * [1, -1, -1] + self._tenths[::-1, :1] * [0, 1, 1]

    def checkpoint(self, seconds: float = math.nan) -> Checkpoint:
        """All scores as they are now, as a row of a curve."""
        return Checkpoint(
            self.n,
            self.accuracy,
            self.balanced_accuracy,
            self.f1,
            self.roc_auc,
            self.log_loss,
            self.window_accuracy,
            seconds,
        )

    def get_state(self) -> dict[str, Any]:
        """All that has been counted, as JSON values; not where `exact`."""
        return {
            "confusion_matrix": self.confusion_matrix.tolist(),
            "log_loss": self._log_loss,
            "tenths": self._tenths.tolist(),
            "newest": self._newest.tolist(),
            "margin_counts": self._ranking.get_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over what has been counted elsewhere.

        Raises
        ------
        ArithmeticError, LookupError, TypeError, ValueError
            If it is nothing that `get_state` gives.
        """
        confusion_matrix = np.array(state["confusion_matrix"], np.int64).reshape(2, 2)
        tenths = np.array(state["tenths"], float).reshape(10, 3)
        newest = np.array(state["newest"], float).reshape(-1, 3)[-self.window :]
        self._ranking.set_state(state["margin_counts"])
        self.confusion_matrix, self._tenths, self._newest = confusion_matrix, tenths, newest
        self._log_loss = float(state["log_loss"])


class _Margins:
    """All margins of either class. ROC AUC counts the pairs that are in order; counting those between old and new
    margins, both sorted, makes a curve of exact values cheap.
    """

    def __init__(self) -> None:
        self._new: list[tuple[Bools, Floats]] = []
        self._positive: Floats = np.zeros(0)
        self._negative: Floats = np.zeros(0)
        self._half_pairs = 0

    def update(self, y: Bools, margins: Floats) -> None:
        self._new.append((y, margins))

    @property
    def roc_auc(self) -> float:
        self._merge()
        return _ratio(self._half_pairs, 2 * len(self._positive) * len(self._negative))

    def swap(self) -> None:
        self._merge()
        self._positive, self._negative = -self._negative[::-1], -self._positive[::-1]

    def get_state(self) -> Any:
        raise ValueError("exact scores are not written down: use exact=False")

    def set_state(self, state: Any) -> None:
        self.get_state()

    def _merge(self) -> None:
        """Sort the new margins in."""
        if not self._new:
            return
        y, margins = (np.concatenate(arrays) for arrays in zip(*self._new, strict=True))
        positive, negative = np.sort(margins[y]), np.sort(margins[~y])
        self._half_pairs += (
            _half_pairs(self._positive, negative)
            + _half_pairs(positive, self._negative)
            + _half_pairs(positive, negative)
        )
        self._positive = np.insert(self._positive, np.searchsorted(self._positive, positive), positive)
        self._negative = np.insert(self._negative, np.searchsorted(self._negative, negative), negative)
        self._new.clear()


class _MarginCounts:
    """How many margins of either class are in each bin."""

    def __init__(self) -> None:
        self._counts: NDArray[np.int64] = np.zeros((2, 2 * _BINS + 1), np.int64)  # negatives, positives

    def update(self, y: Bools, margins: Floats) -> None:
        # Nearly margin · 12,800 where the margin is small, and 200 · log(margin) where it is large.
        bins = np.rint(200 * np.arcsinh(64 * margins)).clip(-_BINS, _BINS).astype(np.intp) + _BINS
        np.add.at(self._counts, (y.astype(np.intp), bins), 1)

    @property
    def roc_auc(self) -> float:
        negatives, positives = self._counts.astype(float)  # as the number of pairs may be beyond any int64
        half_pairs = (positives * (2 * np.cumsum(negatives) - negatives)).sum()
        return _ratio(half_pairs, 2 * negatives.sum() * positives.sum())

    def swap(self) -> None:
        self._counts = self._counts[::-1, ::-1].copy()

    def get_state(self) -> Any:
        """For each bin that has any: its number, and the counts of negatives and of positives."""
        bins = np.flatnonzero(self._counts.any(axis=0))
        return np.column_stack([bins, self._counts[:, bins].T]).tolist()

    def set_state(self, state: Any) -> None:
        bins, negatives, positives = np.array(state, np.int64).reshape(-1, 3).T
        self._counts[:] = 0
        self._counts[:, bins] = negatives, positives


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else math.nan


def _half_pairs(positive: Floats, negative: Floats) -> int:
    """Twice the number of pairs in which the positive margin is higher, plus the ties."""
    if len(positive) < len(negative):
        return _half_ranks(negative, positive)
    return 2 * len(positive) * len(negative) - _half_ranks(positive, negative)


def _half_ranks(ordered: Floats, values: Floats) -> int:
    left, right = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return int(left.sum() + right.sum())


class ExampleError(ValueError):
    """An example that the model refuses to learn, such as one with a third label.

    Attributes
    ----------
    example
        The example.

    """

    def __init__(self, message: str, example: Example) -> None:
        super().__init__(message, example)
        self.example = example

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(slots=True)
class Evaluation:
    """What `evaluate` returns.

    Attributes
    ----------
    score
        The scores over the whole stream.
    curve
        The scores at up to 200 evenly spaced checkpoints and at the end.
    seconds
        How long it took.
    interrupted
        Whether Ctrl-C ended it.

    """

    score: PrequentialScore = field(default_factory=PrequentialScore)
    curve: list[Checkpoint] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False


def evaluate(
    model: Any,
    examples: Iterable[Example],
    *,
    delay: int = 0,
    batch: int = 512,
    on_checkpoint: Callable[[Checkpoint], None] | None = None,
    on_refused: OnRefused | None = None,
) -> Evaluation:
    """Predict every example of a stream, then learn it, and score the predictions.

    A prediction counts as it was made, also the first ones, while the model does not yet know both
    labels; one that is neither of them counts as the wrong label, and the probability as 0.5.
    Ctrl-C ends the evaluation early.

    Parameters
    ----------
    model
        A model of two classes; it learns the stream. (River's `progressive_val_score` takes any.)
    examples
        The stream: tuples `(x, y)`, `(x, y, w)` or longer.
    delay
        The label of an example arrives, is learned and scored only when that many more examples
        have been predicted. At the end of the stream all labels arrive.
    batch
        How many examples are read ahead and passed to the model in one call. The results are the
        same for any value.
    on_checkpoint
        Called with each new row of the curve.
    on_refused
        Called with each example that the model refuses, such as one with a third label, and the reason; it is passed
        over then. Without it such an example raises.

    Raises
    ------
    ExampleError
        If the model refuses an example and there is no `on_refused`, or since no `pos_label` says which label is the
        positive one; all examples before it are learned.
    ValueError
        If `delay` is negative, `batch` is below 1, or the model is one of several classes.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.evaluation.prequential import evaluate
    >>> from stream_pegasos.streams import synthetic

    >>> evaluation = evaluate(TextClassifier(), synthetic(n=5_000))
    >>> evaluation.score.n
    5000
    >>> evaluation.score.accuracy > 0.9
    True

    """
    if delay < 0:
        raise ValueError(f"delay is {delay}: a label cannot arrive before its example")
    if batch < 1:
        raise ValueError(f"batch is {batch}: it must be at least 1")
    if model._multiclass:
        raise ValueError(
            f"{type(model).__name__} is a model of several classes, and these scores are for two: "
            "use River's evaluate.progressive_val_score"
        )
    outcomes = _late if delay else _prompt
    result = Evaluation()
    score, curve = result.score, result.curve
    positive = None
    step = _FIRST_STEP
    start = perf_counter()
    try:
        for block in outcomes(model, chunks(examples, batch), delay, on_refused):
            # A model that met 1 took it for positive; when 2 follows, 1 turns out to be negative.
            if positive is not None and positive != model.classes[1]:
                score.swap()
            positive = model.classes[1]
            while len(block[0]):
                room = step - score.n % step
                score.update(*(array[:room] for array in block))
                block = tuple(array[room:] for array in block)  # type: ignore[assignment]
                if score.n % step == 0:
                    curve.append(score.checkpoint(perf_counter() - start))
                    if on_checkpoint is not None:
                        on_checkpoint(curve[-1])
                    if len(curve) == _MOST_ROWS:
                        del curve[::2]
                        step *= 2
    except KeyboardInterrupt:
        result.interrupted = True
    result.seconds = perf_counter() - start
    if score.n and not (curve and curve[-1].n == score.n):
        curve.append(score.checkpoint(result.seconds))
    return result


def chunks(examples: Iterable[Example], batch: int = 512) -> Iterator[list[Example]]:
    """Lists of at most `batch` examples, shorter where the texts are long."""
    chunk: list[Example] = []
    size = 0
    try:
        for example in examples:
            chunk.append(example)
            size += len(example[0])
            if len(chunk) == batch or size > _CHUNK_SIZE:
                full, chunk, size = chunk, [], 0
                yield full
    except KeyboardInterrupt:
        # What was read before Ctrl-C is still evaluated.
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def _prompt(
    model: Any, chunks: Iterable[list[Example]], delay: int, on_refused: OnRefused | None
) -> Iterator[Outcomes]:
    """Every label arrives before the next example."""
    for chunk in chunks:
        for _, outcomes in predict_learn(model, chunk, on_refused):
            yield outcomes


def _late(model: Any, chunks: Iterable[list[Example]], delay: int, on_refused: OnRefused | None) -> Iterator[Outcomes]:
    """Every label arrives after `delay` more examples."""
    waiting: deque[tuple[Example, _Prediction]] = deque()
    outcomes: list[tuple[bool, float, float, bool]] = []

    def learn_next() -> None:
        try:
            outcomes.append(_learn_one(model, *waiting.popleft()))
        except ExampleError as error:
            _pass_over(error, on_refused)

    for chunk in chunks:
        for example in chunk:
            try:
                waiting.append((example, _predict_one(model, example)))
            except ExampleError as error:
                _pass_over(error, on_refused)
                continue
            if len(waiting) > delay:
                known = None not in model.classes
                learn_next()
                if not known:
                    yield _outcomes(outcomes)
                    outcomes.clear()
        yield _outcomes(outcomes)
        outcomes.clear()
    while waiting:
        learn_next()
        yield _outcomes(outcomes)
        outcomes.clear()


class Prediction(NamedTuple):
    """What a model says of an example: the label, `None` if it cannot say yet, the probability of that label, and the
    margin.
    """

    label: Any
    probability: float | None
    margin: float


def predict_accepted(model: Any, X: list[Any], on_refused: Callable[[int, str], None]) -> list[Prediction | None]:
    """A prediction for each example, `None` for those that the model refuses, which are told by their numbers."""
    try:
        return list(predict(model, X))
    except REFUSALS:
        predictions: list[Prediction | None] = []
        for number, x in enumerate(X):
            try:
                predictions += predict(model, [x])
            except REFUSALS as error:
                on_refused(number, str(error))
                predictions.append(None)
        return predictions


def predict(model: Any, X: list[Any]) -> list[Prediction]:
    """A prediction for each example."""
    with model._lock:
        labels, probabilities, margins = getattr(model, "classifier", model)._answers(*model._encode_many(X))
        negative, positive = model.classes
        of_only = model.predict_proba_one(X[0]).get(positive if negative is None else negative) if X else None
    predictions = []
    for label, p, margin in zip(labels.tolist(), probabilities.tolist(), margins.tolist(), strict=True):
        if label is None or label not in (negative, positive):  # nothing is known yet, or not enough to decide
            predictions.append(Prediction(None, None, margin))
        elif negative is None or positive is None:
            predictions.append(Prediction(label, of_only, margin))
        else:
            predictions.append(Prediction(label, p if label == positive else 1.0 - p, margin))
    return predictions


def predict_learn(
    model: Any, chunk: list[Example], on_refused: OnRefused | None = None
) -> Iterator[tuple[list[Prediction], Outcomes]]:
    """Predict each example, then learn it; what was predicted comes in blocks, as soon as a block is learned.

    With `on_refused` an example that the model refuses is passed over.

    Raises
    ------
    ExampleError
        If the model refuses an example; all examples before it are learned, and their predictions have been given.
    """
    done = 0
    while done < len(chunk):
        try:
            for block in _predict_learn(model, chunk[done:]):
                done += len(block[0])
                yield block
        except ExampleError as error:
            _pass_over(error, on_refused)
            done += 1


def _pass_over(error: ExampleError, on_refused: OnRefused | None) -> None:
    """Tell of an example that is refused; not where `pos_label` is missing, as others would be refused, too."""
    if on_refused is None or isinstance(error.__cause__, PositiveLabelError):
        raise error
    on_refused(error.example, str(error))


def _predict_learn(model: Any, chunk: list[Example]) -> Iterator[tuple[list[Prediction], Outcomes]]:
    done = 0
    # A margin tells the predicted label only once both labels are known.
    while done < len(chunk) and None in model.classes:
        yield _predict_learn_one(model, chunk[done])
        done += 1
    if done == len(chunk):
        return
    columns = _columns(chunk[done:])
    try:
        yield _block(model, columns[1], model._predict_learn_many(*columns))
    except PartlyLearnedError as error:
        yield _block(model, columns[1][: error.n_learned], error.outcomes)
        if not isinstance(error.__cause__, REFUSALS):
            raise
        raise ExampleError(str(error.__cause__), chunk[done + error.n_learned]) from error
    except REFUSALS:
        # Nothing was learned: one by one, the example that is refused shows itself.
        for example in chunk[done:]:
            yield _predict_learn_one(model, example)


def _block(model: Any, labels: list[Any], outcomes: Any) -> tuple[list[Prediction], Outcomes]:
    margins, probabilities, predicted = outcomes
    negative, positive = model.classes
    y = np.fromiter((label == positive for label in labels), bool, len(margins))
    rows = zip(predicted.tolist(), probabilities.tolist(), margins.tolist(), strict=True)
    predictions = [Prediction(positive, p, m) if yes else Prediction(negative, 1.0 - p, m) for yes, p, m in rows]
    return predictions, (y, margins, probabilities, predicted)


def _predict_learn_one(model: Any, example: Example) -> tuple[list[Prediction], Outcomes]:
    try:
        predictions = predict(model, [example[0]])
    except REFUSALS as error:
        raise ExampleError(str(error), example) from error
    return predictions, _outcomes([_learn_one(model, example, _predict_one(model, example))])


class _Prediction(NamedTuple):
    label: Any
    margin: float
    probability: float
    positive: Any  # the label that margin and probability are about, where known


def _predict_one(model: Any, example: Example) -> _Prediction:
    x = example[0]
    try:
        label, margin, positive = model.predict_one(x), model.decision_function_one(x), model.classes[1]
        probability = 0.5 if None in model.classes else model.predict_proba_one(x)[positive]
    except REFUSALS as error:
        raise ExampleError(str(error), example) from error
    return _Prediction(label, margin, probability, positive)


def _learn_one(model: Any, example: Example, prediction: _Prediction) -> tuple[bool, float, float, bool]:
    y = example[1]
    label, margin, probability, positive = prediction
    _learn(model, example)
    if positive is not None and positive != model.classes[1]:
        margin, probability = -margin, 1 - probability
    is_positive = y == model.classes[1]
    return is_positive, margin, probability, is_positive if label == y else not is_positive


def learn(model: Any, chunk: list[Example], on_refused: OnRefused | None = None) -> int:
    """Learn examples without predicting them; how many were learned.

    With `on_refused` an example that the model refuses is passed over.

    Raises
    ------
    ExampleError
        If the model refuses an example; all examples before it are learned.

    """
    try:
        model.learn_many(*_columns(chunk))
        return len(chunk)
    except PartlyLearnedError as error:
        if not isinstance(error.__cause__, REFUSALS):
            raise
        n = error.n_learned
        _pass_over(ExampleError(str(error.__cause__), chunk[n]), on_refused)
        return n + learn(model, chunk[n + 1 :], on_refused)
    except REFUSALS:
        pass  # nothing was learned
    n = 0
    for example in chunk:
        try:
            _learn(model, example)
            n += 1
        except ExampleError as error:
            _pass_over(error, on_refused)
    return n


def _learn(model: Any, example: Example) -> None:
    x, y, *rest = example
    try:
        model.learn_one(x, y, rest[0] if rest else 1.0)
    except REFUSALS as error:
        raise ExampleError(str(error), example) from error


def _columns(chunk: list[Example]) -> tuple[list[Any], list[Any], Any]:
    """The x, y and w of a chunk; the weights as a single one if all are 1, which is faster."""
    weights = [example[2] if len(example) > 2 else 1.0 for example in chunk]
    w = weights if any(weight != 1 for weight in weights) else 1.0
    return [example[0] for example in chunk], [example[1] for example in chunk], w


def _outcomes(outcomes: list[tuple[bool, float, float, bool]]) -> Outcomes:
    y, margins, probabilities, predicted = zip(*outcomes, strict=True) if outcomes else ((),) * 4
    return (
        np.array(y, bool),
        np.array(margins, float),
        np.array(probabilities, float),
        np.array(predicted, bool),
    )
