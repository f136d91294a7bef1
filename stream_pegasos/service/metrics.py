"""Metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any, Literal

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from stream_pegasos import __version__, engine
from stream_pegasos.evaluation.metric_names import spelled
from stream_pegasos.runtime.answers import shown
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.runtime.teaching import Teaching

MOST_CLASSES = 20  # with their own counters
OTHERS = "other"
FAILED = "Requests that failed, by a fault of the service or where it could keep nothing, also of spamd's protocol."
REFUSED = "Requests refused for what their client did wrong, by the status of HTTP or the code of spamd's protocol."


class Metrics:
    """The answered requests, their number and time, and the state of the model."""

    PATHS: tuple[Literal["/predict", "/learn", "/explain"], ...] = ("/predict", "/learn", "/explain")

    def __init__(self, learner: LiveLearner) -> None:
        self._learner = learner
        self._registry = new_registry()
        self._requests = prometheus_client.Counter(
            "stream_pegasos_requests", "Requests answered.", ["path", "status"], registry=self._registry
        )
        seconds = prometheus_client.Histogram(
            "stream_pegasos_request_seconds", "Time to answer a request.", ["path"], registry=self._registry
        )
        self._seconds = {path: seconds.labels(path) for path in (*self.PATHS, "other")}
        self._counters: dict[tuple[str, int], Any] = {}
        self._classes: dict[Any, str] = {}  # names of classes with their own counters, by label
        self._registry.register(self)

    def observe(self, path: str, status: int, seconds: float) -> None:
        path = path if path in self.PATHS else "other"
        counter = self._counters.get((path, status))
        if counter is None:
            counter = self._counters[path, status] = self._requests.labels(path, str(status))
        counter.inc()
        self._seconds[path].observe(seconds)

    def text(self) -> bytes:
        return prometheus_client.generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """The current metrics of the model."""
        with self._learner.monitor.lock:  # another thread may be learning
            return iter([*self._model_metrics()])

    def _model_metrics(self) -> Iterator[Any]:
        learner, score, model = self._learner, self._learner.monitor.score, self._learner.model
        yield counter("messages_learned", "Messages predicted, then learned.", score.n)
        yield counter("messages_unanswered", "Messages learned that had no answer yet.", score.n_unanswered)
        yield counter("predictions", "Messages only predicted.", learner.monitor.n_predictions)
        yield counter("failed_requests", FAILED, learner.monitor.n_failed)
        refused = CounterMetricFamily("stream_pegasos_refused_requests", REFUSED, labels=["status"])
        for status, count in learner.refusals.of_clients.items():
            refused.add_metric([status], count)
        yield refused
        yield gauge("failing", "Whether checkpoints or the journal cannot be written.", learner.health() != "ok")
        yield counter("drifts", "Drifts detected.", model.n_drifts)
        yield gauge("features", "Features that the model knows.", model.n_features)
        yield gauge("classes", "Labels that the model knows.", len(model.classes))
        for name, value in score.metrics().items():
            newest = f" of the newest {score.window} messages" if name.startswith("window_") else ""
            yield gauge(name, f"Prequential {spelled(name)}{newest}.", value)
        yield from checkpoint_metrics(learner.checkpoints)
        yield from teaching_metrics(learner.teaching)
        yield from self._class_metrics()
        mails = CounterMetricFamily(
            "stream_pegasos_mails", "Mails asked about by spamd's protocol.", labels=["verdict"]
        )
        for verdict, count in learner.n_verdicts.items():
            mails.add_metric([verdict], count)
        yield mails

    def _class_metrics(self) -> Iterator[Any]:
        """Counters by class. The most frequent classes of the first scrape keep their own counters, because a counter
        must never decrease; all others share one.
        """
        tally = self._learner.monitor.score.tally
        for row in self._learner.monitor.score.class_rows(MOST_CLASSES):
            if len(self._classes) < MOST_CLASSES:
                self._classes.setdefault(row.label, _called(row.label))
        called = [self._classes.get(label, OTHERS) for label in tally.labels]
        for name, text, counts in (
            ("messages", "Messages that had an answer and were learned, by their label.", tally.occurred),
            ("predicted", "Messages learned, by the label predicted before.", tally.predicted),
            ("right", "Messages learned that were predicted right, by their label.", tally.right),
        ):
            family = CounterMetricFamily(f"stream_pegasos_class_{name}", text, labels=["class"])
            totals: dict[str, int] = {}
            for label, count in zip(called, counts.tolist(), strict=True):  # several labels may have the same name
                totals[label] = totals.get(label, 0) + count
            for label, count in totals.items():
                family.add_metric([label], count)
            yield family


def new_registry() -> prometheus_client.CollectorRegistry:
    """A registry with the metrics of every process: its resources, and the version of the package."""
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    prometheus_client.PlatformCollector(registry=registry)
    about = {"version": __version__, "engine": engine.NAME}
    prometheus_client.Info("stream_pegasos_build", "The version that runs.", registry=registry).info(about)
    return registry


def checkpoint_metrics(checkpoints: Checkpoints | None) -> Iterator[Any]:
    if checkpoints is not None:
        yield counter("checkpoint_failures", "Checkpoints that failed.", checkpoints.n_failures)
        if checkpoints.written_at is not None:
            age = monotonic() - checkpoints.written_at
            yield gauge("checkpoint_age_seconds", "Time since the last checkpoint.", age)


def teaching_metrics(teaching: Teaching | None) -> Iterator[Any]:
    if teaching is None:
        return
    view = teaching.view()
    yield counter("teacher_questions", "Messages that the teacher was asked about.", view["n_asked"])
    yield counter("teacher_lessons", "Labels of the teacher that were learned.", view["n_taught"])
    yield counter(
        "teacher_dropped", "Messages that waited too long, or had no answer that is a label.", view["n_dropped"]
    )
    yield counter("teacher_tokens", "Tokens sent to the teacher and answered.", view["n_tokens"])
    yield gauge("teacher_waiting", "Messages that wait for the teacher.", view["n_waiting"])
    yield gauge("teacher_failing", "Whether the teacher is away, or refuses.", view["error"] is not None)
    faults = CounterMetricFamily("stream_pegasos_teacher_faults", "Questions that failed.", labels=["kind"])
    for kind, n in view["faults"].items():
        faults.add_metric([kind], n)
    yield faults
    for name, text, place in (
        ("compared", "Labels of the teacher that people judged, by that label.", 1),
        ("agreed", "Labels of the teacher that people gave, too.", 0),
    ):
        family = CounterMetricFamily(f"stream_pegasos_teacher_{name}", text, labels=["class"])
        for label, counts in [*teaching.agreement.counts.items()][:MOST_CLASSES]:
            family.add_metric([_called(label)], counts[place])
        yield family


def counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"stream_pegasos_{name}", text, value)


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"stream_pegasos_{name}", text, value)


def _called(label: object) -> str:
    """A label in valid UTF-8; a lone surrogate is written as its number."""
    return str(shown(label)).encode("utf-8", "backslashreplace").decode()
