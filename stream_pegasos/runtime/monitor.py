"""Monitoring of a model at work: scores, the newest messages, and the words with the largest weights."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from stream_pegasos.blocks.predicted import NOTHING, Labelled, PredictedBlock, has_weight
from stream_pegasos.common.checks import check_integer
from stream_pegasos.common.display import shortened
from stream_pegasos.common.locks import Lock
from stream_pegasos.evaluation.curve import MOST_ROWS, Curve
from stream_pegasos.evaluation.metric_names import on_page, over_time
from stream_pegasos.evaluation.scores import PrequentialScore, block_outcomes, new_score, score_of_state
from stream_pegasos.evaluation.tallies import FEWEST_IN_TENTH, ClassRow, OtherRow, Score
from stream_pegasos.features.message import Message, shown_message
from stream_pegasos.learners.capabilities import LABELS, ORDERED, Capability
from stream_pegasos.learners.earlier import monitor_now
from stream_pegasos.learners.feature_names import FeatureNames
from stream_pegasos.learners.label_policy import Label, labels_that_hold
from stream_pegasos.runtime.answers import label_named, now, shown
from stream_pegasos.runtime.failures import Failures
from stream_pegasos.runtime.wrong_answers import LONGEST_WRONG, MOST_WRONG, WrongAnswers
from stream_pegasos.streams import Answer, Truth
from stream_pegasos.streams.example import Id

if TYPE_CHECKING:
    from stream_pegasos.learners.text import TextClassifier

__all__ = ["Monitor"]

MOST_DRIFTS = 200
NEWEST = 20
LONGEST_TEXT = 300  # characters shown of a message
SECONDS_OF_RATE = 10
# The share of time for naming hashed features; the largest number of seconds saved up for it, and used at once.
SHARE_FOR_NAMES, MOST_FOR_NAMES, FOR_NAMES_AT_ONCE = 0.02, 1.0, 0.01
MOST_WAITING = 64  # messages whose outcomes are counted together
MOST_CLASSES = 20
MOST_CONFUSED = 12
MOST_LABELS = 10  # shown of a message


class Monitor:
    """Follows a text model while it predicts and learns, in constant memory except for the counts of each class. Hold
    its lock to read it while another thread learns.
    """

    def __init__(self, model: TextClassifier, window: int = 1_000) -> None:
        self.model = model
        self.lock = Lock()
        self._score = new_score(model, window, exact=False)
        self.n_predictions = 0
        self.n_failed = 0
        self.failures = Failures()
        self.wrong = WrongAnswers()
        self._learns_again = False
        self._curve = Curve(10)  # rows of the number of messages and the metrics over time
        self._drifts: list[int] = []
        self._n_drifts = model.n_drifts
        self._newest: deque[dict[str, Any]] = deque(maxlen=NEWEST)
        self._keeps_names = model.names is None and Capability.WEIGHTS in model.capabilities
        self._names = FeatureNames() if model.names is None else model.names
        self._seconds_for_names, self._named_at = MOST_FOR_NAMES, monotonic()
        self._rate: deque[tuple[int, int]] = deque()  # second, number of messages
        self._started = monotonic()
        self._has_weights = Capability.WEIGHTS in model.capabilities

    def learned(self, examples: list[Labelled], block: PredictedBlock, ids: Iterable[Id | None] = NOTHING) -> None:
        """Count messages that were predicted, then learned, each with its id if it has one."""
        self._curve.wait(block_outcomes(block, self.model))
        n = self._score.n + self._curve.n_waiting
        if self._curve.n_waiting >= MOST_WAITING:
            self._count_waiting()
        if self.model.n_drifts > self._n_drifts:
            self._n_drifts = self.model.n_drifts
            self._drifts = [*self._drifts, n][-MOST_DRIFTS:]
        texts = [example[0] for example in examples]
        self._newest.extend(self._show_rows(texts, block, range(max(0, len(block) - NEWEST), len(block)), n))
        wrong = [row for row in block.wrong_rows() if has_weight(examples[row])][-MOST_WRONG:]
        if wrong:
            self._keep_wrong(examples, block, wrong, n, ids)
        self._count(len(examples))
        self._find_names(block, examples)

    def _keep_wrong(
        self, examples: list[Labelled], block: PredictedBlock, rows: list[int], n: int, ids: Iterable[Id | None]
    ) -> None:
        messages = self._show_rows([example[0] for example in examples], block, rows, n, LONGEST_WRONG)
        probabilities = block.label_probabilities()[rows].tolist()
        shown = [
            {**message, "label_probability": _known(p)} for message, p in zip(messages, probabilities, strict=True)
        ]
        learned = [*zip(examples, ids, strict=False)]
        self.wrong.add(shown, [learned[row] for row in rows])

    def predicted(self, X: list[Message], block: PredictedBlock) -> None:
        """Count messages that were only predicted."""
        self.n_predictions += len(X)
        self._newest.extend(self._show_rows(X, block, range(max(0, len(block) - NEWEST), len(block)), None))
        self._count(len(X))

    @contextmanager
    def learning_again(self) -> Iterator[None]:
        """Within this context, learned messages are repetitions: they came before, at an unknown time."""
        self._learns_again = True
        try:
            yield
        finally:
            self._learns_again = False

    def refused(self, request: str, status: str, reason: str, is_failure: bool) -> None:
        """Keep the reason of a refused request, and count it if the service failed."""
        self.n_failed += is_failure
        self.failures.add(request, status, reason)

    @property
    def kind(self) -> str:
        """The kind of score: "classes", "ordered" or "several labels"."""
        return str(self._score.kind)

    @property
    def score(self) -> Score:
        """The score of all learned messages."""
        self._count_waiting()
        return self._score

    def _count_waiting(self) -> None:
        self._curve.count_waiting(self._score, self._curve_point)

    def describe(self) -> dict[str, Any]:
        """The description of the model, without its labels."""
        model = self.model
        return {
            "kind": type(model).__name__,
            "classifier": type(model.parts["classifier"]).__name__,
            "n_iterations": model.n_iterations,
            "n_features": model.n_features,
            "max_features": model.max_features,
        }

    def view(self) -> dict[str, Any]:
        """All metrics and the newest messages, as values for JSON; `None` for unknown values. It has only the most
        frequent classes; `classes` and `words` have all.
        """
        score, n, model = self.score, self.score.n, self.model
        points = self._curve.rows
        if not points or points[-1][0] != n:
            points = [*points, self._curve_point()]
        metrics = {name: _known(value) for name, value in score.metrics().items()}
        window = {name.removeprefix("window_"): metrics.pop(name) for name in [*metrics] if name.startswith("window_")}
        rows, other_classes = score.class_rows(), score.others(MOST_CLASSES)
        counts = {row.label: row.count for row in rows}
        shown_rows = sorted(rows[:MOST_CLASSES]) if self.kind == ORDERED else rows[:MOST_CLASSES]
        return {
            "kind": self.kind,
            "n": n,
            "n_unanswered": score.n_unanswered,
            "n_predictions": self.n_predictions,
            "n_failed": self.n_failed,
            "failures": self.failures.newest(),
            "docs_per_second": self._docs_per_second(),
            "uptime_seconds": monotonic() - self._started,
            "model": {
                **self.describe(),
                "n_classes": len(model.classes),
                "positive": shown(score.positive if isinstance(score, PrequentialScore) else None),
                "has_weights": self._has_weights,
            },
            "figures": on_page(self.kind, score.has_sets),
            **metrics,
            "window": {"size": score.window, "n": min(score.n_answered, score.window), **window},
            "curve": self._columns([point for point in points if point[0]]),
            "drifts": self._drifts,
            "fewest_in_tenth": FEWEST_IN_TENTH,
            "reliability": [[int(n), _known(p), _known(share)] for n, p, share in score.reliability.tolist()],
            "classes": [{"label": shown(row.label), **_rates(row, score.n_answered)} for row in shown_rows],
            "others": None
            if other_classes is None
            else {"n_classes": other_classes.n_classes, **_rates(other_classes, score.n_answered)},
            "confused": [
                {
                    "truth": shown(row.truth),
                    "predicted": shown(row.predicted),
                    "n": row.count,
                    "share": row.count / counts[row.truth] if counts[row.truth] else None,
                }
                for row in score.confused(MOST_CONFUSED)
            ],
            "newest": list(self._newest)[::-1],
        }

    def classes(self, search: str = "", limit: int = MOST_CLASSES) -> dict[str, Any]:
        """The quality of predictions by class, the most frequent class first. `search` is a part of a label, in upper
        or lower case; `n` is the number of classes that match, and the first `limit` of them are returned.
        """
        score, part = self.score, search.casefold()
        rows = score.class_rows()
        labels_met = set(score.tally.labels)
        # The model may have learned labels that are new to this monitor.
        new = (label for label in self.model.classes if label not in labels_met)
        rows += [ClassRow(label, math.nan, math.nan, math.nan, 0) for label in new]
        matching = [row for row in rows if part in str(row.label).casefold()]
        rates = [{"label": shown(row.label), **_rates(row, score.n_answered)} for row in matching[:limit]]
        return {"n": len(matching), "classes": rates}

    def counts(self, labels: Sequence[Label]) -> list[int]:
        """The number of messages of each label that were learned here."""
        tally = self.score.tally
        return [int(tally.row(label)[0]) for label in labels]

    def get_state(self) -> dict[str, Any]:
        """The state to save, without messages."""
        return {
            "score": self.score.get_state(),
            "curve": self._columns(self._curve.rows),
            "step": self._curve.step,
            "drifts": self._drifts,
            "n_predictions": self.n_predictions,
            "n_failed": self.n_failed,
            **({"names": self._names.get_state()} if self._keeps_names else {}),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `get_state`. After a ValueError about a state that is not valid, the monitor must not
        be used.
        """
        try:
            score = score_of_state(state["score"], self.model, self._score.window)
            columns = monitor_now(state)["curve"]
            unknown = [None] * len(columns["n"])
            points = np.array([columns.get(name, unknown) for name in ("n", *over_time(score.kind))], float).T
            check_integer("length of the curve", len(points), 0, MOST_ROWS - 1)
            check_integer("step", state["step"], 1, 1 << 53)
            self._curve = Curve(state["step"])
            self._curve.rows = [[int(n), *values_of_point] for n, *values_of_point in points.tolist()]
            self._drifts = [int(n) for n in state["drifts"]]
            self.n_predictions, self.n_failed = int(state["n_predictions"]), int(state["n_failed"])
            if self._keeps_names and "names" in state:
                self._names.set_state(state["names"])
            self._score = score
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the state must be one of a Monitor ({error})") from None

    def _columns(self, points: list[Any]) -> dict[str, list[Any]]:
        """The points of the curve as one column for each metric, with its name, for other versions."""
        return {name: [_known(point[i]) for point in points] for i, name in enumerate(("n", *over_time(self.kind)))}

    def _curve_point(self) -> list[float]:
        return [self._score.n, *(getattr(self._score, name) for name in over_time(self.kind))]

    def _show_rows(
        self,
        X: Sequence[Message],
        block: PredictedBlock,
        rows: Sequence[int],
        number: int | None,
        longest: int = LONGEST_TEXT,
    ) -> list[dict[str, Any]]:
        """The messages in some rows of a block, with their labels and answers; the last row has this `number`."""
        if not rows:
            return []
        describe = _shown_labels if self.kind == LABELS else _shown_label
        part = block
        if len(rows) < len(block):
            part = PredictedBlock(block.predictions.rows([*rows]), block.classes, [])
        answers = part.answers(probabilities=part.most_probable(2))
        shown = self.model.features.shown if Capability.TEXTS in self.model.capabilities else shown_message
        time = None if self._learns_again else now()
        return [
            {
                "number": None if number is None else number - len(block) + 1 + row,
                "time": time,
                "text": shortened(shown(X[row]), longest),
                **describe(block.y[row] if block.y else None, answer),
                **({"withheld": _some(answer.withheld)} if answer.withheld else {}),
                **({"set": _some(answer.set)} if answer.set is not None else {}),
            }
            for row, answer in zip(rows, answers, strict=True)
        ]

    def _count(self, n: int) -> None:
        second = int(monotonic())
        if self._rate and self._rate[-1][0] == second:
            n += self._rate.pop()[1]
        self._rate.append((second, n))
        while self._rate[0][0] <= second - SECONDS_OF_RATE:
            self._rate.popleft()

    def _docs_per_second(self) -> float:
        """The rate over the last whole seconds."""
        now = monotonic()
        recent = sum(n for second, n in self._rate if int(now) - SECONDS_OF_RATE < second < int(now))
        return recent / min(SECONDS_OF_RATE - 1, max(1.0, now - self._started))

    def _find_names(self, block: PredictedBlock, examples: Sequence[Labelled]) -> None:
        """Name the features of learned messages, while there is time left. Labels take turns; for each label, the
        message with the least probable label comes first.
        """
        if not self._keeps_names:
            return
        start = monotonic()
        saved = self._seconds_for_names + SHARE_FOR_NAMES * (start - self._named_at)
        end = start + min(saved, FOR_NAMES_AT_ONCE)
        for text in dict.fromkeys(examples[row][0] for row in _sort_by_surprise(block)):
            if monotonic() >= end:
                break
            self._names.add(self.model, self.model.features.prepare(text))
        self._named_at = monotonic()
        self._seconds_for_names = min(saved, MOST_FOR_NAMES) - (self._named_at - start)

    def words(self, label: Label | None = None) -> dict[str, list[tuple[str, float]]]:
        """The named words with the largest weights for and against a label; with ordered labels, for higher and for
        lower ones. A LookupError if the model does not know the label, or has no weights, as kernel models.
        """
        if not self._has_weights:
            raise LookupError("the model has no weights")
        known_label = None if self.kind == ORDERED else label_named(self.model.classes, label)
        if known_label is None and self.kind != ORDERED:
            raise LookupError("the model does not know the label")
        weights = self._names.weights(self.model, known_label)
        weights.sort(key=lambda pair: -pair[1])
        positive = [pair for pair in weights[:NEWEST] if pair[1] > 0.0]
        negative = [pair for pair in weights[: -NEWEST - 1 : -1] if pair[1] < 0.0]
        return {"positive": positive, "negative": negative}


