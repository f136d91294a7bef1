"""The service: a model that predicts and learns over HTTP, and a page that shows it at work.

| what | file |
|---|---|
| the application, its operations and their description | `app`, `operations`, `openapi`, `docs` |
| bodies of requests, their types, and responses | `bodies`, `messages`, `responses` |
| labels from people | `labelling` |
| the server, its connections, and middleware for all requests | `server`, `connections`, `middleware` |
| metrics and the access log | `metrics`, `runner_metrics`, `access_log` |
"""

from stream_pegasos.common.extras import missing

try:
    import httptools  # noqa: F401
    import msgspec  # noqa: F401
    import prometheus_client  # noqa: F401
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise missing("the service", "service", error) from None

from stream_pegasos.service.access_log import AccessLog
from stream_pegasos.service.app import LOOPBACK, create_app
from stream_pegasos.service.server import serve

__all__ = ["LOOPBACK", "AccessLog", "create_app", "serve"]
