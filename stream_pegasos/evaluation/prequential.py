"""Prequential evaluation: predict every example of a stream, then learn it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from time import perf_counter
from typing import Any

from stream_pegasos.evaluation.curve import Curve
from stream_pegasos.evaluation.predicted import AnyOutcomes, Labelled, PredictedBlock
from stream_pegasos.evaluation.scores import kind_of, new_score
from stream_pegasos.evaluation.tallies import CLASSES, Score
from stream_pegasos.features.message import grouped, size_of
from stream_pegasos.learners.labels import PositiveLabelError, check_label
from stream_pegasos.learners.predictions import PartlyLearnedError

__all__ = [
    "REFUSALS",
    "Evaluation",
    "ExampleError",
    "OnRefused",
    "encode_ahead",
    "evaluate",
    "predict_block",
    "predict_learn",
]

OnRefused = Callable[[Labelled, str], None]  # called with an example that the model refuses, and the reason
OnPredicted = Callable[[PredictedBlock], None]  # called with each block that was predicted

# What a model raises to refuse an example; any other exception is a failure of the model.
REFUSALS = (ValueError, TypeError)

_FIRST_STEP = 50
# Long texts make a chunk shorter, so that memory stays constant.
_CHUNK_SIZE = 1 << 22  # characters, as `size_of` counts them


class ExampleError(ValueError):
    """An example that the model refuses to learn, such as one with a list where it wants one label.

    Attributes
    ----------
    example
        The example.

    """

    def __init__(self, message: str, example: Labelled) -> None:
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
        The scores over the whole stream: a `PrequentialScore`, an `OrderedScore`, or a `LabelScore` if an example may
        have several labels.
    curve
        The scores at up to 200 evenly spaced points and at the end, as rows of the score.
    seconds
        How long it took.
    interrupted
        Whether Ctrl-C ended it.

    """

    score: Score
    curve: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False


