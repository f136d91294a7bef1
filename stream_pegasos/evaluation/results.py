"""Results of prequential evaluations: of one model, and of several on the same stream."""

from __future__ import annotations

import importlib
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.evaluation.label_errors import LabelErrors, Suspect
from stream_pegasos.evaluation.report import as_html, as_text, comparison_tables, headline, score_tables
from stream_pegasos.evaluation.tallies import Score

__all__ = ["Comparison", "Evaluation", "Pair"]

MOST_BLOCKS = 50  # blocks of the stream, for the variance of a difference
LONGEST_LINE = 100  # characters in the report of several models


@dataclass(slots=True, repr=False)
class Evaluation:
    """The evaluation of a model on a stream. `str` gives the report that the command `evaluate` prints.

    Attributes
    ----------
    score : PrequentialScore, OrderedScore or LabelScore
        The scores over the whole stream; a `LabelScore` if an example may have several labels.
    curve : list of named tuples
        The scores at up to 200 evenly spaced points and at the end.
    seconds : float
        The duration.
    interrupted : bool
        Whether Ctrl-C ended it.
    name : str
        The name of the stream.
    marks : dict of int to str
        Texts by number of examples, which `plot` marks.
    label_errors : LabelErrors
        Labels that look wrong; its `interval` estimates their share, if there is a sound estimate.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier, prequential
    >>> from stream_pegasos.streams import synthetic
    >>> evaluation = prequential(synthetic(n=2_000), TextClassifier(), name="synthetic")
    >>> evaluation
    <Evaluation of synthetic: 2,000 messages, accuracy 0.9...>
    >>> print(evaluation)
    synthetic: 2,000 messages in ...

    """

    score: Score
    curve: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    name: str = "stream"
    marks: Mapping[int, str] = field(default_factory=dict)
    label_errors: LabelErrors = field(default_factory=LabelErrors)

    def __repr__(self) -> str:
        name, value = next(iter(self.score.metrics().items()))
        return f"<Evaluation of {self.name}: {self.score.n:,} messages, {name} {value:.4f}>"

    def __str__(self) -> str:
        return self.report()

    def report(self, in_full: bool = False, notes: Sequence[str] = ()) -> str:
        """The report as text; in full, with all classes, the worst F1 first, and all confusions. `notes` follow the
        number of messages.
        """
        return as_text(headline(self, notes), score_tables(self.score, in_full))

    def _repr_html_(self) -> str:
        return as_html(headline(self), score_tables(self.score))

    def suspects(self, n: int = 100) -> list[Suspect]:
        """The messages whose label looks wrong, the most suspicious first.

        Parameters
        ----------
        n : int, default 100
            The largest number of messages, up to 10,000.

        Returns
        -------
        list of Suspect
            The wrongly predicted messages with the least probable labels before learning (the self-confidence of
            Northcutt, Jiang and Chuang 2021, on predictions of one pass).

        Examples
        --------

        >>> from stream_pegasos import TextClassifier, prequential
        >>> from stream_pegasos.streams import synthetic
        >>> (suspect,) = prequential(synthetic(n=2_000), TextClassifier()).suspects(1)
        >>> suspect.number, suspect.text, suspect.label, suspect.predicted
        (106, 'Brand new ringtones and logos at www.ringwin.example', 'ham', 'spam')

        """
        return self.label_errors.suspects(n)

    def plot(self, to: Any = None) -> Any:
        """Draw the curve; needs the extra `plot`.

        Parameters
        ----------
        to : matplotlib.axes.Axes, str, path or None, default None
            The axes to draw the curve on; or a .png, .svg or .pdf file for the curve and three more plots (see
            `stream_pegasos.evaluation.plot.draw`); `None` for a new figure with all of these.

        Returns
        -------
        matplotlib.axes.Axes, matplotlib.figure.Figure or None
            The axes or the new figure; `None` for a file.
        """
        from stream_pegasos.evaluation import plot

        name, is_file = os.path.basename(self.name), isinstance(to, (str, os.PathLike))
        if to is not None and not is_file:
            plot.draw_curve(to, self.curve, name, self.score.window, self.marks)
            return to
        figure = plot.draw(self.curve, name, self.score, self.marks)
        if not is_file:
            return figure
        plot.write(figure, to)
        return None

    def to_frame(self) -> Any:
        """The rows of the curve as a data frame of pandas or, without pandas, of Polars. Raise an ImportError if both
        are missing.
        """
        return make_frame([row._asdict() for row in self.curve])


