"""Prequential evaluation: predict every example of a stream, then learn it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, overload

import numpy as np

from stream_pegasos.blocks.blockwise import (
    ExampleError,
    OnRefused,
    chunks,
    encoded_ahead,
    predict_labelled,
    predict_learn,
)
from stream_pegasos.blocks.predicted import Labelled, PredictedBlock
from stream_pegasos.common.display import shortened
from stream_pegasos.common.errors import must_be
from stream_pegasos.evaluation.curve import Curve
from stream_pegasos.evaluation.label_errors import LabelErrors, shown_by
from stream_pegasos.evaluation.late import Delay, Events, LateLearner, Moment, events_after, events_at
from stream_pegasos.evaluation.results import Comparison, Evaluation
from stream_pegasos.evaluation.scores import AnyOutcomes, block_outcomes, new_score

if TYPE_CHECKING:
    from river import base

    from stream_pegasos.blocks.river_models import AnyModel, RiverModel

__all__ = ["Comparison", "Evaluation", "ExampleError", "iter_prequential", "prequential"]

OnPredicted = Callable[[PredictedBlock], None]  # gets each predicted block

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

    Every prediction counts, also the first ones. A new class may come at any time; the scores continue. Ctrl-C ends the
    evaluation early.

    Parameters
    ----------
    stream : iterable of tuple, or river.datasets dataset
        Tuples `(x, y)`, or with a weight `(x, y, w)`, or with River's keywords `(x, y, {"w": w})`; or a dataset of
        River. Weights count only in learning; an example of weight 0 is not learned and is in no metric.
    model : Model, river.base.Classifier, or dict of these
        The model, which learns the stream: from this package, or a classifier or pipeline of River. Or a dict of
        several models by name; each of them gets every message.
    delay : int, timedelta, float, str or callable, default 0
        The delay of labels: a label arrives, is learned and scored after this many more examples have been predicted,
        at least 0; River's `delay` counts one more. Or, with a `moment`, a time as in River's
        `evaluate.progressive_val_score`: a `timedelta`, a number, the name of a field or a function of x and y. At the
        end of the stream, all labels arrive.
    moment : str, callable or None, default None
        The time of an example: the name of a field of x, or a function of x.
    learn : bool, default True
        Whether examples are learned. If not, models do not change, and labels may not be late: use this for held-out
        examples. A label that the model does not know counts as one more class.
    batch : int, default 512
        The number of examples that are read ahead and passed to the model in one call, at least 1. It does not change
        the results.
    threads : int, default 1
        The number of threads for a call of the model, at least 1. It does not change the results.
    name : str or None, default None
        The name of the stream in reports; `None` for the name of a River dataset, or "stream".
    marks : dict of int to str, or None, default None
        Texts by number of examples, to be marked in plots of the curve.
    on_row : callable or None, default None
        A function that gets each new row of the curve, for a single model.
    on_refused : callable or None, default None
        A function that gets each example that a model refuses, such as one with a list for a label, and the reason. The
        example is then skipped. Without this function, such an example raises an error.
    on_predicted : callable or None, default None
        A function that gets each block of examples that the first model has predicted and then learned, in order.

    Raises
    ------
    TypeError
        If a model is no classifier, or if the stream gives no tuples.
    ExampleError
        If a model refuses an example and there is no `on_refused`, or if a decision needs `pos_label` and there is
        none. All earlier examples are learned.
    ValueError
        If `delay` is negative or without learning, if `batch` is below 1, or if there is no model.

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
    """Yield the result of `prequential` repeatedly during the stream, for a notebook or a terminal to show.

    Parameters
    ----------
    stream : iterable of tuple, or river.datasets dataset
    model : Model, river.base.Classifier, or dict of these
        Both as for `prequential`, with the same errors.
    every : int or None, default None
        The smallest number of examples between two results; `None` for a result only at the end. The last result is
        always at the end.
    delay : int, timedelta, float, str or callable, default 0
    moment : str, callable or None, default None
    learn : bool, default True
    batch : int, default 512
    threads : int, default 1
    name : str or None, default None
    marks : dict of int to str, or None, default None
    on_row, on_refused, on_predicted : callable or None, default None
        All as for `prequential`.

    Yields
    ------
    The same `Evaluation` or `Comparison` object each time, in its present state.

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
        raise ValueError(must_be("learn", "True with a delay or a moment", learn))
    check_stream(stream)
    models = model if isinstance(model, Mapping) else {"": model}
    if not models:
        raise ValueError("model must have at least one model, got none")
    if name is None:
        name = type(stream).__name__ if hasattr(stream, "n_samples") else "stream"  # the name of a River dataset
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
    """An example with its weight, which may come in River's keywords."""
    if not is_labelled(example):
        raise TypeError(
            f"an example must be a tuple (x, y), got {shortened(repr(example), 50)}; a stream of one is a list of it"
        )
    if len(example) < 3 or not isinstance(example[2], Mapping):
        return example
    keywords = dict(example[2])
    weight = keywords.pop("w", 1.0)
    if keywords:
        raise ValueError(f"an example has the keyword {next(iter(keywords))!r}; only w is known of River's keywords")
    return (example[0], example[1], weight)


