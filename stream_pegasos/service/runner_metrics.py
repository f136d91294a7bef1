"""Metrics of a run for Prometheus, on a separate port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import prometheus_client
from prometheus_client.core import GaugeMetricFamily

from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.stream_runner import StreamRunner
from stream_pegasos.service.metrics import checkpoint_metrics, counter, new_registry, teaching_metrics

__all__ = ["RunnerMetrics", "serving_metrics"]


class RunnerMetrics:
    """The current state of a run."""

    def __init__(self, runner: StreamRunner, checkpoints: Checkpoints | None, n_bad: Callable[[], int]) -> None:
        self._runner, self._checkpoints, self._n_bad = runner, checkpoints, n_bad

    def collect(self) -> Iterator[Any]:
        yield counter("messages_read", "Messages read.", self._runner.n_read)
        yield counter("messages_learned", "Messages predicted, then learned.", self._runner.n_learned)
        yield counter("bad_records", "Records that could not be read or learned.", self._n_bad())
        lags = self._runner.lags()
        for unit in ("messages", "bytes"):
            text = f"How many {unit} what was learned is behind the end of a source."
            family = GaugeMetricFamily(f"stream_pegasos_lag_{unit}", text, labels=["source", "part"])
            for name, lag in lags.items():
                for part, n in lag.behind.items() if lag.unit == unit else ():
                    family.add_metric([name, part], n)
            yield family
        yield from checkpoint_metrics(self._checkpoints)
        yield from teaching_metrics(None if self._runner.teaching is None else self._runner.teaching.teaching)


@contextmanager
def serving_metrics(metrics: RunnerMetrics, host: str, port: int) -> Iterator[int]:
    """Serve metrics, also at /metrics; yield the port, which is any free one if `port` is 0."""
    registry = new_registry()
    registry.register(metrics)
    server, thread = prometheus_client.start_http_server(port, host, registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
