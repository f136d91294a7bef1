"""Reports of a run while it works: its progress, and its lag behind the end of the stream."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from stream_pegasos.cli.command import number
from stream_pegasos.cli.console import Failure, note

if TYPE_CHECKING:
    from stream_pegasos.runtime.checkpoints import Checkpoints
    from stream_pegasos.runtime.stream_runner import StreamRunner

LOG_INTERVAL, TERMINAL_INTERVAL = 60.0, 2.0  # seconds
_is_port = number(int, 0, 65535)


def told(runner: "StreamRunner") -> str:
    """The progress of a run, in one line."""
    read = f"read {runner.n_read:,} messages, learned {runner.n_learned:,}"
    return "; ".join([read, *(f"{name}: {lag}" for name, lag in runner.lags().items())])


@contextmanager
def telling(runner: "StreamRunner") -> Iterator[None]:
    """Report the progress of a run: in place on a terminal that shows no answers, otherwise one line per minute if
    something has changed.
    """
    is_over = threading.Event()
    with ExitStack() as end:
        show: Callable[[str], None] = note
        interval = LOG_INTERVAL
        if sys.stderr is not None and sys.stderr.isatty() and not (sys.stdout is not None and sys.stdout.isatty()):
            from rich.console import Console
            from rich.text import Text

            status = end.enter_context(Console(stderr=True).status("reading"))
            interval, show = TERMINAL_INTERVAL, lambda line: status.update(Text(line))

        def tell() -> None:
            before = ""
            while not is_over.wait(interval):
                line = told(runner)
                if line != before and not is_over.is_set():
                    show(line)
                before = line

        thread = threading.Thread(target=tell, name="telling", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(1.0)  # a server may be slow to report the end


def host_and_port(text: str) -> tuple[str, int]:
    """An address to listen on; without a host, that of this machine only."""
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", _is_port(port)


@contextmanager
def metrics_at(
    address: tuple[str, int] | None, runner: "StreamRunner", checkpoints: "Checkpoints | None", n_bad: Callable[[], int]
) -> Iterator[None]:
    """Serve the metrics of a run, if an address is given; a note has their URL."""
    if address is None:
        yield
        return
    from stream_pegasos.service.runner_metrics import RunnerMetrics, serving_metrics

    host, port = address
    with ExitStack() as end:
        try:
            port = end.enter_context(serving_metrics(RunnerMetrics(runner, checkpoints, n_bad), host, port))
        except OSError as error:
            raise Failure(f"--metrics: cannot listen at port {port} of {host}: {error.strerror or error}") from None
        note(f"metrics at http://{f'[{host}]' if ':' in host else host}:{port}/metrics")
        yield
