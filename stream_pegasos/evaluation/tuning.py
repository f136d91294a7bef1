"""Tune: which features, learner and options predict a stream best, found in one pass over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.packing import parameters_of
from stream_pegasos.evaluation.metrics import Metric, metric_named
from stream_pegasos.evaluation.predicted import Labelled, PredictedBlock
from stream_pegasos.evaluation.prequential import REFUSALS, OnRefused, chunks, columns_of, predict_learn
from stream_pegasos.evaluation.scores import kind_of
from stream_pegasos.evaluation.tallies import CLASSES

__all__ = ["Candidate", "Tuning", "tune"]

Floats = NDArray[np.float64]
# The gain from which a model counts as better: of fifty equally good models, the luckiest gains two or more.
STANDARD_ERRORS = 3.0

ACCURACY = metric_named("accuracy", CLASSES)


@dataclass(slots=True)
class Candidate:
    """A model that is compared with others.

    Attributes
    ----------
    name
        Its name.
    model
        The model. It has learned all messages that it took part in.
    costs
        What the metric keeps of each of its predictions, made before the message was learned. For "accuracy" that is a
        cost: 1 for a wrong label; with ordered labels, how far off it was; with several labels a message, how many were
        wrong.
    is_dropped
        Whether it was dropped before the end.
    """

    name: str
    model: Any
    costs: list[Floats] = field(default_factory=list)
    is_dropped: bool = False

    @property
    def n(self) -> int:
        """How many messages it predicted."""
        return sum(map(len, self.costs))

    def newer(self, n: int) -> Floats:
        """The costs of the newer half of the first `n` messages."""
        return _joined(self.costs)[n // 2 : n]


@dataclass(slots=True)
class Tuning:
    """What `tune` returns.

    Attributes
    ----------
    candidates
        All candidates. The others are compared with the first.
    metric
        The metric by which they are compared.
    n
        The number of messages.
    interrupted
        Whether Ctrl-C ended it.
    """

    candidates: list[Candidate]
    metric: Metric = ACCURACY
    n: int = 0
    interrupted: bool = False

    def gain(self, candidate: Candidate) -> tuple[float, float]:
        """How much better a candidate is than the first one, and the standard error of that.

        Both are measured on the same messages, the newer half of those that the candidate has seen. `Metric.gain`
        estimates the error.
        """
        n = candidate.n
        return self.metric.gain(self.candidates[0].newer(n), candidate.newer(n))

    @property
    def ranking(self) -> list[Candidate]:
        """The candidates: those that stayed longest first, and of these those that gained most."""
        return sorted(self.candidates, key=lambda each: (-each.n, -self.gain(each)[0]))

    @property
    def best(self) -> Candidate:
        """The candidate to use: the first one, unless the best of the others gained more than three standard errors."""
        others = [each for each in self.ranking if each is not self.candidates[0] and not each.is_dropped]
        if others:
            mean, error = self.gain(others[0])
            if mean > STANDARD_ERRORS * error:
                return others[0]
        return self.candidates[0]


def tune(
    models: Mapping[str, Any],
    examples: Iterable[Labelled],
    *,
    metric: str = "accuracy",
    first_rung: int = 1_000,
    on_refused: OnRefused | None = None,
    on_chunk: Callable[[Tuning], None] | None = None,
) -> Tuning:
    """Let models predict and learn a stream side by side, and drop the losers as evidence comes.

    After `first_rung` messages the worse half is dropped, and again each time the number of messages has doubled
    (successive halving, Jamieson and Talwalkar 2016). The first model stays to the end: the others are compared with
    it. A model is judged on the newer half of its messages, so a slow start does not count. Texts are scanned once for
    all models with the same features. Ctrl-C ends it early.

    Parameters
    ----------
    models
        The models, by name; they learn the stream. The first one is the default, which another has to beat.
    examples
        The stream: tuples `(x, y)`, `(x, y, w)` or longer.
    metric
        What to compare them by: "accuracy", "macro-f1", "log-loss", "auc" or, as "recall@0.01", the share of positives
        that are caught where so large a share of the negatives may be flagged. The last two are for two classes.
    first_rung
        After how many messages the worse half is dropped for the first time; at least 2.
    on_refused
        Called with each example that the first model refuses, and the reason. The example is then skipped. Without
        `on_refused` such an example raises.
    on_chunk
        Called after each chunk of messages with what is known by then.

    Raises
    ------
    ExampleError
        If the first model refuses an example and there is no `on_refused`, or a third label comes where the metric is
        for two classes.
    ValueError
        If there is no model, `metric` is none for such labels, `first_rung` is below 2, or a model refuses what the
        first one has learned.

    Examples
    --------

    >>> from stream_pegasos import HashedBagOfWords, PegasosClassifier, TextClassifier
    >>> from stream_pegasos.evaluation.tuning import tune
    >>> from stream_pegasos.streams import synthetic

    >>> tuning = tune(
    ...     {
    ...         "Pegasos": TextClassifier(HashedBagOfWords(), PegasosClassifier()),
    ...         "adaptive": TextClassifier(),
    ...     },
    ...     synthetic(n=2_000, seed=1),
    ... )
    >>> tuning.best.name
    'adaptive'

    """
    if not models:
        raise ValueError("there is no model to tune")
    if first_rung < 2:
        raise ValueError(f"first_rung is {first_rung}: it must be at least 2")
    candidates = [Candidate(name, model) for name, model in models.items()]
    tuning = Tuning(candidates, metric_named(metric, kind_of(candidates[0].model)))
    rung = first_rung
    try:
        for chunk in chunks(examples):
            while chunk:
                taken, chunk = chunk[: rung - tuning.n], chunk[rung - tuning.n :]
                tuning.n += _learn(tuning.candidates, taken, tuning.metric, on_refused)
                if tuning.n == rung:
                    _drop_the_worse_half(tuning)
                    rung *= 2
            if on_chunk is not None:
                on_chunk(tuning)
    except KeyboardInterrupt:
        tuning.interrupted = True
        for each in tuning.candidates:
            while each.n > tuning.n:  # the chunk that not all have learned
                each.costs.pop()
    return tuning


def _learn(candidates: list[Candidate], chunk: list[Labelled], metric: Metric, on_refused: OnRefused | None) -> int:
    """Let all remaining candidates predict and learn a chunk; return how many of its messages were learned."""
    first, *others = (each for each in candidates if not each.is_dropped)
    learned: list[Labelled] = []
    rows_of_first = [np.empty(0)]
    for block in predict_learn(first.model, chunk, on_refused):
        learned += block.examples
        rows_of_first.append(metric.rows(block, first.model))
    first.costs.append(_joined(rows_of_first))
    if learned:
        X, y, w = columns_of(learned)
        for each, model, rows in _with_shared_rows(others, X):
            try:
                if None in model.classes:  # the first labels are learned one by one
                    blocks = [*predict_learn(each.model, learned)]
                else:
                    said = model.predict_learn_many(rows, y, w)
                    blocks = [PredictedBlock(said, model.classes, y, learned)]
            except REFUSALS as error:
                raise ValueError(f"{each.name} refuses what {first.name} has learned: {error}") from error
            each.costs.append(_joined([metric.rows(block, each.model) for block in blocks]))
    return len(learned)


def _joined(parts: list[Floats]) -> Floats:
    """The joined rows of several blocks; empty blocks may have another shape."""
    return np.concatenate([part for part in parts if len(part)] or [np.empty(0)])


def _with_shared_rows(candidates: list[Candidate], X: list[Any]) -> Iterator[tuple[Candidate, Any, Any]]:
    """Yield each candidate with the model that learns and its input: features that several share are made once."""
    groups: list[tuple[Any, list[Candidate]]] = []
    for each in candidates:
        features = getattr(each.model, "features", None)
        alike = features and (type(features), parameters_of(features))
        for known, group in groups:
            if known == alike:
                group.append(each)
                break
        else:
            groups.append((alike, [each]))
    for alike, group in groups:
        if not alike or len(group) == 1:
            yield from ((each, each.model, X) for each in group)
        else:
            matrix = group[0].model.features.transform_many(X)
            yield from ((each, each.model.classifier, matrix) for each in group)


def _drop_the_worse_half(tuning: Tuning) -> None:
    others = (each for each in tuning.candidates[1:] if not each.is_dropped)
    left = sorted(others, key=lambda each: -tuning.gain(each)[0])
    for each in left[(len(left) + 1) // 2 :]:
        each.is_dropped = True
