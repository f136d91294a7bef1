"""What Prometheus is told."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any, Literal

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from stream_pegasos.service.work import Service


class Metrics:
    """The requests answered, counted and timed, and the state of the model."""

    PATHS: tuple[Literal["/predict", "/learn", "/explain"], ...] = ("/predict", "/learn", "/explain")

    def __init__(self, service: Service) -> None:
        self._service = service
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        prometheus_client.PlatformCollector(registry=self._registry)
        self._requests = prometheus_client.Counter(
            "stream_pegasos_requests", "Requests answered.", ["path", "status"], registry=self._registry
        )
        seconds = prometheus_client.Histogram(
            "stream_pegasos_request_seconds", "Time to answer a request.", ["path"], registry=self._registry
        )
        self._seconds = {path: seconds.labels(path) for path in (*self.PATHS, "other")}
        self._counters: dict[tuple[str, int], Any] = {}
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
        """The metrics of the model, as they are now."""
        service, score = self._service, self._service.monitor.score
        model = service.model
        counts = {
            "messages_learned": ("Messages predicted, then learned.", score.n),
            "predictions": ("Messages only predicted.", service.monitor.n_predictions),
            "drifts": ("Drifts detected.", model.n_drifts),
        }
        if service.checkpoints is not None:
            counts["checkpoint_failures"] = ("Checkpoints that failed.", service.checkpoints.n_failures)
        gauges = {
            "features": ("Features that the model knows.", model.n_features),
            "accuracy": ("Prequential accuracy.", score.accuracy),
            "roc_auc": ("Prequential ROC AUC.", score.roc_auc),
            "log_loss": ("Prequential log loss.", score.log_loss),
            "window_accuracy": (f"Accuracy of the newest {score.window} messages.", score.window_accuracy),
            "window_roc_auc": (f"ROC AUC of the newest {score.window} messages.", score.window_roc_auc),
        }
        if service.checkpoints is not None and service.checkpoints.written_at is not None:
            age = monotonic() - service.checkpoints.written_at
            gauges["checkpoint_age_seconds"] = ("Time since the last checkpoint.", age)
        for name, (text, value) in counts.items():
            yield CounterMetricFamily(f"stream_pegasos_{name}", text, value)
        for name, (text, gauge) in gauges.items():
            yield GaugeMetricFamily(f"stream_pegasos_{name}", text, gauge)