def _sort_by_surprise(block: PredictedBlock) -> list[int]:
    """The rows of a block in order. Labels take turns; for each label, its least probable row comes first."""
    predictions = block.predictions
    columns = {label: column for column, label in enumerate(predictions.classes)}
    of_label: dict[Any, list[tuple[float, int]]] = {}
    for row, y in enumerate(block.y):
        labels_held = y if isinstance(y, Collection) and not isinstance(y, str) else (y,)
        for label in labels_held:
            column = columns.get(label)
            probability = 0.0 if column is None else float(predictions.probabilities[row, column])
            of_label.setdefault(label, []).append((probability, row))
    in_turn = zip_longest(*(sorted(rows) for rows in of_label.values()))
    return list(dict.fromkeys(pair[1] for pairs in in_turn for pair in pairs if pair is not None))


def _rates(row: ClassRow | OtherRow, n: int) -> dict[str, Any]:
    return {
        "n": row.count,
        "share": row.count / n if n else 0.0,
        "precision": _known(row.precision),
        "recall": _known(row.recall),
        "f1": _known(row.f1),
    }


def _shown_label(label: Label | None, answer: Answer) -> dict[str, Any]:
    """The true label of a message, the predicted one, and the most probable other one."""
    best: Mapping[Any, float] = answer.probabilities or {}
    second, of_second = next((pair for pair in best.items() if pair[0] != answer.label), (None, None))
    return {
        "label": shown(label),
        "predicted": shown(answer.label),
        "probability": answer.probability,
        "right": None if label is None else answer.label == label,
        "second": shown(second),
        "second_probability": of_second,
    }


def _shown_labels(y: Truth | dict[Label, bool] | None, answer: Answer) -> dict[str, Any]:
    """The true and the predicted labels of a message that may have several: the first ten, and the number of others."""
    truth = None if y is None or isinstance(y, (int, str)) else labels_that_hold(y)
    predicted = answer.label if isinstance(answer.label, tuple) else ()
    probabilities = answer.probability if isinstance(answer.probability, tuple) else ()
    return {
        "label": None if truth is None else _some(truth),
        "predicted": _some(predicted),
        "probability": [*probabilities[:MOST_LABELS]],
        "right": None if truth is None else set(truth) == set(predicted),
    }


def _some(labels: Sequence[Any]) -> list[Any]:
    first_labels = [shown(label) for label in labels[:MOST_LABELS]]
    return first_labels if len(labels) <= MOST_LABELS else [*first_labels, f"… {len(labels) - MOST_LABELS:,} more"]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
