"""Prequential evaluation: predict every example of a stream, then learn it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, overload

import numpy as np

from stream_pegasos.common.checks import must_be
from stream_pegasos.common.display import shortened
from stream_pegasos.evaluation.blocks import (
    ExampleError,
    OnRefused,
    chunks,
    encoded_ahead,
    predict_labelled,
    predict_learn,
)
from stream_pegasos.evaluation.curve import Curve
from stream_pegasos.evaluation.label_errors import LabelErrors, shown_by
from stream_pegasos.evaluation.late import Delay, Events, LateLearner, Moment, events_after, events_at
from stream_pegasos.evaluation.predicted import AnyOutcomes, Labelled, PredictedBlock
from stream_pegasos.evaluation.results import Comparison, Evaluation
from stream_pegasos.evaluation.scores import new_score

if TYPE_CHECKING:
    from river import base

    from stream_pegasos.evaluation.river_models import AnyModel, RiverModel

__all__ = ["Comparison", "Evaluation", "ExampleError", "iter_prequential", "prequential"]

OnPredicted = Callable[[PredictedBlock], None]  # called with each block that was predicted

_FIRST_STEP = 50


class Options(TypedDict, total=False):
    """The keywords of `prequential`, for editors and type checkers."""

    delay: Delay
    moment: Moment
    learn: bool
    batch: int
    threads: int
    name: str | None
    marks: Mapping[int, str] | None
    on_row: Callable[[Any], None] | None
    on_refused: OnRefused | None
    on_predicted: OnPredicted | None


@overload
def prequential(stream: Iterable[Any], model: Mapping[str, Any], **options: Unpack[Options]) -> Comparison: ...
@overload
def prequential(stream: Iterable[Any], model: base.Base, **options: Unpack[Options]) -> Evaluation: ...
def prequential(
    stream: Iterable[Any], model: base.Base | Mapping[str, Any], **options: Unpack[Options]
) -> Evaluation | Comparison:
    """Predict every example of a stream, then learn it, and score the predictions.

    Every prediction counts, also the first ones. A class that comes in the middle joins the others; nothing restarts.
    Ctrl-C ends the evaluation early.

    Parameters
    ----------
    stream
        Tuples `(x, y)`, or with a weight `(x, y, w)`, or with River's keywords `(x, y, {"w": w})`; or one of River's
        datasets. Weights count only in learning; an example of weight 0 teaches nothing and is in no metric.
    model
        The model, which learns the stream: one of this package, or a classifier or pipeline of River's. Or a dict of
        several by name: each message is given to all of them.
    delay
        The label of an example arrives, is learned and scored only when that many more examples have been predicted, 0
        by default; River's `delay` counts one more. Or, with a `moment`, after a time, as in River's
        `evaluate.progressive_val_score`: a `timedelta`, a number, the name of a field or a function of x and y. At the
        end of the stream all labels arrive.
    moment
        The time of an example: the name of a field of x, or a function of x.
    learn
        Whether examples are learned. If not, models stay as they are, and labels may not be late: use this for examples
        held out. A label that the model does not know counts as one more class.
    batch
        How many examples are read ahead and passed to the model in one call, 512 by default. The results are the same.
    threads
        How many threads a call of the model may use, 1 by default. The results are the same.
    name
        What the stream is called in reports; of a dataset of River's its name.
    marks
        What happens after so many examples, to be marked where the curve is drawn.
    on_row
        Called with each new row of the curve of the only model.
    on_refused
        Called with each example that a model refuses, such as one with a list for a label, and the reason. The example
        is then skipped. Without it such an example raises.
    on_predicted
        Called with each block of examples that the first model has predicted and then learned, in their order.

    Raises
    ------
    TypeError
        If a model is no classifier, or the stream gives no tuples.
    ExampleError
        If a model refuses an example and there is no `on_refused`, or if a decision needs `pos_label` and there is
        none. All examples before it are learned.
    ValueError
        If `delay` is negative or without learning, `batch` is below 1, or there is no model.

    References
    ----------
    [^1]: Gama, J., Sebastião, R. and Rodrigues, P., 2013. On evaluating stream learning algorithms. Machine Learning
        90. (Prequential evaluation, and McNemar's test of two learners on one stream.)

    Examples
    --------

    >>> from river import naive_bayes
    >>> from river.feature_extraction import BagOfWords
    >>> from stream_pegasos import TextClassifier, prequential
    >>> from stream_pegasos.streams import synthetic

    >>> evaluation = prequential(synthetic(n=5_000), TextClassifier())
    >>> evaluation.score.n, evaluation.score.accuracy > 0.9
    (5000, True)
    >>> models = {"ours": TextClassifier(), "naive Bayes": BagOfWords() | naive_bayes.MultinomialNB()}
    >>> compared = prequential(synthetic(n=2_000), models)
    >>> (pair,) = compared.pairs
    >>> pair.first, pair.second, abs(pair.difference) < 0.1
    ('ours', 'naive Bayes', True)

    """
    result: Evaluation | Comparison
    *_, result = iter_prequential(stream, model, **options)
    return result


def iter_prequential(
    stream: Iterable[Any],
    model: base.Base | Mapping[str, Any],
    *,
    every: int | None = None,
    delay: Delay = 0,
    moment: Moment = None,
    learn: bool = True,
    batch: int = 512,
    threads: int = 1,
    name: str | None = None,
    marks: Mapping[int, str] | None = None,
    on_row: Callable[[Any], None] | None = None,
    on_refused: OnRefused | None = None,
    on_predicted: OnPredicted | None = None,
) -> Iterator[Any]:
    """What `prequential` gives, again and again as the stream goes by: a notebook or a terminal can show it.

    Parameters
    ----------
    every
        After how many examples, at least, the evaluation so far is given; it is given at the end in any case.
    stream, model, delay, moment, learn, batch, threads, name, marks, on_row, on_refused, on_predicted
        As for `prequential`, which raises the same.

    Yields
    ------
    The same `Evaluation` or `Comparison` each time, as it is by then.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier, iter_prequential
    >>> from stream_pegasos.streams import synthetic

    >>> for evaluation in iter_prequential(synthetic(n=3_000), TextClassifier(), every=1_000):
    ...     print(evaluation.score.n)
    1024
    2048
    3000

    """
    is_late = moment is not None or not isinstance(delay, int) or delay != 0
    if isinstance(delay, int) and delay < 0:
        raise ValueError(must_be("delay", "0 or more, as a label cannot arrive before its example", delay))
    if batch < 1:
        raise ValueError(must_be("batch", "at least 1", batch))
    if is_late and not learn:
        raise ValueError(must_be("delay", "0 without learning", delay))
    check_stream(stream)
    models = model if isinstance(model, Mapping) else {"": model}
    if not models:
        raise ValueError("model must have at least one model, got none")
    if name is None:
        name = type(stream).__name__ if hasattr(stream, "n_samples") else "stream"  # of a dataset of River's
    parameters = (learn, threads, len(models) > 1, on_row, on_refused)
    followers = [
        _Follower(follower, name, *parameters, None if i else on_predicted)
        for i, follower in enumerate(models.values())
    ]
    for follower in followers:
        follower.evaluation.marks = marks or {}
    evaluations = dict(zip(models, [follower.evaluation for follower in followers], strict=True))
    result: Evaluation | Comparison = followers[0].evaluation
    if isinstance(model, Mapping):
        result = Comparison(evaluations, [follower.right for follower in followers])
    n, due = 0, math.inf if every is None else every
    examples = map(_as_labelled, stream)
    steps = _late(examples, followers, delay, moment, batch) if is_late else _prompt(examples, followers, batch)
    try:
        for n_more in steps:
            n += n_more
            if every is not None and n >= due:
                due = n + every
                for follower in followers:
                    follower.look()
                yield result
    except KeyboardInterrupt:
        for follower in followers:
            follower.evaluation.interrupted = True
    for follower in followers:
        follower.end()
    yield result


def _as_labelled(example: Any) -> Any:
    """An example with its weight, if it comes with River's keywords."""
    if not is_labelled(example):
        raise TypeError(
            f"an example must be a tuple (x, y), got {shortened(repr(example), 50)}; a stream of one is a list of it"
        )
    if len(example) < 3 or not isinstance(example[2], Mapping):
        return example
    keywords = dict(example[2])
    weight = keywords.pop("w", 1.0)
    if keywords:
        raise ValueError(f"an example has the keyword {next(iter(keywords))!r}; of River's keywords w alone is known")
    return (example[0], example[1], weight)


def is_labelled(example: object) -> bool:
    """Whether it may be x, y and more; a text or a dict is an x alone."""
    return isinstance(example, (tuple, list, np.ndarray)) and len(example) > 1


def check_stream(stream: object) -> None:
    """Raise a TypeError for what gives no examples: columns, a text, a single thing."""
    if hasattr(stream, "columns") or isinstance(stream, (str, bytes, Mapping)) or not isinstance(stream, Iterable):
        raise TypeError(
            f"stream must give tuples (x, y), got a {type(stream).__name__}; of columns make zip(X, y), of a file "
            "stream_pegasos.streams.read(path)"
        )


class _Follower:
    """A model that is given a stream, and how good it is."""

    def __init__(
        self,
        model: base.Base,
        name: str,
        learn: bool,
        threads: int,
        is_compared: bool,
        on_row: Callable[[Any], None] | None,
        on_refused: OnRefused | None,
        on_predicted: OnPredicted | None,
    ) -> None:
        is_wrapped = hasattr(model, "predict_learn_many")
        self.model = cast("AnyModel", model) if is_wrapped else wrap_river(model)
        self._learn, self._threads, self._is_compared = learn, threads, is_compared
        self._on_row, self._on_refused, self._on_predicted = on_row, on_refused, on_predicted
        self._curve, self._start = Curve(_FIRST_STEP), perf_counter()
        errors = LabelErrors(shown_by(self.model))
        self.evaluation = Evaluation(new_score(self.model), self._curve.rows, name=name, label_errors=errors)
        self.right: list[Any] = []  # of each example, in arrays: whether it was predicted right, −1 if not counted
        self._late = LateLearner(self.model, on_refused, threads)

    def take(self, chunk: list[Labelled]) -> None:
        """Predict a chunk, and learn it."""
        if self._learn:
            blocks = predict_learn(self.model, chunk, self._on_refused, self._threads)
        else:
            blocks = predict_labelled(self.model, chunk, self._on_refused, self._threads)
        self._count(chunk, blocks)

    def take_late(self, events: Events) -> None:
        """Predict the questions, and learn the answers."""
        self._count(events.answers, self._late.take(events))

    def _count(self, chunk: list[Labelled], blocks: Iterable[PredictedBlock]) -> None:
        """Score the predictions of a chunk, of which some examples may have been refused."""
        right, place = np.full(len(chunk), -1, np.int8), 0
        for block in blocks:
            if self._on_predicted is not None:
                self._on_predicted(block)
            outcomes = block.outcomes(self.model)
            self._curve.update(self.evaluation.score, outcomes, self._row)
            counted = block.counted()
            self.evaluation.label_errors.update(counted)
            rights = _rights(outcomes) if self._is_compared else ()
            for example, is_right in zip(counted.examples if self._is_compared else (), rights, strict=True):
                while chunk[place] is not example:  # refused, or without weight
                    place += 1
                right[place] = is_right
                place += 1
        self.right.append(right)

    def _row(self) -> Any:
        row = self.evaluation.score.row(perf_counter() - self._start)
        if self._on_row is not None:
            self._on_row(row)
        return row

    def look(self) -> None:
        """Bring the evaluation up to now."""
        self.evaluation.seconds = perf_counter() - self._start

    def end(self) -> None:
        self.look()
        score, rows = self.evaluation.score, self._curve.rows
        if score.n and not (rows and rows[-1].n == score.n):
            rows.append(self._row())


def wrap_river(model: base.Base) -> RiverModel:
    """A model of River's behind our interface; it is imported where there is one alone."""
    from stream_pegasos.evaluation.river_models import RiverModel

    return RiverModel(model)


def _rights(outcomes: AnyOutcomes) -> list[bool]:
    """Whether each prediction was right, all labels of it where there are several."""
    pairs = zip(outcomes.truths, outcomes.predicted, strict=True)
    return [
        set(truth) == set(prediction) if isinstance(prediction, tuple) else truth == prediction
        for truth, prediction in pairs
    ]


def _prompt(examples: Iterable[Labelled], followers: list[_Follower], batch: int) -> Iterator[int]:
    """Give the followers a stream whose labels are there at once; how many examples each step has."""
    for chunk in encoded_ahead([follower.model for follower in followers], chunks(examples, batch)):
        for follower in followers:
            follower.take(chunk)
        yield len(chunk)


def _late(
    examples: Iterable[Labelled], followers: list[_Follower], delay: Delay, moment: Moment, batch: int
) -> Iterator[int]:
    """Give the followers a stream whose labels come later."""
    if moment is None and isinstance(delay, int):
        events = events_after(examples, delay, batch)
    else:
        events = events_at(examples, delay, moment, batch)
    for batch_of_events in events:
        for follower in followers:
            follower.take_late(batch_of_events)
        yield batch_of_events.are_answers.count(False)
