"""The page of a model that learns elsewhere in the process."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from stream_pegasos.common.checks import check_integer
from stream_pegasos.operation.monitor import Monitor
from stream_pegasos.service.app import LOOPBACK, create_app
from stream_pegasos.service.limits import Limits
from stream_pegasos.service.server import serve
from stream_pegasos.service.work import Service

__all__ = ["watch"]


def watch(monitor: Monitor, host: str = "127.0.0.1", port: int = 8000, token: str | None = None) -> str:
    """Show what a monitor follows on the page of the command `serve`, as long as the process runs.

    The page shows and predicts; nobody can teach the model there.

    Parameters
    ----------
    monitor
        The monitor to show, such as that of a `StreamLearning`.
    host, port
        Where to listen; port 0 for any that is free.
    token
        The bearer token that requests have to carry; `None` for none.

    Returns
    -------
    str
        The URL of the page.

    Raises
    ------
    OSError
        If it cannot listen there.
    TypeError, ValueError
        If the port is no integer from 0 to 65,535.

    Examples
    --------

    >>> from urllib.request import urlopen
    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.operation.monitor import Monitor
    >>> from stream_pegasos.service import watch

    >>> url = watch(Monitor(TextClassifier()), port=0)
    >>> "<title>" in urlopen(url).read().decode()
    True

    """
    check_integer("port", port, 0, 65_535)
    limits, listening = Limits(), Future[str]()
    service = Service(monitor.model, limits=limits, token=token, monitor=monitor)
    app = create_app(service, LOOPBACK if host in LOOPBACK else ("*",))

    def run() -> None:
        try:
            serve(app, host, port, limits, listening.set_result)
        except BaseException as error:
            if listening.done():
                raise
            listening.set_exception(error)

    threading.Thread(target=run, name="page", daemon=True).start()
    return listening.result()
