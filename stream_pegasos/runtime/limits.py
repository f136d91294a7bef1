"""Limits of input from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from stream_pegasos.common.cached import cached_property
from stream_pegasos.learners.label_policy import LONGEST_LABEL

__all__ = ["LARGEST_HEAD", "LONGEST_ID", "Allowed", "Limits"]

LARGEST_HEAD = 64 << 10  # bytes of a request before its body, and of the part after the body
LONGEST_EXPLAINED = 20_000  # characters
LONGEST_ID = 200  # characters
MOST_LABELS = 1_000  # of a message


class Allowed(NamedTuple):
    """The size limits of one request."""

    items: int  # messages, or texts that describe labels
    text: int  # characters of each
    label: int  # characters of a label that is new to the model
    labels: int  # of a message


@dataclass(frozen=True)
class Limits:
    """The limits for a client."""

    body: int = 8 << 20  # bytes of a request
    text: int = 1_000_000  # characters
    batch: int = 10_000  # messages in a request
    # The number at the same time; more are answered by 503. A proxy ends connections that send nothing or half a head,
    # and limits the connections of each client.
    connections: int = 1024
    seconds: float = 30.0  # for a client to send the body of a request
    idle_seconds: int = 75  # for a connection between two requests: longer than proxies keep one
    classes: int = 10_000  # labels that the model may learn here; each takes memory permanently

    @cached_property
    def request_limits(self) -> Allowed:
        return Allowed(self.batch, self.text, LONGEST_LABEL, MOST_LABELS)

    @cached_property
    def explanation_limits(self) -> Allowed:
        return self.request_limits._replace(items=1, text=min(self.text, LONGEST_EXPLAINED))