def is_labelled(example: object) -> bool:
    """Whether a value may be x, y and more; a text or a dict is only an x."""
    return isinstance(example, (tuple, list, np.ndarray)) and len(example) > 1


def check_stream(stream: object) -> None:
    """Raise a TypeError if a value gives no examples: columns, a text, a single value."""
    if hasattr(stream, "columns") or isinstance(stream, (str, bytes, Mapping)) or not isinstance(stream, Iterable):
        raise TypeError(
            f"stream must give tuples (x, y), got a {type(stream).__name__}; of columns make zip(X, y), of a file "
            "stream_pegasos.streams.read(path)"
        )


class _Follower:
    """A model that follows a stream, and its evaluation."""

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
        self.right: list[Any] = []  # arrays with 1 or 0 for a right or wrong prediction, −1 if not counted
        self._late = LateLearner(self.model, on_refused, threads)

    def take(self, chunk: list[Labelled]) -> None:
        """Predict a chunk, then learn it."""
        if self._learn:
            blocks = predict_learn(self.model, chunk, self._on_refused, self._threads)
        else:
            blocks = predict_labelled(self.model, chunk, self._on_refused, self._threads)
        self._count(chunk, blocks)

    def take_late(self, events: Events) -> None:
        """Predict the questions, and learn the answers."""
        self._count(events.answers, self._late.take(events))

    def _count(self, chunk: list[Labelled], blocks: Iterable[PredictedBlock]) -> None:
        """Score the predictions of a chunk; some of its examples may have been refused."""
        right, place = np.full(len(chunk), -1, np.int8), 0
        for block in blocks:
            if self._on_predicted is not None:
                self._on_predicted(block)
            outcomes = block_outcomes(block, self.model)
            self._curve.update(self.evaluation.score, outcomes, self._row)
            counted = block.counted()
            self.evaluation.label_errors.update(counted)
            rights = _rights(outcomes) if self._is_compared else ()
            for example, is_right in zip(counted.examples if self._is_compared else (), rights, strict=True):
                while chunk[place] is not example:  # skip refused examples and those without weight
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
        """Update the time of the evaluation."""
        self.evaluation.seconds = perf_counter() - self._start

    def end(self) -> None:
        self.look()
        score, rows = self.evaluation.score, self._curve.rows
        if score.n and not (rows and rows[-1].n == score.n):
            rows.append(self._row())


def wrap_river(model: base.Base) -> RiverModel:
    """A River model with the interface of this package. The module is imported only if there is such a model."""
    from stream_pegasos.blocks.river_models import RiverModel

    return RiverModel(model)


def _rights(outcomes: AnyOutcomes) -> list[bool]:
    """Whether each prediction was right; with several labels, whether all were."""
    pairs = zip(outcomes.truths, outcomes.predicted, strict=True)
    return [
        set(truth) == set(prediction) if isinstance(prediction, tuple) else truth == prediction
        for truth, prediction in pairs
    ]


def _prompt(examples: Iterable[Labelled], followers: list[_Follower], batch: int) -> Iterator[int]:
    """Give the followers a stream without delay. Yield the number of examples in each step."""
    for chunk in encoded_ahead([follower.model for follower in followers], chunks(examples, batch)):
        for follower in followers:
            follower.take(chunk)
        yield len(chunk)


def _late(
    examples: Iterable[Labelled], followers: list[_Follower], delay: Delay, moment: Moment, batch: int
) -> Iterator[int]:
    """Give the followers a stream with late labels. Yield the number of examples in each step."""
    if moment is None and isinstance(delay, int):
        events = events_after(examples, delay, batch)
    else:
        events = events_at(examples, delay, moment, batch)
    for batch_of_events in events:
        for follower in followers:
            follower.take_late(batch_of_events)
        yield batch_of_events.are_answers.count(False)