def evaluate(
    model: Any,
    examples: Iterable[Labelled],
    *,
    delay: int = 0,
    batch: int = 512,
    learn: bool = True,
    on_row: Callable[[Any], None] | None = None,
    on_refused: OnRefused | None = None,
    on_predicted: OnPredicted | None = None,
    threads: int = 1,
) -> Evaluation:
    """Predict every example of a stream, then learn it, and score the predictions.

    Every prediction counts, also the first ones: while the model knows no label, its missing answer is wrong, with
    probability 0.5, but no false alarm. A class that comes in the middle joins the others; nothing restarts. Ctrl-C
    ends the evaluation early.

    Parameters
    ----------
    model
        A model; it learns the stream.
    examples
        The stream: tuples `(x, y)`, `(x, y, w)` or longer. Weights count only in learning.
    delay
        The label of an example arrives, is learned and scored only when that many more examples
        have been predicted. At the end of the stream all labels arrive.
    batch
        How many examples are read ahead and passed to the model in one call. The results are the
        same for any value.
    learn
        Whether examples are learned. If not, the model stays as it is, and `delay` must be 0: use this for examples
        held out from the model. A label that the model does not know counts as one more class.
    on_row
        Called with each new row of the curve.
    on_refused
        Called with each example that the model refuses, such as one with a list for a label, and the reason. The
        example is then skipped. Without `on_refused` such an example raises.
    on_predicted
        Called with each block of examples that were predicted and then learned, in their order.
    threads
        How many threads a call of the model may use; the results are the same for any number.

    Raises
    ------
    ExampleError
        If the model refuses an example and there is no `on_refused`, or if a decision needs `pos_label` and there is
        none. All examples before it are learned.
    ValueError
        If `delay` is negative or `batch` is below 1.

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
    if delay and not learn:
        raise ValueError(f"delay is {delay}: without learning it must be 0")
    read, tell = chunks(examples, batch), on_predicted or (lambda block: None)
    if delay:
        blocks = _late(model, read, delay, on_refused, tell)
    else:
        blocks = _prompt(predict_learn if learn else _predict_labelled, model, read, on_refused, tell, threads)
    score, curve, start = new_score(model), Curve(_FIRST_STEP), perf_counter()
    result = Evaluation(score, curve.rows)

    def row() -> Any:
        made = score.row(perf_counter() - start)
        if on_row is not None:
            on_row(made)
        return made

    try:
        for outcomes in blocks:
            curve.update(score, outcomes, row)
    except KeyboardInterrupt:
        result.interrupted = True
    result.seconds = perf_counter() - start
    if score.n and not (curve.rows and curve.rows[-1].n == score.n):
        curve.rows.append(score.row(result.seconds))
    return result


def chunks(examples: Iterable[Labelled], batch: int = 512) -> Iterator[list[Labelled]]:
    """Lists of at most `batch` examples, shorter where the messages are large."""
    return grouped(examples, lambda example: size_of(example[0]), _CHUNK_SIZE, batch)


def _prompt(
    predict: Callable[..., Iterator[PredictedBlock]],
    model: Any,
    chunks: Iterable[list[Labelled]],
    on_refused: OnRefused | None,
    on_predicted: OnPredicted,
    threads: int,
) -> Iterator[AnyOutcomes]:
    """Yield outcomes if every label arrives before the next example."""
    for chunk in chunks:
        for block in predict(model, chunk, on_refused, threads):
            on_predicted(block)
            yield block.outcomes(model)


def _predict_labelled(
    model: Any, chunk: list[Labelled], on_refused: OnRefused | None, threads: int
) -> Iterator[PredictedBlock]:
    """Predict examples without learning them: in one block, or one by one if the model refuses any."""
    try:
        X, y, _ = columns_of(chunk)
        if kind_of(model) == CLASSES:
            y = [check_label(label) for label in y]  # any label may be scored, also a third one of two
        else:
            model.check_labels(y)
        yield predict_block(model, X, y, chunk, threads)
    except REFUSALS as error:
        if len(chunk) == 1:
            _pass_over(ExampleError(str(error), chunk[0]), on_refused)
            return
        for example in chunk:
            yield from _predict_labelled(model, [example], on_refused, threads)


def _late(
    model: Any,
    chunks: Iterable[list[Labelled]],
    delay: int,
    on_refused: OnRefused | None,
    on_predicted: OnPredicted,
) -> Iterator[AnyOutcomes]:
    """Yield outcomes if every label arrives after `delay` more examples."""
    waiting: deque[tuple[Labelled, PredictedBlock]] = deque()
    done: list[Any] = []

    def learn_next() -> None:
        example, predicted = waiting.popleft()
        try:
            _learn(model, example)
        except ExampleError as error:
            _pass_over(error, on_refused)
        else:
            predicted.y = [example[1]]
            on_predicted(predicted)
            done.append(predicted.outcomes(model))

    def take_done() -> Iterator[AnyOutcomes]:
        # Outcomes of two classes, then those from the third class on.
        for _, some in groupby(done, lambda outcomes: getattr(outcomes, "classes", ())):
            first, *rest = some
            yield first.joined([first, *rest])
        done.clear()

    for chunk in chunks:
        encode_ahead(model, [example[0] for example in chunk])
        for example in chunk:
            try:
                waiting.append((example, _predict_one(model, example)))
            except ExampleError as error:
                _pass_over(error, on_refused)
                continue
            if len(waiting) > delay:
                known = None not in model.pair
                learn_next()
                if not known:
                    yield from take_done()
        yield from take_done()
    while waiting:
        learn_next()
        yield from take_done()


def predict_block(
    model: Any, X: list[Any], y: list[Any], examples: Sequence[Labelled] = (), threads: int = 1
) -> PredictedBlock:
    """The predictions for examples that are not learned now, with the labels that the model knows."""
    encode_ahead(model, X, threads)
    with model.lock:
        return PredictedBlock(model.predictions(X, threads=threads), model.classes, y, examples)


def encode_ahead(model: Any, X: Sequence[Any], threads: int = 1) -> None:
    """Have the encoder of a model, if it has one, read examples together and without the model's lock, so that they are
    predicted and learned at once.
    """
    features = getattr(model, "features", None)
    if features is not None and features.encoder is not None:
        features.refusals(X, threads)


def predict_learn(
    model: Any, chunk: list[Labelled], on_refused: OnRefused | None = None, threads: int = 1
) -> Iterator[PredictedBlock]:
    """Predict each example, then learn it; yield the predictions in blocks, as soon as a block is learned.

    With `on_refused` an example that the model refuses is passed over.

    Raises
    ------
    ExampleError
        If the model refuses an example; all examples before it are learned, and their predictions were yielded.
    """
    done = 0
    while done < len(chunk):
        try:
            for block in _predict_learn(model, chunk[done:], threads):
                done += len(block)
                yield block
        except ExampleError as error:
            _pass_over(error, on_refused)
            done += 1


def _pass_over(error: ExampleError, on_refused: OnRefused | None) -> None:
    """Report a refused example; raise the error if `pos_label` is missing, for which all others would be refused."""
    if on_refused is None or isinstance(error.__cause__, PositiveLabelError):
        raise error
    on_refused(error.example, str(error))


def _predict_learn(model: Any, chunk: list[Labelled], threads: int) -> Iterator[PredictedBlock]:
    rest = chunk
    # With two classes, the margin tells the predicted label only if both are known.
    while rest and None in model.pair:
        n = _n_of_only(model, rest)
        if n:
            yield from _predict_learn_together(model, rest[:n], threads)
        else:
            yield _predict_learn_one(model, rest[0])
        rest = rest[max(n, 1) :]
    if rest:
        yield from _predict_learn_together(model, rest, threads)


def _n_of_only(model: Any, chunk: list[Labelled]) -> int:
    """How many of the first examples have the only label that is known."""
    known = model.classes
    others = (i for i, (_, y, *_) in enumerate(chunk) if len(known) != 1 or (type(y), y) != (type(known[0]), known[0]))
    return next(others, len(chunk))


def _predict_learn_together(model: Any, chunk: list[Labelled], threads: int) -> Iterator[PredictedBlock]:
    X, y, w = columns_of(chunk)
    try:
        predictions = model.predict_learn_many(X, y, w, threads=threads)
        yield PredictedBlock(predictions, model.classes, y, chunk)
    except PartlyLearnedError as error:
        assert error.predictions is not None
        n = error.n_learned
        yield PredictedBlock(error.predictions, model.classes, y[:n], chunk[:n])
        if not isinstance(error.__cause__, REFUSALS):
            raise
        raise ExampleError(str(error.__cause__), chunk[n]) from error
    except REFUSALS:
        # Nothing was learned: one by one, the refused example is found.
        for example in chunk:
            yield _predict_learn_one(model, example)


def _predict_learn_one(model: Any, example: Labelled) -> PredictedBlock:
    predicted = _predict_one(model, example)
    _learn(model, example)
    return predicted


def _predict_one(model: Any, example: Labelled) -> PredictedBlock:
    try:
        return predict_block(model, [example[0]], [example[1]], [example])
    except REFUSALS as error:
        raise ExampleError(str(error), example) from error


def learn(model: Any, chunk: list[Labelled], on_refused: OnRefused | None = None, threads: int = 1) -> int:
    """Learn examples without predicting them, and return how many were learned.

    With `on_refused` an example that the model refuses is passed over.

    Raises
    ------
    ExampleError
        If the model refuses an example; all examples before it are learned.

    """
    try:
        model.learn_many(*columns_of(chunk), threads=threads)
        return len(chunk)
    except PartlyLearnedError as error:
        if not isinstance(error.__cause__, REFUSALS):
            raise
        n = error.n_learned
        _pass_over(ExampleError(str(error.__cause__), chunk[n]), on_refused)
        return n + learn(model, chunk[n + 1 :], on_refused, threads)
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


def _learn(model: Any, example: Labelled) -> None:
    x, y, *rest = example
    try:
        model.learn_one(x, y, rest[0] if rest else 1.0)
    except REFUSALS as error:
        raise ExampleError(str(error), example) from error


def columns_of(chunk: list[Labelled]) -> tuple[list[Any], list[Any], Any]:
    """The x, y and w of a chunk; w is the number 1 if all weights are 1, which is faster."""
    weights = [example[2] if len(example) > 2 else 1.0 for example in chunk]
    w = weights if any(weight != 1 for weight in weights) else 1.0
    return [example[0] for example in chunk], [example[1] for example in chunk], w