class Pair(NamedTuple):
    """The difference of two models, over the examples that both predicted.

    Attributes
    ----------
    first, second : str
        Their names.
    difference : float
        The accuracy of the first model minus that of the second.
    standard_error : float
        The standard error of the difference, from its variance over up to 50 consecutive equal parts of the stream.
    n_first, n_second : int
        The number of examples that only the first model predicted right, and that only the second did.
    p_value : float
        The exact p-value of McNemar's test: the probability that these two numbers differ at least as much if both
        models are equally good.
    """

    first: str
    second: str
    difference: float
    standard_error: float
    n_first: int
    n_second: int
    p_value: float

    @classmethod
    def of(cls, first: str, second: str, rights: Sequence[NDArray[np.int8]]) -> Pair:
        """Create from the results of both: whether each example was predicted right; −1 if the model refused it."""
        from scipy.stats import binomtest

        first_rights, second_rights = (of[(rights[0] >= 0) & (rights[1] >= 0)].astype(float) for of in rights)
        n_first, n_second = int((first_rights > second_rights).sum()), int((first_rights < second_rights).sum())
        blocks = [
            part.mean()
            for part in np.array_split(first_rights - second_rights, max(1, min(MOST_BLOCKS, len(first_rights))))
            if len(part)
        ]
        error = float(np.std(blocks, ddof=1) / math.sqrt(len(blocks))) if len(blocks) > 1 else math.nan
        p_value = binomtest(n_first, n_first + n_second).pvalue if n_first + n_second else 1.0
        return cls(
            first, second, (n_first - n_second) / max(len(first_rights), 1), error, n_first, n_second, float(p_value)
        )


class Comparison(Mapping[str, Evaluation]):
    """The evaluations of several models on one stream, by name, and the differences of each two.

    Attributes
    ----------
    pairs : list of Pair
        The differences, one for each two models.
    """

    def __init__(self, evaluations: Mapping[str, Evaluation], rights: Sequence[list[NDArray[np.int8]]]) -> None:
        self._evaluations, self._rights = dict(evaluations), rights

    def __getitem__(self, name: str) -> Evaluation:
        return self._evaluations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._evaluations)

    def __len__(self) -> int:
        return len(self._evaluations)

    @property
    def pairs(self) -> list[Pair]:
        n = min(sum(map(len, parts)) for parts in self._rights)  # Ctrl-C may end the evaluation between two models
        rights = [np.concatenate([*parts, np.zeros(0, np.int8)])[:n] for parts in self._rights]
        return [
            Pair.of(first, second, (first_rights, second_rights))
            for (first, first_rights), (second, second_rights) in itertools.combinations(
                zip(self, rights, strict=True), 2
            )
        ]

    def __repr__(self) -> str:
        first = next(iter(self.values()))
        name = next(iter(first.score.metrics()))
        figures = ", ".join(f"{model_name} {self[model_name].score.metric(name):.4f}" for model_name in self)
        return f"<Comparison on {first.name}: {first.score.n:,} messages, {name} of {figures}>"

    def __str__(self) -> str:
        return self.report()

    def report(self, notes: Sequence[str] = ()) -> str:
        """The report as text: the metrics of each model, and the differences of each two. `notes` follow the number of
        messages.
        """
        return as_text(headline(self._slowest, notes), self._tables(LONGEST_LINE))

    def _repr_html_(self) -> str:
        return as_html(headline(self._slowest), self._tables())

    def _tables(self, longest: int | None = None) -> Any:
        return comparison_tables({name: evaluation.score for name, evaluation in self.items()}, self.pairs, longest)

    @property
    def _slowest(self) -> Evaluation:
        return max(self.values(), key=lambda evaluation: evaluation.seconds)

    def plot(self, to: object = None) -> Any:
        """Draw the first metric of all models over the stream, as `Evaluation.plot` does; it needs the extra `plot`."""
        from stream_pegasos.evaluation import plot

        return plot.draw_comparison(self, to)

    def to_frame(self) -> Any:
        """The rows of all curves as a data frame, with the name of the `model`; see `Evaluation.to_frame`."""
        return make_frame(
            [{"model": name, **row._asdict()} for name, evaluation in self.items() for row in evaluation.curve]
        )


def make_frame(rows: list[dict[str, Any]]) -> Any:
    for package in ("pandas", "polars"):
        try:
            return importlib.import_module(package).DataFrame(rows)
        except ModuleNotFoundError:
            continue
    raise ImportError("a data frame needs pandas or polars: pip install pandas")
