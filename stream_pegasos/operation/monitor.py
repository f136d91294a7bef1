"""What can be seen of a model at work: scores, the newest messages, the weightiest words."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np

from stream_pegasos.common.checks import check_integer
from stream_pegasos.evaluation.prequential import Labelled, PredictedBlock, Prediction
from stream_pegasos.evaluation.scores import new_score, score_of_state

__all__ = ["Monitor"]

MOST_POINTS = 200
MOST_DRIFTS = 200
NEWEST = 20
LONGEST_TEXT = 300  # characters shown of a message
MOST_NAMES = 20_000
LONGEST_NAMED = 5_000  # characters of a message in which names are found
LONGEST_NAME = 100
SECONDS_OF_RATE = 10
# The share of the time that finding names for hashed features may take.
SHARE_FOR_NAMES = 0.02


class CurvePoint(NamedTuple):
    """The scores after the first `n` messages."""

    n: int
    accuracy: float
    roc_auc: float
    window_accuracy: float
    window_roc_auc: float


class Monitor:
    """Follows a text model as it predicts and learns, in constant memory.

    Parameters
    ----------
    model
        The `TextClassifier`.
    window
        The number of newest messages that scores are also given for.

    Attributes
    ----------
    score
        The prequential scores of all messages learned.
    n_predictions
        The number of predictions asked for.
    n_failed
        The number of requests that failed.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.operation.monitor import Monitor
    >>> from stream_pegasos.evaluation.prequential import predict_learn

    >>> model = TextClassifier()
    >>> monitor = Monitor(model)
    >>> chunk = [("cheap pills", "spam"), ("lunch?", "ham"), ("more pills", "spam")]
    >>> for block in predict_learn(model, chunk):
    ...     monitor.learned(chunk[: len(block)], block)
    ...     chunk = chunk[len(block) :]
    >>> view = monitor.view()
    >>> view["n"], view["newest"][0]["text"], view["newest"][0]["predicted"]
    (3, 'more pills', 'spam')

    """

    def __init__(self, model: Any, window: int = 1_000) -> None:
        self.model = model
        self.score: Any = new_score(model, window, exact=False)
        self.n_predictions = 0
        self.n_failed = 0
        self._curve: list[CurvePoint] = []
        self._step = 10
        self._drifts: list[int] = []
        self._n_drifts = model.n_drifts
        self._newest: deque[dict[str, Any]] = deque(maxlen=NEWEST)
        self._names: dict[int, tuple[str, float]] = {}  # by column, those seen last at the end
        self._names_due = 0.0
        self._rate: deque[tuple[int, int]] = deque()  # second, number of messages
        self._started = monotonic()

    def learned(self, examples: list[Labelled], block: PredictedBlock) -> None:
        """Take in messages that were predicted, then learned."""
        outcomes: Any = block.outcomes(self.model)
        while outcomes.n:
            first, outcomes = outcomes.split(self._step - self.score.n % self._step)
            self.score = self.score.after(first)
            if self.score.n % self._step == 0:
                self._curve.append(self._curve_point())
                if len(self._curve) == MOST_POINTS:
                    del self._curve[::2]
                    self._step *= 2
        if self.model.n_drifts > self._n_drifts:
            self._n_drifts = self.model.n_drifts
            self._drifts = [*self._drifts, self.score.n][-MOST_DRIFTS:]
        newest = list(zip(examples, block.each(), strict=True))[-NEWEST:]
        n = self.score.n - len(newest)
        for i, (example, prediction) in enumerate(newest, 1):
            self._show(n + i, example[0], example[1], prediction)
        self._count(len(examples))
        self._find_names(examples[-1][0])

    def predicted(self, texts: list[str], predictions: list[Prediction]) -> None:
        """Take in messages that were only predicted."""
        self.n_predictions += len(texts)
        for text, prediction in zip(texts[-NEWEST:], predictions[-NEWEST:], strict=True):
            self._show(None, text, None, prediction)
        self._count(len(texts))

    def view(self) -> dict[str, Any]:
        """All that there is to see, as values for JSON; `None` for what is not known yet."""
        score, model = self.score, self.model
        points = self._curve if self._curve and self._curve[-1].n == score.n else [*self._curve, self._curve_point()]
        return {
            "model": {
                "kind": type(model).__name__,
                "classifier": type(model.parts["classifier"]).__name__,
                "n_iterations": model.n_iterations,
                "n_features": model.n_features,
                "max_features": model.max_features,
                "classes": list(model.classes),
            },
            "n": score.n,
            "n_predictions": self.n_predictions,
            "n_failed": self.n_failed,
            "docs_per_second": self._docs_per_second(),
            "uptime_seconds": monotonic() - self._started,
            "accuracy": _known(score.accuracy),
            "roc_auc": _known(score.roc_auc),
            "log_loss": _known(score.log_loss),
            "expected_calibration_error": _known(score.expected_calibration_error),
            "window": {
                "size": score.window,
                "n": min(score.n, score.window),
                "accuracy": _known(score.window_accuracy),
                "roc_auc": _known(score.window_roc_auc),
            },
            "confusion_matrix": score.confusion_matrix.tolist(),
            "reliability": [[int(n), _known(p), _known(share)] for n, p, share in score.reliability.tolist()],
            "curve": [[_known(value) for value in point] for point in points if point.n],
            "drifts": self._drifts,
            "newest": list(self._newest)[::-1],
            "words": self._words(),
        }

    def get_state(self) -> dict[str, Any]:
        """What outlives a restart; no message is in it."""
        return {
            "score": self.score.get_state(),
            "curve": [[_known(value) for value in point] for point in self._curve],
            "step": self._step,
            "drifts": self._drifts,
            "n_predictions": self.n_predictions,
            "n_failed": self.n_failed,
            "names": [[column, name, sign] for column, (name, sign) in self._names.items()],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `get_state` gave.

        Raises
        ------
        ValueError
            If it is something else; the monitor is of no use then.
        """
        try:
            self.score = score_of_state(state["score"], self.model, self.score.window)
            self._curve = [
                CurvePoint(int(n), *(math.nan if value is None else float(value) for value in rest))
                for n, *rest in state["curve"]
            ]
            check_integer("step", state["step"], 1, 1 << 53)
            check_integer("length of the curve", len(self._curve), 0, MOST_POINTS - 1)
            self._step = state["step"]
            self._drifts = [int(n) for n in state["drifts"]]
            self.n_predictions, self.n_failed = int(state["n_predictions"]), int(state["n_failed"])
            self._names = {int(column): (str(name), float(sign)) for column, name, sign in state["names"]}
            np.array([*self._names], np.int64)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"this is no state of a Monitor ({error})") from None

    def _curve_point(self) -> CurvePoint:
        score = self.score
        return CurvePoint(score.n, score.accuracy, score.roc_auc, score.window_accuracy, score.window_roc_auc)

    def _show(self, number: int | None, text: str, label: Any, prediction: Prediction) -> None:
        self._newest.append(
            {
                "number": number,
                "text": text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…",
                "label": label,
                "predicted": prediction.label,
                "probability": prediction.probability,
                "margin": prediction.margin,
            }
        )

    def _count(self, n: int) -> None:
        second = int(monotonic())
        if self._rate and self._rate[-1][0] == second:
            n += self._rate.pop()[1]
        self._rate.append((second, n))
        while self._rate[0][0] <= second - SECONDS_OF_RATE:
            self._rate.popleft()

    def _docs_per_second(self) -> float:
        """Over the newest seconds that are whole."""
        now = monotonic()
        recent = sum(n for second, n in self._rate if int(now) - SECONDS_OF_RATE < second < int(now))
        return recent / min(SECONDS_OF_RATE - 1, max(1.0, now - self._started))

    def _find_names(self, text: str) -> None:
        """Remember which n-grams the columns of a text stand for, if there is time for it."""
        start = perf_counter()
        if start < self._names_due:
            return
        features = self.model.features
        for ngram in dict.fromkeys(features.tokens(text[:LONGEST_NAMED])):
            if len(ngram) > LONGEST_NAME:
                continue
            column, sign = features.index(ngram)
            self._names.pop(column, None)
            self._names[column] = ngram, sign
        while len(self._names) > MOST_NAMES:
            del self._names[next(iter(self._names))]
        end = perf_counter()
        self._names_due = end + (end - start) / SHARE_FOR_NAMES

    def _words(self) -> dict[str, list[tuple[str, float]]]:
        """Of the words whose names are known, those that weigh most for either label."""
        columns = np.fromiter(self._names, np.int64, len(self._names))
        signed = [(name, sign) for name, sign in self._names.values()]
        weights = self.model.weights_of(columns)[:, 0] * np.array([sign for _, sign in signed], float)
        order = np.argsort(-weights, kind="stable")
        positive = [(signed[i][0], float(weights[i])) for i in order[:NEWEST] if weights[i] > 0.0]
        negative = [(signed[i][0], float(weights[i])) for i in order[::-1][:NEWEST] if weights[i] < 0.0]
        return {"positive": positive, "negative": negative}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
