"""Tuning: the search for the best features, learner and options, in one pass over a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stream_pegasos.blocks.blockwise import OnRefused, predict_learn
from stream_pegasos.blocks.predicted import Labelled
from stream_pegasos.common.errors import must_be
from stream_pegasos.evaluation.metric_names import smaller_is_better
from stream_pegasos.evaluation.scores import AnyOutcomes, block_outcomes, new_score
from stream_pegasos.learners.model import Model

if TYPE_CHECKING:
    from stream_pegasos.blocks.river_models import AnyModel

__all__ = ["Candidate", "Tuning", "check_metric", "tune"]

STANDARD_ERRORS = 3.0  # with a dozen equally good models, the luckiest gains one or two
FIRST_RUNG = 1_000  # messages until the worse half is dropped
BLOCKS = 20  # blocks of messages up to a rung


@dataclass(slots=True)
class Candidate:
    """A model that competes with others. It predicted and then learned `n` messages. Its `figure` is the metric over
    the newer half of them. Its `gain` is the improvement over the figure of the first candidate on the same messages.
    The standard `error` of the gain is the jackknife's, which leaves out one of 20 groups of messages at a time
    (Quenouille 1949, Tukey 1958).
    """

    name: str
    model: Model
    n: int = 0
    figure: float = math.nan
    gain: float = 0.0
    error: float = math.inf
    blocks: list[list[AnyOutcomes]] = field(default_factory=list, repr=False)  # of its predictions


@dataclass(slots=True, repr=False)
class Tuning:
    """The result of `tune`: the candidates, the metric, the number of messages, and whether Ctrl-C ended it. The other
    candidates are compared with the first.
    """

    candidates: list[Candidate]
    metric: str
    n: int = 0
    interrupted: bool = False

    def __repr__(self) -> str:
        figures = ", ".join(f"{candidate.name} {candidate.figure:.4f}" for candidate in self.ranking)
        return f"<Tuning on {self.n:,} messages, {self.metric} of {figures}; best: {self.best.name}>"

    @property
    def ranking(self) -> list[Candidate]:
        """The candidates: those that stayed longest first, and among these the largest gains first."""
        return sorted(self.candidates, key=lambda candidate: (-candidate.n, -candidate.gain))

    @property
    def best(self) -> Candidate:
        """The candidate to use: the first one, unless the best of the others gained more than three standard errors."""
        best = self.ranking[0]
        return best if best.gain > STANDARD_ERRORS * best.error else self.candidates[0]

    def judge(self, left: list[Candidate]) -> None:
        ends = np.cumsum([sum(outcomes.n for outcomes in block) for block in left[0].blocks])
        newer = np.flatnonzero(ends > self.n // 2)
        groups = [group for group in np.array_split(newer, BLOCKS) if len(group)]
        of_first = np.zeros(len(groups) + 1)
        for candidate in left:
            figures = [
                self._figure(candidate, newer),
                *(self._figure(candidate, np.setdiff1d(newer, group_rows)) for group_rows in groups),
            ]
            of_first = np.array(figures) if candidate is left[0] else of_first
            gains = (figures - of_first) * (-1.0 if smaller_is_better(self.metric) else 1.0)
            candidate.n, candidate.figure, candidate.gain = self.n, figures[0], float(gains[0])
            candidate.error = math.sqrt((len(groups) - 1) * np.var(gains[1:])) if len(groups) > 1 else math.inf
            if not math.isfinite(candidate.gain + candidate.error):  # for example if all messages have the same label
                candidate.gain, candidate.error = 0.0, math.inf

    def _figure(self, candidate: Candidate, blocks: Iterable[int]) -> float:
        score = new_score(candidate.model)
        for number in blocks:
            for outcomes in candidate.blocks[number]:
                score.update(outcomes)
        return float(score.metric(self.metric))


def check_metric(model: AnyModel, name: str | None = None) -> str:
    """The metric of `evaluate` with this name, by default the first one for this model. Raise a ValueError if it does
    not exist.
    """
    names = [
        metric_name for metric_name in new_score(model).row()._fields[1:-1] if not metric_name.startswith("window_")
    ]
    if name is not None and name not in names:
        raise ValueError(must_be("metric", f"one of {', '.join(names)}", name))
    return name or str(names[0])


def tune(
    models: Mapping[str, Model],
    examples: Iterable[Labelled],
    metric: str | None = None,
    on_refused: OnRefused | None = None,
    on_block: Callable[[int, str], None] | None = None,
) -> Tuning:
    """Let models predict and learn a stream side by side, and drop the worse ones on the way.

    After 1,000 messages the worse half is dropped, and again each time that the number of messages has doubled
    (successive halving, Jamieson and Talwalkar 2016). The first model stays to the end. A model is judged on the newer
    half of its messages, so a slow start does not count. Ctrl-C ends the search early.

    Parameters
    ----------
    models : dict of str to Model
        The models, by name; they learn the stream. The first one is the default, which the others have to beat.
    examples : iterable of tuple
        The stream: tuples `(x, y)`, `(x, y, w)` or longer.
    metric : str or None, default None
        The metric for the comparison, one of `evaluate`, such as "macro_f1" or "log_loss"; `None` for the first one.
    on_refused : callable or None, default None
        A function that gets each example that the first model refuses, and the reason; the example is then skipped.
    on_block : callable or None, default None
        A function that gets, after each block, the number of messages and a text with the number of models left.

    Raises
    ------
    ValueError
        If there is no model or no such metric, if the first model refuses an example and there is no `on_refused`, or
        if another model refuses an example that the first has learned.

    Examples
    --------

    >>> from stream_pegasos import HashedBagOfWords, TextClassifier
    >>> from stream_pegasos.evaluation.tuning import tune
    >>> from stream_pegasos.streams import synthetic

    >>> models = {"the defaults": TextClassifier(), "words alone": TextClassifier(HashedBagOfWords())}
    >>> tune(models, synthetic(n=2_000)).best.name
    'the defaults'

    """
    if not models:
        raise ValueError("models must have at least one model, got none")
    left = [Candidate(name, model) for name, model in models.items()]
    tuning = Tuning([*left], check_metric(left[0].model, metric))
    stream, rung = iter(examples), FIRST_RUNG
    try:
        while block := [*islice(stream, min(rung // BLOCKS, 512, rung - tuning.n))]:
            predictions = [[*predict_learn(left[0].model, block, on_refused)]]
            learned = [example for candidate in predictions[0] for example in candidate.examples]
            predictions += [[*predict_learn(candidate.model, learned)] for candidate in left[1:]]
            for candidate, blocks in zip(left, predictions, strict=True):
                candidate.blocks.append([block_outcomes(predicted, candidate.model) for predicted in blocks])
            tuning.n += len(learned)
            if tuning.n == rung:
                tuning.judge(left)
                other_candidates = sorted(left[1:], key=lambda candidate: -candidate.gain)
                left, rung = [left[0], *other_candidates[: len(left) // 2]], 2 * rung
            if on_block is not None:
                on_block(tuning.n, f"{len(left)} of {len(models)} models left")
    except KeyboardInterrupt:
        tuning.interrupted = True
    tuning.judge(left)
    return tuning
